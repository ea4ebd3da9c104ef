"""Who gains and who loses: accuracy for each class and for each client's own mix of classes, one row a method."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from .axes import PERCENT, class_ticks, colour_bar, mark
from .characters import client_axis, client_name, own_name, setting_of_rows
from .kit import heat_map, mark_cells, told
from .series import Series, finished, settings_of
from .style import QUIET, Picture, drawing, heading
from .words import percent

STACKED = 9  # more rows than this, and the two heat-maps stand side by side


def classes(
    series: Sequence[Series], class_names: Sequence[str], *, client: int | None = None, klass: int | None = None
) -> Picture:
    """Two heat-maps (means over seeds): methods × classes, methods × clients. `client` and `klass` are marked."""
    done = finished(series)
    per_class, per_client = averages(done, "per_class"), averages(done, "per_client")
    many, place = len(done) > STACKED, where(done)
    with drawing(**{"columns": 2, "sharey": True} if many else {"rows": 2}) as (figure, (first, second)):
        heat(first, per_class, done, "By class" if many else "Accuracy for each class", class_names)
        title = "By client, its own mix" if many else "Accuracy for each client's own mix of classes"
        image = heat(second, per_client, done, title, None)
        answers(first, per_class, done, lambda c: ({"klass": c}, f"class {class_names[c]}"))
        answers(second, per_client, done, lambda k: ({"client": k}, f"{client_name(k, place)}'s own mix"))
        mark(second, client, per_client.shape[1], frame=True)
        mark(first, klass, per_class.shape[1], frame=True)
        colour_bar(image, [first, second], pad=0.015, aspect=32, format=PERCENT)
    text = sentence(done, per_class, per_client, class_names, client, klass)
    rows = table(done, per_class, per_client, class_names)
    title = "Heat-maps of accuracy for each class and each client"
    return told(figure, title, place or settings_of(series), text, rows)


def answers(ax: Axes, values: np.ndarray, series: Sequence[Series], of: Callable[[int], tuple[dict, str]]) -> None:
    """Let the cells say their values. of: what a column stands for, and its name."""
    cells = {}
    for i, j in np.argwhere(np.isfinite(values)).tolist():
        what, name = of(j)
        says = f"{series[i].name}, {name}\n{100 * values[i, j]:.1f} %"
        cells[i, j] = {"says": says, "method": series[i].held_as, **what}
    if cells:
        mark_cells(ax, cells)


def where(series: Sequence[Series]) -> str:
    """The federation whose clients are shown, in words; '' where they are several."""
    return setting_of_rows((s.setting for s in series), (seed for s in series for seed in s.per_client))


def averages(series: Sequence[Series], name: str) -> np.ndarray:
    """Means over seeds, `[rows, columns]`, nan where there is nothing; rows of fewer clients are filled with nan."""
    from pandas import DataFrame

    return DataFrame([DataFrame(getattr(s, name).values(), dtype=float).mean() for s in series]).to_numpy()


def heat(ax: Axes, values: np.ndarray, series: Sequence[Series], title: str, names: Sequence[str] | None):
    """One heat-map, 0–100 %; its numbers are written into the cells while they fit."""
    rows, columns = max(1, values.shape[0]), max(1, values.shape[1])
    shown = values if values.size else np.full((rows, columns), np.nan)
    image = heat_map(ax, shown, text=(lambda v: f"{100 * v:.0f}") if columns <= 20 and rows <= 8 else None)
    heading(ax, title, 5)
    if names is not None:
        class_ticks(ax, names, length=10, most=15)
        ax.set_xlabel("class", fontsize=9, color=QUIET, labelpad=1)
    else:
        client_axis(ax, columns, where(series), few=20)
    ax.set_xlim(-0.5, columns - 0.5)
    size = 9.5 if rows <= 8 else 8.5 if rows <= 16 else 7
    ax.set_yticks(range(len(series)), [s.lines for s in series], fontsize=size)
    return image


def sentence(
    series: Sequence[Series], per_class: np.ndarray, per_client: np.ndarray, names: Sequence[str], client: int | None,
    klass: int | None,
) -> str:  # fmt: skip
    if not series:
        return "No result yet."
    rivals = [i for i, s in enumerate(series) if not s.bound] or range(len(series))
    best = max(rivals, key=lambda i: series[i].mean)
    parts = []
    if klass is not None and klass < per_class.shape[1]:
        parts.append(f"Class {names[klass]}: {each(series, per_class[:, klass])}.")
    if client is not None and client < per_client.shape[1]:
        who = own_name(client, where(series))
        parts.append(f"Client {who} on its own mix: {each(series, per_client[:, client])}.")
    if not parts:
        by_class, by_client = per_class[best], per_client[best]
        parts.append(f"{series[best].name}, the best on average, has {ends(by_class)} on the classes;")
        parts.append(f"its clients see {ends(by_client)} on their own mix.")
    return " ".join(parts)


def each(series: Sequence[Series], values: np.ndarray) -> str:
    """'FedAvg 31 %, FENS 84 %', those that are known."""
    return ", ".join(f"{s.name} {percent(a)}" for s, a in zip(series, values, strict=True) if not np.isnan(a))


def ends(values: np.ndarray) -> str:
    """'12 % to 80 %', of those that are known."""
    known = values[np.isfinite(values)]
    return f"{percent(known.min())} to {percent(known.max())}" if len(known) else "nothing"


def table(series: Sequence[Series], per_class: np.ndarray, per_client: np.ndarray, names: Sequence[str]) -> list[dict]:
    rows, place = [], where(series)
    for s, *values in zip(series, per_class, per_client, strict=True):
        by_class, by_client = (["" if np.isnan(v) else percent(v) for v in row] for row in values)
        row = {"method": s.name, **{f"class {n}": v for n, v in zip(names, by_class, strict=False)}}
        rows.append(row | {f"client {own_name(k, place)}": v for k, v in enumerate(by_client)})
    return rows
