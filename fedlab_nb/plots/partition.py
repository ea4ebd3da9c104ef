"""Who holds what: a dot for each client and class, its area the number of samples; above, the size of each client.

Up to LIMIT classes have dots in the class's colour; more become a heat-map. `Partition` redraws in place, for sliders.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from ..data import Dataset, Federation
from .kit import Bars, heat_map, told
from .series import Series, finished
from .style import (
    ACCENT,
    FAINT,
    LOCK,
    Picture,
    class_colours,
    class_ticks,
    client_axis,
    client_ticks,
    colour_bar,
    current_size,
    dress,
    few_ticks,
    heading,
    new_figure,
)
from .vector import mark
from .words import Setting, capital, client_name, listed, own_name, percent, plural, tabled

LIMIT = 26
PALE = 0.3  # opacity of clients that take no part
NOBODY = -1  # the client of a mark that stands for none to look at


class Partition:
    """The picture of a partition; `show(...)` brings it up to date, quickly where the table keeps its shape."""

    _shape: tuple | None = None
    _rows: Sequence[Series] = ()

    def show(
        self, federation: Federation, *, setting: Setting | str, client: int | None = None, klass: int | None = None,
        stored: tuple[Sequence[Series], str] | None = None,
    ) -> Picture:  # fmt: skip
        """Picture of a federation; `client` and `klass`, where given, are marked.

        setting: in words;   stored: results to show beside it, one Series a method, and the title that says where they
        come from
        """
        (counts, gone), names = everybody(federation), called(federation.dataset)
        rows, title = stored or ((), "")
        what = "Who holds what: a dot for each client and class, its area the number of training samples"
        with LOCK:
            shape = (*counts.shape, names, tuple(s.label for s in rows), tuple(gone))
            if shape != self._shape:
                self._build(*counts.shape, names, rows, gone)
                self._shape, self._rows = shape, ()
            self._artists.update(counts, client, klass, setting=setting)
            if rows:
                if rows is not self._rows:
                    self._bars.update(rows, title)
                    # The longest setting fits over these narrow bars.
                    heading(self._bars.ax, title, size=9.5)
                    self._rows = rows
                means = ", ".join(f"{s.label} {percent(s.mean)}" for s in finished(rows))
                what += f"; beside it, {title}: {means}"
        about = sentence(federation, client, klass, setting)
        return told(self.figure, what, setting, about, table(federation, setting))

    def _build(
        self,
        clients: int,
        classes: int,
        names: Sequence[str],
        rows: Sequence[Series],
        gone: Sequence[str],
    ) -> None:
        """The axes: the partition's two, and one for bars where there are rows for it."""
        self.figure = new_figure()
        columns = {"width_ratios": [1.35, 1]} if rows else {}
        grid = self.figure.add_gridspec(2, 1 + len(columns), height_ratios=[1, 4], **columns)
        upper = self.figure.add_subplot(grid[0, 0])
        lower = self.figure.add_subplot(grid[1, 0], sharex=upper)
        inches = (current_size()[0] * (0.46 if rows else 0.88), 2.75)
        self._artists = Artists(upper, lower, clients, classes, names, inches, gone)
        if rows:
            right = self.figure.add_subplot(grid[:, 1])
            self._bars = Bars(right, rows)


class Artists:
    """The artists of one partition on two axes: sizes above, classes below. inches: size of the lower axes, about.

    gone: what to call each of the last clients, which take no part and are drawn pale
    """

    def __init__(
        self, upper: Axes, lower: Axes, clients: int, classes: int, names: Sequence[str], inches: tuple[float, float],
        gone: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.upper, self.lower, self.shape, self.names = upper, lower, (clients, classes), names
        self.gone, self.who = ("",) * (clients - len(gone)) + tuple(gone), list[str]()
        colours = class_colours(classes)
        self.marks = [
            ax.axvspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0) for ax in (upper, lower)
        ]
        self.row = lower.axhspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)
        self.bars = upper.bar(range(clients), np.ones(clients), width=0.7, color="#9aa4ae")
        for bar in self.bars[clients - len(gone) :]:
            bar.set(alpha=PALE)
        dress(upper, y="samples", grid="y")
        upper.tick_params(labelbottom=False, bottom=False)
        few_ticks(upper, "y", 2, whole=True)
        # An unseen number at the top: the layout is the same whether or not a tick stands there.
        letters = upper.yaxis.get_ticklabels()[0].get_fontsize()
        upper.text(
            0,
            1,
            "0",
            transform=upper.transAxes,
            va="center_baseline",
            alpha=0,
            fontsize=letters,
            gid="outside",
        )
        dress(lower, x="client", y="class")
        if classes <= LIMIT:
            self.shades = np.array(
                [[to_rgba(c, PALE if away else 1) for away in self.gone] for c in colours]
            )
            self.dots = lower.scatter([0], [0], linewidths=0)
            lower.set_axisbelow(True)
            lower.grid(True, axis="y", color=FAINT, linewidth=1)
        else:
            self.dots = heat_map(lower, np.zeros((classes, clients)))
            colour_bar(self.dots, [upper, lower], "samples", pad=0.01, aspect=30)
        class_ticks(lower, names, "y", length=12, few=LIMIT)
        lower.set(xlim=(-0.6, clients - 0.4), ylim=(classes - 0.4, -0.6))
        client_ticks(lower, clients)
        # The largest dot just fits its cell: diameter in points = 2 sqrt(area / pi).
        cell = min(inches[0] * 72 / (clients + 0.2), inches[1] * 72 / (classes + 0.2), 40)
        self.largest = np.pi * (0.47 * cell) ** 2

    def update(
        self,
        counts: np.ndarray,
        client: int | None = None,
        klass: int | None = None,
        *,
        setting: Setting | str = "",
    ) -> None:
        clients, classes = self.shape
        show_at(self.row, "y", klass, classes)
        most, who = (
            max(int(counts.max()), 1),
            [capital(client_name(k, setting)) for k in range(clients)],
        )
        if who != self.who:
            client_axis(self.lower, clients, setting)
            self.who = who
        if classes <= LIMIT:
            y, x = np.nonzero(counts.T)
            self.dots.set_offsets(np.stack([x, y], 1))
            self.dots.set_sizes(np.maximum(counts[x, y] / most * self.largest, 2.5))
            self.dots.set_facecolors(self.shades[y, x])
            cells = list(zip(y.tolist(), x.tolist(), strict=True))
            mine, all_ = counts.sum(1).tolist(), counts.sum(0).tolist()
            says = [cell(counts[k, c], mine[k], all_[c], self.names[c], who[k]) for c, k in cells]
            mark(
                self.dots,
                says,
                client=[NOBODY if self.gone[k] else k for _, k in cells],
                klass=[c for c, _ in cells],
            )
        else:
            self.dots.set_data(counts.T)
            self.dots.set_clim(0, most)
        sizes = counts.sum(1)
        for k, (bar, size) in enumerate(zip(self.bars, sizes, strict=True)):
            bar.set_height(size)
            held = plural(int((counts[k] > 0).sum()), "class")
            away = f", {self.gone[k]}" * bool(self.gone[k])
            here = {} if self.gone[k] else {"client": k}
            mark(bar, f"{who[k]}{away}\n{plural(int(size), 'sample')} of {held}", **here)
        self.upper.set_ylim(0, beyond(max(int(sizes.max()), 1)))
        for span in self.marks:
            show_at(span, "x", client, clients)


