"""A person's own data, from memory, from one `.npz` file, or from a table (`tables.py`): `x_train,
y_train, x_test, y_test`, and `x_public` for unlabelled samples; `y_public`, their labels, serve to
choose settings (validation accuracy) and are shown to no method. `client_train` names the client
that holds each training sample: whole numbers or texts. `x, y` are enough: a fifth of the samples,
drawn in each class, is then for testing, and `client` says whose each is.

Images are [N, H, W], [N, H, W, C] or [N, C, H, W] with H and W at least 8 and C = 1 or 3; so the
axis of length 1 or 3 is always the channels, and there is nothing to guess. Recordings are
[N, T, C] or [N, C, T] with T at least 16 and C below 8: the shorter axis is the channels. Rows
[N, D] are features. Labels are whole numbers 0..C-1, or the names of the classes. Nothing pickled
is ever read. Every file that cannot be used gets one sentence: what is wrong, what is allowed, what
to do.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedlab_nb.data import cells, files, folders, tables
from fedlab_nb.data.columns import NUMBER, Column
from fedlab_nb.data.dataset import (
    OPTIONAL,
    REQUIRED,
    Dataset,
    hash_parts,
    make_dataset,
    shorten_error,
)
from fedlab_nb.data.pictures import PixelScale, choose_scale
from fedlab_nb.data.schema import FEATURES, IMAGES, RECORDINGS, InputSchema
from fedlab_nb.data.sums import Moments, sum_in_fixed_order
from fedlab_nb.errors import UsageError, choose

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame

Arrays = dict[str, np.ndarray]  # by name: x_train, y_train, ...

SMALLEST_IMAGE = 8  # pixels a side; recordings have fewer channels
MAX_CLASSES = 1000
MOST_ABOUT = 300  # characters that a file says of itself
SHOWN_NAMES = 10  # arrays that a sentence lists
SHOWN_LABELS = 5
UNSPLIT = ("x", "y", "client", "split", "group")  # arrays without training and test part
ARRAY_OPTIONS = ("kind",)  # of a file of arrays
NPY_OPTIONS = ("kind", "y", *files.OPTIONS)
# How columns are called that `from_frames` puts beside those of x.
LABEL_COLUMN = "y"
CLIENT_COLUMN = "the client"
SPLIT_COLUMN = "the split"
GROUP_COLUMN = "the group"


# ------------------------------------------------------------------------------------------- a file
def load(path: str | Path) -> Dataset:
    """Dataset of a file or a folder: a table (`tables.py`), pictures (`folders.py`), or arrays.
    Images are scaled by what they hold (`pictures.py`), features standardised by the training set's
    mean and standard deviation. The dataset's note says which. Raises UsageError.
    """
    file, options = find_file_and_options(path)
    if file.is_dir():
        return folders.load(file, options, folders.hash_pictures(file, options))
    if files.is_table(file):
        digest = hash_parts("table", tables.VERSION, hash_file(file), sorted(options.items()))
        return tables.load(file, options, digest)
    if files.find_ending(file) == ".npy":
        return load_npy(file, options)
    raw, ignored = read_npz(file)
    about = read_about_text(raw.pop("about", None))
    note = f" Ignored in the file: {join_names(ignored)}." if ignored else ""
    digest = hash_file_and_options(file, options)
    dataset = build_dataset(raw, file.name, digest, note, options.get("kind", ""))
    return replace(dataset, about=about)


def read_about_text(array: np.ndarray | None) -> str:
    """What a file says of itself: a single text, on one line of MOST_ABOUT characters at most, or
    ""."""
    if array is None or array.shape != () or array.dtype.kind != "U":
        return ""
    return " ".join(str(array).split())[:MOST_ABOUT]


def hash_file_and_options(file: Path, options: Mapping[str, str]) -> str:
    """An id of a file's content, and of the options where there are any."""
    digest = hash_file(file)
    if options:
        return hash_parts("arrays", digest, sorted(options.items()))
    return digest


def load_npy(file: Path, options: Mapping[str, str]) -> Dataset:
    """Dataset of one array: a table whose last column is the label, or samples with `?y=labels.npy`
    beside them."""
    values = open_npy(file)
    if options.get("y"):
        labels_file = file.parent / options["y"]
        if not labels_file.is_file():
            raise UsageError(
                f"There is no file {options['y']!r} beside {file.name}; y= names the labels' file."
            )
        raw = {"x": values, "y": open_npy(labels_file)}
        dataset = build_dataset(raw, file.name, "", "", options.get("kind", ""))
        digest = hash_parts(hash_file(file), hash_file(labels_file), sorted(options.items()))
        return replace(dataset, digest=digest)
    import pandas

    if values.dtype.names:
        table = pandas.DataFrame({name: values[name] for name in values.dtype.names})
    elif values.ndim == 2:
        table = pandas.DataFrame(values)
    else:
        raise UsageError(
            f"{file.name} is an array {values.shape} without labels; name their file, as in "
            f"{file.name}?y=labels.npy."
        )
    digest = hash_parts("npy", tables.VERSION, hash_file(file), sorted(options.items()))
    return tables.from_table(files.read_data_frame(table, file.name), options, digest, file.name)


