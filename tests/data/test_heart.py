"""`heart`: its four hospitals as clients, how many patients are ill, a hospital left out, and every method on it."""

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

SIZES, ILL = (303, 294, 200, 123), (0.46, 0.36, 0.745, 0.935)  # of HOSPITALS
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
    data, fed = load("heart"), fl.federate("heart")
    assert (data.input_shape, data.class_names, data.client_names) == (
        (25,),
        ("no", "yes"),
        HOSPITALS,
    )
    assert describe("heart") == data.description() and (len(data.y_train), len(data.y_test)) == (
        740,
        180,
    )
    assert fed.partition == "natural" and fed.note.endswith(
        "Cleveland, Hungary, Long Beach, Switzerland."
    )
    for k, (size, ill) in enumerate(zip(SIZES, ILL, strict=True)):
        healthy, sick = fed.label_counts[k].tolist()
        assert (
            round(size * 4 / 5) <= healthy + sick <= round(size * 4 / 5) + 2
        )  # a fifth of each class, rounded down
        assert sick / (healthy + sick) == pytest.approx(ill, abs=0.01)


def test_a_hospitals_accuracy_is_that_of_its_own_test_patients():
    out, data = fl.run("fedavg", dataset="heart", epochs=1), load("heart")
    right = out.predict(data.x_test) == data.y_test.numpy()
    own = [float(right[data.client_test.numpy() == k].mean()) for k in range(4)]
    assert out.per_client == pytest.approx(own, abs=1e-12) and out.worst_client == min(
        out.per_client
    )
    assert (
        torch.bincount(data.client_test).tolist() == [59, 58, 39, 24]
        and load("heart:hungary").client_test is None
    )
    anew = fl.run("fedavg", dataset="heart", epochs=1, partition="iid", clients=2)
    shares = anew.label_counts / anew.label_counts.sum(1, keepdims=True)
    assert anew.per_client == pytest.approx((shares @ anew.per_class).tolist())


@pytest.mark.parametrize(
    ("name", "hospital"), [(n, h) for n, h in LEFT_OUT.items() if h in HOSPITALS]
)
def test_a_hospital_left_out_is_the_test_set(name, hospital):
    data, k = load(name), HOSPITALS.index(hospital)
    assert len(data.y_test) == SIZES[k] and len(data.y_train) == 920 - SIZES[k]
    assert data.y_test.double().mean() == pytest.approx(ILL[k], abs=0.003)
    assert data.client_names == tuple(other for other in HOSPITALS if other != hospital)
    assert torch.bincount(data.client_train).tolist() == [n for i, n in enumerate(SIZES) if i != k]


def test_every_method_runs_on_the_hospitals_or_says_why_not():
    knobs = {
        f"{m}.{k.name}": CHEAP[k.name]
        for m, cls in METHODS.items()
        for k in cls.fields()
        if k.name in CHEAP
    }
    done, errors = {}, {}
    for event in fl.job("all", dataset="heart", public=0.1, epochs=1, **knobs):
        if event.outcome is not None:
            done[event.method] = event.outcome
        if event.error is not None:
            errors[event.method] = event.error
    assert set(done) == set(METHODS) - {"fadi"} and isinstance(errors["fadi"], fl.UsageError)
    assert all(out.settings.clients == len(out.label_counts) == 4 for out in done.values())


def test_the_gaps_alone_betray_the_hospital_and_with_it_the_disease():
    """Which of the 13 values are missing, and what most of the training patients with the same gaps are."""
    rows = list(csv.DictReader(HEART.open(encoding="utf-8")))
    gaps = ["".join(" x"[not row[name]] for name in list(row)[1:-1]) for row in rows]
    hospital = np.array([HOSPITALS.index(row["hospital"]) for row in rows])
    ill = np.array([row["disease"] == "yes" for row in rows]).astype(int)
    test, right = tables.draw_test_rows(4 * ill + hospital, hospital), []
    for truth in (hospital, ill):
        usual = Counter(truth[~test]).most_common(1)[0][0]
        seen = {
            own: Counter(truth[[i for i in np.flatnonzero(~test) if gaps[i] == own]])
            for own in set(gaps)
        }
        said = np.array([(seen[own] or Counter([usual])).most_common(1)[0][0] for own in gaps])
        right.append(((said == truth)[test].mean(), (truth[test] == usual).mean()))
    (who, most), (sick, often) = right
    assert (
        who > 0.8 and most < 0.35 and sick > 0.66 and often < 0.56
    )  # about four of five, and two of three


def test_alpha_plays_no_role_unless_the_patients_are_dealt_out():
    with pytest.raises(
        fl.UsageError,
        match="alpha cannot be set, because data set 'heart' has 4 clients of its own",
    ):
        Settings.make(dataset="heart", alpha=1)
    assert fl.federate("heart", partition="dirichlet", alpha=1, clients=7).clients == 7


def test_hospitals_that_are_absent_or_unseen_have_no_place_among_the_accuracies():
    out, data = fl.run("fedavg", dataset="heart", epochs=1, unseen="Hungary"), load("heart")
    right = out.predict(data.x_test) == data.y_test.numpy()
    own = [float(right[data.client_test.numpy() == k].mean()) for k in (0, 2, 3)]
    assert out.per_client == pytest.approx(own, abs=1e-12)
