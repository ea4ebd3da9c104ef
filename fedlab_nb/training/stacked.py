"""The stacked backend: all clients of one architecture take their steps together, as one model.

Clients are sorted by their number of batches, so the ones still at work in an epoch are always the first `a`: the set
shrinks instead of being padded. Within a batch a shorter one is padded with rows of weight zero.
"""

import functools
from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from ..models import Network
from .graphs import GradientGraphs, can_record
from .loop import Adjust, Loss, Shard
from .optim import clipped, optimizer_for, sharpness_aware
from .recipe import Augmentation, Recipe, autocast_for
from .stack import Stack


class _Order:
    """The batches of every epoch: which rows of the pooled data each client at work sees at each step.

    `steps[j] = (active, weight [active, width], padded)` never changes: how many clients are at work, the weight of
    each row (1 / length of its client's batch, 0 for padding; width is the longest batch) and whether there is padding.
    `rows()` draws the next epoch: for each step the rows `[active * width]`.
    """

    def __init__(
        self, sizes: Sequence[int], streams: Sequence[torch.Generator], batch: int, like: Tensor
    ) -> None:
        self.streams, self.device = streams, like.device
        counts = torch.tensor(sizes)
        starts = counts.cumsum(0) - counts
        shapes, padded, weights, slots = [], [], [], []
        for j in range(-(-max(sizes) // batch)):
            active = sum(n > j * batch for n in sizes)
            lengths = (counts[:active] - j * batch).clamp(max=batch)
            width = int(lengths.max())
            real = torch.arange(width) < lengths[:, None]
            slots.append(
                (
                    torch.where(real, j * batch + torch.arange(width), 0) + starts[:active, None]
                ).flatten()
            )
            shapes.append((active, width))
            padded.append(not bool(real.all()))
            weights.append((real.double() / lengths[:, None]).to(like.dtype).flatten())
        # To the device all at once, then each in memory of its own.
        there = (
            torch.cat(weights).to(self.device).split([len(weight) for weight in weights])
            if weights
            else ()
        )
        own = [weight.view(shape).clone() for weight, shape in zip(there, shapes, strict=True)]
        self.steps = [
            (active, w, pad) for (active, _), w, pad in zip(shapes, own, padded, strict=True)
        ]
        self._slots = torch.cat(slots) if slots else starts[:0]
        self._widths = [len(part) for part in slots]
        self._order = torch.empty(sum(sizes), dtype=torch.long)
        self._own = self._order.split(list(sizes))
        self._starts = starts.repeat_interleave(counts)

    def rows(self) -> Sequence[Tensor]:
        for own, stream in zip(self._own, self.streams, strict=True):
            torch.randperm(len(own), generator=stream, out=own)
        drawn = (self._order + self._starts).index_select(0, self._slots)
        return drawn.to(self.device).split(self._widths)


def cross_entropy_slope(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """∂/∂logits of Σ_i weight_i ℓ_CE(logits_i, target_i): logits `[n, C]`, labels `[n]` or soft labels `[n, C]`.

    weight_i (softmax(logits_i) Σ_c target_ic - target_i). Classes are taken along the first axis, where the processor
    works on many samples at once.
    """
    slope = logits.detach().t().contiguous().softmax(0)
    if target.dim() == 1:
        slope.mul_(weight).scatter_add_(0, target.unsqueeze(0), -weight.unsqueeze(0))
    else:
        target = target.t()
        slope.mul_(target.sum(0)).sub_(target).mul_(weight)
    return slope.t()


def train_stacked(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    snapshots: Sequence[int] = (),
    *,
    places: Sequence[int] | None = None,
    loss: Loss | None = None,
    adjust: Adjust | None = None,
    moves: Sequence[torch.Generator] = (),
) -> Generator[int, None, None]:
    """Train `models` (one architecture) in place, as `train_loop` does; yield the number of finished epochs a step.

    The plain models are up to date when an epoch in `snapshots` has just been finished, and at the end. `loss`,
    `adjust`, `places` and `moves` are those of `train_loop`.
    """
    places = range(len(models)) if places is None else places
    order = sorted(
        range(len(models)), key=lambda k: -(-len(shards[k][0]) // recipe.batch_size), reverse=True
    )
    models, shards = [models[k] for k in order], [shards[k] for k in order]
    streams, places, moves = (
        [streams[k] for k in order],
        [places[k] for k in order],
        [moves[k] for k in order if moves],
    )
    stack = Stack(models)
    stack.net.train()
    x, *columns = (torch.cat(parts) for parts in zip(*shards, strict=True))
    batches = _Order([len(own) for own, *_ in shards], streams, recipe.batch_size, x)
    optimizer = optimizer_for(stack.parameters.values(), recipe, rows=len(models))
    optimizers = {active: optimizer.first(active) for active, *_ in batches.steps}
    augment = (
        Augmentation(recipe.augmentation, x, [len(own) for own, *_ in shards], moves)
        if moves
        else None
    )

    def compute_gradients(images: Tensor, weight: Tensor, *targets: Tensor) -> Sequence[Tensor]:
        """The gradient of the clients at work on batches `images [a, width, ...]`; `weight [a, width]`
        and each of `targets [a * width, ...]` have a row a sample."""
        stack.set_share(weight if padded else None)
        row_weight = weight.flatten()
        with autocast_for(recipe, images.device):
            features = stack.net.features(images)
            logits = stack.net.classifier(features).flatten(0, 1)
        if recipe.precision != "float32":
            logits = logits.float()
        if loss is None:
            slope = cross_entropy_slope(logits, targets[0], row_weight)
            # Given as `grad_outputs`, the slope would make PyTorch import SymPy: 0.6 s, 35 MB.
            return torch.autograd.grad((logits * slope).sum(), parameters)
        losses = loss(features.flatten(0, 1), logits, *targets)
        return torch.autograd.grad(losses @ row_weight, parameters)

    # A recording is of one set of clients at work, and either with padding or without.
    recordings: dict[tuple[int, bool], GradientGraphs] = {}
    records = loss is None and not recipe.sam_rho and can_record(x.device, models[0])
    pool = torch.cuda.graph_pool_handle() if records else None
    at_work = None
    for epoch in range(recipe.epochs):
        if augment:
            augment.renew()
        for j, (rows, (active, weight, padded)) in enumerate(
            zip(batches.rows(), batches.steps, strict=True)
        ):
            if active != at_work:
                leaves = stack.use(active)
                parameters = list(leaves.values())
                at_work = active
            images = x.index_select(0, rows)
            if augment:
                images = augment.apply(images, rows)
            batch = [
                images.unflatten(0, weight.shape),
                weight,
                *(column.index_select(0, rows) for column in columns),
            ]
            if recipe.sam_rho:
                gradients = sharpness_aware(
                    functools.partial(compute_gradients, *batch),
                    parameters,
                    recipe.sam_rho,
                    True,
                    stack.norms,
                )
            elif records:
                recording = recordings.setdefault(
                    (active, padded), GradientGraphs(compute_gradients, pool)
                )
                gradients = recording(*batch)
            else:
                gradients = compute_gradients(*batch)
            if adjust is not None:
                with torch.no_grad():
                    adjust(tuple(places[:active]), leaves, list(gradients))
            if recipe.clip_norm:
                gradients = clipped(gradients, recipe.clip_norm, True)
            optimizers[active].lr = recipe.lr_at(epoch)
            optimizers[active].step(gradients)
            if j + 1 < len(batches.steps):
                yield epoch
        if epoch + 1 in snapshots:
            stack.write_back()
        yield epoch + 1
    stack.write_back()
    for model in models:
        model.eval()
