"""A class's leaderboard, from the lines that reports leave beside their pages: `fedlab-nb leaderboard reports`.

One table for each code word, since accuracies on different federations cannot be compared. First submissions alone have
a rank. Two entries share a rank if their difference, paired by seed, is within the noise; of those the one with fewer
bytes stands first. No pickle is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError, demand
from ...plots.words import listed, number, plural, points
from ...study.results import FORM
from ...study.statistics import Band, band, difference
from .report import FORMAT

HEAD = ("rank", "name", "method", "settings", "test accuracy, %", "bytes of a client", "of the budget", "tries")


@dataclass(frozen=True)
class Entry:
    """One report's line, checked. `test`: {seed: accuracy 0–1}."""

    code: str
    name: str
    submission: int
    title: str
    knobs: dict[str, str]
    test: dict[int, float]
    bytes: int
    budget: int
    tries: int

    @property
    def band(self) -> Band:
        return band(self.test)

    @property
    def who(self) -> str:
        return self.name or "(no name)"


def leaderboard(*paths: str | Path, form: str = "text") -> Board:
    """The leaderboard of report files (`.jsonl`), or of folders with some. form: how it prints, as `fl.study` tables.

    UsageError, with file and line, for a line that is no report's; UsageError if there is none at all.
    """
    files = [file for path in paths for file in report_files(Path(path).expanduser())]
    entries = list({entry.__repr__(): entry for file in files for entry in read(file)}.values())  # copies count once
    demand(
        entries,
        f"There is no report in {listed([str(path) for path in paths]) or 'nothing'}; give .jsonl files that "
        "reports saved, or folders that hold such files.",
    )
    return Board(entries, form)


def report_files(path: Path) -> list[Path]:
    """The file itself, or the report files of a folder and of the folders in it."""
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]


def read(file: Path) -> list[Entry]:
    """The entries of a file, one a line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {why_not(error)}; give .jsonl files that reports saved, or folders that hold "
            "such files."
        ) from None
    entries = []
    for place, line in enumerate(lines, 1):
        if line.strip():
            try:
                entries.append(entry(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UsageError(
                    f"Line {place} of {file} is not from a report: {why_not(error)}; give the .jsonl files that "
                    "the reports saved."
                ) from None
    return entries


def why_not(error: Exception) -> object:
    """Why a file or a line cannot be read, in words for a reader."""
    if isinstance(error, json.JSONDecodeError):
        return "it is not JSON"
    return f"no {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error


def entry(row: Any) -> Entry:
    """A line's entry; ValueError, KeyError or TypeError if it is none."""
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise ValueError(f"it does not begin with the format {FORMAT!r}")
    test = {int(seed): float(share) for seed, share in row["test"].items()}
    made = Entry(
        str(row["code"]), str(row["name"]), int(row["submission"]), str(row["title"]),
        {str(name): str(value) for name, value in row["knobs"].items()}, test,
        int(row["bytes"]), int(row["budget"]), int(row["tries"]),
    )  # fmt: skip
    if not test or not all(0 <= share <= 1 for share in test.values()):
        raise ValueError("its test accuracies are not shares from 0 to 1")
    if made.bytes > made.budget or made.submission < 1:
        raise ValueError(f"{made.bytes} bytes of a budget of {made.budget}, submission {made.submission}")
    return made


def ranked(entries: Sequence[Entry]) -> list[list[Entry]]:
    """First submissions of one code word in groups that share a rank, the best one first.

    The most accurate entry leads a group; all that follow it within the noise belong to it.
    """
    groups: list[list[Entry]] = []
    for each in sorted(entries, key=lambda e: (-e.band.mean, e.bytes, e.who)):
        if groups and difference(groups[-1][0].test, each.test).verdict != "clear":
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


class Board:
    """The tables of a class; its text is what the command prints."""

    def __init__(self, entries: Iterable[Entry], form: str = "text") -> None:
        self.entries, self.form = list(entries), form

    def codes(self) -> list[str]:
        return sorted({e.code for e in self.entries})

    def rows(self, code: str) -> list[list[str]]:
        """The rows of one code word: ranks first, then the later submissions without a rank."""
        own = [e for e in self.entries if e.code == code]
        rows, place = [], 1
        for group in ranked([e for e in own if e.submission == 1]):
            rank = f"{place}=" if len(group) > 1 else str(place)
            rows += [self._row(rank, e) for e in sorted(group, key=lambda e: (e.bytes, -e.band.mean, e.who))]
            place += len(group)
        later = sorted((e for e in own if e.submission > 1), key=lambda e: (e.submission, -e.band.mean, e.who))
        return rows + [self._row(f"submission {e.submission}", e) for e in later]

    def ties(self, code: str) -> list[str]:
        """A sentence for each shared rank of a code word."""
        lines, place = [], 1
        for group in ranked([e for e in self.entries if e.code == code and e.submission == 1]):
            if len(group) > 1:
                best, *others = group
                gaps = listed([f"{e.who} {points(difference(e.test, best.test))}" for e in others])
                lines.append(f"Rank {place} is shared: within the noise of {best.who}: {gaps}. Fewer bytes come first.")
            place += len(group)
        return lines

    @staticmethod
    def _row(rank: str, e: Entry) -> list[str]:
        settings = ", ".join(f"{name} = {value}" for name, value in e.knobs.items()) or "as usual"
        share = f"{100 * e.bytes / e.budget:.0f} %"
        return [rank, e.who, e.title, settings, number(e.band, 1), str(e.bytes), share, str(e.tries)]

    def __repr__(self) -> str:
        parts = []
        for code in self.codes():
            own = [e for e in self.entries if e.code == code]
            parts.append(f"{code}: {plural(len(own), 'report')}, budget {own[0].budget} bytes of a client.")
            parts.append(FORM[self.form]([list(HEAD), *self.rows(code)]))
            parts += self.ties(code)
        return "\n\n".join(parts)
