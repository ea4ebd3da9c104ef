"""The points of the panel, and how three bells classify each place of the plane.

A bell is a Gaussian: a mean (2 numbers) and a covariance. It is drawn as an ellipse at two standard deviations. The
classifier is that of the method `gauss`, which takes class sums: the bells are converted to the sums that clients would
send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import torch

from ...data import load
from ...methods.gauss import ClassSums, make_class_scorer
from ...value_types import Accuracy0To1
from ..kit.array_types import ClassLabels, PlaneCovariance, PlanePoint, PlanePoints, Predictions

DIGITS = (1, 8, 9)  # digits whose clouds have different shapes
HEADS = {
    "means": "Nearest mean",
    "lda": "One shared spread",
    "qda": "A spread for each digit",
}
HeadName = Literal["means", "lda", "qda"]  # a key of HEADS
COLUMNS, ROWS = 72, 54  # the grid of places that are classified, across and down
EDGE = 3.6  # the plane reaches from -EDGE to EDGE across, and from -EDGE·ROWS/COLUMNS to EDGE·ROWS/COLUMNS down
WEIGHT = 1000.0  # the number of samples of a bell's class
MIN_WIDTH = 0.08  # of a bell in one direction, in standard deviations of the plane


@dataclass(frozen=True)
class Bell:
    """A Gaussian in the plane.

    x, y:             its centre
    along_x, along_y: its long half axis, one standard deviation
    across:           the length of its short half axis, at a right angle to the long one
    """

    x: float
    y: float
    along_x: float
    along_y: float
    across: float

    @property
    def mean(self) -> PlanePoint:
        """The centre `[2]`."""
        return np.array([self.x, self.y])

    @property
    def covariance(self) -> PlaneCovariance:
        """The covariance `[2, 2]`."""
        along = np.array([self.along_x, self.along_y])
        length = max(float(np.linalg.norm(along)), MIN_WIDTH)
        direction = np.array([1.0, 0.0])
        if np.linalg.norm(along) > 0:
            direction = along / length
        normal = np.array([-direction[1], direction[0]])
        short = max(self.across, MIN_WIDTH)
        return length**2 * np.outer(direction, direction) + short**2 * np.outer(normal, normal)

    @classmethod
    def fit(cls, points: PlanePoints) -> Bell:
        """Fit a bell to points `[n, 2]`: their mean and their covariance."""
        mean = points.mean(0)
        centred = points - mean
        variances, axes = np.linalg.eigh(centred.T @ centred / len(points))  # in ascending order
        along = axes[:, 1] * np.sqrt(variances[1])
        return cls(*mean.tolist(), *along.tolist(), float(np.sqrt(variances[0])))


@dataclass(frozen=True)
class Points:
    """Images of DIGITS as points of the plane: `x [n, 2]`, and `y [n]`, each the index of its digit in DIGITS."""

    x: PlanePoints
    y: ClassLabels


class TrainAndTestPoints(NamedTuple):
    """The images of DIGITS as points of the plane."""

    train: Points
    test: Points


@cache
def project_images_to_plane() -> TrainAndTestPoints:
    """Project training and test images to the two directions in which the digits' means differ most.

    The training images have unit spread there.
    """
    data = load("digits")
    sets = []
    for images, labels in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        is_shown = np.isin(labels.numpy(), DIGITS)
        x = images.numpy()[is_shown].reshape(is_shown.sum(), -1).astype(float)
        y = np.searchsorted(DIGITS, labels.numpy()[is_shown])
        sets.append((x, y))
    (train_x, train_y), (test_x, test_y) = sets
    centre = train_x.mean(0)
    means = np.stack([train_x[train_y == c].mean(0) for c in range(len(DIGITS))]) - centre
    _, _, directions = np.linalg.svd(means - means.mean(0), full_matrices=False)
    projection = directions[:2].T
    spread = ((train_x - centre) @ projection).std(0)
    points = []
    for x, y in ((train_x, train_y), (test_x, test_y)):
        points.append(Points((x - centre) @ projection / spread, y))
    return TrainAndTestPoints(*points)


def fit_bells_to_all_training_images() -> list[Bell]:
    """Fit the bells that the sums over all training images give."""
    train, _ = project_images_to_plane()
    return [Bell.fit(train.x[train.y == c]) for c in range(len(DIGITS))]


def make_misplaced_starting_bells() -> list[Bell]:
    """Make the bells of the start: all round and of the same size, in a row, in the wrong order."""
    return [Bell(x, 0.0, 0.5, 0.0, 0.5) for x in (1.5, 0.0, -1.5)]


def make_class_sums_from_bells(bells: Sequence[Bell], head: HeadName) -> ClassSums:
    """Make what clients would have sent if the bells were their images' means and covariances; equal shares."""
    counts = torch.full((len(bells),), WEIGHT, dtype=torch.float64)
    means = torch.from_numpy(np.stack([bell.mean for bell in bells]))
    squares = []
    for bell in bells:
        squares.append(bell.covariance + np.outer(bell.mean, bell.mean))
    second = WEIGHT * torch.from_numpy(np.stack(squares))
    if head == "means":
        return ClassSums("none", counts, WEIGHT * means, torch.zeros(0, dtype=torch.float64))
    if head == "lda":
        return ClassSums("pooled", counts, WEIGHT * means, second.sum(0))
    return ClassSums("full", counts, WEIGHT * means, second)


def classify_points_by_bells(
    bells: Sequence[Bell], head: HeadName, points: PlanePoints
) -> Predictions:
    """Return which bell each of the points `[n, 2]` belongs to, by Bayes' rule: `[n]`, whole numbers."""
    scores = make_class_scorer(make_class_sums_from_bells(bells, head), head, shrinkage_0_to_1=0)
    return scores(torch.from_numpy(points)).argmax(1).numpy()


def measure_test_accuracy_of_bells(bells: Sequence[Bell], head: HeadName) -> Accuracy0To1:
    """Measure the share of test images that get the right digit."""
    _, test = project_images_to_plane()
    return float((classify_points_by_bells(bells, head, test.x) == test.y).mean())


def measure_test_accuracy_of_fitted_bells(head: HeadName) -> Accuracy0To1:
    """Measure the same share where the sums place the bells; for the numbers of texts."""
    return measure_test_accuracy_of_bells(fit_bells_to_all_training_images(), head)


MEASURES = {
    "measure_fitted": measure_test_accuracy_of_fitted_bells
}  # by their names in `figures.toml`


def make_plane_grid_points() -> PlanePoints:
    """List the places of the plane that are classified, row by row from above: `[ROWS · COLUMNS, 2]`."""
    height = EDGE * ROWS / COLUMNS
    x = (np.arange(COLUMNS) + 0.5) / COLUMNS * 2 * EDGE - EDGE
    y = height - (np.arange(ROWS) + 0.5) / ROWS * 2 * height
    across, down = np.meshgrid(x, y)
    return np.stack([across.ravel(), down.ravel()], 1)
