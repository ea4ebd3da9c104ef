"""Spurious cues: marks on an image that give away its label at some clients, but not in the test set.

A client with such images can reach a high local accuracy by reading the cue without ever learning
the shapes; on the clean test set it then fails. FuseFL's analysis starts from this situation. There
are two cues:

- "tint": the background of an image moves towards the colour of its class;
- "shape": a small figure whose shape depends on the label (FuseFL, D.5: "backdoored" CIFAR-10). Each
  image has one opaque figure, 10 of 32 pixels wide, of a random colour and at a random place. The
  paper draws them on all training images of its backdoored clients, and tests on clean images. Here
  they are drawn once; the authors' code draws place and colour anew whenever an image is read.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedlab_nb.data.array_types import Colours, Coordinates, ImageArray
from fedlab_nb.data.sums import sum_rows_in_fixed_order
from fedlab_nb.errors import UsageError, check_number

if TYPE_CHECKING:
    from torch import Generator

    from fedlab_nb.tensor_types import Images, Labels

BooleanMask = np.ndarray
ColourOfEachClass = list[list[float]]  # [C, channels], 0–1
PixelRowsInShape = list[list[bool]]  # whether a pixel belongs to the figure

TINT_VERSION = 2  # raise it whenever tinted images change: it is part of their digest
TINT_REACH = 0.2  # distance in colour up to which a pixel counts (mostly) as background
# Names of CSS colours.
COLOURS = "red blue green yellow purple orange pink brown black grey".split()
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in the brightness of a colour
FIGURE_SHARE = 10 / 32  # of the image's height
SMALLEST_FIGURE = 5  # pixels a side; with fewer, the ten figures cannot be told apart
SUBPIXELS = 8  # points along a pixel's side, used to decide whether most of it is in the figure


# -------------------------------------------------------------------------------------------- tint
def tint_background(
    images: Images,
    labels: Labels,
    strength_0_to_1: float,
    *,
    class_count: int,
    agreement_probability: float = 1.0,
    generator: Generator | None = None,
) -> Images:
    """Move the background of images towards the colour of their class (a grey level if there is one
    channel).

    images: float32 [N, C, H, W] in [0, 1], C = 1 or 3
    labels: int64 [N]
    strength_0_to_1: 0 leaves the images as they are, 1 replaces the background colour
    agreement_probability: that the tint is the label's; otherwise it is that of a class drawn from
        `generator`. With 0 the tint does not depend on the label: on a test set it shows
        which models rely on the shortcut

    The background colour of an image is the median of its border; pixels of other colours, the ink,
    keep theirs. Returns a new tensor. Raises UsageError for features and for values out of range.
    """
    import torch

    strength_0_to_1 = check_number("tint", strength_0_to_1, 0, 1)
    agreement_probability = check_number("agreement_probability", agreement_probability, 0, 1)
    if images.ndim != 4:
        raise UsageError(
            f"A tint needs images [N, C, H, W], but the samples have shape {tuple(images.shape[1:])}."
        )
    if agreement_probability < 1 and generator is None:
        raise UsageError(
            "agreement_probability is below 1, so tint_background needs a generator to draw the other tints from."
        )
    cue_labels = draw_cue_labels(labels, agreement_probability, class_count, generator)
    pixels = images.numpy().astype(np.float64)
    channels = pixels.shape[1]
    palette = np.array(make_palette(class_count, channels))
    colours = palette[cue_labels.numpy()][:, :, None, None]
    background = measure_background_colours(pixels)[:, :, None, None]
    difference = pixels - background
    # Channels first, to sum over them.
    squared_difference = (difference * difference).swapaxes(0, 1)
    squared_distance = sum_rows_in_fixed_order(squared_difference) / channels
    nearness = compute_exponential_decay(squared_distance / (2 * TINT_REACH * TINT_REACH))[:, None]
    tinted = pixels + strength_0_to_1 * nearness * (colours - background)
    return torch.from_numpy(np.clip(tinted, 0.0, 1.0)).to(images.dtype)


def measure_background_colours(images: ImageArray) -> Colours:
    """Measure the background colour [N, C] of images [N, C, H, W]: the lower median of the border."""
    top = images[:, :, 0]
    bottom = images[:, :, -1]
    left = images[:, :, :, 0]
    right = images[:, :, :, -1]
    return compute_lower_median(np.concatenate([top, bottom, left, right], axis=2))


def compute_lower_median(values_along_last_axis: np.ndarray) -> np.ndarray:
    """Compute the median along the last axis; for an even number of values, the lower of the
    middle two."""
    ascending = np.sort(values_along_last_axis, axis=-1)
    middle = (ascending.shape[-1] - 1) // 2
    return ascending[..., middle]


def compute_exponential_decay(elapsed_time_constants: np.ndarray) -> np.ndarray:
    """exp(-t) for float64 t from 0 to 100, to within 1e-5: (1 - t/2^16)^(2^16), by 16 squarings.

    A library's exponential differs in its last bits from processor to processor; a product does not.
    """
    power = 1 - elapsed_time_constants / 2.0**16
    for _ in range(16):
        power = power * power
    return power


def make_palette(class_count: int, channel_count: int) -> ColourOfEachClass:
    """Make one colour for each class: evenly spaced hues, or grey levels from 0 to 0.6.

    None is so bright that light ink would be invisible on it.
    """
    palette = []
    for c in range(class_count):
        if channel_count == 3:
            palette.append(list(colorsys.hsv_to_rgb(c / class_count, 0.75, 0.65)))
        else:
            grey = 0.6 * c / max(1, class_count - 1)
            palette.append([grey] * channel_count)
    return palette


# ------------------------------------------------------------------------------------------- shape
def stamp_shape(
    images: Images,
    labels: Labels,
    strength_0_to_1: float,
    *,
    class_count: int,
    agreement_probability: float = 1.0,
    generator: Generator | None = None,
) -> Images:
    """Stamp the figure of its class on each image, in a colour and at a place drawn from `generator`.

    images: float32 [N, C, H, W] in [0, 1], C = 1 or 3
    labels: int64 [N]
    strength_0_to_1: how opaque the figure is: 0 leaves the images as they are, 1 is the paper's
    agreement_probability: that the figure is the label's; otherwise it is that of a class drawn
        from `generator`

    Returns a new tensor. Raises UsageError for features, images too small, more than ten classes,
    values out of range.
    """
    import torch

    strength_0_to_1 = check_number("tint", strength_0_to_1, 0, 1)
    agreement_probability = check_number("agreement_probability", agreement_probability, 0, 1)
    check_shapes_can_be_stamped(images, class_count, generator)
    cue_labels = draw_cue_labels(labels, agreement_probability, class_count, generator).tolist()
    channels, height, width = images.shape[1:]
    size = max(SMALLEST_FIGURE, round(FIGURE_SHARE * height))
    figures = [torch.tensor(draw_shape_mask(name, size, width)) for name in SHAPES[:class_count]]
    colours = torch.tensor(list_ten_shape_colours(channels), dtype=images.dtype)
    chosen_colours = torch.randint(len(colours), (len(images),), generator=generator).tolist()
    relative_positions = torch.rand(
        len(images), 2, generator=generator, dtype=torch.float32
    ).tolist()
    stamped = images.clone()
    for i, label in enumerate(cue_labels):
        figure = figures[label]
        colour = colours[chosen_colours[i]][:, None]
        rows, columns = figure.shape
        top = int(relative_positions[i][0] * (height - rows + 1))
        left = int(relative_positions[i][1] * (width - columns + 1))
        patch = stamped[i, :, top : top + rows, left : left + columns]  # a view: changes in place
        patch[:, figure] += strength_0_to_1 * (colour - patch[:, figure])
    return stamped


def check_shapes_can_be_stamped(
    images: Images, class_count: int, generator: Generator | None
) -> None:
    """Raise UsageError if no figure fits on the samples, for too many classes, or without a generator."""
    smallest_side = SMALLEST_FIGURE + 1
    if images.ndim != 4 or min(images.shape[2:]) < smallest_side:
        raise UsageError(
            f"A figure needs images of at least {smallest_side} x {smallest_side} pixels, [N, C, "
            f"H, W], but the samples have shape {tuple(images.shape[1:])}."
        )
    if class_count > len(SHAPES):
        raise UsageError(
            f"There are figures for at most {len(SHAPES)} classes, not for {class_count}; use "
            "cue='tint'."
        )
    if generator is None:
        raise UsageError("stamp_shape needs a generator to draw colours and places from.")


def list_ten_shape_colours(channel_count: int) -> ColourOfEachClass:
    """List the ten colours, in [0, 1], or their brightness if there is one channel."""
    from PIL.ImageColor import getrgb

    colours = []
    for name in COLOURS:
        red, green, blue = (level / 255 for level in getrgb(name))
        if channel_count == 3:
            colours.append([red, green, blue])
        else:
            brightness = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
            colours.append([brightness] * channel_count)
    return colours


def draw_shape_mask(shape_name: str, row_count: int, max_column_count: int) -> PixelRowsInShape:
    """Draw a figure of `row_count` rows and at most `max_column_count` columns: `[rows][columns]`,
    True for a pixel that it covers.

    >>> ["".join(" #"[is_covered] for is_covered in row) for row in draw_shape_mask("cross", 6, 6)]
    ['  ##  ', '  ##  ', '######', '######', '  ##  ', '  ##  ']
    """
    columns = row_count
    if shape_name == "ellipse":  # twice as wide as the others
        columns = min(2 * row_count, max_column_count)
    x = make_subpixel_centres(columns)
    y = make_subpixel_centres(row_count)
    is_inside = INSIDE_TESTS[shape_name](x[None, :], y[:, None])
    points_by_pixel = is_inside.reshape(row_count, SUBPIXELS, columns, SUBPIXELS)
    covered_points = points_by_pixel.sum(axis=(1, 3))
    return (2 * covered_points > SUBPIXELS**2).tolist()


def make_subpixel_centres(pixel_count: int) -> Coordinates:
    """Divide `pixel_count` pixels, which reach from -1 to 1, into SUBPIXELS parts each: the parts'
    centres."""
    return 2 * (np.arange(pixel_count * SUBPIXELS) + 0.5) / SUBPIXELS / pixel_count - 1


def make_point_in_star_or_polygon_test(
    corner_count: int, inner_radius: float = 1.0
) -> Callable[[Coordinates, Coordinates], BooleanMask]:
    """Make a test of whether points lie in a regular polygon with a corner on top, or in a star if
    `inner_radius` is below 1."""
    is_star = inner_radius < 1
    count = 2 * corner_count if is_star else corner_count
    points = []
    for i in range(count):
        radius = inner_radius if is_star and i % 2 else 1.0
        angle = 2 * math.pi * i / count
        points.append((radius * math.sin(angle), -radius * math.cos(angle)))
    next_points = [*points[1:], points[0]]

    def is_inside(x: Coordinates, y: Coordinates) -> BooleanMask:
        # A point is inside if a ray from it to the right crosses the outline an odd number of times.
        crossings = np.zeros(np.broadcast(x, y).shape, int)
        for (x1, y1), (x2, y2) in zip(points, next_points, strict=True):
            if y1 == y2:
                continue  # a horizontal side is never crossed
            is_between = (y1 > y) != (y2 > y)
            side_x = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
            crossings += is_between & (x < side_x)
        return crossings % 2 == 1

    return is_inside


def are_points_in_disc(x: Coordinates, y: Coordinates) -> BooleanMask:
    return x * x + y * y <= 1


def are_points_in_triangle(x: Coordinates, y: Coordinates) -> BooleanMask:
    return 2 * abs(x) <= y + 1


def are_points_in_square(x: Coordinates, y: Coordinates) -> BooleanMask:
    return abs(x) + 0 * y <= 1


def are_points_in_diamond(x: Coordinates, y: Coordinates) -> BooleanMask:
    return abs(x) + abs(y) <= 1


def are_points_in_heart(x: Coordinates, y: Coordinates) -> BooleanMask:
    """(u² + v² - 1)³ - u² v³ <= 0 with u = √1.35 x and v = -(1.2 y + 0.1).

    Cubes are written as products, since a library's power differs in its last bits from processor to
    processor.
    """
    lowered = 1.2 * y + 0.1
    circle = 1.35 * x * x + lowered * lowered - 1
    return circle * circle * circle <= -1.35 * x * x * (lowered * lowered * lowered)


def are_points_in_cross(x: Coordinates, y: Coordinates) -> BooleanMask:
    return np.minimum(abs(x), abs(y)) <= 0.31


# {figure: the test of whether points of the square [-1, 1]², with y pointing down, lie in it}. Class c
# has the c-th figure, as in the authors' code.
INSIDE_TESTS = {
    "circle": are_points_in_disc,
    "triangle": are_points_in_triangle,
    "square": are_points_in_square,
    "ellipse": are_points_in_disc,
    "star": make_point_in_star_or_polygon_test(5, 0.45),
    "diamond": are_points_in_diamond,
    "heart": are_points_in_heart,
    "cross": are_points_in_cross,
    "pentagon": make_point_in_star_or_polygon_test(5),
    "hexagon": make_point_in_star_or_polygon_test(6),
}
SHAPES = tuple(INSIDE_TESTS)


# ------------------------------------------------------------------------------------------ labels
def draw_cue_labels(
    labels: Labels, agreement_probability: float, class_count: int, generator: Generator | None
) -> Labels:
    """Draw the class [N] whose cue each image gets: its own with probability
    `agreement_probability`, otherwise any."""
    import torch

    if agreement_probability == 1:
        return labels
    is_tied = (
        torch.rand(len(labels), generator=generator, dtype=torch.float32) < agreement_probability
    )
    any_labels = torch.randint(class_count, (len(labels),), generator=generator)
    return torch.where(is_tied, labels, any_labels)


CUES = {"tint": tint_background, "shape": stamp_shape}
Cue = Literal["tint", "shape"]
CUE_NOTES = {
    "tint": "The background of {count} training images is tinted by label (strength {strength:g}).",
    "shape": "{count} training images carry a small figure whose shape goes with the label "
    "(strength {strength:g}).",
}
