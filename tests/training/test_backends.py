"""The stacked backend against the plain loop: every parameter and batch-norm buffer after complete local training."""

import copy

import pytest
import torch
from differences import compute_largest_difference_of_networks

from fedlab_nb.models import MODELS, build, copy_model_state
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.training import Recipe, train_clients_in_place

# Torchvision's networks cannot be stacked.
STACKED = [name for name in MODELS if name not in ("mobilenet", "shufflenet")]
SIZES = (1, 70, 33, 32, 5, 64)


def make_clients(name, shape, sizes=SIZES, dtype=torch.float64, classes=4, width=None):
    shape = (3, 16) if MODELS[name].required_sample_kind == "recordings" else shape
    g = make_torch_generator(0, "test data", name, shape)
    shards = [
        (
            torch.rand(n, *shape, generator=g, dtype=torch.float64).to(dtype),
            torch.randint(classes, (n,), generator=g),
        )
        for n in sizes
    ]
    models = [
        build(
            name,
            shape,
            classes,
            width=width,
            generator=make_torch_generator(1, "init", k),
            dtype=dtype,
        )
        for k in range(len(sizes))
    ]
    return models, shards


def measure_gap_of_backends(models, shards, recipe):
    """The largest difference between stack and loop; `models` end as the loop trains them."""
    twins = copy.deepcopy(models)
    train_clients_in_place(models, shards, recipe, seed=3, backend="loop")
    train_clients_in_place(twins, shards, recipe, seed=3, backend="stacked")
    return compute_largest_difference_of_networks(models, twins)


