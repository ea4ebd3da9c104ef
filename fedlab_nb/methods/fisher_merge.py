"""Fisher merging: average the weights, each number by how sure its client is of it (Matena & Raffel, NeurIPS 2022).

Around its trained weights θ_k a client's posterior is taken as a Gaussian with a diagonal precision, the empirical
Fisher F_k (mean squared gradient of one sample's loss). The product of the Gaussians has its mean at

    θ̄ = Σ_k w_k (F_k + λ) θ_k / Σ_k w_k (F_k + λ),          element by element.

It is the "DiagonalFisher" baseline of FedLPA's paper, and FedLPA with the precision's diagonal alone. λ, the prior,
decides where nobody's data speak: there, and everywhere for λ → ∞, it is the weighted average. Traffic of one client:
4d down, 2·4d up.

Departures: w_k = n_k/N, as everywhere here; the paper's formula has weights that one may choose. FedLPA's paper gives
no λ. Batch norm's running statistics have no Fisher and are averaged with w_k.

Findings (digits, mlp, 5 clients, alpha = 0.1, test accuracy, seeds 0-2): 51 where averaging has 37 and FedLPA 87; with
λ = 1e-3 39. With different initial models 29, 15 and 88: a diagonal cannot know that two networks order their units
differently. With the cnn and ten clients (seeds 0-5) 27 where averaging has 13, FedLPA 33 and RegMean 44, but from 12
to 42: after 40 epochs a client fits its own few classes, and half of its Fisher's entries are below 1e-8 (dead units:
0). Another λ does not help (a validation part, two partitions: 9 to 16, whatever λ from 1e-12 to 0.1).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from ..training import ClientModels
from .base import GlobalModel, Method, NetworkModel, Progress, knob, register, weighted_mean
from .context import Context
from .parts.fisher import diagonal_fisher


@register(
    "fisher_merge",
    title="Fisher merging",
    paper="Matena & Raffel, NeurIPS 2022",
    rounds="one-shot",
    traffic="3 S_θ",
    needs=["one architecture"],
    extra="one more pass over the training data",
    leaks="each client's model, its mean squared gradients and sample count",
)
@dataclass(frozen=True)
class FisherMerge(Method):
    """Average the weights, each number by how sure its client is of it."""

    damping: float = knob(
        1e-6,
        "Damping",
        "Prior precision, added to every number's Fisher. Large: plain averaging.",
        symbol="λ",
        low=1e-12,
        high=1e3,
        log=True,
    )

    paper_model = "mlp"  # FedLPA, Tables 6 and 7

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        # Clients: train alone; one more pass for the Fisher diagonal; upload both.
        clients: ClientModels = yield from ctx.local_training()
        received = []
        for k in range(ctx.clients_count):
            upload = {"state": clients.state(k), "fisher": diagonal_fisher(clients.module(k), *ctx.private.train(k))}
            received.append(ctx.link.up(k, upload, phase="models and Fisher diagonals"))
            yield Progress("Fisher pass", k + 1, ctx.clients_count)
        # Server: the weighted average, number by number.
        with ctx.server():
            states, fishers = ([r[part] for r in received] for part in ("state", "fisher"))
            return NetworkModel(ctx.new_model(merge(states, fishers, ctx.sizes, self.damping)))


def merge(
    states: Sequence[Mapping[str, Tensor]],
    fishers: Sequence[Mapping[str, Tensor]],
    weights: Sequence[float],
    damping: float,
) -> dict[str, Tensor]:
    """θ̄ from the clients' states and Fisher diagonals (by parameter); entries without one are averaged."""
    merged = weighted_mean(states, weights)
    for name in fishers[0]:
        trust = [w / sum(weights) * (fisher[name] + damping) for w, fisher in zip(weights, fishers, strict=True)]
        merged[name] = sum(t * state[name] for t, state in zip(trust, states, strict=True)) / sum(trust)
    return merged
