"""Pictures of who holds what as piles of the samples themselves, as the stage shows it. This is the
still picture of a playground.

Each tile is a sample, or stands for several samples if there are many. Its colour is the sample's
class.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from ..data import Federation
from ..errors import SAMPLES
from ..front.vocabulary import choose_words_for_clients_and_samples
from ..value_types import Accuracy0To1
from .array_types import ByteImage, ByteImages, ColourPixels, SampleIndices, SampleLabels
from .kit import AccuracyBars, describe_picture, keep_image_colours_on_dark_page
from .partition import describe_partition_or_selection, make_partition_table
from .series import MethodResults
from .style import INK, QUIET, TITLE, Picture, drawing, list_class_colours
from .words import (
    SettingCaption,
    format_client_for_title,
    format_client_letters,
    format_count_and_noun,
    format_percent,
)

SQUARE_PIXELS = 8  # side of the square for a sample that is not an image
LARGEST_TILE = 16  # pixels
MOST_TILES = 2500  # in all piles together
STANDS_FOR = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # how many samples a tile may stand for
FAINTEST = 0.16  # share of the class's colour where an image has no ink
GAP = 0.16  # between two piles, as a share of a pile's width
MOST_NAMED = 40  # with more clients only every tenth is named
MOST_LONG_NAMES = 6  # with more clients only their letters are written
TITLE_TOP = 0.985  # as a share of the figure's height
# Left, bottom, width and height, as shares of the figure.
BARS_PLACE = (0.175, 0.2, 0.09, 0.6)
BARS_TITLE_PLACE = (0.01, 0.835)  # left and bottom
PILES_PLACE = (0.01, 0.16, 0.98, 0.7)
PILES_PLACE_BESIDE_BARS = (0.345, 0.16, 0.645, 0.7)


def draw_piles(
    federation: Federation,
    training_images: ByteImages | None,
    *,
    setting: SettingCaption | str,
    bar_rows: Sequence[MethodResults] = (),
    bars_title: str = "",
    client_accuracies: Sequence[Accuracy0To1] = (),
) -> Picture:
    """Draw the pile of each client, and beside them a bar of accuracy for each of `bar_rows`.

    training_images: the training samples as bytes `[N, side, side, 1 or 3]`; None for squares in the classes' colours
    client_accuracies: the share of test samples that each client's own model gets right; empty before a run
    """
    labels = federation.dataset.y_train.numpy()
    colours = list_class_colours(max(federation.dataset.classes, 2))
    piles = []
    for shard in federation.shards:
        samples = np.asarray(shard)
        piles.append(samples[np.argsort(labels[samples], kind="stable")])
    sizes = [len(pile) for pile in piles]
    samples_per_tile = next(
        (count for count in STANDS_FOR if sum(sizes) / count <= MOST_TILES), STANDS_FOR[-1]
    )
    piles = [choose_shown_samples(pile, labels, samples_per_tile) for pile in piles]
    dataset = federation.dataset
    kind = choose_words_for_clients_and_samples(dataset.name, SAMPLES[len(dataset.input_shape)])[
        "kind"
    ]
    note = f"a tile is a sample, its colour the {kind}"
    if samples_per_tile > 1:
        note = (
            f"a tile stands for {format_count_and_noun(samples_per_tile, 'sample')} of one {kind}"
        )
    with drawing(fixed=True) as (figure, _):
        if bar_rows:
            bars = AccuracyBars(figure.add_axes(BARS_PLACE), bar_rows)
            bars.update(bar_rows, "")
            # The title begins above the names of the bars, else it would run into the piles.
            left, bottom = BARS_TITLE_PLACE
            figure.text(left, bottom, bars_title, fontsize=TITLE, fontweight="bold", color=INK)
        ax = figure.add_axes(PILES_PLACE_BESIDE_BARS if bar_rows else PILES_PLACE)
        width, height = ax.get_window_extent().size
        tiles_across = choose_tiles_across(piles, width / height)
        style = {"aspect": "auto", "interpolation": "nearest"}  # few colours: a small file
        ax.imshow(
            compose_piles_into_image(piles, labels, training_images, colours, tiles_across), **style
        )
        keep_image_colours_on_dark_page(ax)
        ax.set_axis_off()
        figure.text(
            ax.get_position().x0, TITLE_TOP, f"Who holds what: {note}", va="top", color=QUIET
        )
        write_sizes_names_and_accuracies(
            ax, sizes, client_accuracies, setting, count_tile_rows(piles, tiles_across)
        )
    sentence = describe_partition_or_selection(federation, None, None, setting)
    table = make_partition_table(federation, setting)
    return describe_picture(figure, "A pile of samples for each client", setting, sentence, table)


def choose_shown_samples(
    pile: SampleIndices, labels: SampleLabels, samples_per_tile: int
) -> SampleIndices:
    """Choose the samples to show of a pile that is sorted by class: one in `samples_per_tile` of
    each class, and at least one.
    """
    samples_of_classes = [
        pile[labels[pile] == label][::samples_per_tile] for label in np.unique(labels[pile])
    ]
    return np.concatenate(samples_of_classes)


def choose_tiles_across(piles: Sequence[SampleIndices], width_to_height_ratio: float) -> int:
    """Choose how many tiles a row of a pile has, so that all piles together have this ratio of
    width to height.
    """
    largest = max(len(pile) for pile in piles)
    return max(1, round(math.sqrt(width_to_height_ratio * largest / len(piles)) * (1 - GAP)))


def count_tile_rows(piles: Sequence[SampleIndices], tiles_across: int) -> list[int]:
    """Count the rows of tiles of each pile."""
    return [math.ceil(len(pile) / tiles_across) for pile in piles]


def compose_piles_into_image(
    piles: Sequence[SampleIndices],
    labels: SampleLabels,
    images: ByteImages | None,
    class_colours: Sequence[str],
    tiles_across: int,
) -> ColourPixels:
    """Compose all piles into one image `[h, w, 4]`, 0–1, which is transparent beside them. Each pile
    is built from the bottom up.
    """
    side = SQUARE_PIXELS if images is None else min(images.shape[1], LARGEST_TILE)
    rows = max(count_tile_rows(piles, tiles_across))
    gap = max(1, round(GAP * tiles_across * side))
    column = tiles_across * side + gap
    wall = np.zeros((rows * side, column * len(piles), 4))
    for k, pile in enumerate(piles):
        for tile_number, sample in enumerate(pile):
            row, position = divmod(tile_number, tiles_across)
            bottom = wall.shape[0] - row * side
            left = k * column + gap // 2 + position * side
            image = None if images is None else images[sample]
            colour = to_rgb(class_colours[labels[sample]])
            place = wall[bottom - side : bottom, left : left + side]
            place[..., :3] = make_pile_tile(image, colour, side)
            place[..., 3] = 1
    return wall


def make_pile_tile(
    image: ByteImage | None, red_green_blue_0_to_1: tuple[float, float, float], side_pixels: int
) -> ColourPixels:
    """Make the tile of a sample `[side_pixels, side_pixels, 3]`: a photo as it is, a grey image as
    ink in the colour of its class, or without an image a square.
    """
    if image is None:
        tile = np.ones((side_pixels, side_pixels, 3))
        tile[1:, 1:] = red_green_blue_0_to_1
        return tile
    places = np.arange(side_pixels) * len(image) // side_pixels
    pixels = image[places][:, places] / 255
    if pixels.shape[2] == 3:
        return pixels
    ink = FAINTEST + (1 - FAINTEST) * pixels
    return 1 - ink * (1 - np.array(red_green_blue_0_to_1))


def write_sizes_names_and_accuracies(
    ax: Axes,
    sizes: Sequence[int],
    client_accuracies: Sequence[Accuracy0To1],
    setting: SettingCaption | str,
    tile_rows: Sequence[int],
) -> None:
    """Write above each pile its number of samples, and below it the client and the accuracy of the
    client's own model.
    """
    count = len(sizes)
    for k, size in enumerate(sizes):
        if count > MOST_NAMED and k % 10:
            continue
        middle = (k + 0.5) / count
        text_style = {"transform": ax.transAxes, "ha": "center", "fontsize": 8}
        if count <= MOST_NAMED // 2:
            top = tile_rows[k] / max(tile_rows)
            ax.text(middle, top + 0.01, str(size), va="bottom", color=QUIET, **text_style)
        is_long = count <= MOST_LONG_NAMES
        name = format_client_for_title(k, setting) if is_long else format_client_letters(k)
        ax.text(middle, -0.03, name, va="top", color=INK, **{**text_style, "fontsize": 9})
        if len(client_accuracies) == count and count <= MOST_NAMED // 2:
            score = format_percent(client_accuracies[k])
            ax.text(middle, -0.11, score, va="top", color=QUIET, **text_style)
