"""How much a trained aggregator makes of each client, class by class: tables for every rule that has a gradient.

They are ours to watch, like the loss: nothing of them is sent or used.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .aggregators import Aggregator
from .phase2 import Proxy

SAMPLES = 500  # at most so many are looked at


def influence(rule: Aggregator, proxies: list[Proxy]) -> Tensor:
    """`[M, C]`: the mean of d f_c / d z_ic, client i's logit for class c, over the proxy samples of class c.

    Of a weighted sum it is the table of weights itself, of a mixture of experts the gate's mean for each class, of a
    network its mean slope. A class without a proxy sample is judged on all of them.
    """
    if (table := rule.weights()) is not None:
        return table.clone()
    return _mean_slopes(rule, proxies, times_logit=False)


def contribution(rule: Aggregator, proxies: list[Proxy]) -> Tensor:
    """`[M, C]`: the mean of z_ic d f_c / d z_ic likewise; of a weighted sum, what client i adds to class c's score."""
    return _mean_slopes(rule, proxies, times_logit=True)


def _mean_slopes(rule: Aggregator, proxies: list[Proxy], times_logit: bool) -> Tensor:
    parts = zip(*(proxy for proxy in proxies if len(proxy.labels)), strict=True)
    z, labels, x = (None if part[0] is None else torch.cat(part)[:SAMPLES] for part in parts)
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
