"""`heart`: its four hospitals as clients, a hospital left out, accuracies of each hospital, and every method on it."""

import csv
from collections import Counter

import numpy as np
import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.data import describe, load, tables
from fedlab_nb.data.natural import HEART, HOSPITALS, LEFT_OUT
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.settings import Settings

SIZES = (303, 294, 200, 123)
ILL = (0.46, 0.36, 0.745, 0.935)  # shares of ill patients, in the order of HOSPITALS
CHEAP = {
    "rounds": 2,
    "iterations": 3,
    "epochs": 1,
    "steps": 5,
    "samples": 20,
    "distil_steps": 5,
    "one_shot_steps": 5,
}


def test_the_hospitals_are_the_clients_with_their_own_share_of_disease():
    data = load("heart")
    fed = fl.federate("heart")
    assert (data.input_shape, data.class_names, data.client_names) == (
        (25,),
        ("no", "yes"),
        HOSPITALS,
    )
    assert describe("heart") == data.describe()
    assert (len(data.y_train), len(data.y_test)) == (
        740,
        180,
    )
    assert fed.partition == "natural"
    assert fed.note.endswith("Cleveland, Hungary, Long Beach, Switzerland.")
    for k, (size, ill) in enumerate(zip(SIZES, ILL, strict=True)):
        healthy, sick = fed.label_counts[k].tolist()
        # The test set has a fifth of each class, rounded down.
        assert round(size * 4 / 5) <= healthy + sick <= round(size * 4 / 5) + 2
        assert sick / (healthy + sick) == pytest.approx(ill, abs=0.01)


def test_a_hospitals_accuracy_is_that_of_its_own_test_patients():
    out = fl.run("fedavg", dataset="heart", epochs=1)
    data = load("heart")
    right = out.predict(data.x_test) == data.y_test.numpy()
    accuracies = [float(right[data.client_test.numpy() == k].mean()) for k in range(4)]
    assert out.per_client == pytest.approx(accuracies, abs=1e-12)
    assert out.worst_client == min(out.per_client)
    assert torch.bincount(data.client_test).tolist() == [59, 58, 39, 24]
    assert load("heart:hungary").client_test is None
    on_iid_clients = fl.run("fedavg", dataset="heart", epochs=1, partition="iid", clients=2)
    shares = on_iid_clients.label_counts / on_iid_clients.label_counts.sum(1, keepdims=True)
    assert on_iid_clients.per_client == pytest.approx((shares @ on_iid_clients.per_class).tolist())


@pytest.mark.parametrize(
    ("name", "hospital"),
    [(name, client) for name, client in LEFT_OUT.items() if client in HOSPITALS],
)
def test_a_hospital_left_out_is_the_test_set(name, hospital):
    data = load(name)
    k = HOSPITALS.index(hospital)
    assert len(data.y_test) == SIZES[k]
    assert len(data.y_train) == 920 - SIZES[k]
    assert data.y_test.double().mean() == pytest.approx(ILL[k], abs=0.003)
    assert data.client_names == tuple(
        name_of_client for name_of_client in HOSPITALS if name_of_client != hospital
    )
    assert torch.bincount(data.client_train).tolist() == [n for i, n in enumerate(SIZES) if i != k]


# Slow because it runs every method.
@pytest.mark.slow
def test_every_method_but_fadi_runs_on_the_hospitals():
    knobs = {}
    for method, knobs_of_method in METHODS.items():
        for knob in knobs_of_method.fields():
            if knob.name in CHEAP:
                knobs[f"{method}.{knob.name}"] = CHEAP[knob.name]
    outcomes = {}
    errors = {}
    for event in fl.job("all", dataset="heart", public=0.1, epochs=1, **knobs):
        if event.outcome is not None:
            outcomes[event.method] = event.outcome
        if event.error is not None:
            errors[event.method] = event.error
    assert set(outcomes) == set(METHODS) - {"fadi"}
    assert isinstance(errors["fadi"], fl.UsageError)
    assert all(
        outcome.settings.clients == len(outcome.label_counts) == 4 for outcome in outcomes.values()
    )


def test_missing_values_alone_reveal_the_hospital_and_with_it_the_disease():
    """A guess from the missing values: the most frequent answer among training patients who lack the same values."""
    rows = list(csv.DictReader(HEART.open(encoding="utf-8")))
    findings = list(rows[0])[1:-1]
    gaps = [tuple(name for name in findings if not row[name]) for row in rows]
    hospital = np.array([HOSPITALS.index(row["hospital"]) for row in rows])
    ill = np.array([row["disease"] == "yes" for row in rows]).astype(int)
    test = tables.draw_fifth_of_rows_for_test(4 * ill + hospital, hospital)

    def guess_from_gaps(truth):
        """Accuracies on the test patients: of a guess from the gaps, and of the most frequent answer."""
        most_frequent = Counter(truth[~test]).most_common(1)[0][0]
        answers = {}
        for gap in set(gaps):
            same_gap = [i for i in np.flatnonzero(~test) if gaps[i] == gap]
            answers[gap] = most_frequent
            if same_gap:
                answers[gap] = Counter(truth[same_gap]).most_common(1)[0][0]
        guesses = np.array([answers[gap] for gap in gaps])
        return (guesses == truth)[test].mean(), (truth[test] == most_frequent).mean()

    by_gaps, by_frequency = guess_from_gaps(hospital)
    assert by_gaps > 0.8  # about four of five
    assert by_frequency < 0.35
    by_gaps, by_frequency = guess_from_gaps(ill)
    assert by_gaps > 0.66  # about two of three
    assert by_frequency < 0.56


def test_alpha_is_refused_unless_the_patients_are_partitioned():
    with pytest.raises(
        fl.UsageError,
        match="alpha cannot be set, because data set 'heart' has 4 clients of its own",
    ):
        Settings.make(dataset="heart", alpha=1)
    assert fl.federate("heart", partition="dirichlet", alpha=1, clients=7).clients == 7


def test_an_unseen_hospital_has_no_client_accuracy():
    out = fl.run("fedavg", dataset="heart", epochs=1, unseen="Hungary")
    data = load("heart")
    right = out.predict(data.x_test) == data.y_test.numpy()
    accuracies = [float(right[data.client_test.numpy() == k].mean()) for k in (0, 2, 3)]
    assert out.per_client == pytest.approx(accuracies, abs=1e-12)
