"""Frozen features: a map from samples to d numbers that nobody trains, and models that read them with one head.

What one sums over clients (AFL, Gaussian heads) needs the same features at every client. They come from one of five
places (`features`):

- `pixels`: the sample itself, flattened. Nothing is sent.
- `relu`: max(0, (x - c) V + b), V ~ N(0, 2/p), b ~ N(0, 1/4), for samples of p numbers; c = 0.3 for images, which lie
  in [0, 1], and 0 for rows. All that comes down is the seed, 8 bytes a client.
- `conv`: random 5x5 filters whose weights sum to 0, ReLU, then the mean in each of 4x4 cells: 16 numbers a filter.
  The seed comes down.
- `lite0`: a network that was trained on ImageNet, EfficientNet-Lite0 up to its eleventh block (`models/lite0.py`), 112
  numbers of an image of any size. It is public and part of this package, so that nothing is sent; with `send_body` it
  goes down to every client, 2 bytes a number.
- `client`: the network of the client with most samples, without its last layer. It trains alone, uploads the network
  and all others get it; d is the length of its feature vector.

The papers take a network that was trained on ImageNet, and so does `lite0`; the others are what there is for rows, or
to compare with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...data import SEEN, checked_transform
from ...errors import demand
from ...models import lite0, load_state, model_state, parameter_count
from ...rng import generator
from ...training import Recipe, in_chunks
from ..base import Context, GlobalModel, Method, Report, Steps, knob, report_progress
from ..context import check_finite
from ..memory import SquareMatrices
from .align import Moments, barycentre, move, pooled

KINDS = ("pixels", "relu", "conv", "lite0", "client")
CENTRE = 0.3  # about the mean of the classroom's pixels
FILTER, CELLS = 5, 4  # side of a random filter; cells a side that its map is averaged in


@dataclass(frozen=True, eq=False)
class Frozen:
    """A feature map: `frozen(x [N, ...])` is `[N, size]`, without an appended 1. `parameters`: its random or trained
    numbers. `moved`: a matrix `[size, size]` and a shift `[size]` that a row is multiplied by, then shifted by."""

    module: nn.Module
    size: int
    moved: tuple[Tensor, Tensor] | None = None

    @property
    def parameters(self) -> int:
        return parameter_count(self.module) + sum(part.numel() for part in self.moved or ())

    def __call__(self, x: Tensor) -> Tensor:
        rows = in_chunks(self.module, x)[:, : self.size]
        if self.moved is None:
            return rows
        matrix, shift = self.moved
        return torch.addmm(shift.to(rows), rows, matrix.to(rows))


class HeadModel(GlobalModel):
    """Frozen features and a head: `head(features [N, d])` gives scores `[N, C]`, in any dtype; `numbers`: how many the
    head has."""

    parts: ClassVar[tuple[str, ...]] = ("frozen", "head", "numbers")

    def __init__(
        self,
        frozen: Frozen,
        head: Callable[[Tensor], Tensor],
        numbers: int,
        report: Report | None = None,
    ) -> None:
        self.frozen, self.head, self.numbers = frozen, head, numbers
        self.parameters = frozen.parameters + numbers
        self.report = report or Report()

    def features(self, x: Tensor) -> Tensor:
        return self.frozen(x)

    def logits(self, x: Tensor) -> Tensor:
        features = self.features(x)
        return self.head(features).to(features)


# --------------------------------------------------------------------------------- the methods and their knobs
@dataclass(frozen=True)
class FrozenMethod(Method):
    """Base of the methods that train no network, but a head on frozen features."""

    trains_locally = False
    sends_models = False

    features: str = knob("pixels", "Features", symbol="φ", options=KINDS)
    size: int = knob(256, "Dimension", symbol="d", low=1, high=8192, log=True)
    # Apart from the run's own seed, so that runs share their features.
    features_seed: int = knob(0, "Seed of the features", low=0, high=2**31 - 1)
    send_body: bool = knob(False, "Send the body")
    align: float = knob(0.0, "Alignment", low=0, high=1)

    def refuse(self, ctx: Context) -> None:
        fits = self.features != "conv" or ctx.has("images")
        demand(
            fits,
            f"{self.info.title} has convolutions only for images; set features to pixels, relu or client.",
        )
        if self.features == SEEN:
            checked_transform(SEEN, ctx.input_shape)

    def feature_size(self, ctx: Context) -> int:
        """d, the length of a feature vector, before any is made."""
        if self.features == "pixels":
            return prod(ctx.input_shape)
        if self.features == SEEN:
            return lite0.FEATURES
        if self.features == "client":
            return ctx.initial_model(ctx.largest_client).classifier.in_features
        return self.size

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """Covariances and maps of the alignment, one each a client."""
        count = 2 * ctx.clients_count if self.align else 0
        return [SquareMatrices(count, self.feature_size(ctx))]

    @property
    def leaks(self) -> str:
        network = ", and the largest client's network" if self.features == "client" else ""
        return (
            self.info.leaks
            + network
            + (", and the mean and covariance of its features" if self.align else "")
        )

    def frozen(self, ctx: Context) -> Steps[tuple[list[Frozen], Frozen]]:
        """The features as the knobs say: each client's, which differ with `align`, and those of test samples."""
        made = frozen_features(
            ctx, self.features, self.size, self.features_seed, send_body=self.send_body
        )
        return (yield from aligned(ctx, (yield from made), self.align))

    def local_passes(self, recipe: Recipe, sizes: Sequence[float]) -> float:
        """With `client` one client trains a network."""
        return recipe.epochs / len(sizes) if self.features == "client" else 0.0


