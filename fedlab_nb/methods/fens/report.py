"""What a run of FENS leaves behind for pictures and lessons."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..results import Report


@dataclass(frozen=True, eq=False)
class FensReport(Report):
    """M: the clients that take part, `members [M]`; q, T: numbers of the aggregator, and rounds; C classes.

    weights `[M, C]`: the rule's table of weights, where it has one;   competency `[M, C, C]`: voting's share of class
    r's samples for which client i votes c
    frames `[F, M, C]`: the rule's `influence` (of a weighted sum: the same weights) after rounds `frame_rounds [F]`;
    contribution `[M, C]`: what each client adds on average to the score of the true class
    losses `[T]`: before each round;   bytes: of one client, see `cost.byte_numbers`
    average_accuracy, member_accuracy `[M]`: on test samples, of what the rule starts from: the plain average, and each
    member alone;   teacher_accuracy: of FENS, where one student was taught on `public_images` images, on `agreement`
    (a share) of which it answers as FENS does
    """

    aggregator_parameters: int | None = None  # q
    proxy_samples: int | None = None
    bytes: dict[str, Any] | None = None
    public_images: int | None = None
    agreement: float | None = None
    average_accuracy: float | None = None
    member_accuracy: list[float] | None = None
    teacher_accuracy: float | None = None
    members: np.ndarray | None = None
    weights: np.ndarray | None = None
    competency: np.ndarray | None = None
    frames: np.ndarray | None = None
    frame_rounds: np.ndarray | None = None
    contribution: np.ndarray | None = None
    losses: np.ndarray | None = None
