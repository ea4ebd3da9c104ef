"""Prediction aggregators f_lambda: every client's logits in, one answer out (Allouah et al., NeurIPS 2024, table 9).

Every rule maps `z [B, M, C]` (B samples, M clients, C classes; logits, not probabilities) to scores `[B, C]`; the
mixture of experts alone also reads the inputs `x`. The family is nested: averaging < linear < per-class weights < MLP
with r >= 2C hidden units, and the first three are one formula, `f(z) = sum_k lambda_k * z_k`, with fewer or more free
numbers in lambda.

    >>> z = torch.tensor([[[4.0, 0.0], [0.0, 2.0]]])               # one sample, two clients, two classes
    >>> make_averaging_aggregator(client_count=2, class_count=2)(z)
    tensor([[2., 1.]])

Nothing is trained here: `Fens.train_aggregator_in_place` does that. No rule puts a constraint on its weights (they may
turn negative, which class counts cannot express). Initial values come from the generator that is passed in, never from
torch's global state.
"""

import functools
import itertools
import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ...errors import check_allowed_name
from ...models.build import make_initialised_layer
from ...tensor_types import (
    ClassScores,
    ClientClassShares,
    ClientLogitsBySample,
    Features,
    Images,
    ValuePerClientAndClass,
    VoteSharesByTrueClass,
)
from ...value_types import SampleShape
from ..parts.averages import compute_trimmed_mean

PHASE = "aggregator"  # of progress and ledger: the rounds that train a rule
# linear: one trained weight a client; per_class: one for each client and class; nn: a network with one hidden layer of
# r units over all logits; moe: mixture of experts, a trained gate looks at the input and weighs the clients; deepset: a
# network that does not know who answers, so that no client can be trusted more than another.
TrainableAggregatorName = Literal["linear", "per_class", "nn", "moe", "deepset"]
TRAINED: tuple[TrainableAggregatorName, ...] = get_args(TrainableAggregatorName)
# averaging: mean of the logits, every client counts the same for every class; weighted: class-count weights, a client
# counts for a class as much as it has samples of it; voting: polychotomous, naive Bayes over the clients' hard votes.
Aggregation = Literal[
    "averaging", "weighted", "voting", "linear", "per_class", "nn", "moe", "deepset"
]
AGGREGATORS: tuple[Aggregation, ...] = get_args(Aggregation)
# What a rule reads of each client: its logits, which have no limit, or its probabilities.
AnswerKind = Literal["logits", "probabilities"]
ANSWERS: tuple[AnswerKind, ...] = get_args(AnswerKind)


class Aggregator(nn.Module):
    """A rule `forward(z [B, M, C], x [B, ...] or None) -> [B, C]` with `trained_parameter_count`
    trainable numbers."""

    reads_inputs = False
    reads_probabilities = False  # of each client's logits no more than their softmax

    @property
    def trained_parameter_count(self) -> int:
        """The number of trained parameters, which travel each way in a round of phase 2."""
        return sum(parameter.numel() for parameter in self.parameters())

    def features(self, logits: ClientLogitsBySample, images: Images | None = None) -> Features:
        """The input of the rule's last linear map: the concatenated logits `[B, M*C]`, client after client."""
        return logits.flatten(1)

    def get_client_weights(self) -> ValuePerClientAndClass | None:
        """The weight of client k for class c, `[M, C]`; None if the rule has no such table."""
        return None

    def get_vote_shares_by_true_class(self) -> VoteSharesByTrueClass | None:
        """The shares of client k's votes where the truth is r, `[M, C, C]`; None if the rule counts no votes."""
        return None


class WeightedSum(Aggregator):
    """`f(z) = sum_k lambda_k * z_k`, class by class; `lambda [M, C]`, or `[M, 1]` where all classes share a weight."""

    def __init__(self, weights: Tensor, classes: int, trained: bool) -> None:
        super().__init__()
        self.classes = classes
        if trained:
            self.table = nn.Parameter(weights)
        else:
            self.register_buffer("table", weights)

    def forward(self, logits: ClientLogitsBySample, images: Images | None = None) -> ClassScores:
        return (logits * self.table).sum(1)

    def get_client_weights(self) -> ValuePerClientAndClass:
        return self.table.detach().expand(-1, self.classes)


