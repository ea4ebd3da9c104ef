"""`preset="paper"`: the papers' values, written down again here, and a run of every method from end to end."""

import dataclasses

import numpy as np
import pytest
import torch

from fedlab_nb.methods import METHODS
from fedlab_nb.models import build
from fedlab_nb.study import job
from fedlab_nb.study.settings import Settings, plan
from fedlab_nb.training import Recipe

OWN_TESTS = {"fens", "fedlpa", "fusefl", "fedet", "coboosting"}  # their values are checked in tests of their own

FENS = Recipe(500, 16, lr=0.0025, momentum=0, weight_decay=0, schedule="cosine", lr_min=0.001)
FEDLPA = Recipe(200, 64, lr=0.01, momentum=0.9, weight_decay=1e-5)  # its authors' scripts
DENSE = Recipe(200, 128, lr=0.01, momentum=0.9, weight_decay=0)
ROUNDS = {"rounds": 100, "local_epochs": 2}  # FENS, section 4.3 and Table 6 at alpha = 0.1
SYNTHESIS = {"epochs": 200, "images": 128, "batch": 128, "server_lr": 0.01, "temperature": 4}
GENERATOR = {"generator_steps": 30, "generator_lr": 1e-3, "latent": 256, "width": 64}


def each_round(lr, momentum=0.0):
    return Recipe(200, 16, lr=lr, momentum=momentum, weight_decay=0)


# method: model for CIFAR-10, local training, knobs
PAPER = {
    "local": ("cnn", FEDLPA, {}),
    "fedavg": ("cnn", FEDLPA, {"weights": "samples"}),
    "centralized": ("cnn", FEDLPA, {}),
    "regmean": ("cnn", FEDLPA, {"off_diagonal": 0.9}),
    "fisher_merge": ("mlp", FEDLPA, {}),
    "fedov": ("cnn", Recipe(200, 64, "adam", 1e-3, weight_decay=1e-5), {"fresh": True, "adversarial": 5}),
    "ensemble": ("resnet8:128", FENS, {"rule": "logits"}),
    "fedkd": ("resnet8:128", FENS, {"epochs": 200, "batch": 512, "server_lr": 1e-3, "loss": "l1"}),
    "fedcvae": ("resnet8:128", FEDLPA, {}),
    "feddf": ("cnn3", DENSE, {"epochs": 200, "batch": 128, "server_lr": 0.01, "temperature": 4}),
    "dense": (
        "cnn3",
        DENSE,
        {**SYNTHESIS, **GENERATOR, "passes": 0, "bn_weight": 1, "div_weight": 1, "augment": "crop+flip", "reset": True},
    ),
    "fdafl": ("cnn3", DENSE, {**SYNTHESIS, **GENERATOR, "one_hot": 1, "entropy": 5, "activation": 0.1}),
    "fadi": (
        "cnn3",
        DENSE,
        {**SYNTHESIS, "steps": 2000, "image_lr": 0.05, "tv": 2.5e-5, "l2": 0, "bn_weight": 10, "adaptive": 10},
    ),
    "fedavg_multi": ("resnet8:128", each_round(0.1), {**ROUNDS, "keep": 0.5}),
    "fedprox": ("resnet8:128", each_round(0.1), {**ROUNDS, "mu": 0.01}),
    "scaffold": ("resnet8:128", each_round(0.01), {**ROUNDS, "eta_s": 1}),
    "fednova": ("resnet8:128", each_round(0.005, 0.9), {**ROUNDS, "server_momentum": 0.9}),
    "fedadam": ("resnet8:128", each_round(0.01), {**ROUNDS, "eta_s": 0.01, "tau": 1e-3}),
    "fedyogi": ("resnet8:128", each_round(0.01), {**ROUNDS, "eta_s": 0.01, "tau": 1e-3}),
    "moon": ("resnet8:128", each_round(0.01), {**ROUNDS, "mu": 5, "temperature": 0.5}),
    "dsfl": (
        "resnet18:64,resnet8:128,cnn:14",
        Recipe(200, 64, lr=0.1, momentum=0, weight_decay=0),
        {"local_epochs": 5, "temperature": 0.1, "aggregation": "era"},
    ),
}

# What a fast run needs less of.
FEWER = {
    "rounds": 1, "iterations": 3, "epochs": 2, "steps": 3, "generator_steps": 2, "passes": 2, "distil_steps": 2,
    "server_epochs": 1, "samples": 20, "server_steps": 2, "one_shot_steps": 2, "server_width": 4, "virtual": 20,
}  # fmt: skip
NARROW = {"resnet8:128": "resnet8:2", "resnet18": "resnet18:4", "resnet18:64,resnet8:128,cnn:14": "resnet18:2,cnn:2"}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Noise in the form of CIFAR-10: 48 training, 20 test and 24 public images, four classes."""
    path = tmp_path_factory.mktemp("data") / "tiny.npz"
    stream = np.random.default_rng(0)

    def noise(n):
        return stream.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)

    labels = {"y_train": np.arange(48) % 4, "y_test": np.arange(20) % 4}
    np.savez(path, x_train=noise(48), x_test=noise(20), x_public=noise(24), **labels)
    return str(path)


def test_every_method_has_its_paper_values_checked():
    assert PAPER.keys() | OWN_TESTS == METHODS.keys()


@pytest.mark.parametrize("name", PAPER)
def test_the_values_are_the_papers(images, name):
    model, recipe, knobs = PAPER[name]
    (work,) = plan(Settings.make(dataset=images, preset="paper", clients=3, alpha=0.5), [name])
    kinds = [part.partition(":") for part in model.split(",")]
    assert [(a[0], a[3]) for a in work.architectures] == [
        (kinds[k % len(kinds)][0], int(kinds[k % len(kinds)][2] or 0) or None) for k in range(3)
    ]
    assert work.recipe == recipe
    assert {key: getattr(work.method, key) for key in knobs} == knobs


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", METHODS)
def test_the_papers_models_can_be_built(name, channels):
    for part in (METHODS[name].model_in_paper(channels) or "cnn").split(","):
        kind, _, width = part.partition(":")
        model = build(kind, (channels, 32, 32), 10, width=int(width) if width else None)
        assert model(torch.zeros(1, channels, 32, 32)).shape == (1, 10)


@pytest.mark.parametrize("name", METHODS)
def test_a_paper_run_of_one_round_from_end_to_end(images, name):
    """Fewer steps and thinner networks, everything else as in the paper."""
    cls = METHODS[name]
    knobs = {k.name: k for k in cls.fields()}
    fewer = {key: value for key, value in FEWER.items() if key in knobs}
    if knobs.get("width") is not None and isinstance(knobs["width"].paper, int):
        fewer["width"] = 4
    model = cls.model_in_paper(3) or "cnn"
    setting = {"dataset": images, "preset": "paper", "clients": 2, "alpha": 1.0, "epochs": 1, "cache": False}
    setting["model"] = NARROW.get(model, f"{model}:4" if ":" not in model and model != "auto" else model)
    (*_, last) = job([name], **setting, **{f"{name}.{key}": value for key, value in fewer.items()})
    assert last.error is None and last.outcome is not None, last.error
    kept = last.outcome.options
    assert {key: kept[key] for key in knobs if key not in fewer} == {
        key: knob.paper for key, knob in knobs.items() if key not in fewer
    }
    usual = cls.paper_recipe or FEDLPA
    assert last.outcome.recipe == dataclasses.replace(usual, epochs=1)
    assert 0 <= last.outcome.accuracy <= 1
