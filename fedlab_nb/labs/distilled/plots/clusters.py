"""k-FED on a grid of Gaussians: two kinds of clients side by side, what they send and what the server makes of it."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import two_axes
from ....plots.style import ACCENT, QUIET, SECOND, Picture, dress, heading
from ....plots.words import percent, plural, tabled
from ..clusters import Grid

POINTS = 1000  # drawn of each half


def two_grids(grids: Mapping[str, Grid], spacing: float) -> Picture:
    """Points (grey), centres sent (crosses) and the server's 16 centres (rings), for each of two kinds of clients."""
    with two_axes(between=0.12, left=0.05) as (figure, *axes):
        for ax, (name, of) in zip(axes, grids.items(), strict=True):
            one(ax, of)
            heading(ax, f"{name}: {percent(of.accuracy)}")
    words = "; ".join(f"{name} {percent(of.accuracy)}" for name, of in grids.items())
    clients = plural(len(next(iter(grids.values())).x), "client")
    return Picture(
        figure,
        alt=f"Two halves with 16 Gaussians {spacing:g} apart at {clients}: points, the centres that clients send, and "
        f"the 16 centres of the server. Share of the points that are put into the right cluster: {words}.",
        sentence=f"Share of the points that k-FED puts into the right cluster: {words}.",
        table=tabled(
            "clients | centres sent | points in the right cluster",
            ((name, sum(map(len, of.sent)), percent(of.accuracy)) for name, of in grids.items()),
        ),
    )


def one(ax: Axes, of: Grid) -> None:
    x, sent = np.concatenate(of.x), np.concatenate(of.sent)
    x = x[:: max(1, len(x) // POINTS)]
    dress(ax)
    ax.plot(*x.T, ".", color=QUIET, alpha=0.35, ms=3)
    ax.plot(*sent.T, "x", color=SECOND, ms=6, mew=1.4)
    ax.plot(*of.centres.T, "o", mfc="none", mec=ACCENT, ms=11, mew=1.8)
    ax.set(xticks=[], yticks=[], aspect="equal")