def make_averaging_aggregator(client_count: int, class_count: int) -> WeightedSum:
    """`lambda_i = 1/M`: what FedENS and most one-shot methods do. q = 0."""
    return WeightedSum(torch.full((client_count, 1), 1 / client_count), class_count, trained=False)


def make_weighted_averaging_aggregator(class_shares: ClientClassShares) -> WeightedSum:
    """`lambda_i^c = n_i^c / sum_j n_j^c`, the `class_shares [M, C]` of the training samples
    (FedKD's rule). q = 0."""
    return WeightedSum(class_shares, class_shares.shape[1], trained=False)


def make_linear_aggregator(client_count: int, class_count: int) -> WeightedSum:
    """One free scalar a client, started at 1/M. q = M."""
    return WeightedSum(torch.full((client_count, 1), 1 / client_count), class_count, trained=True)


def make_per_class_aggregator(
    client_count: int,
    class_count: int,
    start: Literal["average", "xavier"] = "average",
    generator: torch.Generator | None = None,
) -> WeightedSum:
    """One free weight for each client and class. q = M*C.

    `start="average"` begins at 1/M, that is, at plain averaging; "xavier" draws from the Xavier-uniform distribution
    as the public code does.
    """
    table = torch.full((client_count, class_count), 1 / client_count)
    if (
        check_allowed_name("start of the per-class weights", start, ["average", "xavier"])
        == "xavier"
    ):
        bound = math.sqrt(6 / (client_count + class_count))
        table.uniform_(-bound, bound, generator=generator)
    return WeightedSum(table, class_count, trained=True)


