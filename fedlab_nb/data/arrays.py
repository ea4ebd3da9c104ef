"""A person's own data, from memory, from one `.npz` file, or from a table (`tables.py`): `x_train,
y_train, x_test, y_test`, and `x_public` for unlabelled samples; `y_public`, their labels, serve to
choose settings (validation accuracy) and are shown to no method. `client_train` names the client
that holds each training sample: whole numbers or texts. `x, y` are enough: a fifth of the samples,
drawn in each class, is then for testing, and `client` says whose each is.

Images are [N, H, W], [N, H, W, C] or [N, C, H, W] with H and W at least 8 and C = 1 or 3; so the
axis of length 1 or 3 is always the channels, and there is nothing to guess. Recordings are [N, T,
C] or [N, C, T] with T at least 16 and C
below 8: the shorter axis is the channels. Rows [N, D] are features. Labels are whole numbers
0..C-1, or the names of the classes. Nothing pickled is ever read. Every file that cannot be used
gets one sentence: what is wrong, what is allowed, what to do.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data import cells, files, folders, tables
from fedlab_nb.data.columns import NUMBER, Column
from fedlab_nb.data.dataset import OPTIONAL, REQUIRED, Dataset, digest_of, of_arrays, one_line
from fedlab_nb.data.pictures import PixelScale, choose_scale
from fedlab_nb.data.schema import FEATURES, IMAGES, RECORDINGS, InputSchema
from fedlab_nb.data.sums import sum_in_fixed_order
from fedlab_nb.errors import UsageError, choose, demand

if TYPE_CHECKING:
    import torch

SMALLEST, MAX_CLASSES = 8, 1000
MOST_ABOUT = 300  # characters that a file says of itself
WHOLE = ("x", "y", "client", "split", "group")  # a data set that nobody has split into arrays


# ------------------------------------------------------------------------------------------- a file
def load(path: str | Path) -> Dataset:
    """Dataset of a file or a folder: a table (`tables.py`), pictures (`folders.py`), or arrays.
    Images are scaled by what they hold (`pictures.py`), features standardised by the training set's
    mean and standard deviation. The dataset's note says which. Raises UsageError.
    """
    file, options = locate(path)
    if file.is_dir():
        return folders.load(file, options, folders.content_digest(file, options))
    if files.is_table(file):
        parts = "table", tables.VERSION, digest(file), sorted(options.items())
        return tables.load(file, options, digest_of(*parts))
    if files.ending_of(file) == ".npy":
        return load_npy(file, options)
    raw, ignored = open_arrays(file)
    about = read_about(raw.pop("about", None))
    note = f" Ignored in the file: {listed(ignored)}." if ignored else ""
    dataset = checked(raw, file.name, file_digest(file, options), note, options.get("kind", ""))
    return replace(dataset, about=about)


def read_about(array: np.ndarray | None) -> str:
    """What a file says of itself: a single text, on one line of MOST_ABOUT characters at most, or ""."""
    if array is None or array.shape != () or array.dtype.kind != "U":
        return ""
    return " ".join(str(array).split())[:MOST_ABOUT]


def file_digest(file: Path, options: Mapping[str, str]) -> str:
    """An id of a file's content, and of the options where there are any."""
    return digest_of("arrays", digest(file), sorted(options.items())) if options else digest(file)


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
        made = checked(raw, file.name, "", "", options.get("kind", ""))
        return replace(
            made, digest=digest_of(digest(file), digest(labels_file), sorted(options.items()))
        )
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
    parts = "npy", tables.VERSION, digest(file), sorted(options.items())
    return tables.from_table(
        files.from_frame(table, file.name), options, digest_of(*parts), file.name
    )


def open_npy(file: Path) -> np.ndarray:
    """The array of an `.npy` file. Raises UsageError."""
    try:
        return np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        if "pickle" in str(error):
            raise UsageError(
                f"{file.name} has an array of Python objects, which is not loaded, since it may "
                f"run code; save an array "
                f"of numbers or texts."
            ) from None
        raise UsageError(
            f"{file.name} is damaged and cannot be read ({one_line(error)}); write it again."
        ) from None


ARRAY_OPTIONS = ("kind",)
NPY_OPTIONS = ("kind", "y", *files.OPTIONS)


