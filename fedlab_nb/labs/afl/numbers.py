"""Numbers for AFL's pictures: a forgotten client, class means and the images in them, accuracy by size. No widgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...methods.afl import AflReport, Sums, without
from ...study.outcome import Outcome

EXACT = 1e-5  # a pixel of what travelled in float32 and was divided again


@dataclass(frozen=True, eq=False)
class Forgotten:
    """Client `client` taken out of the run `outcome`: test accuracy of each class before and after `[C]`, of all
    images before and after; `samples [C]` that it had; `distance`: largest relative difference between the weights so
    gained and those fitted to the others' samples from scratch."""

    outcome: Outcome
    client: int
    before: np.ndarray
    after: np.ndarray
    accuracy: tuple[float, float]
    samples: np.ndarray
    distance: float


def forget(outcome: Outcome, client: int) -> Forgotten:
    """Take `client` out, in both ways. UsageError where the sums do not allow it (see `without`)."""
    report = outcome.report
    weights = without(report, client)
    features, y = outcome.test_features.astype(np.float64), outcome.test_labels
    right = [(features @ w[:-1] + w[-1]).argmax(1) == y for w in (report.weights, weights)]
    classes = range(report.weights.shape[1])
    of_class = [np.array([r[y == c].mean() if (y == c).any() else np.nan for c in classes]) for r in right]
    scratch = retrained(outcome, client)
    distance = np.abs(weights - scratch).max() / np.abs(scratch).max()
    samples = report.classes[client, -1].round().astype(int)
    accuracy = (float(right[0].mean()), float(right[1].mean()))
    return Forgotten(outcome, client, *of_class, accuracy, samples, float(distance))


def retrained(outcome: Outcome, client: int) -> np.ndarray:
    """The weights from the other clients' training samples, summed anew in one place: `[d, C]`."""
    federation, report = outcome.federation(), outcome.report
    parts = [train for k, (train, _) in enumerate(federation.split(outcome.plan.holdout)) if k != client]
    rows = torch.cat(parts)
    features = outcome.features(federation.dataset.x_train[rows])
    features = torch.as_tensor(np.asarray(features)).double()
    total = Sums.of(features, federation.dataset.y_train[rows], federation.classes)
    others = len(parts)
    return report.fitted(total.ridged(others * report.gamma), others)


# ------------------------------------------------------------------------------------------------ the leak
@dataclass(frozen=True, eq=False)
class ClassMeans:
    """What the server reads off client `client`'s class sums: of each class that it holds the mean `means [K, ...]` and
    the `counts [K]`; `classes [K]`; `nearest [K, ...]` of the client's own images, and how far each is `[K]` (largest
    difference of a pixel)."""

    client: int
    classes: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    nearest: np.ndarray
    distance: np.ndarray

    @property
    def leaked(self) -> np.ndarray:
        """`[K]`: whether the mean is one of the client's images."""
        return self.distance < EXACT


def class_means(outcome: Outcome) -> list[ClassMeans]:
    """For each client of a run with pixels as features."""
    federation, report = outcome.federation(), outcome.report
    means = []
    for k, (rows, _) in enumerate(federation.split(outcome.plan.holdout)):
        x = federation.dataset.x_train[rows].numpy()
        means.append(means_of(report, k, x))
    return means


def means_of(report: AflReport, k: int, x: np.ndarray) -> ClassMeans:
    """`ClassMeans` of client k, whose own images are `x [n, ...]`."""
    assert report.classes is not None
    sums, counts = report.classes[k, :-1], report.classes[k, -1].round().astype(int)
    held = np.flatnonzero(counts > 0)
    means = (sums[:, held] / counts[held]).T
    far = np.abs(means[:, None] - x.reshape(1, len(x), -1)).max(2)
    at = far.argmin(1)
    return ClassMeans(k, held, counts[held], means.reshape(-1, *x.shape[1:]), x[at], far.min(1))


def first_single(means: Sequence[ClassMeans]) -> int:
    """The first client that has a class with one image, or 0."""
    return next((k for k, of in enumerate(means) if (of.counts == 1).any()), 0)


# ------------------------------------------------------------------------------------------------ numbers of features
@dataclass(frozen=True)
class Sized:
    """`size` random features: bytes up of one client, test accuracies `{seed: share}`."""

    size: int
    bytes: int
    accuracies: Mapping[int, float]


def by_size(sizes: Sequence[int], runs: Iterable[Mapping[int, Outcome]]) -> list[Sized]:
    """`Sized` of the outcomes `{seed: Outcome}` with each number of features."""
    made = []
    for size, outcomes in zip(sizes, runs, strict=True):
        first = next(iter(outcomes.values()))
        up = first.ledger.up // first.settings.clients
        made.append(Sized(size, up, {s: o.accuracy for s, o in outcomes.items()}))
    return made
