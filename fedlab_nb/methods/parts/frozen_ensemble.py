"""The M client models at the server: frozen, run together, differentiable with respect to their
input.

In short:
- `ensemble = FrozenEnsemble(clients)`; `ensemble.logits(x) -> [M, N, C]`, with gradients to x if x needs them, never
  to a model; `ensemble.compute_logits_without_gradients(x)`: the same in chunks, without gradients (to keep beside a
  pool of samples).
- `combine_client_logits(logits, weights)`: f̄_w(x) = Σ_k w_k f_k(x) / Σ_k w_k, with a weight for each client `[M]`,
  for each client and class `[M, C]`, or None for equal ones; differentiable with respect to both; with
  `divide_by_weight_sum=False` the sum itself.
- `ensemble.compute_outputs(x, with_batch_norm_loss=True)`: logits, penultimate features and the
  batch-norm loss of one forward pass.
- `compute_client_shares("uniform" | "samples", sizes, like)` -> `[M]`;
  `send_class_counts_and_compute_class_shares(ctx)` -> `[M, C]`, which uploads C counts a client.

The models are copied once, in eval mode, so the clients' own models never change. Models of one
architecture run as one stack if that is faster by the rule of `training.backend`; else side by side
if `should_run_side_by_side`, or one by one. Several architectures may be mixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...errors import check_allowed_name
from ...models import Network, Normalise
from ...models.state import copy_model
from ...tensor_types import (
    ClientClassCounts,
    ClientClassShares,
    ClientLogits,
    ClientShares,
    ClientWeights,
    Images,
    Logits,
    Samples,
    ValuePerClient,
)
from ...training import ClientModels, run_in_chunks
from ...training.backend import BackendChoice, resolve_backend_choice
from ...training.evaluate import choose_samples_per_chunk
from ...training.stack import Stack, StackedLinear
from ..base import ClientWeighting
from ..context import ClientIndex, Context

JoinedChannels = (
    Tensor  # [channels] or [M, channels]: several clients' channels side by side on the last axis
)

WEIGHTS: tuple[ClientWeighting, ...] = ("uniform", "samples")


def compute_client_shares(
    weighting: ClientWeighting, client_sample_counts: Sequence[int], dtype_device_template: Tensor
) -> ClientShares:
    """`[M]`, summing to 1: 1/M ("uniform", FedENS) or n_k/N ("samples", DW-FedENS)."""
    check_allowed_name("client weights", weighting, WEIGHTS)
    counts = client_sample_counts if weighting == "samples" else [1] * len(client_sample_counts)
    weights = torch.tensor(counts, dtype=torch.float64)
    return (weights / weights.sum()).to(dtype_device_template.device, dtype_device_template.dtype)


def compute_class_shares(class_counts: ClientClassCounts) -> ClientClassShares:
    """w_kc = n_kc / Σ_j n_jc, `[M, C]`, from class counts `[M, C]`; 1/M for a class that no client
    has.
    """
    class_counts = class_counts.float()
    totals = class_counts.sum(0)
    equal = torch.full_like(class_counts, 1 / len(class_counts))
    return torch.where(totals > 0, class_counts / totals.clamp_min(1), equal)


def send_class_counts_and_compute_class_shares(
    ctx: Context, members_or_none_for_all: Sequence[ClientIndex] | None = None
) -> ClientClassShares:
    """`compute_class_shares` of the members (None: of all). Call it outside `ctx.server()`.

    Client part: count the own training labels; C numbers go up (int32, phase "class counts").
    """
    if members_or_none_for_all is None:
        members_or_none_for_all = range(ctx.clients_count)
    received = []
    for k in members_or_none_for_all:
        _, labels = ctx.private.train(k)
        counts = torch.bincount(labels, minlength=ctx.classes).int()
        received.append(ctx.link.up(k, counts, phase="class counts"))
    with ctx.server():
        return compute_class_shares(torch.stack(received)).to(ctx.device, ctx.dtype)


def combine_client_logits(
    client_logits: ClientLogits,
    client_weights_or_none_if_equal: ClientWeights | None = None,
    *,
    divide_by_weight_sum: bool = True,
) -> Logits:
    """f̄_w = Σ_k w_k f_k / Σ_k w_k (Co-Boosting, Eq. 2, as its code has it): logits `[M, N, C]` -> `[N, C]`.

    client_weights_or_none_if_equal: w `[M]`, or with a weight for each class `[M, C]`; None gives the mean
    divide_by_weight_sum: without it, the sum Σ_k w_k f_k
    """
    weights = client_weights_or_none_if_equal
    if weights is None:
        return client_logits.mean(0)
    per_class = weights if weights.dim() == 2 else weights[:, None]
    total = (per_class[:, None] * client_logits).sum(0)
    if not divide_by_weight_sum:
        return total
    return total / per_class.sum(0)


# --------------------------------------------------------------------------------------------------------------- groups
# The frozen clients of one architecture: one after the other (`LoopGroup`), as one stack
# (`StackedGroup`), or side by side (`SideBySideGroup`).
#
# `group.compute_features_and_logits(x)` reads samples `[N, ...]`: client k's features `[N, D]` and logits `[N, C]` are
# at index k.


class FeaturesAndLogits(NamedTuple):
    """Features `[m, N, D]` and logits `[m, N, C]` of m models; a list of m tensors if they run in
    turn.
    """

    features: Tensor | list[Tensor]
    logits: Tensor | list[Tensor]


class ClientGroup:
    """Models of one architecture. `distances`: None, or a list that takes L_BN's summands from
    layer to layer.
    """

    # The shape into which a batch norm's channels are split before a norm is taken of each.
    channels: tuple[int, ...] = (-1,)

    def __init__(self, norms: Iterable[nn.Module]) -> None:
        self.distances: list[Tensor] | None = None
        for layer in norms:
            layer.register_forward_pre_hook(self._append_batch_norm_distance_if_wanted)

    def compute_features_and_logits(self, samples: Samples) -> FeaturesAndLogits:
        """Features and logits of `samples [N, ...]`."""
        raise NotImplementedError

    def _append_batch_norm_distance_if_wanted(
        self, layer: nn.BatchNorm2d, inputs: tuple[Tensor]
    ) -> None:
        if self.distances is None:
            return
        # [channels] or [M, channels]
        assert layer.running_mean is not None and layer.running_var is not None
        variance, mean = torch.var_mean(inputs[0], dim=(-4, -2, -1), correction=0)
        mean_distances = self._compute_norm_over_channels_of_each_client(mean - layer.running_mean)
        variance_distances = self._compute_norm_over_channels_of_each_client(
            variance - layer.running_var
        )
        self.distances.append((mean_distances + variance_distances).sum())

    def _compute_norm_over_channels_of_each_client(
        self, joined_channels: JoinedChannels
    ) -> ValuePerClient:
        """One norm for each client's channels."""
        return joined_channels.unflatten(-1, self.channels).norm(dim=-1)


