"""Outcomes without a run, for what judges a record of runs: method, accuracy, settings, options."""

from types import SimpleNamespace

from fedlab_nb.methods import Report
from fedlab_nb.studies import Settings
from fedlab_nb.studies.outcome import Conditions
from fedlab_nb.studies.settings import make_recipe_for_classroom


def toy(method, accuracy, *, options=None, report=None, settings=None, **more):
    """Its validation accuracy is `accuracy` too. `settings`: fields of Settings, the defaults of the rest as they are;
    `more`: any other attributes."""
    asked, recipe = Settings(**(settings or {})), make_recipe_for_classroom(1237)
    more = {"accuracy_validation": accuracy, **more}
    same = Conditions(Settings(**{**(settings or {}), "seed": 0}), recipe)
    return SimpleNamespace(
        method=method, accuracy=accuracy, settings=asked, recipe=recipe, conditions=same, options=options or {},
        report=report or Report(), **more,
    )  # fmt: skip