def locate(path: str | Path) -> tuple[Path, dict[str, str]]:
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
    ending = files.ending_of(file)
    if ending == ".npy":
        return file, files.check_options(options, NPY_OPTIONS, "an array")
    if ending != ".npz":
        raise UsageError(
            f"{file.name} cannot be read, for its ending is {ending!r}; give the path of "
            f"{files.ENDINGS}."
        )
    return file, files.check_options(options, ARRAY_OPTIONS, "arrays")


def stamp(path: str | Path) -> tuple[Path, int, int]:
    """The path of a file in full, with its options, its time and its size: while they stay, it is
    not read again. Raises UsageError where there is no such file."""
    file, options = locate(path)
    whole = Path(files.join_options(file.resolve(), options))
    if file.is_dir():
        return whole, *folders.stamp(file)
    stat = file.stat()
    return whole, stat.st_mtime_ns, stat.st_size


def digest(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, remembered for as long as its size and time do not
    change."""
    stat = file.stat()
    return _digest(file.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _digest(file: Path, time: int, size: int) -> str:
    h = hashlib.sha256()
    with open(file, "rb") as content:
        while block := content.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def open_arrays(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays with our names, and the names of others in the file."""
    required = ", ".join(REQUIRED)
    demand(
        zipfile.is_zipfile(path),
        f"{path.name} is not an .npz file; write it with numpy.savez(path, {required}).",
    )
    try:
        with np.load(path, allow_pickle=False) as file:
            lacking = ", ".join(key for key in REQUIRED if key not in file.files)
            there, whole = listed(file.files) or "nothing", {"x", "y"} <= set(file.files)
            must = f"it must hold {required}, or x and y"
            demand(
                whole or not lacking,
                f"{path.name} has no array {lacking} (it has: {there}); {must}.",
            )
            known = (*WHOLE, *OPTIONAL[:2]) if lacking else (*REQUIRED, *OPTIONAL, "client")
            wanted = [key for key in (*known, "about") if key in file.files]
            return {key: file[key] for key in wanted}, [
                key for key in file.files if key not in wanted
            ]
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
            what = "has an array of Python objects, which is not loaded, since it may run code; save arrays of numbers"
        else:
            what = f"is damaged and cannot be read ({one_line(error)}); write it again"
        raise UsageError(f"{path.name} {what}.") from None


# ------------------------------------------------------------------------------------------- memory
def from_arrays(source: Mapping[str, Any], name: str = "own", kind: str = "") -> Dataset:
    """Dataset of x_train, y_train, x_test, y_test, and where there are any x_public, y_public,
    client_train (one client id a training sample), by name; or of x, y and client, where nobody has
    split the samples: `split` ("train" or "test" for each sample) or `group` (whose samples stay
    together) may then say how.

    numpy arrays, torch tensors, pandas Series and DataFrames or lists; scaled and checked as those
    of an `.npz` file; the Dataset has copies of its own. kind: "recordings" or "images", where the
    shape alone says the wrong thing. Raises UsageError.

    >>> x, y = np.arange(24.0).reshape(6, 4), np.arange(6) % 2
    >>> from_arrays({"x_train": x, "y_train": y, "x_test": x, "y_test": y, "client_train": list("aabbbc")}).client_names
    ('a', 'b', 'c')
    """
    names = (*REQUIRED, *OPTIONAL, *WHOLE)
    given = {
        choose("array", key, names): value for key, value in source.items() if value is not None
    }
    is_whole = {"x", "y"} <= given.keys()
    lacking = [] if is_whole else [key for key in REQUIRED if key not in given]
    if lacking:
        raise UsageError(
            f"The arrays lack {', '.join(lacking)}; give {', '.join(REQUIRED)} (and "
            f"{', '.join(OPTIONAL)}), or x and y."
        )
    if any(holds_words(value) for key, value in given.items() if key in ("x", "x_train")):
        made = from_frames(given, name)
    else:
        made = checked(
            {key: array(key, value) for key, value in given.items()},
            name,
            "",
            "",
            kind,
            column_names(given),
        )
    return replace(made, digest=content_digest(made))


def from_table(table: Any, options: Mapping[str, Any]) -> Dataset:
    """Dataset of a DataFrame, one sample a row; the options are those of a table's file. Raises
    UsageError."""
    raw = files.from_frame(table, "the DataFrame")
    made = tables.from_table(raw, files.check_options(options), "", "the DataFrame", name="own")
    return replace(made, digest=content_digest(made))


def column_names(given: Mapping[str, Any]) -> list[str]:
    """The names of the columns of x where it is a DataFrame."""
    x = given.get("x_train", given.get("x"))
    return [str(name) for name in x.columns] if hasattr(x, "columns") else []


def holds_words(value: Any) -> bool:
    """Whether samples are a DataFrame with more than plain numbers: texts, dates, gaps."""
    import pandas

    if not isinstance(value, pandas.DataFrame):
        return False
    types = pandas.api.types
    is_plain = all(
        types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind) for kind in value.dtypes
    )
    return not is_plain or bool(value.isna().any(axis=None))


