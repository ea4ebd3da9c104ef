"""The clients' samples, and the trip-wire: no server step can read them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..data import Federation
from .poison import Poison


class PrivateData:
    """The clients' samples, on the device; client side only.

    Each client's shard is split once into a training part and a held-out part (`holdout`, a share). `train(k)`,
    `held_out(k)` and `everything(k)` give `(x [n, ...], y [n])`; they raise RuntimeError while a server step runs.
    The labels of `poisoned` clients are flipped where the `poison` is one of labels.
    """

    def __init__(
        self,
        federation: Federation,
        holdout: float,
        device: torch.device,
        dtype: torch.dtype,
        poison: Poison = Poison(),  # noqa: B008  (frozen)
        poisoned: Sequence[int] = (),
    ) -> None:
        self._x = federation.dataset.x_train.to(device, dtype)
        labels = federation.dataset.y_train.to(device)
        self._y = poison.flipped(labels, [federation.shards[k] for k in poisoned], federation.classes)
        parts = federation.split(holdout)
        self._train, self._held = [train for train, _ in parts], [held for _, held in parts]
        self.locked = False
        self.held_out_used = False  # whether the method has asked for held-out samples

    def _rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        if self.locked:
            raise RuntimeError("A server step touched a client's private samples.")
        rows = rows.to(self._y.device)
        return self._x[rows], self._y[rows]

    def train(self, k: int) -> tuple[Tensor, Tensor]:
        return self._rows(self._train[k])

    def held_out(self, k: int) -> tuple[Tensor, Tensor]:
        self.held_out_used = True
        return self._rows(self._held[k])

    def everything(self, k: int) -> tuple[Tensor, Tensor]:
        self.held_out_used = True
        return self._rows(torch.cat([self._train[k], self._held[k]]).sort().values)

    def sizes(self, part: str = "train") -> list[int]:
        """Samples of each client in its `train` or `held_out` part (numbers, not samples: always allowed)."""
        return [len(rows) for rows in (self._train if part == "train" else self._held)]