class LoopGroup(ClientGroup):
    """One after the other."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.modules = [copy_model(module).eval().requires_grad_(False) for module in modules]
        norms: list[nn.Module] = []
        for module in self.modules:
            norms += [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
        super().__init__(norms)

    def compute_features_and_logits(self, samples: Samples) -> FeaturesAndLogits:
        features = [module.features(samples) for module in self.modules]
        logits = []
        for module, client_features in zip(self.modules, features, strict=True):
            logits.append(module.classifier(client_features))
        return FeaturesAndLogits(features, logits)


def list_layers_of_nested_sequentials(body: nn.Module) -> list[nn.Module]:
    """The layers of nested Sequentials, in order; anything else counts as a layer."""
    if type(body) is not nn.Sequential:
        return [body]
    layers: list[nn.Module] = []
    for child in body:
        layers += list_layers_of_nested_sequentials(child)
    return layers


def are_all_equal_normalise_layers(layers: Sequence[nn.Module]) -> bool:
    """True if the `layers` are all the same `Normalise`."""
    normalise_layers = [layer for layer in layers if isinstance(layer, Normalise)]
    if len(normalise_layers) < len(layers):
        return False
    first = normalise_layers[0]
    same_mean = all(torch.equal(layer.mean, first.mean) for layer in normalise_layers)
    same_std = all(torch.equal(layer.std, first.std) for layer in normalise_layers)
    return same_mean and same_std


class StackedGroup(ClientGroup):
    """As one stack."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.count = len(modules)
        stack = Stack(modules)
        for leaf in stack.activate_first_models(self.count).values():
            leaf.requires_grad_(False)
        self.net: Any = stack.net.eval()
        super().__init__(stack.batch_norms)

    def compute_features_and_logits(self, samples: Samples) -> FeaturesAndLogits:
        features = self.net.features(samples.expand(self.count, *samples.shape))
        return FeaturesAndLogits(features, self.net.classifier(features))


