"""The plain backend: each client has one module, one optimizer and one short loop.

It is the readable form, with which tests compare the stack.

A method may change what a local step does in two places, alike in all backends:

- `loss(features [n, D], logits [n, C], *columns) -> [n]` stands in for the cross-entropy of each sample (MOON).
  `columns` are the rows of what a shard holds beside its samples: a shard is `(x, y)` or `(x, y, more, ...)`, each
  `[n_k, ...]`, so that a loss can have values of its own for every sample.
- `adjust(clients, parameters, gradients)` changes the gradients in place, before weight decay and momentum (FedProx,
  SCAFFOLD). `clients` is a tuple of positions in `models`, `parameters` name -> `[a, ...]`, `gradients` a list in the
  same order; row i of every tensor is that of `clients[i]`. Here a = 1; in the stack it is all who take the step.
  With SAM it changes the second gradient, at the place that the step is taken from; clipping comes after it.
"""

import functools
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models import Network
from ..tensor_types import Images, SampleIndices
from .optim import Gradients, clip_gradients_to_norm, compute_sam_gradients, make_optimizer
from .recipe import Augmentation, Recipe, make_autocast

Shard = tuple[Tensor, ...]
ClientLossPerSample = Callable[..., Tensor]
FinishedEpochCounts = Generator[int, None, None]  # after each step how many epochs are finished
InPlaceGradientAdjustment = Callable[[tuple[int, ...], dict[str, Tensor], list[Tensor]], None]


class LabelledSamples(NamedTuple):
    """Samples `x [n, ...]` and their labels `y [n]`, class numbers from 0."""

    x: Tensor
    y: Tensor


class LocalTraining:
    """The training of one client, a step at a time.

    `draw_batches_of_epoch(e)` gives the batches of epoch e, and `take_step(sample_indices)` updates the model on one of
    them. `client_number` is what `adjust` knows the client by. `gradients(images, *columns)` computes the
    gradient of the mean loss on one batch; `streams.py` replaces it by a recording of itself.
    """

    def __init__(
        self,
        model: Network,
        shard: Shard,
        recipe: Recipe,
        stream: torch.Generator,
        *,
        client_number: int,
        channels_last: bool = False,
        loss: ClientLossPerSample | None = None,
        adjust: InPlaceGradientAdjustment | None = None,
        augmentation_stream: torch.Generator | None = None,
    ) -> None:
        self.memory_format = torch.channels_last if channels_last else torch.preserve_format
        self.model = model.to(memory_format=self.memory_format)
        self.x, *self.columns = shard
        self.recipe = recipe
        self.stream = stream
        self.client_number = client_number
        self.loss = loss
        self.adjust = adjust
        self.optimizer = make_optimizer(model.parameters(), recipe)
        self.batch_norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
        self.augmentation: Augmentation | None = None
        if augmentation_stream is not None:
            self.augmentation = Augmentation(
                recipe.augmentation, self.x, [len(self.x)], [augmentation_stream]
            )
        self.gradients: Callable[..., Sequence[Tensor]] = self.compute_gradients

    def draw_batches_of_epoch(self, epoch_from_0: int) -> Sequence[SampleIndices]:
        """Set the learning rate of an epoch and shuffle the shard: the rows of each batch, `[batch_size]` or fewer."""
        self.model.train()
        self.optimizer.lr = self.recipe.compute_learning_rate(epoch_from_0)
        order = torch.randperm(len(self.x), generator=self.stream).to(self.x.device)
        if self.augmentation:
            self.augmentation.draw_crops_and_flips_of_next_epoch()
        return order.split(self.recipe.batch_size)

    def take_step(self, shard_indices_of_batch: SampleIndices) -> None:
        """One step of the optimizer on the samples of the shard with these indices."""
        images = self.x.index_select(0, shard_indices_of_batch)
        if self.augmentation:
            images = self.augmentation.crop_and_flip_as_drawn(images, shard_indices_of_batch)
        images = images.to(memory_format=self.memory_format)
        columns = [column.index_select(0, shard_indices_of_batch) for column in self.columns]
        if self.recipe.sam_rho:
            gradients = compute_sam_gradients(
                functools.partial(self.compute_gradients, images, *columns),
                self.optimizer.parameters,
                self.recipe.sam_rho,
                False,
                self.batch_norms,
            )
        else:
            gradients = self.gradients(images, *columns)
        if self.adjust is not None:
            with torch.no_grad():
                parameters = {
                    name: parameter.unsqueeze(0)
                    for name, parameter in self.model.named_parameters()
                }
                stacked_gradients = [gradient.unsqueeze(0) for gradient in gradients]
                self.adjust((self.client_number,), parameters, stacked_gradients)
        if self.recipe.clip_norm:
            gradients = clip_gradients_to_norm(gradients, self.recipe.clip_norm)
        self.optimizer.step(gradients)

    def switch_model_to_eval_mode(self) -> None:
        """Set the model to eval mode, in its usual memory layout."""
        self.model.eval().to(memory_format=torch.contiguous_format)

    def compute_gradients(self, images: Images, *labels_and_further_columns: Tensor) -> Gradients:
        """The gradient of the mean loss on one batch."""
        with make_autocast(self.recipe, images.device):
            if self.loss is None:
                value = F.cross_entropy(self.model(images), labels_and_further_columns[0])
            else:
                features = self.model.features(images)
                value = self.loss(
                    features, self.model.classifier(features), *labels_and_further_columns
                ).mean()
        return torch.autograd.grad(value, self.optimizer.parameters)


def iterate_training_of_clients_in_turn(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    shuffle_streams: Sequence[torch.Generator],
    *,
    channels_last: bool = False,
    client_numbers: Sequence[int] | None = None,
    loss: ClientLossPerSample | None = None,
    adjust: InPlaceGradientAdjustment | None = None,
    augmentation_streams: Sequence[torch.Generator] = (),
) -> FinishedEpochCounts:
    """Train `models[k]` on `shards[k] = (x [n_k, ...], y [n_k])` in place; yield the number of finished epochs.

    shuffle_streams: `shuffle_streams[k]` draws client k's shuffles
    client_numbers: the clients' numbers for `adjust`; None: 0, 1, …
    augmentation_streams: `augmentation_streams[k]` draws client k's augmentation

    Between two yields lies at most one step of one client, so that a caller can stop anywhere. The
    models are up to date at every yield. All clients finish epoch e before one starts epoch e+1. This
    changes no result, as they share nothing, and gives the curve of an unfinished training a meaning.
    """
    trainings = []
    for k, model in enumerate(models):
        training = LocalTraining(
            model,
            shards[k],
            recipe,
            shuffle_streams[k],
            client_number=k if client_numbers is None else client_numbers[k],
            channels_last=channels_last,
            loss=loss,
            adjust=adjust,
            augmentation_stream=augmentation_streams[k] if augmentation_streams else None,
        )
        trainings.append(training)
    for epoch in range(recipe.epochs):
        for training in trainings:
            for rows in training.draw_batches_of_epoch(epoch):
                training.take_step(rows)
                yield epoch
        yield epoch + 1
    for training in trainings:
        training.switch_model_to_eval_mode()
