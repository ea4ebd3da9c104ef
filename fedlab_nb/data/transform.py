"""Transform images before a network reads them: the setting `transform`, parts joined by `+`.

- "standardise": subtract each channel's mean and divide by its standard deviation. Both are taken
  over all training images, like the published constants of a data set, and count as known: nothing is
  sent for them. A federation that does not know them would send 2·C sums and a count for each client,
  once.
- "symmetric": map [0, 1] to [-1, 1].
- "crop", "flip": crop or mirror the training images, anew in every epoch of local training
  (`training/recipe.py`).
- "lite0", which stands alone: replace each image by 112 features of a network that was trained on
  ImageNet and that nobody trains further (`studies/frozen_features.py`).

The data set itself stays in [0, 1], and so do public and synthetic images, perturbations and plotted
images. "standardise" and "symmetric" are the first layer of every network (`models.Normalise`), so
that training, public, synthetic and test images all pass through it. The layer has no parameters to
train, all clients know it, and it is never sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from fedlab_nb.data.sums import sum_rows_in_fixed_order
from fedlab_nb.errors import SAMPLES, UsageError
from fedlab_nb.value_types import SampleShape

if TYPE_CHECKING:
    from torch import Tensor

    from fedlab_nb.tensor_types import Images

SCALES: tuple[Literal["standardise", "symmetric"], ...] = ("standardise", "symmetric")
AUGMENTATIONS = ("crop", "flip")
NONE, SEEN = "none", "lite0"
InputScale = Literal["none", "standardise", "symmetric"]
AugmentationKind = Literal["none", "crop", "flip", "crop+flip"]


def order_transform_parts(transform_parts_joined_by_plus: str, input_shape: SampleShape) -> str:
    """Bring the parts of a transform into the usual order. Raises UsageError for a text that is not a
    transform, and for one that does not fit such inputs.

    >>> order_transform_parts("flip + standardise", (1, 8, 8))
    'standardise+flip'
    """
    parts = [part.strip() for part in str(transform_parts_joined_by_plus).split("+")]
    if parts == [NONE]:
        return NONE
    if parts == [SEEN]:
        check_input_fits_lite0_network(input_shape)
        return SEEN
    is_known = all(part in (*SCALES, *AUGMENTATIONS) for part in parts)
    has_repeats = len(set(parts)) < len(parts)
    has_both_scales = set(SCALES) <= set(parts)
    if not is_known or has_repeats or has_both_scales:
        raise UsageError(
            f"transform is {transform_parts_joined_by_plus!r}, but it must be none, lite0, standardise or "
            "symmetric, crop, flip, or such parts joined by +, as in standardise+crop+flip (that of "
            "Fed-ET's public images is fedet.transform)."
        )
    if len(input_shape) != 3:
        raise UsageError(
            f"transform={transform_parts_joined_by_plus} needs images, not {SAMPLES[len(input_shape)]}, which are "
            "standardised; set none."
        )
    return "+".join(part for part in (*SCALES, *AUGMENTATIONS) if part in parts)


def check_input_fits_lite0_network(input_shape: SampleShape) -> None:
    """Raise UsageError for inputs that the network of "lite0" cannot read."""
    if len(input_shape) == 3 and input_shape[0] in (1, 3):
        return
    shape = "x".join(map(str, input_shape))
    raise UsageError(
        f"lite0 reads images of 1 or 3 channels, but a sample is {shape} here; leave it out."
    )


def parse_input_scale(transform_parts_joined_by_plus: str) -> InputScale:
    """Find what is done to every image: "standardise", "symmetric" or "none"."""
    parts = transform_parts_joined_by_plus.split("+")
    for scale in SCALES:
        if scale in parts:
            return scale
    return "none"


def parse_augmentation(transform_parts_joined_by_plus: str) -> AugmentationKind:
    """Find what is done to training images only: "crop", "flip", "crop+flip" or "none"."""
    parts = transform_parts_joined_by_plus.split("+")
    if "crop" in parts and "flip" in parts:
        return "crop+flip"
    if "crop" in parts:
        return "crop"
    return "flip" if "flip" in parts else "none"


class Normalisation(NamedTuple):
    """The map (x - mean) / std of images; both are float64 `[C]`."""

    mean: Tensor
    std: Tensor


def compute_normalisation(scale: InputScale, x_train: Images) -> Normalisation | None:
    """Compute the map of `scale` (see `parse_input_scale`) for images `[N, C, H, W]`; None for "none".

    A constant channel gets the deviation 1, so it is only shifted. Mean and deviation are the same to
    the last bit on every machine.
    """
    import torch

    if scale == NONE:
        return None
    if scale == "symmetric":
        half = torch.full((x_train.shape[1],), 0.5, dtype=torch.float64)
        return Normalisation(half, half.clone())
    pixels = x_train.shape[0] * x_train.shape[2] * x_train.shape[3]
    means = []
    deviations = []
    for channel in x_train.cpu().numpy().swapaxes(0, 1):  # [N, H, W]
        values = channel.astype(np.float64)
        mean = sum_rows_in_fixed_order(sum_rows_in_fixed_order(values).ravel()) / pixels
        difference = values - mean
        squares = sum_rows_in_fixed_order(sum_rows_in_fixed_order(difference * difference).ravel())
        means.append(float(mean))
        deviations.append(float(np.sqrt(squares / pixels)))
    mean_of_channels = torch.tensor(means, dtype=torch.float64)
    deviation_of_channels = torch.tensor(deviations, dtype=torch.float64)
    is_varied = deviation_of_channels > 1e-6
    std = torch.where(is_varied, deviation_of_channels, 1.0)
    return Normalisation(mean_of_channels, std)
