"""The M client models at the server: frozen, run together, differentiable with respect to their input.

In short:
- `ensemble = FrozenEnsemble(clients)`; `ensemble.logits(x) -> [M, N, C]`, with gradients to x if x needs them, never
  to a model; `ensemble.remembered(x)`: the same in chunks, without gradients (to keep beside a pool of samples).
- `combine(logits, weights)`: f̄_w(x) = Σ_k w_k f_k(x) / Σ_k w_k, weights `[M]` (a client) or `[M, C]` (a client and
  class; None: all alike), differentiable with respect to both; `normalise=False` is the literal sum.
- `ensemble.look(x, statistics=True)`: logits, penultimate features and the batch-norm loss of one forward pass.
- `client_weights("uniform" | "samples", sizes, like)` -> `[M]`; `class_count_weights(ctx)` -> `[M, C]`, which uploads
  C counts a client.

The models are copied once, in eval mode: what happens here leaves the clients' own as they were. Models of one
architecture run as one stack where the rule of `training.backend` says that it is faster; else side by side where
`faster_side_by_side` says so, or one by one. Several architectures may be mixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import choose
from ...models import Network, Normalise
from ...models.state import copy_model
from ...training import ClientModels, in_chunks
from ...training.backend import choose_backend
from ...training.evaluate import rows_at_once
from ...training.stack import Stack, StackedLinear
from ..context import Context

WEIGHTS = ("uniform", "samples")


def client_weights(kind: str, sizes: Sequence[int], like: Tensor) -> Tensor:
    """`[M]`, summing to 1: 1/M ("uniform", FedENS) or n_k/N ("samples", DW-FedENS); device and dtype of `like`."""
    counts = sizes if choose("client weights", kind, WEIGHTS) == "samples" else [1] * len(sizes)
    weights = torch.tensor(counts, dtype=torch.float64)
    return (weights / weights.sum()).to(like.device, like.dtype)


def class_shares(counts: Tensor) -> Tensor:
    """w_kc = n_kc / Σ_j n_jc, `[M, C]`, from class counts `[M, C]`; a class that nobody has gets 1/M from each."""
    counts = counts.float()
    totals = counts.sum(0)
    return torch.where(
        totals > 0, counts / totals.clamp_min(1), torch.full_like(counts, 1 / len(counts))
    )


def class_count_weights(ctx: Context, members: Sequence[int] | None = None) -> Tensor:
    """`class_shares` of the members (None: of all). Clients: count one's training labels, C numbers up (int32, "class
    counts"). Call it outside `ctx.server()`.
    """
    members = range(ctx.clients_count) if members is None else members
    counts = {
        k: torch.bincount(ctx.private.train(k)[1], minlength=ctx.classes).int() for k in members
    }
    received = [ctx.link.up(k, own, phase="class counts") for k, own in counts.items()]
    with ctx.server():
        return class_shares(torch.stack(received)).to(ctx.device, ctx.dtype)


def combine(logits: Tensor, weights: Tensor | None = None, *, normalise: bool = True) -> Tensor:
    """f̄_w = Σ_k w_k f_k / Σ_k w_k (Co-Boosting, Eq. 2, as its code has it): logits `[M, N, C]` -> `[N, C]`.

    weights: `[M]`, `[M, C]`, or None for the mean. normalise=False: no division.
    """
    if weights is None:
        return logits.mean(0)
    per_class = weights if weights.dim() == 2 else weights[:, None]
    total = (per_class[:, None] * logits).sum(0)
    return total / per_class.sum(0) if normalise else total


# --------------------------------------------------------------------------------------------------------------- groups
# The frozen clients of one architecture: one after the other (`Loop`), as one stack (`Stacked`), side by side (`Wide`).
#
# `group.run(x)` of samples `[N, ...]` gives features and logits: client k's `[N, D]` and `[N, C]` at k.


class Group:
    """Models of one architecture. `distances`: None, or a list that takes L_BN's summands from layer to layer."""

    channels: tuple[int, ...] = (
        -1,
    )  # into what a batch norm's channels are split before a norm is taken of each

    def __init__(self, norms: Iterable[nn.Module]) -> None:
        self.distances: list[Tensor] | None = None
        for layer in norms:
            layer.register_forward_pre_hook(self._watch)

    def run(self, x: Tensor) -> tuple[Any, Any]:
        """Features and logits of `x [N, ...]`."""
        raise NotImplementedError

    def _watch(self, layer: Any, inputs: tuple[Tensor]) -> None:
        if self.distances is not None:
            var, mean = torch.var_mean(
                inputs[0], dim=(-4, -2, -1), correction=0
            )  # [channels] or [M, channels]
            apart = mean - layer.running_mean, var - layer.running_var
            self.distances.append(
                sum(own.unflatten(-1, self.channels).norm(dim=-1) for own in apart).sum()
            )


