"""How a method comes to its answer to one sample, where that is a sum over clients: FENS, Fed-ET's consensus,
Co-Boosting's ensemble, the plain means. The stage unfolds it with these numbers (`front/arithmetic.js`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypedDict

import numpy as np
import torch
from torch import Tensor

from ..front.vocabulary import FENS_SUM, MEAN_SUM
from ..methods.base import GlobalModel
from ..methods.coboosting import BoostedModel, WeightedEnsemble
from ..methods.ensemble import RuledEnsemble
from ..methods.fedet.model import LargeModel
from ..methods.fens.aggregators import (
    Aggregator,
    MixtureOfExperts,
    ProbabilityAggregator,
    WeightedSum,
)
from ..methods.fens.model import FensModel
from ..methods.fens.model import Student as FensStudent
from ..tensor_types import ClientWeights, OneSample, ScorePerClass, ValuePerClientAndClass
from ..training.clients import ClientModels

LOGITS: Literal["logits"] = "logits"
PROBABILITIES: Literal["probabilities"] = "probabilities"
# What the sum is, in a sentence, beside those of `front.vocabulary`; what another network has learnt
# from it comes after that.
GATED = "FENS adds up what the clients say, each times a weight that a small network finds for the sample."
CONSENSUS = (
    "Fed-ET adds up what the clients say. On each sample a client's weight is the variance "
    "of its own answer as a share of all clients': who is sure counts more."
)
BOOSTED = (
    "Co-Boosting adds up the clients' logits, each times the client's weight, which was "
    "learnt on invented samples."
)
WEIGHTED = "Each client counts as much as it has samples."


ValueUnit = Literal["logits", "probabilities"]


class SumMessage(TypedDict):
    """An `AnswerSum` as plain values, for JSON."""

    clients: list[int]
    values: list[list[float]]
    weights: list[list[float]]
    total: list[float]
    unit: ValueUnit
    about: str
    own: int | None


@dataclass(frozen=True)
class AnswerSum:
    """An answer on one sample as Σ_k weights[k] values[k], class by class.

    clients: the numbers of the clients `[M]`
    values:  their scores `[M, C]`
    weights: `[M, C]`
    total:   the method's own scores, which the sum gives, `[C]`
    unit:    of the values, LOGITS or PROBABILITIES
    about:   the sum in a sentence
    own:     the class that is predicted by a network which was trained on such sums; None if the sum is the answer
    """

    clients: list[int]
    values: np.ndarray
    weights: np.ndarray
    total: np.ndarray
    unit: ValueUnit
    about: str
    own: int | None = None

    def to_message(self) -> SumMessage:
        """Make a dict of plain values, for JSON."""
        return {
            "clients": self.clients,
            "values": self.values.tolist(),
            "weights": self.weights.tolist(),
            "total": self.total.tolist(),
            "unit": self.unit,
            "about": self.about,
            "own": self.own,
        }


def has_sum_explanation(model: GlobalModel) -> bool:
    """Whether a model's answer, or that of the ensemble that it has learnt from, is a sum over clients."""
    if isinstance(model, RuledEnsemble):
        return model.rule in (LOGITS, PROBABILITIES, "weighted", "class_counts")
    if isinstance(model, FensStudent):
        return has_sum_explanation(model.teacher)
    if isinstance(model, FensModel):
        return isinstance(unwrap_probability_rule(model.rule), (WeightedSum, MixtureOfExperts))
    return isinstance(model, (LargeModel, BoostedModel, WeightedEnsemble))


def explain_answer_as_sum(model: GlobalModel, sample: OneSample) -> AnswerSum | None:
    """Explain a model's answer to one prepared sample `x [1, …]` as a sum; None if it is not a sum."""
    if not has_sum_explanation(model):
        return None
    if isinstance(model, RuledEnsemble):
        return explain_ensemble(model, sample)
    if isinstance(model, FensStudent):
        return record_class_predicted_by_trained_network(
            explain_fens(model.teacher, sample), model, sample
        )
    if isinstance(model, FensModel):
        return explain_fens(model, sample)
    if isinstance(model, LargeModel):
        return record_class_predicted_by_trained_network(
            explain_consensus(model, sample), model, sample
        )
    if isinstance(model, BoostedModel):
        return record_class_predicted_by_trained_network(
            explain_weighted_vote(model.ensemble, sample), model, sample
        )
    return explain_weighted_vote(model, sample)


