"""The tuning study: the same for all methods, its rule, and the classroom's knobs that come from it."""

import dataclasses

import pytest
import torch

from fedlab_nb.data import load as load_data
from fedlab_nb.methods import METHODS
from fedlab_nb.papers.tuning import (
    STUDY,
    choose_knobs,
    choose_try_number,
    compute_lead_over_first_try,
    find_tries_better_than_first,
    load_tuning_rows,
    make_validation_set,
    read_tries_by_part,
)
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.studies.stored_rows import make_unique_row_key

ROWS, PARTS = load_tuning_rows(), read_tries_by_part()
FEWER = {"fedavg": 2, "ensemble": 4}  # as many tries as there are choices


def tried(rows, name, method):
    """{(try, alpha, seed): what the try sets}"""
    own = [row for row in rows if (row["runs"], row["method"]) == (name, method)]
    return {
        (row["at"]["try"], row["at"]["alpha"], seed): row["made"]
        for row in own
        for seed in row["seeds"]
    }


def forms(part):
    return STUDY["digits"]["forms"].get(part, [{}])


def wanted(tries, alphas, numbers=None):
    numbers = range(len(tries)) if numbers is None else numbers
    return {
        (n, alpha, seed): tries[n] for n in numbers for alpha in alphas for seed in STUDY["seeds"]
    }


def test_every_method_has_the_same_number_of_tries_seeds_and_images():
    assert set(PARTS["methods"]) <= set(METHODS)
    assert {name: len(tries) for name, tries in PARTS["methods"].items()} == {
        name: FEWER.get(name, 8) for name in PARTS["methods"]
    }
    assert len(next(iter(PARTS["recipe"].values()))) == 8
    assert not {*STUDY["seeds"]} & {*range(10), *range(100, 110)}
    for name, part in PARTS.items():
        for method, tries in part.items():
            assert len({tuple(knobs) for knobs in tries}) == 1
            ahead = find_tries_better_than_first(ROWS, name, [method]) if name != "recipe" else []
            mild = wanted(tries, STUDY["guard"], sorted({0, *ahead}) if ahead else [])
            for form in forms(name):
                own = [row for row in ROWS if form.items() <= row["at"].items()]
                assert tried(own, name, method) == wanted(tries, STUDY["alphas"]) | mild, (
                    "make the table again"
                )


def test_no_try_sends_more_than_the_first_one():
    at = {make_unique_row_key(row): row["bytes"][0] for row in ROWS}
    for row in ROWS:
        assert row["bytes"][0] <= at[make_unique_row_key({**row, "at": {**row["at"], "try": 0}})], (
            row["at"]
        )


def test_the_validation_images_are_training_images_and_no_test_images():
    for dataset in ("digits", "glyphs:16g"):
        own, here = load_data(dataset), make_validation_set(dataset)
        train, rest, held = (
            {image.numpy().tobytes() for image in of}
            for of in (own.x_train, here.x_train, here.x_test)
        )
        assert held <= train and len(here.x_test) + len(here.x_train) == len(own.x_train)
        assert not rest & held and len(here.x_test) == len(own.x_train) // 5
        assert torch.equal(here.x_public, own.x_public)


@pytest.mark.parametrize(
    ("part", "method"), [(p, m) for p, of in PARTS.items() if p != "recipe" for m in sorted(of)]
)
def test_classroom_knobs_are_those_that_the_study_took(part, method):
    """`assumed` says how many liars a person expects."""
    classroom = dataclasses.asdict(METHODS[method].configure())
    taken = {
        name: value
        for name, value in choose_knobs(method, part_name=part).items()
        if name != "assumed"
    }
    assert {name: classroom[name] for name in taken} == pytest.approx(taken)
    assert PARTS[part][method][0].get("assumed") == choose_knobs(method, part_name=part).get(
        "assumed"
    )


def test_pairs_of_an_option_are_told_apart_by_form_too():
    """Two forms, one seed: the differences are 0.1 and 0.3, whose mean is not clear, and 0.2 and 0.2, which is."""
    for gains, verdict in (((0.1, 0.3), "within the noise"), ((0.2, 0.21), "clear")):
        at = [
            {"try": n, "alpha": 1.0, "poison": kind} for kind in ("none", "lie:2") for n in (0, 1)
        ]
        values = [0.3, 0.3 + gains[0], 0.7, 0.7 + gains[1]]
        rows = [
            {"runs": "o", "method": "m", "at": a, "seeds": [0], "accuracy": [v]}
            for a, v in zip(at, values, strict=True)
        ]
        assert compute_lead_over_first_try(rows, "o", ["m"])[1].verdict == verdict


def test_the_classroom_recipe_is_the_one_that_the_study_took():
    recipe = make_plans(Settings.make(), ["fedavg"])[0].recipe
    assert {name: getattr(recipe, name) for name in choose_knobs("recipe")} == dict(
        choose_knobs("recipe")
    )


def test_the_second_classroom_set_has_a_recipe_of_its_own_from_the_same_protocol():
    for judge, tries in read_tries_by_part("glyphs:16g")["recipe"].items():
        assert tried(load_tuning_rows("glyphs:16g"), "recipe", judge) == wanted(
            tries, STUDY["alphas"]
        )
        steps = {knobs["epochs"] / knobs["batch_size"] for knobs in tries}
        assert steps == {tries[0]["epochs"] / tries[0]["batch_size"]}  # as many for all
    taken, asked = choose_knobs("recipe", "glyphs:16g"), Settings.make(dataset="glyphs:16g")
    recipe = make_plans(asked, ["fedavg"])[0].recipe
    assert {name: getattr(recipe, name, asked.transform) for name in taken} == dict(taken)


@pytest.mark.parametrize("method", ["dense", "coboosting"])
def test_the_time_of_a_class_at_28x28_is_spent_as_the_study_took_it(method):
    tries = read_tries_by_part("glyphs:28g")["methods"][method]
    skewed = [
        row for row in load_tuning_rows("glyphs:28g") if row["at"]["alpha"] in STUDY["alphas"]
    ]
    assert tried(skewed, "methods", method) == wanted(tries, STUDY["alphas"])
    work = [knobs["epochs"] * knobs["generator_steps"] * knobs["images"] for knobs in tries]
    assert max(work) == work[0]
    taken, always = choose_knobs(method, "glyphs:28g"), STUDY["glyphs:28g"]["given"]
    for dataset in ("glyphs:28", "glyphs:28g"):
        plan = make_plans(Settings.make(dataset=dataset), [method])[0]
        assert {name: getattr(plan.method, name) for name in taken} == dict(taken)
        # The tries ran with the classroom's recipe.
        assert {
            name: getattr(plan.recipe, name, plan.settings.transform) for name in always
        } == dict(always)


FIRST, GUARDED = [0.5, 0.6, 0.7], [0.9, 0.9, 0.91]


@pytest.mark.parametrize(
    ("tries", "mild", "taken"),
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
    tries, mild, taken
):
    parts = {0.1: [FIRST, *tries], 100.0: [GUARDED, *mild] if mild else []}
    rows = [
        {
            "runs": "methods",
            "method": "m",
            "at": {"try": n, "alpha": alpha},
            "seeds": [0, 1, 2],
            "accuracy": a,
        }
        for alpha, of in parts.items()
        for n, a in enumerate(of)
    ]
    assert choose_try_number(rows, "methods", ["m"]) == taken
    assert taken == 0 or find_tries_better_than_first(rows, "methods", ["m"])[0] == len(tries)
