"""Lesson 04, Fed-ET: its three exercises."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...teach.claims import CLEAR, SHORT, Gap, still
from ...teach.problem import Verdict
from ...teach.runs import MANY, alike
from ...teach.view import ProblemView
from .numbers import runs

q1 = ProblemView.number(
    1,
    question=(
        "Two classes, two clients. Client A says (0.9, 0.1), client B says (0.4, 0.6). What is the weight α of "
        "client A? (Two decimals.)"
    ),
    right_answer=round(16 / 17, 2),
    tolerance=0.006,
    hints=(
        "σ² is the variance of a client's two numbers. With two classes their mean is always ½.",
        "σ² = (p − ½)²: 0.16 for A, 0.01 for B. The weights are the σ² divided by their sum.",
    ),
    explanation="σ² is 0.16 for A and 0.01 for B, so α = 0.16 / 0.17 = {answer}: B hardly counts, right or wrong.",
    slips=(
        (0.8, "that is σ² made from standard deviations, 0.4 and 0.1; square them."),
        (0.6, "that is A's share of the two top probabilities; the weights come from variances."),
        (0.16, "that is σ² itself; divide by the sum over the clients."),
        (0.5, "they would count alike only if both were equally sure."),
    ),
)

q2 = ProblemView.number(
    2,
    question=(
        "On one public sample the dissenters have ρ = 0.6 of the weight, and λ = 0.5. How many per cent of the "
        "target do they get, all together?"
    ),
    right_answer=23,
    tolerance=0.6,
    hints=(
        "The target is (e + λ s) / (1 + λρ), and the entries of s add up to ρ.",
        "λρ = 0.3. The whole is 1 + 0.3.",
    ),
    explanation="λρ / (1 + λρ) = 0.3 / 1.3 = {answer} %. The consensus keeps the other 77 %, so it stays on top.",
    slips=(
        (30, "that is λρ; it is added to the 1 of the consensus, so divide by 1 + λρ."),
        (60, "that is ρ, the dissenters' share of the weight; λ makes it smaller."),
        (33, "that is what they would get if everybody dissented, ρ = 1."),
        (77, "that is what is left for the consensus."),
        (0.23, "per cent, please."),
    ),
)


def public_data_decide(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: with other public data, all else equal, the student is clearly worse."""
    clear, others = [], []
    for by_source in alike((o for o in outcomes if o.method == "fedet"), _setting_and_source).values():
        own = by_source.pop("held-out", {})
        for source, accuracies in by_source.items():
            gap = Gap(f"held-out − {source}", own, accuracies)
            if gap.kind == SHORT:
                others += [replace(gap, name=source).words("both")] * bool(gap.points)
            else:
                (clear if gap.kind == CLEAR else others).append(gap.words())
    if clear:
        return Verdict("right", f"Supported by your runs: {clear[0]}. The clients were the same; only P has changed.")
    return still(
        ["a source that is clearly worse"], others, "no setting has Fed-ET with held-out and with another source"
    )


def _setting_and_source(outcome: Any) -> tuple[Any, str]:
    """All that was set but the public data and the seed; and where the public data come from."""
    options = {k: v for k, v in outcome.options.items() if k not in ("public", "public_size")}
    return (outcome.conditions, *sorted(options.items())), outcome.options["public"]


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 3."""
    return [*runs(seeds=MANY), *runs(seeds=MANY, **{"fedet.public": "glyphs"})]


q3 = ProblemView.record(
    3,
    question=(
        "Public data are all that the large model ever sees. Show with your own runs that they decide: find a "
        "source with which the student is clearly worse than with the held-out part, everything else as it was, "
        "at least 3 seeds each, and more where the band is too wide to tell."
    ),
    right_answer=solution_runs,
    hints=(
        "Change one thing only, the knob “Public data”, and run again. Ten seeds tell more than three.",
        "Leave α and the clients as they are. Pictures on which the clients are sure, and wrong, are a good start.",
    ),
    explanation=(
        "Run Fed-ET with the held-out part and with letters (glyphs), 10 seeds each. {verdict} On letters the "
        "clients still say something, but the student learns it where no digit ever is."
    ),
    claim=public_data_decide,
)
