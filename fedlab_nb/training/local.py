"""Local training of M clients: each group of one architecture goes to the backend that suits it."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import torch

from ..models import Network
from ..rng import make_torch_generator
from .backend import (
    BackendChoice,
    choose_parallel_group_count,
    count_usable_cores,
    resolve_backend_choice,
    run_trainings_in_parallel_threads,
    should_use_channels_last,
)
from .clients import group_clients_by_architecture
from .loop import (
    ClientLossPerSample,
    FinishedEpochCounts,
    InPlaceGradientAdjustment,
    Shard,
    iterate_training_of_clients_in_turn,
)
from .recipe import Recipe
from .stacked import train_client_stack_in_place
from .streams import iterate_training_of_clients_on_cuda_streams

CURVE_POINTS = 12
TrainingOption = Any  # an argument of `iterate_training_of_clients_in_place`, such as `seed`, `ids`, `loss` or `adjust`


@dataclass(frozen=True)
class EpochProgress:
    """The progress of a training.

    done, total: epochs, over all groups of clients
    fresh: whether the plain models are up to date
    """

    done: int
    total: int
    has_current_models: bool = False


EpochsFrom1 = list[int]


def choose_curve_epochs(epoch_count: int) -> EpochsFrom1:
    """The epochs (from 1) after which a training shows its models: at most CURVE_POINTS, the last among them."""
    points = min(epoch_count, CURVE_POINTS)
    return sorted({round((i + 1) * epoch_count / points) for i in range(points)})


def iterate_training_of_clients_in_place(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    *,
    seed: int | Sequence[int],
    backend: BackendChoice = "auto",
    ids: Sequence[int] | None = None,
    stream: str = "batches",
    loss: ClientLossPerSample | None = None,
    adjust: InPlaceGradientAdjustment | None = None,
) -> Iterator[EpochProgress]:
    """Train `models[k]` on `shards[k]` in place, every client by the same `recipe`; yields
    `EpochProgress`s.

    shards: `(x, y)` of each client, y being labels `[n]` or soft labels `[n, C]`; or `(x, y, ...)`,
        with more columns for the loss
    seed: one for all clients, or one per client
    ids, stream: client k's shuffles come from the random stream `(seed, stream, ids[k])`, its
        augmentations from `(seed, stream, "augmentation", ids[k])`
    loss, adjust: change the local step (`loop.py` says how)

    Neither the order of the clients nor the backend changes a result beyond rounding. Closing the
    generator stops the training between two steps.
    """
    clients = range(len(models))
    ids = clients if ids is None else ids
    seeds = [seed] * len(models) if isinstance(seed, int) else seed
    streams = [make_torch_generator(seeds[k], stream, ids[k]) for k in clients]
    augmentation_streams = []
    if recipe.augmentation != "none":
        augmentation_streams = [
            make_torch_generator(seeds[k], stream, "augmentation", ids[k]) for k in clients
        ]
    groups = group_clients_by_architecture(models)
    total = recipe.epochs * len(groups)
    # A point of the curve needs all models, so if there are several groups there is none.
    curve_epochs = choose_curve_epochs(recipe.epochs) if len(groups) == 1 else []
    epochs_before = 0  # of the groups that have ended
    for group in groups.values():
        trainings = make_trainings_of_client_group(
            models,
            shards,
            recipe,
            streams,
            group,
            backend=backend,
            epochs_with_current_models=curve_epochs,
            loss=loss,
            adjust=adjust,
            augmentation_streams=augmentation_streams,
        )
        if len(trainings) == 1:
            epochs = trainings[0]
        else:
            epochs = run_trainings_in_parallel_threads(
                trainings, curve_epochs or [recipe.epochs], count_usable_cores()
            )
        last_shown = 0
        # Since Python 3.12 a generator that is closed does not close those that it reads.
        with closing(epochs):
            for finished in epochs:
                has_current_models = finished > last_shown and finished in curve_epochs
                last_shown = max(last_shown, finished)
                yield EpochProgress(epochs_before + finished, total, has_current_models)
        epochs_before += recipe.epochs


def make_trainings_of_client_group(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    shuffle_streams: Sequence[torch.Generator],
    clients_of_group: Sequence[int],
    *,
    backend: BackendChoice,
    epochs_with_current_models: Sequence[int],
    loss: ClientLossPerSample | None,
    adjust: InPlaceGradientAdjustment | None,
    augmentation_streams: Sequence[torch.Generator],
) -> list[FinishedEpochCounts]:
    """The trainings of clients with one architecture: one, or several that can run at the same time.

    Each is a generator of finished epochs that has not begun. The lists have an entry for each client, also for those
    outside the group. `epochs_with_current_models`: those after which the plain models must be up to date.
    """
    model = models[clients_of_group[0]]
    x = shards[clients_of_group[0]][0]
    device = x.device.type
    input_shape = tuple(x.shape[1:])
    chosen = resolve_backend_choice(backend, device, model, input_shape, len(clients_of_group))
    is_plain = backend == "auto" and loss is None and adjust is None
    part_count = (
        choose_parallel_group_count(device, model, input_shape, len(clients_of_group))
        if is_plain
        else 1
    )
    channels_last = should_use_channels_last(device, model, input_shape, recipe.precision)
    trainings: list[FinishedEpochCounts] = []
    for part in split_clients_largest_first(clients_of_group, shards, part_count):
        part_models = [models[k] for k in part]
        part_shards = [shards[k] for k in part]
        part_streams = [shuffle_streams[k] for k in part]
        options: dict[str, Any] = {"client_numbers": part, "loss": loss, "adjust": adjust}
        if augmentation_streams:
            options["augmentation_streams"] = [augmentation_streams[k] for k in part]
        if chosen == "stacked":
            training = train_client_stack_in_place(
                part_models,
                part_shards,
                recipe,
                part_streams,
                epochs_with_current_models,
                **options,
            )
        else:
            train = (
                iterate_training_of_clients_on_cuda_streams
                if is_plain and x.is_cuda
                else iterate_training_of_clients_in_turn
            )
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


def split_clients_largest_first(
    clients: Sequence[int], shards_of_all_clients: Sequence[Shard], group_count: int
) -> list[list[int]]:
    """The clients of `clients` in `group_count` lists of similar lengths, those with the most samples first."""
    if group_count == 1:
        return [list(clients)]
    largest_first = sorted(clients, key=lambda k: -len(shards_of_all_clients[k][0]))
    ends = [len(clients) * i // group_count for i in range(group_count + 1)]
    return [largest_first[start:end] for start, end in itertools.pairwise(ends)]


def train_clients_in_place(
    models: Sequence[Network], shards: Sequence[Shard], recipe: Recipe, **options: TrainingOption
) -> Sequence[Network]:
    """Run `iterate_training_of_clients_in_place` to its end, for callers who show no progress; returns `models`."""
    for _ in iterate_training_of_clients_in_place(models, shards, recipe, **options):
        pass
    return models
