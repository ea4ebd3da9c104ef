"""Lesson 12, send data: its four exercises, two by hand, one on the learner's own record of runs, one to build.

Their texts are in `exercises.toml`; here is what judges the record and the function.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import torch

from ...methods.distilled.images import tangent_kernel
from ...study import Outcome, Outcomes
from ...study.lesson_runs import MANY, runs
from ..kit.build import Build, by_name
from ..kit.claims import two_kinds
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from ..kit.runs import chosen_gaps

DEPTH = 2  # of the kernel in the exercise


# ------------------------------------------------------------------------------------------------ on the record
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


# ------------------------------------------------------------------------------------------------ to build
def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The tangent kernel of all pairs: images `[N, D]` and `[n_s, D]` give `[N, n_s]`."""
    return tangent_kernel(torch.as_tensor(a), torch.as_tensor(b), DEPTH).numpy()


def kernel_scores(sent, labels, images, classes, ridge):
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
    return kernel_scores(sent, labels, images, classes, 0)


def plain_ridge(sent, labels, images, classes, ridge):
    return kernel_scores(sent, labels, images, classes, ridge / np.diag(kernel(sent, sent)).mean())


def no_solve(sent, labels, images, classes, ridge):
    return kernel(images, sent) @ (np.eye(classes)[labels] - 1 / classes)


def inverse_order(sent, labels, images, classes, ridge):
    among = kernel(sent, sent)
    targets = np.eye(classes)[labels] - 1 / classes
    return among @ np.linalg.solve(among + ridge * np.diag(among).mean() * np.eye(len(sent)), targets)


def hidden_inputs() -> list[tuple]:
    """Images of three sizes, one set with a class that nobody sent; as many new images as sent ones in one of them."""
    made = []
    for seed, (sent, new, pixels, classes) in enumerate([(9, 4, 6, 3), (7, 7, 5, 4), (12, 5, 16, 10)]):
        draw = np.random.default_rng(seed)
        labels = draw.integers(0, classes - (seed == 1), sent)
        made.append((draw.uniform(size=(sent, pixels)), labels, draw.uniform(size=(new, pixels)), classes, 0.1))
    return made


MISTAKES = (not_centred, no_ridge, plain_ridge, no_solve, inverse_order)
SCORES = Build("scores", kernel_scores, hidden_inputs, by_name(MISTAKES))

q1, q2, q3, q4 = exercises(__name__, q3=(two_settings, both_settings), q4=SCORES)
