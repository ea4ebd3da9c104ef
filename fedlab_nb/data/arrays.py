"""Read a user's own data as a dataset: arrays in memory, an `.npz` or `.npy` file, or a DataFrame.

The arrays, by name:

    x_train, y_train    the training samples and their labels
    x_test, y_test      the test samples and their labels
    client_train        the client that holds each training sample, as whole numbers or texts
    x_public            unlabelled samples
    y_public            their labels: they serve to choose settings (validation accuracy), and no
                        method sees them
    x, y, client        instead of the training and test arrays: a fifth of the samples, drawn in
                        each class, is then for testing

- Images are [N, H, W], [N, H, W, C] or [N, C, H, W], with H and W at least 8 and C = 1 or 3. So the
  axis of length 1 or 3 is always the channels, and there is nothing to guess.
- Recordings are [N, T, C] or [N, C, T], with T at least 16 and C below 8: the shorter axis is the
  channels.
- Rows [N, D] are features.
- Labels are whole numbers 0..C-1, or the names of the classes.

Nothing pickled is ever read. For a file that cannot be used, the error says what is wrong, what is
allowed and what to do. Tables from files are read in `tables.py`.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from fedlab_nb.data import cells, files, folders, tables
from fedlab_nb.data.array_types import (
    ClientOfSample,
    IndexArray,
    LabelArray,
    SampleArray,
    StructuredArray,
)
from fedlab_nb.data.columns import NUMBER, ColumnSchema
from fedlab_nb.data.dataset import (
    OPTIONAL,
    REQUIRED,
    Dataset,
    hash_parts_to_short_id,
    make_dataset_from_checked_arrays,
    shorten_error_text,
)
from fedlab_nb.data.input_types import (
    ArrayLike,
    ArraysByName,
    FileOptions,
    FileOptionTexts,
    SampleIndexListPerClient,
)
from fedlab_nb.data.pictures import ColourMode, PixelScale, find_pixel_scale
from fedlab_nb.data.schema import FEATURES, IMAGES, RECORDINGS, InputSchema, SampleKind
from fedlab_nb.data.sums import MeanAndDeviation, sum_rows_in_fixed_order
from fedlab_nb.errors import UsageError, check_allowed_name
from fedlab_nb.value_types import SampleShape, SentenceOrEmpty

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame, Series

NumpyArraysByName = dict[str, np.ndarray]  # by name: x_train, y_train, ...

SMALLEST_IMAGE = 8  # pixels a side; recordings have fewer channels
MAX_CLASSES = 1000
MOST_ABOUT = 300  # characters that a file says of itself
SHOWN_NAMES = 10  # arrays that a sentence lists
SHOWN_LABELS = 5
UNSPLIT = ("x", "y", "client", "split", "group")  # arrays without training and test part
ARRAY_OPTIONS = ("kind",)  # of a file of arrays
NPY_OPTIONS = ("kind", "y", *files.OPTIONS)
# The names of the columns that `make_dataset_from_frames` adds to those of x.
LABEL_COLUMN = "y"
CLIENT_COLUMN = "the client"
SPLIT_COLUMN = "the split"
GROUP_COLUMN = "the group"


# ------------------------------------------------------------------------------------------- a file
def load(path_with_options: str | Path) -> Dataset:
    """Load the Dataset of a file or a folder: a table (`tables.py`), pictures (`folders.py`), or
    arrays. Images are scaled by what they hold (`pictures.py`), features standardised by the
    training set's mean and standard deviation. The dataset's note says which. Raises UsageError.
    """
    file, options = find_file_and_options(path_with_options)
    if file.is_dir():
        return folders.load_folder_of_pictures(file, options, folders.hash_pictures(file, options))
    if files.is_path_of_table_file(file):
        digest = hash_parts_to_short_id(
            "table", tables.VERSION, compute_sha256_of_file(file), sorted(options.items())
        )
        return tables.load_table(file, options, digest)
    if files.get_lowercase_file_ending(file) == ".npy":
        return load_dataset_of_npy_file(file, options)
    raw, ignored = read_npz_arrays(file)
    about = convert_about_array_to_one_line(raw.pop("about", None))
    note = f" Ignored in the file: {join_first_names_on_one_line(ignored)}." if ignored else ""
    digest = hash_file_and_options(file, options)
    kind = cast("SampleKind", options.get("kind", ""))
    dataset = build_dataset_from_raw_arrays(raw, file.name, digest, note, kind)
    return replace(dataset, about=about)


def convert_about_array_to_one_line(about_array: np.ndarray | None) -> str:
    """Convert a file's description of itself to text, cut to one line of MOST_ABOUT characters at
    most; "" if the file has none."""
    if about_array is None or about_array.shape != () or about_array.dtype.kind != "U":
        return ""
    return " ".join(str(about_array).split())[:MOST_ABOUT]


def hash_file_and_options(file: Path, options: FileOptionTexts) -> str:
    """Compute a digest of a file's content, and of the options if there are any."""
    digest = compute_sha256_of_file(file)
    if options:
        return hash_parts_to_short_id("arrays", digest, sorted(options.items()))
    return digest