# ---------------------------------------------------------------------------------------------------------- frozen wide
# The frozen clients of one architecture side by side: client k's maps are the k-th share of the channels.
#
# A convolution of all clients is one grouped convolution then, and pooling, ReLU and batch norm are called once, on
# maps `[N, M C, H, W]` in channels_last, in which they are fast. Linear layers are batched products.

MAP_LAYERS = nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.ReLU, nn.Identity
ROW_LAYERS = nn.Linear, nn.ReLU, nn.Identity  # after `Flatten`
# A grouped convolution is faster for networks within the first two limits, on images of more pixels.
MOST_CONVOLUTIONS = 3  # in one client's network
MOST_CHANNELS = 128  # of one convolution
FASTER_PIXELS = 16 * 16
PIECE = (
    2**20
)  # numbers in the first maps of the images that are read at once, so that they fit into the cache


class SideBySideGroup(ClientGroup):
    """`maps`: images to maps `[N, M C, H, W]`; `rows`: these, as `[M, N, C H W]`, to features `[M,
    N, D]`.
    """

    def __init__(self, modules: Sequence[Network]) -> None:
        self.count = len(modules)
        self.channels = (self.count, -1)
        clients = [copy_model(module).eval().requires_grad_(False) for module in modules]
        # [layer][client]
        layers = list(
            zip(
                *(list_layers_of_nested_sequentials(client.body) for client in clients), strict=True
            )
        )
        first_client = [client_layers[0] for client_layers in layers]
        cut = find_index_of_flatten_or_minus_one(first_client)
        start = int(isinstance(first_client[0], Normalise))
        maps = []
        for i, client_layers in enumerate(layers[:cut]):
            maps.append(merge_client_layers(client_layers, reads_images=i == start))
        rows = [merge_client_layers(client_layers) for client_layers in layers[cut + 1 :]]
        self.maps = nn.Sequential(*maps).eval()
        self.rows = nn.Sequential(*rows)
        self.classifier = merge_client_layers([client.classifier for client in clients])
        self.width = self.count * layers[start][0].out_channels
        self.norms = [layer for layer in self.maps if isinstance(layer, nn.BatchNorm2d)]
        super().__init__(self.norms)

    def compute_features_and_logits(self, samples: Samples) -> FeaturesAndLogits:
        pieces = samples.split(self.count_images_at_once(samples))
        if len(pieces) == 1:
            maps = self.maps(samples)
        else:
            maps = torch.cat([self.maps(piece) for piece in pieces])
        by_client = maps.unflatten(1, (self.count, -1)).transpose(0, 1)
        features = self.rows(by_client.flatten(2))
        return FeaturesAndLogits(features, self.classifier(features))

    def count_images_at_once(self, images: Images) -> int:
        """Count the images that are read at once: all of them if L_BN needs statistics of the whole
        batch.
        """
        if self.distances is not None and self.norms:
            return len(images)
        return max(8, PIECE // (self.width * prod(images.shape[-2:])))


def should_run_side_by_side(modules: Sequence[Network]) -> bool:
    """Whether `modules`, all of one architecture, can run side by side, and are faster then.

    They can if they are Sequentials of MAP_LAYERS, from a convolution to `Flatten`, and then of
    ROW_LAYERS. An equal `Normalise` may come first. It is faster on large images with few
    convolutions: 1.2-2 times for `cnn`, `lenet5`, `cnn2`, `cnn3`. Small maps of many channels are
    slow when grouped: 1.0-1.1 times for `vgg9`, 0.5 for `vgg11`.
    """
    first = modules[0]
    if len(modules) == 1 or type(first).features is not Network.features:
        return False
    if (
        len(
            {tuple(map(type, list_layers_of_nested_sequentials(module.body))) for module in modules}
        )
        > 1
    ):
        return False
    layers = list_layers_of_nested_sequentials(first.body)
    if are_all_equal_normalise_layers(
        [list_layers_of_nested_sequentials(module.body)[0] for module in modules]
    ):
        layers = layers[1:]
    cut = find_index_of_flatten_or_minus_one(layers)
    if not 0 < cut < len(layers) or not isinstance(layers[0], nn.Conv2d):
        return False
    for layer in layers[:cut]:
        if type(layer) not in MAP_LAYERS or not can_merge_layer(layer):
            return False
    if any(type(layer) not in ROW_LAYERS for layer in (*layers[cut + 1 :], first.classifier)):
        return False
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    if len(convolutions) > MOST_CONVOLUTIONS:
        return False
    if any(layer.out_channels > MOST_CHANNELS for layer in convolutions):
        return False
    sides = first.architecture[1][-2:]
    return prod(sides) > FASTER_PIXELS


def find_index_of_flatten_or_minus_one(layers: Sequence[nn.Module]) -> int:
    """The index of the first `Flatten(1)`, -1 if there is none."""
    for i, layer in enumerate(layers):
        if type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) == (1, -1):
            return i
    return -1


