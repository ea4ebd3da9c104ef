"""Lesson 4, sums never shout: its pictures and numbers, and what judges its exercises."""

from collections.abc import Iterable

import numpy as np

from ...labs.afl.forget import refit_without
from ...labs.afl.image import recover_class_means
from ...methods.afl import forget_client
from ...plots import Picture
from ...plots.study import against
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
        lines[title(method)] = table.against_alpha(method, CLIENTS)
    setting = f"digits, {CLIENTS} clients, means of ten seeds"
    return against(lines, "α", setting=setting, chance=0.1)


def better_at() -> str:
    """Which of SKEWS it is: the stored gap between the ends of α is smaller than a point, or
    not.
    """
    by_alpha = stored_results.load().against_alpha("afl", CLIENTS)
    low = 100 * np.mean(list(by_alpha[min(by_alpha)].values()))
    high = 100 * np.mean(list(by_alpha[max(by_alpha)].values()))
    if abs(low - high) < 1:
        return SKEWS[2]
    return SKEWS[0] if low > high else SKEWS[1]


def same_weights(one: Outcome, other: Outcome) -> Card:
    """How far the weights of two runs of AFL lie apart."""
    gap = max(apart(one.report.weights, other.report.weights), 1e-16)
    return worked(f"The two sets of weights differ by at most {gap:.0e} of the largest weight.")


def apart(weights: np.ndarray, others: np.ndarray) -> float:
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
    from_images = refit_without(outcome, client)
    return RESENT[0] if apart(from_sums, from_images) < 1e-6 else RESENT[2]


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


SLIPS = {
    "mean_of_fits": mean_of_fits,
    "ridges_left": ridges_left,
    "one_ridge_off": one_ridge_off,
    "no_final_ridge": no_final_ridge,
    "not_solved": not_solved,
}


def hidden(stream: np.random.Generator, clients: int, d: int, classes: int) -> tuple:
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


q1, q2, q3 = exercises(__name__, q3=Build(fit, ((1, 3, 2), (2, 4, 3), (5, 6, 3)), hidden, SLIPS))
