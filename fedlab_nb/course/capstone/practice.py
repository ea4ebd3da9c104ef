"""The practice word HARBOUR, played to its end: the tries of lesson 6, and two reports, a good and
a weak one.

    python -m fedlab_nb.course.capstone.practice    # play it, write practice.json and the reports' page

`practice.json` keeps the results. `figures.toml` names its numbers for the texts. The same command
writes the two reports into the teachers' page, so that no number is typed by hand.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from ...files import write_file
from ...plots.words import format_percent_band
from ...studies.statistics import ValuesBySeed, difference
from ...value_types import JsonObject
from .desk import Case
from .form import FIRST
from .report import Report, Try, parse_accuracies_by_seed

CODE = "HARBOUR"
STORED = Path(__file__).with_name("practice.json")
PAGE = Path(__file__).parents[3] / "notebooks" / "instructor" / "6_reports.md"

Plan = Sequence[tuple[str, Mapping[str, Any]]]
# {"Lesson", "Ada" or "Bo": {"tries": fields of `Try`} and, of Ada and Bo, all other fields of `Report`}
PracticeByAuthor = dict[str, JsonObject]
ADA: Plan = (
    ("ensemble", {}),
    ("fens", {}),
    ("distilled", {}),
    ("gauss", {}),
    ("afl", {}),
    ("fens", {"bits": 4}),
    ("distilled", {"per_class": 6}),
    ("gauss", {"head": "lda"}),
    ("afl", {"features": "relu"}),
    ("afl", {"features": "relu", "secure": True}),
    ("gauss", {"shrinkage": 0.3}),
    ("afl", {"secure": True}),
)
BO: Plan = tuple(
    (name, {})
    for name in (
        "local", "fedavg", "ensemble", "fens", "distilled", "afl", "gauss", "fedlpa", "regmean", "fisher_merge",
        "fedov", "fedpft", "feddf", "fedavg_multi",
    )
)  # fmt: skip
PLANS = {"Lesson": tuple((name, {}) for name in FIRST), "Ada": ADA, "Bo": BO}
CHOICES = {"Ada": 11, "Bo": 7}
# {share[4]}, {band[4]}: validation accuracy of try 4 with its band, in per cent; {ahead[4, 8]}: points from try 8 to
# try 4; {size[8]}: kB of a client in try 8, {budget[2]}: those of try 2 in per cent of the budget.
ARGUMENTS = {
    "Ada": (
        "Most clients hold two or three classes, and client I has 10 samples. So I expected the mean of probabilities "
        "to fail (try 1: {share[1]} %), and sums not to suffer (try 5: {share[5]} %). Is it enough to learn whom to "
        "trust? No: FENS (2) takes {budget[2]} % of the budget for {share[2]} %, and 4 bits (6) save bytes without "
        "changing that. Do images do it? More of them help (3, 7), but they reach {share[7]} %. Which sums, then? A "
        "covariance for each class (4) is clearly ahead of AFL (5), by {ahead[4, 5]} points, and of one covariance for "
        "all (8), by {ahead[4, 8]}. Random features (9) are within the noise of AFL, for {times} times its bytes. Less "
        "shrinkage (11) is ahead of the usual value on every seed, clearly, by "
        "{ahead[11, 4]} points, at the same bytes: so I chose it. With a tenth of the budget I would take try 8 "
        "({size[8]} kB, {share[8]} %). A larger budget would change nothing, because bytes are not what FENS lacks. My "
        "choice harms client I: of a class with one sample that sample's features are sent. Masks (12) would hide "
        "them, for {ahead[11, 12]} points; I would ask client I to leave out such classes. The band of try 11 is "
        "± {band[11]} points, and it is the best of twelve tries: so I expect a test accuracy some points below "
        "{share[11]} %."
    ),
    "Bo": "I tried fourteen methods. Gaussian heads had the highest accuracy, so I took them.",
}


# ------------------------------------------------------------------------------------------------------ playing it
def run_practice_cases() -> PracticeByAuthor:
    """Run the tries of all authors, and submit Ada's and Bo's choices.

    It uses the present store, which should be empty, so that no earlier try or submission counts.
    """
    practice_by_author: PracticeByAuthor = {}
    for author, plan in PLANS.items():
        case = Case(CODE, name=author)
        for method, settings in plan:
            case.trial(method, **settings)
            result = case.record.tries[-1]
            share = format_percent_band(result.validation_band)
            print(
                f"{author} {result.number}: {result.method_title} ({result.knobs_in_words}) "
                f"{share} %",
                flush=True,
            )
        if author == "Lesson":
            practice_by_author[author] = {"tries": [asdict(result) for result in case.record.tries]}
        else:
            report = case.submit(
                CHOICES[author],
                make_practice_argument_text(author, case.record.tries, case.budget_in_bytes),
            )
            practice_by_author[author] = asdict(report)
    return practice_by_author


def make_practice_argument_text(author: str, tries: Sequence[Try], budget_bytes: int) -> str:
    """Write the argument of a report with the numbers of these tries. ValueError if they do not
    support it.
    """
    if author != "Ada":
        return ARGUMENTS[author]
    by_number = {result.number: result for result in tries}
    raise_unless_tries_support_argument_of_ada(by_number, budget_bytes)
    numbers: dict[str, dict] = {"share": {}, "band": {}, "size": {}, "budget": {}}
    for number, result in by_number.items():
        numbers["share"][number] = f"{100 * result.validation_band.mean:.0f}"
        numbers["band"][number] = f"{100 * result.validation_band.half_width:.0f}"
        numbers["size"][number] = f"{result.bytes / 1000:.0f}"
        numbers["budget"][number] = f"{100 * result.bytes / budget_bytes:.0f}"
    pairs = ((4, 5), (4, 8), (11, 4), (11, 12))
    leads = {
        f"{a}, {b}": format_accuracy_gap_in_whole_points(by_number[a], by_number[b])
        for a, b in pairs
    }
    byte_ratio = f"{by_number[9].bytes / by_number[5].bytes:.0f}"
    return ARGUMENTS[author].format(**numbers, ahead=leads, times=byte_ratio)


def format_accuracy_gap_in_whole_points(minuend_try: Try, subtrahend_try: Try) -> str:
    """Format by how many whole points the validation accuracy of one try is higher than the
    other's.
    """
    return f"{100 * (minuend_try.validation_band.mean - subtrahend_try.validation_band.mean):.0f}"


def raise_unless_tries_support_argument_of_ada(
    adas_tries_by_number: Mapping[int, Try], budget_bytes: int
) -> None:
    """Raise ValueError if the tries do not support each of Ada's reasons."""

    def is_ahead_on_every_seed(better: int, other: int) -> bool:
        better_accuracies = adas_tries_by_number[better].validation
        other_accuracies = adas_tries_by_number[other].validation
        return all(better_accuracies[seed] > other_accuracies[seed] for seed in better_accuracies)

    def is_within_noise(one: int, other: int) -> bool:
        return (
            difference(
                adas_tries_by_number[one].validation, adas_tries_by_number[other].validation
            ).verdict
            != "clear"
        )

    best = max(adas_tries_by_number.values(), key=lambda result: result.validation_band.mean)
    reasons = {
        "4 bits change nothing": abs(
            adas_tries_by_number[6].validation_band.mean
            - adas_tries_by_number[2].validation_band.mean
        )
        < 0.02,
        "more images help": adas_tries_by_number[7].validation_band.mean
        > adas_tries_by_number[3].validation_band.mean,
        "images stay behind sums": adas_tries_by_number[7].validation_band.mean
        < adas_tries_by_number[5].validation_band.mean,
        "try 4 is clearly ahead of try 5": not is_within_noise(4, 5),
        "try 4 is clearly ahead of try 8": not is_within_noise(4, 8),
        "random features are within the noise of AFL": is_within_noise(9, 5),
        "try 11 is ahead of try 4 on every seed": is_ahead_on_every_seed(11, 4),
        "try 11 is clearly ahead of try 4": not is_within_noise(11, 4),
        "try 11 costs as much as try 4": adas_tries_by_number[11].bytes
        == adas_tries_by_number[4].bytes,
        "try 11 has the highest number": best.number == 11,
        "try 8 costs less than a tenth of the budget": adas_tries_by_number[8].bytes
        < budget_bytes / 10,
        "try 10 is over the budget": adas_tries_by_number[10].bytes > budget_bytes,
    }
    unsupported_reasons = [reason for reason, holds in reasons.items() if not holds]
    if unsupported_reasons:
        raise ValueError(
            f"Ada's argument does not hold any more: {'; '.join(unsupported_reasons)}. Write "
            "another one."
        )


