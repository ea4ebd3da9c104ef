"""Merge changes, not weights: task arithmetic, TIES and DARE, from the merging of large language
models.

Every client starts from θ_0 and sends its change τ_k = θ_k - θ_0. The server answers with θ_0 + λ
τ̄, where τ̄ is

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

What to expect: whether TIES is above or below the plain average depends on the seed. DARE costs accuracy if p is large.
Most parameters have a sign conflict between clients.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch

from ..comm.codec import count_kept_entries, pack_largest_entries, unpack_largest_entries
from ..errors import UsageError
from ..models import Network, copy_model_state
from ..tensor_types import ClientChanges, ClientShares, ParameterVector
from ..value_types import ClientIndex
from .base import (
    ClientWeighting,
    GlobalModel,
    Method,
    Steps,
    knob,
    make_client_weights_knob,
    register,
    weighted_mean,
)
from .context import Context
from .parts.averages import (
    MergedModel,
    MergeReport,
    flatten_state_into_vector,
    split_vector_into_tensors,
)
from .traffic import FederationSizes, RunBytesUpPlusDown

ChangeRule = Literal["ties", "task"]
RULES: tuple[ChangeRule, ...] = get_args(ChangeRule)


@dataclass(frozen=True, eq=False)
class TiesReport(MergeReport):
    """Shares of the parameters, 0–1, whose changes have both signs among the clients.

    conflicts: in the changes as they were trained
    conflicts_left: in the changes that are merged, after dropping and trimming
    kept: share of all entries that are merged
    average_accuracy: of the plain average

    With trimmed uploads the server knows neither `conflicts` nor `average_accuracy`.
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
    forgets="the other clients' changes are merged again",
)
class Ties(Method):
    """Merge the clients' changes: trim small ones, elect a sign, and average those that agree."""

    rule: str = knob("ties", "Rule", options=RULES)
    scale: float = knob(1.0, "Scale", low=0, high=5)
    keep: float = knob(0.2, "Kept share", low=0.001, high=1)
    drop: float = knob(0.0, "Dropped share", low=0, high=0.99)
    weights: ClientWeighting = make_client_weights_knob("w_k")
    upload: str = knob("whole", "Upload", options=("whole", "trimmed"))

    report = TiesReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        if self.upload == "whole":
            return sizes.one_shot_bytes
        # A kept entry is a position and a value.
        return RunBytesUpPlusDown(sizes.models_down + 0.6 * sizes.models_up, is_exact=False)

    def refuse(self, ctx: Context) -> None:
        if ctx.init != "same":
            raise UsageError("TIES merging needs one common initial model; set init=same.")
        if self.upload == "trimmed" and self.rule != "ties":
            raise UsageError(
                "Task arithmetic trims nothing; set ties.rule=ties or ties.upload=whole."
            )

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        clients = yield from ctx.local_training()
        network = ctx.initial_model()
        start = copy_model_state(network)
        names = [name for name, _ in network.named_parameters()]
        origin = flatten_state_into_vector(start, names)  # θ_0
        # Clients: the model, or the largest entries of its change. Link: up.
        received = []
        for k in range(ctx.clients_count):
            upload: dict[str, Any] = clients.state(k)
            if self.upload == "trimmed":
                change = flatten_state_into_vector(upload, names) - origin
                change = self._drop_random_entries_and_rescale(change, ctx, k)
                for name in names:
                    del upload[name]
                upload["change"] = pack_largest_entries(change, self.keep, ternary=False)
            received.append(ctx.link.up(k, upload, phase="local models"))
        with ctx.server():
            sizes = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
            shares = (torch.tensor(sizes).double() / sum(sizes)).to(origin)  # w_k
            # Server: the changes τ_k; drop and trim where the clients have not.
            trained_changes = None
            if self.upload == "trimmed":
                messages = [upload.pop("change") for upload in received]
                changes = torch.stack(
                    [unpack_largest_entries(message, origin.dtype) for message in messages]
                )
            else:
                vectors = [flatten_state_into_vector(upload, names) for upload in received]
                trained_changes = torch.stack(vectors) - origin
                changes = self._drop_and_trim(trained_changes, ctx)
            # Server: elect signs and merge, or sum up.
            if self.rule == "ties":
                merged = compute_sign_elected_mean(changes, shares)
            else:
                merged = compute_weighted_mean_change(changes, shares)
            # Server: θ_0 + λ τ̄; batch norm's statistics are averaged.
            mean_state = weighted_mean(received, sizes)

            def make_network(vector: ParameterVector) -> Network:
                parameters = split_vector_into_tensors(vector, start, names)
                return ctx.new_model(mean_state | parameters)

            report = TiesReport(
                conflicts_left=compute_share_of_sign_conflicts(changes),
                kept=float((changes != 0).double().mean()),
            )
            average = None
            if trained_changes is not None:
                conflicts = compute_share_of_sign_conflicts(trained_changes)
                report = replace(report, conflicts=conflicts)
                mean_change = compute_weighted_mean_change(trained_changes, shares)
                average = make_network(origin + mean_change)
            return MergedModel(make_network(origin + self.scale * merged), report, average)

    def _drop_and_trim(self, trained_changes: ClientChanges, ctx: Context) -> ClientChanges:
        """DARE on each client's change, then TIES' trimming, if the rule has it."""
        changes = []
        for k, change in enumerate(trained_changes):
            changes.append(self._drop_random_entries_and_rescale(change, ctx, k))
        if self.rule == "ties":
            return trim_to_largest_changes(torch.stack(changes), self.keep)
        return torch.stack(changes)

    def _drop_random_entries_and_rescale(
        self, change: ParameterVector, ctx: Context, client: ClientIndex
    ) -> ParameterVector:
        """DARE on client k's `change [d]`."""
        if self.drop == 0:
            return change
        stream = ctx.generator("ties", "drop", client)
        stays = torch.rand(len(change), generator=stream, dtype=torch.float64) >= self.drop
        return change * stays.to(change) / (1 - self.drop)