def open_npy(file: Path) -> np.ndarray:
    """The array of an `.npy` file. Raises UsageError."""
    try:
        return np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        if "pickle" in str(error):
            raise UsageError(
                f"{file.name} has an array of Python objects, which is not loaded, since it may "
                "run code; save an array of numbers or texts."
            ) from None
        raise UsageError(
            f"{file.name} is damaged and cannot be read ({shorten_error(error)}); write it again."
        ) from None


def find_file_and_options(path: str | Path) -> tuple[Path, dict[str, str]]:
    """The file or folder, and its options by name (`patients.csv?label=outcome`). Raises
    UsageError."""
    name, options = files.split_options(path)
    file = Path(name).expanduser()
    if not file.exists():
        raise UsageError(
            f"The data file {str(file)!r} does not exist; give the path of {files.ENDINGS}."
        )
    if file.is_dir():
        return file, files.check_options(options, folders.OPTIONS, "a folder of pictures")
    if files.is_table(file):
        return file, files.check_options(options)
    ending = files.find_ending(file)
    if ending == ".npy":
        return file, files.check_options(options, NPY_OPTIONS, "an array")
    if ending != ".npz":
        raise UsageError(
            f"{file.name} cannot be read, for its ending is {ending!r}; give the path of "
            f"{files.ENDINGS}."
        )
    return file, files.check_options(options, ARRAY_OPTIONS, "arrays")


class FileStamp(NamedTuple):
    """While none of these changes, a file or a folder is not read again.

    path: in full, with its options;   time: of the last change, in nanoseconds;   size: bytes
    """

    path: Path
    time: int
    size: int


def read_file_stamp(path: str | Path) -> FileStamp:
    """The stamp of a file or a folder. Raises UsageError where there is none."""
    file, options = find_file_and_options(path)
    full_path = Path(files.join_options(file.resolve(), options))
    if file.is_dir():
        time, size = folders.read_folder_stamp(file)
        return FileStamp(full_path, time, size)
    stat = file.stat()
    return FileStamp(full_path, stat.st_mtime_ns, stat.st_size)


