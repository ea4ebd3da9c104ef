"""Prediction aggregators f_lambda: every client's logits in, one answer out (Guha et al., NeurIPS 2024, table 9).

Every rule maps `z [B, M, C]` (B samples, M clients, C classes; logits, not probabilities) to scores `[B, C]`; the
mixture of experts alone also reads the inputs `x`. The family is nested: averaging < linear < per-class weights < MLP
with k >= 2C hidden units, and the first three are one formula, `f(z) = sum_i lambda_i * z_i`, with fewer or more free
numbers in lambda.

    >>> z = torch.tensor([[[4.0, 0.0], [0.0, 2.0]]])               # one sample, two clients, two classes
    >>> averaging(clients=2, classes=2)(z)
    tensor([[2., 1.]])

Nothing is trained here: `phase2` does that. No rule puts a constraint on its weights (they may turn negative, which
class counts cannot express). Initial values come from the generator that is passed in, never from torch's global
state.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ...errors import choose

AGGREGATORS: dict[str, str] = {
    "averaging": "mean of the logits: every client counts the same for every class",
    "weighted": "class-count weights: a client counts for a class as much as it has samples of it",
    "voting": "polychotomous voting: naive Bayes over the clients' hard votes",
    "linear": "one trained weight a client",
    "per_class": "one trained weight for each client and class",
    "nn": "a trained network with one hidden layer of k units over all logits",
    "moe": "mixture of experts: a trained gate looks at the input and weighs the clients",
}
TRAINED = ("linear", "per_class", "nn", "moe")


class Aggregator(nn.Module):
    """A rule `forward(z [B, M, C], x [B, ...] or None) -> [B, C]` with `q` trainable numbers."""

    reads_inputs = False

    @property
    def q(self) -> int:
        """How many numbers are trained, and so travel each way in a round of phase 2."""
        return sum(parameter.numel() for parameter in self.parameters())

    def features(self, z: Tensor, x: Tensor | None = None) -> Tensor:
        """What the rule's last linear map reads: the concatenated logits `[B, M*C]`, client after client."""
        return z.flatten(1)

    def weights(self) -> Tensor | None:
        """The weight of client i for class c, `[M, C]`; None where the rule has no such table."""
        return None


class WeightedSum(Aggregator):
    """`f(z) = sum_i lambda_i * z_i`, class by class; `lambda [M, C]`, or `[M, 1]` where all classes share a weight."""

    def __init__(self, weights: Tensor, classes: int, trained: bool):
        super().__init__()
        self.classes = classes
        if trained:
            self.table = nn.Parameter(weights)
        else:
            self.register_buffer("table", weights)

    def forward(self, z: Tensor, x: Tensor | None = None) -> Tensor:
        return (z * self.table).sum(1)

    def weights(self) -> Tensor:
        return self.table.detach().expand(-1, self.classes)


def averaging(clients: int, classes: int) -> WeightedSum:
    """`lambda_i = 1/M`: what FedENS and most one-shot methods do. q = 0."""
    return WeightedSum(torch.full((clients, 1), 1 / clients), classes, trained=False)


def weighted_averaging(counts: Tensor) -> WeightedSum:
    """`lambda_i^c = n_i^c / sum_j n_j^c` from the class counts `[M, C]` of the training samples (FedKD's rule). q = 0.

    A class that nobody has gets the plain mean, 1/M.
    """
    counts = counts.float()
    totals = counts.sum(0)
    shares = torch.where(totals > 0, counts / totals.clamp_min(1), torch.full_like(counts, 1 / len(counts)))
    return WeightedSum(shares, counts.shape[1], trained=False)


def linear(clients: int, classes: int) -> WeightedSum:
    """One free scalar a client, started at 1/M. q = M."""
    return WeightedSum(torch.full((clients, 1), 1 / clients), classes, trained=True)


def per_class(
    clients: int, classes: int, start: str = "average", generator: torch.Generator | None = None
) -> WeightedSum:
    """One free weight for each client and class. q = M*C.

    `start="average"` begins at 1/M, that is, at plain averaging; "xavier" draws from the Xavier-uniform distribution
    as the public code does.
    """
    if choose("start of the per-class weights", start, ["average", "xavier"]) == "average":
        return WeightedSum(torch.full((clients, classes), 1 / clients), classes, trained=True)
    bound = math.sqrt(6 / (clients + classes))
    return WeightedSum(
        torch.empty(clients, classes).uniform_(-bound, bound, generator=generator), classes, trained=True
    )


class MLP(Aggregator):
    """`f(z) = W_2 relu(W_1 z + b_1) + b_2` over the concatenated logits; q = M*C*k + k + k*C + C.

    The paper's formula has no biases, its numbers and its code do.
    """

    def __init__(self, clients: int, classes: int, k: int = 40, generator: torch.Generator | None = None):
        super().__init__()
        self.hidden = _drawn(nn.Linear, clients * classes, k, generator=generator)
        self.output = _drawn(nn.Linear, k, classes, generator=generator)

    def features(self, z: Tensor, x: Tensor | None = None) -> Tensor:
        """The hidden layer, `[B, k]`."""
        return self.hidden(z.flatten(1)).relu()

    def forward(self, z: Tensor, x: Tensor | None = None) -> Tensor:
        return self.output(self.features(z))


