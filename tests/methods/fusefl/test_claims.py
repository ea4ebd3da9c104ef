"""FuseFL's statistical claims that hold on small data: digits, five clients, a CNN of four layers with batch norm.

Not claimed, as they are not true here: that the conv adaptor beats the mean, that more blocks help, that FuseFL beats
its own calibration without fusion (blocks=1), or that it ignores a shortcut that test images carry too.
"""

import dataclasses
from functools import cache

import pytest
import torch
from torch import nn

from fedlab_nb.data import federate, load
from fedlab_nb.labs.fusefl.probes import blocks_of, layers_of, probe
from fedlab_nb.methods.context import Context
from fedlab_nb.methods.ensemble import Ensemble
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.methods.fusefl import FuseFL
from fedlab_nb.models import MODELS
from fedlab_nb.models.build import ModelInfo
from fedlab_nb.studies.experiment import finished
from fedlab_nb.training import Recipe
from fedlab_nb.training.backend import suitable_threads

pytestmark = pytest.mark.slow
SEEDS, CLIENTS = (0, 1, 2), 5
RECIPE = Recipe(epochs=12, batch_size=64, lr=0.1, momentum=0.9, weight_decay=0)


def toy(input_shape, width):
    """Four convolutions with batch norm, of w, w, 2w, 4w channels and strides 2, 1, 2, 1, then the mean of each map."""
    channels, blocks = input_shape[0], []
    for multiple, stride in [(1, 2), (1, 1), (2, 2), (4, 1)]:
        convolution = nn.Conv2d(channels, multiple * width, 3, stride=stride, padding=1, bias=False)
        channels = multiple * width
        blocks.append([convolution, nn.BatchNorm2d(channels), nn.ReLU()])
    blocks[-1] += [nn.AdaptiveAvgPool2d(1), nn.Flatten(1)]
    return [nn.Sequential(*block) for block in blocks], channels


@pytest.fixture(autouse=True)
def toy_model(monkeypatch):
    monkeypatch.setitem(MODELS, "toy", ModelInfo("", "", 24, toy))


@cache
def colour_digits():
    """The digits as RGB images, so that a tint has hues to choose from."""
    digits = load("digits")
    x = {part: getattr(digits, part).repeat(1, 3, 1, 1) for part in ("x_train", "x_test")}
    return dataclasses.replace(digits, **x, x_public=None, digest="digits in three channels")


@cache
def federation(alpha, seed, spurious=0):
    return federate(colour_digits(), alpha=alpha, clients=CLIENTS, seed=seed, spurious=range(spurious), tint=0.8)


@cache
def local_models(alpha, seed, spurious):
    """What FedAvg and the ensemble share: a place for the states of the clients once they are trained."""
    return {}


@cache
def trained(method, alpha, seed, spurious=0):
    """The global model of `method`, and its context."""
    architecture = ("toy", (3, 8, 8), 10, 24)
    memory = local_models(alpha, seed, spurious)
    ctx = Context(
        federation(alpha, seed, spurious),
        architectures=[architecture] * CLIENTS,
        recipe=RECIPE,
        seed=seed,
        holdout=0,
        recall=lambda: memory.get("states"),
        remember=lambda clients: memory.update(states=clients.states()),
    )
    with suitable_threads("cpu", (3, 8, 8)):
        return finished(method.run(ctx)), ctx


def accuracy(method, alpha, seed, spurious=0):
    data = federation(alpha, seed, spurious).dataset
    return trained(method, alpha, seed, spurious)[0].accuracy(data.x_test, data.y_test)


def mean(method, alpha, spurious=0):
    return sum(accuracy(method, alpha, seed, spurious) for seed in SEEDS) / len(SEEDS)


def test_fedavg_then_ensemble_then_fusefl():
    assert mean(Ensemble(), 0.1) > mean(FedAvg(), 0.1) + 0.10
    assert mean(FuseFL(), 0.1) > mean(Ensemble(), 0.1) + 0.10


def test_calibration_is_half_of_the_method():
    assert mean(FuseFL(), 0.1) > mean(FuseFL(head="average"), 0.1) + 0.20


def test_less_skew_is_easier():
    for method in (FedAvg(), Ensemble(), FuseFL()):
        assert mean(method, 0.5) >= mean(method, 0.1) - 0.01  # FuseFL is at its ceiling at both


def test_a_client_with_a_shortcut_is_right_at_home_and_lost_outside():
    gaps = []
    for seed in SEEDS:
        data = federation(0.5, seed, 1).dataset
        ensemble, ctx = trained(Ensemble(), 0.5, seed, 1)
        x, y = ctx.private.everything(0)
        assert (ensemble.clients.logits(x)[0].argmax(1) == y).double().mean() >= 0.99
        each = (ensemble.clients.logits(data.x_test).argmax(-1) == data.y_test).double().mean(1)
        gaps.append(each[1:].mean() - each[0])
    assert torch.stack(gaps).mean() > 0.20


def test_shortcuts_hurt_the_ensemble_more():
    ensemble, fusefl = ([mean(method, 0.5, spurious) for spurious in (0, 1, 2)] for method in (Ensemble(), FuseFL()))
    assert ensemble[2] < ensemble[0]
    assert fusefl[1] > ensemble[1] and fusefl[2] > ensemble[2]
    assert ensemble[0] - ensemble[2] > fusefl[0] - fusefl[2] + 0.05


def top_probes(outputs, method, seed):
    """Probe accuracies on the last features: mean over single clients, and of the mean features."""
    data = federation(0.1, seed).dataset
    network = trained(method, 0.1, seed)[0].module
    *_, (each, of_mean) = probe(
        outputs(network, data.x_train), data.y_train, outputs(network, data.x_test), data.y_test
    )
    return sum(each) / CLIENTS, of_mean


def test_fused_features_of_one_client_are_more_separable_at_the_top():
    """Like with like: one client's features, fused and isolated. Their mean over the clients gains nothing."""
    gains, means = [], []
    for seed in SEEDS:
        alone, alone_mean = top_probes(layers_of, FuseFL(blocks=1), seed)
        fused, fused_mean = top_probes(blocks_of, FuseFL(), seed)
        gains.append(fused - alone)
        means.append(fused_mean - alone_mean)
    assert min(gains) > 0.01
    assert sum(means) / len(means) < 0.01
