"""Lesson 04, Fed-ET: its worked numbers, made from the reader's own panel or from runs of three seeds.

The sums that can be followed by hand are in `fedet_by_hand`, the exercises (`lesson.q1` …) in `fedet_exercises`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np
import torch

from fedlab_nb.data import federate
from fedlab_nb.draw import Picture
from fedlab_nb.draw.fedet_bound import bound as bound_picture
from fedlab_nb.draw.fedet_traffic import first_reached
from fedlab_nb.draw.words import half_width, is_noise, percent
from fedlab_nb.methods.parts.bound import label_distance, theorem_1
from fedlab_nb.methods.parts.consensus import brier
from fedlab_nb.study import Outcomes, compare

from .fedet_by_hand import LOUD, first, heard, ignorance, loud, target_for_one, weights_for_one
from .fedet_exercises import q1, q2, q3
from .view import Card

__all__ = [
    "LOUD", "SIZES", "accuracy", "bound", "feedback", "first", "ignorance", "loud", "q1", "q2", "q3", "reality", "runs",
    "saving", "sources", "target_for_one", "thirds", "weights_for_one",
]  # fmt: skip

SEEDS = 3
SIZES = "mlp:16,mlp:32,mlp:64"  # the lab's small models, dealt out in turn
SETTING = {"dataset": "digits", "clients": 10, "model": SIZES}
SAVINGS = (
    "fewer numbers and fewer rounds",
    "fewer numbers, but more rounds",
    "more numbers, but fewer rounds",
    "more of both",
)


def runs(methods: Sequence[str] = ("fedet",), alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's own runs: digits, ten clients of three sizes, three seeds."""
    return compare(list(methods), alpha=alpha, **{"seeds": SEEDS, **SETTING, **settings})


def accuracy(outcomes: Sequence[Any], method: str = "fedet") -> float:
    """Mean test accuracy of `method` in percent."""
    return 100 * mean(o.accuracy for o in outcomes if o.method == method)


def thirds(panel: Any) -> list[float]:
    """Right answers of the consensus in percent, in the thirds with the least, middle and most dissent; all seeds."""
    rows = []
    for outcome in panel.own.look("dissent").outcomes.values():
        said, truth = heard(outcome)
        right = (said.labels == truth).numpy()
        order = np.argsort(said.mass.numpy(), kind="stable")
        rows.append([100 * right[part].mean() for part in np.array_split(order, 3)])
    return np.mean(rows, 0).tolist()


# -------------------------------------------------------------------------------------------------- the panel's work
def sources(panel: Any, vary: str = "source") -> Picture:
    """The panel's view “Public data”: one student for each source, or for each size."""
    panel.own.views["public"].vary.value = vary
    return panel.work("public")


def saving(panel: Any, goal: float = 0.5) -> str:
    """Which of SAVINGS is true of Fed-ET against FedAvg of the large model, up to the accuracy `goal`."""
    own, large, _ = reached(panel, goal).values()
    if own is None or large is None:
        return f"not every seed got to {percent(goal)}"
    return SAVINGS[{(1, 1): 0, (0, 1): 1, (1, 0): 2, (0, 0): 3}[int(own[0] < large[0]), int(own[1] < large[1])]]


def reached(panel: Any, goal: float) -> dict[str, tuple[float, float] | None]:
    """{method: (rounds, numbers sent) until `goal` is first reached, means over the seeds} in the view “Traffic”."""
    if panel.own.look("traffic").worked is None:
        panel.work("traffic")
    look = panel.own.look("traffic")
    lines = panel.own.views["traffic"].lines(look)
    return {name: first_reached(of, goal) for name, of in lines.items()}


