"""Pictures of a study's results: accuracy against an axis, against bytes with the Pareto front, as
a heat map, and as differences from a reference.

plot_study(results, "alpha")    lines over any numeric axis, with 95 % bands over the seeds
plot_study(results, "bytes")    accuracy against bytes; a line joins the methods of the Pareto front
plot_study(results, "alpha x clients", method="fens")
plot_study(results, "differences", reference="fedavg")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError, check_allowed_name
from ..studies.results import Results
from ..studies.statistics import Band, compute_band, difference
from ..value_types import Accuracy0To1
from .kit import (
    describe_picture,
    draw_accuracy_against_bytes_points,
    draw_heat_map,
    draw_lines_with_bands_and_make_labels,
)
from .series import MethodResults
from .style import (
    PERCENT,
    QUIET,
    ColourMarkerLine,
    LineEnd,
    Picture,
    choose_distinct_looks,
    draw_colour_bar,
    draw_level_line,
    draw_names_at_line_ends,
    drawing,
    dress,
    get_method_look,
    is_frame_narrow,
    set_log_axis,
    set_percent_axis,
    set_y_axis_of_named_rows,
)
from .words import (
    SettingCaption,
    build_table,
    format_data_size,
    format_percent,
    format_percent_band,
)

if TYPE_CHECKING:
    from pandas import DataFrame

LABELS = {
    "alpha": "α (smaller: more skewed)",
    "α": "α (smaller: more skewed)",
    "clients": "clients M",
}
# {value of an axis: {seed: accuracy}, or a band}
AccuraciesByAxisValue = Mapping[Any, Mapping[int, float] | Band]


class BytesAndAccuracy(NamedTuple):
    """A method's cost in bytes, and its accuracy."""

    bytes: float
    accuracy: float


def plot_study(results: Results, against: str = "alpha", **options: Any) -> Picture:
    """Draw the picture that `against` names: an axis of the study, "bytes", "A x B" of two axes, or
    "differences".

    options: `method=` for a heat map, `reference=` for differences, `setting=` for the alt text
    Raises UsageError for an axis or a method that the study does not have.
    """
    if not results.points():
        raise UsageError("The study has no finished cell, so there is nothing to draw.")
    if against == "bytes":
        return draw_accuracy_against_bytes(results, **options)
    if against == "differences":
        return draw_accuracy_differences(results, **options)
    if " x " in against:
        across, down = against.split(" x ", 1)
        return draw_accuracy_heat_map(results, across, down, **options)
    allowed = [*results.shared_axes, "bytes", "differences"]
    check_allowed_name("axis to draw against", against, allowed)
    return draw_accuracy_along_axis(results, against, **options)


def draw_accuracy_along_axis(
    results: Results, axis: str, *, setting: SettingCaption | str = ""
) -> Picture:
    """Draw lines over an axis of numbers. At each of its values a line has the mean over all points
    of the other axes.
    """
    values = make_results_frame(results)[axis].unique().tolist()
    if not all(isinstance(value, int | float) for value in values):
        raise UsageError(
            f"The axis {axis} has values that are no numbers ({values[0]!r}); use the "
            "table or the differences."
        )
    means: dict[str, dict[Any, Mapping[int, float]]] = {}
    for value in values:
        for method, accuracies in average_accuracy_by_method_and_seed(
            results.select(**{axis: value})
        ).items():
            means.setdefault(method, {})[value] = accuracies
    return draw_accuracy_lines_with_bands(means, axis, setting=setting)


def draw_accuracy_lines_with_bands(
    accuracies_by_line: Mapping[str, AccuraciesByAxisValue],
    axis: str,
    axis_label: str = "",
    *,
    setting: SettingCaption | str,
    chance_accuracy: Accuracy0To1 | None = None,
    method_or_look_by_line: Mapping[str, str | ColourMarkerLine] | None = None,
    sentence: str = "",
    detail: str = "",
) -> Picture:
    """Draw mean accuracies over an axis of numbers, with bands.

    accuracies_by_line: {line: {value of the axis: {seed: share}, or its `Band`}}
    axis: the name of the axis, for the table
    axis_label: the text below the axis; by default one for its name
    chance_accuracy: accuracy of guessing
    method_or_look_by_line: {line: its method or its look}, for lines that are not named after a method
    sentence: what the picture shows; by default the values at the ends of the lines
    detail: of `Picture`
    """
    bands = compute_bands_by_line_and_value(accuracies_by_line)
    values = set[float]()
    for line_bands in bands.values():
        values.update(line_bands)
    ticks = sorted(values)
    given_looks = {}
    for line, method in (method_or_look_by_line or {}).items():
        given_looks[line] = get_method_look(method) if isinstance(method, str) else method
    with drawing() as (figure, ax):
        dress(ax, x=axis_label or LABELS.get(axis, axis), y="test accuracy", grid="y")
        names = draw_lines_with_bands_and_make_labels(ax, bands, given_looks)
        if ticks[0] > 0 and ticks[-1] >= 10 * ticks[0]:
            set_log_axis(ax, ticks=ticks[::2] if is_frame_narrow() else ticks)
        else:
            ax.set_xticks(ticks)
        set_percent_axis(ax)
        line_ends = []
        for value, name, colour in names:
            places = bands[name]
            line_ends.append(LineEnd(name, colour, max(places), value, len(places) == 1))
        if chance_accuracy:
            draw_level_line(ax, chance_accuracy)
            line_ends.append(LineEnd("guessing", QUIET, ticks[-1], chance_accuracy))
        draw_names_at_line_ends(ax, line_ends)
    table = []
    ends = []
    for line, line_bands in bands.items():
        row = {"method": line}
        for value, result in line_bands.items():
            row[f"{axis} = {value:g}"] = format_percent_with_band(result)
        table.append(row)
        first_mean = line_bands[min(line_bands)].mean
        last_mean = line_bands[max(line_bands)].mean
        ends.append(f"{line} {format_percent(first_mean)} to {format_percent(last_mean)}")
    if not sentence:
        sentence = f"From {axis} = {ticks[0]:g} to {ticks[-1]:g}: {'; '.join(ends)}."
    title = f"Lines of test accuracy against {axis}, with 95 % bands"
    return describe_picture(figure, title, setting, sentence, table, detail=detail)


