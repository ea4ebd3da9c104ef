"""The images that a client sends, beside the nearest of its own: what an attacker would see."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...panels import LabView, PanelState
from ...plots import Picture, drawing, heading, listed, plural, tabled, told
from ...plots.characters import client_name
from ...plots.kit import tiles
from ...plots.style import QUIET, SECOND, shorten
from ...plots.words import capital
from ...studies.outcome import Outcome
from ..runs import where

SAME = 1e-6  # an image that is this near to one of the client's own is that image
ROW = 6  # pairs in a row
MOST = 2 * ROW  # pairs in one picture
WAYS = {
    "random": "random samples", "kmeans": "centres of k-means", "kip": "kernel inducing points",
    "crops": "FedSD2C-like crops",
}  # fmt: skip


class Sent(LabView):
    name, title = "sent", "What is sent"
    empty = (
        "Press Run. The picture then shows the images that a client sends, and below each the nearest of its own "
        "images."
    )

    def prepare(self, state: PanelState) -> list["Neighbours"]:
        return attack(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        prepared, at = state.prepared, state.client
        of = prepared[at if at is not None and at < len(prepared) else 0]
        way = WAYS[state.outcome.options["images"]]
        return pairs(of, state.class_names, setting=where(state), way=way, klass=state.klass)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Images `sent [S, ...]` with `labels [S]`, the nearest of the client's own images to each, and how far it is.

    nearest `[S, ...]`, nearest_labels `[S]`;   distance `[S]`: root mean square over pixels
    typical: the median, over the client's own images, of the distance to the nearest other one (NaN with one image)
    """

    client: int
    sent: np.ndarray
    labels: np.ndarray
    nearest: np.ndarray
    nearest_labels: np.ndarray
    distance: np.ndarray
    typical: float

    @property
    def copies(self) -> np.ndarray:
        """`[S]`: whether what was sent is one of the client's own images."""
        return self.distance < SAME

    @property
    def closer(self) -> int:
        """Number of images sent that are nearer to one of the client's own than its own are to each other."""
        return int((self.distance < self.typical).sum())


def neighbours(sent: np.ndarray, labels: np.ndarray, x: np.ndarray, y: np.ndarray, client: int) -> Neighbours:
    """The attack on one client: for each image that it sent the nearest of its own `x [n, ...]` with labels `y [n]`."""
    own, other = (torch.from_numpy(np.ascontiguousarray(part)).flatten(1).double() for part in (x, sent))
    size = own.shape[1] ** 0.5
    far = torch.cdist(other, own, compute_mode="donot_use_mm_for_euclid_dist") / size
    distance, at = far.min(1)
    typical = float("nan")
    if len(own) > 1:
        among = torch.cdist(own, own) / size
        typical = float(among.fill_diagonal_(torch.inf).amin(1).median())
    return Neighbours(client, sent, labels, x[at.numpy()], y[at.numpy()], distance.numpy(), typical)


def attack(outcome: Outcome) -> list[Neighbours]:
    """`neighbours` of every client of a run, among the samples that it trained on."""
    report, federation = outcome.report, outcome.federation()
    made = []
    for k, (rows, _) in enumerate(federation.split(outcome.plan.holdout)):
        own = report.client == k
        x, y = federation.dataset.x_train[rows].numpy(), federation.dataset.y_train[rows].numpy()
        made.append(neighbours(report.images[own].astype(np.float32), report.labels[own], x, y, k))
    return made


def pairs(of: Neighbours, class_names: Sequence[str], *, setting: str, way: str, klass: int | None = None) -> Picture:
    """Picture of at most MOST pairs, of class `klass` alone where the client sends some. way: how they were chosen."""
    chosen = np.flatnonzero(of.labels == klass) if klass is not None else np.array([], dtype=int)
    rows = chosen if len(chosen) else np.arange(len(of.labels))
    shown = rows[np.unique(np.linspace(0, len(rows) - 1, min(MOST, len(rows))).round().astype(int))]
    images, words = [], {}
    for band in (shown[:ROW], shown[ROW:]) if len(shown) > ROW else (shown,):
        for column, s in enumerate(band):
            name = shorten([class_names[of.labels[s]]], 7)[0]
            far = ("the same", SECOND) if of.copies[s] else (f"{of.distance[s]:.3f}", QUIET)
            words[len(images), column] = (f"{name}: {far[0]}", far[1])
        images += [("sent", of.sent[band]), ("own", of.nearest[band])]
    who = capital(client_name(of.client, setting))
    with drawing() as (figure, ax):
        tiles(ax, images, under=words)
        heading(ax, f"{who} sends {way}; below, the nearest of its own", 8)
    names = [class_names[c] for c in sorted(set(of.labels.tolist()))]
    copies = int(of.copies.sum())
    text = f"Client {of.client} sends {plural(len(of.labels), 'image')} of {plural(len(names), 'class')}"
    text += f" ({listed(names)}), so their labels say which classes it holds. "
    if copies == len(of.labels):
        text += "Each of them is one of its own images, pixel by pixel."
    else:
        text += f"{plural(copies, 'image')} of them {'is' if copies == 1 else 'are'} its own, pixel by pixel"
        text += f"; the median distance to the nearest of its own is {np.median(of.distance):.3f} per pixel"
        text += f", and between two of its own {of.typical:.3f}." if np.isfinite(of.typical) else "."
    cells = enumerate(zip(of.labels, of.nearest_labels, of.distance, of.copies, strict=True))
    table = tabled(
        "image | class | class of the nearest | distance | its own",
        (
            (i, class_names[a], class_names[b], round(float(d), 4), "yes" if same else "no")
            for i, (a, b, d, same) in cells
        ),
    )
    title = f"{plural(len(shown), 'pair')} of images: what client {of.client} sends ({way}), and the nearest of its own"
    return told(figure, title, setting, text, table)
