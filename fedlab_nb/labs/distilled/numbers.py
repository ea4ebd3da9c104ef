"""The attack on distilled data, and what more images cost and give: numbers for the pictures, no widgets."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from ...study.outcome import Outcome

SAME = 1e-6  # an image that is this near to one of the client's own is that image


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Images `sent [S, ...]` with `labels [S]`, the nearest of the client's own images to each, and how far it is.

    nearest `[S, ...]`, nearest_labels `[S]`;   distance `[S]`: root mean square over pixels
    typical: the median, over the client's own images, of the distance to the nearest other one (NaN with one image)
    """

    client: int
    sent: np.ndarray
    labels: np.ndarray
    nearest: np.ndarray
    nearest_labels: np.ndarray
    distance: np.ndarray
    typical: float

    @property
    def copies(self) -> np.ndarray:
        """`[S]`: whether what was sent is one of the client's own images."""
        return self.distance < SAME

    @property
    def closer(self) -> int:
        """Number of images sent that are nearer to one of the client's own than its own are to each other."""
        return int((self.distance < self.typical).sum())


def neighbours(sent: np.ndarray, labels: np.ndarray, x: np.ndarray, y: np.ndarray, client: int) -> Neighbours:
    """The attack on one client: for each image that it sent the nearest of its own `x [n, ...]` with labels `y [n]`."""
    own, other = (torch.from_numpy(np.ascontiguousarray(part)).flatten(1).double() for part in (x, sent))
    size = own.shape[1] ** 0.5
    far = torch.cdist(other, own, compute_mode="donot_use_mm_for_euclid_dist") / size
    distance, at = far.min(1)
    typical = float("nan")
    if len(own) > 1:
        among = torch.cdist(own, own) / size
        typical = float(among.fill_diagonal_(torch.inf).amin(1).median())
    return Neighbours(client, sent, labels, x[at.numpy()], y[at.numpy()], distance.numpy(), typical)


def attack(outcome: Outcome) -> list[Neighbours]:
    """`neighbours` of every client of a run, among the samples that it trained on."""
    report, federation = outcome.report, outcome.federation()
    made = []
    for k, (rows, _) in enumerate(federation.split(outcome.plan.holdout)):
        own = report.client == k
        x, y = federation.dataset.x_train[rows].numpy(), federation.dataset.y_train[rows].numpy()
        made.append(neighbours(report.images[own].astype(np.float32), report.labels[own], x, y, k))
    return made


@dataclass(frozen=True, eq=False)
class Budget:
    """One value of `m_c`: bytes up of the client that sends most, accuracies `{seed: share}` on validation and test
    images."""

    per_class: int
    bytes: int
    validation: dict[int, float]
    test: dict[int, float]


def budget(per_class: int, outcomes: Mapping[int, Outcome]) -> Budget:
    """`Budget` of the outcomes `{seed: Outcome}` with one `m_c`."""
    validation = {s: o.accuracy_validation for s, o in outcomes.items() if o.accuracy_validation is not None}
    up = max(up for up, _ in next(iter(outcomes.values())).ledger.by_client().values())
    return Budget(per_class, up, validation, {s: o.accuracy for s, o in outcomes.items()})