class MLP(Aggregator):
    """`f(z) = W_2 relu(W_1 z + b_1) + b_2` over the concatenated logits; q = M*C*r + r + r*C + C.

    The paper's formula has no biases, its numbers and its code do.
    """

    def __init__(
        self,
        clients: int,
        classes: int,
        hidden_units: int = 40,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.hidden = make_initialised_layer(
            nn.Linear, clients * classes, hidden_units, generator=generator
        )
        self.output = make_initialised_layer(nn.Linear, hidden_units, classes, generator=generator)

    def features(self, logits: ClientLogitsBySample, images: Images | None = None) -> Features:
        """The hidden layer, `[B, k]`."""
        return self.hidden(logits.flatten(1)).relu()

    def forward(self, logits: ClientLogitsBySample, images: Images | None = None) -> ClassScores:
        return self.output(self.features(logits))


class MixtureOfExperts(Aggregator):
    """`f(z, x) = sum_k G(x)_k z_k` with a softmax gate over the clients; only the gate is trained."""

    reads_inputs = True

    def __init__(self, gate: nn.Module) -> None:
        super().__init__()
        self.gate = gate

    def forward(self, logits: ClientLogitsBySample, images: Images | None = None) -> ClassScores:
        return torch.einsum("bm,bmc->bc", self.gate(images).softmax(1), logits)


class ProbabilityAggregator(Aggregator):
    """`rule` on the clients' probabilities: `f(z) = rule(softmax z_1, ..., softmax z_M)`."""

    reads_probabilities = True

    def __init__(self, rule: Aggregator) -> None:
        super().__init__()
        self.rule = rule
        self.reads_inputs = rule.reads_inputs

    def forward(self, logits: ClientLogitsBySample, images: Images | None = None) -> ClassScores:
        return self.rule(logits.softmax(2), images)

    def features(self, logits: ClientLogitsBySample, images: Images | None = None) -> Features:
        return self.rule.features(logits.softmax(2), images)

    def get_client_weights(self) -> ValuePerClientAndClass | None:
        return self.rule.get_client_weights()


class DeepSet(Aggregator):
    """`f(z) = rho(mean_k phi(softmax z_k))`: phi and rho have r hidden units each; q = (2C + 2)r + r^2 + C.

    The answers are a set (Zaheer et al., NeurIPS 2017): their order makes no difference. Where it predicts, the mean
    leaves out the `trimmed` largest and smallest values of each of phi's outputs (Dhasade et al., ICLR 2026).
    """

    reads_probabilities = True

    def __init__(
        self,
        classes: int,
        hidden_units: int = 40,
        trimmed: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.cut = trimmed
        self.each = make_initialised_layer(nn.Linear, classes, hidden_units, generator=generator)
        self.hidden = make_initialised_layer(
            nn.Linear, hidden_units, hidden_units, generator=generator
        )
        self.output = make_initialised_layer(nn.Linear, hidden_units, classes, generator=generator)

    def features(self, logits: ClientLogitsBySample, images: Images | None = None) -> Features:
        """The hidden layer of rho, `[B, k]`."""
        answers = self.each(logits.softmax(2)).relu().transpose(0, 1)
        return self.hidden(
            answers.mean(0) if self.training else compute_trimmed_mean(answers, self.cut)
        ).relu()

    def forward(self, logits: ClientLogitsBySample, images: Images | None = None) -> ClassScores:
        return self.output(self.features(logits))


def make_gate_network(
    input_shape: SampleShape, client_count: int, generator: torch.Generator | None = None
) -> nn.Sequential:
    """The gate's scores `[B, M]` before the softmax.

    Images of 16x16 and more: LeNet-like, two 5x5 convolutions (6, 16 channels), each with ReLU and max-pooling, then
    120, 84 and M units: 62,856 numbers for 3x32x32 and M = 20. Smaller images and feature rows: one hidden layer of
    32 units. The public code also drops out half of the 120 units in training; we don't, so that a round is the same
    whichever form computes it.
    """
    make_layer = functools.partial(make_initialised_layer, generator=generator)
    if len(input_shape) != 3 or min(input_shape[1:]) < 16:
        hidden = make_layer(nn.Linear, math.prod(input_shape), 32)
        return nn.Sequential(
            nn.Flatten(), hidden, nn.ReLU(), make_layer(nn.Linear, 32, client_count)
        )
    channels, height, width = input_shape
    for _ in range(2):  # a 5x5 convolution without padding, then 2x2 pooling
        height, width = (height - 4) // 2, (width - 4) // 2
    images = (
        make_layer(nn.Conv2d, channels, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        make_layer(nn.Conv2d, 6, 16, 5),
        nn.ReLU(),
    )
    sizes = (16 * height * width, 120, 84, client_count)
    first, second, last = (make_layer(nn.Linear, *pair) for pair in itertools.pairwise(sizes))
    return nn.Sequential(
        *images, nn.MaxPool2d(2), nn.Flatten(), first, nn.ReLU(), second, nn.ReLU(), last
    )


def make_trainable_aggregator(
    name: TrainableAggregatorName,
    client_count: int,
    class_count: int,
    hidden_units: int = 40,
    input_shape: SampleShape = (),
    start: Literal["average", "xavier"] = "average",
    generator: torch.Generator | None = None,
    trimmed_per_side: int = 0,
) -> Aggregator:
    """One of the rules that phase 2 trains (`TRAINED`), at its initial values; UsageError for another name."""
    check_allowed_name("trained aggregator", name, TRAINED)
    if name == "linear":
        return make_linear_aggregator(client_count, class_count)
    if name == "per_class":
        return make_per_class_aggregator(client_count, class_count, start, generator)
    if name == "nn":
        return MLP(client_count, class_count, hidden_units, generator)
    if name == "deepset":
        return DeepSet(class_count, hidden_units, trimmed_per_side, generator)
    return MixtureOfExperts(make_gate_network(input_shape, client_count, generator))
