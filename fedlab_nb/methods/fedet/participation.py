"""Who holds which architecture, how large a network the server can afford, who takes part in a round and does what."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import torch
from torch import Tensor

from ...models import MODELS, Network, parameter_count
from ...models.build import default_width
from ...models.plain import MLP_SMALL_INPUT
from ...training import Tick, train_clients
from ..context import Context, check_finite


def chosen_clients(sizes: Sequence[int], m: int, stream: torch.Generator) -> list[int]:
    """m of the clients in ascending order, drawn without replacement in proportion to their `sizes`.

    All of them, without a draw, for m = 0 or m at least as many as there are.
    """
    if m == 0 or m >= len(sizes):
        return list(range(len(sizes)))
    weights = torch.tensor(sizes, dtype=torch.float64)
    return sorted(torch.multinomial(weights, m, generator=stream).tolist())


def cycled(x: Tensor, y: Tensor, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """`count` samples of a shard `(x [n, ...], y [n])`, in as many shuffled passes over it as that takes.

    With count = J b, one epoch in batches of b is J steps, however few samples a client has.
    """
    passes = [torch.randperm(len(y), generator=stream) for _ in range(-(-count // len(y)))]
    rows = torch.cat(passes)[:count].to(y.device)
    return x[rows], y[rows]


def local_training(
    ctx: Context, t: int, chosen: Sequence[int], models: Sequence[Network], steps: int
) -> Iterator[Tick]:
    """Round t at the `chosen` clients, in place: `steps` of SGD each, or all epochs of the recipe (0). RunError if the
    training of one diverges."""
    shards, recipe = [ctx.private.train(k) for k in chosen], ctx.recipe
    if steps:
        recipe, count = replace(recipe, epochs=1), steps * recipe.batch_size
        streams = [ctx.generator("fedet", "local", t, k) for k in chosen]
        shards = [cycled(*own, count, stream) for own, stream in zip(shards, streams, strict=True)]
    stream = f"fedet batches {t}"
    yield from train_clients(models, shards, recipe, seed=ctx.seed, backend=ctx.backend, ids=chosen, stream=stream)
    for k, model in zip(chosen, models, strict=True):
        check_finite(model, f"Local training of client {k}", f"lr={recipe.lr:g}")


Architecture = tuple  # (name, input_shape, classes, width)

POOLS = ("dealt", "drawn", "mixed")
MIXED = (("mlp", 16), ("cnn", None), ("mlp", 64))
MIXED_ROWS = (("mlp", 16), ("mlp", 32), ("mlp", 64))  # for feature rows, which a cnn cannot take


def client_architectures(ctx: Context, pool: str) -> list[Architecture]:
    """One a client. "dealt": the run's, in turn; "drawn": for each client one of the run's, uniformly at random;
    "mixed": the same from three small ones, a perceptron of 16, a five-layer CNN and a perceptron of 64 (of 32 for the
    CNN where inputs are feature rows).

    Shards are drawn at random too, so dealing in turn is as random as drawing, but for the even numbers.
    """
    if pool == "dealt":
        return list(ctx.architectures)
    kinds = list(dict.fromkeys(ctx.architectures))
    if pool == "mixed":
        small = MIXED if ctx.has("images") else MIXED_ROWS
        kinds = [(name, tuple(ctx.input_shape), ctx.classes, width) for name, width in small]
    drawn = torch.randint(len(kinds), (ctx.clients_count,), generator=ctx.generator("pool", pool))
    return [kinds[i] for i in drawn.tolist()]


def larger(ctx: Context, kinds: list[Architecture], name: str = "auto", width: int = 0) -> Architecture:
    """The server's architecture: `name` with `width`, or what "auto" and 0 stand for.

    "auto": the kind of the clients' largest model. Width 0: the one in `name` ("cnn:12"), or else twice that model's
    (of another kind: twice the usual one), four times for the perceptron of small inputs.
    """
    own = list(dict.fromkeys(kinds))
    sizes = [parameter_count(ctx.build(kind, ctx.generator("pool", "sizes"))) for kind in own]
    largest = own[sizes.index(max(sizes))]
    name, _, own_width = (largest[0] if name == "auto" else name).partition(":")
    width = width or int(own_width or 0)
    if not width:
        usual = largest[3] if largest[0] == name and largest[3] else default_width(name, ctx.input_shape)
        times = 4 if name == "mlp" and prod(ctx.input_shape) <= MLP_SMALL_INPUT else 2
        width = min(MODELS[name].widths[1], times * usual)
    return name, tuple(ctx.input_shape), ctx.classes, width


def spelled(kind: Architecture) -> str:
    """An architecture as people write it: `mlp`, `mlp:16`."""
    return kind[0] if kind[3] is None else f"{kind[0]}:{kind[3]}"
