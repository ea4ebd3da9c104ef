"""Who gains and who loses: accuracy for each class and for each client's own mix of classes, one row a method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from .kit import describe_picture, draw_heat_map, mark_cells
from .series import Series, join_settings, select_finished
from .style import (
    PERCENT,
    QUIET,
    SECOND,
    Picture,
    current_size,
    draw_colour_bar,
    drawing,
    heading,
    is_narrow,
    mark_place,
    set_class_ticks,
    set_client_axis,
)
from .words import (
    Setting,
    capitalize,
    client_name,
    describe_shared_setting,
    percent,
    plain_client_name,
)

MOST_STACKED = 9  # more rows than this, and the two heat maps stand side by side
NAMES_WIDTH = 2.4  # inches that names and the colour bar take
CELL_WIDTH = 0.21  # inches of "100" in a cell


@dataclass(frozen=True)
class Column:
    """A column of a heat map. name: in words;   marks: what it stands for, as `vector.mark` takes it"""

    name: str
    marks: dict[str, int]


def draw_class_accuracies(
    series: Sequence[Series],
    class_names: Sequence[str],
    *,
    client: int | None = None,
    class_index: int | None = None,
) -> Picture:
    """Two heat maps (means over seeds): methods × classes, methods × clients. `client` and `class_index` are marked."""
    done = select_finished(series)
    per_class = average_seeds(done, "per_class")
    per_client = average_seeds(done, "per_client")
    setting = find_shared_setting(done)
    is_side_by_side = len(done) > MOST_STACKED
    layout: dict[str, Any] = {"columns": 2, "sharey": True} if is_side_by_side else {"rows": 2}
    has_short_titles = is_side_by_side or is_narrow()
    with drawing(**layout) as (figure, (first, second)):
        columns = [
            Column(f"class {name}", {"class_index": c}) for c, name in enumerate(class_names)
        ]
        title = "By class" if has_short_titles else "Accuracy for each class"
        draw_accuracies(first, per_class, done, title, columns, class_index)
        set_class_ticks(first, class_names, length=10, most=15)
        first.set_xlabel("class", fontsize=9, color=QUIET, labelpad=1)
        columns = []
        for k in range(per_client.shape[1]):
            columns.append(Column(f"{client_name(k, setting)}'s own mix", {"client": k}))
        title = "By client" if has_short_titles else "Accuracy for each client's own mix of classes"
        image = draw_accuracies(second, per_client, done, title, columns, client)
        set_client_axis(second, image.get_array().shape[1], setting, few=20)
        draw_colour_bar(image, [first, second], pad=0.015, aspect=32, format=PERCENT)
    text = describe_accuracies(
        done, per_class, per_client, class_names, client, class_index, setting
    )
    rows = make_class_table(done, per_class, per_client, class_names, setting)
    title = "Heat-maps of accuracy for each class and each client"
    return describe_picture(figure, title, setting or join_settings(series), text, rows)


def find_shared_setting(series: Sequence[Series]) -> Setting | str:
    """The setting by which clients are named; '' where the series have several federations."""
    seeds = [seed for s in series for seed in s.per_client]
    return describe_shared_setting([s.setting for s in series], seeds)


def make_class_table(
    series: Sequence[Series],
    per_class: np.ndarray,
    per_client: np.ndarray,
    class_names: Sequence[str],
    setting: Setting | str,
) -> list[dict[str, Any]]:
    """A row a method: balanced accuracy, AUC, the worst client, then by class and by client."""
    rows = []
    for s, class_accuracies, client_accuracies in zip(series, per_class, per_client, strict=True):
        row = {"method": s.name, **summarize_row(s)}
        for name, accuracy in zip(class_names, class_accuracies, strict=False):
            row[f"class {name}"] = format_accuracy(accuracy)
        for k, accuracy in enumerate(client_accuracies):
            row[f"client {plain_client_name(k, setting)}"] = format_accuracy(accuracy)
        rows.append(row)
    return rows


def format_accuracy(accuracy: float) -> str:
    """'84 %'; '' where nothing is known."""
    return "" if np.isnan(accuracy) else percent(accuracy)


def summarize_row(s: Series) -> dict[str, str]:
    """What tables say beside the accuracy, where it is known: balanced accuracy, AUC, the worst client."""
    class_accuracies = average_seeds([s], "per_class")[0]
    client_accuracies = average_seeds([s], "per_client")[0]
    areas = [calibration.auc for calibration in s.calibration.values()]
    summary = {}
    if not np.isnan(class_accuracies).all():
        summary["balanced accuracy"] = percent(np.nanmean(class_accuracies))
    if areas and None not in areas:
        summary["AUC"] = f"{np.mean(areas):.3f}"
    if not np.isnan(client_accuracies).all():
        summary["worst client"] = percent(np.nanmin(client_accuracies))
    return summary


def average_seeds(series: Sequence[Series], name: str) -> np.ndarray:
    """Means over seeds, `[rows, columns]`, nan where there is nothing; rows of fewer clients are filled with nan."""
    from pandas import DataFrame

    means = [DataFrame(getattr(s, name).values(), dtype=float).mean() for s in series]
    return DataFrame(means).to_numpy()


def draw_accuracies(
    ax: Axes,
    values: np.ndarray,
    series: Sequence[Series],
    title: str,
    columns: Sequence[Column],
    marked: int | None,
) -> AxesImage:
    """One heat map, 0–100 %, whose cells say their values and have them written in while they fit.

    marked: the column that is looked at
    """
    shown = values if values.size else np.full((1, 1), np.nan)
    rows, count = shown.shape
    has_width = current_size()[0] - NAMES_WIDTH > CELL_WIDTH * count
    has_room = has_width and count <= 20 and rows <= 8
    image = draw_heat_map(ax, shown, text=format_whole_percent if has_room else None)
    heading(ax, title, 5)
    ax.set_xlim(-0.5, count - 0.5)
    ax.set_yticks(range(len(series)), [s.lines for s in series], fontsize=choose_font_size(rows))
    mark_place(ax, marked, count, frame=True, colour=SECOND)
    cells = {}
    for i, j in np.argwhere(np.isfinite(shown)).tolist():
        text = f"{series[i].name}, {columns[j].name}\n{100 * shown[i, j]:.1f} %"
        cells[i, j] = {"says": text, "method": series[i].highlight_key, **columns[j].marks}
    mark_cells(ax, cells)
    return image


def format_whole_percent(value: float) -> str:
    """0.834 -> '83'."""
    return f"{100 * value:.0f}"


def choose_font_size(rows: int) -> float:
    """Size of the letters that name so many rows."""
    if rows <= 8:
        return 9.5
    if rows <= 16:
        return 8.5
    return 7


def describe_accuracies(
    series: Sequence[Series],
    per_class: np.ndarray,
    per_client: np.ndarray,
    names: Sequence[str],
    client: int | None,
    class_index: int | None,
    setting: Setting | str,
) -> str:
    """Of the class and the client that are looked at, else of the best method."""
    if not series:
        return "No result yet."
    parts = []
    if class_index is not None and class_index < per_class.shape[1]:
        accuracies = list_accuracies(series, per_class[:, class_index])
        parts.append(f"Class {names[class_index]}: {accuracies}.")
    if client is not None and client < per_client.shape[1]:
        accuracies = list_accuracies(series, per_client[:, client])
        parts.append(f"Client {plain_client_name(client, setting)} on its own mix: {accuracies}.")
    if parts:
        return " ".join(parts)
    rivals = [i for i, s in enumerate(series) if not s.bound] or range(len(series))
    best = max(rivals, key=lambda i: series[i].mean)
    return (
        f"{capitalize(series[best].name)}, the best on average, has "
        f"{describe_range(per_class[best])} on the classes; its clients see "
        f"{describe_range(per_client[best])} on their own mix."
    )


def list_accuracies(series: Sequence[Series], values: np.ndarray) -> str:
    """'FedAvg 31 %, FENS 84 %', those that are known."""
    parts = []
    for s, accuracy in zip(series, values, strict=True):
        if not np.isnan(accuracy):
            parts.append(f"{s.name} {percent(accuracy)}")
    return ", ".join(parts)


def describe_range(values: np.ndarray) -> str:
    """'12 % to 80 %', of those that are known."""
    known = values[np.isfinite(values)]
    if not len(known):
        return "nothing"
    return f"{percent(known.min())} to {percent(known.max())}"
