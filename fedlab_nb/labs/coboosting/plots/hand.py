"""Ensemble weights by hand: the weight of each client above what it holds, and at the right what the weights achieve.

`ByHand` redraws in place, for sliders. The four parts share their axes: columns are clients, rows are classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import HALVES, few_ticks, level_line, no_spines, percent_axis, rows_axis
from ....plots.partition import Artists, beyond
from ....plots.style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, class_colours, dress, heading, new_figure
from ....plots.vector import moves
from ....plots.words import marked_words, percent, plural, points, significance, tabled
from ..numbers import EQUAL, LEARNT, REAL, YOURS, Tried

ROWS = (EQUAL, YOURS, LEARNT, REAL)
COLOURS = {EQUAL: QUIET, YOURS: ACCENT, LEARNT: SECOND, REAL: "#009E73"}


class ByHand:
    """The picture of hand-set weights; `show(...)` brings it up to date."""

    _shape: tuple | None = None

    def show(
        self, tried: Tried, class_names: Sequence[str], *, setting: str, client: int | None = None,
        klass: int | None = None, spoilt: bool = False,
    ) -> Picture:  # fmt: skip
        """Picture of the weights that were tried. spoilt: some were moved after the judge half had been looked at."""
        shape = (*tried.counts.shape, tuple(class_names))
        with LOCK:
            if shape != self._shape:
                self._build(*shape)
                self._shape = shape
            self._update(tried, client, klass, setting)
            shown = (client, klass, setting, tuple(tried.shares), tried.judge is None, tried.counts.tobytes())
            moves(self.figure, shown, **self._parts(tried))
        halves = halves_of(tried)
        columns = ["weights", *halves, *(f"client {k}" for k in range(len(tried.counts)))]
        cells = ((who, *(half[who] for half in halves.values()), *w) for who, w in tried.shares.items())
        table = tabled(columns, ((who, *map(percent, shares)) for who, *shares in cells))
        return Picture(self.figure, alt_text(tried, setting, client, klass), sentence(tried, spoilt), table)

    # ------------------------------------------------------------------------------------------------ artists
    def _build(self, clients: int, classes: int, names: tuple[str, ...]) -> None:
        self.figure = new_figure()
        grid = {"width_ratios": [2.1, 1], "height_ratios": [1.35, 3]}
        (upper, scores), (lower, right) = self.figure.subplots(2, 2, sharex="col", **grid)
        self._artists = Artists(upper, lower, clients, classes, names, inches=(3.9, 2.5))
        for bar in self._artists.bars:
            bar.set_color(ACCENT)
        upper.set_ylabel("weight", fontsize=10, color=QUIET)
        percent_axis(upper, top=None)
        heading(upper, "Weights", 5)
        level_line(upper, 1 / clients)
        self._marks = {
            who: upper.plot([], [], marker, color=COLOURS[who], ms=7 if clients <= 16 else 4, mew=1.8, mfc="none")[0]
            for who, marker in ((LEARNT, "D"), (REAL, "s"))
        }
        self._scoreboard(scores)
        dress(right, x="correct (bar: yours, line: equal)", grid="x", size=9)
        percent_axis(right, "x", ticks=HALVES)
        right.set(ylim=lower.get_ylim(), yticks=[])
        self._right_row = right.axhspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)
        self._bars = right.barh(range(classes), np.zeros(classes), height=0.62, color=class_colours(classes))
        self._ticks = right.vlines([0] * classes, np.arange(classes) - 0.38, np.arange(classes) + 0.38, color=INK, lw=2)

    def _parts(self, tried: Tried) -> dict[str, Any]:
        """What moves with the weights: see `vector.moves`."""
        scores = [*self._dots.values(), *self._diamonds.values(), *self._numbers.values(), self._head]
        upper, yours = self._artists.upper, (*tried.shares[YOURS], *tried.by_class[YOURS])
        return {
            "bars": (yours, [*self._artists.bars, *self._bars, self._ticks]),
            "weights": (upper.get_ylim(), [upper.yaxis, *upper.lines]),
            "scores": (str((tried.tune, tried.judge)), scores),
        }

    def _scoreboard(self, ax: Axes) -> None:
        """One row each: a dot on the tune half, a diamond on the judge half, and both numbers."""
        dress(ax, title="Accuracy")
        ax.tick_params(labelbottom=False, bottom=False)
        rows_axis(ax, ROWS, size=9.5)
        ax.yaxis.tick_right()
        no_spines(ax, "bottom")
        for i, (label, who) in enumerate(zip(ax.get_yticklabels(), ROWS, strict=True)):
            label.set_color(COLOURS[who])
            ax.axhline(i, color=FAINT, lw=1, zorder=0)
        self._dots = {who: ax.plot([], [], "o", color=COLOURS[who], ms=6)[0] for who in ROWS}
        self._diamonds = {who: ax.plot([], [], "D", color=COLOURS[who], ms=6, mfc="none", mew=1.7)[0] for who in ROWS}
        self._head = ax.text(0.64, 1.045, "", transform=ax.transAxes, va="bottom", fontsize=9, color=QUIET)
        self._numbers = {who: ax.text(0, i, "", va="center", fontsize=9, color=INK) for i, who in enumerate(ROWS)}

    def _update(self, tried: Tried, client: int | None, klass: int | None, setting: str) -> None:
        self._artists.update(tried.counts, client, klass, setting=setting)
        for bar, share in zip(self._artists.bars, tried.shares[YOURS], strict=True):
            bar.set_height(share)
        upper = self._artists.upper
        upper.set_ylim(0, beyond(max(float(w.max()) for w in tried.shares.values())))
        few_ticks(upper, "y", 3)
        for who, line in self._marks.items():
            w = tried.shares.get(who, np.empty(0))
            line.set_data(range(len(w)), w)
        self._head.set_text("● tune" if tried.judge is None else "● tune  ◇ judge")
        for i, who in enumerate(ROWS):
            tune, judge = ([half[who]] if half and who in half else [] for half in (tried.tune, tried.judge))
            self._dots[who].set_data(tune, [i] * len(tune))
            self._diamonds[who].set_data(judge, [i] * len(judge))
            values = tune + judge
            right = bool(values) and max(values) < 0.6  # the numbers stand where the marks are not
            self._numbers[who].set(
                x=max(values) + 0.06 if right else min(values, default=0.56) - 0.06,
                text=" | ".join(f"{100 * v:.0f}" for v in values) or "…",
                ha="left" if right else "right",
            )
        self._right_row.set(visible=klass is not None and klass < len(self._bars), y=(klass or 0) - 0.5)
        yours, equal = (np.nan_to_num(tried.by_class[who]) for who in (YOURS, EQUAL))
        for bar, value in zip(self._bars, yours, strict=True):
            bar.set_width(value)
        self._ticks.set_segments([[(v, c - 0.38), (v, c + 0.38)] for c, v in enumerate(equal)])


# ------------------------------------------------------------------------------------------------------ words
def halves_of(tried: Tried) -> dict[str, Mapping[str, float]]:
    """The accuracies on each half that is shown."""
    return {"tune half": tried.tune, **({"judge half": tried.judge} if tried.judge else {})}


def sentence(tried: Tried, spoilt: bool) -> str:
    tune, judge, ahead = tried.tune, tried.judge, tried.gap
    noise = significance(ahead, clear="more than noise", one_seed="too few images to tell")
    about = f"{points(ahead)}, {noise}"
    if judge is None:
        last = "You tune on test images. Co-Boosting never sees one. So the judge half decides."
        text = f"equal weights are right for {percent(tune[EQUAL])}"
        if ahead.mean != 0 or ahead.half_width != 0:  # some were moved
            text = f"your weights are right for {percent(tune[YOURS])}, equal ones for {percent(tune[EQUAL])} ({about})"
        return f"On the {tried.sizes[0]} images of the tune half {text}. {last}"
    others = [f"{who} {percent(judge[who])}" for who in (LEARNT, REAL) if who in judge]
    text = f"Judge half: your weights {percent(judge[YOURS])}, equal ones {percent(judge[EQUAL])} ({about})"
    text += f"; {', '.join(others)}." if others else "."
    if spoilt:
        return f"{text} You moved weights after you had seen this half. So it no longer judges fairly."
    return f"{text} On the tune half your weights had {percent(tune[YOURS])}."


def alt_text(tried: Tried, setting: str, client: int | None, klass: int | None) -> str:
    yours = tried.shares[YOURS]
    most = ", ".join(f"client {k} {percent(yours[k])}" for k in np.argsort(-yours, kind="stable")[:3])
    halves = halves_of(tried).items()
    scores = "; ".join(f"{name}: " + ", ".join(f"{who} {percent(v)}" for who, v in h.items()) for name, h in halves)
    return (
        f"Ensemble weights of {plural(len(yours), 'client')} ({setting}) above the training samples of each class that "
        f"they hold; yours are largest for {most}. Accuracy, {scores}.{marked_words(client, klass)}"
    )
