"""What a client sends as images, beside the nearest of its own images: what an attacker would see.
AFL, Gaussian heads and distilled data have this attack and its picture in common.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..plots import Picture, build_table, describe_picture, drawing, dress, heading, plural
from ..plots.kit import draw_image_rows
from ..plots.style import (
    ACCENT,
    QUIET,
    SECOND,
    current_size,
    draw_level_line,
    is_narrow,
    set_row_axis,
)
from ..plots.words import Setting, shorten
from ..studies.outcome import Outcome

COPY_DISTANCE = 1e-6  # an image that is nearer than this to one of the client's own is a copy
MAX_PAIRS = 10  # in one picture
FEW_PAIRS = 4  # with at most so many, their distances have room beside them
PAIR_HEIGHT = 2.4  # of a pair with its words, in tiles
LEAST_HEIGHT = 0.7  # what two rows of tiles fill of the picture, at least


class Neighbours(NamedTuple):
    """The S images that a client sent, and for each the nearest of the client's own images.

    sent `[S, ...]`, labels `[S]`: the images;   counts `[S]`: from how many of its own images the
    client made each
    nearest `[S, ...]`, nearest_labels `[S]`: the nearest own image, and its class
    distance `[S]`: root mean square over pixels
    typical: median distance of the client's own images to the nearest other one of them (NaN if it
    has one image only)
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
    def is_copy(self) -> np.ndarray:
        """`[S]`: whether what was sent is one of the client's own images."""
        return self.distance < COPY_DISTANCE

    @property
    def close_images(self) -> int:
        """How many of the images sent are nearer to one of the client's own images than these are
        to each other.
        """
        return int((self.distance < self.typical).sum())


# ------------------------------------------------------------------------------------------ numbers
def find_neighbours(
    sent: np.ndarray,
    labels: np.ndarray,
    own_images: np.ndarray,
    own_labels: np.ndarray,
    client: int,
    counts: np.ndarray,
) -> Neighbours:
    """The attack on one client: for each image that it sent, the nearest of its own images.

    own_images: `[n, ...]`, of the shape of the images `sent`;   own_labels: `[n]`
    """
    sent_pixels = flatten_images(sent)
    own_pixels = flatten_images(own_images)
    scale = own_pixels.shape[1] ** 0.5  # from a Euclidean distance to the root mean square
    # Without matrix products the distance of two equal images is exactly 0.
    distances = torch.cdist(sent_pixels, own_pixels, compute_mode="donot_use_mm_for_euclid_dist")
    distance, index = (distances / scale).min(1)
    typical = float("nan")
    if len(own_pixels) > 1:
        to_others = (torch.cdist(own_pixels, own_pixels) / scale).fill_diagonal_(torch.inf)
        typical = float(to_others.amin(1).median())
    return Neighbours(
        client,
        sent,
        labels,
        counts,
        own_images[index.numpy()],
        own_labels[index.numpy()],
        distance.numpy(),
        typical,
    )


def flatten_images(images: np.ndarray) -> Tensor:
    """Images `[N, ...]` as rows of pixels `[N, D]`."""
    return torch.from_numpy(np.ascontiguousarray(images)).flatten(1).double()


def attack_clients(
    outcome: Outcome,
    sent_by: Callable[[int], tuple[np.ndarray, np.ndarray, np.ndarray]],
    clients: Sequence[int] | None = None,
) -> list[Neighbours]:
    """The attack on `clients` of a run (None: on all), with the samples that each trained on.

    sent_by(client): the images that it sent, their labels, and from how many of its own images
    each was made
    """
    federation = outcome.federation()
    x = federation.dataset.x_train.numpy()
    y = federation.dataset.y_train.numpy()
    shards = federation.split(outcome.plan.holdout)
    if clients is None:
        clients = range(len(shards))
    results = []
    for k in clients:
        rows, _ = shards[k]
        images, labels, counts = sent_by(k)
        images = images.reshape(-1, *x.shape[1:])
        results.append(find_neighbours(images, labels, x[rows], y[rows], k, counts))
    return results


