"""The plain backend: one module, one optimizer and one short loop a client. Readable, and the stack's oracle.

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

from .optim import optimizer_for
from .recipe import Recipe

Shard = tuple[Tensor, ...]
Loss = Callable[..., Tensor]
Adjust = Callable[[tuple[int, ...], dict[str, Tensor], list[Tensor]], None]


class _Client:
    """One client at work: its model, shard, optimizer and stream of shuffles."""

    def __init__(
        self,
        place: int,
        model: nn.Module,
        shard: Shard,
        recipe: Recipe,
        stream: torch.Generator,
        channels_last: bool,
        loss: Loss | None,
        adjust: Adjust | None,
    ) -> None:
        self.place, self.model, self.recipe, self.stream, self.loss, self.adjust = (
            place, model, recipe, stream, loss, adjust,
        )  # fmt: skip
        self.x, *self.columns = shard
        self.layout = torch.channels_last if channels_last else torch.preserve_format
        model.to(memory_format=self.layout)
        self.optimizer = optimizer_for(model.parameters(), recipe)

    def epoch(self, epoch: int) -> Iterator[None]:
        """One pass over the shard; yields after every step."""
        self.model.train()
        self.optimizer.lr = self.recipe.lr_at(epoch)
        order = torch.randperm(len(self.x), generator=self.stream).to(self.x.device)
        for batch in order.split(self.recipe.batch_size):
            gradients = torch.autograd.grad(self.batch_loss(batch), self.optimizer.parameters)
            if self.adjust is not None:
                with torch.no_grad():
                    parameters = {name: p.unsqueeze(0) for name, p in self.model.named_parameters()}
                    self.adjust((self.place,), parameters, [g.unsqueeze(0) for g in gradients])
            self.optimizer.step(gradients)
            yield

    def batch_loss(self, rows: Tensor) -> Tensor:
        """The mean loss of the samples `rows`."""
        images = self.x.index_select(0, rows).to(memory_format=self.layout)
        columns = [part.index_select(0, rows) for part in self.columns]
        if self.loss is None:
            return F.cross_entropy(self.model(images), columns[0])
        features = self.model.features(images)
        return self.loss(features, self.model.classifier(features), *columns).mean()

    def finish(self) -> None:
        self.model.eval().to(memory_format=torch.contiguous_format)


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
    clients = [
        _Client(place, model, shard, recipe, stream, channels_last, loss, adjust)
        for place, model, shard, stream in zip(places, models, shards, streams, strict=True)
    ]
    for epoch in range(recipe.epochs):
        for client in clients:
            for _ in client.epoch(epoch):
                yield epoch
        yield epoch + 1
    for client in clients:
        client.finish()
