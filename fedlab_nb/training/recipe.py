"""The settings of a client's local training (`Recipe`, frozen and hashable), and the augmentation of its images.

Random crops and flips of training images are drawn anew in every epoch. Crop: an image is shifted by up to an eighth of
its side (1 pixel of 8, 4 of 32) in each direction, and the gap is filled with black. Flip: half of the images are
mirrored. Each client draws the changes of its own images from its own random stream, so they depend neither on the
backend nor on the other clients.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import UsageError, check_allowed_name, check_number, check_whole_number
from ..tensor_types import Images, SampleIndices

CropsAndFlips = Tensor  # [N, 3]: first row and column of a crop, and 1 to mirror

OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "cosine")
PRECISIONS = ("float32", "bf16")
AUGMENTATIONS = ("none", "crop", "flip", "crop+flip")
OptimizerName = Literal["sgd", "adam"]
Schedule = Literal["constant", "cosine"]
Precision = Literal["float32", "bf16"]
AugmentationKind = Literal["none", "crop", "flip", "crop+flip"]
# The fields that most recipes switch off, with the value that does so.
OFF = {
    "sam_rho": 0.0,
    "clip_norm": 0.0,
    "augmentation": "none",
    "precision": "float32",
    "data_noise": 0.0,
}


@dataclass(frozen=True)
class Recipe:
    """The settings of one client's training on its own samples. Wrong values raise UsageError.

    epochs: passes over the samples, in shuffled batches
    batch_size: samples of a batch; the last batch of an epoch may be shorter
    optimizer: "adam" has betas 0.9 and 0.999, and eps 1e-8
    lr: learning rate of the first epoch
    momentum: of "sgd"
    weight_decay: added to the gradient, for both optimizers
    schedule: "cosine" goes from `lr` to `lr_min`, with one value per epoch
    sam_rho: radius of sharpness-aware minimisation (Foret et al., ICLR 2021), which takes the
        step with the gradient at θ + sam_rho g/‖g‖; 0: off
    clip_norm: largest norm of the gradient of a client's whole model, of SAM's if that is on; 0: off
    augmentation: of the training images, drawn anew in every epoch (`Augmentation`)
    precision: "bf16" computes forward and backward passes in bfloat16; weights, optimizer and loss
        stay in float32. That is faster on a GPU, but gives slightly different results
    data_noise: scale of the Laplace noise that a client adds to every number of its samples, once,
        before anything reads them (FedLPA's mechanism 1, with scale 1/ε); 0: none

    The noise shows what a method tolerates. It protects nobody: ε would be a guarantee of privacy only
    if any two samples differed by at most 1, summed over all pixels.
    """

    epochs: int = 40
    batch_size: int = 32
    optimizer: OptimizerName = "sgd"
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 1e-5
    schedule: Schedule = "constant"
    lr_min: float = 0.0
    sam_rho: float = 0.0
    clip_norm: float = 0.0
    augmentation: AugmentationKind = "none"
    precision: Precision = "float32"
    data_noise: float = 0.0

    def __post_init__(self) -> None:
        epochs = check_whole_number("epochs", self.epochs, 0, 100_000)
        batch_size = check_whole_number("batch_size", self.batch_size, 1, 1_000_000)
        check_allowed_name("optimizer", self.optimizer, OPTIMIZERS)
        check_allowed_name("schedule", self.schedule, SCHEDULES)
        check_allowed_name("augmentation", self.augmentation, AUGMENTATIONS)
        check_allowed_name("precision", self.precision, PRECISIONS)
        lr = check_number("lr", self.lr, 0, 100, excludes_low=True)
        checked = {
            "epochs": epochs,
            "batch_size": batch_size,
            "lr": lr,
            "lr_min": check_number("lr_min", self.lr_min, 0, lr),
            "momentum": check_number("momentum", self.momentum, 0, 0.9999),
            "weight_decay": check_number("weight_decay", self.weight_decay, 0, 10),
            "sam_rho": check_number("sam_rho", self.sam_rho, 0, 10),
            "clip_norm": check_number("clip_norm", self.clip_norm, 0, 1e6),
            "data_noise": check_number("data_noise", self.data_noise, 0, 1000),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def compute_learning_rate(self, epoch_from_0: int) -> float:
        """Learning rate of an epoch."""
        if self.schedule == "constant":
            return self.lr
        cosine_factor = (
            1 + math.cos(math.pi * epoch_from_0 / self.epochs)
        ) / 2  # falls from 1 to 0
        return self.lr_min + (self.lr - self.lr_min) * cosine_factor


def make_autocast(recipe: Recipe, device: torch.device) -> AbstractContextManager:
    """A context manager in which forward passes are computed in the recipe's precision."""
    if recipe.precision == "float32":
        return nullcontext()
    # Without a cache of converted weights: each is read only once, and a recorded CUDA graph must not keep a copy.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


class Augmentation:
    """Random crops and flips of the images of several clients, stored one client after the other.

    `draw_crops_and_flips_of_next_epoch()` draws how each image is changed in the next epoch.
    `crop_and_flip_as_drawn(x [n, C, H, W], rows [n])` returns these rows' images with their changes.

    kind: one of AUGMENTATIONS
    images_for_shape_and_device: the images `[N, C, H, W]`, only for their shape and device
    sizes: the number of each client's images; they sum to N
    streams: a random generator for each client

    UsageError for samples that are not images.
    """

    def __init__(
        self,
        kind: AugmentationKind,
        images_for_shape_and_device: Tensor,
        sizes: Sequence[int],
        streams: Sequence[torch.Generator],
    ) -> None:
        if images_for_shape_and_device.dim() != 4:
            shape = tuple(images_for_shape_and_device.shape[1:])
            raise UsageError(
                f"{kind} needs images [N, C, H, W], not samples of shape {shape}; "
                "set transform=none."
            )
        self.crops = "crop" in kind
        self.flips = "flip" in kind
        self.padding = [
            max(1, side // 8) if self.crops else 0 for side in images_for_shape_and_device.shape[2:]
        ]
        self.sizes = sizes
        self.streams = streams
        self.device = images_for_shape_and_device.device
        self.changes = torch.empty(0)  # [N, 3]: top, left, whether mirrored

    def draw_crops_and_flips_of_next_epoch(self) -> None:
        """Draw the changes of the next epoch."""
        changes = []
        for size, stream in zip(self.sizes, self.streams, strict=True):
            vertical, horizontal = self.padding
            top = torch.randint(2 * vertical + 1, (size,), generator=stream)
            left = torch.randint(2 * horizontal + 1, (size,), generator=stream)
            is_mirrored = torch.randint(1 + self.flips, (size,), generator=stream)
            changes.append(torch.stack([top, left, is_mirrored], 1))
        self.changes = torch.cat(changes).to(self.device)

    def crop_and_flip_as_drawn(self, samples: Images, sample_indices: SampleIndices) -> Images:
        """The images `samples [n, C, H, W]`, which have these `sample_indices`, with this epoch's changes."""
        changes = self.changes.index_select(0, sample_indices)
        return crop_and_flip(samples, changes, self.padding).contiguous()


def crop_and_flip(
    images: Images, crops_and_flips: CropsAndFlips, padding_rows_and_columns: Sequence[int]
) -> Images:
    """Pad `images [n, C, H, W]` with black, crop them to their former size, and mirror some of them.

    padding_rows_and_columns: black pixels above and below, and left and right
    crops_and_flips: `[n, 3]`, the crop's first row and first column in the padded image, and whether the crop is
        mirrored
    """
    n, _, height, width = images.shape
    vertical, horizontal = padding_rows_and_columns
    padded = F.pad(images, (horizontal, horizontal, vertical, vertical))
    top, left, is_mirrored = crops_and_flips.unbind(1)
    rows = top.unsqueeze(1) + torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device).expand(n, -1)
    columns = torch.where(is_mirrored.bool().unsqueeze(1), width - 1 - columns, columns)
    columns = columns + left.unsqueeze(1)
    image_indices = torch.arange(n, device=images.device)[:, None, None]
    crops = padded.movedim(1, -1)[image_indices, rows[:, :, None], columns[:, None, :]]
    return crops.movedim(-1, 1)
