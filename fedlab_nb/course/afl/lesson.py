"""Lesson 4, sums never shout: its pictures and numbers, and what judges its exercises."""

from collections.abc import Iterable

import numpy as np
import torch

from ...labs.afl.forget import solve_without_client
from ...labs.afl.image import recover_class_means
from ...methods.afl import forget_client
from ...methods.gauss import ClassSums, make_message, measure_class_sums, read_message
from ...plots import Picture
from ...plots.kit import describe_picture, draw_image_rows
from ...plots.study import draw_accuracy_lines
from ...plots.style import drawing
from ...plots.words import format_letters
from ...studies import Outcome, stored_results
from ...studies.lesson_runs import CLIENTS, by_seed, runs, title
from ...studies.lesson_runs import percent as mean_of
from ..kit import Build, Card, exercises, lesson_words, worked

SKEWS = lesson_words(__name__, "skews")
RESENT = lesson_words(__name__, "resent")
SHOWN = lesson_words(__name__, "shown")


# ---------------------------------------------------------------------------------- two sums
def skew() -> Picture:
    """Accuracy against α of AFL, the mean of probabilities and FedAvg: stored results, ten
    seeds.
    """
    table = stored_results.load()
    lines = {}
    for method in ("afl", "ensemble", "fedavg"):
        lines[title(method)] = table.list_accuracies_by_alpha(method, CLIENTS)
    setting = f"digits, {CLIENTS} clients, means of ten seeds"
    return draw_accuracy_lines(lines, "α", setting=setting, chance=0.1)


def better_at() -> str:
    """Which of SKEWS it is: the stored gap between the ends of α is smaller than a point, or
    not.
    """
    by_alpha = stored_results.load().list_accuracies_by_alpha("afl", CLIENTS)
    low = 100 * np.mean(list(by_alpha[min(by_alpha)].values()))
    high = 100 * np.mean(list(by_alpha[max(by_alpha)].values()))
    if abs(low - high) < 1:
        return SKEWS[2]
    return SKEWS[0] if low > high else SKEWS[1]


def same_weights(one: Outcome, other: Outcome) -> Card:
    """How far the weights of two runs of AFL lie apart."""
    gap = max(measure_distance(one.report.weights, other.report.weights), 1e-16)
    return worked(f"The two sets of weights differ by at most {gap:.0e} of the largest weight.")


def measure_distance(weights: np.ndarray, others: np.ndarray) -> float:
    """The largest difference, as a share of the largest of the `others`."""
    return float(np.abs(weights - others).max() / np.abs(others).max())


# ----------------------------------------------------------------- forgetting, what leaks, features
def first(outcomes: Iterable[Outcome]) -> Outcome:
    """AFL's outcome of the first seed."""
    return next(iter(by_seed(outcomes, "afl").values()))


def to_forget(outcomes: Iterable[Outcome], client: int = 0) -> str:
    """Which of RESENT it takes: the first if the server's own sums give the fit to the others'
    images.
    """
    outcome = first(outcomes)
    from_sums = forget_client(outcome.report, client)
    from_images = solve_without_client(outcome, client)
    return RESENT[0] if measure_distance(from_sums, from_images) < 1e-6 else RESENT[2]


def seen(outcomes: Iterable[Outcome]) -> str:
    """Which of SHOWN a class sum of one image shows: the first if it is that image wherever there
    is one.
    """
    single_images = []
    for means in recover_class_means(first(outcomes)):
        single_images.append(means.is_copy[means.counts == 1])
    return SHOWN[0] if np.concatenate(single_images).all() else SHOWN[1]


def on_glyphs() -> float:
    """Test accuracy of AFL with random filters on the small glyphs in percent, seed 0."""
    outcomes = runs("afl", seeds=1, dataset="glyphs:16g", **{"afl.features": "conv"})
    return round(mean_of(outcomes, "afl"))


