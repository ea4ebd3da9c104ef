"""Lesson 12, send data: its worked numbers.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, α = 0.1, the classroom preset); nothing is written into the text by hand.
"""

import functools
from collections.abc import Hashable, Sequence
from statistics import mean

import numpy as np
import torch

from ...labs.distilled.sent import attack
from ...methods.distilled.images import tangent_kernel
from ...plots import Picture
from ...plots.words import percent as share_words
from ...plots.words import points, significance
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs
from ...studies.statistics import band
from ..kit import Build, Card, Verdict, chosen_gaps, exercises, lesson_words, two_kinds, worked
from . import clusters
from .clusters import Grid, agreement, components, grid, in_one_place, kfed, kmeans, square_distances, two_grids

SIZES, BEST, WHERE = (lesson_words(__name__, name) for name in ("sizes", "best", "where"))


# ---------------------------------------------------------------------------------- bytes
def size(outcomes: Sequence[Outcome]) -> str:
    """Which of SIZES the images of a client are, on average."""
    up = {name: mean(o.ledger.up for o in outcomes if o.method == name) for name in ("distilled", "fedavg")}
    part = up["distilled"] / up["fedavg"]
    return SIZES[0] if part < 0.25 else SIZES[1] if part < 1 else SIZES[2]


# ---------------------------------------------------------------------------------- which images
def best_for_a_network() -> str:
    """Which of BEST it is."""
    ways = ("random", "kmeans", "kip")
    return BEST[int(np.argmax([percent(runs("distilled", images=way, server="network"), "distilled") for way in ways]))]


# ---------------------------------------------------------------------------------- what it shows
def own_images(client: int = 1, seed: int = 0) -> int:
    """How many of the images that a client sends are its own, pixel by pixel, with the lesson's settings."""
    return int(attack(runs("distilled", seeds=1, seed=seed)[0])[client].copies.sum())


# ---------------------------------------------------------------------------------- centres
@functools.cache
def grids(spacing: float = 10.0, seed: int = 0) -> dict[str, Grid]:
    """k-FED with two kinds of clients."""
    return {"three clusters each": grid(True, spacing, seed=seed), "some of all": grid(False, spacing, seed=seed)}


def grid_picture(spacing: float = 10.0) -> Picture:
    """Both kinds of clients side by side."""
    return two_grids(grids(spacing), spacing)


def better_grid(spacing: float = 10.0, seeds: int = MANY) -> str:
    """Which of WHERE k-FED is better on, on average."""
    few, all_ = (mean(list(grids(spacing, s).values())[i].accuracy for s in range(seeds)) for i in (0, 1))
    return WHERE[2] if abs(few - all_) < 0.01 else WHERE[0] if few > all_ else WHERE[1]


def grid_accuracies(spacings: Sequence[float] = (10.0, 4.0), seeds: int = MANY) -> Card:
    """Points in the right cluster, for two distances between the Gaussians, and by k-means with all points together;
    the difference between the two kinds of clients with its band."""
    lines = []
    for spacing in spacings:
        made = [grids(spacing, seed) for seed in range(seeds)]
        accuracies = [f"{name} {share_words(mean(of[name].accuracy for of in made))}" for name in made[0]]
        for words, start in {"one start": (1, False), "ten starts, far apart": (10, True)}.items():
            shares = [in_one_place(next(iter(of.values())), *start, seed=seed) for seed, of in enumerate(made)]
            accuracies.append(f"in one place with {words} {share_words(mean(shares))}")
        few, some = ([list(of.values())[i].accuracy for of in made] for i in (0, 1))
        gap = band([a - b for a, b in zip(few, some, strict=True)])
        accuracies.append(f"the first − the second {points(gap)}, {significance(gap)}")
        lines.append(f"Clusters {spacing:g} apart: {', '.join(accuracies)}")
    return worked(
        *lines,
        f"(points in the right cluster; 30 clients with 90 points each, 16 clusters, means of {seeds} draws)",
    )


def digits(seed: int = 0, alpha: float = 0.1) -> Card:
    """k-FED on digits, where no theorem holds, and k-means with all digits in one place."""
    federation = runs("distilled", alpha, seeds=1, seed=seed)[0].federation()
    x, y = federation.dataset.x_train.flatten(1).double().numpy(), federation.dataset.y_train.numpy()
    draw = np.random.default_rng(seed)
    own, truth = ([values[shard.numpy()] for shard in federation.shards] for values in (x, y))
    sent = [kmeans(images, len(np.unique(labels)), draw, starts=3) for images, labels in zip(own, truth, strict=True)]
    right = Grid(own, truth, sent, kfed(sent, 10)).accuracy
    together = agreement(square_distances(x, kmeans(x, 10, draw)).argmin(1), y, 10)
    return worked(
        f"k-FED puts {share_words(right)} of the digits into the right cluster, k-means on all digits in one place "
        f"{share_words(together)} (α = {alpha:g}, seed {seed}; each client is told how many digits it holds)."
    )


