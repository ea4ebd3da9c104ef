"""How the classroom's knobs are chosen: one study for all methods, on validation images.

`declared/tuning.toml` says what is tried, and by which rule one is taken. What came out is
`studies/stored/tuning-digits.json`, made by `python -m fedlab_nb.papers.declared tuning-digits`,
and a file for each other set. `choose_knobs(method)` reads from them the knobs that the method's
defaults have to equal.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..data import Dataset
from ..data import load as load_data
from ..declared import read_toml
from ..errors import choose
from ..rng import numpy_rng
from ..studies.settings import Settings
from ..studies.statistics import Band, band
from ..studies.stored_rows import Row, find_file, read_stored_rows
from .points import COLUMNS, Point

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g", "glyphs:28g")  # the classroom's data sets, each with tries of its own
RECIPE = "recipe"  # the part whose tries are the clients' recipe, one for all methods; a method only judges it
# `clients`, `alphas`, `guard` (more alphas), `seeds`: of every try.
STUDY = read_toml("papers/declared/tuning.toml")
Knobs = Mapping[str, Any]
TriesByMethod = dict[str, list[Knobs]]  # what each try of a method sets


class Attempt(NamedTuple):
    """A try at one skew."""

    number: int
    alpha: float


def read_parts(dataset: str = DIGITS) -> dict[str, TriesByMethod]:
    """Read all parts of the study on a data set, in the order in which they are made: {part: {method:
    what each try sets}}. They are the recipe, the "methods", and options that are not a method's
    usual form, each a part by itself."""
    study = STUDY[choose("data set of the tuning study", dataset, SETS)]
    recipe = study.get(RECIPE, {"judges": [], "tries": []})
    parts = {RECIPE: dict.fromkeys(recipe["judges"], recipe["tries"])}
    return parts | study.get("parts", {})


def make_validation_set(dataset: str = DIGITS) -> Dataset:
    """Make a data set with a fifth of the training images as `x_test`, the rest as `x_train`; its
    test images and the labels of its public ones are gone."""
    whole = load_data(dataset)
    order = numpy_rng(0, "validation").permutation(len(whole.y_train))
    count = len(order) // 5
    test_rows = order[:count]
    train_rows = order[count:]
    return dataclasses.replace(
        whole,
        name=f"{dataset}, validation",
        digest=f"{whole.digest}, validation",
        x_train=whole.x_train[train_rows],
        y_train=whole.y_train[train_rows],
        x_test=whole.x_train[test_rows],
        y_test=whole.y_train[test_rows],
        y_public=None,
    )


def list_tuning_points(dataset: str, rows: Sequence[Row]) -> Iterator[Point]:
    """List every try of every method as a point. Without skew there are only the first try and those
    that are clearly better than it.

    rows: what is stored already
    """
    base = {
        "dataset": make_validation_set(dataset),
        "device": "cpu",
        "clients": STUDY["clients"],
        **STUDY[dataset].get("given", {}),  # no try changes these
    }
    for part, methods in read_parts(dataset).items():
        forms = STUDY[dataset].get("forms", {}).get(part, [{}])
        for method, tries in methods.items():
            prefix = "" if part == RECIPE else f"{method}."
            for number, alpha in list_attempts(rows, part, method, len(tries), forms):
                knobs = tries[number]
                qualified = {f"{prefix}{knob}": value for knob, value in knobs.items()}
                for form in forms:
                    settings = Settings.make(**base, alpha=alpha, **(qualified | form))
                    at = {"try": number, "alpha": alpha, **form}
                    yield Point(part, method, at, settings, STUDY["seeds"], COLUMNS, knobs)


def list_attempts(
    rows: Sequence[Row], part: str, method: str, count: int, forms: Sequence[Mapping[str, Any]]
) -> list[Attempt]:
    """List all attempts of a method. Those without skew come only when the others are in `rows`, which
    then say which tries are ahead.

    count: tries of the method
    forms: settings at which each try is run, one row each
    """
    tries = []
    for number in range(count):
        for alpha in STUDY["alphas"]:
            tries.append(Attempt(number, alpha))
    if not has_all_rows(rows, part, method, tries, forms):
        return tries
    if part == RECIPE:
        return tries
    ahead = find_better_tries(rows, part, [method])
    if ahead:
        for number in sorted({0, *ahead}):
            tries += [Attempt(number, alpha) for alpha in STUDY["guard"]]
    return tries


def has_all_rows(
    rows: Sequence[Row],
    part: str,
    method: str,
    tries: Sequence[Attempt],
    forms: Sequence[Mapping[str, Any]],
) -> bool:
    """Whether `rows` have all these attempts of a method, at all forms."""
    finished = []
    for row in rows:
        if (row["runs"], row["method"]) == (part, method):
            finished.append(row["at"])
    for attempt in tries:
        for form in forms:
            if {"try": attempt.number, "alpha": attempt.alpha, **form} not in finished:
                return False
    return True


# ---------------------------------------------------------------------------------- what came out
def compare_with_first_try(
    rows: Iterable[Row], part: str, methods: Sequence[str], alphas: str = "alphas"
) -> dict[int, Band]:
    """{try: its validation accuracy minus the first one's}, paired by method, alpha, form and seed;
    the accuracy of a run that diverged is 0.

    methods: the method, or all judges of a recipe
    alphas: "alphas", or "guard", where there is no skew
    """
    from pandas import Series

    accuracies = {}
    for row in rows:
        at = row["at"]
        if row["runs"] != part or row["method"] not in methods or at["alpha"] not in STUDY[alphas]:
            continue
        setting = str({**at, "try": ""})
        for seed, accuracy in zip(row["seeds"], row["accuracy"], strict=True):
            accuracies[row["method"], setting, seed, at["try"]] = accuracy or 0.0
    if not accuracies:
        return {}
    tries = Series(accuracies).unstack()
    bands = {}
    for number, column in tries.items():
        bands[number] = band((column - tries[0]).dropna().tolist())
    return bands


def find_better_tries(rows: Sequence[Row], part: str, methods: Sequence[str]) -> list[int]:
    """Find the tries that are clearly better than the first one, the best one first."""
    means = {}
    for number, lead in compare_with_first_try(rows, part, methods).items():
        if lead.verdict == "clear" and lead.mean > 0:
            means[number] = lead.mean
    return sorted(means, key=lambda number: -means[number])


def choose_try(rows: Sequence[Row], part: str, methods: Sequence[str]) -> int:
    """Choose a try: of those clearly better than the first one the best that is not clearly worse
    where there is no skew (as far as it was run there); else the first one."""
    without_skew = compare_with_first_try(rows, part, methods, "guard")
    for number in find_better_tries(rows, part, methods):
        lead = without_skew.get(number)
        is_worse = lead is not None and lead.verdict == "clear" and lead.mean <= 0
        if not is_worse:
            return number
    return 0


def choose_knobs(method: str, dataset: str = DIGITS, part: str = "methods") -> Knobs:
    """The knobs of `method` that the study took, also of an option (`part`), or the clients'
    "recipe". UsageError for a method of which nothing was tried."""
    if method == RECIPE:
        part = RECIPE
    tries = read_parts(dataset).get(part, {})
    if part == RECIPE:
        methods = list(tries)
    else:
        methods = [choose("method of the tuning study", method, tries)]
    number = choose_try(load_tuning_rows(dataset), part, methods)
    return tries[methods[0]][number]


@cache
def load_tuning_rows(dataset: str = DIGITS) -> list[Row]:
    """Load the rows of a data set that came with the package. `made`: what the try sets; `accuracy`:
    on the validation images by seed, 0–1, None for a run that diverged; `bytes`: by seed, both
    ways."""
    _, rows = read_stored_rows(find_file("tuning", dataset))
    return rows
