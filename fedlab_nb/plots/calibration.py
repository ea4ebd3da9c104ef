"""Calibration: reliability diagrams (share right against confidence, bin by bin) and the size of the error."""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from .kit import told
from .series import Series, finished, settings_of
from .style import DOTS, FIFTHS, QUIET, Picture, drawing, dress, legend, narrow, percent_axis
from .vector import mark
from .words import listed, percent, tabled

MOST_LINES = 8  # more lines cannot be told apart; bars and table have every method
LEAST = 5  # answers in a bin, below which no point is drawn


def calibration(series: Sequence[Series]) -> Picture:
    """Diagrams of the series whose scores are probabilities, counts of all seeds together, with their ECE."""
    done = [s for s in finished(series) if known(s)]
    without = [s for s in finished(series) if not known(s)]
    with drawing() as (figure, ax):
        title = "Above the dots: too modest; below: too sure"
        dress(ax, title=title, x="confidence", y="share right", grid="both", size=9)
        ax.plot([0, 1], [0, 1], color=QUIET, lw=1, ls=DOTS)
        for s in done[:MOST_LINES]:
            x, y, counts = bins(s)
            shown = counts >= LEAST
            style = {
                "color": s.look.colour,
                "marker": s.look.marker,
                "ls": (0, (4, 2)) if s.pinned else s.look.line,
            }
            label = f"{s.lines} ({percent(averages(s)[1])})"
            faint = {"alpha": 0.55 if s.pinned else 1, "clip_on": False}
            line = ax.plot(x[shown], y[shown], lw=1.6, ms=5, label=label, **faint, **style)[0]
            mark(line, f"{s.name}\n{against_truth(s)}", method=s.held_as)
        ax.set(xlim=(0, 1), ylim=(0, 1))
        for axis in "xy":
            percent_axis(ax, axis, ticks=FIFTHS)
        if done:
            beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.11), "ncols": 2}
            legend(ax, title="calibration error (ECE)", **(below if narrow() else beside))
    title = "Reliability diagrams: the share of right answers against the confidence"
    return told(figure, title, settings_of(series), sentence(done, without), table(done, without))


def known(s: Series) -> bool:
    """Whether all seeds have numbers."""
    return bool(s.calibration) and all(c.nll is not None for c in s.calibration.values())


def bins(s: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean confidence, share right and number of answers of each bin, all seeds together; nan where a bin is empty."""
    every = list(s.calibration.values())
    counts, right, sure = (
        np.sum([getattr(c, n) for c in every], 0) for n in ("counts", "right", "confidence")
    )
    some = np.where(counts > 0, counts, np.nan)
    return sure / some, right / some, counts


def averages(s: Series) -> tuple[float, float, float]:
    """Mean confidence, ECE and NLL (nats): the means over the seeds."""
    sure, ece, nll = (
        mean(getattr(c, n) for c in s.calibration.values())
        for n in ("mean_confidence", "ece", "nll")
    )
    return sure, ece, nll


def sentence(done: Sequence[Series], without: Sequence[Series]) -> str:
    text = "No result with probabilities yet."
    if done:
        *_, worst = ranked = sorted(
            [s for s in done if not s.bound] or done, key=lambda s: averages(s)[1]
        )
        text = f"{ranked[0].name} is calibrated best: {against_truth(ranked[0])}"
        ends = "too sure" if averages(worst)[0] > worst.mean else "not sure enough"
        text += f"; {worst.name} is {ends}: {against_truth(worst)}." if ranked[1:] else "."
    return text + (
        f" {listed([s.name for s in without])}: no probabilities are known." if without else ""
    )


def against_truth(s: Series) -> str:
    """'it says 62 % on average and is right for 60 % (ECE 5 %, NLL 1.08)'."""
    sure, ece, nll = averages(s)
    own = f"ECE {percent(ece)}, NLL {nll:.2f}"
    return f"it says {percent(sure)} on average and is right for {percent(s.mean)} ({own})"


def table(done: Sequence[Series], without: Sequence[Series]) -> list[dict]:
    rows = [(s.name, percent(s.mean), "", "", "") for s in without]
    for s in reversed(done):
        sure, ece, nll = averages(s)
        rows.insert(0, (s.name, percent(s.mean), percent(sure), f"{100 * ece:.1f} %", f"{nll:.3f}"))
    return tabled("method | accuracy | mean confidence | ECE | NLL", rows)