class Loop(Group):
    """One after the other."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.modules = [copy_model(module).eval().requires_grad_(False) for module in modules]
        norms = [
            layer
            for module in self.modules
            for layer in module.modules()
            if isinstance(layer, nn.BatchNorm2d)
        ]
        super().__init__(norms)

    def run(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        features = [module.features(x) for module in self.modules]
        return features, [
            module.classifier(own) for module, own in zip(self.modules, features, strict=True)
        ]


def leaves(body: nn.Module) -> list[Any]:
    """The layers of nested Sequentials, in order; anything else counts as a layer."""
    return (
        [leaf for child in body for leaf in leaves(child)]
        if type(body) is nn.Sequential
        else [body]
    )


def scaled_alike(first: Sequence[Any]) -> bool:
    """Whether the layers `first` are one and the same `Normalise`."""
    if not all(isinstance(layer, Normalise) for layer in first):
        return False
    return all(
        torch.equal(own.mean, first[0].mean) and torch.equal(own.std, first[0].std) for own in first
    )


class Stacked(Group):
    """As one."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.count, stack = len(modules), Stack(modules)
        for leaf in stack.use(self.count).values():
            leaf.requires_grad_(False)
        self.net: Any = stack.net.eval()
        super().__init__(stack.norms)

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.net.features(x.expand(self.count, *x.shape))
        return features, self.net.classifier(features)


# ---------------------------------------------------------------------------------------------------------- frozen wide
# The frozen clients of one architecture side by side: client k's maps are the k-th share of the channels.
#
# A convolution of all clients is one grouped convolution then, and pooling, ReLU and batch norm are called once, on
# maps `[N, M C, H, W]` in channels_last, in which they are fast. Linear layers are batched products.

MAPS = nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.ReLU, nn.Identity
ROWS = nn.Linear, nn.ReLU, nn.Identity  # layers after `Flatten`
CONVOLUTIONS, CHANNELS = 3, 128  # at most, of one client
LARGE = 16 * 16  # pixels of an image, above which it is faster
PIECE = (
    2**20
)  # numbers in the first maps of as many images as are read at once: more would leave the cache


class Wide(Group):
    """`maps`: images to maps `[N, M C, H, W]`; `rows`: these, as `[M, N, C H W]`, to features `[M, N, D]`."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.count = len(modules)
        self.channels = (self.count, -1)
        clients = [copy_model(module).eval().requires_grad_(False) for module in modules]
        layers = list(zip(*(leaves(client.body) for client in clients), strict=True))
        cut = flattening(layer for layer, *_ in layers)
        start = int(isinstance(layers[0][0], Normalise))
        self.maps = nn.Sequential(
            *(beside(own, shared=i == start) for i, own in enumerate(layers[:cut]))
        ).eval()
        self.rows = nn.Sequential(*(beside(own) for own in layers[cut + 1 :]))
        self.classifier = beside([client.classifier for client in clients])
        self.width = self.count * layers[start][0].out_channels
        self.norms = [layer for layer in self.maps if isinstance(layer, nn.BatchNorm2d)]
        super().__init__(self.norms)

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        pieces = x.split(self.at_once(x))
        maps = (
            self.maps(x) if len(pieces) == 1 else torch.cat([self.maps(piece) for piece in pieces])
        )
        features = self.rows(maps.unflatten(1, (self.count, -1)).transpose(0, 1).flatten(2))
        return features, self.classifier(features)

    def at_once(self, x: Tensor) -> int:
        """How many images are read at once: all where L_BN wants statistics of the whole batch."""
        if self.distances is not None and self.norms:
            return len(x)
        return max(8, PIECE // (self.width * prod(x.shape[-2:])))


def faster_side_by_side(modules: Sequence[Network]) -> bool:
    """Whether `modules`, of one architecture, can run side by side, and are faster so.

    They can if they are Sequentials of the layers of MAPS, from a convolution to `Flatten`, and then of ROWS; before
    them, one `Normalise` for all. It is faster on large images with few convolutions: 1.2-2 times for `cnn`, `lenet5`,
    `cnn2`, `cnn3`. Small maps of many channels are slow when grouped: 1.0-1.1 times for `vgg9`, 0.5 for `vgg11`.
    """
    one, alike = modules[0], scaled_alike([leaves(module.body)[0] for module in modules])
    layers = leaves(one.body)[int(alike) :]
    cut = flattening(layers)
    same = len({tuple(map(type, leaves(module.body))) for module in modules}) == 1
    if (
        len(modules) == 1
        or not same
        or type(one).features is not Network.features
        or not 0 < cut < len(layers)
    ):
        return False
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    few = len(convolutions) <= CONVOLUTIONS and all(
        layer.out_channels <= CHANNELS for layer in convolutions
    )
    large = prod(one.architecture[1][-2:]) > LARGE
    known = all(type(layer) in MAPS and plain(layer) for layer in layers[:cut])
    linear = all(type(layer) in ROWS for layer in (*layers[cut + 1 :], one.classifier))
    return known and linear and few and large and isinstance(layers[0], nn.Conv2d)


def flattening(layers: Iterable[nn.Module]) -> int:
    """The place of the first `Flatten(1)`, -1 if there is none."""
    places = (
        i
        for i, own in enumerate(layers)
        if type(own) is nn.Flatten and (own.start_dim, own.end_dim) == (1, -1)
    )
    return next(places, -1)


def plain(layer: Any) -> bool:
    """No groups, no rare padding, no batch norm without scale or statistics."""
    if isinstance(layer, nn.Conv2d):
        return layer.groups == 1 and layer.padding_mode == "zeros"
    return not isinstance(layer, nn.BatchNorm2d) or (layer.affine and layer.track_running_stats)


def beside(own: Sequence[Any], *, shared: bool = False) -> Any:
    """One layer that does what each client's `own` does. `shared`: all read the same channels, those of the images."""
    one, count = own[0], len(own)
    made: Any
    if isinstance(one, nn.Linear):
        made = StackedLinear()
        made.weight = torch.stack([layer.weight.t() for layer in own]).transpose(1, 2)
        made.bias = None if one.bias is None else torch.stack([layer.bias for layer in own])
        return made
    if isinstance(one, nn.Conv2d):
        inputs, groups = (one.in_channels, 1) if shared else (count * one.in_channels, count)
        size: Any = (
            inputs,
            count * one.out_channels,
            one.kernel_size,
            one.stride,
            one.padding,
            one.dilation,
        )
        made = nn.Conv2d(*size, groups, one.bias is not None, device="meta")  # type: ignore[call-arg,misc]
    elif isinstance(one, nn.BatchNorm2d):
        made = nn.BatchNorm2d(count * one.num_features, one.eps, device="meta")
        for name in ("running_mean", "running_var"):
            setattr(made, name, torch.cat([getattr(layer, name) for layer in own]))
    else:
        return one
    for name, parameter in one.named_parameters():
        joined = torch.cat([getattr(layer, name) for layer in own])
        if (
            parameter.dim() == 4
        ):  # `clone` makes the layout known for single channels too, and maps follow the weights
            joined = joined.clone(memory_format=torch.channels_last)
        setattr(made, name, nn.Parameter(joined, requires_grad=False))
    return made


