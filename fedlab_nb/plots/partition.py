"""Who holds what: a dot for each client and class, its area the number of samples; above, the size of each client.

Up to MOST_COLOURED_CLASSES classes have dots in the class's colour; more become a heat map. `Partition` keeps its
figure, so that the axes stay where they are while a slider moves.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from ..data import Dataset, Federation
from .kit import Bars, describe_picture, draw_heat_map
from .series import Series, select_finished
from .style import (
    ACCENT,
    FAINT,
    LOCK,
    Picture,
    class_colours,
    current_size,
    draw_colour_bar,
    dress,
    heading,
    limit_ticks,
    new_figure,
    set_class_ticks,
    set_client_axis,
    set_client_ticks,
)
from .vector import mark
from .words import (
    Setting,
    build_table,
    capitalize,
    client_name,
    join_words,
    percent,
    plain_client_name,
    plural,
)

MOST_COLOURED_CLASSES = 26
PALE = 0.3  # opacity of clients that take no part
NOBODY = -1  # the client of a mark that stands for none to look at
SMALLEST_DOT = 2.5  # area in square points
ROUND_ENDS = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12.5)  # of an axis, times a power of ten
NAMED_CLASSES = 4  # of a client, in the sentence
FEW_CLASSES = 4  # of a data set; a client's share of them is then said with a decimal
# The least share of all classes that a client effectively sees, and how unlike clients then are.
DEGREES = ((0.9, "alike"), (0.45, "fairly similar"), (0.25, "different"), (0, "very different"))
ABOUT = "Who holds what: a dot for each client and class, its area the number of training samples"


class Partition:
    """The picture of a partition; `show` draws another one into the same axes where it has the same shape."""

    _shape: tuple | None = None
    _stored_rows: Sequence[Series] = ()

    def show(
        self,
        federation: Federation,
        *,
        setting: Setting | str,
        client: int | None = None,
        class_index: int | None = None,
        stored: tuple[Sequence[Series], str] | None = None,
    ) -> Picture:
        """Picture of a federation; `client` and `class_index`, where given, are marked.

        setting: in words;   stored: results to show beside it, one Series a method, and the title that says where they
        come from
        """
        counts, remarks = count_all_clients(federation)
        names = quote_class_names(federation.dataset)
        rows, title = stored or ((), "")
        about = ABOUT
        with LOCK:
            labels = tuple(s.label for s in rows)
            shape = (*counts.shape, names, labels, tuple(remarks))
            if shape != self._shape:
                self._build(*counts.shape, names, rows, remarks)
                self._shape = shape
                self._stored_rows = ()
            self._artists.update(counts, client, class_index, setting=setting)
            if rows:
                if rows is not self._stored_rows:
                    self._bars.update(rows, title)
                    # The longest setting fits over these narrow bars.
                    heading(self._bars.ax, title, size=9.5)
                    self._stored_rows = rows
                means = ", ".join(f"{s.label} {percent(s.mean)}" for s in select_finished(rows))
                about += f"; beside it, {title}: {means}"
        text = describe_partition(federation, client, class_index, setting)
        rows = make_partition_table(federation, setting)
        return describe_picture(self.figure, about, setting, text, rows, detail=federation.note)

    def _build(
        self,
        clients: int,
        classes: int,
        names: Sequence[str],
        rows: Sequence[Series],
        remarks: Sequence[str],
    ) -> None:
        """The axes: the partition's two, and one for bars where there are rows for it."""
        self.figure = new_figure()
        width_share = 0.88
        columns: dict[str, Any] = {"ncols": 1}
        if rows:
            width_share = 0.46
            columns = {"ncols": 2, "width_ratios": [1.35, 1]}
        grid = self.figure.add_gridspec(2, height_ratios=[1, 4], **columns)
        upper = self.figure.add_subplot(grid[0, 0])
        lower = self.figure.add_subplot(grid[1, 0], sharex=upper)
        inches = (current_size()[0] * width_share, 2.75)
        self._artists = Artists(upper, lower, clients, classes, names, inches, remarks)
        if rows:
            self._bars = Bars(self.figure.add_subplot(grid[:, 1]), rows)


