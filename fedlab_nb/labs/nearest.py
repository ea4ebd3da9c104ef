"""The images that a client sends beside the nearest of its own images, as an attacker would see them.

The labs of AFL, Gaussian heads and distilled data share this attack and its picture.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..plots import (
    Picture,
    TableRows,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    write_axes_title,
)
from ..plots.array_types import SampleLabels
from ..plots.kit import RowAndColumn, WordAndColour, draw_image_rows
from ..plots.style import (
    ACCENT,
    QUIET,
    SECOND,
    darken_colour_until_readable,
    draw_level_line,
    get_default_figure_size_inches,
    is_frame_narrow,
    set_y_axis_of_named_rows,
)
from ..plots.words import SettingCaption, shorten_labels
from ..studies.outcome import Outcome
from .array_types import (
    BooleanPerSentImage,
    CountPerSentImage,
    Images,
    PairIndices,
    SentImageArray,
    SentLabels,
)

COPY_DISTANCE = 1e-6  # an image that is nearer than this to one of the client's own is a copy
MAX_PAIRS = 10  # pairs in one picture
FEW_PAIRS = 4  # up to this many pairs leave room for their distances beside them
PAIR_HEIGHT = 2.4  # height of a pair with its text, in tiles
MIN_HEIGHT = 0.7  # share of the picture's height that two rows of tiles fill at least
BARS_HEIGHT = 0.2  # share of the picture's height for the bars of distances below the tiles
MIN_BAR_HEIGHT = 0.11  # inches, so that the names of neighbouring bars do not touch

PixelRowTensor = Tensor  # [N, pixels]
SubplotArguments = dict[str, Any]  # of `drawing`


class NearestImages(NamedTuple):
    """The S images that a client sent, and the client's own image nearest to each.

    sent:           `[S, ...]`, the images sent
    labels:         `[S]`, their classes
    counts:         `[S]`, number of own images that each was made from
    nearest:        `[S, ...]`, the nearest own image
    nearest_labels: `[S]`, its class
    distance:       `[S]`, the distance between the two: root mean square over pixels
    typical:        median distance of an own image to the nearest other own image, NaN if the client
                    has only one image
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
    def are_exact_copies(self) -> BooleanPerSentImage:
        """`[S]`: whether what was sent is one of the client's own images."""
        return self.distance < COPY_DISTANCE

    @property
    def nearer_than_own_images_count(self) -> int:
        """How many of the images sent are nearer to one of the client's own images than these are
        to each other.
        """
        return int((self.distance < self.typical).sum())


# ------------------------------------------------------------------------------------------ numbers
def find_nearest_own_images(
    sent_images: SentImageArray,
    sent_labels: SentLabels,
    own_images: Images,
    own_labels: SampleLabels,
    client_index: int,
    source_image_counts: CountPerSentImage,
) -> NearestImages:
    """Attack one client: find its own image nearest to each image that it sent.

    sent_images, sent_labels: `[S, ...]` and `[S]`, what the client sent
    own_images, own_labels:   `[n, ...]` and `[n]`, its own images, of the same shape
    source_image_counts:      `[S]`, number of own images that each sent one was made from
    """
    sent_pixels = flatten_images_to_float64_tensor(sent_images)
    own_pixels = flatten_images_to_float64_tensor(own_images)
    scale = own_pixels.shape[1] ** 0.5  # from a Euclidean distance to the root mean square
    # Computed without matrix products, the distance of two equal images is exactly 0.
    distances = torch.cdist(sent_pixels, own_pixels, compute_mode="donot_use_mm_for_euclid_dist")
    distance, index = (distances / scale).min(1)
    typical = float("nan")
    if len(own_pixels) > 1:
        distances_to_other_images = (torch.cdist(own_pixels, own_pixels) / scale).fill_diagonal_(
            torch.inf
        )
        typical = float(distances_to_other_images.amin(1).median())
    return NearestImages(
        client_index,
        sent_images,
        sent_labels,
        source_image_counts,
        own_images[index.numpy()],
        own_labels[index.numpy()],
        distance.numpy(),
        typical,
    )


def flatten_images_to_float64_tensor(images: Images) -> PixelRowTensor:
    """Flatten images `[N, ...]` into rows of pixels `[N, D]`."""
    return torch.from_numpy(np.ascontiguousarray(images)).flatten(1).double()


class SentImages(NamedTuple):
    """The S images that a client sent.

    images: `[S, ...]`
    labels: `[S]`, their classes
    source_image_counts: `[S]`, number of own images that each was made from
    """

    images: np.ndarray
    labels: np.ndarray
    source_image_counts: np.ndarray


class PairTexts(NamedTuple):
    """The name of each column, and {(row, column): (text, colour)} under the tiles."""

    column_names: list[str]
    words_under_tiles: dict[RowAndColumn, WordAndColour]


