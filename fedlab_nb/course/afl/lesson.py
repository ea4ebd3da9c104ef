"""Lesson 10, in closed form: its worked numbers and pictures, from real runs (digits, ten clients, three seeds)."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from ...labs.afl.forget import retrained
from ...labs.afl.image import class_means
from ...methods.afl import without
from ...plots import Picture
from ...plots.words import percent
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, SEEDS, by_seed, runs, title
from ...studies.lesson_runs import percent as mean_of
from ..kit import BELOW, Build, Card, Verdict, chosen_gaps, exercises, lesson_words, over_alpha, two_kinds, worked

SKEWS, RESENT, SHOWN = (lesson_words(__name__, name) for name in ("skews", "resent", "shown"))
BESIDE, ALPHAS = ("afl", "ensemble", "fedavg"), (0.1, 1.0, 100.0)
GLYPHS = "glyphs:16g"


# ---------------------------------------------------------------------------------- two sums


def skew() -> Picture:
    """Accuracy against α of AFL, the ensemble and FedAvg."""
    return over_alpha({name: title(name) for name in BESIDE}, ALPHAS)


def better_at() -> str:
    """Which of SKEWS it is: the gap between α = 0.1 and α = 100 is smaller than a point, or not."""
    low, high = (mean_of(runs("afl", alpha), "afl") for alpha in (ALPHAS[0], ALPHAS[-1]))
    return SKEWS[2] if abs(low - high) < 1 else SKEWS[0] if low > high else SKEWS[1]


def same_weights() -> Card:
    """Three federations of the same images, none held out: accuracies, and how far their weights lie apart."""
    lines, reference = [], None
    for alpha, clients, seed in ((0.1, 10, 0), (0.1, 20, 7), (100, 5, 1)):
        outcome = runs("afl", alpha, clients=clients, seed=seed, seeds=1, holdout=0)[0]
        weights, below = outcome.report.weights, "to compare with"
        if reference is not None:
            below = f"{max(apart(weights, reference), 1e-16):.0e} of the largest weight away"
        reference = weights if reference is None else reference
        where = f"α = {alpha:g}, {clients} clients, seed {seed}"
        lines.append(f"{where}: {100 * outcome.accuracy:.1f} %, weights {below}")
    return worked(*lines)


def apart(weights: np.ndarray, others: np.ndarray) -> float:
    """The largest difference, as a share of the largest of the `others`."""
    return float(np.abs(weights - others).max() / np.abs(others).max())


# ---------------------------------------------------------------------------------- forgetting
def first(outcomes: Iterable[Outcome]) -> Outcome:
    """AFL's outcome of the first seed."""
    return next(iter(by_seed(outcomes, "afl").values()))


def forgetting(outcomes: Iterable[Outcome]) -> Card:
    """Each client of the first run taken out in turn: distance from a fit without it, and the accuracy that is left."""
    outcome = first(outcomes)
    lines, furthest = [], 0.0
    for k in range(outcome.settings.clients):
        weights = without(outcome.report, k)
        furthest = max(furthest, apart(weights, retrained(outcome, k)))
        right = (outcome.test_features @ weights[:-1] + weights[-1]).argmax(1) == outcome.test_labels
        lines.append(f"client {k}: {percent(right.mean())}")
    return worked(
        f"With all clients {percent(outcome.accuracy)}. Without {', '.join(lines)}.",
        f"Take any one client off. The weights then differ from those of a fit to the other clients' images by at most "
        f"{max(furthest, 1e-16):.0e} of the largest weight.",
    )


def to_forget(outcomes: Iterable[Outcome], client: int = 0) -> str:
    """Which of RESENT it takes: the first if the server's own sums give the fit to the others' images."""
    outcome = first(outcomes)
    return RESENT[0] if apart(without(outcome.report, client), retrained(outcome, client)) < 1e-6 else RESENT[2]


# ---------------------------------------------------------------------------------- what leaks
def single_images(outcomes: Iterable[Outcome]) -> Card:
    """How many of the (client, class) pairs of the first run have one image, and how many of these the sums show."""
    means = class_means(first(outcomes))
    counts, leaked = (np.concatenate([getattr(of, name) for of in means]) for name in ("counts", "copies"))
    single = (counts == 1).sum()
    return worked(
        f"The {len(means)} clients hold {len(counts)} classes in all, counted for each client. Of {single} of these a "
        f"client has one image alone. The class sum is that image in {leaked[counts == 1].sum()} of {single} cases."
    )


