"""What an import or a run loads in a fresh process. `lint-imports` checks which room imports which."""

import subprocess
import sys

import pytest

# torch.optim imports the compiler at its first use, and takes a second or two for it; training does not.
TRAINING = """import torch
from fedlab_nb.models import build
from fedlab_nb.training import Recipe, train_clients_in_place
for optimizer in ("sgd", "adam"):
    for backend in ("loop", "stacked"):
        models = [build("mlp", (8,), 2) for _ in range(2)]
        shards = [(torch.zeros(3, 8), torch.zeros(3, dtype=torch.long))] * 2
        train_clients_in_place(models, shards, Recipe(epochs=1, optimizer=optimizer), seed=0, backend=backend)
"""

# Beyond torch, the package itself costs less than a second.
PACKAGE = """import torch, time
start = time.perf_counter()
import fedlab_nb
assert time.perf_counter() - start < 1
"""

# {code: modules that must not be loaded after it}; the codes run one after another in one process.
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
# Slow because a new Python imports PyTorch, pictures and widgets.
def loaded_modules():
    """{code: names of all modules that are loaded after it}, in a fresh Python."""
    codes = [*HEAVY, PANELS]
    script = "import sys\n" + "".join(f"{code}\nprint(*sys.modules)\n" for code in codes)
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return dict(zip(codes, map(set, map(str.split, process.stdout.splitlines())), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", HEAVY, ids=["package", "training", "methods", "study", "digits", "plots"]
)
def test_an_import_stays_in_its_room(loaded_modules, code):
    assert "fedlab_nb" in loaded_modules[code] and not loaded_modules[code] & set(HEAVY[code])


@pytest.mark.slow
def test_pictures_and_widgets_are_among_the_loaded_modules_of_panels(loaded_modules):
    assert {"matplotlib", "ipywidgets"} <= loaded_modules[PANELS]


# A whole run, as the README begins with: small, and not remembered.
RUN = """import sys
import fedlab_nb as fl
out = fl.run(
    "fens", dataset="digits", clients=3, epochs=1, cache=False, **{"fens.rounds": 1}
)
assert 0 < out.accuracy < 1
print(*sys.modules)
"""
WINGS = ("fedlab_nb.course", "fedlab_nb.papers", "fedlab_nb.live")
APP = ("fedlab_nb.panels", "fedlab_nb.plots", "fedlab_nb.labs", "fedlab_nb.front")
PICTURES_AND_WIDGETS = ("matplotlib", "ipywidgets", "IPython", "anywidget")


# Slow because a new Python imports PyTorch and runs a method.
@pytest.mark.slow
def test_a_run_loads_no_wing_no_picture_and_no_widget():
    process = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, check=True
    )
    modules = set(process.stdout.splitlines()[-1].split())
    assert "fedlab_nb.methods.fens" in modules
    assert not modules & {*WINGS, *APP, *PICTURES_AND_WIDGETS}
