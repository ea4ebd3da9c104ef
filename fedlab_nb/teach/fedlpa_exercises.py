"""Lesson 07, FedLPA: its four exercises, two by hand and two on the learner's own record of runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from fedlab_nb.draw.words import half_width, is_noise
from fedlab_nb.study import Outcomes, compare

from .heterogeneity import DATASET, SEEDS
from .problem import NumberProblem, RecordProblem, Verdict
from .view import ProblemView

q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
        question=(
            "Client 1 found the weight 2 with precision 6, client 2 found 5 with precision 3. What does the product of "
            "the two Gaussians give?"
        ),
        right_answer=3,
        tolerance=0.01,
        hints=(
            "Each client's weight counts in proportion to its precision. The formula stands above, with other numbers.",
            "(6 · 2 + 3 · 5) / (6 + 3).",
        ),
        explanation="(6 · 2 + 3 · 5) / (6 + 3) = 27 / 9 = {answer}: nearer to the client that is twice as sure.",
        slips=(
            (3.5, "that is the plain average; the precisions are not used."),
            (4, "that gives the larger trust to the less precise client."),
            (27, "divide by the sum of the precisions."),
        ),
    )
)

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
        question=(
            "A layer has 20 inputs and 10 units, each with a bias. How many numbers does a client send for it: M, and "
            "the upper triangles of A and B with their diagonals?"
        ),
        right_answer=10 * 21 + 21 * 22 // 2 + 10 * 11 // 2,
        tolerance=0.5,
        hints=(
            "The bias is one more column of M, and one more input of A: 20 + 1.",
            "M has 10 · 21 numbers, A's triangle 21 · 22 / 2, B's 10 · 11 / 2.",
        ),
        explanation="10 · 21 + 21 · 22 / 2 + 10 · 11 / 2 = 210 + 231 + 55 = {answer}, and 210 for the layer alone.",
        slips=(
            (210, "that is M alone."),
            (10 * 21 + 21 * 21 + 10 * 10, "A and B are symmetric: only one triangle of each is sent."),
            (
                10 * 20 + 20 * 21 // 2 + 55,
                "the biases are missing, one more column of M and of A; or else the triangles' diagonals.",
            ),
        ),
    )
)


# ------------------------------------------------------------------------------------------------ on the record
def differences(outcomes: Sequence[Any], of: str, one: Any, other: Any) -> dict[str, tuple[dict, list[float]]]:
    """Pairs of FedLPA runs that differ in the option `of` alone: their setting, one − other by seed in points."""
    pairs: dict[str, dict[int, dict[Any, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        if o.method == "fedlpa":
            options = {k: v for k, v in o.setting["options"].items() if k not in (of, "iterations")}
            same = {k: v for k, v in o.setting.items() if k not in ("seed", "options")} | {"options": options}
            value = o.setting["options"][of]
            pairs[json.dumps(same, sort_keys=True, default=str)][o.setting["seed"]][value] = 100 * o.accuracy
    found = {}
    for key, seeds in pairs.items():
        found[key] = (json.loads(key), [p[one] - p[other] for _, p in sorted(seeds.items()) if one in p and other in p])
    return found


def told(points: list[float]) -> str:
    """'+52, +67, +36 points, mean +52 ± 18'."""
    each = ", ".join(f"{round(p):+d}" for p in points)
    return f"{each} points, mean {round(mean(points)):+d} ± {half_width(points):.0f}"


def two_dampings(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: at one λ the exact solution clearly beats the shortcut, at another within the noise."""
    clear, noise, short = [], [], []
    for setting, points in differences(outcomes, "solver", "cg", "ea").values():
        at = f"λ = {setting['options']['damping']:g}"
        if len(points) < 3:
            short.append(f"{at} has {len(points)} seed{'s' * (len(points) != 1)} with both solvers")
        elif is_noise(mean(points), half_width(points)):
            noise.append(f"{at}: {told(points)}")
        elif mean(points) > 0:
            clear.append(f"{at}: {told(points)}")
    if clear and noise:
        return Verdict("right", f"Supported by your runs. Clear at {clear[0]}. Within the noise at {noise[0]}.")
    missing = [] if clear else ["a λ where the exact solution is clearly better"]
    missing += [] if noise else ["a λ where the difference is within the noise"]
    seen = "; ".join([*clear, *noise, *short]) or "there is no run of fedlpa"
    return Verdict("wrong", f"Still to find, with 3 seeds or more: {' and '.join(missing)}. Your record: {seen}.")


