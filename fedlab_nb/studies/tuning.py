"""How the classroom's knobs are chosen: one study for all methods, on validation images.

`declared/tuning.toml` says what is tried, and by which rule one is taken; `declared/tuning-digits.json` is what came
out, made by `python -m fedlab_nb.studies.declared tuning-digits`, and the other files those of other sets.
`choice(method)` reads from them the knobs that the method's defaults have to equal.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..data import Dataset
from ..data import load as load_data
from ..declared import declared
from ..errors import choose
from ..rng import numpy_rng
from .rows import COLUMNS, Point, Row, file_of, read
from .settings import Settings
from .statistics import Band, band

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g", "glyphs:28g")  # the classroom's data sets, each with tries of its own
GUARD = "guard"  # the part of the table with the runs at the guard's alphas
RECIPE = "recipe"  # the part whose tries are the clients' recipe, one for all methods; a method only judges it
STUDY = declared("studies/declared/tuning.toml")  # `clients`, `alphas`, `guard` (more alphas), `seeds`: of every try
Knobs = Mapping[str, Any]


def parts(dataset: str = DIGITS) -> dict[str, dict[str, list[Knobs]]]:
    """All parts of the study on that data set, in the order in which they are made: by method, what each try sets."""
    own = STUDY[choose("data set of the tuning study", dataset, SETS)]
    recipe = own.get(RECIPE, {"judges": [], "tries": []})
    return {RECIPE: dict.fromkeys(recipe["judges"], recipe["tries"]), "methods": own.get("methods", {})}


def validation_set(dataset: str = DIGITS) -> Dataset:
    """A data set with a fifth of its training images as `x_test`, the rest as `x_train`; its test images and the
    labels of its public ones are gone."""
    own = load_data(dataset)
    order = numpy_rng(0, "validation").permutation(len(own.y_train))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    images: dict[str, Any] = {"x_train": own.x_train[rest], "y_train": own.y_train[rest]}
    images |= {"x_test": own.x_train[held], "y_test": own.y_train[held], "y_public": None}
    return dataclasses.replace(own, name=f"{dataset}, validation", digest=f"{own.digest}, validation", **images)


def tuning_points(dataset: str, rows: Sequence[Row]) -> Iterator[Point]:
    """Every try of every method. Where no skew is, those tries that are clearly better than the first one, and the
    first one."""
    base = {"dataset": validation_set(dataset), "device": "cpu", "clients": STUDY["clients"]}
    base |= STUDY[dataset].get("given", {})  # no try changes these
    table = Tried.of(rows)
    for part, of in parts(dataset).items():
        for method, tries in of.items():
            places = [(part, n, alpha) for n in range(len(tries)) for alpha in STUDY["alphas"]]
            if part == "methods" and all((part, method, n, alpha) in table.rows for _, n, alpha in places):
                if better := table.better("methods", method):
                    places += [(GUARD, n, alpha) for n in sorted({0, *better}) for alpha in STUDY["guard"]]
            prefix = "" if part == RECIPE else f"{method}."
            for name, n, alpha in places:
                made = {f"{prefix}{knob}": value for knob, value in tries[n].items()}
                asked = Settings.make(**base, alpha=alpha, **made)
                yield Point(name, method, {"try": n, "alpha": alpha}, asked, STUDY["seeds"], COLUMNS, tries[n])


@dataclass(frozen=True)
class Tried:
    """The table. `rows`: by part, method, try and alpha, with `made`: what the try sets; `accuracy` on the validation
    images by seed, 0-1, None for a run that diverged; `bytes` by seed, both ways."""

    rows: Mapping[tuple[str, str, int, float], Row]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Tried":
        return cls({(row["runs"], row["method"], row["at"]["try"], row["at"]["alpha"]): row for row in rows})

    def accuracies(self, part: str, method: str, number: int) -> dict[tuple[float, int], float]:
        """{(alpha, seed): validation accuracy} of one try, 0 where it diverged."""
        of = [(alpha, row) for (*this, alpha), row in self.rows.items() if this == [part, method, number]]
        runs = ((alpha, *run) for alpha, row in of for run in zip(row["seeds"], row["accuracy"], strict=True))
        return {(alpha, seed): accuracy or 0.0 for alpha, seed, accuracy in runs}

    def tries(self, part: str, method: str) -> list[Knobs]:
        """What was tried, in order."""
        made = {number: row["made"] for (*this, number, _), row in self.rows.items() if this == [part, method]}
        return [made[number] for number in sorted(made)]

    def lead(self, part: str, methods: Sequence[str], number: int) -> Band:
        """Try `number` minus the first one, paired by method, alpha and seed."""
        gaps = []
        for method in methods:
            first = self.accuracies(part, method, 0)
            gaps += [value - first[at] for at, value in self.accuracies(part, method, number).items()]
        return band(gaps)

    def better(self, part: str, *methods: str) -> list[int]:
        """The tries that are clearly better than the first one, the best one first. `methods`: as in `chosen`."""
        leads = {n: self.lead(part, methods, n) for n in range(len(self.tries(part, methods[0])))}
        clear = [n for n, lead in leads.items() if lead.verdict == "clear" and lead.mean > 0]
        return sorted(clear, key=lambda number: -leads[number].mean)

    def chosen(self, part: str, *methods: str) -> int:
        """The try that is taken: of those clearly better than the first one the best that is not clearly worse where
        there is no skew (of methods, as far as it was run there); else the first one. `methods`: the method, or all
        judges of a recipe."""
        for number in self.better(part, *methods):
            guarded = part == "methods" and self.accuracies(GUARD, methods[0], number)
            mild = self.lead(GUARD, methods, number) if guarded else None
            if mild is None or mild.verdict != "clear" or mild.mean > 0:
                return number
        return 0


def choice(method: str, dataset: str = DIGITS) -> Knobs:
    """The knobs of `method` that the study took, or the clients' "recipe". UsageError for a method of which nothing was
    tried."""
    part = RECIPE if method == RECIPE else "methods"
    of = parts(dataset)[part]
    methods = list(of) if part == RECIPE else [choose("method of the tuning study", method, of)]
    table = load(dataset)
    return table.tries(part, methods[0])[table.chosen(part, *methods)]


@cache
def load(dataset: str = DIGITS) -> Tried:
    """The table of a data set that came with the package."""
    return Tried.of(read(file_of("tuning", dataset))[1])
