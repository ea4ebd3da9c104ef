"""Exercises beside the code: every file of the package is read, its texts filled in; a wrong one is one sentence."""

import importlib
from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb import declared
from fedlab_nb.course.kit.build import BuildProblem
from fedlab_nb.course.kit.exercises import exercises
from fedlab_nb.course.kit.problem import Verdict
from fedlab_nb.errors import UsageError

ROOT = Path(fedlab_nb.__file__).parent
FILES = sorted(
    path.relative_to(ROOT)
    for room in ("course",)
    for path in (ROOT / room).rglob("*.toml")
    if path.name not in ("lab.toml", "words.toml", "styles.toml", "reveals.toml")
)
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
    folder = tmp_path / f"lessons_{tmp_path.name}"  # what is declared is read once: a folder for each test
    folder.mkdir()

    def read(text):
        (folder / "mine.toml").write_text(text, "utf-8")
        return exercises(f"fedlab_nb.{folder.name}.mine", q2=(claim, list))

    return read


def claim(outcomes, **words):
    return Verdict("right", words["clear"])


# ------------------------------------------------------------------------------------------------------ the package's
def test_every_system_and_every_lesson_of_none_has_texts():
    assert len(FILES) >= 9


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_is_read(path):
    module = importlib.import_module(f"fedlab_nb.{'.'.join(path.with_suffix('').parts)}")
    for name, table in declared.declared(path.as_posix()).items():
        problem = getattr(module, name).problem
        assert problem.title == f"Exercise {name[1:]}" and problem.hint(2).startswith("Hint ")
        if isinstance(problem, BuildProblem):
            assert problem.check(problem.right_answer).state == "right"
            for wrong, text in problem.slips:
                verdict = problem.check(wrong)
                assert (verdict.state, verdict.message) == ("wrong", text)
            continue
        if callable(problem.right_answer):
            assert problem.explanation.format(verdict="So it is.").count("So it is.") == 1
            if "claim" in table:
                filled = table["claim"]["right"].format(clear="<here>", other="<there>")
                assert "<here>" in filled and "<there>" in filled
            continue
        assert problem.check(problem.right_answer).state == "right"
        assert str(problem.right_answer) in problem.solution().replace(",", "")
        assert all(words in problem.check(value).message for value, words in problem.slips)


# ------------------------------------------------------------------------------------------------------ the reader
def test_a_good_file(read):
    q1, q2 = read(GOOD)
    assert q1.problem.check(0.505).state == "right" and "upside" in q1.problem.check(2).message
    assert q1.problem.hint(2) == "Hint 2 of 2: One by two." and q1.solution().text == "1/2 = 0.5"
    assert q2.problem.title == "Exercise 2" and q2.solution().text == "Run. one"


def test_a_line_break_counts_as_a_space(read):
    q1, _ = read(GOOD.replace('"What is a half?"', '"""\nWhat is\na half?"""'))
    assert q1.problem.question == "What is a half?"


@pytest.mark.parametrize(
    ("good", "wrong", "sentence"),
    [
        ("[q1]", "[q1", "lessons_.*/mine.toml is not valid TOML"),
        ("tolerance = 0.01", "", "[q1] of lessons_.*/mine.toml has no tolerance: add it, a number"),
        ("hints", "hint", "'hint': did you mean 'hints'"),
        ("tolerance = 0.01", "tolerance = 0.01\ntolerence = 1", "'tolerence': did you mean 'tolerance'"),
        ("answer = 0.5", "answer = true", "answer in .* is True: write a number"),
        ("answer = 0.5", 'answer = "half"', "answer in .* is 'half': write a number"),
        ('["Divide.", "One by two."]', '"Divide."', "hints in .* write a list of texts"),
        ('["Divide.", "One by two."]', "[]", "hints in .* write a list of texts"),
        ('[[2, "upside down."]]', '[["upside down.", 2]]', "slips in .* write a list of pairs"),
        ('clear = "one"', "", "[q2.claim] of .* has no clear"),
        ('both = "both"', 'both = "both"\nneither = "x"', "Unknown field in [q2.claim] .*'neither'"),
        ("[q1]", "q3 = 3\n[q1]", "q3 in lessons_.* is 3: write a table"),
        ("[q2.claim]", "claim = 3\n[x]", r"claim in [q2\] of .* is 3: write a table"),
    ],
)
def test_a_wrong_file_is_one_sentence(read, good, wrong, sentence):
    assert good in GOOD
    with pytest.raises(UsageError, match=sentence.replace("[", r"\[")) as caught:
        read(GOOD.replace(good, wrong, 1))
    assert "\n" not in str(caught.value)
