"""The stacked backend: all clients of one architecture take their steps together, as one model.

Clients are sorted by their number of batches, so the ones still at work in an epoch are always the first `a`: the set
shrinks instead of being padded. Within a batch a shorter one is padded with rows of weight zero.
"""

import functools
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..models import Network
from .graphs import GradientGraphs, can_record
from .loop import Adjust, Loss, Shard
from .optim import clip_gradients, compute_sam_gradients, make_optimizer
from .recipe import Augmentation, Recipe, make_autocast
from .stack import Stack


@dataclass(frozen=True)
class BatchShape:
    """What the j-th batch of an epoch has in common with that of any other epoch.

    active: how many clients are at work
    weights: `[active, width]`, width being the longest batch: 1 / (length of the client's batch), or 0 for padding
    has_padding: whether one client's batch is shorter than another's
    """

    active: int
    weights: Tensor
    has_padding: bool


class BatchSchedule:
    """The batches of every epoch: which rows of the pooled data each client at work sees at each step.

    The pooled data are the clients' samples, one client after the other. `shapes[j]` says how the j-th batch of each
    epoch is laid out, `draw_epoch()` shuffles the samples.

    sizes: samples of each client, in an order in which the number of batches does not rise;   streams: a generator for
    each client;   like: a tensor of the pooled data, for dtype and device
    """

    def __init__(
        self,
        sizes: Sequence[int],
        streams: Sequence[torch.Generator],
        batch_size: int,
        like: Tensor,
    ) -> None:
        self.streams = streams
        self.device = like.device
        counts = torch.tensor(sizes)
        starts = counts.cumsum(0) - counts  # of each client's samples in the pool
        slots = []  # of each batch, [active * width]: its rows in the pool, were the samples not shuffled
        weights = []  # of each batch, [active, width]
        for first in range(0, max(sizes), batch_size):
            samples, batch_weights = lay_out_batch(counts, first, batch_size)
            slots.append((samples + starts[: len(samples), None]).flatten())
            weights.append(batch_weights.to(like.dtype))
        self.shapes: list[BatchShape] = []
        for batch_weights, copy in zip(weights, copy_together(weights, like.device), strict=True):
            has_padding = bool((batch_weights == 0).any())
            self.shapes.append(BatchShape(len(copy), copy, has_padding))
        self._slots = torch.cat(slots) if slots else starts[:0]
        self._lengths = [len(batch_slots) for batch_slots in slots]
        # The shuffled samples of each client, and views of them by client.
        self._order = torch.empty(sum(sizes), dtype=torch.long)
        self._client_orders = self._order.split(list(sizes))
        self._starts = starts.repeat_interleave(counts)

    def draw_epoch(self) -> Sequence[Tensor]:
        """Shuffle every client's samples: for each batch its rows of the pooled data, `[active * width]`."""
        for order, stream in zip(self._client_orders, self.streams, strict=True):
            torch.randperm(len(order), generator=stream, out=order)
        rows = (self._order + self._starts).index_select(0, self._slots)
        return rows.to(self.device).split(self._lengths)


class BatchLayout(NamedTuple):
    """Of each client at work the samples of its batch and their weights, both `[active, width]`."""

    samples: Tensor
    weights: Tensor


def lay_out_batch(counts: Tensor, first: int, batch_size: int) -> BatchLayout:
    """Lay out the batch of each client that begins with its sample `first`.

    counts: samples of each client `[M]`, in an order in which the number of batches does not rise. Clients without a
    sample `first` are not among the active ones. Padding repeats sample 0, with weight 0.
    """
    active = int((counts > first).sum())
    lengths = (counts[:active] - first).clamp(max=batch_size)
    width = int(lengths.max())
    is_real = torch.arange(width) < lengths[:, None]
    samples = torch.where(is_real, first + torch.arange(width), 0)
    return BatchLayout(samples, is_real.double() / lengths[:, None])


