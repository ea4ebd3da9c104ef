"""README and guide: files that they name are there, and each lesson has its row."""

import importlib.util
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
GUIDE = README.parent / "notebooks" / "guide"


def test_readme_is_one_page():
    assert len(README.read_text().splitlines()) <= 100


COUNTED = "method|lesson|notebook|lab|data ?set|view|test|paper|table|preset"


def test_no_count_is_typed_by_hand():
    """A number of things that grow goes stale. What a command keeps true stands in comments."""
    text = re.sub(r"<!--n .*?<!--/n-->", "", README.read_text(encoding="utf-8"))
    assert re.findall(rf"\b\d+ (?:other )?(?:{COUNTED})s?\b", text) == []


def test_the_results_are_figures_of_a_declared_study():
    (table,) = re.findall(r"^\| method \|.*?\n\n", README.read_text("utf-8"), re.M | re.S)
    rows = table.strip().splitlines()[2:]
    assert len(rows) >= 5
    for row in rows:
        assert re.fullmatch(
            r"\| [^|]+ \| [^|]+ (\| <!--n sets\.\w+-->[^|]+<!--/n--> ){2}\|", row
        ), row


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
