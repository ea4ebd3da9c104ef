"""FENS' pictures of numbers made by hand: what they say agrees with the numbers, also in extreme cases."""

import numpy as np
import pytest
from lab_views import check_picture, read_texts
from toy_outcomes import make_toy_outcome

from fedlab_nb.labs.fens.cost import ENSEMBLE, FEDAVG, OWN, ROUNDS, draw_client_cost
from fedlab_nb.labs.fens.forget import (
    OutcomesWithAndWithoutClients,
    draw_accuracy_changes_by_removal,
)
from fedlab_nb.labs.fens.trust import KINDS, compare_weights_with_counts, draw_counts_and_weights
from fedlab_nb.labs.one_sample import SampleOutputs, draw_sample_with_outputs_and_answers
from fedlab_nb.methods.fens.aggregators import AGGREGATORS
from fedlab_nb.plots.style import use_figure_size

SETTING = "digits, α = 0.1, 3 clients"
ABC = ("a", "b", "c")
COUNTS = np.array([[9, 0, 0], [1, 8, 0], [0, 0, 7]])


def read_checked_texts(picture):
    return read_texts(check_picture(picture, SETTING))


# ------------------------------------------------------------------------------------------------ who is trusted
@pytest.mark.slow
def test_every_rule_has_its_words():
    assert set(KINDS) == {*AGGREGATORS, "added"}
    for rule in KINDS:
        picture = draw_counts_and_weights(
            COUNTS,
            np.eye(3),
            ABC,
            SETTING,
            aggregation_rule=rule,
            described_round_in_words="round 2 of 5",
        )
        assert "round 2 of 5" in read_checked_texts(picture)


def test_weights_that_are_the_shares_are_like_them_and_others_are_not():
    shares = COUNTS / COUNTS.sum(0)
    comparison = compare_weights_with_counts(COUNTS, shares)
    assert comparison.correlation == pytest.approx(1)
    assert (comparison.owners, comparison.classes, comparison.negative) == (3, 3, 0)
    opposite_comparison = compare_weights_with_counts(COUNTS, -shares)
    assert opposite_comparison.correlation == pytest.approx(-1)
    assert opposite_comparison.owners == 0
    assert opposite_comparison.negative == pytest.approx(4 / 9)
    equal_weights = np.full((3, 3), 1 / 3, dtype=np.float32)
    assert compare_weights_with_counts(COUNTS, equal_weights) == (0, 0, 0, 0)


def test_a_forgotten_client_has_no_weight_to_speak_of():
    weights = np.array([[0.9, 0.2, 0.1], [np.nan] * 3, [0.1, 0.3, 0.8]])
    picture = draw_counts_and_weights(
        COUNTS, weights, ABC, SETTING, selected_client=1, selected_class=0
    )
    assert "client A counts most for class a (weight 0.90, 9 samples)" in read_checked_texts(
        picture
    )


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 40)])
def test_trust_and_forgetting_at_their_extremes(clients, classes):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (clients, classes))
    weights = rng.normal(size=(clients, classes))
    names = [f"class number {c}" for c in range(classes)]
    selected = {"selected_client": clients - 1, "selected_class": classes - 1}
    read_checked_texts(draw_counts_and_weights(counts, weights, names, SETTING, **selected))
    after = dict(enumerate(0.5 + weights / 9))
    removals = make_removals(np.full(classes, 0.5), after, counts)
    read_checked_texts(draw_accuracy_changes_by_removal(removals, names, SETTING, **selected))


# ------------------------------------------------------------------------------------------------ one sample
@pytest.mark.slow
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
    sample = SampleOutputs(
        x=x,
        name="test sample 12",
        truth=2,
        outputs=logits,
        answers={"FENS": np.full(classes, 1 / classes)},
        disagrees=logits.argmax(1) != 2,
        client_numbers={
            "held": np.zeros(clients),
            "σ²": logits.var(1),
            "own": np.full(clients, 1200),
        },
        members=list(range(3, 3 + clients)),
        names=[f"c{i}" for i in range(classes)],
        setting=SETTING,
        client=3,
        class_index=1,
    )
    picture = draw_sample_with_outputs_and_answers(sample, "Logits", "Words.")
    assert read_checked_texts(picture) == "Words."
    assert len(picture.table) == clients + 1
    first_row = picture.table[0]
    assert first_row["who"] == "client D"
    assert first_row["says"] == f"“c{logits[0].argmax()}”"
    assert first_row["own"] == "1200"


