"""A Federation: one dataset and who holds which of its training samples. Immutable, and without a copy of any image.

How samples are shared out is `partition.py`'s matter, how skewed that is `skew.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data import registry
from fedlab_nb.data.dataset import Dataset, digest_of
from fedlab_nb.data.partition import cut
from fedlab_nb.data.skew import Skew, skew_of
from fedlab_nb.data.tint import tint_background
from fedlab_nb.errors import UsageError, number, whole
from fedlab_nb.rng import numpy_rng

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, repr=False)
class Federation:
    """M clients' private shards of one training set.

    shards: M sorted int64 tensors, a disjoint cover of 0..N-1, each of at least `minimum` samples
    alpha:  Dirichlet concentration; smaller is more skewed
    moved:  samples moved after the draw to keep the promised minimum;   draws: 1, or more with repair="redraw"
    spurious: clients whose images carry the background tint of strength `tint` (see `tint.py`)
    note:   what a reader should know about this partition; "" where there is nothing
    """

    dataset: Dataset
    shards: tuple[torch.Tensor, ...]
    partition: str
    alpha: float
    seed: int
    minimum: int
    moved: int
    draws: int
    note: str = ""
    classes_per_client: int = 2
    spurious: tuple[int, ...] = ()
    tint: float = 0.0

    @property
    def clients(self) -> int:
        return len(self.shards)

    @property
    def classes(self) -> int:
        return self.dataset.classes

    @cached_property
    def sizes(self) -> torch.Tensor:
        """Samples per client, int64 [M]."""
        import torch

        return torch.tensor([len(shard) for shard in self.shards])

    @cached_property
    def label_counts(self) -> torch.Tensor:
        """Samples per client and class, int64 [M, C]."""
        import torch

        client = torch.repeat_interleave(torch.arange(self.clients), self.sizes)
        label = self.dataset.y_train[torch.cat(self.shards)]
        flat = torch.bincount(client * self.classes + label, minlength=self.clients * self.classes)
        return flat.view(self.clients, self.classes)

    @cached_property
    def skew(self) -> Skew:
        return skew_of(self.label_counts.numpy())

    def split(self, fraction: float) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        """For each client (training indices, held-out indices), both sorted, together its shard.

        Client k holds out round(fraction n_k) samples, at least 1 and at most n_k - 1, drawn from its own stream;
        none if it has fewer than 2 or `fraction` is 0.
        """
        import torch

        fraction = number("fraction", fraction, 0, 1)
        parts = []
        for k, shard in enumerate(self.shards):
            n = len(shard)
            held = 0 if n < 2 or fraction == 0 else min(n - 1, max(1, round(fraction * n)))
            order = torch.from_numpy(numpy_rng(self.seed, "holdout", k).permutation(n))
            parts.append((shard[order[held:].sort().values], shard[order[:held].sort().values]))
        return tuple(parts)

    def __repr__(self) -> str:
        return (
            f"Federation({self.dataset.name!r}, {self.clients} clients, {self.partition}, alpha={self.alpha:g}, "
            f"seed={self.seed}, sizes {int(self.sizes.min())}..{int(self.sizes.max())}, moved {self.moved})"
        )


def federate(
    dataset: Dataset | str,
    *,
    alpha: float = 0.1,
    clients: int = 10,
    seed: int = 0,
    partition: str = "dirichlet",
    classes_per_client: int = 2,
    minimum: int | None = None,
    repair: str = "move",
    max_draws: int = 1000,
    spurious: Iterable[int] = (),
    tint: float = 0.8,
) -> Federation:
    """Share the training samples of `dataset` out among `clients`. The same arguments give the same Federation.

    partition: one of PARTITIONS;   classes_per_client: used by `classes` alone
    alpha:     how even the partition is, smaller is more skewed; not used by `classes` and `iid`
    minimum:   promised samples per client; by default 10, or half the mean size where that is less
    repair:    "move": one draw, then the few samples needed are moved (always answers); "redraw": the papers' loop
    spurious:  clients whose training images get a background tint tied to the label, of strength `tint`; the
               Federation's dataset is then a changed copy, its test and public images as they were

    Raises UsageError for wrong arguments, RunError when redrawing did not reach the minimum.

    >>> fed = federate("digits", alpha=0.1, clients=5, seed=1)
    >>> fed.clients, fed.label_counts.shape, int(fed.sizes.sum())
    (5, torch.Size([5, 10]), 1237)
    >>> train, held_out = fed.split(0.1)[0]
    >>> len(train) + len(held_out) == int(fed.sizes[0])
    True
    """
    import torch

    if not isinstance(dataset, Dataset):
        dataset = registry.load(dataset)
    seed = whole("seed", seed)
    labels = dataset.y_train.numpy()
    result = cut(
        labels, dataset.classes, clients, numpy_rng(seed, "partition"),
        partition=partition, alpha=alpha, classes_per_client=classes_per_client,
        minimum=minimum, repair=repair, max_draws=max_draws,
    )  # fmt: skip
    shards = tuple(torch.from_numpy(shard) for shard in result.shards)
    marked = client_ids(spurious, len(shards))
    if marked:
        dataset = tinted(dataset, torch.cat([shards[k] for k in marked]), tint)
    return Federation(
        dataset, shards, partition, float(alpha), seed, result.minimum, result.moved, result.draws, result.note,
        int(classes_per_client), marked, float(tint) if marked else 0.0,
    )  # fmt: skip


def client_ids(spurious: Iterable[int], clients: int) -> tuple[int, ...]:
    """The named clients, sorted and without repetition."""
    if isinstance(spurious, int | str) or not isinstance(spurious, Iterable):
        raise UsageError(f"spurious is {spurious!r}, but it must be a list of client numbers, such as (0, 1).")
    return tuple(sorted({whole("A client in spurious", k, 0, clients - 1) for k in spurious}))


def tinted(dataset: Dataset, indices: torch.Tensor, strength: float) -> Dataset:
    """The dataset with the backgrounds of these training images tied to their labels, and a digest of its own."""
    x = dataset.x_train.clone()
    y = dataset.y_train
    x[indices] = tint_background(x[indices], y[indices], strength, classes=dataset.classes)
    digest = digest_of(dataset.digest, "tint", float(strength), np.sort(indices.numpy()).tobytes())
    note = f"The background of {len(indices)} training images is tinted by label (strength {strength:g})."
    return replace(dataset, x_train=x, digest=digest, note=f"{dataset.note} {note}".strip())