def hash_file(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, cached for as long as its size and time do not
    change."""
    stat = file.stat()
    return _hash_file(file.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _hash_file(file: Path, time: int, size: int) -> str:
    content = hashlib.sha256()
    with open(file, "rb") as stream:
        while block := stream.read(1 << 20):
            content.update(block)
    return content.hexdigest()


class NpzContent(NamedTuple):
    """arrays: those that a data set is made of, by name;   ignored: the names of all others."""

    arrays: Arrays
    ignored: list[str]


def read_npz(path: Path) -> NpzContent:
    """The arrays of an `.npz` file. Raises UsageError."""
    if not zipfile.is_zipfile(path):
        raise UsageError(
            f"{path.name} is not an .npz file; write it with numpy.savez(path, "
            f"{', '.join(REQUIRED)})."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            wanted = choose_array_names(file.files, path.name)
            ignored = [key for key in file.files if key not in wanted]
            return NpzContent({key: file[key] for key in wanted}, ignored)
    except UsageError:
        raise
    except (
        OSError,
        EOFError,
        KeyError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        if "pickle" in str(error):
            raise UsageError(
                f"{path.name} has an array of Python objects, which is not loaded, since it may "
                "run code; save arrays of numbers."
            ) from None
        raise UsageError(
            f"{path.name} is damaged and cannot be read ({shorten_error(error)}); write it again."
        ) from None


def choose_array_names(names: Sequence[str], file_name: str) -> list[str]:
    """Which of the arrays in a file are read. Raises UsageError where they are no data set."""
    lacking = [key for key in REQUIRED if key not in names]
    is_unsplit = "x" in names and "y" in names
    if lacking and not is_unsplit:
        raise UsageError(
            f"{file_name} has no array {', '.join(lacking)} (it has: "
            f"{join_names(names) or 'nothing'}); it must hold {', '.join(REQUIRED)}, or x and y."
        )
    known_names = [*REQUIRED, *OPTIONAL, "client"]
    if lacking:
        known_names = [*UNSPLIT, "x_public", "y_public"]
    return [key for key in (*known_names, "about") if key in names]


# ------------------------------------------------------------------------------------------- memory
def from_arrays(source: Mapping[str, Any], name: str = "own", kind: str = "") -> Dataset:
    """Dataset of x_train, y_train, x_test, y_test, and where there are any x_public, y_public,
    client_train (one client id a training sample), by name; or of x, y and client, where nobody has
    split the samples: `split` ("train" or "test" for each sample) or `group` (whose samples stay
    together) may then say how.

    numpy arrays, torch tensors, pandas Series and DataFrames or lists; scaled and checked as those
    of an `.npz` file; the Dataset has copies of its own. kind: "recordings" or "images", where the
    shape alone says the wrong thing. Raises UsageError.

    >>> x = np.arange(24.0).reshape(6, 4)
    >>> y = np.arange(6) % 2
    >>> arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    >>> from_arrays({**arrays, "client_train": list("aabbbc")}).client_names
    ('a', 'b', 'c')
    """
    names = (*REQUIRED, *OPTIONAL, *UNSPLIT)
    arrays = {}
    for key, value in source.items():
        if value is not None:
            arrays[choose("array", key, names)] = value
    is_unsplit = "x" in arrays and "y" in arrays
    lacking = [key for key in REQUIRED if key not in arrays]
    if lacking and not is_unsplit:
        raise UsageError(
            f"The arrays lack {', '.join(lacking)}; give {', '.join(REQUIRED)} (and "
            f"{', '.join(OPTIONAL)}), or x and y."
        )
    if needs_table_reading(arrays.get("x")) or needs_table_reading(arrays.get("x_train")):
        dataset = from_frames(arrays, name)
    else:
        raw = {key: to_array(key, value) for key, value in arrays.items()}
        dataset = build_dataset(raw, name, "", "", kind, list_column_names(arrays))
    return replace(dataset, digest=hash_content(dataset))


def from_table(table: Any, options: Mapping[str, Any]) -> Dataset:
    """Dataset of a DataFrame, one sample a row; the options are those of a table's file. Raises
    UsageError."""
    raw = files.read_data_frame(table, "the DataFrame")
    checked_options = files.check_options(options)
    dataset = tables.from_table(raw, checked_options, "", "the DataFrame", name="own")
    return replace(dataset, digest=hash_content(dataset))


def list_column_names(arrays: Mapping[str, Any]) -> list[str]:
    """The names of the columns of x where it is a DataFrame."""
    x = arrays.get("x_train", arrays.get("x"))
    if not hasattr(x, "columns"):
        return []
    return [str(name) for name in x.columns]


def needs_table_reading(value: Any) -> bool:
    """Whether samples are a DataFrame with more than plain numbers: texts, dates, gaps."""
    import pandas

    if not isinstance(value, pandas.DataFrame):
        return False
    types = pandas.api.types
    for dtype in value.dtypes:
        if not types.is_numeric_dtype(dtype) or types.is_complex_dtype(dtype):
            return True
    return bool(value.isna().any(axis=None))


def from_frames(arrays: Mapping[str, Any], name: str) -> Dataset:
    """The Dataset of samples in DataFrames with texts, dates or gaps: they are read as a table is
    (`tables.py`)."""
    import pandas

    if "x_public" in arrays:
        raise UsageError(
            "x is a DataFrame with texts, dates or gaps, so that x_public cannot be given; leave "
            "it out."
        )
    if "x" in arrays and "x_train" not in arrays:
        table = build_table(arrays, "")
    else:
        train = build_table(arrays, "_train").assign(**{SPLIT_COLUMN: "train"})
        test = build_table(arrays, "_test").assign(**{SPLIT_COLUMN: "test"})
        table = pandas.concat([train, test], ignore_index=True)
    options = {"label": LABEL_COLUMN, "client": ""}
    if CLIENT_COLUMN in table:
        options["client"] = CLIENT_COLUMN
    if SPLIT_COLUMN in table:
        options["split"] = SPLIT_COLUMN
    if GROUP_COLUMN in table:
        options["group"] = GROUP_COLUMN
    return tables.from_table(files.read_data_frame(table, "x"), options, "", name)


def build_table(arrays: Mapping[str, Any], suffix: str) -> DataFrame:
    """One table of the samples `x{suffix}`, their labels, and what else is given of each. Raises
    UsageError."""
    import pandas

    frame = arrays[f"x{suffix}"]
    if not isinstance(frame, pandas.DataFrame):
        raise UsageError(
            f"x{suffix} is a {type(frame).__name__}, but x_train is a DataFrame; give DataFrames "
            "alone."
        )
    columns = {LABEL_COLUMN: arrays[f"y{suffix}"]}
    if f"client{suffix}" in arrays:
        columns[CLIENT_COLUMN] = arrays[f"client{suffix}"]
    if "split" in arrays and not suffix:
        columns[SPLIT_COLUMN] = arrays["split"]
    if "group" in arrays:
        columns[GROUP_COLUMN] = arrays["group"]
    frame = frame.reset_index(drop=True)
    for column, values in columns.items():
        cells_of_column = pandas.Series(list(values))
        if len(cells_of_column) != len(frame):
            raise UsageError(
                f"x{suffix} has {len(frame)} rows, but {column} has {len(cells_of_column)}; make them "
                "alike."
            )
        frame = frame.assign(**{column: cells_of_column})
    return frame


def to_array(key: str, value: Any) -> np.ndarray:
    """A copy of an array, a tensor, a Series, a DataFrame or a list. Raises UsageError for what has
    gaps."""
    import pandas

    try:
        if hasattr(value, "detach"):
            value = tensor_to_array(value)
        if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
            count = int(np.ma.getmaskarray(value).sum())
            raise UsageError(f"{key} has {count} masked values; fill or drop them.")
        if hasattr(value, "toarray"):  # a sparse matrix of SciPy
            value = value.toarray()
        if isinstance(value, pandas.DataFrame):
            value = value.to_numpy(dtype=float) if key.startswith("x") else value.to_numpy()
        if isinstance(value, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray):
            return series_to_array(key, pandas.Series(value))
        array = np.array(value)
        if array.dtype.kind == "O" and array.ndim == 1 and not key.startswith("x"):
            return series_to_array(key, pandas.Series(array))
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        if array.dtype.kind == "O":
            array = array.astype(float)
        return array
    except UsageError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        # ragged lists; a type that numpy does not know
        raise UsageError(
            f"The array {key} cannot be used: {shorten_error(error)}; give arrays, tensors or "
            "lists of numbers."
        ) from None


def tensor_to_array(value: Any) -> np.ndarray:
    """A tensor as an array; what NumPy does not know (bfloat16) as float32."""
    value = value.detach().cpu()
    if value.is_sparse:
        value = value.to_dense()
    try:
        return value.numpy()
    except TypeError:
        return value.float().numpy()


def series_to_array(key: str, values: Any) -> np.ndarray:
    """A column of pandas, or of Python objects: numbers, or texts. Raises UsageError for a gap."""
    import pandas

    count = int(values.isna().sum())
    if count:
        raise UsageError(f"{key} has {count} missing values; drop those samples, or fill them in.")
    types = pandas.api.types
    if types.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=bool)
    if types.is_float_dtype(values.dtype):
        return values.to_numpy(dtype=float)
    if types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.int64)
    if types.is_datetime64_any_dtype(values.dtype):
        raise UsageError(
            f"{key} holds dates, but it must hold labels; give whole numbers or names."
        )
    items = values.tolist()
    has_categories = isinstance(values.dtype, pandas.CategoricalDtype)
    if not has_categories and all(is_whole_number(item) for item in items):
        return np.array(items, dtype=np.int64)
    return np.array([cells.to_text(item) or "" for item in items], dtype=str)


def is_whole_number(value: Any) -> bool:
    """Whether a value is an int of Python or numpy, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def hash_content(dataset: Dataset) -> str:
    """A digest of the tensors and of the names of classes and clients."""
    content = hashlib.sha256(repr((dataset.class_names, dataset.client_names)).encode())
    names = [*REQUIRED, *OPTIONAL]
    if dataset.client_test is not None:
        names.append("client_test")
    for name in names:
        tensor: torch.Tensor | None = getattr(dataset, name)
        if tensor is None:
            content.update(f"{name} None".encode())
            continue
        content.update(f"{name} {(tensor.dtype, tuple(tensor.shape))}".encode())
        content.update(np.ascontiguousarray(tensor.numpy()).data)
    return content.hexdigest()[:32]


# ------------------------------------------------------------------------------------------- checks
def build_dataset(
    raw: Arrays,
    name: str,
    digest: str,
    extra_note: str = "",
    kind: str = "",
    columns: Sequence[str] = (),
) -> Dataset:
    """The Dataset of arrays by name, checked and scaled.

    extra_note: goes behind the note;   kind: as in `from_arrays`;   columns: the names of the
    features. Raises UsageError.
    """
    if "y_public" in raw and "x_public" not in raw:
        raise UsageError("The data has y_public but no x_public; add the samples, too.")
    if kind not in ("", RECORDINGS, IMAGES):
        raise UsageError(f"kind is {kind!r}, but it must be {RECORDINGS} or {IMAGES}.")
    raw, labels_note = name_labels_from_one(raw)
    raw, label_names = encode_labels(raw)
    raw, split_note = split_samples(raw)
    y = {key: check_labels(key, raw[key]) for key in raw if key.startswith("y_")}
    check_lengths(raw, y)
    classes = count_classes(y)
    class_names = label_names or tuple(map(str, range(classes)))
    x = {key: check_samples(key, raw[key], kind) for key in raw if key.startswith("x_")}
    check_sample_shapes(x)
    feature_names = columns if len(columns) == x["x_train"].shape[1] else ()
    x, schema, scale_note = scale_samples(x, feature_names)
    notes = [
        scale_note,
        describe_ambiguous_shape(raw["x_train"], x["x_train"]),
        labels_note,
        describe_absent_labels(y["y_train"], class_names),
        split_note,
        extra_note,
    ]
    client_names: tuple[str, ...] = ()
    if "client_train" in raw:
        y["client_train"], client_names = encode_clients(raw["client_train"], len(y["y_train"]))
    if "client_test" in raw and set(raw["client_test"]) == set(raw["client_train"]):
        y["client_test"], _ = encode_clients(raw["client_test"], len(y["y_test"]))
    schema = replace(schema, class_names=class_names, client_names=client_names)
    note = "".join(notes)
    return make_dataset(name, digest, {**x, **y}, class_names, note, client_names, schema)


def check_lengths(raw: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray]) -> None:
    """Raises UsageError unless each part has as many samples as labels."""
    for key, labels in y.items():
        part = f"x_{key.removeprefix('y_')}"
        if raw[part].shape[:1] != labels.shape:
            raise UsageError(
                f"{part} has shape {raw[part].shape} but {key} has {len(labels)} labels; each "
                "sample needs one label."
            )


