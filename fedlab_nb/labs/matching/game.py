"""The matching game: two tiny networks whose units the player pairs by hand, and the barrier for
each pairing.

A network has one input x and four hidden units: f(x) = Σ_i v_i max(0, w_i x + b_i). Network B is
network A with its units in another order and a little noise on every number. The loss is the mean
squared difference from A's outputs: it is 0 for A and close to 0 for B. In between it depends on
which units are paired. There are only 24 orders, so the best one is found by trying all.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes

from ...panels import LabView, PanelState, make_widget
from ...plots import Picture, add_legend, build_table, describe_picture, drawing, dress
from ...plots.style import ACCENT, INK, QUIET, SECOND, is_frame_narrow
from ..array_types import (
    LossPerPoint,
    NetworkOutputs,
    TinyNetworks,
    UnitNumbers,
    UnitOutputs,
    ValuePerUnit,
)

BUnitOfEachAUnit = tuple[int, ...]  # [UNITS], counted from 0
UNITS = 4
NOISE = 0.06
LINE_POINTS = 41
INPUTS = np.linspace(-2, 2, 81)
# Puzzles with one clear solution, in which every unit of B has another place than its partner in A.
STREAMS = (4, 12, 20, 27, 47, 51)


# -------------------------------------------------------------------------------------- the puzzles
class MatchingPuzzle(NamedTuple):
    """Two networks `a` and `b`, each `[units, 3]`: a row (w, b, v) for each unit."""

    a: np.ndarray
    b: np.ndarray

    def compute_losses_on_line(self, b_unit_of_each_a_unit: Sequence[int]) -> LossPerPoint:
        """Compute the losses `[LINE_POINTS]` along the straight line from A to B.

        b_unit_of_each_a_unit: for each unit of A the unit of B that it is paired with, from 0
        """
        t = np.linspace(0, 1, LINE_POINTS)[:, None, None]
        between = (1 - t) * self.a + t * self.b[list(b_unit_of_each_a_unit)]
        errors = compute_tiny_network_outputs_on_grid(
            between
        ) - compute_tiny_network_outputs_on_grid(self.a[None])
        return (errors**2).mean(1)

    def compute_loss_barrier(self, b_unit_of_each_a_unit: Sequence[int]) -> float:
        """Compute how far the loss rises, at most, above the straight line between its ends."""
        loss = self.compute_losses_on_line(b_unit_of_each_a_unit)
        straight = np.linspace(loss[0], loss[-1], LINE_POINTS)
        return float(max(0.0, (loss - straight).max()))

    def find_order_with_lowest_barrier(self) -> BUnitOfEachAUnit:
        """Find the order with the lowest barrier, of all 24."""
        return min(itertools.permutations(range(UNITS)), key=self.compute_loss_barrier)


def make_matching_puzzle(puzzle_index: int) -> MatchingPuzzle:
    """Make the puzzle with this index, counted from 0; STREAMS has its random stream."""
    stream = np.random.default_rng([11, STREAMS[puzzle_index]])
    signs = np.array([1, -1, 1, -1])  # two units look to the right, two to the left
    w = signs * stream.uniform(0.6, 1.6, UNITS)
    b = stream.uniform(-0.6, 0.8, UNITS)
    v = stream.permutation([1.2, -1.0, 0.7, -1.5])
    network_a = np.stack([w, b, v], 1)
    order = stream.permutation(UNITS)
    while (order == np.arange(UNITS)).any():
        order = stream.permutation(UNITS)
    network_b = np.empty_like(network_a)
    network_b[order] = network_a + NOISE * stream.normal(size=network_a.shape)
    return MatchingPuzzle(network_a, network_b)


def compute_tiny_network_outputs_on_grid(networks: TinyNetworks) -> NetworkOutputs:
    """Compute the outputs `[T, X]` of networks `[T, units, 3]` for INPUTS."""
    w, b, v = np.moveaxis(networks[..., None], 2, 0)
    return compute_tiny_unit_outputs_on_grid(w, b, v).sum(1)


def compute_tiny_unit_outputs_on_grid(
    weights: ValuePerUnit, biases: ValuePerUnit, output_weights: ValuePerUnit
) -> UnitOutputs:
    """Compute output_weights · max(0, weights x + biases) at each x of INPUTS."""
    return output_weights * np.maximum(0, weights * INPUTS + biases)


def pair_units_by_swapping(
    b_unit_of_each_a_unit: Sequence[int], a_unit: int, b_unit: int
) -> BUnitOfEachAUnit:
    """Pair unit `b_unit` of B with unit `a_unit` of A, both counted from 0.

    Returns the new pairing; the unit of B that stood there takes the old place of `b_unit`.
    """
    swapped = list(b_unit_of_each_a_unit)
    swapped[swapped.index(b_unit)] = swapped[a_unit]
    swapped[a_unit] = b_unit
    return tuple(swapped)


# -------------------------------------------------------------------------------------- the picture
def draw_matching_game(
    puzzle: MatchingPuzzle, b_unit_of_each_a_unit: Sequence[int], puzzle_index: int
) -> Picture:
    """Draw a puzzle with each unit of A beside its unit of B, and the loss on the line."""
    with drawing(fixed=True) as (figure, _):
        if is_frame_narrow():
            axes = figure.subplot_mosaic("01;23;ll", height_ratios=[1, 1, 2])
        else:
            axes = figure.subplot_mosaic("01l;23l", width_ratios=[1, 1, 2])
        figure.subplots_adjust(left=0.1, right=0.97, bottom=0.14, top=0.82, wspace=0.3, hspace=0.55)
        for i, j in enumerate(b_unit_of_each_a_unit):
            ax = axes[str(i)]
            dress(ax, title=f"A {i + 1} with B {j + 1}")
            ax.plot(INPUTS, compute_tiny_unit_outputs_on_grid(*puzzle.a[i]), color=INK, lw=1.8)
            ax.plot(
                INPUTS,
                compute_tiny_unit_outputs_on_grid(*puzzle.b[j]),
                color=ACCENT,
                ls=(0, (3, 1.5)),
                lw=1.8,
            )
            ax.set(xlim=(-2, 2), ylim=(-6.5, 6.5))
            if i < 2:  # the axes below have the same x
                ax.tick_params(labelbottom=False)
        draw_loss_on_line(axes["l"], puzzle, b_unit_of_each_a_unit)
        line_break = "\n" if is_frame_narrow() else " "
        text = (
            f"What each unit adds to the answer,{line_break}against x: A plain, B blue and dashed"
        )
        figure.text(0.1, 0.985, text, fontsize=9.5, color=QUIET, va="top")
    rows = []
    for i, j in enumerate(b_unit_of_each_a_unit):
        a_numbers = format_weight_bias_and_output_weight(puzzle.a[i])
        b_numbers = format_weight_bias_and_output_weight(puzzle.b[j])
        rows.append((i + 1, a_numbers, j + 1, b_numbers))
    return describe_picture(
        figure,
        f"Puzzle {puzzle_index + 1}: units of networks A and B side by side, and the loss on the "
        "line from A to B",
        "",
        describe_barrier_of_order(puzzle, b_unit_of_each_a_unit),
        build_table("unit of A | its w, b, v | unit of B beside it | its w, b, v of B", rows),
    )


def draw_loss_on_line(
    ax: Axes, puzzle: MatchingPuzzle, b_unit_of_each_a_unit: Sequence[int]
) -> None:
    """Draw the loss on the line from A to B, in B's own order and in the player's."""
    own_loss = puzzle.compute_losses_on_line(range(UNITS))
    loss = puzzle.compute_losses_on_line(b_unit_of_each_a_unit)
    t = np.linspace(0, 1, LINE_POINTS)
    dress(ax, title="On the line from A to B", x="way: 0 is A, 1 is B", grid="y")
    ax.plot(t, own_loss, color=SECOND, ls=(0, (4, 2)), lw=1.6, label="loss in B's own order")
    ax.plot(t, loss, color=ACCENT, lw=2.4, label="loss in your order")
    legend_factor = 1.55 if is_frame_narrow() else 1.25
    ax.set(xlim=(0, 1), ylim=(0, legend_factor * max(own_loss.max(), loss.max())))
    add_legend(ax, loc="upper right")


def describe_barrier_of_order(puzzle: MatchingPuzzle, b_unit_of_each_a_unit: Sequence[int]) -> str:
    """Say how high the barrier of this order is, beside that of B's own order and of the best one."""
    pairs = [f"A {i + 1} with B {j + 1}" for i, j in enumerate(b_unit_of_each_a_unit)]
    barrier = puzzle.compute_loss_barrier(b_unit_of_each_a_unit)
    best = puzzle.compute_loss_barrier(puzzle.find_order_with_lowest_barrier())
    sentence = (
        f"With {', '.join(pairs)} the barrier is {barrier:.2f}; in B's own order it is "
        f"{puzzle.compute_loss_barrier(range(UNITS)):.2f}, in the best of all 24 orders {best:.2f}."
    )
    if barrier < best + 1e-9:
        sentence += " You have found it."
    return sentence


