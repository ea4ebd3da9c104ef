"""What was done in a capstone: its record in a file, the one-page report, and a class's leaderboard.

The record lies in the folder of the store, one JSON object a line, so that a new start of the notebook forgets none of
the tries and submissions. A store that cannot be written to costs the memory over restarts alone. A report is Markdown,
a page made of it, and a line for the leaderboard (`fedlab-nb leaderboard reports`). That has one table for each code
word, since accuracies on different federations cannot be compared. First submissions alone have a rank. Two entries
share a rank if their difference, paired by seed, is within the noise; of those the one with fewer bytes stands first.
"""

from __future__ import annotations

import dataclasses
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mistune

from ...data.dataset import digest_of
from ...errors import RunError, UsageError, demand
from ...files import check_replaceable, expand_path, store_folder, write_file
from ...methods import label_of
from ...plots.words import listed, number, plural, points, seeds_of
from ...studies.results import FORM, markdown
from ...studies.statistics import Band, band, difference

FORMAT = "fedlab_nb capstone 1"
STYLE = "body{font:16px/1.5 sans-serif;max-width:52em;margin:2em auto}td,th{border:1px solid #d5d9de;padding:.2em .6em}"
ORDINALS = ("First", "Second", "Third")
GIVE = "give .jsonl files that reports saved, or folders that hold such files"
COLUMNS = (
    "try",
    "method",
    "settings",
    "validation accuracy, %",
    "bytes of a client",
    "within the budget",
)
HEAD = (
    "rank",
    "name",
    "method",
    "settings",
    "test accuracy, %",
    "bytes of a client",
    "of the budget",
    "tries",
)
PAGE = """# Capstone {title}

{r.standing}

## The federation as the server saw it

{facts}

## All tries

Judged on {r.validation_images} validation images. No test image was used for them.

{tries}

## The choice

Try {r.choice}: {r.chosen.title} ({r.chosen.settings}).

> {r.argument}

## The result

- Test accuracy: {accuracy} % (95 % band of Student's t, {seeds}, {r.test_images} test images).
- Bytes of a client, up and down: {r.bytes} of {r.budget} ({share:.0f} % of the budget).
- What leaks: {leaks}.

Made with fedlab_nb {r.version}.
"""


# ---------------------------------------------------------------------------------------------------------- the record
@dataclass(frozen=True)
class Try:
    """One method with its settings, judged on validation images. `knobs`: what was set, as text; `validation`: {seed:
    accuracy 0–1}; `bytes`: up and down of the client that sends and receives most; `leaks`: what leaks."""

    number: int
    method: str
    knobs: dict[str, str]
    validation: dict[int, float]
    bytes: int
    leaks: str = ""

    @property
    def title(self) -> str:
        return label_of(self.method, self.knobs)

    @property
    def settings(self) -> str:
        return said(self.knobs)

    @property
    def band(self) -> Band:
        return band(self.validation)


def said(knobs: Mapping[str, str]) -> str:
    """'rounds = 20, epochs = 10', or 'as usual'."""
    return ", ".join(f"{name} = {value}" for name, value in knobs.items()) or "as usual"


def by_seed(shares: Mapping[str, float]) -> dict[int, float]:
    """What JSON makes of {seed: accuracy}, as it was."""
    return {int(seed): float(share) for seed, share in shares.items()}


@dataclass
class Record:
    """The tries, and the test accuracies of all submissions, of one person and code word; `file`: where they are."""

    file: Path
    tries: list[Try] = field(default_factory=list)
    submissions: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, code: str, name: str) -> Record:
        """The record of a person, with what was done before."""
        record = cls(store_folder() / "capstone" / f"{digest_of(code, name)}.jsonl")
        with suppress(OSError):
            for line in record.file.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):  # a damaged line is left out
                    row = json.loads(line)
                    if "submission" in row:
                        record.submissions.append(row)
                    else:
                        own = {
                            "validation": by_seed(row["validation"]),
                            "number": len(record.tries) + 1,
                        }
                        record.tries.append(Try(**{**row, **own}))
        return record

    def add(self, done: Try | dict[str, Any]) -> None:
        """A try, or a submission."""
        (self.tries if isinstance(done, Try) else self.submissions).append(done)
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with open(self.file, "a", encoding="utf-8") as file:
                row = dataclasses.asdict(done) if isinstance(done, Try) else done
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------------------------------------------------- the report
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

    def markdown(self) -> str:
        """The page as Markdown."""
        rows = [
            [str(t.number), t.title, t.settings, number(t.band, 1), str(t.bytes), within]
            for t, within in ((t, "yes" if t.bytes <= self.budget else "no") for t in self.tries)
        ]
        return PAGE.format(
            r=self,
            title=self.code + (f": {self.name}" if self.name else ""),
            facts="\n".join(f"- {fact}" for fact in self.facts),
            tries=markdown([list(COLUMNS), *rows]),
            accuracy=number(self.band, 1),
            seeds=seeds_of(self.test),
            share=100 * self.bytes / self.budget,
            leaks=self.leaks or "nothing leaves a client",
        )

    def body(self) -> str:
        """The page as HTML, without head and body; what was typed is text, never HTML."""
        return mistune.create_markdown(escape=True, plugins=["table"])(self.markdown())

    def html(self) -> str:
        """The page as a file for any browser; it loads nothing."""
        title = html.escape(f"Capstone {self.code}")
        head = f'<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
        return f'<!doctype html>\n<html lang="en">{head}\n<body>\n{self.body()}\n</body></html>\n'

    def line(self) -> str:
        """What a class's leaderboard reads: one JSON object."""
        same = {
            name: getattr(self, name)
            for name in ("code", "name", "test", "bytes", "budget", "version")
        }
        chosen = {
            "method": self.chosen.method,
            "title": self.chosen.title,
            "knobs": self.chosen.knobs,
        }
        about = {"format": FORMAT, "submission": self.number, "tries": len(self.tries)}
        return json.dumps({**about, **same, **chosen}, ensure_ascii=False)

    def save(self, folder: str | Path = ".", *, force: bool = False) -> Path:
        """Write the report as `.md`, `.html` and `.jsonl` (for the leaderboard); returns the Markdown file. RunError
        where that is no place to write, UsageError where files of somebody else's with these names are there, unless
        `force`."""
        parts = ["capstone", self.code, *([self.name] if self.name else []), str(self.number)]
        name = "_".join(re.sub(r"[^\w-]+", "-", part) for part in parts)
        place = expand_path(folder)
        texts = {"md": self.markdown(), "html": self.html(), "jsonl": self.line() + "\n"}
        files = {ending: place / f"{name}.{ending}" for ending in texts}
        check_replaceable(files.values(), force=force)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for ending, text in texts.items():
                write_file(files[ending], text, force=force)
        except OSError as error:
            why = f"{error.strerror or error}; choose another folder"
            raise RunError(f"The report cannot be written to {place}: {why}.") from None
        return files["md"]

    def __repr__(self) -> str:
        return self.markdown()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, str], dict[str, Any]]:
        return {"text/html": self.body(), "text/plain": repr(self)}, {}


