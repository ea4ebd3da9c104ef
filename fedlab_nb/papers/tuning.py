"""How the classroom's knobs are chosen: one study for all methods, on validation images.

`declared/tuning.toml` says what is tried, and by which rule one is taken. What came out is
`studies/stored/tuning-digits.json`, made by `python -m fedlab_nb.papers.declared tuning-digits`, and a file for each
other set.
`choice(method)` reads from them the knobs that the method's defaults have to equal.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from ..data import Dataset
from ..data import load as load_data
from ..declared import declared
from ..errors import choose
from ..rng import numpy_rng
from ..studies.settings import Settings
from ..studies.statistics import Band, band
from ..studies.stored_rows import Row, find_file, read_rows
from .points import COLUMNS, Point

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g", "glyphs:28g")  # the classroom's data sets, each with tries of its own
RECIPE = "recipe"  # the part whose tries are the clients' recipe, one for all methods; a method only judges it
STUDY = declared(
    "papers/declared/tuning.toml"
)  # `clients`, `alphas`, `guard` (more alphas), `seeds`: of every try
Knobs = Mapping[str, Any]


def parts(dataset: str = DIGITS) -> dict[str, dict[str, list[Knobs]]]:
    """All parts of the study on that data set, in the order in which they are made: by method, what each try sets. They
    are the recipe, the "methods", and options that are not a method's usual form, each a part by itself."""
    own = STUDY[choose("data set of the tuning study", dataset, SETS)]
    recipe = own.get(RECIPE, {"judges": [], "tries": []})
    return {RECIPE: dict.fromkeys(recipe["judges"], recipe["tries"])} | own.get("parts", {})


def validation_set(dataset: str = DIGITS) -> Dataset:
    """A data set with a fifth of its training images as `x_test`, the rest as `x_train`; its test images and the
    labels of its public ones are gone."""
    own = load_data(dataset)
    order = numpy_rng(0, "validation").permutation(len(own.y_train))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    images: dict[str, Any] = {"x_train": own.x_train[rest], "y_train": own.y_train[rest]}
    images |= {"x_test": own.x_train[held], "y_test": own.y_train[held], "y_public": None}
    return dataclasses.replace(
        own, name=f"{dataset}, validation", digest=f"{own.digest}, validation", **images
    )


def tuning_points(dataset: str, rows: Sequence[Row]) -> Iterator[Point]:
    """Every try of every method. Where no skew is, those tries that are clearly better than the first one, and the
    first one."""
    base = {"dataset": validation_set(dataset), "device": "cpu", "clients": STUDY["clients"]}
    base |= STUDY[dataset].get("given", {})  # no try changes these
    for part, of in parts(dataset).items():
        forms = STUDY[dataset].get("forms", {}).get(part, [{}])
        for method, tries in of.items():
            places = [
                {"try": n, "alpha": alpha} for n in range(len(tries)) for alpha in STUDY["alphas"]
            ]
            made = [r["at"] for r in rows if (r["runs"], r["method"]) == (part, method)]
            if all({**at, **form} in made for at in places for form in forms):
                ahead = better(rows, part, [method]) if part != RECIPE else []
                places += [
                    {"try": n, "alpha": a}
                    for n in sorted({0, *ahead})
                    for a in STUDY["guard"]
                    if ahead
                ]
            prefix = "" if part == RECIPE else f"{method}."
            for at, form in product(places, forms):
                knobs = tries[at["try"]]
                asked = {f"{prefix}{knob}": value for knob, value in knobs.items()} | form
                asked = Settings.make(**base, alpha=at["alpha"], **asked)
                yield Point(
                    part,
                    method,
                    {**at, **form},
                    asked,
                    STUDY["seeds"],
                    COLUMNS,
                    knobs,
                )


# ------------------------------------------------------------------------------------------------ what came out
def leads(
    rows: Iterable[Row], part: str, methods: Sequence[str], alphas: str = "alphas"
) -> dict[int, Band]:
    """Each try minus the first one: validation accuracies, paired by method, alpha, form and seed; 0 for a run that
    diverged. `methods`: the method, or all judges of a recipe; `alphas`: or "guard", where there is no skew."""
    from pandas import Series

    runs = {
        (row["method"], str({**row["at"], "try": ""}), seed, row["at"]["try"]): accuracy or 0.0
        for row in rows
        if row["runs"] == part and row["method"] in methods and row["at"]["alpha"] in STUDY[alphas]
        for seed, accuracy in zip(row["seeds"], row["accuracy"], strict=True)
    }
    tries = Series(runs).unstack() if runs else {}
    return {n: band((own - tries[0]).dropna().tolist()) for n, own in tries.items()}


def better(rows: Sequence[Row], part: str, methods: Sequence[str]) -> list[int]:
    """The tries that are clearly better than the first one, the best one first."""
    ahead = {
        n: of.mean
        for n, of in leads(rows, part, methods).items()
        if of.verdict == "clear" and of.mean > 0
    }
    return sorted(ahead, key=lambda number: -ahead[number])


def chosen(rows: Sequence[Row], part: str, methods: Sequence[str]) -> int:
    """The try that is taken: of those clearly better than the first one the best that is not clearly worse where there
    is no skew (as far as it was run there); else the first one."""
    mild = leads(rows, part, methods, "guard")
    worse = {n for n, of in mild.items() if of.verdict == "clear" and of.mean <= 0}
    return next((n for n in better(rows, part, methods) if n not in worse), 0)


def choice(method: str, dataset: str = DIGITS, part: str = "methods") -> Knobs:
    """The knobs of `method` that the study took, also of an option (`part`), or the clients' "recipe". UsageError for a
    method of which nothing was tried."""
    part = RECIPE if method == RECIPE else part
    of = parts(dataset).get(part, {})
    methods = list(of) if part == RECIPE else [choose("method of the tuning study", method, of)]
    return of[methods[0]][chosen(load(dataset), part, methods)]


@cache
def load(dataset: str = DIGITS) -> list[Row]:
    """The rows of a data set that came with the package: `made`: what the try sets; `accuracy` on the validation images
    by seed, 0–1, None for a run that diverged; `bytes` by seed, both ways."""
    return read_rows(find_file("tuning", dataset))[1]