class Artists:
    """The artists of one partition on two axes: sizes above, classes below.

    inches:  size of the lower axes, about
    remarks: what to say of each of the last clients, which take no part and are drawn pale
    """

    def __init__(
        self,
        upper: Axes,
        lower: Axes,
        clients: int,
        classes: int,
        names: Sequence[str],
        inches: tuple[float, float],
        remarks: Sequence[str] = (),
    ) -> None:
        self.upper = upper
        self.lower = lower
        self.shape = (clients, classes)
        self.names = names
        self.remarks = ("",) * (clients - len(remarks)) + tuple(remarks)
        self._client_names: list[str] = []
        band = {"color": ACCENT, "alpha": 0.13, "lw": 0, "zorder": 0}
        self._columns = [ax.axvspan(-0.5, 0.5, **band) for ax in (upper, lower)]
        self._row = lower.axhspan(-0.5, 0.5, **band)
        self._draw_sizes(clients)
        dress(lower, x="client", y="class")
        if classes <= MOST_COLOURED_CLASSES:
            self._draw_dots(classes)
        else:
            self.dots = draw_heat_map(lower, np.zeros((classes, clients)))
            draw_colour_bar(self.dots, [upper, lower], "samples", pad=0.01, aspect=30)
        set_class_ticks(lower, names, "y", length=12, few=MOST_COLOURED_CLASSES)
        lower.set(xlim=(-0.6, clients - 0.4), ylim=(classes - 0.4, -0.6))
        set_client_ticks(lower, clients)
        # The largest dot just fits its cell: diameter in points = 2 sqrt(area / pi).
        points_of_cell = min(72 * inches[0] / (clients + 0.2), 72 * inches[1] / (classes + 0.2), 40)
        self._largest_dot = np.pi * (0.47 * points_of_cell) ** 2

    def _draw_sizes(self, clients: int) -> None:
        ax = self.upper
        self.bars = ax.bar(range(clients), np.ones(clients), width=0.7, color="#9aa4ae")
        for bar, remark in zip(self.bars, self.remarks, strict=True):
            if remark:
                bar.set(alpha=PALE)
        dress(ax, y="samples", grid="y")
        ax.tick_params(labelbottom=False, bottom=False)
        limit_ticks(ax, "y", 2, whole=True)
        # An unseen number at the top: the layout is the same whether or not a tick stands there.
        style = {
            "fontsize": ax.yaxis.get_ticklabels()[0].get_fontsize(),
            "va": "center_baseline",
            "alpha": 0,
            "gid": "outside",
        }
        ax.text(0, 1, "0", transform=ax.transAxes, **style)

    def _draw_dots(self, classes: int) -> None:
        rows = []
        for colour in class_colours(classes):
            rows.append([to_rgba(colour, PALE if remark else 1) for remark in self.remarks])
        self._colours = np.array(rows)  # [C, M, 4]
        self.dots = self.lower.scatter([0], [0], linewidths=0)
        self.lower.set_axisbelow(True)
        self.lower.grid(True, axis="y", color=FAINT, linewidth=1)

    def update(
        self,
        counts: np.ndarray,
        client: int | None = None,
        class_index: int | None = None,
        *,
        setting: Setting | str = "",
    ) -> None:
        """Show these samples `[M, C]`."""
        clients, classes = self.shape
        client_names = [capitalize(client_name(k, setting)) for k in range(clients)]
        if client_names != self._client_names:
            set_client_axis(self.lower, clients, setting)
            self._client_names = client_names
        if classes <= MOST_COLOURED_CLASSES:
            self._update_dots(counts)
        else:
            self.dots.set_data(counts.T)
            self.dots.set_clim(0, max(int(counts.max()), 1))
        self._update_sizes(counts)
        for span in self._columns:
            move_mark(span, "x", client, clients)
        move_mark(self._row, "y", class_index, classes)

    def _update_dots(self, counts: np.ndarray) -> None:
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
                describe_dot(
                    counts[k, c], client_sizes[k], class_sizes[c], name, self._client_names[k]
                )
            )
            marked_clients.append(NOBODY if self.remarks[k] else k)
        mark(self.dots, texts, client=marked_clients, class_index=labels.tolist())

    def _update_sizes(self, counts: np.ndarray) -> None:
        sizes = counts.sum(1)
        for k, (bar, size) in enumerate(zip(self.bars, sizes, strict=True)):
            bar.set_height(size)
            held = plural(int((counts[k] > 0).sum()), "class")
            samples = f"{plural(int(size), 'sample')} of {held}"
            if self.remarks[k]:
                mark(bar, f"{self._client_names[k]}, {self.remarks[k]}\n{samples}")
            else:
                mark(bar, f"{self._client_names[k]}\n{samples}", client=k)
        self.upper.set_ylim(0, round_axis_end(max(int(sizes.max()), 1)))


def round_axis_end(most: float) -> float:
    """A round end of an axis above `most`, which stays while that changes a little."""
    unit = 10 ** math.floor(math.log10(most))
    ends = [step * unit for step in ROUND_ENDS]
    return next(end for end in ends if end >= 1.06 * most)


