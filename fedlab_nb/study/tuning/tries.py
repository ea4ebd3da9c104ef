"""What is tried: `tries.toml` as parts of the study, and the data set whose test images are validation images."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...data import Dataset, load
from ...declared import declared
from ...errors import choose
from ...rng import numpy_rng

Knobs = Mapping[str, Any]
PARTS = ("recipe", "methods", "equal_work")
NAME = "study/tuning/tries.toml"
DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g", "glyphs:28g")  # the classroom's data sets, each with tries of its own


@dataclass(frozen=True)
class Part:
    """A part of the study. `tries`: by method, what each try sets.

    `of_recipe`: the tries are the clients' recipe, one for all methods, and a method is only a judge of it.
    """

    name: str
    tries: Mapping[str, tuple[Knobs, ...]]
    of_recipe: bool = False

    def overrides(self, method: str, knobs: Knobs) -> dict[str, Any]:
        """Settings that mean `knobs` of the recipe or of `method`, as a run takes them."""
        return {name if self.of_recipe else f"{method}.{name}": value for name, value in knobs.items()}


def grid() -> dict[str, Any]:
    """`clients`, `alphas`, `guard` (more alphas) and `seeds`, the same for every try of every method."""
    return {name: declared(NAME)[name] for name in ("clients", "alphas", "guard", "seeds")}


def parts(dataset: str = DIGITS) -> dict[str, Part]:
    """All parts of the study on that data set, by name, in the order in which they are made."""
    choose("data set of the tuning study", dataset, SETS)
    content = declared(NAME) if dataset == DIGITS else declared(NAME)[dataset]
    none: dict[str, Any] = {"judges": [], "methods": [], "tries": []}
    recipe, work = content.get("recipe", none), content.get("equal_work", none)
    tries = {
        "recipe": dict.fromkeys(recipe["judges"], tuple(recipe["tries"])),
        "methods": {name: tuple(tries) for name, tries in content.get("methods", {}).items()},
        "equal_work": dict.fromkeys(work["methods"], tuple(work["tries"])),
    }
    return {name: Part(name, of, of_recipe=name == "recipe") for name, of in tries.items()}


def given(dataset: str) -> Knobs:
    """Settings of every run on that data set, which no try changes."""
    return {} if dataset == DIGITS else declared(NAME)[dataset].get("given", {})


def part(name: str) -> Part:
    return parts()[name]


def validation_set(dataset: str = DIGITS) -> Dataset:
    """A data set with a fifth of its training images as `x_test`, the rest as `x_train`; its test images are gone."""
    own = load(dataset)
    order = numpy_rng(0, "validation").permutation(len(own.y_train))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    return dataclasses.replace(
        own,
        name=f"{dataset}, validation",
        x_train=own.x_train[rest],
        y_train=own.y_train[rest],
        x_test=own.x_train[held],
        y_test=own.y_train[held],
        digest=f"{own.digest}, validation",
    )


def validation_digits() -> Dataset:
    """`validation_set` of the digits."""
    return validation_set(DIGITS)
