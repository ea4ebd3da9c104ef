"""The plain backend: one module, one torch optimizer and one short loop a client. Readable, and the oracle of the stacked one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .recipe import Recipe

Shard = tuple[Tensor, Tensor]


def optimizer_for(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The torch optimizer that `recipe` names, over all parameters of `model`."""
    if recipe.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(
        model.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )


def train_loop(
    models: Sequence[nn.Module],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    *,
    channels_last: bool = False,
) -> Iterator[int]:
    """Train `models[k]` on `shards[k] = (x [n_k, ...], y [n_k])` in place; yield the number of finished epochs.

    Between two yields lies at most one step of one client, so that a caller may stop anywhere; the models are up to date at
    every yield. `streams[k]` draws client k's shuffles. All clients finish epoch e before one starts epoch e+1, which changes no
    result (they share nothing) and makes the curve of an unfinished training mean something.
    """
    layout = torch.channels_last if channels_last else torch.preserve_format
    for model in models:
        model.to(memory_format=layout)
    optimizers = [optimizer_for(model, recipe) for model in models]
    for epoch in range(recipe.epochs):
        for model, (x, y), optimizer, stream in zip(models, shards, optimizers, streams, strict=True):
            model.train()
            for group in optimizer.param_groups:
                group["lr"] = recipe.lr_at(epoch)
            order = torch.randperm(len(y), generator=stream).to(y.device)
            for batch in order.split(recipe.batch_size):
                images = x[batch]
                if channels_last:
                    images = images.contiguous(memory_format=torch.channels_last)
                optimizer.zero_grad()
                F.cross_entropy(model(images), y[batch]).backward()
                optimizer.step()
                yield epoch
        yield epoch + 1
    for model in models:
        model.eval().to(memory_format=torch.contiguous_format)
