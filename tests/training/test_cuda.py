"""On a CUDA device: the stack against the loop, and every method. `pytest -m gpu`; skipped where there is none."""

import copy
from dataclasses import replace

import pytest
import torch

from fedlab_nb import load_model
from fedlab_nb.course.averaging.lesson import show_soft_labels_of_one_image
from fedlab_nb.course.matching.lesson import compute_accuracy_percent_averaged_with_permuted_copy
from fedlab_nb.methods import METHODS
from fedlab_nb.rng import generator
from fedlab_nb.studies import compare, run
from fedlab_nb.studies.cost import estimate_cost
from fedlab_nb.training import Recipe, local, stacked, train_clients, train_clients_to_end
from fedlab_nb.training.backend import configure_torch
from fedlab_nb.training.loop import train_each_client_in_turn_every_epoch
from fedlab_nb.training.stacked import train_clients_stacked
from fedlab_nb.training.streams import train_clients_on_cuda_streams
from tests.training.test_backends import (
    STACKED,
    largest_difference,
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
def exact():
    """Float32 as it is written: no TF32 in products and convolutions."""
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
    few = make_clients(name, (1, 8, 8), sizes=(1, 9, 40, 17), width=12 if name == "mlp" else 4)
    assert measure_gap_of_backends(*copy_to_card(*few), recipe) < 1e-9


@pytest.mark.parametrize("recipe", [MOMENTUM, ADAM], ids=["sgd", "adam"])
@pytest.mark.parametrize(
    ("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (3, 32, 32)), ("resnet8", (3, 32, 32))]
)
def test_float32_ten_steps(name, shape, recipe):
    """Within 1e-5, or, where ten steps in float32 are not worth that, within the loop's own distance from float64."""
    sizes = {
        "sizes": (80, 80, 19),
        "dtype": torch.float32,
        "width": 4 if name == "resnet8" else None,
    }
    models, shards = copy_to_card(*make_clients(name, shape, **sizes))
    exact = [copy.deepcopy(model).double() for model in models]
    far = measure_gap_of_backends(models, shards, recipe)
    train_clients_to_end(
        exact, [(x.double(), y) for x, y in shards], recipe, seed=3, backend="loop"
    )
    assert far < max(1e-5, 2 * largest_difference(models, [model.float() for model in exact]))


def test_the_card_and_the_processor_agree():
    models, shards = make_clients("cnn", (1, 8, 8))
    twins, same = copy_to_card(copy.deepcopy(models), shards)
    for group, data in ((models, shards), (twins, same)):
        train_clients_to_end(group, data, MOMENTUM, seed=0)
    assert largest_difference(models, [twin.cpu() for twin in twins]) < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_digits_twice(method):
    """And sends the bytes that it sends from a processor."""
    card, again, processor = (
        run(method, device=d, model="mlp", **QUICK) for d in ("cuda", "cuda", "cpu")
    )
    assert card.settings.device == "cuda"
    assert (
        card.accuracy == again.accuracy and (card.test_predictions == again.test_predictions).all()
    )
    assert card.ledger == processor.ledger and card.parameters == processor.parameters


@pytest.mark.parametrize("method", ["ensemble", "fedlpa", "fusefl", "fedet", "dense", "coboosting"])
def test_convolutions_give_the_same_digits_twice(method):
    first, second = (run(method, device="cuda", model="cnn", **QUICK) for _ in range(2))
    assert (
        first.accuracy == second.accuracy
        and (first.test_predictions == second.test_predictions).all()
    )


def test_a_model_from_the_card_predicts_the_same_on_a_processor(tmp_path):
    out = run("fens", device="cuda", **QUICK)
    x = out.settings.data().x_test
    assert (
        load_model(out.save(tmp_path / "model.safetensors")).predict(x) == out.predict(x)
    ).mean() > 0.99


def test_what_a_run_takes_is_known_beforehand():
    """To a few seconds, though the first call sets up the card; no time would be asked about before Run."""
    for model in ("mlp", "cnn", "resnet8"):
        asked = {**QUICK, "model": model, "device": "cuda", "cache": True, "seed": 77}
        assert estimate_cost((["fedavg", "fens"], asked)).seconds < 20


def test_worked_numbers_of_lessons():
    assert (
        show_soft_labels_of_one_image() is not None
        and 0 <= compute_accuracy_percent_averaged_with_permuted_copy() <= 100
    )


def test_seeds_together_are_seeds_alone():
    together = compare(["ensemble"], seeds=3, device="cuda", **QUICK)
    for there in together:
        alone = run("ensemble", seed=there.settings.seed, device="cuda", **QUICK)
        assert abs(alone.test_features - there.test_features).max() < 1e-4


def train_on_card(name, width, recipe, change=None):
    """Five clients of unlike sizes after `recipe` in float32 on the card, by `change(models, shards)` or by auto."""
    sizes = {"sizes": (80, 64, 33, 17, 80), "dtype": torch.float32, "width": width}
    models, shards = copy_to_card(*make_clients(name, (3, 32, 32), **sizes))
    with configure_torch("cuda", (3, 32, 32)):
        if change is None:
            train_clients_to_end(models, shards, recipe, seed=3)
        else:
            streams = [generator(3, "batches", k) for k in range(len(models))]
            moves = [generator(3, "batches", "augmentation", k) for k in range(len(models))]
            drawn = moves if recipe.augmentation != "none" else ()
            for _ in change(models, shards, recipe, streams, augmentation_streams=drawn):
                pass
    return models


RECORDED = {
    "sgd": Recipe(epochs=3, batch_size=16, lr=0.02, clip_norm=10),
    "adam": Recipe(epochs=3, batch_size=16, lr=1e-3, optimizer="adam", schedule="cosine"),
    "augmented": Recipe(epochs=3, batch_size=16, lr=0.02, augmentation="crop+flip"),
}


@pytest.mark.parametrize("recipe", RECORDED.values(), ids=RECORDED.keys())
@pytest.mark.parametrize(("name", "width"), [("cnn", None), ("resnet8", 8), ("cnn3", None)])
def test_recorded_gradients_on_streams_are_the_loop_bit_for_bit(name, width, recipe):
    plain = train_on_card(name, width, recipe, train_each_client_in_turn_every_epoch)
    beside = train_on_card(name, width, recipe, train_clients_on_cuda_streams)
    assert largest_difference(plain, beside) == 0


@pytest.mark.parametrize("recipe", RECORDED.values(), ids=RECORDED.keys())
@pytest.mark.parametrize(("name", "width"), [("mlp", None), ("cnn", None), ("resnet8", 8)])
def test_a_recorded_stack_is_the_stack_bit_for_bit(name, width, recipe, monkeypatch):
    recorded = train_on_card(name, width, recipe, train_clients_stacked)
    monkeypatch.setattr(stacked, "can_record_cuda_graph", lambda device, model: False)
    plain = train_on_card(name, width, recipe, train_clients_stacked)
    assert largest_difference(plain, recorded) == 0


def test_large_convolutions_train_on_streams_by_themselves(monkeypatch):
    calls = []

    def noted(*work, **options):
        calls.append(len(work[0]))
        return train_clients_on_cuda_streams(*work, **options)

    monkeypatch.setattr(local, "train_clients_on_cuda_streams", noted)
    recipe = Recipe(epochs=1, batch_size=16)
    train_on_card("resnet18", 32, recipe)
    train_on_card("cnn", None, recipe)
    assert calls == [5]


def test_bf16_is_near_float32_on_the_card():
    recipe = Recipe(epochs=2, batch_size=16, lr=0.02)
    start = train_on_card("resnet18", 32, replace(recipe, epochs=0))
    exact = train_on_card("resnet18", 32, recipe)
    short = train_on_card("resnet18", 32, replace(recipe, precision="bf16"))
    again = train_on_card("resnet18", 32, replace(recipe, precision="bf16"))
    assert largest_difference(short, again) == 0
    assert 0 < largest_difference(exact, short) < largest_difference(exact, start)


def test_streams_can_be_stopped_anywhere():
    sizes = {"sizes": (80, 64, 33), "dtype": torch.float32}
    models, shards = copy_to_card(*make_clients("cnn3", (3, 32, 32), **sizes))
    training = train_clients(models, shards, Recipe(epochs=50, batch_size=16), seed=0)
    for _ in range(7):
        next(training)
    training.close()
    assert all(bool(p.isfinite().all()) for model in models for p in model.parameters())