# ------------------------------------------------------------------------------------------------- theory and reality
def bound(alphas: Sequence[float] = (0.1, 1, 100), seed: int = 0) -> Picture:
    """Three terms of Theorem 1 with equal weights, and the Brier losses, for one seed at each α."""
    terms: dict[float, dict[str, float]] = {}
    loss, alone = {}, {}
    for alpha in alphas:
        outcome = runs(["ensemble"], alpha, seeds=1, seed=seed)[0]
        clients, options = outcome.model.clients, outcome.setting
        federation = federate(options["dataset"], alpha=alpha, clients=options["clients"], seed=seed)
        data, parts = federation.dataset, [train for train, _ in federation.split(options["holdout"])]
        own = [
            brier(clients.logits(data.x_train[rows])[k].softmax(-1), data.y_train[rows]).mean()
            for k, rows in enumerate(parts)
        ]
        counts = torch.stack([torch.bincount(data.y_train[rows], minlength=data.classes) for rows in parts])
        whole = torch.bincount(data.y_test, minlength=data.classes)
        found = theorem_1(torch.stack(own), counts.sum(1), label_distance(counts, whole))
        terms[alpha] = {name: value for name, value in found.terms.items() if name != "joint_error"}
        said = clients.logits(data.x_test).softmax(-1)
        loss[alpha] = float(brier(said.mean(0), data.y_test).mean())
        alone[alpha] = float(brier(said, data.y_test).mean())
    return bound_picture(terms, loss, alone, setting=f"digits, 10 clients, seed {seed}")


def compared(values: Mapping[int, float], others: Mapping[int, float]) -> str:
    """'+7 ± 4 points, clear' of `values` − `others`, shares by seed."""
    points = [100 * (values[seed] - others[seed]) for seed in values]
    band = half_width(points)
    verdict = "within the noise" if is_noise(mean(points), band) else "clear"
    if verdict == "clear" and round(abs(mean(points))) <= round(band):
        verdict = "barely more than the noise"
    return f"{round(mean(points)):+d} ± {band:.0f} points, {verdict}"


def rules(outcomes: Mapping[int, Any]) -> str:
    """How right the consensus of these {seed: outcome} is with three rules for the weights."""
    right = {}
    for name, rule in {"softmax": "softmax", "equal weights": "uniform", "raw logits": "logit-variance"}.items():
        said = {seed: heard(o, rule) for seed, o in outcomes.items()}
        right[name] = {seed: float((c.labels == truth).double().mean()) for seed, (c, truth) in said.items()}
    paper, *rest = right
    told = [f"{n} {percent(mean(right[n].values()))} ({compared(right[n], right[paper])})" for n in rest]
    return f"{paper} {percent(mean(right[paper].values()))}; {'; '.join(told)}"


def feedback(panel: Any) -> Card:
    """What overwriting the server's head, and copying it to the small models, changes; the panel's seeds."""
    early, late, over = [], [], []
    for outcome in panel.own.look("rounds").outcomes.values():
        kept = outcome.extras
        copied = [100 * (a - b) for a, b in zip(kept["small_after"], kept["small_before"], strict=True)]
        early.append(mean(copied[:3]))
        late.append(mean(copied[-6:]))
        before, after = (
            [p["accuracy"] for p in outcome.history if p["phase"] == phase] for phase in ("rounds", "heads averaged")
        )
        over.append(mean(100 * (new - old) for old, new in zip(before, after[1:], strict=False)))

    def listed(values: Sequence[float]) -> str:
        return ", ".join(f"{round(v):+d}" for v in values)

    return Card(
        "worked",
        f"Copying the head changes the small models by {listed(early)} points in the first three rounds and by "
        f"{listed(late)} in the last six (one number a seed).\n"
        f"Overwriting its head changes the server by {listed(over)} points, mean of all rounds.",
    )


def reality(panel: Any) -> Card:
    """The rule of the weights in one shot and in the last round of `panel`, and λ; over the seeds."""
    found = {o.setting["seed"]: o for o in runs()}
    looped = panel.own.look("rounds").outcomes
    lines = [
        f"the consensus is right for, in one shot: {rules(found)}",
        f"in the last of {first(panel).setting['options']['rounds']} rounds: {rules(looped)}",
    ]
    base = {seed: o.accuracy for seed, o in found.items()}
    told = [f"λ = 0.05 {percent(mean(base.values()))}"]
    for strength in (0, 0.5):
        other = {o.setting["seed"]: o.accuracy for o in runs(**{"fedet.diversity": strength})}
        told.append(f"λ = {strength:g} {percent(mean(other.values()))} ({compared(other, base)})")
    lines.append(f"the one-shot student is right for: {'; '.join(told)}")
    return Card("worked", "\n".join(lines) + f"\n(α = 0.1, seeds 0 to {SEEDS - 1}, differences seed by seed)")
