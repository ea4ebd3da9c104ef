"""The capstone's two pictures: what the server sees of a federation, and the tries against the byte budget."""

import math
from collections.abc import Sequence

import numpy as np

from .axes import percent_axis
from .kit import Heat, bytes_axis, name_points, told
from .series import Series, finished
from .style import QUIET, SECOND, Picture, drawing, dress
from .vector import mark
from .words import data_size, listed, plural, tabled

TOP = 1.03  # of the axis of accuracies
LINE = 0.006  # half the width of a line, in parts of the axes
BESIDE = 0.045  # so far no label should come to the budget: it would stand at the wrong side of it


def seen(sizes: Sequence[int], noisy: np.ndarray, *, code: str) -> Picture:
    """Samples of each client above, its classes below. noisy: counts [M, C] with noise."""
    clients, classes = noisy.shape
    with drawing(2, 1, height_ratios=[1, 3], sharex=True) as (figure, (upper, lower)):
        dress(upper, title=f"{code}: training samples of each client", grid="y")
        bars = upper.bar(range(clients), sizes, width=0.7, color=QUIET)
        for k, bar in enumerate(bars):
            mark(bar, f"client {k}\n{plural(sizes[k], 'sample')}", client=k)
        upper.tick_params(labelbottom=False)
        heat = Heat(lower, clients, [str(c) for c in range(classes)], signed=False)
        heat.show(noisy, "Class counts, with noise", max(1.0, float(noisy.max())), ring=False)
    large, small = int(np.argmax(sizes)), int(np.argmin(sizes))
    text = (
        f"The largest of {clients} clients, number {large}, has {sizes[large]} samples, the smallest, number {small}, "
        f"{sizes[small]}. The class counts have noise: small numbers may be zero in truth."
    )
    rows = ((k, sizes[k], " ".join(map(str, noisy[k].tolist()))) for k in range(clients))
    table = tabled("client | samples | noisy class counts", rows)
    return told(figure, f"Bars of the sizes of {clients} clients, and their class counts with noise", code, text, table)


def tried(series: Sequence[Series], budget: int, *, code: str) -> Picture:
    """Validation accuracy of each try against the bytes of a client, and a line at the budget.

    series: one a try; its `up` has the bytes of a client, both ways
    """
    done = finished(series)
    with drawing() as (figure, ax):
        dress(ax, title=f"{code}: tries on validation images", x="bytes of a client, up and down", grid="both")
        ax.axvline(budget, color=SECOND, lw=1.6, ls=(0, (4, 2)))
        ax.text(budget, 0.02, " budget", color=SECOND, fontsize=9.5)
        for s in sorted(done, key=lambda s: s.mean):
            x, (hue, marker, _) = max(s.total, 1.0), s.look
            ax.plot([x] * len(s.ends), s.ends, color=hue, lw=1.6, alpha=0.6)
            inside = hue if s.total <= budget else "white"
            point = ax.plot([x], [s.mean], marker, ms=8, color=hue, mfc=inside, mew=1.6)[0]
            mark(point, s.says, method=s.held_as)
        bytes_axis(ax, [budget, *(s.total for s in done if s.total)], pad=2.5)
        percent_axis(ax, "y", TOP)
        low, high = ax.get_xlim()
        across = [math.log(max(x, low) / low) / math.log(high / low) for x in (budget, *(s.total for s in done))]
        bands = [(x, s.ends) for x, s in zip(across[1:], done, strict=True) if s.ends]
        lines = [(x - LINE, x + LINE, ends[0] / TOP, ends[1] / TOP) for x, ends in bands]
        word = (across[0], across[0] + 0.1, 0.0, 0.05)
        name_points(ax, done, [(across[0] - BESIDE, across[0] + BESIDE, 0.0, 1.0), word, *lines])
    within = [s for s in done if s.total <= budget]
    if not done:
        text = "No try yet."
    elif not within:
        text = f"No try is within the budget of {data_size(budget)}."
    else:
        top = max(within, key=lambda s: s.mean)
        text = f"Within the budget of {data_size(budget)} {top.name} is best on validation images, with {top.number} %."
    over = [s.name for s in done if s.total > budget]
    text += f" Over it: {listed(over)}." if over and within else ""
    rows = ((s.name, s.number, round(s.total), "yes" if s.total <= budget else "no") for s in done)
    table = tabled("try | validation accuracy, % | bytes | within the budget", rows)
    return told(figure, "Validation accuracy against the bytes of a client, with the budget", code, text, table)
