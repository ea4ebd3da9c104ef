"""Clients that the data themselves name: an id for each training sample, or a person's own lists of sample indices.

Both become one array: the client 0..M-1 of each sample, -1 for a sample that nobody holds.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fedlab_nb.errors import UsageError, demand, sentence


def factorised(ids: np.ndarray, samples: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """int64 [N], the client 0..M-1 of each sample, and the M names, from ids [N] (whole numbers or texts) in their
    sorted order. Raises UsageError.

    >>> factorised(np.array(["north", "south", "north"]), 3)
    (array([0, 1, 0]), ('north', 'south'))
    """
    demand(ids.shape == (samples,), "own.ids_shape", shape=ids.shape, samples=samples)
    if ids.dtype.kind == "O" and all(isinstance(name, str) for name in ids):
        ids = ids.astype(str)
    demand(ids.dtype.kind in "biuUS", "own.ids_kind", dtype=ids.dtype)
    names, client = np.unique(ids, return_inverse=True)
    texts = (name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names.tolist())
    return client.astype(np.int64), tuple(texts)


def owners(indices: Any, samples: int) -> np.ndarray:
    """int64 [N], the client of each of N samples (-1: nobody), from M lists of indices. Each list must hold one index
    or more, all of them in 0..N-1, and no index may occur twice. Raises UsageError.

    >>> owners([[0, 3], [1]], 4)
    array([ 0,  1, -1,  0])
    """
    if isinstance(indices, str) or not isinstance(indices, Iterable):
        raise UsageError(sentence("own.lists", what=type(indices).__name__))
    owner = np.full(samples, -1, dtype=np.int64)
    lists: Sequence[Any] = list(indices)
    demand(lists, "own.no_lists")
    for k, own in enumerate(lists):
        rows = np.asarray(own.detach().cpu() if hasattr(own, "detach") else own)
        demand(rows.ndim == 1 and len(rows), "own.empty", client=k)
        demand(rows.dtype.kind in "iu", "own.kind", client=k, dtype=rows.dtype)
        wrong = rows[(rows < 0) | (rows >= samples)]
        demand(not len(wrong), "own.range", client=k, index=wrong, last=samples - 1)
        values, counts = np.unique(rows, return_counts=True)
        twice = np.concatenate([values[counts > 1], values[owner[values] >= 0]])
        demand(not len(twice), "own.twice", client=k, index=twice)
        owner[rows] = k
    return owner
