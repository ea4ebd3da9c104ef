"""FENS' pictures: PNG, alt text with its setting, and sentences that are true of hand-made tables."""

import math
from dataclasses import replace

import numpy as np
import pytest
from toy_outcomes import toy

from fedlab_nb import plots
from fedlab_nb.labs.fens.numbers import FENS, Bill, Forgotten, Point, likeness
from fedlab_nb.labs.fens.plots.bytes import bytes_at_two_sizes
from fedlab_nb.labs.fens.plots.distil import distilled
from fedlab_nb.labs.fens.plots.forget import forget_each, forget_one
from fedlab_nb.labs.fens.plots.sample import OneSample, one_sample, softmax
from fedlab_nb.labs.fens.plots.trust import KINDS, Trusted, TrustPicture
from fedlab_nb.labs.fens.plots.vary import vary
from fedlab_nb.methods.fens.aggregators import AGGREGATORS
from fedlab_nb.methods.fens.model import FensReport
from fedlab_nb.plots.kit import blank

PNG, SETTING = b"\x89PNG\r\n\x1a\n", "digits, α = 0.1, 3 clients"
ABC = ("a", "b", "c")
COUNTS = np.array([[9, 0, 0], [1, 8, 0], [0, 0, 7]])


def right(picture):
    """PNG, words and numbers, as every picture has them."""
    assert plots.png(picture).startswith(PNG)
    assert SETTING in picture.alt and picture.sentence.endswith((".", "×."))
    assert "nan" not in picture.sentence.lower() and all(isinstance(row, dict) for row in picture.table)
    return picture.sentence


# ------------------------------------------------------------------------------------------------ who is trusted
def trust(*data, **more):
    return TrustPicture().show(Trusted(*data, **more))


def test_every_rule_has_its_words():
    assert set(KINDS) == {*AGGREGATORS, "added"}
    for rule in KINDS:
        right(trust(COUNTS, np.eye(3), ABC, setting=SETTING, rule=rule, at=2, rounds=5))


def test_weights_that_are_the_shares_are_like_them_and_others_are_not():
    shares = COUNTS / COUNTS.sum(0)
    same = likeness(COUNTS, shares)
    assert same == (pytest.approx(1), 3, 3, 0)  # correlation, owners, classes, negative
    turned = likeness(COUNTS, -shares)
    assert turned.correlation == pytest.approx(-1) and turned.owners == 0
    assert turned.negative == pytest.approx(4 / 9)
    flat = likeness(COUNTS, np.full((3, 3), 1 / 3, dtype=np.float32))
    assert flat == (0, 0, 0, 0)


def test_the_sentence_on_trust_follows_what_is_looked_at():
    weights = np.array([[0.5, -0.2, 0.1], [0.1, 0.9, 0.0], [0.0, 0.1, 0.3]])
    words = right(trust(COUNTS, weights, ABC, setting=SETTING, at=4, rounds=9))
    assert (
        "After round 4 of 9" in words
        and "for 3 of 3 classes" in words
        and "11 % of the weights are below zero" in words
    )
    words = right(trust(COUNTS, weights, ABC, setting=SETTING, client=0))
    assert "client 0 counts most for class a (0.50) and least for class b (-0.20)" in words and "(9 of 10)" in words
    words = right(trust(COUNTS, weights, ABC, setting=SETTING, klass=1))
    assert "client 1 counts most for class b (0.90)" in words and "(8 of 8) lie at client 1" in words
    assert "counts the same" in right(trust(COUNTS, np.full((3, 3), 1 / 3), ABC, setting=SETTING))
    assert "all units of the network give 0" in right(trust(COUNTS, np.zeros((3, 3)), ABC, setting=SETTING, rule="nn"))
    weights[1] = np.nan
    assert "Client 1 is forgotten" in right(trust(COUNTS, weights, ABC, setting=SETTING, client=1))


def test_trust_redrawn_in_place_is_the_picture_of_a_fresh_one():
    redrawn, rng = TrustPicture(), np.random.default_rng(0)
    for rule, client, klass in (("per_class", None, None), ("per_class", 2, 0), ("moe", 1, None), ("per_class", 0, 2)):
        weights = rng.random((3, 3)) - 0.3
        options = {"setting": SETTING, "rule": rule, "at": 1, "limit": 1.0, "client": client, "klass": klass}
        again = plots.png(redrawn.show(Trusted(COUNTS, weights, ABC, **options)))
        assert again == plots.png(trust(COUNTS, weights, ABC, **options))


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 10), (5, 40)])
def test_trust_and_forgetting_at_their_extremes(clients, classes):
    rng = np.random.default_rng(1)
    counts, names = rng.integers(0, 9, (clients, classes)), [f"class number {c}" for c in range(classes)]
    weights = rng.normal(size=(clients, classes))
    right(trust(counts, weights, names, setting=SETTING, client=clients - 1, klass=classes - 1))
    gone = forgotten(np.full(classes, 0.5), dict(enumerate(0.5 + weights / 9)), counts, total=(0.5, 0.25))
    right(forget_each(gone, names, setting=SETTING, client=clients - 1, klass=classes - 1))
    right(forget_one(gone, 0, names, setting=SETTING, klass=classes - 1))