def from_frames(given: Mapping[str, Any], name: str) -> Dataset:
    """The Dataset of samples in DataFrames with texts, dates or gaps: they are read as a table is
    (`tables.py`)."""
    import pandas

    if "x_public" in given:
        raise UsageError(
            "x is a DataFrame with texts, dates or gaps, so that x_public cannot be given; leave "
            "it out."
        )
    parts = (
        [("", "")]
        if "x" in given and "x_train" not in given
        else [("_train", "train"), ("_test", "test")]
    )
    frames = []
    for end, title in parts:
        frame = given[f"x{end}"]
        if not isinstance(frame, pandas.DataFrame):
            raise UsageError(
                f"x{end} is a {type(frame).__name__}, but x_train is a DataFrame; give DataFrames "
                f"alone."
            )
        frame = frame.reset_index(drop=True)
        beside = {LABEL_COLUMN: given[f"y{end}"]}
        if f"client{end}" in given:
            beside[CLIENT_COLUMN] = given[f"client{end}"]
        beside |= {
            column: given[key]
            for key, column in (("split", SPLIT_COLUMN), ("group", GROUP_COLUMN))
            if key in given
        }
        if title:
            beside[SPLIT_COLUMN] = [title] * len(frame)
        for column, values in beside.items():
            listed_values = pandas.Series(list(values))
            if len(listed_values) != len(frame):
                raise UsageError(
                    f"x{end} has {len(frame)} rows, but {column} has {len(listed_values)}; make "
                    f"them alike."
                )
            frame = frame.assign(**{column: listed_values})
        frames.append(frame)
    table = pandas.concat(frames, ignore_index=True)
    options = {"label": LABEL_COLUMN, "client": ""}
    for role, column in (
        ("client", CLIENT_COLUMN),
        ("split", SPLIT_COLUMN),
        ("group", GROUP_COLUMN),
    ):
        if column in table:
            options[role] = column
    return tables.from_table(files.from_frame(table, "x"), options, "", name)


LABEL_COLUMN, CLIENT_COLUMN, SPLIT_COLUMN, GROUP_COLUMN = (
    "y",
    "the client",
    "the split",
    "the group",
)


def array(key: str, value: Any) -> np.ndarray:
    """A copy of an array, a tensor, a Series, a DataFrame or a list. Raises UsageError for what has
    gaps."""
    import pandas

    try:
        if hasattr(value, "detach"):
            value = tensor_array(value)
        if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
            raise UsageError(
                f"{key} has {int(np.ma.getmaskarray(value).sum())} masked values; fill or drop "
                f"them."
            )
        if hasattr(value, "toarray"):  # a sparse matrix of SciPy
            value = value.toarray()
        if isinstance(value, pandas.DataFrame):
            value = value.to_numpy(dtype=float) if key.startswith("x") else value.to_numpy()
        if isinstance(value, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray):
            return series_array(key, pandas.Series(value))
        made = np.array(value)
        if made.dtype.kind == "O" and made.ndim == 1 and not key.startswith("x"):
            return series_array(key, pandas.Series(made))
        if made.dtype.kind == "S":
            made = np.char.decode(made, "utf-8")
        if made.dtype.kind == "O":
            made = made.astype(float)
        return made
    except UsageError:
        raise
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:  # ragged lists; a type that numpy does not know
        raise UsageError(
            f"The array {key} cannot be used: {one_line(error)}; give arrays, tensors or lists of "
            f"numbers."
        ) from None


