"""The ensemble Σ_k w_k f_k of a finished run: its clients' logits for the shown test images, and
what weights achieve.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


def compute_client_logits(ensemble: Any) -> np.ndarray:
    """Every client's logits `[N, M, C]` for the shown test images: they are the features of an
    outcome of `ensemble`.
    """
    images = len(ensemble.test_labels)
    clients = len(ensemble.label_counts)
    return ensemble.test_features.astype(np.float32).reshape(images, clients, -1)


def split_in_halves(images: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the tune half and the judge half of so many images, always the same."""
    order = np.random.default_rng(0).permutation(images)
    return order[::2], order[1::2]


def predict_classes(logits: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """The classes `[N]` that Σ_k w_k f_k predicts, from client logits `[N, M, C]`. Weights that are
    all 0 count as equal ones.
    """
    weights = np.asarray(weights, dtype=np.float32)
    if weights.sum() <= 0:
        weights = np.ones_like(weights)
    return np.einsum("m,nmc->nc", weights, logits).argmax(1)


def compute_class_accuracies(is_right: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """The accuracy of each class `[C]`, from `is_right [N]` and `labels [N]`; nan for a class
    without images.
    """
    images = np.bincount(labels, minlength=classes)
    right = np.bincount(labels, is_right, minlength=classes)
    return np.where(images > 0, right / np.maximum(images, 1), np.nan)


def normalise_weights(weights: Sequence[float]) -> np.ndarray:
    """w / Σ w `[M]`; equal shares where Σ w = 0."""
    weights = np.asarray(weights, dtype=float)
    if weights.sum() <= 0:
        return np.full(len(weights), 1 / len(weights))
    return weights / weights.sum()
