"""What every dataset looks like once it is loaded: train and test tensors, an unlabelled part,
class names, an id.

It knows nothing of clients; `federation.py` shares the training samples out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.errors import UsageError, demand

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame

    from fedlab_nb.data.schema import InputSchema

Names = tuple[str, ...]
REQUIRED = ("x_train", "y_train", "x_test", "y_test")  # the arrays that a data set is made of
OPTIONAL = ("x_public", "y_public", "client_train")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images (or recordings, or feature rows) on the CPU, with labels 0..C-1.

    x_train:  float32 [N, C, H, W] in [0, 1], or standardised: recordings of C channels and T steps
              [N, C, T], or features [N, D];   y_train: int64 [N]
    x_test, y_test:  the same for the test set
    x_public: float32 like x_train, without labels, or None
    digest:   equal for equal content, so that stored results find their data again
    y_public: labels of x_public where they are known: for choosing settings, never for a method
    note:     what was done to the data on the way in, in a sentence for the reader
    client_train: int64 [N], the client 0..M-1 that holds each training sample (-1: nobody), or None
              where the data do not name their clients;   client_names: their M names
    font_train: int64 [N], the font of each training sample (-1: not known), or None where samples
    have none
    client_test: int64 [T], the client whose own each test sample is, or None: not known, or
    nobody's
    first_rows: of a table the first rows as they stand in the file, to look at, or None
    about:    what a file of arrays says of itself in its text `about`, or ""
    schema:   how raw samples become such tensors (`data/schema.py`), or None where that is not
    known

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
    client_test: torch.Tensor | None = None
    font_train: torch.Tensor | None = None
    schema: InputSchema | None = None
    first_rows: DataFrame | None = None
    about: str = ""

    def __post_init__(self) -> None:
        import torch

        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            kinds = x.dtype, y.dtype
            if kinds != (torch.float32, torch.int64):
                raise UsageError(
                    f"x_{part} is {kinds[0]} and y_{part} {kinds[1]}, but they must be float32 and "
                    f"int64."
                )
            if not (len(x) and x.ndim in (2, 3, 4) and y.shape == x.shape[:1]):
                shapes = f"x_{part} has shape {tuple(x.shape)} and y_{part} {tuple(y.shape)}"
                raise UsageError(
                    f"{shapes}, but they must be [N, C, H, W], [N, C, T] or [N, D], and [N], with "
                    f"N at least 1."
                )
            low, high, names = int(y.min()), int(y.max()), f"0..{self.classes - 1}, the class names"
            fits = 0 <= low and high < self.classes
            demand(fits, f"y_{part} has labels from {low} to {high}, but they must lie in {names}.")
        for part in ("test", "public"):
            x = getattr(self, f"x_{part}")
            shape = self.input_shape if x is None else tuple(x.shape[1:])
            same = f"but those of x_train have {self.input_shape}"
            demand(shape == self.input_shape, f"x_{part} has samples of shape {shape}, {same}.")
        if self.client_train is not None:
            ids, clients = self.client_train, len(self.client_names)
            fits = ids.dtype == torch.int64 and ids.shape == self.y_train.shape
            held = torch.bincount(ids[ids >= 0]) if fits else ids[:0]
            every = f"each of the {clients} named clients must occur (-1: nobody's sample)"
            demand(
                len(held) == clients > 0 and bool(held.all()),
                f"client_train must be int64 [N], and {every}.",
            )
        if self.client_test is not None:
            there = torch.equal(self.client_test.unique(), torch.arange(len(self.client_names)))
            fits = there and self.client_test.shape == self.y_test.shape
            demand(
                fits,
                f"client_test must be int64 [T], with a sample or more of each of "
                f"0..{len(self.client_names) - 1}.",
            )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image, (C, T) of a recording, or (D,) of a feature row."""
        return tuple(self.x_train.shape[1:])

    @property
    def classes(self) -> int:
        return len(self.class_names)

    def description(self) -> Description:
        sizes = (
            len(self.x_train),
            len(self.x_test),
            0 if self.x_public is None else len(self.x_public),
        )
        labelled, clients = self.y_public is not None, len(self.client_names)
        fonts = (
            0 if self.font_train is None else len(self.font_train[self.font_train >= 0].unique())
        )
        return Description(
            self.name, self.input_shape, self.classes, *sizes, self.digest, labelled, clients, fonts
        )

    def __repr__(self) -> str:
        """One line; of a table the whole card (`data/card.py`)."""
        if self.first_rows is not None:
            from fedlab_nb.data.card import card_text

            return card_text(self)
        public = "none" if self.x_public is None else len(self.x_public)
        return (
            f"Dataset({self.name!r}, {'x'.join(map(str, self.input_shape))}, {self.classes} "
            f"classes, "
            f"train {len(self.x_train)}, test {len(self.x_test)}, public {public})"
        )

    def _repr_html_(self) -> str:
        from fedlab_nb.data.card import card_html

        return card_html(self)


@dataclass(frozen=True)
class Description:
    """What can be said of a dataset before it is loaded. `digest` is None while its files are not
    on this machine. `public_labelled`: whether the labels of its public samples are known (no
    method sees them). `n_clients`: how many clients the data name, 0 for none; `n_fonts`: how many
    fonts its training samples have, likewise."""

    name: str
    input_shape: tuple[int, ...]
    classes: int
    n_train: int
    n_test: int
    n_public: int
    digest: str | None
    public_labelled: bool = True
    n_clients: int = 0
    n_fonts: int = 0


def of_arrays(
    name: str,
    digest: str,
    arrays: Mapping[str, np.ndarray],
    classes: Names,
    note: str,
    clients: Names,
    schema: InputSchema | None = None,
) -> Dataset:
    """The Dataset of arrays by name, x float32 [N, C, H, W], [N, C, T] or [N, D], y and clients
    int64 [N]; of the names of the C classes, of a note on what was done to the data, of the names
    of the M clients, or none, and of the schema."""
    import torch

    tensors: dict[str, Any] = {key: torch.from_numpy(value) for key, value in arrays.items()}
    x, y, x_test, y_test = (tensors[key] for key in REQUIRED)
    public, y_public, owner = (tensors.get(key) for key in OPTIONAL)
    return Dataset(
        name, x, y, x_test, y_test, public, classes, digest, note, y_public, owner, clients,
        client_test=tensors.get("client_test"), schema=schema,
    )  # fmt: skip


def digest_of(*parts: object) -> str:
    """A short content id: SHA-256 over byte strings, or over the text of anything else, in
    order."""
    h = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        h.update(f"{len(data)}:".encode())
        h.update(data)
    return h.hexdigest()[:32]


def one_line(error: BaseException) -> str:
    """The first part of an error's text, so that the message stays one sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
