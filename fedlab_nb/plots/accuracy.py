"""Pictures of accuracy: bars with a dot for each seed and a 95 % band of Student's t, and the
curves of a run while it trains.
"""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..studies.statistics import difference
from ..value_types import Accuracy0To1
from .identity import shorten_method_title
from .kit import DOTS, AccuracyBars, describe_picture
from .marks import attach_hover_text
from .series import MethodResults, join_setting_texts, select_results_with_accuracies
from .style import (
    FAINT,
    FIFTHS,
    QUIET,
    SECOND,
    EndLabel,
    Picture,
    XYPoints,
    draw_end_labels,
    draw_level_line,
    draw_seed_lines_and_get_mean,
    drawing,
    dress,
    set_percent_axis,
    write_axes_title,
)
from .words import (
    TableRows,
    build_table,
    capitalize_first_letter,
    choose_words_by_significance,
    describe_seeds,
    format_count_and_noun,
    format_half_width_or_seed_count,
    format_percent,
    format_percent_band,
    format_percent_of_each_seed,
    join_with_and,
)

LOCAL = "local training"  # the phase that all methods share: clients train alone


def draw_accuracy_bars_and_curves(
    series: Sequence[MethodResults], *, chance_accuracy: Accuracy0To1 | None = None
) -> Picture:
    """Draw bars of the finished series on the left, and the curves of all series on the right.

    chance_accuracy: accuracy of guessing
    """
    finished_series = select_results_with_accuracies(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        AccuracyBars(left, series, chance_accuracy).update(series)
        draw_training_curves(right, series, chance_accuracy)
    title = "Bars of test accuracy, and curves of it while it trains"
    return describe_picture(
        figure,
        title,
        join_setting_texts(series),
        describe_best_method(finished_series),
        make_accuracy_table(finished_series),
    )


def draw_accuracy_bars(
    series: Sequence[MethodResults], *, chance_accuracy: Accuracy0To1 | None = None
) -> Picture:
    """Draw the bars alone. All series are finished."""
    with drawing() as (figure, ax):
        AccuracyBars(ax, series, chance_accuracy).update(series)
    return describe_picture(
        figure,
        "Bars of test accuracy",
        join_setting_texts(series),
        describe_best_method(series),
        make_accuracy_table(series),
    )


def draw_accuracy_bars_of_seed(series: Sequence[MethodResults], seed: int) -> Picture:
    """Draw bars of one seed, and on each a dot for each seed and the band of their mean."""
    with drawing() as (figure, ax):
        AccuracyBars(ax, series, seed=seed).update(series)
    rows = [(s.name, format_percent(s.accuracies[seed]), s.accuracy_text) for s in series]
    values = join_with_and([f"{name} {accuracy} ({mean})" for name, accuracy, mean in rows])
    seeds = describe_seeds(series[0].accuracies)
    sentence = f"Seed {seed}, and in brackets the mean of {seeds}: {values}."
    table = build_table(f"rule | seed {seed} | mean of seeds", rows)
    return describe_picture(
        figure, "Bars of test accuracy", join_setting_texts(series), sentence, table
    )


def draw_guess_line_on_accuracy_bars(figure: Figure | None, guessed_accuracy: Accuracy0To1) -> None:
    """Draw a dashed line at a guessed accuracy, 0–1, across all accuracy bars of a figure."""
    if figure is None:
        return
    for ax in figure.axes:
        if ax.get_xlabel().startswith(DOTS):
            draw_level_line(
                ax, guessed_accuracy, axis="x", colour=SECOND, line_width=1.8, line_style="--"
            )
            write_axes_title(ax, "Test accuracy (dashed: your guess)")


def draw_training_curves(
    ax: Axes, series: Sequence[MethodResults], chance_accuracy: Accuracy0To1 | None = None
) -> None:
    """Draw accuracy against the progress of a run: every seed as a thin line, their mean as a bold
    one. Local training, which all methods share, is grey.
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
            draw_seed_lines_and_get_mean(
                ax, {seed: points[:local_points]}, "#9aa4ae", lw=1.6, zorder=1
            )
            if len(points) > local_points:
                fused[seed] = points[max(local_points - 1, 0) :]
        if fused:
            ends.append(draw_fused_curves_and_make_label(ax, s, fused))
    if chance_accuracy:
        draw_level_line(ax, chance_accuracy, "guessing", is_text_below=True)
    if has_local_training:
        ax.axvline(0.5, color=FAINT, lw=1.2, zorder=0)
        for progress, label in ((0.25, "alone"), (0.75, "fused")):
            ax.text(progress, 1.015, label, ha="center", fontsize=8.5, color=QUIET)
    ax.set_xlim(0, 1)
    set_percent_axis(ax, "y", 1.07, ticks=FIFTHS)
    ax.set_xticks([0, 0.5, 1], ["start", "half", "end"])
    draw_end_labels(ax, ends, font_size=8)


def draw_fused_curves_and_make_label(
    ax: Axes, method_results: MethodResults, progress_and_accuracy_by_seed: Mapping[int, XYPoints]
) -> EndLabel:
    """Draw one method's curves from its first global model on, and return the label of their right end.

    progress_and_accuracy_by_seed: {seed: (progress 0–1, accuracy 0–1) of each point}
    """
    style = {
        "alpha": 0.5 if method_results.pinned else 1,
        "ls": (0, (4, 2)) if method_results.pinned else method_results.look.line,
        "lw": 1.9,
        "ms": 6,
        "markevery": [-1],
    }
    _, y = draw_seed_lines_and_get_mean(
        ax,
        progress_and_accuracy_by_seed,
        method_results.look.colour,
        method_results.look.marker,
        clip_on=False,
        **style,
    )
    remark = "one seed"
    if len(progress_and_accuracy_by_seed) > 1:
        remark = f"mean of {format_count_and_noun(len(progress_and_accuracy_by_seed), 'seed')}; thin: each of them"
    text = f"{method_results.name}\n{format_percent(y[-1])} so far ({remark})"
    attach_hover_text(ax.lines[-1], text, method=method_results.highlight_key)
    return EndLabel(
        y[-1], f"  {shorten_method_title(method_results.label)}", method_results.look.colour
    )  # beside its marker


def describe_best_method(series: Sequence[MethodResults]) -> str:
    """Say which method is best, by how much, and whether that is more than noise."""
    if not series:
        return "No result yet."
    rivals = [s for s in series if not s.bound] or list(series)
    best, *other_methods = sorted(rivals, key=lambda s: -s.mean)
    text = f"{describe_best_second_and_last_method(best, other_methods)}."
    bounds = [f"{s.name} {format_percent(s.mean)}" for s in series if s.bound and s not in rivals]
    if bounds:
        text += f" For reference: {join_with_and(bounds)}."
    return text


def describe_best_second_and_last_method(
    best: MethodResults, other_methods: Sequence[MethodResults]
) -> str:
    """Compare the best method with the second and the last one in words.

    other_methods: the other methods, the most accurate first
    """
    name = capitalize_first_letter(best.name)
    if not other_methods:
        return f"{name} reaches {format_percent(best.mean)}"
    # With a single client every method ends with the same model.
    if all(s.accuracies == best.accuracies for s in other_methods):
        text = f"{'All' if len(other_methods) > 1 else 'Both'} reach the same {format_percent(best.mean)}"
        if len(best.accuracies) == 1:
            text += "; with one seed this may be chance"
        return text
    text = f"{name} is best with {format_percent(best.mean)}{describe_lead_over_second(best, other_methods[0])}"
    if len(other_methods) > 1:
        text += f"; {other_methods[-1].name} is last with {format_percent(other_methods[-1].mean)}"
    return text


def describe_lead_over_second(best: MethodResults, second: MethodResults) -> str:
    """Say how far the second method is behind, and whether that is more than noise."""
    is_paired = best.setting == second.setting
    lead = difference(best.accuracies, second.accuracies, paired=is_paired)
    # The difference that a reader finds by subtracting the rounded means.
    rounded_lead = round(100 * best.mean) - round(100 * second.mean)
    has_same_seeds = best.accuracies.keys() == second.accuracies.keys()
    needs_decimal = has_same_seeds and rounded_lead != round(100 * lead.mean)
    points = format_percent_band(lead, 1 if needs_decimal else None)
    distance_text = f"follows {points} points behind"
    if points == "0":
        distance_text = "is level with it"
    elif points == "1":
        distance_text = "follows 1 point behind"
    return choose_words_by_significance(
        lead,
        noise_words=f"; {second.name} is {points} points behind, which is within the noise",
        clear_words=f", clearly ahead of {second.name} (by {points} points)",
        one_seed_words=f", {second.name} {distance_text}; with one seed this may be noise",
    )


def make_accuracy_table(series: Sequence[MethodResults]) -> TableRows:
    """Make the table of all accuracies, with one row per series."""
    rows = []
    for s in series:
        seeds = format_percent_of_each_seed(s.accuracies)
        rows.append(
            (
                s.name,
                str(s.setting),
                format_percent(s.mean),
                format_half_width_or_seed_count(s.band),
                seeds,
            )
        )
    return build_table("method | setting | accuracy | ± 95 % band | seeds", rows)