def load_dataset_of_npy_file(npy_file: Path, options: FileOptionTexts) -> Dataset:
    """Load the Dataset of one array: a table whose last column is the label, or samples with
    `?y=labels.npy` beside them."""
    values = read_array_of_npy_file(npy_file)
    if options.get("y"):
        labels_file = npy_file.parent / options["y"]
        if not labels_file.is_file():
            raise UsageError(
                f"There is no file {options['y']!r} beside {npy_file.name}; y= names the labels' file."
            )
        raw = {"x": values, "y": read_array_of_npy_file(labels_file)}
        kind = cast("SampleKind", options.get("kind", ""))
        dataset = build_dataset_from_raw_arrays(raw, npy_file.name, "", "", kind)
        digest = hash_parts_to_short_id(
            compute_sha256_of_file(npy_file),
            compute_sha256_of_file(labels_file),
            sorted(options.items()),
        )
        return replace(dataset, digest=digest)
    import pandas

    if values.dtype.names:
        table = pandas.DataFrame({name: values[name] for name in values.dtype.names})
    elif values.ndim == 2:
        table = pandas.DataFrame(values)
    else:
        raise UsageError(
            f"{npy_file.name} is an array {values.shape} without labels; name their file, as in "
            f"{npy_file.name}?y=labels.npy."
        )
    digest = hash_parts_to_short_id(
        "npy", tables.VERSION, compute_sha256_of_file(npy_file), sorted(options.items())
    )
    return tables.make_dataset_from_raw_table(
        files.make_raw_table_from_data_frame(table, npy_file.name), options, digest, npy_file.name
    )


