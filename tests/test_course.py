"""The page for teachers is true: lessons, minutes, plans, commands, and the files of the answer key."""

import re
import shlex

import pytest
from lessons import LESSONS, NOTEBOOKS, SOURCES, import_lesson

from fedlab_nb.cli import make_command_line_parser
from fedlab_nb.course import get_lesson_label
from fedlab_nb.declared import read_toml

COURSE = (NOTEBOOKS / "course.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| \[[^\]]+\]\(([\w/]+)\.ipynb\) \| (\d+) \|.*\]\(instructor/(\w+)\.md\) \|$", re.MULTILINE
)


def read_minutes():
    """{lesson: its minutes} in the table of lessons."""
    return {name: int(count) for name, count, _ in ROW.findall(COURSE)}


def test_every_lesson_has_a_row_with_its_own_page():
    assert sorted(read_minutes()) == sorted(SOURCES)
    assert all(name.split("/")[-1] == page for name, _, page in ROW.findall(COURSE))


@pytest.mark.parametrize("name", list(SOURCES)[1:])
def test_minutes_are_those_of_the_lesson_and_of_the_readme(name):
    stated = int(re.search(r"\*\*Minutes:\*\* (\d+)", SOURCES[name])[1])
    text = (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")
    readme = re.search(rf"^\| \[\w+\]\(notebooks/{name}\.ipynb\) \| (\d+) \|", text, re.MULTILINE)
    assert read_minutes()[name] == stated == int(readme[1])


def test_each_answer_key_is_there_and_none_is_missing():
    rows = dict(re.findall(r"^\| ([\w -]+) \| `fedlab_nb/(\S+\.toml)` \|$", COURSE, re.MULTILINE))
    assert list(rows) == [get_lesson_label(name) for name in LESSONS]
    assert all("q1" in read_toml(file) for file in rows.values())


@pytest.mark.parametrize("name", [name for name in LESSONS if "capstone" not in name])
def test_stated_minutes_follow_from_words_guesses_and_exercises(name):
    """120 words a minute; 1.5 minutes for a guess, 4 for a sum, 9 for a function, 12 for an experiment; to 15 %."""
    stated = re.search(r"\*\*Minutes:\*\* (\d+)", SOURCES[name])
    text = re.sub(r"```.*?```|<!--.*?-->", "", SOURCES[name], flags=re.DOTALL)
    minutes_by_kind = {"NumberProblem": 4, "BuildProblem": 9, "RecordProblem": 12}
    work = 0
    for exercise in re.findall(r"lesson\.(q\d)\.form", SOURCES[name]):
        problem = getattr(import_lesson(name), exercise).problem
        work += minutes_by_kind[type(problem).__name__]
    minutes = len(text.split()) / 120 + 1.5 * SOURCES[name].count("= predict(") + work
    assert minutes == pytest.approx(int(stated[1]), rel=0.15)


def test_the_guest_lecture_adds_up():
    guest = COURSE.split("### A guest lecture")[1].split("### ")[0]
    periods = [
        (int(a), int(b)) for a, b in re.findall(r"^\| (\d+) to (\d+) \|", guest, re.MULTILINE)
    ]
    assert [a for a, _ in periods] == [0, *(b for _, b in periods[:-1])] and periods[-1][1] == 90


def list_commands():
    """Every `fedlab-nb` command of the page, as a list of words."""
    lines = []
    for block in re.findall(r"```sh\n(.*?)```", COURSE, re.DOTALL):
        lines += block.splitlines()
    lines += re.findall(r"`([^`\n]*fedlab-nb [^`\n]*)`", COURSE)
    return [shlex.split(line.partition("fedlab-nb ")[2]) for line in lines if "fedlab-nb " in line]


@pytest.mark.parametrize("words", list_commands(), ids=" ".join)
def test_each_command_of_the_page_can_be_typed(words):
    assert make_command_line_parser().parse_args(words).command == words[0]


def test_each_link_within_the_page_has_its_heading():
    titles = re.findall(r"^#+ (.+)$", COURSE, re.MULTILINE)
    headings = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([\w-]+)\)", COURSE)) <= headings


def test_the_glossary_has_every_term_once_in_order():
    text = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    terms = [row[0].strip() for row in rows]
    assert all(len(row) == 3 for row in rows) and len(terms) == len(set(terms)) > 100
    sort_keys = [term.replace("α (alpha)", "alpha").lower() for term in terms]
    assert sort_keys == sorted(sort_keys)
    terms_without_symbols = {term.partition(" (")[0].lower() for term in terms}
    labels = {get_lesson_label(name) for name in SOURCES}
    introduced = {re.sub(r"\[(.*?)\].*", r"\1", row[2].strip(" |")) for row in rows}
    assert introduced <= labels, introduced - labels
    assert {
        name.lower() for name in re.findall(r"See \*([^*]+)\*", text)
    } <= terms_without_symbols | {"privacy budget"}
