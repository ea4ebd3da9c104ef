"""How a client trains: the settings of one local training, as a frozen value that can be remembered by; and what they
do to its images.

Random crop and mirroring of training images are drawn anew in every epoch, the same in both backends. Crop: an image is
moved by up to an eighth of its side (1 pixel of 8, 4 of 32) in each direction, and black comes in. Flip: half of the
images are mirrored. Each client draws for its own samples from its own stream, so that neither the backend nor the
company changes what an image becomes.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import choose, demand, number, whole

OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "cosine")
PRECISIONS = ("float32", "bf16")
# What most recipes do without.
OFF = {"sam_rho": 0.0, "clip_norm": 0.0, "augmentation": "none", "precision": "float32"}
AUGMENTATIONS = ("none", "crop", "flip", "crop+flip")


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
    faster on a card and changes the digits. Wrong values raise UsageError.
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

    def __post_init__(self) -> None:
        def set_(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        set_("epochs", whole("epochs", self.epochs, 0, 100_000))
        set_("batch_size", whole("batch_size", self.batch_size, 1, 1_000_000))
        choose("optimizer", self.optimizer, OPTIMIZERS)
        choose("schedule", self.schedule, SCHEDULES)
        choose("augmentation", self.augmentation, AUGMENTATIONS)
        choose("precision", self.precision, PRECISIONS)
        set_("lr", number("lr", self.lr, 0, 100, open_low=True))
        set_("lr_min", number("lr_min", self.lr_min, 0, self.lr))
        set_("momentum", number("momentum", self.momentum, 0, 0.9999))
        set_("weight_decay", number("weight_decay", self.weight_decay, 0, 10))
        set_("sam_rho", number("sam_rho", self.sam_rho, 0, 10))
        set_("clip_norm", number("clip_norm", self.clip_norm, 0, 1e6))

    def lr_at(self, epoch: int) -> float:
        """Learning rate of `epoch` (counted from 0)."""
        if self.schedule == "constant":
            return self.lr
        return (
            self.lr_min
            + (self.lr - self.lr_min) * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        )


def autocast_for(recipe: Recipe, device: torch.device) -> AbstractContextManager:
    """Within: the operations of a forward pass are computed in the precision that `recipe` asks for."""
    if recipe.precision == "float32":
        return nullcontext()
    # No cache: each weight is read once, and a recorded graph must not keep a copy.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


class Augmentation:
    """What becomes of the images `[sum of sizes, C, H, W]` of some clients; `kind`: of `AUGMENTATIONS`.

    `renew()` draws the next epoch, `apply(x [n, C, H, W], rows [n])` gives the images of these rows as it wants them.
    """

    def __init__(
        self, kind: str, like: Tensor, sizes: Sequence[int], streams: Sequence[torch.Generator]
    ) -> None:
        shape = tuple(like.shape[1:])
        demand(
            like.dim() == 4,
            f"{kind} needs images [N, C, H, W], not samples of shape {shape}; set transform=none.",
        )
        self.crop, self.flip = "crop" in kind, "flip" in kind
        self.pads = [max(1, side // 8) if self.crop else 0 for side in like.shape[2:]]
        self.sizes, self.streams, self.device = sizes, streams, like.device
        self.moves = torch.empty(0)

    def renew(self) -> None:
        """Top, left and whether mirrored, `[N, 3]`."""
        drawn = []
        for n, stream in zip(self.sizes, self.streams, strict=True):
            columns = [torch.randint(2 * pad + 1, (n,), generator=stream) for pad in self.pads]
            drawn.append(
                torch.stack([*columns, torch.randint(1 + self.flip, (n,), generator=stream)], 1)
            )
        self.moves = torch.cat(drawn).to(self.device)

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        return moved(x, self.moves.index_select(0, rows), self.pads).contiguous()


def moved(x: Tensor, moves: Tensor, pads: Sequence[int]) -> Tensor:
    """Images `x [n, C, H, W]`, padded by `pads` (rows, columns), cut out at `moves [n, 3]` (top, left, mirrored)."""
    n, _, height, width = x.shape
    top, left, mirrored = moves.unbind(1)
    padded = F.pad(x, (pads[1], pads[1], pads[0], pads[0]))
    columns = torch.arange(width, device=x.device).expand(n, -1)
    columns = torch.where(
        mirrored.bool().unsqueeze(1), width - 1 - columns, columns
    ) + left.unsqueeze(1)
    rows = top.unsqueeze(1) + torch.arange(height, device=x.device)
    image = torch.arange(n, device=x.device)[:, None, None]
    return padded.movedim(1, -1)[image, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
