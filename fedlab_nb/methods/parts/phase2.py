"""Federated training of an aggregator over the clients' cached logits: phase 2 of FENS (Algorithm 1 of the paper).

The client models are frozen, so client i computes its logits `Z_i [n_i, M, C]` once and no image is touched again
(but for a gate, which reads them). In each of T rounds the server sends lambda down; client i takes K steps of plain
SGD on mini-batches of its proxy samples and sends lambda^(i) up; the server moves lambda by FedAdam, FedYogi or
FedAvg. Two forms of the same numbers:

- `rounds_by_client`: the algorithm as written, client by client, every message through the link. Readable; the oracle.
- `rounds_pooled` (K = 1, every client in every round): one step from lambda on the mean loss of a mini-batch gives
  `delta_i = -eta_l grad_i`, so `delta = sum_i w_i delta_i = -eta_l * gradient of sum_i w_i (mean loss of client i)`:
  one weighted gradient over all clients' mini-batches laid side by side. With w_i proportional to the samples used, a
  round is exactly one step of Adam (without bias correction) on the pooled mini-batch. With K = 2 this is no longer
  true, and the loop is used.

A client without proxy samples takes no part: it has no weight and gets no aggregator. Both forms are generators that
change the aggregator in place and yield, after each round, the loss that it had before (a tensor on the device, read
only when someone wants it): `sum_i w_i (mean loss of client i's first mini-batch)`, which is ours to watch and not
part of the messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...comm import Ledger, Link, size
from ...errors import UsageError, choose
from . import server_optimizers
from .aggregators import Aggregator

PHASE = "aggregator"
CLIENT_WEIGHTS: dict[str, str] = {
    "samples": "in proportion to the samples used in the round",
    "uniform": "every client the same, as in the paper's pseudo-code",
}


class Proxy(NamedTuple):
    """What one client trains on: cached logits `[n, M, C]`, labels `[n]`, and the inputs where a gate reads them."""

    logits: Tensor
    labels: Tensor
    inputs: Tensor | None = None


@dataclass(frozen=True)
class Plan:
    """T rounds, K local steps, mini-batch size, the two learning rates, and how the server averages and steps.

    `eta_s` is for the adaptive servers; "fedavg" is the plain average and has none.
    """

    rounds: int = 50
    steps: int = 1
    batch: int = 128
    eta_l: float = 1.0
    eta_s: float = 0.01
    server: str = "fedadam"
    weights: str = "samples"


def draw_batches(samples: int, batch: int, steps: int, generator: torch.Generator) -> Tensor:
    """Indices of `steps` successive mini-batches of one client, `[steps, min(samples, batch)]`.

    Shuffled passes over the samples, an incomplete last batch dropped; a client with no more than `batch` samples
    uses them all, in order, every time. A longer plan begins with the batches of a shorter one.
    """
    if samples <= batch:
        return torch.arange(samples).expand(steps, samples)
    a_pass = samples // batch
    passes = [torch.randperm(samples, generator=generator)[: a_pass * batch] for _ in range(-(-steps // a_pass))]
    return torch.cat(passes).view(-1, batch)[:steps]


def client_weights(proxies: list[Proxy], plan: Plan) -> list[float]:
    """w_i, summing to 1; 0 for a client without proxy samples. UsageError if none has any."""
    choose("client weighting", plan.weights, CLIENT_WEIGHTS)
    used = [min(len(proxy.labels), plan.batch) for proxy in proxies]
    if plan.weights == "uniform":
        used = [min(n, 1) for n in used]
    if not sum(used):
        raise UsageError(
            "No client has a proxy sample, so the aggregator cannot be trained; hold out a larger part of the data."
        )
    return [n / sum(used) for n in used]


def train(
    aggregator: Aggregator,
    proxies: list[Proxy],
    plan: Plan,
    streams: Callable[[int], torch.Generator],
    link: Link | None = None,
    server: Callable[[], AbstractContextManager] = nullcontext,
    ids: Sequence[int] | None = None,
) -> Iterator[Tensor]:
    """Phase 2 in the fast form where it applies (K = 1) and client by client otherwise; yields the loss of each round.

    `streams(i)` is the generator of mini-batches of `proxies[i]`, `link` counts the messages, `server()` guards the
    server's part. `ids[i]` is whom the link knows the owner of `proxies[i]` by (None: i).
    """
    batches = [
        draw_batches(len(p.labels), plan.batch, plan.rounds * plan.steps, streams(i)) for i, p in enumerate(proxies)
    ]
    form = rounds_pooled if plan.steps == 1 else rounds_by_client
    return form(aggregator, proxies, batches, plan, link, server, ids)


def rounds_by_client(
    aggregator: Aggregator,
    proxies: list[Proxy],
    batches: list[Tensor],
    plan: Plan,
    link: Link | None = None,
    server: Callable[[], AbstractContextManager] = nullcontext,
    ids: Sequence[int] | None = None,
) -> Iterator[Tensor]:
    """The algorithm as written. `batches[i]` are client i's mini-batches, `[T*K, b_i]`, K of them a round."""
    weights = client_weights(proxies, plan)
    ids = range(len(proxies)) if ids is None else ids
    members = [i for i, weight in enumerate(weights) if weight]
    shared = flat_parameters(aggregator)
    state = server_optimizers.initial_state(shared)
    for t in range(plan.rounds):
        sent, returned, losses = shared.clone(), [], []
        for i in members:
            shared.copy_(link.down(ids[i], sent, phase=PHASE) if link else sent)  # client i
            for j in range(t * plan.steps, (t + 1) * plan.steps):
                chosen = batches[i][j].to(shared.device)
                loss, gradient = _gradient(aggregator, _rows(proxies[i], chosen))
                shared -= plan.eta_l * gradient
                if j == t * plan.steps:
                    losses.append(weights[i] * loss)
            returned.append(link.up(ids[i], shared, phase=PHASE) if link else shared.clone())
        with server():
            delta = server_optimizers.mean_change([weights[i] for i in members], returned, sent)
            moved, state = server_optimizers.step(plan.server, sent, delta, state, lr=_rate(plan))
            shared.copy_(moved)
        yield sum(losses)


