"""Lesson 12, send data: its numbers and its picture, and what judges its exercises (digits, ten clients, α = 0.1)."""

from collections.abc import Sequence
from statistics import mean

import numpy as np
import torch

from ...labs.distilled.sent_images import attack_sent_images
from ...methods.distilled.images import tangent_kernel
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs
from ..kit import Build, Verdict, exercises, lesson_words
from ..kit.claims import chosen_gaps, figures_of, group_by_options, two_kinds

SIZES, BEST = (lesson_words(__name__, name) for name in ("sizes", "best"))
_, ways = figures_of(__name__, "ways")


# ---------------------------------------------------------------------------------- bytes
def size(outcomes: Sequence[Outcome]) -> str:
    """Which of SIZES the images of a client are, on average."""
    up = {
        name: mean(o.ledger.up for o in outcomes if o.method == name)
        for name in ("distilled", "fedavg")
    }
    part = up["distilled"] / up["fedavg"]
    return SIZES[0] if part < 0.25 else SIZES[1] if part < 1 else SIZES[2]


# ---------------------------------------------------------------------------------- which images
def best_for_a_network() -> str:
    """Which of BEST it is."""
    ways = ("random", "kmeans", "kip")
    return BEST[
        int(
            np.argmax(
                [
                    percent(runs("distilled", images=way, server="network"), "distilled")
                    for way in ways
                ]
            )
        )
    ]


# ---------------------------------------------------------------------------------- what it shows
def own_images(client: int = 1, seed: int = 0) -> int:
    """How many of the images that a client sends are its own, pixel by pixel, with the lesson's settings."""
    return int(attack_sent_images(runs("distilled", seeds=1, seed=seed)[0])[client].is_copy.sum())


# ---------------------------------------------------------------------------------- the exercises
DEPTH = 2  # of the kernel in the exercise


# ---------------------------------------------------------------------------------- on the record
def two_settings(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: in one setting k-means is clearly better than random images, in another not. Both are
    found on validation images; the test images are looked at for these two alone."""

    def name(at: tuple) -> str:
        return "{per_class} per class and the {server}, α = {alpha:g}".format(
            alpha=at[0][0].alpha, **dict(at[1:])
        )

    return two_kinds(
        chosen_gaps(
            outcomes, group_by_options("distilled", "images"), "kmeans", "random", name, MANY
        ),
        **words,
    )


def both_settings() -> Outcomes:
    """Runs that support the claim of exercise 2."""
    settings = [{"per_class": 2, "server": "kernel"}, {"per_class": 30, "server": "network"}]
    ways = [
        {"images": images, **setting} for setting in settings for images in ("random", "kmeans")
    ]
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


def plain_ridge(sent, labels, images, classes, ridge):
    return scores(sent, labels, images, classes, ridge / np.diag(kernel(sent, sent)).mean())


SLIPS = {
    "not_centred": not_centred,
    "no_ridge": lambda sent, labels, images, classes, ridge: scores(
        sent, labels, images, classes, 0
    ),
    "plain_ridge": plain_ridge,
    "no_solve": lambda sent, labels, images, classes, _: (
        kernel(images, sent) @ (np.eye(classes)[labels] - 1 / classes)
    ),
}
# images sent and new, pixels, classes, those that somebody has sent, ridge; once as many new images as sent ones
HIDDEN = ((9, 4, 6, 3, 3, 0.1), (7, 7, 5, 4, 3, 0.02), (12, 5, 16, 10, 10, 0.5))


def hidden(
    draw: np.random.Generator,
    sent: int,
    new: int,
    pixels: int,
    classes: int,
    known: int,
    ridge: float,
) -> tuple:
    labels = draw.integers(0, known, sent)
    return (
        draw.uniform(size=(sent, pixels)),
        labels,
        draw.uniform(size=(new, pixels)),
        classes,
        ridge,
    )


q1, q2, q3 = exercises(
    __name__, q2=(two_settings, both_settings), q3=Build(scores, HIDDEN, hidden, SLIPS)
)
