"""FENS, whom the aggregator trusts for what: its table beside who holds what, the clients in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .heat import Heat
from .style import LOCK, Picture, new_figure
from .words import percent

# What the numbers of the right table are, rule by rule: (title, unit, can be negative)
KINDS = {
    "averaging": ("Weight, fixed", "weight λ", False),
    "weighted": ("Weight, from the counts", "weight λ", False),
    "voting": ("Right votes", "P(votes c | truth c)", False),
    "linear": ("Weight, trained", "weight λ", True),
    "per_class": ("Weight, trained", "weight λ", True),
    "nn": ("Slope of the network", "mean ∂f_c / ∂z_ic", True),
    "moe": ("Gate", "mean gate", False),
    "added": ("What it adds", "mean weight × logit, own class", True),
}


class Trust:
    """The picture; `show(...)` brings it up to date, quickly where the tables keep their shape."""

    def __init__(self) -> None:
        self._made: tuple | None = None

    def show(
        self,
        counts: np.ndarray,
        weights: np.ndarray,
        names: Sequence[str],
        *,
        setting: str,
        rule: str = "per_class",
        at: int | None = None,
        rounds: int | None = None,
        limit: float = 0,
        client: int | None = None,
        klass: int | None = None,
    ) -> Picture:
        """Label counts `[M, C]` at the left, the rule's `weights [M, C]` (nan: forgotten) at the right.

        rule: a key of KINDS;   at of rounds: when the weights were like this;   limit: end of the colours
        """
        counts = np.asarray(counts)
        title, unit, signed = KINDS[rule]
        when = "" if at is None else f", round {at}" + (f" of {rounds}" if rounds else "")
        with LOCK:
            made = (len(counts), tuple(names), unit, signed)
            if made != self._made:
                self._make(*made)
                self._made = made
            marks = {"client": client, "klass": klass}
            self._left.show(counts, "Training samples", max(int(counts.max(initial=0)), 1), **marks)
            limit = limit or float(np.nanmax(np.abs(weights))) or 1.0
            self._right.show(weights, title + when, limit, **marks)
        return Picture(
            self.figure,
            alt=alt_text(counts, weights, setting, unit, when),
            sentence=sentence(counts, weights, names, when, client, klass, rule),
            table=table(counts, weights, names, unit),
        )

    def _make(self, clients: int, names: Sequence[str], unit: str, signed: bool) -> None:
        self.figure = new_figure()
        left, right = self.figure.subplots(1, 2, width_ratios=[1, 1.14])
        self._left = Heat(left, clients, names, signed=False)
        self._right = Heat(right, clients, names, text="{:.1f}", signed=signed, first=False)
        self._right.scale(unit)


def trust(*data: Any, **words: Any) -> Picture:
    """`Trust().show(...)`: one picture, for those who do not redraw it."""
    return Trust().show(*data, **words)


def likeness(counts: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """How far the weights resemble the partition: `correlation` with each client's share of a class, `owners` (classes
    whose heaviest client holds most of their samples) of `classes`, and the share of `negative` weights.
    """
    kept = np.isfinite(weights).all(1)
    counts, weights = np.asarray(counts, dtype=float)[kept], weights[kept]
    total = counts.sum(0)
    share = counts / np.maximum(total, 1)
    flat = np.ptp(share) < 1e-6 or np.ptp(weights) < 1e-6
    owned = [
        weights[:, c].argmax() == counts[:, c].argmax()
        for c in range(counts.shape[1])
        if total[c] and np.ptp(weights[:, c]) > 1e-6
    ]
    return {
        "correlation": 0.0 if flat else float(np.corrcoef(share.ravel(), weights.ravel())[0, 1]),
        "owners": int(sum(owned)),
        "classes": len(owned),
        "negative": float((weights < 0).mean()) if weights.size else 0.0,
    }


def sentence(
    counts: np.ndarray,
    weights: np.ndarray,
    names: Sequence[str],
    when: str,
    client: int | None,
    klass: int | None,
    rule: str,
) -> str:
    start = f"After{when[1:]}" if when else "Here"
    if client is not None and client < len(counts):
        row = weights[client]
        if not np.isfinite(row).all():
            return f"Client {client} is forgotten: neither its model nor its samples take part."
        best, worst, held = int(row.argmax()), int(row.argmin()), int(counts[client].argmax())
        return (
            f"{start} client {client} counts most for class {names[best]} ({row[best]:.2f}) and least for class "
            f"{names[worst]} ({row[worst]:.2f}); it holds most samples of class {names[held]} ({counts[client, held]} "
            f"of {counts[:, held].sum()})."
        )
    if klass is not None and klass < counts.shape[1]:
        column = np.where(np.isfinite(weights[:, klass]), weights[:, klass], -np.inf)
        owner, trusted = int(counts[:, klass].argmax()), int(column.argmax())
        return (
            f"{start} client {trusted} counts most for class {names[klass]} ({column[trusted]:.2f}); most samples of "
            f"it ({counts[owner, klass]} of {counts[:, klass].sum()}) lie at client {owner}."
        )
    like = likeness(counts, weights)
    if rule == "nn" and not weights.any():
        return (
            f"{start} no client moves the scores any more: the network's units have died. Take a smaller server rate."
        )
    if not like["classes"]:
        return f"{start} every client counts the same for every class."
    below = f" {percent(like['negative'])} of the weights are below zero, which no count can be." * (
        like["negative"] > 0
    )
    return (
        f"{start} the heaviest client of a class is the one with most of its samples for {like['owners']} of "
        f"{like['classes']} classes; weights and shares of samples correlate with {like['correlation']:.2f}.{below}"
    )


def alt_text(counts: np.ndarray, weights: np.ndarray, setting: str, unit: str, when: str) -> str:
    shape = f"{counts.shape[0]} clients across, {counts.shape[1]} classes down"
    finite = weights[np.isfinite(weights)]
    return (
        f"Two heat-maps ({setting}), {shape}: training samples, and the aggregator's {unit}{when}, from "
        f"{finite.min():.2f} to {finite.max():.2f}. The largest of each class is framed."
    )


def table(counts: np.ndarray, weights: np.ndarray, names: Sequence[str], unit: str) -> list[dict]:
    rows = []
    for k, row in enumerate(counts):
        rows.append({"client": k, "what": "samples", **{f"class {n}": int(v) for n, v in zip(names, row, strict=True)}})
        told = ["forgotten" if np.isnan(v) else round(float(v), 3) for v in weights[k]]
        rows.append({"client": k, "what": unit, **{f"class {n}": v for n, v in zip(names, told, strict=True)}})
    return rows
