"""What the aggregator is trained on: each client's proxy samples, as the frozen ensemble sees them.

The client models are frozen, so client i computes its logits `Z_i [n_i, M, C]` once and no image is touched again (but
for a gate, which reads them).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...comm import Ledger, count_payload_bytes
from ...errors import RunError, UsageError, check_allowed_name
from ...models.state import are_all_finite
from ...tensor_types import (
    ClassScores,
    ClientLogitsBySample,
    Images,
    Labels,
    ParameterVector,
    SampleIndices,
    SampleWeights,
    ValuePerClientAndClass,
    VoteCountsByTrueClass,
    VoteSharesByTrueClass,
)
from ...training.loop import LabelledSamples
from ..base import ClientWeighting, Context, Progress, Steps
from ..context import ClientIndex
from ..parts.byzantine import replace_answers_of_random_liars
from ..parts.frozen_ensemble import send_class_counts_and_compute_class_shares
from ..run_outputs import should_record_curve_point
from .aggregators import (
    PHASE,
    Aggregator,
    make_averaging_aggregator,
    make_weighted_averaging_aggregator,
)
from .model import Experts, FensModel

BatchIndices = Tensor  # int64 [steps, b], the samples of each batch
RoundIndex = int  # from 0

ProxyOwner = Any  # of a proxy: a client's index, or "server"
StreamName = Any  # a proxy owner, or "participants"
LossBeforeRound = Tensor  # []
ProxySource = Literal["held-out", "reused", "reused-equal", "server"]
PROXIES: tuple[ProxySource, ...] = get_args(ProxySource)
# In proportion to the samples used in the round; every client the same, as in the paper's pseudo-code.
CLIENT_WEIGHTS: tuple[ClientWeighting, ...] = get_args(ClientWeighting)


class ProxySamples(NamedTuple):
    """A client's training samples: cached logits `[n, M, C]`, labels `[n]`, and the inputs where a gate reads them."""

    logits: Tensor
    labels: Tensor
    inputs: Tensor | None = None

    def select(self, row_indices: SampleIndices | slice) -> ProxySamples:
        """The samples with these indices."""
        inputs = None
        if self.inputs is not None:
            inputs = self.inputs[row_indices]
        return ProxySamples(self.logits[row_indices], self.labels[row_indices], inputs)

    @classmethod
    def concatenate(cls, proxies: Sequence[ProxySamples]) -> ProxySamples:
        """The samples of all, one after the other."""
        logits, labels, inputs = zip(*proxies, strict=True)
        together = None
        if inputs[0] is not None:
            together = torch.cat(inputs)
        return cls(torch.cat(logits), torch.cat(labels), together)


def choose_client_proxy_samples(
    ctx: Context, client: ClientIndex, source: ProxySource
) -> LabelledSamples:
    """Client k's own samples for the aggregator: `source` is one of PROXIES."""
    if source in ("held-out", "server"):
        return ctx.private.held_out(client)
    x, y = ctx.private.train(client)
    if source == "reused":
        return LabelledSamples(x, y)
    order = torch.randperm(len(y), generator=ctx.generator("fens", "proxy", client)).to(y.device)
    chosen = order[: ctx.private.sizes("held_out")[client]]
    return LabelledSamples(x[chosen], y[chosen])


def compute_proxy_samples_by_owner(
    ctx: Context,
    experts: Experts,
    source: ProxySource,
    has_inputs: bool = False,
    liars_per_sample: int = 0,
    lie_logit: float = 0.0,
) -> ProxySamplesByOwner:
    """{client: its proxy}; with the source "server" {"server": the members' samples, which they send up for it}.

    has_inputs: keep those too
    liars_per_sample: each sample is there once more, and so many clients answer falsely on it, with the logit
        `lie_logit`
    """
    members = experts.members
    sets: dict[ProxyOwner, tuple[Tensor, ...]] = {
        k: choose_client_proxy_samples(ctx, k, source) for k in members
    }
    if source == "server":
        sent = [ctx.link.up(k, samples, phase="labelled set") for k, samples in sets.items()]
        inputs_sent, labels_sent = zip(*sent, strict=True)
        sets = {"server": (torch.cat(inputs_sent), torch.cat(labels_sent))}
    proxies = {}
    for owner, (x, y) in sets.items():
        if len(y):
            logits = experts.compute_logits(x)
        else:
            logits = x.new_zeros(0, len(members), ctx.classes)
        proxy = ProxySamples(logits, y, x if has_inputs else None)
        if liars_per_sample:
            stream = ctx.generator("fens", "lies", owner)
            lies = replace_answers_of_random_liars(logits, liars_per_sample, stream, lie_logit)
            proxy = ProxySamples.concatenate([proxy, proxy._replace(logits=lies)])
        proxies[owner] = proxy
    return proxies


