"""What a panel shows before its first run: the stored results nearest to its controls.

`StoredResults().show(methods, settings)` gives a Picture, or None where the table has nothing to say (other data,
another partition, another model), so that the view can ask for a run instead.
"""

from collections.abc import Mapping, Sequence
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
        self._results: dict[tuple, dict] = {}
        self._rows: dict[tuple, list[Series]] = {}

    def show(self, methods: Sequence[str], settings: Mapping[str, Any]) -> Picture | None:
        """settings: keyword arguments of `study.job`."""
        answer = self._find(methods, settings)
        if answer is None:
            return None
        table, titles, clients, results = answer
        return self._picture.show(
            results, alpha=float(settings.get("alpha", 0.1)), clients=clients, source=table.label,
            dataset=table.dataset,
            wanted=int(settings.get("clients", 10)), bounds=[t for m, t in titles.items() if m in BOUNDS], chance=0.1,
            note=self._differs(table, titles, settings),
        )  # fmt: skip

    def label(self, methods: Sequence[str], settings: Mapping[str, Any]) -> str:
        """What a picture says of its source; "" where no table has something to say."""
        answer = self._find(methods, settings)
        return answer[0].label if answer is not None else ""

    def bars(self, methods: Sequence[str], settings: Mapping[str, Any]) -> tuple[list[Series], str] | None:
        """For `plots.Partition`: one Series a method at the nearest stored setting, and the title over its bars."""
        answer = self._find(methods, settings)
        if answer is None:
            return None
        table, _, clients, results = answer
        alpha = table.grid.alphas[nearest(table.grid.alphas, float(settings.get("alpha", 0.1)))]
        key = (table.dataset, tuple(results), clients, alpha)
        if key not in self._rows:
            self._rows[key] = [Series(title, accuracies=at[alpha]) for title, at in results.items()]
        return self._rows[key], f"Stored: α = {alpha:g}, {plural(clients, 'client')}"

    def _find(self, methods: Sequence[str], settings: Mapping[str, Any]) -> tuple[Any, dict, int, dict] | None:
        """(table, {method: title}, stored number of clients, {title: results}), or None where it says nothing."""
        name = str(settings.get("dataset", DIGITS))
        try:
            if name not in sets():
                return None
            table = load(name)
        except FedlabError:
            return None
        titles = {m: METHODS[m].info.title for m in methods if m in METHODS and m in table.methods}
        if not titles or any(not same(settings.get(key, value), value) for key, value in about_what(name).items()):
            return None
        clients = table.nearest_clients(settings.get("clients", 10))
        key = (name, tuple(titles), clients)
        if key not in self._results:
            self._results[key] = {title: table.against_alpha(m, clients) for m, title in titles.items()}
        return table, titles, clients, self._results[key]

    def _differs(self, table: Table, methods: Sequence[str], settings: Mapping[str, Any]) -> str:
        """A sentence that names the settings in which the controls differ from the table, if there are any."""
        about = table.about
        known = {**OFF, **about["recipe"], **about_what(table.dataset)}
        for method in methods:
            options = about["methods"][method]["options"]
            known |= {name: value for name, value in options.items() if name not in about["recipe"]}
            known |= {f"{method}.{name}": value for name, value in options.items()}
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
