"""On a CUDA device: the stack against the loop, and every method. `pytest -m gpu`; skipped where there is none."""

import copy
from dataclasses import replace

import pytest
import torch

from fedlab_nb import load_model
from fedlab_nb.course.averaging.lesson import show_soft_labels_of_one_image
from fedlab_nb.course.matching.lesson import compute_accuracy_percent_averaged_with_permuted_copy
from fedlab_nb.methods import METHODS
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies import compare, run
from fedlab_nb.studies.cost import estimate_cost
from fedlab_nb.training import (
    Recipe,
    iterate_training_of_clients_in_place,
    local,
    stacked,
    train_clients_in_place,
)
from fedlab_nb.training.backend import use_torch_settings_for_run
from fedlab_nb.training.loop import iterate_training_of_clients_in_turn
from fedlab_nb.training.stacked import train_client_stack_in_place
from fedlab_nb.training.streams import iterate_training_of_clients_on_cuda_streams
from tests.training.test_backends import (
    STACKED,
    compute_largest_difference_of_networks,
    make_clients,
    measure_gap_of_backends,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="there is no CUDA device on this machine"
    ),
]
QUICK = {"clients": 4, "epochs": 2, "alpha": 0.5, "cache": False}
MOMENTUM = Recipe(epochs=2, batch_size=16, lr=0.05, momentum=0.9, weight_decay=1e-3)
ADAM = Recipe(epochs=2, batch_size=16, lr=1e-3, optimizer="adam")


@pytest.fixture(autouse=True)
def without_tf32():
    """Full float32 precision in matrix products and convolutions."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def copy_to_card(models, shards):
    return [model.cuda() for model in models], [
        tuple(part.cuda() for part in shard) for shard in shards
    ]


@pytest.mark.parametrize("recipe", [MOMENTUM, ADAM], ids=["sgd", "adam"])
@pytest.mark.parametrize("name", STACKED)
def test_stacked_equals_loop_in_float64(name, recipe):
    clients = make_clients(name, (1, 8, 8), sizes=(1, 9, 40, 17), width=12 if name == "mlp" else 4)
    assert measure_gap_of_backends(*copy_to_card(*clients), recipe) < 1e-9


@pytest.mark.parametrize("recipe", [MOMENTUM, ADAM], ids=["sgd", "adam"])
@pytest.mark.parametrize(
    ("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (3, 32, 32)), ("resnet8", (3, 32, 32))]
)
def test_stacked_is_near_loop_in_float32_after_ten_steps(name, shape, recipe):
    """Within 1e-5 or, where float32 is less exact after ten steps, within twice the loop's distance from float64."""
    sizes = {
        "sizes": (80, 80, 19),
        "dtype": torch.float32,
        "width": 4 if name == "resnet8" else None,
    }
    models, shards = copy_to_card(*make_clients(name, shape, **sizes))
    exact = [copy.deepcopy(model).double() for model in models]
    gap = measure_gap_of_backends(models, shards, recipe)
    train_clients_in_place(
        exact, [(x.double(), y) for x, y in shards], recipe, seed=3, backend="loop"
    )
    assert gap < max(
        1e-5, 2 * compute_largest_difference_of_networks(models, [model.float() for model in exact])
    )


def test_cuda_and_cpu_agree():
    models, shards = make_clients("cnn", (1, 8, 8))
    twins, same = copy_to_card(copy.deepcopy(models), shards)
    for group, data in ((models, shards), (twins, same)):
        train_clients_in_place(group, data, MOMENTUM, seed=0)
    assert compute_largest_difference_of_networks(models, [twin.cpu() for twin in twins]) < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_digits_twice(method):
    """And sends the same bytes as on a CPU."""
    card = run(method, device="cuda", model="mlp", **QUICK)
    second_run = run(method, device="cuda", model="mlp", **QUICK)
    processor = run(method, device="cpu", model="mlp", **QUICK)
    assert card.settings.device == "cuda"
    assert card.accuracy == second_run.accuracy
    assert (card.test_predictions == second_run.test_predictions).all()
    assert card.ledger == processor.ledger
    assert card.parameters == processor.parameters


@pytest.mark.parametrize("method", ["ensemble", "fedlpa", "fusefl", "fedet", "dense", "coboosting"])
def test_convolutions_give_the_same_digits_twice(method):
    first, second = (run(method, device="cuda", model="cnn", **QUICK) for _ in range(2))
    assert (
        first.accuracy == second.accuracy
        and (first.test_predictions == second.test_predictions).all()
    )


def test_a_model_from_the_card_predicts_the_same_on_a_processor(tmp_path):
    out = run("fens", device="cuda", **QUICK)
    x = out.settings.load_dataset().x_test
    assert (
        load_model(out.save(tmp_path / "model.safetensors")).predict(x) == out.predict(x)
    ).mean() > 0.99


