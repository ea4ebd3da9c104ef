"""What the aggregator is trained on: each client's proxy samples, as the frozen ensemble sees them.

The client models are frozen, so client i computes its logits `Z_i [n_i, M, C]` once and no image is touched again (but
for a gate, which reads them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...errors import choose, demand
from ..context import Context
from .model import Experts

Owner = Any  # of a proxy: a client's number, or "server"
PROXIES = ("held-out", "reused", "reused-equal", "server")
# In proportion to the samples used in the round; every client the same, as in the paper's pseudo-code.
CLIENT_WEIGHTS = ("samples", "uniform")


class Proxy(NamedTuple):
    """What one client trains on: cached logits `[n, M, C]`, labels `[n]`, and the inputs where a gate reads them."""

    logits: Tensor
    labels: Tensor
    inputs: Tensor | None = None

    def rows(self, chosen: Tensor | slice) -> Proxy:
        x = self.inputs
        return Proxy(self.logits[chosen], self.labels[chosen], None if x is None else x[chosen])

    @classmethod
    def joined(cls, proxies: Sequence[Proxy]) -> Proxy:
        """The samples of all, one after the other."""
        z, y, x = zip(*proxies, strict=True)
        return cls(torch.cat(z), torch.cat(y), None if x[0] is None else torch.cat(x))


def own_samples(ctx: Context, k: int, source: str) -> tuple[Tensor, Tensor]:
    """Client k's own samples for the aggregator: `source` is one of PROXIES."""
    if source in ("held-out", "server"):
        return ctx.private.held_out(k)
    x, y = ctx.private.train(k)
    if source == "reused":
        return x, y
    order = torch.randperm(len(y), generator=ctx.generator("fens", "proxy", k)).to(y.device)
    chosen = order[: ctx.private.sizes("held_out")[k]]
    return x[chosen], y[chosen]


def cached_logits(ctx: Context, experts: Experts, source: str, inputs: bool = False) -> dict[Owner, Proxy]:
    """{client: its proxy}; or {"server": one of samples that the members send up for it}. inputs: keep those too"""
    members = experts.members
    sets: dict[Owner, tuple[Tensor, ...]] = {k: own_samples(ctx, k, source) for k in members}
    if source == "server":
        sent = [ctx.link.up(k, own, phase="labelled set") for k, own in sets.items()]
        sets = {"server": tuple(torch.cat(part) for part in zip(*sent, strict=True))}
    empty = 0, len(members), ctx.classes
    return {
        owner: Proxy(experts.fresh(x) if len(y) else x.new_zeros(empty), y, x if inputs else None)
        for owner, (x, y) in sets.items()
    }


def draw_batches(proxy: Proxy, batch: int, steps: int, generator: torch.Generator) -> Tensor:
    """Indices of `steps` successive mini-batches of n samples, `[steps, min(n, batch)]`.

    Shuffled passes over the samples, an incomplete last batch dropped; a client with no more than `batch` samples
    uses them all, in order, every time. A longer plan begins with the batches of a shorter one.
    """
    samples, device = len(proxy.labels), proxy.labels.device
    if samples <= batch:
        return torch.arange(samples, device=device).expand(steps, samples)
    a_pass = samples // batch
    passes = [torch.randperm(samples, generator=generator)[: a_pass * batch] for _ in range(-(-steps // a_pass))]
    return torch.cat(passes).view(-1, batch)[:steps].to(device)


def client_weights(proxies: Mapping[Owner, Proxy], batch: int, kind: str) -> dict[Owner, float]:
    """w_i of those with proxy samples, summing to 1. UsageError if nobody has any."""
    choose("client weighting", kind, CLIENT_WEIGHTS)
    most = batch if kind == "samples" else 1
    used = {i: min(len(proxy.labels), most) for i, proxy in proxies.items() if len(proxy.labels)}
    demand(
        used, "No client has a proxy sample, so the aggregator cannot be trained; hold out a larger part of the data."
    )
    return {i: n / sum(used.values()) for i, n in used.items()}
