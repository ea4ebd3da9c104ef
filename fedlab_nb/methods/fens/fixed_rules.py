"""The rules whose λ is no result of training (Allouah et al., NeurIPS 2024, table 9): what they need is counted.

Plain averaging counts nothing, weighted averaging the labels, polychotomous voting how every model votes.
"""

import torch
from torch import Tensor

from ..context import Context
from ..parts.frozen_ensemble import class_count_weights
from .aggregators import Aggregator, averaging, weighted_averaging
from .model import Experts
from .proxies import cached_logits


class Voting(Aggregator):
    """Polychotomous voting with a uniform prior and 0/1 benefit: `score_r = sum_i log P_i[r, vote_i]`. q = 0.

    counts: `[M, C, C]`, how often client i's model voted c for a sample of true class r, merged (added up) over the
    clients. `P_i[r, c] = (counts + laplace) / (row sum + C * laplace)`; a class that was never seen then has a
    uniform row. `laplace` is 1/C unless given: one imaginary vote a row, spread over the C classes. The paper gives no
    amount; this prior is fixed beforehand, not tuned. Without smoothing (`laplace=0`) a single zero forbids a class;
    an unseen class is then uniform too. Only hard votes are used.
    """

    log_competency: Tensor

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

    def competency(self) -> Tensor:
        return self.log_competency.exp()


def vote_counts(z: Tensor, labels: Tensor) -> Tensor:
    """How often each model votes c where the truth is r: `[M, C, C]` int32, from `z [n, M, C]` and labels `[n]`."""
    _, clients, classes = z.shape
    client = torch.arange(clients, device=z.device)
    # [n, M]: where (client, truth, vote) lies in the flat table
    cell = (client * classes + labels[:, None]) * classes + z.argmax(2)
    return torch.bincount(cell.flatten(), minlength=clients * classes**2).view(clients, classes, classes).int()


def fixed_rule(ctx: Context, name: str, experts: Experts, source: str) -> Aggregator:
    """The rule `name`; what it needs is counted by the clients, or, for votes on the samples of `source` (one of
    `proxies.PROXIES`) "server", there."""
    members = experts.members
    if name == "averaging":
        return averaging(len(members), ctx.classes).to(ctx.device, ctx.dtype)
    if name == "weighted":
        return weighted_averaging(class_count_weights(ctx, members))
    # Clients: count how every model votes on own samples. Link: the counts up. Server: the sum of them.
    proxies = cached_logits(ctx, experts, source)
    counts = {k: vote_counts(own.logits, own.labels) for k, own in proxies.items() if len(own.labels)}
    up = [own if k == "server" else ctx.link.up(k, own, phase="confusion matrices") for k, own in counts.items()]
    with ctx.server():
        return Voting(torch.stack(up).sum(0)).to(ctx.device, ctx.dtype)