def rounds_pooled(
    aggregator: Aggregator,
    proxies: list[Proxy],
    batches: list[Tensor],
    plan: Plan,
    link: Link | None = None,
    server: Callable[[], AbstractContextManager] = nullcontext,
    ids: Sequence[int] | None = None,
) -> Iterator[Tensor]:
    """All clients' mini-batches as one (K = 1 only); the messages that this stands for are counted all the same."""
    if plan.steps != 1:
        raise UsageError(f"The pooled form is exact for 1 local step only, not for {plan.steps}; use rounds_by_client.")
    weights = client_weights(proxies, plan)
    members = [i for i, weight in enumerate(weights) if weight]
    shared = flat_parameters(aggregator)
    parts = zip(*(proxies[i] for i in members), strict=True)
    pool = Proxy(*(None if part[0] is None else torch.cat(part) for part in parts))
    widths = [batches[i].shape[1] for i in members]
    starts = [0, *itertools.accumulate(len(proxies[i].labels) for i in members)][:-1]
    index = torch.cat([batches[i] + first for i, first in zip(members, starts, strict=True)], 1)  # [T, P]
    each = torch.cat([shared.new_full((b,), weights[i] / b) for i, b in zip(members, widths, strict=True)])  # [P]
    index = index.to(shared.device)
    whole = sum(widths) == len(pool.labels)  # every client uses all its samples in every round: nothing to choose
    state = server_optimizers.initial_state(shared)
    for t in range(plan.rounds):
        loss, gradient = _gradient(aggregator, pool if whole else _rows(pool, index[t]), each)
        if link:
            _count_round(link.ledger, [i if ids is None else ids[i] for i in members], shared)
        with server():
            moved, state = server_optimizers.step(plan.server, shared, -plan.eta_l * gradient, state, lr=_rate(plan))
            shared.copy_(moved)
        yield loss


def flat_parameters(module: nn.Module) -> Tensor:
    """All parameters of `module` as one vector `[q]` that they share memory with: writing to it changes the module."""
    parameters = list(module.parameters())
    flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
    for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.data = part.view_as(parameter)
    return flat


def _rate(plan: Plan) -> float:
    return 1.0 if plan.server == "fedavg" else plan.eta_s


def _rows(proxy: Proxy, chosen: Tensor) -> Proxy:
    return Proxy(*(None if part is None else part[chosen] for part in proxy))


def _gradient(aggregator: Aggregator, batch: Proxy, each: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The cross-entropy over a batch (its mean, or weighted by `each [b]`) and its gradient, flat `[q]`."""
    with torch.enable_grad():
        scores = aggregator(batch.logits, batch.inputs)
        if each is None:
            loss = cross_entropy(scores, batch.labels)
        else:
            loss = cross_entropy(scores, batch.labels, reduction="none") @ each
        gradients = torch.autograd.grad(loss, list(aggregator.parameters()))
    return loss.detach(), torch.cat([gradient.flatten() for gradient in gradients])


def _count_round(ledger: Ledger, members: list[int], message: Tensor) -> None:
    """The messages of one round, each of them lambda, without making them: they would take longer than the round."""
    count = size(message)
    for i in members:
        ledger.add(i, "down", PHASE, count)
        ledger.add(i, "up", PHASE, count)
