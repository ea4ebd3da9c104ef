"""The tuning study: the same for all methods, its rule, and the classroom's knobs that come from it."""

import dataclasses
import itertools

import pytest
import torch

from fedlab_nb.data import load as load_data
from fedlab_nb.methods import METHODS
from fedlab_nb.papers.tuning import (
    STUDY,
    choose_try_number,
    choose_tuned_knobs,
    compute_accuracy_lead_over_first_try,
    find_try_numbers_better_than_first,
    load_tuning_rows,
    make_dataset_with_validation_images_as_test,
    read_tries_by_part,
)
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.studies.stored_rows import make_json_key_of_row

ROWS = load_tuning_rows()
PARTS = read_tries_by_part()
TRY_COUNT = 8
FEWER_TRIES = {"fedavg": 2, "ensemble": 4}  # as many tries as there are choices


def collect_stored_tries(rows, part, method):
    """{(try, alpha, seed): what the try sets} of the stored rows."""
    stored = {}
    for row in rows:
        if (row["runs"], row["method"]) == (part, method):
            for seed in row["seeds"]:
                stored[row["at"]["try"], row["at"]["alpha"], seed] = row["made"]
    return stored


def list_expected_tries(tries, alphas, numbers=None):
    """{(try, alpha, seed): what the try sets} of the tries with these numbers; None: of all."""
    numbers = range(len(tries)) if numbers is None else numbers
    keys = itertools.product(numbers, alphas, STUDY["seeds"])
    return {(number, alpha, seed): tries[number] for number, alpha, seed in keys}


def test_every_method_has_the_same_number_of_tries_seeds_and_images():
    assert set(PARTS["methods"]) <= set(METHODS)
    for method, tries in PARTS["methods"].items():
        assert len(tries) == FEWER_TRIES.get(method, TRY_COUNT), method
    assert len(next(iter(PARTS["recipe"].values()))) == TRY_COUNT
    assert not {*STUDY["seeds"]} & {*range(10), *range(100, 110)}
    for part, tries_by_method in PARTS.items():
        for method, tries in tries_by_method.items():
            assert len({tuple(knobs) for knobs in tries}) == 1
            expected = list_expected_tries(tries, STUDY["alphas"])
            better = (
                find_try_numbers_better_than_first(ROWS, part, [method]) if part != "recipe" else []
            )
            if better:  # they, and the first one, are tried without skew, too
                expected |= list_expected_tries(tries, STUDY["guard"], sorted({0, *better}))
            for form in STUDY["digits"]["forms"].get(part, [{}]):
                rows = [row for row in ROWS if form.items() <= row["at"].items()]
                stored = collect_stored_tries(rows, part, method)
                assert stored == expected, "make the table again"


def test_no_try_sends_more_than_the_first_one():
    bytes_by_key = {make_json_key_of_row(row): row["bytes"][0] for row in ROWS}
    for row in ROWS:
        first_try = {**row, "at": {**row["at"], "try": 0}}
        assert row["bytes"][0] <= bytes_by_key[make_json_key_of_row(first_try)], row["at"]


def test_the_validation_images_are_training_images_and_no_test_images():
    for dataset in ("digits", "glyphs:16g"):
        full = load_data(dataset)
        reduced = make_dataset_with_validation_images_as_test(dataset)
        training, remaining, validation = (
            {image.numpy().tobytes() for image in images}
            for images in (full.x_train, reduced.x_train, reduced.x_test)
        )
        assert validation <= training
        assert not remaining & validation
        assert len(reduced.x_test) + len(reduced.x_train) == len(full.x_train)
        assert len(reduced.x_test) == len(full.x_train) // 5
        assert torch.equal(reduced.x_public, full.x_public)


def list_tuned_methods():
    """(part, method) of all tuned knobs; the recipe has tests of its own."""
    tuned = []
    for part, tries_by_method in PARTS.items():
        if part != "recipe":
            tuned += [(part, method) for method in sorted(tries_by_method)]
    return tuned


@pytest.mark.parametrize(("part", "method"), list_tuned_methods())
def test_classroom_knobs_are_those_that_the_study_took(part, method):
    """`assumed` is the number of liars that a person expects: it is given and not chosen."""
    defaults = dataclasses.asdict(METHODS[method].configure())
    chosen = dict(choose_tuned_knobs(method, part_name=part))
    assert chosen.pop("assumed", None) == PARTS[part][method][0].get("assumed")
    assert {name: defaults[name] for name in chosen} == pytest.approx(chosen)