def read_array_of_npy_file(npy_file: Path) -> SampleArray | StructuredArray:
    """Read the array of an `.npy` file. Raises UsageError."""
    try:
        return np.load(npy_file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        if "pickle" in str(error):
            raise UsageError(
                f"{npy_file.name} has an array of Python objects, which is not loaded, since it may "
                "run code; save an array of numbers or texts."
            ) from None
        raise UsageError(
            f"{npy_file.name} is damaged and cannot be read ({shorten_error_text(error)}); write it again."
        ) from None


class FileAndOptions(NamedTuple):
    """A file or a folder, and the options behind its path, by name."""

    file: Path
    options: dict[str, str]


def find_file_and_options(path_with_options: str | Path) -> FileAndOptions:
    """Split a path such as `patients.csv?label=outcome` into the file or folder and its options.

    Raises UsageError.
    """
    name, options = files.split_path_and_options(path_with_options)
    file = Path(name).expanduser()
    if not file.exists():
        raise UsageError(
            f"The data file {str(file)!r} does not exist; give the path of {files.ENDINGS}."
        )
    if file.is_dir():
        return FileAndOptions(
            file,
            files.check_and_convert_file_options_to_texts(
                options, folders.OPTIONS, "a folder of pictures"
            ),
        )
    if files.is_path_of_table_file(file):
        return FileAndOptions(file, files.check_and_convert_file_options_to_texts(options))
    ending = files.get_lowercase_file_ending(file)
    if ending == ".npy":
        return FileAndOptions(
            file, files.check_and_convert_file_options_to_texts(options, NPY_OPTIONS, "an array")
        )
    if ending != ".npz":
        raise UsageError(
            f"{file.name} cannot be read, for its ending is {ending!r}; give the path of "
            f"{files.ENDINGS}."
        )
    return FileAndOptions(
        file, files.check_and_convert_file_options_to_texts(options, ARRAY_OPTIONS, "arrays")
    )


class PathTimeAndSize(NamedTuple):
    """The state of a file or a folder; it is not read again while none of these fields changes.

    path: in full, with its options
    time: of the last change, in nanoseconds
    size: bytes
    """

    path: Path
    time: int
    size: int


def read_file_stamp(path_with_options: str | Path) -> PathTimeAndSize:
    """Read the stamp of a file or a folder. Raises UsageError if there is none."""
    file, options = find_file_and_options(path_with_options)
    full_path = Path(files.join_path_and_options(file.resolve(), options))
    if file.is_dir():
        time, size = folders.read_newest_change_time_and_total_size(file)
        return PathTimeAndSize(full_path, time, size)
    stat = file.stat()
    return PathTimeAndSize(full_path, stat.st_mtime_ns, stat.st_size)


def compute_sha256_of_file(file: Path) -> str:
    """Compute the SHA-256 of a file's bytes, in hexadecimal, cached for as long as its size and
    time do not change."""
    stat = file.stat()
    return _hash_unchanged_file(file.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _hash_unchanged_file(file: Path, modified_nanoseconds: int, byte_count: int) -> str:
    content = hashlib.sha256()
    with open(file, "rb") as stream:
        while block := stream.read(1 << 20):
            content.update(block)
    return content.hexdigest()


class UsedArraysAndIgnoredNames(NamedTuple):
    """What an `.npz` file holds.

    arrays: those that a data set is made of, by name
    ignored: the names of all others
    """

    arrays: NumpyArraysByName
    ignored: list[str]


def read_npz_arrays(npz_file: Path) -> UsedArraysAndIgnoredNames:
    """Read the arrays of an `.npz` file. Raises UsageError."""
    if not zipfile.is_zipfile(npz_file):
        raise UsageError(
            f"{npz_file.name} is not an .npz file; write it with numpy.savez(path, "
            f"{', '.join(REQUIRED)})."
        )
    try:
        with np.load(npz_file, allow_pickle=False) as file:
            array_names = choose_npz_arrays_to_read(file.files, npz_file.name)
            ignored = [key for key in file.files if key not in array_names]
            return UsedArraysAndIgnoredNames({key: file[key] for key in array_names}, ignored)
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
                f"{npz_file.name} has an array of Python objects, which is not loaded, since it may "
                "run code; save arrays of numbers."
            ) from None
        raise UsageError(
            f"{npz_file.name} is damaged and cannot be read ({shorten_error_text(error)}); write it again."
        ) from None


def choose_npz_arrays_to_read(array_names: Sequence[str], file_name_in_errors: str) -> list[str]:
    """Choose which of the arrays in a file are read. Raises UsageError if they are no data set."""
    lacking = [key for key in REQUIRED if key not in array_names]
    is_unsplit = "x" in array_names and "y" in array_names
    if lacking and not is_unsplit:
        raise UsageError(
            f"{file_name_in_errors} has no array {', '.join(lacking)} (it has: "
            f"{join_first_names_on_one_line(array_names) or 'nothing'}); it must hold "
            f"{', '.join(REQUIRED)}, or x and y."
        )
    known_names = [*REQUIRED, *OPTIONAL, "client"]
    if lacking:
        known_names = [*UNSPLIT, "x_public", "y_public"]
    return [key for key in (*known_names, "about") if key in array_names]


# ------------------------------------------------------------------------------------------- memory
def make_dataset_from_arrays(
    arrays_by_name: ArraysByName, name: str = "own", kind: SampleKind | Literal[""] = ""
) -> Dataset:
    """Make a Dataset from arrays by name.

    The names are x_train, y_train, x_test and y_test; x_public, y_public and client_train (the
    client of each training sample) may be added. Samples that nobody has split are given as x, y and
    client. Then `split` ("train" or "test" for each sample) may say how to split them, or `group`:
    samples of the same group stay on the same side.

    The arrays may be NumPy arrays, torch tensors, pandas Series and DataFrames, or lists. They are
    copied, checked and scaled like those of an `.npz` file.

    kind: "recordings" or "images", where the shape alone would mislead

    Raises UsageError.

    >>> x = np.arange(24.0).reshape(6, 4)
    >>> y = np.arange(6) % 2
    >>> arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    >>> make_dataset_from_arrays({**arrays, "client_train": list("aabbbc")}).client_names
    ('a', 'b', 'c')
    """
    names = (*REQUIRED, *OPTIONAL, *UNSPLIT)
    arrays = {}
    for key, value in arrays_by_name.items():
        if value is not None:
            arrays[check_allowed_name("array", key, names)] = value
    is_unsplit = "x" in arrays and "y" in arrays
    lacking = [key for key in REQUIRED if key not in arrays]
    if lacking and not is_unsplit:
        raise UsageError(
            f"The arrays lack {', '.join(lacking)}; give {', '.join(REQUIRED)} (and "
            f"{', '.join(OPTIONAL)}), or x and y."
        )
    if any(is_frame_with_texts_dates_or_gaps(arrays.get(key)) for key in ("x", "x_train")):
        dataset = make_dataset_from_frames(arrays, name)
    else:
        raw = {key: copy_to_numpy_array(key, value) for key, value in arrays.items()}
        dataset = build_dataset_from_raw_arrays(
            raw, name, "", "", kind, list_column_names_if_x_is_frame(arrays)
        )
    return replace(dataset, digest=hash_dataset_content(dataset))


def make_dataset_from_data_frame(table: DataFrame, options: FileOptions) -> Dataset:
    """Make the Dataset of a DataFrame, one sample a row; the options are those of a table's file.
    Raises UsageError."""
    raw = files.make_raw_table_from_data_frame(table, "the DataFrame")
    checked_options = files.check_and_convert_file_options_to_texts(options)
    dataset = tables.make_dataset_from_raw_table(
        raw, checked_options, "", "the DataFrame", dataset_name="own"
    )
    return replace(dataset, digest=hash_dataset_content(dataset))


def list_column_names_if_x_is_frame(arrays_by_name: ArraysByName) -> list[str]:
    """List the column names of x if it is a DataFrame; an empty list otherwise."""
    x = arrays_by_name.get("x_train", arrays_by_name.get("x"))
    if not hasattr(x, "columns"):
        return []
    return [str(name) for name in x.columns]


def is_frame_with_texts_dates_or_gaps(samples: ArrayLike | None) -> bool:
    """Whether the samples are a DataFrame in which not every cell is a number: some are texts,
    dates or empty."""
    import pandas

    if not isinstance(samples, pandas.DataFrame):
        return False
    types = pandas.api.types
    for dtype in samples.dtypes:
        if not types.is_numeric_dtype(dtype) or types.is_complex_dtype(dtype):
            return True
    return bool(samples.isna().any(axis=None))


def make_dataset_from_frames(
    frames_by_name: Mapping[str, DataFrame | ArrayLike], dataset_name: str
) -> Dataset:
    """Make a Dataset from DataFrames with texts, dates or gaps, by the same rules as for a table's
    file (`tables.py`)."""
    import pandas

    if "x_public" in frames_by_name:
        raise UsageError(
            "x is a DataFrame with texts, dates or gaps, so that x_public cannot be given; leave "
            "it out."
        )
    if "x" in frames_by_name and "x_train" not in frames_by_name:
        table = join_samples_and_labels_into_table(frames_by_name, "")
    else:
        train = join_samples_and_labels_into_table(frames_by_name, "_train").assign(
            **{SPLIT_COLUMN: "train"}
        )
        test = join_samples_and_labels_into_table(frames_by_name, "_test").assign(
            **{SPLIT_COLUMN: "test"}
        )
        table = pandas.concat([train, test], ignore_index=True)
    options = {"label": LABEL_COLUMN, "client": ""}
    if CLIENT_COLUMN in table:
        options["client"] = CLIENT_COLUMN
    if SPLIT_COLUMN in table:
        options["split"] = SPLIT_COLUMN
    if GROUP_COLUMN in table:
        options["group"] = GROUP_COLUMN
    return tables.make_dataset_from_raw_table(
        files.make_raw_table_from_data_frame(table, "x"), options, "", dataset_name
    )


def join_samples_and_labels_into_table(
    frames_by_name: Mapping[str, DataFrame | ArrayLike], part_suffix: Literal["", "_train", "_test"]
) -> DataFrame:
    """Join the samples `x{suffix}`, their labels, clients, splits and groups into one table.
    Raises UsageError."""
    import pandas

    frame = frames_by_name[f"x{part_suffix}"]
    if not isinstance(frame, pandas.DataFrame):
        raise UsageError(
            f"x{part_suffix} is a {type(frame).__name__}, but x_train is a DataFrame; give DataFrames "
            "alone."
        )
    columns = {LABEL_COLUMN: frames_by_name[f"y{part_suffix}"]}
    if f"client{part_suffix}" in frames_by_name:
        columns[CLIENT_COLUMN] = frames_by_name[f"client{part_suffix}"]
    if "split" in frames_by_name and not part_suffix:
        columns[SPLIT_COLUMN] = frames_by_name["split"]
    if "group" in frames_by_name:
        columns[GROUP_COLUMN] = frames_by_name["group"]
    frame = frame.reset_index(drop=True)
    for column, values in columns.items():
        cells_of_column = pandas.Series(list(values))
        if len(cells_of_column) != len(frame):
            raise UsageError(
                f"x{part_suffix} has {len(frame)} rows, but {column} has {len(cells_of_column)}; make them "
                "alike."
            )
        frame = frame.assign(**{column: cells_of_column})
    return frame


def copy_to_numpy_array(array_name_in_errors: str, array_like: ArrayLike) -> np.ndarray:
    """Copy an array, a tensor, a Series, a DataFrame or a list into an array. Raises UsageError if it
    has gaps."""
    import pandas

    try:
        if hasattr(array_like, "detach"):
            array_like = convert_tensor_to_numpy_array(array_like)
        if isinstance(array_like, np.ma.MaskedArray) and np.ma.getmaskarray(array_like).any():
            count = int(np.ma.getmaskarray(array_like).sum())
            raise UsageError(
                f"{array_name_in_errors} has {count} masked values; fill or drop them."
            )
        if hasattr(array_like, "toarray"):  # a sparse matrix of SciPy
            array_like = array_like.toarray()
        if isinstance(array_like, pandas.DataFrame):
            has_samples = array_name_in_errors.startswith("x")
            array_like = array_like.to_numpy(dtype=float if has_samples else None)
        column_types = pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray
        if isinstance(array_like, column_types):
            return convert_series_to_numpy_array(array_name_in_errors, pandas.Series(array_like))
        array = np.array(array_like)
        if array.dtype.kind == "O" and array.ndim == 1 and not array_name_in_errors.startswith("x"):
            return convert_series_to_numpy_array(array_name_in_errors, pandas.Series(array))
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
            f"The array {array_name_in_errors} cannot be used: {shorten_error_text(error)}; give arrays, tensors or "
            "lists of numbers."
        ) from None


