"""Lesson 4, sums never shout: its pictures, its numbers and its exercises."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from ...labs.afl.forget import fit_classifier_without_client
from ...labs.afl.image import recover_class_means_and_nearest_images
from ...methods.afl import solve_classifier_weights_without_client
from ...methods.gauss import ClassSums, measure_class_sums, pack_class_sums, unpack_class_sums
from ...plots import Picture
from ...plots.kit import describe_picture, draw_image_rows
from ...plots.study import draw_accuracy_lines_with_bands
from ...plots.style import drawing
from ...plots.words import format_client_letters
from ...studies import Outcome, stored_results
from ...studies.lesson_runs import CLIENTS, runs, select_outcomes_by_seed, title
from ...studies.lesson_runs import percent as mean_of
from ..kit import Build, Card, GuessOption, exercises, load_lesson_text_or_list, make_worked_card
from ..kit.array_types import (
    ClassifierWeights,
    ClassScores,
    ClientClassSums,
    ClientMoments,
    CountPerClass,
    Covariance,
    FlatImages,
    ImagePair,
    Predictions,
    ProductSumPerClass,
    SumPerClass,
    Vector,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

SKEWS = load_lesson_text_or_list(__name__, "skews")
RESENT = load_lesson_text_or_list(__name__, "resent")
SHOWN = load_lesson_text_or_list(__name__, "shown")


# ---------------------------------------------------------------------------------- two sums
def draw_accuracy_against_alpha() -> Picture:
    """Draw the accuracy against α of AFL, the mean of probabilities and FedAvg: stored results, ten
    seeds.
    """
    table = stored_results.load()
    lines = {}
    for method in ("afl", "ensemble", "fedavg"):
        lines[title(method)] = table.get_accuracies_by_alpha_and_seed(method, CLIENTS)
    setting = f"digits, {CLIENTS} clients, means of ten seeds"
    return draw_accuracy_lines_with_bands(lines, "α", setting=setting, chance_accuracy=0.1)


def find_right_option_on_skew() -> GuessOption:
    """Choose which of SKEWS is true of AFL: better with the smallest stored α, with the largest, or equal
    to within a point.
    """
    by_alpha = stored_results.load().get_accuracies_by_alpha_and_seed("afl", CLIENTS)
    percent_at_smallest_alpha = 100 * np.mean(list(by_alpha[min(by_alpha)].values()))
    percent_at_largest_alpha = 100 * np.mean(list(by_alpha[max(by_alpha)].values()))
    gap = percent_at_smallest_alpha - percent_at_largest_alpha
    if abs(gap) < 1:
        return SKEWS[2]
    if gap > 0:
        return SKEWS[0]
    return SKEWS[1]


def show_largest_weight_difference(afl_outcome: Outcome, other_afl_outcome: Outcome) -> Card:
    """Show how far the weights of two runs of AFL lie apart."""
    weights = afl_outcome.report.weights
    gap = max(
        compute_largest_weight_difference_as_share(weights, other_afl_outcome.report.weights), 1e-16
    )
    return make_worked_card(
        f"The two sets of weights differ by at most {gap:.0e} of the largest weight."
    )


def compute_largest_weight_difference_as_share(
    weights: ClassifierWeights, reference_weights: ClassifierWeights
) -> float:
    """Compute the largest difference, as a share of the largest of the `reference_weights`."""
    return float(np.abs(weights - reference_weights).max() / np.abs(reference_weights).max())


# ----------------------------------------------------------------- forgetting, what leaks, features
def get_afl_outcome_of_first_seed(outcomes: Iterable[Outcome]) -> Outcome:
    """Return AFL's outcome of the first seed; StopIteration if there is none."""
    return next(iter(select_outcomes_by_seed(outcomes, "afl").values()))


