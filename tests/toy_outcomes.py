"""Outcomes without a run, for tests of code that judges or draws records of runs."""

from types import SimpleNamespace

from fedlab_nb.methods import Report
from fedlab_nb.studies import Settings
from fedlab_nb.studies.outcome import Conditions
from fedlab_nb.studies.settings import make_recipe_for_classroom


def make_toy_outcome(method, accuracy, *, options=None, report=None, settings=None, **more):
    """An outcome with this accuracy, on validation images, too.

    settings: fields of Settings that are not at their defaults
    more: any other attributes
    """
    settings = settings or {}
    recipe = make_recipe_for_classroom(1237)
    attributes = {
        "method": method,
        "accuracy": accuracy,
        "accuracy_validation": accuracy,
        "settings": Settings(**settings),
        "recipe": recipe,
        "conditions": Conditions(Settings(**{**settings, "seed": 0}), recipe),
        "options": options or {},
        "report": report or Report(),
    }
    return SimpleNamespace(**attributes | more)
