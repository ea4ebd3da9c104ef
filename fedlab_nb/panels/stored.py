"""What a panel shows before its first run: the stored results nearest to its controls.

`StoredResults().show(methods, settings)` gives a Picture, or None where the table has nothing to say (other data,
another partition, another model), so that the view can ask for a run instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..errors import FedlabError
from ..methods import METHODS
from ..plots import Picture, Series
from ..plots.stored import Stored, nearest
from ..plots.words import listed, plural
from ..studies.settings import Settings
from ..studies.stored import DIGITS, load, sets
from ..studies.stored import Stored as Table
from ..training.recipe import OFF
from .record import BOUNDS

# Settings that a table is about; with any other value of them, or of the transform, its numbers would mislead.
SAME = {"preset": "classroom", "partition": "dirichlet", "spurious": "", "model": "auto",
        "init": "same", "holdout": 0.1, "holdout_for": "all", "public": "own",
        "poison": "none"}  # fmt: skip
FREE = ("alpha", "clients", "seed", "seeds", "device", "backend", "tint", "classes_per_client")


class StoredResults:
    """Pictures of the stored table, redrawn in place; one object a panel, used by one thread at a time."""

    def __init__(self) -> None:
        self._picture = Stored()

    def show(self, methods: Sequence[str], settings: Mapping[str, Any]) -> Picture | None:
        """settings: keyword arguments of `study.job`."""
        table = table_for(methods, settings)
        if table is None:
            return None
        clients = table.nearest_clients(settings.get("clients", 10))
        titles = {m: table.title(m) for m in known(table, methods)}
        return self._picture.show(
            results_of(table, tuple(titles), clients), alpha=float(settings.get("alpha", 0.1)), clients=clients,
            source=table.label, dataset=table.dataset, wanted=int(settings.get("clients", 10)),
            bounds=[title for m, title in titles.items() if m in BOUNDS], chance=0.1,
            note=differs(table, titles, settings),
        )  # fmt: skip

    def label(self, methods: Sequence[str], settings: Mapping[str, Any]) -> str:
        """What a picture says of its source; "" where no table has something to say."""
        table = table_for(methods, settings)
        return table.label if table is not None else ""

    def bars(self, methods: Sequence[str], settings: Mapping[str, Any]) -> tuple[Sequence[Series], str] | None:
        """For `plots.Partition`: one Series a method at the nearest stored setting, and the title over its bars."""
        table = table_for(methods, settings)
        if table is None:
            return None
        clients = table.nearest_clients(settings.get("clients", 10))
        alpha = table.alphas[nearest(table.alphas, float(settings.get("alpha", 0.1)))]
        title = f"Stored: α = {alpha:g}, {plural(clients, 'client')}"
        return rows_of(table, known(table, methods), clients, alpha), title


def known(table: Table, methods: Sequence[str]) -> tuple[str, ...]:
    """Those of the methods that the table has."""
    return tuple(m for m in methods if m in METHODS and m in table.methods)


def table_for(methods: Sequence[str], settings: Mapping[str, Any]) -> Table | None:
    """The table that has something to say about these settings; None: there is none."""
    name = str(settings.get("dataset", DIGITS))
    try:
        table = load(name) if name in sets() else None
    except FedlabError:
        return None
    if table is None or not known(table, methods):
        return None
    return table if all(same(settings.get(k, v), v) for k, v in about_what(name).items()) else None


# The same objects for the same setting: pictures that are redrawn in place look at what is new.
@lru_cache(maxsize=8)
def results_of(table: Table, methods: tuple[str, ...], clients: int) -> dict[str, dict]:
    """{title: {stored α: {seed: accuracy}}}"""
    return {table.title(m): table.against_alpha(m, clients) for m in methods}


@lru_cache(maxsize=64)
def rows_of(table: Table, methods: tuple[str, ...], clients: int, alpha: float) -> list[Series]:
    """One Series a method at one stored setting."""
    return [Series(title, accuracies=at[alpha]) for title, at in results_of(table, methods, clients).items()]


def differs(table: Table, methods: Iterable[str], settings: Mapping[str, Any]) -> str:
    """A sentence that names the settings in which the controls differ from the table, if there are any."""
    known: dict[str, Any] = dict(OFF)
    for method in methods:
        made = table.made(method)
        for kind in (f"{method}.", "recipe."):  # a plain name that both have means the recipe
            known |= {name.removeprefix(kind): value for name, value in made.items() if name.startswith(kind)}
        known |= made
    known |= about_what(table.dataset)
    other = [k for k, v in settings.items() if k not in FREE and not same(known.get(k, v), v)]
    return f"Their {listed(other)} differ from yours." if other else ""


@lru_cache(maxsize=8)
def about_what(dataset: str) -> Mapping[str, Any]:
    """SAME, for the table of one data set."""
    return {**SAME, "dataset": dataset, "transform": Settings.make(dataset=dataset, device="cpu").transform}


def same(a: Any, b: Any) -> bool:
    """Whether two settings mean the same: 1, 1.0 and "1" do."""
    try:
        return float(a) == float(b)
    except (TypeError, ValueError):
        return str(a) == str(b)
