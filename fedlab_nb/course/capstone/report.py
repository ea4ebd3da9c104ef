"""The results of a capstone: the record in a file, the one-page report, and a class's leaderboard.

The record is in the folder of the store, one JSON object a line, so that tries and submissions
outlast a restart of the notebook. If the store cannot be written to, they last until the restart.

A report is a Markdown file, the same as an HTML page, and a line for the leaderboard (`fedlab-nb
leaderboard reports`). The leaderboard has one table for each code word, since accuracies on
different federations cannot be compared. Only first submissions have a rank. Two entries share a
rank if their difference, paired by seed, is within the noise; of these the one with fewer bytes
comes first.
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
from typing import Any, NamedTuple, TypedDict

import mistune

from ...data.dataset import hash_parts_to_short_id
from ...errors import RunError, UsageError
from ...files import check_replaceable, expand_path, find_store_folder, write_file
from ...methods import choose_method_label
from ...plots.words import (
    describe_seeds,
    format_count_and_noun,
    format_difference_in_points,
    format_percent_band,
    join_with_and,
)
from ...studies.statistics import Band, ValuesBySeed, compute_band, difference
from ...studies.text_tables import FORMATS, format_markdown_table
from ..kit.view import Mimebundle

FORMAT = "fedlab_nb capstone 1"
STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:52em;margin:2em auto}td,th{border:1px solid "
    "#d5d9de;padding:.2em .6em}"
)
ValueTextByKnob = dict[str, str]  # {knob: its value as text}
ORDINALS = ("First", "Second", "Third")
WHAT_TO_GIVE = "give .jsonl files that reports saved, or folders that hold such files"
TRY_COLUMNS = (
    "try",
    "method",
    "settings",
    "validation accuracy, %",
    "bytes of a client",
    "within the budget",
)
BOARD_COLUMNS = (
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

{r.submission_order_in_words}

## The federation as the server saw it

{facts}

## All tries

Judged on {r.validation_images} validation images. No test image was used for them.

{tries}

## The choice

Try {r.choice}: {r.chosen_try.method_title} ({r.chosen_try.knobs_in_words}).

> {r.argument}

## The result

- Test accuracy: {accuracy} % (95 % band of Student's t, {seeds}, {r.test_images} test images).
- Bytes of a client, up and down: {r.bytes} of {r.budget} ({share:.0f} % of the budget).
- What leaks: {leaks}.

Made with fedlab_nb {r.version}.
"""


# --------------------------------------------------------------------------------------- the record
@dataclass(frozen=True)
class Try:
    """One method with its settings, judged on validation images.

    knobs:      what was set, as text
    validation: {seed: accuracy 0–1}
    bytes:      up and down of the client that sends and receives most
    leaks:      what leaks, in words
    """

    number: int
    method: str
    knobs: dict[str, str]
    validation: dict[int, float]
    bytes: int
    leaks: str = ""

    @property
    def method_title(self) -> str:
        """The method's name on screens: 'FENS'."""
        return choose_method_label(self.method, self.knobs)

    @property
    def knobs_in_words(self) -> str:
        """'rounds = 20, epochs = 10', or 'as usual'."""
        return format_knobs_as_assignments(self.knobs)

    @property
    def validation_band(self) -> Band:
        """The mean validation accuracy with its 95 % band of Student's t over the seeds."""
        return compute_band(self.validation)


def format_knobs_as_assignments(knobs: Mapping[str, str]) -> str:
    """Format knobs as 'rounds = 20, epochs = 10', or 'as usual'."""
    return ", ".join(f"{name} = {value}" for name, value in knobs.items()) or "as usual"


def parse_accuracies_by_seed(accuracy_by_seed_text: Mapping[str, float]) -> ValuesBySeed:
    """Parse {seed: accuracy} from JSON, which has the seeds as text."""
    return {int(seed): float(share) for seed, share in accuracy_by_seed_text.items()}


class Submission(TypedDict):
    """A line of the record: the number of a submission, its test accuracy 0–1, and the number of
    its try.
    """

    submission: int
    accuracy: float
    choice: int


