"""What every dataset looks like once it is loaded: train and test tensors, an unlabelled part, class names, an id.

It knows nothing of clients; `federation.py` shares the training samples out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedlab_nb.errors import UsageError, demand

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images (or feature rows) on the CPU, with labels 0..C-1.

    x_train:  float32 [N, C, H, W] in [0, 1], or standardised features [N, D];   y_train: int64 [N]
    x_test, y_test:  the same for the test set
    x_public: float32 like x_train, without labels, or None
    digest:   equal for equal content, so that stored results find their data again
    y_public: labels of x_public where they are known: for choosing settings, never for a method
    note:     what was done to the data on the way in, in a sentence for the reader
    client_train: int64 [N], the client 0..M-1 that holds each training sample (-1: nobody), or None where the data do
              not name their clients;   client_names: their M names

    Raises UsageError where the parts do not fit together.
    """

    name: str
    x_train: torch.Tensor
    y_train: torch.Tensor
    x_test: torch.Tensor
    y_test: torch.Tensor
    x_public: torch.Tensor | None
    class_names: tuple[str, ...]
    digest: str
    note: str = ""
    y_public: torch.Tensor | None = None
    client_train: torch.Tensor | None = None
    client_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        import torch

        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            kinds, shapes = (x.dtype, y.dtype), (tuple(x.shape), tuple(y.shape))
            if not (kinds == (torch.float32, torch.int64)):
                raise UsageError(f"x_{part} is {kinds[0]} and y_{part} {kinds[1]}, but they must be float32 and int64.")
            fits = len(x) and x.ndim in (2, 4) and y.shape == x.shape[:1]
            if not fits:
                raise UsageError(
                    f"x_{part} has shape {shapes[0]} and y_{part} {shapes[1]}, but they must be [N, C, H, W] or [N, "
                    "D], and [N], with N at least 1."
                )
            low, high, end = int(y.min()), int(y.max()), self.classes - 1
            demand(
                0 <= low and high <= end,
                f"y_{part} has labels from {low} to {high}, but with {end + 1} class names they must lie in 0..{end}.",
            )
        for part in ("test", "public"):
            x = getattr(self, f"x_{part}")
            shape = self.input_shape if x is None else tuple(x.shape[1:])
            demand(
                shape == self.input_shape,
                f"x_{part} has samples of shape {shape}, but those of x_train have {self.input_shape}.",
            )
        if self.client_train is not None:
            ids, last = self.client_train, len(self.client_names) - 1
            fits = ids.dtype == torch.int64 and ids.shape == self.y_train.shape
            held = torch.bincount(ids[ids >= 0]) if fits else ids[:0]
            demand(
                len(held) == last + 1 > 0 and bool(held.all()),
                f"client_train must be int64 [N] in which each of the clients 0..{last} occurs at least once (-1 "
                "for a sample that belongs to nobody), and each client needs a name.",
            )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image, or (D,) of a feature row."""
        return tuple(self.x_train.shape[1:])

    @property
    def classes(self) -> int:
        return len(self.class_names)

    def __repr__(self) -> str:
        public = "none" if self.x_public is None else len(self.x_public)
        return (
            f"Dataset({self.name!r}, {'x'.join(map(str, self.input_shape))}, {self.classes} classes, "
            f"train {len(self.x_train)}, test {len(self.x_test)}, public {public})"
        )


@dataclass(frozen=True)
class Description:
    """What can be said of a dataset before it is loaded. `digest` is None while its files are not on this machine.
    `public_labelled`: whether the labels of its public samples are known (no method sees them). `n_clients`: how many
    clients the data name, 0 for none."""

    name: str
    input_shape: tuple[int, ...]
    classes: int
    n_train: int
    n_test: int
    n_public: int
    digest: str | None
    public_labelled: bool = True
    n_clients: int = 0


def digest_of(*parts: object) -> str:
    """A short content id: SHA-256 over byte strings, or over the text of anything else, in order."""
    h = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        h.update(f"{len(data)}:".encode())
        h.update(data)
    return h.hexdigest()[:32]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    h = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            h.update(block)
    return h.hexdigest()
