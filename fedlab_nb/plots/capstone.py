"""The capstone's two pictures: what the server sees of a federation, and the tries against the byte
budget.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.patheffects import withStroke

from .array_types import NoisyClientClassCounts
from .kit import describe_picture, draw_accuracy_against_bytes_points, draw_client_class_heat_map
from .marks import attach_hover_text
from .series import MethodResults, select_results_with_accuracies
from .style import ACCENT, QUIET, SECOND, Picture, darken_colour_until_readable, drawing, dress
from .words import (
    build_table,
    format_client_letters,
    format_count_and_noun,
    format_data_size,
    join_with_and,
)


def draw_noisy_class_counts(
    samples_per_client: Sequence[int],
    noisy_class_counts: NoisyClientClassCounts,
    *,
    federation_code: str,
) -> Picture:
    """Draw the samples of each client above, and its class counts below.

    noisy_class_counts: class counts `[M, C]` with noise
    """
    clients, classes = noisy_class_counts.shape
    with drawing(2, 1, height_ratios=[1, 3], sharex=True) as (figure, (upper, lower)):
        dress(upper, title=f"{federation_code}: training samples of each client", grid="y")
        bars = upper.bar(range(clients), samples_per_client, width=0.7, color=QUIET)
        for k, bar in enumerate(bars):
            samples = format_count_and_noun(samples_per_client[k], "sample")
            attach_hover_text(bar, f"client {format_client_letters(k)}\n{samples}", client=k)
        upper.tick_params(labelbottom=False)
        top = max(1.0, float(noisy_class_counts.max()))
        draw_client_class_heat_map(
            lower,
            noisy_class_counts,
            [str(c) for c in range(classes)],
            "Class counts, with noise",
            top,
        )
    largest_client = int(np.argmax(samples_per_client))
    smallest_client = int(np.argmin(samples_per_client))
    text = (
        f"The largest of {clients} clients, {format_client_letters(largest_client)}, has "
        f"{samples_per_client[largest_client]} samples, the smallest, "
        f"{format_client_letters(smallest_client)}, {samples_per_client[smallest_client]}. The "
        "class counts have noise: small numbers may be zero in truth."
    )
    rows = []
    for k in range(clients):
        counts = " ".join(str(count) for count in noisy_class_counts[k].tolist())
        rows.append((format_client_letters(k), samples_per_client[k], counts))
    table = build_table("client | samples | noisy class counts", rows)
    return describe_picture(
        figure,
        f"Bars of the sizes of {clients} clients, and their class counts with noise",
        federation_code,
        text,
        table,
    )


def draw_tries_against_budget(
    tries: Sequence[MethodResults],
    budget_bytes: int,
    *,
    federation_code: str,
    tested_try: MethodResults | None = None,
) -> Picture:
    """Draw the validation accuracy of each try against the bytes of a client, with a line at the
    budget.

    tries: a series for each try; its `up` is the bytes of a client, both ways
    tested_try: the submitted try with its accuracies on the test images; it is a large diamond
    """
    finished_tries = select_results_with_accuracies(tries)
    with drawing() as (figure, ax):
        dress(
            ax,
            title=f"{federation_code}: tries on validation images",
            x="bytes of a client, up and down",
            grid="both",
        )
        ax.axvline(budget_bytes, color=SECOND, lw=1.6, ls=(0, (4, 2)))
        ax.text(
            budget_bytes, 0.02, " budget", color=darken_colour_until_readable(SECOND), fontsize=9.5
        )
        # Tries over the budget are hollow points, as pinned series are.
        points = [replace(s, pinned=s.total_bytes > budget_bytes) for s in finished_tries]
        draw_accuracy_against_bytes_points(ax, points, extra_axis_bytes=[budget_bytes])
        if tested_try is not None:
            place = ([tested_try.total_bytes], [tested_try.mean])
            ax.plot(*place, "D", ms=12, color=ACCENT, mec="white", mew=1.4, zorder=5)
            ax.annotate(
                "test",
                (tested_try.total_bytes, tested_try.mean),
                xytext=(10, -14),
                textcoords="offset points",
                color=ACCENT,
                weight="bold",
                fontsize=10,
            )
        for label in ax.texts:  # a halo, as a name may lie on the line
            label.set_path_effects([withStroke(linewidth=3, foreground="white")])
    tries_within_budget = [s for s in finished_tries if s.total_bytes <= budget_bytes]
    names_over_budget = [s.name for s in finished_tries if s.total_bytes > budget_bytes]
    text = "No try yet."
    if finished_tries:
        text = f"No try is within the budget of {format_data_size(budget_bytes)}."
    if tries_within_budget:
        best = max(tries_within_budget, key=lambda s: s.mean)
        text = (
            f"Within the budget of {format_data_size(budget_bytes)} {best.name} is best on "
            f"validation images, with {best.accuracy_text} %."
        )
        if names_over_budget:
            text += f" Over it: {join_with_and(names_over_budget)}."
    if tested_try is not None:
        text += f" On the test images {tested_try.name} gets {tested_try.accuracy_text} %."
    rows = []
    for s in finished_tries:
        is_within_bounds = "yes" if s.total_bytes <= budget_bytes else "no"
        rows.append((s.name, s.accuracy_text, round(s.total_bytes), is_within_bounds))
    table = build_table("try | validation accuracy, % | bytes | within the budget", rows)
    return describe_picture(
        figure,
        "Validation accuracy against the bytes of a client, with the budget",
        federation_code,
        text,
        table,
    )
