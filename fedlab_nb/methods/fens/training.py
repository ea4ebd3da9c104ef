"""What the aggregator is trained on: each client's proxy samples, as the frozen ensemble sees them.

The client models are frozen, so client i computes its logits `Z_i [n_i, M, C]` once and no image is touched again (but
for a gate, which reads them).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...comm import Ledger, count_bytes
from ...errors import RunError, UsageError, choose
from ...models.state import all_finite
from ..base import Context, Progress, Steps
from ..parts.byzantine import add_random_lies
from ..parts.frozen_ensemble import make_class_count_weights
from ..run_outputs import has_curve_point
from .aggregators import PHASE, Aggregator, make_averaging, make_weighted_averaging
from .model import Experts, FensModel

Owner = Any  # of a proxy: a client's number, or "server"
PROXIES = ("held-out", "reused", "reused-equal", "server")
# In proportion to the samples used in the round; every client the same, as in the paper's pseudo-code.
CLIENT_WEIGHTS = ("samples", "uniform")


class Proxy(NamedTuple):
    """What one client trains on: cached logits `[n, M, C]`, labels `[n]`, and the inputs where a gate reads them."""

    logits: Tensor
    labels: Tensor
    inputs: Tensor | None = None

    def select(self, chosen: Tensor | slice) -> Proxy:
        """The samples with these indices."""
        inputs = None
        if self.inputs is not None:
            inputs = self.inputs[chosen]
        return Proxy(self.logits[chosen], self.labels[chosen], inputs)

    @classmethod
    def concatenate(cls, proxies: Sequence[Proxy]) -> Proxy:
        """The samples of all, one after the other."""
        logits, labels, inputs = zip(*proxies, strict=True)
        together = None
        if inputs[0] is not None:
            together = torch.cat(inputs)
        return cls(torch.cat(logits), torch.cat(labels), together)


def choose_client_samples(ctx: Context, client: int, source: str) -> tuple[Tensor, Tensor]:
    """Client k's own samples for the aggregator: `source` is one of PROXIES."""
    if source in ("held-out", "server"):
        return ctx.private.held_out(client)
    x, y = ctx.private.train(client)
    if source == "reused":
        return x, y
    order = torch.randperm(len(y), generator=ctx.generator("fens", "proxy", client)).to(y.device)
    chosen = order[: ctx.private.sizes("held_out")[client]]
    return x[chosen], y[chosen]


