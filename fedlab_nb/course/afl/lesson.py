"""Lesson 10, in closed form: its worked numbers and pictures, from real runs (digits, ten clients, three seeds)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from ...comm import Link
from ...declared import declared
from ...labs.afl.forget import retrained
from ...labs.afl.image import class_means
from ...methods.afl import without
from ...methods.parts.privacy import masked, opened
from ...plots import Picture
from ...plots.study import against_alpha
from ...plots.words import data_size, percent
from ...rng import generator
from ...study import Outcome
from ...study.lesson_runs import SEEDS, accuracies, by_seed, runs, title
from ...study.lesson_runs import percent as mean_of
from ..kit.view import Card, worked
from .exercises import q1, q2, q3, q4

__all__ = ["mean_of", "q1", "q2", "q3", "q4"]  # used by the notebook, made elsewhere

WORDS = declared("course/afl/words.toml")
SKEWS, RESENT, SHOWN = (tuple(WORDS[name]) for name in ("skews", "resent", "shown"))
BESIDE, ALPHAS = ("afl", "ensemble", "fedavg"), (0.1, 1.0, 100.0)
GLYPHS = "glyphs:16g"


# ------------------------------------------------------------------------------------------------ two sums
def by_hand() -> Card:
    """Least squares through the origin at two clients: their slopes, the mean of these, and the slope of the sums."""
    clients = (((1.0, 2.0), (2.0, 2.0)), ((3.0, 9.0),))
    squares, products = ([sum(x * (x, y)[i] for x, y in own) for own in clients] for i in (0, 1))
    slopes = [p / s for p, s in zip(products, squares, strict=True)]
    lines = [
        f"client {k + 1} has {', '.join(f'({x:g}, {y:g})' for x, y in own)}: "
        f"Σx² = {s:g}, Σxy = {p:g}, own slope {p / s:g}"
        for k, (own, s, p) in enumerate(zip(clients, squares, products, strict=True))
    ]
    total = f"{sum(products):g} / {sum(squares):g} = {sum(products) / sum(squares):.3g}"
    return worked(*lines, f"Mean of the slopes: {np.mean(slopes):g}. Slope from the sums: {total}.")


def skew() -> Picture:
    """Accuracy against α of AFL, the ensemble and FedAvg."""
    by_method: dict[str, dict[float, dict[int, float]]] = {title(name): {} for name in BESIDE}
    for alpha in ALPHAS:
        outcomes = runs(BESIDE, alpha)
        for name in BESIDE:
            by_method[title(name)][alpha] = accuracies(outcomes, name)
    return against_alpha(by_method, setting=f"digits, 10 clients, seeds 0–{SEEDS - 1}", chance=0.1)


def better_at() -> str:
    """Which of SKEWS it is: the gap between α = 0.1 and α = 100 is smaller than a point, or not."""
    low, high = (mean_of(runs("afl", alpha), "afl") for alpha in (ALPHAS[0], ALPHAS[-1]))
    return SKEWS[2] if abs(low - high) < 1 else SKEWS[0] if low > high else SKEWS[1]


def same_weights() -> Card:
    """Three federations of the same images, none held out: accuracies, and how far their weights lie apart."""
    settings: list[dict[str, Any]] = [
        {"alpha": 0.1, "clients": 10, "seed": 0}, {"alpha": 0.1, "clients": 20, "seed": 7},
        {"alpha": 100, "clients": 5, "seed": 1},
    ]  # fmt: skip
    outcomes = [runs("afl", seeds=1, holdout=0, **setting)[0] for setting in settings]
    first = outcomes[0].report.weights
    lines = []
    for setting, o in zip(settings, outcomes, strict=True):
        apart = np.abs(o.report.weights - first).max() / np.abs(first).max()
        below = "to compare with" if o is outcomes[0] else f"{max(apart, 1e-16):.0e} of the largest weight away"
        where = f"α = {setting['alpha']:g}, {setting['clients']} clients, seed {setting['seed']}"
        lines.append(f"{where}: {100 * o.accuracy:.1f} %, weights {below}")
    return worked(*lines)


def upload(features: int = 64, classes: int = 10) -> Card:
    """What one client sends."""
    d = features + 1
    triangle = d * (d + 1) // 2
    return worked(
        f"{features} pixels and a 1 are {d} numbers. G_k is symmetric, so one triangle is enough: "
        f"{d} · {d + 1} / 2 = {triangle}.",
        f"S_k has {d} · {classes} = {d * classes} numbers.",
        f"{triangle + d * classes} numbers of 4 bytes = {data_size(4 * (triangle + d * classes))}. "
        "FedAvg's network has 26.3 kB. It comes down once and goes up once.",
    )


# ------------------------------------------------------------------------------------------------ Gaussian heads
def heads() -> Card:
    """Accuracy of the four Gaussian heads, beside AFL."""
    names = WORDS["heads"]
    outcomes = {head: runs("gauss", **{"gauss.head": head}) for head in names}
    lines = [
        f"{words}: {mean_of(outcomes[h], 'gauss'):.0f} %, {data_size(up_of(outcomes[h]))} up"
        for h, words in names.items()
    ]
    own = runs("afl")
    last = f"AFL, least squares: {mean_of(own, 'afl'):.0f} %, {data_size(up_of(own))} up"
    return worked(*lines, last, f"Bytes of one client; means of {SEEDS} seeds.")


def up_of(outcomes: Sequence[Outcome]) -> float:
    """Mean bytes up of one client."""
    return float(np.mean([o.ledger.up / o.settings.clients for o in outcomes]))


# ------------------------------------------------------------------------------------------------ forgetting
def first(outcomes: Iterable[Outcome]) -> Outcome:
    """AFL's outcome of the first seed."""
    return next(iter(by_seed(outcomes, "afl").values()))


