"""Lesson 4, sums never shout: its pictures and numbers, and what judges its exercises."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from ...labs.afl.forget import fit_without_client
from ...labs.afl.image import recover_class_means
from ...methods.afl import solve_classifier_weights_without_client
from ...methods.gauss import ClassSums, measure_class_sums, pack_class_sums, unpack_class_sums
from ...plots import Picture
from ...plots.kit import describe_picture, draw_image_rows
from ...plots.study import draw_accuracy_lines_with_bands
from ...plots.style import drawing
from ...plots.words import format_client_letters
from ...studies import Outcome, stored_results
from ...studies.lesson_runs import CLIENTS, by_seed, runs, title
from ...studies.lesson_runs import percent as mean_of
from ..kit import Build, Card, GuessOption, exercises, load_lesson_text, make_worked_card
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

SKEWS = load_lesson_text(__name__, "skews")
RESENT = load_lesson_text(__name__, "resent")
SHOWN = load_lesson_text(__name__, "shown")


# ---------------------------------------------------------------------------------- two sums
def draw_accuracy_against_alpha() -> Picture:
    """Draw the accuracy against α of AFL, the mean of probabilities and FedAvg: stored results, ten
    seeds.
    """
    table = stored_results.load()
    lines = {}
    for method in ("afl", "ensemble", "fedavg"):
        lines[title(method)] = table.list_accuracies_by_alpha(method, CLIENTS)
    setting = f"digits, {CLIENTS} clients, means of ten seeds"
    return draw_accuracy_lines_with_bands(lines, "α", setting=setting, chance=0.1)


def choose_answer_on_skew() -> GuessOption:
    """Choose which of SKEWS it is: the stored gap between the ends of α is smaller than a point, or
    not.
    """
    by_alpha = stored_results.load().list_accuracies_by_alpha("afl", CLIENTS)
    low = 100 * np.mean(list(by_alpha[min(by_alpha)].values()))
    high = 100 * np.mean(list(by_alpha[max(by_alpha)].values()))
    if abs(low - high) < 1:
        return SKEWS[2]
    return SKEWS[0] if low > high else SKEWS[1]


def show_largest_weight_difference(afl_outcome: Outcome, other_afl_outcome: Outcome) -> Card:
    """Show how far the weights of two runs of AFL lie apart."""
    weights = afl_outcome.report.weights
    gap = max(compute_largest_difference_as_share(weights, other_afl_outcome.report.weights), 1e-16)
    return make_worked_card(
        f"The two sets of weights differ by at most {gap:.0e} of the largest weight."
    )


def compute_largest_difference_as_share(
    weights: ClassifierWeights, reference_weights: ClassifierWeights
) -> float:
    """Compute the largest difference, as a share of the largest of the `reference_weights`."""
    return float(np.abs(weights - reference_weights).max() / np.abs(reference_weights).max())


# ----------------------------------------------------------------- forgetting, what leaks, features
def get_afl_outcome_of_first_seed(outcomes: Iterable[Outcome]) -> Outcome:
    """Return AFL's outcome of the first seed; StopIteration if there is none."""
    return next(iter(by_seed(outcomes, "afl").values()))


def choose_answer_on_forgetting(outcomes: Iterable[Outcome], client: int = 0) -> GuessOption:
    """Choose which of RESENT it takes: the first if the server's own sums give the fit to the others'
    images.
    """
    outcome = get_afl_outcome_of_first_seed(outcomes)
    from_sums = solve_classifier_weights_without_client(outcome.report, client)
    from_images = fit_without_client(outcome, client)
    return (
        RESENT[0]
        if compute_largest_difference_as_share(from_sums, from_images) < 1e-6
        else RESENT[2]
    )


def choose_answer_on_single_image_sum(outcomes: Iterable[Outcome]) -> GuessOption:
    """Choose which of SHOWN a class sum of one image shows: the first if it is that image wherever there
    is one.
    """
    single_images = []
    for means in recover_class_means(get_afl_outcome_of_first_seed(outcomes)):
        single_images.append(means.is_copy[means.counts == 1])
    return SHOWN[0] if np.concatenate(single_images).all() else SHOWN[1]


def compute_glyph_accuracy_percent() -> float:
    """Run AFL with random filters on the small glyphs, seed 0; return its test accuracy in percent."""
    outcomes = runs("afl", seeds=1, dataset="glyphs:16g", **{"afl.features": "conv"})
    return round(mean_of(outcomes, "afl"))