def two_images(outcome: Outcome) -> Picture:
    """Both images of an office that has two of a digit, from what it sent: its mean and its covariance.

    outcome: a run of `gauss` whose features are the pixels. The first such office and digit is taken.
    """
    counts = outcome.report.counts
    client, digit = np.argwhere(counts == 2)[0].tolist()
    images = read_images(outcome, client, digit)
    sums = read_message(make_message(measure_image_sums(images, digit), torch.float32), "full")
    recovered = recover_two(sums.means[digit].numpy(), sums.compute_covariances()[digit].numpy())
    side = round(images.shape[1] ** 0.5)
    rows = []
    for name, pair in (("its two images", images), ("from mean and covariance", recovered)):
        rows.append((name, [image.reshape(1, side, side) for image in match_images(pair, images)]))
    gap = float(np.abs(match_images(recovered, images) - images).max())
    with drawing(size=(6.5, 2.6)) as (figure, ax):
        draw_image_rows(ax, rows)
    sentence = (
        f"Office {format_letters(client)} has two images of the digit {digit}. From what it sends both can be "
        f"computed: no pixel is off by more than {'a millionth' if gap < 1e-6 else f'{gap:.0e}'} of the range."
    )
    return describe_picture(figure, "Two images, and what mean and covariance give", "", sentence)


def measure_image_sums(images: np.ndarray, digit: int) -> ClassSums:
    """What an office adds up over images `[n, d]` of one digit."""
    labels = torch.full((len(images),), digit)
    return measure_class_sums(torch.from_numpy(images), labels, 10, "full")


def read_images(outcome: Outcome, client: int, digit: int) -> np.ndarray:
    """The pixels `[n, d]` of a client's training images of a digit, which it summed up."""
    federation = outcome.federation()
    rows, _ = federation.split(outcome.plan.holdout)[client]
    own = rows[federation.dataset.y_train[rows] == digit]
    return federation.dataset.x_train[own].flatten(1).double().numpy()


