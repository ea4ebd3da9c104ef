"""Poisoned clients: how they are chosen, what each kind does to labels and models, store keys, robust averages."""

import method_runs
import numpy as np
import pytest
import torch

from fedlab_nb import run
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.poison import Poison
from fedlab_nb.models import copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans

from .test_all_methods import cheap, make_fast_study_settings

SENDING_MODELS = [name for name, cls in METHODS.items() if cls.sends_models]


def context(poison="none", model="mlp", **options):
    width = 4 if model == "resnet8" else None
    return method_runs.make_context(
        share=0.3, clients=4, poison=poison, model=model, width=width, **options
    )


# ------------------------------------------------------------------------------------------------ the setting
def test_a_setting_is_read_and_written_in_its_shortest_form():
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


def test_a_smaller_number_poisons_a_subset_of_the_same_clients():
    for seed in range(5):
        chosen = [
            set(Poison("labels", count).choose_poisoned_clients(10, seed)) for count in range(11)
        ]
        assert [len(clients) for clients in chosen] == list(range(11))
        assert all(fewer < more for fewer, more in zip(chosen, chosen[1:], strict=False))
    assert len({Poison("labels", 3).choose_poisoned_clients(10, seed) for seed in range(8)}) > 3


# ------------------------------------------------------------------------------------------------ what they do
def test_labels_are_flipped_at_poisoned_clients_alone():
    clean = context()
    ctx = context("labels:2")
    assert len(ctx.poisoned) == 2
    for k in range(4):
        for part in ("train", "held_out", "everything"):
            x, y = getattr(ctx.private, part)(k)
            clean_x, clean_y = getattr(clean.private, part)(k)
            expected_y = 9 - clean_y if k in ctx.poisoned else clean_y
            assert torch.equal(x, clean_x)
            assert torch.equal(y, expected_y)
    y = torch.arange(6)
    flipped = Poison("labels", 1).copy_labels_with_shards_flipped(y, [torch.tensor([0, 5])], 10)
    assert flipped.tolist() == [9, 1, 2, 3, 4, 4]
    assert Poison("sign", 1).copy_labels_with_shards_flipped(y, [y], 10) is y
    assert y.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("poison", "factor"), [("sign:2", -1), ("scaled:2", 10), ("scaled:2:0.5", 0.5)]
)
def test_a_models_change_is_reversed_or_scaled_and_the_honest_model_is_stored(poison, factor):
    honest, remembered = [], []
    exhaust_generator(context(remembered=honest).local_training())
    ctx = context(poison, remembered=remembered)
    clients = exhaust_generator(ctx.local_training())
    # The second time from the stored models.
    from_store = exhaust_generator(context(poison, remembered=remembered).local_training())
    start = copy_model_state(ctx.initial_model())
    for k in range(4):
        expected = honest[0][k]
        if k in ctx.poisoned:
            expected = {n: start[n] + factor * (expected[n] - start[n]) for n in expected}
        for name, value in clients.state(k).items():
            torch.testing.assert_close(value, expected[name])
            assert torch.equal(value, from_store.state(k)[name])
            assert torch.equal(remembered[0][k][name], honest[0][k][name])


def test_batch_norm_statistics_are_not_changed():
    ctx = context("sign:4", model="resnet8")
    honest = []
    exhaust_generator(context(model="resnet8", remembered=honest).local_training())
    for k, state in enumerate(exhaust_generator(ctx.local_training()).states()):
        for name in state:
            if "running" in name:
                assert torch.equal(state[name], honest[0][k][name])


def test_in_rounds_the_change_of_each_round_is_reversed():
    """One round in which all clients reverse their change: θ_0 - (θ̄ - θ_0)."""
    method = METHODS["fedavg_multi"](rounds=1, local_epochs=2)
    honest = exhaust_generator(method.run(context("none")))
    reversed_changes = exhaust_generator(method.run(context("sign:4")))
    start = copy_model_state(context().initial_model())
    for name, value in copy_model_state(reversed_changes.module).items():
        torch.testing.assert_close(
            value, 2 * start[name] - copy_model_state(honest.module)[name], rtol=1e-4, atol=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_method_runs_with_poisoned_models_if_clients_send_any_and_refuses_otherwise(name):
    # FedKT's votes do not depend on the scale of the logits.
    poison = "sign:4" if name == "fedkt" else "scaled:1:3"
    ctx = context(poison)
    method = cheap(name)
    if name in SENDING_MODELS:
        method.check_poison_applies_to_method(ctx)
        poisoned = exhaust_generator(method.run(ctx))
        clean = exhaust_generator(method.run(context()))
        x = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
        assert not torch.equal(poisoned.logits(x), clean.logits(x))
    else:
        with pytest.raises(UsageError, match="poison to labels:1"):
            method.check_poison_applies_to_method(ctx)
        method.check_poison_applies_to_method(context("labels:1"))


# ------------------------------------------------------------------------------------------------ settings and store
def hash_settings(poison, method="fedavg"):
    (plan,) = make_plans(Settings.make(clients=4, poison=poison, device="cpu"), [method])
    return plan.hash_settings_of_local_training(), plan.hash_settings_of_run()


def test_poisoned_and_clean_runs_have_different_store_keys():
    assert hash_settings("none") == hash_settings("labels:0")
    poisons = ("none", "labels:1", "labels:2", "sign:1", "scaled:1", "scaled:1:5")
    keys = [hash_settings(poison) for poison in poisons]
    assert len({key_of_training for key_of_training, _ in keys}) == 6
    assert len({key_of_run for _, key_of_run in keys}) == 6
    assert hash_settings("scaled:1") == hash_settings("scaled:1:10")


def test_a_run_without_poisoned_clients_equals_the_default_run_and_one_with_them_does_not():
    settings = make_fast_study_settings("fedavg")
    plain = run("fedavg", **settings)
    none = run("fedavg", poison="labels:0", cache=False, **settings)
    assert none.accuracy == plain.accuracy
    assert np.array_equal(none.test_features, plain.test_features)
    poisoned = run("fedavg", poison="labels:2", **settings)
    assert not poisoned.cached
    assert not np.array_equal(poisoned.test_features, plain.test_features)
    assert run("fedavg", **settings).accuracy == plain.accuracy
    assert poisoned.settings.poison == "labels:2"


def test_robust_averages_ignore_a_poisoned_client():
    """The median of all clients' weights, and the trimmed mean, which is the same in one round and in one shot."""
    remembered = []
    clients = exhaust_generator(context("scaled:1:1000", remembered=remembered).local_training())
    model = exhaust_generator(
        METHODS["fedavg"](average="median").run(context("scaled:1:1000", remembered=remembered))
    )
    weights = np.stack([state["classifier.weight"].numpy() for state in clients.states()])
    np.testing.assert_allclose(
        copy_model_state(model.module)["classifier.weight"], np.median(weights, 0), rtol=1e-5
    )
    one_round = METHODS["fedavg_multi"](rounds=1, local_epochs=2, average="trimmed", assumed=1)
    one_shot = METHODS["fedavg"](average="trimmed", assumed=1)
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        exhaust_generator(one_round.run(context("sign:1"))).logits(x),
        exhaust_generator(one_shot.run(context("sign:1"))).logits(x),
    )
