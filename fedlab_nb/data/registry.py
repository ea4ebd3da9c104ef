"""The datasets by name, and `load`, which remembers what it has loaded."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from fedlab_nb.data import digits, glyphs, npz, vision
from fedlab_nb.data.dataset import Dataset, Description
from fedlab_nb.declared import declared
from fedlab_nb.errors import choose, demand


@dataclass(frozen=True)
class DatasetInfo:
    """One line of a menu. offline: needs no download."""

    title: str
    help: str
    offline: bool = False


DATASETS = {name: DatasetInfo(**about) for name, about in declared("data/datasets.toml")["menu"].items()}

OWN = {"digits": digits, "glyphs": glyphs}  # the package's own
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
    name, module, arguments = resolve(name_or_path, options)
    if isinstance(name, Path):
        key: tuple = (npz.existing(name).resolve(), *npz.stamp(npz.existing(name)))
    elif name == "glyphs":
        key = (name, *sorted(glyphs.checked(options).items()))
    else:
        key = (name, vision.data_folder())
    with _lock:
        if key not in _loaded:
            _loaded[key] = module.load(*arguments, **options)
            while len(_loaded) > KEPT:
                _loaded.popitem(last=False)
        _loaded.move_to_end(key)
        return _loaded[key]


def describe(name_or_path: str | PathLike, **options: Any) -> Description:
    """Shape, classes, sizes and digest without loading the images (an `.npz` is read and checked), and without torch.

    >>> describe("digits").n_train, describe("digits").input_shape
    (1237, (1, 8, 8))
    """
    _, module, arguments = resolve(name_or_path, options)
    return module.describe(*arguments, **options)


def is_path(text: str) -> bool:
    """Whether a text is a file's path and no data set's name: it ends in .npz or has a folder in it."""
    return text.lower().endswith(".npz") or "/" in text or "\\" in text


def resolve(text: str | PathLike, options: Mapping[str, Any]) -> tuple[str | Path, Any, tuple]:
    """A known name, or a path (`is_path`, or whatever is no plain text); the module whose `load` and `describe` know
    that data set; what they take beside `options`."""
    is_file = is_path(text) if isinstance(text, str) else isinstance(text, PathLike)
    name = Path(text) if is_file else choose("dataset", text, [*DATASETS, "PATH.npz"])
    demand(not options or name == "glyphs", "dataset.options", name=str(name), options=", ".join(options))
    if name in OWN:
        return name, OWN[name], ()
    return name, npz if is_file else vision, (name,)
