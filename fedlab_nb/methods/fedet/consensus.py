"""Fed-ET's ensemble loss: the clients' consensus on each public sample, and a second target from those that disagree.

For one public sample x, with s_k(x) in the simplex the softmax output of client k among m clients and C classes:

    ω_k(x) = σ²_k(x) / Σ_j σ²_j(x)        σ²: variance over the C entries; a peaked output counts more
    s(x)   = Σ_k ω_k(x) s_k(x)                   y_s(x) = argmax s(x), a tie to the lowest class
    S_div  = clients whose own top class is not y_s(x)
    s_div  = Σ_{k in S_div} ω_k(x) s_k(x)        sums to ω_div(x) ≤ 1, the dissent mass
    loss   = -log p_{y_s} + λ_div Σ_c s_div,c log(s_div,c / p_c)          p: the student's softmax output; 0 log 0 = 0

Up to a constant, the loss is (1 + λ_div ω_div) times the cross-entropy with the soft label
(e_y + λ_div s_div) / (1 + λ_div ω_div): label smoothing whose shape the dissenters determine and whose strength grows
with their number. For λ_div < 1 it never overrules y_s. No gradient flows into the teachers. (The paper writes α_k for
ω_k and λ for λ_div.)

Known limits, each with a test: the weights do not depend on labels (a confident wrong output counts like a confident
right one); if all outputs are nearly one-hot, the weights become equal; all clients can dissent; the "KL" term can be
negative, as s_div is not normalised.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import check_allowed_name
from ...models import Network
from ...models.build import initialise_parameters_in_place
from ...models.network import Architecture
from ...models.state import allocate_uninitialised_parameters_on_cpu
from ...tensor_types import (
    ClientLogits,
    ClientProbabilities,
    Features,
    Labels,
    Logits,
    LossPerSample,
    Probabilities,
    Samples,
    ValuePerSample,
)
from ..base import weighted_mean

HeadState = dict[str, Tensor]  # the part of a state that is transferred
ClientWeightsPerSample = Tensor  # [M, N], those of a sample sum to 1

# How ω and s are computed:
# "softmax"         ω from the variance of the probabilities, s their weighted sum (the paper)
# "logit-variance"  ω from the variance of the raw logits, s the weighted sum of the probabilities
# "logits"          ω from the variance of the raw logits, s the softmax of their weighted sum (nearly what a
#                   re-implementation by others does)
# "uniform"         equal weights
Weighting = Literal["softmax", "logit-variance", "logits", "uniform"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
# How s_div is normalised:
# "all"                    over all clients, as printed in the paper
# "dissenters"             over the dissenters; s_div is 0 where there are none
# "dissenters-or-uniform"  over the dissenters; s_div is uniform where there are none (nearly what that
#                          re-implementation does)
DissentNormaliser = Literal["all", "dissenters", "dissenters-or-uniform"]
NORMALISERS: tuple[DissentNormaliser, ...] = get_args(DissentNormaliser)


@dataclass(frozen=True)
class Consensus:
    """The votes of m clients on B samples in C classes."""

    outputs: Tensor  # s_k(x), [m, B, C]
    weights: Tensor  # ω_k(x), [m, B]; columns sum to 1
    distribution: Tensor  # s(x), [B, C]
    labels: Tensor  # y_s(x), [B]
    dissent: Tensor  # whether client k is in S_div(x), [m, B] bool
    mass: Tensor  # ω_div(x), [B]
    diversity: Tensor  # s_div(x), [B, C]

    @property
    def effective_clients(self) -> ValuePerSample:
        """1 / Σ_k ω_k², [B]: m if all have equal weights, 1 if one client has all the weight."""
        return 1 / self.weights.square().sum(0)

    @property
    def dissent_fraction(self) -> float:
        """Share of all (client, sample) pairs in which the client's class is not the consensus."""
        return float(self.dissent.double().mean())


@torch.no_grad()
def compute_consensus(
    client_logits: ClientLogits,
    weighting: Weighting = "softmax",
    weight_temperature: float = 1.0,
    dissent_normaliser: DissentNormaliser = "all",
) -> Consensus:
    """The consensus and the dissenters' target from the clients' `client_logits [m, B, C]`.

    weighting: one of WEIGHTINGS; UsageError for another
    weight_temperature: divides the logits from which the weights are computed, and only those; it tempers
        overconfident clients
    dissent_normaliser: one of NORMALISERS; UsageError for another
    """
    check_allowed_name("weighting", weighting, WEIGHTINGS)
    check_allowed_name("normalise", dissent_normaliser, NORMALISERS)
    outputs = client_logits.softmax(-1)
    if weighting == "uniform":
        weights = torch.full_like(outputs[..., 0], 1 / len(outputs))
    elif weighting == "softmax":
        weights = compute_client_weights_from_output_variance(
            (client_logits / weight_temperature).softmax(-1)
        )
    else:
        weights = compute_client_weights_from_output_variance(client_logits)
    weighted_outputs = weights[..., None] * outputs
    distribution = weighted_outputs.sum(0)
    if weighting == "logits":
        distribution = (weights[..., None] * client_logits).sum(0).softmax(-1)
    labels = distribution.argmax(-1)
    dissent = outputs.argmax(-1) != labels
    mass = (dissent * weights).sum(0)
    target = (dissent[..., None] * weighted_outputs).sum(0)
    if dissent_normaliser != "all":
        has_dissent = dissent.any(0)[:, None]
        total = target.sum(-1, keepdim=True).where(has_dissent, 1)
        without_dissent = torch.zeros_like(target)
        if dissent_normaliser == "dissenters-or-uniform":
            without_dissent = torch.full_like(target, 1 / target.shape[-1])
        target = torch.where(has_dissent, target / total, without_dissent)
    return Consensus(outputs, weights, distribution, labels, dissent, mass, target)