def test_the_duration_of_a_run_is_estimated_beforehand():
    """Short runs are estimated as short, though the first call sets up the card."""
    for model in ("mlp", "cnn", "resnet8"):
        setting = {**QUICK, "model": model, "device": "cuda", "cache": True, "seed": 77}
        assert estimate_cost((["fedavg", "fens"], setting)).seconds < 20


def test_numbers_of_lessons_are_computed_on_the_card():
    assert (
        show_soft_labels_of_one_image() is not None
        and 0 <= compute_accuracy_percent_averaged_with_permuted_copy() <= 100
    )


def test_seeds_trained_together_equal_seeds_trained_alone():
    together = compare(["ensemble"], seeds=3, device="cuda", **QUICK)
    for outcome in together:
        alone = run("ensemble", seed=outcome.settings.seed, device="cuda", **QUICK)
        assert abs(alone.test_features - outcome.test_features).max() < 1e-4


def train_on_card(name, width, recipe, train=None):
    """Five clients of different sizes after training by `recipe` in float32 on the card, by `train` or by auto."""
    sizes = {"sizes": (80, 64, 33, 17, 80), "dtype": torch.float32, "width": width}
    models, shards = copy_to_card(*make_clients(name, (3, 32, 32), **sizes))
    with use_torch_settings_for_run("cuda", (3, 32, 32)):
        if train is None:
            train_clients_in_place(models, shards, recipe, seed=3)
        else:
            streams = [make_torch_generator(3, "batches", k) for k in range(len(models))]
            crop_streams = [
                make_torch_generator(3, "batches", "augmentation", k) for k in range(len(models))
            ]
            augmentation_streams = crop_streams if recipe.augmentation != "none" else ()
            for _ in train(
                models, shards, recipe, streams, augmentation_streams=augmentation_streams
            ):
                pass
    return models


RECORDED = {
    "sgd": Recipe(epochs=3, batch_size=16, lr=0.02, clip_norm=10),
    "adam": Recipe(epochs=3, batch_size=16, lr=1e-3, optimizer="adam", schedule="cosine"),
    "augmented": Recipe(epochs=3, batch_size=16, lr=0.02, augmentation="crop+flip"),
}


@pytest.mark.parametrize("recipe", RECORDED.values(), ids=RECORDED.keys())
@pytest.mark.parametrize(("name", "width"), [("cnn", None), ("resnet8", 8), ("cnn3", None)])
def test_recorded_gradients_on_streams_equal_the_loop_bit_for_bit(name, width, recipe):
    by_loop = train_on_card(name, width, recipe, iterate_training_of_clients_in_turn)
    on_streams = train_on_card(name, width, recipe, iterate_training_of_clients_on_cuda_streams)
    assert compute_largest_difference_of_networks(by_loop, on_streams) == 0


@pytest.mark.parametrize("recipe", RECORDED.values(), ids=RECORDED.keys())
@pytest.mark.parametrize(("name", "width"), [("mlp", None), ("cnn", None), ("resnet8", 8)])
def test_a_recorded_stack_equals_the_stack_bit_for_bit(name, width, recipe, monkeypatch):
    recorded = train_on_card(name, width, recipe, train_client_stack_in_place)
    monkeypatch.setattr(stacked, "can_record_cuda_graph", lambda device, model: False)
    plain = train_on_card(name, width, recipe, train_client_stack_in_place)
    assert compute_largest_difference_of_networks(plain, recorded) == 0


def test_auto_trains_large_convolutions_on_streams(monkeypatch):
    calls = []

    def record_call(*args, **options):
        calls.append(len(args[0]))
        return iterate_training_of_clients_on_cuda_streams(*args, **options)

    monkeypatch.setattr(local, "iterate_training_of_clients_on_cuda_streams", record_call)
    recipe = Recipe(epochs=1, batch_size=16)
    train_on_card("resnet18", 32, recipe)
    train_on_card("cnn", None, recipe)
    assert calls == [5]


def test_bf16_is_near_float32_on_the_card():
    recipe = Recipe(epochs=2, batch_size=16, lr=0.02)
    start = train_on_card("resnet18", 32, replace(recipe, epochs=0))
    float32 = train_on_card("resnet18", 32, recipe)
    bf16 = train_on_card("resnet18", 32, replace(recipe, precision="bf16"))
    second_run = train_on_card("resnet18", 32, replace(recipe, precision="bf16"))
    assert compute_largest_difference_of_networks(bf16, second_run) == 0
    assert (
        0
        < compute_largest_difference_of_networks(float32, bf16)
        < compute_largest_difference_of_networks(float32, start)
    )


def test_streams_can_be_stopped_anywhere():
    sizes = {"sizes": (80, 64, 33), "dtype": torch.float32}
    models, shards = copy_to_card(*make_clients("cnn3", (3, 32, 32), **sizes))
    training = iterate_training_of_clients_in_place(
        models, shards, Recipe(epochs=50, batch_size=16), seed=0
    )
    for _ in range(7):
        next(training)
    training.close()
    assert all(bool(p.isfinite().all()) for model in models for p in model.parameters())
