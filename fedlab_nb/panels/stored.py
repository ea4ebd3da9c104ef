"""What a panel shows before its first run: the stored results nearest to its controls.

`nearby(methods, settings)` is None where the table has nothing to say (other data, another partition, another model),
so that a view can ask for a run instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import FedlabError
from ..methods import METHODS
from ..plots import Picture, Series
from ..plots.stored_curves import StoredPlot, nearest
from ..plots.words import listed, plural
from ..studies.settings import Settings
from ..studies.stored_results import DIGITS, StoredTable, list_stored_sets, load
from ..training.recipe import OFF
from .record import BOUNDS

# Settings that a table is about; with any other value of them, or of the transform, its numbers would mislead.
SAME = {"preset": "classroom", "partition": "dirichlet", "spurious": "", "model": "auto",
        "init": "same", "holdout": 0.1, "holdout_for": "all", "public": "own",
        "poison": "none", "absent": "", "unseen": "", "moves": ""}  # fmt: skip
FREE = ("alpha", "clients", "seed", "seeds", "device", "backend", "tint", "classes_per_client")


@dataclass(frozen=True)
class Nearby:
    """What a stored table has for a panel. methods: those that the table has;   settings: arguments of `study.job`"""

    table: StoredTable
    methods: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def clients(self) -> int:
        """The stored number of clients that is nearest."""
        return self.table.nearest_clients(self.settings.get("clients", 10))

    @property
    def alpha(self) -> float:
        return float(self.settings.get("alpha", 0.1))

    def picture(self, kept: StoredPlot) -> Picture:
        """Accuracy against α; `kept` is drawn anew in place."""
        return kept.show(
            results_of(self.table, self.methods, self.clients), alpha=self.alpha, clients=self.clients,
            source=self.table.label, dataset=self.table.dataset, wanted=int(self.settings.get("clients", 10)),
            bounds=[self.table.title(m) for m in self.methods if m in BOUNDS], chance=0.1, note=self.differs(),
        )  # fmt: skip

    def bars(self) -> tuple[Sequence[Series], str]:
        """For `plots.Partition`: one Series a method at the nearest stored setting, and the title over its bars."""
        alpha = self.table.alphas[nearest(self.table.alphas, self.alpha)]
        title = f"Stored: α = {alpha:g}, {plural(self.clients, 'client')}"
        return rows_of(self.table, self.methods, self.clients, alpha), title

    def differs(self) -> str:
        """A sentence that names the settings in which the controls differ from the table, if there are any."""
        known: dict[str, Any] = dict(OFF)
        for method in self.methods:
            made = self.table.options(method)
            for kind in (f"{method}.", "recipe."):  # a plain name that both have means the recipe
                known |= {
                    name.removeprefix(kind): value
                    for name, value in made.items()
                    if name.startswith(kind)
                }
            known |= made
        known |= about_what(self.table.dataset)
        other = [
            k for k, v in self.settings.items() if k not in FREE and not same(known.get(k, v), v)
        ]
        return f"Their {listed(other)} differ from yours." if other else ""


def nearby(methods: Sequence[str], settings: Mapping[str, Any]) -> Nearby | None:
    """What the table that fits these settings has for the methods; None: there is none."""
    name = str(settings.get("dataset", DIGITS))
    try:
        table = load(name) if name in list_stored_sets() else None
    except FedlabError:
        return None
    known = tuple(m for m in methods if m in METHODS and table is not None and m in table.methods)
    fits = known and all(same(settings.get(k, v), v) for k, v in about_what(name).items())
    return Nearby(table, known, settings) if fits else None


# The same objects for the same setting: pictures that are redrawn in place look at what is new.
@lru_cache(maxsize=8)
def results_of(table: StoredTable, methods: tuple[str, ...], clients: int) -> dict[str, dict]:
    """{title: {stored α: {seed: accuracy}}}"""
    return {table.title(m): table.against_alpha(m, clients) for m in methods}


@lru_cache(maxsize=64)
def rows_of(
    table: StoredTable, methods: tuple[str, ...], clients: int, alpha: float
) -> list[Series]:
    """One Series a method at one stored setting."""
    return [
        Series(title, accuracies=at[alpha])
        for title, at in results_of(table, methods, clients).items()
    ]


@lru_cache(maxsize=8)
def about_what(dataset: str) -> Mapping[str, Any]:
    """SAME, for the table of one data set."""
    return {
        **SAME,
        "dataset": dataset,
        "transform": Settings.make(dataset=dataset, device="cpu").transform,
    }


def same(a: Any, b: Any) -> bool:
    """Whether two settings mean the same: 1, 1.0 and "1" do."""
    try:
        return float(a) == float(b)
    except (TypeError, ValueError):
        return str(a) == str(b)
