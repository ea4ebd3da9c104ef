"""Lesson 05, Co-Boosting: its worked numbers and pictures. The exercises are in `coboosting_exercises`.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset) or from formulas with small numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from fedlab_nb.data import load
from fedlab_nb.draw import Picture
from fedlab_nb.draw.coboosting_curves import curves, told
from fedlab_nb.draw.coboosting_images import gallery
from fedlab_nb.draw.coboosting_weights import trajectories
from fedlab_nb.draw.words import setting_of
from fedlab_nb.panels.labs.coboosting import NAMES, one_of_each, server_points
from fedlab_nb.panels.labs.coboosting_hand import correct, halves
from fedlab_nb.study import Outcomes, compare

from .coboosting_by_hand import climb, one_step, two_images
from .coboosting_exercises import q1, q2, q3, solution_runs
from .view import Card

__all__ = ["one_step", "q1", "q2", "q3", "solution_runs", "two_images"]
SEEDS, CLIENTS, DATASET = 3, 10, "digits"
# The weights from real images do not depend on synthetic images or on a student: as few as possible of both.
REAL = {"ee_data": "real", "answer": "ensemble", "dhs": False, "generator_steps": 1}


# ------------------------------------------------------------------------------------------------------ runs
def runs(alpha: float = 0.1, **settings: Any) -> Outcomes:
    """Co-Boosting, FedAvg and the ensemble with equal weights, over the lesson's seeds."""
    methods = ["coboosting", "fedavg", "ensemble"]
    return compare(methods, dataset=DATASET, alpha=alpha, clients=CLIENTS, seeds=SEEDS, **settings)


def with_real_weights(alpha: float = 0.1) -> dict[int, float]:
    """{seed: accuracy} of the ensemble whose weights are learnt, by the same rule, on the clients' training images."""
    options = {f"coboosting.{name}": value for name, value in REAL.items()}
    found = compare(["coboosting"], dataset=DATASET, alpha=alpha, clients=CLIENTS, seeds=SEEDS, **options)
    return {o.setting["seed"]: o.accuracy for o in found}


def by_seed(outcomes: Sequence[Any], method: str) -> dict[int, Any]:
    """{seed: outcome} of one method; of several runs of a seed, the first."""
    found: dict[int, Any] = {}
    for o in outcomes:
        if o.method == method:
            found.setdefault(o.setting["seed"], o)
    return found


def scores(outcomes: Sequence[Any]) -> dict[str, dict[int, float]]:
    """{who: {seed: accuracy}} of equal weights, Co-Boosting's ensemble and its server model."""
    boosted = by_seed(outcomes, "coboosting")
    return {
        "equal": {seed: o.accuracy for seed, o in by_seed(outcomes, "ensemble").items()},
        "ensemble": {seed: o.extras["ensemble_curve"][-1] for seed, o in boosted.items()},
        "server": {seed: o.accuracy for seed, o in boosted.items()},
    }


def percent(values: Mapping[int, float]) -> float:
    """Mean over seeds, in whole percent."""
    return round(100 * mean(values.values()))


# ------------------------------------------------------------------------------------------------------ the run, drawn
def weights(outcomes: Sequence[Any], seed: int = 0) -> Picture:
    """Weights by epoch of one seed."""
    o = by_seed(outcomes, "coboosting")[seed]
    return trajectories(o.artefacts["weights"], o.label_counts, names(o), setting=words(o))


def images(outcomes: Sequence[Any], seed: int = 0) -> Picture:
    """The last synthetic images of one seed."""
    o = by_seed(outcomes, "coboosting")[seed]
    kept, epochs = o.artefacts, len(o.artefacts["difficulty"])
    return gallery(
        kept["synthetic_images"][-1], kept["synthetic_labels"][-1], names(o), epoch=epochs, epochs=epochs,
        difficulty=kept["difficulty"], disagreement=kept["disagreement"], setting=words(o),
        real=one_of_each(load(DATASET)),
    )  # fmt: skip


