"""Load datasets by name with `load`, which caches the last few, and name your own data with
`add_dataset`."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from fedlab_nb.data import arrays, digits, glyphs, natural, vision
from fedlab_nb.data.arrays import (
    hash_dataset_content,
    make_dataset_from_arrays,
    make_dataset_from_data_frame,
)
from fedlab_nb.data.dataset import Dataset, DatasetDescription
from fedlab_nb.data.files import (
    ENDINGS,
    get_lowercase_file_ending,
    is_path_of_table_file,
    join_path_and_options,
    split_path_and_options,
)
from fedlab_nb.data.input_types import DatasetOptions, DatasetOptionValue, DatasetSource
from fedlab_nb.declared import read_toml
from fedlab_nb.errors import UsageError, check_allowed_name
from fedlab_nb.torch_switches import use_default_torch_switches


@dataclass(frozen=True)
class DatasetInfo:
    """One line of a menu.

    offline: needs no download
    images: has images, nothing else
    card: origin and licence, what a sample is, how it was split, what it is not for
    """

    title: str
    help: str
    offline: bool = False
    images: bool = True
    card: str = ""


DATASETS = {
    name: DatasetInfo(**fields) for name, fields in read_toml("data/datasets.toml")["menu"].items()
}
# {data set of the package: its module, which has `load(name)` and `describe(name)`}
HOMES: dict[str, ModuleType] = {
    **dict.fromkeys(digits.NAMES, digits),
    **dict.fromkeys(glyphs.NAMES, glyphs),
    **dict.fromkeys(natural.NAMES, natural),
    **dict.fromkeys(vision.NAMES, vision),
}
ALLOWED = (
    f"give a name, the path of {ENDINGS}, a DataFrame, a Dataset, or a dict of "
    "arrays (x_train, y_train, x_test, y_test, or x and y)"
)
# Endings of files that cannot be read. A text with one of them is a path too, not a misspelt name.
OTHER_ENDINGS = (
    *".xls .ods .mat .json .jsonl .h5 .hdf5 .feather .arrow .arff .sav .dta .sas7bdat .xpt .pkl".split(),
    *".pickle .pt .pth .rds .rda .dat .data .zip .tar .7z .xml .html .db .sqlite .nii .dcm".split(),
)
CACHE_SIZE = 4  # datasets that are cached; a large one takes gigabytes
# The name of a data set and its options, or the stamp of a file.
CacheKey = tuple[Any, ...]
_cache: dict[CacheKey, Dataset] = {}  # in order of use: the last one was used last
_load_locks: dict[CacheKey, threading.Lock] = {}  # one thread loads a data set, the others wait
_lock = threading.Lock()  # protects the two dicts above
_added: dict[str, Dataset | Path] = {}  # by the name that `add_dataset` gave it


@use_default_torch_switches()
def load(source: DatasetSource, **options: DatasetOptionValue) -> Dataset:
    """Load the dataset of that name, or data of your own: the path of a table, of arrays or of a
    folder of pictures, a DataFrame, or a dict of arrays. The last few data sets stay in memory.

    `glyphs` takes the options n_train, n_test, n_public, seed, size, channels; a short name such
    as "glyphs:16g" gives the size, and `g` means grey. A table takes label, client, split, group
    and more, as behind the ? of its path (see the guide). Raises UsageError for an unknown name, a
    wrong option or an unusable file, RunError if a download failed.

    >>> load("digits")
    Dataset('digits', 1x8x8, 10 classes, train 1237, test 360, public 200)
    >>> load("glyphs", n_train=100, n_test=20, n_public=0, size=28, channels=1)
    Dataset('glyphs', 1x28x28, 10 classes, train 100, test 20, public none)
    """
    if isinstance(source, Dataset) and not options:
        return source
    if isinstance(source, Mapping):
        return make_dataset_from_arrays(source, **options)
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        return make_dataset_from_data_frame(source, options)
    if isinstance(source, str | PathLike) and options and is_path_not_added_name(source):
        source = add_options_to_data_path(source, options)
        options = {}
    name, module = resolve_data_source(source, options)
    if isinstance(name, Dataset):
        return name
    key = make_cache_key(name, options)
    with _lock:
        load_lock = _load_locks.setdefault(key, threading.Lock())
    with load_lock:
        dataset = _cache.get(key)
        if dataset is None:
            dataset = module.load(name, **options)
        with _lock:
            put_dataset_in_cache_and_drop_oldest(key, dataset)
    return dataset


def put_dataset_in_cache_and_drop_oldest(key: CacheKey, dataset: Dataset) -> None:
    """Put a dataset at the end of the cache, and drop the least recently used ones."""
    _cache.pop(key, None)
    _cache[key] = dataset
    while len(_cache) > CACHE_SIZE:
        oldest = next(iter(_cache))
        del _cache[oldest]


def is_path_not_added_name(source: str | PathLike) -> bool:
    """True if `source` is the path of a file or a folder and not the name of a data set."""
    if not isinstance(source, str):
        return True
    return source not in HOMES and is_dataset_path(source)


def add_options_to_data_path(source: str | PathLike, options: DatasetOptions) -> Path:
    """Add `options` behind the ? of a path; they replace those that it already has. Raises
    UsageError for unknown ones."""
    name, options_of_path = split_path_and_options(source)
    texts = convert_options_to_texts({**options_of_path, **options})
    _, checked = arrays.find_file_and_options(join_path_and_options(name, texts))
    return Path(join_path_and_options(name, checked))


def convert_options_to_texts(options: DatasetOptions) -> dict[str, str]:
    """Convert options to texts: lists are joined by commas, and None becomes ""."""
    texts = {}
    for name, value in options.items():
        if isinstance(value, list | tuple | set):
            value = ",".join(map(str, value))
        texts[name] = "" if value is None else str(value)
    return texts


def make_cache_key(name: str | Path, options: DatasetOptions) -> CacheKey:
    """Make the key of a data set in the cache."""
    if isinstance(name, Path):
        return arrays.read_file_stamp(name)
    if HOMES[name] is glyphs:
        return (name, *sorted(glyphs.check_glyphs_options_and_add_defaults(options, name).items()))
    return (name, vision.find_download_folder())


def add_dataset(
    name: str, source: DatasetSource, *, title: str = "", help: str = "your own data"
) -> str:
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
    is_word = isinstance(name, str) and re.fullmatch(r"[\w.-]+", name) is not None
    if not is_word or is_dataset_path(name) or name in HOMES:
        raise UsageError(
            f"{name!r} cannot be a data set's name; use letters, digits, '-', '_' and '.', no "
            "path, and not the name of a built-in set."
        )
    if isinstance(source, str | PathLike):
        path, _ = resolve_data_source(source, {})
        if not isinstance(path, Path):
            raise UsageError(f"The name {source!r} is no data of your own; {ALLOWED}.")
        load(path)  # so that a problem with the file is reported now
        _added[name] = arrays.read_file_stamp(path)[0]
    else:
        dataset = load(source)
        _added[name] = replace(dataset, digest=hash_dataset_content(dataset), name=name)
    DATASETS[name] = DatasetInfo(title or name, help, offline=True)
    return name


def remove_dataset(name: str) -> None:
    """Remove a data set that `add_dataset` added; does nothing if there is none of that name."""
    if _added.pop(name, None) is not None:
        DATASETS.pop(name, None)


def get_or_register_dataset_name(dataset: Dataset) -> str:
    """Return the name or path for which `load` returns this very dataset.

    If there is none, the dataset is added under a name that is made from its content.
    """
    for name, added in _added.items():
        if added is dataset:
            return name
    for key, cached in list(_cache.items()):
        if cached is dataset and key == make_cache_key(key[0], {}):
            return str(key[0])
    stem = re.sub(r"[^\w.-]+", "-", dataset.name.removesuffix(".npz"))[:40] or "own"
    name = f"{stem}-{hash_dataset_content(dataset)[:8]}"
    if name not in _added:
        add_dataset(name, dataset)
    return name


def find_client_names_of_dataset_in_memory(dataset_name: str, client_count: int) -> tuple[str, ...]:
    """Find the names of the clients of a data set in memory.

    dataset_name: the name under which it was added, or its own (of a file: the file's name, without
        its folder)

    Returns () if there is no such data set, if it does not have `client_count` clients, or if its
    clients are only numbered.
    """
    cached = {key[0]: dataset for key, dataset in list(_cache.items())}
    datasets = {dataset.name: dataset for dataset in cached.values()}
    for added_name, source in _added.items():
        dataset = source if isinstance(source, Dataset) else cached.get(source)
        if dataset is None:
            datasets.pop(added_name, None)
        else:
            datasets[added_name] = dataset
    dataset = datasets.get(dataset_name.partition("?")[0])
    if dataset is None or len(dataset.client_names) != client_count:
        return ()
    if all(client_name.isdecimal() for client_name in dataset.client_names):
        return ()
    return dataset.client_names


def find_dataset_in_memory(name: str) -> Dataset | None:
    """Return the dataset of that name if it exists only in this process's memory; otherwise
    None."""
    source = _added.get(name)
    return source if isinstance(source, Dataset) else None


def describe(name_or_path: str | PathLike, **options: DatasetOptionValue) -> DatasetDescription:
    """Describe a data set: its shape, classes, sizes and digest.

    For the package's own data sets nothing is loaded and torch is not imported.

    >>> describe("digits").n_train, describe("digits").input_shape
    (1237, (1, 8, 8))
    """
    name, module = resolve_data_source(name_or_path, options)
    if module is arrays:
        return load(name_or_path).describe()
    return module.describe(name, **options)


def is_dataset_name(text: str) -> bool:
    """True if `text` is the name of a data set of the package, or of one that was added."""
    return text in DATASETS or text in HOMES


def is_dataset_path(text: str) -> bool:
    """True if `text` is the path of a file or a folder, and not a data set's name.

    So it is if it contains a slash, has the ending of a data file (options may follow), or names an
    existing file and not a data set.
    """
    name = text.partition("?")[0]
    if "/" in text or "\\" in text or is_path_of_table_file(text):
        return True
    if get_lowercase_file_ending(name) in (".npz", ".npy", *OTHER_ENDINGS):
        return True
    return (
        not is_dataset_name(name)
        and bool(name)
        and Path(name).exists()
        and not is_glyphs_name(name)
    )


def is_glyphs_name(name: str) -> bool:
    """True if a name is that of a set of letters, such as glyphs:16g."""
    return name.partition(":")[0] == "glyphs"


def find_dataset_title(name: str) -> str:
    """Find the title of a data set, as menus show it.

    >>> find_dataset_title("glyphs:16g"), find_dataset_title("glyphs:28"), find_dataset_title("heart:hungary")
    ('Glyphs 16x16', 'Glyphs 28x28, colour', 'Heart disease, tested in Hungary')
    >>> find_dataset_title("watch:3")
    'Exercises, tested on person 3'
    """
    if name in DATASETS:
        return DATASETS[name].title
    if name in natural.LEFT_OUT:
        kind = natural.find_base_dataset_name(name)
        preposition = "in" if kind == "heart" else "on"
        return f"{DATASETS[kind].title}, tested {preposition} {natural.LEFT_OUT[name]}"
    options = glyphs.parse_glyphs_name(name)
    size = options["size"]
    colour = ", colour" if options["channels"] == 3 else ""
    return f"Glyphs {size}x{size}{colour}"


class SourceAndLoaderModule(NamedTuple):
    """The data set that a name or a path stands for.

    value: the name of a data set of the package, a path, or the Dataset that was added
    module: the module whose `load` and `describe` take this value
    """

    value: str | Path | Dataset
    module: ModuleType


def resolve_data_source(source: DatasetSource, options: DatasetOptions) -> SourceAndLoaderModule:
    """Find the data set that a name or a path stands for. A text is a path if `is_dataset_path`."""
    if not isinstance(source, str | PathLike):
        raise UsageError(f"A {type(source).__name__} is not a data set; {ALLOWED}.")
    name: Any = source
    if not isinstance(source, str) or is_dataset_path(source):
        name = Path(source)
    if isinstance(name, str) and not is_dataset_name(name) and re.search(r"\.\w{1,8}(\?|$)", name):
        raise UsageError(f"There is no file {name!r}; give the path of {ENDINGS}.")
    if isinstance(name, str) and name not in HOMES:
        unlisted = [name_of_home for name_of_home in HOMES if name_of_home not in DATASETS]
        check_allowed_name("dataset", name, [*DATASETS, *unlisted, "PATH.npz", "PATH.csv"])
    module = HOMES.get(name, arrays)
    if options and module is not glyphs:
        raise UsageError(
            f"Dataset {str(name)!r} takes no options, but {', '.join(options)} was given; only "
            "'glyphs' and files of your own take options."
        )
    return SourceAndLoaderModule(_added.get(name, name), module)
