"""Sums whose last bits are the same on every machine.

What a library's sum gives depends on the order of its additions, and that on the processor and on
the version. Here the order is ours: each step adds two arrays element by element, and IEEE 754 says
what one addition gives, to the last bit.
"""

from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """Mean and standard deviation of each column or channel."""

    mean: np.ndarray
    deviation: np.ndarray


def sum_in_fixed_order(rows: np.ndarray) -> np.ndarray:
    """The sum of `rows` [N, ...] over its first axis, float64 [...]: the first half of the rows plus
    the second half, and so on until one row is left. An odd row waits for the next step.

    The error grows with log N, as that of NumPy's own sum.

    >>> sum_in_fixed_order(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([ 9., 12.])
    """
    rows = np.asarray(rows, dtype=np.float64)
    if len(rows) == 0:
        return np.zeros(rows.shape[1:])
    while len(rows) > 1:
        half = len(rows) // 2
        pairs = rows[:half] + rows[half : 2 * half]
        rows = np.concatenate([pairs, rows[2 * half :]]) if len(rows) % 2 else pairs
    return rows[0]
