"""What each of Co-Boosting's three ideas is worth: teacher and student with some of them switched off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .coboosting_curves import told
from .style import FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import gap, is_noise, listed, percent, seeds_of

IDEAS = ("GHS", "DHS", "EE")


@dataclass(frozen=True)
class Variant:
    """One combination of the three ideas: which are `on`, and accuracies `{seed: 0–1}` of teacher and student."""

    name: str
    on: tuple[str, ...]
    ensemble: Mapping[int, float]
    server: Mapping[int, float]


def switches(variants: Sequence[Variant], *, setting: str) -> Picture:
    """Rows of ticks, teacher and student; the first variant is what the others are compared with, seed by seed."""
    whole, others = variants[0], variants[1:]
    with LOCK:
        figure = new_figure()
        ticks, left, right = figure.subplots(1, 3, width_ratios=[0.62, 1, 1], sharey=True)
        ticked(ticks, variants)
        for ax, title, name in ((left, "Ensemble (teacher)", "ensemble"), (right, "Server model (student)", "server")):
            dotted(ax, title, [getattr(v, name) for v in variants])
    return Picture(
        figure,
        alt=(
            f"Accuracy of ensemble and server model with ideas switched off ({setting}): "
            + "; ".join(f"{v.name} {level(v.ensemble)} and {level(v.server)}" for v in variants)
            + "."
        ),
        sentence=verdict(whole, others),
        table=[
            {
                "variant": v.name,
                **{idea: "on" if idea in v.on else "off" for idea in IDEAS},
                "ensemble": level(v.ensemble),
                "ensemble, against all three": "" if v is whole or not v.server else told(v.ensemble, whole.ensemble),
                "server": level(v.server),
                "server, against all three": "" if v is whole or not v.server else told(v.server, whole.server),
            }
            for v in variants
        ],
    )


def level(values: Mapping[int, float]) -> str:
    return percent(mean(values.values())) if values else "not run yet"


def ticked(ax: Axes, variants: Sequence[Variant]) -> None:
    """A full dot for an idea that is on, an empty one for off."""
    dress(ax, title="Switched on")
    for i, v in enumerate(variants):
        for j, idea in enumerate(IDEAS):
            on = idea in v.on
            ax.plot(j, i, "o", ms=10, color=INK if on else "none", mec=INK if on else QUIET, mew=1.2)
    ax.set_xticks(range(len(IDEAS)), IDEAS)
    ax.set_xlim(-0.6, len(IDEAS) - 0.4)
    ax.set_yticks(range(len(variants)), [v.name for v in variants], fontsize=10)
    ax.set_ylim(len(variants) - 0.5, -0.5)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)


def dotted(ax: Axes, title: str, rows: Sequence[Mapping[int, float]]) -> None:
    """A dot a seed, a bar at the mean, and at the right the difference from the first row."""
    dress(ax, title=title, grid="x")
    for i, values in enumerate(rows):
        ax.axhline(i, color=FAINT, lw=1, zorder=0)
        if not values:
            ax.text(0.5, i, "…", transform=ax.get_yaxis_transform(), ha="center", va="center", color=QUIET)
            continue
        difference, wide = (math.nan, math.nan) if i == 0 else gap(values, rows[0])
        noise = i > 0 and (math.isnan(wide) or is_noise(difference, wide))
        colour = INK if i == 0 else QUIET if noise else SECOND if difference < 0 else "#009E73"
        ax.scatter(list(values.values()), [i] * len(values), s=26, color="white", edgecolors=colour, lw=1.2, zorder=3)
        ax.plot([mean(values.values())] * 2, [i - 0.32, i + 0.32], color=colour, lw=3, zorder=2)
        text = percent(mean(values.values())) if i == 0 else f"{100 * difference:+.0f}"
        text += "" if math.isnan(wide) else f" ± {100 * wide:.0f}"
        ax.text(
            1.02, i, text, transform=ax.get_yaxis_transform(), va="center", fontsize=9.5, color=colour, gid="outside"
        )
    every = [a for values in rows for a in values.values()] or [0, 1]
    ax.set_xlim(max(0, min(every) - 0.06), min(1, max(every) + 0.06))
    ax.xaxis.set_major_formatter(PERCENT)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("test accuracy, one dot a seed", fontsize=9, color=QUIET)


def verdict(whole: Variant, others: Sequence[Variant]) -> str:
    """Which switch matters for teacher and student, and which cannot be told from noise."""
    if not whole.ensemble:
        return "Which switch will cost the ensemble most, which the server model? Guess, then press the button."
    parts = []
    for name in ("ensemble", "server"):
        matters, noise = [], []
        for v in others:
            difference, wide = gap(getattr(v, name), getattr(whole, name))
            if math.isnan(wide) or is_noise(difference, wide):
                noise.append(v.name)
            else:
                matters.append(f"{v.name} {100 * difference:+.0f} ± {100 * wide:.0f}")
        told_ = f"{', '.join(matters)} points" if matters else "no switch matters clearly"
        parts.append(f"{name.capitalize()}: {told_}" + (f"; {listed(noise)} within the noise" if noise else ""))
    seeds = seeds_of(whole.ensemble)
    if len(whole.ensemble) == 1:
        return f"With one seed nobody can tell which switch matters ({seeds}): take more seeds."
    return f"{'. '.join(parts)} ({seeds}, against all three)."
