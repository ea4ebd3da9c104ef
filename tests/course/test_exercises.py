"""Exercises beside the code: every file of the package is read, its texts filled in; a wrong one is one sentence."""

import inspect
import itertools

import numpy as np
import pytest
from lessons import LESSONS, problems

from fedlab_nb import declared
from fedlab_nb.course import COURSE
from fedlab_nb.course.distilled.lesson import kernel
from fedlab_nb.course.kit.exercises import exercises
from fedlab_nb.course.kit.problem import (
    BuildProblem,
    NumberProblem,
    Problem,
    RecordProblem,
    Verdict,
    are_both_errors_or_close_values,
    call_or_catch_error,
)
from fedlab_nb.errors import UsageError

GOOD = """
[q1]
question = "What is a half?"
answer = 0.5
tolerance = 0.01
hints = ["Divide.", "One by two."]
explanation = "1/2 = {answer}"
slips = [[2, "upside down."]]

[q2]
question = "Show it."
hints = ["Run."]
explanation = "Run. {verdict}"
[q2.claim]
clear = "one"
other = "another"
both = "both"
right = "{clear} {other}"
nothing = "none"
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Texts of a lesson that is not the package's."""
    monkeypatch.setattr(declared, "ROOT", tmp_path)
    folder = (
        tmp_path / f"lessons_{tmp_path.name}"
    )  # what is declared is read once: a folder for each test
    folder.mkdir()

    def read(text):
        (folder / "exercises.toml").write_text(text, "utf-8")
        return exercises(f"fedlab_nb.{folder.name}.lesson", q2=(claim, list))

    return read


def claim(outcomes, **words):
    return Verdict("right", words["clear"])


# ------------------------------------------------------------------------------------------------------ the package's
def test_every_lesson_has_exercises():
    assert len(problems(BuildProblem)) == 13 and len(LESSONS) == 13
    assert {name for name, _ in (each.values for each in problems(Problem))} == set(LESSONS)


@pytest.mark.parametrize(("lesson", "problem"), problems(Problem))
def test_every_exercise_is_read(lesson, problem):
    assert problem.title.startswith("Exercise ") and problem.hint(2).startswith("Hint ")
    claim = declared.read_toml(f"course/{COURSE[lesson]}/exercises.toml")[
        f"q{problem.title[9:]}"
    ].get("claim")
    filled = (
        "<here> <there>"
        if claim is None
        else claim["right"].format(clear="<here>", other="<there>")
    )
    assert "<here>" in filled and "<there>" in filled


@pytest.mark.parametrize(("lesson", "problem"), problems(NumberProblem))
def test_numbers_have_their_solution_and_their_slips(lesson, problem):
    assert str(problem.right_answer) in problem.solution().replace(",", "")
    assert (
        all(words in problem.check(value).message for value, words in problem.slips)
        and problem.slips
    )


@pytest.mark.parametrize(("lesson", "problem"), problems(RecordProblem))
def test_a_record_s_explanation_has_place_for_the_verdict(lesson, problem):
    assert problem.explanation.format(verdict="So it is.").count("So it is.") == 1


@pytest.mark.parametrize(("lesson", "problem"), problems(BuildProblem))
def test_functions_have_their_slips_and_their_solution(lesson, problem):
    for name, wrong in problem.build.slips.items():
        verdict = problem.check(wrong)
        assert (verdict.state, verdict.message) == ("wrong", problem.slips[name])
    assert len(set(problem.slips.values())) == len(problem.build.slips)
    arguments = len(inspect.signature(problem.right_answer).parameters)
    assert "stopped with" in problem.check(lambda *given: given[arguments]).message
    assert f"is the function {problem.function_name}" in problem.check(3).message
    source = problem.solution().split("\n", 1)[1].replace("\N{NO-BREAK SPACE}", " ")
    space = {"np": np, "kernel": kernel}
    exec(source, space)
    assert (
        problem.check(space[problem.function_name]).state == "right"
    )  # the solution can be run as it is shown


@pytest.mark.parametrize(("lesson", "problem"), problems(BuildProblem))
def test_hidden_inputs_tell_the_mistakes_apart(lesson, problem):
    inputs = problem.build.draw_hidden_arguments()
    functions = {"": problem.right_answer, **problem.build.slips}
    given = {
        name: [call_or_catch_error(function, each) for each in inputs]
        for name, function in functions.items()
    }
    for (one, ours), (other, theirs) in itertools.combinations(given.items(), 2):
        assert not all(map(are_both_errors_or_close_values, ours, theirs)), (one, other)


# ------------------------------------------------------------------------------------------------------ the reader
def test_a_good_file(read):
    q1, q2 = read(GOOD)
    assert q1.problem.check(0.505).state == "right" and "upside" in q1.problem.check(2).message
    assert q1.problem.hint(2) == "Hint 2 of 2: One by two." and q1.solution().text == "1/2 = 0.5"
    assert q2.problem.title == "Exercise 2" and q2.solution().text == "Run. one"


@pytest.mark.parametrize(
    ("good", "wrong", "sentence"),
    [
        ("[q1]", "[q1", "lessons_.*/exercises.toml is not valid TOML"),
        (
            "tolerance = 0.01",
            "",
            "[q1] of lessons_.*/exercises.toml has no tolerance: add it, a number",
        ),
        ("hints", "hint", "'hint': did you mean 'hints'"),
        ("answer = 0.5", 'answer = "half"', "answer in .* is 'half': write a number"),
        ('["Divide.", "One by two."]', '"Divide."', "hints in .* write a list of texts"),
        ('[[2, "upside down."]]', '[["upside down.", 2]]', "slips in .* write a list of pairs"),
        ('clear = "one"', "", "[q2.claim] of .* has no clear"),
        ("[q1]", "q3 = 3\n[q1]", "q3 in lessons_.* is 3: write a table"),
    ],
)
def test_a_wrong_file_is_one_sentence(read, good, wrong, sentence):
    assert good in GOOD
    with pytest.raises(UsageError, match=sentence.replace("[", r"\[")) as caught:
        read(GOOD.replace(good, wrong, 1))
    assert "\n" not in str(caught.value)
