"""Chooses the classroom's knobs by one study of all methods on validation images.

`declared/tuning.toml` lists the tries and the rule by which one of them is chosen. The results are
in `studies/stored/tuning-digits.json`, which `python -m fedlab_nb.papers.declared tuning-digits`
makes, and in one file for each other data set. `choose_tuned_knobs(method)` reads the chosen knobs from
these files; a method's defaults must equal them.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from ..data import Dataset
from ..data import load as load_data
from ..declared import read_toml
from ..errors import check_allowed_name
from ..rng import make_numpy_generator
from ..studies.settings import Settings
from ..studies.statistics import Band, compute_band
from ..studies.stored_rows import StoredRow, make_path_of_stored_rows, read_stored_rows
from .points import COLUMNS, MethodSettingPoint

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g", "glyphs:28g")  # the classroom's data sets, each with its own tries
# The part whose tries are the clients' training recipe. All methods share one recipe, which is
# judged by the accuracy of several methods.
RECIPE = "recipe"
# Every try runs with its `clients` and `seeds`, at each of its `alphas`; good tries also at its `guard`.
STUDY = read_toml("papers/declared/tuning.toml")
Knobs = Mapping[str, Any]
KnobsOfTriesByMethod = dict[str, list[Knobs]]  # {method: the knobs that each try sets}
AlphaList = Literal["alphas", "guard"]  # "guard": the alphas without skew


class TryAtAlpha(NamedTuple):
    """A try at one α. number: which try, from 0"""

    number: int
    alpha: float


def read_tries_by_part(dataset: str = DIGITS) -> dict[str, KnobsOfTriesByMethod]:
    """Read the parts of the study on a data set, {part: {method: the knobs of each try}}.

    The parts are in the order in which they are run: the recipe, the "methods", and one part for
    each variant of a method that was tuned by itself.
    """
    study = STUDY[check_allowed_name("data set of the tuning study", dataset, SETS)]
    recipe = study.get(RECIPE, {"judges": [], "tries": []})
    parts = {RECIPE: dict.fromkeys(recipe["judges"], recipe["tries"])}
    return parts | study.get("parts", {})


def make_dataset_with_validation_images_as_test(dataset: str = DIGITS) -> Dataset:
    """Make a data set for validation: a fifth of the training images is `x_test`, the others
    `x_train`.

    It has neither the test images nor the labels of the public images.
    """
    whole = load_data(dataset)
    order = make_numpy_generator(0, "validation").permutation(len(whole.y_train))
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


def list_tuning_points(
    dataset: str, stored_rows: Sequence[StoredRow]
) -> Iterator[MethodSettingPoint]:
    """List every try of every method as a point.

    At the alphas without skew only two kinds of tries run: the first one, and those that are
    clearly better than the first one.

    stored_rows: the rows that are stored already
    """
    base = {
        "dataset": make_dataset_with_validation_images_as_test(dataset),
        "device": "cpu",
        "clients": STUDY["clients"],
        **STUDY[dataset].get("given", {}),  # no try changes these
    }
    for part, methods in read_tries_by_part(dataset).items():
        forms = STUDY[dataset].get("forms", {}).get(part, [{}])
        for method, tries in methods.items():
            prefix = "" if part == RECIPE else f"{method}."
            for number, alpha in list_tries_at_alphas(stored_rows, part, method, len(tries), forms):
                knobs = tries[number]
                qualified = {f"{prefix}{knob}": value for knob, value in knobs.items()}
                for form in forms:
                    settings = Settings.make(**base, alpha=alpha, **(qualified | form))
                    position = {"try": number, "alpha": alpha, **form}
                    yield MethodSettingPoint(
                        part, method, position, settings, STUDY["seeds"], COLUMNS, knobs
                    )


def list_tries_at_alphas(
    stored_rows: Sequence[StoredRow],
    part_name: str,
    method: str,
    try_count: int,
    settings_of_each_form: Sequence[Mapping[str, Any]],
) -> list[TryAtAlpha]:
    """List all attempts of a method.

    Attempts without skew are listed only when `stored_rows` has all others. Before, it is not known which
    tries are better than the first one.

    try_count: number of the method's tries
    settings_of_each_form: the settings with which each try is run, a mapping for each form
    """
    tries = []
    for number in range(try_count):
        for alpha in STUDY["alphas"]:
            tries.append(TryAtAlpha(number, alpha))
    if not has_rows_of_all_tries_at_alphas(
        stored_rows, part_name, method, tries, settings_of_each_form
    ):
        return tries
    if part_name == RECIPE:
        return tries
    better_tries = find_try_numbers_better_than_first(stored_rows, part_name, [method])
    if better_tries:
        for number in sorted({0, *better_tries}):
            tries += [TryAtAlpha(number, alpha) for alpha in STUDY["guard"]]
    return tries


def has_rows_of_all_tries_at_alphas(
    stored_rows: Sequence[StoredRow],
    part_name: str,
    method: str,
    tries_at_alphas: Sequence[TryAtAlpha],
    settings_of_each_form: Sequence[Mapping[str, Any]],
) -> bool:
    """Whether `stored_rows` has all these attempts of a method, with every form."""
    finished = []
    for row in stored_rows:
        if (row["runs"], row["method"]) == (part_name, method):
            finished.append(row["at"])
    for attempt in tries_at_alphas:
        for form in settings_of_each_form:
            if {"try": attempt.number, "alpha": attempt.alpha, **form} not in finished:
                return False
    return True


# --------------------------------------------------------------------------------------- results
BandByTryNumber = dict[int, Band]


def compute_accuracy_lead_over_first_try(
    stored_rows: Iterable[StoredRow],
    part_name: str,
    methods: Sequence[str],
    alpha_list: AlphaList = "alphas",
) -> BandByTryNumber:
    """Compute {try: its validation accuracy minus that of the first try}, as shares.

    The differences are paired by method, alpha, form and seed. A run that diverged has accuracy 0.

    methods: the method, or all methods that judge a recipe
    alpha_list:  the list of alphas in STUDY whose rows count
    """
    from pandas import Series

    accuracies = {}
    for row in stored_rows:
        at = row["at"]
        if (
            row["runs"] != part_name
            or row["method"] not in methods
            or at["alpha"] not in STUDY[alpha_list]
        ):
            continue
        setting = str({**at, "try": ""})
        for seed, accuracy in zip(row["seeds"], row["accuracy"], strict=True):
            accuracies[row["method"], setting, seed, at["try"]] = accuracy or 0.0
    if not accuracies:
        return {}
    tries = Series(accuracies).unstack()
    bands = {}
    for number, column in tries.items():
        bands[number] = compute_band((column - tries[0]).dropna().tolist())
    return bands


def find_try_numbers_better_than_first(
    stored_rows: Sequence[StoredRow], part_name: str, methods: Sequence[str]
) -> list[int]:
    """Find the numbers of the tries that are clearly better than the first one, the best one first."""
    means = {}
    for number, lead in compute_accuracy_lead_over_first_try(
        stored_rows, part_name, methods
    ).items():
        if lead.verdict == "clear" and lead.mean > 0:
            means[number] = lead.mean
    return sorted(means, key=lambda number: -means[number])


def choose_try_number(
    stored_rows: Sequence[StoredRow], part_name: str, methods: Sequence[str]
) -> int:
    """Choose a try, and return its number.

    It is the best of the tries that are clearly better than the first one with skew, and not
    clearly worse without skew (as far as they were run without). If there is none, it is the first.
    """
    without_skew = compute_accuracy_lead_over_first_try(stored_rows, part_name, methods, "guard")
    for number in find_try_numbers_better_than_first(stored_rows, part_name, methods):
        lead = without_skew.get(number)
        is_worse = lead is not None and lead.verdict == "clear" and lead.mean <= 0
        if not is_worse:
            return number
    return 0


def choose_tuned_knobs(method: str, dataset: str = DIGITS, part_name: str = "methods") -> Knobs:
    """Return the knobs that the study chose for `method`; with method "recipe" the training recipe.

    part_name: "methods", or the name of an option that was tuned by itself
    Raises UsageError for a method without tries.
    """
    if method == RECIPE:
        part_name = RECIPE
    tries = read_tries_by_part(dataset).get(part_name, {})
    if part_name == RECIPE:
        methods = list(tries)
    else:
        methods = [check_allowed_name("method of the tuning study", method, tries)]
    number = choose_try_number(load_tuning_rows(dataset), part_name, methods)
    return tries[methods[0]][number]


@cache
def load_tuning_rows(dataset: str = DIGITS) -> list[StoredRow]:
    """Load the rows of a data set that come with the package.

    A row has in `made` the knobs that the try sets; in `accuracy` the accuracy 0–1 on validation
    images for each seed, None for a run that diverged; in `bytes` the bytes up and down for each
    seed.
    """
    _, rows = read_stored_rows(make_path_of_stored_rows("tuning", dataset))
    return rows
