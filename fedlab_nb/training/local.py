"""Local training of M clients: each group of one architecture goes to the backend that suits it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ..rng import generator
from .backend import choose_backend, wants_channels_last
from .loop import Adjust, Loss, Shard, train_loop
from .recipe import Recipe
from .stacked import train_stacked

CURVE_POINTS = 12


@dataclass(frozen=True)
class Tick:
    """Where a training stands: `done` of `total` epochs over all groups; `fresh`: the plain models are up to date."""

    done: int
    total: int
    fresh: bool = False


def curve_epochs(epochs: int) -> list[int]:
    """The epochs (from 1) after which a training shows its models: at most CURVE_POINTS, the last among them."""
    points = min(epochs, CURVE_POINTS)
    return sorted({round((i + 1) * epochs / points) for i in range(points)})


def train_clients(
    models: Sequence[nn.Module],
    shards: Sequence[Shard],
    recipe: Recipe,
    *,
    seed: int,
    backend: str = "auto",
    ids: Sequence[int] | None = None,
    stream: str = "batches",
    loss: Loss | None = None,
    adjust: Adjust | None = None,
) -> Iterator[Tick]:
    """Train `models[k]` on `shards[k]` in place, every client by the same `recipe`; a generator of `Tick`s.

    Client k's shuffles come from the stream `(seed, stream, ids[k])`, so neither the order of the clients nor the
    backend changes a result beyond rounding. Closing the generator stops the training between two steps. `loss` and
    `adjust` change the local step (`loop` says how). A shard is `(x, y)`, y being labels `[n]` or soft labels `[n, C]`,
    or `(x, y, ...)` with more for the loss.
    """
    ids = range(len(models)) if ids is None else ids
    groups: dict[tuple, list[int]] = {}
    for k, model in enumerate(models):
        groups.setdefault(model.architecture, []).append(k)
    total = recipe.epochs * len(groups)
    show = curve_epochs(recipe.epochs) if len(groups) == 1 and recipe.epochs else []
    before = 0
    for members in groups.values():
        first = models[members[0]]
        x = shards[members[0]][0]
        device, input_shape = x.device.type, tuple(x.shape[1:])
        group = [models[k] for k in members]
        data = [shards[k] for k in members]
        streams = [generator(seed, stream, ids[k]) for k in members]
        change = {"places": members, "loss": loss, "adjust": adjust}
        if choose_backend(backend, device, first, input_shape, len(members)) == "stacked":
            epochs = train_stacked(group, data, recipe, streams, snapshots=show, **change)
        else:
            layout = wants_channels_last(device, first, input_shape)
            epochs = train_loop(group, data, recipe, streams, channels_last=layout, **change)
        shown = 0
        for done in epochs:
            fresh = done > shown and done in show
            shown = max(shown, done)
            yield Tick(before + done, total, fresh)
        before += recipe.epochs


def trained(models: Sequence[nn.Module], shards: Sequence[Shard], recipe: Recipe, **options) -> Sequence[nn.Module]:
    """`train_clients` run to its end, for callers who need no progress."""
    for _ in train_clients(models, shards, recipe, **options):
        pass
    return models


def same_device(tensor: torch.Tensor, model: nn.Module) -> torch.Tensor:
    """`tensor` on the device and in the dtype of `model`."""
    reference = next(model.parameters())
    return tensor.to(reference.device, reference.dtype)
