"""A table of one's own as a data set: a `.csv` or `.parquet` file with one sample a row and names in its first line.

    fl.run("fens", dataset="patients.csv")
    fl.run("fens", dataset="patients.csv?label=outcome&client=ward")

The label column is the one called `label`, `y` or `target`, else the last one. A column called `client`, `hospital`,
`site` or the like says who holds each row: the clients are then the data's own. `?label=…&client=…` names other columns
(`client=` none). A fifth of the rows, in each class, are test samples. Rows without a label or a client are left out.
What becomes of the other columns is `columns.py`'s matter. Every file that cannot be used gets one sentence.
"""

import csv
import io
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import numpy as np

from fedlab_nb.data import npz
from fedlab_nb.data.columns import MISSING, NUMBER, Texts, encoded
from fedlab_nb.data.dataset import Dataset, Description, digest_of
from fedlab_nb.errors import UsageError, choose, demand
from fedlab_nb.rng import numpy_rng

SUFFIXES = (".csv", ".parquet")
LABELS = ("label", "y", "target")
CLIENTS = ("client", "client_id", "hospital", "site", "clinic", "centre", "center", "institution")
OPTIONS = ("label", "client")
DELIMITERS = ",;\t|"
LEAST, TEST = 10, 5  # rows with a label; one row of so many is a test sample
FEWEST, MOST_CLASSES = 10, 100  # a label may have a tenth as many values as there are rows, between these
VERSION = 1  # raise it whenever the same file gives other numbers: it is part of the digest


class Table(NamedTuple):
    """Names of the columns; the cells of each, None where there is none; whether 3,5 is a number there."""

    names: list[str]
    columns: list[Texts]
    comma: bool = False


class Parts(NamedTuple):
    """Arrays as in an `.npz` file, the classes' names, the clients' (or none), and what was done to the data."""

    arrays: dict[str, np.ndarray]
    classes: tuple[str, ...]
    clients: tuple[str, ...]
    note: str


def is_table(path: str | Path) -> bool:
    """Whether a path, with or without options, names such a file.

    >>> is_table("a/b.CSV?label=age"), is_table("b.npz")
    (True, False)
    """
    return any(text.lower().endswith(SUFFIXES) for text in (str(path), str(path).partition("?")[0]))


def load(path: str | Path) -> Dataset:
    """Dataset of a file: rows float32 [N, D], labels, and where a column names them, clients. Raises UsageError."""
    import torch

    file, options = split(path)
    arrays, classes, clients, note = read(path)
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items()}
    x, y, x_test, y_test = (tensors[name] for name in npz.REQUIRED)
    held = tensors.get("client_train")
    return Dataset(
        file.name, x, y, x_test, y_test, None, classes, digest(file, options), note, None, held, clients
    )  # fmt: skip


def describe(path: str | Path) -> Description:
    file, options = split(path)
    arrays, classes, clients, _ = read(path)
    train, test = arrays["x_train"], arrays["x_test"]
    of = digest(file, options)
    return Description(file.name, train.shape[1:], len(classes), len(train), len(test), 0, of, False, len(clients))


def existing(path: str | Path) -> Path:
    """The path with its options, its file in full; UsageError where there is no such file."""
    file, options = split(path)
    query = urlencode(options)
    return Path(f"{file.resolve()}{'?' + query if query else ''}")


def split(path: str | Path) -> tuple[Path, dict[str, str]]:
    """The file, and its options by name."""
    text, _, query = (str(path), "", "") if Path(path).expanduser().is_file() else str(path).partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        choose("option of a table", name, OPTIONS)
    return npz.existing(text), given


def stamp(path: str | Path) -> tuple[int, int]:
    return npz.stamp(split(path)[0])


def digest(file: Path, options: Mapping[str, str]) -> str:
    return digest_of("table", VERSION, npz.digest(file), sorted(options.items()))


def read(path: str | Path) -> Parts:
    """The checked and encoded arrays of a file, remembered for as long as its size and time do not change."""
    file, options = split(path)
    return _read(file.resolve(), tuple(options.items()), npz.stamp(file))


