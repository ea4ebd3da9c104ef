"""Lesson 06, FuseFL: its worked numbers. Its exercises (`lesson.q1` …) are in `exercises`.

Every number that the lesson quotes is computed when the reader runs the cell, from real runs (digits, five clients,
three seeds, the classroom preset) or from the paper's formulas; nothing is written into the text by hand.
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from ...labs.fusefl.storage import PAPER, bill
from ...plots import Picture
from ...plots.words import plural, points
from ...studies import Outcome, Outcomes, lesson_runs
from ...studies.lesson_runs import ALPHA, MANY, accuracies, alike
from ...studies.statistics import difference
from ..kit import CLEAR, SHORT, Build, Gap, Verdict, exercises, still

CLIENTS = 5


def runs(methods: str | Sequence[str] = "fusefl", alpha: float = ALPHA, **settings: Any) -> Outcomes:
    """The lesson's runs; FuseFL's knobs are given as `blocks=1`, `head="average"`."""
    return lesson_runs.runs(methods, alpha, clients=CLIENTS, **settings)


def change(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    """'+3 ± 1 points' or '−1 ± 2 points, within the noise': mean of a − b over the seeds."""
    of = difference(a, b)
    size = f"{100 * of.mean:+.0f}".replace("-", "−")
    noise = ", within the noise" if of.is_noise else ""
    return f"{'0' if size in ('+0', '−0') else size} ± {100 * of.half_width:.0f} points{noise}"


# ---------------------------------------------------------------------------------- the shortcut
def lost(picture: Picture) -> int:
    """Whole percent, off the view's table: mean accuracy of the cue clients on test images without a cue."""
    rows = [row for row in picture.table if row["cue"] == "yes"]
    return round(mean(int(row["test, without a cue"].split()[0]) for row in rows))


# ---------------------------------------------------------------------------------- the sums
def networks(clients: int, blocks: int) -> float:
    """Size of the fused ResNet-18 (conv adaptor) in ordinary networks, to one decimal."""
    made = bill(PAPER, clients, blocks)
    return round(made.storage / made.single, 1)


# ---------------------------------------------------------------------------------- the two halves
EFFECTS = ("it falls by more than 10 points", "it changes by less than 5 points", "it rises by more than 10 points")


def without_fusion() -> str:
    """Which of EFFECTS (or what else) taking the fusion away, but not the calibration, has at α = 0.1."""
    change = difference(accuracies(runs(blocks=1), "fusefl"), accuracies(runs(), "fusefl")).mean
    if abs(change) < 0.05:
        return EFFECTS[1]
    return EFFECTS[0] if change < -0.1 else EFFECTS[2] if change > 0.1 else "by 5 to 10 points"


# ---------------------------------------------------------------------------------- reality check


# ---------------------------------------------------------------------------------- 2: two halves
class Measured(Gap):
    """A gap as a statement: `name` says what a − b is."""

    def words(self, both: str = "") -> str:
        """'calibration at K = 2 adds +56 ± 6 points', or that there are too few seeds."""
        if self.kind == SHORT:
            return f"{self.name} cannot be told from {plural(len(self.points), 'seed')}"
        return f"{self.name} {change(self.a, self.b)}"


NOTHING = "nothing that can be compared"
MILD = 0.3  # exercise 2 is about larger α than the 0.1 that the lesson prints


def calibration_and_fusion(outcomes: Sequence[Outcome]) -> Verdict:
    """Right where, under one setting, calibration is clearly better than none, and fusing was measured beside it."""

    def place(outcome: Outcome) -> tuple[Hashable, Hashable] | None:
        if outcome.method != "fusefl" or outcome.settings.alpha < MILD:
            return None
        options = dict(outcome.options)
        variant = options.pop("blocks"), options.pop("head")
        return (outcome.conditions, *options.items()), variant

    seen: list[str] = []
    for variants in alike(outcomes, place).values():
        calibration = [
            Measured(f"calibration at K = {k} adds", variants[k, "ccvr"], other)
            for (k, head), other in variants.items()
            if head != "ccvr" and (k, "ccvr") in variants
        ]
        fusion = [
            Measured(f"fusing (K = {k} against 1) changes", fused, variants[1, "ccvr"])
            for (k, head), fused in variants.items()
            if head == "ccvr" and k > 1 and (1, "ccvr") in variants
        ]
        good = [gap.words().replace("+", "") for gap in calibration if gap.kind == CLEAR]
        beside = [gap.words() for gap in fusion if gap.kind != SHORT]
        if good and beside:
            return Verdict("right", f"Measured: {good[0]}; {beside[0]}.")
        seen += [gap.words() for gap in (*calibration, *fusion)]
    wanted = "calibration that is clearly better than none, with Blocks = 1 and Blocks = 2 under the same setting"
    return still([wanted], seen, f"{NOTHING} at α = {MILD:g} or more")