def explain_mean_of_client_logits(clients: ClientModels, sample: OneSample) -> AnswerSum:
    """Explain the mean of the clients' logits, which every run of the ensemble reports as well."""
    logits = clients.logits(sample)
    return make_answer_sum(logits[:, 0], 1 / len(logits), logits.mean(0)[0], LOGITS, MEAN_SUM)


def explain_ensemble(model: RuledEnsemble, sample: OneSample) -> AnswerSum:
    values = model.client_logits(sample)[:, 0]
    scores = model.logits(sample)[0]
    if model.rule == PROBABILITIES:
        return make_answer_sum(
            values.softmax(-1), 1 / len(values), scores.exp(), PROBABILITIES, MEAN_SUM
        )
    if model.rule == LOGITS:
        return make_answer_sum(values, 1 / len(values), scores, LOGITS, MEAN_SUM)
    weights = model.weights if model.weights.dim() == 2 else model.weights[:, None]
    return make_answer_sum(values, weights, scores, LOGITS, WEIGHTED)


def unwrap_probability_rule(rule: Aggregator) -> Aggregator:
    """Return the rule that a `ProbabilityAggregator` wraps; any other rule as it is."""
    return rule.rule if isinstance(rule, ProbabilityAggregator) else rule


def explain_fens(model: FensModel, sample: OneSample) -> AnswerSum:
    rule = model.rule
    answers = model.experts(sample)
    combine = partial(rule, images=sample)
    values = model.experts.combine_with_byzantine_answers(
        combine, answers, rule.reads_probabilities
    )[0]
    unit: ValueUnit = LOGITS
    if isinstance(rule, ProbabilityAggregator):
        values = values.softmax(-1)
        unit = PROBABILITIES
    inner_rule = unwrap_probability_rule(rule)
    about = FENS_SUM
    if isinstance(inner_rule, MixtureOfExperts):
        weights = inner_rule.gate(sample)[0].softmax(0)[:, None]
        about = GATED
    else:
        weights = inner_rule.get_client_weights()
    clients = [int(k) for k in model.report.members]
    return make_answer_sum(
        values, weights, model.logits(sample)[0], unit, about, member_clients=clients
    )


def explain_consensus(model: LargeModel, sample: OneSample) -> AnswerSum:
    """Explain Fed-ET's consensus, the target that the server's network learns for such samples."""
    logits = model.last.clients.logits(sample)
    votes = model.vote(logits)
    clients = [int(k) for k in model.report.members]
    weights = votes.weights[:, :1]
    total = (weights * votes.outputs[:, 0]).sum(0)
    if torch.allclose(total, votes.distribution[0], atol=1e-6):
        values = votes.outputs[:, 0]
        total = votes.distribution[0]
        unit = PROBABILITIES
    else:  # a variant adds logits up
        values = logits[:, 0]
        total = (weights * values).sum(0)
        unit = LOGITS
    return make_answer_sum(values, weights, total, unit, CONSENSUS, member_clients=clients)


def explain_weighted_vote(model: WeightedEnsemble, sample: OneSample) -> AnswerSum:
    weights = model.weights
    if model.normalise:
        weights = weights / weights.sum()
    values = model.client_logits(sample)[:, 0]
    return make_answer_sum(values, weights[:, None], model.logits(sample)[0], LOGITS, BOOSTED)


def record_class_predicted_by_trained_network(
    answer_sum: AnswerSum, trained_network: GlobalModel, sample: OneSample
) -> AnswerSum:
    """Copy `answer_sum`, with the class that the network predicts which has learnt from such sums.

    sample: x `[1, …]`
    """
    return replace(answer_sum, own=int(trained_network.logits(sample)[0].argmax()))


def make_answer_sum(
    client_values: ValuePerClientAndClass,
    weights: ClientWeights | float,
    total: ScorePerClass,
    value_unit: ValueUnit,
    description: str,
    member_clients: list[int] | None = None,
) -> AnswerSum:
    """Make an `AnswerSum` of tensors.

    client_values: `[M, C]`
    weights: broadcast to these
    total: `[C]`
    member_clients: the numbers of the M clients, by default 0 to M - 1
    """
    numbers = client_values.double().cpu().numpy()
    if isinstance(weights, Tensor):
        weights = weights.double().cpu().numpy()
    return AnswerSum(
        clients=list(range(len(numbers))) if member_clients is None else member_clients,
        values=numbers,
        weights=np.broadcast_to(weights, numbers.shape),
        total=total.double().cpu().numpy(),
        unit=value_unit,
        about=description,
    )