# ------------------------------------------------------------------------------------------------ one sample
def one(logits, answers, names=ABC, truth=1, x=None, **more):
    logits = np.array(logits, dtype=float)
    held, clients = np.zeros(len(logits)), list(range(len(logits)))
    more = {"number": 12, "held": held, "clients": clients, **more}
    return one_sample(OneSample(np.zeros((8, 8)) if x is None else x, logits, answers, names, truth, SETTING, **more))


def test_the_sentence_on_a_sample_says_who_is_wrong_and_what_the_rules_answer():
    answers = {"average": np.array([9.0, 0.0, 0.0]), "FENS": np.array([0.0, 9.0, 0.0])}
    words = right(one([[7, 0, 0], [0, 2, 0], [3, 0, 1]], answers, held=np.array([0, 8, 0])))
    assert "The truth is b; 2 of 3 clients say something else. The loudest of them is client 0 (a, 7)" in words
    assert "Average says a (100 % sure) and FENS says b (100 % sure)" in words
    words = right(one([[7, 0, 0], [0, 2, 0], [3, 0, 1]], answers, held=np.array([0, 8, 0]), client=1))
    assert "Client 1 says b with a logit of 2 after training on 8 samples of class b" in words
    assert "0 of 3 clients say something else." in right(one([[0, 1, 0]] * 3, answers))


def test_softmax_of_scores_that_forbid_classes():
    assert softmax([0.0, 0.0]).tolist() == [0.5, 0.5]
    assert softmax([-math.inf, 0.0]).tolist() == [0, 1]
    assert softmax([-math.inf, -math.inf]).tolist() == [0.5, 0.5]
    assert softmax([1e6, 0.0]).tolist() == [1, 0]


def test_samples_of_every_kind_and_crowds():
    rng = np.random.default_rng(2)
    for x in (np.zeros((8, 8)), rng.random((32, 32, 3)), rng.random(13), np.ones((1, 1))):
        logits = rng.normal(size=(50, 3)) * 30
        right(one(logits, {"average": logits.mean(0)}, truth=0, x=x, number=0, client=49, klass=2))
    names = [str(c) for c in range(100)]
    logits = rng.normal(size=(1, 100))
    right(one(logits, {"a": logits[0], "b": logits[0]}, names, 99, np.eye(8), number=0))
    # the rows may stand for other clients than 0 ... M - 1: somebody is forgotten
    words = right(one([[7, 0, 0], [0, 2, 0]], {"FENS": np.zeros(3)}, clients=[0, 4], client=4))
    assert words.startswith("Client 4 says b")


# ------------------------------------------------------------------------------------------------ one knob's values
def points(values, seeds=2, size=1000, test=0.3):
    """A point for each {label: validation accuracy}; test accuracies are 0.3 and 0.2 everywhere."""
    made = []
    for i, (label, share) in enumerate(values.items()):
        lines = {name: dict.fromkeys(range(seeds), test - j / 10) for j, name in enumerate((FENS, "x"))}
        judged = {s: share + s / 1000 for s in range(seeds)}
        made.append(Point(label, lines, {"own model": size, "ensemble": i * size}, 1 + i, judged, "public"))
    return made


def test_values_of_a_knob_are_compared_on_validation_images_and_the_best_one_is_tested_once():
    picture = vary(points({"2": 0.5, "8": 0.9}), "Bits", setting=SETTING, now="8")
    words = right(picture)
    assert "on validation images (the public images, with their labels) FENS is best with 8 (90 %)" in words
    assert "and worst with 2 (50 %), 40 ± 0 points apart. On the test images, with 8: FENS 30 % and x 20 %." in words
    assert "from 1 kB (2) to 2 kB (8)" in words
    assert [row["test"] for row in picture.table] == ["", "FENS 30 %, x 20 %"]
    a, b = points({"a": 0.5, "b": 0.5})
    noisy = [replace(a, validation={0: 0.5, 1: 0.9}), replace(b, validation={0: 0.9, 1: 0.6})]
    assert "is within the noise" in right(vary(noisy, "Rule", setting=SETTING, ordered=False))
    assert "one seed nobody can tell" in right(vary(points({"2": 0.5, "8": 0.9}, seeds=1), "Bits", setting=SETTING))


def test_without_validation_images_nothing_is_chosen():
    untold = [replace(point, validation={}) for point in points({"2": 0.5, "8": 0.9})]
    words = right(vary(untold, "Bits", setting=SETTING))
    assert "no validation images" in words and "%" not in words


