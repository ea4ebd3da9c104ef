"""The columns of a table as numbers, as a federation can do it: nothing is looked up in anybody's rows.

- Numbers: minus the mean, divided by the standard deviation, both from sums that the clients send once: how many values
  a column has, their sum and the sum of their squares (`moments`). A missing value becomes the mean, 0. A column that
  never changes becomes 0.
- Texts of at most 20 different values: one column a value, 1 where it stands. The values are a list that all know.
- Longer texts: a bag of words in 256 columns, each word at the place that a hash function gives it, so that nobody has
  to agree on words (scikit-learn's HashingVectorizer).
"""

import re
from collections.abc import Sequence

import numpy as np

from fedlab_nb.errors import UsageError, demand

Texts = list[str | None]
MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", ".")
FEW, WORDS = 20, 256  # values of a text column that get a column each; columns of a bag of words
NUMBERS = 0.9  # from this share on a column holds numbers, and what is none is a slip
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def encoded(
    names: Sequence[str], columns: Sequence[Texts], train: np.ndarray, owner: np.ndarray | None, comma: bool, file: str
) -> tuple[np.ndarray, str]:
    """float32 [N, D], and a sentence on what was done.

    train: bool [N], the rows that means and lists of values are made from;   owner: int64 [N], the client of each, or
    None;   comma: whether 3,5 is a number. Raises UsageError.
    """
    parts: list[np.ndarray] = []
    kinds: dict[str, list[str]] = {"numbers": [], "values": [], "words": []}
    for name, cells in zip(names, columns, strict=True):
        values = numbers(name, cells, comma, file)
        if values is not None:
            kinds["numbers"].append(name)
            parts.append(values[:, None])
            continue
        distinct = sorted({text for text, own in zip(cells, train, strict=True) if own and text is not None})
        kinds["values" if len(distinct) <= FEW else "words"].append(name)
        parts.append(one_hot(cells, distinct) if len(distinct) <= FEW else bag_of_words(cells))
    numeric = [i for i, name in enumerate(names) if name in kinds["numbers"]]
    if numeric:
        raw = np.concatenate([parts[i] for i in numeric], axis=1)
        mean, scale = moments(raw[train], None if owner is None else owner[train])
        with np.errstate(over="ignore", invalid="ignore"):
            ready = np.nan_to_num((raw - mean) / scale, nan=0.0, posinf=np.inf, neginf=-np.inf)
        demand(
            np.isfinite(ready).all() and np.isfinite(scale).all(),
            "The features are too large to standardise in 32-bit numbers; rescale their columns.",
        )
        for i, column in zip(numeric, ready.T, strict=True):
            parts[i] = column[:, None]
    x = np.concatenate(parts, axis=1).astype(np.float32) if parts else np.zeros((len(train), 0), np.float32)
    demand(x.shape[1], f"{file} has only columns for label and clients; add the columns that a network should read.")
    return x, words(kinds, len(numeric), owner)


def words(kinds: dict[str, list[str]], numeric: int, owner: np.ndarray | None) -> str:
    """What was done, and what it costs the clients."""
    notes = []
    if numeric:
        each, back = sums_bytes(numeric)
        whose = "of its rows" if owner is not None else "of its rows, whichever rows it gets,"
        what = "columns of numbers are" if numeric > 1 else "column of numbers is"
        notes.append(
            f"{numeric} {what} standardised by sums over the clients. Each client sends count, sum and sum of squares "
            f"{whose} once ({each} bytes), and gets {back} bytes back. A run's bytes do not count these."
        )
    if kinds["values"]:
        notes.append(f"One column for each value: {', '.join(kinds['values'][:8])}.")
    if kinds["words"]:
        notes.append(f"Bags of hashed words, {WORDS} columns each: {', '.join(kinds['words'][:8])}.")
    return " ".join(notes)


def sums_bytes(columns: int) -> tuple[int, int]:
    """Bytes that a client sends and gets once, for that many columns of numbers: three sums up, mean and scale down, in
    double precision."""
    return 3 * 8 * columns, 2 * 8 * columns


def client_sums(x: np.ndarray) -> np.ndarray:
    """What one client sends: count, sum and sum of squares of each column's values, float64 [3, D]; nan: no value."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([(~np.isnan(x)).sum(axis=0).astype(np.float64), np.nansum(x, axis=0), np.nansum(x * x, axis=0)])


def moments(x: np.ndarray, owner: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scale [D] of the columns of x [N, D] (nan: no value) from the sums that the clients send.

    The scale is the standard deviation, or 1 for a column without two different values.
    """
    groups = [x] if owner is None else [x[owner == k] for k in np.unique(owner)]
    count, total, squares = np.sum([client_sums(own) for own in groups], axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares / np.maximum(count, 1) - mean * mean, 0)
        constant = variance <= 1e-12 * np.maximum(mean * mean, np.finfo(np.float64).tiny)
        return mean, np.where(constant, 1.0, np.sqrt(variance))


def numbers(name: str, cells: Texts, comma: bool, file: str) -> np.ndarray | None:
    """float64 [N], nan where there is no value; None for a column of texts. Raises UsageError where a few cells of a
    column of numbers hold something else."""
    there = [(row, text) for row, text in enumerate(cells) if text is not None]
    read = [(row, text, text.replace(",", ".") if comma else text) for row, text in there]
    wrong = [(row, text) for row, text, plain in read if not NUMBER.fullmatch(plain)]
    if wrong:
        mostly = len(there) - len(wrong) >= NUMBERS * len(there)
        row, text = wrong[0]
        demand(
            not mostly,
            f"Column {name!r} of {file} holds numbers, but {text[:40]!r} in line {row + 2}; correct that cell, or "
            "leave it empty for a missing value.",
        )
        return None
    values = np.full(len(cells), np.nan)
    for row, text, plain in read:
        values[row] = float(plain)
        if not np.isfinite(values[row]):
            raise UsageError(
                f"Column {name!r} of {file} holds {text[:40]}, which is too large for a number; correct it, or "
                "leave the cell empty."
            )
    return values


def one_hot(cells: Texts, distinct: Sequence[str]) -> np.ndarray:
    """float64 [N, values]; a row of zeros for a value that is not in the list, or none."""
    at = {text: i for i, text in enumerate(distinct)}
    out = np.zeros((len(cells), len(distinct)))
    for row, text in enumerate(cells):
        if text in at:
            out[row, at[text]] = 1.0
    return out


def bag_of_words(cells: Texts) -> np.ndarray:
    """float64 [N, WORDS]: words counted with a sign at hashed places, rows of length √WORDS, so that a number is about
    1 in size; zeros for no text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    bag = HashingVectorizer(n_features=WORDS, norm="l2", token_pattern=r"(?u)\b\w+\b")
    return np.sqrt(WORDS) * bag.transform(text or "" for text in cells).toarray()