def describe_dot(count: int, client_size: int, class_size: int, name: str, who: str) -> str:
    """What the dot of a client and a class says. client_size, class_size: samples of the client, of the class."""
    of_client = percent(count / client_size)
    of_class = percent(count / class_size)
    samples = plural(int(count), "sample")
    return f"{who}, class {name}\n{samples}\n{of_client} of the client's, {of_class} of the class's"


def move_mark(span: Rectangle, axis: str, place: int | None, count: int) -> None:
    """Move a mark to column or row `place` of `count`; without one it is not seen."""
    if place is None or place >= count:
        span.set(visible=False)
    else:
        span.set(visible=True, **{axis: place - 0.5})


def describe_partition(
    federation: Federation, client: int | None, class_index: int | None, setting: Setting | str = ""
) -> str:
    """Of the class that is looked at, else of the client, else of all."""
    counts = np.asarray(federation.label_counts)
    names = quote_class_names(federation.dataset)
    if class_index is not None and class_index < len(names):
        return describe_class(counts[:, class_index], names[class_index], setting)
    if client is not None and client < len(counts):
        return describe_client(counts[client], names, plain_client_name(client, setting))
    return describe_all_clients(federation, counts, len(names))


def describe_class(column: np.ndarray, name: str, setting: Setting | str) -> str:
    """Who has most samples of a class, and who has none. column: samples `[M]` of it."""
    most = int(column.argmax())
    without = plural(int((column == 0).sum()), "client")
    who = plain_client_name(most, setting)
    return (
        f"Class {name}: client {who} holds {column[most]} of its {column.sum()} samples; "
        f"{without} never saw it."
    )


def describe_client(row: np.ndarray, names: Sequence[str], who: str) -> str:
    """A client's commonest classes. row: its samples `[C]`"""
    order = [int(c) for c in np.argsort(-row, kind="stable") if row[c] > 0]
    parts = [f"{row[c]} of class {names[c]}" for c in order[:NAMED_CLASSES]]
    others = order[NAMED_CLASSES:]
    if others:
        parts.append(f"{row[others].sum()} of {plural(len(others), 'more class')}")
    text = f"Client {who} holds {row.sum()} samples: {join_words(parts)}"
    missing = len(names) - len(order)
    if missing:
        text += f"; it has never seen the other {plural(missing, 'class')}"
    return f"{text}."


def describe_all_clients(federation: Federation, counts: np.ndarray, classes: int) -> str:
    """How unlike the clients are. counts: samples `[M, C]`"""
    smallest = int(counts.sum(1).min())
    largest = int(counts.sum(1).max())
    sizes = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
    seen = federation.skew.effective_classes
    about = f"{seen:.0f}" if classes > FEW_CLASSES else f"{seen:.1f}"
    text = f"A client sees about {about} of {classes} classes and has {sizes} samples."
    if len(counts) > 1:
        share = seen / classes
        degree = next(words for least, words in DEGREES if share >= least)
        text = f"The clients are {degree}: each sees about {about} of {classes} classes and has {sizes} samples."
    return text


def quote_class_names(dataset: Dataset) -> tuple[str, ...]:
    """The names of the classes; letters, which name clients, too, stand in quotation marks."""
    names = []
    for name in dataset.class_names:
        is_like_client = name.isupper() and len(name) < 3
        names.append(f"“{name}”" if is_like_client else name)
    return tuple(names)


def count_all_clients(federation: Federation) -> tuple[np.ndarray, list[str]]:
    """Samples `[M, C]` of all clients, those that take no part at the end, and a remark on each of these."""
    if federation.whole is None:
        return np.asarray(federation.label_counts), []
    order = [*federation.ids, *federation.absent, *federation.unseen]
    remarks = ["absent"] * len(federation.absent) + ["unseen"] * len(federation.unseen)
    return np.asarray(federation.whole.label_counts)[order], remarks


def make_partition_table(federation: Federation, setting: Setting | str) -> list[dict[str, Any]]:
    """A row for each client: its samples, all and by class."""
    columns = ["client", "samples"]
    for name in quote_class_names(federation.dataset):
        columns.append(f"class {name}")
    counts, remarks = count_all_clients(federation)
    present = len(counts) - len(remarks)
    rows = []
    for k, row in enumerate(counts.tolist()):
        name = plain_client_name(k, setting)
        if k >= present:
            name += f", {remarks[k - present]}"
        rows.append((name, sum(row), *row))
    return build_table(columns, rows)


def draw_partition(federation: Federation, *, setting: Setting | str) -> Picture:
    """The picture of one partition, for those who do not redraw it."""
    return Partition().show(federation, setting=setting)
