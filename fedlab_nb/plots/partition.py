"""Pictures of who holds what: a dot for each client and class, whose area is the number of samples,
and above them bars of the clients' sizes.

Up to MAX_COLOURED_CLASSES classes are drawn as dots in the classes' colours, more classes as a heat
map. `PartitionPicture` keeps its figure, so that the axes stay where they are while a slider moves.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from ..data import Dataset, Federation
from ..errors import SAMPLES
from ..front.vocabulary import choose_words_for_clients_and_samples
from .array_types import ClientClassCounts, CountPerClass, CountPerClient
from .kit import AccuracyBars, describe_picture, draw_heat_map
from .marks import attach_hover_text
from .series import MethodResults, select_results_with_accuracies
from .style import (
    ACCENT,
    FAINT,
    LOCK,
    AxisName,
    Picture,
    draw_colour_bar,
    dress,
    get_default_figure_size_inches,
    limit_tick_count,
    list_class_colours,
    make_figure,
    set_class_ticks,
    set_client_x_ticks,
    set_client_x_ticks_and_label,
    write_axes_title,
)
from .words import (
    SettingCaption,
    TableRows,
    build_table,
    capitalize_first_letter,
    format_client_for_sentence,
    format_client_for_title,
    format_count_and_noun,
    format_percent,
    join_with_and,
)

MAX_COLOURED_CLASSES = 26
PALE = 0.3  # opacity of clients that take no part
NOBODY = -1  # the client key of a mark whose client cannot be selected
SMALLEST_DOT = 2.5  # area in square points
# Ends of an axis, to be multiplied by a power of ten.
ROUND_ENDS = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12.5)
NAMED_CLASSES = 4  # the number of a client's classes that the sentence names
FEW_CLASSES = 4  # with so few classes, the number of classes that a client sees gets a decimal
# (smallest share of all classes that a client effectively sees, how different the clients are then)
DEGREES = ((0.9, "alike"), (0.45, "fairly similar"), (0.25, "different"), (0, "very different"))
ABOUT = "Who holds what: a dot for each client and class, its area the number of training samples"


class TitledBars(NamedTuple):
    """Bars of accuracy beside a partition: one `MethodResults` for each method, and their title."""

    series: Sequence[MethodResults]
    title: str


class PartitionPicture:
    """The picture of a partition. `show` reuses the axes for another partition of the same shape."""

    _shape: tuple | None = None
    _stored_rows: Sequence[MethodResults] = ()

    def show(
        self,
        federation: Federation,
        *,
        setting: SettingCaption | str,
        selected_client: int | None = None,
        selected_class_index: int | None = None,
        stored_bars_beside_it: TitledBars | None = None,
    ) -> Picture:
        """Draw a federation, and return the picture.

        setting: the caption
        selected_client, selected_class_index: the client and the class to mark, if any
        stored_bars_beside_it: their title says where the stored results come from
        """
        counts, remarks = count_samples_of_all_clients(federation)
        names = list_class_names_with_letters_quoted(federation.dataset)
        rows, title = stored_bars_beside_it or ((), "")
        title_text = ABOUT
        with LOCK:
            labels = tuple(s.label for s in rows)
            shape = (*counts.shape, names, labels, tuple(remarks))
            if shape != self._shape:
                self._build_axes(*counts.shape, names, rows, remarks)
                self._shape = shape
                self._stored_rows = ()
            self._artists.update(counts, selected_client, selected_class_index, setting=setting)
            if rows:
                if rows is not self._stored_rows:
                    self._bars.update(rows, title)
                    # This size leaves room for the longest setting above these narrow bars.
                    write_axes_title(self._bars.ax, title, font_size=9.5)
                    self._stored_rows = rows
                means = ", ".join(
                    f"{s.label} {format_percent(s.mean)}"
                    for s in select_results_with_accuracies(rows)
                )
                title_text += f"; beside it, {title}: {means}"
        text = describe_partition_or_selection(
            federation, selected_client, selected_class_index, setting
        )
        rows = make_partition_table(federation, setting)
        return describe_picture(
            self.figure, title_text, setting, text, rows, detail=federation.note
        )

    def _build_axes(
        self,
        client_count: int,
        class_count: int,
        class_names: Sequence[str],
        bar_rows: Sequence[MethodResults],
        remarks_on_last_clients: Sequence[str],
    ) -> None:
        """Build the axes: two for the partition, and one for bars if there are `bar_rows`."""
        self.figure = make_figure()
        width_share = 0.88
        columns: dict[str, Any] = {"ncols": 1}
        if bar_rows:
            width_share = 0.46
            columns = {"ncols": 2, "width_ratios": [1.35, 1]}
        grid = self.figure.add_gridspec(2, height_ratios=[1, 4], **columns)
        upper = self.figure.add_subplot(grid[0, 0])
        lower = self.figure.add_subplot(grid[1, 0], sharex=upper)
        inches = (get_default_figure_size_inches()[0] * width_share, 2.75)
        self._artists = PartitionArtists(
            upper, lower, client_count, class_count, class_names, inches, remarks_on_last_clients
        )
        if bar_rows:
            self._bars = AccuracyBars(self.figure.add_subplot(grid[:, 1]), bar_rows)


class PartitionArtists:
    """The artists of one partition on two axes: the clients' sizes at the top, their classes below.

    size_of_lower_axes_inches: approximate width and height
    remarks_on_last_clients:   a word on each of the last clients, which take no part and are drawn pale
    """

    def __init__(
        self,
        upper: Axes,
        lower: Axes,
        clients: int,
        classes: int,
        class_names: Sequence[str],
        size_of_lower_axes_inches: tuple[float, float],
        remarks_on_last_clients: Sequence[str] = (),
    ) -> None:
        self.upper = upper
        self.lower = lower
        self.shape = (clients, classes)
        self.names = class_names
        self.remarks = ("",) * (clients - len(remarks_on_last_clients)) + tuple(
            remarks_on_last_clients
        )
        self._client_names: list[str] = []
        band = {"color": ACCENT, "alpha": 0.13, "lw": 0, "zorder": 0}
        self._columns = [ax.axvspan(-0.5, 0.5, **band) for ax in (upper, lower)]
        self._row = lower.axhspan(-0.5, 0.5, **band)
        self._add_size_bars_of_height_1(clients)
        dress(lower, x="client", y="class")
        if classes <= MAX_COLOURED_CLASSES:
            self._add_empty_dots(classes)
        else:
            self.dots = draw_heat_map(lower, np.zeros((classes, clients)))
            draw_colour_bar(self.dots, [upper, lower], "samples", pad=0.01, aspect=30)
        set_class_ticks(
            lower, class_names, "y", max_letters=12, max_single_ticks=MAX_COLOURED_CLASSES
        )
        lower.set(xlim=(-0.6, clients - 0.4), ylim=(classes - 0.4, -0.6))
        set_client_x_ticks(lower, clients)
        # The largest dot just fits its cell: diameter in points = 2 sqrt(area / pi).
        width, height = size_of_lower_axes_inches
        points_of_cell = min(72 * width / (clients + 0.2), 72 * height / (classes + 0.2), 40)
        self._largest_dot = np.pi * (0.47 * points_of_cell) ** 2

    def _add_size_bars_of_height_1(self, client_count: int) -> None:
        ax = self.upper
        self.bars = ax.bar(range(client_count), np.ones(client_count), width=0.7, color="#9aa4ae")
        for bar, remark in zip(self.bars, self.remarks, strict=True):
            if remark:
                bar.set(alpha=PALE)
        dress(ax, y="samples", grid="y")
        ax.tick_params(labelbottom=False, bottom=False)
        limit_tick_count(ax, "y", 2, only_whole_numbers=True)
        # An invisible number at the top, so that the layout is the same with and without a tick there.
        style = {
            "fontsize": ax.yaxis.get_ticklabels()[0].get_fontsize(),
            "va": "center_baseline",
            "alpha": 0,
            "gid": "outside",
        }
        ax.text(0, 1, "0", transform=ax.transAxes, **style)

    def _add_empty_dots(self, class_count: int) -> None:
        rows = []
        for colour in list_class_colours(class_count):
            rows.append([to_rgba(colour, PALE if remark else 1) for remark in self.remarks])
        self._colours = np.array(rows)  # [C, M, 4]
        self.dots = self.lower.scatter([0], [0], linewidths=0)
        self.lower.set_axisbelow(True)
        self.lower.grid(True, axis="y", color=FAINT, linewidth=1)

    def update(
        self,
        counts: ClientClassCounts,
        selected_client: int | None = None,
        selected_class_index: int | None = None,
        *,
        setting: SettingCaption | str = "",
    ) -> None:
        """Show these numbers of samples `[M, C]`."""
        clients, classes = self.shape
        client_names = [
            capitalize_first_letter(format_client_for_title(k, setting)) for k in range(clients)
        ]
        if client_names != self._client_names:
            set_client_x_ticks_and_label(self.lower, clients, setting)
            self._client_names = client_names
        if classes <= MAX_COLOURED_CLASSES:
            self._update_dots(counts)
        else:
            self.dots.set_data(counts.T)
            self.dots.set_clim(0, max(int(counts.max()), 1))
        self._update_sizes(counts)
        for span in self._columns:
            move_or_hide_selection_mark(span, "x", selected_client, clients)
        move_or_hide_selection_mark(self._row, "y", selected_class_index, classes)

    def _update_dots(self, counts: ClientClassCounts) -> None:
        labels, owners = np.nonzero(counts.T)
        areas = counts[owners, labels] / max(int(counts.max()), 1) * self._largest_dot
        self.dots.set_offsets(np.stack([owners, labels], 1))
        self.dots.set_sizes(np.maximum(areas, SMALLEST_DOT))
        self.dots.set_facecolors(self._colours[labels, owners])
        client_sizes = counts.sum(1).tolist()
        class_sizes = counts.sum(0).tolist()
        texts = []
        marked_clients = []
        for k, c in zip(owners.tolist(), labels.tolist(), strict=True):
            name = self.names[c]
            texts.append(
                describe_partition_dot(
                    counts[k, c], client_sizes[k], class_sizes[c], name, self._client_names[k]
                )
            )
            marked_clients.append(NOBODY if self.remarks[k] else k)
        attach_hover_text(self.dots, texts, client=marked_clients, class_index=labels.tolist())

    def _update_sizes(self, counts: ClientClassCounts) -> None:
        sizes = counts.sum(1)
        for k, (bar, size) in enumerate(zip(self.bars, sizes, strict=True)):
            bar.set_height(size)
            class_count = format_count_and_noun(int((counts[k] > 0).sum()), "class")
            samples = f"{format_count_and_noun(int(size), 'sample')} of {class_count}"
            if self.remarks[k]:
                attach_hover_text(bar, f"{self._client_names[k]}, {self.remarks[k]}\n{samples}")
            else:
                attach_hover_text(bar, f"{self._client_names[k]}\n{samples}", client=k)
        self.upper.set_ylim(0, round_up_axis_end(max(int(sizes.max()), 1)))


def round_up_axis_end(largest_value: float) -> float:
    """Round up to a round end of an axis. It stays the same when `largest_value` changes a little."""
    unit = 10 ** math.floor(math.log10(largest_value))
    ends = [step * unit for step in ROUND_ENDS]
    return next(end for end in ends if end >= 1.06 * largest_value)


def describe_partition_dot(
    count: int, client_size: int, class_size: int, class_name: str, client_text: str
) -> str:
    """Describe the dot of a client and a class, for its hover text.

    count:       samples of the client in the class
    client_size: all samples of the client
    class_size:  all samples of the class
    """
    client_share = format_percent(count / client_size)
    class_share = format_percent(count / class_size)
    samples = format_count_and_noun(int(count), "sample")
    return f"{client_text}, class {class_name}\n{samples}\n{client_share} of the client's, {class_share} of the class's"


def move_or_hide_selection_mark(
    span: Rectangle, axis: AxisName, selected_index: int | None, count: int
) -> None:
    """Move a mark to column or row `selected_index` of `count`; it is hidden if `selected_index` is None."""
    if selected_index is None or selected_index >= count:
        span.set(visible=False)
    else:
        span.set(visible=True, **{axis: selected_index - 0.5})


def describe_partition_or_selection(
    federation: Federation,
    selected_client: int | None,
    selected_class_index: int | None,
    setting: SettingCaption | str = "",
) -> str:
    """Describe the selected class, else the selected client, else all clients."""
    counts = np.asarray(federation.label_counts)
    names = list_class_names_with_letters_quoted(federation.dataset)
    if selected_class_index is not None and selected_class_index < len(names):
        return describe_class_holders(
            counts[:, selected_class_index], names[selected_class_index], setting
        )
    if selected_client is not None and selected_client < len(counts):
        return describe_client_classes(
            counts[selected_client], names, format_client_for_sentence(selected_client, setting)
        )
    return describe_client_differences(federation, counts, len(names))


def describe_class_holders(
    class_samples_per_client: CountPerClient, class_name: str, setting: SettingCaption | str
) -> str:
    """Say who has most samples of a class, and who has none. class_samples_per_client: `[M]`"""
    largest_holder = int(class_samples_per_client.argmax())
    clients_without = format_count_and_noun(int((class_samples_per_client == 0).sum()), "client")
    holder_name = format_client_for_sentence(largest_holder, setting)
    return (
        f"Class {class_name}: client {holder_name} holds {class_samples_per_client[largest_holder]} of "
        f"its {class_samples_per_client.sum()} samples; {clients_without} never saw it."
    )


def describe_client_classes(
    samples_per_class: CountPerClass, class_names: Sequence[str], client_text: str
) -> str:
    """Describe a client's most frequent classes. samples_per_class: `[C]`"""
    held_classes = []
    for c in np.argsort(-samples_per_class, kind="stable"):
        if samples_per_class[c] > 0:
            held_classes.append(int(c))
    parts = [
        f"{samples_per_class[c]} of class {class_names[c]}" for c in held_classes[:NAMED_CLASSES]
    ]
    other_classes = held_classes[NAMED_CLASSES:]
    if other_classes:
        parts.append(
            f"{samples_per_class[other_classes].sum()} of "
            f"{format_count_and_noun(len(other_classes), 'more class')}"
        )
    text = f"Client {client_text} holds {samples_per_class.sum()} samples: {join_with_and(parts)}"
    missing_classes = len(class_names) - len(held_classes)
    if missing_classes:
        text += f"; it has never seen the other {format_count_and_noun(missing_classes, 'class')}"
    return f"{text}."


