"""Phase 2, watched: the loss, and how much the aggregator makes of each client, class by class.

Nothing of it is sent or used.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ...errors import RunError
from ...models.state import finite
from ..base import Progress, Steps
from .aggregators import Aggregator
from .model import Experts, FensModel
from .proxies import Owner, Proxy
from .aggregators import PHASE

FRAMES = 20  # about so many snapshots over the rounds
SAMPLES = 500  # at most so many are looked at


def watched(
    experts: Experts, rule: Aggregator, proxies: Mapping[Owner, Proxy], rounds: Iterator[Tensor], total: int,
    rates: str,
) -> Steps[FensModel]:  # fmt: skip
    """Go through the `total` rounds that train `rule` (each yields its loss), with a snapshot every now and then.

    RunError, which names the `rates`, where the training has diverged.
    """
    losses, frames, samples = [], {}, list(proxies.values())

    def model(of: Aggregator, done: int, **more: Any) -> FensModel:
        frames[done] = influence(of, samples)
        tables, at = torch.stack(list(frames.values())), torch.tensor(list(frames))
        return FensModel(experts, of, frames=tables, frame_rounds=at, **more)

    yield Progress(PHASE, 0, total, model=model(copy.deepcopy(rule), 0))  # of a copy: rounds change the rule in place
    for done, loss in enumerate(rounds, 1):
        losses.append(loss)
        if done % max(1, total // FRAMES) and done < total:
            yield Progress(PHASE, done, total)
            continue
        well, value = torch.stack([finite([loss, *rule.parameters()]).to(loss), loss]).tolist()
        if not well:
            raise RunError(
                f"Training the aggregator diverged with {rates}: its numbers are no longer finite; use smaller rates."
            )
        yield Progress(PHASE, done, total, {"loss": value}, model=model(copy.deepcopy(rule), done))
    numbers = {"proxy_samples": sum(len(own.labels) for own in samples), "contribution": contribution(rule, samples)}
    return model(rule, total, losses=torch.stack(losses), **numbers)


def influence(rule: Aggregator, proxies: Iterable[Proxy]) -> Tensor:
    """`[M, C]`: the mean of d f_c / d z_ic, client i's logit for class c, over the proxy samples of class c.

    Of a weighted sum it is the table of weights itself, of a mixture of experts the gate's mean for each class, of a
    network its mean slope. A class without a proxy sample is judged on all of them.
    """
    if (table := rule.weights()) is not None:
        return table.clone()
    return _mean_slopes(rule, proxies, times_logit=False)


def contribution(rule: Aggregator, proxies: Iterable[Proxy]) -> Tensor:
    """`[M, C]`: the mean of z_ic d f_c / d z_ic likewise; of a weighted sum, what client i adds to class c's score."""
    return _mean_slopes(rule, proxies, times_logit=True)


def _mean_slopes(rule: Aggregator, proxies: Iterable[Proxy], times_logit: bool) -> Tensor:
    z, labels, x = Proxy.joined([own for own in proxies if len(own.labels)]).rows(slice(SAMPLES))
    columns = []
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        scores = rule(z, x)
        for c in range(scores.shape[1]):
            rows = labels == c
            rows = rows if bool(rows.any()) else torch.ones_like(rows)
            (slope,) = torch.autograd.grad(scores[rows, c].sum(), z, retain_graph=True)
            each = (slope * z.detach() if times_logit else slope)[rows, :, c]
            columns.append(each.mean(0))
    return torch.stack(columns, 1)
