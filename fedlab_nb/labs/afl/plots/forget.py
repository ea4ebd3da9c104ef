"""A client that is taken out of the sums: accuracy of each class with it and without it."""

from collections.abc import Sequence

import numpy as np

from ....plots.axes import FIFTHS, class_ticks, mark, percent_axis
from ....plots.characters import client_name
from ....plots.style import ACCENT, QUIET, Picture, drawing, dress, legend, look
from ....plots.words import listed, marked_words, percent, plural, tabled
from ..numbers import Forgotten


def forgotten(of: Forgotten, class_names: Sequence[str], *, setting: str, klass: int | None = None) -> Picture:
    """Bars of each class's test accuracy, with all clients and without the forgotten one."""
    places, who = np.arange(len(of.before)), client_name(of.client, setting)
    with drawing() as (figure, ax):
        dress(ax, title=f"With {who}, and as if it had never been there", x="class", y="", grid="y")
        ax.bar(places - 0.2, of.before, 0.38, color=QUIET, label="with all clients")
        ax.bar(places + 0.2, of.after, 0.38, color=look("afl").colour, label=f"without {who}")
        for place, count in zip(places, of.samples, strict=True):
            if count:
                ax.text(place, 1.03, f"{count}", ha="center", fontsize=9, color=ACCENT)
        class_ticks(ax, class_names)
        mark(ax, klass, len(places))
        percent_axis(ax, "y", 1.32, ticks=FIFTHS)
        legend(ax, loc="upper left", ncols=2, title=f"numbers: training samples that {who} had")
    before, after = (percent(share) for share in of.accuracy)
    fall = of.before - of.after
    worst = [class_names[c] for c in np.flatnonzero(fall >= 0.1)]
    hit = f" Classes that lose 10 points or more: {listed(worst)}." if worst else " No class loses 10 points."
    text = (
        f"Without client {of.client} and its {plural(int(of.samples.sum()), 'sample')} the server is right for {after} "
        f"(before: {before}).{hit} A fit to the other clients' samples from scratch gives the same weights: the "
        f"largest difference is {of.distance:.1g} of the largest weight. No client had to send anything again."
    )
    values = "; ".join(
        f"{name}: {percent(b)}, then {percent(a)}" for name, b, a in zip(class_names, of.before, of.after, strict=True)
    )
    alt = (
        f"Bars of each class's test accuracy ({setting}), with all clients and without client {of.client}: {values}."
        f"{marked_words(None, klass)}"
    )
    cells = zip(class_names, of.samples, of.before, of.after, strict=True)
    rows = ((name, int(n), percent(b), percent(a)) for name, n, b, a in cells)
    return Picture(figure, alt, text, tabled("class | samples of the client | with it | without it", rows))
