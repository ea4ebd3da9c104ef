"""On the emulated device every method, model and backend gives the CPU's numbers, and no code path mixes devices.

In float64, where the device takes the very operations that the CPU takes; in float32 the CPU has kernels of its own.
"""

import copy

import numpy as np
import pytest
import torch

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.context import Context
from fedlab_nb.models import MODELS, model_state
from fedlab_nb.studies import job
from fedlab_nb.training import ClientModels, Recipe, train_clients_to_end
from fedlab_nb.training.stack import can_stack_model
from tests.device.emulated import NAME, EmulatedDevice
from tests.methods.test_all_methods import in_study
from tests.training.test_backends import make_clients

CLOSE = {"rtol": 1e-9, "atol": 1e-11}


@pytest.fixture(autouse=True)
def doubled(monkeypatch):
    """Runs in float64, on a device that settings would refuse."""
    monkeypatch.setattr("fedlab_nb.studies.settings.resolve_device", str)
    monkeypatch.setitem(Context.__init__.__kwdefaults__, "dtype", torch.float64)


def events(method, device, **settings):
    """All that a panel would see of a run on a seventh of the training samples, a few batches for each client."""
    seen = list(
        job([method], device=device, cache=False, **in_study(method) | {"share": 0.15} | settings)
    )
    for event in seen:
        if event.error is not None:
            raise event.error
    return seen


def alike(there, here, where):
    """Equal, but for rounding, whatever they are made of."""
    if isinstance(here, dict):
        assert there.keys() == here.keys(), where
        for name in here:
            alike(there[name], here[name], f"{where}.{name}")
    elif isinstance(here, (list, tuple)):
        assert len(there) == len(here), where
        for at, (one, other) in enumerate(zip(there, here, strict=True)):
            alike(one, other, f"{where}[{at}]")
    elif isinstance(here, (float, np.ndarray)):
        np.testing.assert_allclose(there, here, err_msg=where, **CLOSE)
    else:
        assert there == here, where


def seen(event):
    """An event's live values, and those of its outcome."""
    values = {
        "at": (event.phase, event.done, event.total),
        "metrics": dict(event.metrics),
        "curve": event.curve,
    }
    if event.report is not None:
        values["report"] = (event.report.numbers(), event.report.arrays())
    if (out := event.outcome) is not None:
        values["outcome"] = [
            out.accuracy, out.accuracy_validation, out.per_class, out.per_client, out.history, out.parameters,
            out.ledger.to_json(), out.test_features, out.test_predictions, out.report.numbers(),
            out.report.arrays(),
        ]  # fmt: skip
    return values


def compared(method, **settings):
    here = events(method, "cpu", **settings)
    with EmulatedDevice() as device:
        there = events(method, NAME, **settings)
    assert device.launches > 0 and there[-1].outcome.settings.device == NAME
    alike([seen(event) for event in there], [seen(event) for event in here], method)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method):
    """Live curves and reports, evaluation, features and what a run leaves behind; stacked."""
    compared(method, backend="stacked")


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["fens", "fedet", "coboosting", "fusefl", "fedlpa", "matching", "regmean", "moon"]
)
def test_methods_with_other_architectures(method):
    """Mixed ones where the method allows it; one after the other. Of methods that look into networks, or mix them."""
    one = "one architecture" in METHODS[method].info.needs
    mixed = (
        "resnet10:4,resnet18:4" if method == "fusefl" else "mlp:8,cnn:4"
    )  # FuseFL joins maps of one size
    compared(method, backend="loop", model="cnn:4" if one else mixed)


@pytest.mark.parametrize("method", ["local", "fens", "fedlpa", "coboosting"])
def test_samples_that_come_from_the_host(method, monkeypatch):
    monkeypatch.setitem(Context.__init__.__kwdefaults__, "dtype", torch.float32)
    with EmulatedDevice():
        outcome = events(method, NAME)[-1].outcome
        x = outcome.federation().dataset.x_test
        right = outcome.predict(x) == outcome.federation().dataset.y_test.numpy()
        assert len(outcome.features(x[:3])) == 3
    if method != "local":  # whose accuracy is the mean of its models'
        assert right.mean() == pytest.approx(outcome.accuracy)


@pytest.mark.parametrize(
    ("name", "optimizer"), [*((name, "sgd") for name in MODELS), ("cnn2", "adam")]
)
def test_every_model(name, optimizer):
    """As a stack where that can be; methods with other architectures have the loop."""
    models, shards = make_clients(
        name, (1, 8, 8), sizes=(1, 9, 20), width=12 if name == "mlp" else 4
    )
    backend = "stacked" if can_stack_model(models[0]) else "loop"
    recipe = Recipe(
        epochs=1, batch_size=8, optimizer=optimizer, lr=1e-3 if optimizer == "adam" else 0.05
    )
    twins, x = copy.deepcopy(models), shards[2][0]
    here = ClientModels(train_clients_to_end(models, shards, recipe, seed=3, backend=backend))
    with EmulatedDevice():
        on_device = (
            [model.to(NAME) for model in twins],
            [tuple(part.to(NAME) for part in own) for own in shards],
        )
        there = ClientModels(train_clients_to_end(*on_device, recipe, seed=3, backend=backend))
        for answers in (lambda of, x: of.logits(x), lambda of, x: of.features(x)):
            assert torch.allclose(answers(there, x.to(NAME)).cpu(), answers(here, x), **CLOSE)
        for one, other in zip(there.modules, here.modules, strict=True):
            alike({name: part.cpu().numpy() for name, part in model_state(one).items()},
                  {name: part.numpy() for name, part in model_state(other).items()}, name)  # fmt: skip
