"""Spurious cues by name: what ties an image to its label at some clients and nowhere else.

A client whose images carry one can reach high local accuracy by reading the cue and never learn the shape; on the
clean test set it then fails. This is the situation that FuseFL's analysis starts from. There are two cues:

- "tint": the background of an image moves towards the colour of its class;
- "shape": a small figure whose shape goes with the label (FuseFL, D.5: "backdoored" CIFAR-10). One opaque figure an
  image, 10 of 32 pixels wide, of a random colour and at a random place. The paper draws them on all training images of
  its backdoored clients, and tests on clean images. Here they are drawn once; the authors' code draws place and colour
  anew whenever an image is read.
"""

from __future__ import annotations

import colorsys
import math
from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data.sums import sum_in_fixed_order
from fedlab_nb.errors import demand, number

if TYPE_CHECKING:
    from torch import Generator, Tensor

REACH = 0.2  # how far a pixel may lie from the background colour and still take (most of) the tint
TINT_VERSION = 2  # raise it whenever tinted images change: it is part of their digest
COLOURS = "red blue green yellow purple orange pink brown black grey".split()  # as CSS means them
LUMA = (0.299, 0.587, 0.114)  # of images with one channel
PART, SMALLEST = 10 / 32, 5  # of the image's height; fewer pixels cannot tell ten figures apart
FINE = 8  # points a pixel's side that decide whether most of it lies in the figure


