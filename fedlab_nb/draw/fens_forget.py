"""FENS without a client: accuracy by class before and after, or what each client's leaving changes, beside who holds
what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from .accuracy import PERCENT
from .heat import Heat
from .style import ACCENT, FAINT, LOCK, QUIET, SECOND, Picture, dress, legend, new_figure, shorten
from .words import percent


def forget_one(
    before: np.ndarray, after: np.ndarray, counts: np.ndarray, names: Sequence[str], gone: int,
    *, setting: str, total: tuple[float, float], klass: int | None = None,
) -> Picture:  # fmt: skip
    """Accuracy `[C]` with everybody and without client `gone` (nan: class without test samples).

    counts `[M, C]`: training samples;   total: accuracy before and after over all classes
    """
    before, after = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    share = counts[gone] / np.maximum(counts.sum(0), 1)
    with LOCK:
        figure = new_figure()
        upper, lower = figure.subplots(2, 1, height_ratios=[2.6, 1], sharex=True)
        dumbbells(upper, before, after, gone)
        dress(lower, y="its share", grid="y")
        lower.bar(range(len(names)), share, width=0.55, color="#9aa4ae")
        lower.set_ylim(0, 1.05)
        lower.set_yticks([0, 0.5, 1])
        lower.yaxis.set_major_formatter(PERCENT)
        lower.set_xlabel(f"class, and how much of its training samples client {gone} holds", fontsize=10, color=QUIET)
        if len(names) <= 26:
            lower.set_xticks(range(len(names)), shorten(names, 8))
        lower.set_xlim(-0.6, len(names) - 0.4)
        if klass is not None and klass < len(names):
            for ax in (upper, lower):
                ax.axvspan(klass - 0.5, klass + 0.5, color=SECOND, alpha=0.13, lw=0, zorder=0)
    fall = before - after
    return Picture(
        figure,
        alt=f"Accuracy by class with all clients and without client {gone} ({setting}): from {percent(total[0])} to "
        f"{percent(total[1])} over all classes. Below, the client's share of each class.",
        sentence=one_sentence(fall, before, after, share, names, gone, total, klass),
        table=[
            {"class": n, "with all": told(b), f"without client {gone}": told(a), "its share of the samples": percent(s)}
            for n, b, a, s in zip(names, before, after, share, strict=True)
        ],
    )


def told(share: float) -> str:
    return "" if np.isnan(share) else percent(share)


def dumbbells(ax: Axes, before: np.ndarray, after: np.ndarray, gone: int) -> None:
    dress(ax, title="Accuracy by class", grid="y")
    x = np.arange(len(before))
    ax.vlines(x, np.minimum(before, after), np.maximum(before, after), color=FAINT, lw=6, zorder=1)
    ax.plot(x, before, "o", color=ACCENT, ms=8, label="with all clients")
    ax.plot(x, after, "D", color=SECOND, ms=6.5, label=f"without client {gone}")
    ax.set_ylim(-0.04, 1.05)
    ax.yaxis.set_major_formatter(PERCENT)
    ax.tick_params(axis="x", length=0)
    made = legend(ax, loc="lower right", bbox_to_anchor=(1.01, 0.985), ncols=2, borderpad=0, handletextpad=0.3)
    made.set_in_layout(False)


def one_sentence(
    fall: np.ndarray, before: np.ndarray, after: np.ndarray, share: np.ndarray, names: Sequence[str], gone: int,
    total: tuple[float, float], klass: int | None,
) -> str:  # fmt: skip
    known = ~np.isnan(fall)
    text = f"Without client {gone}, accuracy goes from {percent(total[0])} to {percent(total[1])}"
    if not known.any():
        return f"{text}."
    if klass is not None and klass < len(fall) and known[klass]:
        return (
            f"{text}; on class {names[klass]}, of which it holds {percent(share[klass])}, from "
            f"{percent(before[klass])} to {percent(after[klass])}."
        )
    worst = int(np.nanargmax(fall))
    text += (
        f". Class {names[worst]}, of which it holds {percent(share[worst])}, loses most "
        f"({percent(before[worst])} to {percent(after[worst])})"
    )
    others = np.delete(fall, worst)
    others = others[~np.isnan(others)]
    if len(others):
        text += f"; the others change by {-100 * others.mean():+.0f} points on average"
    return f"{text}."


def forget_each(
    change: np.ndarray, counts: np.ndarray, names: Sequence[str], *, setting: str,
    client: int | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """`change [M, C]`: accuracy of class c without client k minus with all (nan: not known), beside `counts [M, C]`."""
    change, counts = np.asarray(change, dtype=float), np.asarray(counts)
    with LOCK:
        figure = new_figure()
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.14])
        marks = {"client": client, "klass": klass}
        held = Heat(left, len(counts), names, signed=False)
        held.show(counts, "Training samples", max(int(counts.max(initial=0)), 1), **marks)
        lost = Heat(right, len(counts), names, signed=True, first=False)
        lost.show(100 * change, "Change without the client", 100, ring=False, **marks)
        lost.scale("accuracy of the class, points")
    return Picture(
        figure,
        alt=f"Two heat-maps ({setting}), clients across, classes down: training samples, and by how many points the "
        f"accuracy of a class changes when a client is forgotten, from {100 * np.nanmin(change):.0f} to "
        f"{100 * np.nanmax(change):+.0f}.",
        sentence=each_sentence(change, counts, names, client, klass),
        table=rows_of(change, names),
    )


def rows_of(change: np.ndarray, names: Sequence[str]) -> list[dict]:
    rows = []
    for k, row in enumerate(change):
        told = ["" if np.isnan(v) else f"{100 * v:+.0f}" for v in row]
        rows.append({"without client": k, **{f"class {n}": v for n, v in zip(names, told, strict=True)}})
    return rows


def each_sentence(
    change: np.ndarray, counts: np.ndarray, names: Sequence[str], client: int | None, klass: int | None
) -> str:
    shown = change
    text = "The largest loss"
    if client is not None and client < len(change):
        shown = np.where(np.arange(len(change))[:, None] == client, change, np.nan)
        text = f"Client {client}'s largest loss"
    elif klass is not None and klass < change.shape[1]:
        shown = np.where(np.arange(change.shape[1]) == klass, change, np.nan)
        text = f"Class {names[klass]}'s largest loss"
    if np.isnan(shown).all():
        return "No accuracy is known there."
    k, c = np.unravel_index(np.nanargmin(shown), shown.shape)
    if change[k, c] >= 0:
        return f"{text}: there is none."
    share = counts[k, c] / max(counts[:, c].sum(), 1)
    text += f": class {names[c]} without client {k}, {100 * change[k, c]:.0f} points; it holds {percent(share)} of it"
    losses = change < -0.2
    if client is None and klass is None:
        owned = (counts / np.maximum(counts.sum(0), 1) > 0.5) & ~np.isnan(change)
        text += (
            f". {int(losses.sum())} of {int((~np.isnan(change)).sum())} cells lose more than 20 points, "
            f"{int((losses & owned).sum())} of them where the client holds more than half of the class"
        )
    return f"{text}."
