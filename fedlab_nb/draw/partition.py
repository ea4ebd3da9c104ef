"""Who holds what: a dot for each client and class, its area the number of samples; above, the size of each client.

Up to LIMIT classes have dots in the class's colour; more become a heat-map. `Partition` redraws in place, for sliders.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .series import Series
from .stored_parts import Bars
from .style import ACCENT, FAINT, INK, LOCK, QUIET, Picture, class_colours, dress, many_is_dark, new_figure, shorten
from .words import listed, percent, plural

LIMIT = 26


class Partition:
    """The picture of a partition; `show(...)` brings it up to date, quickly where the table keeps its shape."""

    def __init__(self) -> None:
        self._shape: tuple | None = None

    def show(
        self,
        counts: np.ndarray,
        class_names: Sequence[str],
        *,
        setting: str,
        jensen_shannon: float,
        effective_classes: float,
        client: int | None = None,
        klass: int | None = None,
        note: str = "",
        stored: tuple[Sequence[Series], str] | None = None,
    ) -> Picture:
        """Picture of `counts [M, C]`; `client` and `klass`, where given, are marked.

        stored: results to show beside it, one Series a method, and the title that says where they come from
        """
        counts = np.asarray(counts)
        shape = (*counts.shape, tuple(class_names))
        rows, title = stored or ((), "")
        with LOCK:
            whole = (shape, tuple(s.label for s in rows))
            if whole != self._shape:
                self._build(shape, rows)
                self._shape = whole
            self._artists.update(counts, client, klass)
            if rows:
                self._bars.update(rows, title)
        told = sentence(counts, class_names, jensen_shannon, effective_classes, client, klass, note)
        beside = ""
        if rows:
            values = ", ".join(f"{s.label} {percent(s.mean)}" for s in rows if s.accuracies)
            beside = f" Beside it, {title[0].lower()}{title[1:]}: {values}."
        return Picture(
            self.figure,
            alt=alt_text(counts, setting, jensen_shannon, client, klass) + beside,
            sentence=told,
            table=table(counts, class_names),
        )


    def _build(self, shape: tuple[int, int, tuple[str, ...]], rows: Sequence[Series]) -> None:
        """The axes: the partition's two, and one for bars where there are rows for it."""
        self.figure = new_figure()
        if not rows:
            upper, lower = self.figure.subplots(2, 1, height_ratios=[1, 4], sharex=True)
            self._artists = Artists(upper, lower, *shape, inches=(5.9, 2.75))
            return
        grid = self.figure.add_gridspec(2, 2, width_ratios=[1.35, 1], height_ratios=[1, 4])
        upper = self.figure.add_subplot(grid[0, 0])
        lower = self.figure.add_subplot(grid[1, 0], sharex=upper)
        self._artists = Artists(upper, lower, *shape, inches=(3.1, 2.75))
        self._bars = Bars(self.figure.add_subplot(grid[:, 1]), rows, None)


