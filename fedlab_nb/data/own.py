"""What a person gives as their data, as plain settings: a name, and for a federation its own clients.

A dataset in memory gets a name made from its content (`registry.name_of`), so that settings stay text and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from fedlab_nb.data import registry
from fedlab_nb.data.arrays import is_arrays
from fedlab_nb.data.federation import Federation, with_clients
from fedlab_nb.errors import demand

DEALING = ("alpha", "clients", "partition", "classes_per_client", "size_sigma", "share", "minimum", "repair", "indices")


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with `dataset` as text, and without `indices`: own lists of indices, or a Federation's shards, make a
    dataset that names its clients. Of a list of datasets each becomes text. Raises UsageError.
    """
    values = dict(settings)
    source: Any = values.get("dataset", "digits")
    indices: Any = values.pop("indices", None)
    if isinstance(source, Federation):
        beside = " and ".join(name for name in DEALING if settings.get(name) is not None)
        demand(
            not beside,
            f"A federation already has its clients, so {beside} cannot be given with it; leave {beside} out, or "
            "give the dataset of the federation instead.",
        )
        values.setdefault("seed", source.seed)
        source, indices = source.dataset, source.shards
    if isinstance(source, list | tuple) and not is_arrays(source):
        demand(
            indices is None,
            f"indices already say who holds which sample, so {'all data sets but one'} cannot be set beside them; "
            f"leave {'all data sets but one'} out.",
        )
        return {**values, "dataset": [text(each) for each in source]}
    if indices is not None:
        demand(
            "dataset" in values or "preset" not in values,
            "indices with a preset belong to a data set that is not named; give dataset too.",
        )
        dealing = ("alpha", "clients", "classes_per_client", "size_sigma", "minimum", "repair")
        also = [name for name in dealing if values.get(name) is not None]
        also += [] if values.get("partition") in (None, "natural") else ["partition"]
        demand(
            not also,
            f"indices already say who holds which sample, so {' and '.join(also)} cannot be set beside them; "
            f"leave {' and '.join(also)} out.",
        )
        source = with_clients(registry.loaded(source), indices)
    return {**values, "dataset": text(source)} if "dataset" in values or indices is not None else values


def text(source: Any) -> str:
    """The name or path of a data set, however it is given; one in memory is added to the names."""
    if isinstance(source, str | PathLike):
        return fspath(source)
    return registry.name_of(registry.loaded(source))