# ----------------------------------------------------------------------------------------------------- the leaderboard
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

    @classmethod
    def of(cls, line: str) -> Entry:
        """A line's entry; ValueError, KeyError, TypeError or AttributeError if it is none."""
        row = json.loads(line)
        if not isinstance(row, dict) or row.get("format") != FORMAT:
            raise ValueError(f"it does not begin with the format {FORMAT!r}")
        test = by_seed(row["test"])
        made = cls(
            **{each.name: row[each.name] for each in dataclasses.fields(cls)} | {"test": test}
        )
        if not test or not all(0 <= share <= 1 for share in test.values()):
            raise ValueError("its test accuracies are not shares from 0 to 1")
        if made.bytes > made.budget or made.submission < 1:
            raise ValueError(
                f"{made.bytes} bytes of a budget of {made.budget}, submission {made.submission}"
            )
        return made

    @property
    def band(self) -> Band:
        return band(self.test)

    @property
    def who(self) -> str:
        return self.name or "(no name)"

    def row(self, rank: str) -> list[str]:
        share = f"{100 * self.bytes / self.budget:.0f} %"
        cells = [self.title, said(self.knobs), number(self.band, 1), self.bytes, share, self.tries]
        return [rank, self.who, *map(str, cells)]


def leaderboard(*paths: str | Path, form: str = "text") -> Board:
    """The leaderboard of report files (`.jsonl`), or of folders with some. form: how it prints, as `fl.study` tables.

    UsageError, with file and line, for a line that is no report's; UsageError if there is none at all.
    """
    places = [expand_path(path) for path in paths]
    files = [
        file
        for path in places
        for file in (sorted(path.rglob("*.jsonl")) if path.is_dir() else [path])
    ]
    entries = list(
        {repr(entry): entry for file in files for entry in read(file)}.values()
    )  # copies count once
    demand(
        entries,
        f"There is no report in {listed([str(path) for path in paths]) or 'nothing'}; {GIVE}.",
    )
    return Board(entries, form)


def read(file: Path) -> list[Entry]:
    """The entries of a file, one a line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {GIVE}."
        ) from None
    entries = []
    for place, line in enumerate(lines, 1):
        try:
            entries += [Entry.of(line)] if line.strip() else []
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = "it is not JSON" if isinstance(error, json.JSONDecodeError) else error
            why = f"no {error}" if isinstance(error, KeyError) else why
            raise UsageError(
                f"Line {place} of {file} is not from a report: {why}; {GIVE}."
            ) from None
    return entries


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


@dataclass(repr=False)
class Board:
    """The tables of a class; its text is what the command prints."""

    entries: list[Entry]
    form: str = "text"

    def codes(self) -> list[str]:
        return sorted({e.code for e in self.entries})

    def places(self, code: str) -> Iterator[tuple[int, list[Entry]]]:
        """(rank, who share it) of a code word's first submissions."""
        place = 1
        for group in ranked([e for e in self.entries if e.code == code and e.submission == 1]):
            yield place, group
            place += len(group)

    def rows(self, code: str) -> list[list[str]]:
        """The rows of one code word: ranks first, then the later submissions without a rank."""
        rows = []
        for place, group in self.places(code):
            rank = f"{place}=" if len(group) > 1 else str(place)
            rows += [
                e.row(rank) for e in sorted(group, key=lambda e: (e.bytes, -e.band.mean, e.who))
            ]
        later = [e for e in self.entries if e.code == code and e.submission > 1]
        later.sort(key=lambda e: (e.submission, -e.band.mean, e.who))
        return rows + [e.row(f"submission {e.submission}") for e in later]

    def ties(self, code: str) -> list[str]:
        """A sentence for each shared rank of a code word."""
        lines = []
        for place, (best, *others) in self.places(code):
            if others:
                gaps = listed([f"{e.who} {points(difference(e.test, best.test))}" for e in others])
                lines.append(
                    f"Rank {place} is shared: within the noise of {best.who}: {gaps}. Fewer bytes come first."
                )
        return lines

    def __repr__(self) -> str:
        parts = []
        for code in self.codes():
            own = [e for e in self.entries if e.code == code]
            parts.append(
                f"{code}: {plural(len(own), 'report')}, budget {own[0].budget} bytes of a client."
            )
            parts.append(FORM[self.form]([list(HEAD), *self.rows(code)]))
            parts += self.ties(code)
        return "\n\n".join(parts)