def principal(r: int = 5, seed: int = 0, alpha: float = 0.1) -> Card:
    """One-shot PCA of the digits in two ways, against that of all digits in one place."""
    federation = runs("distilled", alpha, seeds=1, seed=seed)[0].federation()
    x = federation.dataset.x_train.flatten(1).double().numpy()
    parts = [x[shard.numpy()] for shard in federation.shards]
    pooled = components(np.concatenate(parts), r)
    exact = clusters.from_scatter([clusters.scatter(p) for p in parts], r)
    cheap = clusters.mean_of_projectors([components(p, r) for p in parts], r)
    same, near = (clusters.spanned(basis, pooled) for basis in (exact, cheap))
    d = x.shape[1]
    return worked(
        f"sums of scatter matrices, {d * (d + 1) // 2 + d + 1} numbers per client: {share_words(same)} of the pooled "
        f"{r}-dimensional subspace",
        f"mean of projectors, {d * r} numbers per client: {share_words(near)} (α = {alpha:g}, seed {seed})",
    )


# ---------------------------------------------------------------------------------- the exercises
DEPTH = 2  # of the kernel in the exercise


# ---------------------------------------------------------------------------------- on the record
def by_images(outcome: Outcome) -> tuple[Hashable, str] | None:
    """Runs that differ in the way of choosing images alone: all the other options, and the way."""
    if outcome.method != "distilled":
        return None
    others = tuple((name, value) for name, value in outcome.options.items() if name != "images")
    return (outcome.conditions, others), outcome.options["images"]


def two_settings(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 3: in one setting k-means is clearly better than random images, in another not. Both are
    found on validation images; the test images are looked at for these two alone."""

    def name(at: tuple) -> str:
        return "{per_class} per class and the {server}".format(**dict(at[1]))

    return two_kinds(chosen_gaps(outcomes, by_images, "kmeans", "random", name), **words)


def both_settings() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    settings = [{"per_class": 1, "server": "kernel"}, {"per_class": 10, "server": "network"}]
    ways = [{"images": images, **setting} for setting in settings for images in ("random", "kmeans")]
    return Outcomes(outcome for way in ways for outcome in runs("distilled", seeds=MANY, **way))


# ---------------------------------------------------------------------------------- to build
def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The tangent kernel of all pairs: images `[N, D]` and `[n_s, D]` give `[N, n_s]`."""
    return tangent_kernel(torch.as_tensor(a), torch.as_tensor(b), DEPTH).numpy()


def scores(sent, labels, images, classes, ridge):
    targets = np.eye(classes)[labels] - 1 / classes
    among = kernel(sent, sent)
    damping = ridge * np.diag(among).mean()
    weights = np.linalg.solve(among + damping * np.eye(len(sent)), targets)
    return kernel(images, sent) @ weights


def not_centred(sent, labels, images, classes, ridge):
    among = kernel(sent, sent)
    damped = among + ridge * np.diag(among).mean() * np.eye(len(sent))
    return kernel(images, sent) @ np.linalg.solve(damped, np.eye(classes)[labels])


def no_ridge(sent, labels, images, classes, ridge):
    return scores(sent, labels, images, classes, 0)


def plain_ridge(sent, labels, images, classes, ridge):
    return scores(sent, labels, images, classes, ridge / np.diag(kernel(sent, sent)).mean())


def no_solve(sent, labels, images, classes, ridge):
    return kernel(images, sent) @ (np.eye(classes)[labels] - 1 / classes)


def hidden_inputs() -> list[tuple]:
    """Images of three sizes, one set with a class that nobody sent; as many new images as sent ones in one of them."""
    made = []
    for seed, (sent, new, pixels, classes) in enumerate([(9, 4, 6, 3), (7, 7, 5, 4), (12, 5, 16, 10)]):
        draw = np.random.default_rng(seed)
        labels = draw.integers(0, classes - (seed == 1), sent)
        made.append((draw.uniform(size=(sent, pixels)), labels, draw.uniform(size=(new, pixels)), classes, 0.1))
    return made


SCORES = Build(scores, hidden_inputs, (not_centred, no_ridge, plain_ridge, no_solve))


q1, q2, q3, q4 = exercises(__name__, q3=(two_settings, both_settings), q4=SCORES)
