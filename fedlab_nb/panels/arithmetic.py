"""How a method comes to its answer to one sample, where that is a sum over clients: FENS, Fed-ET's consensus,
Co-Boosting's ensemble, the plain means. The stage unfolds it with these numbers (`front/arithmetic.js`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..methods.coboosting import BoostedModel, WeightedEnsemble
from ..methods.ensemble import RuledEnsemble
from ..methods.fedet.model import LargeModel
from ..methods.fens.aggregators import MixtureOfExperts, ProbabilityAggregator, WeightedSum
from ..methods.fens.model import FensModel
from ..methods.fens.model import Student as FensStudent

LOGITS = "logits"
PROBABILITIES = "probabilities"
# What the sum is, in a sentence; where another network has learnt from it, that comes after it.
FENS = (
    "FENS adds up what the clients say, each times a weight for this client and class, which the "
    "small rounds have learnt."
)
GATED = "FENS adds up what the clients say, each times a weight that a small network finds for the sample."
CONSENSUS = (
    "Fed-ET adds up what the clients say. On each sample a client's weight is the variance of its "
    "own answer as a share of all clients': who is sure counts more."
)
BOOSTED = (
    "Co-Boosting adds up the clients' logits, each times the client's weight, which was learnt on "
    "invented samples."
)
MEAN = "All clients count the same: the sum is the mean of what they say."
WEIGHTED = "Each client counts as much as it has samples."


@dataclass(frozen=True)
class Sum:
    """An answer to one sample as Σ_k weights[k] values[k], class by class.

    clients: their numbers `[M]`;   values: what is added, `[M, C]`, unit LOGITS or PROBABILITIES
    weights: `[M, C]`;   total: the method's own scores of the sum, `[C]`;   about: in a sentence
    own: the class that a network says which has learnt from such sums; None where the sum itself is the answer
    """

    clients: list[int]
    values: np.ndarray
    weights: np.ndarray
    total: np.ndarray
    unit: str
    about: str
    own: int | None = None

    def to_message(self) -> dict[str, Any]:
        """Plain values, as JSON takes them."""
        return {
            "clients": self.clients,
            "values": self.values.tolist(),
            "weights": self.weights.tolist(),
            "total": self.total.tolist(),
            "unit": self.unit,
            "about": self.about,
            "own": self.own,
        }


def is_sum(model: Any) -> bool:
    """Whether a model's answer, or that of the ensemble that it has learnt from, is a sum over clients."""
    if isinstance(model, RuledEnsemble):
        return model.rule in (LOGITS, PROBABILITIES, "weighted", "class_counts")
    if isinstance(model, FensStudent):
        return is_sum(model.teacher)
    if isinstance(model, FensModel):
        return isinstance(find_plain_rule(model.rule), (WeightedSum, MixtureOfExperts))
    return isinstance(model, (LargeModel, BoostedModel, WeightedEnsemble))


def explain_answer(model: Any, x: Tensor) -> Sum | None:
    """The sum behind the answer to one prepared sample, `x [1, …]`; None where it is no sum."""
    if not is_sum(model):
        return None
    if isinstance(model, RuledEnsemble):
        return explain_ensemble(model, x)
    if isinstance(model, FensStudent):
        return with_own_answer(explain_fens(model.teacher, x), model, x)
    if isinstance(model, FensModel):
        return explain_fens(model, x)
    if isinstance(model, LargeModel):
        return with_own_answer(explain_consensus(model, x), model, x)
    if isinstance(model, BoostedModel):
        return with_own_answer(explain_weighted(model.ensemble, x), model, x)
    return explain_weighted(model, x)


def explain_mean_of_logits(clients: Any, x: Tensor) -> Sum:
    """The other plain mean, which every run of the ensemble has beside its own."""
    logits = clients.logits(x)
    return make_sum(logits[:, 0], 1 / len(logits), logits.mean(0)[0], LOGITS, MEAN)


def explain_ensemble(model: RuledEnsemble, x: Tensor) -> Sum:
    values = model.client_logits(x)[:, 0]
    scores = model.logits(x)[0]
    if model.rule == PROBABILITIES:
        return make_sum(values.softmax(-1), 1 / len(values), scores.exp(), PROBABILITIES, MEAN)
    if model.rule == LOGITS:
        return make_sum(values, 1 / len(values), scores, LOGITS, MEAN)
    weights = model.weights if model.weights.dim() == 2 else model.weights[:, None]
    return make_sum(values, weights, scores, LOGITS, WEIGHTED)


def find_plain_rule(rule: Any) -> Any:
    """The rule itself, where it reads probabilities in place of logits."""
    return rule.rule if isinstance(rule, ProbabilityAggregator) else rule


def explain_fens(model: FensModel, x: Tensor) -> Sum:
    rule = model.rule
    answers = model.experts(x)
    combine = partial(rule, images=x)
    values = model.experts.falsify_logits(combine, answers, rule.reads_probabilities)[0]
    unit = LOGITS
    if isinstance(rule, ProbabilityAggregator):
        values = values.softmax(-1)
        unit = PROBABILITIES
    plain = find_plain_rule(rule)
    about = FENS
    if isinstance(plain, MixtureOfExperts):
        weights = plain.gate(x)[0].softmax(0)[:, None]
        about = GATED
    else:
        weights = plain.get_weights()
    clients = [int(k) for k in model.report.members]
    return make_sum(values, weights, model.logits(x)[0], unit, about, clients=clients)


def explain_consensus(model: LargeModel, x: Tensor) -> Sum:
    """Fed-ET's: what the server's network is taught about samples such as this one."""
    logits = model.last.clients.logits(x)
    votes = model.vote(logits)
    clients = [int(k) for k in model.report.members]
    weights = votes.weights[:, :1]
    total = (weights * votes.outputs[:, 0]).sum(0)
    if torch.allclose(total, votes.distribution[0], atol=1e-6):
        values, total, unit = votes.outputs[:, 0], votes.distribution[0], PROBABILITIES
    else:  # a variant adds logits up
        values, total, unit = logits[:, 0], (weights * logits[:, 0]).sum(0), LOGITS
    return make_sum(values, weights, total, unit, CONSENSUS, clients=clients)


def explain_weighted(model: WeightedEnsemble, x: Tensor) -> Sum:
    weights = model.weights
    if model.normalise:
        weights = weights / weights.sum()
    values = model.client_logits(x)[:, 0]
    return make_sum(values, weights[:, None], model.logits(x)[0], LOGITS, BOOSTED)


def with_own_answer(one: Sum, model: Any, x: Tensor) -> Sum:
    """The sum, and what the network says that has learnt from such sums."""
    return replace(one, own=int(model.logits(x)[0].argmax()))


def make_sum(
    values: Tensor,
    weights: Tensor | float,
    total: Tensor,
    unit: str,
    about: str,
    clients: list[int] | None = None,
) -> Sum:
    """A `Sum` of tensors: values `[M, C]`; weights that broadcast to these; total `[C]`."""
    numbers = values.double().cpu().numpy()
    if isinstance(weights, Tensor):
        weights = weights.double().cpu().numpy()
    return Sum(
        clients=list(range(len(numbers))) if clients is None else clients,
        values=numbers,
        weights=np.broadcast_to(weights, numbers.shape),
        total=total.double().cpu().numpy(),
        unit=unit,
        about=about,
    )
