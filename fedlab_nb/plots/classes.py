"""Pictures of accuracy by class and by client: heat maps with a row for each method. A client's
accuracy is that on its own mix of classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from ..value_types import Accuracy0To1
from .array_types import (
    AccuracyPerMethod,
    AnyAccuracies,
    MethodAccuracies,
    MethodClassAccuracies,
    MethodClientAccuracies,
)
from .kit import attach_hover_texts_to_heat_map_cells, describe_picture, draw_heat_map
from .series import MethodResults, join_setting_texts, select_results_with_accuracies
from .style import (
    PERCENT,
    QUIET,
    SECOND,
    Picture,
    draw_colour_bar,
    drawing,
    get_default_figure_size_inches,
    highlight_row_or_column,
    is_frame_narrow,
    set_class_ticks,
    set_client_x_ticks_and_label,
    write_axes_title,
)
from .words import (
    SettingCaption,
    TableRows,
    capitalize_first_letter,
    find_common_setting_or_empty,
    format_client_for_sentence,
    format_client_for_title,
    format_percent,
)

MAX_STACKED_ROWS = 9  # more rows than this, and the two heat maps stand side by side
NAMES_WIDTH = 2.4  # inches that names and the colour bar take
CELL_WIDTH = 0.21  # inches of "100" in a cell


@dataclass(frozen=True)
class HeatMapColumn:
    """A column of a heat map.

    name:      in words
    mark_keys: the class or client that it stands for, as arguments of `attach_hover_text`
    """

    name: str
    mark_keys: dict[str, int]


def draw_class_and_client_accuracies(
    series: Sequence[MethodResults],
    class_names: Sequence[str],
    *,
    marked_client_index: int | None = None,
    marked_class_index: int | None = None,
) -> Picture:
    """Draw two heat maps of means over seeds: methods × classes, and methods × clients.

    marked_client_index, marked_class_index: their columns are marked
    """
    finished_series = select_results_with_accuracies(series)
    per_class = average_accuracies_over_seeds(finished_series, "per_class")
    per_client = average_accuracies_over_seeds(finished_series, "per_client")
    setting = find_common_setting_of_results_or_empty(finished_series)
    is_side_by_side = len(finished_series) > MAX_STACKED_ROWS
    layout: dict[str, Any] = {"columns": 2, "sharey": True} if is_side_by_side else {"rows": 2}
    has_short_titles = is_side_by_side or is_frame_narrow()
    with drawing(**layout) as (figure, (class_axes, client_axes)):
        columns = [
            HeatMapColumn(f"class {name}", {"class_index": c}) for c, name in enumerate(class_names)
        ]
        title = "By class" if has_short_titles else "Accuracy for each class"
        draw_method_heat_map(
            class_axes, per_class, finished_series, title, columns, marked_class_index
        )
        set_class_ticks(class_axes, class_names, max_letters=10, max_ticks=15)
        class_axes.set_xlabel("class", fontsize=9, color=QUIET, labelpad=1)
        columns = []
        for k in range(per_client.shape[1]):
            columns.append(
                HeatMapColumn(f"{format_client_for_title(k, setting)}'s own mix", {"client": k})
            )
        title = "By client" if has_short_titles else "Accuracy for each client's own mix of classes"
        image = draw_method_heat_map(
            client_axes, per_client, finished_series, title, columns, marked_client_index
        )
        set_client_x_ticks_and_label(
            client_axes, image.get_array().shape[1], setting, max_single_ticks=20
        )
        draw_colour_bar(image, [class_axes, client_axes], pad=0.015, aspect=32, format=PERCENT)
    text = describe_accuracies_of_selection_or_best_method(
        finished_series,
        per_class,
        per_client,
        class_names,
        marked_client_index,
        marked_class_index,
        setting,
    )
    rows = make_class_table(finished_series, per_class, per_client, class_names, setting)
    title = "Heat-maps of accuracy for each class and each client"
    return describe_picture(figure, title, setting or join_setting_texts(series), text, rows)


def find_common_setting_of_results_or_empty(
    series: Sequence[MethodResults],
) -> SettingCaption | str:
    """Find the setting by which clients are named; '' if the series have several federations."""
    seeds: list[int] = []
    for method_results in series:
        seeds += method_results.per_client
    return find_common_setting_or_empty([s.setting for s in series], seeds)


def make_class_table(
    series: Sequence[MethodResults],
    accuracies_by_method_and_class: MethodClassAccuracies,
    accuracies_by_method_and_client: MethodClientAccuracies,
    class_names: Sequence[str],
    setting: SettingCaption | str,
) -> TableRows:
    """Make the table with one row per method: balanced accuracy, AUC, the worst client, then the
    accuracy for each class and each client.

    accuracies_by_method_and_class:  `[series, classes]`, 0–1
    accuracies_by_method_and_client: `[series, clients]`, 0–1
    """
    rows = []
    for i, method_results in enumerate(series):
        row = {"method": method_results.name, **format_further_measures_by_name(method_results)}
        for name, accuracy in zip(class_names, accuracies_by_method_and_class[i], strict=False):
            row[f"class {name}"] = format_accuracy_or_blank(accuracy)
        for k, accuracy in enumerate(accuracies_by_method_and_client[i]):
            client = format_client_for_sentence(k, setting)
            row[f"client {client}"] = format_accuracy_or_blank(accuracy)
        rows.append(row)
    return rows


def format_accuracy_or_blank(accuracy: Accuracy0To1) -> str:
    """Format an accuracy 0–1 as '84 %', nan as ''."""
    return "" if np.isnan(accuracy) else format_percent(accuracy)


def format_further_measures_by_name(method_results: MethodResults) -> dict[str, str]:
    """Format what tables say beside the accuracy: balanced accuracy, AUC, the worst client.

    Measures that are not known are left out.
    """
    class_accuracies = average_accuracies_over_seeds([method_results], "per_class")[0]
    client_accuracies = average_accuracies_over_seeds([method_results], "per_client")[0]
    areas = [calibration.auc for calibration in method_results.calibration.values()]
    measures = {}
    if not np.isnan(class_accuracies).all():
        measures["balanced accuracy"] = format_percent(np.nanmean(class_accuracies))
    if areas and None not in areas:
        measures["AUC"] = f"{np.mean(areas):.3f}"
    if not np.isnan(client_accuracies).all():
        measures["worst client"] = format_percent(np.nanmin(client_accuracies))
    return measures


def average_accuracies_over_seeds(
    series: Sequence[MethodResults], class_or_client_field: Literal["per_class", "per_client"]
) -> MethodAccuracies:
    """Average a field of each series over its seeds: `[series, classes or clients]`.

    nan stands for values that are not known, and fills the rows of federations with fewer clients.
    """
    rows_by_series = [list(getattr(s, class_or_client_field).values()) for s in series]
    width = max((len(row) for rows in rows_by_series for row in rows), default=0)
    means = np.full((len(series), width), np.nan)
    for i, rows in enumerate(rows_by_series):
        values = np.full((len(rows), width), np.nan)
        for seed_index, row in enumerate(rows):
            values[seed_index, : len(row)] = np.array(row, dtype=float)  # None is nan
        is_known = ~np.isnan(values)
        has_value = is_known.any(axis=0)
        totals = np.where(is_known, values, 0.0).sum(axis=0)
        means[i, has_value] = totals[has_value] / is_known.sum(axis=0)[has_value]
    return means


def draw_method_heat_map(
    ax: Axes,
    accuracies: MethodAccuracies,
    series: Sequence[MethodResults],
    title: str,
    columns: Sequence[HeatMapColumn],
    selected_column_index: int | None,
) -> AxesImage:
    """Draw one heat map of `accuracies [series, columns]`, 0–1.

    Each cell shows its value when it is pointed at. If there is room, the value is written in it,
    too.

    selected_column_index: index of the selected column
    """
    values = accuracies if accuracies.size else np.full((1, 1), np.nan)
    rows, count = values.shape
    has_width = get_default_figure_size_inches()[0] - NAMES_WIDTH > CELL_WIDTH * count
    has_room = has_width and count <= 20 and rows <= 8
    image = draw_heat_map(
        ax, values, format_cell=format_whole_percent_without_sign if has_room else None
    )
    write_axes_title(ax, title, 5)
    ax.set_xlim(-0.5, count - 0.5)
    ax.set_yticks(
        range(len(series)),
        [s.two_line_label for s in series],
        fontsize=choose_method_name_font_size_points(rows),
    )
    highlight_row_or_column(ax, selected_column_index, count, has_frame=True, colour=SECOND)
    cells = {}
    for i, j in np.argwhere(np.isfinite(values)).tolist():
        text = f"{series[i].name}, {columns[j].name}\n{100 * values[i, j]:.1f} %"
        cells[i, j] = {"says": text, "method": series[i].highlight_key, **columns[j].mark_keys}
    attach_hover_texts_to_heat_map_cells(ax, cells)
    return image


def format_whole_percent_without_sign(share: float) -> str:
    """Format a share 0–1 in whole per cent, without the sign: 0.834 -> '83'."""
    return f"{100 * share:.0f}"


def choose_method_name_font_size_points(method_count: int) -> float:
    """Choose the font size for the names of this many rows."""
    if method_count <= 8:
        return 9.5
    if method_count <= 16:
        return 8.5
    return 7


def describe_accuracies_of_selection_or_best_method(
    series: Sequence[MethodResults],
    accuracies_by_method_and_class: MethodClassAccuracies,
    accuracies_by_method_and_client: MethodClientAccuracies,
    class_names: Sequence[str],
    selected_client: int | None,
    selected_class_index: int | None,
    setting: SettingCaption | str,
) -> str:
    """Describe accuracies on the selected class and client, or else those of the best method."""
    if not series:
        return "No result yet."
    parts = []
    if (
        selected_class_index is not None
        and selected_class_index < accuracies_by_method_and_class.shape[1]
    ):
        accuracies = join_names_and_known_accuracies(
            series, accuracies_by_method_and_class[:, selected_class_index]
        )
        parts.append(f"Class {class_names[selected_class_index]}: {accuracies}.")
    if selected_client is not None and selected_client < accuracies_by_method_and_client.shape[1]:
        accuracies = join_names_and_known_accuracies(
            series, accuracies_by_method_and_client[:, selected_client]
        )
        parts.append(
            f"Client {format_client_for_sentence(selected_client, setting)} on its own mix: {accuracies}."
        )
    if parts:
        return " ".join(parts)
    rivals = [i for i, s in enumerate(series) if not s.bound] or range(len(series))
    best = max(rivals, key=lambda i: series[i].mean)
    return (
        f"{capitalize_first_letter(series[best].name)}, the best on average, has "
        f"{format_percent_range(accuracies_by_method_and_class[best])} on the classes; its clients see "
        f"{format_percent_range(accuracies_by_method_and_client[best])} on their own mix."
    )


def join_names_and_known_accuracies(
    series: Sequence[MethodResults], accuracies: AccuracyPerMethod
) -> str:
    """Join the accuracies that are known: 'FedAvg 31 %, FENS 84 %'."""
    parts = []
    for s, accuracy in zip(series, accuracies, strict=True):
        if not np.isnan(accuracy):
            parts.append(f"{s.name} {format_percent(accuracy)}")
    return ", ".join(parts)


def format_percent_range(accuracies: AnyAccuracies) -> str:
    """Format the range of the values that are known: '12 % to 80 %'."""
    known_accuracies = accuracies[np.isfinite(accuracies)]
    if not len(known_accuracies):
        return "nothing"
    return f"{format_percent(known_accuracies.min())} to {format_percent(known_accuracies.max())}"
