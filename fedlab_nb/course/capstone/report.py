"""The one-page report of a capstone, made of blocks that are written as Markdown or as HTML, and a line for a class."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...plots.words import listed, number, seeds_of
from ...study.results import markdown, write
from ...study.statistics import Band, band
from .record import Try

FORMAT = "fedlab_nb capstone 1"
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{border:1px solid #d5d9de;padding:.2em .6em;text-align:left}"
    "blockquote{border-left:4px solid #d5d9de;margin:0;padding:0 1em}"
)
ORDINALS = ("First", "Second", "Third")
Block = tuple[str, Any]  # "h1", "h2", "p", "quote": a text; "list": texts; "table": rows, the first one its head


@dataclass(frozen=True)
class Report:
    """What one submission says. `number`: 1 for the first one; `earlier`: test accuracies of those before it, 0–1;
    `tries`: all of them, `choice` the number of the submitted one; `test`: {seed: accuracy 0–1}; `bytes`, `budget`: of
    the client that sends and receives most, both ways."""

    code: str
    name: str
    number: int
    facts: tuple[str, ...]
    tries: tuple[Try, ...]
    validation_images: int
    choice: int
    argument: str
    test: dict[int, float]
    test_images: int
    bytes: int
    budget: int
    leaks: str
    version: str
    earlier: tuple[float, ...] = ()

    @property
    def band(self) -> Band:
        """The mean test accuracy with its 95 % band of Student's t over the seeds."""
        return band(self.test)

    @property
    def chosen(self) -> Try:
        return self.tries[self.choice - 1]

    @property
    def standing(self) -> str:
        """'First submission', or which one, with what was known before it."""
        named = ORDINALS[self.number - 1] if self.number <= len(ORDINALS) else f"{self.number}th"
        if not self.earlier:
            return f"{named} submission: the test images were opened once, for this report."
        before = listed([f"{100 * share:.1f} %" for share in self.earlier])
        opened = f"the test images had been opened before, with {before}"
        return f"{named} submission: {opened}. Its test accuracy is not a fair measure."

    # ----------------------------------------------------------------------------------------------------- the content
    def blocks(self) -> Iterator[Block]:
        """The page from top to bottom."""
        yield "h1", f"Capstone {self.code}" + (f": {self.name}" if self.name else "")
        yield "p", self.standing
        yield "h2", "The federation as the server saw it"
        yield "list", self.facts
        yield "h2", "All tries"
        yield "p", f"Judged on {self.validation_images} validation images. No test image was used for them."
        yield "table", self.table()
        yield "h2", "The choice"
        yield "p", f"Try {self.choice}: {self.chosen.title} ({self.chosen.settings})."
        yield "quote", self.argument
        yield "h2", "The result"
        yield (
            "list",
            (
                f"Test accuracy: {number(self.band, 1)} % (95 % band of Student's t, {seeds_of(self.test)}, "
                f"{self.test_images} test images).",
                f"Bytes of a client, up and down: {self.bytes} of {self.budget} "
                f"({100 * self.bytes / self.budget:.0f} % of the budget).",
                f"What leaks: {self.leaks or 'nothing leaves a client'}.",
            ),
        )
        yield "p", f"Made with fedlab_nb {self.version}."

    def table(self) -> list[list[str]]:
        """The tries, the first row the names of the columns."""
        head = ["try", "method", "settings", "validation accuracy, %", "bytes of a client", "within the budget"]
        rows = [
            [
                str(t.number),
                t.title,
                t.settings,
                number(t.band, 1),
                str(t.bytes),
                "yes" if t.bytes <= self.budget else "no",
            ]
            for t in self.tries
        ]
        return [head, *rows]

    def markdown(self) -> str:
        """The page as Markdown."""
        forms = {"h1": "# {}", "h2": "## {}", "p": "{}", "quote": "> {}"}
        parts = []
        for kind, content in self.blocks():
            if kind == "list":
                parts.append("\n".join(f"- {text}" for text in content))
            else:
                parts.append(markdown(content) if kind == "table" else forms[kind].format(content))
        return "\n\n".join(parts) + "\n"

    def body(self) -> str:
        """The page as HTML, without head and body."""
        parts = []
        for kind, content in self.blocks():
            if kind == "list":
                parts.append("<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in content) + "</ul>")
            elif kind == "table":
                first, *others = [[html.escape(cell) for cell in row] for row in content]
                cells = ["".join(f"<th>{cell}</th>" for cell in first)]
                cells += ["".join(f"<td>{cell}</td>" for cell in row) for row in others]
                parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
            else:
                tag = "blockquote" if kind == "quote" else kind
                parts.append(f"<{tag}>{html.escape(content)}</{tag}>")
        return "\n".join(parts)

    def html(self) -> str:
        """The page as a file for any browser; it loads nothing."""
        title = html.escape(f"Capstone {self.code}")
        head = f'<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
        return f'<!doctype html>\n<html lang="en">{head}\n<body>\n{self.body()}\n</body></html>\n'

    def line(self) -> str:
        """What a class's leaderboard reads: one JSON object."""
        return json.dumps({
            "format": FORMAT, "code": self.code, "name": self.name, "submission": self.number,
            "method": self.chosen.method, "title": self.chosen.title, "knobs": self.chosen.knobs,
            "test": {str(seed): share for seed, share in self.test.items()}, "bytes": self.bytes,
            "budget": self.budget, "tries": len(self.tries), "version": self.version,
        }, ensure_ascii=False)  # fmt: skip

    # ------------------------------------------------------------------------------------------------- shown and saved
    def save(self, folder: str | Path = ".") -> Path:
        """Write the report as `.md`, `.html` and `.jsonl` (for the leaderboard); returns the Markdown file. RunError
        where that is no place to write."""
        parts = ["capstone", self.code, *([self.name] if self.name else []), str(self.number)]
        stem = "_".join(re.sub(r"[^\w-]+", "-", part) for part in parts)
        place = Path(folder).expanduser()
        try:
            place.mkdir(parents=True, exist_ok=True)
            for ending, text in (("md", self.markdown()), ("html", self.html()), ("jsonl", self.line() + "\n")):
                write(place / f"{stem}.{ending}", text)
        except OSError as error:
            raise RunError(
                f"The report cannot be written to {place}: {error.strerror or error}; choose another folder."
            ) from None
        return place / f"{stem}.md"

    def __repr__(self) -> str:
        return self.markdown()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, str], dict[str, Any]]:
        return {"text/html": self.body(), "text/plain": repr(self)}, {}