def can_merge_layer(layer: nn.Module) -> bool:
    """Whether a layer can be merged: it has no groups and no unusual padding, and batch norm has
    scale and statistics.
    """
    if isinstance(layer, nn.Conv2d):
        return layer.groups == 1 and layer.padding_mode == "zeros"
    return not isinstance(layer, nn.BatchNorm2d) or (layer.affine and layer.track_running_stats)


def merge_client_layers(
    client_layers: Sequence[nn.Module], *, reads_images: bool = False
) -> nn.Module:
    """One layer that does what each client's layer does.

    `reads_images`: all clients read the same channels, those of the images.
    """
    layers: Sequence[Any] = client_layers
    first = layers[0]
    if isinstance(first, nn.Linear):
        return _stack_linear_layers(layers)
    if isinstance(first, nn.Conv2d):
        merged: Any = _make_unfilled_convolution(first, len(layers), reads_images)
    elif isinstance(first, nn.BatchNorm2d):
        merged = nn.BatchNorm2d(len(layers) * first.num_features, first.eps, device="meta")
        merged.running_mean = torch.cat([layer.running_mean for layer in layers])
        merged.running_var = torch.cat([layer.running_var for layer in layers])
    else:
        return first
    for name, parameter in first.named_parameters():
        values = torch.cat([getattr(layer, name) for layer in layers])
        if parameter.dim() == 4:
            # The maps follow the weights' layout; only `clone` fixes it if there is a single channel.
            values = values.clone(memory_format=torch.channels_last)
        setattr(merged, name, nn.Parameter(values, requires_grad=False))
    return merged


def _stack_linear_layers(layers: Sequence[nn.Linear]) -> StackedLinear:
    merged: Any = StackedLinear()
    merged.weight = torch.stack([layer.weight.t() for layer in layers]).transpose(1, 2)
    merged.bias = None
    if layers[0].bias is not None:
        merged.bias = torch.stack([layer.bias for layer in layers])
    return merged


