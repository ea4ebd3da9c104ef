"""Local training of M clients: each group of one architecture goes to the backend that suits it."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ..models import Network
from ..rng import generator
from .backend import choose_backend, cores, pieces, side_by_side, wants_channels_last
from .clients import by_architecture
from .loop import Adjust, Loss, Shard, train_loop
from .recipe import Recipe
from .stacked import train_stacked
from .streams import train_on_streams

CURVE_POINTS = 12


@dataclass(frozen=True)
class Tick:
    """Where a training stands: `done` of `total` epochs over all groups; `fresh`: the plain models are up to date."""

    done: int
    total: int
    fresh: bool = False


def curve_epochs(epochs: int) -> list[int]:
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
    ids = range(len(models)) if ids is None else ids
    seeds = [seed] * len(models) if isinstance(seed, int) else seed
    groups = by_architecture(models)
    total = recipe.epochs * len(groups)
    show = curve_epochs(recipe.epochs) if len(groups) == 1 and recipe.epochs else []
    before = 0
    for members in groups.values():
        first = models[members[0]]
        x = shards[members[0]][0]
        device, input_shape = x.device.type, tuple(x.shape[1:])
        way = choose_backend(backend, device, first, input_shape, len(members))
        plain = backend == "auto" and loss is None and adjust is None
        parts = share_out(
            members, shards, pieces(device, first, input_shape, len(members)) if plain else 1
        )
        trainings = []
        for part in parts:
            work = [models[k] for k in part], [shards[k] for k in part], recipe
            streams = [generator(seeds[k], stream, ids[k]) for k in part]
            augmented = part if recipe.augmentation != "none" else ()
            moves = [generator(seeds[k], stream, "augmentation", ids[k]) for k in augmented]
            change: dict[str, Any] = {
                "places": part,
                "loss": loss,
                "adjust": adjust,
                "moves": moves,
            }
            if way == "stacked":
                training = train_stacked(*work, streams, show, **change)
            else:
                last = wants_channels_last(device, first, input_shape, recipe.precision)
                train = train_on_streams if plain and x.is_cuda else train_loop
                training = train(*work, streams, channels_last=last, **change)
            trainings.append(training)
        alone = len(parts) == 1
        epochs = (
            trainings[0] if alone else side_by_side(trainings, show or [recipe.epochs], cores())
        )
        shown = 0
        with closing(
            epochs
        ):  # since Python 3.12 a generator that is closed does not let go of those that it reads
            for done in epochs:
                fresh = done > shown and done in show
                shown = max(shown, done)
                yield Tick(before + done, total, fresh)
        before += recipe.epochs


def share_out(members: Sequence[int], shards: Sequence[Shard], parts: int) -> list[list[int]]:
    """`members` in `parts` lists of like lengths, the clients with the most samples first."""
    if parts == 1:
        return [list(members)]
    largest_first = sorted(members, key=lambda k: -len(shards[k][0]))
    ends = [len(members) * i // parts for i in range(parts + 1)]
    return [largest_first[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def trained(
    models: Sequence[Network], shards: Sequence[Shard], recipe: Recipe, **options
) -> Sequence[Network]:
    """`train_clients` run to its end, for callers who need no progress."""
    for _ in train_clients(models, shards, recipe, **options):
        pass
    return models
