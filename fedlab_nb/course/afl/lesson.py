"""Lesson 10, sums never shout: its pictures and numbers, and what judges its exercises."""

from collections.abc import Iterable

import numpy as np

from ...labs.afl.forget import refit_without
from ...labs.afl.image import recover_class_means
from ...methods.afl import without
from ...plots import Picture
from ...plots.study import against
from ...studies import Outcome, stored
from ...studies.lesson_runs import CLIENTS, by_seed, runs, title
from ...studies.lesson_runs import percent as mean_of
from ..kit import Build, Card, exercises, lesson_words, worked

SKEWS, RESENT, SHOWN = (lesson_words(__name__, name) for name in ("skews", "resent", "shown"))


# ---------------------------------------------------------------------------------- two sums
def skew() -> Picture:
    """Accuracy against α of AFL, the mean of probabilities and FedAvg: stored results, ten seeds."""
    table = stored.load()
    lines = {
        title(method): table.against_alpha(method, CLIENTS)
        for method in ("afl", "ensemble", "fedavg")
    }
    return against(lines, "α", setting=f"digits, {CLIENTS} clients, means of ten seeds", chance=0.1)


def better_at() -> str:
    """Which of SKEWS it is: the stored gap between the ends of α is smaller than a point, or not."""
    by_alpha = stored.load().against_alpha("afl", CLIENTS)
    low, high = (
        100 * np.mean([*by_alpha[alpha].values()]) for alpha in (min(by_alpha), max(by_alpha))
    )
    return SKEWS[2] if abs(low - high) < 1 else SKEWS[0] if low > high else SKEWS[1]


def same_weights(one: Outcome, other: Outcome) -> Card:
    """How far the weights of two runs of AFL lie apart."""
    gap = max(apart(one.report.weights, other.report.weights), 1e-16)
    return worked(f"The two sets of weights differ by at most {gap:.0e} of the largest weight.")


def apart(weights: np.ndarray, others: np.ndarray) -> float:
    """The largest difference, as a share of the largest of the `others`."""
    return float(np.abs(weights - others).max() / np.abs(others).max())


# ---------------------------------------------------------------------------------- forgetting, what leaks, features
def first(outcomes: Iterable[Outcome]) -> Outcome:
    """AFL's outcome of the first seed."""
    return next(iter(by_seed(outcomes, "afl").values()))


def to_forget(outcomes: Iterable[Outcome], client: int = 0) -> str:
    """Which of RESENT it takes: the first if the server's own sums give the fit to the others' images."""
    outcome = first(outcomes)
    return (
        RESENT[0]
        if apart(without(outcome.report, client), refit_without(outcome, client)) < 1e-6
        else RESENT[2]
    )


def seen(outcomes: Iterable[Outcome]) -> str:
    """Which of SHOWN a class sum of one image shows: the first if it is that image wherever there is one."""
    single = [of.is_copy[of.counts == 1] for of in recover_class_means(first(outcomes))]
    return SHOWN[0] if np.concatenate(single).all() else SHOWN[1]


def on_glyphs() -> float:
    """Test accuracy of AFL with random filters on the small glyphs in percent, seed 0."""
    return round(
        mean_of(runs("afl", seeds=1, dataset="glyphs:16g", **{"afl.features": "conv"}), "afl")
    )


# ---------------------------------------------------------------------------------- to build
def fit(moments, class_sums, gamma, rho):
    """The weights [d, C] from the clients' moments [M, d, d], each with gamma on its diagonal, and class sums
    [M, d, C]."""
    clients, d, _ = moments.shape
    total = moments.sum(0) + (rho - clients * gamma) * np.eye(d)
    return np.linalg.solve(total, class_sums.sum(0))


def ridges_left(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0) + rho * np.eye(moments.shape[1]), class_sums.sum(0))


SLIPS = {
    "mean_of_fits": lambda g, s, gamma, rho: np.mean(
        [fit(g[k, None], s[k, None], gamma, rho) for k in range(len(g))], 0
    ),
    "ridges_left": ridges_left,
    "one_ridge_off": lambda moments, class_sums, gamma, rho: ridges_left(
        moments, class_sums, gamma, rho - gamma
    ),
    "no_final_ridge": lambda moments, class_sums, gamma, rho: fit(moments, class_sums, gamma, 0.0),
    "not_solved": lambda moments, class_sums, gamma, rho: moments.sum(0) @ class_sums.sum(0),
}


def hidden(stream: np.random.Generator, clients: int, d: int, classes: int) -> tuple:
    """Sums of random samples; some clients lack classes."""
    gamma, rho = stream.uniform(0.5, 2.0), stream.uniform(0.1, 1.0)
    moments, sums = np.zeros((clients, d, d)), np.zeros((clients, d, classes))
    for k in range(clients):
        x = np.c_[stream.normal(size=(4 + 3 * k, d - 1)), np.ones(4 + 3 * k)]
        y = np.eye(classes)[stream.integers(0, 1 + k % classes, len(x))]
        moments[k], sums[k] = x.T @ x + gamma * np.eye(d), x.T @ y
    return moments, sums, gamma, rho


q1, q2, q3 = exercises(__name__, q3=Build(fit, ((1, 3, 2), (2, 4, 3), (5, 6, 3)), hidden, SLIPS))