def compute_client_weights_from_output_variance(
    client_outputs: ClientLogits | ClientProbabilities,
) -> ClientWeightsPerSample:
    """ω `[m, B]`: each client's share of the variances over the classes of `client_outputs [m, B, C]`.

    The weights are equal for a sample on which all variances are 0 up to rounding.
    """
    variance = client_outputs.var(-1, correction=0)
    total = variance.sum(0)
    is_flat = total <= torch.finfo(client_outputs.dtype).eps ** 2
    shares = variance / total.where(~is_flat, 1)
    return torch.where(is_flat, 1 / len(client_outputs), shares)


def compute_diversity_regularised_losses(
    student_logits: Logits,
    consensus_labels: Labels,
    diversity_targets: Probabilities,
    diversity_weight: float,
) -> LossPerSample:
    """The loss of each sample, `[B]` (module docstring).

    student_logits: `[B, C]`
    consensus_labels: y_s `[B]`
    diversity_targets: s_div `[B, C]`
    diversity_weight: λ_div
    """
    log_p = student_logits.log_softmax(-1)
    consensus_loss = F.nll_loss(log_p, consensus_labels, reduction="none")
    if not diversity_weight:
        return consensus_loss
    negative_entropies = torch.xlogy(diversity_targets, diversity_targets)
    divergence = (negative_entropies - diversity_targets * log_p).sum(-1)
    return consensus_loss + diversity_weight * divergence


# ------------------------------------------------------------------------------------------------------- representation
# Networks with different bodies that all end in a head of the same shape, so that Fed-ET can average their heads.
#
#     logits = classifier(hidden(adapter(body(x))))
#
# `body` is any architecture of this package without its own classifier. `adapter`, Linear(F, r) and ReLU, maps its F
# features to the common width r; it is never sent. All that follows is the head, which Fed-ET sends from clients to
# server and back: with "mlp" it is hidden = Linear(r, r) and ReLU, and the classifier; with "last-linear" the
# classifier alone. All of them are leaf layers (see `models/network.py`), so these networks can be stacked.

HeadKind = Literal["mlp", "last-linear"]
HEADS: tuple[HeadKind, ...] = get_args(HeadKind)
HEAD = ("hidden.", "classifier.")  # beginnings of the transferred tensors' names

State = dict[str, Tensor]


class CommonHeadNetwork(Network):
    """`base`'s body, an adapter, and a head of width `width` in place of `base`'s classifier."""

    def __init__(
        self, base: Network, width: int, head: HeadKind = "mlp", *, generator: torch.Generator
    ) -> None:
        check_allowed_name("head", head, HEADS)
        name, input_shape, classes, base_width = base.architecture
        like = base.classifier.weight
        with torch.device("meta"):  # no draw from the global random state
            super().__init__([], width, (name, input_shape, classes, base_width, width, head))
            adapter = nn.Sequential(nn.Linear(base.classifier.in_features, width), nn.ReLU())
            hidden: nn.Module = nn.Identity()
            if head == "mlp":
                hidden = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.body = base.body
        self.adapter = adapter
        self.hidden = hidden
        for module in (self.adapter, self.hidden, self.classifier):
            allocate_uninitialised_parameters_on_cpu(module, like.dtype)
            initialise_parameters_in_place(module.to(like.device), generator)

    def features(self, samples: Samples) -> Features:
        return self.hidden(self.adapter(self.body(samples)))


def extract_head(state: Mapping[str, Tensor]) -> HeadState:
    """The part of a state that is sent, h; its names and shapes are the same for every body."""
    return {name: tensor for name, tensor in state.items() if name.startswith(HEAD)}


def average_heads_unweighted(client_states: Iterable[Mapping[str, Tensor]]) -> HeadState:
    """h̄ = (1/m) Σ_k h_k over clients of any architectures, with equal weights."""
    heads = [extract_head(state) for state in client_states]
    return weighted_mean(heads, [1] * len(heads))


def average_client_states_by_architecture(
    previous_state_by_architecture: Mapping[Architecture, State],
    client_states: Sequence[Mapping[str, Tensor]],
    architecture_of_each_state: Sequence[Architecture],
) -> dict[Architecture, State]:
    """θ^i <- (1/|S_i|) Σ_{k in S_i} θ_k for every architecture i.

    `client_states[j]` is the state of the round's j-th client, `architecture_of_each_state[j]` its architecture.
    An architecture without a client keeps its state in `previous_state_by_architecture`.
    """
    means = {}
    for kind, state_before in previous_state_by_architecture.items():
        members = [
            state for j, state in enumerate(client_states) if architecture_of_each_state[j] == kind
        ]
        if members:
            means[kind] = weighted_mean(members, [1] * len(members))
        else:
            means[kind] = state_before
    return means
