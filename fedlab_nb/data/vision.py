"""MNIST, Fashion-MNIST, CIFAR-10/100 and SVHN through torchvision, which downloads them once and verifies checksums.

A fixed part of the training set, evenly spaced through it, is held back as unlabelled public data: 10 %, at most
5,000. The files lie in the platform's cache folder, or where FEDLAB_NB_DATA says; none is downloaded twice.
"""

import contextlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedlab_nb.data import arrays
from fedlab_nb.data.dataset import Dataset, Description, digest_of, one_line
from fedlab_nb.data.schema import image_schema
from fedlab_nb.declared import declared
from fedlab_nb.errors import RunError
from fedlab_nb.files import expand_path

TIMEOUT = 30.0  # seconds without an answer from a server before a download is given up


@dataclass(frozen=True)
class Source:
    """How torchvision knows a dataset: its class, the files that it reads in `folder`, and the published sizes.
    root: the part of `folder` that torchvision is given."""

    torchvision_name: str
    folder: str
    files: list[str]
    shape: list[int]
    classes: int
    n_train: int
    n_test: int
    root: str = ""


SOURCES = {
    name: Source(**about) for name, about in declared("data/datasets.toml")["sources"].items()
}
NAMES = tuple(SOURCES)


def load(name: str) -> Dataset:
    """x uint8 images / 255, [N, C, H, W]. Raises RunError where the files are neither here nor to be had."""
    import torch

    source = SOURCES[name]
    train, test = (opened(name, source, part) for part in ("train", "test"))
    x, y = images_and_labels(train)
    x_test, y_test = images_and_labels(test)
    public = public_indices(len(x))
    private = np.delete(np.arange(len(x)), public)
    names = tuple(str(c) for c in getattr(train, "classes", range(source.classes)))
    return Dataset(
        name, tensor(x[private]), torch.from_numpy(y[private]), tensor(x_test), torch.from_numpy(y_test),
        tensor(x[public]), names, digest(name) or digest_of(name, x.tobytes(), x_test.tobytes()),
        f"{len(public):,} of {len(x):,} training images are held back as unlabelled public data.",
        torch.from_numpy(y[public]),
        schema=image_schema(x.shape[1:], names, 255, "uint8"),
    )  # fmt: skip


def describe(name: str) -> Description:
    """The published sizes; the digest is None while the files are not here."""
    s = SOURCES[name]
    public = len(public_indices(s.n_train))
    return Description(
        name, tuple(s.shape), s.classes, s.n_train - public, s.n_test, public, digest(name)
    )


def data_folder() -> Path:
    """FEDLAB_NB_DATA, or `data` in the user's cache folder."""
    if named := os.environ.get("FEDLAB_NB_DATA"):
        return expand_path(named)
    from platformdirs import user_cache_path

    return user_cache_path("fedlab_nb", appauthor=False) / "data"


def digest(name: str) -> str | None:
    """Id of the files' content, or None if one of them is missing."""
    paths = [data_folder() / SOURCES[name].folder / file for file in SOURCES[name].files]
    if not all(path.is_file() for path in paths):
        return None
    return digest_of(name, *(arrays.digest(path) for path in paths))


def public_indices(n: int) -> np.ndarray:
    """Evenly spaced indices of the public part: 10 % of n, at most 5,000."""
    size = min(n // 10, 5000)
    return np.arange(size) * n // max(1, size)


def opened(name: str, source: Source, part: str) -> Any:
    """torchvision's dataset object for `part`, after a download only if the files are not there."""
    root = data_folder() / source.root
    which = {"split": part} if name == "svhn" else {"train": part == "train"}
    offline = "or offline, use 'digits', 'glyphs' or the path of your own .npz file"
    try:
        from torchvision import datasets

        make = getattr(datasets, source.torchvision_name)
        with quiet():
            return make(root, download=False, **which)
    except ImportError as error:  # torchvision; scipy, for SVHN's .mat files
        why = f"cannot be read: {one_line(error)}; install what is missing"
        raise RunError(f"Dataset {name!r} {why}, {offline}.") from None
    except Exception as error:
        if not isinstance(error, RuntimeError) or "not found" not in str(error):
            why = f"cannot be read ({one_line(error)}); delete them to download them again"
            raise RunError(f"The files of {name!r} in {str(root)!r} {why}, {offline}.") from None
    try:
        root.mkdir(parents=True, exist_ok=True)
        with quiet():
            return make(root, download=True, **which)
    except Exception as error:
        why = f"could not be downloaded by torchvision ({one_line(error)})"
        raise RunError(
            f"Dataset {name!r} is not complete in {str(root)!r} and {why}; {offline}."
        ) from None


@contextlib.contextmanager
def quiet():
    """Progress goes to standard error, since standard output belongs to results; and no download waits for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        socket.setdefaulttimeout(before)


def images_and_labels(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    """uint8 [N, C, H, W] and int64 [N] of a torchvision dataset, whichever layout it keeps."""
    x = np.asarray(dataset.data)
    y = np.asarray(
        dataset.labels if hasattr(dataset, "labels") else dataset.targets, dtype=np.int64
    )
    if x.ndim == 3:  # MNIST: [N, H, W]
        x = x[:, None]
    elif x.shape[1] != 3:  # CIFAR: [N, H, W, C]; SVHN is [N, C, H, W] already
        x = np.moveaxis(x, 3, 1)
    return x, y


def tensor(x: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(x)).float().div_(255)
