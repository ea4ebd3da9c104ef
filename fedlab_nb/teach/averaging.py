"""Lesson 02, averaging, ensembling, distilling: its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset); nothing is written into the text by hand.
"""

import math
from collections.abc import Sequence
from statistics import mean

import torch

from ..data import load
from ..plots import Picture
from ..plots.synthetic import gallery, one_of_each
from ..plots.words import data_size, listed
from ..study import Outcome, Outcomes, run
from ..training.distill import kl_each
from .claims import ENOUGH, Gap
from .exercises import exercises
from .problem import Verdict
from .runs import DATASET, SEEDS, alike, by_seed, over_alpha, percent, runs, title, versus
from .view import Card, worked

STUDENTS = ("feddf", "dense", "fdafl", "fadi")
MARGIN = 0.02  # a student that copies an ensemble is not expected above it by more


# ------------------------------------------------------------------------------------------------------ worked numbers
def three_ways(alpha: float = 0.3) -> Card:
    """Accuracy, upload and what must be kept for predicting, of the three ways to use ten uploaded networks."""
    outcomes = runs(("fedavg", "ensemble", "feddf"), alpha)
    lines = []
    for method, words in (("fedavg", "average weights"), ("ensemble", "average predictions"), ("feddf", "distil")):
        first = by_seed(outcomes, method)[0]
        lines.append(
            f"{words} ({title(method)}): {percent(outcomes, method):.0f} % correct; {data_size(first.bytes_up)} "
            f"uploaded; {data_size(4 * first.parameters)} of weights to keep for every prediction"
        )
    return worked(*lines, f"α = {alpha:g}, ten clients, means of {SEEDS} seeds.")


def one_image(alpha: float = 0.3, seed: int = 0, image: int = 3, temperature: float = 4.0) -> Card:
    """The teacher's and the student's answer to one public image, at two temperatures, and the loss between them."""
    teacher, student = (run(method, dataset=DATASET, alpha=alpha, seed=seed) for method in ("ensemble", "feddf"))
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


def two_classes(teacher: float = 0.8, student: float = 0.5) -> float:
    """KL of two distributions over two classes: Σ p ln(p/q)."""
    return teacher * math.log(teacher / student) + (1 - teacher) * math.log((1 - teacher) / (1 - student))


def images(alpha: float = 0.3, seed: int = 0, frame: int = -1) -> Picture:
    """Images that DENSE's generator made in one of its epochs, and how the student contradicted them."""
    outcome = run("dense", dataset=DATASET, alpha=alpha, seed=seed)
    dataset = load(DATASET)
    setting = f"DENSE on {DATASET}, α = {alpha:g}, 10 clients, seed {seed}"
    return gallery(outcome.report, dataset.class_names, setting=setting, frame=frame, real=one_of_each(dataset))


def without_data(alpha: float = 0.3) -> Card:
    """What the ensemble can pass on with real public images and with made ones."""
    outcomes = runs(("ensemble", "feddf", "dense"), alpha)
    return worked(
        f"α = {alpha:g}: teacher {percent(outcomes, 'ensemble'):.0f} %, student on real public images "
        f"{percent(outcomes, 'feddf'):.0f} %, student on made images {percent(outcomes, 'dense'):.0f} % "
        f"(means of {SEEDS} seeds).",
    )


def sweep(alphas: Sequence[float] = (0.05, 0.1, 0.3, 1, 10)) -> Picture:
    """Ensemble and the student on real images over the range of α."""
    return over_alpha({method: title(method) for method in ("ensemble", "feddf", "fedavg")}, alphas)


def reality(alpha: float = 0.1) -> Card:
    """Are the data-free methods told apart here? Gaps to DENSE with their bands."""
    methods = ("ensemble", *STUDENTS)
    outcomes = runs(methods, alpha)
    return worked(
        ", ".join(f"{title(m)} {percent(outcomes, m):.0f} %" for m in methods),
        *(
            f"DENSE − {title(m)}: {versus(outcomes, 'dense', m, clear='more than the noise')}"
            for m in ("fadi", "fdafl")
        ),
        f"α = {alpha:g}, ten clients, means of {SEEDS} seeds.",
    )


# ------------------------------------------------------------------------------------------------------ exercises


def no_student_above(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: at two α or more, no student is on average above its teacher by more than MARGIN."""
    seen, above = [], []
    for alpha, methods in sorted(alike(outcomes, lambda o: (o.settings.alpha, o.method)).items()):
        for method in STUDENTS:
            points = Gap("", methods[method], methods["ensemble"]).points
            if len(points) >= ENOUGH:
                text = f"{title(method)} at α = {alpha:g}: {mean(points):+.0f} points"
                seen.append((alpha, text))
                above += [text] * (mean(points) > 100 * MARGIN)
    if above:
        return Verdict("wrong", f"Your record speaks against it: {listed(above)}. These runs are worth telling.")
    alphas = {alpha for alpha, _ in seen}
    if len(alphas) < 2:
        done = listed([text for _, text in seen]) or "nothing yet"
        return Verdict(
            "wrong",
            f"Still too little: run ensemble and student together at two α or more, 3 seeds each. So far: {done}.",
        )
    return Verdict("right", f"Supported by your runs. Student minus teacher: {listed([text for _, text in seen])}.")


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return Outcomes(o for alpha in (0.1, 1) for o in runs(("ensemble", "feddf"), alpha))


q1, q2, q3 = exercises(__name__, q3=(no_student_above, solution_runs))
