"""Lesson 05, Co-Boosting: its worked numbers and pictures. The exercises are in `exercises`.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset) or from formulas with small numbers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import mean
from typing import Any

import numpy as np

from ...labs.coboosting import votes
from ...labs.coboosting.curves import curves
from ...plots import Picture
from ...plots.words import setting_of
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import LOGITS, accuracies, alike, by_seed, runs
from ..kit import BELOW, CLEAR, NOISE, SHORT, Build, Card, Gap, Verdict, exercises, two_kinds, worked


# ---------------------------------------------------------------------------------- runs
def with_real_weights(alpha: float = 0.1) -> dict[int, float]:
    """{seed: accuracy} of the ensemble whose weights are learnt, by the same rule, on the clients' training images."""
    options = {f"coboosting.{name}": value for name, value in votes.FROM_REAL.items()}
    return accuracies(runs("coboosting", alpha, **options), "coboosting")


def taught(outcomes: Sequence[Any]) -> dict[int, float]:
    """{seed: accuracy} of Co-Boosting's ensemble at the end."""
    return votes.last_of_ensemble(by_seed(outcomes, "coboosting"))


def percent(values: Mapping[int, float]) -> float:
    """Mean over seeds, in whole percent."""
    return round(100 * mean(values.values()))


# ---------------------------------------------------------------------------------- the run, drawn
def teacher_and_student(outcomes: Sequence[Any]) -> Picture:
    """Both by server epoch, over the seeds, beside equal weights and FedAvg."""
    boosted = by_seed(outcomes, "coboosting")
    return curves(
        {seed: o.report.ensemble_curve for seed, o in boosted.items()},
        {seed: votes.server_points(o) for seed, o in boosted.items()},
        {votes.NAMES[method]: accuracies(outcomes, method) for method in ("ensemble", "fedavg")},
        setting=setting_of(vars(next(iter(boosted.values())).settings)),
        chance=0.1,
    )


def climb(logits: np.ndarray, labels: np.ndarray, sweeps: int = 3, levels: int = 11) -> np.ndarray:
    """Weights `[M]` that were good on client logits `[N, M, C]`: slider by slider, the best of `levels` places each."""
    w, best = np.full(logits.shape[1], 0.5), -1.0
    for _, k, level in product(range(sweeps), range(len(w)), np.linspace(0, 1, levels)):
        moved = w.copy()
        moved[k] = level
        accuracy = float((votes.correct(logits, moved) == labels).mean())
        if accuracy > best:
            w, best = moved, accuracy
    return w


# ---------------------------------------------------------------------------------- worked numbers
def worst(outcomes: Sequence[Any], seed: int) -> tuple[Outcome, int, np.ndarray]:
    """The ensemble's outcome of that seed, the class that it recognises worst, and its accuracy on every class."""
    o = by_seed(outcomes, "ensemble")[seed]
    accuracy = votes.by_class(o.test_predictions == o.test_labels, o.test_labels, o.label_counts.shape[1])
    return o, int(np.nanargmin(accuracy)), accuracy


def one_class(outcomes: Sequence[Any], seed: int = 0) -> Card:
    """The class that equal weights recognise worst: who holds it, and how the others drown them out."""
    o, c, accuracy = worst(outcomes, seed)
    held = o.label_counts[:, c]
    holders = [int(k) for k in np.argsort(-held) if held[k] > 0.1 * held.sum()]
    logits = votes.client_logits(o)[o.test_labels == c]
    alone = [f"client {k} {100 * (logits[:, k].argmax(1) == c).mean():.0f} %" for k in holders]
    return worked(
        f"Seed {seed}: with equal weights the ensemble recognises {100 * accuracy[c]:.0f} % of the “{c}”s. Those who "
        f"hold most of them do better alone ({', '.join(alone)}). {(held == 0).sum()} of {len(held)} clients never saw "
        f"a “{c}”, and they are sure of something else.",
    )


def worst_class(outcomes: Sequence[Any], seed: int = 0) -> float:
    """Accuracy in whole per cent on the class of `one_class`."""
    _, c, accuracy = worst(outcomes, seed)
    return round(100 * accuracy[c])


def dragged(outcomes: Sequence[Any]) -> Card:
    """A program drags the sliders, one after the other, to whatever level the tune half likes best."""
    lines = []
    for seed, o in sorted(by_seed(outcomes, "ensemble").items()):
        logits, labels = votes.client_logits(o), o.test_labels
        tune, judge = votes.halves(len(labels))
        w = climb(logits[tune], labels[tune])
        shares = [float((votes.correct(logits[half], w) == labels[half]).mean()) for half in (tune, judge)]
        lines.append(
            f"seed {seed}: {100 * shares[0]:.0f} % on the tune half, {100 * shares[1]:.0f} % on the judge half"
        )
    return worked("A program that drags for you reaches", *lines[:-1], f"{lines[-1]}.")


