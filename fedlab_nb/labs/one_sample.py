"""The picture of one sample: each client's output, numbers about each client, and the answers made
from all outputs together. The labs of FENS and Fed-ET share it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..plots import Picture, describe_picture, drawing, dress, format_percent, write_axes_title
from ..plots.kit import (
    draw_heat_map,
    keep_image_colours_on_dark_page,
    make_number_format_without_zero,
    render_tile_pixels,
)
from ..plots.marks import attach_hover_text, attach_tick_hover_texts
from ..plots.style import (
    ACCENT,
    INK,
    QUIET,
    SECOND,
    darken_colour_until_readable,
    highlight_row_or_column,
    is_frame_narrow,
    limit_tick_count,
    set_class_ticks,
)
from ..plots.words import (
    SettingCaption,
    TableRows,
    format_client_for_row,
    format_client_for_sentence,
)
from .array_types import ScorePerClass

MAX_CLIENTS_WITH_NUMBERS = 16  # more clients than this: no numbers are written into the picture
MAX_CLASSES_WITH_NUMBERS = 12  # the same for classes
MAX_NAMED_CLIENTS = 25
TRUTH_COLOUR = "#009E73"


class SampleOutputs(NamedTuple):
    """A sample of one of C classes, and the outputs of M clients for it.

    x:              `[channels, H, W]`, or features `[D]`
    name:           such as "test sample 17"
    truth:          its true class, None if it is not known
    outputs:        `[M, C]`, the clients' probabilities or logits
    answers:        {name: probabilities `[C]`} made from all outputs
    disagrees:      `[M]`, whether a client's answer differs from the truth, or from the consensus
    client_numbers: {title: `[M]`}; the first is drawn as bars, the others are written beside them
    members:        `[M]`, the clients' indices
    names:          of the classes
    setting:        the run's setting
    client, class_index: the selected client and class
    """

    x: np.ndarray
    name: str
    truth: int | None
    outputs: np.ndarray
    answers: Mapping[str, np.ndarray]
    disagrees: np.ndarray
    client_numbers: Mapping[str, np.ndarray]
    members: Sequence[int]
    names: Sequence[str]
    setting: SettingCaption | str
    client: int | None = None
    class_index: int | None = None

    @property
    def has_room_for_numbers(self) -> bool:
        """Whether the numbers fit into the cells of the picture."""
        clients, classes = self.outputs.shape
        return clients <= MAX_CLIENTS_WITH_NUMBERS and classes <= MAX_CLASSES_WITH_NUMBERS

    @property
    def largest_absolute_output_or_1(self) -> float:
        """The output at the end of the colour scale: 1 for probabilities."""
        return max(1.0, float(np.abs(self.outputs).max()))

    @property
    def client_colours(self) -> list[str]:
        """A colour for each client: another one if it disagrees."""
        return [SECOND if disagrees else ACCENT for disagrees in self.disagrees]

    @property
    def row_of_selected_client(self) -> int | None:
        """The row of the selected client, if it is among the members."""
        if self.client not in self.members:
            return None
        return self.members.index(self.client)

    def quote_top_class_name(self, class_scores: ScorePerClass) -> str:
        """Return the name of the class with the largest of `class_scores [C]`, in quotes."""
        return f"“{self.names[int(class_scores.argmax())]}”"

    @property
    def table_rows(self) -> TableRows:
        """The picture's table: a row for each client, then one for each answer."""
        columns = [f"class {name}" for name in self.names]
        rows = []
        for i, (k, scores) in enumerate(zip(self.members, self.outputs, strict=True)):
            row = {
                "who": f"client {format_client_for_sentence(k, self.setting)}",
                "says": self.quote_top_class_name(scores),
            }
            for title, values in self.client_numbers.items():
                row[title] = format_count_or_rounded_number(values[i])
            for column, score in zip(columns, scores, strict=True):
                row[column] = f"{score:.2g}"
            rows.append(row)
        for name, answer in self.answers.items():
            row = {"who": name, "says": self.quote_top_class_name(answer)}
            for column, share in zip(columns, answer, strict=True):
                row[column] = format_percent(share)
            rows.append(row)
        return rows


