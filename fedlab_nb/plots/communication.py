"""Pictures of communication: bytes up and down by phase on a log axis, and accuracy against bytes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from ..studies.statistics import Band, difference
from .kit import describe_picture, draw_accuracy_against_bytes_points
from .series import MethodResults, join_setting_texts, select_results_with_accuracies
from .style import (
    ACCENT,
    INK,
    SECOND,
    Picture,
    add_legend,
    choose_font_size_points_for_rows,
    drawing,
    dress,
    is_frame_narrow,
    set_log_bytes_x_axis,
    set_y_axis_of_named_rows,
)
from .words import (
    TableRows,
    build_table,
    capitalize_first_letter,
    choose_words_by_significance,
    format_data_size,
    format_percent_band,
    join_with_and,
)

MAX_NAMED_METHODS = 2  # methods that the sentence names because they cost as little as the cheapest
APART = 0.16  # distance of each of a phase's two lines from its name, in rows
MAX_ROWS = 24  # more phases than this are drawn as totals; the table still has them all


def draw_bytes_by_phase_and_accuracy(
    series: Sequence[MethodResults], *, client_bytes_sentence: str = ""
) -> Picture:
    """Draw bytes by phase on the left, and accuracy against bytes on the right.

    client_bytes_sentence: a sentence on one client's bytes, in place of the comparison
    """
    finished_series = select_results_with_accuracies(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        draw_bytes_by_phase(left, finished_series)
        x = "bytes, both ways, all clients"
        dress(right, title="Accuracy against bytes", x=x, grid="both", size=9)
        draw_accuracy_against_bytes_points(right, finished_series)
    title = "Bytes up and down by phase on a log axis, and accuracy against bytes"
    text = client_bytes_sentence or describe_cheapest_and_dearest_method(finished_series)
    return describe_picture(
        figure,
        title,
        join_setting_texts(finished_series),
        text,
        make_bytes_by_phase_table(finished_series),
    )


def draw_bytes_by_phase(ax: Axes, series: Sequence[MethodResults]) -> None:
    """Draw two lollipops per phase, up and down, on a logarithmic axis, under the methods' names."""
    has_phases = sum(len(s.phases) + 1 for s in series) <= MAX_ROWS
    dress(ax, title="Bytes by phase, all clients", grid="x")
    size = choose_font_size_points_for_rows(sum(len(s.phases) if has_phases else 1 for s in series))
    rows: list[tuple[str, tuple[float, float]]] = []  # name, (bytes up, bytes down)
    for s in series:
        if not has_phases:
            rows.append((s.two_line_label, (s.up, s.down)))
            continue
        style = {"fontsize": size, "fontweight": "bold", "color": INK, "va": "center"}
        ax.text(0.01, len(rows), s.name, transform=ax.get_yaxis_transform(), **style)
        rows.append(("", (0, 0)))
        rows += s.phases.items()
    set_y_axis_of_named_rows(ax, [name for name, _ in rows], min_rows=4, font_size=size)
    sizes = []
    for _, both_ways in rows:
        sizes += [count for count in both_ways if count]
    set_log_bytes_x_axis(ax, [1.0, *sizes])
    ax.set_xlim(left=max(1.0, min(sizes, default=1.0) / 30))
    ups = [up for _, (up, _) in rows]
    downs = [down for _, (_, down) in rows]
    # The line of a phase with only one direction is at the height of its name.
    offsets = [APART if up and down else 0.0 for up, down in zip(ups, downs, strict=True)]
    heights_up = [row - offset for row, offset in enumerate(offsets)]
    heights_down = [row + offset for row, offset in enumerate(offsets)]
    draw_lollipops_of_rows_with_bytes(ax, ups, heights_up, "^", ACCENT, "up, client to server")
    draw_lollipops_of_rows_with_bytes(
        ax, downs, heights_down, "v", SECOND, "down, server to client"
    )
    location = "upper center"
    anchor = (0.4, -0.09)
    if is_frame_narrow():  # the names leave little room
        location = "upper right"
        anchor = (1.0, -0.09)
    add_legend(
        ax, loc=location, bbox_to_anchor=anchor, ncols=2, handletextpad=0.1, columnspacing=1.2
    )