def tensor_array(value: Any) -> np.ndarray:
    """A tensor as an array; what NumPy does not know (bfloat16) as float32."""
    value = value.detach().cpu()
    if value.is_sparse:
        value = value.to_dense()
    try:
        return value.numpy()
    except TypeError:
        return value.float().numpy()


def series_array(key: str, values: Any) -> np.ndarray:
    """A column of pandas, or of Python objects: numbers, or texts. Raises UsageError for a gap."""
    import pandas

    if values.isna().any():
        raise UsageError(
            f"{key} has {int(values.isna().sum())} missing values; drop those samples, or fill "
            f"them in."
        )
    kinds = pandas.api.types
    if kinds.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=bool)
    if kinds.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=float if kinds.is_float_dtype(values.dtype) else np.int64)
    if kinds.is_datetime64_any_dtype(values.dtype):
        raise UsageError(
            f"{key} holds dates, but it must hold labels; give whole numbers or names."
        )
    listed_values = values.tolist()
    is_named = isinstance(values.dtype, pandas.CategoricalDtype)
    if not is_named and all(
        isinstance(value, int | np.integer) and not isinstance(value, bool)
        for value in listed_values
    ):
        return np.array(listed_values, dtype=np.int64)
    return np.array([cells.cell_text(value) or "" for value in listed_values], dtype=str)


def content_digest(dataset: Dataset) -> str:
    """A digest of the tensors and of the names of classes and clients."""
    h = hashlib.sha256(repr((dataset.class_names, dataset.client_names)).encode())
    tested = () if dataset.client_test is None else ("client_test",)
    for name in (*REQUIRED, *OPTIONAL, *tested):
        tensor: torch.Tensor | None = getattr(dataset, name)
        h.update(
            f"{name} {None if tensor is None else (tensor.dtype, tuple(tensor.shape))}".encode()
        )
        if tensor is not None:
            h.update(np.ascontiguousarray(tensor.numpy()).data)
    return h.hexdigest()[:32]


# ------------------------------------------------------------------------------------------- checks
def checked(
    raw: dict[str, np.ndarray],
    name: str,
    digest: str,
    more: str = "",
    kind: str = "",
    columns: Sequence[str] = (),
) -> Dataset:
    """The Dataset of arrays by name, checked and scaled. more: goes to the note;   kind: as in
    `from_arrays`;
    columns: the names of the features. Raises UsageError."""
    if "y_public" in raw and "x_public" not in raw:
        raise UsageError("The data has y_public but no x_public; add the samples, too.")
    if kind not in ("", RECORDINGS, IMAGES):
        raise UsageError(f"kind is {kind!r}, but it must be {RECORDINGS} or {IMAGES}.")
    raw, begin_note = name_labels_from_one(raw)
    raw, named = numbered(raw)
    raw, split = in_two(raw)
    y = {key: labels(key, raw[key]) for key in raw if key.startswith("y_")}
    for key, own in y.items():
        part = f"x_{key.removeprefix('y_')}"
        if raw[part].shape[:1] != own.shape:
            raise UsageError(
                f"{part} has shape {raw[part].shape} but {key} has {len(own)} labels; each sample "
                f"needs one label."
            )
    classes = count_classes(y)
    x = {key: samples(key, raw[key], kind) for key in raw if key.startswith("x_")}
    shape = x["x_train"].shape[1:]
    for key, value in x.items():
        if value.shape[1:] != shape:
            raise UsageError(
                f"{key} has samples of shape {value.shape[1:]}, but those of x_train have {shape}; "
                f"make them alike."
            )
    x, schema, note = scale_samples(x, columns if len(columns) == shape[0] else ())
    note += describe_shape(raw["x_train"], x["x_train"]) + begin_note
    missing = sorted(set(range(classes)) - set(y["y_train"].tolist()))
    if missing:
        listed_labels = ", ".join(named[k] if named else str(k) for k in missing[:5])
        note += (
            f" No training sample has the label {listed_labels}{' …' if len(missing) > 5 else ''}."
        )
    names: tuple[str, ...] = ()
    if "client_train" in raw:
        y["client_train"], names = factorised(raw["client_train"], len(y["y_train"]))
    if "client_test" in raw and set(raw["client_test"]) == set(raw["client_train"]):
        y["client_test"], _ = factorised(raw["client_test"], len(y["y_test"]))
    class_names = named or tuple(map(str, range(classes)))
    schema = replace(schema, class_names=class_names, client_names=names)
    return of_arrays(name, digest, {**x, **y}, class_names, note + split + more, names, schema)