def format_weight_bias_and_output_weight(unit_numbers: UnitNumbers) -> str:
    """Format w, b, v of a unit: '1.20, -0.31, 0.70'."""
    return ", ".join(f"{value:.2f}" for value in unit_numbers)


# ----------------------------------------------------------------------------------------- the view
class MatchingGameView(LabView):
    """Four units of B to be paired by hand with four of A."""

    name, title, ready = "game", "By hand", "always"

    def __init__(self) -> None:
        self.puzzle = make_widget(
            widgets.Dropdown,
            label="Puzzle",
            help="Which two networks",
            width=150,
            options=[(f"puzzle {i + 1}", i) for i in range(len(STREAMS))],
        )
        self.place1 = make_menu_of_paired_unit(0)
        self.place2 = make_menu_of_paired_unit(1)
        self.place3 = make_menu_of_paired_unit(2)
        self.place4 = make_menu_of_paired_unit(3)
        self.places = [self.place1, self.place2, self.place3, self.place4]
        self.controls = [self.puzzle, *self.places]
        self.number = 0  # the index of the puzzle that is shown
        self.order = tuple(range(UNITS))

    def adapt(self, state: PanelState) -> None:
        """Swap the unit that was chosen in a menu with the one that had its place. A new puzzle
        starts in B's own order.
        """
        if self.puzzle.value != self.number:
            self.number = self.puzzle.value
            self.order = tuple(range(UNITS))
        else:
            for place, menu in enumerate(self.places):
                if menu.value != self.order[place]:
                    self.order = pair_units_by_swapping(self.order, place, menu.value)
                    break
        for menu, unit in zip(self.places, self.order, strict=True):
            menu.value = unit

    def draw(self, state: PanelState) -> Picture:
        return draw_matching_game(make_matching_puzzle(self.number), self.order, self.number)


def make_menu_of_paired_unit(a_unit: int) -> widgets.Dropdown:
    """Make the menu for the unit of B that stands beside unit `a_unit` of A, from 0."""
    return make_widget(
        widgets.Dropdown,
        label=f"A {a_unit + 1} with",
        help=f"The unit of network B beside unit {a_unit + 1} of network A. The two units of B "
        "change places",
        width=130,
        options=[(f"B {unit + 1}", unit) for unit in range(UNITS)],
        value=a_unit,
    )