class Artists:
    """The artists of one partition on two axes: sizes above, classes below. inches: size of the lower axes, about."""

    def __init__(
        self, upper, lower, clients: int, classes: int, names: Sequence[str], inches: tuple[float, float]
    ) -> None:
        self.upper, self.lower, self.shape = upper, lower, (clients, classes)
        colours = class_colours(classes)
        self.marks = [ax.axvspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0) for ax in (upper, lower)]
        self.row = lower.axhspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)
        self.bars = upper.bar(range(clients), np.ones(clients), width=0.7, color="#9aa4ae")
        dress(upper, y="samples", grid="y")
        upper.tick_params(labelbottom=False, bottom=False)
        upper.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        dress(lower, x="client", y="class")
        if classes <= LIMIT:
            y, x = np.divmod(np.arange(classes * clients), clients)
            self.dots = lower.scatter(x, y, s=1, c=[colours[c] for c in y], linewidths=0)
            lower.set_axisbelow(True)
            lower.grid(True, axis="y", color=FAINT, linewidth=1)
            lower.set_yticks(range(classes), shorten(names, 12))
        else:
            self.dots = lower.imshow(
                np.zeros((classes, clients)), cmap=many_is_dark(), aspect="auto", interpolation="nearest"
            )
            bar = lower.figure.colorbar(self.dots, ax=[upper, lower], pad=0.01, aspect=30)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=8.5, colors=QUIET, labelcolor=INK)
            bar.set_label("samples", fontsize=9, color=QUIET)
            lower.yaxis.set_major_locator(MaxNLocator(10, integer=True))
            lower.yaxis.set_major_formatter(
                FuncFormatter(lambda v, _: shorten([names[int(v)]], 12)[0] if 0 <= v < classes else "")
            )
        lower.set_ylim(classes - 0.4, -0.6)
        lower.set_xlim(-0.6, clients - 0.4)
        if clients <= 16:
            lower.set_xticks(range(clients))
        else:
            lower.xaxis.set_major_locator(MaxNLocator(13, integer=True, steps=[1, 2, 5, 10]))
        # The largest dot just fits its cell: diameter in points = 2 sqrt(area / pi).
        cell = min(inches[0] * 72 / (clients + 0.2), inches[1] * 72 / (classes + 0.2), 40)
        self.largest = np.pi * (0.47 * cell) ** 2

    def update(self, counts: np.ndarray, client: int | None = None, klass: int | None = None) -> None:
        clients, classes = self.shape
        self.row.set_visible(klass is not None and klass < classes)
        if klass is not None:
            self.row.set_y(klass - 0.5)
        most = max(int(counts.max()), 1)
        if classes <= LIMIT:
            held = counts.T.ravel()
            self.dots.set_sizes(np.where(held > 0, np.maximum(held / most * self.largest, 2.5), 0))
        else:
            self.dots.set_data(counts.T)
            self.dots.set_clim(0, most)
        sizes = counts.sum(1)
        for bar, size in zip(self.bars, sizes, strict=True):
            bar.set_height(size)
        self.upper.set_ylim(0, max(int(sizes.max()), 1) * 1.08)
        for mark in self.marks:
            mark.set_visible(client is not None and client < clients)
            if client is not None:
                mark.set_x(client - 0.5)


def alt_text(
    counts: np.ndarray, setting: str, jensen_shannon: float, client: int | None, klass: int | None = None
) -> str:
    clients, classes = counts.shape
    held = (counts > 0).sum(1)
    few, many = int(held.min()), int(held.max())
    holds = f"{few}" if few == many else f"{few} to {many}"
    marked = f" Client {client} is marked." if client is not None else ""
    marked += f" Class number {klass} is marked." if klass is not None else ""
    return (
        f"Who holds what ({setting}): {plural(clients, 'client')} across, {plural(classes, 'class')} down, dot area is "
        f"the number of training samples. Clients hold samples of {holds} classes and {counts.sum(1).min()} to "
        f"{counts.sum(1).max()} samples. Skew {jensen_shannon:.2f} of 1.{marked}"
    )


def sentence(
    counts: np.ndarray,
    names: Sequence[str],
    jensen_shannon: float,
    effective: float,
    client: int | None,
    klass: int | None,
    note: str,
) -> str:
    sizes = counts.sum(1)
    if klass is not None and klass < len(names):
        column = counts[:, klass]
        most = int(column.argmax())
        who = f"client {most} holds {column[most]} of its {column.sum()} samples"
        mine = f"; client {client} holds {column[client]}" if client is not None and client < len(counts) else ""
        return f"Class {names[klass]}: {who}{mine}; {plural(int((column == 0).sum()), 'client')} never saw it."
    if client is not None and client < len(counts):
        row = counts[client]
        order = [int(c) for c in np.argsort(-row, kind="stable") if row[c] > 0]
        words = [f"{row[c]} of class {names[c]}" for c in order[:4]]
        words += [f"{row[order[4:]].sum()} of {plural(len(order) - 4, 'more class')}"] if len(order) > 4 else []
        never = len(names) - len(order)
        lacking = f"; it has never seen the other {plural(never, 'class')}" if never else ""
        return f"Client {client} holds {sizes[client]} samples: {listed(words)}{lacking}."
    text = (
        f"A client effectively sees {effective:.1f} of {len(names)} classes; who holds a sample tells "
        f"{100 * jensen_shannon:.0f} % of its label (skew {jensen_shannon:.2f} between 0 and 1). "
        f"Clients have {sizes.min()} to {sizes.max()} samples."
    )
    return f"{text} {note}".strip()


def table(counts: np.ndarray, names: Sequence[str]) -> list[dict[str, int]]:
    return [
        {"client": k, "samples": int(row.sum()), **{f"class {n}": int(v) for n, v in zip(names, row, strict=True)}}
        for k, row in enumerate(counts)
    ]


def partition(counts: np.ndarray, class_names: Sequence[str], **words) -> Picture:
    """`Partition().show(...)`: one picture, for those who do not redraw it."""
    return Partition().show(counts, class_names, **words)