def find_right_option_on_forgetting(outcomes: Iterable[Outcome], client: int = 0) -> GuessOption:
    """Choose which of RESENT has to be sent again to forget a client.

    It is the first one, nothing, if the server's own sums give the same weights as a fit to the images
    of all other clients.
    """
    outcome = get_afl_outcome_of_first_seed(outcomes)
    from_sums = solve_classifier_weights_without_client(outcome.report, client)
    from_images = fit_classifier_without_client(outcome, client)
    difference = compute_largest_weight_difference_as_share(from_sums, from_images)
    if difference < 1e-6:
        return RESENT[0]
    return RESENT[2]


def find_right_option_on_single_image_sum(outcomes: Iterable[Outcome]) -> GuessOption:
    """Choose which of SHOWN is true of the sum of a class with a single image.

    It is the first one if every such sum, at every client, equals the image.
    """
    are_copies = []
    for means in recover_class_means_and_nearest_images(get_afl_outcome_of_first_seed(outcomes)):
        are_copies.append(means.are_exact_copies[means.counts == 1])
    if np.concatenate(are_copies).all():
        return SHOWN[0]
    return SHOWN[1]


def compute_glyph_accuracy_percent() -> float:
    """Run AFL with random filters on the small glyphs, seed 0; return its test accuracy in percent."""
    outcomes = runs("afl", seeds=1, dataset="glyphs:16g", **{"afl.features": "conv"})
    return round(mean_of(outcomes, "afl"))


def draw_recovered_image_pair(outcome: Outcome) -> Picture:
    """Draw two images of an office beside the two that can be computed from what it sent.

    The office sent the mean and the covariance of its images of a digit. The first office and digit
    with exactly two images are taken.

    outcome: a run of `gauss` whose features are the pixels
    """
    counts = outcome.report.counts
    client, digit = np.argwhere(counts == 2)[0].tolist()
    images = load_training_images_of_client_and_digit(outcome, client, digit)
    upload = pack_class_sums(compute_class_sums_of_digit_images(images, digit), torch.float32)
    sums = unpack_class_sums(upload, "full")
    mean = sums.means[digit].numpy()
    covariance = sums.compute_class_covariances()[digit].numpy()
    recovered = order_pair_like_images(recover_image_pair_from_moments(mean, covariance), images)
    side = round(images.shape[1] ** 0.5)
    rows = [
        ("its two images", list(images.reshape(2, 1, side, side))),
        ("from mean and covariance", list(recovered.reshape(2, 1, side, side))),
    ]
    gap = float(np.abs(recovered - images).max())
    gap_text = "a millionth" if gap < 1e-6 else f"{gap:.0e}"
    with drawing(size=(6.5, 2.6)) as (figure, ax):
        draw_image_rows(ax, rows)
    sentence = (
        f"Office {format_client_letters(client)} has two images of the digit {digit}. From "
        f"what it sends both can be computed: no pixel is off by more than {gap_text} of the range."
    )
    return describe_picture(figure, "Two images, and what mean and covariance give", "", sentence)


def compute_class_sums_of_digit_images(images: FlatImages, digit: int) -> ClassSums:
    """Compute the class sums of an office's images `[n, d]` of one digit."""
    labels = torch.full((len(images),), digit)
    return measure_class_sums(torch.from_numpy(images), labels, 10, "full")


def load_training_images_of_client_and_digit(
    outcome: Outcome, client_index: int, digit: int
) -> FlatImages:
    """Return the pixels `[n, d]` of a client's training images of a digit."""
    federation = outcome.federation()
    dataset = federation.dataset
    rows, _ = federation.split(outcome.plan.share_held_out_of_local_training)[client_index]
    rows_of_digit = rows[dataset.y_train[rows] == digit]
    return dataset.x_train[rows_of_digit].flatten(1).double().numpy()


def recover_image_pair_from_moments(mean: Vector, covariance: Covariance) -> ImagePair:
    """Compute the two samples `[2, d]` that have this mean `[d]` and this covariance `[d, d]`."""
    # The covariance of two samples a and b is h hᵀ with h = (a − b) / 2: one axis, whose sign is unknown.
    variances, axes = np.linalg.eigh(covariance)
    half_difference = axes[:, -1] * np.sqrt(variances[-1])
    return np.stack([mean + half_difference, mean - half_difference])


