"""The synthetic images of one server epoch, a column for each class, and how hard they are for teacher and student."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..methods.parts.synthesis import SynthesisReport
from .axes import HALVES, colour_bar, few_ticks, legend_above, level_line, no_spines, percent_axis
from .kit import told
from .style import ACCENT, INK, QUIET, SECOND, Picture, drawing, dress, heading, shorten
from .words import percent, plural, tabled

ROWS = 3  # synthetic images of a class, at most
COLUMNS = 10  # classes with a column of their own, at most; of more classes, images in a row


def gallery(
    report: SynthesisReport, class_names: Sequence[str], *, setting: str, frame: int = -1, epochs: int = 0,
    real: np.ndarray | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """Picture of one of the report's frames: images by intended class, or feature rows.

    frame:  which of those kept (-1: the last);   epochs: of the whole run, while fewer are done
    real:   one real image a class `[C, c, H, W]`, for comparison;   klass: the class that is looked at
    """
    images, labels = report.synthetic_images[frame], report.synthetic_labels[frame]
    epoch, epochs = int(report.synthetic_epochs[frame]), max(epochs, len(report.difficulty))
    are_images = images.ndim == 4
    with drawing(2, 1, height_ratios=[2.5 if are_images else 2, 1]) as (figure, (upper, lower)):
        if are_images:
            tiles(upper, images, labels, class_names, real, klass)
        else:
            strips(upper, images, labels, class_names)
        heading(upper, f"Epoch {epoch} of {epochs}", 6)
        series(lower, report, epoch, epochs)
    hard, differ = float(report.difficulty[epoch - 1]), float(report.disagreement[epoch - 1])
    sentence = (
        f"Images of epoch {epoch}: on average the ensemble gives the wanted class a probability of "
        f"{percent(1 - hard)}. Before the server model learns from them, it disagrees with the ensemble on "
        f"{percent(differ)} of them."
    )
    rows = zip(map(percent, report.difficulty), map(percent, report.disagreement), strict=True)
    table = tabled("epoch | difficulty | disagreement", ((t, *row) for t, row in enumerate(rows, 1)))
    title = f"{plural(len(images), 'synthetic image')} of server epoch {epoch} of {epochs} by intended class"
    return told(figure, title, setting, sentence, table)


def one_of_each(dataset: Any) -> np.ndarray | None:
    """The first test image of each class `[C, c, H, W]`, to look at; None where a class has none, or without images."""
    y = dataset.y_test.numpy()
    first = [int(rows[0]) for c in range(dataset.classes) if len(rows := np.flatnonzero(y == c))]
    images = dataset.x_test[first].numpy()
    return images if len(first) == dataset.classes and images.ndim == 4 else None


def tiles(
    ax: Axes, images: np.ndarray, labels: np.ndarray, names: Sequence[str], real: np.ndarray | None, klass: int | None
) -> None:
    """One composed image: a column a class with a real image on top, or the images in rows with their names below."""
    pixels = np.moveaxis(images, 1, -1).astype(float) / 255
    _, height, width, channels = pixels.shape
    gap = max(1, round(0.09 * width))
    by_class = len(names) <= COLUMNS
    columns = len(names) if by_class else 10
    rows = ROWS + (real is not None) if by_class else -(-len(pixels) // columns)
    page = np.ones((rows * (height + gap), columns * (width + gap), channels))

    def put(row: int, column: int, tile: np.ndarray) -> None:
        y, x = row * (height + gap), column * (width + gap)
        page[y : y + height, x : x + width] = tile

    if by_class:
        for c in range(len(names)):
            shown = [] if real is None else [np.moveaxis(real[c], 0, -1)]
            for row, tile in enumerate([*shown, *pixels[labels == c][:ROWS]]):
                put(row, c, tile)
        ax.set_xticks(np.arange(columns) * (width + gap) + (width - 1) / 2, shorten(names, 9))
        marks = ["made"] if real is None else ["real", "made"]
        ax.set_yticks([i * (height + gap) + height / 2 for i in range(len(marks))], marks)
        if klass is not None and klass < columns:
            x = klass * (width + gap) - gap / 2
            ax.axvspan(x - 0.5, x + width + gap - 0.5, fill=False, edgecolor=ACCENT, lw=2.5, zorder=3)
    else:
        for s, tile in enumerate(pixels):
            put(s // columns, s % columns, tile)
            x, y = s % columns * (width + gap), (s // columns + 1) * (height + gap)
            box = {"facecolor": ACCENT if labels[s] == klass else INK, "alpha": 0.7, "pad": 1, "lw": 0}
            ax.text(x, y - gap, *shorten([names[labels[s]]], 8), fontsize=8, va="bottom", color="white", bbox=box)
        ax.set(xticks=[], yticks=[])
    ax.imshow(page.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    no_spines(ax)


def strips(ax: Axes, rows: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> None:
    """Feature rows, sorted by class: no pictures, so their values in colour."""
    order = np.argsort(labels, kind="stable")
    image = ax.imshow(rows[order], cmap="cividis", aspect="auto", interpolation="nearest")
    ax.set_yticks(range(len(rows)), shorten([names[labels[s]] for s in order], 9))
    ax.set_xlabel("feature", fontsize=9, color=QUIET)
    colour_bar(image, ax)
    ax.tick_params(length=0, labelsize=7, labelcolor=INK)
    no_spines(ax)


def series(ax: Axes, report: SynthesisReport, epoch: int, epochs: int) -> None:
    """Difficulty and disagreement by epoch, with the shown epoch marked."""
    dress(ax, x="server epoch", grid="y")
    x = np.arange(1, len(report.difficulty) + 1)
    style = {"lw": 1.9, "ms": 3.5, "clip_on": False}
    ax.plot(x, report.difficulty, "o-", color=SECOND, label="difficulty for the ensemble", **style)
    ax.plot(x, report.disagreement, "s-", color=ACCENT, label="server model contradicts", **style)
    level_line(ax, epoch, axis="x", colour=INK, lw=1.4)
    ax.set_xlim(0.5, max(epochs, 2) + 0.5)
    percent_axis(ax, ticks=HALVES)
    few_ticks(ax, "x", 10, whole=True)
    legend_above(ax, 2)