def compute_bands_by_line_and_value(
    accuracies_by_line: Mapping[str, AccuraciesByAxisValue],
) -> dict[str, dict[float, Band]]:
    """Compute {line: {value of the axis: band}}, with the values in ascending order."""
    bands: dict[str, dict[float, Band]] = {}
    for line, by_value in accuracies_by_line.items():
        bands[line] = {}
        for value, result in sorted(by_value.items()):
            bands[line][value] = result if isinstance(result, Band) else compute_band(result)
    return bands


def draw_accuracy_against_bytes(results: Results, *, setting: SettingCaption | str = "") -> Picture:
    """Draw one point per method: mean accuracy against mean bytes of all clients, both ways, over
    the whole study.
    """
    by_method = make_results_frame(results).groupby("method")
    bytes_up = by_method["bytes_up"].mean()
    bytes_down = by_method["bytes_down"].mean()
    rows = []
    for method, accuracies in average_accuracy_by_method_and_seed(results).items():
        rows.append(
            MethodResults(
                method, accuracies=accuracies, up=bytes_up[method], down=bytes_down[method]
            )
        )
    front = find_names_on_pareto_front(
        {s.name: BytesAndAccuracy(s.total_bytes, s.mean) for s in rows}
    )
    with drawing() as (figure, ax):
        dress(ax, x="bytes of all clients, both ways", y="test accuracy", grid="both")
        draw_accuracy_against_bytes_points(ax, rows)
        by_name = {s.name: s for s in rows}
        front_bytes = [max(by_name[name].total_bytes, 1.0) for name in front]
        front_means = [by_name[name].mean for name in front]
        ax.plot(front_bytes, front_means, color=QUIET, lw=1.2, ls=(0, (4, 2)), zorder=0)
    cells = []
    for s in sorted(rows, key=lambda s: -s.mean):
        is_on_front = "yes" if s.name in front else "no"
        cells.append(
            (s.name, format_percent_with_band(s.band), format_data_size(s.total_bytes), is_on_front)
        )
    sentence = f"No method has both fewer bytes and a higher accuracy than {', '.join(front)}."
    table = build_table("method | accuracy | bytes | Pareto", cells)
    return describe_picture(figure, "Accuracy against bytes", setting, sentence, table)


def find_names_on_pareto_front(points: Mapping[str, BytesAndAccuracy]) -> list[str]:
    """Find the names that no other one beats in both bytes and accuracy, in ascending order of
    bytes.

    >>> points = {"a": (1, 0.5), "b": (2, 0.4), "c": (3, 0.9)}
    >>> find_names_on_pareto_front({name: BytesAndAccuracy(*point) for name, point in points.items()})
    ['a', 'c']
    """
    front: list[str] = []
    for name in sorted(points, key=lambda name: (points[name].bytes, -points[name].accuracy)):
        point = points[name]
        last_point = points[front[-1]] if front else None
        if last_point is None or point.accuracy > last_point.accuracy or point == last_point:
            front.append(name)
    return front