def order_pair_like_images(recovered_pair: ImagePair, images: ImagePair) -> ImagePair:
    """Return the pair in the order of the two images, which mean and covariance do not tell."""
    swapped_pair = recovered_pair[::-1]
    if np.abs(recovered_pair - images).sum() > np.abs(swapped_pair - images).sum():
        return swapped_pair
    return recovered_pair


# ---------------------------------------------------------------------------------- to build
def fit(moments: np.ndarray, class_sums: np.ndarray, gamma: float, rho: float) -> np.ndarray:
    """Compute the weights [d, C] from the clients' moments [M, d, d], each with gamma on its diagonal, and
    class sums [M, d, C]."""
    clients, d, _ = moments.shape
    total = moments.sum(0) + (rho - clients * gamma) * np.eye(d)
    return np.linalg.solve(total, class_sums.sum(0))


def fit_without_removing_ridges_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    total = moments.sum(0) + rho * np.eye(moments.shape[1])
    return np.linalg.solve(total, class_sums.sum(0))


def average_client_fits_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    fits = []
    for k in range(len(moments)):
        fits.append(fit(moments[k, None], class_sums[k, None], gamma, rho))
    return np.mean(fits, 0)


def fit_with_one_ridge_removed_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    return fit_without_removing_ridges_by_mistake(moments, class_sums, gamma, rho - gamma)


def fit_without_final_ridge_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    return fit(moments, class_sums, gamma, 0.0)


def fit_by_multiplying_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    return moments.sum(0) @ class_sums.sum(0)


def fit_to_untouched_sums_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    return np.linalg.solve(moments.sum(0), class_sums.sum(0))


def average_client_fits_with_ridges_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    fits = []
    for k in range(len(moments)):
        fits.append(np.linalg.solve(moments[k], class_sums[k]))
    return np.mean(fits, 0)


SLIPS = {
    "untouched_sums": fit_to_untouched_sums_by_mistake,
    "mean_with_ridges": average_client_fits_with_ridges_by_mistake,
    "mean_of_fits": average_client_fits_by_mistake,
    "ridges_left": fit_without_removing_ridges_by_mistake,
    "one_ridge_off": fit_with_one_ridge_removed_by_mistake,
    "no_final_ridge": fit_without_final_ridge_by_mistake,
    "not_solved": fit_by_multiplying_by_mistake,
}


class FitArguments(NamedTuple):
    """The arguments of a call of `fit`."""

    moments: ClientMoments  # [M, d, d], each with gamma on its diagonal
    class_sums: ClientClassSums  # [M, d, C]
    gamma: float
    rho: float


def draw_random_fit_arguments(
    random_stream: np.random.Generator, client_count: int, feature_count: int, class_count: int
) -> FitArguments:
    """Draw the arguments of a hidden call of `fit`: sums of random samples; some clients lack classes."""
    gamma = random_stream.uniform(0.5, 2.0)
    rho = random_stream.uniform(0.1, 1.0)
    moments = np.zeros((client_count, feature_count, feature_count))
    sums = np.zeros((client_count, feature_count, class_count))
    for k in range(client_count):
        samples = 4 + 3 * k
        x = np.c_[random_stream.normal(size=(samples, feature_count - 1)), np.ones(samples)]
        y = np.eye(class_count)[random_stream.integers(0, 1 + k % class_count, samples)]
        moments[k] = x.T @ x + gamma * np.eye(feature_count)
        sums[k] = x.T @ y
    return FitArguments(moments, sums, gamma, rho)


# ---------------------------------------------------------------------------------- the bells
def classify(
    images: np.ndarray, counts: np.ndarray, sums: np.ndarray, products: np.ndarray
) -> np.ndarray:
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n - np.outer(mean, mean)
        away = images - mean
        distance = (away @ np.linalg.inv(covariance) * away).sum(1)
        height = np.log(n / sum(counts)) - np.log(np.linalg.det(covariance)) / 2
        scores.append(height - distance / 2)
    return np.argmax(scores, axis=0)