# ------------------------------------------------------------------------------------------------------------- ensemble
@dataclass
class View:
    """One forward pass. `features`: client k's penultimate layer `[N, D_k]` at k; `batch_norm`: L_BN, a scalar."""

    logits: Tensor
    features: Tensor | list[Tensor]
    batch_norm: Tensor


class FrozenEnsemble:
    """See the module's text."""

    def __init__(self, clients: ClientModels, *, backend: str = "auto") -> None:
        self.count = len(clients)
        self._kinds = [clients.module(members[0]) for members in clients.groups.values()]
        self.groups: list[tuple[list[int], Group]] = []
        for architecture, members in clients.groups.items():
            modules = [clients.module(k) for k in members]
            device = next(modules[0].parameters()).device.type
            way = choose_backend(backend, device, modules[0], architecture[1], len(members))
            made: type[Group] = Stacked if way == "stacked" else Loop
            if backend == "auto" and way == "loop" and faster_side_by_side(modules):
                made = Wide
            self.groups.append((members, made(modules)))

    def look(self, x: Tensor, *, statistics: bool = False) -> View:
        """All clients on `x [N, ...]`.

        `statistics`: also DENSE's L_BN = (1/M) Σ_k Σ_l (‖μ_kl(x) - μ_kl‖₂ + ‖σ²_kl(x) - σ²_kl‖₂), where μ_kl(x) and
        σ²_kl(x) are mean and biased variance, over batch and space, of what layer l of client k reads, and μ_kl,
        σ²_kl its running statistics. 0 without batch norm, or when not asked for.
        """
        logits: list[Tensor] = [x] * self.count
        features: list[Tensor] = [x] * self.count
        distance = x.new_zeros(())
        for members, group in self.groups:
            group.distances = [] if statistics else None
            seen, answers = group.run(x)
            if statistics:
                distance = distance + sum(group.distances or ())
            group.distances = None
            if len(self.groups) == 1 and isinstance(
                answers, Tensor
            ):  # in order already: not taken apart, not joined
                return View(answers, seen, distance / self.count)
            for k, own, answer in zip(members, seen, answers, strict=True):
                features[k], logits[k] = own, answer
        return View(torch.stack(logits), features, distance / self.count)

    def logits(self, x: Tensor) -> Tensor:
        """`[M, N, C]` of `x [N, ...]`."""
        return self.look(x).logits

    def remembered(self, x: Tensor) -> Tensor:
        """`[M, N, C]` without gradients, in chunks."""
        chunk = min(rows_at_once(network, x) for network in self._kinds)
        return in_chunks(self.logits, x, dim=1, chunk=chunk)
