"""Fed-ET's ensemble loss: the clients' consensus on each public sample, and a second target from those that disagree.

For one public sample x, with s_k(x) in the simplex the softmax output of client k among m clients and C classes:

    ω_k(x) = σ²_k(x) / Σ_j σ²_j(x)        σ²: variance over the C entries; a peaked output counts more
    s(x)   = Σ_k ω_k(x) s_k(x)                   y_s(x) = argmax s(x), a tie to the lowest class
    S_div  = clients whose own top class is not y_s(x)
    s_div  = Σ_{k in S_div} ω_k(x) s_k(x)        sums to ω_div(x) ≤ 1, the dissent mass
    loss   = -log p_{y_s} + λ_div Σ_c s_div,c log(s_div,c / p_c)          p: the student's softmax output; 0 log 0 = 0

Up to a constant that is (1 + λ_div ω_div) times the cross-entropy with the soft label (e_y + λ_div s_div) / (1 + λ_div
ω_div): label smoothing whose shape the dissenters determine and whose strength grows with their number. For λ_div < 1
it never overrules y_s. The teachers are constants. (The paper writes α_k for ω_k, λ for λ_div.)

Known limits, each with a test: the weights do not depend on labels (a confident wrong output counts like a confident
right one); if all outputs are nearly one-hot they become equal; all clients can dissent. "KL" can be negative, as s_div
is not normalised.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import choose
from ...models import Network
from ...models.build import initialise
from ...models.network import Architecture
from ...models.state import allocate_memory
from ..base import weighted_mean

# What ω and s are computed from: probabilities (the paper); the variance of raw logits as weight of probabilities; raw
# logits weighted and summed (a re-implementation by others does nearly that); equal weights.
WEIGHTINGS = ("softmax", "logit-variance", "logits", "uniform")
# s_div normalised over all clients (as printed), over the dissenters (without any: no term), or over the dissenters and
# uniform where no client dissents (near what that re-implementation does, whose answers can still differ).
NORMALISERS = ("all", "dissenters", "dissenters-or-uniform")


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
    def effective_clients(self) -> Tensor:
        """1 / Σ_k ω_k², [B]: m if all have equal weights, 1 if one client has all the weight."""
        return 1 / self.weights.square().sum(0)

    @property
    def dissent_fraction(self) -> float:
        """Share of all (client, sample) pairs in which the client's class is not the consensus."""
        return float(self.dissent.double().mean())


@torch.no_grad()
def compute_consensus(
    logits: Tensor, weighting: str = "softmax", temperature: float = 1.0, normalise: str = "all"
) -> Consensus:
    """The consensus and the dissenters' target from the clients' `logits [m, B, C]`.

    `temperature` divides the logits for the weights alone, against overconfident clients. `weighting` is one of
    WEIGHTINGS, `normalise` one of NORMALISERS (UsageError otherwise).
    """
    choose("weighting", weighting, WEIGHTINGS)
    choose("normalise", normalise, NORMALISERS)
    outputs = logits.softmax(-1)
    if weighting == "uniform":
        weights = torch.full_like(outputs[..., 0], 1 / len(outputs))
    elif weighting == "softmax":
        weights = compute_variance_weights((logits / temperature).softmax(-1))
    else:
        weights = compute_variance_weights(logits)
    weighted_outputs = weights[..., None] * outputs
    distribution = weighted_outputs.sum(0)
    if weighting == "logits":
        distribution = (weights[..., None] * logits).sum(0).softmax(-1)
    labels = distribution.argmax(-1)
    dissent = outputs.argmax(-1) != labels
    mass = (dissent * weights).sum(0)
    target = (dissent[..., None] * weighted_outputs).sum(0)
    if normalise != "all":
        has_dissent = dissent.any(0)[:, None]
        total = target.sum(-1, keepdim=True).where(has_dissent, 1)
        without_dissent = torch.zeros_like(target)
        if normalise == "dissenters-or-uniform":
            without_dissent = torch.full_like(target, 1 / target.shape[-1])
        target = torch.where(has_dissent, target / total, without_dissent)
    return Consensus(outputs, weights, distribution, labels, dissent, mass, target)


def compute_variance_weights(values: Tensor) -> Tensor:
    """ω `[m, B]` from the variances over the last axis of `values [m, B, C]`; equal where all are flat to rounding."""
    variance = values.var(-1, correction=0)
    total = variance.sum(0)
    flat = total <= torch.finfo(values.dtype).eps ** 2
    return torch.where(flat, 1 / len(values), variance / total.where(~flat, 1))


def ensemble_loss(student: Tensor, labels: Tensor, diversity: Tensor, strength: float) -> Tensor:
    """ℓ + λ_div KL of each sample, `[B]`: student logits `[B, C]`, y_s `[B]`, s_div `[B, C]`, λ_div."""
    log_p = student.log_softmax(-1)
    consensus_loss = F.nll_loss(log_p, labels, reduction="none")
    if not strength:
        return consensus_loss
    divergence = (torch.xlogy(diversity, diversity) - diversity * log_p).sum(-1)
    return consensus_loss + strength * divergence


# ------------------------------------------------------------------------------------------------------- representation
# One representation for many architectures: networks of any body that end in a head of the same shape (Fed-ET).
#
#     logits = classifier(hidden(adapter(body(x))))
#
# `body` is any architecture of this package without its own classifier. `adapter`, Linear(F, r) and ReLU, brings its F
# features to the common width r and stays its own. The head, which Fed-ET carries from client to server and back, is
# all that follows: "mlp" is hidden = Linear(r, r) and ReLU, and the classifier; "last-linear" the classifier alone.
# There are only leaf layers, so that these networks stack like any other.

HEADS = ("mlp", "last-linear")
HEAD = ("hidden.", "classifier.")  # beginnings of the transferred tensors' names

State = dict[str, Tensor]


class CommonHeadNetwork(Network):
    """`base` with an adapter and a head of width `width`; it takes `base`'s body, without the classifier."""

    def __init__(
        self, base: Network, width: int, head: str = "mlp", *, generator: torch.Generator
    ) -> None:
        choose("head", head, HEADS)
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
            allocate_memory(module, like.dtype)
            initialise(module.to(like.device), generator)

    def features(self, x: Tensor) -> Tensor:
        return self.hidden(self.adapter(self.body(x)))


def extract_head(state: Mapping[str, Tensor]) -> State:
    """The transferred part of a state, h: the same names and shapes whatever the body."""
    return {name: tensor for name, tensor in state.items() if name.startswith(HEAD)}


def average_heads(states: Iterable[Mapping[str, Tensor]]) -> State:
    """h̄ = (1/m) Σ_k h_k over clients of any architectures, with equal weights."""
    heads = [extract_head(state) for state in states]
    return weighted_mean(heads, [1] * len(heads))


def average_groups(
    table: Mapping[Architecture, State],
    states: Sequence[Mapping[str, Tensor]],
    kinds: Sequence[Architecture],
) -> dict[Architecture, State]:
    """θ^i <- (1/|S_i|) Σ_{k in S_i} θ_k for every architecture i; without a client it stays as it is in `table`.

    `states[j]` is that of the j-th client of the round, `kinds[j]` its architecture.
    """
    means = {}
    for kind, state_before in table.items():
        members = [state for j, state in enumerate(states) if kinds[j] == kind]
        if members:
            means[kind] = weighted_mean(members, [1] * len(members))
        else:
            means[kind] = state_before
    return means
