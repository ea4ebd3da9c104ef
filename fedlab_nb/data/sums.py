"""Add numbers so that the sum is the same on every machine, to the last bit.

The result of a library's sum depends on the order of its additions, which depends on the processor
and on the library's version. Here the order is fixed: each step adds two arrays element by element,
and IEEE 754 defines the result of a single addition to the last bit.
"""

from typing import NamedTuple

import numpy as np


class MeanAndDeviation(NamedTuple):
    """Mean and standard deviation of each column or channel."""

    mean: np.ndarray
    deviation: np.ndarray


def sum_rows_in_fixed_order(rows_to_add: np.ndarray) -> np.ndarray:
    """Sum `rows_to_add` [N, ...] over the first axis, float64 [...].

    The second half of the rows is added to the first half, again and again, until one row is left.
    If the number of rows is odd, the last one is carried over to the next step. The error grows with
    log N, like that of NumPy's own sum.

    >>> sum_rows_in_fixed_order(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([ 9., 12.])
    """
    rows_to_add = np.asarray(rows_to_add, dtype=np.float64)
    if len(rows_to_add) == 0:
        return np.zeros(rows_to_add.shape[1:])
    while len(rows_to_add) > 1:
        half = len(rows_to_add) // 2
        sums = rows_to_add[:half] + rows_to_add[half : 2 * half]
        odd_row = rows_to_add[2 * half :]  # one row or none
        rows_to_add = sums
        if len(odd_row):
            rows_to_add = np.concatenate([sums, odd_row])
    return rows_to_add[0]
