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
def test_the_reveal_of_a_number_names_the_gap(value, words):
    guess = predict("How accurate?", unit="%")
    assert guess.guess is None
    assert guess.commit(70).startswith("Noted: 70 %.")
    assert words in repr(guess.reveal(value, "Why."))


def test_the_reveal_of_an_option_is_right_or_not_it():
    guess = predict("Which?", ["better", "worse"])
    guess.commit("worse")
    assert guess.reveal("worse")
    assert guess.gap_in_words == "right"
    assert guess.reveal("better")
    assert guess.gap_in_words == "not it"


def test_without_a_guess_there_is_the_answer_alone():
    guess = predict("How many?", high=10, unit="digits")
    assert repr(guess.reveal(2.7)) == "Predicted and measured: The answer is 2.7 digits."
    # after Run All a guess comes when the answer is there
    assert guess.commit(5) == "You guessed 5 digits, measured 2.7 digits: 2.3 digits too high."


@pytest.mark.parametrize("wrong", [-1, 101, float("nan"), "many", None])
def test_a_guess_out_of_range_is_refused(wrong):
    with pytest.raises(UsageError, match="guess"):
        predict("How accurate?").commit(wrong)


def test_an_option_that_is_not_offered_is_refused():
    with pytest.raises(UsageError, match="did you mean 'worse'"):
        predict("Which?", ["better", "worse"]).commit("wurse")
    with pytest.raises(UsageError, match="two options"):
        predict("Which?", ["only"])


def test_a_form_skips_and_commits_with_its_buttons():
    number = predict("How accurate?", unit="%")
    choice = predict("Which?", ["better", "worse"])
    for prediction, value in ((number, 40), (choice, "worse")):
        entry, buttons, note = prediction.form().children
        commit, skip = buttons.children
        if prediction is choice:  # no option is chosen at first
            commit.click()
            assert choice.guess is None
            assert not choice.is_settled
            assert note.value
        skip.click()
        assert prediction.guess is None
        assert prediction.is_settled
        assert "Skipped." in note.value
        entry.value = value
        commit.click()
        assert prediction.guess == value
        assert f"Noted: {value}" in note.value
