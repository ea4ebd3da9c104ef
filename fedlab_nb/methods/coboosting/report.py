"""What a run of Co-Boosting leaves behind."""

from dataclasses import dataclass

import numpy as np

from ..parts.synthesis_trace import SynthesisReport


@dataclass(frozen=True, eq=False)
class CoBoostingReport(SynthesisReport):
    """The images and series of a synthesis, and of the ensemble:

    ensemble_weights: `[M]`, w / Σ w at the end (of a snapshot: as it is now)
    ensemble_curve:   `[T]`, test accuracy of f̄_w with each epoch's w; None while the method runs
    weights:          `[T, M]`, w after each epoch, in [0, 1]; their sum need not be 1
    """

    ensemble_weights: list[float] | None = None
    ensemble_curve: list[float] | None = None
    weights: np.ndarray | None = None
