"""Exercises are tested like code: unattempted, wrong in many ways, right; hints and solution agree with the check."""

import pytest

from fedlab_nb.course import NumberProblem
from fedlab_nb.course.kit.view import ProblemView

HALF = NumberProblem(
    title="Halves",
    question="What is 1/2?",
    right_answer=0.5,
    hints=("Divide.", "One by two."),
    explanation="1/2 = {answer}",
    slips=((2, "upside down."),),
)


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, "unattempted", "No answer yet"),
        (0.5, "right", "0.5"),
        (0.505, "right", "0.5"),
        (0.4, "wrong", "too small"),
        (7, "wrong", "too large"),
        (2, "wrong", "upside down"),
        ("half", "right", "0.5"),
        ("heaps", "wrong", "a number"),
        ("0.495–0.505", "right", "0.5"),
        ("0.4 to 0.6", "wrong", "0.4 to 0.6 is a range: give one number"),
        ("1/4 = 0.5", "wrong", "1/4 does not equal 0.5"),
        ("2 apples", "wrong", "upside down"),
    ],
)
def test_a_typed_answer_gets_its_verdict(answer, state, words):
    verdict = HALF.check(answer)
    assert verdict.state == state
    assert words in verdict.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [("0.6", "60 is not it: twice"), ("0.77", "77 is too large"), ("0.1", "10 is too small")],
)
def test_a_share_of_a_percentage_gets_the_same_hint(answer, words):
    """0.6 means 60 % here, though 0.6 is nearer to 23 than 60 is."""
    problem = NumberProblem(
        "t", "q", 23, ("h",), "{answer}", tolerance=0.6, slips=((60, "twice."),), units=("%",)
    )
    assert words in problem.check(answer).message
    assert problem.check("0.23").state == "right"


def test_hints_and_solution():
    assert HALF.hint() == "Hint 1 of 2: Divide."
    assert HALF.hint(2) == HALF.hint(9) == "Hint 2 of 2: One by two."
    assert HALF.solution() == "1/2 = 0.5"


def test_form_checks_hints_and_solves_with_the_buttons():
    row, message = ProblemView(HALF).form().children
    box, check, hint, solution = row.children
    answers = {"": "unattempted", "0,5": "right", "9": "wrong", "<b>": "wrong"}
    for text, expected in answers.items():
        box.value = text
        check.click()
        assert f"fl-card-{expected}" in message.value
        assert "<b>'" not in message.value
    hint.click()
    hint.click()
    assert "2 of 2" in message.value
    solution.click()
    assert "1/2 = 0.5" in message.value