@dataclass
class CapstoneRecord:
    """The tries and submissions of one person for one code word. `file` keeps them."""

    file: Path
    tries: list[Try] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)

    @classmethod
    def load(cls, code_word: str, person_name: str) -> CapstoneRecord:
        """Load a person's record of a code word, empty if there is none."""
        record = cls(
            find_store_folder()
            / "capstone"
            / f"{hash_parts_to_short_id(code_word, person_name)}.jsonl"
        )
        try:
            lines = record.file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return record
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):  # a damaged line is left out
                record._add_from_json_line(line)
        return record

    def _add_from_json_line(self, line: str) -> None:
        """Add the try or the submission of a line. ValueError, KeyError or TypeError if it is
        neither.
        """
        row = json.loads(line)
        if "submission" in row:
            self.submissions.append(row)
            return
        row["validation"] = parse_accuracies_by_seed(row["validation"])
        row["number"] = len(self.tries) + 1
        self.tries.append(Try(**row))

    def find_try_with_settings(self, method: str, knobs: Mapping[str, str]) -> Try | None:
        """Find the try of a method with these settings; None if there is none."""
        for result in self.tries:
            if result.method == method and result.knobs == knobs:
                return result
        return None

    def add_and_store(self, result: Try | Submission) -> None:
        """Add a try or a submission to the record, and to its file if that can be written."""
        if isinstance(result, Try):
            self.tries.append(result)
            row = dataclasses.asdict(result)
        else:
            self.submissions.append(result)
            row = dict(result)
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with open(self.file, "a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


# --------------------------------------------------------------------------------------- the report
@dataclass(frozen=True)
class Report:
    """The report of one submission.

    number:  of the submission, 1 for the first one
    facts:   what the server sees, one sentence each
    tries:   all tries of the person
    choice:  the number of the submitted try
    test:    {seed: test accuracy 0–1}
    bytes:   up and down of the client that sends and receives most
    budget:  bytes that a client may send and receive
    earlier: test accuracies 0–1 of the submissions before this one
    """

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
    def test_band(self) -> Band:
        """The mean test accuracy with its 95 % band of Student's t over the seeds."""
        return compute_band(self.test)

    @property
    def chosen_try(self) -> Try:
        """The try that was submitted."""
        return self.tries[self.choice - 1]

    @property
    def submission_order_in_words(self) -> str:
        """Which submission this is, and which test accuracies were known before it."""
        if self.number <= len(ORDINALS):
            ordinal = ORDINALS[self.number - 1]
        else:
            ordinal = f"{self.number}th"
        if not self.earlier:
            return f"{ordinal} submission: the test images were opened once, for this report."
        accuracies = join_with_and([f"{100 * share:.1f} %" for share in self.earlier])
        return (
            f"{ordinal} submission: the test images had been opened before, with "
            f"{accuracies}. Its test accuracy is not a fair measure."
        )

    def build_markdown(self) -> str:
        """Build the page as Markdown."""
        rows = [list(TRY_COLUMNS)]
        for result in self.tries:
            is_within_bounds = "yes" if result.bytes <= self.budget else "no"
            accuracy = format_percent_band(result.validation_band, 1, shows_band_of_few_seeds=True)
            rows.append(
                [
                    str(result.number),
                    result.method_title,
                    result.knobs_in_words,
                    accuracy,
                    str(result.bytes),
                    is_within_bounds,
                ]
            )
        title = f"{self.code}: {self.name}" if self.name else self.code
        return PAGE.format(
            r=self,
            title=title,
            facts="\n".join(f"- {fact}" for fact in self.facts),
            tries=format_markdown_table(rows),
            accuracy=format_percent_band(self.test_band, 1, shows_band_of_few_seeds=True),
            seeds=describe_seeds(self.test),
            share=100 * self.bytes / self.budget,
            leaks=self.leaks or "nothing leaves a client",
        )

    def build_body_html(self) -> str:
        """Build the page as HTML, without head and body tags. What a person typed is escaped."""
        return mistune.create_markdown(escape=True, plugins=["table"])(self.build_markdown())

    def build_page_html(self) -> str:
        """Build the page as a file for any browser. It loads nothing from elsewhere."""
        title = html.escape(f"Capstone {self.code}")
        head = f'<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
        return f'<!doctype html>\n<html lang="en">{head}\n<body>\n{self.build_body_html()}\n</body></html>\n'

    def build_leaderboard_json_line(self) -> str:
        """Build the line that a class's leaderboard reads: one JSON object."""
        row = {
            "format": FORMAT,
            "submission": self.number,
            "tries": len(self.tries),
            "code": self.code,
            "name": self.name,
            "test": self.test,
            "bytes": self.bytes,
            "budget": self.budget,
            "version": self.version,
            "method": self.chosen_try.method,
            "title": self.chosen_try.method_title,
            "knobs": self.chosen_try.knobs,
        }
        return json.dumps(row, ensure_ascii=False)

    def save(self, folder: str | Path = ".", *, force: bool = False) -> Path:
        """Write the report as `.md`, `.html` and `.jsonl` (for the leaderboard), and return the
        path of the Markdown file.

        force: replace files of these names even if this package did not write them
        Raises RunError if the folder cannot be written to, UsageError if such files are there.
        """
        parts = ["capstone", self.code, self.name, str(self.number)]
        safe_parts = [re.sub(r"[^\w-]+", "-", part) for part in parts if part]
        stem = "_".join(safe_parts)
        folder = expand_path(folder)
        texts = {
            "md": self.build_markdown(),
            "html": self.build_page_html(),
            "jsonl": self.build_leaderboard_json_line() + "\n",
        }
        files = {ending: folder / f"{stem}.{ending}" for ending in texts}
        check_replaceable(files.values(), force=force)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for ending, text in texts.items():
                write_file(files[ending], text, force=force)
        except OSError as error:
            reason = f"{error.strerror or error}; choose another folder"
            raise RunError(f"The report cannot be written to {folder}: {reason}.") from None
        return files["md"]

    def __repr__(self) -> str:
        return self.build_markdown()

    def _repr_mimebundle_(self, **kwargs: Any) -> Mimebundle:
        return {"text/html": self.build_body_html(), "text/plain": repr(self)}, {}


# ---------------------------------------------------------------------------------- the leaderboard
@dataclass(frozen=True)
class LeaderboardEntry:
    """One report's line after it was checked. test: {seed: accuracy 0–1}"""

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
    def parse_json_line(cls, line: str) -> LeaderboardEntry:
        """Parse a report's line. ValueError, KeyError, TypeError or AttributeError for any other
        line.
        """
        row = json.loads(line)
        if not isinstance(row, dict) or row.get("format") != FORMAT:
            raise ValueError(f"it does not begin with the format {FORMAT!r}")
        test = parse_accuracies_by_seed(row["test"])
        values = {field.name: row[field.name] for field in dataclasses.fields(cls)}
        values["test"] = test
        entry = cls(**values)
        if not entry.test or not all(0 <= share <= 1 for share in entry.test.values()):
            raise ValueError("its test accuracies are not shares from 0 to 1")
        if entry.bytes > entry.budget or entry.submission < 1:
            raise ValueError(
                f"{entry.bytes} bytes of a budget of {entry.budget}, submission {entry.submission}"
            )
        return entry

    @property
    def test_band(self) -> Band:
        """The mean test accuracy with its 95 % band of Student's t over the seeds."""
        return compute_band(self.test)

    @property
    def shown_name(self) -> str:
        """The person's name, or '(no name)'."""
        return self.name or "(no name)"

    def make_leaderboard_row_cells(self, rank_text: str) -> list[str]:
        """Make the entry's cells of BOARD_COLUMNS; rank: its text, such as '2='"""
        return [
            rank_text,
            self.shown_name,
            self.title,
            format_knobs_as_assignments(self.knobs),
            format_percent_band(self.test_band, 1, shows_band_of_few_seeds=True),
            str(self.bytes),
            f"{100 * self.bytes / self.budget:.0f} %",
            str(self.tries),
        ]


def leaderboard(*paths: str | Path, form: str = "text") -> Board:
    """Read the leaderboard from report files (`.jsonl`), or from folders that contain some.

    form: how it is printed, as for the tables of `fl.study`
    Raises UsageError for a line that is not a report's, with file and line, and if there is no report.
    """
    files: list[Path] = []
    for path in paths:
        path = expand_path(path)
        if path.is_dir():
            files += sorted(path.rglob("*.jsonl"))
        else:
            files.append(path)
    entries: dict[str, LeaderboardEntry] = {}  # copies count once
    for file in files:
        for entry in read_leaderboard_entries(file):
            entries[repr(entry)] = entry
    if not entries:
        names = join_with_and([str(path) for path in paths]) or "nothing"
        raise UsageError(f"There is no report in {names}; {WHAT_TO_GIVE}.")
    return Board(list(entries.values()), form)


def read_leaderboard_entries(file: Path) -> list[LeaderboardEntry]:
    """Read the entries of a file, one from each line. UsageError if it cannot be read, or if a line
    is not a report's.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{file} cannot be read: {reason}; {WHAT_TO_GIVE}.") from None
    entries = []
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(LeaderboardEntry.parse_json_line(line))
        except json.JSONDecodeError:
            reason = "it is not JSON"
        except KeyError as error:
            reason = f"no {error}"
        except (ValueError, TypeError, AttributeError) as error:
            reason = str(error)
        else:
            continue
        raise UsageError(
            f"Line {line_number} of {file} is not from a report: {reason}; {WHAT_TO_GIVE}."
        )
    return entries


def group_entries_of_equal_rank(
    first_submissions: Sequence[LeaderboardEntry],
) -> list[list[LeaderboardEntry]]:
    """Sort first submissions of one code word into groups that share a rank, the best one first.

    The most accurate entry leads a group; all that follow it within the noise belong to it.
    """
    groups: list[list[LeaderboardEntry]] = []
    for entry in sorted(
        first_submissions, key=lambda e: (-e.test_band.mean, e.bytes, e.shown_name)
    ):
        if groups:
            leader = groups[-1][0]
            if difference(leader.test, entry.test).verdict != "clear":
                groups[-1].append(entry)
                continue
        groups.append([entry])
    return groups


class RankAndEntries(NamedTuple):
    """A rank, counted from 1, and the entries that share it."""

    rank: int
    entries: list[LeaderboardEntry]


@dataclass(repr=False)
class Board:
    """The tables of a class; its text is what the command prints."""

    entries: list[LeaderboardEntry]
    form: str = "text"

    def list_code_words(self) -> list[str]:
        """List the code words, sorted."""
        return sorted({entry.code for entry in self.entries})

    def iterate_ranks_of_first_submissions(self, code_word: str) -> Iterator[RankAndEntries]:
        """Yield each rank of a code word's first submissions, from 1, with the entries that share
        it.
        """
        first_submissions = [
            entry for entry in self.entries if entry.code == code_word and entry.submission == 1
        ]
        rank = 1
        for group in group_entries_of_equal_rank(first_submissions):
            yield RankAndEntries(rank, group)
            rank += len(group)

    def make_ranked_rows_without_header(self, code_word: str) -> list[list[str]]:
        """Make the rows of one code word: entries with a rank, then later submissions, which have
        none.
        """
        rows = []
        for rank, group in self.iterate_ranks_of_first_submissions(code_word):
            rank_text = f"{rank}=" if len(group) > 1 else str(rank)
            for entry in sorted(group, key=lambda e: (e.bytes, -e.test_band.mean, e.shown_name)):
                rows.append(entry.make_leaderboard_row_cells(rank_text))
        later_submissions = [
            entry for entry in self.entries if entry.code == code_word and entry.submission > 1
        ]
        for entry in sorted(
            later_submissions, key=lambda e: (e.submission, -e.test_band.mean, e.shown_name)
        ):
            rows.append(entry.make_leaderboard_row_cells(f"submission {entry.submission}"))
        return rows

    def describe_shared_ranks(self, code_word: str) -> list[str]:
        """Write a sentence for each shared rank of a code word."""
        sentences = []
        for rank, (leader, *followers) in self.iterate_ranks_of_first_submissions(code_word):
            if not followers:
                continue
            gaps = []
            for entry in followers:
                gap = format_difference_in_points(
                    difference(entry.test, leader.test), shows_band_of_few_seeds=True
                )
                gaps.append(f"{entry.shown_name} {gap}")
            sentences.append(
                f"Rank {rank} is shared: within the noise of {leader.shown_name}: "
                f"{join_with_and(gaps)}. Fewer bytes come first."
            )
        return sentences

    def __repr__(self) -> str:
        parts = []
        for code in self.list_code_words():
            entries = [entry for entry in self.entries if entry.code == code]
            reports = format_count_and_noun(len(entries), "report")
            parts.append(f"{code}: {reports}, budget {entries[0].budget} bytes of a client.")
            parts.append(
                FORMATS[self.form](
                    [list(BOARD_COLUMNS), *self.make_ranked_rows_without_header(code)]
                )
            )
            parts += self.describe_shared_ranks(code)
        return "\n\n".join(parts)
