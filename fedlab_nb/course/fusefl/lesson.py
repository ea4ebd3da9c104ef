"""FuseFL: what judges its exercises (`lesson.q1`, `lesson.q2`), and a number off a
picture.
"""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs  # noqa: F401 percent for the notebook
from ..kit import Build, Verdict, exercises
from ..kit.claims import CLEAR, SHORT, chosen_gaps, figures_of, group_by_options, report_missing

_, halves = figures_of(__name__, "halves")


def lost(picture: Picture) -> int:
    """Whole percent, off the view's table: mean accuracy of the cue clients on test images without
    a cue.
    """
    rows = [row for row in picture.table if row["cue"] == "yes"]
    return round(mean(int(row["test, without a cue"].split()[0]) for row in rows))


# ---------------------------------------------------------------------------------- 1: two halves
MILD = 0.3  # exercise 1 is about larger α than the 0.1 that the lesson prints


class Comparison(NamedTuple):
    """Two variants of FuseFL, (blocks, head) each, and what the gap between them is called."""

    name: str
    better: tuple[int, str]
    worse: tuple[int, str]


def list_comparisons(outcomes: Sequence[Outcome]) -> list[Comparison]:
    """What the runs allow to compare: calibrated with not calibrated, and fused with not fused."""
    comparisons = []
    variants = {(o.options["blocks"], o.options["head"]) for o in outcomes}
    for blocks, head in sorted(variants):
        if head != "ccvr":
            name = f"calibrated − not, K = {blocks}"
            comparisons.append(Comparison(name, (blocks, "ccvr"), (blocks, head)))
        elif blocks > 1:
            name = f"fused (K = {blocks}) − not fused, both calibrated"
            comparisons.append(Comparison(name, (blocks, "ccvr"), (1, "ccvr")))
    return comparisons


def calibration_and_fusion(outcomes: Sequence[Outcome]) -> Verdict:
    """Right where, under one setting, calibration is clearly better than none, and fusing was
    measured beside it. It is found on validation images; the test images are looked at for it
    alone.
    """
    mild = [o for o in outcomes if o.method == "fusefl" and o.settings.alpha >= MILD]
    place = group_by_options("fusefl", "blocks", "head")
    gaps_by_comparison = []  # for each comparison a gap for each setting
    for comparison in list_comparisons(mild):

        def describe(_: object, name: str = comparison.name) -> str:
            return name

        gaps = chosen_gaps(mild, place, comparison.better, comparison.worse, describe)
        gaps_by_comparison.append(gaps)
    found = []
    for gaps in zip(*gaps_by_comparison, strict=True):  # the gaps of one setting
        calibrated = [g for g in gaps if g.kind == CLEAR and g.name.startswith("calibrated")]
        fused = [g for g in gaps if g.kind != SHORT and g.name.startswith("fused")]
        if calibrated and fused:
            pair = (calibrated[0], fused[0])
            measured = "; ".join(gap.words() for gap in pair)
            tested = " and ".join(gap.test_gap.mean for gap in pair)
            return Verdict("right", f"Measured: {measured}. On the test images: {tested} points.")
        found += [gap.words("both") for gap in gaps if gap.differences]
    wanted = (
        "calibration that is clearly better than none, with Blocks = 1 and Blocks = 2 under the same "
        "setting"
    )
    nothing = f"nothing that can be compared at α = {MILD:g} or more"
    return report_missing([wanted], found, nothing)


def halves_runs() -> Outcomes:
    """Runs that answer exercise 1."""
    outcomes = []
    for knobs in ({}, {"head": "average"}, {"blocks": 1}):
        outcomes += runs("fusefl", 1, clients=5, seeds=MANY, **knobs)
    return Outcomes(outcomes)


# ---------------------------------------------------------------------------- the function to build
def fused_block(h, adaptors, shifts, blocks, biases):
    joined = np.concatenate(list(h), axis=1)  # [N, M r]: all clients' copies side by side
    outputs = []
    for k in range(len(h)):
        adapted = joined @ adaptors[k].T + shifts[k]  # [N, r]
        outputs.append(np.maximum(adapted @ blocks[k].T + biases[k], 0))  # [N, o]
    return np.stack(outputs)


def linear(x: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """`[M, N, o]`: one linear layer for each client, of the same `x [N, i]` or each its own `x [M,
    N, i]`.
    """
    return x @ weights.transpose(0, 2, 1) + biases[:, None]


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def average(h, adaptors, shifts, blocks, biases):
    return relu(linear(h.mean(0), blocks, biases))


def alone(h, adaptors, shifts, blocks, biases):
    """Each client reads its own block."""
    return relu(linear(h, blocks, biases))


def rows_cut(h, adaptors, shifts, blocks, biases):
    """reshape cuts the numbers as they lie in memory, client after client, and mixes images."""
    joined = h.reshape(h.shape[1], -1)
    return relu(linear(linear(joined, adaptors, shifts), blocks, biases))


def relu_after_adaptor(h, adaptors, shifts, blocks, biases):
    adapted = relu(linear(np.hstack(h), adaptors, shifts))
    return relu(linear(adapted, blocks, biases))


def no_relu(h, adaptors, shifts, blocks, biases):
    return linear(linear(np.hstack(h), adaptors, shifts), blocks, biases)


SLIPS = {
    "average": average,
    "alone": alone,
    "rows_cut": rows_cut,
    "relu_after_adaptor": relu_after_adaptor,
    "no_relu": no_relu,
}


# M, N, r, o: first all alike, where a wrong axis gives numbers; then mixed
SIZES = ((3, 3, 3, 3), (3, 5, 4, 2), (2, 4, 3, 6), (4, 6, 2, 3))


def hidden(stream: np.random.Generator, m: int, n: int, r: int, o: int) -> tuple[np.ndarray, ...]:
    """Outputs below, adaptors and blocks."""
    h = relu(stream.normal(size=(m, n, r)))
    adaptors = stream.normal(size=(m, r, m * r))
    shifts = stream.normal(size=(m, r))
    blocks = stream.normal(size=(m, o, r))
    biases = stream.normal(size=(m, o))
    return h, adaptors, shifts, blocks, biases


q1, q2 = exercises(
    __name__, q1=(calibration_and_fusion, halves_runs), q2=Build(fused_block, SIZES, hidden, SLIPS)
)
