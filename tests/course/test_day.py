"""The story's day: the question that the reader asks, the chart that grows, and what E and F knew."""

import ast
import re

import numpy as np
import pytest
from lessons import SOURCES, read_teachers_page

from fedlab_nb.course import Snapshot, day, predict
from fedlab_nb.course.day.pictures import (
    RULES,
    get_office_name,
    load_upload_bytes_of_all_offices,
    make_federation_of_offices,
)
from fedlab_nb.course.kit.view import Card
from fedlab_nb.errors import UsageError
from fedlab_nb.studies import run

# On another processor a few test images near a border between classes change sides.
TOLERANCE = 4 / 360 + 1e-4
# {rule of the chart: the run that gives its accuracy}
RUNS = {
    "fedavg": ("fedavg", {}),
    "logits": ("ensemble", {"rule": "logits"}),
    "probabilities": ("ensemble", {}),
    "fens": ("fens", {}),
    "afl": ("afl", {}),
    "gauss": ("gauss", {}),
    "distilled": ("distilled", {}),
}


@pytest.fixture(scope="module")
def ensemble_of_all():
    """The run on the story's day in which all ten offices answer."""
    return run("ensemble", rule="logits", **day.SETTING)


@pytest.fixture
def guess():
    return predict("How many envelopes?", high=360, unit="envelopes")


# ------------------------------------------------------------------------------------------ the question
def test_before_the_guess_the_button_asks_for_it(guess, ensemble_of_all):
    question = day.make_ask_all_button(guess, ensemble_of_all)
    assert "Guess first" in question.reveal_count_or_ask_for_guess()
    assert not question.is_settled
    assert "360" not in question.note.value


def test_the_answer_names_the_gap_and_opens_what_waits_for_it(guess, ensemble_of_all):
    question = day.make_ask_all_button(guess, ensemble_of_all)
    waiting = Snapshot(Card("worked", "the tally"), after=question)

    def is_folded():
        data, _ = waiting._repr_mimebundle_()
        return "<details" in data["text/html"]

    guess.commit(200)
    assert is_folded()  # the guess alone opens nothing
    question.button.click()
    assert "You guessed 200 envelopes, measured 360 envelopes" in question.note.value
    assert question.count_of_images_called_eight == 360
    assert not is_folded()


def test_after_a_skipped_guess_they_answer_too(guess, ensemble_of_all):
    question = day.make_ask_all_button(guess, ensemble_of_all)
    guess.skip()
    assert "The answer is 360 envelopes" in question.reveal_count_or_ask_for_guess()


def test_the_tally_counts_what_is_there_and_what_is_said(ensemble_of_all):
    table = day.draw_answer_counts(ensemble_of_all).table
    images_per_digit = np.bincount(ensemble_of_all.test_labels)
    assert [row["images"] for row in table] == images_per_digit.tolist()
    assert [row["called so"] for row in table] == [0] * 8 + [360, 0]


def test_nothing_in_the_first_lesson_gives_the_answer_before_the_ten_are_asked():
    """Code and texts that are not folded never say how many, nor that all are called eights."""
    text = SOURCES["1_start_here"]
    before = text.split("<details>")[0]
    assert before.index("eights = predict(") < before.index("day.make_ask_all_button(eights")
    assert "10 %" not in before and "all of them" not in before.lower()
    assert text.count(", after=answer)") == 2


def test_the_first_stage_shows_the_day_and_no_other_deal():
    """Its bar is then the first bar of the chart: the mean over more deals would be another number."""
    (call,) = re.findall(
        r"offices = (fl\.playground\(.*?\n?\))\n", SOURCES["1_start_here"], re.DOTALL
    )
    keywords = ast.parse(call, mode="eval").body.keywords
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in keywords}
    for name in ("alpha", "clients", "seed"):
        assert options[name] == day.SETTING[name]
    assert options["seeds"] == 1


def test_the_first_chart_has_the_day_alone(ensemble_of_all):
    """What later lessons ask for, other rules and other seeds, is not in it."""
    picture = day.draw_first_accuracy_chart(ensemble_of_all)
    is_right = ensemble_of_all.test_predictions == ensemble_of_all.test_labels
    together = round(100 * is_right.mean())
    alone = round(100 * run("local", **day.SETTING).accuracy)
    assert [row["right"] for row in picture.table] == [f"{alone} %", f"{together} %"]
    assert "±" not in picture.sentence
    assert "263 kB" in picture.table[1]["who"]


# ----------------------------------------------------------------------------------------- the chart
def test_the_chart_grows_by_one_rule_after_the_other():
    names = list(RULES)
    for count, last in enumerate(names, 1):
        assert len(day.draw_accuracy_chart(last).table) == count
    with pytest.raises(UsageError, match="rule"):
        day.draw_accuracy_chart("fenz")


