"""The matching game: two tiny networks whose units the player pairs by hand, and the barrier for each pairing.

A network of one number x: f(x) = Σ_i v_i max(0, w_i x + b_i), four hidden units. Network B is network A with its units
in another order and a little noise on every number. The loss is the mean squared difference from A's answers, so A has
0 and B next to nothing; in between it depends on who is paired with whom. There are 24 orders, so the best is known.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNITS, NOISE, POINTS = 4, 0.06, 41
INPUTS = np.linspace(-2, 2, 81)
STREAMS = (4, 12, 20, 27, 47, 51)  # puzzles with one clear solution, in which every unit of B has another place


@dataclass(frozen=True, eq=False)
class Puzzle:
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
    a = np.stack([signs * stream.uniform(0.6, 1.6, UNITS), stream.uniform(-0.6, 0.8, UNITS), signs], 1)
    a[:, 2] = stream.permutation([1.2, -1.0, 0.7, -1.5])
    hidden = stream.permutation(UNITS)
    while (hidden == np.arange(UNITS)).any():
        hidden = stream.permutation(UNITS)
    b = np.empty_like(a)
    b[hidden] = a + NOISE * stream.normal(size=a.shape)
    return Puzzle(a, b)


def answers(networks: np.ndarray) -> np.ndarray:
    """`[T, X]`: what networks `[T, units, 3]` answer to INPUTS."""
    w, b, v = np.moveaxis(networks[..., None], 2, 0)
    return (v * np.maximum(0, w * INPUTS + b)).sum(1)


def swapped(order: Sequence[int], place: int, unit: int) -> tuple[int, ...]:
    """`order` with B's `unit` at `place`; what stood there goes where the unit came from."""
    new = list(order)
    new[new.index(unit)], new[place] = new[place], unit
    return tuple(new)
