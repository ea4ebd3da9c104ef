"""A guess before the reveal is compared there, a guess after it at once; both name the gap."""

import pytest

from fedlab_nb.course import predict
from fedlab_nb.errors import UsageError


def test_number_and_gap():
    guess = predict("How accurate?", unit="%")
    assert guess.guess is None
    assert guess.commit(70) == "Noted: 70 %. Read on and see."
    assert repr(guess.reveal(29.04, "Why.")) == (
        "Predicted and measured: You guessed 70 %, measured 29 %: 41 points too high. Why."
    )


@pytest.mark.parametrize(("value", "words"), [(69, "very near"), (90, "20 points too low"), (50, "20 points too high")])
def test_direction(value, words):
    guess = predict("How accurate?", unit="%")
    guess.commit(70)
    assert words in repr(guess.reveal(value))


def test_options():
    guess = predict("Which?", ["better", "worse"])
    guess.commit("worse")
    assert "You guessed “worse”: so it is." in repr(guess.reveal("worse"))
    assert "You guessed “worse”: it is “better”." in repr(guess.reveal("better"))


def test_without_a_guess_the_answer_is_folded():
    guess = predict("How many?", high=10, unit="digits")
    card = guess.reveal(2.7)
    assert repr(card) == "Predicted and measured: The answer is 2.7 digits."
    assert "<details>" in card._repr_mimebundle_()[0]["text/html"]
    assert guess.commit(5) == "You guessed 5 digits, measured 2.7 digits: 2.3 digits too high."  # after Run All
    assert "<details>" not in guess.reveal(2.7)._repr_mimebundle_()[0]["text/html"]


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
    guess = predict("How accurate?", unit="%")
    slider, buttons, note = guess.form().children
    commit, skip = buttons.children
    skip.click()
    assert guess.guess is None and guess.settled
    assert "Skipped." in note.value
    slider.value = 40
    commit.click()
    assert guess.guess == 40
    assert "Noted: 40 %" in note.value

    choice = predict("Which?", ["better", "worse"])
    radio, buttons, note = choice.form().children
    button = buttons.children[0]
    button.click()
    assert choice.guess is None and not choice.settled
    assert "Choose an answer first" in note.value
    radio.value = "worse"
    button.click()
    assert choice.guess == "worse"