def forgetting(outcomes: Iterable[Outcome]) -> Card:
    """Each client of the first run taken out in turn: distance from a fit without it, and the accuracy that is left."""
    outcome = first(outcomes)
    features, y = outcome.test_features.astype(float), outcome.test_labels
    lines, furthest = [], 0.0
    for k in range(outcome.settings.clients):
        weights, scratch = without(outcome.report, k), retrained(outcome, k)
        furthest = max(furthest, float(np.abs(weights - scratch).max() / np.abs(scratch).max()))
        right = float(((features @ weights[:-1] + weights[-1]).argmax(1) == y).mean())
        lines.append(f"client {k}: {percent(right)}")
    return worked(
        f"With all clients {percent(outcome.accuracy)}. Without {', '.join(lines)}.",
        f"Take any one client off. The weights then differ from those of a fit to the other clients' images by at most "
        f"{max(furthest, 1e-16):.0e} of the largest weight.",
    )


def to_forget(outcomes: Iterable[Outcome], client: int = 0) -> str:
    """Which of RESENT it takes: the first if the server's own sums give the fit to the others' images."""
    outcome = first(outcomes)
    apart = np.abs(without(outcome.report, client) - retrained(outcome, client)).max()
    return RESENT[0] if apart < 1e-6 else RESENT[2]


# ------------------------------------------------------------------------------------------------ what leaks
def single_images(outcomes: Iterable[Outcome]) -> Card:
    """How many of the (client, class) pairs of the first run have one image, and how many of these the sums show."""
    means = class_means(first(outcomes))
    pairs = sum(len(of.counts) for of in means)
    single = sum(int((of.counts == 1).sum()) for of in means)
    leaked = sum(int((of.leaked & (of.counts == 1)).sum()) for of in means)
    return worked(
        f"The {len(means)} clients hold {pairs} classes in all, counted for each client. Of {single} of these a client "
        f"has one image alone. The class sum is that image in {leaked} of {single} cases."
    )


def seen(outcomes: Iterable[Outcome]) -> str:
    """Which of SHOWN a class sum of one image shows: the first if it is that image wherever there is one."""
    single = [of.leaked[of.counts == 1] for of in class_means(first(outcomes))]
    return SHOWN[0] if np.concatenate(single).all() else SHOWN[1]


def masks() -> Card:
    """Three clients, one number each, as the server receives them with masks, and their sum."""
    own = [torch.tensor([value], dtype=torch.float64) for value in (5.0, 7.0, 30.0)]
    received = masked(Link(3), own, lambda k: generator(0, "lesson 10", k), "masked sums")
    lines = [
        f"client {k} has {v.item():g} and sends {int(r):,}" for k, (v, r) in enumerate(zip(own, received, strict=True))
    ]
    return worked(*lines, f"The server adds the three, modulo 2^64, and divides by 2^32: {opened(received).item():g}.")


def private() -> float:
    """Test accuracy in percent at ε = 1."""
    return round(mean_of(runs("afl", **{"afl.epsilon": 1.0}), "afl"))


# ------------------------------------------------------------------------------------------------ not enough
def glyphs() -> Card:
    """AFL on the small glyphs, one seed: with the pixels, and with random filters."""
    settings: list[tuple[str, dict[str, Any]]] = [
        ("the pixels", {}), ("256 random features", {"afl.features": "relu"}),
        ("256 numbers from random filters", {"afl.features": "conv"}),
    ]  # fmt: skip
    lines = []
    for words, knobs in settings:
        outcome = runs("afl", seeds=1, dataset=GLYPHS, **knobs)[0]
        lines.append(f"{words}: {percent(outcome.accuracy)}, {data_size(up_of([outcome]))} up")
    return worked(*lines, "α = 0.1, seed 0. Bytes of one client.")


def on_glyphs() -> float:
    """Test accuracy of AFL with random filters on the small glyphs in percent, seed 0."""
    return round(mean_of(runs("afl", seeds=1, dataset=GLYPHS, **{"afl.features": "conv"}), "afl"))
