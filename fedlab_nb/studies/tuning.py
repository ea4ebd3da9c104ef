"""How the classroom's knobs are chosen: one study for all methods, on validation images.

`declared/tuning.toml` says what is tried, and by which rule one is taken; `declared/tuning-digits.json` is what came
out, made by `python -m fedlab_nb.studies.declared tuning-digits`, and the other files those of other sets.
`choice(method)` reads from them the knobs that the method's defaults have to equal.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
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


def parts(dataset: str = DIGITS) -> dict[str, dict[str, list[Knobs]]]:
    """All parts of the study on that data set, in the order in which they are made: by method, what each try sets. The
    tries of the part "recipe" are the clients' recipe, one for all methods, and a method is only a judge of it."""
    choose("data set of the tuning study", dataset, SETS)
    recipe = declared(NAME)[dataset].get("recipe", {"judges": [], "tries": []})
    return {
        "recipe": dict.fromkeys(recipe["judges"], recipe["tries"]),
        "methods": declared(NAME)[dataset].get("methods", {}),
    }


def given(dataset: str) -> Knobs:
    """Settings of every run on that data set, which no try changes."""
    return declared(NAME)[dataset].get("given", {})


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
    """Every try of every method. Where no skew is, those tries that are clearly better than the first one, and the
    first one."""
    base = {"dataset": validation_set(dataset), "device": "cpu", "clients": grid()["clients"], **given(dataset)}
    table = Tried.of(rows)
    for part, of in parts(dataset).items():
        for method, tries in of.items():
            places = [(part, n, alpha) for n in range(len(tries)) for alpha in grid()["alphas"]]
            if part == "methods" and all((part, method, n, alpha) in table.rows for _, n, alpha in places):
                if better := table.better("methods", method):
                    places += [(GUARD, n, alpha) for n in sorted({0, *better}) for alpha in grid()["guard"]]
            prefix = "" if part == "recipe" else f"{method}."
            for name, n, alpha in places:
                made = {f"{prefix}{knob}": value for knob, value in tries[n].items()}
                asked = Settings.make(**base, alpha=alpha, **made)
                yield Point(name, method, {"try": n, "alpha": alpha}, asked, grid()["seeds"], COLUMNS, tries[n])


# ------------------------------------------------------------------------------------------------ what came out
@dataclass(frozen=True)
class Tried:
    """The table. `rows`: of each try at each alpha its row, with `made`: what it sets; `accuracy` on the validation
    images by seed, 0-1, None for a run that diverged; `bytes` by seed, both ways."""

    rows: Mapping[Key, Row]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Tried":
        return cls({(row["runs"], row["method"], row["at"]["try"], row["at"]["alpha"]): row for row in rows})

    def accuracies(self, part: str, method: str, number: int) -> dict[tuple[float, int], float]:
        """{(alpha, seed): validation accuracy} of one try, 0 where it diverged."""
        of = [(alpha, row) for (*this, alpha), row in self.rows.items() if this == [part, method, number]]
        return {
            (alpha, seed): accuracy or 0.0
            for alpha, row in of
            for seed, accuracy in zip(row["seeds"], row["accuracy"], strict=True)
        }

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
        leads = [self.lead(part, methods, number) for number in range(len(self.tries(part, methods[0])))]
        clear = [n for n, lead in enumerate(leads) if lead.verdict == "clear" and lead.mean > 0]
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


@cache
def load(dataset: str = DIGITS) -> Tried:
    """The table of a data set that came with the package."""
    return Tried.of(read(file_of(dataset))[1])
