"""Accuracy: bars with every seed as a dot and a 95 % band of Student's t, and the curve while it trains."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..studies.statistics import difference
from .identity import shorten_title
from .kit import BARS, DOTS, Bars, describe_picture
from .series import Series, join_settings, select_finished
from .style import (
    FAINT,
    FIFTHS,
    QUIET,
    SECOND,
    EndLabel,
    Picture,
    draw_end_labels,
    draw_level_line,
    draw_seed_lines,
    drawing,
    dress,
    heading,
    set_percent_axis,
)
from .vector import mark
from .words import (
    build_table,
    capitalize,
    describe_band,
    describe_each_seed,
    describe_seeds,
    describe_significance,
    format_share,
    join_words,
    percent,
    plural,
)

LOCAL = "local training"  # the phase that all methods share: clients train alone


def draw_accuracy(series: Sequence[Series], *, chance: float | None = None) -> Picture:
    """Draw bars of the finished series at the left, curves of all of them at the right.

    chance: accuracy of guessing
    """
    done = select_finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        Bars(left, series, chance).update(series)
        draw_curves(right, series, chance)
    title = "Bars of test accuracy, and curves of it while it trains"
    return describe_picture(
        figure, title, join_settings(series), describe_best_method(done), make_accuracy_table(done)
    )


def draw_accuracy_bars(series: Sequence[Series], *, chance: float | None = None) -> Picture:
    """Draw the bars alone, of series that are finished."""
    with drawing() as (figure, ax):
        Bars(ax, series, chance).update(series)
    return describe_picture(
        figure,
        "Bars of test accuracy",
        join_settings(series),
        describe_best_method(series),
        make_accuracy_table(series),
    )


def draw_seed_bars(series: Sequence[Series], seed: int) -> Picture:
    """Draw bars of one seed, and on each a dot for each seed and the band of their mean."""
    with drawing() as (figure, ax):
        Bars(ax, series, seed=seed).update(series)
    rows = [(s.name, percent(s.accuracies[seed]), s.number) for s in series]
    values = join_words([f"{name} {accuracy} ({mean})" for name, accuracy, mean in rows])
    seeds = describe_seeds(series[0].accuracies)
    sentence = f"Seed {seed}, and in brackets the mean of {seeds}: {values}."
    table = build_table(f"rule | seed {seed} | mean of seeds", rows)
    return describe_picture(figure, "Bars of test accuracy", join_settings(series), sentence, table)


def draw_guess_line(figure: Figure | None, share: float) -> None:
    """Draw a dashed line at a guess across all bars of accuracy in a figure."""
    if figure is None:
        return
    for ax in figure.axes:
        if ax.get_xlabel() in (DOTS, BARS):
            draw_level_line(ax, share, axis="x", colour=SECOND, lw=1.8, ls="--")
            heading(ax, "Test accuracy (dashed: your guess)")


def draw_curves(ax: Axes, series: Sequence[Series], chance: float | None = None) -> None:
    """Draw accuracy against the progress of a run: every seed faintly, their mean in full; local
    training, which is shared, in grey.
    """
    has_seeds = any(len(s.curves) > 1 for s in series)
    x = "bold: mean of the seeds" if has_seeds else "progress of the run"
    dress(ax, title="While it trains", x=x, grid="y", size=9)
    has_local_training = False
    ends = []
    for s in series:
        fused = {}
        for seed, curve in enumerate(s.curves):
            local_points = sum(point["phase"] == LOCAL for point in curve)
            has_local_training = has_local_training or local_points > 0
            points = [(point["progress"], point["accuracy"]) for point in curve]
            draw_seed_lines(ax, {seed: points[:local_points]}, "#9aa4ae", lw=1.6, zorder=1)
            if len(points) > local_points:
                fused[seed] = points[max(local_points - 1, 0) :]
        if fused:
            ends.append(draw_fused_curves(ax, s, fused))
    if chance:
        draw_level_line(ax, chance, "guessing", under=True)
    if has_local_training:
        ax.axvline(0.5, color=FAINT, lw=1.2, zorder=0)
        for place, words in ((0.25, "alone"), (0.75, "fused")):
            ax.text(place, 1.015, words, ha="center", fontsize=8.5, color=QUIET)
    ax.set_xlim(0, 1)
    set_percent_axis(ax, "y", 1.07, ticks=FIFTHS)
    ax.set_xticks([0, 0.5, 1], ["start", "half", "end"])
    draw_end_labels(ax, ends, size=8)


def draw_fused_curves(
    ax: Axes, s: Series, curves: Mapping[int, Sequence[tuple[float, float]]]
) -> EndLabel:
    """Draw one method's `{seed: points}` from its first global model on; returns its label."""
    style = {
        "alpha": 0.5 if s.pinned else 1,
        "ls": (0, (4, 2)) if s.pinned else s.look.line,
        "lw": 1.9,
        "ms": 6,
        "markevery": [-1],
    }
    _, y = draw_seed_lines(ax, curves, s.look.colour, s.look.marker, clip_on=False, **style)
    remark = "one seed"
    if len(curves) > 1:
        remark = f"mean of {plural(len(curves), 'seed')}; thin: each of them"
    text = f"{s.name}\n{percent(y[-1])} so far ({remark})"
    mark(ax.lines[-1], text, method=s.highlight_key)
    return EndLabel(y[-1], f"  {shorten_title(s.label)}", s.look.colour)  # beside its marker


