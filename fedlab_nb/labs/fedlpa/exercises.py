"""Lesson 07, FedLPA: its four exercises, two by hand and two on the learner's own record of runs."""

import dataclasses
from collections.abc import Hashable, Sequence

from ...study import Outcome, Outcomes
from ...teach.claims import ENOUGH, Gap, two_kinds
from ...teach.problem import Verdict
from ...teach.runs import MANY, alike, runs
from ...teach.view import ProblemView

q1 = ProblemView.number(
    1,
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

q2 = ProblemView.number(
    2,
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


# ------------------------------------------------------------------------------------------------ on the record
def by_solver(outcome: Outcome) -> tuple[Hashable, str] | None:
    """Runs of FedLPA that differ in the solver alone: all the other options, and the solver."""
    if outcome.method != "fedlpa":
        return None
    others = tuple((name, value) for name, value in outcome.options.items() if name not in ("solver", "iterations"))
    return (outcome.conditions, others), outcome.options["solver"]


def two_dampings(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: at one λ the exact solution clearly beats the shortcut, at another within the noise."""
    return two_kinds(
        [
            Gap(f"λ = {dict(options)['damping']:g}", solvers["cg"], solvers["ea"])
            for (_, options), solvers in alike(outcomes, by_solver).items()
        ],
        both="both solvers",
        clear="a λ where the exact solution is clearly better",
        other="a λ where the difference is within the noise",
        right="Supported by your runs. Clear at {clear}. Within the noise at {other}.",
        nothing="there is no run of fedlpa",
    )


def dampings() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    settings = [{"damping": damping, "solver": solver} for damping in (1e-4, 1e-6) for solver in ("cg", "ea")]
    return Outcomes(outcome for setting in settings for outcome in runs("fedlpa", seeds=MANY, **setting))


q3 = ProblemView.record(
    3,
    question=(
        "Use the panel above. Find one λ at which the exact solution (conjugate gradients) is clearly better than "
        "the shortcut EA, and one at which the difference is within the noise. Your runs are the answer: at least "
        "3 seeds with each solver, and more where the band is too wide to tell."
    ),
    right_answer=dampings,
    hints=(
        "Change λ and the solver only. The view “λ and π” shows both curves for one seed; runs give the others.",
        "The shortcut is biased by how much the clients' B differ. A large λ hides the differences, a small one "
        "shows them.",
    ),
    explanation="Run both solvers at λ = 0.0001 and at λ = 0.000001, 10 seeds each. {verdict}",
    claim=two_dampings,
)


MARGIN, NEAR = 30.0, 10.0  # points; far inside what was measured


def by_start(outcome: Outcome) -> tuple[Hashable, tuple[str, str]] | None:
    """Runs that differ in the kind of start: the setting without it, and the start with the method."""
    if outcome.method not in ("fedavg", "fedlpa"):
        return None
    settings, recipe = outcome.conditions
    return (dataclasses.replace(settings, init="same"), recipe), (settings.init, outcome.method)


def different_starts(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 4: with different initial models FedLPA stays where it was, far above the average."""
    seen = []
    for starts in alike(outcomes, by_start).values():
        fedavg, fedlpa, same = starts["different", "fedavg"], starts["different", "fedlpa"], starts["same", "fedlpa"]
        own = set(fedavg) & set(fedlpa)
        if len(own & set(same)) < ENOUGH:
            seen.append(f"{len(own)} seeds with different starts and both methods, {len(same)} with the same start")
            continue
        ahead = Gap("FedLPA − FedAvg with different starts", fedlpa, fedavg)
        lost = Gap("FedLPA, different − same start", fedlpa, same)
        seen.append(f"{ahead.words()}; {lost.words()}")
        if ahead.band.mean > max(MARGIN, ahead.band.half_width) and lost.band.mean > -NEAR:
            return Verdict("right", f"Supported by your runs. {seen[-1]}.")
    return Verdict(
        "wrong",
        "Still to show, with 3 seeds or more: FedLPA and FedAvg with different starts, and FedLPA with the same start "
        f"in the same setting. Your record: {'; '.join(seen) or 'no run of fedlpa or fedavg'}.",
    )


def both_starts() -> Outcomes:
    """Runs that support the claim of exercise 4."""
    return Outcomes(o for init in ("same", "different") for o in runs(["fedavg", "fedlpa"], init=init))


q4 = ProblemView.record(
    4,
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