def describe_client_differences(
    federation: Federation, counts: ClientClassCounts, class_count: int
) -> str:
    """Say how different the clients are. counts: samples `[M, C]`"""
    smallest = int(counts.sum(1).min())
    largest = int(counts.sum(1).max())
    sizes = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
    classes_seen = federation.skew.effective_classes
    effective_text = f"{classes_seen:.0f}" if class_count > FEW_CLASSES else f"{classes_seen:.1f}"
    dataset = federation.dataset
    kinds = choose_words_for_clients_and_samples(dataset.name, SAMPLES[len(dataset.input_shape)])[
        "kinds"
    ]
    text = (
        f"A client effectively sees about {effective_text} of {class_count} {kinds} and has "
        f"{sizes} samples."
    )
    if len(counts) > 1:
        share = classes_seen / class_count
        degree = next(words for least, words in DEGREES if share >= least)
        text = (
            f"The clients are {degree}: each effectively sees about {effective_text} of "
            f"{class_count} {kinds} and has {sizes} samples."
        )
    return text


def list_class_names_with_letters_quoted(dataset: Dataset) -> tuple[str, ...]:
    """Return the classes' names; single letters are quoted, because clients are named by letters
    too.
    """
    names = []
    for name in dataset.class_names:
        is_like_client = name.isupper() and len(name) < 3
        names.append(f"“{name}”" if is_like_client else name)
    return tuple(names)