def describe_best_method(series: Sequence[Series]) -> str:
    """Say which method is best, by how much, and whether that is more than noise."""
    if not series:
        return "No result yet."
    rivals = [s for s in series if not s.bound] or list(series)
    best, *others = sorted(rivals, key=lambda s: -s.mean)
    text = f"{compare_best(best, others)}."
    bounds = [f"{s.name} {percent(s.mean)}" for s in series if s.bound and s not in rivals]
    if bounds:
        text += f" For reference: {join_words(bounds)}."
    return text


def compare_best(best: Series, others: Sequence[Series]) -> str:
    """The best method beside the second and the last one. others: by falling accuracy"""
    name = capitalize(best.name)
    if not others:
        return f"{name} reaches {percent(best.mean)}"
    # Of a single client every server makes the same.
    if all(s.accuracies == best.accuracies for s in others):
        text = f"{'All' if len(others) > 1 else 'Both'} reach the same {percent(best.mean)}"
        if len(best.accuracies) == 1:
            text += "; with one seed nobody can tell whether that is chance"
        return text
    text = f"{name} is best with {percent(best.mean)}{compare_second(best, others[0])}"
    if len(others) > 1:
        text += f"; {others[-1].name} is last with {percent(others[-1].mean)}"
    return text


def compare_second(best: Series, second: Series) -> str:
    """How far the second is behind, and whether that is more than noise."""
    is_paired = best.setting == second.setting
    ahead = difference(best.accuracies, second.accuracies, paired=is_paired)
    # What a reader finds by subtracting.
    shown = round(100 * best.mean) - round(100 * second.mean)
    has_same_seeds = best.accuracies.keys() == second.accuracies.keys()
    needs_decimal = has_same_seeds and shown != round(100 * ahead.mean)
    points = format_share(ahead, 1 if needs_decimal else None)
    behind = f"follows {points} points behind"
    if points == "0":
        behind = "is level with it"
    elif points == "1":
        behind = "follows 1 point behind"
    return describe_significance(
        ahead,
        noise=f"; {second.name} is {points} points behind, which is within the noise",
        clear=f", clearly ahead of {second.name} (by {points} points)",
        one_seed=f", {second.name} {behind}; with one seed nobody can tell whether that is noise",
    )


def make_accuracy_table(series: Sequence[Series]) -> list[dict[str, Any]]:
    """Make the table of the numbers: a row a series."""
    rows = []
    for s in series:
        seeds = describe_each_seed(s.accuracies)
        rows.append((s.name, str(s.setting), percent(s.mean), describe_band(s.band), seeds))
    return build_table("method | setting | accuracy | ± 95 % band | seeds", rows)
