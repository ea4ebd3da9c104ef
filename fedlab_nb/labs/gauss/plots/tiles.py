"""Rows of small images, one column a class: what class statistics of pixels look like."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import no_spines
from ....plots.style import ACCENT, INK, shorten

MOST = 20  # classes with a column of their own, at most


def tile_rows(
    ax: Axes, rows: Sequence[tuple[str, np.ndarray]], names: Sequence[str], klass: int | None = None,
    below: Sequence[str] = (),
) -> None:  # fmt: skip
    """`rows`: a word and images `[C, c, H, W]` in [0, 1]; an image of NaN is left out. below: a second line under each
    class's name;   klass: the column that is marked. Classes beyond MOST are left out."""
    columns = min(len(names), MOST)
    channels, height, width = rows[0][1].shape[1:]
    gap = max(1, round(0.12 * width))
    page = np.ones((len(rows) * (height + gap), columns * (width + gap), channels))
    for r, (_, images) in enumerate(rows):
        for c, image in enumerate(images[:columns]):
            y, x = r * (height + gap), c * (width + gap)
            tile = page[y : y + height, x : x + width]
            tile[:] = 0.93 if np.isnan(image).any() else np.moveaxis(image.clip(0, 1), 0, -1)
    ax.imshow(page.squeeze(-1) if channels == 1 else page, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    words = shorten(names[:columns], 9)
    words = [f"{name}\n{more}" for name, more in zip(words, below, strict=False)] if below else words
    ax.set_xticks(np.arange(columns) * (width + gap) + (width - 1) / 2, words)
    ax.set_yticks(np.arange(len(rows)) * (height + gap) + (height - 1) / 2, [word for word, _ in rows])
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    no_spines(ax)
    if klass is not None and klass < columns:
        x = klass * (width + gap) - gap / 2
        ax.axvspan(x - 0.5, x + width + gap - 0.5, fill=False, edgecolor=ACCENT, lw=2.5, zorder=3)
