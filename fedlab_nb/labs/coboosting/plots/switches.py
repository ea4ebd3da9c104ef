"""What each of Co-Boosting's three ideas is worth: teacher and student with some of them switched off."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from matplotlib.axes import Axes

from ....plots.axes import few_ticks, no_spines, percent_axis, rows_axis
from ....plots.style import FAINT, INK, QUIET, SECOND, Picture, drawing, dress
from ....plots.words import capital, listed, mean_percent, points, seeds_of
from ....study.statistics import difference
from .curves import against

IDEAS, PARTS = ("GHS", "DHS", "EE"), ("ensemble", "server")


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
    with drawing(1, 3, width_ratios=[0.62, 1, 1], sharey=True) as (figure, (ticks, left, right)):
        ticked(ticks, variants)
        dotted(left, "Ensemble (teacher)", [v.ensemble for v in variants])
        dotted(right, "Server model (student)", [v.server for v in variants])
    table = []
    for v in variants:
        row = {"variant": v.name, **{idea: "on" if idea in v.on else "off" for idea in IDEAS}}
        for part in PARTS:
            values, compared = getattr(v, part), v is not whole and v.server
            row[part] = level(values)
            row[f"{part}, against all three"] = against(values, getattr(whole, part)) if compared else ""
        table.append(row)
    each = "; ".join(f"{v.name} {level(v.ensemble)} and {level(v.server)}" for v in variants)
    alt = f"Accuracy of ensemble and server model with ideas switched off ({setting}): {each}."
    return Picture(figure, alt, verdict(whole, others), table)


def level(values: Mapping[int, float]) -> str:
    return mean_percent(values) if values else "not run yet"


def ticked(ax: Axes, variants: Sequence[Variant]) -> None:
    """A full dot for an idea that is on, an empty one for off."""
    dress(ax, title="Switched on")
    for i, v in enumerate(variants):
        for j, idea in enumerate(IDEAS):
            on = idea in v.on
            ax.plot(j, i, "o", ms=10, color=INK if on else "none", mec=INK if on else QUIET, mew=1.2)
    ax.set_xticks(range(len(IDEAS)), IDEAS)
    ax.set_xlim(-0.6, len(IDEAS) - 0.4)
    rows_axis(ax, [v.name for v in variants])
    no_spines(ax, "bottom")
    ax.tick_params(length=0)


def dotted(ax: Axes, title: str, rows: Sequence[Mapping[int, float]]) -> None:
    """A dot a seed, a bar at the mean, and at the right the difference from the first row."""
    dress(ax, title=title, x="test accuracy, one dot per seed", grid="x", size=9)
    beside = {"transform": ax.get_yaxis_transform(), "va": "center"}
    for i, values in enumerate(rows):
        ax.axhline(i, color=FAINT, lw=1, zorder=0)
        if not values:
            ax.text(0.5, i, "…", ha="center", color=QUIET, **beside)
            continue
        of = difference(values, rows[0])
        colour = INK if i == 0 else QUIET if of.verdict != "clear" else SECOND if of.mean < 0 else "#009E73"
        ax.scatter(list(values.values()), [i] * len(values), s=26, color="white", edgecolors=colour, lw=1.2, zorder=3)
        ax.plot([mean(values.values())] * 2, [i - 0.32, i + 0.32], color=colour, lw=3, zorder=2)
        text = mean_percent(values) if i == 0 else points(of).removesuffix(" points")
        ax.text(1.02, i, text, fontsize=9.5, color=colour, gid="outside", **beside)
    every = [a for values in rows for a in values.values()] or [0, 1]
    percent_axis(ax, "x", min(1, max(every) + 0.06), low=max(0, min(every) - 0.06))
    few_ticks(ax, "x", 4)
    no_spines(ax, "left")
    ax.tick_params(axis="y", length=0)


def verdict(whole: Variant, others: Sequence[Variant]) -> str:
    """Which switch matters for teacher and student, and which cannot be told from noise."""
    if not whole.ensemble:
        return (
            "Which switch will cost the ensemble most? Which one will cost the server model most? Guess, then press "
            "the button."
        )
    seeds = seeds_of(whole.ensemble)
    if len(whole.ensemble) == 1:
        return f"With one seed nobody can tell which switch matters ({seeds}): take more seeds."
    parts = []
    for part in PARTS:
        gaps = {v.name: difference(getattr(v, part), getattr(whole, part)) for v in others}
        noise = [name for name, of in gaps.items() if of.is_noise]
        matters = [f"{name} {points(of).removesuffix(' points')}" for name, of in gaps.items() if name not in noise]
        text = f"{', '.join(matters)} points" if matters else "no switch matters clearly"
        parts.append(f"{capital(part)}: {text}" + (f"; {listed(noise)} within the noise" if noise else ""))
    return f"{'. '.join(parts)} ({seeds}, against all three)."
