"""Lesson 02, averaging, ensembling, distilling: its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset); nothing is written into the text by hand.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...data import load
from ...plots import Picture
from ...plots.words import listed, points
from ...studies import Outcome, Outcomes, run
from ...studies.lesson_runs import DATASET, LOGITS, alike, runs, title
from ...studies.lesson_runs import percent as percent  # for the notebook
from ...studies.statistics import difference
from ...training.distill import kl_each
from ..kit import CLEAR, SHORT, Build, Card, Gap, Verdict, exercises, over_alpha, still, worked

STUDENTS = ("feddf", "dense", "fdafl", "fadi")


# ---------------------------------------------------------------------------------- worked numbers
def one_image(alpha: float = 0.3, seed: int = 0, image: int = 3, temperature: float = 4.0) -> Card:
    """The teacher's and the student's answer to one public image, at two temperatures, and the loss between them."""
    setting: dict[str, Any] = {"dataset": DATASET, "alpha": alpha, "seed": seed}
    teacher, student = run("ensemble", **setting, **LOGITS), run("feddf", **setting)
    x = load(DATASET).x_public[image : image + 1]
    t, s = teacher.model.logits(x)[0], student.model.logits(x)[0]
    top = t.argsort(descending=True)[:3].tolist()

    def favourites(logits: torch.Tensor, tau: float) -> str:
        p = (logits / tau).softmax(-1)
        return ", ".join(f"“{c}” {p[c]:.2f}" for c in top)

    loss = float(kl_each(t[None], s[None], temperature))
    return worked(
        f"Public image {image}, the ensemble's three favourites (α = {alpha:g}, seed {seed}).",
        f"Teacher, τ = 1: {favourites(t, 1)}",
        f"Teacher, τ = {temperature:g}: {favourites(t, temperature)}",
        f"Student after distillation, τ = {temperature:g}: {favourites(s, temperature)}",
        f"Loss of this image: τ² KL(teacher ‖ student) = {loss:.2f}.",
    )


def sweep(alphas: Sequence[float] = (0.05, 0.1, 0.3, 1, 10)) -> Picture:
    """Ensemble and the student on real images over the range of α."""
    return over_alpha({method: title(method, LOGITS) for method in ("ensemble", "feddf", "fedavg")}, alphas, **LOGITS)


# ---------------------------------------------------------------------------------- exercises
def no_student_above(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: at two α or more, no student is clearly above its teacher (band of Student's t)."""
    seen, above, short, alphas = [], [], [], set()
    for (settings, _), methods in sorted(alike(outcomes).items(), key=lambda group: group[0][0].alpha):
        for method in STUDENTS:
            gap = Gap(f"{title(method)} at α = {settings.alpha:g}", methods[method], methods["ensemble"])
            if gap.kind == SHORT:
                short += [gap.words("the ensemble")] if gap.a else []
            else:
                seen.append(f"{gap.name}: {points(difference(gap.a, gap.b))}")
                above += seen[-1:] * (gap.kind == CLEAR)
                alphas.add(settings.alpha)
    if above:
        more = "Run more seeds to see whether this was luck."
        return Verdict("wrong", f"Your runs contradict the claim: {listed(above)}. {more}")
    if len(alphas) < 2:
        wanted = ["ensemble and student together at two α or more"]
        return still(wanted, [*seen, *short], "no setting has runs of a student")
    return Verdict("right", f"Supported by your runs. Student minus teacher: {listed(seen)}.")


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return Outcomes(o for alpha in (0.1, 1) for o in runs(("ensemble", "feddf"), alpha, **LOGITS))


# ---------------------------------------------------------------------------------- the function to build
SIZES = ((3, 3, 3), (2, 4, 3), (5, 2, 4), (1, 3, 2))  # M, N, C; the first lets a wrong axis run, the others stop it


def soft_labels(logits, temperature):
    teacher = logits.mean(axis=0) / temperature
    powers = np.exp(teacher)
    return powers / powers.sum(axis=1, keepdims=True)


def hidden_inputs() -> list[tuple[np.ndarray, float]]:
    """Logits as large as those of real networks, each with another temperature."""
    made = []
    for seed, size in enumerate(SIZES):
        stream = np.random.default_rng(seed)
        made.append((3 * stream.normal(size=size), round(stream.uniform(1.5, 6), 1)))
    return made


def softmax(z: np.ndarray, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    return np.exp(z) / np.exp(z).sum(axis, keepdims=True)


def over_images(logits, temperature):
    return softmax(logits.mean(0) / temperature, axis=0)


def softmax_first(logits, temperature):
    return softmax(logits / temperature).mean(0)


def no_temperature(logits, temperature):
    return softmax(logits.mean(0))


def of_the_loss(logits, temperature):
    """τ² stands in the loss alone."""
    return temperature**2 * soft_labels(logits, temperature)


def no_softmax(logits, temperature):
    return logits.mean(0) / temperature


SOFT = Build(soft_labels, hidden_inputs, (over_images, softmax_first, no_temperature, of_the_loss, no_softmax))


q1, q2, q3, q4 = exercises(__name__, q3=(no_student_above, solution_runs), q4=SOFT)
