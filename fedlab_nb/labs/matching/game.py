"""The matching game: two tiny networks whose units the player pairs by hand, and the barrier for each pairing.

A network of one number x: f(x) = Σ_i v_i max(0, w_i x + b_i), four hidden units. Network B is network A with its units
in another order and a little noise on every number. The loss is the mean squared difference from A's answers, so A has
0 and B next to nothing; in between it depends on who is paired with whom. There are 24 orders, so the best is known.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np

from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, legend, tabled, told
from ...plots.style import ACCENT, INK, QUIET, SECOND, narrow

UNITS, NOISE, POINTS = 4, 0.06, 41
INPUTS = np.linspace(-2, 2, 81)
STREAMS = (
    4,
    12,
    20,
    27,
    47,
    51,
)  # puzzles with one clear solution, in which every unit of B has another place


# ------------------------------------------------------------------------------------------------ the puzzles
class Puzzle(NamedTuple):
    """Networks `a`, `b` `[units, 3]`: a row (w, b, v) for each unit."""

    a: np.ndarray
    b: np.ndarray

    def loss(self, order: Sequence[int]) -> np.ndarray:
        """`[POINTS]`: along the straight line from A to B, B's units in `order` (place i: B's unit order[i])."""
        t = np.linspace(0, 1, POINTS)[:, None, None]
        between = (1 - t) * self.a + t * self.b[list(order)]
        return ((answers(between) - answers(self.a[None])) ** 2).mean(1)

    def barrier(self, order: Sequence[int]) -> float:
        """How far the loss rises, at most, above the straight line between its ends."""
        loss = self.loss(order)
        return float(max(0.0, (loss - np.linspace(loss[0], loss[-1], POINTS)).max()))

    def best(self) -> tuple[int, ...]:
        """Of all 24 orders the one with the lowest barrier."""
        return min(itertools.permutations(range(UNITS)), key=self.barrier)


def puzzle(number: int) -> Puzzle:
    """Puzzle `number`, counted from 0: one of STREAMS."""
    stream = np.random.default_rng([11, STREAMS[number]])
    signs = np.array([1, -1, 1, -1])  # two units look to the right, two to the left
    a = np.stack(
        [signs * stream.uniform(0.6, 1.6, UNITS), stream.uniform(-0.6, 0.8, UNITS), signs], 1
    )
    a[:, 2] = stream.permutation([1.2, -1.0, 0.7, -1.5])
    hidden = stream.permutation(UNITS)
    while (hidden == np.arange(UNITS)).any():
        hidden = stream.permutation(UNITS)
    b = np.empty_like(a)
    b[hidden] = a + NOISE * stream.normal(size=a.shape)
    return Puzzle(a, b)


def answers(networks: np.ndarray) -> np.ndarray:
    """`[T, X]`: what networks `[T, units, 3]` answer to INPUTS."""
    return units(*np.moveaxis(networks[..., None], 2, 0)).sum(1)


def units(w: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v · max(0, w x + b) at INPUTS."""
    return v * np.maximum(0, w * INPUTS + b)


def swapped(order: Sequence[int], place: int, unit: int) -> tuple[int, ...]:
    """`order` with B's `unit` at `place`; what stood there goes where the unit came from."""
    new = list(order)
    new[new.index(unit)], new[place] = new[place], unit
    return tuple(new)


