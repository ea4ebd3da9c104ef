"""Lesson 08, all together: accuracy against bytes, features and leaks; its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (digits, ten clients,
the classroom preset); nothing is written into the text by hand.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from fedlab_nb.draw.words import data_size, gap, is_noise, listed
from fedlab_nb.methods import METHODS
from fedlab_nb.study import Outcomes, compare

from .problem import NumberProblem, RecordProblem, Verdict
from .view import Card, ProblemView

SEEDS = 3
ALPHA = 0.1
METHODS_HERE = ("fedavg", "ensemble", "feddf", "fens", "fedlpa", "fusefl", "fedet", "coboosting")
MANY_ROUNDS = ("fedavg_multi", "fedadam")


def runs(methods: Sequence[str], alpha: float = ALPHA, **settings: Any) -> Outcomes:
    """The lesson's runs."""
    return compare(list(methods), dataset="digits", alpha=alpha, clients=10, seeds=SEEDS, **settings)


def percent(outcomes: Sequence[Any], method: str) -> float:
    """Mean test accuracy of `method` in percent, over the seeds in `outcomes`."""
    return 100 * mean(o.accuracy for o in outcomes if o.method == method)


def title(method: str) -> str:
    return METHODS[method].info.title


# ------------------------------------------------------------------------------------------------------ worked numbers
def by_method(outcomes: Sequence[Any]) -> dict[str, tuple[float, float]]:
    """{method: (mean accuracy, mean bytes of all clients, both ways)}."""
    found: dict[str, list[Any]] = defaultdict(list)
    for o in outcomes:
        found[o.method].append(o)
    return {m: (mean(o.accuracy for o in os), mean(o.bytes_up + o.bytes_down for o in os)) for m, os in found.items()}


def front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Methods that no other one beats: none is at least as accurate for no more bytes, and better in one of the two."""

    def beaten(m: str) -> bool:
        a, b = points[m]
        return any(x >= a and y <= b and (x > a or y < b) for n, (x, y) in points.items() if n != m)

    return sorted((m for m in points if not beaten(m)), key=lambda m: points[m][1])


def price_list(outcomes: Sequence[Any]) -> Card:
    """Who is worth the bytes: the front, cheapest first."""
    points = by_method([o for o in outcomes if o.method not in ("local", "centralized")])
    lines = [f"{title(m)}: {data_size(points[m][1])}, {100 * points[m][0]:.0f} %" for m in front(points)]
    beaten = [title(m) for m in points if m not in front(points)]
    return Card("worked", "Not beaten, cheapest first:\n" + "\n".join(lines) + f"\nBeaten: {listed(beaten)}.")


def fens_bytes(clients: int, rounds: int = 50) -> Card:
    """FENS' bytes of one client, term by term, at the digits' network and per-class weights."""
    model, rule = 26280, 4 * clients * 10
    terms = (
        ("initial model down and own model up", 2 * model),
        (f"{clients} models of 8 bits down, about", clients * model // 4),
        (f"{rounds} rounds of the rule, both ways", 2 * rule * rounds),
    )
    total = sum(size for _, size in terms)
    lines = [f"{words}: {data_size(size)} ({100 * size / total:.0f} %)" for words, size in terms]
    return Card("worked", f"M = {clients}.\n" + "\n".join(lines) + f"\nTogether {data_size(total)} a client.")


CANDIDATES = ("FedAvg, one round", "Ensemble (FedENS)", "FENS", "FedLPA", "FuseFL", "Co-Boosting")


def most_accurate(outcomes: Sequence[Any]) -> str:
    """Title of the method with the highest mean accuracy."""
    points = by_method(outcomes)
    return title(max(points, key=lambda m: points[m][0]))


def overtaking(outcome: Any, goal: float) -> tuple[int, float] | None:
    """In which round (from 1) a run first passes an accuracy, and the bytes spent by then; None if it never does."""
    points = [p for p in outcome.history if p["phase"] == "rounds"]
    first = next((i for i, p in enumerate(points) if p["accuracy"] > goal), None)
    return None if first is None else (first + 1, points[first]["bytes"])


def overtaken_in(target: str, method: str) -> int:
    """The round in which `method` passes the final accuracy of `target`; first seed's curves. 0: never."""
    goal, other = compare([target, method], dataset="digits", alpha=ALPHA, clients=10)
    return (overtaking(other, goal.accuracy) or (0, 0))[0]


def rounds_needed(target: str = "fedlpa") -> Card:
    """How many rounds, and bytes, the multi-round methods need to overtake a one-shot one; first seed's curves."""
    found = compare([target, *MANY_ROUNDS], dataset="digits", alpha=ALPHA, clients=10)
    goal = found[0]
    lines = [f"{title(target)}: {100 * goal.accuracy:.0f} % for {data_size(goal.bytes_up + goal.bytes_down)}"]
    for o in found[1:]:
        passed = overtaking(o, goal.accuracy)
        if passed is None:
            lines.append(f"{title(o.method)}: not within its rounds")
        else:
            lines.append(f"{title(o.method)}: overtakes it in round {passed[0]}, after {data_size(passed[1])}")
    return Card("worked", "\n".join([*lines, f"α = {ALPHA:g}, seed 0."]))


