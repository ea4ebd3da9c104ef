"""The M client models at the server: frozen, run together, differentiable with respect to their input.

In short:
- `ensemble = FrozenEnsemble(clients)`; `ensemble.logits(x) -> [M, N, C]`, with gradients to x if x needs them, never
  to a model; `ensemble.remembered(x)`: the same in chunks, without gradients (to keep beside a pool of samples).
- `combine(logits, weights)`: A_w(x) = Σ_k w_k f_k(x) / Σ_k w_k, weights `[M]` (a client) or `[M, C]` (a client and
  class), differentiable with respect to both; `normalise=False` is the literal sum. `ensemble(x, weights=None)` does
  both; None: all alike.
- `ensemble.look(x, statistics=True)`: logits, penultimate features and the batch-norm loss of one forward pass.
- `client_weights("uniform" | "samples", sizes, like)` -> `[M]`; `class_count_weights(ctx)` -> `[M, C]`, which uploads
  C counts a client.

The models are copied once, in eval mode: what happens here leaves the clients' own as they were. Models of one
architecture run as one stack where the rule of `training.backend` says that it is faster, else one by one; several
architectures may be mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...errors import choose
from ...models.state import copied
from ...training import ClientModels, in_chunks
from ...training.backend import choose_backend
from ...training.stack import Stack
from ...training.twins import StackedBatchNorm2d
from ..context import Context
from .aggregators import weighted_averaging

WEIGHTS = ("uniform", "samples")


def client_weights(kind: str, sizes: Sequence[int], like: Tensor) -> Tensor:
    """`[M]`, summing to 1: 1/M ("uniform", FedENS) or n_k/N ("samples", DW-FedENS); device and dtype of `like`."""
    counts = sizes if choose("client weights", kind, WEIGHTS) == "samples" else [1] * len(sizes)
    weights = torch.tensor(counts, dtype=torch.float64)
    return (weights / weights.sum()).to(like.device, like.dtype)


def class_count_weights(ctx: Context) -> Tensor:
    """λ_k^c = n_k^c / Σ_j n_j^c, `[M, C]`. Clients: count one's training labels, C numbers up (int32, "class
    counts").

    A class that nobody has gets 1/M from each. Call it outside `ctx.server()`.
    """
    counts = [torch.bincount(ctx.private.train(k)[1], minlength=ctx.classes).int() for k in range(ctx.clients_count)]
    received = [ctx.link.up(k, own, phase="class counts") for k, own in enumerate(counts)]
    with ctx.server():
        return weighted_averaging(torch.stack(received)).weights().to(ctx.device, ctx.dtype)


def combine(logits: Tensor, weights: Tensor | None = None, *, normalise: bool = True) -> Tensor:
    """A_w = Σ_k w_k f_k / Σ_k w_k (Co-Boosting, Eq. 2, as its code has it): logits `[M, N, C]` -> `[N, C]`.

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
    """See the module's text. `batch_norms`: batch-norm layers of all clients together, each of them watched."""

    def __init__(self, clients: ClientModels, *, backend: str = "auto") -> None:
        self.count = len(clients)
        self.groups: list[tuple[list[int], _Loop | _Stacked]] = []
        for architecture, members in clients.groups.items():
            modules = [clients.module(k) for k in members]
            device = next(modules[0].parameters()).device.type
            way = choose_backend(backend, device, modules[0], architecture[1], len(members))
            self.groups.append((members, (_Stacked if way == "stacked" else _Loop)(modules)))
        self.batch_norms = sum(
            isinstance(layer, nn.BatchNorm2d) for module in clients.modules for layer in module.modules()
        )
        watched = sum(group.watched for _, group in self.groups)
        assert watched == self.batch_norms, f"{watched} of {self.batch_norms} batch-norm layers are watched"

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
                distance = distance + sum(group.distances)
            group.distances = None
        # One architecture: the answers are in order already, and stacking them again would only cost time.
        joined = answers if len(self.groups) == 1 and isinstance(answers, Tensor) else torch.stack(logits)
        return View(joined, features, distance / self.count)

    def logits(self, x: Tensor) -> Tensor:
        """`[M, N, C]` of `x [N, ...]`."""
        return self.look(x).logits

    def remembered(self, x: Tensor) -> Tensor:
        """`[M, N, C]` without gradients, in chunks."""
        return in_chunks(self.logits, x, dim=1)

    def __call__(self, x: Tensor, weights: Tensor | None = None, *, normalise: bool = True) -> Tensor:
        """A_w(x), `[N, C]`."""
        return combine(self.logits(x), weights, normalise=normalise)


class _Loop:
    """Models one after the other."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.modules = [copied(module).eval().requires_grad_(False) for module in modules]
        self.distances: list[Tensor] | None = None
        norms = [layer for module in self.modules for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
        for layer in norms:
            layer.register_forward_pre_hook(self._watch)
        self.watched = len(norms)

    def _watch(self, layer: nn.BatchNorm2d, inputs: tuple[Tensor]) -> None:
        if self.distances is not None:
            var, mean = torch.var_mean(inputs[0], dim=(0, 2, 3), correction=0)
            self.distances.append((mean - layer.running_mean).norm() + (var - layer.running_var).norm())

    def run(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        features = [module.features(x) for module in self.modules]
        return features, [module.classifier(own) for module, own in zip(self.modules, features, strict=True)]


class _Stacked:
    """Models of one architecture as one."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.count = len(modules)
        stack = Stack(modules)
        for leaf in stack.use(self.count).values():
            leaf.requires_grad_(False)
        self.net = stack.net.eval()
        self.distances: list[Tensor] | None = None
        for layer in stack.norms:
            layer.register_forward_pre_hook(self._watch)
        self.watched = self.count * len(stack.norms)

    def _watch(self, layer: StackedBatchNorm2d, inputs: tuple[Tensor]) -> None:
        if self.distances is not None:
            var, mean = torch.var_mean(inputs[0], dim=(1, 3, 4), correction=0)  # [M, channels]
            distances = (mean - layer.running_mean).norm(dim=1) + (var - layer.running_var).norm(dim=1)
            self.distances.append(distances.sum())

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.net.features(x.expand(self.count, *x.shape))
        return features, self.net.classifier(features)