# ------------------------------------------------------------------------------------------------ the picture
def game(puzzle: Puzzle, order: Sequence[int], number: int) -> Picture:
    """Puzzle `number` with B's unit order[i] beside A's unit i."""
    loss, start = puzzle.loss(order), puzzle.loss(range(UNITS))
    present, own, best = (puzzle.barrier(o) for o in (order, range(UNITS), puzzle.best()))
    with drawing(fixed=True) as (figure, _):
        grid = {"height_ratios": [1, 1, 2]} if narrow() else {"width_ratios": [1, 1, 2]}
        parts = figure.subplot_mosaic("01;23;ll" if narrow() else "01l;23l", **grid)
        figure.subplots_adjust(left=0.1, right=0.97, bottom=0.14, top=0.84, wspace=0.3, hspace=0.45)
        for i, j in enumerate(order):
            ax = dress(parts[str(i)], title=f"A {i + 1} with B {j + 1}")
            ax.plot(INPUTS, units(*puzzle.a[i]), color=INK, lw=1.8)
            ax.plot(INPUTS, units(*puzzle.b[j]), color=ACCENT, ls=(0, (3, 1.5)), lw=1.8)
            ax.set(xlim=(-2, 2), ylim=(-6.5, 6.5))
        ax = dress(parts["l"], title="On the line from A to B", x="way: 0 is A, 1 is B", grid="y")
        along = np.linspace(0, 1, len(loss))
        ax.plot(along, start, color=SECOND, ls=(0, (4, 2)), lw=1.6, label="loss in B's own order")
        ax.plot(along, loss, color=ACCENT, lw=2.4, label="loss in your order")
        ax.set(xlim=(0, 1), ylim=(0, 1.25 * max(start.max(), loss.max())))
        legend(ax, loc="upper right")
        words = "What each unit adds to the answer,\nagainst x: A plain, B blue and dashed"
        figure.text(0.1, 0.91, words, fontsize=9.5, color=QUIET)
    pairs = ", ".join(f"A {i + 1} with B {j + 1}" for i, j in enumerate(order))
    sentence = f"With {pairs} the barrier is {present:.2f}; in B's own order it is {own:.2f}, in the best of all 24 "
    sentence += f"orders {best:.2f}." + (" You have found it." if present < best + 1e-9 else "")
    columns = "unit of A | its w, b, v | unit of B beside it | its w, b, v of B"
    rows = [(i + 1, numbers(puzzle.a[i]), j + 1, numbers(puzzle.b[j])) for i, j in enumerate(order)]
    title = f"Puzzle {number + 1}: units of networks A and B side by side, and the loss on the line from A to B"
    return told(figure, title, "", sentence, tabled(columns, rows))


def numbers(row: np.ndarray) -> str:
    """'1.20, -0.31, 0.70'."""
    return ", ".join(f"{value:.2f}" for value in row)


# ------------------------------------------------------------------------------------------------ the view
class Game(LabView):
    """Four units of B to be paired by hand with four of A."""

    name, title, ready = "game", "By hand", "always"

    def __init__(self) -> None:
        options = [(f"puzzle {i + 1}", i) for i in range(len(STREAMS))]
        self.puzzle = made(
            widgets.Dropdown, label="Puzzle", help="Which two networks", width=150, options=options
        )
        help = "The unit of network B beside unit {} of network A. The two units of B change places"
        menu = {"width": 130, "options": [(f"B {j + 1}", j) for j in range(UNITS)]}
        self.place1, self.place2, self.place3, self.place4 = self.places = [
            made(
                widgets.Dropdown, label=f"A {i + 1} with", help=help.format(i + 1), value=i, **menu
            )
            for i in range(UNITS)
        ]
        self.controls = [self.puzzle, *self.places]
        self.order, self.shown = tuple(range(UNITS)), 0

    def adapt(self, state: PanelState) -> None:
        """A unit that is put somewhere changes places with the one that stood there; a new puzzle starts anew."""
        if self.puzzle.value != self.shown:
            self.order, self.shown = tuple(range(UNITS)), self.puzzle.value
        else:
            moved = [
                place for place, menu in enumerate(self.places) if menu.value != self.order[place]
            ]
            for place in moved[:1]:
                self.order = swapped(self.order, place, self.places[place].value)
        for menu, unit in zip(self.places, self.order, strict=True):
            menu.value = unit

    def draw(self, state: PanelState) -> Picture:
        return game(puzzle(self.shown), self.order, self.shown)
