"""Lesson 02, averaging, ensembling, distilling: its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset); nothing is written into the text by hand.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch

from fedlab_nb.data import load
from fedlab_nb.draw import Picture
from fedlab_nb.draw.against_alpha import against_alpha
from fedlab_nb.draw.coboosting_images import gallery
from fedlab_nb.draw.words import data_size, gap, is_noise, listed
from fedlab_nb.methods import METHODS
from fedlab_nb.study import Outcomes, compare, run
from fedlab_nb.training.distill import kl_each

from .problem import NumberProblem, RecordProblem, Verdict
from .view import Card, ProblemView

SEEDS = 3
DATASET = "digits"
STUDENTS = ("feddf", "dense", "fdafl", "fadi")
MARGIN = 0.02  # a student that copies an ensemble is not expected above it by more


def runs(alpha: float, methods: Sequence[str], seeds: int = SEEDS) -> Outcomes:
    """The lesson's runs at one α."""
    return compare(list(methods), dataset=DATASET, alpha=alpha, clients=10, seeds=seeds)


def percent(outcomes: Sequence[Any], method: str) -> float:
    """Mean test accuracy of `method` in percent, over the seeds in `outcomes`."""
    return 100 * mean(o.accuracy for o in outcomes if o.method == method)


def title(method: str) -> str:
    return METHODS[method].info.title


# ------------------------------------------------------------------------------------------------------ worked numbers
def three_ways(alpha: float = 0.3) -> Card:
    """Accuracy, upload and what must be kept for predicting, of the three ways to use ten uploaded networks."""
    found = runs(alpha, ("fedavg", "ensemble", "feddf"))
    lines = []
    for method, words in (("fedavg", "average weights"), ("ensemble", "average predictions"), ("feddf", "distil")):
        first = next(o for o in found if o.method == method)
        lines.append(
            f"{words} ({title(method)}): {percent(found, method):.0f} % correct; {data_size(first.bytes_up)} uploaded; "
            f"{data_size(4 * first.parameters)} of weights to keep for every prediction"
        )
    return Card("worked", "\n".join([*lines, f"α = {alpha:g}, ten clients, means of {SEEDS} seeds."]))


def one_image(alpha: float = 0.3, seed: int = 0, image: int = 3, temperature: float = 4.0) -> Card:
    """The teacher's and the student's answer to one public image, at two temperatures, and the loss between them."""
    teacher, student = (run(method, dataset=DATASET, alpha=alpha, seed=seed) for method in ("ensemble", "feddf"))
    x = load(DATASET).x_public[image : image + 1]
    t, s = teacher.model.logits(x)[0], student.model.logits(x)[0]
    top = t.argsort(descending=True)[:3].tolist()

    def told(logits: torch.Tensor, tau: float) -> str:
        p = (logits / tau).softmax(-1)
        return ", ".join(f"“{c}” {p[c]:.2f}" for c in top)

    loss = float(kl_each(t[None], s[None], temperature))
    return Card(
        "worked",
        f"Public image {image}, the ensemble's three favourites (α = {alpha:g}, seed {seed}).\n"
        f"Teacher, τ = 1: {told(t, 1)}\nTeacher, τ = {temperature:g}: {told(t, temperature)}\n"
        f"Student after distillation, τ = {temperature:g}: {told(s, temperature)}\n"
        f"Loss of this image: τ² KL(teacher ‖ student) = {loss:.2f}.",
    )


def two_classes(teacher: float = 0.8, student: float = 0.5) -> float:
    """KL of two distributions over two classes: Σ p ln(p/q)."""
    return teacher * math.log(teacher / student) + (1 - teacher) * math.log((1 - teacher) / (1 - student))


