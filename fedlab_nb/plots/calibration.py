"""Pictures of calibration: reliability diagrams (the share of correct answers against the
confidence, bin by bin), and the calibration error.
"""

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from .array_types import CountPerBin, ValuePerBin
from .kit import describe_picture
from .marks import attach_hover_text
from .series import MethodResults, join_setting_texts, select_results_with_accuracies
from .style import (
    DOTS,
    FIFTHS,
    QUIET,
    Picture,
    add_legend,
    drawing,
    dress,
    is_frame_narrow,
    set_percent_axis,
)
from .words import TableRows, build_table, capitalize_first_letter, format_percent, join_with_and

MAX_LINES = 8  # more lines could not be told apart; the table has every method
MIN_ANSWERS = 5  # the fewest answers in a bin that is drawn; fewer would be noise


class ConfidenceBins(NamedTuple):
    """For each bin of confidence `[B]`: mean confidence and share correct (nan if it is empty),
    and number of answers."""

    confidence: ValuePerBin
    accuracy: ValuePerBin
    counts: CountPerBin


class CalibrationMeasures(NamedTuple):
    """Mean confidence (0-1), expected calibration error (0-1) and negative log-likelihood (nats)."""

    confidence: float
    ece: float
    nll: float


def draw_reliability_diagrams(series: Sequence[MethodResults]) -> Picture:
    """Draw the reliability diagrams, with the ECE, of the series whose scores are probabilities.
    The bins count the answers of all seeds.
    """
    with_probabilities = []
    without_probabilities = []
    for s in select_results_with_accuracies(series):
        if has_probabilities(s):
            with_probabilities.append(s)
        else:
            without_probabilities.append(s)
    with drawing() as (figure, ax):
        title = "Above the dots: too modest; below: too sure"
        dress(ax, title=title, x="confidence", y="share right", grid="both", size=9)
        ax.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=DOTS)
        for s in with_probabilities[:MAX_LINES]:
            draw_reliability_line(ax, s)
        ax.set(xlim=(0, 1), ylim=(0, 1))
        for axis in "xy":
            set_percent_axis(ax, axis, ticks=FIFTHS)
        if with_probabilities:
            draw_calibration_legend(ax)
    title = "Reliability diagrams: the share of right answers against the confidence"
    text = describe_best_and_worst_calibration(with_probabilities, without_probabilities)
    rows = make_calibration_table(with_probabilities, without_probabilities)
    detail = "; ".join(format_calibration_errors(s) for s in with_probabilities)
    setting = join_setting_texts(series)
    return describe_picture(
        figure, title, setting, text, rows, detail=f"{detail}." if with_probabilities else ""
    )


def draw_reliability_line(ax: Axes, method_results: MethodResults) -> None:
    """Draw one line of points, for the bins that have enough answers."""
    bins = merge_bins_of_seeds(method_results)
    is_shown = bins.counts >= MIN_ANSWERS
    style = {
        "color": method_results.look.colour,
        "marker": method_results.look.marker,
        "ls": (0, (4, 2)) if method_results.pinned else method_results.look.line,
        "alpha": 0.55 if method_results.pinned else 1,
        "lw": 1.6,
        "ms": 5,
        "clip_on": False,
    }
    label = f"{method_results.two_line_label} ({format_percent(average_calibration_over_seeds(method_results).ece)})"
    line = ax.plot(bins.confidence[is_shown], bins.accuracy[is_shown], label=label, **style)[0]
    attach_hover_text(
        line,
        f"{method_results.name}\n{describe_calibration(method_results)}",
        method=method_results.highlight_key,
    )


def draw_calibration_legend(ax: Axes) -> None:
    """List the methods with their ECE on the right or, in a narrow frame, below."""
    position: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    if is_frame_narrow():
        position = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.11), "ncols": 2}
    add_legend(ax, title="calibration error (ECE)", **position)


def has_probabilities(method_results: MethodResults) -> bool:
    """Return whether the scores of all seeds are probabilities."""
    return bool(method_results.calibration) and all(
        c.nll is not None for c in method_results.calibration.values()
    )


def merge_bins_of_seeds(method_results: MethodResults) -> ConfidenceBins:
    """Merge the bins of all seeds."""
    calibrations = list(method_results.calibration.values())
    counts = np.sum([seed_calibration.counts for seed_calibration in calibrations], 0)
    correct = np.sum([seed_calibration.right for seed_calibration in calibrations], 0)
    confidence = np.sum([seed_calibration.confidence for seed_calibration in calibrations], 0)
    divisor = np.where(counts > 0, counts, np.nan)
    return ConfidenceBins(confidence / divisor, correct / divisor, counts)


def average_calibration_over_seeds(method_results: MethodResults) -> CalibrationMeasures:
    """Average the measures over the seeds."""
    calibrations = list(method_results.calibration.values())
    confidence = mean(one.mean_confidence for one in calibrations)
    ece = mean(one.ece for one in calibrations)
    nll = mean(one.nll for one in calibrations)
    return CalibrationMeasures(confidence, ece, nll)


def describe_best_and_worst_calibration(
    with_probabilities: Sequence[MethodResults], without_probabilities: Sequence[MethodResults]
) -> str:
    """Describe the best and the worst calibrated method. References count only if there is nothing
    else.

    with_probabilities: series whose scores are probabilities
    without_probabilities: the other series
    """
    text = "No result with probabilities yet."
    if with_probabilities:
        rivals = [s for s in with_probabilities if not s.bound] or list(with_probabilities)
        ranked = sorted(rivals, key=lambda s: average_calibration_over_seeds(s).ece)
        best = ranked[0]
        worst = ranked[-1]
        text = (
            f"{capitalize_first_letter(best.name)} is calibrated best: {describe_calibration(best)}"
        )
        if len(ranked) > 1:
            is_too_sure = average_calibration_over_seeds(worst).confidence > worst.mean
            fault = "too sure" if is_too_sure else "not sure enough"
            text += f"; {worst.name} is {fault}: {describe_calibration(worst)}"
        text += "."
    if without_probabilities:
        text += f" {join_with_and([s.name for s in without_probabilities])}: no probabilities are known."
    return text


def describe_calibration(method_results: MethodResults) -> str:
    """Say how sure and how right a method is: 'it says 62 % on average and is correct on 60 %'."""
    confidence, _, _ = average_calibration_over_seeds(method_results)
    return f"it says {format_percent(confidence)} on average and is correct on {format_percent(method_results.mean)}"


def format_calibration_errors(method_results: MethodResults) -> str:
    """Format the calibration errors of a method: 'FENS: ECE 5 %, NLL 1.08'."""
    _, ece, nll = average_calibration_over_seeds(method_results)
    return f"{method_results.name}: ECE {format_percent(ece)}, NLL {nll:.2f}"


def make_calibration_table(
    with_probabilities: Sequence[MethodResults], without_probabilities: Sequence[MethodResults]
) -> TableRows:
    """Make the table with one row per method, those without probabilities last."""
    rows = []
    for s in with_probabilities:
        confidence, ece, nll = average_calibration_over_seeds(s)
        measures = (format_percent(confidence), f"{100 * ece:.1f} %", f"{nll:.3f}")
        rows.append((s.name, format_percent(s.mean), *measures))
    for s in without_probabilities:
        rows.append((s.name, format_percent(s.mean), "", "", ""))
    return build_table("method | accuracy | mean confidence | ECE | NLL", rows)