def convert_tensor_to_numpy_array(tensor: torch.Tensor) -> np.ndarray:
    """Convert a tensor to an array; a number type that NumPy lacks (bfloat16) becomes float32."""
    tensor = tensor.detach().cpu()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    try:
        return tensor.numpy()
    except TypeError:
        return tensor.float().numpy()


def convert_series_to_numpy_array(array_name_in_errors: str, values: Series) -> np.ndarray:
    """Convert a column of pandas, or of Python objects, to an array of numbers or texts. Raises
    UsageError for a gap."""
    import pandas

    count = int(values.isna().sum())
    if count:
        raise UsageError(
            f"{array_name_in_errors} has {count} missing values; drop those samples, or fill them in."
        )
    types = pandas.api.types
    if types.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=bool)
    if types.is_float_dtype(values.dtype):
        return values.to_numpy(dtype=float)
    if types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.int64)
    if types.is_datetime64_any_dtype(values.dtype):
        raise UsageError(
            f"{array_name_in_errors} holds dates, but it must hold labels; give whole numbers or names."
        )
    items = values.tolist()
    has_categories = isinstance(values.dtype, pandas.CategoricalDtype)
    if not has_categories and all(is_integer_not_bool(item) for item in items):
        return np.array(items, dtype=np.int64)
    return np.array([cells.convert_cell_to_text_or_none(item) or "" for item in items], dtype=str)


