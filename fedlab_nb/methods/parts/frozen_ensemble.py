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

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import choose
from ...training import ClientModels, in_chunks
from ...training.backend import choose_backend
from ...training.evaluate import rows_at_once
from ..context import Context
from .frozen_groups import Group, Loop, Stacked, Wide, faster_side_by_side

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
            if len(self.groups) == 1 and isinstance(answers, Tensor):  # in order already: not taken apart, not joined
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
