"""On the emulated device every method, model and backend gives the CPU's numbers, and no code path mixes devices.

The tests run in float64, where the package takes the same operations on both; in float32 it has ways of its own for
the CPU.
"""

import copy

import numpy as np
import pytest
import torch

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.context import Context
from fedlab_nb.models import MODELS, copy_model_state
from fedlab_nb.studies import job
from fedlab_nb.training import ClientModels, Recipe, train_clients_in_place
from fedlab_nb.training.stack import can_stack_model
from tests.device.emulated import NAME, EmulatedDevice
from tests.methods.test_all_methods import make_fast_study_settings
from tests.training.test_backends import make_clients

CLOSE = {"rtol": 1e-9, "atol": 1e-11}


@pytest.fixture(autouse=True)
def float64_on_any_device(monkeypatch):
    """Runs are in float64, and settings accept the emulated device, which they would refuse."""
    monkeypatch.setattr("fedlab_nb.studies.settings.resolve_device", str)
    monkeypatch.setitem(Context.__init__.__kwdefaults__, "dtype", torch.float64)


def list_events(method, device, **settings):
    """All events of a run on a seventh of the training samples: a few batches for each client."""
    settings = {**make_fast_study_settings(method), "share": 0.15, **settings}
    events = list(job([method], device=device, cache=False, **settings))
    for event in events:
        if event.error is not None:
            raise event.error
    return events


def assert_close(there, here, place):
    """Equal, but for rounding; dicts and sequences are compared part by part.

    place: where in the compared value these two stand, for the message of a failure
    """
    if isinstance(here, dict):
        assert there.keys() == here.keys(), place
        for name in here:
            assert_close(there[name], here[name], f"{place}.{name}")
    elif isinstance(here, (list, tuple)):
        assert len(there) == len(here), place
        for i, (part_there, part_here) in enumerate(zip(there, here, strict=True)):
            assert_close(part_there, part_here, f"{place}[{i}]")
    elif isinstance(here, (float, np.ndarray)):
        np.testing.assert_allclose(there, here, err_msg=place, **CLOSE)
    else:
        assert there == here, place


def collect_values(event):
    """An event's live values, and those of its outcome."""
    values = {
        "progress": (event.phase, event.done, event.total),
        "metrics": dict(event.metrics),
        "curve": event.curve,
    }
    if event.report is not None:
        values["report"] = (event.report.get_plain_fields(), event.report.get_array_fields())
    outcome = event.outcome
    if outcome is not None:
        values["outcome"] = {
            "accuracy": outcome.accuracy,
            "accuracy_validation": outcome.accuracy_validation,
            "per_class": outcome.per_class,
            "per_client": outcome.per_client,
            "history": outcome.history,
            "parameters": outcome.parameters,
            "ledger": outcome.ledger.to_json(),
            "test_features": outcome.test_features,
            "test_predictions": outcome.test_predictions,
            "numbers": outcome.report.get_plain_fields(),
            "arrays": outcome.report.get_array_fields(),
        }
    return values


def compare_devices(method, **settings):
    """Run the method on the CPU and on the emulated device, and compare all events."""
    events_here = list_events(method, "cpu", **settings)
    with EmulatedDevice() as device:
        events_there = list_events(method, NAME, **settings)
    assert device.launches > 0
    assert events_there[-1].outcome.settings.device == NAME
    values_there = [collect_values(event) for event in events_there]
    values_here = [collect_values(event) for event in events_here]
    assert_close(values_there, values_here, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_numbers(method):
    """Live curves and reports, evaluation, features and what a run leaves behind; stacked."""
    compare_devices(method, backend="stacked")


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["fens", "fedet", "coboosting", "fusefl", "fedlpa", "matching", "regmean", "moon"]
)
def test_methods_give_the_same_numbers_with_other_architectures(method):
    """Methods that look into networks or mix them, with mixed architectures where they allow it; in a loop."""
    if "one architecture" in METHODS[method].info.needs:
        model = "cnn:4"
    elif method == "fusefl":
        model = "resnet10:4,resnet18:4"  # FuseFL joins maps of one size
    else:
        model = "mlp:8,cnn:4"
    compare_devices(method, backend="loop", model=model)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["local", "fens", "fedlpa", "coboosting"])
def test_an_outcome_predicts_samples_that_come_from_the_host(method, monkeypatch):
    monkeypatch.setitem(Context.__init__.__kwdefaults__, "dtype", torch.float32)
    with EmulatedDevice():
        outcome = list_events(method, NAME)[-1].outcome
        dataset = outcome.federation().dataset
        is_right = outcome.predict(dataset.x_test) == dataset.y_test.numpy()
        assert len(outcome.features(dataset.x_test[:3])) == 3
    if method != "local":  # its accuracy is the mean of the clients' models'
        assert is_right.mean() == pytest.approx(outcome.accuracy)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "optimizer"), [*((name, "sgd") for name in MODELS), ("cnn2", "adam")]
)
def test_every_model_is_trained_to_the_same_numbers(name, optimizer):
    """As a stack where the model can be stacked, else in a loop."""
    width = 12 if name == "mlp" else 4
    models, shards = make_clients(name, (1, 8, 8), sizes=(1, 9, 20), width=width)
    backend = "stacked" if can_stack_model(models[0]) else "loop"
    lr = 1e-3 if optimizer == "adam" else 0.05
    recipe = Recipe(epochs=1, batch_size=8, optimizer=optimizer, lr=lr)
    twins = copy.deepcopy(models)
    x, _ = shards[2]
    here = ClientModels(train_clients_in_place(models, shards, recipe, seed=3, backend=backend))
    with EmulatedDevice():
        models_there = [model.to(NAME) for model in twins]
        shards_there = [(x.to(NAME), y.to(NAME)) for x, y in shards]
        there = ClientModels(
            train_clients_in_place(models_there, shards_there, recipe, seed=3, backend=backend)
        )
        assert torch.allclose(there.logits(x.to(NAME)).cpu(), here.logits(x), **CLOSE)
        assert torch.allclose(there.features(x.to(NAME)).cpu(), here.features(x), **CLOSE)
        for model_there, model_here in zip(there.modules, here.modules, strict=True):
            state_there = {k: v.cpu().numpy() for k, v in copy_model_state(model_there).items()}
            state_here = {k: v.numpy() for k, v in copy_model_state(model_here).items()}
            assert_close(state_there, state_here, name)
