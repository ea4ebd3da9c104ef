"""The synthetic images of one server epoch, a column for each class, and how hard they are for teacher and student."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .style import ACCENT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure, shorten
from .words import percent, plural

ROWS = 3  # synthetic images of a class, at most
COLUMNS = 10  # classes with a column of their own, at most; of more classes, images in a row


def gallery(
    images: np.ndarray,
    labels: np.ndarray,
    class_names: Sequence[str],
    *,
    epoch: int,
    epochs: int,
    difficulty: Sequence[float],
    disagreement: Sequence[float],
    setting: str,
    real: np.ndarray | None = None,
    klass: int | None = None,
) -> Picture:
    """Picture of `images [S, c, H, W]` (0–255; or feature rows `[S, D]`) made with the intended `labels [S]`.

    epoch:        the one shown, from 1;   epochs: of the whole run
    difficulty:   per epoch done, mean of 1 − (the teacher's probability of the intended label) on the new batch
    disagreement: per epoch done, share of the new batch that the student, before it learns from it, calls otherwise
    real:         one real image a class `[C, c, H, W]`, for comparison;   klass: the class that is looked at
    """
    images, labels = np.asarray(images), np.asarray(labels)
    with LOCK:
        figure = new_figure()
        if images.ndim == 4:
            upper, lower = figure.subplots(2, 1, height_ratios=[2.5, 1])
            tiles(upper, images, labels, class_names, real, klass)
        else:
            upper, lower = figure.subplots(2, 1, height_ratios=[2, 1])
            strips(upper, figure, images, labels, class_names)
        upper.set_title(f"Epoch {epoch} of {epochs}", loc="left", fontsize=11, fontweight="bold", color=INK, pad=6)
        course(lower, difficulty, disagreement, epoch, epochs)
    hard, differ = float(difficulty[epoch - 1]), float(disagreement[epoch - 1])
    return Picture(
        figure,
        alt=(
            f"{plural(len(images), 'synthetic image')} of server epoch {epoch} of {epochs} by intended class "
            f"({setting}){', above them a real image of each class' if real is not None else ''}; lines of difficulty, "
            f"now {percent(hard)}, and of disagreement, now {percent(differ)}."
            + (f" Class number {klass} is marked." if klass is not None else "")
        ),
        sentence=(
            f"Images of epoch {epoch}: the ensemble gives the class that was asked for a probability of "
            f"{percent(1 - hard)} on average; the server model contradicts it on {percent(differ)} of them before it "
            "learns from them."
        ),
        table=[
            {"epoch": t + 1, "difficulty": percent(a), "disagreement": percent(b)}
            for t, (a, b) in enumerate(zip(difficulty, disagreement, strict=True))
        ],
    )


def tiles(
    ax: Axes,
    images: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    real: np.ndarray | None,
    klass: int | None,
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
        first = int(real is not None)
        for c in range(len(names)):
            if real is not None:
                put(0, c, np.moveaxis(np.asarray(real[c], dtype=float), 0, -1))
            for i, s in enumerate(np.flatnonzero(labels == c)[:ROWS]):
                put(first + i, c, pixels[s])
        ticks = [f"{shorten([n], 9)[0]}" for n in names]
        ax.set_xticks(np.arange(columns) * (width + gap) + (width - 1) / 2, ticks)
        marks = ([("real", height / 2)] if first else []) + [("made", (first * (height + gap)) + height / 2)]
        ax.set_yticks([y for _, y in marks], [word for word, _ in marks])
        if klass is not None and klass < columns:
            x = klass * (width + gap) - gap / 2
            ax.axvspan(x - 0.5, x + width + gap - 0.5, fill=False, edgecolor=ACCENT, lw=2.5, zorder=3)
    else:
        for s, tile in enumerate(pixels):
            put(s // columns, s % columns, tile)
            x, y = s % columns * (width + gap), (s // columns + 1) * (height + gap)
            box = {"facecolor": ACCENT if labels[s] == klass else INK, "alpha": 0.7, "pad": 1, "lw": 0}
            name = shorten([names[labels[s]]], 8)[0]
            ax.text(x, y - gap, name, fontsize=8, va="bottom", color="white", bbox=box)
        ax.set_xticks([])
        ax.set_yticks([])
    ax.imshow(page.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    bare(ax)


def strips(ax: Axes, figure: Figure, rows: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> None:
    """Feature rows, sorted by class: no pictures, so their values in colour."""
    order = np.argsort(labels, kind="stable")
    image = ax.imshow(rows[order], cmap="cividis", aspect="auto", interpolation="nearest")
    ax.set_yticks(range(len(rows)), [shorten([names[labels[s]]], 9)[0] for s in order])
    ax.set_xlabel("feature", fontsize=9, color=QUIET)
    bar = figure.colorbar(image, ax=ax, pad=0.01)
    bar.ax.tick_params(labelsize=8.5)
    bare(ax)
    ax.tick_params(labelsize=7)


def bare(ax: Axes) -> None:
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)


def course(ax: Axes, difficulty: Sequence[float], disagreement: Sequence[float], epoch: int, epochs: int) -> None:
    """Both series by epoch, with the shown epoch marked."""
    dress(ax, x="server epoch", grid="y")
    x = np.arange(1, len(difficulty) + 1)
    style = {"lw": 1.9, "ms": 3.5, "clip_on": False}
    ax.plot(x, difficulty, "o-", color=SECOND, label="difficulty for the ensemble", **style)
    ax.plot(x, disagreement, "s-", color=ACCENT, label="server model contradicts", **style)
    ax.axvline(epoch, color=INK, lw=1.4, ls=(0, (2, 2)))
    ax.set_xlim(0.5, max(epochs, 2) + 0.5)
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1])
    ax.yaxis.set_major_formatter(PERCENT)
    ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98))
