"""What predicts after Co-Boosting: the weighted ensemble, or the server model with its teacher beside it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...errors import UsageError
from ...models import Network
from ...training import ClientModels
from ..base import EnsembleModel, NetworkModel
from ..parts.frozen_ensemble import combine
from .report import CoBoostingReport


class WeightedEnsemble(EnsembleModel):
    """f̄_w: all client models under fixed `weights` (M numbers ≥ 0, not all 0); UsageError for others.

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
        if w.shape != (len(clients),) or not bool((w >= 0).all()) or not 0 < float(w.sum()) < torch.inf:
            raise UsageError(
                f"The ensemble's weights are {w.tolist()}, but {len(clients)} clients need as many numbers, none "
                "negative and not all of them 0."
            )
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
