"""A user's own data from one `.npz` file: `x_train, y_train, x_test, y_test`, and `x_public` for unlabelled samples;
`y_public`, their labels, serve to choose settings (validation accuracy) and are shown to no method. `client_train`
names the client that holds each training sample: whole numbers or texts.

Images are [N, H, W], [N, H, W, C] or [N, C, H, W] with H and W at least 8 and C = 1 or 3; so the axis of length 1 or
3 is always the channels, and there is nothing to guess. Rows [N, D] are features. Labels are whole numbers 0..C-1.
Nothing pickled is ever read. Every file that cannot be used gets one sentence: what is wrong, what is allowed, what
to do. No torch until the arrays are right.
"""

import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedlab_nb.data.dataset import Dataset, Description, file_digest
from fedlab_nb.data.own_clients import factorised
from fedlab_nb.errors import UsageError, demand

REQUIRED = ("x_train", "y_train", "x_test", "y_test")
OPTIONAL = ("x_public", "y_public", "client_train")
SMALLEST, MAX_CLASSES = 8, 1000


def load(path: str | Path) -> Dataset:
    """Dataset of a file. uint8 images are divided by 255; others are used as they are if they lie in [0, 1], and
    otherwise scaled by the training set's least and greatest value (and clipped). Features are standardised by the
    training set's mean and standard deviation. The dataset's note says which. Raises UsageError.
    """
    path = existing(path)
    return read(path).dataset(path.name, digest(path))


def describe(path: str | Path) -> Description:
    path = existing(path)
    arrays, classes, _, names = read(path)
    train, test, public = (len(arrays.get(f"x_{part}", ())) for part in ("train", "test", "public"))
    shape, labelled = arrays["x_train"].shape[1:], "y_public" in arrays
    return Description(path.name, shape, classes, train, test, public, digest(path), labelled, len(names))


def existing(path: str | Path) -> Path:
    path = Path(path).expanduser()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"The data file {str(path)!r} {what}; give the path of an .npz, .csv or .parquet file.")
    return path


def digest(path: Path) -> str:
    """SHA-256 of the file, remembered for as long as its size and time do not change."""
    return _digest(path.resolve(), *stamp(path))


def stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=32)
def _digest(path: Path, time: int, size: int) -> str:
    return file_digest(path)


class Checked(NamedTuple):
    """Arrays that fit together, x float32 [N, C, H, W] or [N, D], y and client_train int64 [N]; C; a note; M names."""

    arrays: dict[str, np.ndarray]
    classes: int
    note: str
    client_names: tuple[str, ...]

    def dataset(self, name: str, digest: str) -> Dataset:
        import torch

        tensors: dict[str, Any] = {key: torch.from_numpy(value) for key, value in self.arrays.items()}
        x, y, x_test, y_test = (tensors[key] for key in REQUIRED)
        public, public_labels, clients = (tensors.get(key) for key in OPTIONAL)
        classes = tuple(str(c) for c in range(self.classes))
        return Dataset(
            name, x, y, x_test, y_test, public, classes, digest, self.note, public_labels, clients, self.client_names
        )


def read(path: Path) -> Checked:
    """The checked and scaled arrays of a file."""
    raw, ignored = open_arrays(path)
    return checked(raw, f" Ignored in the file: {listed(ignored)}." if ignored else "")


def checked(raw: dict[str, np.ndarray], more: str = "") -> Checked:
    """The checked and scaled arrays of a file or of a person's own. more: goes to the note. Raises UsageError."""
    demand(
        "x_public" in raw or "y_public" not in raw,
        "The file has y_public but no x_public; add x_public, the samples that these labels belong to.",
    )
    y = {key: labels(key, raw[key]) for key in raw if key.startswith("y_")}
    raw = raw | y
    for part in (key.removeprefix("y_") for key in y):
        shape, count = raw[f"x_{part}"].shape, len(raw[f"y_{part}"])
        demand(
            shape[:1] == (count,),
            f"x_{part} has shape {shape} but y_{part} has {count} labels; each sample needs one label.",
        )
    classes = count_classes(y)
    x = {key: samples(key, raw[key]) for key in raw if key.startswith("x_")}
    shape = x["x_train"].shape[1:]
    for key, value in x.items():
        demand(
            value.shape[1:] == shape,
            f"{key} has samples of shape {value.shape[1:]}, but those of x_train have {shape}; both must have the "
            "same shape.",
        )
    x, note = scaled(x)
    missing = sorted(set(range(classes)) - set(raw["y_train"].tolist()))
    if missing:
        dots = " …" if len(missing) > 5 else ""
        note += f" No training sample has the label {', '.join(map(str, missing[:5]))}{dots}."
    names: tuple[str, ...] = ()
    if "client_train" in raw:
        y["client_train"], names = factorised(raw["client_train"], len(y["y_train"]))
    return Checked({**x, **y}, classes, note + more, names)


