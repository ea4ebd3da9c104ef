"""The capstone's two pictures: what the server sees of a federation, and the tries against the byte budget."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .kit import describe_picture, draw_clients_and_classes, draw_points
from .series import Series, select_finished
from .style import ACCENT, QUIET, SECOND, Picture, drawing, dress
from .vector import mark
from .words import build_table, data_size, format_letters, join_words, plural


def draw_class_counts(sizes: Sequence[int], noisy: np.ndarray, *, code: str) -> Picture:
    """Samples of each client above, its classes below. noisy: counts [M, C] with noise."""
    clients, classes = noisy.shape
    with drawing(2, 1, height_ratios=[1, 3], sharex=True) as (figure, (upper, lower)):
        dress(upper, title=f"{code}: training samples of each client", grid="y")
        for k, bar in enumerate(upper.bar(range(clients), sizes, width=0.7, color=QUIET)):
            mark(bar, f"client {format_letters(k)}\n{plural(sizes[k], 'sample')}", client=k)
        upper.tick_params(labelbottom=False)
        top = max(1.0, float(noisy.max()))
        draw_clients_and_classes(
            lower, noisy, [str(c) for c in range(classes)], "Class counts, with noise", top
        )
    large = int(np.argmax(sizes))
    small = int(np.argmin(sizes))
    text = (
        f"The largest of {clients} clients, {format_letters(large)}, has {sizes[large]} samples, the smallest, "
        f"{format_letters(small)}, {sizes[small]}. The class counts have noise: small numbers may be zero in truth."
    )
    rows = []
    for k in range(clients):
        counts = " ".join(str(count) for count in noisy[k].tolist())
        rows.append((format_letters(k), sizes[k], counts))
    table = build_table("client | samples | noisy class counts", rows)
    return describe_picture(
        figure,
        f"Bars of the sizes of {clients} clients, and their class counts with noise",
        code,
        text,
        table,
    )


def draw_tries(
    series: Sequence[Series], budget: int, *, code: str, tested: Series | None = None
) -> Picture:
    """Validation accuracy of each try against the bytes of a client, and a line at the budget.

    series: one a try; its `up` has the bytes of a client, both ways
    tested: the submitted try with its accuracies on the test images, a large diamond
    """
    done = select_finished(series)
    with drawing() as (figure, ax):
        dress(
            ax,
            title=f"{code}: tries on validation images",
            x="bytes of a client, up and down",
            grid="both",
        )
        ax.axvline(budget, color=SECOND, lw=1.6, ls=(0, (4, 2)))
        ax.text(budget, 0.02, " budget", color=SECOND, fontsize=9.5)
        draw_points(ax, [replace(s, pinned=s.total > budget) for s in done], besides=[budget])
        if tested is not None:
            place = ([tested.total], [tested.mean])
            ax.plot(*place, "D", ms=12, color=ACCENT, mec="white", mew=1.4, zorder=5)
            ax.annotate(
                "test",
                (tested.total, tested.mean),
                xytext=(10, -14),
                textcoords="offset points",
                color=ACCENT,
                weight="bold",
                fontsize=10,
            )
    within = [s for s in done if s.total <= budget]
    over = [s.name for s in done if s.total > budget]
    text = "No try yet."
    if done:
        text = f"No try is within the budget of {data_size(budget)}."
    if within:
        best = max(within, key=lambda s: s.mean)
        text = (
            f"Within the budget of {data_size(budget)} {best.name} is best on validation images, "
            f"with {best.number} %."
        )
        if over:
            text += f" Over it: {join_words(over)}."
    if tested is not None:
        text += f" On the test images {tested.name} gets {tested.number} %."
    rows = []
    for s in done:
        is_within = "yes" if s.total <= budget else "no"
        rows.append((s.name, s.number, round(s.total), is_within))
    table = build_table("try | validation accuracy, % | bytes | within the budget", rows)
    return describe_picture(
        figure,
        "Validation accuracy against the bytes of a client, with the budget",
        code,
        text,
        table,
    )
