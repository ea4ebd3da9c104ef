"""Lesson 11, exercise 4: match the hidden units of two networks. The right function, wrong ones, hidden inputs."""

import itertools
from collections.abc import Sequence

import numpy as np

from ..kit.build import Build, by_name, numbers

SIZES = ((3, 4), (4, 3), (5, 2), (5, 6), (4, 1))  # units and incoming numbers of the hidden inputs


def right(a: np.ndarray, b: np.ndarray) -> list[int]:
    from scipy.optimize import linear_sum_assignment

    distances = [[np.linalg.norm(one - other) for other in b] for one in a]
    ours, theirs = linear_sum_assignment(distances)
    return theirs.tolist()


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of networks for which every wrong function below goes wrong somewhere, and the best order is clear."""
    stream, pairs = np.random.default_rng(7), []
    for units, width in SIZES * 4:
        a = stream.normal(size=(units, width))
        b = a[stream.permutation(units)] + 0.7 * stream.normal(size=(units, width))
        costs = sorted(total(a, b, order) for order in itertools.permutations(range(units)))
        if costs[1] - costs[0] > 0.05:
            pairs.append((a, b))
    return pairs


def total(a: np.ndarray, b: np.ndarray, order: Sequence[int]) -> float:
    """Σ_i ‖a_i - b_order[i]‖."""
    return float(np.linalg.norm(a - b[list(order)], axis=1).sum())


def accepted(returned: object, wanted: object, arguments: tuple) -> bool:
    """Whether what is `returned` is an order whose sum of distances is the least."""
    order = numbers(returned)
    if order is None or sorted(order.ravel().tolist()) != list(range(len(arguments[0]))):
        return False
    return total(*arguments, order.astype(int).ravel()) <= total(*arguments, right(*arguments)) + 1e-9


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a[:, None] - b[None], axis=2)


def nearest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Each unit takes its nearest one, whoever else has it."""
    return _distances(a, b).argmin(1)


def first_come(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Unit after unit takes the nearest one that is still free."""
    free, order = list(range(len(b))), []
    for row in _distances(a, b):
        order.append(min(free, key=lambda j, row=row: row[j]))
        free.remove(order[-1])
    return order


def inverse(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The right order from the other side: where each unit of b goes."""
    return np.argsort(right(a, b))


def farthest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The largest sum."""
    orders = itertools.permutations(range(len(a)))
    return np.array(max(orders, key=lambda order: total(a, b, order)))


def as_they_stand(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """0, 1, 2, …"""
    return np.arange(len(a))


def columns(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Columns matched in place of rows."""
    return right(a.T, b.T)


def from_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The right order, counted from 1."""
    return np.array(right(a, b)) + 1


WRONG = (
    as_they_stand, nearest, inverse, farthest, first_come, columns, from_one,
)  # fmt: skip
MATCH = Build("match_units", right, hidden_inputs, by_name(WRONG), accepted)