@pytest.mark.parametrize(("size", "title"), [((2.9, 4.4), "weight"), ((9, 3.2), "weight | own")])
def test_the_numbers_beside_a_sample_stay_within_the_picture(size, title):
    clients, classes = 10, 10
    sample = SampleOutputs(
        x=np.zeros((1, 8, 8)),
        name="test sample 12",
        truth=2,
        outputs=np.random.default_rng(2).normal(size=(clients, classes)),
        answers={"FENS": np.full(classes, 1 / classes)},
        disagrees=np.zeros(clients, dtype=bool),
        client_numbers={"weight": np.full(clients, 0.0123), "own": np.full(clients, 1200)},
        members=list(range(clients)),
        names=[str(i) for i in range(classes)],
        setting=SETTING,
    )
    with use_figure_size(size):
        figure = draw_sample_with_outputs_and_answers(sample, "Logits", "Words.").figure
    *_, outputs, numbers = figure.axes
    assert numbers.get_title(loc="left") == title
    assert numbers.get_tightbbox().x1 <= figure.bbox.x1
    last_class = outputs.get_xticklabels()[-1]
    first_number = numbers.get_xticklabels()[0]
    assert not last_class.get_window_extent().overlaps(first_number.get_window_extent())


# ------------------------------------------------------------------------------------------------ bytes, forget
def make_bars(d):
    """Bars of a network of `d` numbers, made by hand."""
    return {
        "one-shot": {OWN: d},
        "FENS": {OWN: d, ENSEMBLE: d, ROUNDS: 50},
        "20 rounds of FedAvg": {FEDAVG: 20 * d},
    }


def test_bytes_are_compared_at_both_sizes():
    picture = draw_client_cost(
        make_bars(100), make_bars(10_000), 100, client_count=7, setting=SETTING
    )
    assert "FENS costs a client 2.5 times as much as one-shot learning, and" in read_checked_texts(
        picture
    )
    assert "With 7 clients: 2.5× here" in picture.detail and "4.36×" in picture.detail
    assert [row["× one-shot"] for row in picture.table] == [1, 2.5, 20, 1, 2, 20]


def make_removals(before, after, counts=COUNTS):
    """Accuracies by class: `before [C]` with all clients, `after` {removed client: [C]}. Over all
    classes they are 0.85 and 0.46.
    """
    whole = make_toy_outcome("fens", 0.85, per_class=before, label_counts=counts)
    without = {k: make_toy_outcome("fens", 0.46, per_class=shares) for k, shares in after.items()}
    return OutcomesWithAndWithoutClients(whole, without)


@pytest.mark.slow
def test_forgetting_names_the_largest_loss_within_the_selection():
    after = {
        0: [0.1, 0.92, None],  # None: a class without test samples
        1: [0.9, 0.4, 1.0],
        2: [0.9, 0.9, 0.6],
    }
    picture = draw_accuracy_changes_by_removal(make_removals([0.9, 0.9, 0.9], after), ABC, SETTING)
    sentence = read_checked_texts(picture)
    assert "Class a loses most, 80 points without client A, which holds 90 % of it." in sentence
    assert "3 of 8 cells lose more than 20 points, 3 of them" in sentence
    changes = [row["class b"] for row in picture.table]
    assert changes == ["90 %", "+2 points", "-50 points", "+0 points"]

    one_removal = make_removals([0.9] * 3, {2: [0.9, 0.9, 0.6]})  # the others are not known
    sentence = read_checked_texts(draw_accuracy_changes_by_removal(one_removal, ABC, SETTING))
    assert "Without client C, accuracy goes from 85 % to 46 %" in sentence