# ------------------------------------------------------------------------------------------ picture
def draw_pairs(
    neighbours: Neighbours,
    names: Sequence[str],
    title: str,
    sentence: str,
    *,
    setting: Setting | str,
    class_index: int | None = None,
    detail: str = "",
) -> Picture:
    """At most MAX_PAIRS of the images sent, each above the nearest own one.

    names: of the classes;   class_index: if the client sent images of this class, only these
    """
    rows = choose_pairs(neighbours, class_index)
    columns, distances = label_pairs(neighbours, rows, names)
    is_made_of_many = bool((neighbours.counts > 1).any())
    if is_made_of_many:
        columns = [
            f"{column}: {neighbours.counts[row]}" for column, row in zip(columns, rows, strict=True)
        ]
    with drawing(**arrange_axes(len(rows))) as (figure, axes):
        left, *others = axes.flat
        images = [("sent", neighbours.sent[rows]), ("own", neighbours.nearest[rows])]
        draw_image_rows(left, images, columns=columns, under=distances)
        heading(left, f"{title} (class: images)" if is_made_of_many else title, 12)
        for ax in others:
            dress(ax, title="How near", x="distance a pixel (line: own to own)", grid="x")
            ax.barh(range(len(rows)), neighbours.distance[rows], 0.5, color=ACCENT)
            draw_level_line(ax, neighbours.typical, axis="x")
            set_row_axis(ax, columns, least=3)
    return describe_picture(
        figure,
        f"{title}, above the nearest of its own: {plural(len(rows), 'pair')} of images",
        setting,
        sentence,
        make_table(neighbours, names),
        detail=detail,
    )


def choose_pairs(neighbours: Neighbours, class_index: int | None) -> np.ndarray:
    """Rows of the pairs that are drawn: copies first, then the images made from the fewest."""
    rows = np.flatnonzero(neighbours.labels == class_index)
    if not len(rows):
        rows = np.arange(len(neighbours.labels))
    order = np.lexsort((neighbours.counts[rows], ~neighbours.is_copy[rows]))
    return rows[order][:MAX_PAIRS]


def label_pairs(
    neighbours: Neighbours, rows: np.ndarray, names: Sequence[str]
) -> tuple[list[str], dict[tuple[int, int], tuple[str, str]]]:
    """The class under each pair, and the distance between its images, as `tiles` takes them."""
    columns = []
    distances = {}
    for i, row in enumerate(rows):
        columns.append(shorten([names[neighbours.labels[row]]], 7)[0])
        if neighbours.is_copy[row]:
            distances[0, i] = ("same", SECOND)
        else:
            distances[0, i] = (f"{neighbours.distance[row]:.3f}", QUIET)
    return columns, distances


def arrange_axes(pairs: int) -> dict[str, Any]:
    """Arguments of `drawing`: the distances stand at the right of a few pairs, below a long row of
    them if there is room, and else nowhere.
    """
    if pairs <= FEW_PAIRS:
        return {"rows": 1, "columns": 2, "squeeze": False, "width_ratios": [pairs, 2]}
    width, height = current_size()
    has_room_below = not is_narrow() and PAIR_HEIGHT * width < LEAST_HEIGHT * height * pairs
    if has_room_below:
        return {"rows": 2, "columns": 1, "squeeze": False, "height_ratios": [3, 2]}
    return {"rows": 1, "columns": 1, "squeeze": False}


def make_table(neighbours: Neighbours, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each image that was sent."""
    rows = []
    for i, label in enumerate(neighbours.labels):
        nearest = names[neighbours.nearest_labels[i]]
        distance = round(float(neighbours.distance[i]), 4)
        is_own = "yes" if neighbours.is_copy[i] else "no"
        rows.append((names[label], int(neighbours.counts[i]), nearest, distance, is_own))
    return build_table("class | images | class of the nearest | distance | its own", rows)
