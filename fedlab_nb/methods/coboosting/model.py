"""What predicts after Co-Boosting: the weighted ensemble, or the server model with its teacher beside it.

And what a run leaves behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ...errors import demand
from ...models import Network
from ...training import ClientModels
from ..base import EnsembleModel, NetworkModel
from ..parts.frozen_ensemble import combine
from ..parts.synthesis_trace import SynthesisReport


@dataclass(frozen=True, eq=False)
class CoBoostingReport(SynthesisReport):
    """The images and series of a synthesis, and of the ensemble:

    ensemble_weights: `[M]`, w / Σ w at the end (of a snapshot: as it is now)
    ensemble_curve:   `[T]`, test accuracy of A_w with each epoch's w; None while the method runs
    weights:          `[T, M]`, w after each epoch, in [0, 1]; their sum need not be 1
    """

    ensemble_weights: list[float] | None = None
    ensemble_curve: list[float] | None = None
    weights: np.ndarray | None = None


class WeightedEnsemble(EnsembleModel):
    """A_w: all client models under fixed `weights` (M numbers ≥ 0, not all 0); UsageError for others.

    The weights are EE's, set by hand, or learnt by `boosting.reweight` on real images. Features are the concatenated
    logits `[N, M*C]`, client after client.
    """

    report: CoBoostingReport

    def __init__(
        self,
        clients: ClientModels,
        weights: Tensor | Sequence[float],
        *,
        normalise: bool = True,
        report: CoBoostingReport | None = None,
    ) -> None:
        super().__init__(clients)
        self.report = report or CoBoostingReport()
        reference = next(clients.module(0).parameters())
        w = torch.as_tensor(weights, dtype=reference.dtype, device=reference.device).detach().clone()
        usable = w.shape == (len(clients),) and bool((w >= 0).all()) and 0 < float(w.sum()) < torch.inf
        demand(usable, "coboosting.weights", weights=w.tolist(), clients=len(clients))
        self.weights, self.normalise = w, normalise

    def logits(self, x: Tensor) -> Tensor:
        return combine(self.clients.logits(x), self.weights, normalise=self.normalise)

    def measured(self, x: Tensor, y: Tensor) -> CoBoostingReport:
        """With `ensemble_curve`, where a run has kept the weights of its epochs."""
        if self.report.weights is None:
            return self.report
        logits = self.clients.logits(x)
        path = torch.from_numpy(self.report.weights).to(logits)
        answers = [combine(logits, w, normalise=self.normalise).argmax(1) for w in path]
        curve = [float((answer == y).double().mean()) for answer in answers]
        return replace(self.report, ensemble_curve=curve)


class BoostedModel(NetworkModel):
    """The server model, with the `ensemble` that taught it beside it, whose report is its own."""

    def __init__(self, module: Network, ensemble: WeightedEnsemble) -> None:
        super().__init__(module, ensemble.report)
        self.ensemble = ensemble

    def measured(self, x: Tensor, y: Tensor) -> CoBoostingReport:
        return self.ensemble.measured(x, y)