def check_sample_shapes(x: Mapping[str, np.ndarray]) -> None:
    """Raises UsageError unless the samples of all parts have one shape."""
    shape = x["x_train"].shape[1:]
    for key, samples in x.items():
        if samples.shape[1:] != shape:
            raise UsageError(
                f"{key} has samples of shape {samples.shape[1:]}, but those of x_train have "
                f"{shape}; make them alike."
            )


def describe_absent_labels(y_train: np.ndarray, class_names: Sequence[str]) -> str:
    """A sentence where a class has no training sample."""
    present = set(y_train.tolist())
    absent = [name for label, name in enumerate(class_names) if label not in present]
    if not absent:
        return ""
    more = " …" if len(absent) > SHOWN_LABELS else ""
    return f" No training sample has the label {', '.join(absent[:SHOWN_LABELS])}{more}."


def describe_ambiguous_shape(raw: np.ndarray, x: np.ndarray) -> str:
    """A sentence where the shape of the samples leaves room for doubt: long pictures may be
    recordings."""
    if raw.ndim == 3 and x.ndim == 4 and max(raw.shape[1:]) >= 2 * min(raw.shape[1:]):
        height, width = x.shape[2:]
        return (
            f" Samples are taken as grey pictures of {height}x{width} pixels; kind=recordings "
            "takes them as recordings."
        )
    return ""


