"""What a run of `distilled` returns and leaves behind: kernel regression as a global model, and the images sent."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ...training import in_chunks
from ..results import GlobalModel, Report
from .kernel import centred, coefficients, tangent_kernel

SHOWN = 600  # images in a report, over all clients


@dataclass(frozen=True, eq=False)
class DistilledReport(Report):
    """What the server received: `images [S, ...]`, `labels [S]`, `client [S]`, at most SHOWN in all, of each client the
    first ones; `counts [M, C]`: of all of them. `loss [T]`: of each step that made them, the clients' mean."""

    images: np.ndarray | None = None
    labels: np.ndarray | None = None
    client: np.ndarray | None = None
    counts: np.ndarray | None = None
    loss: np.ndarray | None = None


class KernelModel(GlobalModel):
    """Kernel ridge regression on the images `x [S, ...]` with labels `y [S]`.

    Scores `[N, C]` are K(·, x) (K + λ_damp tr(K)/S I)⁻¹ (one-hot - 1/C); features are the kernel values `[N, S]`.
    """

    score_kind = "regression"

    def __init__(self, x: Tensor, y: Tensor, classes: int, depth: int, ridge: float, report: Report) -> None:
        self.x, self.depth, self.report = x, depth, report
        self.coefficients = coefficients(x, centred(y, classes), depth, ridge)
        self.parameters = x.numel() + self.coefficients.numel()

    def logits(self, x: Tensor) -> Tensor:
        return in_chunks(lambda part: (self._kernel(part) @ self.coefficients).to(x), x)

    def features(self, x: Tensor) -> Tensor:
        return in_chunks(lambda part: self._kernel(part).to(x), x)

    def _kernel(self, x: Tensor) -> Tensor:
        return tangent_kernel(x, self.x, self.depth)
