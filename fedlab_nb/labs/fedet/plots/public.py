"""What Fed-ET's server learns on: a few samples of each choice of public data, and how good the student becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ....plots.axes import level_line, no_spines, percent_axis
from ....plots.style import ACCENT, INK, LOCK, RULE, SECOND, Picture, dress, new_figure
from ....plots.words import band_words, mean_percent, percent, plural, points, seeds_of, significance, tabled
from ....study.statistics import band, difference
from ..numbers import as_image

SHOWN = 5  # samples a row


@dataclass(frozen=True)
class Choice:
    """One choice of public data. accuracy: {seed: of the student, 0–1};   dissent: share of votes against the
    consensus;   samples: how many;   images: each [H, W] or [H, W, 3] in [0, 1], none for feature rows."""

    name: str
    accuracy: Mapping[int, float]
    dissent: float
    samples: int
    images: Sequence[np.ndarray] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, outcomes: Mapping[int, Any]) -> Choice:
        """From the outcomes of all seeds; the images are the first one's."""
        reports = [o.report for o in outcomes.values()]
        images = [as_image(x) for x in reports[0].samples[:SHOWN]] if reports[0].samples.ndim == 4 else None
        dissent, count = (mean(of) for of in zip(*((r.dissent, r.public_samples) for r in reports), strict=True))
        return cls(name, {seed: o.accuracy for seed, o in outcomes.items()}, dissent, round(count), images)

    @property
    def mean(self) -> float:
        return mean(self.accuracy.values())

    @property
    def label(self) -> str:
        """The name, and under it how many samples, unless the name says so."""
        return self.name if "sample" in self.name else f"{self.name}\n{plural(self.samples, 'sample')}"

    @property
    def row(self) -> tuple[Any, ...]:
        """Of the picture's table."""
        seeds = ", ".join(f"{s}: {percent(a)}" for s, a in sorted(self.accuracy.items()))
        right, wide = percent(self.mean), band_words(band(self.accuracy))
        return self.name, self.samples, right, wide, percent(self.dissent), seeds


def public(choices: Sequence[Choice], *, setting: str, title: str, chance: float, present: str = "") -> Picture:
    """Bars of the student's accuracy, one a choice, beside some of its samples. `present`: the run's own choice."""
    pictures = any(c.images is not None for c in choices)
    with LOCK:
        figure = new_figure()
        if pictures:
            places, ax = figure.subplots(1, 2, width_ratios=[0.72, 1], sharey=True)
            _samples(places, choices)
        else:
            places = ax = figure.subplots()
        dress(ax, title=title, x="accuracy of the student on test samples", grid="x")
        for i, c in enumerate(choices):
            ax.barh(i, c.mean, color=ACCENT if present in ("", c.name) else "#9aa4ae", height=0.62)
            for a in c.accuracy.values() if len(c.accuracy) > 1 else ():
                ax.plot([a], [i], "o", ms=4, color=INK, alpha=0.55, clip_on=False)
            ax.text(max(c.accuracy.values()) + 0.02, i, percent(c.mean), va="center", fontsize=10.5, color=INK)
        level_line(ax, chance, axis="x", colour=SECOND, lw=1.2)
        ax.text(chance, -0.62, " guessing", fontsize=9, color=SECOND)
        ax.set_ylim(len(choices) - 0.5, -0.85)
        percent_axis(ax, "x", 1.06)
        places.set_yticks(range(len(choices)), [c.label for c in choices])
        ax.tick_params(axis="y", left=False, labelleft=not pictures)
    best, *_, last = sorted([*choices, *choices], key=lambda c: -c.mean)
    sentence = f"Best student: {best.name}, {percent(best.mean)}"
    if len(choices) > 1:
        ahead = difference(best.accuracy, last.accuracy)
        sentence += f"; worst: {last.name}, {percent(last.mean)}" + significance(
            ahead, noise=", which is within the noise", clear=f", {points(ahead, '')} behind",
            one_seed=" (one seed: nobody can tell how much of that is noise)",
        )  # fmt: skip
    each = ", ".join(f"{c.name} {mean_percent(c.accuracy)}" for c in choices)
    alt = f"Bars of the student's accuracy by public data ({setting}; {seeds_of(best.accuracy)}): {each}."
    columns = "public data | samples | accuracy | ± 95 % band | dissent | seeds"
    return Picture(figure, alt, f"{sentence}.", tabled(columns, (c.row for c in choices)))


def _samples(ax, choices: Sequence[Choice]) -> None:
    dress(ax, title="Some of the samples")
    no_spines(ax)
    ax.tick_params(length=0)
    ax.set_xticks([])
    row, column = 3.2 / (len(choices) + 0.35), 2.3 / SHOWN  # inches, about; the samples stay square
    side = min(0.84 * row, 0.9 * column)
    wide, high = side / column / 2, side / row / 2
    for i, c in enumerate(choices):
        for j, image in enumerate([] if c.images is None else c.images[:SHOWN]):
            corners = (j + 0.5 - wide, j + 0.5 + wide, i + high, i - high)
            shades = {"cmap": "gray_r" if image.ndim == 2 else None, "vmin": 0, "vmax": 1, "interpolation": "nearest"}
            ax.imshow(image, aspect="auto", extent=corners, **shades)
            ax.add_patch(Rectangle((corners[0], i - high), 2 * wide, 2 * high, fill=False, ec=RULE, lw=0.8))
    ax.set_xlim(0, SHOWN)
