"""Lesson 05, Co-Boosting: its three exercises. The third is judged on the learner's own runs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ...study import Outcomes
from ...teach.claims import BELOW, CLEAR, NOISE, SHORT, Gap, two_kinds
from ...teach.problem import Verdict
from ...teach.runs import MANY, alike, runs
from ...teach.view import ProblemView

q1 = ProblemView.number(
    1,
    question=(
        "Three clients have the weights (0.02, 0.3, 0.5). The gradient has the signs (+, −, +), and μ = 0.1. What "
        "is the share of the second client after the step, as a number between 0 and 1?"
    ),
    right_answer=0.5,
    tolerance=0.005,
    hints=(
        "Against the sign: a weight with a positive gradient falls. No weight leaves [0, 1].",
        "The weights are (0, 0.4, 0.4). Their share is w divided by the sum of all three.",
    ),
    explanation=(
        "0.02 − 0.1 is below 0 and is clipped to 0; 0.3 + 0.1 = 0.4; 0.5 − 0.1 = 0.4. The share of the second "
        "client is 0.4 / 0.8 = {answer}. The first one is silent now, but a negative gradient would bring it back."
    ),
    slips=(
        (0.4, "that is the weight; the ensemble divides by the sum of all weights."),
        (round(0.4 / 0.72, 3), "the first weight cannot go below 0."),
        (round(0.2 / 0.92, 3), "the step goes against the gradient: a negative one makes the weight rise."),
    ),
)

q2 = ProblemView.number(
    2,
    question=(
        "DHS moves every pixel of a digit by ε (sign step). The formula as printed in the paper moves the whole "
        "image by ε in the Euclidean norm. How many times longer is the sign step on an 8 × 8 image?"
    ),
    right_answer=8,
    tolerance=0.05,
    hints=(
        "Write down the Euclidean norm of a vector of 64 numbers, each of them ε.",
        "√(64 ε²) = … · ε",
    ),
    explanation=(
        "The norm is √(64 ε²) = {answer} ε. On a colour image of 32 × 32 it is √3072 ε = 55 ε: with the paper's ε "
        "of 8 grey levels out of 255, the printed step moves a pixel by 8 / 55 = 0.14 grey levels. The authors' "
        "code takes the sign step, and so does the lab."
    ),
    slips=(
        (64, "that is the number of pixels; the norm has a root."),
        (55.4, "that is for a colour image of 32 × 32 pixels."),
    ),
)


# ------------------------------------------------------------------------------------------------------ exercise 3
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


def two_settings(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: somewhere re-weighting clearly helps, elsewhere it does not."""
    # Without EE nothing is re-weighted: no answer to where re-weighting does not help.
    gaps = [gap for gap in gains(outcomes) if gap.kind in (CLEAR, SHORT) or "no EE" not in gap.name]
    return two_kinds(
        gaps,
        clear="a setting where the re-weighted ensemble is clearly better",
        other="a setting where it is not",
        others=(NOISE, BELOW),
        right="Supported by your runs. Clearly better at {clear}. Not so at {other}.",
        nothing="no setting has runs of both coboosting and ensemble",
    )


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    methods = ["coboosting", "ensemble"]
    return Outcomes(runs(methods, 0.1, seeds=MANY) + runs(methods, 10, seeds=MANY))


q3 = ProblemView.record(
    3,
    question=(
        "Find one setting where Co-Boosting's weights are clearly better than equal weights, and one where they "
        "are not (within the noise, or worse). Your runs in the lab are the answer: at least 3 seeds for each "
        "(more where the band is too wide to tell), with “ensemble” ticked."
    ),
    right_answer=solution_runs,
    hints=(
        "Re-weighting can win no more than the headroom. Where is there none? And take 10 seeds: federations differ.",
        "When all clients hold much the same, equal weights are already good: move α to the right end.",
    ),
    explanation=(
        "Run the lab at α = 0.1 and at α = 10, with 10 seeds. {verdict} With hardly any skew the clients are "
        "equally good, and a sign step that must move somebody only adds noise to the weights."
    ),
    claim=two_settings,
)
