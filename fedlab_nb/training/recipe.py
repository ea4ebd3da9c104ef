"""How a client trains: the settings of one local training, as a frozen value that can be remembered by."""

import math
from dataclasses import dataclass

from ..errors import choose, number, whole

OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "cosine")
OFF = {"sam_rho": 0.0, "clip_norm": 0.0, "augmentation": "none"}  # what most recipes do without
AUGMENTATIONS = ("none", "crop", "flip", "crop+flip")


@dataclass(frozen=True)
class Recipe:
    """Local training of one client: `epochs` passes in shuffled batches, the last batch of an epoch kept even if short.

    `lr_at(e)` is the learning rate of epoch e: constant, or cosine from `lr` to `lr_min` over the epochs (one value an
    epoch). `weight_decay` is the coupled kind (added to the gradient), for SGD and for Adam; Adam has betas 0.9, 0.999
    and eps 1e-8.

    `sam_rho`: radius of sharpness-aware minimisation (Foret et al., ICLR 2021): the step is taken with the gradient
    at θ + sam_rho g/‖g‖; 0: off. `clip_norm`: largest norm of the gradient of a client's whole model, of SAM's where it
    is on; 0: off. `augmentation` of the training images, drawn anew in every epoch (`augment.py`). Wrong values raise
    UsageError.
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

    def __post_init__(self) -> None:
        def set_(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        set_("epochs", whole("epochs", self.epochs, 0, 100_000))
        set_("batch_size", whole("batch_size", self.batch_size, 1, 1_000_000))
        choose("optimizer", self.optimizer, OPTIMIZERS)
        choose("schedule", self.schedule, SCHEDULES)
        choose("augmentation", self.augmentation, AUGMENTATIONS)
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
        return self.lr_min + (self.lr - self.lr_min) * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