class CountsAndRemarks(NamedTuple):
    """Samples `[M, C]` of all clients, and a remark on each of the last ones, which take no part."""

    counts: ClientClassCounts
    remarks: list[str]


def count_samples_of_all_clients(federation: Federation) -> CountsAndRemarks:
    """Count the samples of all clients. Clients that take no part are last."""
    if federation.whole is None:
        return CountsAndRemarks(np.asarray(federation.label_counts), [])
    order = [*federation.ids, *federation.absent, *federation.unseen]
    remarks = ["absent"] * len(federation.absent) + ["unseen"] * len(federation.unseen)
    return CountsAndRemarks(np.asarray(federation.whole.label_counts)[order], remarks)


def make_partition_table(federation: Federation, setting: SettingCaption | str) -> TableRows:
    """Make the table with one row per client: its samples in all and by class."""
    columns = ["client", "samples"]
    for name in list_class_names_with_letters_quoted(federation.dataset):
        columns.append(f"class {name}")
    counts, remarks = count_samples_of_all_clients(federation)
    present_clients = len(counts) - len(remarks)
    rows = []
    for k, row in enumerate(counts.tolist()):
        name = format_client_for_sentence(k, setting)
        if k >= present_clients:
            name += f", {remarks[k - present_clients]}"
        rows.append((name, sum(row), *row))
    return build_table(columns, rows)


def draw_partition(federation: Federation, *, setting: SettingCaption | str) -> Picture:
    """Draw the picture of one partition once; `PartitionPicture` is for repeated drawing."""
    return PartitionPicture().show(federation, setting=setting)