def draw_recovered_image_pair(outcome: Outcome) -> Picture:
    """Draw both images of an office that has two of a digit, from what it sent: its mean and its covariance.

    outcome: a run of `gauss` whose features are the pixels. The first such office and digit is taken.
    """
    counts = outcome.report.counts
    client, digit = np.argwhere(counts == 2)[0].tolist()
    images = load_client_images_of_digit(outcome, client, digit)
    sums = unpack_class_sums(
        pack_class_sums(compute_class_sums_of_digit_images(images, digit), torch.float32), "full"
    )
    recovered = recover_image_pair_from_moments(
        sums.means[digit].numpy(), sums.compute_class_covariances()[digit].numpy()
    )
    side = round(images.shape[1] ** 0.5)
    rows = []
    for name, pair in (("its two images", images), ("from mean and covariance", recovered)):
        rows.append(
            (name, [image.reshape(1, side, side) for image in order_pair_like_images(pair, images)])
        )
    gap = float(np.abs(order_pair_like_images(recovered, images) - images).max())
    with drawing(size=(6.5, 2.6)) as (figure, ax):
        draw_image_rows(ax, rows)
    sentence = (
        f"Office {format_client_letters(client)} has two images of the digit {digit}. From "
        "what it sends both can be computed: no pixel is off by more than "
        f"{'a millionth' if gap < 1e-6 else f'{gap:.0e}'} of the range."
    )
    return describe_picture(figure, "Two images, and what mean and covariance give", "", sentence)


def compute_class_sums_of_digit_images(images: FlatImages, digit: int) -> ClassSums:
    """Compute what an office adds up over images `[n, d]` of one digit."""
    labels = torch.full((len(images),), digit)
    return measure_class_sums(torch.from_numpy(images), labels, 10, "full")


def load_client_images_of_digit(outcome: Outcome, client: int, digit: int) -> FlatImages:
    """Return the pixels `[n, d]` of a client's training images of a digit, which it summed up."""
    federation = outcome.federation()
    rows, _ = federation.split(outcome.plan.share_held_out_of_local_training)[client]
    own = rows[federation.dataset.y_train[rows] == digit]
    return federation.dataset.x_train[own].flatten(1).double().numpy()


def recover_image_pair_from_moments(mean: Vector, covariance: Covariance) -> ImagePair:
    """Compute the two samples `[2, d]` that have this mean `[d]` and this covariance `[d, d]`."""
    values, axes = np.linalg.eigh(covariance)
    half = axes[:, -1] * np.sqrt(values[-1])  # (a − b) / 2, up to its sign
    return np.stack([mean + half, mean - half])


def order_pair_like_images(recovered_pair: ImagePair, images: ImagePair) -> ImagePair:
    """Return the pair in the order of the two images: which one is the first cannot be known."""
    swapped_pair = recovered_pair[::-1]
    if np.abs(recovered_pair - images).sum() > np.abs(swapped_pair - images).sum():
        return swapped_pair
    return recovered_pair


# ---------------------------------------------------------------------------------- to build
def fit(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    """Compute the weights [d, C] from the clients' moments [M, d, d], each with gamma on its diagonal, and
    class sums [M, d, C]."""
    clients, d, _ = moments.shape
    total = moments.sum(0) + (rho - clients * gamma) * np.eye(d)
    return np.linalg.solve(total, class_sums.sum(0))


def fit_without_removing_ridges_by_mistake(
    moments: ClientMoments, class_sums: ClientClassSums, gamma: float, rho: float
) -> ClassifierWeights:
    return np.linalg.solve(moments.sum(0) + rho * np.eye(moments.shape[1]), class_sums.sum(0))


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
    images: FlatImages, counts: CountPerClass, sums: SumPerClass, products: ProductSumPerClass
) -> Predictions:
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
    """Return the class `[n]` of each image by Bayes' rule, with terms of it left out."""
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n - subtracts_means * np.outer(mean, mean)
        away = images - mean
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        constant = has_determinants * -np.linalg.slogdet(covariance)[
            1
        ] / 2 + has_class_shares * np.log(n / sum(counts))
        scores.append(constant - distance / 2)
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


BELL_SLIPS = {
    "nearest_mean": classify_by_nearest_mean_by_mistake,
    "not_centred": classify_without_centring_by_mistake,
    "no_volume": classify_without_determinant_by_mistake,
    "no_shares": classify_without_class_shares_by_mistake,
    "scores_returned": return_class_scores_by_mistake,
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
        shape = random_stream.normal(size=(feature_count, feature_count)) * random_stream.uniform(
            0.3, 2.5
        )
        x = (
            random_stream.normal(size=feature_count) * 1.5
            + random_stream.normal(size=(n, feature_count)) @ shape
        )
        sums[c] = x.sum(0)
        products[c] = x.T @ x
    return ClassifyArguments(
        random_stream.normal(size=(image_count, feature_count)) * 2.5, counts, sums, products
    )


q1, q2, q3, q4 = exercises(
    __name__,
    q3=Build(fit, ((1, 3, 2), (2, 4, 3), (5, 6, 3)), draw_random_fit_arguments, SLIPS),
    q4=Build(
        classify, ((2, 1, 80), (3, 2, 120), (4, 3, 160)), draw_random_classify_arguments, BELL_SLIPS
    ),
)
