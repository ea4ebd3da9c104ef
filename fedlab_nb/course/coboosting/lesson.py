"""Lesson 05, Co-Boosting: its worked numbers and pictures. The exercises are in `exercises`.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset) or from formulas with small numbers.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import mean
from typing import Any

import numpy as np
import torch

from ...data import load
from ...labs.coboosting.curves import against, curves
from ...labs.coboosting.votes import (
    FROM_REAL,
    NAMES,
    by_class,
    client_logits,
    correct,
    halves,
    last_of_ensemble,
    server_points,
)
from ...labs.coboosting.weights import trajectories
from ...labs.runs import where
from ...methods.coboosting import boosting
from ...methods.parts.frozen_ensemble import combine
from ...plots import Picture
from ...plots.synthetic import gallery, one_of_each
from ...plots.words import setting_of
from ...study import Outcomes
from ...study.lesson_runs import LOGITS, MANY, accuracies, by_seed
from ...study.lesson_runs import runs as lesson_runs
from ..kit.view import Card, worked
from .exercises import q1, q2, q3, q4, solution_runs

__all__ = ["q1", "q2", "q3", "q4", "solution_runs"]


# ------------------------------------------------------------------------------------------------------ runs
def runs(alpha: float = 0.1, **settings: Any) -> Outcomes:
    """Co-Boosting, FedAvg and the ensemble with equal weights, over the lesson's seeds."""
    return lesson_runs(["coboosting", "fedavg", "ensemble"], alpha, **LOGITS, **settings)


def with_real_weights(alpha: float = 0.1) -> dict[int, float]:
    """{seed: accuracy} of the ensemble whose weights are learnt, by the same rule, on the clients' training images."""
    options = {f"coboosting.{name}": value for name, value in FROM_REAL.items()}
    return accuracies(lesson_runs("coboosting", alpha, **options), "coboosting")


def scores(outcomes: Sequence[Any]) -> dict[str, dict[int, float]]:
    """{who: {seed: accuracy}} of equal weights, Co-Boosting's ensemble and its server model."""
    return {
        "equal": accuracies(outcomes, "ensemble"),
        "ensemble": last_of_ensemble(by_seed(outcomes, "coboosting")),
        "server": accuracies(outcomes, "coboosting"),
    }


def percent(values: Mapping[int, float]) -> float:
    """Mean over seeds, in whole percent."""
    return round(100 * mean(values.values()))


# ------------------------------------------------------------------------------------------------------ the run, drawn
def weights(outcomes: Sequence[Any], seed: int = 0) -> Picture:
    """Weights by epoch of one seed."""
    o = by_seed(outcomes, "coboosting")[seed]
    return trajectories(o.report.weights, o.label_counts, load(o.settings.dataset).class_names, where(o))


def images(outcomes: Sequence[Any], seed: int = 0) -> Picture:
    """The last synthetic images of one seed."""
    o = by_seed(outcomes, "coboosting")[seed]
    dataset = load(o.settings.dataset)
    return gallery(o.report, dataset.class_names, setting=where(o), real=one_of_each(dataset))


def teacher_and_student(outcomes: Sequence[Any]) -> Picture:
    """Both by server epoch, over the seeds, beside equal weights and FedAvg."""
    boosted = by_seed(outcomes, "coboosting")
    return curves(
        {seed: o.report.ensemble_curve for seed, o in boosted.items()},
        {seed: server_points(o) for seed, o in boosted.items()},
        {NAMES[method]: accuracies(outcomes, method) for method in ("ensemble", "fedavg")},
        setting=setting_of(vars(next(iter(boosted.values())).settings)),
        chance=0.1,
    )


# ------------------------------------------------------------------------------------------------------ small numbers
def one_step() -> Card:
    """One step of EE on one image, three clients, two classes, as the method does it."""
    logits = torch.tensor([[[3.0, 0.0]], [[-1.0, 2.0]], [[1.0, 0.0]]], dtype=torch.float64)  # [M, N, C]
    label, w, mu = torch.tensor([0]), torch.full((3,), 1 / 3, dtype=torch.float64), 0.1
    total = combine(logits, w)
    p = total.softmax(1)[0]
    gradient = boosting.weight_gradient(logits, label, w)
    after = boosting.sign_step(w, gradient, mu)
    components = ", ".join(f"{g:+.2f}" for g in gradient.tolist())
    return worked(
        "One image with label 0; the logits of three clients are (3, 0), (−1, 2) and (1, 0), w = (⅓, ⅓, ⅓).",
        f"f̄_w = ({total[0, 0]:.2f}, {total[0, 1]:.2f}), softmax(f̄_w) = ({p[0]:.2f}, {p[1]:.2f}), loss "
        f"−ln {p[0]:.2f} = {-math.log(p[0]):.2f}.",
        f"Gradient: ({components}). Weighted with w it sums to {float(w @ gradient) + 0.0:.2f}. So one weight rises "
        f"only if another falls.\nStep by η_w = {mu:g} against the sign: "
        f"w = ({', '.join(f'{v:.2f}' for v in after.tolist())}), "
        f"shares ({', '.join(f'{v:.2f}' for v in (after / after.sum()).tolist())}).",
    )