def classify_with_terms_left_out_by_mistake(
    images: FlatImages,
    counts: CountPerClass,
    sums: SumPerClass,
    products: ProductSumPerClass,
    subtracts_means: bool = True,
    has_determinants: bool = True,
    has_class_shares: bool = True,
) -> Predictions:
    """Return the class `[N]` of each image by Bayes' rule, with terms of it left out.

    subtracts_means:  whether the covariance is taken around the mean
    has_determinants: whether the scores have the logarithm of the covariance's determinant
    has_class_shares: whether the scores have the logarithm of the class's share
    """
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n
        if subtracts_means:
            covariance = covariance - np.outer(mean, mean)
        away = images - mean
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        score = -distance / 2
        if has_determinants:
            score = score - np.linalg.slogdet(covariance)[1] / 2
        if has_class_shares:
            score = score + np.log(n / sum(counts))
        scores.append(score)
    return np.argmax(scores, axis=0)


def classify_by_nearest_mean_by_mistake(
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> Predictions:
    means = sums / counts[:, None]
    return ((images[:, None] - means) ** 2).sum(2).argmin(1)


def classify_without_centring_by_mistake(
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> Predictions:
    return classify_with_terms_left_out_by_mistake(
        images, counts, sums, products, subtracts_means=False
    )


def classify_without_determinant_by_mistake(
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> Predictions:
    return classify_with_terms_left_out_by_mistake(
        images, counts, sums, products, has_determinants=False
    )


def classify_without_class_shares_by_mistake(
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> Predictions:
    return classify_with_terms_left_out_by_mistake(
        images, counts, sums, products, has_class_shares=False
    )


def return_class_scores_by_mistake(
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> ClassScores:
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n - np.outer(mean, mean)
        away = images - mean
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        scores.append(np.log(n / sum(counts)) - np.linalg.slogdet(covariance)[1] / 2 - distance / 2)
    return np.stack(scores, 1)


def classify_counting_from_one_by_mistake(
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> Predictions:
    return classify(images, counts, sums, products) + 1


BELL_SLIPS = {
    "nearest_mean": classify_by_nearest_mean_by_mistake,
    "not_centred": classify_without_centring_by_mistake,
    "no_volume": classify_without_determinant_by_mistake,
    "no_shares": classify_without_class_shares_by_mistake,
    "scores_returned": return_class_scores_by_mistake,
    "counted_from_one": classify_counting_from_one_by_mistake,
}


class ClassifyArguments(NamedTuple):
    """The arguments of a call of `classify`."""

    images: FlatImages  # [N, d]
    counts: CountPerClass  # [C] samples of each class
    sums: SumPerClass  # [C, d] of their features
    products: ProductSumPerClass  # [C, d, d]


def draw_random_classify_arguments(
    random_stream: np.random.Generator, class_count: int, feature_count: int, image_count: int
) -> ClassifyArguments:
    """Draw the arguments of a hidden call of `classify`: images, and the sums of random classes."""
    counts = random_stream.permutation(np.linspace(8 + feature_count, 200, class_count).astype(int))
    sums = np.zeros((class_count, feature_count))
    products = np.zeros((class_count, feature_count, feature_count))
    for c, n in enumerate(counts):
        spread = random_stream.normal(size=(feature_count, feature_count))
        spread = spread * random_stream.uniform(0.3, 2.5)
        mean = random_stream.normal(size=feature_count) * 1.5
        x = mean + random_stream.normal(size=(n, feature_count)) @ spread
        sums[c] = x.sum(0)
        products[c] = x.T @ x
    images = random_stream.normal(size=(image_count, feature_count)) * 2.5
    return ClassifyArguments(images, counts, sums, products)


q1, q2, q3, q4 = exercises(
    __name__,
    q3=Build(fit, ((1, 3, 2), (2, 4, 3), (5, 6, 3)), draw_random_fit_arguments, SLIPS),
    q4=Build(
        classify, ((2, 1, 80), (3, 2, 120), (4, 3, 160)), draw_random_classify_arguments, BELL_SLIPS
    ),
)
