"""The ensemble Σ_k w_k f_k of a finished run: its clients' logits on the shown test images, what weights achieve."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def client_logits(ensemble: Any) -> np.ndarray:
    """Every client's logits `[N, M, C]` on the shown test images: the features of an outcome of `ensemble`."""
    return ensemble.test_features.astype(np.float32).reshape(
        len(ensemble.test_labels), len(ensemble.label_counts), -1
    )


def halves(images: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the tune and the judge half of so many images, always the same."""
    order = np.random.default_rng(0).permutation(images)
    return order[::2], order[1::2]


def correct(logits: np.ndarray, w: Sequence[float]) -> np.ndarray:
    """Classes `[N]` that Σ_k w_k f_k says, from client logits `[N, M, C]`; equal weights where all are 0."""
    w = np.asarray(w, dtype=np.float32)
    return np.einsum("m,nmc->nc", w if w.sum() > 0 else np.ones_like(w), logits).argmax(1)


def by_class(right: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Accuracy for each class `[C]`, nan where there is no image."""
    count = np.bincount(labels, minlength=classes)
    return np.where(
        count > 0, np.bincount(labels, right, minlength=classes) / np.maximum(count, 1), np.nan
    )


def shares_of(w: Sequence[float]) -> np.ndarray:
    """w / Σ w; equal shares where Σ w = 0."""
    w = np.asarray(w, dtype=float)
    return w / w.sum() if w.sum() > 0 else np.full(len(w), 1 / len(w))
