"""What a panel shows before its first run: the stored results nearest to its controls.

`StoredResults().show(methods, settings)` gives a Picture, or None where the table has nothing to say (other data,
another partition, another model), so that the view can ask for a run instead.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FedlabError
from ..methods import METHODS
from ..plots import Picture, Series
from ..plots.stored import Stored, nearest
from ..plots.words import listed, plural
from ..study.stored import ALPHAS, load
from ..training.recipe import OFF
from .record import BOUNDS

# Settings that the table is about; with any other value of them its numbers would mislead.
SAME = {"dataset": "digits", "preset": "classroom", "partition": "dirichlet", "spurious": "", "model": "auto",
        "init": "same", "holdout": 0.1, "holdout_for": "all", "public": "own", "transform": "none"}  # fmt: skip
FREE = ("alpha", "clients", "seed", "seeds", "device", "backend", "tint", "classes_per_client")


class StoredResults:
    """Pictures of the stored table, redrawn in place; one object a panel, used by one thread at a time."""

    def __init__(self) -> None:
        self._picture = Stored()
        self._results: dict[tuple, dict] = {}

    def show(self, methods: Sequence[str], settings: Mapping[str, Any]) -> Picture | None:
        """settings: keyword arguments of `study.job`."""
        answer = self._find(methods, settings)
        if answer is None:
            return None
        table, titles, clients, results = answer
        return self._picture.show(
            results, alpha=float(settings.get("alpha", 0.1)), clients=clients, source=table.label,
            wanted=int(settings.get("clients", 10)), bounds=[t for m, t in titles.items() if m in BOUNDS], chance=0.1,
            note=self._differs(table.about, titles, settings),
        )  # fmt: skip

    def speaks(self, methods: Sequence[str], settings: Mapping[str, Any]) -> bool:
        """Whether the table has something to say."""
        return self._find(methods, settings) is not None

    def bars(self, methods: Sequence[str], settings: Mapping[str, Any]) -> tuple[list[Series], str] | None:
        """For `plots.Partition`: one Series a method at the nearest stored setting, and the title over its bars."""
        answer = self._find(methods, settings)
        if answer is None:
            return None
        _, _, clients, results = answer
        alpha = ALPHAS[nearest(ALPHAS, float(settings.get("alpha", 0.1)))]
        rows = [Series(title, accuracies=at[alpha]) for title, at in results.items()]
        return rows, f"Stored: α = {alpha:g}, {plural(clients, 'client')}"

    def _find(self, methods: Sequence[str], settings: Mapping[str, Any]) -> tuple[Any, dict, int, dict] | None:
        """(table, {method: title}, stored number of clients, {title: results}), or None where it says nothing."""
        try:
            table = load()
        except FedlabError:
            return None
        titles = {m: METHODS[m].info.title for m in methods if m in METHODS and m in table.methods}
        if not titles or any(not same(settings.get(key, value), value) for key, value in SAME.items()):
            return None
        clients = table.nearest_clients(settings.get("clients", 10))
        key = (tuple(titles), clients)
        if key not in self._results:
            self._results[key] = {title: table.against_alpha(m, clients) for m, title in titles.items()}
        return table, titles, clients, self._results[key]

    def _differs(self, about: Mapping[str, Any], methods: Sequence[str], settings: Mapping[str, Any]) -> str:
        """A sentence that names the settings in which the controls differ from the table, if there are any."""
        known = {**OFF, **about["recipe"], **SAME}
        for method in methods:
            options = about["methods"][method]["options"]
            known |= {name: value for name, value in options.items() if name not in about["recipe"]}
            known |= {f"{method}.{name}": value for name, value in options.items()}
        other = [k for k, v in settings.items() if k not in FREE and not same(known.get(k, v), v)]
        return f"Their {listed(other)} differ from yours." if other else ""


def same(a: Any, b: Any) -> bool:
    """Whether two settings mean the same: 1, 1.0 and "1" do."""
    try:
        return float(a) == float(b)
    except (TypeError, ValueError):
        return str(a) == str(b)
