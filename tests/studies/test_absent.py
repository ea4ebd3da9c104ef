"""Clients that never upload, that come late, and that take no part: against federations without them, and by bytes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import in_study

import fedlab_nb as fl
from fedlab_nb.data import format_client_list, parse_client_indices
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.afl import RidgeSums, solve_classifier_weights
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.models import model_state
from fedlab_nb.plots import draw_partition
from fedlab_nb.plots.partition import count_samples_of_all_clients, make_partition_table
from fedlab_nb.studies.outcome import Outcome
from fedlab_nb.studies.results import Results
from fedlab_nb.studies.settings import Settings, make_plans

STUDY = {"clients": 4, "share": 0.3, "alpha": 0.5, "epochs": 2, "model": "mlp", "device": "cpu"}
WHOLE = fl.federate("digits", clients=4, alpha=0.5, share=0.3)


def run_without(*gone):
    """The shards of WHOLE but those of some clients, as a federation of its own."""
    return fl.federate(
        "digits", indices=[shard for k, shard in enumerate(WHOLE.shards) if k not in gone]
    )


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_forms_of_a_list_of_clients(data):
    count = data.draw(st.integers(1, 26))
    some = data.draw(st.sets(st.integers(0, count - 1)))
    wanted, names = tuple(sorted(some)), [f"ward {k}" for k in range(count)]
    letters = ",".join(chr(ord("A") + k) for k in some) + ","
    for form in (some, format_client_list(some), letters, [names[k] for k in some]):
        assert parse_client_indices("absent", form, count, names) == wanted
    many = data.draw(st.integers(0, count))
    assert (
        parse_client_indices("absent", many, count)
        == parse_client_indices("absent", str(many), count)
        == tuple(range(count))[count - many :]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"absent": 4},
        {"absent": 5},
        {"absent": "Z,"},
        {"absent": "0,", "unseen": "0,"},
        {"unseen": -1},
        {"absent": 1.5},
    ],
)
def test_wrong_clients_are_one_sentence(wrong):
    with pytest.raises(UsageError):
        Settings.make(**STUDY, **wrong)


def test_the_settings_are_in_one_form_and_leave_every_key_as_it_was():
    usual, none = (
        make_plans(Settings.make(**STUDY, **more), ["afl"])[0]
        for more in ({}, {"absent": 0, "unseen": ()})
    )
    assert (
        usual.settings == none.settings
        and "absent" not in usual.settings.list_nondefault_federation_options()
    )
    last, named = (make_plans(Settings.make(**STUDY, absent=of), ["afl"])[0] for of in (1, "D"))
    assert (
        last.settings.absent == "3,"
        and last.hash_settings_of_run()
        == named.hash_settings_of_run()
        != usual.hash_settings_of_run()
    )
    assert (
        last.settings.members == (0, 1, 2)
        and Settings.make(**last.settings.to_keywords()) == last.settings
    )


def test_who_is_left_keeps_its_samples_its_held_out_part_and_its_number():
    fed = fl.federate("digits", clients=4, alpha=0.5, share=0.3, absent="1,", unseen="D")
    assert fed.ids == (0, 2) and (fed.absent, fed.unseen) == ((1,), (3,))
    for place, k in enumerate(fed.ids):
        assert torch.equal(fed.shards[place], WHOLE.shards[k])
        assert all(map(torch.equal, fed.split(0.2)[place], WHOLE.split(0.2)[k]))
    assert fl.run("afl", federation=fed, **{"holdout": 0.2}).settings.members == (0, 2)


@pytest.mark.parametrize("method", ["afl", "gauss"])
@pytest.mark.parametrize("what", ["absent", "unseen"])
def test_a_sum_is_that_of_a_federation_without_them(method, what):
    ours = fl.run(method, **STUDY, **{what: "1,2"})
    theirs = fl.run(method, federation=run_without(1, 2), device="cpu", **{"holdout": 0})
    own = fl.run(method, **STUDY, **{what: "1,2"}, holdout=0)
    x = torch.rand(50, 1, 8, 8)
    assert torch.allclose(
        own.model.logits(x).double(), theirs.model.logits(x).double(), rtol=1e-9, atol=1e-9
    )
    assert ours.accuracy > 0.5 and len(ours.label_counts) == len(ours.per_client) == 2


def test_fedavg_without_a_client_is_the_mean_of_the_others_models():
    everybody_else = [0, 2, 3]
    whole = fl.run("ensemble", **STUDY, cache=False).model.clients
    ours = fl.run("fedavg", **STUDY, absent="1,", cache=False)
    sizes = [len(train) for train, _ in WHOLE.split(0.1)]
    mean = weighted_mean(
        [whole.state(k) for k in everybody_else], [sizes[k] for k in everybody_else]
    )
    for name, tensor in model_state(ours.model.module).items():
        torch.testing.assert_close(tensor, mean[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_goes_without_them_and_they_send_nothing(name):
    few = {"epochs": 1, "share": 0.15, "cache": False}
    out = fl.run(name, **in_study(name) | STUDY | few, absent="1,", unseen="2,")
    up, down = out.ledger.by_client()[2]  # the absent one's, after those of the two that take part
    first = [row["bytes"] for row in out.ledger.rows() if row["phase"] == "initial model"]
    assert up == 0 and down == max(first, default=0) and len(out.ledger.by_client()) == 3
    assert (
        set(out.unseen) == {"2"}
        and 0 <= out.accuracy_unseen <= 1
        and out.label_counts.shape == (2, 10)
    )


def test_an_unseen_clients_samples_are_a_test_set_and_nothing_more():
    out = fl.run("afl", dataset="heart", unseen="Cleveland", cache=False)
    fed = out.federation()
    rows = fed.whole.shards[fed.unseen[0]]
    x, y = fed.dataset.x_train[rows], fed.dataset.y_train[rows].numpy()
    assert out.unseen == {"Cleveland": pytest.approx(np.mean(out.predict(x) == y))}
    assert out.to_json()["unseen"] == out.unseen
    stored = Outcome.from_entry(*out.to_entry(), plan=out.plan, run_again=lambda: None)
    assert stored.unseen == out.unseen
    with pytest.raises(UsageError):
        Settings.make(dataset="heart", unseen="Cleveland", public=0.1)


def test_a_study_has_a_column_for_them():
    rows = fl.study("afl", clients=3, absent=[0, 1], unseen="0,", seeds=1)
    assert isinstance(rows, Results) and [row["absent"] for row in rows] == [0, 1]
    assert all(0 <= row["accuracy_unseen"] <= 1 for row in rows)


# ------------------------------------------------------------------------------------------------------------ late ones
def test_afl_takes_a_late_clients_sums_to_its_total():
    missing, everyone = fl.run("afl", **STUDY, absent=1).report, fl.run("afl", **STUDY).report
    total = sum((missing.get_client_sums(k) for k in range(1, 3)), missing.get_client_sums(0))
    weights = missing.solve_server_classifier_weights(total + everyone.get_client_sums(3), 4)
    np.testing.assert_allclose(weights, everyone.weights, rtol=1e-9, atol=1e-9)
    x, y = WHOLE.dataset.x_train, WHOLE.dataset.y_train
    rows = WHOLE.split(0.1)[3][0]
    own = RidgeSums.measure(x[rows].flatten(1), y[rows], 10)
    again = solve_classifier_weights(
        total + own.copy_with_ridge(everyone.gamma), 4, everyone.gamma, everyone.rho
    ).numpy()
    np.testing.assert_allclose(
        again, everyone.weights, rtol=1e-3, atol=1e-4
    )  # sums travel as float32


ALONE = {"afl", "gauss", "fedpft", "fedavg", "ensemble", "regmean", "ties", "distilled", "local"}
ALL_AGAIN = {"fens", "fusefl", "fedavg_multi", "scaffold", "dsfl"}


@pytest.mark.parametrize("name", sorted(ALONE | ALL_AGAIN))
def test_who_sends_again_for_a_late_client(name):
    late = fl.late(name, "B", **in_study(name) | STUDY | {"epochs": 1, "share": 0.15})
    own = sum(late.after.ledger.by_client()[1])
    assert late.alone == (name in ALONE) and (late.bytes == own if late.alone else late.bytes > own)
    assert len(late.before.label_counts) == 3 and late.after.settings.absent == ""


# ------------------------------------------------------------------------------------------------------- who holds what
def test_the_picture_and_its_table_have_everybody():
    fed = fl.federate("digits", clients=4, alpha=0.5, share=0.3, absent="0,", unseen="2,")
    counts, gone = count_samples_of_all_clients(fed)
    assert gone == ["absent", "unseen"] and np.array_equal(
        counts, WHOLE.label_counts.numpy()[[1, 3, 0, 2]]
    )
    rows = make_partition_table(fed, "")
    assert [row["client"] for row in rows] == ["A", "B", "C, absent", "D, unseen"]
    assert draw_partition(fed, setting="four clients").table == rows


def test_a_panel_deals_them_out_and_says_so_in_its_code():
    panel = fl.lab("afl", absent="0,", unseen=1, clients=4)
    federation = panel.state("partition").federation
    assert (federation.absent, federation.unseen) == ((0,), (3,))
    assert "absent='0,'" in panel.code().replace('"', "'") and "unseen=1" in panel.code()