@lru_cache(maxsize=4)
def _read(file: Path, options: tuple[tuple[str, str], ...], stamp: tuple[int, int]) -> Parts:
    table = opened(file)
    demand(
        len(table.names) > 1,
        f"{file.name} has one column, {', '.join(table.names)!r}; give a table whose columns are separated by "
        "commas; one of them is the label.",
    )
    label, client = roles(table.names, dict(options), file.name)
    own = [i for i in range(len(table.names)) if i not in (label, client)]
    demand(own, f"{file.name} has only columns for label and clients; add the columns that a network should read.")
    keep = [i for i, cell in enumerate(table.columns[label]) if cell is not None]
    note = f"The label is column {table.names[label]!r}."
    holder: Texts = []
    if client is not None:
        holder = table.columns[client]
        keep = [i for i in keep if holder[i] is not None]
    lost = len(table.columns[label]) - len(keep)
    demand(
        len(keep) >= LEAST,
        f"{file.name} has {len(keep)} rows with a label in column {table.names[label]!r}, but it needs at least "
        f"{LEAST}; add rows, or name another column.",
    )
    y, classes = labels([table.columns[label][i] for i in keep], table.names[label], file.name)
    clients: tuple[str, ...] = ()
    owner = None
    if client is not None:
        owner, clients, owners_note = owners([holder[i] for i in keep], table.names[client], file.name)
        note += owners_note
    test = drawn(y, owner)
    columns = [[table.columns[i][row] for row in keep] for i in own]
    x, columns_note = encoded([table.names[i] for i in own], columns, ~test, owner, table.comma, file.name)
    note += f" {columns_note}" + (f" {lost} rows without a label or a client are left out." if lost else "")
    arrays = {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
    if owner is not None:
        arrays["client_train"] = owner[~test]
    return Parts(arrays, classes, clients, note)


# ---------------------------------------------------------------------------------------------------------- the file
def opened(file: Path) -> Table:
    """The file's cells as text. Raises UsageError."""
    return from_parquet(file) if file.suffix.lower() == ".parquet" else from_csv(file)


def from_csv(file: Path) -> Table:
    """UTF-8, separated by one of DELIMITERS (the one that is most frequent in the first line)."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file.name} is not UTF-8 text (byte {error.start}); save it as CSV (UTF-8).") from None
    demand("\0" not in text, f"{file.name} is not text; save the table as CSV (UTF-8).")
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    csv.field_size_limit(2**24)
    try:
        read = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for row in read if any(map(str.strip, row))]
    except csv.Error as error:
        raise UsageError(f"{file.name} cannot be read as a table: {error}; save it again as CSV (UTF-8).") from None
    demand(rows, f"{file.name} is empty; give a table with the names of its columns in the first line.")
    names = named(rows[0], file.name)
    for number, row in enumerate(rows[1:], start=2):
        demand(
            len(row) == len(names),
            f"Line {number} of {file.name} has {len(row)} cells, but the first line has {len(names)} names; "
            f"correct line {number}.",
        )
    columns: list[Texts] = [[cell(row[i]) for row in rows[1:]] for i in range(len(names))]
    return Table(names, columns, comma=delimiter == ";")


def from_parquet(file: Path) -> Table:
    """Through pyarrow, where it is installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError(
            f"{file.name} needs pyarrow to be read; pip install 'fedlab-nb[parquet]', or save the table as CSV."
        ) from None
    try:
        content = parquet.read_table(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise UsageError(
            f"{file.name} cannot be read as a table: {npz.listed([str(error)])}; save it again as CSV (UTF-8)."
        ) from None
    columns: list[Texts] = []
    for name, column in zip(content.column_names, content.columns, strict=True):
        nested = pyarrow.types.is_nested(column.type)
        demand(
            not nested,
            f"Column {name!r} of {file.name} holds {str(column.type)}, but a cell must be one number or one text; "
            "leave the column out.",
        )
        columns.append([None if value is None else cell(str(value)) for value in column.to_pylist()])
    return Table(named(content.column_names, file.name), columns)


def cell(text: str) -> str | None:
    """A cell's text without blanks around it; None where it says that there is nothing."""
    text = text.strip()
    return None if text.lower() in MISSING else text


def named(header: list[str], file: str) -> list[str]:
    """The names in the first line, each once; UsageError where it holds numbers instead."""
    names = [" ".join(name.split()) or f"column {i}" for i, name in enumerate(header, start=1)]
    demand(
        not all(NUMBER.fullmatch(name) for name in names),
        f"The first line of {file} holds numbers ({', '.join(names[:5])}); put the names of the columns there.",
    )
    low = [name.lower() for name in names]
    twice = [name for name, one in zip(names, low, strict=True) if low.count(one) > 1]
    if twice:
        raise UsageError(f"{file} has two columns with the name {(twice[:1])[0]!r}; rename one of them.")
    return names


# ------------------------------------------------------------------------------------------------- labels and clients
def roles(names: list[str], options: Mapping[str, str], file: str) -> tuple[int, int | None]:
    """The places of the label's column and of the clients' (None: no such column)."""
    low = [name.lower() for name in names]

    def place(role: str) -> int:
        wanted = options[role].strip().lower()
        demand(wanted in low, f"{file} has no column {options[role]!r} for its {role}; it has {', '.join(names)}.")
        return low.index(wanted)

    client: int | None = None
    if options.get("client"):
        client = place("client")
    elif "client" not in options:
        client = next((low.index(name) for name in CLIENTS if name in low), None)
    if options.get("label"):
        label = place("label")
    else:
        usual = [low.index(name) for name in LABELS if name in low and low.index(name) != client]
        rest = [i for i in range(len(names)) if i != client]
        label = usual[0] if usual else rest[-1]
    demand(
        label != client,
        f"Column {names[label]!r} of {file} cannot be label and client; name another one, as in {file}?label=NAME.",
    )
    return label, client


def labels(cells: Texts, name: str, file: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """int64 [N], and the names of the C classes in order: of numbers their own, else the alphabet's."""
    distinct = sorted({str(cell) for cell in cells}, key=order)
    most = min(MOST_CLASSES, max(FEWEST, len(cells) // 10))
    demand(
        len(distinct) > 1,
        f"Column {name!r} of {file} has one value, {distinct[0]!r}, in all rows; name a label with two classes or "
        "more.",
    )
    demand(
        len(distinct) <= most,
        f"Column {name!r} of {file} has {len(distinct)} different values in {len(cells)} rows, but a label may have at "
        f"most {most}; name another column, as in {file}?label=NAME.",
    )
    at = {text: i for i, text in enumerate(distinct)}
    return np.array([at[str(cell)] for cell in cells], dtype=np.int64), tuple(distinct)


def order(text: str) -> tuple[int, float, str]:
    """Numbers first, by size; then texts."""
    return (0, float(text), text) if NUMBER.fullmatch(text) else (1, 0.0, text)


def owners(cells: Texts, name: str, file: str) -> tuple[np.ndarray | None, tuple[str, ...], str]:
    """int64 [N], the client of each row, and the M names; None and none where all rows are one client's."""
    distinct = sorted({str(cell) for cell in cells}, key=order)
    if len(distinct) == 1:
        return None, (), f" All rows are of one {name}, so it names no clients."
    demand(
        len(distinct) <= len(cells) // 2,
        f"Column {name!r} of {file} names {len(distinct)} clients for {len(cells)} rows, but each client needs two "
        f"rows or more; name another column, as in {file}?client=NAME, or none with {file}?client=.",
    )
    at = {text: i for i, text in enumerate(distinct)}
    owner = np.array([at[str(cell)] for cell in cells], dtype=np.int64)
    return owner, tuple(distinct), f" Its clients are column {name!r}."


def drawn(y: np.ndarray, owner: np.ndarray | None) -> np.ndarray:
    """bool [N], the test rows: one of five in each class, drawn once and for all. No client loses its last row, and at
    least one row is a test row."""
    left = np.bincount(owner) if owner is not None else np.array([len(y)])
    client = owner if owner is not None else np.zeros(len(y), dtype=np.int64)
    wanted, test = np.bincount(y) // TEST, np.zeros(len(y), dtype=bool)
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