def halves_runs() -> Outcomes:
    """Runs that answer exercise 2."""
    return Outcomes(o for knobs in ({}, {"head": "average"}, {"blocks": 1}) for o in runs(alpha=1, seeds=MANY, **knobs))


# ---------------------------------------------------------------------------------- 3: cue clients
def hurt_by_cues(outcomes: Sequence[Outcome]) -> Verdict:
    """Right where the ensemble is clearly worse with cue clients than without, all else equal; FuseFL is told."""

    def place(outcome: Outcome) -> tuple[Hashable, Hashable] | None:
        settings, recipe = outcome.conditions
        return (dataclasses.replace(settings, spurious=""), recipe), (outcome.method, settings.spurious)

    losses, others = [], []
    for variants in alike(outcomes, place).values():
        for cues in [cues for method, cues in variants if method == "ensemble" and cues]:
            pairs = [(variants.get((method, ""), {}), variants[method, cues]) for method in ("ensemble", "fusefl")]
            ensemble, fusefl = (Measured(f"with the cue at clients {cues} the ensemble loses", *pair) for pair in pairs)
            if ensemble.kind == CLEAR:
                losses.append(ensemble.words().replace("+", "") + _fusefl(fusefl))
            elif ensemble.a:
                others.append(ensemble.words())
    if losses:
        return Verdict("right", f"Supported by your runs: {losses[0]}.")
    wanted = "runs of the ensemble with and without cue clients, all else equal, with a clear difference"
    return still([wanted], others, NOTHING)


def _fusefl(loss: Gap) -> str:
    """What FuseFL loses under the same two settings, where there are enough seeds."""
    if loss.kind == SHORT:
        return ""
    of = difference(loss.a, loss.b)
    return f", FuseFL {points(of, '')}" + (", within the noise" if of.is_noise else "")


def cue_runs() -> Outcomes:
    """Runs that answer exercise 3."""
    both = ["fusefl", "ensemble"]
    return Outcomes(o for cues in ("", "0,1") for o in runs(both, 0.5, seeds=MANY, spurious=cues))


# ---------------------------------------------------------------------------------- the function to build
def fused_block(h, adaptors, shifts, blocks, biases):
    joined = np.concatenate(list(h), axis=1)  # [N, M r]: all clients' copies side by side
    outputs = []
    for k in range(len(h)):
        adapted = joined @ adaptors[k].T + shifts[k]  # [N, r]
        outputs.append(np.maximum(adapted @ blocks[k].T + biases[k], 0))  # [N, o]
    return np.stack(outputs)


def side_by_side(h: np.ndarray) -> np.ndarray:
    """`[N, M r]` of `h [M, N, r]`."""
    return np.concatenate(list(h), axis=1)


def linear(x: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """`[M, N, o]`: one linear layer for each client, of the same `x [N, i]` or each its own `x [M, N, i]`."""
    return x @ weights.transpose(0, 2, 1) + biases[:, None]


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def of(joined: np.ndarray, adaptors, shifts, blocks, biases) -> np.ndarray:
    """The right block, on another input `[N, M r]`."""
    return relu(linear(linear(joined, adaptors, shifts), blocks, biases))


def average(h, adaptors, shifts, blocks, biases):
    return relu(linear(h.mean(0), blocks, biases))


def alone(h, adaptors, shifts, blocks, biases):
    """Each client reads its own block."""
    return relu(linear(h, blocks, biases))


def rows_cut(h, adaptors, shifts, blocks, biases):
    """reshape cuts the numbers as they lie in memory, client after client, and mixes images."""
    return of(h.reshape(h.shape[1], -1), adaptors, shifts, blocks, biases)


def relu_after_adaptor(h, adaptors, shifts, blocks, biases):
    return relu(linear(relu(linear(side_by_side(h), adaptors, shifts)), blocks, biases))


def no_relu(h, adaptors, shifts, blocks, biases):
    return linear(linear(side_by_side(h), adaptors, shifts), blocks, biases)


def hidden_inputs() -> list[tuple[np.ndarray, ...]]:
    """Outputs below, adaptors and blocks: first with all sizes alike, where a wrong axis gives numbers; then mixed."""
    stream, made = np.random.default_rng(6), []
    for m, n, r, o in ((3, 3, 3, 3), (3, 5, 4, 2), (2, 4, 3, 6), (4, 6, 2, 3)):
        shapes = (m, n, r), (m, r, m * r), (m, r), (m, o, r), (m, o)
        h, *layers = (stream.normal(size=shape) for shape in shapes)
        made.append((relu(h), *layers))
    return made


FUSED = Build(fused_block, hidden_inputs, (average, alone, rows_cut, relu_after_adaptor, no_relu))


q1, q2, q3, q4 = exercises(__name__, q2=(calibration_and_fusion, halves_runs), q3=(hurt_by_cues, cue_runs), q4=FUSED)
