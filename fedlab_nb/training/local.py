"""Local training of M clients: each group of one architecture goes to the backend that suits it."""

import itertools
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import torch

from ..models import Network
from ..rng import generator
from .backend import (
    choose_backend,
    choose_part_count,
    count_cores,
    run_in_parallel,
    should_use_channels_last,
)
from .clients import group_by_architecture
from .loop import Adjust, Loss, Shard, train_loop
from .recipe import Recipe
from .stacked import train_stacked
from .streams import train_on_streams

CURVE_POINTS = 12
Epochs = Generator[int, None, None]  # yields how many epochs have been finished


@dataclass(frozen=True)
class Tick:
    """Where a training stands: `done` of `total` epochs over all groups; `fresh`: the plain models are up to date."""

    done: int
    total: int
    fresh: bool = False


def choose_curve_epochs(epochs: int) -> list[int]:
    """The epochs (from 1) after which a training shows its models: at most CURVE_POINTS, the last among them."""
    points = min(epochs, CURVE_POINTS)
    return sorted({round((i + 1) * epochs / points) for i in range(points)})


def train_clients(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    *,
    seed: int | Sequence[int],
    backend: str = "auto",
    ids: Sequence[int] | None = None,
    stream: str = "batches",
    loss: Loss | None = None,
    adjust: Adjust | None = None,
) -> Iterator[Tick]:
    """Train `models[k]` on `shards[k]` in place, every client by the same `recipe`; a generator of `Tick`s.

    Client k's shuffles come from the stream `(seed, stream, ids[k])`, its augmentations from `(seed, stream,
    "augmentation", ids[k])`; `seed` is one for all, or one a client. So neither the order of the clients nor the
    backend changes a result beyond rounding. Closing the generator stops the training between two steps. `loss` and
    `adjust` change the local step (`loop` says how). A shard is `(x, y)`, y being labels `[n]` or soft labels `[n, C]`,
    or `(x, y, ...)` with more for the loss.
    """
    clients = range(len(models))
    ids = clients if ids is None else ids
    seeds = [seed] * len(models) if isinstance(seed, int) else seed
    streams = [generator(seeds[k], stream, ids[k]) for k in clients]
    augmentation_streams = []
    if recipe.augmentation != "none":
        augmentation_streams = [
            generator(seeds[k], stream, "augmentation", ids[k]) for k in clients
        ]
    groups = group_by_architecture(models)
    total = recipe.epochs * len(groups)
    # A point of the curve needs all models, so where there are several groups there is none.
    curve_epochs = choose_curve_epochs(recipe.epochs) if len(groups) == 1 else []
    epochs_before = 0  # of the groups that have ended
    for group in groups.values():
        trainings = start_trainings(
            models,
            shards,
            recipe,
            streams,
            group,
            backend=backend,
            curve_epochs=curve_epochs,
            loss=loss,
            adjust=adjust,
            augmentation_streams=augmentation_streams,
        )
        if len(trainings) == 1:
            epochs = trainings[0]
        else:
            epochs = run_in_parallel(trainings, curve_epochs or [recipe.epochs], count_cores())
        last_shown = 0
        # Since Python 3.12 a generator that is closed does not close those that it reads.
        with closing(epochs):
            for finished in epochs:
                fresh = finished > last_shown and finished in curve_epochs
                last_shown = max(last_shown, finished)
                yield Tick(epochs_before + finished, total, fresh)
        epochs_before += recipe.epochs


def start_trainings(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    group: Sequence[int],
    *,
    backend: str,
    curve_epochs: Sequence[int],
    loss: Loss | None,
    adjust: Adjust | None,
    augmentation_streams: Sequence[torch.Generator],
) -> list[Epochs]:
    """The trainings of a `group` of clients with one architecture: one, or several that can run at the same time.

    Each is a generator of finished epochs that has not begun. The lists have an entry for each client, also for those
    outside the group. `curve_epochs`: those after which the plain models must be up to date.
    """
    model = models[group[0]]
    x = shards[group[0]][0]
    device = x.device.type
    input_shape = tuple(x.shape[1:])
    chosen = choose_backend(backend, device, model, input_shape, len(group))
    is_plain = backend == "auto" and loss is None and adjust is None
    part_count = choose_part_count(device, model, input_shape, len(group)) if is_plain else 1
    channels_last = should_use_channels_last(device, model, input_shape, recipe.precision)
    trainings: list[Epochs] = []
    for part in split_clients(group, shards, part_count):
        part_models = [models[k] for k in part]
        part_shards = [shards[k] for k in part]
        part_streams = [streams[k] for k in part]
        options: dict[str, Any] = {"positions": part, "loss": loss, "adjust": adjust}
        if augmentation_streams:
            options["augmentation_streams"] = [augmentation_streams[k] for k in part]
        if chosen == "stacked":
            training = train_stacked(
                part_models, part_shards, recipe, part_streams, curve_epochs, **options
            )
        else:
            train = train_on_streams if is_plain and x.is_cuda else train_loop
            training = train(
                part_models,
                part_shards,
                recipe,
                part_streams,
                channels_last=channels_last,
                **options,
            )
        trainings.append(training)
    return trainings


def split_clients(group: Sequence[int], shards: Sequence[Shard], parts: int) -> list[list[int]]:
    """The clients of `group` in `parts` lists of similar lengths, those with the most samples first."""
    if parts == 1:
        return [list(group)]
    largest_first = sorted(group, key=lambda k: -len(shards[k][0]))
    ends = [len(group) * i // parts for i in range(parts + 1)]
    return [largest_first[start:end] for start, end in itertools.pairwise(ends)]


def train_to_end(
    models: Sequence[Network], shards: Sequence[Shard], recipe: Recipe, **options: Any
) -> Sequence[Network]:
    """`train_clients` without a word in between, for callers who show no progress; returns `models`."""
    for _ in train_clients(models, shards, recipe, **options):
        pass
    return models