class MixtureOfExperts(Aggregator):
    """`f(z, x) = sum_i G(x)_i z_i` with a softmax gate over the clients; only the gate is trained."""

    reads_inputs = True

    def __init__(self, gate: nn.Module):
        super().__init__()
        self.gate = gate

    def forward(self, z: Tensor, x: Tensor | None = None) -> Tensor:
        return torch.einsum("bm,bmc->bc", self.gate(x).softmax(1), z)


def gate(input_shape: tuple[int, ...], clients: int, generator: torch.Generator | None = None) -> nn.Sequential:
    """The gate's scores `[B, M]` before the softmax.

    Images of 16x16 and more: LeNet-like, two 5x5 convolutions (6, 16 channels), each with ReLU and max-pooling, then
    120, 84 and M units: 62,856 numbers for 3x32x32 and M = 20. Smaller images and feature rows: one hidden layer of
    32 units. The public code also drops out half of the 120 units in training; we don't, so that a round is the same
    whichever form computes it.
    """
    if len(input_shape) != 3 or min(input_shape[1:]) < 16:
        inputs = math.prod(input_shape)
        return nn.Sequential(
            nn.Flatten(),
            _drawn(nn.Linear, inputs, 32, generator=generator),
            nn.ReLU(),
            _drawn(nn.Linear, 32, clients, generator=generator),
        )
    channels, height, width = input_shape
    for _ in range(2):  # a 5x5 convolution without padding, then 2x2 pooling
        height, width = (height - 4) // 2, (width - 4) // 2
    return nn.Sequential(
        _drawn(nn.Conv2d, channels, 6, 5, generator=generator),
        nn.ReLU(),
        nn.MaxPool2d(2),
        _drawn(nn.Conv2d, 6, 16, 5, generator=generator),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        _drawn(nn.Linear, 16 * height * width, 120, generator=generator),
        nn.ReLU(),
        _drawn(nn.Linear, 120, 84, generator=generator),
        nn.ReLU(),
        _drawn(nn.Linear, 84, clients, generator=generator),
    )


class Voting(Aggregator):
    """Polychotomous voting with a uniform prior and 0/1 benefit: `score_r = sum_i log P_i[r, vote_i]`. q = 0.

    counts: `[M, C, C]`, how often client i's model voted c for a sample of true class r, merged (added up) over the
    clients. `P_i[r, c] = (counts + laplace) / (row sum + C * laplace)`; a class that was never seen then has a
    uniform row. `laplace` is 1/C unless given: one imaginary vote a row, spread over the C classes. The paper gives no
    amount; this prior is fixed beforehand, not tuned. Without smoothing (`laplace=0`) a single zero forbids a class;
    an unseen class is then uniform too. Only hard votes are used.
    """

    def __init__(self, counts: Tensor, laplace: float | None = None):
        super().__init__()
        classes = counts.shape[2]
        counts = counts.double() + (1 / classes if laplace is None else laplace)
        totals = counts.sum(2, keepdim=True)
        competency = torch.where(totals > 0, counts / totals, torch.full_like(counts, 1 / classes))
        self.register_buffer("log_competency", competency.log().float())

    def forward(self, z: Tensor, x: Tensor | None = None) -> Tensor:
        votes = z.argmax(2)  # [B, M]
        client = torch.arange(votes.shape[1], device=votes.device)
        return self.log_competency.transpose(1, 2)[client, votes].sum(1)  # [B, M, C] -> [B, C]


def vote_counts(z: Tensor, labels: Tensor) -> Tensor:
    """How often each model votes c where the truth is r: `[M, C, C]` int32, from `z [n, M, C]` and labels `[n]`."""
    _, clients, classes = z.shape
    client = torch.arange(clients, device=z.device)
    # [n, M]: where (client, truth, vote) lies in the flat table
    cell = (client * classes + labels[:, None]) * classes + z.argmax(2)
    return torch.bincount(cell.flatten(), minlength=clients * classes**2).view(clients, classes, classes).int()


def trained_aggregator(
    name: str,
    clients: int,
    classes: int,
    *,
    k: int = 40,
    input_shape: tuple[int, ...] = (),
    start: str = "average",
    generator: torch.Generator | None = None,
) -> Aggregator:
    """One of the rules that phase 2 trains (`TRAINED`), at its initial values; UsageError for another name."""
    choose("trained aggregator", name, TRAINED)
    if name == "linear":
        return linear(clients, classes)
    if name == "per_class":
        return per_class(clients, classes, start, generator)
    if name == "nn":
        return MLP(clients, classes, k, generator)
    return MixtureOfExperts(gate(input_shape, clients, generator))


def _drawn(layer: type[nn.Module], *sizes: int, generator: torch.Generator | None) -> nn.Module:
    """A layer with torch's default initial distribution, U(-1/sqrt(fan_in), 1/sqrt(fan_in)), from `generator`."""
    made = nn.utils.skip_init(layer, *sizes)
    bound = 1 / math.sqrt(made.weight[0].numel())
    with torch.no_grad():
        made.weight.uniform_(-bound, bound, generator=generator)
        made.bias.uniform_(-bound, bound, generator=generator)
    return made
