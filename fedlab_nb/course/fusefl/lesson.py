"""FuseFL: what judges its exercises (`lesson.q1`, `lesson.q2`), and a number off a
picture.
"""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs  # noqa: F401 percent for the notebook
from ..kit import Build, Verdict, exercises
from ..kit.claims import CLEAR, figures_of, find_gaps, group_by_options, report_missing

_, halves = figures_of(__name__, "halves")


def lost(picture: Picture) -> int:
    """Whole percent, off the view's table: mean accuracy of the cue clients on test images without
    a cue.
    """
    rows = [row for row in picture.table if row["cue"] == "yes"]
    return round(mean(int(row["test, without a cue"].split()[0]) for row in rows))


# ------------------------------------------------------------------------------ 1: calibration
MILD = 0.3  # exercise 1 is about larger α than the 0.1 that the lesson prints


def calibration_helps(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 1: in one setting the calibrated classifier is clearly better than the
    averaged one. It is found on validation images; the test images are looked at for it alone.
    """
    mild = [o for o in outcomes if o.method == "fusefl" and o.settings.alpha >= MILD]

    def describe(shared: tuple) -> str:
        conditions, *options = shared
        return f"α = {conditions[0].alpha:g}, K = {dict(options)['blocks']}"

    place = group_by_options("fusefl", "head")
    found = []
    for gap in find_gaps(mild, place, "ccvr", "average", describe):
        if gap.kind == CLEAR:
            tested = gap.test_gap.mean
            measured = gap.words("both classifiers")
            return Verdict(
                "right",
                f"Calibrated − averaged at {measured}. On the test images: {tested} points.",
            )
        if gap.differences:
            found.append(gap.words("both classifiers"))
    wanted = "a setting in which the calibrated classifier is clearly better than the averaged one"
    nothing = f"no runs of both classifiers at the same α, {MILD:g} or more"
    return report_missing([wanted], found, nothing)


def solution_runs() -> Outcomes:
    """Runs that answer exercise 1."""
    outcomes = []
    for knobs in ({}, {"head": "average"}):
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


def draw_hidden_case(
    stream: np.random.Generator, m: int, n: int, r: int, o: int
) -> tuple[np.ndarray, ...]:
    """Outputs below, adaptors and blocks."""
    h = relu(stream.normal(size=(m, n, r)))
    adaptors = stream.normal(size=(m, r, m * r))
    shifts = stream.normal(size=(m, r))
    blocks = stream.normal(size=(m, o, r))
    biases = stream.normal(size=(m, o))
    return h, adaptors, shifts, blocks, biases


q1, q2 = exercises(
    __name__,
    q1=(calibration_helps, solution_runs),
    q2=Build(fused_block, SIZES, draw_hidden_case, SLIPS),
)