def draw_accuracy_heat_map(
    results: Results,
    column_axis: str,
    row_axis: str,
    *,
    method: str = "",
    setting: SettingCaption | str = "",
) -> Picture:
    """Draw the mean accuracy of one method over two axes. method: by default the first one"""
    for axis in (column_axis, row_axis):
        check_allowed_name("axis of this study", axis, results.shared_axes)
    cells = make_results_frame(results)
    names = cells["method"].unique().tolist()
    name = check_allowed_name(
        "method of this study", find_method_label(results, method or names[0]), names
    )
    means = cells[cells["method"] == name].pivot_table("accuracy", row_axis, column_axis)
    means = means.rename(columns=format_axis_value)
    with drawing() as (figure, ax):
        image = draw_heat_map(ax, means.to_numpy(), format_cell=format_percent, font_size=9)
        ax.set_xticks(range(means.shape[1]), means.columns)
        ax.set_yticks(range(means.shape[0]), map(format_axis_value, means.index))
        dress(
            ax, title=name, x=LABELS.get(column_axis, column_axis), y=LABELS.get(row_axis, row_axis)
        )
        draw_colour_bar(image, ax, "test accuracy", format=PERCENT)
    texts = means.map(format_percent, na_action="ignore").fillna("")
    table = texts.add_prefix(f"{column_axis} = ").reset_index().to_dict("records")
    row, column = means.stack().idxmax()
    sentence = (
        f"{name} is best at {column_axis} = {column}, {row_axis} = {format_axis_value(row)} "
        f"({format_percent(means.loc[row, column])})."
    )
    title = f"Heat-map of {name}'s accuracy over {column_axis} and {row_axis}"
    return describe_picture(figure, title, setting, sentence, table)


def draw_accuracy_differences(
    results: Results, *, reference: str = "", setting: SettingCaption | str = ""
) -> Picture:
    """Draw the difference of every method from `reference`, by default the first method, in a row
    with its band.

    Differences are means over all points, paired by seed. One is clear if its band does not contain
    zero.
    """
    means = average_accuracy_by_method_and_seed(results)
    first_method = next(iter(means))
    name = check_allowed_name(
        "method of this study", find_method_label(results, reference or first_method), means
    )
    gaps = {}
    for other, accuracies in means.items():
        has_common_seed = not set(accuracies).isdisjoint(means[name])
        if other != name and has_common_seed:
            gaps[other] = difference(accuracies, means[name])
    if not gaps:
        raise UsageError(
            f"The study has no method other than {name}, so there is no difference to draw; add a "
            "method."
        )
    method_looks = choose_distinct_looks(gaps)
    ranking = sorted(gaps, key=lambda other: -gaps[other].mean)
    with drawing(size=(7.2, max(2.2, 0.9 + 0.34 * len(gaps)))) as (figure, ax):
        dress(ax, x=f"test accuracy minus {name}'s, points", grid="x")
        for row, other in enumerate(ranking):
            gap = gaps[other]
            colour = method_looks[other].colour if gap.verdict == "clear" else QUIET
            ax.plot([100 * gap.low, 100 * gap.high], [row, row], color=colour, lw=3, alpha=0.4)
            ax.plot(100 * gap.mean, row, method_looks[other].marker, color=colour, ms=7)
        draw_level_line(ax, 0, axis="x")
        set_y_axis_of_named_rows(ax, ranking, min_rows=3)
    cells = []
    clear_gaps = []
    for other in ranking:
        gap = gaps[other]
        cells.append(
            (
                other,
                f"{format_percent_band(gap, 1, shows_band_of_few_seeds=True)} points",
                gap.verdict,
                gap.n,
            )
        )
        if gap.verdict == "clear":
            clear_gaps.append(f"{other} {100 * gap.mean:+.0f}")
    if clear_gaps:
        sentence = f"Clearly apart from {name}, in points: {', '.join(clear_gaps)}."
    else:
        sentence = f"No method differs from {name} by more than the noise."
    title = f"Differences to {name} with 95 % bands"
    table = build_table("method | difference | verdict | seeds", cells)
    return describe_picture(figure, title, setting, sentence, table)


# ---------------------------------------------------------------------------- numbers and words
def make_results_frame(results: Results) -> DataFrame:
    """Make a table with a row for each finished cell; `method` is the label with its settings."""
    from pandas import DataFrame

    rows = []
    for row in results.rows:
        if not row.get("error"):
            rows.append({**row, "method": results.label(row)})
    return DataFrame(rows)


def find_method_label(results: Results, name_with_axis_values: str) -> str:
    """Return the label of a method in pictures, by its name in `results.differences`."""
    for row in results.rows:
        if results.format_method_with_axis_values(row) == name_with_axis_values:
            return results.label(row)
    return name_with_axis_values


def average_accuracy_by_method_and_seed(results: Results) -> dict[str, dict[int, float]]:
    """Compute {method: {seed: mean accuracy over the points of the study}}.

    The mean is taken first, since seeds are independent of each other and the points of one seed
    are not.
    """
    means = make_results_frame(results).groupby(["method", "seed"], sort=False)["accuracy"].mean()
    methods = means.index.get_level_values(0).unique()
    return {method: means[method].to_dict() for method in methods}


def format_percent_with_band(accuracy: Band) -> str:
    """Format an accuracy with its band: 0.834 ± 0.021 -> '83.4 ± 2.1 %'."""
    return f"{format_percent_band(accuracy, 1, shows_band_of_few_seeds=True)} %"


def format_axis_value(value: Any) -> str:
    """Format a value of an axis: 1.0 -> '1'."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