# ---------------------------------------------------------------------------------- exercise 3
def gains(outcomes: Sequence[Any]) -> list[Gap]:
    """For every setting: Co-Boosting's ensemble − equal weights, seed by seed."""
    plain = [o for o in outcomes if o.method == "ensemble" and o.options.get("rule", "logits") == "logits"]
    equal = {conditions: methods["ensemble"] for conditions, methods in alike(plain).items()}
    boosted: dict[Any, dict[int, float]] = defaultdict(dict)
    for o in outcomes:
        if o.method == "coboosting":
            boosted[o.conditions, tuple(sorted(o.options.items()))][o.settings.seed] = o.report.ensemble_curve[-1]
    gaps = []
    for (conditions, options), ensemble in boosted.items():
        settings = conditions[0]
        switched = [f"no {name.upper()}" for name in ("ghs", "dhs", "ee") if (name, False) in options]
        name = ", ".join([f"α = {settings.alpha:g}", f"{settings.clients} clients", *switched])
        gaps.append(Gap(name, ensemble, equal.get(conditions, {})))
    return gaps


LOW, HIGH = 0.1, 10.0  # the lesson prints what happens at these two α


def two_settings(outcomes: Sequence[Any], **words: str) -> Verdict:
    """The claim of exercise 3: somewhere re-weighting clearly helps, elsewhere it does not."""
    # Without EE nothing is re-weighted: no answer to where re-weighting does not help.
    between = [o for o in outcomes if LOW < o.settings.alpha < HIGH]
    gaps = [gap for gap in gains(between) if gap.kind in (CLEAR, SHORT) or "no EE" not in gap.name]
    return two_kinds(gaps, others=(NOISE, BELOW), **words)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    methods = ["coboosting", "ensemble"]
    return Outcomes(o for alpha in (0.3, 3) for o in runs(methods, alpha, seeds=5, **LOGITS))


# ---------------------------------------------------------------------------------- the function to build
def ee_step(logits, labels, w, eta):
    ensemble = np.einsum("m,mnc->nc", w, logits) / w.sum()
    p = np.exp(ensemble - ensemble.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    error = (p - np.eye(p.shape[1])[labels]) / len(labels)  # the gradient of the loss in the ensemble's logits
    gradient = np.einsum("nc,mnc->m", error, (logits - ensemble) / w.sum())
    return np.clip(w - eta * np.sign(gradient), 0, 1)


def softmax(z: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def slope(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, axis: int = 1) -> np.ndarray:
    """The gradient `[M]` of the loss in w; `axis`: of the ensemble's softmax, right is 1 (the classes)."""
    ensemble = np.einsum("m,mnc->nc", w, logits) / w.sum()
    error = softmax(ensemble, axis) - np.eye(logits.shape[2])[labels]
    return np.einsum("nc,mnc->m", error / len(labels), logits - ensemble) / w.sum()


def moved(w: np.ndarray, gradient: np.ndarray, eta: float) -> np.ndarray:
    return np.clip(w - eta * np.sign(gradient), 0, 1)


def uphill(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return moved(w, -slope(logits, labels, w), eta)


def no_sign(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return np.clip(w - eta * slope(logits, labels, w), 0, 1)


def not_clipped(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return w - eta * np.sign(slope(logits, labels, w))


def sum_of_logits(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The ensemble is not divided by the sum of the weights."""
    error = softmax(np.einsum("m,mnc->nc", w, logits)) - np.eye(logits.shape[2])[labels]
    return moved(w, np.einsum("nc,mnc->m", error, logits), eta)


def equal_weights(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The gradient at equal weights."""
    return moved(w, slope(logits, labels, np.ones(len(w))), eta)


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """Logits [M, N, C], labels [N], weights [M], two of them near 0 and 1, and a step. No gradient is near 0, so that
    its sign can also be found by small changes of the weights."""
    stream, made = np.random.default_rng(5), []
    for m, n, c in ((3, 4, 4), (4, 6, 3), (5, 3, 3), (3, 7, 2), (6, 8, 5)) * 4:
        logits, labels = 2 * stream.normal(size=(m, n, c)), stream.integers(0, c, n)
        w = stream.permutation(np.r_[0.03, 0.97, stream.uniform(0.2, 0.8, m - 2)])
        if np.abs(slope(logits, labels, w)).min() > 0.02:
            made.append((logits, labels, w, 0.1))
    return made


STEP = Build(ee_step, hidden_inputs, (uphill, no_sign, not_clipped, sum_of_logits, equal_weights))


q1, q2, q3, q4 = exercises(__name__, q3=(two_settings, solution_runs), q4=STEP)
