"""Lesson 05, Co-Boosting: its three exercises. The third is judged on the learner's own runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from fedlab_nb.draw.words import half_width, is_noise
from fedlab_nb.study import Outcomes, compare

from .problem import NumberProblem, RecordProblem, Verdict
from .view import ProblemView

q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
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
)

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
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
)


# ------------------------------------------------------------------------------------------------------ exercise 3
def gains(outcomes: Sequence[Any]) -> dict[str, tuple[str, list[float]]]:
    """For every setting: it in words, and Co-Boosting's ensemble − equal weights in points, seed by seed."""
    equal: dict[tuple[str, int], float] = {}
    boosted: dict[str, dict[int, float]] = defaultdict(dict)
    about: dict[str, Mapping[str, Any]] = {}
    for o in outcomes:
        place = json.dumps(
            {k: v for k, v in o.setting.items() if k not in ("seed", "options")}, sort_keys=True, default=str
        )
        if o.method == "ensemble" and o.setting.get("options", {}).get("rule", "logits") == "logits":
            equal[place, o.setting["seed"]] = o.accuracy
        if o.method == "coboosting" and o.extras.get("ensemble_curve"):
            key = json.dumps([place, o.setting.get("options", {})], sort_keys=True, default=str)
            boosted[key][o.setting["seed"]] = o.extras["ensemble_curve"][-1]
            about[key] = {**o.setting, "place": place}
    found = {}
    for key, runs in boosted.items():
        s = about[key]
        both = [100 * (a - equal[s["place"], seed]) for seed, a in sorted(runs.items()) if (s["place"], seed) in equal]
        switched = [f"no {name.upper()}" for name in ("ghs", "dhs", "ee") if s.get("options", {}).get(name) is False]
        name = ", ".join([f"α = {s['alpha']:g}", f"{s['clients']} clients", *switched])
        found[key] = (name, both)
    return found


def two_settings(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: somewhere re-weighting clearly helps, elsewhere it does not."""
    clear, idle, short = [], [], []
    for name, gain in gains(outcomes).values():
        if len(gain) < 3:
            short.append(f"{name} has {len(gain)} seed{'s' * (len(gain) != 1)} with both methods")
            continue
        band = half_width(gain)
        text = f"{name}: {', '.join(f'{g:+.0f}' for g in gain)} points, mean {mean(gain):+.0f} ± {band:.0f}"
        if mean(gain) > 0 and not is_noise(mean(gain), band):
            clear.append(text)
        elif "no EE" not in name:  # without EE nothing is re-weighted
            idle.append(text)
    if clear and idle:
        return Verdict("right", f"Supported by your runs. Clearly better at {clear[0]}. Not so at {idle[0]}.")
    missing = []
    if not clear:
        missing.append("a setting where the re-weighted ensemble is clearly better")
    if not idle:
        missing.append("a setting where it is not")
    seen = "; ".join([*clear, *idle, *short]) or "no setting has runs of both coboosting and ensemble"
    return Verdict("wrong", f"Still to find, with 3 seeds or more: {' and '.join(missing)}. Your record: {seen}.")


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    methods, found = ["coboosting", "ensemble"], []
    for alpha in (0.1, 10):
        found += compare(methods, dataset="digits", alpha=alpha, clients=10, seeds=3)
    return Outcomes(found)


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Find one setting where Co-Boosting's weights are clearly better than equal weights, and one where they "
            "are not (within the noise, or worse). Your runs in the lab are the answer: at least 3 seeds for each, "
            "with “ensemble” ticked."
        ),
        right_answer=solution_runs,
        hints=(
            "Re-weighting can win no more than the headroom. Where is there none?",
            "When all clients hold much the same, equal weights are already good: move α to the right end.",
        ),
        explanation=(
            "Run the lab at α = 0.1 and at α = 10, with 3 seeds. {verdict} With hardly any skew the clients are "
            "equally good, and a sign step that must move somebody only adds noise to the weights."
        ),
        claim=two_settings,
    )
)
