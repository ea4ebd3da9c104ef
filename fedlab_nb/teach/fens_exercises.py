"""Lesson 03, FENS: its three exercises. One by hand, one on bytes, one on the learner's own record of runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from fedlab_nb.draw.words import half_width, is_noise
from fedlab_nb.methods.parts.aggregators import TRAINED

from .problem import NumberProblem, RecordProblem, Verdict
from .view import ProblemView

q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
        question=(
            "Two clients, two classes. For one sample client A has the logits (4, 0) and client B (1, 2); the truth is "
            "the second class. All four weights are 1/2, so the average says the first class. Only B's weight for the "
            "second class may change. Above which value does FENS say the second class?"
        ),
        right_answer=1.25,
        tolerance=0.005,
        hints=(
            "Write down both sums: Σ λ z for the first class and for the second.",
            "First class: ½ · 4 + ½ · 1 = 2.5. Second class: ½ · 0 + λ · 2. When is the second larger?",
        ),
        explanation=(
            "λ · 2 > 2.5 from λ = {answer} on. No share of anything can be more than 1, and no class count can say "
            "this: trained weights are free, they may be above 1 and below 0."
        ),
        slips=(
            (2.5, "that is what the second sum must exceed; B's logit of 2 still multiplies λ."),
            (0.5, "that is its weight in the average, and the average says the first class."),
            (5.0, "B's logit for the second class is 2, not ½."),
            (1.0, "then the second sum is 2 and the first is 2.5."),
        ),
    )
)

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
        question=(
            "50 clients, 8 bits, and an aggregator so small that its rounds cost nothing beside a model. FedAvg needs "
            "R rounds. What is the smallest whole number R for which FENS sends fewer bytes?"
        ),
        right_answer=8,
        tolerance=0.001,
        hints=(
            "R rounds of FedAvg cost R times one-shot learning. What is FENS' ratio when q T / d is 0?",
            "1 + M/8 with M = 50 is 7.25: the ensemble alone costs 6.25 times one-shot learning.",
        ),
        explanation=(
            "The ratio is 1 + 50/8 = 7.25, so that FENS is the cheaper one from R = {answer} on. The ensemble that "
            "comes down grows with the number of clients: this is FENS' weak spot."
        ),
        slips=(
            (7, "7 rounds are cheaper than 7.25 times one-shot learning."),
            (7.25, "that is the ratio; R is a whole number."),
            (26, "that is the ratio without quantisation, 1 + M/2."),
            (6.25, "that is the ensemble alone; the own model is still to be added."),
        ),
    )
)


def gaps(outcomes: Sequence[Any]) -> dict[tuple[str, str], tuple[float, list[float]]]:
    """For every setting and trained rule: α, and rule − class counts, seed by seed (same federation), in points."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        if o.method == "fens":
            setting = {k: v for k, v in o.setting.items() if k not in ("seed", "options")}
            key = json.dumps(setting, sort_keys=True, default=str)
            found[key][o.setting["options"]["aggregator"]][o.setting["seed"]] = 100 * o.accuracy
    told = {}
    for key, rules in found.items():
        fixed = rules.get("weighted", {})
        for rule in TRAINED:
            seeds = sorted(set(fixed) & set(rules.get(rule, {})))
            if seeds:
                told[key, rule] = (json.loads(key)["alpha"], [rules[rule][s] - fixed[s] for s in seeds])
    return told


def two_skews(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: under skew the trained rule is clearly better than class counts, elsewhere it is not."""
    clear, level, short = [], [], []
    for (_, rule), (alpha, gap) in gaps(outcomes).items():
        if len(gap) < 3:
            short.append(f"α = {alpha:g} has {len(gap)} seed{'s' * (len(gap) != 1)} with both {rule} and weighted")
            continue
        band = half_width(gap)
        text = f"α = {alpha:g}, {rule} − weighted: {', '.join(f'{g:+.0f}' for g in gap)} points, mean {mean(gap):+.0f}"
        text += f" ± {band:.0f}"
        (level if is_noise(mean(gap), band) or mean(gap) < 0 else clear).append(text)
    if clear and level:
        return Verdict("right", f"Supported by your runs. Clearly better at {clear[0]}. No better at {level[0]}.")
    missing = []
    if not clear:
        missing.append("a setting where a trained rule is clearly better than class counts")
    if not level:
        missing.append("a setting where it is not")
    seen = "; ".join([*clear, *level, *short]) or "no setting has FENS with both weighted and a trained rule"
    return Verdict("wrong", f"Still to find, with 3 seeds or more: {' and '.join(missing)}. Your record: {seen}.")


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 3."""
    from .fens import runs

    found: list[Any] = []
    for alpha in (0.1, 1):
        for rule in ("weighted", "per_class"):
            found += runs(["fens"], alpha, **{"fens.aggregator": rule})
    return found


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Class counts (aggregator “weighted”) cost no download and no rounds. Find one setting where a trained "
            "rule is clearly better than they are, and one where it is not. Your runs are the answer: FENS with both "
            "rules, at least 3 seeds each."
        ),
        right_answer=solution_runs,
        hints=(
            "Change two things only: α, and the aggregator between “weighted” and “per_class”.",
            "One of the two is α = 0.1. For the other, let every client see every digit.",
        ),
        explanation=(
            "Run both rules at α = 0.1 and at α = 1. {verdict} Where clients have seen most classes, their counts say "
            "nearly all there is to learn; FENS' gain belongs to skew."
        ),
        claim=two_skews,
    )
)
