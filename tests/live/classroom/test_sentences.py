"""What the projector says: the sentences of `sentences.js`, by hand."""

import pytest
from javascript import run_javascript

from fedlab_nb.live.classroom.conductor import FALL
from fedlab_nb.live.classroom.worth import WAYS, describe_combination

NO_BREAK = "\u00a0"
AFL = "AFL (all sums, added up)"


def make_state(step, *, accuracies=None, before=None, is_shown=True, **more):
    """What the projector is told of the class; `more` are other parts of it."""
    rows = []
    for title, accuracy in (accuracies or {}).items():
        rows.append({"title": title, **WAYS[title], "digits": accuracy})
    state = {
        "stage": {"step": step, "is_shown": is_shown},
        "rows": rows,
        "before": before or {},
        "seats": [],
        "sent": [],
        "joker": None,
        "effect": None,
        "rounds": None,
        "votes": None,
    }
    return state | more


def write_text(function, state):
    code = f"return {function}(state);"
    return run_javascript("text office sentences", code, state=state).replace(NO_BREAK, " ")


def write_headline(state):
    return write_text("writeHeadline", state)


def write_note(state):
    return write_text("writeNote", state)


def test_the_headline_of_the_joker_names_what_falls_most_and_what_stays():
    before = {"FedAvg": 0.14, "Mean of logits": 0.6, "Ensemble": 0.8, "Ensemble, median": 0.2}
    now = {"FedAvg": 0.1, "Mean of logits": 0.1, "Ensemble": 0.78, "Ensemble, median": 0.2}
    state = make_state("joker", accuracies=now, before=before, joker=12)
    assert (
        write_headline(state)
        == "The joker throws Loud vote from 60 % to 10 %. Equal vote stays at 78 %."
    )
    state["joker"] = None
    assert "as before" in write_headline(state)
    state["stage"]["is_shown"] = False
    assert "%" not in write_headline(state)


@pytest.mark.parametrize(
    ("before", "now", "note"),
    [
        (
            0.14,
            0.1,
            "FedAvg: 14 % before, now 10 %. Guessing is 10 %: it had little to lose.",
        ),
        (0.6, 0.1, "FedAvg: 60 % before, now 10 %."),
        (0.6, 0.58, "FedAvg: 60 % before, now 58 %. This joker hardly moves it."),
    ],
)
def test_what_the_joker_does_to_the_average_is_said_whatever_it_is(before, now, note):
    state = make_state("joker", accuracies={"FedAvg": now}, before={"FedAvg": before}, joker=12)
    assert write_note(state) == note
    assert write_note(state | {"joker": None}) == ""
    covered = make_state(
        "joker", accuracies={"FedAvg": now}, before={"FedAvg": before}, joker=12, is_shown=False
    )
    assert write_note(covered) == ""


def test_the_headline_speaks_of_what_the_class_has_guessed():
    """Of an option of the question, though another bar may be longer."""
    accuracies = {"Local only": 0.2, "AFL": 0.9, "Gaussian heads": 0.95}
    state = make_state("reveal", accuracies=accuracies)
    options = [describe_combination("Local only"), describe_combination("AFL")]
    state["stage"]["question"] = {"options": options}
    assert write_headline(state) == f"One alone reads 20 %. {AFL} reads 90 %."
    del state["stage"]["question"]
    assert "Gaussian" in write_headline(state)


@pytest.mark.parametrize(
    ("before", "now", "is_steady"),
    [
        (0.6, 0.57, True),
        (0.6, 0.5, False),
        (0.1, 0.1, False),  # guessing cannot fall
        (0.95, 0.95, True),
    ],
)
def test_steady_is_what_stays_above_guessing(before, now, is_steady):
    code = "return isSteady(before, now);"
    found = run_javascript("text office sentences", code, before=before, now=now)
    assert found is is_steady


def test_the_headline_of_the_joker_does_not_praise_sums_that_held():
    """Sums have no defence against a joker; a vote of equals has one."""
    now = {"Mean of logits": 0.1, "Ensemble": 0.6, "AFL": 0.9}
    before = now | {"Mean of logits": 0.6}
    state = make_state("joker", accuracies=now, before=before, joker=12)
    assert "Equal vote stays at 60 %." in write_headline(state)


def test_python_and_the_wall_have_one_measure_of_a_fall():
    assert run_javascript("text office sentences", "return FALL;") == FALL


def test_results_are_said_with_the_names_of_the_bars():
    accuracies = {"Local only": 0.2, "Ensemble": 0.7, "FENS": 0.8, "AFL": 0.9}
    state = make_state("reveal", accuracies=accuracies)
    assert write_headline(state) == f"One alone reads 20 %. {AFL} reads 90 %."
    state = make_state("rounds", accuracies=accuracies, rounds={"round": 50, "of": 50, "phones": 3})
    assert write_headline(state) == "FENS reads 80 %; Equal vote, 70 %."
    effect = {"office": "G", "way": "AFL", "with_it": 320, "without_it": 316, "images": 360}
    state = make_state("forget", accuracies=accuracies, effect=effect)
    assert write_headline(state) == "Without G, AFL reads 316 of 360; with it, 320."


def test_no_result_is_said_before_it_is_shown():
    accuracies = {"Local only": 0.2, "Ensemble": 0.7, "FENS": 0.8, "AFL": 0.9}
    rounds = {"round": 50, "of": 50, "phones": 3, "networks": 1000, "weights": 10}
    effect = {"office": "G", "way": "AFL", "with_it": 320, "without_it": 316, "images": 360}
    for step in ("reveal", "joker", "forget", "rounds"):
        state = make_state(
            step, accuracies=accuracies, is_shown=False, rounds=rounds, effect=effect
        )
        assert not set("0123456789") & set(write_headline(state) + write_note(state))


@pytest.mark.parametrize(
    ("count", "text"),
    [(170, "0.2 kB"), (9_940, "9.9 kB"), (58_249, "58 kB"), (1_940_000, "1.9 MB")],
)
def test_bytes_have_as_few_figures_as_there_is_room_for(count, text):
    said = run_javascript("text office", "return formatBytes(count);", count=count)
    assert said.replace(NO_BREAK, " ") == text