def describe_shape(raw: np.ndarray, x: np.ndarray) -> str:
    """A sentence where the shape of the samples leaves room for doubt: long pictures may be
    recordings."""
    if raw.ndim == 3 and x.ndim == 4 and max(raw.shape[1:]) >= 2 * min(raw.shape[1:]):
        height, width = x.shape[2:]
        return (
            f" Samples are taken as grey pictures of {height}x{width} pixels; "
            f"kind=recordings takes them as recordings."
        )
    return ""


def name_labels_from_one(raw: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], str]:
    """Labels 1..C as names of classes, so that there is no empty class 0, and a sentence. Others as
    they are."""
    keys = [key for key in raw if key == "y" or key.startswith("y_")]
    whole = [
        raw[key]
        for key in keys
        if raw[key].ndim == 1 and raw[key].dtype.kind in "iuf" and raw[key].size
    ]
    if len(whole) < len(keys) or not keys:
        return raw, ""
    values = np.unique(np.concatenate(whole))
    is_from_one = (
        values[0] == 1 and np.array_equal(values, np.arange(1, len(values) + 1)) and len(values) > 1
    )
    if not is_from_one:
        return raw, ""
    texts = {key: raw[key].astype(np.int64).astype(str) for key in keys}
    return raw | texts, f" The labels are 1..{len(values)}: class {values[0]:g} is the first."


