"""The practice word HARBOUR, played to its end: the tries of lesson 6, and two reports, a good and a weak one.

    python -m fedlab_nb.course.capstone.practice    # play it, write practice.json and the reports' page

`practice.json` keeps what came out. `figures.toml` names its numbers for the texts, and the teachers' page with the two
reports is filled in by the same command: no number of it is typed.
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
from ...plots.words import format_share
from ...studies.statistics import difference
from .desk import Case
from .form import FIRST
from .report import Report, Try, parse_accuracies

CODE = "HARBOUR"
STORED = Path(__file__).with_name("practice.json")
PAGE = Path(__file__).parents[3] / "notebooks" / "instructor" / "6_reports.md"

Plan = Sequence[tuple[str, Mapping[str, Any]]]
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
def play() -> dict[str, Any]:
    """{who: their tries and, of a report, its fields}, in the store that is set; an empty one, so that nothing is
    remembered of an earlier time."""
    played = {}
    for who, plan in PLANS.items():
        case = Case(CODE, name=who)
        for method, settings in plan:
            case.trial(method, **settings)
            result = case.record.tries[-1]
            share = format_share(result.band)
            print(
                f"{who} {result.number}: {result.title} ({result.settings}) {share} %", flush=True
            )
        if who == "Lesson":
            played[who] = {"tries": [asdict(result) for result in case.record.tries]}
        else:
            report = case.submit(CHOICES[who], write_argument(who, case.record.tries, case.budget))
            played[who] = asdict(report)
    return played


def write_argument(who: str, tries: Sequence[Try], budget: int) -> str:
    """The argument of a report with the numbers of these tries. ValueError where they do not support it."""
    if who != "Ada":
        return ARGUMENTS[who]
    by_number = {result.number: result for result in tries}
    check_argument(by_number, budget)
    numbers: dict[str, dict] = {"share": {}, "band": {}, "size": {}, "budget": {}}
    for number, result in by_number.items():
        numbers["share"][number] = f"{100 * result.band.mean:.0f}"
        numbers["band"][number] = f"{100 * result.band.half_width:.0f}"
        numbers["size"][number] = f"{result.bytes / 1000:.0f}"
        numbers["budget"][number] = f"{100 * result.bytes / budget:.0f}"
    pairs = ((4, 5), (4, 8), (11, 4), (11, 12))
    ahead = {f"{a}, {b}": count_points(by_number[a], by_number[b]) for a, b in pairs}
    times = f"{by_number[9].bytes / by_number[5].bytes:.0f}"
    return ARGUMENTS[who].format(**numbers, ahead=ahead, times=times)


def count_points(better: Try, other: Try) -> str:
    """The difference of two tries in whole points."""
    return f"{100 * (better.band.mean - other.band.mean):.0f}"


def check_argument(tries: Mapping[int, Try], budget: int) -> None:
    """ValueError where Ada's reasons are not what the tries say."""

    def is_ahead_on_every_seed(better: int, other: int) -> bool:
        ours = tries[better].validation
        theirs = tries[other].validation
        return all(ours[seed] > theirs[seed] for seed in ours)

    def is_within_noise(one: int, other: int) -> bool:
        return difference(tries[one].validation, tries[other].validation).verdict != "clear"

    best = max(tries.values(), key=lambda result: result.band.mean)
    reasons = {
        "4 bits change nothing": abs(tries[6].band.mean - tries[2].band.mean) < 0.02,
        "more images help": tries[7].band.mean > tries[3].band.mean,
        "images stay behind sums": tries[7].band.mean < tries[5].band.mean,
        "try 4 is clearly ahead of try 5": not is_within_noise(4, 5),
        "try 4 is clearly ahead of try 8": not is_within_noise(4, 8),
        "random features are within the noise of AFL": is_within_noise(9, 5),
        "try 11 is ahead of try 4 on every seed": is_ahead_on_every_seed(11, 4),
        "try 11 is clearly ahead of try 4": not is_within_noise(11, 4),
        "try 11 costs as much as try 4": tries[11].bytes == tries[4].bytes,
        "try 11 has the highest number": best.number == 11,
        "try 8 costs less than a tenth of the budget": tries[8].bytes < budget / 10,
        "try 10 is over the budget": tries[10].bytes > budget,
    }
    wrong = [reason for reason, holds in reasons.items() if not holds]
    if wrong:
        raise ValueError(
            f"Ada's argument does not hold any more: {'; '.join(wrong)}. Write another one."
        )


# ------------------------------------------------------------------------------------------------------ what is stored
@cache
def load_practice() -> dict[str, Any]:
    """What the last playing gave."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def read_tries(who: str) -> list[Try]:
    """The tries of "Lesson", "Ada" or "Bo"."""
    tries = []
    for row in load_practice()[who]["tries"]:
        tries.append(Try(**{**row, "validation": parse_accuracies(row["validation"])}))
    return tries


def read_report(who: str) -> Report:
    """The report of "Ada" or "Bo"."""
    fields = dict(load_practice()[who])
    fields["tries"] = tuple(read_tries(who))
    fields["facts"] = tuple(fields["facts"])
    fields["test"] = parse_accuracies(fields["test"])
    return Report(**{**fields, "earlier": tuple(fields["earlier"])})


def read_try(who: str, number: int) -> dict[int, float]:
    """{seed: validation accuracy, 0-1} of a try."""
    return read_tries(who)[number - 1].validation


def read_lead(who: str, better: int, other: int) -> dict[int, float]:
    """{seed: how much higher the validation accuracy of a try is than another's, 0-1}."""
    ours = read_try(who, better)
    theirs = read_try(who, other)
    return {seed: ours[seed] - theirs[seed] for seed in ours}


def read_bytes(who: str, number: int) -> float:
    """The bytes of a client in a try."""
    return read_tries(who)[number - 1].bytes


# ------------------------------------------------------------------------------------------------------ the page
def fill_in_reports(page: str) -> str:
    """The page for teachers with both reports as they are stored, two levels of headings down."""
    for who in CHOICES:
        body = re.sub(r"^#", "###", read_report(who).markdown(), flags=re.MULTILINE)
        pattern = re.compile(
            rf"^### Capstone {CODE}: {who}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL
        )
        if not pattern.search(page):
            raise ValueError(f"The page has no place for the report of {who}.")
        page = pattern.sub(lambda _, body=body: f"{body.strip()}\n\n", page)
    return page.rstrip() + "\n"


def main() -> None:
    """Play it, and write what came out."""
    with tempfile.TemporaryDirectory() as store:
        os.environ["FEDLAB_NB_STORE"] = store
        played = play()
    write_file(STORED, json.dumps(played, indent=1, ensure_ascii=False) + "\n", force=True)
    load_practice.cache_clear()
    write_file(PAGE, fill_in_reports(PAGE.read_text(encoding="utf-8")), force=True)
    print(f"written: {STORED.name}, {PAGE.name}")


if __name__ == "__main__":
    main()
