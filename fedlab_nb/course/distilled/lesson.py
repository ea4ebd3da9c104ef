"""Lesson 5, send data: its numbers, its picture and its exercises (digits, ten clients, α = 0.1)."""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np
import torch

from ...labs.distilled.sent_images import find_nearest_images_of_all_clients
from ...methods.distilled.images import compute_tangent_kernel
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs
from ..kit import Build, GuessOption, Verdict, exercises, load_lesson_text_or_list
from ..kit.array_types import ClassLabels, ClassScores, FlatImages, ImageKernel
from ..kit.claims import (
    ClaimText,
    find_accuracy_gaps_between_variants,
    judge_one_gap_clear_and_one_not,
    make_grouping_by_options,
    make_mean_and_bars_functions,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

SIZES = load_lesson_text_or_list(__name__, "sizes")
BEST = load_lesson_text_or_list(__name__, "best")
_, ways = make_mean_and_bars_functions(__name__, "ways")


# ---------------------------------------------------------------------------------- bytes
def find_right_option_on_upload_size(outcomes: Sequence[Outcome]) -> GuessOption:
    """Choose which of SIZES is true of the images that a client uploads, compared with its network."""
    images_up = mean(o.ledger.up for o in outcomes if o.method == "distilled")
    network_up = mean(o.ledger.up for o in outcomes if o.method == "fedavg")
    ratio = images_up / network_up
    if ratio < 0.25:
        return SIZES[0]
    if ratio < 1:
        return SIZES[1]
    return SIZES[2]


# ---------------------------------------------------------------------------------- which images
def find_right_option_on_image_kind_for_network() -> GuessOption:
    """Run all image kinds with a network at the server; choose the best one's option of BEST."""
    accuracies = []
    for kind in ("random", "kmeans", "kip"):
        outcomes = runs("distilled", images=kind, server="network")
        accuracies.append(percent(outcomes, "distilled"))
    return BEST[int(np.argmax(accuracies))]


# ---------------------------------------------------------------------------------- what it shows
def count_copied_own_images(client: int = 1, seed: int = 0) -> int:
    """Count the images that a client sends and that equal one of its own, pixel by pixel.

    The client runs with the lesson's settings.
    """
    outcome = runs("distilled", seeds=1, seed=seed)[0]
    neighbours = find_nearest_images_of_all_clients(outcome)[client]
    return int(neighbours.are_exact_copies.sum())


# ---------------------------------------------------------------------------------- the exercises
DEPTH = 2  # of the network whose tangent kernel the exercise uses


# ---------------------------------------------------------------------------------- on the record
def check_kmeans_beats_random_images_in_one_setting_only(
    outcomes: Sequence[Outcome], **texts: ClaimText
) -> Verdict:
    """Judge the claim of exercise 2: in one setting k-means is clearly better than random images, in
    another not.

    The settings are found on validation images; only for these two are the test images used.
    """

    def describe(shared: tuple) -> str:
        conditions, *options = shared
        settings = conditions[0]
        values = dict(options)
        return f"{values['per_class']} per class and the {values['server']}, α = {settings.alpha:g}"

    grouping = make_grouping_by_options("distilled", "images")
    gaps = find_accuracy_gaps_between_variants(
        outcomes, grouping, "kmeans", "random", describe, MANY
    )
    return judge_one_gap_clear_and_one_not(gaps, least_seeds=MANY, **texts)


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 2."""
    outcomes = []
    for per_class, server in ((2, "kernel"), (30, "network")):
        for images in ("random", "kmeans"):
            options = {"images": images, "per_class": per_class, "server": server}
            outcomes += runs("distilled", seeds=MANY, **options)
    return Outcomes(outcomes)


# ---------------------------------------------------------------------------------- to build
def kernel(a: FlatImages, b: FlatImages) -> ImageKernel:
    """Compute the tangent kernel of all pairs: images `[N, D]` and `[n_s, D]` give `[N, n_s]`."""
    return compute_tangent_kernel(torch.as_tensor(a), torch.as_tensor(b), DEPTH).numpy()


def scores(
    sent: np.ndarray, labels: np.ndarray, images: np.ndarray, classes: int, ridge: float
) -> np.ndarray:
    targets = np.eye(classes)[labels] - 1 / classes
    sent_kernel = kernel(sent, sent)
    damping = ridge * np.diag(sent_kernel).mean()
    weights = np.linalg.solve(sent_kernel + damping * np.eye(len(sent)), targets)
    return kernel(images, sent) @ weights


def compute_scores_with_uncentred_targets_by_mistake(
    sent: FlatImages, labels: ClassLabels, images: FlatImages, classes: int, ridge: float
) -> ClassScores:
    sent_kernel = kernel(sent, sent)
    damping = ridge * np.diag(sent_kernel).mean()
    damped_kernel = sent_kernel + damping * np.eye(len(sent))
    weights = np.linalg.solve(damped_kernel, np.eye(classes)[labels])
    return kernel(images, sent) @ weights


def compute_scores_with_unscaled_ridge_by_mistake(
    sent: FlatImages, labels: ClassLabels, images: FlatImages, classes: int, ridge: float
) -> ClassScores:
    scale = np.diag(kernel(sent, sent)).mean()  # by which `scores` multiplies the ridge
    return scores(sent, labels, images, classes, ridge / scale)


def compute_scores_without_ridge_by_mistake(
    sent: FlatImages, labels: ClassLabels, images: FlatImages, classes: int, ridge: float
) -> ClassScores:
    return scores(sent, labels, images, classes, 0)


def compute_scores_without_solving_by_mistake(
    sent: FlatImages, labels: ClassLabels, images: FlatImages, classes: int, ridge: float
) -> ClassScores:
    targets = np.eye(classes)[labels] - 1 / classes
    return kernel(images, sent) @ targets


SLIPS = {
    "not_centred": compute_scores_with_uncentred_targets_by_mistake,
    "no_ridge": compute_scores_without_ridge_by_mistake,
    "plain_ridge": compute_scores_with_unscaled_ridge_by_mistake,
    "no_solve": compute_scores_without_solving_by_mistake,
}
# The arguments of `draw_random_scores_arguments`. In the second case there are as many new images as sent ones, so
# that a kernel of the wrong shape gives numbers; in the others it fails.
HIDDEN = ((9, 4, 6, 3, 3, 0.1), (7, 7, 5, 4, 3, 0.02), (12, 5, 16, 10, 10, 0.5))


class ScoresArguments(NamedTuple):
    """The arguments of a call of `scores`."""

    sent: FlatImages  # [n_s, D] images
    labels: ClassLabels  # [n_s]
    images: FlatImages  # [N, D] to be classified
    classes: int  # their number
    ridge: float


def draw_random_scores_arguments(
    random_stream: np.random.Generator,
    sent_image_count: int,
    new_image_count: int,
    pixel_count: int,
    class_count: int,
    known_class_count: int,
    ridge: float,
) -> ScoresArguments:
    """Draw the arguments of a hidden call of `scores`.

    new_image_count:   images that are to be classified
    known_class_count: classes that occur among the images sent
    """
    labels = random_stream.integers(0, known_class_count, sent_image_count)
    sent_images = random_stream.uniform(size=(sent_image_count, pixel_count))
    new_images = random_stream.uniform(size=(new_image_count, pixel_count))
    return ScoresArguments(sent_images, labels, new_images, class_count, ridge)


BUILD = Build(scores, HIDDEN, draw_random_scores_arguments, SLIPS)

q1, q2, q3 = exercises(
    __name__, q2=(check_kmeans_beats_random_images_in_one_setting_only, run_solution), q3=BUILD
)