@pytest.mark.parametrize(
    ("first_gain", "second_gain", "verdict"),
    [(0.1, 0.3, "within the noise"), (0.2, 0.21, "clear")],
)
def test_pairs_of_an_option_are_told_apart_by_form_too(first_gain, second_gain, verdict):
    """One seed of two forms, with and without liars, makes two differences."""
    accuracies = {
        ("none", 0): 0.3,
        ("none", 1): 0.3 + first_gain,
        ("lie:2", 0): 0.7,
        ("lie:2", 1): 0.7 + second_gain,
    }
    rows = []
    for (poison, number), accuracy in accuracies.items():
        at = {"try": number, "alpha": 1.0, "poison": poison}
        row = {"runs": "o", "method": "m", "at": at, "seeds": [0], "accuracy": [accuracy]}
        rows.append(row)
    assert compute_accuracy_lead_over_first_try(rows, "o", ["m"])[1].verdict == verdict


def test_the_classroom_recipe_is_the_one_that_the_study_took():
    recipe = make_plans(Settings.make(), ["fedavg"])[0].recipe
    for name, value in choose_tuned_knobs("recipe").items():
        assert getattr(recipe, name) == value, name


def test_the_second_classroom_set_has_a_recipe_of_its_own_from_the_same_protocol():
    rows = load_tuning_rows("glyphs:16g")
    for method, tries in read_tries_by_part("glyphs:16g")["recipe"].items():
        expected = list_expected_tries(tries, STUDY["alphas"])
        assert collect_stored_tries(rows, "recipe", method) == expected
        # every try takes the same number of steps
        steps = {knobs["epochs"] / knobs["batch_size"] for knobs in tries}
        assert len(steps) == 1
    settings = Settings.make(dataset="glyphs:16g")
    recipe = make_plans(settings, ["fedavg"])[0].recipe
    for name, value in choose_tuned_knobs("recipe", "glyphs:16g").items():
        assert getattr(recipe, name, settings.transform) == value, name


@pytest.mark.parametrize("method", ["dense", "coboosting"])
def test_the_time_of_a_class_at_28x28_is_spent_as_the_study_took_it(method):
    tries = read_tries_by_part("glyphs:28g")["methods"][method]
    rows = load_tuning_rows("glyphs:28g")
    skewed_rows = [row for row in rows if row["at"]["alpha"] in STUDY["alphas"]]
    expected = list_expected_tries(tries, STUDY["alphas"])
    assert collect_stored_tries(skewed_rows, "methods", method) == expected
    work = [knobs["epochs"] * knobs["generator_steps"] * knobs["images"] for knobs in tries]
    assert max(work) == work[0]
    for dataset in ("glyphs:28", "glyphs:28g"):
        plan = make_plans(Settings.make(dataset=dataset), [method])[0]
        for name, value in choose_tuned_knobs(method, "glyphs:28g").items():
            assert getattr(plan.method, name) == value, name
        # the tries ran with the classroom's recipe
        for name, value in STUDY["glyphs:28g"]["given"].items():
            assert getattr(plan.recipe, name, plan.settings.transform) == value, name


# Accuracies of the first try, with skew and without.
FIRST = [0.5, 0.6, 0.7]
FIRST_WITHOUT_SKEW = [0.9, 0.9, 0.91]


@pytest.mark.parametrize(
    ("tries", "without_skew", "chosen"),
    [
        ([[0.56, 0.65, 0.77]], [], 1),
        ([[0.2, 0.9, 0.9]], [], 0),  # higher, but within the noise
        ([[0.4, 0.5, 0.6]], [], 0),  # clearly lower
        ([[0.51, 0.61, 0.71], [0.61, 0.7, 0.79]], [], 2),
        (
            [[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]],
            [[0.95, 0.96, 0.95]] * 2,
            2,
        ),  # without skew: better
        (
            [[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]],
            [[0.95, 0.96, 0.95], [0.8, 0.95, 0.9]],
            2,
        ),  # within the noise
        (
            [[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]],
            [[0.95, 0.96, 0.95], [0.4, 0.5, 0.4]],
            1,
        ),  # clearly worse
        ([[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]], [[0.4, 0.5, 0.4]] * 2, 0),
    ],
)
def test_a_try_is_taken_where_it_is_clearly_better_and_not_clearly_worse_without_skew(
    tries, without_skew, chosen
):
    accuracies_by_alpha = {0.1: [FIRST, *tries]}
    if without_skew:
        accuracies_by_alpha[100.0] = [FIRST_WITHOUT_SKEW, *without_skew]
    rows = []
    for alpha, accuracies in accuracies_by_alpha.items():
        for number, accuracy in enumerate(accuracies):
            at = {"try": number, "alpha": alpha}
            row = {"runs": "methods", "method": "m", "at": at, "seeds": [0, 1, 2]}
            rows.append({**row, "accuracy": accuracy})
    assert choose_try_number(rows, "methods", ["m"]) == chosen
    if chosen:
        assert find_try_numbers_better_than_first(rows, "methods", ["m"])[0] == len(tries)
