"""The datasets by name, and `load`, which remembers what it has loaded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from fedlab_nb.data import digits, glyphs, npz, vision
from fedlab_nb.data.dataset import Dataset, Description
from fedlab_nb.errors import UsageError, choose


@dataclass(frozen=True)
class DatasetInfo:
    """One line of a menu. offline: needs no download."""

    name: str
    title: str
    help: str
    offline: bool
    input_shape: tuple[int, ...]
    classes: int


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo("digits", "Digits", "scikit-learn's 1,797 handwritten digits, bundled", True, (1, 8, 8), 10),
        DatasetInfo(
            "glyphs", "Glyphs", "ten letters drawn on the fly in many fonts, poses and colours", True, (3, 32, 32), 10
        ),
        DatasetInfo("mnist", "MNIST", "70,000 handwritten digits, downloaded once", False, (1, 28, 28), 10),
        DatasetInfo(
            "fashion-mnist", "Fashion-MNIST", "70,000 pictures of clothes, downloaded once", False, (1, 28, 28), 10
        ),
        DatasetInfo("cifar10", "CIFAR-10", "60,000 small photographs, downloaded once", False, (3, 32, 32), 10),
        DatasetInfo(
            "cifar100", "CIFAR-100", "60,000 small photographs of 100 classes, downloaded once", False, (3, 32, 32), 100
        ),
        DatasetInfo(
            "svhn",
            "SVHN",
            "99,289 house-number digits from street photographs, downloaded once",
            False,
            (3, 32, 32),
            10,
        ),
    )
}

KEPT = 4  # datasets remembered; a large one takes gigabytes
_loaded: OrderedDict[tuple, Dataset] = OrderedDict()
_lock = threading.RLock()


def load(name_or_path: str | PathLike, **options: Any) -> Dataset:
    """The dataset of that name, or of a user's `.npz` file. Loaded once a process (the last few are remembered).

    Only `glyphs` takes options (n_train, n_test, n_public, seed, size, channels, tint). Raises UsageError for an
    unknown name, a wrong option or an unusable file, RunError where a download failed.

    >>> load("digits")
    Dataset('digits', 1x8x8, 10 classes, train 1237, test 360, public 200)
    >>> load("glyphs", n_train=100, n_test=20, n_public=0, size=28, channels=1)
    Dataset('glyphs', 1x28x28, 10 classes, train 100, test 20, public none)
    """
    name = resolve(name_or_path, options)
    if isinstance(name, Path):
        key = (npz.existing(name).resolve(), *npz.stamp(npz.existing(name)))
    elif name == "glyphs":
        key = (name, *sorted(glyphs.checked(options).items()))
    elif name == "digits":
        key = (name,)
    else:
        key = (name, vision.data_folder())
    with _lock:
        if key not in _loaded:
            if isinstance(name, Path):
                _loaded[key] = npz.load(name)
            elif name == "glyphs":
                _loaded[key] = glyphs.load(**options)
            else:
                _loaded[key] = digits.load() if name == "digits" else vision.load(name)
            while len(_loaded) > KEPT:
                _loaded.popitem(last=False)
        _loaded.move_to_end(key)
        return _loaded[key]


def describe(name_or_path: str | PathLike, **options: Any) -> Description:
    """Shape, classes, sizes and digest without loading the images (an `.npz` is read and checked), and without torch.

    >>> describe("digits").n_train, describe("digits").input_shape
    (1237, (1, 8, 8))
    """
    name = resolve(name_or_path, options)
    if isinstance(name, Path):
        return npz.describe(name)
    if name == "glyphs":
        return glyphs.describe(**options)
    return digits.describe() if name == "digits" else vision.describe(name)


def resolve(name_or_path: str | PathLike, options: dict[str, Any]) -> str | Path:
    """A known name, or a path: whatever is no plain text, ends in .npz or has a folder in it."""
    text = name_or_path
    if isinstance(text, PathLike) or (
        isinstance(text, str) and (text.lower().endswith(".npz") or "/" in text or "\\" in text)
    ):
        name: str | Path = Path(text)
    else:
        name = choose("dataset", text, [*DATASETS, "PATH.npz"])
    if options and name != "glyphs":
        raise UsageError(
            f"Dataset {str(name)!r} takes no options, but {', '.join(options)} was given; only 'glyphs' has some."
        )
    return name
