"""The tuning study: the same for all methods, its rule, and the classroom's knobs that come from it."""

import dataclasses

import pytest
import torch

from fedlab_nb.data import load as load_data
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.settings import Settings, plans_for
from fedlab_nb.studies.tuning import STUDY, Tried, choice, load, parts, validation_set

TABLE, PARTS = load(), parts()
FEWER = {"fedavg": 2, "ensemble": 4}  # as many tries as there are choices


def test_every_method_has_the_same_number_of_tries_seeds_and_images():
    assert set(PARTS["methods"]) <= set(METHODS)
    assert {name: len(tries) for name, tries in PARTS["methods"].items()} == {
        name: FEWER.get(name, 8) for name in PARTS["methods"]
    }
    assert len(next(iter(PARTS["recipe"].values()))) == 8
    assert not {*STUDY["seeds"]} & {*range(10), *range(100, 110)}
    for name, part in PARTS.items():
        for method, tries in part.items():
            assert TABLE.tries(name, method) == tries, "the table is of other tries: make it again"
            assert len({tuple(knobs) for knobs in tries}) == 1
            for number in range(len(tries)):
                places = {(alpha, seed) for alpha in STUDY["alphas"] for seed in STUDY["seeds"]}
                assert set(TABLE.accuracies(name, method, number)) == places


def test_no_try_sends_more_than_the_first_one():
    for (part, method, _, alpha), row in TABLE.rows.items():
        assert row["bytes"][0] <= TABLE.rows[part, method, 0, alpha]["bytes"][0], (part, method, row["knobs"])


def test_the_validation_images_are_training_images_and_no_test_images():
    for dataset in ("digits", "glyphs:16g"):
        own, here = load_data(dataset), validation_set(dataset)
        train, rest, held = (
            {image.numpy().tobytes() for image in of} for of in (own.x_train, here.x_train, here.x_test)
        )
        assert held <= train and len(here.x_test) + len(here.x_train) == len(own.x_train)
        assert not rest & held and len(here.x_test) == len(own.x_train) // 5
        assert torch.equal(here.x_public, own.x_public)


@pytest.mark.parametrize("method", sorted(PARTS["methods"]))
def test_classroom_knobs_are_those_that_the_study_took(method):
    classroom = dataclasses.asdict(METHODS[method].configure())
    taken = choice(method)
    assert {name: classroom[name] for name in taken} == pytest.approx(dict(taken))


def test_the_classroom_recipe_is_the_one_that_the_study_took():
    recipe = plans_for(Settings.make(), ["fedavg"])[0].recipe
    assert {name: getattr(recipe, name) for name in choice("recipe")} == dict(choice("recipe"))


def test_the_second_classroom_set_has_a_recipe_of_its_own_from_the_same_protocol():
    table, part = load("glyphs:16g"), parts("glyphs:16g")["recipe"]
    for judge, tries in part.items():
        assert table.tries("recipe", judge) == tries and len({tuple(knobs) for knobs in tries}) == 1
        steps = {knobs["epochs"] / knobs["batch_size"] for knobs in tries}
        assert steps == {tries[0]["epochs"] / tries[0]["batch_size"]}  # as many for all
    taken, asked = choice("recipe", "glyphs:16g"), Settings.make(dataset="glyphs:16g")
    recipe = plans_for(asked, ["fedavg"])[0].recipe
    assert {name: getattr(recipe, name, asked.transform) for name in taken} == dict(taken)


@pytest.mark.parametrize("method", ["dense", "coboosting"])
def test_the_time_of_a_class_at_28x28_is_spent_as_the_study_took_it(method):
    table, tries = load("glyphs:28g"), parts("glyphs:28g")["methods"][method]
    assert table.tries("methods", method) == tries
    work = [knobs["epochs"] * knobs["generator_steps"] * knobs["images"] for knobs in tries]
    assert max(work) == work[0]
    taken, always = choice(method, "glyphs:28g"), STUDY["glyphs:28g"]["given"]
    for dataset in ("glyphs:28", "glyphs:28g"):
        plan = plans_for(Settings.make(dataset=dataset), [method])[0]
        assert {name: getattr(plan.method, name) for name in taken} == dict(taken)
        # The tries ran with the classroom's recipe.
        assert {name: getattr(plan.recipe, name, plan.settings.transform) for name in always} == dict(always)


FIRST, GUARDED = [0.5, 0.6, 0.7], [0.9, 0.9, 0.91]


@pytest.mark.parametrize(
    ("tries", "mild", "taken"),
    [
        ([[0.56, 0.65, 0.77]], [], 1),
        ([[0.2, 0.9, 0.9]], [], 0),  # higher, but within the noise
        ([[0.4, 0.5, 0.6]], [], 0),  # clearly lower
        ([[0.51, 0.61, 0.71], [0.61, 0.7, 0.79]], [], 2),
        ([[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]], [[0.95, 0.96, 0.95]] * 2, 2),  # without skew: better
        ([[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]], [[0.95, 0.96, 0.95], [0.8, 0.95, 0.9]], 2),  # within the noise
        ([[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]], [[0.95, 0.96, 0.95], [0.4, 0.5, 0.4]], 1),  # clearly worse
        ([[0.56, 0.65, 0.77], [0.61, 0.7, 0.79]], [[0.4, 0.5, 0.4]] * 2, 0),
    ],
)
def test_a_try_is_taken_where_it_is_clearly_better_and_not_clearly_worse_without_skew(tries, mild, taken):
    parts = {"methods": [FIRST, *tries], "guard": [GUARDED, *mild] if mild else []}
    rows = [
        {"runs": part, "method": "m", "at": {"try": n, "alpha": 0.1}, "made": {}, "seeds": [0, 1, 2], "accuracy": a}
        for part, of in parts.items()
        for n, a in enumerate(of)
    ]
    assert Tried.of(rows).chosen("methods", "m") == taken
    assert taken == 0 or Tried.of(rows).better("methods", "m")[0] == len(tries)


def test_every_better_try_was_run_without_skew():
    for method in PARTS["methods"]:
        places = {(alpha, seed) for alpha in STUDY["guard"] for seed in STUDY["seeds"]}
        for number in TABLE.better("methods", method):
            assert set(TABLE.accuracies("guard", method, number)) == places
            assert set(TABLE.accuracies("guard", method, 0)) == places