def reality() -> Card:
    """One-shot against many rounds, gaps with their bands."""
    found = runs(("fens", "fedlpa", "fedadam"))
    by = {m: {o.setting["seed"]: o.accuracy for o in found if o.method == m} for m in ("fens", "fedlpa", "fedadam")}
    points = by_method(found)
    lines = []
    for method in ("fens", "fedlpa"):
        difference, band = gap(by["fedadam"], by[method])
        word = "within the noise" if is_noise(difference, band) else "more than the noise"
        times = points["fedadam"][1] / points[method][1]
        lines.append(
            f"FedAdam − {title(method)}: {100 * difference:+.0f} ± {100 * band:.0f} points, {word}; it costs "
            f"{times:.0f} times the bytes"
        )
    return Card("worked", "\n".join([*lines, f"α = {ALPHA:g}, means of {SEEDS} seeds, FedAdam with its 20 rounds."]))


def leak(seed: int = 0) -> Card:
    """What FedLPA's upload tells of the clients' classes, by a probe that sees the upload alone."""
    outcome = next(o for o in compare(["fedlpa"], dataset="digits", alpha=ALPHA, clients=10, seed=seed))
    found = outcome.extras["label_leak"]
    told = ", ".join(f"{key.replace('_', ' ')} {value:.2f}" for key, value in found.items() if isinstance(value, float))
    return Card("worked", f"FedLPA, α = {ALPHA:g}, seed {seed}. From the last layer's factor alone: {told}.")


# ------------------------------------------------------------------------------------------------------ exercises
q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
        question=(
            "FENS sends all M quantised models to every client. How many times as many bytes is that, all clients "
            "together, when the number of clients doubles?"
        ),
        right_answer=4,
        tolerance=0.01,
        hints=("Count models: each of M clients receives M of them.", "M · M. Now put 2M in place of M."),
        explanation="(2M) · (2M) = {answer} · M². The upload alone only doubles.",
        slips=((2, "that is the upload; the download has M models for each of M clients."),),
    )
)

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
        question=(
            "FedAvg costs a client 2 S for each round. FENS with M = 10 costs 2 S + 10 · S/4, if its tiny rounds are "
            "left out. After how many rounds has FedAvg spent as much? (A fraction is fine.)"
        ),
        right_answer=2.25,
        tolerance=0.01,
        hints=("Set 2 R equal to what FENS costs, in units of S.", "2 R = 2 + 2.5."),
        explanation="2 R = 4.5, so R = {answer}: FedAvg's third round is already dearer.",
        slips=((4.5, "that is FENS in units of S; a round costs 2 S."), (6, "8-bit models weigh S/4, not S.")),
    )
)


def unbeaten(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: in one setting, 3 seeds, at least three methods are on the front."""
    settings: dict[str, list[Any]] = defaultdict(list)
    for o in outcomes:
        if o.method not in ("local", "centralized"):
            kept = {k: v for k, v in o.setting.items() if k in ("dataset", "alpha", "clients", "partition")}
            settings[json.dumps(kept, sort_keys=True, default=str)].append(o)
    told = []
    for key, group in settings.items():
        seeds = defaultdict(set)
        for o in group:
            seeds[o.method].add(o.setting["seed"])
        group = [o for o in group if len(seeds[o.method]) >= SEEDS]
        points = by_method(group)
        names = front(points)
        alpha = json.loads(key)["alpha"]
        words = ", ".join(f"{title(m)} ({data_size(points[m][1])}, {100 * points[m][0]:.0f} %)" for m in names)
        if len(names) >= 3:
            return Verdict("right", f"Supported by your runs at α = {alpha:g}. Not beaten: {words}.")
        told.append(f"α = {alpha:g}: {words or 'no method with 3 seeds'}")
    return Verdict("wrong", f"Still fewer than three unbeaten methods in one setting. Your record: {'; '.join(told)}.")


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "There is no best method, only prices. Find one setting, with 3 seeds, in which at least three methods are "
            "not beaten by another one in accuracy and bytes at once."
        ),
        right_answer=lambda: runs(("ensemble", "fedlpa", "fens", "fedadam")),
        hints=(
            "Take one from each price class: an upload alone, an upload with extras, many rounds.",
            "Ensemble, FedLPA, FENS and FedAdam at α = 0.1.",
        ),
        explanation="Run Ensemble, FedLPA, FENS and FedAdam at α = 0.1, 3 seeds. {verdict}",
        claim=unbeaten,
    )
)
