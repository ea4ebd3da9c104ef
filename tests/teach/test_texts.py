"""Texts beside the code: every file of the package can be read and filled in; a wrong one ends in one sentence."""

import ast
import importlib
import string
from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb import declared
from fedlab_nb.errors import UsageError
from fedlab_nb.teach.problem import Verdict
from fedlab_nb.teach.texts import Texts

ROOT = Path(fedlab_nb.__file__).parent
FILES = sorted(
    path.relative_to(ROOT)
    for room in ("teach", "labs")
    for path in (ROOT / room).rglob("*.toml")
    if path.name != "lab.toml"
)
GOOD = """
[q1]
question = "What is
a half?"
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

[cards]
row = "x = {x:g}"
rows = ["one", "two = {two}"]
""".replace("What is\na half?", "What is a half?")


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Texts of a lesson that is not the package's."""
    monkeypatch.setattr(declared, "ROOT", tmp_path)
    folder = tmp_path / f"lessons_{tmp_path.name}"  # what is declared is read once: a folder for each test
    folder.mkdir()

    def read(text):
        (folder / "mine.toml").write_text(text, "utf-8")
        return Texts(f"fedlab_nb.{folder.name}.mine")

    return read


def claim(outcomes, **words):
    return Verdict("right", words["clear"])


def exercises(texts):
    return texts.exercises(q2=(claim, list))


# ------------------------------------------------------------------------------------------------------ the package's
def test_every_system_and_every_lesson_of_none_has_texts():
    assert len(FILES) >= 9


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_is_read(path):
    module = importlib.import_module(f"fedlab_nb.{'.'.join(path.with_suffix('').parts)}")
    for name in Texts(module.__name__).tables:
        problem = getattr(module, name).problem
        assert problem.title == f"Exercise {name[1:]}" and problem.hint(2).startswith("Hint ")
        if callable(problem.right_answer):
            assert problem.explanation.format(verdict="So it is.").count("So it is.") == 1
            continue
        assert problem.check(problem.right_answer).state == "right"
        assert str(problem.right_answer) in problem.solution().replace(",", "")
        assert all(words in problem.check(value).message for value, words in problem.slips)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_card_gets_the_values_that_it_shows(path):
    """The code's calls, read without running them: each card is used, with the very values that its text names."""
    cards = Texts(f"fedlab_nb.{'.'.join(path.with_suffix('').parts)}").cards
    used = set()
    for call in ast.walk(ast.parse((ROOT / path).with_suffix(".py").read_text("utf-8"))):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if call.func.attr not in ("card", "line") or getattr(call.func.value, "id", "") != "texts":
            continue
        name = ast.literal_eval(call.args[0])
        used.add(name)
        fields = {field for line in cards[name] for _, field, *_ in string.Formatter().parse(line) if field is not None}
        assert {field.split(".")[0].split("[")[0] for field in fields} == {keyword.arg for keyword in call.keywords}
    assert used == set(cards)


# ------------------------------------------------------------------------------------------------------ the reader
def test_a_good_file(read):
    q1, q2 = exercises(read(GOOD))
    assert q1.problem.check(0.505).state == "right" and "upside" in q1.problem.check(2).message
    assert q1.problem.hint(2) == "Hint 2 of 2: One by two." and q1.solution().text == "1/2 = 0.5"
    assert q2.problem.title == "Exercise 2" and q2.solution().text == "Run. one"


def test_a_line_break_counts_as_a_space(read):
    (q1, _) = exercises(read(GOOD.replace('"What is a half?"', '"""\nWhat is\na half?"""')))
    assert q1.problem.question == "What is a half?"


def test_cards_are_filled_in(read):
    texts = read(GOOD)
    assert texts.line("row", x=0.5) == "x = 0.5" and texts.card("rows", two=2).text == "one\ntwo = 2"


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
        ("[q1]", "q3 = 3\n[q1]", "q3 in the top of .* is 3: write a table"),
        ("[cards]", "[[cards]]", "cards in the top of .* write a table"),
        ("[q2.claim]", "claim = 3\n[x]", r"claim in [q2\] of .* is 3: write a table"),
        ('rows = ["one", "two = {two}"]', "rows = 3", "rows in [cards] of .* is 3: write a list of texts"),
    ],
)
def test_a_wrong_file_is_one_sentence(read, good, wrong, sentence):
    assert good in GOOD
    with pytest.raises(UsageError, match=sentence.replace("[", r"\[")) as caught:
        exercises(read(GOOD.replace(good, wrong, 1)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["x = {y}", "x = {x:q}", "x = {x.gone}", "x = {0}", "x = {"])
def test_a_card_that_asks_for_what_is_not_there_is_one_sentence(read, text):
    texts = read(GOOD.replace("x = {x:g}", text))
    with pytest.raises(UsageError, match=r"'row' in \[cards\] of .* cannot be filled in .* it may use x\."):
        texts.line("row", x=0.5)
