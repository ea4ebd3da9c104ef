"""What a client sends as images beside the nearest of its own: what an attacker would see. AFL, Gaussian heads and
distilled data have the attack and its picture in common.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from ..plots import Picture, drawing, dress, heading, plural, tabled, told
from ..plots.axes import level_line, rows_axis
from ..plots.kit import tiles
from ..plots.style import ACCENT, QUIET, SECOND, current_size, narrow, shorten
from ..studies.outcome import Outcome

SAME = 1e-6  # an image that is this near to one of the client's own is that image
MOST, FEW = 10, 4  # pairs in one picture; so few leave room for their distances beside them
BLOCK, ROOM = (
    2.4,
    0.7,
)  # height of a pair with its words, in tiles; what of the picture two rows fill, at least


class Neighbours(NamedTuple):
    """Images `sent [S, ...]` with `labels [S]`, the nearest of the client's own images to each, and how far it is.

    counts [S]: of how many own images each was made;   nearest `[S, ...]`, nearest_labels `[S]`
    distance `[S]`: root mean square over pixels
    typical: the median, over the client's own images, of the distance to the nearest other one (NaN with one image)
    """

    client: int
    sent: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
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


def neighbours(
    sent: np.ndarray,
    labels: np.ndarray,
    own: tuple[np.ndarray, np.ndarray],
    client: int,
    counts: np.ndarray,
) -> Neighbours:
    """The attack on one client: for each image that it sent the nearest of its `own` images `x [n, ...]`, `y [n]`."""
    x, other = (
        torch.from_numpy(np.ascontiguousarray(part)).flatten(1).double() for part in (own[0], sent)
    )
    size = x.shape[1] ** 0.5
    distance, at = (torch.cdist(other, x, compute_mode="donot_use_mm_for_euclid_dist") / size).min(
        1
    )
    typical = float("nan")
    if len(x) > 1:
        typical = float((torch.cdist(x, x) / size).fill_diagonal_(torch.inf).amin(1).median())
    nearest = (part[at.numpy()] for part in own)
    return Neighbours(client, sent, labels, counts, *nearest, distance.numpy(), typical)


def attacks(
    outcome: Outcome,
    sent: Callable[[int], tuple[np.ndarray, ...]],
    clients: Sequence[int] | None = None,
):
    """The attack on `clients` of a run (None: on all), among the samples that each trained on: a list of `Neighbours`.

    sent(client): the images that it sent, their labels, and of how many own images each was made
    """
    federation = outcome.federation()
    x, y = federation.dataset.x_train.numpy(), federation.dataset.y_train.numpy()
    made, shards = [], federation.split(outcome.plan.holdout)
    for k in range(len(shards)) if clients is None else clients:
        (rows, _), (images, labels, counts) = shards[k], sent(k)
        made.append(
            neighbours(images.reshape(-1, *x.shape[1:]), labels, (x[rows], y[rows]), k, counts)
        )
    return made


def pairs(
    of: Neighbours,
    names: Sequence[str],
    title: str,
    sentence: str,
    *,
    setting: str,
    klass: int | None = None,
) -> Picture:
    """Picture of at most MOST pairs: first the client's own images, then those made of the fewest; of class `klass`
    alone where some are sent."""
    rows = (
        np.flatnonzero(of.labels == klass)
        if (of.labels == klass).any()
        else np.arange(len(of.labels))
    )
    shown = rows[np.lexsort((of.counts[rows], ~of.copies[rows]))][:MOST]
    far = {
        (0, i): ("same", SECOND) if of.copies[s] else (f"{of.distance[s]:.3f}", QUIET)
        for i, s in enumerate(shown)
    }
    many = bool((of.counts > 1).any())  # else an image is an image
    called = [shorten([names[of.labels[s]]], 7)[0] + f": {of.counts[s]}" * many for s in shown]
    few, (width, height) = len(shown) <= FEW, current_size()
    low = (
        not few and not narrow() and BLOCK * width < ROOM * height * len(shown)
    )  # two rows of tiles leave room below
    shares = {"width_ratios": [len(shown), 2]} if few else {"height_ratios": [3, 2]} if low else {}
    with drawing(1 + low, 1 + few, squeeze=False, **shares) as (figure, axes):
        left, *beside = axes.flat
        tiles(
            left, [("sent", of.sent[shown]), ("own", of.nearest[shown])], columns=called, under=far
        )
        heading(left, title + " (class: images)" * many, 12)
        for right in beside:
            dress(right, title="How near", x="distance a pixel (line: own to own)", grid="x")
            right.barh(range(len(shown)), of.distance[shown], 0.5, color=ACCENT)
            level_line(right, of.typical, axis="x")
            rows_axis(right, called, least=3)
    cells = zip(of.labels, of.counts, of.nearest_labels, of.distance, of.copies, strict=True)
    each = (
        (names[a], int(n), names[b], round(float(d), 4), "yes" if same else "no")
        for a, n, b, d, same in cells
    )
    table = tabled("class | images | class of the nearest | distance | its own", each)
    about = f"{title}, above the nearest of its own: {plural(len(shown), 'pair')} of images"
    return told(figure, about, setting, sentence, table)
