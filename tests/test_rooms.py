"""The rooms as a fresh process finds them: what an import loads. Which room may import which, `lint-imports` keeps."""

import subprocess
import sys

import pytest

# What is imported, one after the other in one process, and what neither it nor those before it may bring along.
HEAVY = {
    "from fedlab_nb.methods import METHODS; assert len(METHODS) > 20": (
        "matplotlib",
        "ipywidgets",
        "IPython",
        "sklearn",
    ),
    "from fedlab_nb.study import run, Outcome": ("matplotlib", "ipywidgets", "IPython", "torchvision"),
    "import fedlab_nb.plots": ("ipywidgets", "matplotlib.pyplot", "sklearn.manifold"),
}
PANELS = "import fedlab_nb.panels"


@pytest.fixture(scope="module")
def loaded():
    """{code: names of the modules that a fresh Python has after it and those before it}."""
    codes = [*HEAVY, PANELS]
    ask = "import sys\n" + "".join(f"{code}\nprint(*sys.modules)\n" for code in codes)
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return dict(zip(codes, map(set, map(str.split, done.stdout.splitlines())), strict=True))


@pytest.mark.parametrize("code", HEAVY)
def test_an_import_stays_in_its_room(loaded, code):
    assert "fedlab_nb" in loaded[code] and not loaded[code] & set(HEAVY[code])


def test_the_look_at_what_is_loaded_sees_pictures_and_widgets(loaded):
    assert {"matplotlib", "ipywidgets"} <= loaded[PANELS]