def images(alpha: float = 0.3, seed: int = 0, frame: int = -1) -> Picture:
    """Images that DENSE's generator made in one of its epochs, and how the student contradicted them."""
    outcome = run("dense", dataset=DATASET, alpha=alpha, seed=seed)
    kept = outcome.artefacts
    dataset = load(DATASET)
    first = [int((dataset.y_test == c).nonzero()[0]) for c in range(dataset.classes)]
    return gallery(
        kept["synthetic_images"][frame], kept["synthetic_labels"][frame], dataset.class_names,
        epoch=int(kept["synthetic_epochs"][frame]), epochs=len(kept["disagreement"]),
        difficulty=kept["difficulty"], disagreement=kept["disagreement"],
        setting=f"DENSE on {DATASET}, α = {alpha:g}, 10 clients, seed {seed}", real=dataset.x_test[first].numpy(),
    )  # fmt: skip


def without_data(alpha: float = 0.3) -> Card:
    """What the ensemble can pass on with real public images and with made ones."""
    found = runs(alpha, ("ensemble", "feddf", "dense"))
    return Card(
        "worked",
        f"α = {alpha:g}: teacher {percent(found, 'ensemble'):.0f} %, student on real public images "
        f"{percent(found, 'feddf'):.0f} %, student on made images {percent(found, 'dense'):.0f} % "
        f"(means of {SEEDS} seeds).",
    )


def sweep(alphas: Sequence[float] = (0.05, 0.1, 0.3, 1, 10)) -> Picture:
    """Ensemble and the student on real images over the range of α."""
    accuracies: dict[str, dict[float, dict[int, float]]] = {title(m): {} for m in ("ensemble", "feddf", "fedavg")}
    for alpha in alphas:
        found = runs(alpha, ("ensemble", "feddf", "fedavg"))
        for method in ("ensemble", "feddf", "fedavg"):
            accuracies[title(method)][alpha] = {o.setting["seed"]: o.accuracy for o in found if o.method == method}
    setting = f"{DATASET}, 10 clients, mean of {SEEDS} seeds and band of 2 standard errors"
    return against_alpha(accuracies, setting=setting, chance=0.1)


def reality(alpha: float = 0.1) -> Card:
    """Are the data-free methods told apart here? Gaps to DENSE with their bands."""
    found = runs(alpha, ("ensemble", *STUDENTS))
    by = {m: {o.setting["seed"]: o.accuracy for o in found if o.method == m} for m in ("ensemble", *STUDENTS)}
    lines = [", ".join(f"{title(m)} {100 * mean(v.values()):.0f} %" for m, v in by.items())]
    for method in ("fadi", "fdafl"):
        difference, band = gap(by["dense"], by[method])
        word = "within the noise" if is_noise(difference, band) else "more than the noise"
        lines.append(f"DENSE − {title(method)}: {100 * difference:+.0f} ± {100 * band:.0f} points, {word}")
    return Card("worked", "\n".join([*lines, f"α = {alpha:g}, ten clients, means of {SEEDS} seeds."]))


# ------------------------------------------------------------------------------------------------------ exercises
q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
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
)

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
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
)


def no_student_above(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: at two α or more, no student is on average above its teacher by more than MARGIN."""
    by: dict[float, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        by[o.setting["alpha"]][o.method][o.setting["seed"]] = o.accuracy
    seen, above = [], []
    for alpha, methods in sorted(by.items()):
        teacher = methods.get("ensemble", {})
        for method in STUDENTS:
            common = sorted(set(teacher) & set(methods.get(method, {})))
            if len(common) < 3:
                continue
            difference = mean(methods[method][s] - teacher[s] for s in common)
            text = f"{title(method)} at α = {alpha:g}: {100 * difference:+.0f} points"
            seen.append((alpha, text))
            if difference > MARGIN:
                above.append(text)
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


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Claim: a student does not beat the ensemble that taught it. Support it with your own runs: Ensemble and "
            "at least one of FedDF, DENSE, F-DAFL, F-ADI, at two values of α, 3 seeds each."
        ),
        right_answer=lambda: Outcomes([*runs(0.1, ("ensemble", "feddf")), *runs(1, ("ensemble", "feddf"))]),
        hints=(
            "FedDF is the quickest of the students. Tick it beside Ensemble, with 3 seeds, and run at two α.",
            "α = 0.1 and α = 1 will do. A student may be a point above by luck; two on average are not expected.",
        ),
        explanation="Run ensemble and feddf at α = 0.1 and α = 1. {verdict}",
        claim=no_student_above,
    )
)
