"""README and guide: what they name exists, each lesson has its row, and the README's lines run."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import fedlab_nb as fl
from fedlab_nb import cli

README = Path(__file__).parents[1] / "README.md"
GUIDE = README.parent / "notebooks" / "guide"


def test_readme_is_one_page():
    assert len(README.read_text().splitlines()) <= 100


COUNTED_NOUNS = "method|lesson|notebook|lab|data ?set|view|test|paper|table|preset"


def test_no_count_is_typed_by_hand():
    """A count typed by hand goes stale. A number between `<!--n` comments is kept true by a command."""
    text = re.sub(r"<!--n .*?<!--/n-->", "", README.read_text(encoding="utf-8"))
    assert re.findall(rf"\b\d+ (?:other )?(?:{COUNTED_NOUNS})s?\b", text) == []


def test_the_results_are_figures_of_a_declared_study():
    (table,) = re.findall(r"^\| method \|.*?\n\n", README.read_text("utf-8"), re.M | re.S)
    rows = table.strip().splitlines()[2:]
    assert len(rows) >= 5
    for row in rows:
        assert re.fullmatch(
            r"\| [^|]+ \| [^|]+ (\| <!--n sets\.\w+(:fine)?-->[^|]+<!--/n--> ){2}"
            r"\| (<!--n sets\.\w+:bytes-->[^|]+<!--/n-->|–) \|",
            row,
        ), row


@pytest.mark.slow
def test_the_lines_of_python_run_and_give_what_their_comments_say(monkeypatch):
    """It takes seconds: ten clients are trained as in the README; the panel is opened and not run."""
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    panels = []
    open_playground = fl.playground
    monkeypatch.setattr(fl, "playground", lambda: panels.append(open_playground()))
    names = {}
    exec(code, names)
    (panel,) = panels
    panel.close()
    out = names["out"]
    assert 0 < out.accuracy <= 1
    assert sum(up for up, _ in out.ledger.by_phase().values()) == out.bytes_up > 0
    assert out.model.logits(fl.load("digits").x_test[:2]).shape == (2, 10)
    assert {out.method for out in names["outs"]} == {"fedavg", "fens", "fedlpa"}


def test_the_commands_in_the_text_are_commands():
    words = re.findall(r"`fedlab-nb ([^`]+)`", README.read_text("utf-8"))
    assert len(words) >= 2
    for line in words:
        cli.make_command_line_parser().parse_args(shlex.split(line))


@pytest.mark.parametrize("page", [README, *sorted(GUIDE.glob("*.md"))], ids=lambda page: page.stem)
def test_pictures_and_files_exist(page):
    for path in re.findall(r"\]\((?!http|#)([^)\s#]+\.\w+)(?:#[\w-]+)?\)", page.read_text()):
        assert (page.parent / path).is_file(), path


def test_badges_for_every_lesson():
    spec = importlib.util.spec_from_file_location("badges", README.parent / "binder/badges.py")
    badges = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(badges)
    before = README.read_text()
    after = badges.with_badges(before, "someone/course")
    address = (
        r"mybinder\.org/v2/gh/someone/course/HEAD\?urlpath=lab/tree/(notebooks/[\w/]+\.ipynb)\) \|$"
    )
    notebooks = re.findall(address, after, re.MULTILINE)
    assert sorted(notebooks) == sorted(
        path.relative_to(README.parent).as_posix()
        for path in (README.parent / "notebooks").rglob("*.ipynb")
    )
    assert badges.with_badges(after, "someone/course") == after
    assert len(after.splitlines()) == len(before.splitlines())
    assert badges.main([]) == badges.main(["https://github.com/a/b"]) == 2
