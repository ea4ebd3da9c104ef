"""Which architecture each client holds, and how large a network the server can afford."""

from __future__ import annotations

from math import prod

import torch

from ...models import MODELS, parameter_count
from ...models.build import default_width
from ...models.plain import MLP_SMALL_INPUT
from ..context import Context

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

    "auto": the kind of the clients' largest model. Width 0: twice that model's width (of another kind: the usual one),
    four times for the perceptron of small inputs.
    """
    own = list(dict.fromkeys(kinds))
    sizes = [parameter_count(ctx.build(kind, ctx.generator("pool", "sizes"))) for kind in own]
    largest = own[sizes.index(max(sizes))]
    if name == "auto":
        name = largest[0]
    if not width:
        usual = largest[3] if largest[0] == name and largest[3] else default_width(name, ctx.input_shape)
        times = 4 if name == "mlp" and prod(ctx.input_shape) <= MLP_SMALL_INPUT else 2
        width = min(MODELS[name].widths[1], times * usual)
    return name, tuple(ctx.input_shape), ctx.classes, width
