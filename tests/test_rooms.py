"""The rooms as a fresh process finds them: what an import loads. Which room may import which, `lint-imports` keeps."""

import subprocess
import sys

import pytest

# What is imported, and what it must not bring along.
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


def loaded(code):
    """Names of the modules that a fresh Python has after `code`."""
    ask = f"{code}\nimport sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("code", HEAVY)
def test_an_import_stays_in_its_room(code):
    modules = loaded(code)
    assert "fedlab_nb" in modules and not modules & set(HEAVY[code])


def test_the_look_at_what_is_loaded_sees_pictures_and_widgets():
    assert {"matplotlib", "ipywidgets"} <= loaded("import fedlab_nb.panels")
