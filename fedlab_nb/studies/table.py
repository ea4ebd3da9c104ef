"""Outcomes as a table: a list of dicts to compute with, which shows itself as a table in a notebook and as aligned text
in a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import FedlabError
from .results import aligned, html_table

WHAT = ("dataset", "partition", "alpha", "clients", "preset", "device")  # said once where it is the same in all rows
ALWAYS = ("method", "seed")


def data_size(count: float) -> str:
    """Bytes in decimal units: 26280 -> '26.3 kB'."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"


NUMBERS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "accuracy": ("accuracy", lambda share: f"{100 * share:.1f} %"),
    "bytes_up": ("up", data_size),
    "bytes_down": ("down", data_size),
    "parameters": ("parameters", lambda count: f"{count:,}".replace(",", " ")),
    "seconds_total": ("seconds", lambda seconds: f"{seconds:.2f}"),
}


class Table(list):
    """Rows, each a dict with the keys that the command line prints. It shows the commonest of them; `rows[0]` and
    `pandas.DataFrame(rows)` have all.
    """

    def __getitem__(self, at: Any) -> Any:
        part = super().__getitem__(at)
        return Table(part) if isinstance(at, slice) else part

    def cells(self) -> tuple[str, list[list[str]], int]:
        """What all rows share, in words; the head and the lines; how many of the first columns are words."""
        there = [name for name in WHAT if any(name in row for row in self)]
        same = [name for name in there if all(row.get(name) == self[0].get(name) for row in self)]
        words = [*(name for name in ALWAYS if any(name in row for row in self)), *(n for n in there if n not in same)]
        numbers = [name for name in NUMBERS if any(name in row for row in self)]
        head = [*words, *(NUMBERS[name][0] for name in numbers)]
        lines = [
            [*(text(row.get(name)) for name in words), *(text(row.get(n), NUMBERS[n][1]) for n in numbers)]
            for row in self
        ]
        return ", ".join(f"{name} {text(self[0][name])}" for name in same), [head, *lines], len(words)

    def __repr__(self) -> str:
        if not self:
            return "No outcomes."
        shared, rows, words = self.cells()
        return "\n".join([*filter(None, [shared]), aligned(rows, words)])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No outcomes.</p>"
        shared, rows, words = self.cells()
        return html_table(rows, words, shared)


class Outcomes(list):
    """Outcomes of a comparison. A notebook or a terminal shows them as a table."""

    def table(self) -> Table:
        """One row an outcome: a list of dicts with the keys that the command line prints, shown as a table."""
        return Table(outcome.to_json() for outcome in self)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def mean(self, method: str) -> float:
        """Mean test accuracy of `method` over the seeds."""
        values = [outcome.accuracy for outcome in self if outcome.method == method]
        if not values:
            raise FedlabError(f"No outcome of {method!r} is here; there are: {', '.join({o.method for o in self})}.")
        return sum(values) / len(values)


def text(value: Any, form: Callable[[Any], str] = str) -> str:
    return "" if value is None else form(value)
