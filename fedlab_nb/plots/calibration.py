"""Calibration: reliability diagrams (share of correct answers against confidence, bin by bin) and their error."""

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from .kit import describe_picture
from .series import Series, join_settings, select_finished
from .style import DOTS, FIFTHS, QUIET, Picture, drawing, dress, is_narrow, legend, set_percent_axis
from .vector import mark
from .words import build_table, capitalize, join_words, percent

MOST_LINES = 8  # more lines cannot be told apart; bars and table have every method
FEWEST_ANSWERS = 5  # in a bin, below which no point is drawn


class Bins(NamedTuple):
    """For each bin of confidence `[B]`: mean confidence and share correct (nan where it is empty),
    and number of answers."""

    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray


class CalibrationMeasures(NamedTuple):
    """Mean confidence and ECE (0-1), and NLL (nats)."""

    confidence: float
    ece: float
    nll: float


def draw_calibration(series: Sequence[Series]) -> Picture:
    """Draw diagrams of the series whose scores are probabilities, counts of all seeds together, with
    their ECE."""
    done = []
    unknown = []
    for s in select_finished(series):
        if has_probabilities(s):
            done.append(s)
        else:
            unknown.append(s)
    with drawing() as (figure, ax):
        title = "Above the dots: too modest; below: too sure"
        dress(ax, title=title, x="confidence", y="share right", grid="both", size=9)
        ax.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=DOTS)
        for s in done[:MOST_LINES]:
            draw_reliability(ax, s)
        ax.set(xlim=(0, 1), ylim=(0, 1))
        for axis in "xy":
            set_percent_axis(ax, axis, ticks=FIFTHS)
        if done:
            draw_legend(ax)
    title = "Reliability diagrams: the share of right answers against the confidence"
    text = describe_best_and_worst(done, unknown)
    rows = make_calibration_table(done, unknown)
    detail = "; ".join(describe_errors(s) for s in done)
    setting = join_settings(series)
    return describe_picture(figure, title, setting, text, rows, detail=f"{detail}." if done else "")


def draw_reliability(ax: Axes, s: Series) -> None:
    """One line of points, of the bins that have enough answers."""
    bins = merge_bins(s)
    shown = bins.counts >= FEWEST_ANSWERS
    style = {
        "color": s.look.colour,
        "marker": s.look.marker,
        "ls": (0, (4, 2)) if s.pinned else s.look.line,
        "alpha": 0.55 if s.pinned else 1,
        "lw": 1.6,
        "ms": 5,
        "clip_on": False,
    }
    label = f"{s.lines} ({percent(average_measures(s).ece)})"
    line = ax.plot(bins.confidence[shown], bins.accuracy[shown], label=label, **style)[0]
    mark(line, f"{s.name}\n{describe_calibration(s)}", method=s.highlight_key)


def draw_legend(ax: Axes) -> None:
    """The methods with their ECE, at the right or, in a narrow frame, below."""
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    if is_narrow():
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.11), "ncols": 2}
    legend(ax, title="calibration error (ECE)", **place)


def has_probabilities(s: Series) -> bool:
    """Whether the scores of all seeds are probabilities."""
    return bool(s.calibration) and all(c.nll is not None for c in s.calibration.values())


def merge_bins(s: Series) -> Bins:
    """Merge the bins of all seeds."""
    seeds = list(s.calibration.values())
    counts = np.sum([one.counts for one in seeds], 0)
    correct = np.sum([one.right for one in seeds], 0)
    confidence = np.sum([one.confidence for one in seeds], 0)
    divisor = np.where(counts > 0, counts, np.nan)
    return Bins(confidence / divisor, correct / divisor, counts)


def average_measures(s: Series) -> CalibrationMeasures:
    """Average the measures over the seeds."""
    seeds = list(s.calibration.values())
    confidence = mean(one.mean_confidence for one in seeds)
    ece = mean(one.ece for one in seeds)
    nll = mean(one.nll for one in seeds)
    return CalibrationMeasures(confidence, ece, nll)


def describe_best_and_worst(done: Sequence[Series], unknown: Sequence[Series]) -> str:
    """Describe the best and the worst calibrated method; references only where there is nothing else.

    done: series with probabilities
    unknown: series without
    """
    text = "No result with probabilities yet."
    if done:
        rivals = [s for s in done if not s.bound] or list(done)
        ranked = sorted(rivals, key=lambda s: average_measures(s).ece)
        best = ranked[0]
        worst = ranked[-1]
        text = f"{capitalize(best.name)} is calibrated best: {describe_calibration(best)}"
        if len(ranked) > 1:
            is_too_sure = average_measures(worst).confidence > worst.mean
            fault = "too sure" if is_too_sure else "not sure enough"
            text += f"; {worst.name} is {fault}: {describe_calibration(worst)}"
        text += "."
    if unknown:
        text += f" {join_words([s.name for s in unknown])}: no probabilities are known."
    return text


def describe_calibration(s: Series) -> str:
    """'it says 62 % on average and is correct on 60 %'."""
    confidence, _, _ = average_measures(s)
    return f"it says {percent(confidence)} on average and is correct on {percent(s.mean)}"


def describe_errors(s: Series) -> str:
    """'FENS: ECE 5 %, NLL 1.08'."""
    _, ece, nll = average_measures(s)
    return f"{s.name}: ECE {percent(ece)}, NLL {nll:.2f}"


def make_calibration_table(
    done: Sequence[Series], unknown: Sequence[Series]
) -> list[dict[str, Any]]:
    """Make the table of the numbers: a row a method, those without probabilities last."""
    rows = []
    for s in done:
        confidence, ece, nll = average_measures(s)
        measures = (percent(confidence), f"{100 * ece:.1f} %", f"{nll:.3f}")
        rows.append((s.name, percent(s.mean), *measures))
    for s in unknown:
        rows.append((s.name, percent(s.mean), "", "", ""))
    return build_table("method | accuracy | mean confidence | ECE | NLL", rows)