def draw_lollipops_of_rows_with_bytes(
    ax: Axes,
    bytes_per_row: Sequence[float],
    row_heights: Sequence[float],
    marker: str,
    colour: str,
    label: str,
) -> None:
    """Draw a line with a mark at its end for each row with bytes.

    bytes_per_row: bytes of each row
    row_heights: of the lines, downwards
    """
    line_heights = [height for height, size in zip(row_heights, bytes_per_row, strict=True) if size]
    line_ends = [size for size in bytes_per_row if size]
    ax.hlines(line_heights, 1, line_ends, color=colour, lw=1.8, alpha=0.6)
    ax.plot(line_ends, line_heights, marker, color=colour, ms=6.5, label=label)


def describe_cheapest_and_dearest_method(series: Sequence[MethodResults]) -> str:
    """Describe the cheapest method, and how much more the most expensive one costs and gains."""
    if not series:
        return "No result yet."
    rivals = [s for s in series if s.total_bytes and not s.bound] or list(series)
    cheapest = min(rivals, key=lambda s: (s.total_bytes, -s.mean))
    dearest = max(rivals, key=lambda s: (s.total_bytes, s.mean))
    down_text = format_data_size(cheapest.down) if cheapest.down else "nothing"
    amounts = f"{format_data_size(cheapest.up)} up and {down_text} down for all clients"
    equally_cheap_names = [
        s.name for s in rivals if s.total_bytes == cheapest.total_bytes and s is not cheapest
    ]
    subject = f"{capitalize_first_letter(cheapest.name)} costs"
    if 0 < len(equally_cheap_names) <= MAX_NAMED_METHODS:
        subject = (
            f"{capitalize_first_letter(join_with_and([cheapest.name, *equally_cheap_names]))} cost"
        )
    elif equally_cheap_names:
        subject = (
            f"{capitalize_first_letter(cheapest.name)} and {len(equally_cheap_names)} others cost"
        )
    if cheapest.total_bytes == dearest.total_bytes:
        same_text = "the same, " if equally_cheap_names else ""
        return f"{subject} {same_text}{amounts}."
    ratio = dearest.total_bytes / max(cheapest.total_bytes, 1)
    return (
        f"{subject} least, {amounts}; {dearest.name} costs {ratio:.1f} times as much "
        f"{describe_accuracy_gain_as_clause(dearest, cheapest)}."
    )


def describe_accuracy_gain_as_clause(
    expensive_method: MethodResults, cheap_method: MethodResults
) -> str:
    """Say what the more expensive method gains: 'and gets 57 points more'."""
    gain = difference(
        expensive_method.accuracies,
        cheap_method.accuracies,
        paired=expensive_method.setting == cheap_method.setting,
    )
    points = format_percent_band(Band(abs(gain.mean), gain.half_width, gain.n))
    if points == "0":
        return "and gets the same accuracy"
    more = "more" if gain.mean > 0 else "less"
    unit = "point" if points == "1" else "points"
    return choose_words_by_significance(
        gain,
        noise_words=f"for {points} {unit} {more}, which is within the noise",
        clear_words=f"and gets {points} {unit} {more}",
        one_seed_words=f"and gets {points} {unit} {more} (one seed: this may be chance)",
    )


def make_bytes_by_phase_table(series: Sequence[MethodResults]) -> TableRows:
    """Make the table with one row per phase of a method, and one for all its phases."""
    rows = []
    for s in series:
        for phase, (up, down) in (*s.phases.items(), ("all", (s.up, s.down))):
            rows.append((s.name, phase, round(up), round(down)))
    return build_table("method | phase | bytes up | bytes down", rows)
