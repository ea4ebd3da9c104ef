"""On a CUDA device: the stack against the loop, and every method. `pytest -m gpu`; skipped where there is none."""

import copy

import pytest
import torch

from fedlab_nb import load_model
from fedlab_nb.course.averaging.lesson import one_image
from fedlab_nb.course.matching.lesson import with_itself
from fedlab_nb.methods import METHODS
from fedlab_nb.studies import compare, run
from fedlab_nb.studies.cost import cost_of
from fedlab_nb.training import Recipe, trained
from tests.training.test_backends import STACKED, apart, clients, largest_difference

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


def on_card(models, shards):
    return [model.cuda() for model in models], [
        tuple(part.cuda() for part in shard) for shard in shards
    ]


@pytest.mark.parametrize("recipe", [MOMENTUM, ADAM], ids=["sgd", "adam"])
@pytest.mark.parametrize("name", STACKED)
def test_stacked_equals_loop_in_float64(name, recipe):
    few = clients(name, (1, 8, 8), sizes=(1, 9, 40, 17), width=12 if name == "mlp" else 4)
    assert apart(*on_card(*few), recipe) < 1e-9


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
    models, shards = on_card(*clients(name, shape, **sizes))
    exact = [copy.deepcopy(model).double() for model in models]
    far = apart(models, shards, recipe)
    trained(exact, [(x.double(), y) for x, y in shards], recipe, seed=3, backend="loop")
    assert far < max(1e-5, 2 * largest_difference(models, [model.float() for model in exact]))


def test_the_card_and_the_processor_agree():
    models, shards = clients("cnn", (1, 8, 8))
    twins, same = on_card(copy.deepcopy(models), shards)
    for group, data in ((models, shards), (twins, same)):
        trained(group, data, MOMENTUM, seed=0)
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
        assert cost_of((["fedavg", "fens"], asked)).seconds < 20


def test_worked_numbers_of_lessons():
    assert one_image() is not None and 0 <= with_itself() <= 100


def test_seeds_together_are_seeds_alone():
    together = compare(["ensemble"], seeds=3, device="cuda", **QUICK)
    for there in together:
        alone = run("ensemble", seed=there.settings.seed, device="cuda", **QUICK)
        assert abs(alone.test_features - there.test_features).max() < 1e-4
