"""The class of every loaded dataset: training and test tensors, an unlabelled part, class names and
an id.

How its training samples are dealt out to clients is in `federation.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import SampleShape

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame

    from fedlab_nb.data.schema import InputSchema
    from fedlab_nb.tensor_types import ClientIndexPerSample, Labels, Samples

REQUIRED = ("x_train", "y_train", "x_test", "y_test")  # the arrays that a data set is made of
OPTIONAL = ("x_public", "y_public", "client_train")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images (or recordings, or feature rows) on the CPU, with labels 0..C-1.

    x_train: float32 [N, C, H, W] in [0, 1], or standardised: recordings of C channels and T steps
        [N, C, T], or features [N, D]
    y_train: int64 [N]
    x_test, y_test: the same for the test set
    x_public: float32 like x_train, without labels, or None
    digest: equal for equal content, so that stored results find their data again
    y_public: labels of x_public where they are known: for choosing settings, never for a method
    note: what was done to the data when they were loaded, in a sentence for the reader
    client_train: int64 [N], the client 0..M-1 that holds each training sample (-1: nobody), or None
        if the data do not name their clients
    client_names: the names of the M clients
    font_train: int64 [N], the font of each training sample (-1: not known), or None if samples have
        none
    client_test: int64 [T], the client that each test sample belongs to, or None if it is not known
        or belongs to no client
    first_rows: the first rows of a table as they stand in the file, to be shown, or None
    about: the description in the array `about` of a file, or ""
    schema: how raw samples become such tensors (`data/schema.py`), or None if that is not known

    Raises UsageError if the parts do not fit together.
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
        self._check_samples_and_labels("train", self.x_train, self.y_train)
        self._check_samples_and_labels("test", self.x_test, self.y_test)
        self._check_sample_shape("test", self.x_test)
        if self.x_public is not None:
            self._check_sample_shape("public", self.x_public)
        if self.client_train is not None:
            self._check_client_index_per_training_sample(self.client_train)
        if self.client_test is not None:
            self._check_client_index_per_test_sample(self.client_test)

    def _check_samples_and_labels(
        self, part: Literal["train", "test", "public"], samples: Samples, labels: Labels
    ) -> None:
        import torch

        if samples.dtype != torch.float32 or labels.dtype != torch.int64:
            raise UsageError(
                f"x_{part} is {samples.dtype} and y_{part} {labels.dtype}, but they must be float32 and int64."
            )
        if len(samples) == 0 or samples.ndim not in (2, 3, 4) or labels.shape != samples.shape[:1]:
            raise UsageError(
                f"x_{part} has shape {tuple(samples.shape)} and y_{part} {tuple(labels.shape)}, but they must "
                "be [N, C, H, W], [N, C, T] or [N, D], and [N], with N at least 1."
            )
        lowest = int(labels.min())
        highest = int(labels.max())
        if lowest < 0 or highest >= self.classes:
            raise UsageError(
                f"y_{part} has labels from {lowest} to {highest}, but they must lie in "
                f"0..{self.classes - 1}, the class names."
            )

    def _check_sample_shape(
        self, part: Literal["train", "test", "public"], samples: Samples
    ) -> None:
        shape = tuple(samples.shape[1:])
        if shape != self.input_shape:
            raise UsageError(
                f"x_{part} has samples of shape {shape}, but those of x_train have "
                f"{self.input_shape}."
            )

    def _check_client_index_per_training_sample(
        self, client_or_minus_one: ClientIndexPerSample
    ) -> None:
        import torch

        count = len(self.client_names)
        is_valid = (
            client_or_minus_one.dtype == torch.int64
            and client_or_minus_one.shape == self.y_train.shape
        )
        if is_valid:
            sizes = torch.bincount(client_or_minus_one[client_or_minus_one >= 0])
            is_valid = len(sizes) == count > 0 and bool(sizes.all())
        if not is_valid:
            raise UsageError(
                f"client_train must be int64 [N], and each of the {count} named clients must occur "
                "(-1: nobody's sample)."
            )

    def _check_client_index_per_test_sample(self, client_indices: ClientIndexPerSample) -> None:
        import torch

        count = len(self.client_names)
        has_all = torch.equal(client_indices.unique(), torch.arange(count))
        if not has_all or client_indices.shape != self.y_test.shape:
            raise UsageError(
                f"client_test must be int64 [T], with a sample or more of each of 0..{count - 1}."
            )

    @property
    def input_shape(self) -> SampleShape:
        """(C, H, W) of an image, (C, T) of a recording, or (D,) of a feature row."""
        return tuple(self.x_train.shape[1:])

    @property
    def classes(self) -> int:
        return len(self.class_names)

    def describe(self) -> DatasetDescription:
        n_fonts = 0
        if self.font_train is not None:
            n_fonts = len(self.font_train[self.font_train >= 0].unique())
        return DatasetDescription(
            name=self.name,
            input_shape=self.input_shape,
            classes=self.classes,
            n_train=len(self.x_train),
            n_test=len(self.x_test),
            n_public=0 if self.x_public is None else len(self.x_public),
            digest=self.digest,
            public_labelled=self.y_public is not None,
            n_clients=len(self.client_names),
            n_fonts=n_fonts,
        )

    def __repr__(self) -> str:
        """One line, or the whole card of a table (`data/card.py`)."""
        if self.first_rows is not None:
            from fedlab_nb.data.card import format_data_card_as_text

            return format_data_card_as_text(self)
        shape = "x".join(map(str, self.input_shape))
        public = "none" if self.x_public is None else len(self.x_public)
        return (
            f"Dataset({self.name!r}, {shape}, {self.classes} classes, train {len(self.x_train)}, "
            f"test {len(self.x_test)}, public {public})"
        )

    def _repr_html_(self) -> str:
        from fedlab_nb.data.card import format_data_card_as_html

        return format_data_card_as_html(self)


@dataclass(frozen=True)
class DatasetDescription:
    """What is known of a dataset before it is loaded.

    digest: as in `Dataset`; None while the files are not on this machine
    public_labelled: whether the labels of its public samples are known (no method sees them)
    n_clients: the number of clients that the data name; 0 for none
    n_fonts: the number of fonts of its training samples; 0 for none
    """

    name: str
    input_shape: SampleShape
    classes: int
    n_train: int
    n_test: int
    n_public: int
    digest: str | None
    public_labelled: bool = True
    n_clients: int = 0
    n_fonts: int = 0


def make_dataset_from_checked_arrays(
    dataset_name: str,
    content_digest: str,
    arrays_by_name: Mapping[str, np.ndarray],
    class_names: tuple[str, ...],
    dataset_note: str,
    client_names: tuple[str, ...],
    schema: InputSchema | None = None,
) -> Dataset:
    """Make a Dataset of NumPy arrays that are checked and scaled already.

    arrays_by_name: the arrays of REQUIRED, and any of OPTIONAL and `client_test`; x is float32
        [N, C, H, W], [N, C, T] or [N, D], y and clients are int64 [N]
    class_names: the names of the C classes
    client_names: the names of the M clients, or ()
    dataset_note, schema: as in `Dataset`
    """
    import torch

    fields: dict[str, Any] = {"x_public": None}
    for key in (*REQUIRED, *OPTIONAL, "client_test"):
        if key in arrays_by_name:
            fields[key] = torch.from_numpy(arrays_by_name[key])
    return Dataset(
        name=dataset_name,
        digest=content_digest,
        class_names=class_names,
        note=dataset_note,
        client_names=client_names,
        schema=schema,
        **fields,
    )


def hash_parts_to_short_id(*parts: object) -> str:
    """Make a short content id: SHA-256 over the parts in order, byte strings as they are and all others
    as text."""
    content = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        content.update(f"{len(data)}:".encode())
        content.update(data)
    return content.hexdigest()[:32]


def shorten_error_text(error: BaseException) -> str:
    """Shorten an error's text to one line of at most 200 characters, for use within a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
