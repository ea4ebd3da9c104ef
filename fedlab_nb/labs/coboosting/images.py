"""The synthetic images of an epoch, a column for each class, in words how hard they are for teacher and student: of
Co-Boosting and of the other data-free methods (DENSE, F-DAFL, F-ADI).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from ipywidgets import SelectionSlider
from matplotlib.axes import Axes

from ...methods.parts.synthesis import SynthesisReport
from ...panels import LabSpec, LabView, PanelState, made, player
from ...plots import Picture, drawing, heading, percent, plural, tabled, told
from ...plots.kit import tiles
from ...plots.style import ACCENT, INK, shorten
from ..runs import where

ROWS = 3  # synthetic images of a class, at most
COLUMNS = 10  # classes with a column of their own, at most; of more classes, images in a row

DATA_FREE = {  # the methods whose labs have these images alone: their knobs
    "dense": ("epochs", "images", "generator_steps", "bn_weight", "div_weight", "temperature"),
    "fdafl": ("epochs", "images", "generator_steps", "temperature"),
    "fadi": ("epochs", "images", "temperature"),
}


class Images(LabView):
    """The synthetic images of an epoch, and a replay over the epochs."""

    name, title, ready = "images", "Synthetic images", "live"

    def __init__(self) -> None:
        shown = {"help": "The epoch whose images are shown", "options": [("–", 0)]}
        self.epoch = made(SelectionSlider, label="Server epoch", width=330, label_width=88, **shown)
        self.play = player(self.epoch, interval=700, tooltip="Replay the epochs")

    def adapt(self, state: PanelState) -> None:
        options = [(str(t), i) for i, t in enumerate(state.report.synthetic_epochs)]
        if list(self.epoch.options) != options:
            last = self.epoch.index in (None, len(self.epoch.options) - 1)
            index = len(options) - 1 if last else min(self.epoch.index, len(options) - 1)
            self.epoch.options = options
            self.epoch.index, self.play.max = index, len(options) - 1

    def draw(self, state: PanelState) -> Picture:
        report, dataset = state.report, state.federation.dataset
        alike = dataset.x_test.shape[1:] == report.synthetic_images.shape[2:]
        about = {"setting": where(state), "epochs": planned(state), "klass": state.klass}
        about |= {"frame": min(self.epoch.value, len(report.synthetic_epochs) - 1)}
        return gallery(
            report, state.class_names, real=one_of_each(dataset) if alike else None, **about
        )


def planned(state: PanelState) -> int:
    """Epochs of the run that goes on; 0 once it has ended."""
    return state.knobs["epochs"] if state.outcome is None else 0


def data_free(method: str) -> LabSpec:
    """What the lab of `method` (a key of DATA_FREE) consists of."""
    settings = {"seeds": 1, "ensemble.rule": "logits"}  # the teacher
    return LabSpec(
        method,
        ("ensemble", "feddf"),
        DATA_FREE[method],
        settings=settings,
        views=(Images,),
        name="lab",
    )


# ------------------------------------------------------------------------------------------------ picture
def gallery(
    report: SynthesisReport, class_names: Sequence[str], *, setting: str, frame: int = -1, epochs: int = 0,
    real: np.ndarray | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """Picture of one of the report's frames: images, or features as strips, by intended class.

    frame:  which of those kept (-1: the last);   epochs: of the whole run, while fewer are done
    real:   one real image a class `[C, c, H, W]`, for comparison;   klass: the class that is looked at
    """
    images, labels = report.synthetic_images[frame], report.synthetic_labels[frame]
    epoch, epochs = int(report.synthetic_epochs[frame]), max(epochs, len(report.difficulty))
    with drawing() as (figure, ax):
        images_of(ax, images, labels, class_names, real, klass)
        heading(ax, f"Epoch {epoch} of {epochs}", 6)
    hard, differ = float(report.difficulty[epoch - 1]), float(report.disagreement[epoch - 1])
    sentence = (
        f"Images of epoch {epoch}: on average the ensemble gives the wanted class a probability of "
        f"{percent(1 - hard)}. Before the server model learns from them, it disagrees with the ensemble on "
        f"{percent(differ)} of them."
    )
    rows = zip(map(percent, report.difficulty), map(percent, report.disagreement), strict=True)
    table = tabled(
        "epoch | difficulty | disagreement", ((t, *row) for t, row in enumerate(rows, 1))
    )
    title = f"{plural(len(images), 'synthetic image')} of server epoch {epoch} of {epochs} by intended class"
    return told(figure, title, setting, sentence, table)


def one_of_each(dataset: Any) -> np.ndarray | None:
    """The first test image of each class `[C, c, H, W]`, to look at; None where a class has none, or for rows."""
    y = dataset.y_test.numpy()
    first = [int(rows[0]) for c in range(dataset.classes) if len(rows := np.flatnonzero(y == c))]
    images = dataset.x_test[first].numpy()
    return images if len(first) == dataset.classes and images.ndim > 2 else None


def images_of(
    ax: Axes,
    images: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    real: np.ndarray | None,
    klass: int | None,
) -> None:
    """A column a class with a real image on top; of many classes the images in rows, with their names below."""
    pixels = images.astype(float) / (255 if images.ndim == 4 else 1)
    if len(names) > COLUMNS:
        words = {
            (s // 10, s % 10): (names[c], ACCENT if c == klass else INK)
            for s, c in enumerate(labels)
        }
        short = {at: (shorten([name], 8)[0], colour) for at, (name, colour) in words.items()}
        tiles(
            ax,
            [("", pixels[first : first + 10]) for first in range(0, len(pixels), 10)],
            under=short,
        )
        return
    columns = [[*pixels[labels == c][:ROWS], *[None] * ROWS] for c in range(len(names))]
    rows = [] if real is None else [("real", real)]
    rows += [("" if r else "made", [column[r] for column in columns]) for r in range(ROWS)]
    tiles(ax, rows, columns=shorten(names, 9), marked=klass)