def compute_weighted_mean_change(
    client_changes: ClientChanges, client_shares: ClientShares
) -> ParameterVector:
    """Σ_k w_k τ_k `[d]`, of changes `[M, d]` and w `[M]`."""
    return (client_shares[:, None] * client_changes).sum(0)


def trim_to_largest_changes(client_changes: ClientChanges, share_kept: float) -> ClientChanges:
    """Changes `[M, d]`; of each row only the share `share_kept` of largest magnitude, the rest 0."""
    largest = (
        client_changes.abs()
        .topk(count_kept_entries(client_changes.shape[1], share_kept), dim=1)
        .indices
    )
    return torch.zeros_like(client_changes).scatter(1, largest, client_changes.gather(1, largest))


def compute_sign_elected_mean(
    client_changes: ClientChanges, client_shares: ClientShares
) -> ParameterVector:
    """TIES without trimming: the mean `[d]` of the changes `[M, d]` that have the elected sign.

    Weighted by `client_shares [M]`, parameter by parameter; changes of 0 do not count, and without
    any change it is 0.
    """
    signs = compute_weighted_mean_change(client_changes, client_shares).sign()
    majority = client_changes.sign().sum(0).sign()
    elected = torch.where(signs == 0, majority, signs)
    agrees = (client_changes.sign() == elected) & (client_changes != 0)
    weight = (client_shares[:, None] * agrees).sum(0)
    total = (client_shares[:, None] * agrees * client_changes).sum(0)
    smallest = torch.finfo(weight.dtype).tiny
    return torch.where(weight > 0, total / weight.clamp_min(smallest), torch.zeros_like(total))


def compute_share_of_sign_conflicts(client_changes: ClientChanges) -> float:
    """The share of the parameters for which one row of changes `[M, d]` is above and another below
    0.
    """
    return float(((client_changes > 0).any(0) & (client_changes < 0).any(0)).double().mean())
