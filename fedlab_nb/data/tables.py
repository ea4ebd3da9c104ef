"""A table of one's own as a data set: a `.csv` or `.parquet` file with one sample a row and names in its first line.

    fl.run("fens", dataset="patients.csv")
    fl.run("fens", dataset="patients.csv?label=outcome&client=ward")

The label column is the one called `label`, `y` or `target`, else the last one. A column called `client`, `hospital`,
`site` or the like says who holds each row: the clients are then the data's own. `?label=…&client=…` names other columns
(`client=` none). A fifth of the rows, in each class, are test samples. Rows without a label or a client are left out.
Every file that cannot be used gets one sentence. pandas reads the file: every cell as text, so that a class keeps its
name as it is written.

The other columns become numbers as a federation can do it: nothing is looked up in anybody's rows.

- Numbers: minus the mean, divided by the standard deviation, both from sums that the clients send once: how many values
  a column has, their sum and the sum of their squares (`moments`). A missing value becomes the mean, 0. A column that
  never changes becomes 0.
- Texts of at most 20 different values: one column a value, 1 where it stands. The values are a list that all know.
- Longer texts: a bag of words in 256 columns, each word at the place that a hash function gives it, so that nobody has
  to agree on words (scikit-learn's HashingVectorizer).
- Words that are different in every row are names of the rows, such as a patient's number, and are left out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data.dataset import Dataset, of_arrays, one_line
from fedlab_nb.data.sums import sum_in_fixed_order
from fedlab_nb.errors import UsageError, demand
from fedlab_nb.rng import numpy_rng

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SUFFIXES = (".csv", ".parquet")
LABELS = ("label", "y", "target")
CLIENTS = ("client", "client_id", "hospital", "site", "clinic", "centre", "center", "institution")
OPTIONS = ("label", "client")
DELIMITERS = ",;\t|"  # 3,5 is a number where the semicolon separates
MISSING = (
    "",
    "na",
    "n/a",
    "n.a.",
    "nan",
    "null",
    "none",
    "?",
    "-",
    ".",
    "unknown",
    "missing",
    "not known",
)
LEAST, TEST = 10, 5  # rows with a label; one row of so many is a test sample
FEWEST, MOST_CLASSES = (
    10,
    100,
)  # a label may have a tenth as many values as there are rows, between these
FEW, WORDS = 20, 256  # values of a text column that get a column each; columns of a bag of words
NUMBERS = 0.9  # from this share on a column holds numbers, and what is none is a slip
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
VERSION = 2  # raise it whenever the same file gives other numbers: it is part of the digest


def is_table(path: str | Path) -> bool:
    """Whether a path, with or without options, names such a file.

    >>> is_table("a/b.CSV?label=age"), is_table("b.npz")
    (True, False)
    """
    return any(text.lower().endswith(SUFFIXES) for text in (str(path), str(path).partition("?")[0]))


def load(
    path: Path,
    options: Mapping[str, str],
    digest: str,
    split: Callable | None = None,
    name: str = "",
) -> Dataset:
    """The Dataset of a file, called as it or `name`. `split(y, owner)` says which rows are for testing (`drawn`)."""
    file, (table, comma) = path.name, opened(path)
    names = list(table.columns)
    demand(
        len(names) > 1,
        f"{file} has one column, {names[0]!r}; give a table with commas, one column is the label.",
    )
    label, client = roles(names, options, file)
    features = table.drop(columns=[name for name in (label, client) if name])
    demand(
        features.shape[1],
        f"{file} has only columns for label and clients; add columns for a network to read.",
    )
    keep = table[label].notna() & (table[client].notna() if client else True)
    count, lost = int(keep.sum()), int((~keep).sum())
    enough = f"it needs at least {LEAST}; add rows, or name another column"
    demand(
        count >= LEAST, f"{file} has {count} rows with a label in column {label!r}, but {enough}."
    )
    y, classes = coded(table[label][keep])
    most = min(MOST_CLASSES, max(FEWEST, count // 10))
    other = f"name another column, as in {file}?label=NAME"
    demand(
        len(classes) > 1,
        f"Column {label!r} of {file} has one value, {classes[0]!r}, in all rows; {other}.",
    )
    values = f"{len(classes)} different values in {count} rows, but a label may have at most {most}"
    demand(len(classes) <= most, f"Column {label!r} of {file} has {values}; {other}.")
    owner, clients, clients_note = (
        owners(table[client][keep], client, file) if client else (None, (), "")
    )
    note = f"The label is column {label!r}.{clients_note}"
    test = (split or drawn)(y, owner)
    x, columns_note = encoded(features[keep], ~test, owner, comma, file)
    note += f" {columns_note}" + (
        f" {lost} rows without a label or a client are left out." if lost else ""
    )
    parts = {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
    if owner is not None:
        there, parts["client_train"] = np.unique(owner[~test], return_inverse=True)
        if np.array_equal(there, np.unique(owner[test])):
            parts["client_test"] = np.searchsorted(there, owner[test])
        clients = tuple(clients[k] for k in there)
    return of_arrays(name or file, digest, parts, classes, note, clients)


# ---------------------------------------------------------------------------------------------------------- the file
def opened(path: Path) -> tuple[DataFrame, bool]:
    """The cells as text without blanks around them, None where there is none; the index says in which line they stand.
    And whether 3,5 is a number there. Raises UsageError."""
    import pandas

    file, comma = path.name, False
    try:
        if path.suffix.lower() == ".parquet":
            table = pandas.read_parquet(
                path, engine="pyarrow", dtype_backend="numpy_nullable"
            ).astype(object)
            nested = [
                name
                for name in table
                if any(not pandas.api.types.is_scalar(cell) for cell in table[name])
            ]
            demand(
                not nested,
                f"Cells of {', '.join(nested)} in {file} are lists, not one value; leave them out.",
            )
            table = table.map(lambda cell: None if pandas.isna(cell) else str(cell))
        else:
            text = path.read_bytes().decode("utf-8-sig")
            demand("\0" not in text, f"{file} is not text; save the table as CSV (UTF-8).")
            first = text.lstrip("\r\n").partition("\n")[0]
            delimiter = max(DELIMITERS, key=first.count)
            as_text = {
                "header": None,
                "dtype": object,
                "keep_default_na": False,
                "engine": "python",
            }
            table, comma = (
                pandas.read_csv(io.StringIO(text, newline=""), sep=delimiter, **as_text),
                delimiter == ";",
            )
            for row in table.index[table.isna().any(axis=1)]:
                raise UsageError(f"Line {row + 1} of {file} has too few cells; correct it.")
            table = table.set_axis([str(name) for name in table.iloc[0]], axis=1).iloc[1:]
    except ImportError:
        how = "pip install 'fedlab-nb[parquet]', or save the table as CSV"
        raise UsageError(f"{file} needs pyarrow to be read; {how}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file} is not UTF-8 text (byte {error.start}); save it as CSV (UTF-8)."
        ) from None
    except pandas.errors.EmptyDataError:
        raise UsageError(
            f"{file} is empty; give a table with the names of its columns in the first line."
        ) from None
    except UsageError:
        raise
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{file} cannot be read as a table: {one_line(error)}; save it as CSV (UTF-8)."
        ) from None
    table = table.set_axis(named(list(table.columns), file), axis=1).apply(
        lambda column: column.str.strip()
    )
    table = table.mask(table.apply(lambda column: column.str.lower().isin(MISSING)), None)
    return table.dropna(how="all"), comma


def named(header: list[str], file: str) -> list[str]:
    """The names in the first line, each once; UsageError where it holds numbers instead."""
    names = [" ".join(name.split()) or f"column {i}" for i, name in enumerate(header, start=1)]
    numbers = all(re.fullmatch(NUMBER, name) for name in names)
    demand(
        not numbers,
        f"The first line of {file} holds numbers ({', '.join(names[:5])}); put the names there.",
    )
    low = [name.lower() for name in names]
    twice = [name for name in names if low.count(name.lower()) > 1]
    demand(
        not twice,
        f"{file} has two columns with the name {(twice or names)[0]!r}; rename one of them.",
    )
    return names


# ------------------------------------------------------------------------------------------------- labels and clients
def roles(names: list[str], options: Mapping[str, str], file: str) -> tuple[str, str | None]:
    """The names of the label's column and of the clients' (None: no such column)."""
    by_low = {name.lower(): name for name in names}

    def wanted(role: str) -> str:
        column = options[role].strip().lower()
        here = ", ".join(names)
        demand(
            column in by_low,
            f"{file} has no column {options[role]!r} for its {role}; it has {here}.",
        )
        return by_low[column]

    client: str | None = None
    if options.get("client"):
        client = wanted("client")
    elif "client" not in options:
        client = next((by_low[name] for name in CLIENTS if name in by_low), None)
    if options.get("label"):
        label = wanted("label")
    else:
        others = [name for name in names if name != client]
        label = next((by_low[name] for name in LABELS if by_low.get(name) in others), others[-1])
    what = f"cannot be label and client; name another one, as in {file}?label=NAME"
    demand(label != client, f"Column {label!r} of {file} {what}.")
    return label, client


def coded(cells: Iterable[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """int64 [N], the place of each text among the distinct ones; these, the numbers first by size, then the alphabet.

    >>> coded(["b", "10", "a", "9"])
    (array([3, 1, 2, 0]), ('9', '10', 'a', 'b'))
    """
    cells = list(cells)
    distinct = sorted(
        set(cells), key=lambda text: (0, float(text), text) if is_number(text) else (1, 0.0, text)
    )
    place = {text: i for i, text in enumerate(distinct)}
    return np.array([place[text] for text in cells], dtype=np.int64), tuple(distinct)


def is_number(text: str) -> bool:
    return re.fullmatch(NUMBER, text) is not None


def owners(cells: Series, name: str, file: str) -> tuple[np.ndarray | None, tuple[str, ...], str]:
    """int64 [N], the client of each row, the M names, and a note; None and none where all rows are one client's."""
    owner, distinct = coded(cells)
    if len(distinct) == 1:
        return None, (), f" All rows are of one {name}, so it names no clients."
    enough, many = (
        len(distinct) <= len(cells) // 2,
        f"names {len(distinct)} clients for {len(cells)} rows",
    )
    other = "but each needs two; name another column with ?client=NAME, or none with ?client="
    demand(enough, f"Column {name!r} of {file} {many}, {other}.")
    return owner, distinct, f" Its clients are column {name!r}."


