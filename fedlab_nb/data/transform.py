"""What is done to images before a network reads them: `transform`, parts joined by `+`.

- "standardise": each channel minus its mean, divided by its standard deviation, both over all training images, as one
  does with a data set's published constants. Nothing is sent for them here. A federation that does not know them would
  send 2·C sums and a count a client, once.
- "symmetric": [0, 1] becomes [-1, 1].
- "crop", "flip": the training images alone, anew in every epoch of local training (`training/augment.py`).

A data set stays in [0, 1], and so do public and synthetic images, perturbations and pictures. The map of the first two
is the first layer of every network (`models.Normalise`), so that training, public, synthetic and test images all pass
it. It has nothing to learn, is known to all, and is not sent.

- "lite0", alone: images become 112 numbers, made by a network that was trained on ImageNet and that nobody trains
  (`studies/seen.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data.sums import sum_in_fixed_order
from fedlab_nb.errors import SAMPLES, demand

if TYPE_CHECKING:
    from torch import Tensor

SCALES = ("standardise", "symmetric")
AUGMENTATIONS = ("crop", "flip")
NONE, SEEN = "none", "lite0"


def checked_transform(text: object, input_shape: tuple[int, ...]) -> str:
    """`text` with its parts in the usual order; UsageError for what is no transform, or none of such inputs.

    >>> checked_transform("flip + standardise", (1, 8, 8))
    'standardise+flip'
    """
    parts = [part.strip() for part in str(text).split("+")]
    if parts == [NONE]:
        return NONE
    if parts == [SEEN]:
        fits, shape = (
            len(input_shape) == 3 and input_shape[0] in (1, 3),
            "x".join(map(str, input_shape)),
        )
        demand(
            fits,
            f"lite0 reads images of 1 or 3 channels, but a sample is {shape} here; leave it out.",
        )
        return SEEN
    known = all(part in (*SCALES, *AUGMENTATIONS) for part in parts) and len(set(parts)) == len(
        parts
    )
    allowed = (
        "none, lite0, standardise or symmetric, crop, flip, "
        "or such parts joined by +, as in standardise+crop+flip"
    )
    other = "that of Fed-ET's public images is fedet.transform"
    demand(
        known and not set(SCALES) <= set(parts),
        f"transform is {text!r}, but it must be {allowed} ({other}).",
    )
    other = f"not {SAMPLES[len(input_shape)]}, which are standardised"
    demand(len(input_shape) == 3, f"transform={text} needs images, {other}; set none.")
    return "+".join(part for part in (*SCALES, *AUGMENTATIONS) if part in parts)


def scale_part(transform: str) -> str:
    """What becomes of every image: "standardise", "symmetric" or "none"."""
    return next((part for part in SCALES if part in transform.split("+")), NONE)


def augmentation_part(transform: str) -> str:
    """What becomes of training images: "crop", "flip", "crop+flip" or "none"."""
    return "+".join(part for part in AUGMENTATIONS if part in transform.split("+")) or NONE


def constants(scale: str, x_train: Tensor) -> tuple[Tensor, Tensor] | None:
    """Mean and standard deviation `[C]` (float64) of the map (x - mean) / std of images `[N, C, H, W]`; None: no map.

    A channel that never changes keeps its size: its deviation counts as 1. Both are the same to the last bit on every
    machine.
    """
    import torch

    if scale == NONE:
        return None
    if scale == "symmetric":
        half = torch.full((x_train.shape[1],), 0.5, dtype=torch.float64)
        return half, half.clone()
    pixels = x_train.shape[0] * x_train.shape[2] * x_train.shape[3]
    means = []
    deviations = []
    for channel in x_train.cpu().numpy().swapaxes(0, 1):  # [N, H, W]
        channel = channel.astype(np.float64)
        mean = sum_in_fixed_order(sum_in_fixed_order(channel).ravel()) / pixels
        away = channel - mean
        squares = sum_in_fixed_order(sum_in_fixed_order(away * away).ravel())
        means.append(float(mean))
        deviations.append(float(np.sqrt(squares / pixels)))
    spread = torch.tensor(deviations, dtype=torch.float64)
    return torch.tensor(means, dtype=torch.float64), torch.where(spread > 1e-6, spread, 1.0)
