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
architecture run as one stack where the rule of `training.backend` says that it is faster, else one by one; several
architectures may be mixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import choose
from ...models import Network
from ...models.image_conv import LARGE, ImageConv2d
from ...models.state import copied
from ...training import ClientModels, in_chunks
from ...training.backend import choose_backend
from ...training.evaluate import rows_at_once
from ...training.kernels.stack import Stack
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
    return torch.where(totals > 0, counts / totals.clamp_min(1), torch.full_like(counts, 1 / len(counts)))


def class_count_weights(ctx: Context, members: Sequence[int] | None = None) -> Tensor:
    """`class_shares` of the members (None: of all). Clients: count one's training labels, C numbers up (int32, "class
    counts"). Call it outside `ctx.server()`.
    """
    members = range(ctx.clients_count) if members is None else members
    counts = {k: torch.bincount(ctx.private.train(k)[1], minlength=ctx.classes).int() for k in members}
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


@dataclass
class View:
    """One forward pass. `features`: client k's penultimate layer `[N, D_k]` at k; `batch_norm`: L_BN, a scalar."""

    logits: Tensor
    features: list[Tensor]
    batch_norm: Tensor


class FrozenEnsemble:
    """See the module's text."""

    def __init__(self, clients: ClientModels, *, backend: str = "auto") -> None:
        self.count = len(clients)
        self._kinds = [clients.module(members[0]) for members in clients.groups.values()]
        self.groups: list[tuple[list[int], _Loop | _Stacked]] = []
        for architecture, members in clients.groups.items():
            modules = [clients.module(k) for k in members]
            device = next(modules[0].parameters()).device.type
            way = choose_backend(backend, device, modules[0], architecture[1], len(members))
            self.groups.append((members, (_Stacked if way == "stacked" else _Loop)(modules)))

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
            for k, own, answer in zip(members, seen, answers, strict=True):
                features[k], logits[k] = own, answer
            if statistics:
                distance = distance + sum(group.distances or ())
            group.distances = None
        # One architecture: the answers are in order already, and stacking them again would only cost time.
        joined = answers if len(self.groups) == 1 and isinstance(answers, Tensor) else torch.stack(logits)
        return View(joined, features, distance / self.count)

    def logits(self, x: Tensor) -> Tensor:
        """`[M, N, C]` of `x [N, ...]`."""
        return self.look(x).logits

    def remembered(self, x: Tensor) -> Tensor:
        """`[M, N, C]` without gradients, in chunks."""
        chunk = min(rows_at_once(network, x) for network in self._kinds)
        return in_chunks(self.logits, x, dim=1, chunk=chunk)


class _Group:
    """Models of one architecture. `distances`: None, or a list that takes L_BN's summands from layer to layer."""

    def __init__(self, norms: Iterable[nn.Module]) -> None:
        self.distances: list[Tensor] | None = None
        for layer in norms:
            layer.register_forward_pre_hook(self._watch)

    def _watch(self, layer: Any, inputs: tuple[Tensor]) -> None:
        if self.distances is not None:
            var, mean = torch.var_mean(inputs[0], dim=(-4, -2, -1), correction=0)  # [channels] or [M, channels]
            distances = (mean - layer.running_mean).norm(dim=-1) + (var - layer.running_var).norm(dim=-1)
            self.distances.append(distances.sum())


class _Loop(_Group):
    """One after the other; all first convolutions as one where they read the images themselves."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.modules = [copied(module).eval().requires_grad_(False) for module in modules]
        self.first, self.rest = joined_first(self.modules)
        norms = [layer for module in self.modules for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
        super().__init__(norms)

    def run(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        if self.first is None:
            features = [module.features(x) for module in self.modules]
        else:
            read = self.first(x).chunk(len(self.modules), 1)
            features = [rest(own) for rest, own in zip(self.rest, read, strict=True)]
        return features, [module.classifier(own) for module, own in zip(self.modules, features, strict=True)]


def joined_first(modules: Sequence[Network]) -> tuple[nn.Module | None, list[nn.Module]]:
    """One convolution that makes the first maps of all `modules`, and each one's layers above it.

    The gradient with respect to the images is one matrix product then, not M (`models.image_conv`). None and nothing
    where a first block begins otherwise, where features are more than the body's, where images are small, and where M
    is 1.
    """
    blocks: list[Any] = [module.body[0] for module in modules]
    first: list[Any] = [block[0] if isinstance(block, nn.Sequential) else None for block in blocks]
    large = prod(modules[0].architecture[1][-2:]) > LARGE
    plain = all(type(module).features is Network.features for module in modules)
    if len(modules) == 1 or not large or not plain or not all(isinstance(layer, ImageConv2d) for layer in first):
        return None, []
    one = first[0]
    size = (one.in_channels, len(first) * one.out_channels, one.kernel_size, one.stride, one.padding)
    joined = ImageConv2d(*size, bias=one.bias is not None, device="meta")
    for name in ("weight",) if one.bias is None else ("weight", "bias"):
        setattr(joined, name, nn.Parameter(torch.cat([getattr(own, name) for own in first]), requires_grad=False))
    return joined, [nn.Sequential(*block[1:], *own.body[1:]) for block, own in zip(blocks, modules, strict=True)]


class _Stacked(_Group):
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