class ArraysAndNote(NamedTuple):
    """arrays: by name;   note: a sentence on what was done with them, "" for nothing."""

    arrays: Arrays
    note: str


def name_labels_from_one(raw: Arrays) -> ArraysAndNote:
    """Labels 1..C as names of classes, so that there is no empty class 0. Others as they are."""
    keys = [key for key in raw if is_label_array(key)]
    numbers = []
    for key in keys:
        array = raw[key]
        if array.ndim != 1 or array.dtype.kind not in "iuf" or not array.size:
            return ArraysAndNote(raw, "")
        numbers.append(array)
    if not numbers:
        return ArraysAndNote(raw, "")
    values = np.unique(np.concatenate(numbers))
    classes = len(values)
    if classes < 2 or not np.array_equal(values, np.arange(1, classes + 1)):
        return ArraysAndNote(raw, "")
    texts = {key: raw[key].astype(np.int64).astype(str) for key in keys}
    return ArraysAndNote(raw | texts, f" The labels are 1..{classes}: class 1 is the first.")


def is_label_array(key: str) -> bool:
    """Whether an array of that name holds labels: y, y_train, y_test or y_public."""
    return key == "y" or key.startswith("y_")


def encode_labels(raw: Arrays) -> tuple[Arrays, tuple[str, ...]]:
    """The arrays with labels as numbers, and the names of the classes; none where the labels are
    numbers already."""
    keys = [key for key in raw if is_label_array(key)]
    if not all(raw[key].dtype.kind == "U" for key in keys):
        return raw, ()
    keys = [key for key in keys if raw[key].ndim == 1]
    if not keys:
        return raw, ()
    codes, class_names = tables.encode_texts(np.concatenate([raw[key] for key in keys]).tolist())
    ends = np.cumsum([len(raw[key]) for key in keys])[:-1]
    numbers = dict(zip(keys, np.split(codes, ends), strict=True))
    return raw | numbers, class_names


