"""Ensemble weights by hand: the weight of each client above what it holds, and at the right what the weights achieve.

`ByHand` redraws in place, for sliders. The four parts share their axes: columns are clients, rows are classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .accuracy import PERCENT
from .coboosting_words import EQUAL, LEARNT, REAL, ROWS, YOURS, alt_text, sentence, shares_of, table
from .partition import Artists
from .style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, class_colours, dress, new_figure

COLOURS = {EQUAL: QUIET, YOURS: ACCENT, LEARNT: SECOND, REAL: "#009E73"}


class ByHand:
    """The picture of hand-set weights; `show(...)` brings it up to date."""

    def __init__(self) -> None:
        self._shape: tuple | None = None

    def show(
        self,
        counts: np.ndarray,
        class_names: Sequence[str],
        *,
        weights: Mapping[str, Sequence[float]],
        tune: Mapping[str, float],
        judge: Mapping[str, float] | None,
        by_class: Mapping[str, Sequence[float]],
        gap: tuple[float, float],
        sizes: tuple[int, int],
        setting: str,
        client: int | None = None,
        klass: int | None = None,
        spoilt: bool = False,
    ) -> Picture:
        """Picture of weights `{who: [M]}`, who out of ROWS, at least EQUAL and YOURS; only their ratios matter.

        counts:   training samples `[M, C]`;   by_class: `{who: [C]}`, accuracy of EQUAL and YOURS on the tune half
        tune, judge: `{who: accuracy}`, 0–1, on the two halves of the shown test images; judge None: still hidden
        gap:      yours minus equal and twice its standard error, 0–1, on the judge half (hidden: on the tune half)
        sizes:    images of the two halves;   spoilt: weights were moved after the judge half had been looked at
        """
        counts = np.asarray(counts)
        shares = {who: shares_of(w) for who, w in weights.items()}
        shape = (*counts.shape, tuple(class_names))
        with LOCK:
            if shape != self._shape:
                self._build(*shape)
                self._shape = shape
            self._update(counts, shares, tune, judge, by_class, client, klass)
        return Picture(
            self.figure,
            alt=alt_text(shares, tune, judge, setting, client, klass),
            sentence=sentence(tune, judge, gap, sizes, spoilt),
            table=table(shares, tune, judge),
        )

    # ------------------------------------------------------------------------------------------------ artists
    def _build(self, clients: int, classes: int, names: tuple[str, ...]) -> None:
        self.figure = new_figure()
        (upper, scores), (lower, right) = self.figure.subplots(
            2, 2, width_ratios=[2.1, 1], height_ratios=[1.35, 3], sharex="col"
        )
        self._artists = Artists(upper, lower, clients, classes, names, inches=(3.9, 2.5))
        for bar in self._artists.bars:
            bar.set_color(ACCENT)
        upper.set_ylabel("weight", fontsize=10, color=QUIET)
        upper.yaxis.set_major_formatter(PERCENT)
        upper.set_title("Weights", loc="left", fontsize=11, fontweight="bold", color=INK, pad=5)
        self._equal = upper.axhline(1 / clients, color=QUIET, lw=1, ls=(0, (2, 2)))
        self._marks = {
            who: upper.plot([], [], marker, color=COLOURS[who], ms=7 if clients <= 16 else 4, mew=1.8, mfc="none")[0]
            for who, marker in ((LEARNT, "D"), (REAL, "s"))
        }
        self._scoreboard(scores)
        dress(right, x="correct (bar: yours, line: equal)", grid="x")
        right.xaxis.label.set_fontsize(9)
        right.set_xlim(0, 1)
        right.set_xticks([0, 0.5, 1])
        right.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
        right.set_ylim(lower.get_ylim())
        right.set_yticks([])
        self._right_row = right.axhspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)
        self._bars = right.barh(range(classes), np.zeros(classes), height=0.62, color=class_colours(classes))
        self._ticks = right.vlines([0] * classes, np.arange(classes) - 0.38, np.arange(classes) + 0.38, color=INK, lw=2)
        self._classes = classes

    def _scoreboard(self, ax) -> None:
        """One row each: a dot on the tune half, a diamond on the judge half, and both numbers."""
        dress(ax, title="Accuracy")
        ax.tick_params(labelbottom=False, bottom=False)
        ax.set_ylim(len(ROWS) - 0.5, -0.5)
        ax.set_yticks(range(len(ROWS)), ROWS)
        ax.yaxis.tick_right()
        ax.tick_params(axis="y", length=0)
        for label, who in zip(ax.get_yticklabels(), ROWS, strict=True):
            label.set_color(COLOURS[who])
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        for i in range(len(ROWS)):
            ax.axhline(i, color=FAINT, lw=1, zorder=0)
        self._dots = {who: ax.plot([], [], "o", color=COLOURS[who], ms=6)[0] for who in ROWS}
        self._diamonds = {who: ax.plot([], [], "D", color=COLOURS[who], ms=6, mfc="none", mew=1.7)[0] for who in ROWS}
        self._head = ax.text(0.64, 1.045, "", transform=ax.transAxes, va="bottom", fontsize=9, color=QUIET)
        self._numbers = {who: ax.text(0, i, "", va="center", fontsize=9, color=INK) for i, who in enumerate(ROWS)}

    def _update(self, counts, shares, tune, judge, by_class, client, klass) -> None:
        self._artists.update(counts, client, klass)
        for bar, share in zip(self._artists.bars, shares[YOURS], strict=True):
            bar.set_height(share)
        most = max(float(w.max()) for w in shares.values())
        self._artists.upper.set_ylim(0, 1.12 * most)
        self._artists.upper.yaxis.set_major_locator(MaxNLocator(3))
        for who, line in self._marks.items():
            w = shares.get(who, np.empty(0))
            line.set_data(range(len(w)), w)
        self._head.set_text("● tune" if judge is None else "● tune  ◇ judge")
        for i, who in enumerate(ROWS):
            known = who in tune
            self._dots[who].set_data([tune[who]] if known else [], [i] if known else [])
            judged = known and judge is not None
            self._diamonds[who].set_data([judge[who]] if judged else [], [i] if judged else [])
            values = [tune[who], *([judge[who]] if judged else [])] if known else []
            right = bool(values) and max(values) < 0.6  # the numbers stand where the marks are not
            self._numbers[who].set(
                x=max(values) + 0.06 if right else min(values, default=0.56) - 0.06,
                text=" | ".join(f"{100 * v:.0f}" for v in values) or "…",
                ha="left" if right else "right",
            )
        self._right_row.set_visible(klass is not None and klass < self._classes)
        if klass is not None:
            self._right_row.set_y(klass - 0.5)
        for bar, value in zip(self._bars, np.nan_to_num(by_class[YOURS]), strict=True):
            bar.set_width(value)
        equal = np.nan_to_num(by_class[EQUAL])
        self._ticks.set_segments([[(v, c - 0.38), (v, c + 0.38)] for c, v in enumerate(equal)])