def numbered(raw: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The arrays with labels as numbers, and the names of the classes; none where the labels are
    numbers already."""
    texts = [
        key
        for key in raw
        if key.split("_")[0] == "y" and raw[key].dtype.kind == "U" and raw[key].ndim == 1
    ]
    if not texts or any(raw[key].dtype.kind != "U" for key in raw if key.split("_")[0] == "y"):
        return raw, ()
    codes, classes = tables.code_texts(np.concatenate([raw[key] for key in texts]).tolist())
    ends = np.cumsum([len(raw[key]) for key in texts])[:-1]
    return raw | dict(zip(texts, np.split(codes, ends), strict=True)), classes


def in_two(raw: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], str]:
    """The arrays with `x`, `y` and `client` split into training and test samples, and a sentence on
    it."""
    rest = {key: part for key, part in raw.items() if key not in WHOLE}
    if "x_train" in raw:
        odd = [key for key in ("split", "group") if key in raw]
        if odd:
            raise UsageError(
                f"{odd[0]} cannot be given with x_train and x_test, which are split; leave it out."
            )
        if "client" in raw and "client_train" not in raw:
            rest["client_train"] = raw["client"]
        return rest, ""
    y = labels("y", raw["y"])
    if raw["x"].shape[:1] != y.shape:
        raise UsageError(f"x has shape {raw['x'].shape} but y has {len(y)} labels; each needs one.")
    for key in ("split", "group"):
        if key in raw and raw[key].shape != y.shape:
            raise UsageError(
                f"{key} has shape {raw[key].shape}, but it must be [{len(y)}], one for each sample."
            )
    owner = None
    if "client" in raw:
        owner, _ = factorised(raw["client"], len(y))
    if "split" in raw:
        import pandas

        test, note = tables.read_split(
            pandas.Series(raw["split"].astype(str)), "split", "the arrays"
        )
        if "group" in raw and set(raw["group"][test].tolist()) & set(raw["group"][~test].tolist()):
            raise UsageError(
                "A group has training and test samples in split; correct it, or leave out group."
            )
    elif "group" in raw:
        test = tables.draw_test_groups(y, np.unique(raw["group"], return_inverse=True)[1], owner)
        note = "Whole groups of samples, about a fifth, are for testing."
    else:
        test = tables.draw_test_rows(y, owner)
        note = "A fifth of the samples, drawn at random in each class, is for testing."
    made = {}
    for key in ("x", "y", "client"):
        if key in raw:
            made[f"{key}_train"] = raw[key][~test]
            made[f"{key}_test"] = raw[key][test]
    return rest | made, f" {note}"


def labels(key: str, y: np.ndarray) -> np.ndarray:
    """int64 [N], or UsageError."""
    allowed = f"labels must be whole numbers 0..C-1 with at most {MAX_CLASSES} classes; number the classes from 0"
    demand(
        y.ndim == 1,
        f"{key} has shape {y.shape}, but it must be [N], one whole number a sample (not one-hot "
        f"rows).",
    )
    demand(len(y), f"{key} is empty; it must have at least one label.")
    demand(y.dtype.kind in "biuf", f"{key} holds {y.dtype}, but {allowed}.")
    wrong = y[~((y >= 0) & (y < MAX_CLASSES) & (y == np.floor(y)))]  # nan is in no range
    if len(wrong):
        raise UsageError(f"{key} holds the label {wrong[0]:g}, but {allowed}.")
    return y.astype(np.int64)


def count_classes(y: dict[str, np.ndarray]) -> int:
    """C = greatest training label + 1; no other labels of `y` may be greater."""
    classes = int(y["y_train"].max()) + 1
    demand(
        classes >= 2,
        "y_train holds only the label 0, but there must be at least two classes, numbered 0..C-1.",
    )
    for key, own in y.items():
        most = f"the greatest label of y_train is {classes - 1}; every class must occur in the training set"
        demand(own.max() < classes, f"{key} holds the label {own.max()}, but {most}.")
    return classes


def samples(key: str, x: np.ndarray, kind: str = "") -> np.ndarray:
    """[N, C, H, W], [N, C, T] or [N, D] in the file's own numbers, or UsageError."""
    what = "leave it out" if key == "x_public" else "it must have samples"
    demand(
        x.dtype.kind in "biuf",
        f"{key} holds {x.dtype}, but samples must be uint8 or float numbers.",
    )
    demand(x.size, f"{key} is empty (shape {x.shape}); {what}.")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        first = int(np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))[0])
        raise UsageError(
            f"{key} holds NaN or infinity (first in sample {first}); replace or drop such samples."
        )
    if x.ndim == 2:
        return x
    is_long = x.ndim == 3 and min(x.shape[1:]) < SMALLEST <= max(x.shape[1:]) / 2
    if x.ndim == 3 and (kind == RECORDINGS or is_long and kind != IMAGES):
        return x if x.shape[1] < x.shape[2] else np.moveaxis(x, 2, 1)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4 and x.shape[3] in (1, 3) and x.shape[1] >= SMALLEST:
        x = np.moveaxis(x, 3, 1)
    images = x.ndim == 4 and x.shape[1] in (1, 3) and min(x.shape[2:]) >= SMALLEST
    allowed = (
        f"[N, H, W], [N, H, W, C] or [N, C, H, W] with C = 1 or 3 and H, W at least {SMALLEST}"
    )
    others = "recordings [N, C, T] with C below 8, or feature rows [N, D]"
    demand(images, f"{key} has shape {x.shape}, but it must be images {allowed}, {others}.")
    return x


def scale_samples(
    x: dict[str, np.ndarray], names: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], InputSchema, str]:
    """float32 arrays, the schema that made them so (its class names are still missing), and a
    sentence on what was done.

    x: `x_train` and others by name, [N, D], [N, C, T] or [N, C, H, W] in their own numbers;
    names: of the columns
    """
    train = x["x_train"]
    shape = tuple(train.shape[1:])
    if train.ndim == 4:
        pixels = images_scale(x)
        ready = {key: pixels.apply(value) for key, value in x.items()}
        schema = InputSchema(
            IMAGES, shape, (), pixels=replace(pixels, mode="L" if shape[0] == 1 else "RGB")
        )
        return ready, schema, pixels.describe()
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = mean_and_deviation(train.astype(np.float64))
        mean = mean.ravel()
        std = std.ravel()
        is_constant = ~(std > 1e-12 * np.maximum(1, np.abs(mean)))  # a constant column becomes 0
    if not np.isfinite(std).all():
        raise UsageError(
            "The features are too large to standardise in 32-bit numbers; rescale their columns."
        )
    scale = np.where(is_constant, 1.0, std)
    what = "feature" if train.ndim == 2 else "channel"
    columns = []
    for place in range(shape[0]):
        name = str(names[place]) if names else f"{what} {place + 1}"
        columns.append(Column(name, NUMBER, "", mean=float(mean[place]), scale=float(scale[place])))
    schema = InputSchema(
        FEATURES if train.ndim == 2 else RECORDINGS, shape, (), columns=tuple(columns)
    )
    ready = {key: schema.standardise(value) for key, value in x.items()}
    note = "Features are" if train.ndim == 2 else "Each channel is"
    return ready, schema, f"{note} standardised by the training set's mean and standard deviation."