def split_samples(raw: Arrays) -> ArraysAndNote:
    """The arrays with `x`, `y` and `client` split into training and test samples."""
    parts = {key: array for key, array in raw.items() if key not in UNSPLIT}
    if "x_train" in raw:
        for key in ("split", "group"):
            if key in raw:
                raise UsageError(
                    f"{key} cannot be given with x_train and x_test, which are split; leave it out."
                )
        if "client" in raw and "client_train" not in raw:
            parts["client_train"] = raw["client"]
        return ArraysAndNote(parts, "")
    y = check_labels("y", raw["y"])
    if raw["x"].shape[:1] != y.shape:
        raise UsageError(f"x has shape {raw['x'].shape} but y has {len(y)} labels; each needs one.")
    for key in ("split", "group"):
        if key in raw and raw[key].shape != y.shape:
            raise UsageError(
                f"{key} has shape {raw[key].shape}, but it must be [{len(y)}], one for each sample."
            )
    test, note = choose_test_samples(raw, y)
    for key in ("x", "y", "client"):
        if key in raw:
            parts[f"{key}_train"] = raw[key][~test]
            parts[f"{key}_test"] = raw[key][test]
    return ArraysAndNote(parts, f" {note}")


def choose_test_samples(raw: Mapping[str, np.ndarray], y: np.ndarray) -> tables.SplitChoice:
    """The test samples of arrays that nobody has split: as `split` says, whole groups, or drawn."""
    owner = None
    if "client" in raw:
        owner, _ = encode_clients(raw["client"], len(y))
    group = raw.get("group")
    if "split" in raw:
        import pandas

        words = pandas.Series(raw["split"].astype(str))
        test, note = tables.parse_split_column(words, "split", "the arrays")
        if group is not None and set(group[test].tolist()) & set(group[~test].tolist()):
            raise UsageError(
                "A group has training and test samples in split; correct it, or leave out group."
            )
        return tables.SplitChoice(test, note)
    if group is not None:
        _, group_numbers = np.unique(group, return_inverse=True)
        test = tables.draw_test_groups(y, group_numbers, owner)
        note = "Whole groups of samples, about a fifth, are for testing."
        return tables.SplitChoice(test, note)
    test = tables.draw_test_rows(y, owner)
    note = "A fifth of the samples, drawn at random in each class, is for testing."
    return tables.SplitChoice(test, note)


def check_labels(key: str, labels: np.ndarray) -> np.ndarray:
    """int64 [N], or UsageError."""
    allowed = (
        f"labels must be whole numbers 0..C-1 with at most {MAX_CLASSES} classes; number the "
        "classes from 0"
    )
    if labels.ndim != 1:
        raise UsageError(
            f"{key} has shape {labels.shape}, but it must be [N], one whole number a sample (not "
            "one-hot rows)."
        )
    if len(labels) == 0:
        raise UsageError(f"{key} is empty; it must have at least one label.")
    if labels.dtype.kind not in "biuf":
        raise UsageError(f"{key} holds {labels.dtype}, but {allowed}.")
    is_label = (
        (labels >= 0) & (labels < MAX_CLASSES) & (labels == np.floor(labels))
    )  # nan is in no range
    wrong = labels[~is_label]
    if len(wrong):
        raise UsageError(f"{key} holds the label {wrong[0]:g}, but {allowed}.")
    return labels.astype(np.int64)


def count_classes(y: Arrays) -> int:
    """C = greatest training label + 1; no other labels of `y` may be greater."""
    classes = int(y["y_train"].max()) + 1
    if classes < 2:
        raise UsageError(
            "y_train holds only the label 0, but there must be at least two classes, numbered "
            "0..C-1."
        )
    for key, labels in y.items():
        if labels.max() >= classes:
            raise UsageError(
                f"{key} holds the label {labels.max()}, but the greatest label of y_train is "
                f"{classes - 1}; every class must occur in the training set."
            )
    return classes