def teacher_and_student(outcomes: Sequence[Any]) -> Picture:
    """Both by server epoch, over the seeds, beside equal weights and FedAvg."""
    boosted = by_seed(outcomes, "coboosting")
    beside = {NAMES[m]: {s: o.accuracy for s, o in by_seed(outcomes, m).items()} for m in ("ensemble", "fedavg")}
    return curves(
        {seed: o.extras["ensemble_curve"] for seed, o in boosted.items()},
        {seed: server_points(o) for seed, o in boosted.items()},
        beside,
        setting=setting_of(next(iter(boosted.values())).setting),
        chance=0.1,
    )


def names(outcome: Any) -> tuple[str, ...]:
    return tuple(load(outcome.setting["dataset"]).class_names)


def words(outcome: Any) -> str:
    return f"{setting_of(outcome.setting)}, seed {outcome.setting['seed']}"


# ------------------------------------------------------------------------------------------------------ worked numbers
def one_class(outcomes: Sequence[Any], seed: int = 0) -> Card:
    """The class that equal weights recognise worst: who holds it, and how the others drown them out."""
    o = by_seed(outcomes, "ensemble")[seed]
    counts, labels = np.asarray(o.label_counts), np.asarray(o.test_labels)
    right = np.asarray(o.test_predictions) == labels
    accuracy = [right[labels == c].mean() for c in range(counts.shape[1])]
    c = int(np.argmin(accuracy))
    holders = [int(k) for k in np.argsort(-counts[:, c]) if counts[k, c] > 0.1 * counts[:, c].sum()]
    logits = np.asarray(o.test_features).reshape(len(labels), len(counts), -1)[labels == c]
    alone = [f"client {k} {100 * (logits[:, k].argmax(1) == c).mean():.0f} %" for k in holders]
    never = int((counts[:, c] == 0).sum())
    return Card(
        "worked",
        f"Seed {seed}: with equal weights the ensemble recognises {100 * accuracy[c]:.0f} % of the “{c}”s. Those who "
        f"hold most of them do better alone ({', '.join(alone)}). {never} of {len(counts)} clients never saw a “{c}”, "
        "and they are sure of something else.",
    )


def dragged(outcomes: Sequence[Any]) -> Card:
    """A program drags the sliders, one after the other, to whatever level the tune half likes best."""
    lines = []
    for seed, o in sorted(by_seed(outcomes, "ensemble").items()):
        labels = np.asarray(o.test_labels)
        logits = np.asarray(o.test_features).reshape(len(labels), len(o.label_counts), -1)
        tune, judge = halves(len(labels))
        w = climb(logits[tune], labels[tune])
        shares = [float((correct(logits[half], w) == labels[half]).mean()) for half in (tune, judge)]
        lines.append(
            f"seed {seed}: {100 * shares[0]:.0f} % on the tune half, {100 * shares[1]:.0f} % on the judge half"
        )
    return Card("worked", "A program that drags for you reaches\n" + "\n".join(lines) + ".")


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
    gain = told(s["ensemble"], s["equal"])
    lines.append(f"headroom {mean(room.values()):.0f} points on average; Co-Boosting against equal weights: {gain}")
    return Card("worked", f"α = {alpha:g}\n" + "\n".join(lines) + ".")


def reality(outcomes: Sequence[Any]) -> Card:
    """What the paper's tables say and these runs do not: the server model against equal weights."""
    skewed, mild = scores(outcomes), scores(runs(10))
    lines = [
        f"α = {alpha}: server model {percent(s['server'])} %, ensemble with equal weights {percent(s['equal'])} % "
        f"({told(s['server'], s['equal'])})"
        for alpha, s in (("0.1", skewed), ("10", mild))
    ]
    return Card("worked", "\n".join([*lines, f"(seeds 0–{SEEDS - 1}; paper, CIFAR-10, α = 0.1: 57 % against 50 %)"]))
