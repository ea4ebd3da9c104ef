"""The stored results nearest to a panel's controls: what it shows before its first run.

`find_nearest_stored_results(methods, settings)` is None where the table has nothing to say (other data, another
partition, another model), so that a view can ask for a run instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import FedlabError
from ..methods import METHODS
from ..plots import MethodResults, Picture
from ..plots.partition import TitledBars
from ..plots.stored_curves import (
    AccuracyByTitleAlphaAndSeed,
    StoredPlot,
    find_index_of_nearest_alpha,
)
from ..plots.words import format_count_and_noun, join_with_and
from ..studies.settings import Settings
from ..studies.statistics import Band, compute_band
from ..studies.stored_results import DIGITS, StoredTable, list_datasets_with_stored_results, load
from ..training.recipe import OFF
from ..value_types import SettingsByName, SettingValue
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
class NearestStoredResults:
    """The stored results that are nearest to a panel's settings.

    table:    the stored table
    methods:  those of the panel's methods that the table has
    settings: of the panel, arguments of `study.job`
    """

    table: StoredTable
    methods: tuple[str, ...]
    settings: SettingsByName

    @property
    def stored_client_count(self) -> int:
        """The stored number of clients that is nearest."""
        return self.table.find_nearest_client_count(self.settings.get("clients", 10))

    @property
    def chosen_alpha(self) -> float:
        """The panel's α, which need not be stored."""
        return float(self.settings.get("alpha", 0.1))

    def draw_into_stored_plot(self, plot: StoredPlot) -> Picture:
        """Draw accuracy against α into `plot`, and return the picture."""
        return plot.show(
            collect_stored_accuracies(self.table, self.methods, self.stored_client_count),
            chosen_alpha=self.chosen_alpha,
            stored_client_count=self.stored_client_count,
            source_text=self.table.label,
            dataset=self.table.dataset,
            wanted_client_count=int(self.settings.get("clients", 10)),
            reference_titles=[
                self.table.get_title_of_method(method)
                for method in self.methods
                if method in BOUNDS
            ],
            chance_accuracy=0.1,
            appended_sentence=self.describe_setting_differences_or_empty(),
        )

    def make_bars_of_nearest_setting(self) -> TitledBars:
        """Make the bars for `PartitionPicture`: a `MethodResults` for each method at the nearest stored setting."""
        alpha = self.stored_alpha
        title = (
            f"Stored: α = {alpha:g}, {format_count_and_noun(self.stored_client_count, 'client')}"
        )
        series = make_stored_results(self.table, self.methods, self.stored_client_count, alpha)
        return TitledBars(series, title)

    @property
    def stored_alpha(self) -> float:
        """The stored α that is nearest."""
        return self.table.alphas[find_index_of_nearest_alpha(self.table.alphas, self.chosen_alpha)]

    def get_bands_by_method_or_empty(self) -> dict[str, Band]:
        """Return {method: the band of its stored seeds} at the nearest stored α.

        {} if the panel's number of clients is not stored, or other settings differ from those of the table.
        """
        has_same_clients = self.settings.get("clients", 10) == self.stored_client_count
        if not has_same_clients or self.describe_setting_differences_or_empty():
            return {}
        bands = {}
        for method in self.methods:
            accuracies = self.table.get_accuracies_by_seed(
                method, self.stored_alpha, self.stored_client_count
            )
            bands[method] = compute_band(accuracies)
        return bands

    def describe_stored_seeds(self) -> str:
        """Say what the bands of `get_bands_by_method_or_empty` are: '10 stored seeds at α = 0.1'."""
        text = f"{len(self.table.seeds)} stored seeds"
        if self.stored_alpha != self.chosen_alpha:
            text += f" at α = {self.stored_alpha:g}"
        return text

    def describe_setting_differences_or_empty(self) -> str:
        """Name the settings in which the controls differ from the table, in a sentence; '' if there are none."""
        stored: dict[str, Any] = dict(OFF)
        for method in self.methods:
            options = self.table.get_options_of_method(method)
            # A plain name that method and recipe both have means the recipe.
            for prefix in (f"{method}.", "recipe."):
                for name, value in options.items():
                    stored[name.removeprefix(prefix)] = value
            stored |= options
        stored |= make_required_settings_of_stored_table(self.table.dataset)
        differing = []
        for name, value in self.settings.items():
            is_same = is_same_setting_value(stored.get(name, value), value)
            if name not in NOT_COMPARED and not is_same:
                differing.append(name)
        if not differing:
            return ""
        return f"Their {join_with_and(differing)} differ from yours."


def find_nearest_stored_results(
    methods: Sequence[str], settings: SettingsByName
) -> NearestStoredResults | None:
    """Find the stored results of these methods nearest to these settings; None if no stored table fits."""
    dataset = str(settings.get("dataset", DIGITS))
    try:
        if dataset not in list_datasets_with_stored_results():
            return None
        table = load(dataset)
    except FedlabError:
        return None
    known = tuple(method for method in methods if method in METHODS and method in table.methods)
    if not known:
        return None
    for name, value in make_required_settings_of_stored_table(dataset).items():
        if not is_same_setting_value(settings.get(name, value), value):
            return None
    return NearestStoredResults(table, known, settings)


# The same objects for the same setting: pictures that are redrawn in place look at what is new.
@lru_cache(maxsize=8)
def collect_stored_accuracies(
    table: StoredTable, methods: tuple[str, ...], stored_client_count: int
) -> AccuracyByTitleAlphaAndSeed:
    """Collect {title: {stored α: {seed: accuracy 0–1}}} for a stored number of clients."""
    accuracies = {}
    for method in methods:
        by_alpha = table.get_accuracies_by_alpha_and_seed(method, stored_client_count)
        accuracies[table.get_title_of_method(method)] = by_alpha
    return accuracies


@lru_cache(maxsize=64)
def make_stored_results(
    table: StoredTable, methods: tuple[str, ...], stored_client_count: int, stored_alpha: float
) -> list[MethodResults]:
    """Make a `MethodResults` for each method at one stored setting, with accuracies alone."""
    series = []
    for title, by_alpha in collect_stored_accuracies(table, methods, stored_client_count).items():
        series.append(MethodResults(title, accuracies=by_alpha[stored_alpha]))
    return series


@lru_cache(maxsize=8)
def make_required_settings_of_stored_table(dataset: str) -> dict[str, SettingValue]:
    """Make the settings with which the stored table of a data set was made (REQUIRED, its name and transform)."""
    transform = Settings.make(dataset=dataset, device="cpu").transform
    return {**REQUIRED, "dataset": dataset, "transform": transform}


def is_same_setting_value(first: SettingValue, second: SettingValue) -> bool:
    """Whether two values of a setting mean the same: 1, 1.0 and "1" do."""
    try:
        return float(first) == float(second)
    except (TypeError, ValueError):
        return str(first) == str(second)
