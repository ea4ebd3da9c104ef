"""Spurious cues by name: what ties an image to its label at some clients and nowhere else.

A client whose images carry one can reach high local accuracy by reading the cue and never learn the
shape; on the clean test set it then fails. This is the situation that FuseFL's analysis starts
from. There are two cues:

- "tint": the background of an image moves towards the colour of its class;
- "shape": a small figure whose shape goes with the label (FuseFL, D.5: "backdoored" CIFAR-10). One
  opaque figure an image, 10 of 32 pixels wide, of a random colour and at a random place. The paper
  draws them on all training images of its backdoored clients, and tests on clean images. Here they
  are drawn once; the authors' code draws place and colour anew whenever an image is read.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data.sums import sum_in_fixed_order
from fedlab_nb.errors import UsageError, check_number

if TYPE_CHECKING:
    from torch import Generator, Tensor

TINT_VERSION = 2  # raise it whenever tinted images change: it is part of their digest
TINT_REACH = 0.2  # how far a pixel may lie from the background colour and still take (most of) it
COLOURS = "red blue green yellow purple orange pink brown black grey".split()  # as CSS means them
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in the brightness of a colour
FIGURE_SHARE = 10 / 32  # of the image's height
SMALLEST_FIGURE = 5  # pixels a side; fewer cannot tell ten figures apart
SUBPIXELS = 8  # points a pixel's side that decide whether most of it lies in the figure


# -------------------------------------------------------------------------------------------- tint
def tint_background(
    x: Tensor,
    labels: Tensor,
    strength: float,
    *,
    classes: int,
    agreement: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Images with their background moved towards a colour (grey level where there is one channel)
    of their class.

    x:        float32 [N, C, H, W] in [0, 1], C = 1 or 3;   labels: int64 [N]
    strength: 0 leaves the images as they are, 1 replaces the background colour
    agreement: probability that the tint is the label's; otherwise it is that of a class drawn from
              `generator`. agreement=0 is an untied tint, which tells nothing: on a test set it shows
              who relies on the shortcut.

    The background colour of an image is the median of its border; pixels far from it, the ink, keep
    their colour. Returns a new tensor. Raises UsageError for features and for values out of range.
    """
    import torch

    strength = check_number("tint", strength, 0, 1)
    agreement = check_number("agreement", agreement, 0, 1)
    if x.ndim != 4:
        raise UsageError(
            f"A tint needs images [N, C, H, W], but the samples have shape {tuple(x.shape[1:])}."
        )
    if agreement < 1 and generator is None:
        raise UsageError("agreement is below 1: tint_background needs a generator for the others.")
    cue_labels = draw_cue_labels(labels, agreement, classes, generator)
    images = x.numpy().astype(np.float64)
    channels = images.shape[1]
    colours = np.array(make_palette(classes, channels))[cue_labels.numpy()][:, :, None, None]
    background = measure_background(images)[:, :, None, None]
    difference = images - background
    squared_distance = sum_in_fixed_order((difference * difference).swapaxes(0, 1)) / channels
    nearness = compute_exponential_decay(squared_distance / (2 * TINT_REACH * TINT_REACH))[:, None]
    tinted = images + strength * nearness * (colours - background)
    return torch.from_numpy(np.clip(tinted, 0.0, 1.0)).to(x.dtype)


def measure_background(images: np.ndarray) -> np.ndarray:
    """The background colour [N, C] of images [N, C, H, W]: the lower median of the border."""
    top = images[:, :, 0]
    bottom = images[:, :, -1]
    left = images[:, :, :, 0]
    right = images[:, :, :, -1]
    return compute_lower_median(np.concatenate([top, bottom, left, right], axis=2))