def dampings() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return Outcomes(
        outcome
        for damping in (1e-2, 1e-6)
        for name in ("cg", "ea")
        for outcome in compare(
            ["fedlpa"], dataset=DATASET, alpha=0.1, clients=10, seeds=SEEDS, damping=damping, solver=name
        )
    )


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Use the panel above. Find one λ at which the exact solution (conjugate gradients) is clearly better than "
            "the shortcut EA, and one at which the difference is within the noise. Your runs are the answer: at least "
            "3 seeds with each solver."
        ),
        right_answer=dampings,
        hints=(
            "Change λ and the solver only. The view “λ and π” shows both curves for one seed; runs give the others.",
            "The shortcut is biased by how much the clients' B differ. A large λ hides the differences, a small one "
            "shows them.",
        ),
        explanation="Run both solvers at λ = 0.01 and at λ = 0.000001. {verdict}",
        claim=two_dampings,
    )
)


def starts(outcomes: Sequence[Any]) -> dict[str, dict[str, dict[int, dict[str, float]]]]:
    """By setting without the start: by kind of start, by seed, the accuracy of fedavg and fedlpa in points."""
    found: Any = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for o in outcomes:
        if o.method in ("fedavg", "fedlpa"):
            same = {k: v for k, v in o.setting.items() if k not in ("seed", "options", "init")}
            key = json.dumps(same, sort_keys=True, default=str)
            found[key][o.setting.get("init", "same")][o.setting["seed"]][o.method] = 100 * o.accuracy
    return found


MARGIN, NEAR = 30.0, 10.0  # points; far inside what was measured


def different_starts(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 4: with different initial models FedLPA stays where it was, far above the average."""
    seen = []
    for kinds in starts(outcomes).values():
        own = {s: r for s, r in kinds["different"].items() if len(r) == 2}
        common = {s: r["fedlpa"] for s, r in kinds["same"].items() if "fedlpa" in r}
        both = sorted(set(own) & set(common))
        if len(both) < 3:
            seen.append(f"{len(own)} seeds with different starts and both methods, {len(common)} with the same start")
            continue
        ahead = [own[s]["fedlpa"] - own[s]["fedavg"] for s in both]
        lost = [own[s]["fedlpa"] - common[s] for s in both]
        text = f"FedLPA − FedAvg with different starts: {told(ahead)}; FedLPA, different − same start: {told(lost)}"
        if mean(ahead) > max(MARGIN, half_width(ahead)) and mean(lost) > -NEAR:
            return Verdict("right", f"Supported by your runs. {text}.")
        seen.append(text)
    return Verdict(
        "wrong",
        "Still to show, with 3 seeds or more: FedLPA and FedAvg with different starts, and FedLPA with the same start "
        f"in the same setting. Your record: {'; '.join(seen) or 'no run of fedlpa or fedavg'}.",
    )


def both_starts() -> Outcomes:
    """Runs that support the claim of exercise 4."""
    return Outcomes(
        outcome
        for init in ("same", "different")
        for outcome in compare(["fedavg", "fedlpa"], dataset=DATASET, alpha=0.1, clients=10, seeds=SEEDS, init=init)
    )


q4 = ProblemView(
    RecordProblem(
        title="Exercise 4",
        question=(
            "Averaging needs a common start, because units are averaged by number. FedLPA does not. Show it with runs: "
            "FedLPA and FedAvg with initial models “each its own”, and FedLPA with “the same for all”, at least 3 "
            "seeds, everything else alike."
        ),
        right_answer=both_starts,
        hints=(
            "“Initial models” stands among the controls at the left; “FedAvg, one round” is ticked there.",
            "Two runs are enough: one for each kind of start, each with 3 seeds.",
        ),
        explanation=(
            "{verdict} The merged layer is asked to answer, on the inputs of a client, as that client's own layer did. "
            "Nobody's units have to match anybody else's for that."
        ),
        claim=different_starts,
    )
)