def is_integer_not_bool(value: object) -> bool:
    """Whether a value is an int of Python or NumPy and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def hash_dataset_content(dataset: Dataset) -> str:
    """Compute a digest of the tensors and of the names of classes and clients."""
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
def build_dataset_from_raw_arrays(
    raw_arrays: NumpyArraysByName,
    dataset_name: str,
    content_digest: str,
    note_to_append: str = "",
    kind: SampleKind | Literal[""] = "",
    feature_names: Sequence[str] = (),
) -> Dataset:
    """Check and scale arrays by name, and make their Dataset.

    kind: as in `make_dataset_from_arrays`
    feature_names: one for each column of x; ignored if there are more or fewer

    Raises UsageError.
    """
    if "y_public" in raw_arrays and "x_public" not in raw_arrays:
        raise UsageError("The data has y_public but no x_public; add the samples, too.")
    if kind not in ("", RECORDINGS, IMAGES):
        raise UsageError(f"kind is {kind!r}, but it must be {RECORDINGS} or {IMAGES}.")
    raw_arrays, labels_note = name_classes_if_labels_begin_with_one(raw_arrays)
    raw_arrays, label_names = encode_labels_if_texts(raw_arrays)
    raw_arrays, split_note = split_into_training_and_test_arrays(raw_arrays)
    y: NumpyArraysByName = {}
    for key, array in raw_arrays.items():
        if key.startswith("y_"):
            y[key] = convert_labels_to_integers(key, array)
    check_each_sample_has_label(raw_arrays, y)
    classes = count_classes_and_check_labels_of_parts(y)
    class_names = label_names or tuple(map(str, range(classes)))
    x: NumpyArraysByName = {}
    for key, array in raw_arrays.items():
        if key.startswith("x_"):
            x[key] = arrange_sample_axes(key, array, kind)
    check_parts_have_same_sample_shape(x)
    names_fit = len(feature_names) == x["x_train"].shape[1]
    x, schema, scale_note = scale_samples(x, feature_names if names_fit else ())
    notes = [
        scale_note,
        describe_doubt_between_pictures_and_recordings_if_any(raw_arrays["x_train"], x["x_train"]),
        labels_note,
        describe_classes_without_training_samples_if_any(y["y_train"], class_names),
        split_note,
        note_to_append,
    ]
    client_names: tuple[str, ...] = ()
    if "client_train" in raw_arrays:
        y["client_train"], client_names = encode_client_ids(
            raw_arrays["client_train"], len(y["y_train"])
        )
    if "client_test" in raw_arrays:
        test_ids = raw_arrays["client_test"]
        if set(test_ids) == set(raw_arrays["client_train"]):
            y["client_test"], _ = encode_client_ids(test_ids, len(y["y_test"]))
    schema = replace(schema, class_names=class_names, client_names=client_names)
    note = "".join(notes)
    return make_dataset_from_checked_arrays(
        dataset_name, content_digest, {**x, **y}, class_names, note, client_names, schema
    )


def check_each_sample_has_label(
    raw_arrays: Mapping[str, np.ndarray], labels_by_array_name: Mapping[str, np.ndarray]
) -> None:
    """Raises UsageError unless each part has as many samples as labels."""
    for key, labels in labels_by_array_name.items():
        part = f"x_{key.removeprefix('y_')}"
        if raw_arrays[part].shape[:1] != labels.shape:
            raise UsageError(
                f"{part} has shape {raw_arrays[part].shape} but {key} has {len(labels)} labels; each "
                "sample needs one label."
            )


def check_parts_have_same_sample_shape(samples_by_array_name: Mapping[str, np.ndarray]) -> None:
    """Raises UsageError unless the samples of all parts have one shape."""
    shape = samples_by_array_name["x_train"].shape[1:]
    for key, samples in samples_by_array_name.items():
        if samples.shape[1:] != shape:
            raise UsageError(
                f"{key} has samples of shape {samples.shape[1:]}, but those of x_train have "
                f"{shape}; make them alike."
            )


def describe_classes_without_training_samples_if_any(
    y_train: LabelArray, class_names: Sequence[str]
) -> SentenceOrEmpty:
    """Name in a sentence the classes without training samples; "" if every class has some."""
    present = set(y_train.tolist())
    absent = [name for label, name in enumerate(class_names) if label not in present]
    if not absent:
        return ""
    ellipsis = " …" if len(absent) > SHOWN_LABELS else ""
    return f" No training sample has the label {', '.join(absent[:SHOWN_LABELS])}{ellipsis}."


def describe_doubt_between_pictures_and_recordings_if_any(
    raw_samples: SampleArray, arranged_samples: SampleArray
) -> SentenceOrEmpty:
    """A sentence for samples whose shape is ambiguous: images at least twice as long as wide may be
    recordings. "" for all others."""
    if (
        raw_samples.ndim == 3
        and arranged_samples.ndim == 4
        and max(raw_samples.shape[1:]) >= 2 * min(raw_samples.shape[1:])
    ):
        height, width = arranged_samples.shape[2:]
        return (
            f" Samples are taken as grey pictures of {height}x{width} pixels; kind=recordings "
            "takes them as recordings."
        )
    return ""


class ArraysAndNote(NamedTuple):
    """Arrays of a data set after a step of the reading.

    arrays: by name
    note: a sentence on what was done with them, "" for nothing
    """

    arrays: NumpyArraysByName
    note: str


def name_classes_if_labels_begin_with_one(raw_arrays: NumpyArraysByName) -> ArraysAndNote:
    """Turn labels 1..C into class names, so that there is no empty class 0; leave all other labels
    as they are."""
    keys = [key for key in raw_arrays if is_label_array_name(key)]
    numbers = []
    for key in keys:
        array = raw_arrays[key]
        if array.ndim != 1 or array.dtype.kind not in "iuf" or not array.size:
            return ArraysAndNote(raw_arrays, "")
        numbers.append(array)
    if not numbers:
        return ArraysAndNote(raw_arrays, "")
    values = np.unique(np.concatenate(numbers))
    classes = len(values)
    if classes < 2 or not np.array_equal(values, np.arange(1, classes + 1)):
        return ArraysAndNote(raw_arrays, "")
    texts = {key: raw_arrays[key].astype(np.int64).astype(str) for key in keys}
    return ArraysAndNote(raw_arrays | texts, f" The labels are 1..{classes}: class 1 is the first.")


def is_label_array_name(array_name: str) -> bool:
    """Whether an array of that name holds labels: y, y_train, y_test or y_public."""
    return array_name == "y" or array_name.startswith("y_")


class ArraysAndClassNames(NamedTuple):
    """Arrays whose labels are numbers, and the names of the classes; () if they have none."""

    arrays: NumpyArraysByName
    class_names: tuple[str, ...]


def encode_labels_if_texts(raw_arrays: NumpyArraysByName) -> ArraysAndClassNames:
    """Replace labels that are texts by numbers, and return the class names; () if the labels are
    numbers already."""
    keys = [key for key in raw_arrays if is_label_array_name(key)]
    if not all(raw_arrays[key].dtype.kind == "U" for key in keys):
        return ArraysAndClassNames(raw_arrays, ())
    keys = [key for key in keys if raw_arrays[key].ndim == 1]
    if not keys:
        return ArraysAndClassNames(raw_arrays, ())
    codes, class_names = tables.number_distinct_texts(
        np.concatenate([raw_arrays[key] for key in keys]).tolist()
    )
    ends = np.cumsum([len(raw_arrays[key]) for key in keys])[:-1]
    numbers = dict(zip(keys, np.split(codes, ends), strict=True))
    return ArraysAndClassNames(raw_arrays | numbers, class_names)


def split_into_training_and_test_arrays(raw_arrays: NumpyArraysByName) -> ArraysAndNote:
    """Split `x`, `y` and `client` into training and test samples."""
    parts = {key: array for key, array in raw_arrays.items() if key not in UNSPLIT}
    if "x_train" in raw_arrays:
        for key in ("split", "group"):
            if key in raw_arrays:
                raise UsageError(
                    f"{key} cannot be given with x_train and x_test, which are split; leave it out."
                )
        if "client" in raw_arrays and "client_train" not in raw_arrays:
            parts["client_train"] = raw_arrays["client"]
        return ArraysAndNote(parts, "")
    y = convert_labels_to_integers("y", raw_arrays["y"])
    if raw_arrays["x"].shape[:1] != y.shape:
        raise UsageError(
            f"x has shape {raw_arrays['x'].shape} but y has {len(y)} labels; each needs one."
        )
    for key in ("split", "group"):
        if key in raw_arrays and raw_arrays[key].shape != y.shape:
            raise UsageError(
                f"{key} has shape {raw_arrays[key].shape}, but it must be [{len(y)}], one for each sample."
            )
    test, note = choose_test_samples(raw_arrays, y)
    for key in ("x", "y", "client"):
        if key in raw_arrays:
            parts[f"{key}_train"] = raw_arrays[key][~test]
            parts[f"{key}_test"] = raw_arrays[key][test]
    return ArraysAndNote(parts, f" {note}")


def choose_test_samples(
    raw_arrays: Mapping[str, np.ndarray], labels: LabelArray
) -> tables.TestMaskAndNote:
    """Choose the test samples of unsplit arrays: as `split` says, or whole groups, or at random."""
    owner = None
    if "client" in raw_arrays:
        owner, _ = encode_client_ids(raw_arrays["client"], len(labels))
    group = raw_arrays.get("group")
    if "split" in raw_arrays:
        import pandas

        split_words = pandas.Series(raw_arrays["split"].astype(str))
        test, note = tables.parse_split_column(split_words, "split", "the arrays")
        if group is not None and set(group[test].tolist()) & set(group[~test].tolist()):
            raise UsageError(
                "A group has training and test samples in split; correct it, or leave out group."
            )
        return tables.TestMaskAndNote(test, note)
    if group is not None:
        _, group_numbers = np.unique(group, return_inverse=True)
        test = tables.draw_test_rows_in_whole_groups(labels, group_numbers, owner)
        note = "Whole groups of samples, about a fifth, are for testing."
        return tables.TestMaskAndNote(test, note)
    test = tables.draw_fifth_of_rows_for_test(labels, owner)
    note = "A fifth of the samples, drawn at random in each class, is for testing."
    return tables.TestMaskAndNote(test, note)


def convert_labels_to_integers(array_name_in_errors: str, labels: np.ndarray) -> LabelArray:
    """Convert labels to int64 [N]; UsageError if they are not whole numbers from 0."""
    allowed = (
        f"labels must be whole numbers 0..C-1 with at most {MAX_CLASSES} classes; number the "
        "classes from 0"
    )
    if labels.ndim != 1:
        raise UsageError(
            f"{array_name_in_errors} has shape {labels.shape}, but it must be [N], one whole number a sample (not "
            "one-hot rows)."
        )
    if len(labels) == 0:
        raise UsageError(f"{array_name_in_errors} is empty; it must have at least one label.")
    if labels.dtype.kind not in "biuf":
        raise UsageError(f"{array_name_in_errors} holds {labels.dtype}, but {allowed}.")
    # A nan fails both comparisons.
    is_label = (labels >= 0) & (labels < MAX_CLASSES) & (labels == np.floor(labels))
    wrong = labels[~is_label]
    if len(wrong):
        raise UsageError(f"{array_name_in_errors} holds the label {wrong[0]:g}, but {allowed}.")
    return labels.astype(np.int64)


def count_classes_and_check_labels_of_parts(labels_by_array_name: NumpyArraysByName) -> int:
    """Count the classes, which is the greatest training label + 1. No label of another part may be
    greater."""
    classes = int(labels_by_array_name["y_train"].max()) + 1
    if classes < 2:
        raise UsageError(
            "y_train holds only the label 0, but there must be at least two classes, numbered "
            "0..C-1."
        )
    for key, labels in labels_by_array_name.items():
        if labels.max() >= classes:
            raise UsageError(
                f"{key} holds the label {labels.max()}, but the greatest label of y_train is "
                f"{classes - 1}; every class must occur in the training set."
            )
    return classes


def arrange_sample_axes(
    array_name_in_errors: str, samples: np.ndarray, kind: SampleKind | Literal[""] = ""
) -> SampleArray:
    """Arrange samples as [N, C, H, W], [N, C, T] or [N, D]; the numbers stay as they are.

    kind: "recordings" or "images", where the shape alone would mislead

    Raises UsageError for any other shape, and for numbers that are not finite.
    """
    if samples.dtype.kind not in "biuf":
        raise UsageError(
            f"{array_name_in_errors} holds {samples.dtype}, but samples must be uint8 or float numbers."
        )
    if samples.size == 0:
        advice = "leave it out" if array_name_in_errors == "x_public" else "it must have samples"
        raise UsageError(f"{array_name_in_errors} is empty (shape {samples.shape}); {advice}.")
    if samples.dtype.kind == "f" and not np.isfinite(samples).all():
        is_finite = np.isfinite(samples.reshape(len(samples), -1)).all(axis=1)
        first_bad = int(np.flatnonzero(~is_finite)[0])
        raise UsageError(
            f"{array_name_in_errors} holds NaN or infinity (first in sample {first_bad}); replace or drop such samples."
        )
    if samples.ndim == 2:
        return samples
    if samples.ndim == 3:
        if kind == RECORDINGS or (kind != IMAGES and looks_like_recordings(samples)):
            return put_recording_channels_first(samples)
        samples = samples[:, None]
    elif samples.ndim == 4 and samples.shape[3] in (1, 3) and samples.shape[1] >= SMALLEST_IMAGE:
        samples = np.moveaxis(samples, 3, 1)
    if (
        samples.ndim != 4
        or samples.shape[1] not in (1, 3)
        or min(samples.shape[2:]) < SMALLEST_IMAGE
    ):
        raise UsageError(
            f"{array_name_in_errors} has shape {samples.shape}, but it must be images [N, H, W], "
            f"[N, H, W, C] or [N, C, H, W] with C = 1 or 3 and H, W at least {SMALLEST_IMAGE}, "
            "recordings [N, C, T] with C below 8, or feature rows [N, D]."
        )
    return samples


def looks_like_recordings(samples: SampleArray) -> bool:
    """Whether one axis of the samples [N, A, B] is too short for an image and the other one long."""
    shortest = min(samples.shape[1:])
    longest = max(samples.shape[1:])
    return shortest < SMALLEST_IMAGE <= longest / 2


def put_recording_channels_first(recordings: SampleArray) -> SampleArray:
    """Arrange recordings as [N, C, T]. They come as [N, C, T] or [N, T, C], with fewer channels than
    steps."""
    if recordings.shape[1] < recordings.shape[2]:
        return recordings
    return np.moveaxis(recordings, 2, 1)


class ScaledSamples(NamedTuple):
    """Samples in the form that networks read.

    arrays: float32, by name
    schema: scales new samples in the same way (its class names are still missing)
    note: a sentence on what was done
    """

    arrays: NumpyArraysByName
    schema: InputSchema
    note: str


def scale_samples(
    samples_by_array_name: NumpyArraysByName, feature_names: Sequence[str] = ()
) -> ScaledSamples:
    """Scale features and recordings by the training set's mean and standard deviation, images by
    their range.

    samples_by_array_name: `x_train` and others, [N, D], [N, C, T] or [N, C, H, W], in their own numbers
    feature_names: the columns' names
    """
    train = samples_by_array_name["x_train"]
    if train.ndim == 4:
        return scale_images(samples_by_array_name)
    shape = tuple(train.shape[1:])
    is_table = train.ndim == 2
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = measure_mean_and_deviation_per_channel(train.astype(np.float64))
        mean = mean.ravel()
        std = std.ravel()
        is_constant = ~(std > 1e-12 * np.maximum(1, np.abs(mean)))  # a constant column becomes 0
    if not np.isfinite(std).all():
        raise UsageError(
            "The features are too large to standardise in 32-bit numbers; rescale their columns."
        )
    scale = np.where(is_constant, 1.0, std)
    if not feature_names:
        unit_name = "feature" if is_table else "channel"
        feature_names = [f"{unit_name} {index}" for index in range(1, shape[0] + 1)]
    columns = []
    for index, name in enumerate(feature_names):
        column = ColumnSchema(name, NUMBER, mean=float(mean[index]), scale=float(scale[index]))
        columns.append(column)
    kind: SampleKind = FEATURES if is_table else RECORDINGS
    schema = InputSchema(kind, shape, (), columns=tuple(columns))
    ready = {
        key: schema.standardise_by_training_mean_and_scale(value)
        for key, value in samples_by_array_name.items()
    }
    subject = "Features are" if is_table else "Each channel is"
    note = f"{subject} standardised by the training set's mean and standard deviation."
    return ScaledSamples(ready, schema, note)


def scale_images(images_by_array_name: NumpyArraysByName) -> ScaledSamples:
    """Scale images [N, C, H, W] by the range of their pixels."""
    shape = tuple(images_by_array_name["x_train"].shape[1:])
    mode: ColourMode = "L" if shape[0] == 1 else "RGB"
    pixels = check_number_types_and_find_pixel_scale(images_by_array_name)
    ready = {key: pixels.scale_to_0_to_1(value) for key, value in images_by_array_name.items()}
    schema = InputSchema(IMAGES, shape, (), pixels=replace(pixels, mode=mode))
    return ScaledSamples(ready, schema, pixels.describe_scaling())


def check_number_types_and_find_pixel_scale(images_by_array_name: NumpyArraysByName) -> PixelScale:
    """Choose the range that the pixels of all parts lie in.

    Raises UsageError for parts of different number types.
    """
    if len({value.dtype for value in images_by_array_name.values()}) > 1:
        kinds = ", ".join(f"{key} {value.dtype}" for key, value in images_by_array_name.items())
        raise UsageError(
            f"The images have different number types ({kinds}), and so may their scales; save one "
            "type."
        )
    return find_pixel_scale(images_by_array_name, "x_train")


def measure_mean_and_deviation_per_channel(samples: SampleArray) -> MeanAndDeviation:
    """Measure the mean and the standard deviation of each column of rows [N, D], as [1, D], or of
    each channel of recordings [N, C, T], as [1, C, 1]. The same to the last bit on every
    machine."""
    if samples.ndim == 2:
        rows = samples
        shape: SampleShape = (1, -1)
    else:
        rows = np.moveaxis(samples, 1, 2).reshape(-1, samples.shape[1])
        shape = (1, -1, 1)
    mean = sum_rows_in_fixed_order(rows) / len(rows)
    difference = rows - mean
    std = np.sqrt(sum_rows_in_fixed_order(difference * difference) / len(rows))
    return MeanAndDeviation(mean.reshape(shape), std.reshape(shape))


def join_first_names_on_one_line(names: Sequence[str]) -> str:
    """Join the first SHOWN_NAMES names from a file, which may hold anything, on one line."""
    shown_names = [" ".join(name.split())[:80] for name in names[:SHOWN_NAMES]]
    if len(names) > SHOWN_NAMES:
        shown_names.append("…")
    return ", ".join(shown_names)


# ------------------------------------------------------------------------------------------ clients
def encode_client_ids(client_ids: np.ndarray, sample_count: int) -> tables.CodesAndNames:
    """The client 0..M-1 of each sample, and the M names, from ids [N] (whole numbers or texts) in
    their sorted order. Raises UsageError.

    >>> encode_client_ids(np.array(["north", "south", "north"]), 3).names
    ('north', 'south')
    """
    if client_ids.shape != (sample_count,):
        raise UsageError(
            f"client_train has shape {client_ids.shape}, but it must be "
            f"[{sample_count}], one client id a training sample."
        )
    if client_ids.dtype.kind == "O" and all(isinstance(name, str) for name in client_ids):
        client_ids = client_ids.astype(str)
    if client_ids.dtype.kind not in "biuUS":
        raise UsageError(
            f"client_train holds {client_ids.dtype}, but client ids must be whole numbers or texts."
        )
    distinct, client = np.unique(client_ids, return_inverse=True)
    if client_ids.dtype.kind == "S":
        names = [name.decode(errors="replace") for name in distinct.tolist()]
    else:
        names = [str(name) for name in distinct.tolist()]
    return tables.CodesAndNames(client.astype(np.int64), tuple(names))


def convert_index_lists_to_client_of_sample(
    index_lists: SampleIndexListPerClient, sample_count: int
) -> ClientOfSample:
    """int64 [N], the client of each of N samples (-1: nobody), from M lists of indices. Each list
    must hold one index or more, all of them in 0..N-1, and no index may occur twice. Raises
    UsageError.

    >>> convert_index_lists_to_client_of_sample([[0, 3], [1]], 4)
    array([ 0,  1, -1,  0])
    """
    if isinstance(index_lists, str) or not isinstance(index_lists, Iterable):
        raise UsageError(
            f"indices is a {type(index_lists).__name__}, but it must be a list of one index list a "
            "client."
        )
    owner = np.full(sample_count, -1, dtype=np.int64)
    lists = list(index_lists)
    if not lists:
        raise UsageError("indices is empty; give one list of sample indices for each client.")
    for k, indices_of_client in enumerate(lists):
        rows = convert_and_check_sample_indices_of_client(k, indices_of_client, sample_count)
        values, counts = np.unique(rows, return_counts=True)
        is_taken = (counts > 1) | (owner[values] >= 0)
        if is_taken.any():
            raise UsageError(
                f"Client {k} has the index {values[is_taken][0]} that is already given; a sample "
                "has one client."
            )
        owner[rows] = k
    return owner


def convert_and_check_sample_indices_of_client(
    client_index_in_errors: int,
    sample_indices: Sequence[int] | np.ndarray | torch.Tensor,
    sample_count: int,
) -> IndexArray:
    """int [n] of a client's list of indices, all in 0..sample_count-1. Raises UsageError."""
    if hasattr(sample_indices, "detach"):
        sample_indices = sample_indices.detach().cpu()
    rows = np.asarray(sample_indices)
    if rows.ndim != 1 or len(rows) == 0:
        raise UsageError(
            f"The index list of client {client_index_in_errors} must be one row [n] of at least one sample index."
        )
    if rows.dtype.kind not in "iu":
        raise UsageError(
            f"The indices of client {client_index_in_errors} are {rows.dtype}, but they must be whole numbers."
        )
    wrong = rows[(rows < 0) | (rows >= sample_count)]
    if len(wrong):
        raise UsageError(
            f"Client {client_index_in_errors} has the index {wrong[0]}, but the training samples are "
            f"0..{sample_count - 1}."
        )
    return rows