def open_arrays(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays with our names, and the names of others in the file."""
    required = ", ".join(REQUIRED)
    demand(zipfile.is_zipfile(path), f"{path.name} is not an .npz file; write it with numpy.savez(path, {required}).")
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [key for key in REQUIRED if key not in file.files]
            here = listed(file.files) or "nothing"
            demand(
                not missing,
                f"{path.name} has no array {', '.join(missing)} (it has: {here}); it must hold {required} and may hold "
                "x_public, y_public and client_train.",
            )
            wanted = [key for key in (*REQUIRED, *OPTIONAL) if key in file.files]
            arrays = {}
            for key in wanted:
                try:
                    arrays[key] = file[key]
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    raise UsageError(
                        f"{key} in {path.name} is an array of Python objects, which is not loaded, because it may "
                        "run code; save it as an array of numbers in which all samples have the same shape."
                    ) from None
            return arrays, [key for key in file.files if key not in wanted]
    except MemoryError:
        raise UsageError(f"{path.name} does not fit into memory; save fewer samples in it.") from None
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{path.name} is damaged and cannot be read ({listed([str(error)])}); write it again."
        ) from None


def labels(key: str, y: np.ndarray) -> np.ndarray:
    """int64 [N], or UsageError."""
    demand(
        y.ndim == 1,
        f"{key} has shape {y.shape}, but it must be [N], one whole number for each sample (not one-hot rows).",
    )
    demand(len(y), f"{key} is empty; it must have at least one label.")
    demand(
        y.dtype.kind in "biuf", f"{key} holds {y.dtype}, but labels must be whole numbers 0..C-1; number the classes."
    )
    broken = y[~(np.isfinite(y) & (y == np.floor(y)))]
    if len(broken):
        raise UsageError(f"{key} holds the label {broken[0]:g}, but labels must be whole numbers 0..C-1.")
    low, high = int(y.min()), int(y.max())
    demand(
        low >= 0, f"{key} holds the label {low}, but labels must be whole numbers 0..C-1; number the classes from 0."
    )
    demand(
        high < MAX_CLASSES,
        f"{key} holds the label {high}, but labels must be 0..C-1 with at most {MAX_CLASSES} classes; number the "
        "classes from 0 without gaps.",
    )
    return y.astype(np.int64)


def count_classes(y: dict[str, np.ndarray]) -> int:
    """C = greatest training label + 1; no other labels of `y` may be greater."""
    classes = int(y["y_train"].max()) + 1
    demand(classes >= 2, "y_train holds only the label 0, but there must be at least two classes, numbered 0..C-1.")
    for key, own in y.items():
        demand(
            own.max() < classes,
            f"{key} holds the label {own.max()}, but the greatest label of y_train is {classes - 1}; every class "
            "must occur in the training set.",
        )
    return classes


def samples(key: str, x: np.ndarray) -> np.ndarray:
    """[N, C, H, W] or [N, D] in the file's own numbers, or UsageError."""
    demand(x.dtype.kind in "biuf", f"{key} holds {x.dtype}, but samples must be uint8 or float numbers.")
    demand(x.size or key == "x_public", f"{key} is empty (shape {x.shape}); it must have samples.")
    demand(x.size, f"{key} is empty (shape {x.shape}); leave it out.")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        first = int(np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))[0])
        raise UsageError(f"{key} holds NaN or infinity (first in sample {first}); replace or drop such samples.")
    if x.ndim == 2:
        return x
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4 and x.shape[3] in (1, 3) and x.shape[1] >= SMALLEST:
        x = np.moveaxis(x, 3, 1)
    images = x.ndim == 4 and x.shape[1] in (1, 3) and min(x.shape[2:]) >= SMALLEST
    demand(
        images,
        f"{key} has shape {x.shape}, but it must be images [N, H, W], [N, H, W, C] or [N, C, H, W] with C = 1 or "
        f"3 and H, W at least {SMALLEST}, or feature rows [N, D].",
    )
    return x


def scaled(x: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], str]:
    """float32 arrays, and a sentence on what was done."""
    train = x["x_train"]
    if train.ndim == 2:
        wide = {key: value.astype(np.float64) for key, value in x.items()}
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = wide["x_train"].mean(axis=0), wide["x_train"].std(axis=0)
            scale = np.where(std > 1e-12 * np.maximum(1, np.abs(mean)), std, 1.0)  # a constant column becomes 0
            result = {key: ((value - mean) / scale).astype(np.float32) for key, value in wide.items()}
        finite = np.isfinite(std).all() and all(np.isfinite(value).all() for value in result.values())
        demand(finite, "The features are too large to standardise in 32-bit numbers; rescale their columns.")
        return result, "Features are standardised by the training set's mean and standard deviation."
    kinds = ", ".join(f"{key} {value.dtype}" for key, value in x.items())
    demand(
        len({value.dtype for value in x.values()}) == 1,
        f"The images have different number types ({kinds}), so their scales may differ; save all of them with the "
        "same type.",
    )
    if train.dtype == np.uint8:
        # the division in float32, array by array, so that a large file needs no 64-bit copy
        result = {key: value.astype(np.float32) / np.float32(255) for key, value in x.items()}
        return result, "Pixels are divided by 255."
    low, high = float(train.min()), float(train.max())
    if 0 <= min(float(v.min()) for v in x.values()) and max(float(v.max()) for v in x.values()) <= 1:
        result = {key: np.ascontiguousarray(value, dtype=np.float32) for key, value in x.items()}
        return result, "Pixels are used as they are."
    span = high - low if high > low else 1.0
    result = {key: np.clip((v.astype(np.float64) - low) / span, 0, 1).astype(np.float32) for key, v in x.items()}
    return result, f"Pixels are scaled by the training set's range {low:g} to {high:g}."


def listed(texts: list[str]) -> str:
    """Names from a file, which may hold anything, on one line."""
    return ", ".join(" ".join(text.split())[:80] for text in texts[:10]) + (", …" if len(texts) > 10 else "")