def drawn(y: np.ndarray, owner: np.ndarray | None) -> np.ndarray:
    """bool [N], the test rows: one of five in each class, drawn once and for all. No client loses its last row, and at
    least one row is a test row."""
    client = owner if owner is not None else np.zeros(len(y), dtype=np.int64)
    left, wanted, test = np.bincount(client), np.bincount(y) // TEST, np.zeros(len(y), dtype=bool)
    order = numpy_rng(0, "test rows").permutation(len(y))
    for row in order:
        if wanted[y[row]] and left[client[row]] > 1:
            test[row] = True
            wanted[y[row]] -= 1
            left[client[row]] -= 1
    if not test.any():  # no class has five rows: one row of the largest class that can spare one
        spare = [row for row in order if left[client[row]] > 1]
        test[max(spare, key=lambda row: np.bincount(y)[y[row]])] = True
    return test


# --------------------------------------------------------------------------------------------------------- features
def encoded(
    features: DataFrame, train: np.ndarray, owner: np.ndarray | None, comma: bool, file: str
) -> tuple[np.ndarray, str]:
    """float32 [N, D], and a sentence on what was done.

    train: bool [N], the rows that means and lists of values are made from;   owner: int64 [N], the client of each, or
    None;   comma: whether 3,5 is a number. Raises UsageError.
    """
    parts: dict[str, np.ndarray] = {}
    kinds: dict[str, list[str]] = {"numbers": [], "values": [], "words": [], "names": []}
    for name, cells in features.items():
        values = numbers(cells, comma, file)
        distinct = sorted(cells[train].dropna().unique()) if values is None else []
        if values is not None:
            kind, parts[name] = "numbers", values
        elif len(distinct) <= FEW:
            kind, parts[name] = "values", one_hot(cells, distinct)
        elif cells.is_unique and not cells.str.contains(r"\s", na=True).any():
            kind = "names"
        else:
            kind, parts[name] = "words", bag_of_words(cells)
        kinds[kind].append(name)
    if numeric := kinds["numbers"]:
        ready = standardised(np.stack([parts[name] for name in numeric], axis=1), train, owner)
        parts |= {name: column[:, None] for name, column in zip(numeric, ready.T, strict=True)}
    columns = [*parts.values()] or [np.zeros((len(features), 0))]
    x = np.concatenate(columns, axis=1).astype(np.float32)
    demand(
        x.shape[1],
        f"{file} has only columns for label and clients; add columns for a network to read.",
    )
    notes = []
    if numeric:
        each, back = sums_bytes(len(numeric))
        whose = "of its rows" if owner is not None else "of its rows, whichever rows it gets,"
        what = "columns of numbers are" if len(numeric) > 1 else "column of numbers is"
        notes.append(
            f"{len(numeric)} {what} standardised by sums over the clients. Each client sends count, sum and "
            f"sum of squares {whose} once ({each} bytes), and gets {back} bytes back. A run's bytes do not count these."
        )
    if kinds["values"]:
        notes.append(f"One column for each value: {', '.join(kinds['values'][:8])}.")
    if kinds["words"]:
        notes.append(
            f"Bags of hashed words, {WORDS} columns each: {', '.join(kinds['words'][:8])}."
        )
    if kinds["names"]:
        notes.append(
            f"Left out, since every row has a value of its own: {', '.join(kinds['names'][:8])}."
        )
    return x, " ".join(notes)


