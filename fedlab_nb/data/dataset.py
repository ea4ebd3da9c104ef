"""What every dataset looks like once it is loaded: train and test tensors, an unlabelled part, class names, an id.

It knows nothing of clients; `federation.py` shares the training samples out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedlab_nb.errors import UsageError

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

    def __post_init__(self) -> None:
        import torch

        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            if x.dtype != torch.float32 or y.dtype != torch.int64:
                raise UsageError(f"x_{part} is {x.dtype} and y_{part} {y.dtype}, but they must be float32 and int64.")
            if len(x) == 0 or x.ndim not in (2, 4) or y.shape != x.shape[:1]:
                raise UsageError(
                    f"x_{part} has shape {tuple(x.shape)} and y_{part} {tuple(y.shape)}, but they must be "
                    "[N, C, H, W] or [N, D], and [N], with N at least 1."
                )
            if y.min() < 0 or y.max() >= self.classes:
                raise UsageError(
                    f"y_{part} has labels from {int(y.min())} to {int(y.max())}, but with {self.classes} class names "
                    f"they must lie in 0..{self.classes - 1}."
                )
        for part in ("test", "public"):
            x = getattr(self, f"x_{part}")
            if x is not None and x.shape[1:] != self.x_train.shape[1:]:
                raise UsageError(
                    f"x_{part} has samples of shape {tuple(x.shape[1:])}, but those of x_train have {self.input_shape}."
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
    """What can be said of a dataset before it is loaded. `digest` is None while its files are not on this machine."""

    name: str
    input_shape: tuple[int, ...]
    classes: int
    n_train: int
    n_test: int
    n_public: int
    digest: str | None


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
