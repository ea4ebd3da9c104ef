"""Two axes side by side in fixed places: for pictures that follow a slider, where a layout is half of the cost."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import new_figure


def two_axes(
    widths: tuple[float, float] = (1, 1), *, left: float = 0.09, bottom: float = 0.14, between: float = 0.2,
    sharey: bool = False,
) -> tuple[Figure, Axes, Axes]:  # fmt: skip
    """A figure and its axes. left, bottom: margins, parts of the figure; between: the gap, parts of an axes' width."""
    figure = new_figure()
    figure.set_layout_engine(None)
    one, other = figure.subplots(1, 2, width_ratios=widths, sharey=sharey)
    figure.subplots_adjust(left=left, right=0.96, bottom=bottom, top=0.925, wspace=between)
    return figure, one, other
