"""Lesson 03, FENS: its three exercises. One by hand, one on bytes, one on the learner's own record of runs."""

from collections.abc import Sequence

from ...methods.fens.aggregators import TRAINED
from ...study import Outcome
from ...teach.claims import BELOW, NOISE, Gap, two_kinds
from ...teach.problem import Verdict
from ...teach.runs import MANY, alike, runs
from ...teach.view import ProblemView

q1 = ProblemView.number(
    1,
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

q2 = ProblemView.number(
    2,
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


def two_skews(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: under skew the trained rule is clearly better than class counts, elsewhere it is not."""
    by_setting = alike(outcomes, lambda o: (o.conditions, o.options["aggregator"]) if o.method == "fens" else None)
    gaps = [
        Gap(f"α = {settings.alpha:g}, {rule} − weighted", rules[rule], rules["weighted"])
        for (settings, _), rules in by_setting.items()
        for rule in TRAINED
        if set(rules.get(rule, ())) & set(rules.get("weighted", ()))
    ]
    return two_kinds(
        gaps,
        clear="a setting where a trained rule is clearly better than class counts",
        other="a setting where it is not",
        others=(NOISE, BELOW),
        right="Supported by your runs. Clearly better at {clear}. No better at {other}.",
        both="both rules",
        nothing="no setting has FENS with both weighted and a trained rule",
    )


def solution_runs() -> list[Outcome]:
    """Runs that support the claim of exercise 3."""
    rules = [{"fens.aggregator": rule} for rule in ("weighted", "per_class")]
    return [o for alpha in (0.05, 1) for rule in rules for o in runs(["fens"], alpha, seeds=MANY, **rule)]


q3 = ProblemView.record(
    3,
    question=(
        "Class counts (aggregator “weighted”) cost no download and no rounds. Find one setting where a trained "
        "rule is clearly better than they are, and one where it is not. Your runs are the answer: FENS with both "
        "rules, at least 3 seeds each, and more where the band is too wide to tell."
    ),
    right_answer=solution_runs,
    hints=(
        "Change two things only: α, and the aggregator between “weighted” and “per_class”.",
        "One of the two is α = 0.05. For the other, let every client see every digit. Take 10 seeds.",
    ),
    explanation=(
        "Run both rules at α = 0.05 and at α = 1, 10 seeds each. {verdict} Where clients have seen most "
        "classes, their counts say nearly all there is to learn; FENS' gain belongs to skew."
    ),
    claim=two_skews,
)
