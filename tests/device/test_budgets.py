"""How many kernels a step launches, and that no step waits for the host, counted on the emulated device."""

import math

import pytest
import torch

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.fedlpa.solvers import (
    GPU_STEPS,
    iterate_conjugate_gradients,
    iterate_gradient_descent,
)
from fedlab_nb.methods.fens.aggregators import TRAINED
from fedlab_nb.methods.fens.training import ProxySamples
from fedlab_nb.methods.parts.kronecker import KroneckerFactors, LayerPosterior
from fedlab_nb.studies import run
from fedlab_nb.training import Recipe, iterate_training_of_clients_in_place
from tests.device.emulated import NAME, EmulatedDevice
from tests.methods.test_all_methods import make_fast_study_settings
from tests.training.test_backends import make_clients


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr("fedlab_nb.studies.settings.resolve_device", str)
    with EmulatedDevice() as device:
        yield device


def make_clients_on_device(name, shape, sizes):
    """Models and shards, as of `make_clients`; a residual network is narrow."""
    width = 4 if "resnet" in name else None
    models, shards = make_clients(name, shape, sizes, dtype=torch.float32, width=width)
    models = [model.to(NAME) for model in models]
    shards = [(x.to(NAME), y.to(NAME)) for x, y in shards]
    return models, shards


# ------------------------------------------------------------------------------------------------ launches
def count_launches_of_step(device, name, shape, count, backend="stacked", **recipe):
    """The launches of one step of all `count` clients: the second of an epoch, when everything is set up."""
    models, shards = make_clients_on_device(name, shape, [12] * count)
    recipe = Recipe(epochs=1, batch_size=4, **recipe)
    ticks = iterate_training_of_clients_in_place(models, shards, recipe, seed=0, backend=backend)
    ticks_per_step = count if backend == "loop" else 1
    for _ in range(ticks_per_step):
        next(ticks)
    before = device.launches
    for _ in range(ticks_per_step):
        next(ticks)
    return device.launches - before


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    ("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (3, 32, 32)), ("resnet8", (3, 16, 16))]
)
def test_a_stacked_step_launches_as_much_for_any_number_of_clients(name, shape, optimizer, device):
    few = count_launches_of_step(device, name, shape, 2, optimizer=optimizer)
    many = count_launches_of_step(device, name, shape, 7, optimizer=optimizer)
    assert few == many > 0


def test_a_step_of_all_clients_is_at_most_60_launches_for_the_five_layer_cnn(device):
    assert count_launches_of_step(device, "cnn", (3, 32, 32), 20) <= 60


def test_a_loop_launches_for_every_client(device):
    """Which the stack avoids. If the stack fell back to a loop, the tests above would see these counts."""
    one = count_launches_of_step(device, "mlp", (1, 8, 8), 1, "loop")
    four = count_launches_of_step(device, "mlp", (1, 8, 8), 4, "loop")
    assert four == 4 * one


# ------------------------------------------------------------------------------------------------ local training
@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8"])
def test_no_transfer_inside_an_epoch(name, backend, optimizer, device):
    """The order of the samples comes from the host when an epoch begins; nothing goes back to the host."""
    models, shards = make_clients_on_device(name, (1, 8, 8), (20, 20))
    device.transfer_counts.clear()
    recipe = Recipe(epochs=2, batch_size=4, optimizer=optimizer)
    copies = []  # to the device, up to each of the 5 steps of an epoch
    for _ in iterate_training_of_clients_in_place(models, shards, recipe, seed=0, backend=backend):
        copies.append(device.to_device)
    assert device.to_host == 0
    if backend == "stacked":  # the weights of the batches, once, and an order for each epoch
        assert copies == [2] * 5 + [3] * 5
    else:  # an order for each epoch of a client, and a last tick of each client
        first_client = [1] * 5 + [2] * 5 + [2]
        second_client = [3] * 5 + [4] * 5 + [4]
        assert copies == first_client + second_client


# ------------------------------------------------------------------------------------------------ methods
def count_in_run(method, **settings):
    """The transfers of a whole run, {(direction, operation): count}, and the number of its launches."""
    settings = {**make_fast_study_settings(method), "model": "mlp:8", "share": 0.3, **settings}
    with EmulatedDevice() as device:
        run(method, device=NAME, cache=False, **settings)
    return dict(+device.transfer_counts), device.launches