def make_proxies(
    ctx: Context,
    experts: Experts,
    source: str,
    inputs: bool = False,
    liars: int = 0,
    lie: float = 0.0,
) -> dict[Owner, Proxy]:
    """{client: its proxy}; or {"server": one of samples that the members send up for it}.

    inputs: keep those too;   liars: each sample is there once more, and so many clients answer
    falsely on it, with the logit `lie`
    """
    members = experts.members
    sets: dict[Owner, tuple[Tensor, ...]] = {
        k: choose_client_samples(ctx, k, source) for k in members
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
        proxy = Proxy(logits, y, x if inputs else None)
        if liars:
            stream = ctx.generator("fens", "lies", owner)
            lies = add_random_lies(logits, liars, stream, lie)
            proxy = Proxy.concatenate([proxy, proxy._replace(logits=lies)])
        proxies[owner] = proxy
    return proxies


def draw_batches(proxy: Proxy, batch: int, steps: int, generator: torch.Generator) -> Tensor:
    """Indices of `steps` successive mini-batches of n samples, `[steps, min(n, batch)]`.

    Shuffled passes over the samples, an incomplete last batch dropped; a client with no more than `batch` samples
    uses them all, in order, every time. A longer plan begins with the batches of a shorter one.
    """
    samples, device = len(proxy.labels), proxy.labels.device
    if samples <= batch:
        return torch.arange(samples, device=device).expand(steps, samples)
    a_pass = samples // batch
    passes = [
        torch.randperm(samples, generator=generator)[: a_pass * batch]
        for _ in range(-(-steps // a_pass))
    ]
    return torch.cat(passes).view(-1, batch)[:steps].to(device)


def compute_client_weights(
    proxies: Mapping[Owner, Proxy], batch: int, kind: str
) -> dict[Owner, float]:
    """w_i of those with proxy samples, summing to 1. UsageError if nobody has any."""
    choose("client weighting", kind, CLIENT_WEIGHTS)
    most = batch if kind == "samples" else 1
    used = {}
    for owner, proxy in proxies.items():
        if len(proxy.labels):
            used[owner] = min(len(proxy.labels), most)
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


def flatten_parameters(module: nn.Module) -> Tensor:
    """All parameters of `module` as one vector `[q]` that they share memory with: writing to it changes the module."""
    parameters = list(module.parameters())
    flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
    for parameter, part in zip(
        parameters, flat.split([p.numel() for p in parameters]), strict=True
    ):
        parameter.data = part.view_as(parameter)
    return flat


def compute_gradient(
    aggregator: Aggregator, batch: Proxy, sample_weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The cross-entropy over a batch (its mean, or weighted by `sample_weights [b]`) and its gradient, flat `[q]`."""
    with torch.enable_grad():
        scores = aggregator(batch.logits, batch.inputs)
        if sample_weights is None:
            loss = cross_entropy(scores, batch.labels)
        else:
            loss = cross_entropy(scores, batch.labels, reduction="none") @ sample_weights
        gradients = torch.autograd.grad(loss, list(aggregator.parameters()))
    return loss.detach(), torch.cat([gradient.flatten() for gradient in gradients])


def make_round_gradient(
    aggregator: Aggregator, proxies: Mapping[Owner, Proxy], batches: Mapping[Owner, Tensor],
    weights: Mapping[Owner, float],
) -> Callable[[int], tuple[Tensor, Tensor]]:  # fmt: skip
    """A function from round t (of J = 1) to Σ_k w_k (mean loss of client k) and its gradient `[q]`.

    batches: `[T, b_k]`;   weights: w_k of the clients that take part
    """
    pool = Proxy.concatenate([proxies[i] for i in weights])
    indices = []  # of each client's batches among the samples of all, [T, b_k]
    sample_weights = []  # [b_k]
    first = 0
    for i, weight in weights.items():
        batch_size = batches[i].shape[1]
        indices.append(batches[i] + first)
        sample_weights.append(pool.logits.new_full((batch_size,), weight / batch_size))
        first += len(proxies[i].labels)
    index = torch.cat(indices, 1)  # [T, P]
    each = torch.cat(sample_weights)  # [P]
    uses_all = index.shape[1] == len(pool.labels)  # in every round: nothing to choose

    def gradient_of_round(round_index: int) -> tuple[Tensor, Tensor]:
        batch = pool if uses_all else pool.select(index[round_index])
        return compute_gradient(aggregator, batch, each)

    return gradient_of_round


def draw_participants(
    owners: Sequence[Owner], count: int, rounds: int, stream: Callable[[Owner], torch.Generator]
) -> list[list[Owner]]:
    """S_t of each round: m of the `owners`, in their order, uniformly without replacement; all, undrawn, for m = 0."""
    if not 0 < count < len(owners):
        return [list(owners)] * rounds
    draws = stream("participants")
    participants = []
    for _ in range(rounds):
        chosen = sorted(torch.randperm(len(owners), generator=draws)[:count].tolist())
        participants.append([owners[i] for i in chosen])
    return participants


def record_round_bytes(ledger: Ledger, members: Iterable[Owner], message: Tensor) -> None:
    """The messages of one round, each as large as λ, without making them: they would take longer than the round."""
    count = count_bytes(message)
    for k in members:
        ledger.add(k, "down", PHASE, count)
        ledger.add(k, "up", PHASE, count)


# ------------------------------------------------------------------------------------------------------------ influence
# Phase 2, watched: the loss, and how much the aggregator makes of each client, class by class.
#
# Nothing of it is sent or used.

SAMPLES = 500  # at most so many are looked at


def train_with_snapshots(
    experts: Experts,
    rule: Aggregator,
    proxies: Mapping[Owner, Proxy],
    rounds: Iterator[Tensor],
    total: int,
    rates: str,
) -> Steps[FensModel]:
    """Go through the `total` rounds that train `rule` (each yields its loss), with a snapshot every now and then.

    RunError, which names the `rates`, where the training has diverged.
    """
    losses = []
    frames: dict[int, Tensor] = {}
    samples = list(proxies.values())

    def make_model(aggregator: Aggregator, done: int, **more: Any) -> FensModel:
        frames[done] = compute_influence(aggregator, samples)
        tables = torch.stack(list(frames.values()))
        return FensModel(
            experts, aggregator, frames=tables, frame_rounds=torch.tensor(list(frames)), **more
        )

    # A snapshot is of a copy: rounds change the rule in place.
    yield Progress(PHASE, 0, total, model=make_model(copy.deepcopy(rule), 0))
    for done, loss in enumerate(rounds, 1):
        losses.append(loss)
        if not has_curve_point(done, total):
            yield Progress(PHASE, done, total)
            continue
        is_finite = all_finite([loss, *rule.parameters()]).to(loss)
        is_well, value = torch.stack([is_finite, loss]).tolist()  # one wait for the device
        if not is_well:
            raise RunError(f"Training the aggregator diverged with {rates}; use smaller rates.")
        snapshot = make_model(copy.deepcopy(rule), done)
        yield Progress(PHASE, done, total, {"loss": value}, model=snapshot)
    numbers = {
        "proxy_samples": sum(len(proxy.labels) for proxy in samples),
        "contribution": compute_contribution(rule, samples),
    }
    return make_model(rule, total, losses=torch.stack(losses), **numbers)


def compute_influence(rule: Aggregator, proxies: Iterable[Proxy]) -> Tensor:
    """`[M, C]`: the mean of d f_c / d z_ic, client i's logit for class c, over the proxy samples of class c.

    Of a weighted sum it is the table of weights itself, of a mixture of experts the gate's mean for each class, of a
    network its mean slope. A class without a proxy sample is judged on all of them.
    """
    if (table := rule.get_weights()) is not None:
        return table.clone()
    return _average_slopes(rule, proxies, times_logit=False)


def compute_contribution(rule: Aggregator, proxies: Iterable[Proxy]) -> Tensor:
    """`[M, C]`: the mean of z_ic d f_c / d z_ic likewise; of a weighted sum, what client i adds to class c's score."""
    return _average_slopes(rule, proxies, times_logit=True)


def _average_slopes(rule: Aggregator, proxies: Iterable[Proxy], times_logit: bool) -> Tensor:
    filled = [proxy for proxy in proxies if len(proxy.labels)]
    z, labels, x = Proxy.concatenate(filled).select(slice(SAMPLES))
    columns = []
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        scores = rule(z, x)
        for c in range(scores.shape[1]):
            rows = labels == c
            if not bool(rows.any()):
                rows = torch.ones_like(rows)
            (slope,) = torch.autograd.grad(scores[rows, c].sum(), z, retain_graph=True)
            if times_logit:
                slope = slope * z.detach()
            columns.append(slope[rows, :, c].mean(0))
    return torch.stack(columns, 1)


# ---------------------------------------------------------------------------------------------------------- fixed rules
# The rules whose λ is no result of training (Allouah et al., NeurIPS 2024, table 9): what they need is counted.
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

    def forward(self, logits: Tensor, images: Tensor | None = None) -> Tensor:
        votes = logits.argmax(2)  # [B, M]
        client = torch.arange(votes.shape[1], device=votes.device)
        return self.log_competency.transpose(1, 2)[client, votes].sum(1)  # [B, M, C] -> [B, C]

    def get_competency(self) -> Tensor:
        return self.log_competency.exp()


def count_votes(logits: Tensor, labels: Tensor) -> Tensor:
    """How often each model votes c where the truth is r: `[M, C, C]` int32, from `logits [n, M, C]` and labels
    `[n]`."""
    _, clients, classes = logits.shape
    client = torch.arange(clients, device=logits.device)
    # [n, M]: where (client, truth, vote) lies in the flat table
    cell = (client * classes + labels[:, None]) * classes + logits.argmax(2)
    return (
        torch.bincount(cell.flatten(), minlength=clients * classes**2)
        .view(clients, classes, classes)
        .int()
    )


def make_fixed_aggregator(ctx: Context, name: str, experts: Experts, source: str) -> Aggregator:
    """The rule `name`; what it needs is counted by the clients, or, for votes on the samples of `source` (one of
    PROXIES) "server", there."""
    members = experts.members
    if name == "averaging":
        return make_averaging(len(members), ctx.classes).to(ctx.device, ctx.dtype)
    if name == "weighted":
        return make_weighted_averaging(make_class_count_weights(ctx, members))
    # Clients: count how every model votes on own samples. Link: the counts up. Server: the sum of them.
    proxies = make_proxies(ctx, experts, source)
    received = []
    for owner, proxy in proxies.items():
        if len(proxy.labels):
            counts = count_votes(proxy.logits, proxy.labels)
            if owner != "server":
                counts = ctx.link.up(owner, counts, phase="confusion matrices")
            received.append(counts)
    with ctx.server():
        return Voting(torch.stack(received).sum(0)).to(ctx.device, ctx.dtype)
