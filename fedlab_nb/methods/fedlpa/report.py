"""What a run of FedLPA leaves to look at: residuals, damping beside what it is added to, what the upload reveals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..parts.posterior import Posterior
from ..results import Report
from .client import LocalPosterior
from .label_leak import label_leak
from .solvers import Iterate


@dataclass(frozen=True, eq=False)
class FedLPAReport(Report):
    """Of L layers and M clients; a snapshot has the first four fields.

    layers:          names of the L layers that were solved
    iterations:      by layer, of the solver;   residual: by layer, the last relative residual
    residuals:       `[L, T]`, of each iterate; NaN after a layer's last
    label_leak:      what the last B gives away of the classes (`label_leak.py`)
    b_diagonal:      `[M, L]`, mean diagonal of the undamped B
    b_damping:       `[M, L]`, what was added to it; where it is the larger, damping has taken over
    input_column:    `[M, i]`, last column of the first A without the corner: the client's mean input (of a convolution
                     its mean patch); None where the first layer has no bias
    output_diagonal: `[M, C]`, diagonal of the last layer's B, as sent
    train_counts:    `[M, C]`, samples by class that the clients trained on
    """

    layers: list[str] | None = None
    iterations: dict[str, int] | None = None
    residual: dict[str, float] | None = None
    residuals: np.ndarray | None = None
    label_leak: dict[str, float] | None = None
    b_diagonal: np.ndarray | None = None
    b_damping: np.ndarray | None = None
    input_column: np.ndarray | None = None
    output_diagonal: np.ndarray | None = None
    train_counts: np.ndarray | None = None

    @classmethod
    def of(cls, iterate: Iterate) -> FedLPAReport:
        """How far the server has come."""
        curves = {name: torch.stack(curve).cpu().numpy() for name, curve in iterate.residuals.items()}
        last = {name: curve[-1].item() for name, curve in curves.items()}
        residuals = np.full((len(curves), max(map(len, curves.values()))), np.nan)
        for row, curve in zip(residuals, curves.values(), strict=True):
            row[: len(curve)] = curve
        return cls(list(curves), {name: len(curve) - 1 for name, curve in curves.items()}, last, residuals)

    def with_clients(
        self, systems: dict[str, Posterior], clients: list[LocalPosterior], counts: Tensor, damping: float, pi: str
    ) -> FedLPAReport:
        """Beside what the server got (`systems`) what it may not see: undamped factors and label `counts [M, C]`."""
        first, last = (list(systems.values())[at] for at in (0, -1))
        biased = f"{next(iter(systems))}.bias" in clients[0].state
        diagonal = last.b.diagonal(dim1=1, dim2=2).cpu()
        means = [factor.b.diagonal().mean() for own in clients for factor in own.factors.values()]
        return replace(
            self,
            label_leak=label_leak(diagonal, counts),
            b_diagonal=torch.stack(means).view(len(clients), -1).double().cpu().numpy(),
            b_damping=np.array([[damping**0.5 / ratio for ratio in own.ratios(pi)] for own in clients]),
            input_column=first.a[:, :-1, -1].cpu().numpy() if biased else None,
            output_diagonal=diagonal.numpy(),
            train_counts=counts.numpy(),
        )

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """Layer -> its relative residuals after 0, 1, 2, … steps."""
        assert self.layers is not None and self.residuals is not None and self.iterations is not None
        rows = zip(self.layers, self.residuals, strict=True)
        return {name: row[: self.iterations[name] + 1] for name, row in rows}
