"""The plain backend: one module, one torch optimizer and one short loop a client. Readable, and the stack's oracle.

A method may change what a local step does in two places, alike in both backends:

- `loss(features [n, D], logits [n, C], *columns) -> [n]` stands in for the cross-entropy of each sample (MOON).
  `columns` are the rows of what a shard holds beside its samples: a shard is `(x, y)` or `(x, y, more, ...)`, each
  `[n_k, ...]`, so that a loss can have values of its own for every sample.
- `adjust(clients, parameters, gradients)` changes the gradients in place, before weight decay and momentum (FedProx,
  SCAFFOLD). `clients` is a tuple of positions in `models`, `parameters` name -> `[a, ...]`, `gradients` a list in the
  same order; row i of every tensor is that of `clients[i]`. Here a = 1; in the stack it is all who take the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .recipe import Recipe

Shard = tuple[Tensor, ...]
Loss = Callable[..., Tensor]
Adjust = Callable[[tuple[int, ...], dict[str, Tensor], list[Tensor]], None]


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
    places: Sequence[int] | None = None,
    loss: Loss | None = None,
    adjust: Adjust | None = None,
) -> Iterator[int]:
    """Train `models[k]` on `shards[k] = (x [n_k, ...], y [n_k])` in place; yield the number of finished epochs.

    Between two yields lies at most one step of one client, so that a caller may stop anywhere; the models are up to
    date at every yield. `streams[k]` draws client k's shuffles. All clients finish epoch e before one starts epoch e+1,
    which changes no result (they share nothing) and makes the curve of an unfinished training mean something.
    `places[k]` is what `adjust` knows client k by (None: k).
    """
    places = range(len(models)) if places is None else places
    layout = torch.channels_last if channels_last else torch.preserve_format
    for model in models:
        model.to(memory_format=layout)
    optimizers = [optimizer_for(model, recipe) for model in models]
    for epoch in range(recipe.epochs):
        for place, model, (x, *columns), optimizer, stream in zip(
            places, models, shards, optimizers, streams, strict=True
        ):
            model.train()
            for group in optimizer.param_groups:
                group["lr"] = recipe.lr_at(epoch)
            order = torch.randperm(len(x), generator=stream).to(x.device)
            for batch in order.split(recipe.batch_size):
                images = x[batch]
                if channels_last:
                    images = images.contiguous(memory_format=torch.channels_last)
                optimizer.zero_grad()
                if loss is None:
                    F.cross_entropy(model(images), columns[0][batch]).backward()
                else:
                    features = model.features(images)
                    loss(features, model.classifier(features), *(part[batch] for part in columns)).mean().backward()
                if adjust is not None:
                    with torch.no_grad():
                        parameters = {name: p.unsqueeze(0) for name, p in model.named_parameters()}
                        adjust((place,), parameters, [p.grad.unsqueeze(0) for p in model.parameters()])
                optimizer.step()
                yield epoch
        yield epoch + 1
    for model in models:
        model.eval().to(memory_format=torch.contiguous_format)
