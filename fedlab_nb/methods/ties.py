"""Merge changes, not weights: task arithmetic, TIES and DARE, from the merging of large language models.

Every client starts from θ_0 and sends its change τ_k = θ_k - θ_0. The server answers with θ_0 + λ τ̄, where τ̄ is

- rule=task: Σ_k w_k τ_k, task arithmetic (Ilharco et al., ICLR 2023). λ = 1 is plain averaging.
- rule=ties: TIES (Yadav et al., NeurIPS 2023). Trim: client k keeps the share q of its entries that are largest in
  magnitude. Elect: each parameter's sign is that of Σ_k w_k τ_k (for a sum of 0 that of most clients). Merge: the mean
  over the clients whose entry has that sign and is not 0.

drop: DARE (Yu et al., ICML 2024) before either: each entry of τ_k becomes 0 with probability p, the others are divided
by 1 - p, so that the expectation stays.

upload=trimmed: the client sends only what trimming leaves, at 16 bits an entry with coded positions
(`comm/codec.py`); the server knows θ_0. Batch norm's running statistics are averaged with w_k.

Departures: w_k = n_k/N as everywhere here; `weights=uniform` is the papers'. θ_0 is random here, not a pretrained
network, and after 40 epochs the changes are neither small nor redundant, which all three assume of fine-tuning.

What to expect: no safe order. At alpha = 0.1 (digits, mlp, ten clients) TIES is above the average on nine of the seeds
0 to 9, and on three of the seeds 100 to 107. DARE costs accuracy where p is large. Most parameters have a sign conflict
between clients.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..comm.codec import count_entries, restore, sparsify
from ..errors import demand
from ..models import model_state
from .base import GlobalModel, Method, Steps, client_weights_knob, knob, register, weighted_mean
from .context import Context
from .parts.averages import MergedModel, MergeReport, named, vector

RULES = ("ties", "task")


@dataclass(frozen=True, eq=False)
class TiesReport(MergeReport):
    """Shares of the parameters, 0–1, whose changes have both signs among the clients.

    conflicts: of the changes as they were trained;   conflicts_left: of what is merged, after dropping and trimming
    kept: entries that are merged, of all;   average_accuracy: of the plain average
    With trimmed uploads the server knows neither the first nor the last.
    """

    conflicts: float | None = None
    conflicts_left: float | None = None
    kept: float | None = None


@register(
    "ties",
    title="TIES merging",
    group="Average weights",
    paper="Yadav et al., NeurIPS 2023; Ilharco et al., ICLR 2023; Yu et al., ICML 2024",
    needs=["one architecture"],
    leaks="each client's model and sample count (trimmed: its largest changes)",
)
class Ties(Method):
    """Merge the clients' changes: trim small ones, elect a sign, and average those that agree."""

    rule: str = knob("ties", "Rule", options=RULES)
    scale: float = knob(1.0, "Scale", low=0, high=5)
    keep: float = knob(0.2, "Kept share", low=0.001, high=1)
    drop: float = knob(0.0, "Dropped share", low=0, high=0.99)
    weights: str = client_weights_knob("w_k")
    upload: str = knob("whole", "Upload", options=("whole", "trimmed"))

    report = TiesReport

    def refuse(self, ctx: Context) -> None:
        demand(ctx.init == "same", "TIES merging needs one common initial model; set init=same.")
        trims = self.upload == "whole" or self.rule == "ties"
        demand(trims, "Task arithmetic trims nothing; set ties.rule=ties or ties.upload=whole.")

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        clients = yield from ctx.local_training()
        network = ctx.initial_model()
        start, names = model_state(network), [name for name, _ in network.named_parameters()]
        origin, received = vector(start, names), []
        for k in range(ctx.clients_count):
            # Client: the model, or of its change (after dropping) the largest entries.
            state: dict[str, Any] = clients.state(k)
            if self.upload == "trimmed":
                change = self._dropped(vector(state, names) - origin, ctx, k)
                rest = {name: tensor for name, tensor in state.items() if name not in names}
                state = {"change": sparsify(change, self.keep, ternary=False), **rest}
            received.append(ctx.link.up(k, state, phase="local models"))
        with ctx.server():
            # Server: the changes; drop and trim where the clients have not; merge.
            sizes = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
            shares = (torch.tensor(sizes).double() / sum(sizes)).to(origin)
            if self.upload == "trimmed":
                whole, changes = (
                    None,
                    torch.stack([restore(got.pop("change"), origin.dtype) for got in received]),
                )
            else:
                whole = torch.stack([vector(got, names) for got in received]) - origin
                changes = torch.stack(
                    [self._dropped(change, ctx, k) for k, change in enumerate(whole)]
                )
                changes = trimmed(changes, self.keep) if self.rule == "ties" else changes
            merged = (
                elected_mean(changes, shares)
                if self.rule == "ties"
                else plain_mean(changes, shares)
            )
            rest = {
                name: t for name, t in weighted_mean(received, sizes).items() if name not in names
            }
            plain = None
            if whole is not None:
                plain = ctx.new_model(
                    rest | named(origin + plain_mean(whole, shares), start, names)
                )
            final = ctx.new_model(rest | named(origin + self.scale * merged, start, names))
            kept = float((changes != 0).double().mean())
            before = None if whole is None else conflicts(whole)
            report = TiesReport(conflicts=before, conflicts_left=conflicts(changes), kept=kept)
            return MergedModel(final, report, plain)

    def _dropped(self, change: Tensor, ctx: Context, k: int) -> Tensor:
        """DARE on client k's `change [d]`."""
        if self.drop == 0:
            return change
        stays = (
            torch.rand(len(change), generator=ctx.generator("ties", "drop", k), dtype=torch.float64)
            >= self.drop
        )
        return change * stays.to(change) / (1 - self.drop)


def plain_mean(changes: Tensor, shares: Tensor) -> Tensor:
    """Σ_k w_k τ_k `[d]`, of changes `[M, d]` and w `[M]`."""
    return (shares[:, None] * changes).sum(0)


def trimmed(changes: Tensor, keep: float) -> Tensor:
    """Changes `[M, d]`; of each row only the share `keep` of largest magnitude, the rest 0."""
    largest = changes.abs().topk(count_entries(changes.shape[1], keep), dim=1).indices
    return torch.zeros_like(changes).scatter(1, largest, changes.gather(1, largest))


def elected_mean(changes: Tensor, shares: Tensor) -> Tensor:
    """TIES without trimming: for each parameter the mean `[d]`, weighed by `shares [M]`, over the rows of changes
    `[M, d]` that have the elected sign and are not 0; 0 where there is none."""
    sums = plain_mean(changes, shares).sign()
    elected = torch.where(sums == 0, changes.sign().sum(0).sign(), sums)
    agree = (changes.sign() == elected) & (changes != 0)
    weight = (shares[:, None] * agree).sum(0)
    total = (shares[:, None] * agree * changes).sum(0)
    return torch.where(
        weight > 0,
        total / weight.clamp_min(torch.finfo(weight.dtype).tiny),
        torch.zeros_like(total),
    )


def conflicts(changes: Tensor) -> float:
    """The share of the parameters for which one row of changes `[M, d]` is above and another below 0."""
    return float(((changes > 0).any(0) & (changes < 0).any(0)).double().mean())
