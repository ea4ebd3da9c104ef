"""How many CPU threads a run gets: one for small inputs, the machine's for large ones.

Steps on digits-sized images last microseconds; spreading them over cores costs more than it saves, and on a busy
machine a hundred times more. A fixed rule also keeps sums in one order, so a run gives the same digits whatever else
goes on.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import torch

SMALL_INPUT = 1 * 16 * 16

_given = threading.local()


@contextmanager
def suitable_threads(device: str, input_shape: tuple[int, ...]) -> Iterator[None]:
    """Within: one torch thread on a CPU if a sample has at most SMALL_INPUT numbers; afterwards as before."""
    before = torch.get_num_threads()
    small = device == "cpu" and prod(input_shape) <= SMALL_INPUT
    if small:
        _given.cores = cores()
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if small:
            torch.set_num_threads(before)
            del _given.cores


def cores() -> int:
    """How many cores a run may use: torch's threads, as they were before `suitable_threads` took them away."""
    return getattr(_given, "cores", 0) or torch.get_num_threads()