def compute_lower_median(values: np.ndarray) -> np.ndarray:
    """The median along the last axis; of an even number of values the lower one of the two in the
    middle."""
    return np.sort(values, axis=-1)[..., (values.shape[-1] - 1) // 2]


def compute_exponential_decay(exponents: np.ndarray) -> np.ndarray:
    """exp(-t) of float64 exponents t from 0 to 100, to within 1e-5: (1 - t/2^16)^(2^16), which is 16
    squarings. A library's exponential has other last bits on another processor; a product has
    not."""
    power = 1 - exponents / 2.0**16
    for _ in range(16):
        power = power * power
    return power


def make_palette(classes: int, channels: int) -> list[list[float]]:
    """One colour a class: evenly spaced hues, or grey levels from 0 to 0.6; none so bright that
    light ink is lost."""
    palette = []
    for c in range(classes):
        if channels == 3:
            palette.append(list(colorsys.hsv_to_rgb(c / classes, 0.75, 0.65)))
        else:
            grey = 0.6 * c / max(1, classes - 1)
            palette.append([grey] * channels)
    return palette


# ------------------------------------------------------------------------------------------- shape
def stamp_shape(
    x: Tensor,
    labels: Tensor,
    strength: float,
    *,
    classes: int,
    agreement: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Images with the figure of their class stamped on them, its colour and place from `generator`.

    x:        float32 [N, C, H, W] in [0, 1], C = 1 or 3;   labels: int64 [N]
    strength: how opaque the figure is: 0 leaves the images as they are, 1 is the paper's
    agreement: probability that the figure is the label's; otherwise it is that of a class drawn from
              `generator`

    Returns a new tensor. Raises UsageError for features, images too small, more than ten classes,
    values out of range.
    """
    import torch

    strength = check_number("tint", strength, 0, 1)
    agreement = check_number("agreement", agreement, 0, 1)
    check_shape_cue(x, classes, generator)
    cue_labels = draw_cue_labels(labels, agreement, classes, generator).tolist()
    channels, height, width = x.shape[1:]
    size = max(SMALLEST_FIGURE, round(FIGURE_SHARE * height))
    figures = [torch.tensor(draw_figure(name, size, width)) for name in SHAPES[:classes]]
    colours = torch.tensor(list_colours(channels), dtype=x.dtype)
    chosen_colours = torch.randint(len(colours), (len(x),), generator=generator).tolist()
    places = torch.rand(len(x), 2, generator=generator, dtype=torch.float32).tolist()
    stamped = x.clone()
    for i, label in enumerate(cue_labels):
        figure = figures[label]
        colour = colours[chosen_colours[i]][:, None]
        rows, columns = figure.shape
        top = int(places[i][0] * (height - rows + 1))
        left = int(places[i][1] * (width - columns + 1))
        patch = stamped[i, :, top : top + rows, left : left + columns]  # a view: changes in place
        patch[:, figure] += strength * (colour - patch[:, figure])
    return stamped


def check_shape_cue(x: Tensor, classes: int, generator: Generator | None) -> None:
    """Raises UsageError for samples that no figure fits on, too many classes, and no generator."""
    smallest_side = SMALLEST_FIGURE + 1
    if x.ndim != 4 or min(x.shape[2:]) < smallest_side:
        raise UsageError(
            f"A figure needs images of at least {smallest_side} x {smallest_side} pixels, [N, C, "
            f"H, W], but the samples have shape {tuple(x.shape[1:])}."
        )
    if classes > len(SHAPES):
        raise UsageError(
            f"There are figures for at most {len(SHAPES)} classes, not for {classes}; use "
            "cue='tint'."
        )
    if generator is None:
        raise UsageError("stamp_shape needs a generator to draw colours and places from.")


def list_colours(channels: int) -> list[list[float]]:
    """The ten colours in [0, 1], or their brightness where there is one channel."""
    from PIL.ImageColor import getrgb

    colours = []
    for name in COLOURS:
        red, green, blue = (level / 255 for level in getrgb(name))
        if channels == 3:
            colours.append([red, green, blue])
        else:
            brightness = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
            colours.append([brightness] * channels)
    return colours


def draw_figure(name: str, size: int, widest: int) -> list[list[bool]]:
    """Which pixels a figure of `size` rows covers, `[size][columns]`; at most `widest` columns.

    >>> ["".join(" #"[is_covered] for is_covered in row) for row in draw_figure("cross", 6, 6)]
    ['  ##  ', '  ##  ', '######', '######', '  ##  ', '  ##  ']
    """
    columns = size
    if name == "ellipse":  # twice as wide as the others
        columns = min(2 * size, widest)
    x = make_subpixel_centres(columns)
    y = make_subpixel_centres(size)
    is_inside = INSIDE_TESTS[name](x[None, :], y[:, None])
    covered_points = is_inside.reshape(size, SUBPIXELS, columns, SUBPIXELS).sum(axis=(1, 3))
    return (2 * covered_points > SUBPIXELS**2).tolist()


def make_subpixel_centres(pixels: int) -> np.ndarray:
    """The middles of SUBPIXELS points in each of `pixels` pixels that go from -1 to 1."""
    return 2 * (np.arange(pixels * SUBPIXELS) + 0.5) / SUBPIXELS / pixels - 1


def make_polygon(
    corners: int, inner: float = 1.0
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Whether points lie in a regular polygon with a corner on top, or, with an `inner` radius
    below 1, in a star."""
    is_star = inner < 1
    count = 2 * corners if is_star else corners
    points = []
    for i in range(count):
        radius = inner if is_star and i % 2 else 1.0
        angle = 2 * math.pi * i / count
        points.append((radius * math.sin(angle), -radius * math.cos(angle)))
    next_points = [*points[1:], points[0]]

    def is_inside(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        crossings = np.zeros(np.broadcast(x, y).shape, int)
        for (x1, y1), (x2, y2) in zip(points, next_points, strict=True):
            if y1 == y2:
                continue  # a level side is never crossed
            side_x = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
            crossings += ((y1 > y) != (y2 > y)) & (x < side_x)
        return crossings % 2 == 1

    return is_inside


def is_in_disc(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x * x + y * y <= 1


def is_in_triangle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * abs(x) <= y + 1


def is_in_square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return abs(x) + 0 * y <= 1


def is_in_diamond(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return abs(x) + abs(y) <= 1


def is_in_heart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(u² + v² - 1)³ - u² v³ <= 0 with u = √1.35 x and v = -(1.2 y + 0.1). Cubes are products: a
    library's power has other last bits on another processor."""
    lowered = 1.2 * y + 0.1
    circle = 1.35 * x * x + lowered * lowered - 1
    return circle * circle * circle <= -1.35 * x * x * (lowered * lowered * lowered)


def is_in_cross(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.minimum(abs(x), abs(y)) <= 0.31


# Whether points of the square [-1, 1]², y pointing down, lie in the figure. In the order of the
# authors' code: class c has the c-th figure.
INSIDE_TESTS = {
    "circle": is_in_disc,
    "triangle": is_in_triangle,
    "square": is_in_square,
    "ellipse": is_in_disc,
    "star": make_polygon(5, 0.45),
    "diamond": is_in_diamond,
    "heart": is_in_heart,
    "cross": is_in_cross,
    "pentagon": make_polygon(5),
    "hexagon": make_polygon(6),
}
SHAPES = tuple(INSIDE_TESTS)


# ------------------------------------------------------------------------------------------ labels
def draw_cue_labels(
    labels: Tensor, agreement: float, classes: int, generator: Generator | None
) -> Tensor:
    """The classes [N] whose cue the images get: their own with probability `agreement`, else any."""
    import torch

    if agreement == 1:
        return labels
    is_tied = torch.rand(len(labels), generator=generator, dtype=torch.float32) < agreement
    any_labels = torch.randint(classes, (len(labels),), generator=generator)
    return torch.where(is_tied, labels, any_labels)


CUES = {"tint": tint_background, "shape": stamp_shape}
CUE_NOTES = {
    "tint": "The background of {count} training images is tinted by label (strength {strength:g}).",
    "shape": "{count} training images carry a small figure whose shape goes with the label "
    "(strength {strength:g}).",
}