@pytest.mark.parametrize("rule", RUNS)
def test_the_day_s_numbers_are_those_of_a_fresh_run(rule):
    method, options = RUNS[rule]
    outcome = run(method, **day.SETTING, **options)
    table = day.draw_accuracy_chart("distilled").table
    (row,) = [row for row in table if row["rule"].startswith(RULES[rule][0])]
    stated = float(row["seed 4"].removesuffix(" %")) / 100
    assert outcome.accuracy == pytest.approx(stated, abs=TOLERANCE + 0.005)
    assert outcome.ledger.up == load_upload_bytes_of_all_offices(rule)


def test_ten_seeds_stand_beside_the_day():
    assert "mean of seeds 0–9" in day.draw_accuracy_chart("fens").sentence


# --------------------------------------------------------------------------------------- the offices
def test_two_offices_know_one_digit_and_all_have_a_name():
    counts = make_federation_of_offices().label_counts.numpy()
    digits_of_offices = [np.flatnonzero(row).tolist() for row in counts]
    offices_with_one = [k for k, digits in enumerate(digits_of_offices) if len(digits) == 1]
    assert offices_with_one == [4, 5]
    assert digits_of_offices[4] == digits_of_offices[5] == [8]
    names = [get_office_name(k) for k in range(10)]
    assert len(set(names)) == 10
    assert [name[0] for name in names] == list("ABCDEFGHIJ")
    assert "Elm Court (E) and Ferry Quay (F) have seen only eights" in day.draw_offices().sentence


def test_without_e_and_f_the_eights_are_lost():
    """Against fresh runs, counted from predictions and not from per-class accuracies."""
    table = {row["rule"]: row["eights read"] for row in day.draw_eights_without_two_offices().table}
    for rule, method in (("AFL: two sums", "afl"), ("Gaussian heads", "gauss")):
        for words, absent in (("all ten", ""), ("without E and F", "E,F")):
            outcome = run(method, absent=absent, **day.SETTING)
            is_eight = outcome.test_labels == 8
            share = (outcome.test_predictions[is_eight] == 8).mean()
            stated = float(table[f"{rule}, {words}"].removesuffix(" %")) / 100
            assert share == pytest.approx(stated, abs=2 / 35 + 0.005)


# ------------------------------------------------------------------- texts beside the chart
# {figure of a text: the rule of the chart that it speaks of}
RULES_OF_FIGURES = {
    "heterogeneity.local": "local",
    "heterogeneity.weights": "fedavg",
    "heterogeneity.predictions": "logits",
    "heterogeneity.probabilities": "probabilities",
    "fens.alone": "local",
    "fens.fedavg": "fedavg",
    "fens.average": "logits",
    "fens.average_of_probabilities": "probabilities",
    "fens.fens": "fens",
    "afl.ensemble": "probabilities",
    "afl.afl": "afl",
    "distilled.fedavg": "fedavg",
    "distilled.ensemble": "probabilities",
    "distilled.kmeans": "distilled",
    **{f"day.{rule}": rule for rule in RULES},
}
# A number of a text: its figure, @4 if it is of the day alone, its form, and the number.
MARKED = re.compile(r"<!--n ([\w.]+)(@4)?(?::(\w+))?-->([^<]*)<!--/n-->")


def find_disagreements(text):
    """Sentences on the numbers of a text that differ from those of the chart."""
    rows = dict(zip(RULES, day.draw_accuracy_chart("distilled").table, strict=True))
    disagreements = []
    for figure, is_day, form, stated in MARKED.findall(text):
        if figure not in RULES_OF_FIGURES or form not in ("", "mean", "fine"):
            continue
        row = rows[RULES_OF_FIGURES[figure]]
        drawn = row["seed 4"].removesuffix(" %") if is_day else row["mean of seeds"].split(" ")[0]
        if abs(float(stated.split(" ")[0]) - float(drawn)) > 0.5:
            disagreements.append(f"{figure}: the text says {stated}, the chart {drawn}")
    return disagreements


@pytest.mark.parametrize("name", [name for name in SOURCES if not name.startswith("shelf/")])
def test_no_number_of_a_text_contradicts_the_chart_beside_it(name):
    for text in (SOURCES[name], read_teachers_page(name)):
        assert find_disagreements(text) == []


def test_a_number_that_contradicts_the_chart_is_found():
    text = "<!--n fens.fens@4:mean-->48<!--/n--> % and <!--n afl.afl:fine-->94.2 ± 0.1<!--/n--> %"
    assert find_disagreements(text) == ["fens.fens: the text says 48, the chart 84"]
    checked = sum(len(MARKED.findall(SOURCES[name])) for name in ("2_heterogeneity", "3_fens"))
    assert checked > 20
