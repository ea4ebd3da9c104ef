"""The class sums of one client, each divided by its count, beside the client's own nearest images."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...methods.afl import AflReport
from ...panels import LabView, PanelState
from ...plots import Picture, blank, drawing, heading, listed, plural, tabled, told
from ...plots.characters import client_name
from ...plots.kit import tiles
from ...plots.style import QUIET, SECOND, shorten
from ...studies.outcome import Outcome
from ..runs import where

EXACT = 1e-5  # a pixel of what travelled in float32 and was divided again
MOST = 10  # classes in one picture


class Image(LabView):
    name, title = "image", "One image leaks"
    empty = "Press Run. The picture then shows what the server can read from a client's class sums."

    def draw(self, state: PanelState) -> Picture:
        features = state.outcome.options["features"]
        if state.report.classes is None:
            text = "The server has only the total, and not the class sums of one client. So there is nothing to show."
            return blank(text, setting=where(state))
        if features != "pixels":
            text = f"With {features} features a class sum is not an image. Set the features to pixels, and run again."
            return blank(text, setting=where(state))
        means = class_means(state.outcome)
        first = next((k for k, of in enumerate(means) if (of.counts == 1).any()), 0)  # a class with a single image
        at = state.client if state.client is not None and state.client < len(means) else first
        return leak(means[at], state.class_names, setting=where(state), klass=state.klass)


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """What the server reads off client `client`'s class sums: of each class that it holds the mean `means [K, ...]` and
    the `counts [K]`; `classes [K]`; `nearest [K, ...]` of the client's own images, and how far each is `[K]` (largest
    difference of a pixel)."""

    client: int
    classes: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    nearest: np.ndarray
    distance: np.ndarray

    @property
    def leaked(self) -> np.ndarray:
        """`[K]`: whether the mean is one of the client's images."""
        return self.distance < EXACT


def class_means(outcome: Outcome) -> list[ClassMeans]:
    """For each client of a run with pixels as features."""
    federation = outcome.federation()
    split = federation.split(outcome.plan.holdout)
    return [means_of(outcome.report, k, federation.dataset.x_train[rows].numpy()) for k, (rows, _) in enumerate(split)]


def means_of(report: AflReport, k: int, x: np.ndarray) -> ClassMeans:
    """`ClassMeans` of client k, whose own images are `x [n, ...]`."""
    assert report.classes is not None
    sums, counts = report.classes[k, :-1], report.classes[k, -1].round().astype(int)
    held = np.flatnonzero(counts > 0)
    means = (sums[:, held] / counts[held]).T
    far = np.abs(means[:, None] - x.reshape(1, len(x), -1)).max(2)
    return ClassMeans(k, held, counts[held], means.reshape(-1, *x.shape[1:]), x[far.argmin(1)], far.min(1))


def leak(of: ClassMeans, class_names: Sequence[str], *, setting: str, klass: int | None = None) -> Picture:
    """Two rows of images: class sum divided by count, and the client's own nearest image."""
    order = np.argsort(of.counts, kind="stable")[:MOST]
    called = [shorten([class_names[of.classes[i]]], 7)[0] for i in order]
    far = {
        (0, column): ("the same", SECOND) if of.leaked[i] else (f"{of.distance[i]:.2f}", QUIET)
        for column, i in enumerate(order)
    }
    marked = next((column for column, i in enumerate(order) if of.classes[i] == klass), None)
    title = f"What the server reads off {client_name(of.client, setting)}'s class sums"
    with drawing() as (figure, ax):
        names = [f"{name}: {of.counts[i]}" for name, i in zip(called, order, strict=True)]
        rows = [("sum ÷ count", of.means[order]), ("own image", of.nearest[order])]
        tiles(ax, rows, columns=names, under=far, marked=marked)
        heading(ax, f"{title} (class: images)", 12)
    single = [class_names[c] for c, n in zip(of.classes, of.counts, strict=True) if n == 1]
    text = f"No class of client {of.client} has one image alone; its class sums are sums of several."
    if single:
        held = f"class {single[0]} it has one image" if len(single) == 1 else f"{listed(single)} it has one image each"
        text = f"Of {held}, and the class sum is that image, pixel by pixel."
    text += f" The counts of all {plural(len(of.classes), 'class')} are in the last row of the sums, too."
    cells = zip(of.classes, of.counts, of.distance, of.leaked, strict=True)
    each = ((class_names[c], int(n), round(float(d), 4), "yes" if same else "no") for c, n, d, same in cells)
    table = tabled("class | images | largest difference of a pixel | the same image", each)
    return told(figure, f"{title}: pairs of images", setting, text, table)
