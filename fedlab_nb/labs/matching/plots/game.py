"""The matching game: the units of two tiny networks side by side, and the loss on the line between them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import few_ticks
from ....plots.style import ACCENT, INK, QUIET, SECOND, Picture, drawing, dress, heading, legend
from ....plots.words import tabled
from ..game import INPUTS, UNITS, Puzzle


def game(puzzle: Puzzle, order: Sequence[int], number: int) -> Picture:
    """Puzzle `number` with B's unit order[i] beside A's unit i."""
    loss, start = puzzle.loss(order), puzzle.loss(range(UNITS))
    here, own, best = (puzzle.barrier(o) for o in (order, range(UNITS), puzzle.best()))
    with drawing(fixed=True) as (figure, _):
        for i, j in enumerate(order):
            ax = figure.add_axes((0.07 + 0.22 * (i % 2), 0.56 - 0.44 * (i // 2), 0.18, 0.3))
            unit(ax, puzzle.a[i], puzzle.b[j], f"A {i + 1} with B {j + 1}")
        ax = figure.add_axes((0.61, 0.14, 0.37, 0.72))
        dress(ax, title="On the line from A to B", x="way: 0 is A, 1 is B", y="loss", grid="y")
        along = np.linspace(0, 1, len(loss))
        ax.plot(along, start, color=SECOND, ls=(0, (4, 2)), lw=1.6, label="B's own order")
        ax.plot(along, loss, color=ACCENT, lw=2.4, label="your order")
        ax.set(xlim=(0, 1), ylim=(0, 1.18 * max(start.max(), loss.max())))
        few_ticks(ax, "x", 3, form="{:g}".format)
        legend(ax, loc="upper right")
        figure.text(
            0.07,
            0.95,
            "What each unit adds to the answer, against x: A black, B blue and dashed",
            fontsize=9.5,
            color=QUIET,
        )
    done = here < best + 1e-9
    words = ", ".join(f"A {i + 1} with B {j + 1}" for i, j in enumerate(order))
    return Picture(
        figure,
        alt=f"Puzzle {number + 1}: four small plots of a unit of network A and the unit of network B beside it "
        f"({words}), and the loss along the line from A to B: barrier {here:.2f} in this order, {own:.2f} in B's own.",
        sentence=f"With {words} the barrier is {here:.2f}; in B's own order it is {own:.2f}, in the best of all 24 "
        f"orders {best:.2f}." + (" You have found it." if done else ""),
        table=tabled(
            "unit of A | its w, b, v | unit of B beside it | its w, b, v",
            ((i + 1, numbers(puzzle.a[i]), j + 1, numbers(puzzle.b[j])) for i, j in enumerate(order)),
        ),
    )


def unit(ax: Axes, ours: np.ndarray, theirs: np.ndarray, title: str) -> None:
    """v · max(0, w x + b) of both units."""
    dress(ax)
    heading(ax, title, pad=3, size=9.5)
    for (w, b, v), colour, dashes in ((ours, INK, "-"), (theirs, ACCENT, (0, (3, 1.5)))):
        ax.plot(INPUTS, v * np.maximum(0, w * INPUTS + b), color=colour, ls=dashes, lw=1.8)
    ax.set(xlim=(-2, 2), ylim=(-6.5, 6.5))
    ax.tick_params(labelsize=8)


def numbers(row: np.ndarray) -> str:
    """'1.20, -0.31, 0.70'."""
    return ", ".join(f"{value:.2f}" for value in row)
