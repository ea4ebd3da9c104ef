"""Poisoned clients: what each kind does to labels and models, who they are, store keys, and runs without any."""

import method_runs
import numpy as np
import pytest
import torch

from fedlab_nb import run
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.poison import Poison
from fedlab_nb.models import model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans

from .test_all_methods import cheap, in_study

MODELS = [name for name, cls in METHODS.items() if cls.sends_models]


def context(poison="none", model="mlp", **options):
    width = 4 if model == "resnet8" else None
    return method_runs.context(
        share=0.3, clients=4, poison=poison, model=model, width=width, **options
    )


# ------------------------------------------------------------------------------------------------ the setting
def test_forms():
    for text, form in (
        ("none", "none"),
        ("labels:0", "none"),
        (" sign : 2 ", "sign:2"),
        ("scaled:1", "scaled:1:10"),
    ):
        assert str(Poison.parse(text, 5)) == form and Poison.parse(form, 5) == Poison.parse(text, 5)
    assert Poison.parse("scaled:2:-3.5", 5) == Poison("scaled", 2, -3.5)
    for wrong in (
        "labels",
        "flip:2",
        "labels:6",
        "labels:-1",
        "labels:1:2",
        "scaled:1:x",
        "labels:1.5",
        "",
    ):
        with pytest.raises(UsageError) as error:
            Poison.parse(wrong, 5)
        assert ". " not in str(error.value).removesuffix(".") and "poison" in str(error.value)


def test_fewer_poisoned_clients_are_among_more():
    for seed in range(5):
        chosen = [
            set(Poison("labels", count).choose_poisoned_clients(10, seed)) for count in range(11)
        ]
        assert [len(one) for one in chosen] == list(range(11))
        assert all(one < other for one, other in zip(chosen, chosen[1:], strict=False))
    assert len({Poison("labels", 3).choose_poisoned_clients(10, seed) for seed in range(8)}) > 3


# ------------------------------------------------------------------------------------------------ what they do
def test_flipped_labels_are_those_of_poisoned_clients_alone():
    clean, ctx = context(), context("labels:2")
    assert len(ctx.poisoned) == 2
    for k in range(4):
        for part in ("train", "held_out", "everything"):
            (x, y), (was, true) = getattr(ctx.private, part)(k), getattr(clean.private, part)(k)
            assert torch.equal(x, was) and torch.equal(y, 9 - true if k in ctx.poisoned else true)
    y = torch.arange(6)
    assert Poison("labels", 1).flip_labels_of_shards(y, [torch.tensor([0, 5])], 10).tolist() == [
        9,
        1,
        2,
        3,
        4,
        4,
    ]
    assert Poison("sign", 1).flip_labels_of_shards(y, [y], 10) is y and y.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("poison", "factor"), [("sign:2", -1), ("scaled:2", 10), ("scaled:2:0.5", 0.5)]
)
def test_a_models_change_is_turned_or_scaled_and_the_honest_one_is_remembered(poison, factor):
    honest, remembered = [], []
    exhaust_generator(context(remembered=honest).local_training())
    ctx = context(poison, remembered=remembered)
    first = exhaust_generator(ctx.local_training())
    again = exhaust_generator(
        context(poison, remembered=remembered).local_training()
    )  # from what is remembered
    start = model_state(ctx.initial_model())
    for k in range(4):
        expected = honest[0][k]
        if k in ctx.poisoned:
            expected = {n: start[n] + factor * (expected[n] - start[n]) for n in expected}
        for name, value in first.state(k).items():
            torch.testing.assert_close(value, expected[name])
            assert torch.equal(value, again.state(k)[name]) and torch.equal(
                remembered[0][k][name], honest[0][k][name]
            )


def test_batch_norms_statistics_are_left():
    ctx = context("sign:4", model="resnet8")
    honest = []
    exhaust_generator(context(model="resnet8", remembered=honest).local_training())
    for k, state in enumerate(exhaust_generator(ctx.local_training()).states()):
        for name in state:
            if "running" in name:
                assert torch.equal(state[name], honest[0][k][name])


def test_in_rounds_the_change_is_of_each_round():
    """One round, all clients turned: θ_0 - (θ̄ - θ_0)."""
    method = METHODS["fedavg_multi"](rounds=1, local_epochs=2)
    honest, turned = (
        exhaust_generator(method.run(context(poison))) for poison in ("none", "sign:4")
    )
    start = model_state(context().initial_model())
    for name, value in model_state(turned.module).items():
        torch.testing.assert_close(
            value, 2 * start[name] - model_state(honest.module)[name], rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_with_poisoned_clients_or_says_why_not(name):
    poison = (
        "sign:4" if name == "fedkt" else "scaled:1:3"
    )  # votes do not change with the size of the logits
    ctx, method = context(poison), cheap(name)
    if name in MODELS:
        method.check_poison(ctx)
        changed, same = exhaust_generator(method.run(ctx)), exhaust_generator(method.run(context()))
        x = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
        assert not torch.equal(changed.logits(x), same.logits(x))
    else:
        with pytest.raises(UsageError, match="poison to labels:1"):
            method.check_poison(ctx)
        method.check_poison(context("labels:1"))


# ------------------------------------------------------------------------------------------------ settings and store
def keys(poison, method="fedavg"):
    (plan,) = make_plans(Settings.make(clients=4, poison=poison, device="cpu"), [method])
    return plan.hash_settings_of_local_training(), plan.hash_settings_of_run()


def test_a_poisoned_client_is_never_remembered_as_a_clean_one():
    assert keys("none") == keys("labels:0")
    each = [keys(p) for p in ("none", "labels:1", "labels:2", "sign:1", "scaled:1", "scaled:1:5")]
    assert len({clients for clients, _ in each}) == len({runs for _, runs in each}) == 6
    assert keys("scaled:1") == keys("scaled:1:10")


def test_a_run_with_none_poisoned_is_the_run_without_the_setting_and_others_are_not():
    settings = in_study("fedavg")
    plain = run("fedavg", **settings)
    none = run("fedavg", poison="labels:0", cache=False, **settings)
    assert none.accuracy == plain.accuracy and np.array_equal(
        none.test_features, plain.test_features
    )
    harmed = run("fedavg", poison="labels:2", **settings)
    assert not harmed.cached and not np.array_equal(harmed.test_features, plain.test_features)
    assert run("fedavg", **settings).accuracy == plain.accuracy
    assert harmed.settings.poison == "labels:2"


def test_robust_averages_in_a_run():
    """Honest clients that are all alike: whatever one poisoned client sends, the median leaves it out."""
    remembered = []
    clients = exhaust_generator(context("scaled:1:1000", remembered=remembered).local_training())
    model = exhaust_generator(
        METHODS["fedavg"](average="median").run(context("scaled:1:1000", remembered=remembered))
    )
    stack = np.stack([state["classifier.weight"].numpy() for state in clients.states()])
    np.testing.assert_allclose(
        model_state(model.module)["classifier.weight"], np.median(stack, 0), rtol=1e-5
    )
    rounds = METHODS["fedavg_multi"](rounds=1, local_epochs=2, average="trimmed", assumed=1)
    one = METHODS["fedavg"](average="trimmed", assumed=1)
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        exhaust_generator(rounds.run(context("sign:1"))).logits(x),
        exhaust_generator(one.run(context("sign:1"))).logits(x),
    )