def draw_batch_indices(
    proxy: ProxySamples, maximum_batch_size: int, batch_count: int, shuffle_stream: torch.Generator
) -> BatchIndices:
    """Indices of `batch_count` successive mini-batches of n samples, `[batch_count, min(n, maximum_batch_size)]`.

    Shuffled passes over the samples, an incomplete last batch dropped. A client with no more than
    `maximum_batch_size` samples uses them all, in order, every time. A longer plan begins with the batches of a
    shorter one.
    """
    samples, device = len(proxy.labels), proxy.labels.device
    if samples <= maximum_batch_size:
        return torch.arange(samples, device=device).expand(batch_count, samples)
    a_pass = samples // maximum_batch_size
    passes = [
        torch.randperm(samples, generator=shuffle_stream)[: a_pass * maximum_batch_size]
        for _ in range(-(-batch_count // a_pass))
    ]
    return torch.cat(passes).view(-1, maximum_batch_size)[:batch_count].to(device)


def compute_shares_of_proxy_owners(
    proxies: ProxySamplesByOwner, batch_size: int, weighting: ClientWeighting
) -> ShareByOwner:
    """w_i of each owner with proxy samples; they sum to 1. UsageError if nobody has any."""
    check_allowed_name("client weighting", weighting, CLIENT_WEIGHTS)
    most_samples = batch_size if weighting == "samples" else 1
    used = {}
    for owner, proxy in proxies.items():
        if len(proxy.labels):
            used[owner] = min(len(proxy.labels), most_samples)
    if not used:
        raise UsageError(
            "No client has a proxy sample to train the aggregator on; hold out a larger part of"
            " the data."
        )
    total = sum(used.values())
    return {owner: n / total for owner, n in used.items()}


# ---------------------------------------------------------------------------------------------------------------- steps
# One step of SGD on λ: a client's own; and, where J = 1, all clients' at once, which gives the same numbers.
#
# One step from λ on the mean loss of a mini-batch gives `delta_k = -eta_l grad_k`, so that `delta = sum_k w_k delta_k =
# -eta_l * gradient of sum_k w_k (mean loss of client k)`: one weighted gradient over all clients' mini-batches laid
# side by side. With w_k proportional to the samples used, a round is exactly one step of Adam (without bias correction)
# on the pooled mini-batch. With J = 2 this is no longer true: a client's second gradient is taken where only its own
# first step led.


def move_parameters_into_shared_vector(module: nn.Module) -> ParameterVector:
    """All parameters of `module` as one vector `[q]` that they share memory with: writing to it changes the module."""
    parameters = list(module.parameters())
    flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
    for parameter, part in zip(
        parameters, flat.split([p.numel() for p in parameters]), strict=True
    ):
        parameter.data = part.view_as(parameter)
    return flat


ProxySamplesByOwner = Mapping[ProxyOwner, ProxySamples]
ShareByOwner = Mapping[ProxyOwner, float]
OwnersInRound = list[ProxyOwner]


class LossAndGradient(NamedTuple):
    """A loss `[]`, and its gradient as one vector `[q]`."""

    loss: Tensor
    gradient: Tensor


def compute_loss_and_flat_gradient(
    aggregator: Aggregator,
    batch: ProxySamples,
    sample_weights_or_none_for_mean: SampleWeights | None = None,
) -> LossAndGradient:
    """The cross-entropy over a batch (its mean, or its sum with weights `[b]`) and its gradient, flat `[q]`."""
    with torch.enable_grad():
        scores = aggregator(batch.logits, batch.inputs)
        if sample_weights_or_none_for_mean is None:
            loss = cross_entropy(scores, batch.labels)
        else:
            loss = (
                cross_entropy(scores, batch.labels, reduction="none")
                @ sample_weights_or_none_for_mean
            )
        gradients = torch.autograd.grad(loss, list(aggregator.parameters()))
    return LossAndGradient(loss.detach(), torch.cat([gradient.flatten() for gradient in gradients]))


def make_round_gradient_function(
    aggregator: Aggregator,
    proxies: ProxySamplesByOwner,
    batch_indices: Mapping[ProxyOwner, BatchIndices],
    share_by_owner: ShareByOwner,
) -> Callable[[RoundIndex], LossAndGradient]:
    """A function from round t (of J = 1) to Σ_k w_k (mean loss of client k) and its gradient `[q]`.

    batch_indices: `[T, b_k]`
    share_by_owner: w_k of the clients that take part; they sum to 1
    """
    pool = ProxySamples.concatenate([proxies[i] for i in share_by_owner])
    indices = []  # of each client's batches among the samples of all, [T, b_k]
    sample_weights = []  # [b_k]
    first = 0
    for i, weight in share_by_owner.items():
        batch_size = batch_indices[i].shape[1]
        indices.append(batch_indices[i] + first)
        sample_weights.append(pool.logits.new_full((batch_size,), weight / batch_size))
        first += len(proxies[i].labels)
    index = torch.cat(indices, 1)  # [T, P]
    all_sample_weights = torch.cat(sample_weights)  # [P]
    uses_all = index.shape[1] == len(pool.labels)  # in every round: nothing to choose

    def gradient_of_round(round_index: int) -> LossAndGradient:
        batch = pool if uses_all else pool.select(index[round_index])
        return compute_loss_and_flat_gradient(aggregator, batch, all_sample_weights)

    return gradient_of_round


def draw_participants_of_rounds(
    owners: Sequence[ProxyOwner],
    count_per_round_or_0_for_all: int,
    round_count: int,
    make_named_stream: Callable[[StreamName], torch.Generator],
) -> list[OwnersInRound]:
    """Draw S_t of each round: m of the `owners`, uniformly without replacement, in the order of `owners`.

    All take part, and nothing is drawn, if m is 0 or not below their number. The stream's name is "participants".
    """
    if not 0 < count_per_round_or_0_for_all < len(owners):
        return [list(owners)] * round_count
    stream = make_named_stream("participants")
    owners_by_round = []
    for _ in range(round_count):
        order = torch.randperm(len(owners), generator=stream)
        chosen = sorted(order[:count_per_round_or_0_for_all].tolist())
        owners_by_round.append([owners[i] for i in chosen])
    return owners_by_round


def record_bytes_of_round_without_sending(
    ledger: Ledger, participants: Iterable[ProxyOwner], aggregator_parameters: ParameterVector
) -> None:
    """The messages of one round, each as large as λ, without making them: they would take longer than the round."""
    count = count_payload_bytes(aggregator_parameters)
    for k in participants:
        ledger.add(k, "down", PHASE, count)
        ledger.add(k, "up", PHASE, count)


# ------------------------------------------------------------------------------------------------------------ influence
# Phase 2, watched: the loss, and how much the aggregator makes of each client, class by class.
#
# Nothing of it is sent or used.

SAMPLES = 500  # at most so many are looked at


def run_rounds_and_yield_snapshots(
    experts: Experts,
    aggregator: Aggregator,
    proxies: ProxySamplesByOwner,
    training_rounds: Iterator[LossBeforeRound],
    round_count: int,
    learning_rate_text: str,
) -> Steps[FensModel]:
    """Run the rounds that train `aggregator` in place; yield progress, with a snapshot now and then.

    training_rounds: runs one of the `round_count` rounds each time it is asked for the next loss
    learning_rate_text: named in the RunError if the training diverges
    """
    losses = []
    frames: dict[int, Tensor] = {}
    samples = list(proxies.values())

    def make_model(aggregator: Aggregator, done: int, **more: Any) -> FensModel:
        frames[done] = compute_mean_true_class_gradients(aggregator, samples)
        tables = torch.stack(list(frames.values()))
        return FensModel(
            experts, aggregator, frames=tables, frame_rounds=torch.tensor(list(frames)), **more
        )

    # A snapshot is of a copy: rounds change the rule in place.
    yield Progress(PHASE, 0, round_count, model=make_model(copy.deepcopy(aggregator), 0))
    for done, loss in enumerate(training_rounds, 1):
        losses.append(loss)
        if not should_record_curve_point(done, round_count):
            yield Progress(PHASE, done, round_count)
            continue
        is_finite = are_all_finite([loss, *aggregator.parameters()]).to(loss)
        is_well, value = torch.stack([is_finite, loss]).tolist()  # one wait for the device
        if not is_well:
            raise RunError(
                f"Training the aggregator diverged with {learning_rate_text}; use smaller rates."
            )
        snapshot = make_model(copy.deepcopy(aggregator), done)
        yield Progress(PHASE, done, round_count, {"loss": value}, model=snapshot)
    numbers = {
        "proxy_samples": sum(len(proxy.labels) for proxy in samples),
        "contribution": compute_mean_client_contributions(aggregator, samples),
    }
    return make_model(aggregator, round_count, losses=torch.stack(losses), **numbers)


def compute_mean_true_class_gradients(
    aggregator: Aggregator, proxies: Iterable[ProxySamples]
) -> ValuePerClientAndClass:
    """`[M, C]`: the mean of d f_c / d z_ic, client i's logit for class c, over the proxy samples of class c.

    Of a weighted sum it is the table of weights itself, of a mixture of experts the gate's mean for each class, of a
    network its mean slope. A class without a proxy sample is judged on all of them.
    """
    if (table := aggregator.get_client_weights()) is not None:
        return table.clone()
    return _average_true_class_gradients(aggregator, proxies, should_multiply_by_logit=False)


def compute_mean_client_contributions(
    aggregator: Aggregator, proxies: Iterable[ProxySamples]
) -> ValuePerClientAndClass:
    """`[M, C]`: the mean of z_ic d f_c / d z_ic likewise; of a weighted sum, what client i adds to class c's score."""
    return _average_true_class_gradients(aggregator, proxies, should_multiply_by_logit=True)


def _average_true_class_gradients(
    aggregator: Aggregator, proxies: Iterable[ProxySamples], should_multiply_by_logit: bool
) -> ValuePerClientAndClass:
    filled = [proxy for proxy in proxies if len(proxy.labels)]
    z, labels, x = ProxySamples.concatenate(filled).select(slice(SAMPLES))
    columns = []
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        scores = aggregator(z, x)
        for c in range(scores.shape[1]):
            rows = labels == c
            if not bool(rows.any()):
                rows = torch.ones_like(rows)
            (slope,) = torch.autograd.grad(scores[rows, c].sum(), z, retain_graph=True)
            if should_multiply_by_logit:
                slope = slope * z.detach()
            columns.append(slope[rows, :, c].mean(0))
    return torch.stack(columns, 1)


# ---------------------------------------------------------------------------------------------------------- fixed rules
# The rules whose λ is not a result of training (Allouah et al., NeurIPS 2024, table 9): what they need is counted.
#
# Plain averaging counts nothing, weighted averaging the labels, polychotomous voting how every model votes.


class Voting(Aggregator):
    """Polychotomous voting with a uniform prior and 0/1 benefit: `score_r = sum_i log P_i[r, vote_i]`. q = 0.

    counts: `[M, C, C]`, how often client i's model voted c for a sample of true class r, merged (added up) over the
    clients. `P_i[r, c] = (counts + laplace) / (row sum + C * laplace)`; a class that was never seen then has a
    uniform row. `laplace` is 1/C unless given: one imaginary vote a row, spread over the C classes. The paper gives no
    amount; this prior is fixed beforehand, not tuned. Without smoothing (`laplace=0`) a single zero forbids a class;
    an unseen class is then uniform too. Only hard votes are used.
    """

    log_competency: Tensor
    reads_probabilities = True

    def __init__(self, counts: Tensor, laplace: float | None = None) -> None:
        super().__init__()
        classes = counts.shape[2]
        counts = counts.double() + (1 / classes if laplace is None else laplace)
        totals = counts.sum(2, keepdim=True)
        competency = torch.where(totals > 0, counts / totals, torch.full_like(counts, 1 / classes))
        self.register_buffer("log_competency", competency.log().float())

    def forward(self, logits: ClientLogitsBySample, images: Images | None = None) -> ClassScores:
        votes = logits.argmax(2)  # [B, M]
        client = torch.arange(votes.shape[1], device=votes.device)
        return self.log_competency.transpose(1, 2)[client, votes].sum(1)  # [B, M, C] -> [B, C]

    def get_vote_shares_by_true_class(self) -> VoteSharesByTrueClass:
        return self.log_competency.exp()


def count_votes_by_true_class(
    client_logits: ClientLogitsBySample, labels: Labels
) -> VoteCountsByTrueClass:
    """How often each model votes for c where the truth is r: `[M, r, c]` int32.

    client_logits: `[n, M, C]`
    labels: `[n]`
    """
    _, clients, classes = client_logits.shape
    client = torch.arange(clients, device=client_logits.device)
    # [n, M]: where (client, truth, vote) lies in the flat table
    cell = (client * classes + labels[:, None]) * classes + client_logits.argmax(2)
    return (
        torch.bincount(cell.flatten(), minlength=clients * classes**2)
        .view(clients, classes, classes)
        .int()
    )


def make_untrained_aggregator(
    ctx: Context,
    name: Literal["averaging", "weighted", "voting"],
    experts: Experts,
    proxy_source: ProxySource,
) -> Aggregator:
    """The rule `name`, which is not trained: what it needs is counted by the clients and sent up.

    proxy_source: the samples on which votes are counted; with "server" they are sent up, and counted there
    """
    members = experts.members
    if name == "averaging":
        return make_averaging_aggregator(len(members), ctx.classes).to(ctx.device, ctx.dtype)
    if name == "weighted":
        return make_weighted_averaging_aggregator(
            send_class_counts_and_compute_class_shares(ctx, members)
        )
    # Clients: count how every model votes on own samples. Link: the counts up. Server: the sum of them.
    proxies = compute_proxy_samples_by_owner(ctx, experts, proxy_source)
    received = []
    for owner, proxy in proxies.items():
        if len(proxy.labels):
            counts = count_votes_by_true_class(proxy.logits, proxy.labels)
            if owner != "server":
                counts = ctx.link.up(owner, counts, phase="confusion matrices")
            received.append(counts)
    with ctx.server():
        return Voting(torch.stack(received).sum(0)).to(ctx.device, ctx.dtype)