def numbers(cells: Series, comma: bool, file: str) -> np.ndarray | None:
    """float64 [N], nan where there is no value; None for a column of texts. Raises UsageError where a few cells of a
    column of numbers hold something else."""
    there = cells.dropna()
    plain = there.str.replace(",", ".") if comma else there
    good = plain.str.fullmatch(NUMBER).astype(bool)
    wrong = there[~good] if good.mean() >= NUMBERS else there[:0]
    for line, text in wrong.items():
        what = f"but {text[:40]!r} in line {line + 1}; correct that cell, or leave it empty for a missing value"
        raise UsageError(f"Column {cells.name!r} of {file} holds numbers, {what}.")
    if not good.all():
        return None
    values = plain.astype(float)
    for text in there[~np.isfinite(values)]:
        raise UsageError(
            f"Column {cells.name!r} of {file} holds {text[:40]}, too large for a number; correct it."
        )
    return values.reindex(cells.index).to_numpy(dtype=float)


def sums_bytes(columns: int) -> tuple[int, int]:
    """Bytes that a client sends and gets once, for that many columns of numbers: three sums up, mean and scale down, in
    double precision."""
    return 3 * 8 * columns, 2 * 8 * columns


def client_sums(x: np.ndarray) -> np.ndarray:
    """What one client sends: count, sum and sum of squares of each column's values, float64 [3, D]; nan: no value."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack(
            [
                (~np.isnan(x)).sum(axis=0).astype(np.float64),
                sum_in_fixed_order(np.where(np.isnan(x), 0.0, x)),
                sum_in_fixed_order(np.where(np.isnan(x), 0.0, x * x)),
            ]
        )


def moments(x: np.ndarray, owner: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scale [D] of the columns of x [N, D] (nan: no value) from the sums that the clients send.

    The scale is the standard deviation, or 1 for a column without two different values.
    """
    groups = [x] if owner is None else [x[owner == k] for k in np.unique(owner)]
    count, total, squares = sum_in_fixed_order(np.stack([client_sums(own) for own in groups]))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares / np.maximum(count, 1) - mean * mean, 0)
        constant = variance <= 1e-12 * np.maximum(mean * mean, np.finfo(np.float64).tiny)
        return mean, np.where(constant, 1.0, np.sqrt(variance))


