"""FENS, whom the aggregator trusts for what: its table beside who holds what, the clients in the same order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....declared import declared
from ....plots.kit import Heat
from ....plots.style import LOCK, Picture, new_figure
from ....plots.words import percent, tabled
from ..numbers import likeness

# What the numbers of the right table are, rule by rule: (title, unit, can be negative)
KINDS = declared("course/fens/words.toml")["kinds"]


@dataclass(frozen=True, eq=False)
class Trusted:
    """Label counts `[M, C]`, and the rule's `weights [M, C]` (nan: forgotten).

    rule: a key of KINDS;   at of rounds: when the weights were like this;   limit: end of the colours
    """

    counts: np.ndarray
    weights: np.ndarray
    names: Sequence[str]
    setting: str
    rule: str = "per_class"
    at: int | None = None
    rounds: int | None = None
    limit: float = 0
    client: int | None = None
    klass: int | None = None

    @property
    def when(self) -> str:
        return "" if self.at is None else f", round {self.at}" + (f" of {self.rounds}" if self.rounds else "")

    @property
    def alt(self) -> str:
        clients, classes = self.counts.shape
        return (
            f"Two heat-maps ({self.setting}), {clients} clients across, {classes} classes down: training samples, and "
            f"the aggregator's {KINDS[self.rule][1]}{self.when}, from {np.nanmin(self.weights):.2f} to "
            f"{np.nanmax(self.weights):.2f}. The largest of each class is framed."
        )

    @property
    def sentence(self) -> str:
        counts, weights, names, k, c = self.counts, self.weights, self.names, self.client, self.klass
        start = f"After{self.when[1:]}" if self.when else "Here"
        if k is not None and k < len(counts):
            row = weights[k]
            if not np.isfinite(row).all():
                return f"Client {k} is forgotten: neither its model nor its samples take part."
            best, worst, held = int(row.argmax()), int(row.argmin()), int(counts[k].argmax())
            return (
                f"{start} client {k} counts most for class {names[best]} ({row[best]:.2f}) and least for class "
                f"{names[worst]} ({row[worst]:.2f}); it holds most samples of class {names[held]} ({counts[k, held]} "
                f"of {counts[:, held].sum()})."
            )
        if c is not None and c < len(names):
            trusted, owner = int(np.nanargmax(weights[:, c])), int(counts[:, c].argmax())
            return (
                f"{start} client {trusted} counts most for class {names[c]} ({weights[trusted, c]:.2f}); most samples "
                f"of it ({counts[owner, c]} of {counts[:, c].sum()}) lie at client {owner}."
            )
        like = likeness(counts, weights)
        if self.rule == "nn" and not weights.any():
            words = "no client changes the scores: all units of the network give 0. Take a smaller server rate."
            return f"{start} {words}"
        if not like.classes:
            return f"{start} every client counts the same for every class."
        below = f" {percent(like.negative)} of the weights are below zero, which no count can be."
        return (
            f"{start} the heaviest client of a class is the one with most of its samples for {like.owners} of "
            f"{like.classes} classes; weights and shares of samples correlate with {like.correlation:.2f}."
            f"{below if like.negative > 0 else ''}"
        )

    @property
    def table(self) -> list[dict]:
        rows = []
        for k, (held, row) in enumerate(zip(self.counts, self.weights, strict=True)):
            cells = ("forgotten" if np.isnan(v) else round(float(v), 3) for v in row)
            rows += [(k, "samples", *map(int, held)), (k, KINDS[self.rule][1], *cells)]
        return tabled(["client", "what", *(f"class {n}" for n in self.names)], rows)


class TrustPicture:
    """The picture; `show(trusted)` brings it up to date, quickly where the tables keep their shape."""

    def __init__(self) -> None:
        self._made: tuple | None = None

    def show(self, of: Trusted) -> Picture:
        title, unit, signed = KINDS[of.rule]
        marks = {"client": of.client, "klass": of.klass, "setting": of.setting}
        with LOCK:
            made = (len(of.counts), tuple(of.names), unit, signed)
            if made != self._made:
                self._make(*made)
                self._made = made
            self._left.show(of.counts, "Training samples", max(int(of.counts.max(initial=0)), 1), **marks)
            limit = of.limit or float(np.nanmax(np.abs(of.weights))) or 1.0
            self._right.show(of.weights, title + of.when, limit, **marks)
        return Picture.of(self.figure, of)

    def _make(self, clients: int, names: Sequence[str], unit: str, signed: bool) -> None:
        self.figure = new_figure()
        left, right = self.figure.subplots(1, 2, width_ratios=[1, 1.14])
        self._left = Heat(left, clients, names, signed=False)
        self._right = Heat(right, clients, names, text="{:.1f}", signed=signed, first=False)
        self._right.scale(unit)
