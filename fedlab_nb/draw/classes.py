"""Who gains and who loses: accuracy for each class and for each client's own mix of classes, one row a method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .series import Series, finished, settings_of
from .style import ACCENT, INK, LOCK, QUIET, Picture, many_is_dark, new_figure, shorten
from .words import percent

STACKED = 9  # more rows than this, and the two heat-maps stand side by side


def classes(
    series: Sequence[Series], class_names: Sequence[str], *, client: int | None = None, klass: int | None = None
) -> Picture:
    """Two heat-maps (means over seeds): methods × classes, methods × clients. `client` and `klass` are marked."""
    done = finished(series)
    per_class, per_client = averages(done, "per_class"), averages(done, "per_client")
    with LOCK:
        figure = new_figure()
        many = len(done) > STACKED
        first, second = figure.subplots(1, 2, sharey=True) if many else figure.subplots(2, 1)
        heat(
            first,
            per_class,
            done,
            "Accuracy for each class" if not many else "By class",
            shorten(class_names, 10),
            "class",
        )
        title = "By client, its own mix" if many else "Accuracy for each client's own mix of classes"
        image = heat(second, per_client, done, title + seed_of(done), None, "client")
        if client is not None and per_client.shape[1] > client:
            second.axvspan(client - 0.5, client + 0.5, fill=False, edgecolor=ACCENT, lw=2.5, clip_on=False)
        if klass is not None and per_class.shape[1] > klass:
            first.axvspan(klass - 0.5, klass + 0.5, fill=False, edgecolor=ACCENT, lw=2.5, clip_on=False)
        bar = figure.colorbar(image, ax=[first, second], pad=0.015, aspect=32, format=PERCENT)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8.5, colors=QUIET, labelcolor=INK)
    return Picture(
        figure,
        alt=alt_text(done, per_class, per_client),
        sentence=sentence(done, per_class, per_client, class_names, client, klass),
        table=table(done, per_class, per_client, class_names),
    )


def seed_of(series: Sequence[Series]) -> str:
    """Which seed's clients are shown, where it is one: client 3 of another seed is another client."""
    seeds = {seed for s in series for seed in s.per_client}
    return f", seed {seeds.pop()}" if len(seeds) == 1 else ""


def averages(series: Sequence[Series], name: str) -> np.ndarray:
    """Means over seeds, `[rows, columns]`, nan where there is nothing; rows of fewer clients are filled with nan."""
    rows = []
    for s in series:
        values = np.array([[np.nan if a is None else a for a in v] for v in getattr(s, name).values()], dtype=float)
        known = ~np.isnan(values)
        rows.append(np.where(known.any(0), np.nansum(values, 0) / np.maximum(known.sum(0), 1), np.nan))
    wide = max((len(r) for r in rows), default=0)
    return np.array([np.pad(r, (0, wide - len(r)), constant_values=np.nan) for r in rows]).reshape(len(rows), wide)


def heat(ax: Axes, values: np.ndarray, series: Sequence[Series], title: str, names: Sequence[str] | None, x: str):
    """One heat-map, 0–100 %; its numbers are written into the cells while they fit."""
    rows, columns = max(1, values.shape[0]), max(1, values.shape[1])
    shown = values if values.size else np.full((rows, columns), np.nan)
    image = ax.imshow(shown, cmap=many_is_dark(empty=False), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if columns <= 20 and rows <= 8:
        for i, j in np.argwhere(~np.isnan(shown)):
            dark = shown[i, j] > 0.5
            ax.text(
                j, i, f"{100 * shown[i, j]:.0f}", ha="center", va="center", fontsize=8.5, color="white" if dark else INK
            )
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=5)
    if names is not None and columns <= 20:
        ax.set_xticks(range(len(names)), names)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(min(columns, 15), integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlim(-0.5, columns - 0.5)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    small = 9.5 if rows <= 8 else 8.5 if rows <= 16 else 7
    ax.set_yticks(range(len(series)), [s.lines for s in series], fontsize=small)
    ax.set_xlabel(x, fontsize=9, color=QUIET, labelpad=1)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return image


def sentence(
    series: Sequence[Series],
    per_class: np.ndarray,
    per_client: np.ndarray,
    names: Sequence[str],
    client: int | None,
    klass: int | None = None,
) -> str:
    ranked = [i for i, s in enumerate(series) if not s.bound] or list(range(len(series)))
    if not ranked:
        return "No result yet."
    best = max(ranked, key=lambda i: series[i].mean)
    row, label = per_class[best], series[best].name
    text = f"{label}, the best on average"
    if not np.isnan(row).all():
        worst, top = int(np.nanargmin(row)), int(np.nanargmax(row))
        text += f", has {percent(row[worst])} on class {names[worst]} and {percent(row[top])} on class {names[top]}"
    if klass is not None and klass < per_class.shape[1]:
        values = [(per_class[i, klass], s.name) for i, s in enumerate(series) if not np.isnan(per_class[i, klass])]
        text = f"Class {names[klass]}: " + ", ".join(f"{name} {percent(a)}" for a, name in values)
    if client is not None and client < per_client.shape[1]:
        values = [(per_client[i, client], s.name) for i, s in enumerate(series) if not np.isnan(per_client[i, client])]
        told = ", ".join(f"{name} {percent(a)}" for a, name in values)
        return f"{text}. Client {client} on its own mix: {told}."
    row = per_client[best]
    if not np.isnan(row).all():
        text += f"; its clients see {percent(np.nanmin(row))} to {percent(np.nanmax(row))} on their own mix"
    return f"{text}."


def alt_text(series: Sequence[Series], per_class: np.ndarray, per_client: np.ndarray) -> str:
    parts = []
    for s, a, b in zip(series, per_class, per_client, strict=True):
        if not (np.isnan(a).all() or np.isnan(b).all()):
            parts.append(
                f"{s.name} {percent(np.nanmin(a))} to {percent(np.nanmax(a))} over classes, "
                f"{percent(np.nanmin(b))} to {percent(np.nanmax(b))} over clients"
            )
    values = "; ".join(parts) or "no result yet"
    return f"Heat-maps of accuracy for each class and each client ({settings_of(series)}): {values}."


def table(series: Sequence[Series], per_class: np.ndarray, per_client: np.ndarray, names: Sequence[str]) -> list[dict]:
    def text(value: float) -> str:
        return "" if np.isnan(value) else percent(value)

    rows = []
    for s, a, b in zip(series, per_class, per_client, strict=True):
        row = {"method": s.name}
        row |= {f"class {n}": text(v) for n, v in zip(names, a, strict=False)}
        rows.append(row | {f"client {k}": text(v) for k, v in enumerate(b)})
    return rows
