"""How the classroom's knobs are chosen: one study for all methods, on validation images.

`declared/tuning.toml` says what is tried, and by which rule one is taken; `declared/tuning-digits.json` is what came
out, made by `python -m fedlab_nb.studies.declared tuning-digits`, and the other files those of other sets.
`choice(method)` reads from them the knobs that the method's defaults have to equal.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from ..data import Dataset
from ..data import load as load_data
from ..declared import declared
from ..errors import choose
from ..rng import numpy_rng
from .rows import COLUMNS, Point, Row, read
from .settings import Settings
from .statistics import Band, band

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g", "glyphs:28g")  # the classroom's data sets, each with tries of its own
GUARD = "guard"  # the part of the table with the runs at the guard's alphas
NAME = "studies/declared/tuning.toml"
Knobs = Mapping[str, Any]
Key = tuple[str, str, int, float]  # part, method, try, alpha


def grid() -> dict[str, Any]:
    """`clients`, `alphas`, `guard` (more alphas) and `seeds`, the same for every try of every method."""
    return {name: declared(NAME)[name] for name in ("clients", "alphas", "guard", "seeds")}


def parts(dataset: str = DIGITS) -> dict[str, dict[str, tuple[Knobs, ...]]]:
    """All parts of the study on that data set, in the order in which they are made: by method, what each try sets. The
    tries of the part "recipe" are the clients' recipe, one for all methods, and a method is only a judge of it."""
    choose("data set of the tuning study", dataset, SETS)
    content = declared(NAME) if dataset == DIGITS else declared(NAME)[dataset]
    none: dict[str, Any] = {"judges": [], "methods": [], "tries": []}
    recipe, work = content.get("recipe", none), content.get("equal_work", none)
    return {
        "recipe": dict.fromkeys(recipe["judges"], tuple(recipe["tries"])),
        "methods": {name: tuple(tries) for name, tries in content.get("methods", {}).items()},
        "equal_work": dict.fromkeys(work["methods"], tuple(work["tries"])),
    }


def given(dataset: str) -> Knobs:
    """Settings of every run on that data set, which no try changes."""
    return {} if dataset == DIGITS else declared(NAME)[dataset].get("given", {})


# ------------------------------------------------------------------------------------------------ what is run for it
def validation_set(dataset: str = DIGITS) -> Dataset:
    """A data set with a fifth of its training images as `x_test`, the rest as `x_train`; its test images and the
    labels of its public ones are gone."""
    own = load_data(dataset)
    order = numpy_rng(0, "validation").permutation(len(own.y_train))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    parts: dict[str, Any] = {"x_train": own.x_train[rest], "y_train": own.y_train[rest]}
    parts |= {"x_test": own.x_train[held], "y_test": own.y_train[held], "y_public": None}
    return dataclasses.replace(own, name=f"{dataset}, validation", digest=f"{own.digest}, validation", **parts)


def tuning_points(dataset: str, rows: Sequence[Row]) -> Iterator[Point]:
    """Every try of every method. Where no skew is, those tries that are clearly better than the first one (and the
    first one). Of equal work: with the knobs that were chosen before, but for the local epochs."""
    base = {"dataset": validation_set(dataset), "device": "cpu", "clients": grid()["clients"], **given(dataset)}
    table = tried(rows)
    for part, of in parts(dataset).items():
        for method, tries in of.items():
            places = [(part, n, alpha) for n in range(len(tries)) for alpha in grid()["alphas"]]
            chosen: Knobs = {}
            if part == "methods" and all((part, method, n, alpha) in table.rows for _, n, alpha in places):
                guarded = {n for name, m, n, _ in table.rows if (name, m) == (GUARD, method)}
                if better := {*table.better("methods", method), *guarded}:
                    places += [(GUARD, n, alpha) for n in sorted({0, *better}) for alpha in grid()["guard"]]
            if part == "equal_work" and table.tries("methods", method):
                chosen = dict(table.tries("methods", method)[table.chosen("methods", method)])
                chosen.pop("local_epochs")
            prefix = "" if part == "recipe" else f"{method}."
            for name, n, alpha in places:
                made = {f"{prefix}{knob}": value for knob, value in {**chosen, **tries[n]}.items()}
                asked = Settings.make(**base, alpha=alpha, **made)
                yield Point(name, method, {"try": n, "alpha": alpha}, asked, grid()["seeds"], COLUMNS, tries[n])


# ------------------------------------------------------------------------------------------------ what came out
@dataclass(frozen=True)
class Tried:
    """The table. `about`: version, torch, date, command, note, and the study's clients, alphas and seeds.

    `rows`: (part, method, number of the try, alpha) -> `knobs`, `accuracy` on the validation images by seed, 0-1 (0 for
    a try that diverged), and `bytes` by seed, both ways.
    """

    about: Mapping[str, Any]
    rows: Mapping[Key, Mapping[str, Any]]

    def accuracies(self, part: str, method: str, number: int) -> dict[tuple[float, int], float]:
        """{(alpha, seed): validation accuracy} of one try."""
        return {
            (alpha, seed): accuracy
            for (p, m, n, alpha), row in self.rows.items()
            if (p, m, n) == (part, method, number)
            for seed, accuracy in zip(self.about["seeds"], row["accuracy"], strict=True)
        }

    def tries(self, part: str, method: str) -> list[Knobs]:
        """What was tried, in order."""
        knobs = {n: row["knobs"] for (p, m, n, _), row in self.rows.items() if (p, m) == (part, method)}
        return [knobs[n] for n in sorted(knobs)]

    def lead(self, part: str, methods: tuple[str, ...], number: int) -> Band:
        """Try `number` minus the first one, paired by method, alpha and seed."""
        gaps = []
        for method in methods:
            first = self.accuracies(part, method, 0)
            gaps += [value - first[at] for at, value in self.accuracies(part, method, number).items()]
        return band(gaps)

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
        return next((n for n in better if part != "methods" or self.guarded(methods[0], n)), 0)

    def mean(self, part: str, method: str, number: int) -> float:
        """Mean validation accuracy of a try over all alphas and seeds."""
        return fmean(self.accuracies(part, method, number).values())


def choice(method: str, part: str = "methods", dataset: str = DIGITS) -> Knobs:
    """The knobs of `method` that the study took; for a part that tries recipes, `method` is "recipe". UsageError for a
    method of which nothing was tried."""
    of = parts(dataset)[choose("part of the tuning study", part, parts(dataset))]
    methods = tuple(of) if part == "recipe" else (choose("method of the tuning study", method, of),)
    table = load(dataset)
    return table.tries(part, methods[0])[table.chosen(part, *methods)]


def file_of(dataset: str) -> Path:
    """Where the table of a data set stands."""
    return Path(__file__).parent / "declared" / f"tuning-{dataset.replace(':', '')}.json"


def tried(rows: Sequence[Row], about: Mapping[str, Any] | None = None) -> Tried:
    """Stored rows as a table."""
    of = {}
    for row in rows:
        accuracy = [share or 0.0 for share in row["accuracy"]]
        at = (row["runs"], row["method"], row["at"]["try"], row["at"]["alpha"])
        of[at] = {"knobs": row["made"], "accuracy": accuracy, "bytes": row["bytes"]}
    return Tried({**(about or {}), **grid()}, of)


@cache
def load(dataset: str = DIGITS) -> Tried:
    """The table of a data set that came with the package."""
    about, rows = read(file_of(dataset))
    return tried(rows, about)
