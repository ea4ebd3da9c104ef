"""Clients that the data themselves name: an id for each training sample, or a person's own lists of sample indices.

Both become one array: the client 0..M-1 of each sample, -1 for a sample that nobody holds.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fedlab_nb.errors import UsageError, demand


def factorised(ids: np.ndarray, samples: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """int64 [N], the client 0..M-1 of each sample, and the M names, from ids [N] (whole numbers or texts) in their
    sorted order. Raises UsageError.

    >>> factorised(np.array(["north", "south", "north"]), 3)
    (array([0, 1, 0]), ('north', 'south'))
    """
    demand(
        ids.shape == (samples,),
        f"client_train has shape {ids.shape}, but it must be [{samples}], one client id for each training sample.",
    )
    if ids.dtype.kind == "O" and all(isinstance(name, str) for name in ids):
        ids = ids.astype(str)
    demand(ids.dtype.kind in "biuUS", f"client_train holds {ids.dtype}, but client ids must be whole numbers or texts.")
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
        raise UsageError(
            f"indices is a {type(indices).__name__}, but it must be a list that has one list of sample indices "
            "for each client."
        )
    owner = np.full(samples, -1, dtype=np.int64)
    lists: Sequence[Any] = list(indices)
    demand(lists, "indices is empty; give one list of sample indices for each client.")
    for k, own in enumerate(lists):
        rows = np.asarray(own.detach().cpu() if hasattr(own, "detach") else own)
        demand(
            rows.ndim == 1 and len(rows),
            f"The index list of client {k} must be one row [n] of at least one sample index.",
        )
        demand(rows.dtype.kind in "iu", f"The indices of client {k} are {rows.dtype}, but they must be whole numbers.")
        wrong = rows[(rows < 0) | (rows >= samples)]
        if len(wrong):
            raise UsageError(f"Client {k} has the index {wrong[0]}, but the training samples are 0..{samples - 1}.")
        values, counts = np.unique(rows, return_counts=True)
        twice = np.concatenate([values[counts > 1], values[owner[values] >= 0]])
        if len(twice):
            raise UsageError(
                f"Client {k} has the index {twice[0]} that is already given; each sample can belong to one client."
            )
        owner[rows] = k
    return owner
