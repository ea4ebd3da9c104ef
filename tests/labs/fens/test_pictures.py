"""FENS' pictures of numbers made by hand: what they say agrees with the numbers, also at the extremes."""

import numpy as np
import pytest
from lab_views import sound
from toy_outcomes import toy

from fedlab_nb.labs.fens.cost import ENSEMBLE, FEDAVG, OWN, ROUNDS, bytes_at_two_sizes
from fedlab_nb.labs.fens.forget import Forgotten, forgetting
from fedlab_nb.labs.fens.trust import KINDS, likeness, trust
from fedlab_nb.labs.one_sample import OneSample, one_sample
from fedlab_nb.methods.fens.aggregators import AGGREGATORS

SETTING = "digits, α = 0.1, 3 clients"
ABC = ("a", "b", "c")
COUNTS = np.array([[9, 0, 0], [1, 8, 0], [0, 0, 7]])


def said(picture):
    return sound(picture, SETTING).sentence


# ------------------------------------------------------------------------------------------------ who is trusted
def test_every_rule_has_its_words():
    assert set(KINDS) == {*AGGREGATORS, "added"}
    for rule in KINDS:
        assert "round 2 of 5" in said(trust(COUNTS, np.eye(3), ABC, SETTING, rule, "round 2 of 5"))


def test_weights_that_are_the_shares_are_like_them_and_others_are_not():
    shares = COUNTS / COUNTS.sum(0)
    assert likeness(COUNTS, shares) == (
        pytest.approx(1),
        3,
        3,
        0,
    )  # correlation, owners, classes, negative
    turned = likeness(COUNTS, -shares)
    assert turned.correlation == pytest.approx(-1) and turned.owners == 0
    assert turned.negative == pytest.approx(4 / 9)
    assert likeness(COUNTS, np.full((3, 3), 1 / 3, dtype=np.float32)) == (0, 0, 0, 0)


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 40)])
def test_trust_and_forgetting_at_their_extremes(clients, classes):
    rng = np.random.default_rng(1)
    counts, names = (
        rng.integers(0, 9, (clients, classes)),
        [f"class number {c}" for c in range(classes)],
    )
    weights = rng.normal(size=(clients, classes))
    said(trust(counts, weights, names, SETTING, client=clients - 1, klass=classes - 1))
    gone = forgotten(np.full(classes, 0.5), dict(enumerate(0.5 + weights / 9)), counts)
    said(forgetting(gone, names, SETTING, clients - 1, classes - 1))


# ------------------------------------------------------------------------------------------------ one sample
@pytest.mark.parametrize(
    ("x", "clients", "classes"),
    [
        (np.zeros((1, 8, 8)), 1, 100),
        (np.random.default_rng(2).random((3, 9, 9)), 50, 3),
        (np.arange(13.0), 12, 26),
    ],
)
def test_a_sample_of_every_kind_and_crowds(x, clients, classes):
    logits = np.random.default_rng(2).normal(size=(clients, classes)) * 30
    members, names = list(range(3, 3 + clients)), [f"c{i}" for i in range(classes)]
    answers = {"FENS": np.full(classes, 1 / classes)}
    known = {"held": np.zeros(clients), "σ²": logits.var(1), "own": np.full(clients, 1200)}
    picture = one_sample(
        OneSample(
            x, "test sample 12", 2, logits, answers, logits.argmax(1) != 2, known, members, names,
            SETTING, client=3, klass=1,
        ),
        "Logits", "Words.",
    )  # fmt: skip
    assert said(picture) == "Words." and len(picture.table) == clients + 1
    first = picture.table[0]
    assert (
        first["who"] == "client D"
        and first["says"] == f"“c{logits[0].argmax()}”"
        and first["own"] == "1.2e+03"
    )


# ------------------------------------------------------------------------------------------------ bytes, forget
def test_bytes_are_compared_at_both_sizes():
    own, paper = (
        {
            "one-shot": {OWN: d},
            "FENS": {OWN: d, ENSEMBLE: d, ROUNDS: 50},
            "20 rounds of FedAvg": {FEDAVG: 20 * d},
        }
        for d in (100, 10_000)
    )
    picture = bytes_at_two_sizes(own, paper, 100, clients=7, setting=SETTING)
    assert (
        "With 7 clients FENS costs a client 2.5×" in said(picture) and "4.36×" in picture.sentence
    )
    assert [row["× one-shot"] for row in picture.table] == [1, 2.5, 20, 1, 2, 20]


def forgotten(before, after, counts=COUNTS):
    """`before [C]`, and `after` {client gone: [C]}; accuracies over all classes are 0.85 and 0.46."""
    whole = toy("fens", 0.85, per_class=before, label_counts=counts)
    return Forgotten(whole, {k: toy("fens", 0.46, per_class=left) for k, left in after.items()})


def test_forgetting_names_the_largest_loss_among_what_is_looked_at():
    after = {
        0: [0.1, 0.92, None],
        1: [0.9, 0.4, 1.0],
        2: [0.9, 0.9, 0.6],
    }  # None: a class without test samples
    gone = forgotten([0.9, 0.9, 0.9], after)
    picture = forgetting(gone, ABC, SETTING)
    assert (
        "Class a without client A changes most, by -80 points; the client holds 90 % of it"
        in said(picture)
    )
    assert "3 of 8 cells lose more than 20 points, 3 of them" in picture.sentence
    assert [row["class b"] for row in picture.table] == [
        "90 %",
        "+2 points",
        "-50 points",
        "+0 points",
    ]
    alone = forgotten([0.9] * 3, {2: [0.9, 0.9, 0.6]})  # nothing is known of the others
    assert "Without client C, accuracy goes from 85 % to 46 %" in said(
        forgetting(alone, ABC, SETTING)
    )
