"""MOON (Li et al., CVPR 2021): a client's features are drawn towards those of the global model and away from those of
its own previous model.

Client k minimises, over its samples x with label y,

    CE(y, h_θ(x)) - λ_con log( e^{sim(z, z_glob)/τ} / (e^{sim(z, z_glob)/τ} + e^{sim(z, z_prev)/τ}) )

where z are the features of the model in training, z_glob those of θ_t as it was received, z_prev those of the
client's model at the end of its previous round, and sim the cosine. The server averages as FedAvg does. z_glob and
z_prev come from frozen models in eval mode and from images without augmentation, so a client computes both once a
round.

Departures: the features are the penultimate layer's; the paper adds a two-layer projection head, which would make it
another architecture. In its first round a client has no previous model. With z_prev = z_glob the second term would be
the constant λ_con log 2, which has no gradient; so it is left out, and round 1 is FedAvg. MOON needs no public data,
although Fed-ET's table of properties says that it does.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.loop import ClientLossPerSample
from .base import Context, GlobalModel, Steps, knob, register, weighted_mean
from .parts.rounds import ROUNDS, Iterative, Rounds


@register("moon", **ROUNDS, title="MOON", paper="Li et al., CVPR 2021")
class Moon(Iterative):
    """FedAvg with a contrastive loss between local, global and previous features."""

    mu: float = knob(0.1, "Contrast", symbol="λ_con", low=0, high=100)
    temperature: float = knob(0.5, "Temperature", symbol="τ", low=0.01, high=10, log=True)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        state = rounds.first_state
        trained: set[int] = set()  # clients that have trained in an earlier round
        for t in range(self.rounds):
            # Clients: E epochs from θ_t, towards the global features and away from their own previous ones.
            participants = rounds.draw_and_set_participants(t)
            has_previous = any(k in trained for k in participants)
            z_prev = rounds.compute_features_of_participants() if has_previous else []
            rounds.load_state_into_participants(rounds.broadcast_to_participants(state))
            if has_previous:
                z_glob = rounds.compute_features_of_participants()
                shards = []
                for i, k in enumerate(participants):
                    # Without a previous model z_prev = z_glob, for which the term is constant.
                    previous = z_prev[i] if k in trained else z_glob[i]
                    pairs = torch.stack((z_glob[i], previous), 1)  # [n_k, 2, D]
                    shards.append((*rounds.shards[k], pairs))
                yield from rounds.train_participants(
                    t, shards, loss=make_contrastive_loss(self.mu, self.temperature)
                )
            else:
                yield from rounds.train_participants(t)
            trained.update(participants)
            received = rounds.upload_from_participants(rounds.copy_participant_states_with_poison())
            # Server: the weighted average.
            with ctx.server():
                state = weighted_mean(received, rounds.participant_sample_counts)
            yield rounds.make_progress(t, state)
        return rounds.result


def make_contrastive_loss(mu: float, temperature: float) -> ClientLossPerSample:
    """The loss of the module docstring; `pairs [n, 2, D]` are (z_glob, z_prev) of each sample."""

    def loss(features: Tensor, logits: Tensor, labels: Tensor, pairs: Tensor) -> Tensor:
        similarity = F.cosine_similarity(features.unsqueeze(1), pairs, dim=2)  # [n, 2]
        log_share = (similarity / temperature).log_softmax(1)[:, 0]
        return F.cross_entropy(logits, labels, reduction="none") - mu * log_share

    return loss
