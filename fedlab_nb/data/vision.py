"""Load MNIST, Fashion-MNIST, CIFAR-10/100 and SVHN through torchvision, which downloads them once and
verifies their checksums.

A tenth of the training samples, at most 5,000, is held back as unlabelled public data. These samples
are evenly spaced through the training set, so they are always the same. The files lie in the
platform's cache folder, or in the folder that FEDLAB_NB_DATA names.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fedlab_nb.data import arrays
from fedlab_nb.data.array_types import IndexArray
from fedlab_nb.data.dataset import (
    Dataset,
    DatasetDescription,
    hash_parts_to_short_id,
    shorten_error_text,
)
from fedlab_nb.data.schema import make_image_schema
from fedlab_nb.declared import read_toml
from fedlab_nb.errors import RunError
from fedlab_nb.files import expand_path
from fedlab_nb.value_types import WithBlock

if TYPE_CHECKING:
    from torchvision.datasets import VisionDataset

    from fedlab_nb.tensor_types import Samples

TIMEOUT = 30.0  # seconds without an answer from the server, after which a download is given up


@dataclass(frozen=True)
class TorchvisionSource:
    """A dataset as torchvision describes it.

    torchvision_name: the name of its class
    folder, files: the place of the files that it reads
    shape, classes, n_train, n_test: as published
    root: the part of `folder` that is passed to torchvision
    """

    torchvision_name: str
    folder: str
    files: list[str]
    shape: list[int]
    classes: int
    n_train: int
    n_test: int
    root: str = ""


SOURCES = {
    name: TorchvisionSource(**fields)
    for name, fields in read_toml("data/datasets.toml")["sources"].items()
}
NAMES = tuple(SOURCES)


def load(name: str) -> Dataset:
    """Load the dataset; x is the uint8 images / 255, [N, C, H, W]. Raises RunError if the files are
    missing and cannot be downloaded."""
    import torch

    source = SOURCES[name]
    train = open_or_download_dataset(name, source, "train")
    test = open_or_download_dataset(name, source, "test")
    x, y = read_images_and_labels(train)
    x_test, y_test = read_images_and_labels(test)
    public = choose_public_sample_indices(len(x))
    private = np.delete(np.arange(len(x)), public)
    class_names = tuple(str(c) for c in getattr(train, "classes", range(source.classes)))
    return Dataset(
        name=name,
        x_train=scale_uint8_images_to_0_to_1(x[private]),
        y_train=torch.from_numpy(y[private]),
        x_test=scale_uint8_images_to_0_to_1(x_test),
        y_test=torch.from_numpy(y_test),
        x_public=scale_uint8_images_to_0_to_1(x[public]),
        class_names=class_names,
        digest=hash_dataset_files_if_complete(name)
        or hash_parts_to_short_id(name, x.tobytes(), x_test.tobytes()),
        note=f"{len(public):,} of {len(x):,} training images are held back as unlabelled public "
        "data.",
        y_public=torch.from_numpy(y[public]),
        schema=make_image_schema(x.shape[1:], class_names, 255, "uint8"),
    )


def describe(name: str) -> DatasetDescription:
    """Describe the dataset by its published sizes; the digest is None while files are missing."""
    source = SOURCES[name]
    n_public = len(choose_public_sample_indices(source.n_train))
    return DatasetDescription(
        name=name,
        input_shape=tuple(source.shape),
        classes=source.classes,
        n_train=source.n_train - n_public,
        n_test=source.n_test,
        n_public=n_public,
        digest=hash_dataset_files_if_complete(name),
    )


def find_download_folder() -> Path:
    """FEDLAB_NB_DATA, or `data` in the user's cache folder."""
    folder = os.environ.get("FEDLAB_NB_DATA")
    if folder:
        return expand_path(folder)
    from platformdirs import user_cache_path

    return user_cache_path("fedlab_nb", appauthor=False) / "data"


def hash_dataset_files_if_complete(name: str) -> str | None:
    """Hash the files' content; None if a file is missing."""
    folder = find_download_folder() / SOURCES[name].folder
    paths = [folder / file for file in SOURCES[name].files]
    if not all(path.is_file() for path in paths):
        return None
    return hash_parts_to_short_id(name, *(arrays.compute_sha256_of_file(path) for path in paths))


def choose_public_sample_indices(sample_count: int) -> IndexArray:
    """Choose evenly spaced indices for the public part: 10 % of the samples, at most 5,000."""
    size = min(sample_count // 10, 5000)
    return np.arange(size) * sample_count // max(1, size)


def open_or_download_dataset(
    name: str, source: TorchvisionSource, part: Literal["train", "test"]
) -> VisionDataset:
    """Open torchvision's dataset object for `part`, "train" or "test"; download its files if they are
    missing."""
    root = find_download_folder() / source.root
    options: dict[str, Any] = {"train": part == "train"}
    if name == "svhn":
        options = {"split": part}
    offline = "or offline, use 'digits', 'glyphs' or the path of your own .npz file"
    try:
        from torchvision import datasets

        make = getattr(datasets, source.torchvision_name)
        with redirect_download_progress_to_stderr():
            return make(root, download=False, **options)
    except ImportError as error:  # torchvision; scipy, for SVHN's .mat files
        raise RunError(
            f"Dataset {name!r} cannot be read: {shorten_error_text(error)}; install what is missing, "
            f"{offline}."
        ) from None
    except Exception as error:
        is_missing = isinstance(error, RuntimeError) and "not found" in str(error)
        if not is_missing:
            raise RunError(
                f"The files of {name!r} in {str(root)!r} cannot be read ({shorten_error_text(error)}); "
                f"delete them to download them again, {offline}."
            ) from None
    try:
        root.mkdir(parents=True, exist_ok=True)
        with redirect_download_progress_to_stderr():
            return make(root, download=True, **options)
    except Exception as error:
        raise RunError(
            f"Dataset {name!r} is not complete in {str(root)!r} and could not be downloaded by "
            f"torchvision ({shorten_error_text(error)}); {offline}."
        ) from None


@contextlib.contextmanager
def redirect_download_progress_to_stderr() -> WithBlock:
    """Inside the block, progress is printed on standard error, since standard output is for results,
    and downloads have a time limit."""
    timeout_before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        socket.setdefaulttimeout(timeout_before)


class ImagesAndLabels(NamedTuple):
    """Images uint8 [N, C, H, W], and labels int64 [N]."""

    images: np.ndarray
    labels: np.ndarray


def read_images_and_labels(dataset: VisionDataset) -> ImagesAndLabels:
    """Read the images uint8 [N, C, H, W] and labels int64 [N] of a torchvision dataset, whatever its
    layout."""
    x = np.asarray(dataset.data)
    labels = dataset.labels if hasattr(dataset, "labels") else dataset.targets
    y = np.asarray(labels, dtype=np.int64)
    if x.ndim == 3:  # MNIST: [N, H, W]
        x = x[:, None]
    elif x.shape[1] != 3:  # CIFAR: [N, H, W, C]; SVHN is [N, C, H, W] already
        x = np.moveaxis(x, 3, 1)
    return ImagesAndLabels(x, y)


def scale_uint8_images_to_0_to_1(images: np.ndarray) -> Samples:
    """Convert uint8 images to float32 in [0, 1]."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(images)).float().div_(255)
