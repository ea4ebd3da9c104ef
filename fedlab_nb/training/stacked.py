"""The stacked backend: all clients of one architecture take their steps together, as one model.

Clients are sorted by their number of batches, so the active ones, which still have batches in this epoch, are always
the first `a`. A client without batches left is dropped instead of padded. A client whose batch is shorter than the
others' is padded with rows of weight zero.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..models import Network
from ..tensor_types import Labels, Logits, Probabilities, SampleWeights
from .graphs import GradientGraphs, can_record_cuda_graph
from .loop import ClientLossPerSample, FinishedEpochCounts, InPlaceGradientAdjustment, Shard
from .optim import (
    Adam,
    Gradients,
    Sgd,
    clip_gradients_to_norm,
    compute_sam_gradients,
    make_optimizer,
)
from .recipe import Augmentation, Recipe, make_autocast
from .stack import ClientBatches, ClientSampleWeights, Stack

PooledSampleIndices = Tensor  # int64 [a * width], into the samples of all clients


@dataclass(frozen=True)
class BatchShape:
    """The layout of the j-th batch of an epoch, the same in every epoch.

    active: how many clients have such a batch
    weights: the weight of each row, `[active, width]`, where width is the length of the longest batch:
        1 / (length of the client's batch), or 0 for padding
    has_padding: whether one client's batch is shorter than another's
    """

    active: int
    weights: Tensor
    has_padding: bool


class BatchSchedule:
    """The batches of every epoch: the rows of the pooled data that each active client sees at each step.

    The pooled data are the clients' samples, one client after the other. `shapes[j]` is the layout of the j-th batch of
    every epoch; `draw_batches_of_next_epoch()` shuffles the samples.

    sizes: the number of each client's samples; clients with more batches come first
    streams: a random generator for each client
    dtype_device_template: a tensor of the pooled data, only for its dtype and device
    """

    def __init__(
        self,
        sizes: Sequence[int],
        streams: Sequence[torch.Generator],
        batch_size: int,
        dtype_device_template: Tensor,
    ) -> None:
        self.streams = streams
        self.device = dtype_device_template.device
        counts = torch.tensor(sizes)
        starts = counts.cumsum(0) - counts  # the first row of each client's samples in the pool
        slots = []  # for each batch, [active * width]: its rows in the pool before any shuffling
        weights = []  # for each batch, [active, width]
        for first in range(0, max(sizes), batch_size):
            samples, batch_weights = make_batch_layout(counts, first, batch_size)
            slots.append((samples + starts[: len(samples), None]).flatten())
            weights.append(batch_weights.to(dtype_device_template.dtype))
        self.shapes: list[BatchShape] = []
        for batch_weights, copy in zip(
            weights,
            copy_to_device_in_one_transfer(weights, dtype_device_template.device),
            strict=True,
        ):
            has_padding = bool((batch_weights == 0).any())
            self.shapes.append(BatchShape(len(copy), copy, has_padding))
        self._slots = torch.cat(slots) if slots else starts[:0]
        self._lengths = [len(batch_slots) for batch_slots in slots]
        # The shuffled samples of each client, and views of them by client.
        self._order = torch.empty(sum(sizes), dtype=torch.long)
        self._client_orders = self._order.split(list(sizes))
        self._starts = starts.repeat_interleave(counts)

    def draw_batches_of_next_epoch(self) -> Sequence[PooledSampleIndices]:
        """Shuffle every client's samples; returns the rows of each batch in the pooled data, `[active * width]`."""
        for order, stream in zip(self._client_orders, self.streams, strict=True):
            torch.randperm(len(order), generator=stream, out=order)
        rows = (self._order + self._starts).index_select(0, self._slots)
        return rows.to(self.device).split(self._lengths)


class BatchLayout(NamedTuple):
    """The samples in the batch of each active client, and their weights, both `[active, width]`."""

    samples: Tensor
    weights: Tensor


def make_batch_layout(
    client_sample_counts: Tensor, first_sample_from_0: int, batch_size: int
) -> BatchLayout:
    """Lay out one batch of each client, the one that begins with the client's sample `first_sample_from_0`.

    client_sample_counts: the number of each client's samples `[M]`; clients with more batches come first

    Clients with too few samples for this batch are not active. Padding repeats sample 0, with weight 0.
    """
    active = int((client_sample_counts > first_sample_from_0).sum())
    lengths = (client_sample_counts[:active] - first_sample_from_0).clamp(max=batch_size)
    width = int(lengths.max())
    is_real = torch.arange(width) < lengths[:, None]
    samples = torch.where(is_real, first_sample_from_0 + torch.arange(width), 0)
    return BatchLayout(samples, is_real.double() / lengths[:, None])


def copy_to_device_in_one_transfer(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copies of `tensors` on `device`. They are transferred together, and then copied into separate memory."""
    if not tensors:
        return []
    numbers = torch.cat([tensor.flatten() for tensor in tensors]).to(device)
    parts = numbers.split([tensor.numel() for tensor in tensors])
    copies = []
    for part, tensor in zip(parts, tensors, strict=True):
        copies.append(part.view(tensor.shape).clone())
    return copies


def compute_weighted_cross_entropy_gradient(
    logits: Logits, labels_or_probabilities: Labels | Probabilities, sample_weights: SampleWeights
) -> Logits:
    """The gradient `[n, C]` of Σ_i weight_i ℓ_CE(logits_i, target_i) with respect to logits `[n, C]`.

    The targets are labels `[n]` or soft labels `[n, C]`. Row i of the gradient is
    weight_i (softmax(logits_i) Σ_c target_ic - target_i). It is computed transposed, with the classes along the first
    axis, because the processor then works on many samples at once.
    """
    gradient = logits.detach().t().contiguous().softmax(0)
    if labels_or_probabilities.dim() == 1:
        labels = labels_or_probabilities.unsqueeze(0)
        gradient.mul_(sample_weights)
        gradient.scatter_add_(0, labels, -sample_weights.unsqueeze(0))
    else:
        targets = labels_or_probabilities.t()
        gradient.mul_(targets.sum(0)).sub_(targets).mul_(sample_weights)
    return gradient.t()


class StackedTraining:
    """The training of all clients of one architecture, a step at a time.

    `draw_batches_of_epoch(e)` gives the rows of each batch of epoch e, `take_step(j, rows)` updates the stacked models
    on the j-th batch, and `copy_weights_to_models()` copies them into the plain models. The arguments are those of
    `iterate_training_of_clients_in_turn`; the clients may be in any order.
    """

    def __init__(
        self,
        models: Sequence[Network],
        shards: Sequence[Shard],
        recipe: Recipe,
        streams: Sequence[torch.Generator],
        *,
        client_numbers: Sequence[int],
        loss: ClientLossPerSample | None,
        adjust: InPlaceGradientAdjustment | None,
        augmentation_streams: Sequence[torch.Generator],
    ) -> None:
        order = order_clients_by_descending_batch_count(
            [len(shard[0]) for shard in shards], recipe.batch_size
        )
        self.models = [models[k] for k in order]
        self.client_numbers = [client_numbers[k] for k in order]
        self.recipe = recipe
        self.loss = loss
        self.adjust = adjust
        self.stack = Stack(self.models)
        self.stack.net.train()
        # The pooled data: all clients' samples, labels and further columns, one client after the other.
        sorted_shards = [shards[k] for k in order]
        self.x, *self.columns = (torch.cat(column) for column in zip(*sorted_shards, strict=True))
        sizes = [len(shard[0]) for shard in sorted_shards]
        self.schedule = BatchSchedule(sizes, [streams[k] for k in order], recipe.batch_size, self.x)
        optimizer = make_optimizer(
            self.stack.parameters.values(), recipe, stacked_model_count_or_none=len(models)
        )
        self.optimizers: dict[int, Sgd | Adam] = {}  # by the number of active clients
        for shape in self.schedule.shapes:
            self.optimizers[shape.active] = optimizer.view_first_models(shape.active)
        self.augmentation: Augmentation | None = None
        if augmentation_streams:
            sorted_streams = [augmentation_streams[k] for k in order]
            self.augmentation = Augmentation(recipe.augmentation, self.x, sizes, sorted_streams)
        # Of the current batch: the number of active clients, their parameters, and whether there is padding.
        self.active = 0
        self.leaves: dict[str, Tensor] = {}
        self.parameters: list[Tensor] = []
        self.has_padding = False
        # By the number of active clients, and whether the batch has padding.
        self.recordings: dict[tuple[int, bool], GradientGraphs] = {}
        self.should_record = (
            loss is None and not recipe.sam_rho and can_record_cuda_graph(self.x.device, models[0])
        )
        self.graph_pool = torch.cuda.graph_pool_handle() if self.should_record else None

    def draw_batches_of_epoch(self, epoch_from_0: int) -> Sequence[PooledSampleIndices]:
        """Set the learning rate of an epoch and shuffle the shards; returns each batch's rows in the pooled data.

        The rows of a batch are `[a * width]`, of a active clients.
        """
        for optimizer in self.optimizers.values():
            optimizer.lr = self.recipe.compute_learning_rate(epoch_from_0)
        if self.augmentation:
            self.augmentation.draw_crops_and_flips_of_next_epoch()
        return self.schedule.draw_batches_of_next_epoch()

    def take_step(self, batch_from_0: int, pooled_indices_of_batch: PooledSampleIndices) -> None:
        """Take a step with every active client.

        batch_from_0: the number of the batch in this epoch
        pooled_indices_of_batch: its rows in the pooled data
        """
        shape = self.schedule.shapes[batch_from_0]
        if shape.active != self.active:
            self.active = shape.active
            self.leaves = self.stack.activate_first_models(shape.active)
            self.parameters = list(self.leaves.values())
        self.has_padding = shape.has_padding
        images = self.x.index_select(0, pooled_indices_of_batch)
        if self.augmentation:
            images = self.augmentation.crop_and_flip_as_drawn(images, pooled_indices_of_batch)
        images = images.unflatten(0, shape.weights.shape)
        columns = [column.index_select(0, pooled_indices_of_batch) for column in self.columns]
        gradients = self._compute_step_gradients(shape, images, columns)
        if self.adjust is not None:
            with torch.no_grad():
                clients = tuple(self.client_numbers[: shape.active])
                self.adjust(clients, self.leaves, list(gradients))
        if self.recipe.clip_norm:
            gradients = clip_gradients_to_norm(gradients, self.recipe.clip_norm, True)
        self.optimizers[shape.active].step(gradients)

    def _compute_step_gradients(
        self, shape: BatchShape, images: ClientBatches, labels_and_further_columns: Sequence[Tensor]
    ) -> Gradients:
        """The gradients of a batch: those of SAM, those from a recorded graph, or plain ones."""
        if self.recipe.sam_rho:
            return compute_sam_gradients(
                functools.partial(
                    self.compute_gradients, images, shape.weights, *labels_and_further_columns
                ),
                self.parameters,
                self.recipe.sam_rho,
                True,
                self.stack.batch_norms,
            )
        if not self.should_record:
            return self.compute_gradients(images, shape.weights, *labels_and_further_columns)
        key = (shape.active, shape.has_padding)
        if key not in self.recordings:
            self.recordings[key] = GradientGraphs(self.compute_gradients, self.graph_pool)
        return self.recordings[key](images, shape.weights, *labels_and_further_columns)

    def compute_gradients(
        self,
        images: ClientBatches,
        sample_weights: ClientSampleWeights,
        *labels_and_further_columns: Tensor,
    ) -> Gradients:
        """The active clients' gradients on their batches.

        images: `[a, width, ...]`
        sample_weights: `[a, width]`
        labels_and_further_columns: each `[a * width, ...]`
        """
        # Set here and not by the caller, since a recorded graph reads its own copy of the weights.
        self.stack.set_sample_weights(sample_weights if self.has_padding else None)
        row_weights = sample_weights.flatten()
        with make_autocast(self.recipe, images.device):
            features = self.stack.net.features(images)
            logits = self.stack.net.classifier(features).flatten(0, 1)
        if self.recipe.precision != "float32":
            logits = logits.float()
        if self.loss is None:
            slope = compute_weighted_cross_entropy_gradient(
                logits, labels_and_further_columns[0], row_weights
            )
            # Not `grad(logits, ..., grad_outputs=slope)`, which makes PyTorch import SymPy (0.6 s, 35 MB).
            return torch.autograd.grad((logits * slope).sum(), self.parameters)
        losses = self.loss(features.flatten(0, 1), logits, *labels_and_further_columns)
        return torch.autograd.grad(losses @ row_weights, self.parameters)

    def copy_weights_to_models(self) -> None:
        """Copy the trained weights into the plain models."""
        self.stack.copy_weights_to_models()

    def close(self) -> None:
        """Free the recordings; they and this training refer to each other."""
        self.recordings.clear()


def order_clients_by_descending_batch_count(
    client_sample_counts: Sequence[int], batch_size: int
) -> list[int]:
    """The clients' indices, those with the most batches first."""
    batches = [math.ceil(size / batch_size) for size in client_sample_counts]
    return sorted(range(len(client_sample_counts)), key=lambda k: batches[k], reverse=True)


def train_client_stack_in_place(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    shuffle_streams: Sequence[torch.Generator],
    epochs_with_current_models: Sequence[int] = (),
    *,
    client_numbers: Sequence[int] | None = None,
    loss: ClientLossPerSample | None = None,
    adjust: InPlaceGradientAdjustment | None = None,
    augmentation_streams: Sequence[torch.Generator] = (),
) -> FinishedEpochCounts:
    """Train `models`, all of one architecture, in place; yields the number of finished epochs after every step.

    The models are up to date whenever an epoch in `epochs_with_current_models` has just been finished, and at the end.
    The other arguments are those of `iterate_training_of_clients_in_turn`.
    """
    training = StackedTraining(
        models,
        shards,
        recipe,
        shuffle_streams,
        client_numbers=range(len(models)) if client_numbers is None else client_numbers,
        loss=loss,
        adjust=adjust,
        augmentation_streams=augmentation_streams,
    )
    try:
        for epoch in range(recipe.epochs):
            batches = training.draw_batches_of_epoch(epoch)
            for j, rows in enumerate(batches):
                training.take_step(j, rows)
                if j + 1 < len(batches):
                    yield epoch
            if epoch + 1 in epochs_with_current_models:
                training.copy_weights_to_models()
            yield epoch + 1
        training.copy_weights_to_models()
    finally:
        training.close()
    for model in models:
        model.eval()
