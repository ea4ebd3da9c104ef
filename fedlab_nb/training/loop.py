"""The plain backend: one module, one optimizer and one short loop a client. Readable, and the stack's oracle.

A method may change what a local step does in two places, alike in both backends:

- `loss(features [n, D], logits [n, C], *columns) -> [n]` stands in for the cross-entropy of each sample (MOON).
  `columns` are the rows of what a shard holds beside its samples: a shard is `(x, y)` or `(x, y, more, ...)`, each
  `[n_k, ...]`, so that a loss can have values of its own for every sample.
- `adjust(clients, parameters, gradients)` changes the gradients in place, before weight decay and momentum (FedProx,
  SCAFFOLD). `clients` is a tuple of positions in `models`, `parameters` name -> `[a, ...]`, `gradients` a list in the
  same order; row i of every tensor is that of `clients[i]`. Here a = 1; in the stack it is all who take the step.
  With SAM it changes the second gradient, at the place that the step is taken from; clipping comes after it.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models import Network
from .optim import clipped, optimizer_for, sharpness_aware
from .recipe import Augmentation, Recipe

Shard = tuple[Tensor, ...]
Loss = Callable[..., Tensor]
Adjust = Callable[[tuple[int, ...], dict[str, Tensor], list[Tensor]], None]


def train_loop(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    *,
    channels_last: bool = False,
    places: Sequence[int] | None = None,
    loss: Loss | None = None,
    adjust: Adjust | None = None,
    moves: Sequence[torch.Generator] = (),
) -> Generator[int, None, None]:
    """Train `models[k]` on `shards[k] = (x [n_k, ...], y [n_k])` in place; yield the number of finished epochs.

    Between two yields lies at most one step of one client, so that a caller may stop anywhere; the models are up to
    date at every yield. `streams[k]` draws client k's shuffles. All clients finish epoch e before one starts epoch e+1,
    which changes no result (they share nothing) and makes the curve of an unfinished training mean something.
    `places[k]` is what `adjust` knows client k by (None: k). `moves[k]` draws client k's augmentation.
    """
    places = range(len(models)) if places is None else places
    layout = torch.channels_last if channels_last else torch.preserve_format
    optimizers = [
        optimizer_for(model.to(memory_format=layout).parameters(), recipe) for model in models
    ]
    pairs = [(x, stream) for (x, *_), stream in zip(shards, moves, strict=False)]
    augment = [Augmentation(recipe.augmentation, x, [len(x)], [stream]) for x, stream in pairs]
    norms = [
        [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
        for model in models
    ]

    def one_epoch(k: int, epoch: int) -> Iterator[None]:
        """One pass over client k's shard; yields after every step."""
        model, optimizer, (x, *columns) = models[k].train(), optimizers[k], shards[k]
        optimizer.lr = recipe.lr_at(epoch)
        order = torch.randperm(len(x), generator=streams[k]).to(x.device)
        if augment:
            augment[k].renew()

        def slopes() -> Sequence[Tensor]:
            """The gradient on the present batch."""
            if loss is None:
                value = F.cross_entropy(model(images), batch[0])
            else:
                features = model.features(images)
                value = loss(features, model.classifier(features), *batch).mean()
            return torch.autograd.grad(value, optimizer.parameters)

        for rows in order.split(recipe.batch_size):
            images = x.index_select(0, rows)
            if augment:
                images = augment[k].apply(images, rows)
            images = images.to(memory_format=layout)
            batch = [part.index_select(0, rows) for part in columns]
            if recipe.sam_rho:
                gradients = sharpness_aware(
                    slopes, optimizer.parameters, recipe.sam_rho, False, norms[k]
                )
            else:
                gradients = slopes()
            if adjust is not None:
                with torch.no_grad():
                    parameters = {name: p.unsqueeze(0) for name, p in model.named_parameters()}
                    adjust((places[k],), parameters, [g.unsqueeze(0) for g in gradients])
            if recipe.clip_norm:
                gradients = clipped(gradients, recipe.clip_norm)
            optimizer.step(gradients)
            yield

    for epoch in range(recipe.epochs):
        for k in range(len(models)):
            for _ in one_epoch(k, epoch):
                yield epoch
        yield epoch + 1
    for model in models:
        model.eval().to(memory_format=torch.contiguous_format)