def copy_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copies of `tensors` on `device`: sent there all at once, and then each in memory of its own."""
    if not tensors:
        return []
    numbers = torch.cat([tensor.flatten() for tensor in tensors]).to(device)
    parts = numbers.split([tensor.numel() for tensor in tensors])
    copies = []
    for part, tensor in zip(parts, tensors, strict=True):
        copies.append(part.view(tensor.shape).clone())
    return copies


def cross_entropy_gradient(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """∂/∂logits of Σ_i weight_i ℓ_CE(logits_i, target_i): logits `[n, C]`, labels `[n]` or soft labels `[n, C]`.

    weight_i (softmax(logits_i) Σ_c target_ic - target_i). Classes are taken along the first axis, where the processor
    works on many samples at once.
    """
    gradient = logits.detach().t().contiguous().softmax(0)
    if target.dim() == 1:
        gradient.mul_(weight).scatter_add_(0, target.unsqueeze(0), -weight.unsqueeze(0))
    else:
        target = target.t()
        gradient.mul_(target.sum(0)).sub_(target).mul_(weight)
    return gradient.t()


class StackedTraining:
    """The training of all clients of one architecture, a step at a time.

    `start_epoch(e)` gives the rows of each batch of epoch e, `take_step(j, rows)` updates the models on the j-th of
    them, `write_back()` brings the plain models up to date. The arguments are those of `train_loop`, in any order of
    the clients.
    """

    def __init__(
        self,
        models: Sequence[Network],
        shards: Sequence[Shard],
        recipe: Recipe,
        streams: Sequence[torch.Generator],
        *,
        positions: Sequence[int],
        loss: Loss | None,
        adjust: Adjust | None,
        augmentation_streams: Sequence[torch.Generator],
    ) -> None:
        order = sort_by_batches([len(shard[0]) for shard in shards], recipe.batch_size)
        self.models = [models[k] for k in order]
        self.positions = [positions[k] for k in order]
        self.recipe = recipe
        self.loss = loss
        self.adjust = adjust
        self.stack = Stack(self.models)
        self.stack.net.train()
        # The pooled data: all clients' samples, labels and further columns, one client after the other.
        self.x, *self.columns = (
            torch.cat(column) for column in zip(*(shards[k] for k in order), strict=True)
        )
        sizes = [len(shards[k][0]) for k in order]
        self.schedule = BatchSchedule(sizes, [streams[k] for k in order], recipe.batch_size, self.x)
        optimizer = make_optimizer(self.stack.parameters.values(), recipe, rows=len(models))
        self.optimizers = {
            shape.active: optimizer.for_first_rows(shape.active) for shape in self.schedule.shapes
        }
        self.augmentation: Augmentation | None = None
        if augmentation_streams:
            sorted_streams = [augmentation_streams[k] for k in order]
            self.augmentation = Augmentation(recipe.augmentation, self.x, sizes, sorted_streams)
        # Of the present batch: how many clients are at work, their parameters, and whether it has padding.
        self.active = 0
        self.leaves: dict[str, Tensor] = {}
        self.parameters: list[Tensor] = []
        self.has_padding = False
        # A recording is of one set of clients at work, and either with padding or without.
        self.recordings: dict[tuple[int, bool], GradientGraphs] = {}
        self.should_record = (
            loss is None and not recipe.sam_rho and can_record(self.x.device, models[0])
        )
        self.graph_pool = torch.cuda.graph_pool_handle() if self.should_record else None

    def start_epoch(self, epoch: int) -> Sequence[Tensor]:
        """Shuffle the shards for `epoch` (from 0): for each batch the rows of the pooled data, `[a * width]`."""
        for optimizer in self.optimizers.values():
            optimizer.lr = self.recipe.lr_at(epoch)
        if self.augmentation:
            self.augmentation.draw_epoch()
        return self.schedule.draw_epoch()

    def take_step(self, batch: int, rows: Tensor) -> None:
        """One step of every client at work on a batch, counted from 0, of the epoch, which has these `rows`."""
        shape = self.schedule.shapes[batch]
        if shape.active != self.active:
            self.active = shape.active
            self.leaves = self.stack.activate(shape.active)
            self.parameters = list(self.leaves.values())
        self.has_padding = shape.has_padding
        images = self.x.index_select(0, rows)
        if self.augmentation:
            images = self.augmentation.apply(images, rows)
        images = images.unflatten(0, shape.weights.shape)
        columns = [column.index_select(0, rows) for column in self.columns]
        gradients = self._compute_step_gradients(shape, images, columns)
        if self.adjust is not None:
            with torch.no_grad():
                clients = tuple(self.positions[: shape.active])
                self.adjust(clients, self.leaves, list(gradients))
        if self.recipe.clip_norm:
            gradients = clip_gradients(gradients, self.recipe.clip_norm, True)
        self.optimizers[shape.active].step(gradients)

    def _compute_step_gradients(
        self, shape: BatchShape, images: Tensor, columns: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """The gradients of a batch: SAM's, from a recording, or computed plainly."""
        if self.recipe.sam_rho:
            return compute_sam_gradients(
                functools.partial(self.compute_gradients, images, shape.weights, *columns),
                self.parameters,
                self.recipe.sam_rho,
                True,
                self.stack.batch_norms,
            )
        if not self.should_record:
            return self.compute_gradients(images, shape.weights, *columns)
        key = (shape.active, shape.has_padding)
        if key not in self.recordings:
            self.recordings[key] = GradientGraphs(self.compute_gradients, self.graph_pool)
        return self.recordings[key](images, shape.weights, *columns)

    def compute_gradients(
        self, images: Tensor, weights: Tensor, *columns: Tensor
    ) -> Sequence[Tensor]:
        """The gradients of the clients at work on batches `images [a, width, ...]`; `weights [a, width]`
        and each of `columns [a * width, ...]` have a row a sample."""
        # Here, since a recording reads its own copy of the weights.
        self.stack.set_sample_weights(weights if self.has_padding else None)
        row_weights = weights.flatten()
        with make_autocast(self.recipe, images.device):
            features = self.stack.net.features(images)
            logits = self.stack.net.classifier(features).flatten(0, 1)
        if self.recipe.precision != "float32":
            logits = logits.float()
        if self.loss is None:
            slope = cross_entropy_gradient(logits, columns[0], row_weights)
            # Given as `grad_outputs`, the slope would make PyTorch import SymPy: 0.6 s, 35 MB.
            return torch.autograd.grad((logits * slope).sum(), self.parameters)
        losses = self.loss(features.flatten(0, 1), logits, *columns)
        return torch.autograd.grad(losses @ row_weights, self.parameters)

    def write_back(self) -> None:
        """Copy what has been learnt into the plain models."""
        self.stack.write_back()

    def close(self) -> None:
        """Free the recordings, which hold this training and are held by it."""
        self.recordings.clear()


