"""One step of SGD on λ: a client's own; and, where J = 1, all clients' at once, which gives the same numbers.

One step from λ on the mean loss of a mini-batch gives `delta_k = -eta_l grad_k`, so that `delta = sum_k w_k delta_k =
-eta_l * gradient of sum_k w_k (mean loss of client k)`: one weighted gradient over all clients' mini-batches laid side
by side. With w_k proportional to the samples used, a round is exactly one step of Adam (without bias correction) on
the pooled mini-batch. With J = 2 this is no longer true: a client's second gradient is taken where only its own first
step led.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...comm import Ledger, size
from .aggregators import PHASE, Aggregator
from .proxies import Owner, Proxy



def flat_parameters(module: nn.Module) -> Tensor:
    """All parameters of `module` as one vector `[q]` that they share memory with: writing to it changes the module."""
    parameters = list(module.parameters())
    flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
    for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.data = part.view_as(parameter)
    return flat


def gradient(aggregator: Aggregator, batch: Proxy, each: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The cross-entropy over a batch (its mean, or weighted by `each [b]`) and its gradient, flat `[q]`."""
    with torch.enable_grad():
        scores = aggregator(batch.logits, batch.inputs)
        if each is None:
            loss = cross_entropy(scores, batch.labels)
        else:
            loss = cross_entropy(scores, batch.labels, reduction="none") @ each
        gradients = torch.autograd.grad(loss, list(aggregator.parameters()))
    return loss.detach(), torch.cat([gradient.flatten() for gradient in gradients])


def all_at_once(
    aggregator: Aggregator, proxies: Mapping[Owner, Proxy], batches: Mapping[Owner, Tensor],
    weights: Mapping[Owner, float],
) -> Callable[[int], tuple[Tensor, Tensor]]:  # fmt: skip
    """A function from round t (of J = 1) to Σ_k w_k (mean loss of client k) and its gradient `[q]`.

    batches: `[T, b_k]`;   weights: w_k of the clients that take part
    """
    pool = Proxy.joined([proxies[i] for i in weights])
    ends = itertools.accumulate(len(proxies[i].labels) for i in weights)
    index = torch.cat([batches[i] + first for i, first in zip(weights, [0, *ends], strict=False)], 1)  # [T, P]
    sizes = {i: batches[i].shape[1] for i in weights}
    each = torch.cat([pool.logits.new_full((sizes[i],), w / sizes[i]) for i, w in weights.items()])  # [P]
    whole = index.shape[1] == len(pool.labels)  # all use all their samples in every round: nothing to choose
    return lambda t: gradient(aggregator, pool if whole else pool.rows(index[t]), each)


def participants(
    owners: Sequence[Owner], m: int, rounds: int, stream: Callable[[Owner], torch.Generator]
) -> list[list[Owner]]:
    """S_t of each round: m of the `owners`, in their order, uniformly without replacement; all, undrawn, for m = 0."""
    if not 0 < m < len(owners):
        return [list(owners)] * rounds
    draws = stream("participants")
    chosen = (sorted(torch.randperm(len(owners), generator=draws)[:m].tolist()) for _ in range(rounds))
    return [[owners[i] for i in own] for own in chosen]


def count_round(ledger: Ledger, members: Iterable[Owner], message: Tensor) -> None:
    """The messages of one round, each as large as λ, without making them: they would take longer than the round."""
    count = size(message)
    for k in members:
        ledger.add(k, "down", PHASE, count)
        ledger.add(k, "up", PHASE, count)