def check_samples(key: str, samples: np.ndarray, kind: str = "") -> np.ndarray:
    """[N, C, H, W], [N, C, T] or [N, D] in the file's own numbers, or UsageError."""
    if samples.dtype.kind not in "biuf":
        raise UsageError(
            f"{key} holds {samples.dtype}, but samples must be uint8 or float numbers."
        )
    if samples.size == 0:
        advice = "leave it out" if key == "x_public" else "it must have samples"
        raise UsageError(f"{key} is empty (shape {samples.shape}); {advice}.")
    if samples.dtype.kind == "f" and not np.isfinite(samples).all():
        is_finite = np.isfinite(samples.reshape(len(samples), -1)).all(axis=1)
        first_bad = int(np.flatnonzero(~is_finite)[0])
        raise UsageError(
            f"{key} holds NaN or infinity (first in sample {first_bad}); replace or drop such samples."
        )
    if samples.ndim == 2:
        return samples
    if samples.ndim == 3 and (
        kind == RECORDINGS or kind != IMAGES and looks_like_recordings(samples)
    ):
        return put_channels_first(samples)
    if samples.ndim == 3:
        samples = samples[:, None]
    elif samples.ndim == 4 and samples.shape[3] in (1, 3) and samples.shape[1] >= SMALLEST_IMAGE:
        samples = np.moveaxis(samples, 3, 1)
    if (
        samples.ndim != 4
        or samples.shape[1] not in (1, 3)
        or min(samples.shape[2:]) < SMALLEST_IMAGE
    ):
        raise UsageError(
            f"{key} has shape {samples.shape}, but it must be images [N, H, W], [N, H, W, C] or [N, C, "
            f"H, W] with C = 1 or 3 and H, W at least {SMALLEST_IMAGE}, recordings [N, C, T] with "
            "C below 8, or feature rows [N, D]."
        )
    return samples


def looks_like_recordings(samples: np.ndarray) -> bool:
    """Whether one axis of the samples [N, A, B] is too short for a picture, and the other long."""
    shortest = min(samples.shape[1:])
    longest = max(samples.shape[1:])
    return shortest < SMALLEST_IMAGE <= longest / 2


def put_channels_first(samples: np.ndarray) -> np.ndarray:
    """Recordings [N, C, T] from [N, C, T] or [N, T, C]: there are fewer channels than steps."""
    if samples.shape[1] < samples.shape[2]:
        return samples
    return np.moveaxis(samples, 2, 1)


class ScaledSamples(NamedTuple):
    """arrays: float32, by name;   schema: what scales further samples alike (its class names are
    still missing);   note: a sentence on what was done"""

    arrays: Arrays
    schema: InputSchema
    note: str


def scale_samples(x: Arrays, names: Sequence[str] = ()) -> ScaledSamples:
    """Scale features and recordings by the training set's mean and standard deviation, images by
    their range.

    x: `x_train` and others by name, [N, D], [N, C, T] or [N, C, H, W] in their own numbers;
    names: of the columns
    """
    train = x["x_train"]
    if train.ndim == 4:
        return scale_images(x)
    shape = tuple(train.shape[1:])
    is_table = train.ndim == 2
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = measure_mean_and_deviation(train.astype(np.float64))
        mean = mean.ravel()
        std = std.ravel()
        is_constant = ~(std > 1e-12 * np.maximum(1, np.abs(mean)))  # a constant column becomes 0
    if not np.isfinite(std).all():
        raise UsageError(
            "The features are too large to standardise in 32-bit numbers; rescale their columns."
        )
    scale = np.where(is_constant, 1.0, std)
    if not names:
        what = "feature" if is_table else "channel"
        names = [f"{what} {place}" for place in range(1, shape[0] + 1)]
    columns = []
    for place, name in enumerate(names):
        column = Column(name, NUMBER, mean=float(mean[place]), scale=float(scale[place]))
        columns.append(column)
    kind = FEATURES if is_table else RECORDINGS
    schema = InputSchema(kind, shape, (), columns=tuple(columns))
    ready = {key: schema.standardise(value) for key, value in x.items()}
    subject = "Features are" if is_table else "Each channel is"
    note = f"{subject} standardised by the training set's mean and standard deviation."
    return ScaledSamples(ready, schema, note)


def scale_images(images: Arrays) -> ScaledSamples:
    """The same for images [N, C, H, W]."""
    shape = tuple(images["x_train"].shape[1:])
    mode = "L" if shape[0] == 1 else "RGB"
    pixels = choose_image_scale(images)
    ready = {key: pixels.apply(value) for key, value in images.items()}
    schema = InputSchema(IMAGES, shape, (), pixels=replace(pixels, mode=mode))
    return ScaledSamples(ready, schema, pixels.describe())


