"""What Fed-ET's server learns on: a few samples of each choice of public data, and how good the student becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

import numpy as np
from matplotlib.patches import Rectangle

from .accuracy import PERCENT
from .style import ACCENT, INK, LOCK, RULE, SECOND, Picture, dress, new_figure
from .words import gap, half_width, is_noise, percent, plural, seeds_of

SHOWN = 5  # samples a row


@dataclass(frozen=True)
class Choice:
    """One choice of public data. accuracy: {seed: of the student, 0–1};   dissent: share of votes against the
    consensus;   samples: how many;   images: [k, H, W] or [k, H, W, 3] in [0, 1], none for feature rows."""

    name: str
    accuracy: Mapping[int, float]
    dissent: float
    samples: int
    images: np.ndarray | None = field(default=None, repr=False)


def public(choices: Sequence[Choice], *, setting: str, title: str, chance: float, present: str = "") -> Picture:
    """Bars of the student's accuracy, one a choice, beside some of its samples. `present`: the run's own choice."""
    pictures = any(c.images is not None for c in choices)
    with LOCK:
        figure = new_figure()
        if pictures:
            left, ax = figure.subplots(1, 2, width_ratios=[0.72, 1], sharey=True)
            _samples(left, choices)
        else:
            ax = figure.subplots()
        dress(ax, title=title, x="accuracy of the student on test samples", grid="x")
        for i, c in enumerate(choices):
            own = c.name == present
            ax.barh(i, mean(c.accuracy.values()), color=ACCENT if own or not present else "#9aa4ae", height=0.62)
            for a in c.accuracy.values() if len(c.accuracy) > 1 else ():
                ax.plot([a], [i], "o", ms=4, color=INK, alpha=0.55, clip_on=False)
            most = max(c.accuracy.values())
            ax.text(most + 0.02, i, percent(mean(c.accuracy.values())), va="center", fontsize=10.5, color=INK)
        ax.axvline(chance, color=SECOND, lw=1.2, ls=(0, (2, 2)))
        ax.text(chance, -0.62, " guessing", fontsize=9, color=SECOND)
        ax.set_xlim(0, 1.06)
        ax.set_ylim(len(choices) - 0.5, -0.85)
        ax.xaxis.set_major_formatter(PERCENT)
        places = left if pictures else ax
        places.set_yticks(range(len(choices)), [_label(c) for c in choices])
        ax.tick_params(axis="y", left=False, labelleft=not pictures)
    ranked = sorted(choices, key=lambda c: -mean(c.accuracy.values()))
    best, last = ranked[0], ranked[-1]
    text = f"Best student: {best.name}, {percent(mean(best.accuracy.values()))}"
    if len(ranked) > 1:
        text += f"; worst: {last.name}, {percent(mean(last.accuracy.values()))}"
        difference, wide = gap(best.accuracy, last.accuracy)
        if math.isnan(wide):
            text += " (one seed: nobody can tell how much of that is noise)"
        elif is_noise(difference, wide):
            text += ", which is within the noise"
        else:
            text += f", {100 * difference:.0f} ± {100 * wide:.0f} points behind"
    told = ", ".join(f"{c.name} {percent(mean(c.accuracy.values()))}" for c in choices)
    alt = f"Bars of the student's accuracy by public data ({setting}; {seeds_of(best.accuracy)}): {told}."
    return Picture(figure, alt, f"{text}.", [_row(c) for c in choices])


def _samples(ax, choices: Sequence[Choice]) -> None:
    dress(ax, title="Some of the samples")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks([])
    row, column = 3.2 / (len(choices) + 0.35), 2.3 / SHOWN  # inches, about; the samples stay square
    side = min(0.84 * row, 0.9 * column)
    wide, high = side / column / 2, side / row / 2
    for i, c in enumerate(choices):
        for j, image in enumerate([] if c.images is None else c.images[:SHOWN]):
            corners = (j + 0.5 - wide, j + 0.5 + wide, i + high, i - high)
            ax.imshow(
                image, cmap="gray_r" if image.ndim == 2 else None, vmin=0, vmax=1, interpolation="nearest",
                aspect="auto", extent=corners,
            )  # fmt: skip
            ax.add_patch(Rectangle((corners[0], i - high), 2 * wide, 2 * high, fill=False, ec=RULE, lw=0.8))
    ax.set_xlim(0, SHOWN)


def _label(c: Choice) -> str:
    """The name, and under it how many samples, unless the name says so."""
    return c.name if "sample" in c.name else f"{c.name}\n{plural(c.samples, 'sample')}"


def _row(c: Choice) -> dict:
    band = half_width(list(c.accuracy.values()))
    return {
        "public data": c.name,
        "samples": c.samples,
        "accuracy": percent(mean(c.accuracy.values())),
        "± 2 standard errors": "one seed" if math.isnan(band) else f"{100 * band:.1f} points",
        "dissent": percent(c.dissent),
        "seeds": ", ".join(f"{s}: {100 * a:.0f} %" for s, a in sorted(c.accuracy.items())),
    }