def images_scale(x: dict[str, np.ndarray]) -> PixelScale:
    """From which range the pixels of all parts come. Raises UsageError for parts of different
    number types."""
    if len({value.dtype for value in x.values()}) > 1:
        kinds = ", ".join(f"{key} {value.dtype}" for key, value in x.items())
        raise UsageError(
            f"The images have different number types ({kinds}), and so may their scales; save one "
            f"type."
        )
    return choose_scale(x, "x_train")


def mean_and_deviation(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column of rows [N, D], as [1, D], or of each channel of recordings [N, C, T],
    as [1, C, 1]. The same to the last bit on every machine."""
    rows = x if x.ndim == 2 else np.moveaxis(x, 1, 2).reshape(-1, x.shape[1])
    mean = sum_in_fixed_order(rows) / len(rows)
    away = rows - mean
    std = np.sqrt(sum_in_fixed_order(away * away) / len(rows))
    shape = (1, -1) if x.ndim == 2 else (1, -1, 1)
    return mean.reshape(shape), std.reshape(shape)


def listed(texts: list[str]) -> str:
    """Names from a file, which may hold anything, on one line."""
    return ", ".join(" ".join(text.split())[:80] for text in texts[:10]) + (
        ", …" if len(texts) > 10 else ""
    )


# ------------------------------------------------------------------------------------------ clients
def factorised(ids: np.ndarray, samples: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """int64 [N], the client 0..M-1 of each sample, and the M names, from ids [N] (whole numbers or
    texts) in their sorted order. Raises UsageError.

    >>> factorised(np.array(["north", "south", "north"]), 3)
    (array([0, 1, 0]), ('north', 'south'))
    """
    fits = ids.shape == (samples,)
    demand(
        fits,
        f"client_train has shape {ids.shape}, but it must be [{samples}], one client id a training "
        f"sample.",
    )
    if ids.dtype.kind == "O" and all(isinstance(name, str) for name in ids):
        ids = ids.astype(str)
    demand(
        ids.dtype.kind in "biuUS",
        f"client_train holds {ids.dtype}, but client ids must be whole numbers or texts.",
    )
    names, client = np.unique(ids, return_inverse=True)
    texts = (
        name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        for name in names.tolist()
    )
    return client.astype(np.int64), tuple(texts)


def owners(indices: Any, samples: int) -> np.ndarray:
    """int64 [N], the client of each of N samples (-1: nobody), from M lists of indices. Each list
    must hold one index or more, all of them in 0..N-1, and no index may occur twice. Raises
    UsageError.

    >>> owners([[0, 3], [1]], 4)
    array([ 0,  1, -1,  0])
    """
    if isinstance(indices, str) or not isinstance(indices, Iterable):
        raise UsageError(
            f"indices is a {type(indices).__name__}, but it must be a list of one index list a "
            f"client."
        )
    owner = np.full(samples, -1, dtype=np.int64)
    lists: Sequence[Any] = list(indices)
    demand(lists, "indices is empty; give one list of sample indices for each client.")
    for k, own in enumerate(lists):
        rows = np.asarray(own.detach().cpu() if hasattr(own, "detach") else own)
        full = rows.ndim == 1 and len(rows)
        demand(
            full, f"The index list of client {k} must be one row [n] of at least one sample index."
        )
        demand(
            rows.dtype.kind in "iu",
            f"The indices of client {k} are {rows.dtype}, but they must be whole numbers.",
        )
        wrong = rows[(rows < 0) | (rows >= samples)]
        if len(wrong):
            raise UsageError(
                f"Client {k} has the index {wrong[0]}, but the training samples are "
                f"0..{samples - 1}."
            )
        values, counts = np.unique(rows, return_counts=True)
        twice = values[(counts > 1) | (owner[values] >= 0)]
        if len(twice):
            raise UsageError(
                f"Client {k} has the index {twice[0]} that is already given; a sample has one "
                f"client."
            )
        owner[rows] = k
    return owner