RECIPES = {
    "sgd": Recipe(epochs=3, batch_size=16, lr=0.05, momentum=0.0, weight_decay=0.0),
    "momentum, decay": Recipe(epochs=3, batch_size=16, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "cosine": Recipe(epochs=4, batch_size=16, lr=0.1, schedule="cosine", lr_min=0.01),
    "adam": Recipe(epochs=3, batch_size=16, lr=1e-3, optimizer="adam", weight_decay=1e-2),
}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
@pytest.mark.parametrize(
    ("name", "shape", "width"),
    [("mlp", (1, 8, 8), None), ("mlp", (13,), None), ("cnn", (1, 8, 8), None), ("cnn", (3, 16, 16), None),
     ("lenet5", (1, 8, 8), None), ("resnet8", (3, 8, 8), 4), ("resnet18", (1, 8, 8), 4)],
)  # fmt: skip
def test_stacked_equals_loop_in_float64(name, shape, width, recipe):
    assert measure_gap_of_backends(*make_clients(name, shape, width=width), recipe) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", [*STACKED, "resnet8-nobn"])
def test_stacked_equals_loop_for_every_architecture(name, optimizer):
    """Two epochs in float64 of clients of 1 to 40 samples."""
    recipe = Recipe(
        epochs=2, batch_size=16, optimizer=optimizer, lr=1e-3 if optimizer == "adam" else 0.05
    )
    clients = make_clients(name, (1, 8, 8), sizes=(1, 9, 40, 17), width=12 if name == "mlp" else 4)
    assert measure_gap_of_backends(*clients, recipe) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes",
    [(32, 32, 32), (31, 32, 33), (1, 1, 1), (400, 2, 2, 2, 2), (1, 2, 3, 5, 8, 13, 21, 34, 55)],
)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("name", "width"), [("mlp", None), ("cnn", None), ("cnn2", 4)])
def test_stacked_equals_loop_for_every_distribution_of_sizes(name, width, optimizer, sizes):
    recipe = Recipe(
        epochs=2, batch_size=32, optimizer=optimizer, lr=1e-3 if optimizer == "adam" else 0.05
    )
    assert (
        measure_gap_of_backends(*make_clients(name, (1, 8, 8), sizes=sizes, width=width), recipe)
        < 1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8"])
def test_stacked_is_near_loop_in_float32_after_ten_steps(name, optimizer):
    models, shards = make_clients(
        name,
        (1, 8, 8),
        sizes=(160, 160, 37),
        dtype=torch.float32,
        width=4 if name == "resnet8" else None,
    )
    start = copy.deepcopy(models)
    recipe = Recipe(
        epochs=1, batch_size=16, optimizer=optimizer, lr=1e-3 if optimizer == "adam" else 0.05
    )
    assert (
        measure_gap_of_backends(models, shards, recipe)
        < 1e-5
        < compute_largest_difference_of_networks(models, start)
    )


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_the_order_of_the_clients_changes_nothing(backend):
    models, shards = make_clients("mlp", (1, 8, 8))
    reversed_models = [copy.deepcopy(m) for m in reversed(models)]
    recipe = Recipe(epochs=2, batch_size=16)
    train_clients_in_place(models, shards, recipe, seed=0, backend=backend)
    ids = list(range(len(models)))
    train_clients_in_place(
        reversed_models, shards[::-1], recipe, seed=0, backend=backend, ids=ids[::-1]
    )
    assert compute_largest_difference_of_networks(models, reversed_models[::-1]) < 1e-12


def test_channels_last_trains_the_same():
    from fedlab_nb.training.loop import iterate_training_of_clients_in_turn

    models, shards = make_clients("cnn", (3, 28, 28), sizes=(10, 7))
    twins = copy.deepcopy(models)
    recipe = Recipe(epochs=2, batch_size=4)
    for channels_last, clients in ((False, models), (True, twins)):
        streams = [make_torch_generator(0, "batches", k) for k in range(2)]
        for _ in iterate_training_of_clients_in_turn(
            clients, shards, recipe, streams, channels_last=channels_last
        ):
            pass
    assert compute_largest_difference_of_networks(models, twins) < 1e-9


def test_a_step_of_sgd_by_hand():
    """One linear classifier, two samples, one step of SGD with momentum and decay: numbers written out."""
    model = build("mlp", (8,), 2, dtype=torch.float64)
    x = torch.tensor([[1.0] * 8, [0.0] * 8], dtype=torch.float64)
    y = torch.tensor([0, 1])
    before = copy_model_state(model)
    logits = model(x)
    error = (logits.softmax(1) - torch.eye(2, dtype=torch.float64)[y]) / 2  # ∂(mean loss)/∂logits
    hidden = model.features(x)
    expected = before["classifier.weight"] - 0.5 * (
        error.T @ hidden + 0.1 * before["classifier.weight"]
    )
    for backend in ("loop", "stacked"):
        twin = copy.deepcopy(model)
        train_clients_in_place(
            [twin],
            [(x, y)],
            Recipe(epochs=1, lr=0.5, momentum=0.9, weight_decay=0.1),
            seed=0,
            backend=backend,
        )
        assert torch.allclose(copy_model_state(twin)["classifier.weight"], expected, atol=1e-12)


def test_auto_chooses_the_backend_by_a_rule():
    from fedlab_nb.training import find_fastest_backend

    mlp, cnn = build("mlp", (1, 8, 8), 10), build("cnn", (1, 28, 28), 10)
    assert find_fastest_backend("cpu", mlp, (1, 8, 8), 10) == "stacked"
    assert find_fastest_backend("cpu", mlp, (1, 8, 8), 1) == "loop"
    assert find_fastest_backend("cpu", build("mlp", (1, 28, 28), 10), (1, 28, 28), 10) == "loop"
    assert find_fastest_backend("cpu", cnn, (1, 28, 28), 10) == "loop"
    assert find_fastest_backend("cuda", cnn, (1, 28, 28), 10) == "stacked"
    large = build("resnet18", (3, 32, 32), 10)
    # One client's convolutions fill a card.
    assert find_fastest_backend("cuda", large, (3, 32, 32), 5) == "loop"
    assert find_fastest_backend("cpu", build("vgg9", (1, 8, 8), 10), (1, 8, 8), 10) == "loop"
    cnn.body.append(torch.nn.Dropout())
    # Dropout has no stacked form.
    assert find_fastest_backend("cuda", cnn, (1, 28, 28), 10) == "loop"


def test_zero_epochs_change_no_model():
    models, shards = make_clients("mlp", (1, 8, 8))
    before = copy.deepcopy(models)
    for backend in ("loop", "stacked"):
        train_clients_in_place(models, shards, Recipe(epochs=0), seed=0, backend=backend)
    assert compute_largest_difference_of_networks(models, before) == 0


def test_multiplications_of_a_sample_by_hand():
    """Each weight times the number of places where it is used, for an MLP and for ResNet-18."""
    from fedlab_nb.training.backend import count_multiply_adds_per_sample

    mlp = build("mlp", (1, 8, 8), 10, width=32)
    matrices = [p.numel() for name, p in mlp.named_parameters() if name.endswith("weight")]
    assert count_multiply_adds_per_sample(mlp, (1, 8, 8)) == sum(matrices)
    # ResNet-18 on 3x32x32: the well-known 0.56 billion multiplications.
    resnet = build("resnet18", (3, 32, 32), 10)
    stem = 3 * 64 * 9 * 32 * 32
    first_stage = 4 * (64 * 64 * 9 * 32 * 32)
    later_stages = 3 * (64 * 128 * 9 * 256 + 3 * (128 * 128 * 9 * 256) + 64 * 128 * 256)
    assert (
        count_multiply_adds_per_sample(resnet, (3, 32, 32))
        == stem + first_stage + later_stages + 512 * 10
    )
    assert resnet.training == build("resnet18", (3, 32, 32), 10).training


def test_counting_leaves_no_hooks():
    from fedlab_nb.training.backend import count_multiply_adds_by_running_one_sample

    model = build("cnn", (1, 8, 8), 10)
    count_multiply_adds_by_running_one_sample(model, (1, 8, 8))
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_bf16_is_near_float32_and_not_equal(backend):
    """Eight bits of mantissa: after ten steps the difference is below a tenth of the distance trained."""
    shape = (1, 8, 8)
    models, shards = make_clients("cnn", shape, sizes=(80, 70), dtype=torch.float32)
    start = copy.deepcopy(models)
    twins = copy.deepcopy(models)
    for group, precision in ((models, "float32"), (twins, "bf16")):
        recipe = Recipe(epochs=1, batch_size=16, precision=precision)
        train_clients_in_place(group, shards, recipe, seed=3, backend=backend)
    distance_trained = compute_largest_difference_of_networks(models, start)
    assert 0 < compute_largest_difference_of_networks(models, twins) < 0.1 * distance_trained
    assert all(p.dtype == torch.float32 for twin in twins for p in twin.parameters())
