"""Frozen features: a map from samples to d numbers that is not trained, and models that read them
with one head.

Sums over clients (AFL, Gaussian heads) need the same features at every client. There are five kinds
(`features`):

- `pixels`: the sample itself, flattened. Nothing is sent.
- `relu`: max(0, (x - c) V + b), V ~ N(0, 2/p), b ~ N(0, 1/4), for samples of p numbers; c = 0.3 for images, which lie
  in [0, 1], and 0 for rows. Only the seed comes down, 8 bytes a client.
- `conv`: random 5x5 filters whose weights sum to 0, ReLU, then the mean in each of 4x4 cells: 16 numbers a filter.
  The seed comes down.
- `lite0`: a network that was trained on ImageNet, EfficientNet-Lite0 up to its eleventh block (`models/lite0.py`), 112
  numbers of an image of any size. It is public and part of this package, so that nothing is sent; with `send_body` it
  goes down to every client, 2 bytes a number.
- `client`: the network of the client with the most samples, without its last layer. This client trains alone and
  uploads the network, which goes down to all others; d is the length of its feature vector.

The papers use a network that was trained on ImageNet, as does `lite0`. The other kinds are for
rows, or for comparison.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ...data import SEEN, order_transform_parts
from ...errors import UsageError
from ...methods.run_outputs import SentenceOnPrivacy
from ...models import copy_model_state, count_parameters, lite0, load_state
from ...rng import make_torch_generator
from ...tensor_types import Features, Logits, Samples
from ...training import Recipe, run_in_chunks
from ...value_types import MeanPassesPerClient
from ..base import Context, GlobalModel, Method, Report, Steps, knob, report_progress
from ..context import check_training_is_finite
from ..memory import SquareMatricesInMemory
from ..traffic import FederationSizes
from .align import (
    COVARIANCES,
    FeatureMoments,
    FloorOrLedoitWolf,
    compute_alignment_map,
    compute_covariance_barycentre,
    pool_moments,
)

FeatureKind = Literal["pixels", "relu", "conv", "lite0", "client"]
KINDS: tuple[FeatureKind, ...] = get_args(FeatureKind)
CENTRE = 0.3  # approximate mean of the classroom's pixels
FILTER = 5  # side of a random filter
CELLS = 4  # cells along each side of a filter's map, in which it is averaged


@dataclass(frozen=True, eq=False)
class FrozenFeatures:
    """A feature map: `frozen(x [N, ...])` is `[N, size]`, without an appended 1.

    parameters: its random or trained numbers
    moved: a matrix `[size, size]`, by which rows are multiplied, and a shift `[size]`, which is then added
    """

    module: nn.Module
    size: int
    moved: tuple[Tensor, Tensor] | None = None

    @property
    def parameters(self) -> int:
        return count_parameters(self.module) + sum(tensor.numel() for tensor in self.moved or ())

    def __call__(self, x: Tensor) -> Tensor:
        rows = run_in_chunks(self.module, x)[:, : self.size]
        if self.moved is None:
            return rows
        matrix, shift = self.moved
        return torch.addmm(shift.to(rows), rows, matrix.to(rows))


class HeadModel(GlobalModel):
    """Frozen features and a head: `head(features [N, d])` returns scores `[N, C]`, in any dtype.

    numbers: number of the head's parameters
    """

    parts: ClassVar[tuple[str, ...]] = ("frozen", "head", "numbers")

    def __init__(
        self,
        frozen: FrozenFeatures,
        head: Callable[[Tensor], Tensor],
        numbers: int,
        report: Report | None = None,
    ) -> None:
        self.frozen = frozen
        self.head = head
        self.numbers = numbers
        self.parameters = frozen.parameters + numbers
        self.report = report or Report()

    def features(self, samples: Samples) -> Features:
        return self.frozen(samples)

    def logits(self, samples: Samples) -> Logits:
        features = self.features(samples)
        return self.head(features).to(features)


# --------------------------------------------------------------------------------- the methods and their knobs
class ClientAndTestFeatureMaps(NamedTuple):
    """The feature map of each client, and the one for samples that have no client."""

    clients: list[FrozenFeatures]
    test: FrozenFeatures


@dataclass(frozen=True)
class FrozenMethod(Method):
    """Base of the methods that train no network, but a head on frozen features."""

    trains_locally = False
    sends_models = False

    features: FeatureKind = knob("pixels", "Features", symbol="φ", options=KINDS)
    size: int = knob(256, "Dimension", symbol="d", low=1, high=8192, log=True)
    # Apart from the run's own seed, so that runs share their features.
    features_seed: int = knob(0, "Seed of the features", low=0, high=2**31 - 1)
    send_body: bool = knob(False, "Send the body")
    align: float = knob(0.0, "Alignment", low=0, high=1)
    align_covariance: FloorOrLedoitWolf = knob("floor", "Covariances aligned", options=COVARIANCES)

    def refuse(self, ctx: Context) -> None:
        if self.features == "conv" and not ctx.has("images"):
            raise UsageError(
                f"{self.info.title} has convolutions only for images; set features to pixels, relu "
                "or client."
            )
        if self.features == SEEN:
            order_transform_parts(SEEN, ctx.input_shape)

    def count_features_per_sample(self, ctx: Context) -> int:
        """Compute d, the length of a feature vector, without making one."""
        if self.features == "pixels":
            return prod(ctx.input_shape)
        if self.features == SEEN:
            return lite0.FEATURES
        if self.features == "client":
            return ctx.initial_model(ctx.largest_client).classifier.in_features
        return self.size

    def count_features_before_run(self, sizes: FederationSizes) -> int:
        """Compute `count_features_per_sample` before a run."""
        if self.features == "pixels":
            return sizes.numbers
        if self.features == SEEN:
            return lite0.FEATURES
        if self.features == "client":
            return sizes.features
        return self.size

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """Covariances and maps of the alignment, one of each per client."""
        count = 2 * ctx.clients_count if self.align else 0
        return [SquareMatricesInMemory(count, self.count_features_per_sample(ctx))]

    @property
    def leaks(self) -> SentenceOnPrivacy:
        text = self.info.leaks
        if self.features == "client":
            text += ", and the largest client's network"
        if self.align:
            text += ", and the mean and covariance of its features"
        return text

    def make_feature_maps(self, ctx: Context) -> Steps[ClientAndTestFeatureMaps]:
        """Make the features that the knobs choose: each client's, which differ with `align`, and
        those of test samples.
        """
        frozen = yield from make_common_feature_map(
            ctx, self.features, self.size, self.features_seed, send_body=self.send_body
        )
        return (
            yield from align_client_feature_maps(ctx, frozen, self.align, self.align_covariance)
        )

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        """Only with `client` a network is trained, by one client."""
        if self.features == "client":
            return recipe.epochs / len(client_sample_counts)
        return 0.0


# ------------------------------------------------------------------------------------------------ making them
def make_common_feature_map(
    ctx: Context,
    feature_kind: FeatureKind,
    random_feature_count: int,
    feature_seed: int,
    *,
    send_body: bool = False,
) -> Steps[FrozenFeatures]:
    """Make the features of this run, the same at every client and at the server.

    Client side: call it outside `with ctx.server()`. Phases "seed of the features", or for `client` "initial model"
    (to the largest client; nothing with init="different") and "features" (its network without the last layer: up once,
    then down to each of the others; that of `lite0`, if `send_body`: down to all).
    """
    if feature_kind == "client":
        return (yield from _train_largest_client_and_send_its_body(ctx))
    if feature_kind == "lite0":
        body = lite0.load_lite0(ctx.device)
        if send_body:
            half_precision = [parameter.half() for parameter in body.parameters()]
            ctx.link.broadcast(half_precision, phase="features")
        return FrozenFeatures(body, lite0.FEATURES)
    if feature_kind != "pixels":
        feature_seed = int(
            ctx.link.broadcast(torch.tensor([feature_seed]), phase="seed of the features")
        )
    frozen = make_frozen_feature_map(
        feature_kind, ctx.input_shape, random_feature_count, feature_seed, ctx.dtype
    )
    return replace(frozen, module=frozen.module.to(ctx.device))


def align_client_feature_maps(
    ctx: Context,
    common_map: FrozenFeatures,
    alignment_0_to_1: float,
    covariance_estimate: FloorOrLedoitWolf = "floor",
) -> Steps[ClientAndTestFeatureMaps]:
    """Align features by SLOT-Align (`align.py`): each client's, and those of samples without a
    client.

    With `alignment_0_to_1` 0 all are `common_map`, and nothing is sent. Client side, as `make_common_feature_map`;
    phases "moments" (up) and "barycentre" (down), 4 (d + d (d + 1)/2) bytes each.

    covariance_estimate: how a client estimates its covariance, one of COVARIANCES
    """
    if not alignment_0_to_1:
        return ClientAndTestFeatureMaps([common_map] * ctx.clients_count, common_map)
    # Clients: mean and covariance of their features; up.
    measure = (
        FeatureMoments.measure
        if covariance_estimate == "floor"
        else FeatureMoments.measure_with_shrunk_covariance
    )
    client_moments = []
    for k in range(ctx.clients_count):
        x, _ = ctx.private.train(k)
        client_moments.append(measure(common_map(x)))
    messages = yield from ctx.collect(
        "moments", lambda k: client_moments[k].make_message(ctx.dtype)
    )
    # Server: their barycentre; down.
    with ctx.server():
        received = [FeatureMoments.from_message(message) for message in messages]
        shares = torch.tensor(ctx.sizes, dtype=torch.float64, device=ctx.device)
        shares = shares / shares.sum()
        pooled = pool_moments(received, shares)
        covariances = torch.stack(
            [moments.copy_with_variance_floor().covariance for moments in received]
        )
        target = FeatureMoments(pooled.mean, compute_covariance_barycentre(covariances, shares))
        message = ctx.link.broadcast(target.make_message(ctx.dtype), phase="barycentre")
        common = FeatureMoments.from_message(message)
    # Clients move their features from their own moments to the common ones, the server from the pooled moments.
    aligned = []
    for moments in client_moments:
        aligned.append(
            replace(common_map, moved=compute_alignment_map(moments, common, alignment_0_to_1))
        )
    return ClientAndTestFeatureMaps(
        aligned, replace(common_map, moved=compute_alignment_map(pooled, common, alignment_0_to_1))
    )


def make_frozen_feature_map(
    map_kind: Literal["pixels", "relu", "conv"],
    input_shape: Sequence[int],
    random_feature_count: int,
    feature_seed: int,
    dtype: torch.dtype = torch.float32,
) -> FrozenFeatures:
    """`pixels`, `relu` or `conv` features of samples of `input_shape`.

    The random kinds have `random_feature_count` numbers. The same seed draws the same numbers on every device and, to
    rounding, in every dtype.
    """
    inputs = prod(input_shape)
    if map_kind == "pixels":
        return FrozenFeatures(nn.Flatten(), inputs)
    stream = make_torch_generator(feature_seed, "frozen features", map_kind)
    if map_kind == "relu":
        weight = torch.randn(random_feature_count, inputs, generator=stream) * (2 / inputs) ** 0.5
        bias = torch.randn(random_feature_count, generator=stream) / 2
        if len(input_shape) == 3:
            bias = bias - CENTRE * weight.sum(1)
        linear = _set_and_freeze_parameters_in_place(
            nn.Linear(inputs, random_feature_count, device="meta"), weight, bias
        )
        layers = [nn.Flatten(), linear, nn.ReLU()]
    else:
        channels = input_shape[0]
        filters = ceil(random_feature_count / CELLS**2)
        weight = torch.randn(filters, channels, FILTER, FILTER, generator=stream)
        weight = (weight - weight.mean((1, 2, 3), keepdim=True)) * (2 / weight[0].numel()) ** 0.5
        convolution = nn.Conv2d(
            channels, filters, FILTER, padding=FILTER // 2, bias=False, device="meta"
        )
        filtered = _set_and_freeze_parameters_in_place(convolution, weight)
        layers = [filtered, nn.ReLU(), nn.AdaptiveAvgPool2d(CELLS), nn.Flatten()]
    return FrozenFeatures(nn.Sequential(*layers).to(dtype).eval(), random_feature_count)


def _set_and_freeze_parameters_in_place(
    layer: nn.Module, weight: Tensor, bias: Tensor | None = None
) -> nn.Module:
    """`layer` with these numbers, which are not trained."""
    layer.register_parameter("weight", nn.Parameter(weight, requires_grad=False))
    if bias is not None:
        layer.register_parameter("bias", nn.Parameter(bias, requires_grad=False))
    return layer


def _train_largest_client_and_send_its_body(ctx: Context) -> Steps[FrozenFeatures]:
    """Make the features of the largest client's network. It trains as in every method, and its body
    is sent to all.
    """
    k = ctx.largest_client
    model = ctx.initial_model(k)
    if ctx.init == "same":
        load_state(model, ctx.link.down(k, copy_model_state(model), phase="initial model"))
    ticks = ctx.train([model], [ctx.private.train(k)], ids=[ctx.ids[k]])
    yield from report_progress("local training", ticks)
    check_training_is_finite(
        model.parameters(), f"Local training of client {k}", f"lr={ctx.recipe.lr:g}"
    )
    received = ctx.link.up(k, copy_model_state(model.body), phase="features")
    others = [client for client in range(ctx.clients_count) if client != k]
    load_state(model.body, ctx.link.broadcast(received, phase="features", clients=others))
    return FrozenFeatures(model.body.eval(), model.classifier.in_features)
