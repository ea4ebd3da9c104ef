"""Tables of clients and classes as heat-maps that can be laid side by side: clients across, classes down, always.

`Heat` keeps its artists and redraws in place, for tables that grow round by round.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from .axes import class_ticks, colour_bar, no_spines
from .characters import client_axis
from .style import ACCENT, FAINT, INK, QUIET, SECOND, heading, many_is_dark
from .vector import mark

WRITTEN = 12  # more clients or classes than this, and no numbers are written into the cells


def colours(signed: bool) -> LinearSegmentedColormap:
    """Zero white, above it blue; `signed`: below it orange. One hue for "more", so that the eye can compare two
    tables. Cells without a value are grey.
    """
    made = LinearSegmentedColormap.from_list("table", [SECOND, "white", ACCENT] if signed else ["white", ACCENT])
    return made.with_extremes(bad=FAINT)


def heat_map(
    ax: Axes, values: np.ndarray, *, top: float = 1.0, text: Callable[[float], str] | None = None, size: float = 8.5,
    empty: bool = False,
) -> AxesImage:  # fmt: skip
    """A table `[rows, columns]` from 0 to `top`, dark for much; nan stays white. Returns the image, for a colour bar.

    text: how a value is written into its cell, where there is room for it;   empty: 0 is white
    """
    image = ax.imshow(values, cmap=many_is_dark(empty), vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    for i, j in np.argwhere(np.isfinite(values)) if text is not None else ():
        dark = "white" if values[i, j] > 0.5 * top else INK
        ax.text(j, i, text(values[i, j]), ha="center", va="center", fontsize=size, color=dark)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    no_spines(ax)
    return image


def mark_cells(ax: Axes, cells: Mapping[tuple[int, int], Mapping[str, Any]]) -> None:
    """Let cells of a heat map answer; {(row, column): what `vector.mark` takes, and `says`}."""
    at = [Rectangle((j - 0.5, i - 0.5), 1, 1) for i, j in cells]
    shapes = PatchCollection(at, facecolor=(1, 1, 1, 0), edgecolor="none", zorder=4)
    ax.add_collection(shapes, autolim=False)
    names = sorted({name for about in cells.values() for name in about})
    mark(shapes, **{name: [about.get(name) for about in cells.values()] for name in names})


class Heat:
    """The heat-map of a table `[M, C]`. text: form of the numbers in the cells;   signed: values below zero are told
    apart;   first: whether the classes are named (the left one of two)
    """

    def __init__(
        self, ax: Axes, clients: int, names: Sequence[str], *, text: str = "{:.0f}", signed: bool, first: bool = True
    ) -> None:
        self.ax, self.text, self.signed = ax, text, signed
        self.clients, self.classes = clients, len(names)
        empty = np.zeros((self.classes, clients))
        self.image = ax.imshow(empty, cmap=colours(signed), aspect="auto", interpolation="nearest")
        cells = np.ndindex(clients, self.classes) if max(clients, self.classes) <= WRITTEN else ()
        self.texts = {(k, c): ax.text(k, c, "", ha="center", va="center", fontsize=8) for k, c in cells}
        self.rings = [Rectangle((0, 0), 0.92, 0.88, fill=False, edgecolor=INK, lw=1.5) for _ in names]
        self.client = Rectangle((0, -0.5), 1, self.classes, fill=False, edgecolor=ACCENT, lw=2.2, clip_on=False)
        self.klass = Rectangle((-0.5, 0), clients, 1, fill=False, edgecolor=SECOND, lw=2.2, clip_on=False)
        for patch in (*self.rings, self.client, self.klass):
            ax.add_patch(patch)
        client_axis(ax, self.clients, "", few=12)
        class_ticks(ax, names if first else [""] * len(names), "y", length=9, few=26)
        ax.set_ylabel("class" if first else "", fontsize=10, color=QUIET)
        ax.set(xlim=(-0.5, self.clients - 0.5), ylim=(self.classes - 0.5, -0.5))
        ax.tick_params(length=0, labelsize=9.5, labelcolor=INK)
        if self.classes > 12:
            ax.tick_params(axis="y", labelsize=8)
        no_spines(ax)

    def show(
        self, values: np.ndarray, title: str, limit: float, *, ring: bool = True, client: int | None = None,
        klass: int | None = None, setting: str = "",
    ) -> None:  # fmt: skip
        """Bring it up to date. `values [M, C]` (nan: grey); `limit`: end of the colours;   ring: round the largest
        value of each class;   client, klass: framed;   setting: in words, by which known clients are named
        """
        client_axis(self.ax, self.clients, setting, few=12)
        values = np.asarray(values, dtype=float)
        self.image.set_data(np.ma.masked_invalid(values.T))
        self.image.set_clim(-limit if self.signed else 0, limit)
        heading(self.ax, title, 6)
        for (k, c), cell in self.texts.items():
            label = self.text.format(values[k, c]) if np.isfinite(values[k, c]) else ""
            cell.set_text(label if label.strip("+-0.") else "")
            cell.set_color("white" if abs(values[k, c]) > 0.7 * limit else INK)
        for c, patch in enumerate(self.rings):
            column = values[np.isfinite(values[:, c]), c]
            patch.set_visible(bool(ring and len(column) and np.ptp(column) > 1e-9))
            if patch.get_visible():
                patch.set_xy((int(np.nanargmax(values[:, c])) - 0.46, c - 0.44))
        for patch, at, across in ((self.client, client, True), (self.klass, klass, False)):
            patch.set_visible(at is not None and at < (self.clients if across else self.classes))
            if at is not None:
                patch.set_xy((at - 0.5, -0.5) if across else (-0.5, at - 0.5))

    def scale(self, label: str) -> None:
        """A colour bar at the right."""
        colour_bar(self.image, self.ax, label).locator = MaxNLocator(5)
