"""Exercises beside the code: every file of the package is read, its texts filled in; a wrong one is one sentence."""

import inspect
import itertools

import numpy as np
import pytest
from lessons import LESSONS, list_problems

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
def read_exercises(tmp_path, monkeypatch):
    """A function that reads a text as the file of exercises of a lesson."""
    monkeypatch.setattr(declared, "ROOT", tmp_path)
    # a declared file is read once in a process, so each test has a folder of another name
    folder = tmp_path / f"lessons_{tmp_path.name}"
    folder.mkdir()

    def read(text):
        (folder / "exercises.toml").write_text(text, "utf-8")
        return exercises(f"fedlab_nb.{folder.name}.lesson", q2=(claim, list))

    return read


def claim(outcomes, **words):
    return Verdict("right", words["clear"])


# ------------------------------------------------------------------------------------------------------ the package's
def test_every_lesson_has_exercises():
    assert len(list_problems(BuildProblem)) == 13
    assert len(LESSONS) == 13
    assert {param.values[0] for param in list_problems(Problem)} == set(LESSONS)


@pytest.mark.parametrize(("lesson", "problem"), list_problems(Problem))
def test_every_exercise_is_read(lesson, problem):
    assert problem.title.startswith("Exercise ")
    assert problem.hint(2).startswith("Hint ")
    number = problem.title.removeprefix("Exercise ")
    table = declared.read_toml(f"course/{COURSE[lesson]}/exercises.toml")[f"q{number}"]
    if "claim" in table:
        filled = table["claim"]["right"].format(clear="<here>", other="<there>")
        assert "<here>" in filled
        assert "<there>" in filled


@pytest.mark.parametrize(("lesson", "problem"), list_problems(NumberProblem))
def test_numbers_have_their_solution_and_their_slips(lesson, problem):
    assert str(problem.right_answer) in problem.solution().replace(",", "")
    assert problem.slips
    for value, words in problem.slips:
        assert words in problem.check(value).message


@pytest.mark.parametrize(("lesson", "problem"), list_problems(RecordProblem))
def test_a_record_s_explanation_has_place_for_the_verdict(lesson, problem):
    assert problem.explanation.format(verdict="So it is.").count("So it is.") == 1


@pytest.mark.parametrize(("lesson", "problem"), list_problems(BuildProblem))
def test_functions_have_their_slips_and_their_solution(lesson, problem):
    for name, wrong in problem.build.slips.items():
        verdict = problem.check(wrong)
        assert (verdict.state, verdict.message) == ("wrong", problem.slips[name])
    assert len(set(problem.slips.values())) == len(problem.build.slips)
    arguments = len(inspect.signature(problem.right_answer).parameters)
    assert "stopped with" in problem.check(lambda *given: given[arguments]).message
    assert f"is the function {problem.function_name}" in problem.check(3).message
    source = problem.solution().split("\n", 1)[1].replace("\N{NO-BREAK SPACE}", " ")
    namespace = {"np": np, "kernel": kernel}
    exec(source, namespace)  # the solution can be run as it is shown
    assert problem.check(namespace[problem.function_name]).state == "right"


@pytest.mark.parametrize(("lesson", "problem"), list_problems(BuildProblem))
def test_hidden_inputs_tell_the_mistakes_apart(lesson, problem):
    inputs = problem.build.draw_hidden_arguments()
    functions = {"": problem.right_answer, **problem.build.slips}
    answers = {}
    for name, function in functions.items():
        answers[name] = [call_or_catch_error(function, arguments) for arguments in inputs]
    for name, other in itertools.combinations(functions, 2):
        are_same = map(are_both_errors_or_close_values, answers[name], answers[other])
        assert not all(are_same), (name, other)


# ------------------------------------------------------------------------------------------------------ the reader
def test_a_good_file_is_read(read_exercises):
    q1, q2 = read_exercises(GOOD)
    assert q1.problem.check(0.505).state == "right"
    assert "upside" in q1.problem.check(2).message
    assert q1.problem.hint(2) == "Hint 2 of 2: One by two."
    assert q1.solution().text == "1/2 = 0.5"
    assert q2.problem.title == "Exercise 2"
    assert q2.solution().text == "Run. one"


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
def test_a_wrong_file_is_one_sentence(read_exercises, good, wrong, sentence):
    assert good in GOOD
    with pytest.raises(UsageError, match=sentence.replace("[", r"\[")) as caught:
        read_exercises(GOOD.replace(good, wrong, 1))
    assert "\n" not in str(caught.value)
