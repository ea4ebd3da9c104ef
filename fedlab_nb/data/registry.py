"""The datasets by name, and `load`, which remembers what it has loaded; `add_dataset` gives a
person's own a name."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from fedlab_nb.data import arrays, digits, glyphs, natural, vision
from fedlab_nb.data.arrays import content_digest, from_arrays, from_table
from fedlab_nb.data.dataset import Dataset, Description
from fedlab_nb.data.files import ENDINGS, ending_of, is_table, join_options, split_options
from fedlab_nb.declared import declared
from fedlab_nb.errors import UsageError, choose, demand
from fedlab_nb.torch_switches import usual_switches


@dataclass(frozen=True)
class DatasetInfo:
    """One line of a menu. offline: needs no download;   images: has images, nothing else;   card:
    origin and licence, what a sample is, how it was split, what it is not for."""

    title: str
    help: str
    offline: bool = False
    images: bool = True
    card: str = ""


DATASETS = {
    name: DatasetInfo(**about) for name, about in declared("data/datasets.toml")["menu"].items()
}
HOMES: dict[str, Any] = {
    name: module for module in (digits, glyphs, natural, vision) for name in module.NAMES
}
ALLOWED = (
    f"give a name, the path of {ENDINGS}, a DataFrame, a Dataset, a Federation, or a dict of "
    f"arrays "
    "(x_train, y_train, x_test, y_test, or x and y)"
)
# Endings that people try and that are not read: such a text is a path, and no name with a slip in it.
OTHER_ENDINGS = (
    *".xls .ods .mat .json .jsonl .h5 .hdf5 .feather .arrow .arff .sav .dta .sas7bdat .xpt .pkl".split(),
    *".pickle .pt .pth .rds .rda .dat .data .zip .tar .7z .xml .html .db .sqlite .nii .dcm".split(),
)
MOST = 4  # datasets that are remembered; a large one takes gigabytes
_loaded: dict[tuple, Dataset] = {}  # the one that was asked for last is the last
_turns: dict[tuple, threading.Lock] = {}  # one loads a data set, who else wants it waits
_lock = threading.Lock()  # of both
_added: dict[str, Dataset | Path] = {}  # by the name that they were given


@usual_switches()
def load(source: Any, **options: Any) -> Dataset:
    """Load the dataset of that name, or data of your own: the path of a table, of arrays or of a
    folder of pictures, a DataFrame, or a dict of arrays. The last few data sets stay in memory.

    `glyphs` takes the options n_train, n_test, n_public, seed, size, channels; a short name such
    as "glyphs:16g" gives the size, and `g` means grey. A table takes label, client, split, group
    and more, as behind the ? of its path (see the guide). Raises UsageError for an unknown name, a
    wrong option or an unusable file, RunError where a download failed.

    >>> load("digits")
    Dataset('digits', 1x8x8, 10 classes, train 1237, test 360, public 200)
    >>> load("glyphs", n_train=100, n_test=20, n_public=0, size=28, channels=1)
    Dataset('glyphs', 1x28x28, 10 classes, train 100, test 20, public none)
    """
    if isinstance(source, Dataset) and not options:
        return source
    if isinstance(source, Mapping):
        return from_arrays(source, **options)
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        return from_table(source, options)
    if isinstance(source, str | PathLike) and options and is_file(source):
        source = with_options(source, options)
        options = {}
    name, module = resolve(source, options)
    if isinstance(name, Dataset):
        return name
    key = key_of(name, options)
    with _lock:
        turn = _turns.setdefault(key, threading.Lock())
    with turn:
        dataset = _loaded.get(key) or module.load(name, **options)
        with _lock:
            _loaded.pop(key, None)
            _loaded[key] = dataset
            while len(_loaded) > MOST:
                del _loaded[next(iter(_loaded))]
    return dataset


def is_file(source: str | PathLike) -> bool:
    """Whether this is the path of a file or a folder, and no data set of the package."""
    return not isinstance(source, str) or source not in HOMES and is_path(source)


def with_options(source: str | PathLike, options: Mapping[str, Any]) -> Path:
    """The path with options behind a ?, those that it has already among them. Raises UsageError for
    unknown ones."""
    name, before = split_options(source)
    _, known = arrays.locate(join_options(name, check_texts(before | dict(options))))
    return Path(join_options(name, known))


def check_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """The options as texts: a list is joined by commas, None is nothing."""
    texts = {}
    for name, value in options.items():
        if isinstance(value, list | tuple | set):
            value = ",".join(map(str, value))
        texts[name] = "" if value is None else str(value)
    return texts


def key_of(name: str | Path, options: Mapping[str, Any]) -> tuple:
    """What a loaded dataset is remembered by."""
    if isinstance(name, Path):
        return arrays.stamp(name)
    if HOMES[name] is glyphs:
        return (name, *sorted(glyphs.checked(options, name).items()))
    return (name, vision.data_folder())


def loaded(source: Any) -> Dataset:
    """The dataset that is given in any way: as itself, as arrays, by its name or path."""
    return source if isinstance(source, Dataset) else load(source)


def add_dataset(name: str, source: Any, *, title: str = "", help: str = "your own data") -> str:
    """Give your own data a name. `run`, `study`, panels and `load` know this name until this
    process ends.

    source: a Dataset, arrays (a mapping of x_train, y_train, x_test, y_test and, where there are
    any, x_public, y_public, client_train), or the path of a file. If you use a name again, it means
    the new data.
    title, help: as a menu shows it.   Returns the name. Raises UsageError for a name or data that
    cannot be used.

    Do not change the tensors of a Dataset after this call. Arrays are copied. Results are stored by
    the content of the data, so they are found again under any name.
    """
    fits = (
        isinstance(name, str)
        and re.fullmatch(r"[\w.-]+", name)
        and not is_path(name)
        and name not in HOMES
    )
    letters = "use letters, digits, '-', '_' and '.', no path, and not the name of a built-in set"
    demand(fits, f"{name!r} cannot be a data set's name; {letters}.")
    if isinstance(source, str | PathLike):
        path, _ = resolve(source, {})
        demand(isinstance(path, Path), f"The name {source!r} is no data of your own; {ALLOWED}.")
        load(path)  # says now what is wrong with it
        _added[name] = arrays.stamp(path)[0]
    else:
        dataset = loaded(source)
        _added[name] = replace(dataset, digest=content_digest(dataset), name=name)
    DATASETS[name] = DatasetInfo(title or name, help, offline=True)
    return name


def name_of(dataset: Dataset) -> str:
    """The name or path by which `load` gives this very dataset; one that it would not give is
    added, under a name made from its content."""
    for name, own in _added.items():
        if own is dataset:
            return name
    for key, own in [*_loaded.items()]:
        if own is dataset and key == key_of(key[0], {}):
            return str(key[0])
    stem = re.sub(r"[^\w.-]+", "-", dataset.name.removesuffix(".npz"))[:40]
    name = f"{stem or 'own'}-{content_digest(dataset)[:8]}"
    return name if name in _added else add_dataset(name, dataset)


def names_of_clients(called: str, clients: int) -> tuple[str, ...]:
    """The names of the clients of a data set that is in memory, has so many clients of its own and
    is called so (a
    file: without its folder); none if there is no such data set, or if its clients are only
    numbered."""
    files = {key[0]: own for key, own in [*_loaded.items()]}
    added = {
        name: own if isinstance(own, Dataset) else files.get(own) for name, own in _added.items()
    }
    known = {dataset.name: dataset for dataset in files.values()} | added
    dataset = known.get(called.partition("?")[0])
    names = dataset.client_names if dataset else ()
    numbered = all(name.isdecimal() for name in names)
    return () if numbered or len(names) != clients else names


def in_memory(name: str) -> Dataset | None:
    """The dataset of that name if it is in this process alone."""
    own = _added.get(name)
    return own if isinstance(own, Dataset) else None


def describe(name_or_path: str | PathLike, **options: Any) -> Description:
    """Shape, classes, sizes and digest; of a data set of the package without loading it, and
    without torch.

    >>> describe("digits").n_train, describe("digits").input_shape
    (1237, (1, 8, 8))
    """
    name, module = resolve(name_or_path, options)
    if module is arrays:
        return load(name_or_path).description()
    return module.describe(name, **options)


def is_name(text: str) -> bool:
    """Whether this names a data set of the package, or one that was added."""
    return text in DATASETS or text in HOMES


def is_path(text: str) -> bool:
    """Whether a text is the path of a file or a folder, and no data set's name: it has an ending
    that files have (options may follow), has a folder in it, or is there and is no data set's
    name."""
    name = text.partition("?")[0]
    if "/" in text or "\\" in text or is_table(text):
        return True
    if ending_of(name) in (".npz", ".npy", *OTHER_ENDINGS):
        return True
    return not is_name(name) and bool(name) and Path(name).exists() and not is_glyphs(name)


def is_glyphs(name: str) -> bool:
    """Whether a name is that of a set of letters, such as glyphs:16g."""
    return name.partition(":")[0] == "glyphs"


def title_of(name: str) -> str:
    """What menus call the data set of that name.

    >>> title_of("glyphs:16g"), title_of("glyphs:28"), title_of("heart:hungary")
    ('Glyphs 16x16', 'Glyphs 28x28, colour', 'Heart disease, tested in Hungary')
    >>> title_of("watch:3")
    'Exercises, tested on person 3'
    """
    if name in DATASETS:
        return DATASETS[name].title
    if name in natural.LEFT_OUT:
        kind = name.partition(":")[0]
        return f"{DATASETS[kind].title}, tested {'in' if kind == 'heart' else 'on'} {natural.LEFT_OUT[name]}"
    look = glyphs.look_of(name)
    return f"Glyphs {look['size']}x{look['size']}{', colour' if look['channels'] == 3 else ''}"


def resolve(text: str | PathLike, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """The name of a data set of the package, or a path (`is_path`, or whatever is no plain text),
    or the Dataset that was added; and the module whose `load` and `describe` know it."""
    if not isinstance(text, str | PathLike):
        raise UsageError(f"A {type(text).__name__} is not a data set; {ALLOWED}.")
    name: Any = Path(text) if not isinstance(text, str) or is_path(text) else text
    if isinstance(name, str) and not is_name(name) and re.search(r"\.\w{1,8}(\?|$)", name):
        raise UsageError(f"There is no file {name!r}; give the path of {ENDINGS}.")
    if isinstance(name, str) and name not in HOMES:
        choose(
            "dataset",
            name,
            [*DATASETS, *(own for own in HOMES if own not in DATASETS), "PATH.npz", "PATH.csv"],
        )
    home = HOMES.get(name, arrays)
    if options and home is not glyphs:
        odd = ", ".join(options)
        raise UsageError(
            f"Dataset {str(name)!r} takes no options, but {odd} was given; only 'glyphs' has some, "
            f"and files of your own."
        )
    return _added.get(name, name), home
