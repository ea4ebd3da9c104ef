"""The course's one table of symbols: `notation.md` beside this file; notebooks/notation.md is the same text."""

from pathlib import Path

from IPython.display import Markdown


def notation() -> Markdown:
    """Every symbol of lessons, panels and docstrings: its meaning, its shape or range, and the papers' own letters."""
    return Markdown(Path(__file__).with_suffix(".md").read_text(encoding="utf-8"))