def two_images() -> Card:
    """GHS: an easy and a hard image in the generator's loss."""
    rows, plain, weighted = [], [], []
    for name, p in (("easy", 0.95), ("hard", 0.2)):
        plain.append(-math.log(p))
        weighted.append((1 - p) * plain[-1])
        rows.append(f"{name}: p = {p:g}, CE = {plain[-1]:.2f}, (1 − p) · CE = {weighted[-1]:.3g}")
    times, times_ghs = (f"{hard / easy:.0f} times" for easy, hard in (plain, weighted))
    return worked(
        *rows, f"The hard image counts {times} as much as the easy one with plain cross-entropy, {times_ghs} with GHS."
    )


def climb(logits: np.ndarray, labels: np.ndarray, sweeps: int = 3, levels: int = 11) -> np.ndarray:
    """Weights `[M]` that were good on client logits `[N, M, C]`: slider by slider, the best of `levels` places each."""
    w, best = np.full(logits.shape[1], 0.5), -1.0
    for _, k, level in product(range(sweeps), range(len(w)), np.linspace(0, 1, levels)):
        moved = w.copy()
        moved[k] = level
        accuracy = float((correct(logits, moved) == labels).mean())
        if accuracy > best:
            w, best = moved, accuracy
    return w


# ------------------------------------------------------------------------------------------------------ worked numbers
def one_class(outcomes: Sequence[Any], seed: int = 0) -> Card:
    """The class that equal weights recognise worst: who holds it, and how the others drown them out."""
    o = by_seed(outcomes, "ensemble")[seed]
    counts, labels = o.label_counts, o.test_labels
    accuracy = by_class(o.test_predictions == labels, labels, counts.shape[1])
    c = int(np.argmin(accuracy))
    holders = [int(k) for k in np.argsort(-counts[:, c]) if counts[k, c] > 0.1 * counts[:, c].sum()]
    logits = client_logits(o)[labels == c]
    alone = [f"client {k} {100 * (logits[:, k].argmax(1) == c).mean():.0f} %" for k in holders]
    never = int((counts[:, c] == 0).sum())
    return worked(
        f"Seed {seed}: with equal weights the ensemble recognises {100 * accuracy[c]:.0f} % of the “{c}”s. Those who "
        f"hold most of them do better alone ({', '.join(alone)}). {never} of {len(counts)} clients never saw a “{c}”, "
        "and they are sure of something else.",
    )


def worst_class(outcomes: Sequence[Any], seed: int = 0) -> float:
    """Accuracy in whole per cent on the class of `one_class`."""
    o = by_seed(outcomes, "ensemble")[seed]
    return round(100 * np.nanmin(by_class(o.test_predictions == o.test_labels, o.test_labels, o.label_counts.shape[1])))


def dragged(outcomes: Sequence[Any]) -> Card:
    """A program drags the sliders, one after the other, to whatever level the tune half likes best."""
    lines = []
    for seed, o in sorted(by_seed(outcomes, "ensemble").items()):
        logits, labels = client_logits(o), o.test_labels
        tune, judge = halves(len(labels))
        w = climb(logits[tune], labels[tune])
        shares = [float((correct(logits[half], w) == labels[half]).mean()) for half in (tune, judge)]
        lines.append(
            f"seed {seed}: {100 * shares[0]:.0f} % on the tune half, {100 * shares[1]:.0f} % on the judge half"
        )
    return worked("A program that drags for you reaches", *lines[:-1], f"{lines[-1]}.")


def headroom(alpha: float, outcomes: Sequence[Any] | None = None) -> Card:
    """Seed by seed: equal weights, Co-Boosting's, weights from real images; and what was recovered."""
    s = scores(runs(alpha) if outcomes is None else outcomes)
    real = with_real_weights(alpha)
    lines = [
        f"seed {seed}: equal {100 * s['equal'][seed]:.0f} %, Co-Boosting {100 * s['ensemble'][seed]:.0f} %, "
        f"real images {100 * real[seed]:.0f} %"
        for seed in sorted(real)
    ]
    room = {seed: 100 * (real[seed] - s["equal"][seed]) for seed in real}
    gain = against(s["ensemble"], s["equal"])
    lines.append(f"headroom {mean(room.values()):.0f} points on average; Co-Boosting against equal weights: {gain}.")
    return worked(f"α = {alpha:g}", *lines)


def reality() -> Card:
    """What the paper's tables say and these runs do not: the server model against equal weights."""
    skewed, mild = (scores(runs(alpha, seeds=MANY)) for alpha in (0.1, 10))
    lines = [
        f"α = {alpha}: server model {percent(s['server'])} %, ensemble with equal weights {percent(s['equal'])} % "
        f"({against(s['server'], s['equal'])})"
        for alpha, s in (("0.1", skewed), ("10", mild))
    ]
    gains = ", ".join(f"{100 * (a - skewed['equal'][seed]):+.0f}" for seed, a in sorted(skewed["ensemble"].items()))
    lines.append(
        f"What the weights alone give the ensemble at α = 0.1: {against(skewed['ensemble'], skewed['equal'])}; seed by "
        f"seed {gains}"
    )
    return worked(*lines, f"(seeds 0–{MANY - 1}; paper, CIFAR-10, α = 0.1: 57 % against 50 %)")
