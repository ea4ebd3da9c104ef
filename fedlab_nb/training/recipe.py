"""How a client trains: the settings of one local training, as a frozen value that can be a key; and how they augment
its images.

Random crop and mirroring of training images are drawn anew in every epoch, the same in all backends. Crop: an image is
moved by up to an eighth of its side (1 pixel of 8, 4 of 32) in each direction, and black comes in. Flip: half of the
images are mirrored. Each client draws for its own samples from its own stream, so that neither the backend nor the
other clients change what an image becomes.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import UsageError, check_number, check_whole_number, choose

OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "cosine")
PRECISIONS = ("float32", "bf16")
AUGMENTATIONS = ("none", "crop", "flip", "crop+flip")
# Fields that most recipes leave off, with the values that mean so.
OFF = {
    "sam_rho": 0.0,
    "clip_norm": 0.0,
    "augmentation": "none",
    "precision": "float32",
    "data_noise": 0.0,
}


@dataclass(frozen=True)
class Recipe:
    """Local training of one client: `epochs` passes in shuffled batches, the last batch of an epoch kept even if short.

    `lr_at(e)` is the learning rate of epoch e: constant, or cosine from `lr` to `lr_min` over the epochs (one value an
    epoch). `weight_decay` is the coupled kind (added to the gradient), for SGD and for Adam; Adam has betas 0.9, 0.999
    and eps 1e-8.

    `sam_rho`: radius of sharpness-aware minimisation (Foret et al., ICLR 2021): the step is taken with the gradient
    at θ + sam_rho g/‖g‖; 0: off. `clip_norm`: largest norm of the gradient of a client's whole model, of SAM's where it
    is on; 0: off. `augmentation` of the training images, drawn anew in every epoch (`Augmentation`). `precision`:
    "bf16" computes forward and backward passes in bfloat16 (weights, optimizer and loss stay in float32), which is
    faster on a card and changes the digits. `data_noise`: scale of the Laplace noise that a client adds to every number
    of its samples, once, before anything reads them (FedLPA's mechanism 1, with scale 1/ε); 0: none. It shows what a
    method tolerates. It protects nobody: ε would be a promise only if the samples of two people differed by 1 in the
    sum over all pixels. Wrong values raise UsageError.
    """

    epochs: int = 40
    batch_size: int = 32
    optimizer: str = "sgd"
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 1e-5
    schedule: str = "constant"
    lr_min: float = 0.0
    sam_rho: float = 0.0
    clip_norm: float = 0.0
    augmentation: str = "none"
    precision: str = "float32"
    data_noise: float = 0.0

    def __post_init__(self) -> None:
        epochs = check_whole_number("epochs", self.epochs, 0, 100_000)
        batch_size = check_whole_number("batch_size", self.batch_size, 1, 1_000_000)
        choose("optimizer", self.optimizer, OPTIMIZERS)
        choose("schedule", self.schedule, SCHEDULES)
        choose("augmentation", self.augmentation, AUGMENTATIONS)
        choose("precision", self.precision, PRECISIONS)
        lr = check_number("lr", self.lr, 0, 100, open_low=True)
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

    def lr_at(self, epoch: int) -> float:
        """Learning rate of `epoch` (counted from 0)."""
        if self.schedule == "constant":
            return self.lr
        share = (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        return self.lr_min + (self.lr - self.lr_min) * share


def make_autocast(recipe: Recipe, device: torch.device) -> AbstractContextManager:
    """Within: the operations of a forward pass are computed in the precision that `recipe` asks for."""
    if recipe.precision == "float32":
        return nullcontext()
    # No cache: each weight is read once, and a recorded graph must not keep a copy.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


class Augmentation:
    """Random crops and mirror images of the images of some clients, which lie one client after the other.

    `draw_epoch()` draws how each image changes in the next epoch, `apply(x [n, C, H, W], rows [n])` changes the images
    of these rows so.

    kind: one of AUGMENTATIONS;   like: the images `[N, C, H, W]`, for shape and device;   sizes: images of each client,
    N in all;   streams: a generator for each client. UsageError for samples that are no images.
    """

    def __init__(
        self, kind: str, like: Tensor, sizes: Sequence[int], streams: Sequence[torch.Generator]
    ) -> None:
        if like.dim() != 4:
            shape = tuple(like.shape[1:])
            raise UsageError(
                f"{kind} needs images [N, C, H, W], not samples of shape {shape}; "
                "set transform=none."
            )
        self.crops = "crop" in kind
        self.flips = "flip" in kind
        self.padding = [max(1, side // 8) if self.crops else 0 for side in like.shape[2:]]
        self.sizes = sizes
        self.streams = streams
        self.device = like.device
        self.changes = torch.empty(0)  # [N, 3]: top, left, whether mirrored

    def draw_epoch(self) -> None:
        """Draw the changes of the next epoch."""
        changes = []
        for size, stream in zip(self.sizes, self.streams, strict=True):
            top, left = (
                torch.randint(2 * padding + 1, (size,), generator=stream)
                for padding in self.padding
            )
            is_mirrored = torch.randint(1 + self.flips, (size,), generator=stream)
            changes.append(torch.stack([top, left, is_mirrored], 1))
        self.changes = torch.cat(changes).to(self.device)

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """The images `x [n, C, H, W]` of these `rows`, changed as this epoch wants them."""
        changes = self.changes.index_select(0, rows)
        return crop_and_flip(x, changes, self.padding).contiguous()


def crop_and_flip(x: Tensor, changes: Tensor, padding: Sequence[int]) -> Tensor:
    """Crop images `x [n, C, H, W]` to their size from a frame of black pixels around them, and mirror some.

    padding: the frame's pixels above and below, and left and right;   changes: `[n, 3]`, the first row and the first
    column of the crop in the frame, and whether it is mirrored.
    """
    n, _, height, width = x.shape
    vertical, horizontal = padding
    padded = F.pad(x, (horizontal, horizontal, vertical, vertical))
    top, left, is_mirrored = changes.unbind(1)
    rows = top.unsqueeze(1) + torch.arange(height, device=x.device)
    columns = torch.arange(width, device=x.device).expand(n, -1)
    columns = torch.where(is_mirrored.bool().unsqueeze(1), width - 1 - columns, columns)
    columns = columns + left.unsqueeze(1)
    images = torch.arange(n, device=x.device)[:, None, None]
    crops = padded.movedim(1, -1)[images, rows[:, :, None], columns[:, None, :]]
    return crops.movedim(-1, 1)