class PartsLayout(NamedTuple):
    """Where the parts of the picture stand, in shares of the figure."""

    image: tuple[float, float, float, float]
    text: tuple[float, float]
    bottom: float  # of the two panels beside the image, or below it
    height: float  # of these panels
    outputs: tuple[float, float]  # left end and width of the clients' outputs
    numbers: tuple[float, float]  # left end and width of the bars


WIDE_LAYOUT = PartsLayout(
    (0.012, 0.66, 0.125, 0.25), (0.012, 0.635), 0.125, 0.785, (0.245, 0.41), (0.675, 0.15)
)
NARROW_LAYOUT = PartsLayout(
    (0.012, 0.85, 0.2, 0.13), (0.25, 0.97), 0.08, 0.72, (0.245, 0.49), (0.775, 0.21)
)


def draw_sample_with_outputs_and_answers(
    sample_outputs: SampleOutputs, title: str, sentence: str, detail: str = ""
) -> Picture:
    """Draw a row for each client, and below them the answers. A dot marks the top class of each row, a
    frame the true class.
    """
    layout = NARROW_LAYOUT if is_frame_narrow() else WIDE_LAYOUT
    # The places are fixed: this picture follows a slider, and computing a layout would be too slow.
    with drawing(fixed=True) as (figure, _):
        draw_sample_image(figure, sample_outputs, layout)
        outputs_left, outputs_width = layout.outputs
        numbers_left, numbers_width = layout.numbers
        left = figure.add_axes((outputs_left, layout.bottom, outputs_width, layout.height))
        draw_heat_map_of_outputs_and_answers(left, sample_outputs, title)
        right = figure.add_axes(
            (numbers_left, layout.bottom, numbers_width, layout.height), sharey=left
        )
        draw_bars_of_client_numbers(right, sample_outputs)
    return describe_picture(
        figure,
        f"{title}: {sample_outputs.name}",
        sample_outputs.setting,
        sentence,
        sample_outputs.table_rows,
        detail=detail,
    )


def draw_sample_image(figure: Figure, sample_outputs: SampleOutputs, layout: PartsLayout) -> None:
    """Draw the sample itself, and under it its name and its class."""
    ax = figure.add_axes(layout.image)
    tile = render_tile_pixels(np.asarray(sample_outputs.x, dtype=float)).squeeze()
    ax.imshow(tile, cmap="gray_r")
    has_colours = tile.ndim == 3 and len(sample_outputs.x) == 3
    if has_colours:  # only grey images, which are ink on paper, are inverted on a dark page
        keep_image_colours_on_dark_page(ax)
    ax.set_axis_off()
    text = sample_outputs.name.replace(" sample ", "\nsample ")
    if sample_outputs.truth is not None:
        text += f"\nis “{sample_outputs.names[sample_outputs.truth]}”"
    figure.text(*layout.text, text, fontsize=9, color=INK, va="top", linespacing=1.5)


