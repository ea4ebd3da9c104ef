"""Lesson 04, Fed-ET: its three exercises."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from fedlab_nb.draw.words import half_width, is_noise

from .problem import NumberProblem, RecordProblem, Verdict
from .view import ProblemView

q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
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
)

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
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
)


def gaps(outcomes: Sequence[Any]) -> dict[tuple[str, str], list[float]]:
    """For every setting and other source: held-out − that source, seed by seed (same federation), in points."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        if o.method == "fedet":
            setting = {k: v for k, v in o.setting.items() if k not in ("seed", "options")}
            options = {k: v for k, v in o.setting["options"].items() if k not in ("public", "public_size")}
            key = json.dumps([setting, options], sort_keys=True, default=str)
            found[key][o.setting["options"]["public"]][o.setting["seed"]] = 100 * o.accuracy
    told = {}
    for key, by_source in found.items():
        own = by_source.get("held-out", {})
        for source, values in by_source.items():
            seeds = sorted(set(own) & set(values))
            if source != "held-out" and seeds:
                told[key, source] = [own[s] - values[s] for s in seeds]
    return told


def public_data_decide(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: with other public data, all else equal, the student is clearly worse."""
    clear, others = [], []
    for (_, source), gap in gaps(outcomes).items():
        if len(gap) < 3:
            others.append(f"{source} has {len(gap)} seed{'s' * (len(gap) != 1)} with both")
            continue
        band = half_width(gap)
        text = f"held-out − {source}: {', '.join(f'{g:+.0f}' for g in gap)} points, mean {mean(gap):+.0f} ± {band:.0f}"
        (clear if mean(gap) > 0 and not is_noise(mean(gap), band) else others).append(text)
    if clear:
        return Verdict("right", f"Supported by your runs: {clear[0]}. The clients were the same; only P has changed.")
    seen = "; ".join(others) or "no setting has Fed-ET with held-out and with another source"
    return Verdict(
        "wrong", f"Still to find, with 3 seeds or more: a source that is clearly worse. Your record: {seen}."
    )


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 3."""
    from .fedet import runs

    return [*runs(), *runs(**{"fedet.public": "noise"})]


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Public data are all that the large model ever sees. Show with your own runs that they decide: find a "
            "source with which the student is clearly worse than with the held-out part, everything else as it was, "
            "at least 3 seeds each."
        ),
        right_answer=solution_runs,
        hints=(
            "Change one thing only, the knob “Public data”, and run again.",
            "Leave α and the clients as they are. Pictures that look like nothing the clients know are a good start.",
        ),
        explanation=(
            "Run Fed-ET with the held-out part and with noise. {verdict} On noise the clients still say something, but "
            "the student learns it where no digit ever is."
        ),
        claim=public_data_decide,
    )
)