def _make_unfilled_convolution(
    layer: nn.Conv2d, client_count: int, reads_images: bool
) -> nn.Conv2d:
    """A convolution for `client_count` clients' layers like `layer`, without weights yet."""
    inputs = layer.in_channels
    groups = 1
    if not reads_images:
        inputs = client_count * layer.in_channels
        groups = client_count
    shape: Any = {
        "kernel_size": layer.kernel_size,
        "stride": layer.stride,
        "padding": layer.padding,
        "dilation": layer.dilation,
    }
    has_bias = layer.bias is not None
    outputs = client_count * layer.out_channels
    return nn.Conv2d(inputs, outputs, **shape, groups=groups, bias=has_bias, device="meta")


# ------------------------------------------------------------------------------------------------------------- ensemble
@dataclass
class LogitsFeaturesAndBatchNormLoss:
    """One forward pass. `features`: client k's penultimate layer `[N, D_k]` at k; `batch_norm`:
    L_BN, a scalar.
    """

    logits: Tensor
    features: Tensor | list[Tensor]
    batch_norm: Tensor


class FrozenEnsemble:
    """The M client models, frozen; see the module's docstring."""

    def __init__(self, clients: ClientModels, *, backend: BackendChoice = "auto") -> None:
        self.count = len(clients)
        self._kinds = [
            clients.module(members[0]) for members in clients.clients_by_architecture.values()
        ]
        self.groups: list[tuple[list[int], ClientGroup]] = []
        for architecture, members in clients.clients_by_architecture.items():
            modules = [clients.module(k) for k in members]
            device = next(modules[0].parameters()).device.type
            chosen_backend = resolve_backend_choice(
                backend, device, modules[0], architecture[1], len(members)
            )
            group: ClientGroup
            if chosen_backend == "stacked":
                group = StackedGroup(modules)
            elif (
                backend == "auto" and chosen_backend == "loop" and should_run_side_by_side(modules)
            ):
                group = SideBySideGroup(modules)
            else:
                group = LoopGroup(modules)
            self.groups.append((members, group))

    def compute_outputs(
        self, samples: Samples, *, with_batch_norm_loss: bool = False
    ) -> LogitsFeaturesAndBatchNormLoss:
        """All clients on `samples [N, ...]`.

        `with_batch_norm_loss`: also DENSE's L_BN = (1/M) Σ_k Σ_l (‖μ_kl(x) - μ_kl‖₂ + ‖σ²_kl(x) -
          σ²_kl‖₂), where μ_kl(x) and
        σ²_kl(x) are mean and biased variance, over batch and space, of what layer l of client k reads, and μ_kl,
        σ²_kl its running statistics. 0 without batch norm, or when not asked for.
        """
        logits: list[Tensor] = [samples] * self.count
        features: list[Tensor] = [samples] * self.count
        distance = samples.new_zeros(())
        for members, group in self.groups:
            group.distances = [] if with_batch_norm_loss else None
            group_features, group_logits = group.compute_features_and_logits(samples)
            if with_batch_norm_loss:
                distance = distance + sum(group.distances or ())
            group.distances = None
            if len(self.groups) == 1 and isinstance(group_logits, Tensor):
                # All clients, in order already.
                return LogitsFeaturesAndBatchNormLoss(
                    group_logits, group_features, distance / self.count
                )
            for i, k in enumerate(members):
                features[k] = group_features[i]
                logits[k] = group_logits[i]
        return LogitsFeaturesAndBatchNormLoss(torch.stack(logits), features, distance / self.count)

    def logits(self, samples: Samples) -> ClientLogits:
        """`[M, N, C]` of `samples [N, ...]`."""
        return self.compute_outputs(samples).logits

    def compute_logits_without_gradients(self, samples: Samples) -> ClientLogits:
        """`[M, N, C]` without gradients, in chunks: to be kept beside the samples."""
        chunk = min(choose_samples_per_chunk(network, samples) for network in self._kinds)
        return run_in_chunks(self.logits, samples, sample_axis_of_result=1, samples_per_chunk=chunk)