def test_a_knob_with_one_value_or_many():
    words = right(vary(points({"2": 0.5}), "Bits", setting=SETTING))
    assert "FENS reaches 50 % on validation images" in words and "30 % on the test images" in words
    right(vary(points({str(i): 0.5 for i in range(12)}), "Rounds", setting=SETTING, now="3"))
    assert right(blank("Press the button.", setting=SETTING)) == "Press the button."


# ------------------------------------------------------------------------------------------------ bytes
def bills(small):
    rounds = "20 rounds of FedAvg"
    return [
        Bill(what, {"one-shot": {"own model": d}, "FENS": {"own model": d, "ensemble": d, "aggregator rounds": small},
                    rounds: {"rounds": 20 * d}})
        for what, d in (("Here", 100), ("The paper's", 10_000))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("small", "ratio", "than"),
    [(50, "2.5×", ", less than"), (50_000, "502×", "more here, less there than"), (10**7, "1e+05×", ", more than")],
)
def test_the_sentence_on_bytes_compares_at_both_sizes(small, ratio, than):
    words = right(bytes_at_two_sizes(bills(small), clients=7, setting=SETTING))
    assert words.startswith("With 7 clients FENS costs") and ratio in words and than in words
    assert words.endswith("The paper's own setting: 4.36×.")


def test_what_the_ledger_counted_is_told_beside_the_formula():
    for measured, words in ((250, "the ledger counted the same"), (260, "the ledger counted 260 B")):
        assert words in right(bytes_at_two_sizes(bills(50), clients=7, setting=SETTING, measured=measured))


# ------------------------------------------------------------------------------------------------ forget and distil
def forgotten(before, after, counts=COUNTS, total=(0.85, 0.46)):
    """`before [C]`, and `after` {client gone: [C]}; total: accuracies over all classes."""
    whole = toy("fens", total[0], per_class=before, label_counts=counts)
    return Forgotten({}, whole, {k: toy("fens", total[1], per_class=left) for k, left in after.items()})


def test_the_sentence_on_forgetting_names_the_class_that_goes():
    # a class without test samples has None where a run made it
    gone = forgotten([0.9, 0.8, None], {0: [0.1, 0.82, None]})
    words = right(forget_one(gone, 0, ABC, setting=SETTING))
    assert "from 85 % to 46 %. Class a, of which it holds 90 %, loses most (90 % to 10 %)" in words
    assert "the others change by +2 points on average" in words
    words = right(forget_one(gone, 0, ABC, setting=SETTING, klass=1))
    assert "on class b, of which it holds 0 %, from 80 % to 82 %" in words
    assert forget_one(gone, 0, ABC, setting=SETTING).table[2]["with all"] == ""
    nothing = forgotten([None] * 3, {0: [None] * 3})
    assert right(forget_one(nothing, 0, ABC, setting=SETTING)).endswith("from 85 % to 46 %.")


def test_the_sentence_on_forgetting_each_in_turn_names_the_largest_loss():
    after = {0: [0.1, 0.92, None], 1: [0.9, 0.4, 1.0], 2: [0.9, 0.9, 0.6]}
    gone = forgotten([0.9, 0.9, 0.9], after)
    words = right(forget_each(gone, ABC, setting=SETTING))
    assert "class a without client 0, -80 points; it holds 90 % of it" in words
    assert "3 of 8 cells lose more than 20 points, 3 of them" in words
    assert right(forget_each(gone, ABC, setting=SETTING, client=1)).startswith("Client 1's largest loss: class b")
    better = forgotten([0.1, 0.1, 0.1], after)
    words = right(forget_each(better, ABC, setting=SETTING, klass=1))
    assert words == "Class b's largest loss: there is none."
    # one client alone was tried: nothing is known of the others
    alone = forgotten([0.9, 0.9, 0.9], {2: [0.9, 0.9, 0.6]})
    assert "class c without client 2, -30 points" in right(forget_each(alone, ABC, setting=SETTING))
    assert right(forget_each(alone, ABC, setting=SETTING, client=0)) == "No accuracy is known there."


def test_the_sentence_on_distilling_compares_student_and_teacher():
    report = FensReport(
        aggregator_parameters=10, members=np.arange(10), public_images=200, agreement=0.9, average_accuracy=0.5,
        member_accuracy=[0.1, 0.3], teacher_accuracy=0.85,
    )  # fmt: skip
    for student, words in ((0.8, "5 points less than"), (0.85, "as much as"), (0.88, "3 points more than")):
        history = [{"phase": "distillation", "accuracy": a} for a in (0.3, student)]
        outcome = toy("fens", student, options={"distil_steps": 800}, report=report, parameters=10, history=history)
        picture = distilled(outcome, setting=SETTING)
        assert words in right(picture) and "11 times fewer" in picture.sentence
        assert "200 unlabelled images" in picture.sentence
        assert [row["accuracy"] for row in picture.table[:3]] == ["20 %", "50 %", "85 %"]
