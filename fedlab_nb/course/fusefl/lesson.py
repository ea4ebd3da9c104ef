"""Lesson 06, FuseFL: what judges its exercises (`lesson.q1`, `lesson.q2`), and a number off a picture."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs  # noqa: F401 percent for the notebook
from ..kit import Build, Verdict, exercises
from ..kit.claims import CLEAR, SHORT, chosen_gaps, figures_of, group_by_options, report_missing

_, halves = figures_of(__name__, "halves")


def lost(picture: Picture) -> int:
    """Whole percent, off the view's table: mean accuracy of the cue clients on test images without a cue."""
    rows = [row for row in picture.table if row["cue"] == "yes"]
    return round(mean(int(row["test, without a cue"].split()[0]) for row in rows))


# ---------------------------------------------------------------------------------- 1: two halves
MILD = 0.3  # exercise 1 is about larger α than the 0.1 that the lesson prints


def calibration_and_fusion(outcomes: Sequence[Outcome]) -> Verdict:
    """Right where, under one setting, calibration is clearly better than none, and fusing was measured beside it. It is
    found on validation images; the test images are looked at for it alone."""

    mild = [o for o in outcomes if o.method == "fusefl" and o.settings.alpha >= MILD]
    pairs = []  # what a gap is called, and the two whose gap it is
    for k, head in sorted({(o.options["blocks"], o.options["head"]) for o in mild}):
        if head != "ccvr":
            pairs.append((f"calibrated − not, K = {k}", (k, "ccvr"), (k, head)))
        elif k > 1:
            pairs.append(
                (f"fused (K = {k}) − not fused, both calibrated", (k, "ccvr"), (1, "ccvr"))
            )
    place, seen = group_by_options("fusefl", "blocks", "head"), []
    for gaps in zip(
        *(chosen_gaps(mild, place, *two, lambda _, name=name: name) for name, *two in pairs),
        strict=True,
    ):
        good = [gap for gap in gaps if gap.kind == CLEAR and gap.name.startswith("calibrated")]
        beside = [gap for gap in gaps if gap.kind != SHORT and gap.name.startswith("fused")]
        if good and beside:
            both = good[0], beside[0]
            measured, tested = (
                "; ".join(g.words() for g in both),
                " and ".join(g.test_gap.mean for g in both),
            )
            return Verdict("right", f"Measured: {measured}. On the test images: {tested} points.")
        seen += [gap.words("both") for gap in gaps if gap.differences]
    wanted = "calibration that is clearly better than none, with Blocks = 1 and Blocks = 2 under the same setting"
    return report_missing([wanted], seen, f"nothing that can be compared at α = {MILD:g} or more")


def halves_runs() -> Outcomes:
    """Runs that answer exercise 1."""
    knobs = ({}, {"head": "average"}, {"blocks": 1})
    return Outcomes(o for own in knobs for o in runs("fusefl", 1, clients=5, seeds=MANY, **own))


# ---------------------------------------------------------------------------------- the function to build
def fused_block(h, adaptors, shifts, blocks, biases):
    joined = np.concatenate(list(h), axis=1)  # [N, M r]: all clients' copies side by side
    outputs = []
    for k in range(len(h)):
        adapted = joined @ adaptors[k].T + shifts[k]  # [N, r]
        outputs.append(np.maximum(adapted @ blocks[k].T + biases[k], 0))  # [N, o]
    return np.stack(outputs)


def linear(x: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """`[M, N, o]`: one linear layer for each client, of the same `x [N, i]` or each its own `x [M, N, i]`."""
    return x @ weights.transpose(0, 2, 1) + biases[:, None]


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def block(join=np.hstack, middle=lambda x: x, last=relu) -> Any:
    """The block with one part changed: how the outputs below are joined, and what follows each of the two layers."""
    return lambda h, a, shifts, w, biases: last(
        linear(middle(linear(join(h), a, shifts)), w, biases)
    )


SLIPS = {
    "average": lambda h, adaptors, shifts, blocks, biases: relu(linear(h.mean(0), blocks, biases)),
    # Each client reads its own block.
    "alone": lambda h, adaptors, shifts, blocks, biases: relu(linear(h, blocks, biases)),
    # reshape cuts the numbers as they lie in memory, client after client, and mixes images.
    "rows_cut": block(join=lambda h: h.reshape(h.shape[1], -1)),
    "relu_after_adaptor": block(middle=relu),
    "no_relu": block(last=lambda x: x),
}


# M, N, r, o: first all alike, where a wrong axis gives numbers; then mixed
SIZES = ((3, 3, 3, 3), (3, 5, 4, 2), (2, 4, 3, 6), (4, 6, 2, 3))


def hidden(stream: np.random.Generator, m: int, n: int, r: int, o: int) -> tuple[np.ndarray, ...]:
    """Outputs below, adaptors and blocks."""
    h, *layers = (
        stream.normal(size=shape) for shape in ((m, n, r), (m, r, m * r), (m, r), (m, o, r), (m, o))
    )
    return relu(h), *layers


q1, q2 = exercises(
    __name__, q1=(calibration_and_fusion, halves_runs), q2=Build(fused_block, SIZES, hidden, SLIPS)
)