def seen(outcomes: Iterable[Outcome]) -> str:
    """Which of SHOWN a class sum of one image shows: the first if it is that image wherever there is one."""
    single = [of.copies[of.counts == 1] for of in class_means(first(outcomes))]
    return SHOWN[0] if np.concatenate(single).all() else SHOWN[1]


def private() -> float:
    """Test accuracy in percent at ε = 1."""
    return round(mean_of(runs("afl", **{"afl.epsilon": 1.0}), "afl"))


# ---------------------------------------------------------------------------------- not enough
def on_glyphs() -> float:
    """Test accuracy of AFL with random filters on the small glyphs in percent, seed 0."""
    return round(mean_of(runs("afl", seeds=1, dataset=GLYPHS, **{"afl.features": "conv"}), "afl"))


# ---------------------------------------------------------------------------------- to build
def fit(moments, class_sums, gamma, rho):
    """The weights [d, C] from the clients' moments [M, d, d], each with gamma on its diagonal, and class sums
    [M, d, C]."""
    clients, d, _ = moments.shape
    total = moments.sum(0) + (rho - clients * gamma) * np.eye(d)
    return np.linalg.solve(total, class_sums.sum(0))


def mean_of_fits(moments, class_sums, gamma, rho):
    return np.mean([fit(g[None], s[None], gamma, rho) for g, s in zip(moments, class_sums, strict=True)], axis=0)


def ridges_left(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0) + rho * np.eye(moments.shape[1]), class_sums.sum(0))


def one_ridge_off(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0) + (rho - gamma) * np.eye(moments.shape[1]), class_sums.sum(0))


def no_final_ridge(moments, class_sums, gamma, rho):
    return fit(moments, class_sums, gamma, 0.0)


def not_solved(moments, class_sums, gamma, rho):
    return moments.sum(0) @ class_sums.sum(0)


def hidden() -> list[tuple]:
    """Sums of random samples for several numbers of clients, features and classes; some clients lack classes."""
    made = []
    for seed, (clients, d, classes) in enumerate(((1, 3, 2), (2, 4, 3), (5, 6, 3))):
        stream = np.random.default_rng(seed)
        gamma, rho = stream.uniform(0.5, 2.0), stream.uniform(0.1, 1.0)
        moments, sums = np.zeros((clients, d, d)), np.zeros((clients, d, classes))
        for k in range(clients):
            x = np.c_[stream.normal(size=(4 + 3 * k, d - 1)), np.ones(4 + 3 * k)]
            y = np.eye(classes)[stream.integers(0, 1 + k % classes, len(x))]
            moments[k], sums[k] = x.T @ x + gamma * np.eye(d), x.T @ y
        made.append((moments, sums, gamma, rho))
    return made


# ---------------------------------------------------------------------------------- on the record
def by_method(outcome: Outcome) -> tuple[Hashable, str] | None:
    """AFL with pixels and without noise, and the ensemble, under the same setting."""
    if outcome.method == "ensemble":
        return outcome.conditions, "ensemble"
    plain = outcome.method == "afl" and outcome.options["features"] == "pixels" and not outcome.options["epsilon"]
    return (outcome.conditions, "afl") if plain else None


def two_sides(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 4: in one setting AFL is clearly better than the ensemble, in another the ensemble is. The
    settings are found on validation images; the test images are looked at for these two alone."""
    gaps = chosen_gaps(outcomes, by_method, "afl", "ensemble", lambda at: f"{at[0].dataset}, α = {at[0].alpha:g}")
    return two_kinds(gaps, others=(BELOW,), **words)


def both_sides() -> Outcomes:
    """Runs that support the claim of exercise 4."""
    pair = ["afl", "ensemble"]
    few = runs(pair, 100, dataset="glyphs:16g", seeds=SEEDS)
    return Outcomes([*runs(pair, 0.1, seeds=MANY), *few])


BUILD = Build(fit, hidden, (mean_of_fits, ridges_left, one_ridge_off, no_final_ridge, not_solved))


q1, q2, q3, q4 = exercises(__name__, q3=BUILD, q4=(two_sides, both_sides))
