"""The images that a client sends, beside the nearest of its own."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import no_spines
from ....plots.characters import client_name
from ....plots.style import ACCENT, INK, QUIET, SECOND, Picture, drawing, heading, shorten
from ....plots.tile import show_tile
from ....plots.words import capital, listed, plural, tabled
from ..numbers import Neighbours

MOST = 12  # pairs in one picture


def pairs(of: Neighbours, class_names: Sequence[str], *, setting: str, way: str, klass: int | None = None) -> Picture:
    """Picture of at most MOST pairs, of class `klass` alone where the client sends some. way: how they were chosen."""
    chosen = np.flatnonzero(of.labels == klass) if klass is not None else np.array([], dtype=int)
    rows = chosen if len(chosen) else np.arange(len(of.labels))
    shown = rows[np.unique(np.linspace(0, len(rows) - 1, min(MOST, len(rows))).round().astype(int))]
    with drawing() as (figure, ax):
        page(ax, of, shown, class_names)
        who = capital(client_name(of.client, setting))
        heading(ax, f"{who} sends {way}; below, the nearest of its own", 8)
    names = [class_names[c] for c in sorted(set(of.labels.tolist()))]
    copies = int(of.copies.sum())
    text = f"Client {of.client} sends {plural(len(of.labels), 'image')} of {plural(len(names), 'class')}"
    text += f" ({listed(names)}). "
    if copies == len(of.labels):
        text += "Each of them is one of its own images, pixel by pixel."
    else:
        text += f"{plural(copies, 'image')} of them {'is' if copies == 1 else 'are'} its own, pixel by pixel"
        text += f"; the median distance to the nearest of its own is {np.median(of.distance):.3f} per pixel"
        if np.isfinite(of.typical):
            text += f", and between two of its own {of.typical:.3f}"
        text += "."
    distances = ", ".join(f"{of.distance[s]:.3f}" for s in shown)
    alt = (
        f"{plural(len(shown), 'pair')} of images ({setting}): above what client {of.client} sends ({way}), below the "
        f"nearest of its own training images; root mean square distances a pixel: {distances}."
    )
    cells = zip(of.labels, of.nearest_labels, of.distance, of.copies, strict=True)
    table = tabled(
        "image | class | class of the nearest | distance | its own",
        (
            (i, class_names[a], class_names[b], round(float(d), 4), "yes" if same else "no")
            for i, (a, b, d, same) in enumerate(cells)
        ),
    )
    return Picture(figure, alt, text, table)


def page(ax: Axes, of: Neighbours, shown: np.ndarray, names: Sequence[str]) -> None:
    """Two rows of tiles in each band of six columns, distances between them."""
    columns = min(6, max(1, len(shown)))
    bands = -(-len(shown) // columns)
    for place, s in enumerate(shown):
        band, column = divmod(place, columns)
        top = band * 2.5
        for row, values in ((0, of.sent[s]), (1, of.nearest[s])):
            show_tile(ax, values, column, top + 1.2 * row)
        near = of.copies[s]
        words = "the same" if near else f"{of.distance[s]:.3f}"
        ax.text(column + 0.5, top + 1.1, words, ha="center", va="center", fontsize=9, color=SECOND if near else QUIET)
        label = shorten([names[of.labels[s]]], 7)[0]
        ax.text(column + 0.1, top + 0.1, label, fontsize=9, va="top", color="white",
                bbox={"facecolor": ACCENT, "alpha": 0.75, "pad": 1, "lw": 0})  # fmt: skip
    ticks = [(band * 2.5 + at, word) for band in range(bands) for at, word in ((0.5, "sent"), (1.7, "own"))]
    ax.set_yticks([at for at, _ in ticks], [word for _, word in ticks])
    ax.set(xlim=(0, columns), ylim=(bands * 2.5 - 0.2, 0), xticks=[], aspect="equal", anchor="W")
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    no_spines(ax)
