"""How many kernels a step launches, and that no step waits for the host, counted on the emulated device."""

import pytest
import torch

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.fedlpa.solvers import (
    GPU_STEPS,
    run_conjugate_gradients,
    run_gradient_descent,
)
from fedlab_nb.methods.fens.aggregators import TRAINED
from fedlab_nb.methods.fens.training import ProxySamples
from fedlab_nb.methods.parts.kronecker import KroneckerFactors, LayerPosterior
from fedlab_nb.studies import run
from fedlab_nb.training import Recipe, train_clients
from tests.device.emulated import NAME, EmulatedDevice
from tests.methods.test_all_methods import in_study
from tests.training.test_backends import make_clients


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr("fedlab_nb.studies.settings.resolve_device", str)
    with EmulatedDevice() as device:
        yield device


def on_device(name, shape, sizes, width=None):
    models, shards = make_clients(name, shape, sizes, dtype=torch.float32, width=width)
    return [model.to(NAME) for model in models], [
        tuple(part.to(NAME) for part in shard) for shard in shards
    ]


# ------------------------------------------------------------------------------------------------ launches
def launches_of_a_step(device, name, shape, count, backend="stacked", **recipe):
    """Of one step of `count` clients: the second of an epoch, when everything is set up."""
    models, shards = on_device(name, shape, [12] * count, 4 if "resnet" in name else None)
    steps = train_clients(
        models, shards, Recipe(epochs=1, batch_size=4, **recipe), seed=0, backend=backend
    )
    own = count if backend == "loop" else 1  # steps that make one of all clients
    for _ in range(own):
        next(steps)
    before = device.launches
    for _ in range(own):
        next(steps)
    return device.launches - before


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    ("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (3, 32, 32)), ("resnet8", (3, 16, 16))]
)
def test_a_stacked_step_launches_as_much_for_any_number_of_clients(name, shape, optimizer, device):
    few, many = (
        launches_of_a_step(device, name, shape, count, optimizer=optimizer) for count in (2, 7)
    )
    assert few == many > 0


def test_a_step_of_all_clients_is_at_most_60_launches_for_the_five_layer_cnn(device):
    assert launches_of_a_step(device, "cnn", (3, 32, 32), 20) <= 60


def test_a_loop_launches_for_every_client(device):
    """What the stack is there for; and the count would see it, if it fell back to a loop."""
    one, four = (launches_of_a_step(device, "mlp", (1, 8, 8), count, "loop") for count in (1, 4))
    assert four == 4 * one


# ------------------------------------------------------------------------------------------------ local training
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8"])
def test_no_transfer_inside_an_epoch(name, backend, optimizer, device):
    """Its order comes from the host when an epoch of the stack, or of a client, begins; nothing goes back."""
    models, shards = on_device(name, (1, 8, 8), (20, 20), 4 if name == "resnet8" else None)
    device.moved.clear()
    recipe = Recipe(epochs=2, batch_size=4, optimizer=optimizer)
    at = [device.to_device for _ in train_clients(models, shards, recipe, seed=0, backend=backend)]
    assert device.to_host == 0
    if backend == "stacked":  # the weights of the batches, once, and an order an epoch
        assert at == [2] * 5 + [3] * 5
    else:
        assert at == [order for order in (1, 2) for _ in range(5)] + [2] + [
            o for o in (3, 4) for _ in range(5)
        ] + [4]


# ------------------------------------------------------------------------------------------------ methods
def moved(method, **settings):
    """The transfers of a whole run, by kind, and its launches."""
    with EmulatedDevice() as device:
        run(
            method,
            device=NAME,
            cache=False,
            **in_study(method) | {"model": "mlp:8", "share": 0.3} | settings,
        )
    return dict(+device.moved), device.launches


FEWER_MORE = {
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
    "FedLPA's gradient step": (
        "fedlpa",
        "iterations",
        5,
        7,
    ),  # at powers of two it looks whether it diverges
}


CASES = [
    (step, way)
    for step in FEWER_MORE
    for way in (("loop", "stacked") if "local" in step else ("stacked",))
]


@pytest.mark.parametrize(("step", "backend"), CASES)
def test_more_steps_are_no_more_transfers(step, backend, device):
    method, knob, few, many = FEWER_MORE[step]
    special = {"fedlpa.solver": "gd", "dense.batch": 8, "distilled.images": "kip"}
    more = {name: value for name, value in special.items() if name.startswith(f"{method}.")}
    name = knob if knob == "batch_size" else f"{method}.{knob}"
    assert name == knob or knob in {field.name for field in METHODS[method].fields()}
    one, other = (moved(method, backend=backend, **more | {name: value}) for value in (few, many))
    assert one[0] == other[0] and one[1] < other[1]


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("aggregator", TRAINED)
def test_no_transfer_in_a_round_of_phase_2(aggregator, steps, device):
    """Of FENS, with the shortcut for K = 1 and without."""
    stream = torch.Generator().manual_seed(0)
    sets = [
        (torch.randn(n, 3, 4, generator=stream), torch.arange(n) % 4, torch.rand(n, 1, 8, 8))
        for n in (9, 30)
    ]
    proxies = {i: ProxySamples(*(part.to(NAME) for part in parts)) for i, parts in enumerate(sets)}
    fens = METHODS["fens"](aggregator=aggregator, rounds=4, local_steps=steps, batch=8)
    rule = fens.make_aggregator(3, 4, (1, 8, 8), torch.Generator().manual_seed(1)).to(NAME)
    rounds = fens.train_aggregator_in_place(
        rule, proxies, lambda i: torch.Generator().manual_seed(i)
    )
    at = [(next(rounds), device.transfers)[1] for _ in range(4)]
    assert at == at[:1] * 4 and device.to_host == 0


def system(where):
    """A layer of three clients that conjugate gradients do not solve in a few steps."""
    stream = torch.Generator().manual_seed(0)
    roots = [
        [torch.randn(12, 12, generator=stream, dtype=torch.float64) for _ in "ab"] for _ in range(3)
    ]
    factors = [
        KroneckerFactors(*((root @ root.T / 12 + 1e-4 * torch.eye(12)).to(where) for root in pair))
        for pair in roots
    ]
    layers = [
        torch.randn(12, 12, generator=stream, dtype=torch.float64).to(where) for _ in range(3)
    ]
    made = LayerPosterior.stack(layers, factors, [1 / 3] * 3)
    return made, made.solve_with_averaged_factors()


@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_conjugate_gradients_look_at_the_host_once_in_a_few_steps(tolerance, device):
    here = list(run_conjugate_gradients(*system("cpu"), tolerance=tolerance, iteration_limit=30))
    problem = system(NAME)
    device.moved.clear()
    there = list(run_conjugate_gradients(*problem, tolerance=tolerance, iteration_limit=30))
    assert len(there) == len(here) > GPU_STEPS  # the steps too many are thrown away
    assert device.transfers == -(-len(here) // GPU_STEPS)
    for one, other in zip(there, here, strict=True):
        assert torch.equal(one.residual, other.residual) and torch.equal(
            one.matrix.cpu(), other.matrix
        )


def test_no_transfer_in_a_step_of_gradient_descent(device):
    problem = system(NAME)
    device.moved.clear()
    assert len(list(run_gradient_descent(*problem, iterations=20))) == 21
    assert device.transfers == 0