def choose_image_scale(images: Arrays) -> PixelScale:
    """From which range the pixels of all parts come. Raises UsageError for parts of different
    number types."""
    if len({value.dtype for value in images.values()}) > 1:
        kinds = ", ".join(f"{key} {value.dtype}" for key, value in images.items())
        raise UsageError(
            f"The images have different number types ({kinds}), and so may their scales; save one "
            "type."
        )
    return choose_scale(images, "x_train")


def measure_mean_and_deviation(x: np.ndarray) -> Moments:
    """Mean and standard deviation of each column of rows [N, D], as [1, D], or of each channel of
    recordings [N, C, T], as [1, C, 1]. The same to the last bit on every machine."""
    if x.ndim == 2:
        rows = x
        shape: tuple[int, ...] = (1, -1)
    else:
        rows = np.moveaxis(x, 1, 2).reshape(-1, x.shape[1])
        shape = (1, -1, 1)
    mean = sum_in_fixed_order(rows) / len(rows)
    difference = rows - mean
    std = np.sqrt(sum_in_fixed_order(difference * difference) / len(rows))
    return Moments(mean.reshape(shape), std.reshape(shape))


def join_names(names: Sequence[str]) -> str:
    """Names from a file, which may hold anything, on one line."""
    shown = [" ".join(name.split())[:80] for name in names[:SHOWN_NAMES]]
    if len(names) > SHOWN_NAMES:
        shown.append("…")
    return ", ".join(shown)


# ------------------------------------------------------------------------------------------ clients
def encode_clients(ids: np.ndarray, samples: int) -> tables.EncodedTexts:
    """The client 0..M-1 of each sample, and the M names, from ids [N] (whole numbers or texts) in
    their sorted order. Raises UsageError.

    >>> encode_clients(np.array(["north", "south", "north"]), 3).names
    ('north', 'south')
    """
    if ids.shape != (samples,):
        raise UsageError(
            f"client_train has shape {ids.shape}, but it must be [{samples}], one client id a "
            "training sample."
        )
    if ids.dtype.kind == "O" and all(isinstance(name, str) for name in ids):
        ids = ids.astype(str)
    if ids.dtype.kind not in "biuUS":
        raise UsageError(
            f"client_train holds {ids.dtype}, but client ids must be whole numbers or texts."
        )
    distinct, client = np.unique(ids, return_inverse=True)
    if ids.dtype.kind == "S":
        names = [name.decode(errors="replace") for name in distinct.tolist()]
    else:
        names = [str(name) for name in distinct.tolist()]
    return tables.EncodedTexts(client.astype(np.int64), tuple(names))


def convert_to_owners(index_lists: Any, samples: int) -> np.ndarray:
    """int64 [N], the client of each of N samples (-1: nobody), from M lists of indices. Each list
    must hold one index or more, all of them in 0..N-1, and no index may occur twice. Raises
    UsageError.

    >>> convert_to_owners([[0, 3], [1]], 4)
    array([ 0,  1, -1,  0])
    """
    if isinstance(index_lists, str) or not isinstance(index_lists, Iterable):
        raise UsageError(
            f"indices is a {type(index_lists).__name__}, but it must be a list of one index list a "
            "client."
        )
    owner = np.full(samples, -1, dtype=np.int64)
    lists = list(index_lists)
    if not lists:
        raise UsageError("indices is empty; give one list of sample indices for each client.")
    for k, indices_of_client in enumerate(lists):
        rows = check_indices(k, indices_of_client, samples)
        values, counts = np.unique(rows, return_counts=True)
        is_taken = (counts > 1) | (owner[values] >= 0)
        if is_taken.any():
            raise UsageError(
                f"Client {k} has the index {values[is_taken][0]} that is already given; a sample "
                "has one client."
            )
        owner[rows] = k
    return owner


def check_indices(client: int, indices: Any, samples: int) -> np.ndarray:
    """int [n] of a client's list of indices, all in 0..samples-1. Raises UsageError."""
    if hasattr(indices, "detach"):
        indices = indices.detach().cpu()
    rows = np.asarray(indices)
    if rows.ndim != 1 or len(rows) == 0:
        raise UsageError(
            f"The index list of client {client} must be one row [n] of at least one sample index."
        )
    if rows.dtype.kind not in "iu":
        raise UsageError(
            f"The indices of client {client} are {rows.dtype}, but they must be whole numbers."
        )
    wrong = rows[(rows < 0) | (rows >= samples)]
    if len(wrong):
        raise UsageError(
            f"Client {client} has the index {wrong[0]}, but the training samples are 0..{samples - 1}."
        )
    return rows
