"""The means of one client's classes as the server reads them off the class sums, beside the client's own images."""

from collections.abc import Sequence

import numpy as np

from ....plots.axes import no_spines
from ....plots.characters import client_name
from ....plots.style import ACCENT, INK, QUIET, SECOND, Picture, drawing, heading, shorten
from ....plots.tile import show_tile
from ....plots.words import listed, marked_words, plural, tabled
from ..numbers import ClassMeans

MOST = 10  # classes in one picture


def class_means(of: ClassMeans, class_names: Sequence[str], *, setting: str, klass: int | None = None) -> Picture:
    """Two rows of images: class sum divided by count, and the client's own nearest image."""
    order = np.argsort(of.counts, kind="stable")[:MOST]
    with drawing() as (figure, ax):
        for column, i in enumerate(order):
            leaks = bool(of.leaked[i])
            for row, values in ((0, of.means[i]), (1, of.nearest[i])):
                show_tile(ax, values, column, 1.45 * row)
            word = "the same" if leaks else f"{of.distance[i]:.2f}"
            ax.text(column + 0.5, 1.22, word, ha="center", va="center", fontsize=9, color=SECOND if leaks else QUIET)
            name = shorten([class_names[of.classes[i]]], 7)[0]
            ax.text(column + 0.5, -0.05, f"{name}: {of.counts[i]}", ha="center", va="bottom", fontsize=9,
                    color=ACCENT if klass == of.classes[i] else INK)  # fmt: skip
        ax.set_yticks([0.5, 1.95], ["sum ÷ count", "own image"])
        ax.set(xlim=(0, max(6, len(order))), ylim=(2.45, -0.35), xticks=[], aspect="equal", anchor="W")
        ax.tick_params(length=0, labelsize=10, labelcolor=INK)
        no_spines(ax)
        heading(ax, f"What the server reads off {client_name(of.client, setting)}'s class sums (class: images)", 12)
    single = [class_names[c] for c, n in zip(of.classes, of.counts, strict=True) if n == 1]
    if single:
        one = (
            f"Of {listed(single)} it has one image each"
            if len(single) > 1
            else f"Of class {single[0]} it has one image"
        )
        text = f"{one}, and the class sum is that image, pixel by pixel."
    else:
        text = f"No class of client {of.client} has one image alone; its class sums are sums of several."
    text += f" The counts of all {plural(len(of.classes), 'class')} are in the last row of the sums, too."
    cells = zip(of.classes, of.counts, of.distance, of.leaked, strict=True)
    table = tabled(
        "class | images | largest difference of a pixel | the same image",
        ((class_names[c], int(n), round(float(d), 4), "yes" if same else "no") for c, n, d, same in cells),
    )
    alt = (
        f"{plural(len(order), 'pair')} of images ({setting}): above, each class sum of client {of.client} divided by "
        f"its count; below, the nearest of its own training images. {plural(int(of.leaked.sum()), 'pair')} the same."
        f"{marked_words(of.client, klass)}"
    )
    return Picture(figure, alt, text, table)
