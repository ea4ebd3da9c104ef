"""A spurious cue for images: a background tint that goes with the label.

A client whose images are tinted can reach high local accuracy by reading the tint and never learn the shape; on the
clean test set it then fails. This is the situation that FuseFL's analysis starts from (its own experiment draws a
small figure on each image).
"""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING

from fedlab_nb.errors import demand, number

if TYPE_CHECKING:
    import torch

REACH = 0.2  # how far a pixel may lie from the background colour and still take (most of) the tint


def tint_background(
    x: torch.Tensor,
    labels: torch.Tensor,
    strength: float,
    *,
    classes: int,
    agree: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
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
        x.ndim == 4, f"A background tint needs images [N, C, H, W], but the samples have shape {tuple(x.shape[1:])}."
    )
    if agree < 1:
        demand(
            generator is not None,
            "agree is below 1, so tint_background needs a generator to draw the other tints from.",
        )
        tied = torch.rand(len(x), generator=generator) < agree
        labels = torch.where(tied, labels, torch.randint(classes, (len(x),), generator=generator))
    colour = torch.tensor(palette(classes, x.shape[1]))[labels][:, :, None, None]  # [N, C, 1, 1]
    ring = torch.cat([x[:, :, 0], x[:, :, -1], x[:, :, :, 0], x[:, :, :, -1]], dim=2)
    background = ring.median(dim=2).values[:, :, None, None]
    nearness = torch.exp(-(x - background).square().mean(dim=1, keepdim=True) / (2 * REACH**2))
    return (x + strength * nearness * (colour - background)).clamp(0, 1)


def palette(classes: int, channels: int) -> list[list[float]]:
    """One colour a class: evenly spaced hues, or grey levels from 0 to 0.6; none so bright that light ink is lost."""
    if channels == 3:
        return [list(colorsys.hsv_to_rgb(c / classes, 0.75, 0.65)) for c in range(classes)]
    return [[0.6 * c / max(1, classes - 1)] * channels for c in range(classes)]
