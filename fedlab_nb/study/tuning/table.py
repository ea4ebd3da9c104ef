"""Reading the table of the tuning study, and what it chooses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from ...errors import FedlabError, choose
from ..statistics import Band, difference
from .tries import DIGITS, Knobs, parts

FILE = Path(__file__).parent / "digits.json"
GUARD = "guard"  # the part of the table with the runs at the guard's alphas


def file_of(dataset: str) -> Path:
    """Where the table of a data set stands."""
    return FILE.with_name(f"{dataset.replace(':', '')}.json")


COLUMNS = ("part", "method", "try", "knobs", "alpha", "accuracy", "bytes")
Key = tuple[str, str, int, float]  # part, method, try, alpha


@dataclass(frozen=True)
class Tried:
    """The table. `about`: version, torch, date, command, note, and the study's clients, alphas and seeds.

    `rows`: (part, method, number of the try, alpha) -> `knobs`, `accuracy` on the validation images by seed, 0-1 (0 for
    a try that diverged), and `bytes` of the first seed, both ways.
    """

    about: Mapping[str, Any]
    rows: Mapping[Key, Mapping[str, Any]]

    def accuracies(self, part: str, method: str, number: int) -> dict[tuple[float, int], float]:
        """{(alpha, seed): validation accuracy} of one try."""
        seeds = self.about["seeds"]
        return {
            (alpha, seed): accuracy
            for (p, m, n, alpha), row in self.rows.items()
            if (p, m, n) == (part, method, number)
            for seed, accuracy in zip(seeds, row["accuracy"], strict=True)
        }

    def tries(self, part: str, method: str) -> list[Knobs]:
        """What was tried, in order."""
        knobs = {n: row["knobs"] for (p, m, n, _), row in self.rows.items() if (p, m) == (part, method)}
        return [knobs[n] for n in sorted(knobs)]

    def lead(self, part: str, methods: tuple[str, ...], number: int) -> Band:
        """Try `number` minus the first one, paired by method, alpha and seed."""
        one, first = (
            {(m, *at): value for m in methods for at, value in self.accuracies(part, m, n).items()} for n in (number, 0)
        )
        return difference(one, first)  # type: ignore[arg-type]

    def better(self, part: str, *methods: str) -> list[int]:
        """The tries that are clearly better than the first one, the best one first. `methods`: as in `chosen`."""
        leads = [self.lead(part, methods, number) for number in range(len(self.tries(part, methods[0])))]
        clear = [n for n, lead in enumerate(leads) if lead.verdict == "clear" and lead.mean > 0]
        return sorted(clear, key=lambda number: -leads[number].mean)

    def guarded(self, method: str, number: int) -> bool:
        """Whether a try of `method` is not clearly worse than the first one where there is no skew."""
        if not self.accuracies(GUARD, method, number):
            return True
        lead = self.lead(GUARD, (method,), number)
        return lead.verdict != "clear" or lead.mean > 0

    def chosen(self, part: str, *methods: str) -> int:
        """The try that is taken: of those clearly better than the first one the best that passes the guard; else the
        first one. `methods`: the method, or all judges of a recipe."""
        better = self.better(part, *methods)
        if part == "methods":
            better = [number for number in better if self.guarded(methods[0], number)]
        return better[0] if better else 0

    def mean(self, part: str, method: str, number: int) -> float:
        """Mean validation accuracy of a try over all alphas and seeds."""
        return fmean(self.accuracies(part, method, number).values())


def choice(method: str, part: str = "methods", dataset: str = DIGITS) -> Knobs:
    """The knobs of `method` that the study took; for a part that tries recipes, `method` is "recipe". UsageError for a
    method of which nothing was tried."""
    of = parts(dataset)[choose("part of the tuning study", part, parts(dataset))]
    methods = tuple(of.tries) if of.of_recipe else (choose("method of the tuning study", method, of.tries),)
    table = load(dataset)
    return table.tries(part, methods[0])[table.chosen(part, *methods)]


def read(path: str | Path) -> Tried:
    """The table in `path`; FedlabError if it is missing or not such a table."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in content.pop("rows")]
        if tuple(content["columns"]) != COLUMNS:
            raise ValueError("its columns are another version's")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FedlabError(f"The tuning study in {Path(path).name} cannot be read: {error}.") from None
    return Tried(content, {(r["part"], r["method"], r["try"], r["alpha"]): r for r in rows})


@lru_cache(maxsize=4)
def load(dataset: str = DIGITS) -> Tried:
    """The table of a data set that came with the package."""
    return read(file_of(dataset))
