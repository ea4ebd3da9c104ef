"""MOON (Li et al., CVPR 2021): local features are drawn to the global model's and off the client's own previous ones.

Client k minimises, over its samples x with label y,

    CE(y, h_θ(x)) - λ_con log( e^{sim(z, z_glob)/τ} / (e^{sim(z, z_glob)/τ} + e^{sim(z, z_prev)/τ}) )

where z are the features of the model in training, z_glob those of θ_t as it was received, z_prev those of the
client's model at the end of its previous round, and sim the cosine. The server averages as FedAvg does. z_glob and
z_prev come from frozen models (in eval mode), of the images as they are, so a client computes both once a round.

Departures: the features are the penultimate layer's; the paper adds a two-layer projection head, which would be
another architecture. In a client's first round it has no previous model; with z_prev = z_glob the term is the constant
λ_con log 2 without gradient, so round 1 is FedAvg and the term is left out. No public data is needed, though Fed-ET's
table of properties says so.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.loop import Loss
from .base import Context, GlobalModel, Steps, knob, register, weighted_mean
from .parts.rounds import ROUNDS, Iterative, Rounds


@register("moon", **ROUNDS, title="MOON", paper="Li et al., CVPR 2021")
class Moon(Iterative):
    """FedAvg with a contrastive loss between local, global and previous features."""

    mu: float = knob(0.1, "Contrast", symbol="λ_con", low=0, high=100)
    temperature: float = knob(0.5, "Temperature", symbol="τ", low=0.01, high=10, log=True)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        state, before = rounds.start, set[int]()
        for t in range(self.rounds):
            # Clients: E epochs from θ_t, between the global features and their own of last time.
            chosen = rounds.choose(t)
            known = before.intersection(chosen)  # who have trained before
            previous = rounds.features() if known else []
            rounds.load(rounds.down(state))
            if known:
                of_global = rounds.features()
                old = [
                    z if k in known else zg
                    for k, z, zg in zip(chosen, previous, of_global, strict=True)
                ]
                pairs = [
                    torch.stack(pair, 1) for pair in zip(of_global, old, strict=True)
                ]  # [n_k, 2, D]
                shards = [(*rounds.shards[k], pair) for k, pair in zip(chosen, pairs, strict=True)]
                yield from rounds.train(t, shards, loss=contrastive(self.mu, self.temperature))
            else:
                yield from rounds.train(t)
            before.update(chosen)
            received = rounds.up(rounds.states())
            # Server: the weighted average.
            with ctx.server():
                state = weighted_mean(received, rounds.sizes)
            yield rounds.end(t, state)
        return rounds.result


def contrastive(mu: float, temperature: float) -> Loss:
    """CE + λ_con · the cross-entropy of z_glob over z_prev; `pairs [n, 2, D]`: (z_glob, z_prev) of a sample."""

    def loss(features: Tensor, logits: Tensor, labels: Tensor, pairs: Tensor) -> Tensor:
        similar = F.cosine_similarity(features.unsqueeze(1), pairs, dim=2) / temperature  # [n, 2]
        return F.cross_entropy(logits, labels, reduction="none") - mu * similar.log_softmax(1)[:, 0]

    return loss