def recover_two(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The two samples `[2, d]` that have this mean `[d]` and this covariance `[d, d]`."""
    values, axes = np.linalg.eigh(covariance)
    half = axes[:, -1] * np.sqrt(values[-1])  # (a − b) / 2, up to its sign
    return np.stack([mean + half, mean - half])


def match_images(pair: np.ndarray, images: np.ndarray) -> np.ndarray:
    """The pair in the order of the images: which one is the first cannot be known."""
    if np.abs(pair - images).sum() > np.abs(pair[::-1] - images).sum():
        return pair[::-1]
    return pair


# ---------------------------------------------------------------------------------- to build
def fit(moments, class_sums, gamma, rho):
    """The weights [d, C] from the clients' moments [M, d, d], each with gamma on its diagonal, and
    class sums [M, d, C]."""
    clients, d, _ = moments.shape
    total = moments.sum(0) + (rho - clients * gamma) * np.eye(d)
    return np.linalg.solve(total, class_sums.sum(0))


def ridges_left(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0) + rho * np.eye(moments.shape[1]), class_sums.sum(0))


def mean_of_fits(moments, class_sums, gamma, rho):
    fits = []
    for k in range(len(moments)):
        fits.append(fit(moments[k, None], class_sums[k, None], gamma, rho))
    return np.mean(fits, 0)


def one_ridge_off(moments, class_sums, gamma, rho):
    return ridges_left(moments, class_sums, gamma, rho - gamma)


def no_final_ridge(moments, class_sums, gamma, rho):
    return fit(moments, class_sums, gamma, 0.0)


def not_solved(moments, class_sums, gamma, rho):
    return moments.sum(0) @ class_sums.sum(0)


def untouched_sums(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0), class_sums.sum(0))


def mean_with_ridges(moments, class_sums, gamma, rho):
    fits = []
    for k in range(len(moments)):
        fits.append(np.linalg.solve(moments[k], class_sums[k]))
    return np.mean(fits, 0)


SLIPS = {
    "untouched_sums": untouched_sums,
    "mean_with_ridges": mean_with_ridges,
    "mean_of_fits": mean_of_fits,
    "ridges_left": ridges_left,
    "one_ridge_off": one_ridge_off,
    "no_final_ridge": no_final_ridge,
    "not_solved": not_solved,
}


def draw_hidden_case(stream: np.random.Generator, clients: int, d: int, classes: int) -> tuple:
    """Sums of random samples; some clients lack classes."""
    gamma = stream.uniform(0.5, 2.0)
    rho = stream.uniform(0.1, 1.0)
    moments = np.zeros((clients, d, d))
    sums = np.zeros((clients, d, classes))
    for k in range(clients):
        samples = 4 + 3 * k
        x = np.c_[stream.normal(size=(samples, d - 1)), np.ones(samples)]
        y = np.eye(classes)[stream.integers(0, 1 + k % classes, samples)]
        moments[k] = x.T @ x + gamma * np.eye(d)
        sums[k] = x.T @ y
    return moments, sums, gamma, rho


# ---------------------------------------------------------------------------------- the bells
def classify(images, counts, sums, products):
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n - np.outer(mean, mean)
        away = images - mean
        distance = (away @ np.linalg.inv(covariance) * away).sum(1)
        height = np.log(n / sum(counts)) - np.log(np.linalg.det(covariance)) / 2
        scores.append(height - distance / 2)
    return np.argmax(scores, axis=0)


def score_classes(images, counts, sums, products, centre=True, volume=True, shares=True):
    """The class of each image by Bayes' rule, with parts of it left out."""
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n - centre * np.outer(mean, mean)
        away = images - mean
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        constant = volume * -np.linalg.slogdet(covariance)[1] / 2 + shares * np.log(n / sum(counts))
        scores.append(constant - distance / 2)
    return np.argmax(scores, axis=0)


def nearest_mean(images, counts, sums, products):
    means = sums / counts[:, None]
    return ((images[:, None] - means) ** 2).sum(2).argmin(1)


def not_centred(images, counts, sums, products):
    return score_classes(images, counts, sums, products, centre=False)


def no_volume(images, counts, sums, products):
    return score_classes(images, counts, sums, products, volume=False)


def no_shares(images, counts, sums, products):
    return score_classes(images, counts, sums, products, shares=False)


def scores_returned(images, counts, sums, products):
    scores = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        covariance = squares / n - np.outer(mean, mean)
        away = images - mean
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        scores.append(np.log(n / sum(counts)) - np.linalg.slogdet(covariance)[1] / 2 - distance / 2)
    return np.stack(scores, 1)


BELL_SLIPS = {
    "nearest_mean": nearest_mean,
    "not_centred": not_centred,
    "no_volume": no_volume,
    "no_shares": no_shares,
    "scores_returned": scores_returned,
}


def draw_hidden_bells(stream: np.random.Generator, classes: int, d: int, images: int) -> tuple:
    """Totals of classes with other means, spreads and sizes, and images among all of them."""
    counts = stream.permutation(np.linspace(8 + d, 200, classes).astype(int))
    sums = np.zeros((classes, d))
    products = np.zeros((classes, d, d))
    for c, n in enumerate(counts):
        shape = stream.normal(size=(d, d)) * stream.uniform(0.3, 2.5)
        x = stream.normal(size=d) * 1.5 + stream.normal(size=(n, d)) @ shape
        sums[c] = x.sum(0)
        products[c] = x.T @ x
    return stream.normal(size=(images, d)) * 2.5, counts, sums, products


q1, q2, q3, q4 = exercises(
    __name__,
    q3=Build(fit, ((1, 3, 2), (2, 4, 3), (5, 6, 3)), draw_hidden_case, SLIPS),
    q4=Build(classify, ((2, 1, 80), (3, 2, 120), (4, 3, 160)), draw_hidden_bells, BELL_SLIPS),
)