# ------------------------------------------------------------------------------------------------ making them
def frozen_features(
    ctx: Context, kind: str, size: int, seed: int, *, send_body: bool = False
) -> Steps[Frozen]:
    """The features of this run, the same at every client and at the server; what they cost is on `ctx.link`.

    Client side: call it outside `with ctx.server()`. Phases "seed of the features", or for `client` "initial model"
    (to the largest client; nothing with init="different") and "features" (its network without the last layer: up once,
    then down to each of the others; that of `lite0`, if `send_body`: down to all).
    """
    if kind == "client":
        return (yield from _of_largest_client(ctx))
    if kind == "lite0":
        body = lite0.lite0(ctx.device)
        if send_body:
            ctx.link.broadcast([part.half() for part in body.parameters()], phase="features")
        return Frozen(body, lite0.FEATURES)
    if kind != "pixels":
        seed = int(ctx.link.broadcast(torch.tensor([seed]), phase="seed of the features"))
    made = drawn(kind, ctx.input_shape, size, seed, ctx.dtype)
    return replace(made, module=made.module.to(ctx.device))


def aligned(ctx: Context, frozen: Frozen, tau: float) -> Steps[tuple[list[Frozen], Frozen]]:
    """SLOT-Align (`align.py`): each client's features, and those of samples that have no client.

    With `tau` 0 all are `frozen`, and nothing is sent. Client side, as `frozen_features`; phases "moments" (up) and
    "barycentre" (down), 4 (d + d (d + 1)/2) bytes each.
    """
    if not tau:
        return [frozen] * ctx.clients_count, frozen
    # Clients: mean and covariance of their features; up.
    own = [Moments.of(frozen(ctx.private.train(k)[0])) for k in range(ctx.clients_count)]
    sent = yield from ctx.collect("moments", lambda k: own[k].message(ctx.dtype))
    # Server: their barycentre; down.
    with ctx.server():
        received = [Moments.received(each) for each in sent]
        shares = torch.tensor(ctx.sizes, dtype=torch.float64, device=ctx.device)
        shares = shares / shares.sum()
        of_all = pooled(received, shares)
        middle = barycentre(
            torch.stack([each.invertible().covariance for each in received]), shares
        )
        message = Moments(of_all.mean, middle).message(ctx.dtype)
        common = Moments.received(ctx.link.broadcast(message, phase="barycentre"))
    # Clients: their own way there; the server: that of all samples together.
    of_clients = [replace(frozen, moved=move(each, common, tau)) for each in own]
    return of_clients, replace(frozen, moved=move(of_all, common, tau))


def drawn(
    kind: str, input_shape: Sequence[int], size: int, seed: int, dtype: torch.dtype = torch.float32
) -> Frozen:
    """`pixels`, `relu` or `conv` features for samples of `input_shape`; the random ones with `size` numbers.

    The same seed draws the same numbers on every device and, to rounding, in every dtype.
    """
    inputs = prod(input_shape)
    if kind == "pixels":
        return Frozen(nn.Flatten(), inputs)
    stream = generator(seed, "frozen features", kind)
    if kind == "relu":
        weight = torch.randn(size, inputs, generator=stream) * (2 / inputs) ** 0.5
        bias = torch.randn(size, generator=stream) / 2
        if len(input_shape) == 3:
            bias = bias - CENTRE * weight.sum(1)
        layers = [
            nn.Flatten(),
            _filled(nn.Linear(inputs, size, device="meta"), weight, bias),
            nn.ReLU(),
        ]
    else:
        channels, filters = input_shape[0], ceil(size / CELLS**2)
        weight = torch.randn(filters, channels, FILTER, FILTER, generator=stream)
        weight = (weight - weight.mean((1, 2, 3), keepdim=True)) * (2 / weight[0].numel()) ** 0.5
        convolution = nn.Conv2d(
            channels, filters, FILTER, padding=FILTER // 2, bias=False, device="meta"
        )
        layers = [
            _filled(convolution, weight),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(CELLS),
            nn.Flatten(),
        ]
    return Frozen(nn.Sequential(*layers).to(dtype).eval(), size)


def _filled(layer: nn.Module, weight: Tensor, bias: Tensor | None = None) -> nn.Module:
    """`layer` with these numbers, which nothing trains."""
    layer.register_parameter("weight", nn.Parameter(weight, requires_grad=False))
    if bias is not None:
        layer.register_parameter("bias", nn.Parameter(bias, requires_grad=False))
    return layer


def _of_largest_client(ctx: Context) -> Steps[Frozen]:
    """The largest client trains as it does in every method; its body goes to all."""
    k = ctx.largest_client
    model = ctx.initial_model(k)
    if ctx.init == "same":
        load_state(model, ctx.link.down(k, model_state(model), phase="initial model"))
    yield from report_progress(
        "local training", ctx.train([model], [ctx.private.train(k)], ids=[ctx.ids[k]])
    )
    check_finite(model.parameters(), f"Local training of client {k}", f"lr={ctx.recipe.lr:g}")
    received = ctx.link.up(k, model_state(model.body), phase="features")
    others = [client for client in range(ctx.clients_count) if client != k]
    load_state(model.body, ctx.link.broadcast(received, phase="features", clients=others))
    return Frozen(model.body.eval(), model.classifier.in_features)
