"""The weighted ensemble Σ_k w_k f_k of a finished run: the clients' logits for the test images, and
the predictions and accuracies of given weights.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...plots.array_types import BooleanPerSample, SampleIndices, SampleLabels
from ...studies import Outcome
from ..array_types import (
    AccuracyOrNanPerClass,
    ClassScores,
    ClientLogitsBySample,
    ClientShares,
    ClientWeights,
    Predictions,
)


class TuneAndJudgeIndices(NamedTuple):
    """Indices of images: those to tune weights on, and those to judge the weights by."""

    tune: SampleIndices
    judge: SampleIndices


def get_client_logits_on_test_images(ensemble_outcome: Outcome) -> ClientLogitsBySample:
    """Return every client's logits `[N, M, C]` for the test images of `ensemble_outcome`.

    An outcome of the method `ensemble` keeps them as its features.
    """
    images = len(ensemble_outcome.test_labels)
    clients = len(ensemble_outcome.label_counts)
    return ensemble_outcome.test_features.astype(np.float32).reshape(images, clients, -1)


def split_image_indices_into_fixed_halves(image_count: int) -> TuneAndJudgeIndices:
    """Shuffle the indices of the images, always in the same way, and split them into one half to
    tune weights on and one half to judge them by.
    """
    order = np.random.default_rng(0).permutation(image_count)
    return TuneAndJudgeIndices(tune=order[::2], judge=order[1::2])


def predict_by_weighted_logits(
    logits: ClientLogitsBySample, client_weights: Sequence[float] | ClientWeights
) -> Predictions:
    """Predict the classes `[N]` by Σ_k w_k f_k, from client logits `[N, M, C]`. If all weights are
    0, they count as equal.
    """
    return sum_weighted_logits(logits, client_weights).argmax(1)


def sum_weighted_logits(
    logits: ClientLogitsBySample, client_weights: Sequence[float] | ClientWeights
) -> ClassScores:
    """Compute Σ_k w_k f_k `[N, C]` from client logits `[N, M, C]`.

    The browser does the same in `front/hand_sums.js`.
    """
    client_weights = np.asarray(client_weights, dtype=np.float64)
    if client_weights.sum() <= 0:
        client_weights = np.ones_like(client_weights)
    return np.einsum("m,nmc->nc", client_weights, logits.astype(np.float64))


def compute_accuracy_by_class(
    is_answer_right: BooleanPerSample, true_labels: SampleLabels, class_count: int
) -> AccuracyOrNanPerClass:
    """Compute the accuracy of each class `[C]` from `is_answer_right [N]` and `true_labels [N]`; nan for
    a class without images.
    """
    images = np.bincount(true_labels, minlength=class_count)
    right_answers = np.bincount(true_labels, is_answer_right, minlength=class_count)
    return np.where(images > 0, right_answers / np.maximum(images, 1), np.nan)


def normalise_weights_to_shares(weights: Sequence[float] | ClientWeights) -> ClientShares:
    """Return w / Σ w `[M]`; equal shares if Σ w = 0."""
    weights = np.asarray(weights, dtype=float)
    if weights.sum() <= 0:
        return np.full(len(weights), 1 / len(weights))
    return weights / weights.sum()