def find_nearest_images_of_clients(
    outcome: Outcome,
    get_sent_images_of_client: Callable[[int], SentImages],
    client_indices: Sequence[int] | None = None,
) -> list[NearestImages]:
    """Attack `client_indices` of a run, by default all of them: find the nearest of the images they trained on.

    get_sent_images_of_client: returns what the client of this index sent
    """
    federation = outcome.federation()
    x = federation.dataset.x_train.numpy()
    y = federation.dataset.y_train.numpy()
    shards = federation.split(outcome.plan.share_held_out_of_local_training)
    if client_indices is None:
        client_indices = range(len(shards))
    results = []
    for k in client_indices:
        rows, _ = shards[k]
        sent = get_sent_images_of_client(k)
        images = sent.images.reshape(-1, *x.shape[1:])
        results.append(
            find_nearest_own_images(
                images, sent.labels, x[rows], y[rows], k, sent.source_image_counts
            )
        )
    return results


# ------------------------------------------------------------------------------------------ picture
def draw_sent_and_nearest_images(
    nearest_images: NearestImages,
    class_names: Sequence[str],
    title: str,
    sentence: str,
    *,
    setting: SettingCaption | str,
    only_class_if_sent: int | None = None,
    detail: str = "",
) -> Picture:
    """Draw at most MAX_PAIRS of the images sent, each above the client's own image nearest to it.

    only_class_if_sent: if the client sent images of this class, only these
    """
    rows = choose_pairs_to_draw(nearest_images, only_class_if_sent)
    columns, distances = make_pair_texts(nearest_images, rows, class_names)
    is_made_of_many = bool((nearest_images.counts > 1).any())
    if is_made_of_many:
        columns = [
            f"{column}: {nearest_images.counts[row]}"
            for column, row in zip(columns, rows, strict=True)
        ]
    with drawing(**choose_subplot_arguments(len(rows))) as (figure, axes):
        left, *distance_axes = axes.flat
        images = [("sent", nearest_images.sent[rows]), ("own", nearest_images.nearest[rows])]
        draw_image_rows(left, images, column_names=columns, words_under_tiles=distances)
        write_axes_title(left, f"{title} (class: images)" if is_made_of_many else title, 12)
        for ax in distance_axes:
            dress(ax, title="How near", x="distance per pixel (line: own to own)", grid="x")
            ax.barh(range(len(rows)), nearest_images.distance[rows], 0.5, color=ACCENT)
            draw_level_line(ax, nearest_images.typical, axis="x")
            set_y_axis_of_named_rows(ax, columns, min_rows=3)
    return describe_picture(
        figure,
        f"{title}, above the nearest of its own: {format_count_and_noun(len(rows), 'pair')} of images",
        setting,
        sentence,
        make_nearest_image_table(nearest_images, class_names),
        detail=detail,
    )


def choose_pairs_to_draw(
    nearest_images: NearestImages, only_class_if_sent: int | None
) -> PairIndices:
    """Choose the pairs that are drawn: copies first, then images made from the fewest own images."""
    rows = np.flatnonzero(nearest_images.labels == only_class_if_sent)
    if not len(rows):
        rows = np.arange(len(nearest_images.labels))
    order = np.lexsort((nearest_images.counts[rows], ~nearest_images.are_exact_copies[rows]))
    return rows[order][:MAX_PAIRS]


def make_pair_texts(
    nearest_images: NearestImages, pair_indices: PairIndices, class_names: Sequence[str]
) -> PairTexts:
    """Make the texts of `draw_image_rows`: the class of each pair, and the distance of its images."""
    columns = []
    distances: dict[RowAndColumn, WordAndColour] = {}
    for i, row in enumerate(pair_indices):
        columns.append(shorten_labels([class_names[nearest_images.labels[row]]], 7)[0])
        if nearest_images.are_exact_copies[row]:
            distances[0, i] = ("same", darken_colour_until_readable(SECOND))
        else:
            distances[0, i] = (f"{nearest_images.distance[row]:.3f}", QUIET)
    return PairTexts(columns, distances)


def choose_subplot_arguments(pair_count: int) -> SubplotArguments:
    """Choose the arguments of `drawing` by the number of pairs.

    Bars of the distances stand to the right of a few pairs, or below a long row of pairs if there is
    room. Otherwise there are no bars.
    """
    if pair_count <= FEW_PAIRS:
        return {"rows": 1, "columns": 2, "squeeze": False, "width_ratios": [pair_count, 2]}
    width, height = get_default_figure_size_inches()
    has_low_tiles = PAIR_HEIGHT * width < MIN_HEIGHT * height * pair_count
    has_high_bars = BARS_HEIGHT * height > MIN_BAR_HEIGHT * pair_count
    if has_low_tiles and has_high_bars and not is_frame_narrow():
        return {"rows": 2, "columns": 1, "squeeze": False, "height_ratios": [3, 2]}
    return {"rows": 1, "columns": 1, "squeeze": False}


def make_nearest_image_table(
    nearest_images: NearestImages, class_names: Sequence[str]
) -> TableRows:
    """Make the table with a row for each image that was sent."""
    rows = []
    for i, label in enumerate(nearest_images.labels):
        nearest = class_names[nearest_images.nearest_labels[i]]
        distance = round(float(nearest_images.distance[i]), 4)
        is_own = "yes" if nearest_images.are_exact_copies[i] else "no"
        rows.append((class_names[label], int(nearest_images.counts[i]), nearest, distance, is_own))
    return build_table("class | images | class of the nearest | distance | its own", rows)