def sort_by_batches(sizes: Sequence[int], batch_size: int) -> list[int]:
    """The clients in the order of their number of batches, the one with the most first; `sizes`: their samples."""
    batches = [math.ceil(size / batch_size) for size in sizes]
    return sorted(range(len(sizes)), key=lambda k: batches[k], reverse=True)


def train_stacked(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    snapshots: Sequence[int] = (),
    *,
    positions: Sequence[int] | None = None,
    loss: Loss | None = None,
    adjust: Adjust | None = None,
    augmentation_streams: Sequence[torch.Generator] = (),
) -> Generator[int, None, None]:
    """Train `models` (one architecture) in place, as `train_loop` does; yield the number of finished epochs a step.

    The plain models are up to date when an epoch in `snapshots` has just been finished, and at the end. `positions`,
    `loss`, `adjust` and `augmentation_streams` are those of `train_loop`.
    """
    training = StackedTraining(
        models,
        shards,
        recipe,
        streams,
        positions=range(len(models)) if positions is None else positions,
        loss=loss,
        adjust=adjust,
        augmentation_streams=augmentation_streams,
    )
    try:
        for epoch in range(recipe.epochs):
            batches = training.start_epoch(epoch)
            for j, rows in enumerate(batches):
                training.take_step(j, rows)
                if j + 1 < len(batches):
                    yield epoch
            if epoch + 1 in snapshots:
                training.write_back()
            yield epoch + 1
        training.write_back()
    finally:
        training.close()
    for model in models:
        model.eval()
