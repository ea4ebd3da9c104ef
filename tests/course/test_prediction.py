"""A guess before the reveal is compared there, a guess after it at once; both name the gap."""

import pytest

from fedlab_nb.course import predict
from fedlab_nb.errors import UsageError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (29.04, "measured 29 %: 41 points too high. Why."),
        (69, "very near"),
        (90, "20 points too low"),
    ],
)
def test_number_and_gap(value, words):
    guess = predict("How accurate?", unit="%")
    assert guess.guess is None
    assert guess.commit(70).startswith("Noted: 70 %.")
    assert words in repr(guess.reveal(value, "Why."))


def test_options():
    guess = predict("Which?", ["better", "worse"])
    guess.commit("worse")
    assert guess.reveal("worse") and guess.gap_in_words == "right"
    assert guess.reveal("better") and guess.gap_in_words == "not it"


def test_without_a_guess_there_is_the_answer_alone():
    guess = predict("How many?", high=10, unit="digits")
    assert repr(guess.reveal(2.7)) == "Predicted and measured: The answer is 2.7 digits."
    assert (
        guess.commit(5) == "You guessed 5 digits, measured 2.7 digits: 2.3 digits too high."
    )  # after Run All


@pytest.mark.parametrize("wrong", [-1, 101, float("nan"), "many", None])
def test_refuses_what_is_out_of_range(wrong):
    with pytest.raises(UsageError, match="guess"):
        predict("How accurate?").commit(wrong)


def test_refuses_other_options():
    with pytest.raises(UsageError, match="did you mean 'worse'"):
        predict("Which?", ["better", "worse"]).commit("wurse")
    with pytest.raises(UsageError, match="two options"):
        predict("Which?", ["only"])


def test_form_commits_with_its_button():
    guess, choice = predict("How accurate?", unit="%"), predict("Which?", ["better", "worse"])
    for asked, value in ((guess, 40), (choice, "worse")):
        entry, buttons, note, _ = asked.form().children
        commit, skip = buttons.children
        if asked is choice:
            commit.click()
            assert choice.guess is None and not choice.is_settled and note.value
        skip.click()
        assert asked.guess is None and asked.is_settled and "Skipped." in note.value
        entry.value = value
        commit.click()
        assert asked.guess == value and f"Noted: {value}" in note.value