def beyond(most: float) -> float:
    """A round end of an axis above `most`, which stays while that changes a little."""
    unit = 10 ** math.floor(math.log10(most))
    return next(
        step * unit
        for step in (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12.5)
        if step * unit >= 1.06 * most
    )


def cell(count: int, mine: int, all_: int, name: str, who: str) -> str:
    """What the dot of a client and a class says. mine, all_: samples of the client, of the class."""
    shares = f"{percent(count / mine)} of the client's, {percent(count / all_)} of the class's"
    return f"{who}, class {name}\n{plural(int(count), 'sample')}\n{shares}"


def show_at(span: Rectangle, axis: str, at: int | None, count: int) -> None:
    """Move a mark to column or row `at` of `count`; without one it is not seen."""
    span.set(visible=at is not None and at < count, **{} if at is None else {axis: at - 0.5})


def sentence(
    federation: Federation, client: int | None, klass: int | None, setting: Setting | str = ""
) -> str:
    """Of the class that is looked at, else of the client, else of all."""
    counts, names, skew = (
        np.asarray(federation.label_counts),
        called(federation.dataset),
        federation.skew,
    )
    if klass is not None and klass < len(names):
        column = counts[:, klass]
        most = int(column.argmax())
        who = f"client {own_name(most, setting)} holds {column[most]} of its {column.sum()} samples"
        return f"Class {names[klass]}: {who}; {plural(int((column == 0).sum()), 'client')} never saw it."
    if client is not None and client < len(counts):
        row = counts[client]
        order = [int(c) for c in np.argsort(-row, kind="stable") if row[c] > 0]
        words = [f"{row[c]} of class {names[c]}" for c in order[:4]]
        words += (
            [f"{row[order[4:]].sum()} of {plural(len(order) - 4, 'more class')}"]
            if len(order) > 4
            else []
        )
        lacking = len(names) - len(order)
        never = f"; it has never seen the other {plural(lacking, 'class')}" if lacking else ""
        return (
            f"Client {own_name(client, setting)} holds {row.sum()} samples: {listed(words)}{never}."
        )
    sizes = " to ".join(
        dict.fromkeys(str(size) for size in (counts.sum(1).min(), counts.sum(1).max()))
    )
    return (
        f"A client effectively sees {skew.effective_classes:.1f} of {len(names)} classes. Knowing who holds a sample "
        f"gives {percent(skew.jensen_shannon)} of the information about its label (skew "
        f"{skew.jensen_shannon:.2f} between 0 and 1). A client has {sizes} samples. {federation.note}"
    ).strip()


def called(dataset: Dataset) -> tuple[str, ...]:
    """The names of the classes; letters, which name clients, too, stand in quotation marks."""
    return tuple(
        f"“{name}”" if name.isupper() and len(name) < 3 else name for name in dataset.class_names
    )


def everybody(federation: Federation) -> tuple[np.ndarray, list[str]]:
    """Samples `[M, C]` of all clients, those that take no part at the end, and what to call each of these."""
    if federation.whole is None:
        return np.asarray(federation.label_counts), []
    order = [*federation.ids, *federation.absent, *federation.unseen]
    gone = ["absent"] * len(federation.absent) + ["unseen"] * len(federation.unseen)
    return np.asarray(federation.whole.label_counts)[order], gone


def table(federation: Federation, setting: Setting | str) -> list[dict[str, Any]]:
    columns = ["client", "samples", *(f"class {n}" for n in called(federation.dataset))]
    counts, gone = everybody(federation)
    words = [""] * (len(counts) - len(gone)) + [f", {word}" for word in gone]
    rows = enumerate(zip(counts.tolist(), words, strict=True))
    return tabled(
        columns, ((own_name(k, setting) + word, sum(row), *row) for k, (row, word) in rows)
    )


def partition(federation: Federation, *, setting: Setting | str) -> Picture:
    """`Partition().show(...)`: one picture, for those who do not redraw it."""
    return Partition().show(federation, setting=setting)
