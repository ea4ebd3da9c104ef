"""A person's own data from memory: arrays become a Dataset, and a Dataset gets a digest of its content."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data.dataset import Dataset
from fedlab_nb.data.npz import OPTIONAL, REQUIRED, checked
from fedlab_nb.errors import UsageError, choose, demand

if TYPE_CHECKING:
    import torch

TENSORS = ("x_train", "y_train", "x_test", "y_test", "x_public", "y_public", "client_train")
_digests: weakref.WeakKeyDictionary[Dataset, tuple[tuple, str]] = weakref.WeakKeyDictionary()


def is_arrays(source: Any) -> bool:
    """Whether this is a mapping, or a tuple (or list) of arrays, not of names."""
    if isinstance(source, list | tuple):
        return len(source) >= len(REQUIRED) and all(hasattr(part, "__len__") for part in source[:4]) and not any(
            isinstance(part, str | bytes | Dataset) for part in source
        )  # fmt: skip
    return isinstance(source, Mapping)


def from_arrays(source: Mapping[str, Any] | Sequence[Any], name: str = "own") -> Dataset:
    """Dataset of x_train, y_train, x_test, y_test, and where there are any x_public, y_public, client_train (one client
    id a training sample): a mapping, or a tuple in this order. numpy arrays, torch tensors or lists; scaled and checked
    as those of an `.npz` file; the Dataset has copies of its own. Raises UsageError.

    >>> x, y = np.arange(24.0).reshape(6, 4), np.arange(6) % 2
    >>> from_arrays({"x_train": x, "y_train": y, "x_test": x, "y_test": y, "client_train": list("aabbbc")}).client_names
    ('a', 'b', 'c')
    """
    if not isinstance(source, Mapping):
        source = dict(zip((*REQUIRED, *OPTIONAL), source, strict=False))
    given = {choose("array", key, (*REQUIRED, *OPTIONAL)): value for key, value in source.items() if value is not None}
    missing, wanted = [key for key in REQUIRED if key not in given], ", ".join(REQUIRED)
    demand(
        not missing,
        f"The arrays lack {', '.join(missing)}; give {wanted}, and if there are any, {', '.join(OPTIONAL)}.",
    )
    made = checked({key: array(key, value) for key, value in given.items()}).dataset(name, "")
    return replace(made, digest=content_digest(made))


def array(key: str, value: Any) -> np.ndarray:
    """A copy of an array, tensor or list."""
    try:
        value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
        return np.array(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; a type that numpy does not know
        why = " ".join(str(error).split())[:100]
        raise UsageError(
            f"The array {key} cannot be used: {why}; give numpy arrays, torch tensors or lists of numbers."
        ) from None


def content_digest(dataset: Dataset) -> str:
    """A digest of the tensors and of the names of classes and clients; remembered until a tensor is changed."""
    tensors: list[torch.Tensor | None] = [getattr(dataset, name) for name in TENSORS]
    versions = tuple(None if tensor is None else tensor._version for tensor in tensors)
    known = _digests.get(dataset)
    if known is None or known[0] != versions:
        h = hashlib.sha256(repr((dataset.class_names, dataset.client_names)).encode())
        for name, tensor in zip(TENSORS, tensors, strict=True):
            h.update(f"{name} {None if tensor is None else (tensor.dtype, tuple(tensor.shape))}".encode())
            if tensor is not None:
                h.update(np.ascontiguousarray(tensor.numpy()).data)
        known = _digests[dataset] = versions, h.hexdigest()[:32]
    return known[1]
