"""The rooms as a fresh process finds them: what an import loads. Which room may import which, `lint-imports` keeps."""

import subprocess
import sys

import pytest

# torch.optim imports the compiler at its first use, and takes a second or two for it; training does not.
TRAINING = """import torch
from fedlab_nb.models import build
from fedlab_nb.training import Recipe, trained
for optimizer in ("sgd", "adam"):
    for backend in ("loop", "stacked"):
        models = [build("mlp", (8,), 2) for _ in range(2)]
        shards = [(torch.zeros(3, 8), torch.zeros(3, dtype=torch.long))] * 2
        trained(models, shards, Recipe(epochs=1, optimizer=optimizer), seed=0, backend=backend)
"""

# Beyond torch, the package itself costs less than a second.
PACKAGE = """import torch, time
start = time.perf_counter()
import fedlab_nb
assert time.perf_counter() - start < 1
"""

# What is imported or done, one after the other in one process, and what neither it nor those before it may bring along.
HEAVY = {
    PACKAGE: ("sklearn", "ipywidgets", "torchvision", "matplotlib"),
    TRAINING: ("torch._dynamo", "matplotlib", "ipywidgets", "IPython"),
    "from fedlab_nb.methods import METHODS": ("matplotlib", "ipywidgets", "IPython", "sklearn"),
    "from fedlab_nb.studies import run, Outcome": (
        "matplotlib",
        "ipywidgets",
        "IPython",
        "torchvision",
    ),
    "from fedlab_nb.data import load; load('digits')": ("sklearn", "scipy"),
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


@pytest.mark.parametrize(
    "code", HEAVY, ids=["package", "training", "methods", "study", "digits", "plots"]
)
def test_an_import_stays_in_its_room(loaded, code):
    assert "fedlab_nb" in loaded[code] and not loaded[code] & set(HEAVY[code])


def test_the_look_at_what_is_loaded_sees_pictures_and_widgets(loaded):
    assert {"matplotlib", "ipywidgets"} <= loaded[PANELS]
