"""What AFL leaves behind: its weights, and, where the server saw them, every client's sums; forgetting a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle
from ...errors import UsageError, whole
from ..parts.frozen import Frozen, HeadModel
from ..parts.posterior import inverse
from ..results import Report
from .sums import Sums, head, scores

MOST_NUMBERS = 4_000_000  # numbers of the clients' sums that a report may hold

OWN_FITS = "Mean of the clients' own fits"


@dataclass(frozen=True, eq=False)
class AflReport(Report):
    """`weights [d, C]` (last row: of the 1), float64. `moments [M, d(d+1)/2]`, upper triangles with γ on the diagonal,
    and `classes [M, d, C]`, whose last row counts the clients' samples of each class: as the server received them, or
    None where it saw the sum alone (`secure`) or where they are more than 4 million numbers. `clients`, `gamma`, `rho`
    and `clean`: as in the run. `sigma`: of the noise on the sum, 0 if none. `backbone`: the client whose network makes
    the features, None if no client's does. `own_fits`: test accuracy of the mean of the clients' own ridge solutions,
    weighted with n_k/N."""

    weights: np.ndarray | None = None
    moments: np.ndarray | None = None
    classes: np.ndarray | None = None
    clients: int | None = None
    gamma: float | None = None
    rho: float | None = None
    clean: bool | None = None
    sigma: float | None = None
    backbone: int | None = None
    own_fits: float | None = None

    @classmethod
    def of(
        cls, method: Any, received: Sequence[Sums], clients: int, sigma: float, backbone: int | None = None
    ) -> AflReport:
        """The report of a run of `method` whose server has these sums: one a client, or the total alone."""
        moments = classes = None
        if not method.secure:
            numbers = len(received) * (upper_triangle(received[0].moments).numel() + received[0].classes.numel())
            if numbers <= MOST_NUMBERS:
                moments = torch.stack([upper_triangle(s.moments) for s in received]).cpu().numpy()
                classes = torch.stack([s.classes for s in received]).cpu().numpy()
        return cls(
            moments=moments, classes=classes, clients=clients, gamma=method.gamma, rho=method.rho, clean=method.clean,
            sigma=sigma, backbone=backbone,
        )  # fmt: skip

    def others(self) -> dict[str, float]:
        return {} if self.own_fits is None else {OWN_FITS: self.own_fits}

    def sums(self, k: int) -> Sums:
        """Client k's sums; UsageError where the server has none of its own."""
        if self.moments is None or self.classes is None:
            raise UsageError("The server has no client's sums, only their total; set secure=false or a smaller size.")
        k = whole("client", k, 0, len(self.moments) - 1)
        return Sums(from_upper_triangle(torch.from_numpy(self.moments[k])), torch.from_numpy(self.classes[k]))

    def fitted(self, total: Sums, clients: int) -> np.ndarray:
        """The weights `[d, C]` that this run's server would take from the sum over so many clients."""
        assert self.gamma is not None and self.rho is not None and self.clean is not None
        return head(total, clients, self.gamma, self.rho, clean=self.clean).numpy()

    def own_weights(self) -> np.ndarray:
        """The clients' own ridge solutions A_k⁻¹C_k (the paper's uploads), `[M, d, C]`."""
        each = [self.sums(k) for k in range(self.clients or 0)]
        return np.stack([inverse(s.moments)(s.classes).numpy() for s in each])


def without(report: AflReport, k: int) -> np.ndarray:
    """The weights `[d, C]` as if client k had never taken part: its sums taken off the total, and solved again.

    UsageError where the server has no client's sums, where noise is in the total (what it has been spent on cannot be
    taken back), for the only client, and for the client whose network makes the features.
    """
    if report.sigma:
        raise UsageError("The total has noise in it, so that no client can be taken off exactly; set epsilon=0.")
    gone, clients = report.sums(k), report.clients or 0
    if clients < 2:
        raise UsageError("The only client cannot be forgotten: nothing would be left; take at least 2 clients.")
    if k == report.backbone:
        raise UsageError(f"Client {k}'s network makes the features, so that its sums are not all that is left of it.")
    total = sum((report.sums(j) for j in range(1, clients)), report.sums(0))
    return report.fitted(total - gone, clients - 1)


def accuracy_of(weights: np.ndarray, features: np.ndarray, y: np.ndarray) -> float:
    """Share of samples with `features [N, d - 1]` that `weights [d, C]` put into their class `y [N]`."""
    return float(((features @ weights[:-1] + weights[-1]).argmax(1) == y).mean())


class AflModel(HeadModel):
    """The features and the weights `[d, C]` (float64)."""

    score_kind = "regression"

    def __init__(self, frozen: Frozen, weights: Tensor, report: AflReport) -> None:
        self.weights = weights
        report = replace(report, weights=weights.cpu().numpy())
        super().__init__(frozen, lambda features: scores(features, weights), weights.numel(), report)

    def measured(self, x: Tensor, y: Tensor) -> Report:
        """With the accuracy of the mean of the clients' own fits, where the server has their sums without noise."""
        report = self.report
        assert isinstance(report, AflReport)
        if report.classes is None or report.sigma:
            return report
        shares = report.classes[:, -1].sum(1)
        mean = np.tensordot(shares / shares.sum(), report.own_weights(), 1)
        own_fits = accuracy_of(mean, self.features(x).double().cpu().numpy(), y.cpu().numpy())
        return replace(report, own_fits=own_fits)
