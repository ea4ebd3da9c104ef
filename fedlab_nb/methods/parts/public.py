"""Unlabelled samples at the server: the data set's own public part, those of another data set, or noise.

`public_samples` gives them in the shape of the clients' inputs. Of another data set only its public part is taken, so
that no client's private samples can come in by this door. There is never a label.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import DATASETS, load
from ...errors import demand
from ..context import Context
from .images import random_crop

OWN = ("held-out", "other-mix")  # "other-mix": half the classes, which the caller sorts out (`half_the_classes`)
SOURCES = (*OWN, "noise", *(name for name in DATASETS if ":" not in name))  # one size of each: images are resized
NOISE = 1000  # samples of noise where no number is asked for


def check_source(ctx: Context, source: str, transform: bool, title: str) -> None:
    """UsageError, in one sentence, if `source` cannot be had for this run's inputs."""
    images = ctx.has("images")
    others = "glyphs or noise" if images else "noise"
    demand(
        source not in OWN or ctx.has("public"),
        f"{title} needs unlabelled public samples, which this data set does not have; choose another source "
        f"(fedet.public={others}), or give public a share of the training set (public=0.1) or another data set's "
        "name.",
    )
    wanted = "images of another data set" if source in DATASETS else "transformed images"
    demand(
        images or not (source in DATASETS or transform),
        f"{title} cannot use {wanted} here, since this data set has feature rows; choose fedet.public=held-out or "
        "noise, without transforms.",
    )


def public_samples(ctx: Context, source: str, size: int = 0, transform: bool = False) -> Tensor:
    """`[P, *input_shape]` on the run's device; `size` of them at most, drawn without replacement (0: all there are)."""
    stream = ctx.generator("public", source)
    if source == "noise":
        draw = torch.rand if ctx.has("images") else torch.randn  # the range of images, the scale of standardised rows
        x = draw(size or NOISE, *ctx.input_shape, generator=stream).to(ctx.device, ctx.dtype)
    elif source in OWN:
        x = ctx.public
    else:
        foreign = load(source).x_public
        assert foreign is not None  # SOURCES names such as have some
        x = fitted(foreign.to(ctx.device, ctx.dtype), ctx.input_shape)
    if 0 < size < len(x):
        x = x[torch.randperm(len(x), generator=stream).to(x.device)[:size]]
    return transformed(x, ctx.generator("public", "transform")) if transform else x


def half_the_classes(labels: Tensor) -> Tensor:
    """Rows of the samples whose label, of `labels [P]`, is in the lower half of those that occur ("other-mix").

    The server knows no true label: these are what its teachers' first consensus says.
    """
    there = labels.unique()
    return torch.isin(labels, there[: (len(there) + 1) // 2]).nonzero()[:, 0]


def fitted(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Images `[P, C', H', W']` in the `shape` (C, H, W): resized, grey spread over channels or colours averaged."""
    if tuple(x.shape[2:]) != tuple(shape[1:]):
        x = F.interpolate(x, size=shape[1:], mode="bilinear", antialias=True)
    if x.shape[1] != shape[0]:
        x = x.mean(1, keepdim=True).expand(-1, shape[0], -1, -1)
    return x.clamp(0, 1)


def transformed(x: Tensor, stream: torch.Generator, pad: int = 4, jitter: float = 0.4, grey: float = 0.2) -> Tensor:
    """Images `[P, C, H, W]` in [0, 1], changed once and for all: random crop after padding, mirroring, brightness,
    contrast and saturation each times 1 ± `jitter`, and grey with probability `grey`."""

    def draw(low: float, high: float) -> Tensor:
        return (low + (high - low) * torch.rand(len(x), 1, 1, 1, generator=stream)).to(x.device, x.dtype)

    x = random_crop(x, stream, padding=pad, flip=True)
    x = x * draw(1 - jitter, 1 + jitter)
    mean = x.mean((1, 2, 3), keepdim=True)
    x = mean + (x - mean) * draw(1 - jitter, 1 + jitter)
    plain = x.mean(1, keepdim=True)
    strength = torch.where(draw(0, 1) < grey, 0.0, draw(1 - jitter, 1 + jitter))
    return (plain + (x - plain) * strength).clamp(0, 1)