def draw_heat_map_of_outputs_and_answers(
    ax: Axes, sample_outputs: SampleOutputs, title: str
) -> None:
    """Draw the heat-map of the clients' outputs, and below a line the answers in per cent."""
    clients, classes = sample_outputs.outputs.shape
    answers = np.array(list(sample_outputs.answers.values()))
    values = np.concatenate(
        [sample_outputs.outputs / sample_outputs.largest_absolute_output_or_1, answers]
    )
    are_probabilities = sample_outputs.largest_absolute_output_or_1 == 1
    unit = 100 if are_probabilities else 1
    draw_heat_map(
        ax,
        values,
        is_symmetric_around_zero=True,
        format_cell=make_number_format_without_zero("{:.0f}")
        if sample_outputs.has_room_for_numbers
        else None,
        written_values=np.concatenate([sample_outputs.outputs * unit, 100 * answers]),
        font_size=8,
    )
    colours = sample_outputs.client_colours + [INK] * len(answers)
    dots = {"s": 14, "color": colours, "edgecolors": "white", "lw": 0.5}
    ax.scatter(values.argmax(1) + 0.38, np.arange(len(values)) - 0.34, **dots)
    write_axes_title(ax, title, font_size=10.5)
    ax.set_xlabel("class (answers in %)", fontsize=10, color=QUIET)
    set_class_ticks(ax, sample_outputs.names, max_letters=6, max_single_ticks=26)

    stride = -(-clients // MAX_NAMED_CLIENTS)
    named_rows = [*range(0, clients, stride), *range(clients, len(values))]
    names = [
        format_client_for_row(k, sample_outputs.setting) for k in sample_outputs.members
    ] + list(sample_outputs.answers)
    font_size = 9.5 if clients <= MAX_CLIENTS_WITH_NUMBERS else 7.5
    ax.set_yticks(named_rows, [names[row] for row in named_rows], fontsize=font_size)
    for tick, row in zip(ax.get_yticklabels(), named_rows, strict=True):
        tick.set_color(darken_colour_until_readable(colours[row]))
    named_clients = [row for row in named_rows if row < clients]
    texts = [
        f"{names[row]} says {sample_outputs.quote_top_class_name(sample_outputs.outputs[row])}"
        for row in named_clients
    ]
    attach_tick_hover_texts(
        ax.yaxis, texts, "client", [sample_outputs.members[row] for row in named_clients]
    )
    ax.axhline(clients - 0.5, color=QUIET, lw=1.5)
    highlight_row_or_column(ax, sample_outputs.truth, classes, has_frame=True, colour=TRUTH_COLOUR)
    highlight_row_or_column(ax, sample_outputs.class_index, classes, has_frame=True, line_width=1.2)


def draw_bars_of_client_numbers(ax: Axes, sample_outputs: SampleOutputs) -> None:
    """Draw the first of the client numbers as bars, hatched where a client disagrees, and write the
    other numbers beside them if there is room.
    """
    clients = len(sample_outputs.members)
    bar_title, *written_titles = sample_outputs.client_numbers
    if is_frame_narrow():
        written_titles = []
    hatches = ["////" if disagrees else None for disagrees in sample_outputs.disagrees]
    bars = ax.barh(
        range(clients),
        sample_outputs.client_numbers[bar_title],
        color=sample_outputs.client_colours,
        hatch=hatches,
        height=0.7,
        edgecolor="white",
        lw=0,
    )
    dress(ax, title=" | ".join((bar_title, *written_titles)), grid="x")
    ax.tick_params(axis="y", left=False, labelleft=False)
    if is_frame_narrow():  # the tick label 0 would touch the last class
        ax.xaxis.set_major_locator(MaxNLocator(1, prune="lower"))
    else:
        limit_tick_count(ax, "x", 2)
    highlight_row_or_column(ax, sample_outputs.row_of_selected_client, clients, "y")

    labels = [""] * clients
    if clients <= MAX_CLIENTS_WITH_NUMBERS:
        for i in range(clients):
            labels[i] = " | ".join(
                format_count_or_rounded_number(sample_outputs.client_numbers[title][i])
                for title in written_titles
            )
    ax.bar_label(bars, labels, fontsize=8.5, padding=3, color=INK)
    for i, (bar, k) in enumerate(zip(bars, sample_outputs.members, strict=True)):
        lines = [format_client_for_row(k, sample_outputs.setting)]
        for title, values in sample_outputs.client_numbers.items():
            lines.append(f"{title}: {format_count_or_rounded_number(values[i])}")
        attach_hover_text(bar, "\n".join(lines), client=k)


def format_count_or_rounded_number(value: np.number) -> str:
    """Format a count with all its digits, any other number with three."""
    if isinstance(value, np.integer):
        return str(value)
    return f"{value:.3g}"
