"""The reference: every public name has an entry, and every example runs and gives what it says."""

import doctest
import operator
import re
import shlex
import sys
from pathlib import Path

import pytest

import fedlab_nb as fl
from fedlab_nb import cli
from fedlab_nb.methods import METHODS
from fedlab_nb.models import MODELS

WEBSITE = Path(__file__).parents[1] / "website"
REFERENCE = sorted((WEBSITE / "reference").glob("*.md"))
PAGES = [*REFERENCE, *sorted((WEBSITE / "howto").glob("*.md"))]
COMMAND_LINE = (WEBSITE / "reference/command_line.md").read_text(encoding="utf-8")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PUBLIC = [name for name in fl.__all__ if not name.startswith("_")]


def list_examples(path):
    """The code of a page's examples, without their results."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    parser = doctest.DocTestParser()
    return "".join(example.source for block in blocks for example in parser.get_examples(block))


def list_entries(path):
    """The names that a page has an entry for."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^\.\. (?:auto|py:)\w+:: fedlab_nb\.(\w+)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_one_entry_and_an_example_on_its_page(name):
    pages = [path for path in REFERENCE if name in list_entries(path)]
    assert len(pages) == 1, f"fl.{name} has entries on {len(pages)} pages of website/reference"
    assert re.search(rf"\bfl\.{name}\b", list_examples(pages[0])), f"{pages[0].name} has no example"


@pytest.fixture
def empty_folder(tmp_path, monkeypatch, forget_names):
    """An empty working folder; methods and networks that an example adds are removed afterwards."""
    monkeypatch.chdir(tmp_path)
    methods = dict(METHODS)
    models = dict(MODELS)
    yield tmp_path
    for registry, entries_before in ((METHODS, methods), (MODELS, models)):
        registry.clear()
        registry.update(entries_before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [p for p in PAGES if ">>>" in p.read_text("utf-8")], ids=lambda p: p.stem
)
# Slow because the examples are real runs; those of pictures ask for all tables with their stored results.
def test_the_examples_of_a_page_run(path, empty_folder):
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, path.name, str(path), 0)
    report = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert result.attempted > 0 and result.failed == 0, "".join(report)


def list_commands(section):
    """The commands of a shell block on the page of the command line; `section` is the block's number."""
    blocks = re.findall(r"```sh\n(.*?)```", COMMAND_LINE, re.DOTALL)
    return [shlex.split(line)[1:] for line in blocks[section].splitlines()]


@pytest.mark.slow
def test_the_commands_that_end_run_as_they_stand(empty_folder, capsys):
    study = re.search(r"```toml\n(.*?)```", COMMAND_LINE, re.DOTALL)[1]
    (empty_folder / "mine.toml").write_text(study)
    rows = [f"{i % 17}.5,{i % 23}.5,{'ill' if i % 17 > 8 else 'well'}" for i in range(90)]
    (empty_folder / "patients.csv").write_text("\n".join(["age,pressure,label", *rows]) + "\n")
    (empty_folder / "reports").mkdir()
    for words in list_commands(0):
        expected = 2 if words[0] == "leaderboard" else 0  # nobody has handed in a report yet
        assert cli.main(words) == expected, (words, capsys.readouterr().err)
    assert {path.name for path in empty_folder.iterdir()} >= {"results", "mine", "playground.html"}


def test_the_page_has_a_line_for_every_command():
    named = {words[0] for block in (0, 1) for words in list_commands(block)}
    parser = cli.make_command_line_parser()
    (group,) = (action for action in parser._actions if action.dest == "command")
    assert set(group.choices) <= named
    for words in list_commands(1):
        parser.parse_args(words)


@pytest.fixture(scope="module")
def tools():
    """The modules beside the site's configuration."""
    sys.path.insert(0, str(WEBSITE))
    import directives
    import docstrings

    yield directives, docstrings
    sys.path.remove(str(WEBSITE))


def test_arguments_become_bullets_and_nothing_else_is_markup(tools):
    _, docstrings = tools
    text = """Draw `x` of *all*, test_.

    name:  a `word`, or
           two
    *more: what remains;   out: a folder
    Returns nothing.

        code = 1

    >>> 1 + 1
    2"""
    lines = docstrings.convert(re.sub(r"^    ", "", text, flags=re.M).split("\n"))
    assert lines == [
        r"Draw ``x`` of \*all\*, test\_.",
        "",
        "- **name**: a ``word``, or",
        "  two",
        r"- **\*more**: what remains",
        "- **out**: a folder",
        "  Returns nothing.",
        "",
        "::",
        "",
        "    code = 1",
        "",
        ">>> 1 + 1",
        "2",
        "",
    ]


def test_a_missing_docstring_gives_no_text(tools):
    _, docstrings = tools
    assert docstrings.convert((operator.attrgetter("x").__doc__ or "").split("\n")) == []