def tint_background(
    x: Tensor,
    labels: Tensor,
    strength: float,
    *,
    classes: int,
    agree: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Images with their background moved towards a colour (grey level where there is one channel) of their class.

    x:        float32 [N, C, H, W] in [0, 1], C = 1 or 3;   labels: int64 [N]
    strength: 0 leaves the images as they are, 1 replaces the background colour
    agree:    probability that the tint is the label's; otherwise it is that of a class drawn from `generator`.
              agree=0 is an untied tint, which tells nothing: on a test set it shows who relies on the shortcut.

    The background colour of an image is the median of its border; pixels far from it, the ink, keep their colour.
    Returns a new tensor. Raises UsageError for features and for values out of range.
    """
    import torch

    strength, agree = number("tint", strength, 0, 1), number("agree", agree, 0, 1)
    demand(
        x.ndim == 4,
        f"A tint needs images [N, C, H, W], but the samples have shape {tuple(x.shape[1:])}.",
    )
    demand(
        agree == 1 or generator is not None,
        "agree is below 1: tint_background needs a generator for the others.",
    )
    labels = drawn_labels(labels, agree, classes, generator)
    images = x.numpy().astype(np.float64)
    colour = np.array(palette(classes, x.shape[1]))[labels.numpy()][:, :, None, None]
    border = [images[:, :, 0], images[:, :, -1], images[:, :, :, 0], images[:, :, :, -1]]
    background = lower_median(np.concatenate(border, axis=2))[:, :, None, None]
    away = images - background
    squares = sum_in_fixed_order((away * away).swapaxes(0, 1))[:, None] / x.shape[1]
    nearness = exponential_decay(squares / (2 * REACH * REACH))
    tinted = images + strength * nearness * (colour - background)
    return torch.from_numpy(np.clip(tinted, 0.0, 1.0)).to(x.dtype)


def lower_median(x: np.ndarray) -> np.ndarray:
    """The median along the last axis; of an even number of values the lower one of the two in the middle."""
    return np.sort(x, axis=-1)[..., (x.shape[-1] - 1) // 2]


def exponential_decay(t: np.ndarray) -> np.ndarray:
    """exp(-t) of float64 t from 0 to 100, to within 1e-5: (1 - t/2^16)^(2^16), which is 16 squarings. A library's
    exponential has other last bits on another processor; a product has not."""
    power = 1 - t / 2.0**16
    for _ in range(16):
        power = power * power
    return power


def palette(classes: int, channels: int) -> list[list[float]]:
    """One colour a class: evenly spaced hues, or grey levels from 0 to 0.6; none so bright that light ink is lost."""
    if channels == 3:
        return [list(colorsys.hsv_to_rgb(c / classes, 0.75, 0.65)) for c in range(classes)]
    return [[0.6 * c / max(1, classes - 1)] * channels for c in range(classes)]


def stamp_shape(
    x: Tensor,
    labels: Tensor,
    strength: float,
    *,
    classes: int,
    agree: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Images with the figure of their class stamped on them, its colour and place from `generator`.

    x:        float32 [N, C, H, W] in [0, 1], C = 1 or 3;   labels: int64 [N]
    strength: how opaque the figure is: 0 leaves the images as they are, 1 is the paper's
    agree:    probability that the figure is the label's; otherwise it is that of a class drawn from `generator`

    Returns a new tensor. Raises UsageError for features, images too small, more than ten classes, values out of range.
    """
    import torch

    strength, agree = number("tint", strength, 0, 1), number("agree", agree, 0, 1)
    large, most = x.ndim == 4 and min(x.shape[2:]) > SMALLEST, len(SHAPES)
    sides = f"{SMALLEST + 1} x {SMALLEST + 1} pixels, [N, C, H, W]"
    demand(
        large,
        f"A figure needs images of at least {sides}, but the samples have shape {tuple(x.shape[1:])}.",
    )
    demand(
        classes <= most,
        f"There are figures for at most {most} classes, not for {classes}; use cue='tint'.",
    )
    demand(generator is not None, "stamp_shape needs a generator to draw colours and places from.")
    labels = drawn_labels(labels, agree, classes, generator)
    channels, height, width = x.shape[1:]
    size = max(SMALLEST, round(PART * height))
    figures = [torch.tensor(mask(name, size, width)) for name in SHAPES[:classes]]
    paints = colours(channels)
    chosen = torch.randint(len(paints), (len(x),), generator=generator).tolist()
    places = torch.rand(len(x), 2, generator=generator, dtype=torch.float32).tolist()
    out = x.clone()
    for i, label in enumerate(labels.tolist()):
        figure, paint = figures[label], torch.tensor(paints[chosen[i]], dtype=x.dtype)[:, None]
        rows, columns = figure.shape
        top, left = (
            int(p * room)
            for p, room in zip(places[i], (height - rows + 1, width - columns + 1), strict=True)
        )
        spot = out[i, :, top : top + rows, left : left + columns]
        spot[:, figure] += strength * (paint - spot[:, figure])
    return out


def colours(channels: int) -> list[list[float]]:
    """The ten colours in [0, 1], or their brightness where there is one channel."""
    from PIL.ImageColor import getrgb

    shares = [[level / 255 for level in getrgb(name)] for name in COLOURS]
    if channels == 3:
        return shares
    return [[sum(a * b for a, b in zip(LUMA, colour, strict=True))] * channels for colour in shares]


def mask(name: str, size: int, widest: int) -> list[list[bool]]:
    """Which pixels a figure of `size` rows covers, `[size][columns]`; at most `widest` columns.

    >>> ["".join(" #"[covered] for covered in row) for row in mask("cross", 6, 6)]
    ['  ##  ', '  ##  ', '######', '######', '  ##  ', '  ##  ']
    """
    columns = min(2 * size, widest) if name == "ellipse" else size
    x, y = (2 * (np.arange(n * FINE) + 0.5) / FINE / n - 1 for n in (columns, size))
    covered = INSIDE[name](x[None], y[:, None]).reshape(size, FINE, columns, FINE).sum((1, 3))
    return (2 * covered > FINE**2).tolist()


def polygon(corners: int, inner: float = 1.0):
    """Inside of a regular polygon with a corner on top, or, with an `inner` radius below 1, of a star."""
    count = corners if inner == 1 else 2 * corners
    radii = [inner if inner < 1 and i % 2 else 1.0 for i in range(count)]
    turns = [2 * math.pi * i / count for i in range(count)]
    points = [
        (r * math.sin(turn), -r * math.cos(turn)) for r, turn in zip(radii, turns, strict=True)
    ]

    def inside(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        crossings = np.zeros(np.broadcast(x, y).shape, int)
        for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
            if y1 != y2:  # a level side is never crossed
                crossings += ((y1 > y) != (y2 > y)) & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
        return crossings % 2 == 1

    return inside


def cube(x: np.ndarray) -> np.ndarray:
    return x * x * x  # a library's power has other last bits on another processor


# Whether points of the square [-1, 1]², y pointing down, lie in the figure. In the order of the authors' code: class c
# has the c-th figure. The ellipse is twice as wide as the others.
INSIDE = {
    "circle": lambda x, y: x * x + y * y <= 1,
    "triangle": lambda x, y: 2 * abs(x) <= y + 1,
    "square": lambda x, y: abs(x) + 0 * y <= 1,
    "ellipse": lambda x, y: x * x + y * y <= 1,
    "star": polygon(5, 0.45),
    "diamond": lambda x, y: abs(x) + abs(y) <= 1,
    "heart": lambda x, y: (
        cube(1.35 * x * x + (1.2 * y + 0.1) * (1.2 * y + 0.1) - 1)
        <= -1.35 * x * x * cube(1.2 * y + 0.1)
    ),
    "cross": lambda x, y: np.minimum(abs(x), abs(y)) <= 0.31,
    "pentagon": polygon(5),
    "hexagon": polygon(6),
}
SHAPES = tuple(INSIDE)


def drawn_labels(labels: Tensor, agree: float, classes: int, generator: Generator | None) -> Tensor:
    """The classes [N] whose cue the images get: their own with probability `agree`, else any."""
    import torch

    if agree == 1:
        return labels
    tied = torch.rand(len(labels), generator=generator, dtype=torch.float32) < agree
    return torch.where(tied, labels, torch.randint(classes, (len(labels),), generator=generator))


CUES = {"tint": tint_background, "shape": stamp_shape}
NOTES = {
    "tint": "The background of {count} training images is tinted by label (strength {strength:g}).",
    "shape": "{count} training images carry a small figure whose shape goes with the label (strength {strength:g}).",
}
