"""The stored results nearest to a panel's controls: what it shows before its first run.

`find_nearest_results(methods, settings)` is None where the table has nothing to say (other data, another partition,
another model), so that a view can ask for a run instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import FedlabError
from ..methods import METHODS
from ..plots import Picture, Series
from ..plots.stored_curves import StoredPlot, find_nearest_index
from ..plots.words import join_words, plural
from ..studies.settings import Settings
from ..studies.stored_results import DIGITS, StoredTable, list_stored_sets, load
from ..training.recipe import OFF
from .record import BOUNDS

# Settings that every table was made with; with any other value its numbers would mislead.
REQUIRED = {
    "preset": "classroom",
    "partition": "dirichlet",
    "spurious": "",
    "model": "auto",
    "init": "same",
    "holdout": 0.1,
    "holdout_for": "all",
    "public": "own",
    "poison": "none",
    "absent": "",
    "unseen": "",
    "moves": "",
}
# Settings that are not compared: the table has several of them, or they change no result.
NOT_COMPARED = (
    "alpha",
    "clients",
    "seed",
    "seeds",
    "device",
    "backend",
    "tint",
    "classes_per_client",
)


@dataclass(frozen=True)
class NearestResults:
    """What a stored table has for a panel.

    methods:  those that the table has;   settings: the panel's, arguments of `study.job`
    """

    table: StoredTable
    methods: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def clients(self) -> int:
        """The stored number of clients that is nearest."""
        return self.table.find_nearest_clients(self.settings.get("clients", 10))

    @property
    def alpha(self) -> float:
        """The panel's α, which need not be stored."""
        return float(self.settings.get("alpha", 0.1))

    def draw(self, plot: StoredPlot) -> Picture:
        """Accuracy against α, drawn into `plot`."""
        return plot.show(
            collect_accuracies(self.table, self.methods, self.clients),
            alpha=self.alpha,
            clients=self.clients,
            source=self.table.label,
            dataset=self.table.dataset,
            wanted_clients=int(self.settings.get("clients", 10)),
            bounds=[self.table.title(method) for method in self.methods if method in BOUNDS],
            chance=0.1,
            note=self.describe_differences(),
        )

    def make_bars(self) -> tuple[Sequence[Series], str]:
        """For `plots.Partition`: one Series a method at the nearest stored setting, and the title over its bars."""
        alpha = self.table.alphas[find_nearest_index(self.table.alphas, self.alpha)]
        title = f"Stored: α = {alpha:g}, {plural(self.clients, 'client')}"
        return make_series(self.table, self.methods, self.clients, alpha), title

    def describe_differences(self) -> str:
        """A sentence that names the settings in which the controls differ from the table; '' where there are none."""
        stored: dict[str, Any] = dict(OFF)
        for method in self.methods:
            options = self.table.options(method)
            # A plain name that method and recipe both have means the recipe.
            for prefix in (f"{method}.", "recipe."):
                for name, value in options.items():
                    stored[name.removeprefix(prefix)] = value
            stored |= options
        stored |= find_required_settings(self.table.dataset)
        differing = []
        for name, value in self.settings.items():
            is_same = is_same_value(stored.get(name, value), value)
            if name not in NOT_COMPARED and not is_same:
                differing.append(name)
        if not differing:
            return ""
        return f"Their {join_words(differing)} differ from yours."


def find_nearest_results(
    methods: Sequence[str], settings: Mapping[str, Any]
) -> NearestResults | None:
    """What the table that fits these settings has for the methods; None: there is none."""
    dataset = str(settings.get("dataset", DIGITS))
    try:
        if dataset not in list_stored_sets():
            return None
        table = load(dataset)
    except FedlabError:
        return None
    known = tuple(method for method in methods if method in METHODS and method in table.methods)
    if not known:
        return None
    for name, value in find_required_settings(dataset).items():
        if not is_same_value(settings.get(name, value), value):
            return None
    return NearestResults(table, known, settings)


# The same objects for the same setting: pictures that are redrawn in place look at what is new.
@lru_cache(maxsize=8)
def collect_accuracies(
    table: StoredTable, methods: tuple[str, ...], clients: int
) -> dict[str, dict[float, Any]]:
    """{title: {stored α: {seed: accuracy}}}"""
    return {
        table.title(method): table.list_accuracies_by_alpha(method, clients) for method in methods
    }


@lru_cache(maxsize=64)
def make_series(
    table: StoredTable, methods: tuple[str, ...], clients: int, alpha: float
) -> list[Series]:
    """One Series a method at one stored setting."""
    series = []
    for title, by_alpha in collect_accuracies(table, methods, clients).items():
        series.append(Series(title, accuracies=by_alpha[alpha]))
    return series


@lru_cache(maxsize=8)
def find_required_settings(dataset: str) -> Mapping[str, Any]:
    """REQUIRED, for the table of one data set."""
    transform = Settings.make(dataset=dataset, device="cpu").transform
    return {**REQUIRED, "dataset": dataset, "transform": transform}


def is_same_value(a: Any, b: Any) -> bool:
    """Whether two values of a setting mean the same: 1, 1.0 and "1" do."""
    try:
        return float(a) == float(b)
    except (TypeError, ValueError):
        return str(a) == str(b)
