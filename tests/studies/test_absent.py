"""Clients that do not upload, that upload late, and that take no part: against federations without them, and bytes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import make_fast_study_settings

import fedlab_nb as fl
from fedlab_nb.data import format_client_list_as_setting, parse_client_indices
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.afl import RidgeSums, solve_classifier_weights
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.models import copy_model_state
from fedlab_nb.plots import draw_partition
from fedlab_nb.plots.partition import count_samples_of_all_clients, make_partition_table
from fedlab_nb.studies.outcome import Outcome
from fedlab_nb.studies.results import Results
from fedlab_nb.studies.settings import Settings, make_plans

SETTING = {"clients": 4, "share": 0.3, "alpha": 0.5, "epochs": 2, "model": "mlp", "device": "cpu"}
FEDERATION = fl.federate("digits", clients=4, alpha=0.5, share=0.3)


def federate_without(*left_out):
    """A federation of the same shards without those of some clients."""
    return fl.federate(
        "digits", indices=[shard for k, shard in enumerate(FEDERATION.shards) if k not in left_out]
    )


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_every_form_of_a_list_of_clients_is_read(data):
    count = data.draw(st.integers(1, 26))
    clients = data.draw(st.sets(st.integers(0, count - 1)))
    names = [f"ward {k}" for k in range(count)]
    letters = ",".join(chr(ord("A") + k) for k in clients) + ","
    for form in (
        clients,
        format_client_list_as_setting(clients),
        letters,
        [names[k] for k in clients],
    ):
        assert parse_client_indices("absent", form, count, names) == tuple(sorted(clients))
    # A number means that many clients, the last ones.
    number = data.draw(st.integers(0, count))
    last_clients = tuple(range(count))[count - number :]
    assert parse_client_indices("absent", number, count) == last_clients
    assert parse_client_indices("absent", str(number), count) == last_clients


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
def test_wrong_clients_are_refused(wrong):
    with pytest.raises(UsageError):
        Settings.make(**SETTING, **wrong)


def test_absent_clients_have_one_form_in_settings_and_none_changes_no_key():
    def make_plan(**options):
        (plan,) = make_plans(Settings.make(**SETTING, **options), ["afl"])
        return plan

    plain = make_plan()
    assert make_plan(absent=0, unseen=()).settings == plain.settings
    assert "absent" not in plain.settings.list_nondefault_federation_options()
    by_number = make_plan(absent=1)
    by_letter = make_plan(absent="D")
    assert by_number.settings.absent == "3,"
    assert by_number.settings.participating_clients == (0, 1, 2)
    assert by_number.hash_settings_of_run() == by_letter.hash_settings_of_run()
    assert by_number.hash_settings_of_run() != plain.hash_settings_of_run()
    assert Settings.make(**by_number.settings.to_keywords()) == by_number.settings


def test_remaining_clients_keep_their_samples_held_out_parts_and_numbers():
    fed = fl.federate("digits", clients=4, alpha=0.5, share=0.3, absent="1,", unseen="D")
    assert fed.ids == (0, 2)
    assert fed.absent == (1,)
    assert fed.unseen == (3,)
    for i, k in enumerate(fed.ids):
        assert torch.equal(fed.shards[i], FEDERATION.shards[k])
        assert all(map(torch.equal, fed.split(0.2)[i], FEDERATION.split(0.2)[k]))
    assert fl.run("afl", federation=fed, holdout=0.2).settings.participating_clients == (0, 2)


@pytest.mark.parametrize("method", ["afl", "gauss"])
@pytest.mark.parametrize("setting", ["absent", "unseen"])
def test_sums_equal_those_of_a_federation_without_the_clients(method, setting):
    with_holdout = fl.run(method, **SETTING, **{setting: "1,2"})
    without_clients = fl.run(method, federation=federate_without(1, 2), device="cpu", holdout=0)
    without_holdout = fl.run(method, **SETTING, **{setting: "1,2"}, holdout=0)
    x = torch.rand(50, 1, 8, 8)
    assert torch.allclose(
        without_holdout.model.logits(x).double(),
        without_clients.model.logits(x).double(),
        rtol=1e-9,
        atol=1e-9,
    )
    assert with_holdout.accuracy > 0.5
    assert len(with_holdout.label_counts) == len(with_holdout.per_client) == 2


def test_fedavg_without_a_client_is_the_mean_of_the_other_models():
    others = [0, 2, 3]
    all_clients = fl.run("ensemble", **SETTING, cache=False).model.clients
    without_b = fl.run("fedavg", **SETTING, absent="1,", cache=False)
    sizes = [len(train) for train, _ in FEDERATION.split(0.1)]
    mean = weighted_mean([all_clients.state(k) for k in others], [sizes[k] for k in others])
    for name, tensor in copy_model_state(without_b.model.module).items():
        torch.testing.assert_close(tensor, mean[name], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_without_them_and_they_send_nothing(name):
    short = {"epochs": 1, "share": 0.15, "cache": False}
    out = fl.run(name, **make_fast_study_settings(name) | SETTING | short, absent="1,", unseen="2,")
    assert len(out.ledger.by_client()) == 3  # two that take part, then the absent one
    up, down = out.ledger.by_client()[2]
    initial = [row["bytes"] for row in out.ledger.rows() if row["phase"] == "initial model"]
    assert up == 0
    assert down == max(initial, default=0)
    assert set(out.unseen) == {"2"}
    assert 0 <= out.accuracy_unseen <= 1
    assert out.label_counts.shape == (2, 10)


def test_samples_of_an_unseen_client_are_a_further_test_set():
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


def test_a_study_has_columns_for_absent_and_unseen_clients():
    rows = fl.study("afl", clients=3, absent=[0, 1], unseen="0,", seeds=1)
    assert isinstance(rows, Results) and [row["absent"] for row in rows] == [0, 1]
    assert all(0 <= row["accuracy_unseen"] <= 1 for row in rows)


# --------------------------------------------------------------------------------------------------------- late clients
def test_afl_adds_a_late_clients_sums_to_its_total():
    missing = fl.run("afl", **SETTING, absent=1).report
    complete = fl.run("afl", **SETTING).report
    total = sum((missing.get_client_sums(k) for k in range(1, 3)), missing.get_client_sums(0))
    weights = missing.solve_server_classifier_weights(total + complete.get_client_sums(3), 4)
    np.testing.assert_allclose(weights, complete.weights, rtol=1e-9, atol=1e-9)
    x, y = FEDERATION.dataset.x_train, FEDERATION.dataset.y_train
    rows = FEDERATION.split(0.1)[3][0]
    late_sums = RidgeSums.measure(x[rows].flatten(1), y[rows], 10)
    weights_from_samples = solve_classifier_weights(
        total + late_sums.copy_with_added_ridge(complete.gamma), 4, complete.gamma, complete.rho
    ).numpy()
    # The sums of the run were sent as float32.
    np.testing.assert_allclose(weights_from_samples, complete.weights, rtol=1e-3, atol=1e-4)


# Methods where only the late client sends, and methods where all send again.
ALONE = {"afl", "gauss", "fedpft", "fedavg", "ensemble", "regmean", "ties", "distilled", "local"}
ALL_AGAIN = {"fens", "fusefl", "fedavg_multi", "scaffold", "dsfl"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ALONE | ALL_AGAIN))
def test_late_tells_whether_the_other_clients_send_again(name):
    late = fl.late(
        name, "B", **make_fast_study_settings(name) | SETTING | {"epochs": 1, "share": 0.15}
    )
    bytes_of_late_client = sum(late.after.ledger.by_client()[1])
    assert late.alone == (name in ALONE)
    if late.alone:
        assert late.bytes == bytes_of_late_client
    else:
        assert late.bytes > bytes_of_late_client
    assert len(late.before.label_counts) == 3
    assert late.after.settings.absent == ""


# ----------------------------------------------------------------------------------------- the picture of the partition
def test_the_picture_and_its_table_show_all_clients():
    fed = fl.federate("digits", clients=4, alpha=0.5, share=0.3, absent="0,", unseen="2,")
    counts, notes = count_samples_of_all_clients(fed)
    assert notes == ["absent", "unseen"]
    assert np.array_equal(counts, FEDERATION.label_counts.numpy()[[1, 3, 0, 2]])
    rows = make_partition_table(fed, "")
    assert [row["client"] for row in rows] == ["A", "B", "C, absent", "D, unseen"]
    assert draw_partition(fed, setting="four clients").table == rows


def test_a_panel_and_its_code_have_absent_and_unseen_clients():
    panel = fl.lab("afl", absent="0,", unseen=1, clients=4)
    federation = panel.state("partition").federation
    assert (federation.absent, federation.unseen) == ((0,), (3,))
    assert "absent='0,'" in panel.code().replace('"', "'") and "unseen=1" in panel.code()