# {step: (method, knob, value for few steps, value for more steps)}
FEW_AND_MORE_STEPS = {
    "local training": ("ensemble", "batch_size", 256, 64),
    "FedAvg's local step": ("fedavg_multi", "batch_size", 256, 64),
    "SCAFFOLD's local step": ("scaffold", "batch_size", 256, 64),
    "MOON's local step": ("moon", "batch_size", 256, 64),
    "DENSE's generator step": ("dense", "generator_steps", 2, 9),
    "DENSE's distillation step": ("dense", "passes", 1, 2),
    "Co-Boosting's generator step": ("coboosting", "generator_steps", 2, 9),
    "F-DAFL's generator step": ("fdafl", "generator_steps", 2, 9),
    "F-DAFL's distillation step": ("fdafl", "passes", 2, 9),
    "F-ADI's pixel step": ("fadi", "steps", 2, 9),
    "FedDF's distillation step": ("feddf", "batch", 256, 32),
    "FedCVAE's step": ("fedcvae", "steps", 2, 9),
    "the step of kernel inducing points": ("distilled", "steps", 2, 9),
    "FENS' local step": ("fens", "local_steps", 2, 4),
    # at powers of two FedLPA looks whether it diverges: there is none from 5 to 7
    "FedLPA's gradient step": ("fedlpa", "iterations", 5, 7),
}
# Knobs that make a method take the step in question.
STEP_KNOBS = {
    "fedlpa": {"fedlpa.solver": "gd"},
    "dense": {"dense.batch": 8},
    "distilled": {"distilled.images": "kip"},
}
LOCAL_STEPS = [step for step in FEW_AND_MORE_STEPS if "local" in step]
CASES = [
    *((step, "stacked") for step in FEW_AND_MORE_STEPS),
    *((step, "loop") for step in LOCAL_STEPS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "backend"), CASES)
def test_more_steps_are_no_more_transfers(step, backend, device):
    method, knob, few, more = FEW_AND_MORE_STEPS[step]
    if knob == "batch_size":
        name = knob
    else:
        name = f"{method}.{knob}"
        assert knob in {field.name for field in METHODS[method].fields()}
    settings = {"backend": backend, **STEP_KNOBS.get(method, {})}
    transfers_of_few, launches_of_few = count_in_run(method, **settings, **{name: few})
    transfers_of_more, launches_of_more = count_in_run(method, **settings, **{name: more})
    assert transfers_of_few == transfers_of_more
    assert launches_of_few < launches_of_more


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("aggregator", TRAINED)
def test_no_transfer_in_a_round_of_phase_2_of_fens(aggregator, steps, device):
    """With one local step, for which there is a shortcut, and with two."""
    stream = torch.Generator().manual_seed(0)
    proxies = {}
    for k, n in enumerate((9, 30)):
        logits = torch.randn(n, 3, 4, generator=stream).to(NAME)
        labels = (torch.arange(n) % 4).to(NAME)
        images = torch.rand(n, 1, 8, 8).to(NAME)
        proxies[k] = ProxySamples(logits, labels, images)
    fens = METHODS["fens"](aggregator=aggregator, rounds=4, local_steps=steps, batch=8)
    rule = fens.make_initial_aggregator(3, 4, (1, 8, 8), torch.Generator().manual_seed(1)).to(NAME)
    rounds = fens.train_aggregator_in_place(
        rule, proxies, lambda k: torch.Generator().manual_seed(k)
    )
    transfers = []  # up to the end of each round
    for _ in range(4):
        next(rounds)
        transfers.append(device.transfers)
    assert transfers == transfers[:1] * 4
    assert device.to_host == 0


def make_layer_system(device_name):
    """A layer of three clients that conjugate gradients do not solve in a few steps, and where they start."""
    stream = torch.Generator().manual_seed(0)

    def draw_matrix():
        return torch.randn(12, 12, generator=stream, dtype=torch.float64)

    def draw_factor():
        root = draw_matrix()
        return (root @ root.T / 12 + 1e-4 * torch.eye(12)).to(device_name)

    factors = [KroneckerFactors(draw_factor(), draw_factor()) for _ in range(3)]
    layers = [draw_matrix().to(device_name) for _ in range(3)]
    posterior = LayerPosterior.from_clients(layers, factors, [1 / 3] * 3)
    return posterior, posterior.solve_with_averaged_factors()


@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_conjugate_gradients_look_at_the_host_once_in_a_few_steps(tolerance, device):
    limits = {"residual_tolerance": tolerance, "step_limit": 30}
    steps_here = list(iterate_conjugate_gradients(*make_layer_system("cpu"), **limits))
    system = make_layer_system(NAME)
    device.transfer_counts.clear()
    steps_there = list(iterate_conjugate_gradients(*system, **limits))
    # the device takes a few steps too many before it looks, and throws them away
    assert len(steps_there) == len(steps_here) > GPU_STEPS
    assert device.transfers == math.ceil(len(steps_here) / GPU_STEPS)
    for there, here in zip(steps_there, steps_here, strict=True):
        assert torch.equal(there.residual, here.residual)
        assert torch.equal(there.matrix.cpu(), here.matrix)


def test_no_transfer_in_a_step_of_gradient_descent(device):
    problem = make_layer_system(NAME)
    device.transfer_counts.clear()
    assert len(list(iterate_gradient_descent(*problem, steps=20))) == 21
    assert device.transfers == 0