def standardised(x: np.ndarray, train: np.ndarray, owner: np.ndarray | None) -> np.ndarray:
    """x [N, D] minus the mean, divided by the scale, of the training rows; 0 for no value. Raises UsageError."""
    mean, scale = moments(x[train], None if owner is None else owner[train])
    with np.errstate(over="ignore", invalid="ignore"):
        ready = np.nan_to_num((x - mean) / scale, nan=0.0, posinf=np.inf, neginf=-np.inf)
    finite = np.isfinite(ready).all() and np.isfinite(scale).all()
    demand(
        finite,
        "The features are too large to standardise in 32-bit numbers; rescale their columns.",
    )
    return ready


def one_hot(cells: Sequence[str | None], distinct: Sequence[str]) -> np.ndarray:
    """float64 [N, values]; a row of zeros for a value that is not in the list, or none."""
    return (np.array(cells, dtype=object)[:, None] == np.array(distinct, dtype=object)).astype(
        float
    )


def bag_of_words(cells: Iterable[str | None]) -> np.ndarray:
    """float64 [N, WORDS]: words counted with a sign at hashed places, rows of length √WORDS, so that a number is about
    1 in size; zeros for no text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    bag = HashingVectorizer(n_features=WORDS, norm=None, token_pattern=r"(?u)\b\w+\b")
    texts = (text if isinstance(text, str) else "" for text in cells)
    counts = bag.transform(texts).toarray()
    # squares of whole numbers: their sum is exact in any order
    length = np.sqrt((counts * counts).sum(axis=1, keepdims=True))
    return np.sqrt(WORDS) * (counts / np.where(length > 0, length, 1.0))