# ------------------------------------------------------------------------------------------------------ what is stored
@cache
def load_stored_practice() -> PracticeByAuthor:
    """Load the stored result of `run_practice_cases`."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def load_practice_tries(author: str) -> list[Try]:
    """Load the tries of "Lesson", "Ada" or "Bo"."""
    tries = []
    for row in load_stored_practice()[author]["tries"]:
        tries.append(Try(**{**row, "validation": parse_accuracies_by_seed(row["validation"])}))
    return tries


def load_practice_report(author: str) -> Report:
    """Load the report of "Ada" or "Bo"."""
    fields = dict(load_stored_practice()[author])
    fields["tries"] = tuple(load_practice_tries(author))
    fields["facts"] = tuple(fields["facts"])
    fields["test"] = parse_accuracies_by_seed(fields["test"])
    return Report(**{**fields, "earlier": tuple(fields["earlier"])})


def load_validation_accuracies_of_try(author: str, try_number_from_1: int) -> ValuesBySeed:
    """Load {seed: validation accuracy, 0-1} of a try."""
    return load_practice_tries(author)[try_number_from_1 - 1].validation


def load_accuracy_lead_by_seed(
    author: str, try_number_from_1: int, other_try_number_from_1: int
) -> ValuesBySeed:
    """Load {seed: how much higher the validation accuracy of a try is than another's, 0-1}."""
    accuracies = load_validation_accuracies_of_try(author, try_number_from_1)
    other_accuracies = load_validation_accuracies_of_try(author, other_try_number_from_1)
    return {seed: accuracies[seed] - other_accuracies[seed] for seed in accuracies}


def load_client_bytes_of_try(author: str, try_number_from_1: int) -> float:
    """Load the bytes of a client, up and down, in a try."""
    return load_practice_tries(author)[try_number_from_1 - 1].bytes


# ------------------------------------------------------------------------------------------------------ the page
def replace_practice_reports_in_page(page_markdown: str) -> str:
    """Put both stored reports into the teachers' page, with headings two levels lower. ValueError
    if the page has no place for one.
    """
    for author in CHOICES:
        body = re.sub(
            r"^#", "###", load_practice_report(author).build_markdown(), flags=re.MULTILINE
        )
        pattern = re.compile(
            rf"^### Capstone {CODE}: {author}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL
        )
        if not pattern.search(page_markdown):
            raise ValueError(f"The page has no place for the report of {author}.")
        page_markdown = pattern.sub(lambda _, body=body: f"{body.strip()}\n\n", page_markdown)
    return page_markdown.rstrip() + "\n"


def main() -> None:
    """Play the practice word, and write the results and the page."""
    with tempfile.TemporaryDirectory() as store:
        os.environ["FEDLAB_NB_STORE"] = store
        practice_by_author = run_practice_cases()
    write_file(
        STORED, json.dumps(practice_by_author, indent=1, ensure_ascii=False) + "\n", force=True
    )
    load_stored_practice.cache_clear()
    write_file(PAGE, replace_practice_reports_in_page(PAGE.read_text(encoding="utf-8")), force=True)
    print(f"written: {STORED.name}, {PAGE.name}")


if __name__ == "__main__":
    main()
