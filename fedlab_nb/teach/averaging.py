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
from .problem import Verdict
from .runs import DATASET, SEEDS, alike, by_seed, over_alpha, percent, runs, title, versus
from .view import Card, ProblemView, worked

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
q1 = ProblemView.number(
    1,
    question=(
        "Two classes. The teacher says (0.8, 0.2), the student (0.5, 0.5). What is KL(teacher ‖ student)? Use the "
        "natural logarithm."
    ),
    right_answer=round(two_classes(), 3),
    tolerance=0.003,
    hints=(
        "KL(p ‖ q) = Σ p ln(p/q): two terms, one for each class.",
        "0.8 · ln(0.8/0.5) + 0.2 · ln(0.2/0.5). The second term is negative.",
    ),
    explanation="0.8 · ln 1.6 + 0.2 · ln 0.4 = 0.376 − 0.183 = {answer}. It is 0 only where both say the same.",
    slips=(
        (round(0.5 * math.log(0.5 / 0.8) + 0.5 * math.log(0.5 / 0.2), 3), "that is KL(student ‖ teacher)."),
        (0.376, "the second class counts too: 0.2 · ln(0.2/0.5)."),
        (0.278, "that is in bits; take the natural logarithm."),
    ),
)

q2 = ProblemView.number(
    2,
    question=(
        "The teacher's two logits are 4 and 0. At τ = 1 it gives the first class 0.98. How much does it give it at "
        "τ = 4?"
    ),
    right_answer=round(1 / (1 + math.exp(-1)), 3),
    tolerance=0.005,
    hints=("Divide the logits by τ before the softmax.", "exp(1) / (exp(1) + exp(0))."),
    explanation="exp(4/4) / (exp(4/4) + exp(0)) = {answer}. Softer answers tell of the second class too.",
    slips=(
        (0.982, "that is at τ = 1; divide both logits by 4 first."),
        (0.245, "dividing the probability by τ is not it: divide the logits, then take the softmax."),
        (0.269, "that is the second class."),
    ),
)


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


q3 = ProblemView.record(
    3,
    question=(
        "Claim: a student does not beat the ensemble that taught it. Support it with your own runs: Ensemble and "
        "at least one of FedDF, DENSE, F-DAFL, F-ADI, at two values of α, 3 seeds each."
    ),
    right_answer=lambda: Outcomes(o for alpha in (0.1, 1) for o in runs(("ensemble", "feddf"), alpha)),
    hints=(
        "FedDF is the quickest of the students. Tick it beside Ensemble, with 3 seeds, and run at two α.",
        "α = 0.1 and α = 1 will do. A student may be a point above by luck; two on average are not expected.",
    ),
    explanation="Run ensemble and feddf at α = 0.1 and α = 1. {verdict}",
    claim=no_student_above,
)
