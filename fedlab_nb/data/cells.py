"""Convert the cells of any table to texts, so that equal values are equal texts whatever their
source.

Text files give texts; spreadsheets, Parquet files and DataFrames give numbers, dates and truth
values. All become texts here, and an empty cell becomes None. So a class is called `1` whether it
came from a file or from memory. Columns that hold numbers already stay as they are.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data.input_types import CellValue, FrameDictsOrArray
from fedlab_nb.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Texts that mean "no value" in every column, in small letters: only programs write them.
NO_VALUE = ("", "nan", "nat", "<na>", "#n/a", "#na", "?")
# Texts that mean "no value" in a column of numbers. In other columns they are ordinary words.
NO_NUMBER = (
    *NO_VALUE,
    "na",
    "n/a",
    "n.a.",
    "null",
    "none",
    "-",
    "--",
    ".",
    "unknown",
    "missing",
    "not known",
)
PLAIN_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def is_plain_number(text: str) -> bool:
    """Whether a text is a number as programs write it.

    >>> is_plain_number("-1.5e3"), is_plain_number("1,5"), is_plain_number("nan")
    (True, False, False)
    """
    return PLAIN_NUMBER.fullmatch(text) is not None


def convert_cell_to_text_or_none(cell: CellValue) -> str | None:
    """Convert a cell to text without blanks around it, or to None if it is empty.

    >>> [convert_cell_to_text_or_none(cell) for cell in (3, 2.5, True, " a ", float("nan"))]
    ['3', '2.5', 'True', 'a', None]
    """
    if isinstance(cell, str):
        return cell.strip() or None
    if cell is None:
        return None
    import pandas

    if isinstance(cell, bytes):
        return cell.decode(errors="replace").strip() or None
    if not pandas.api.types.is_scalar(cell):
        raise UsageError(
            f"A cell holds a {type(cell).__name__}, not one value; leave such columns out."
        )
    if pandas.isna(cell):
        return None
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, datetime.datetime):
        if cell.time() == datetime.time():  # midnight
            return cell.strftime("%Y-%m-%d")
        return cell.strftime("%Y-%m-%d %H:%M:%S")
    return str(cell).strip() or None


def has_numeric_dtype(column: Series) -> bool:
    """Whether a column holds numbers already: integers or floats, not truth values, not dates."""
    import pandas

    types = pandas.api.types
    return types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)


def convert_nonnumeric_columns_to_texts(table: DataFrame) -> DataFrame:
    """Convert all columns but those of numbers to texts and None (dtype object).

    Raises UsageError for complex numbers and for cells that are lists.
    """
    import pandas

    columns = {}
    for index, name in enumerate(table.columns):
        column = table.iloc[:, index]
        if pandas.api.types.is_complex_dtype(column.dtype):
            raise UsageError(f"Column {str(name)!r} holds complex numbers; give their parts.")
        if has_numeric_dtype(column):
            columns[index] = column
            continue
        if pandas.api.types.is_timedelta64_dtype(column.dtype):
            columns[index] = column.dt.total_seconds()
            continue
        try:
            texts = [convert_cell_to_text_or_none(value) for value in column]
        except UsageError:
            raise UsageError(
                f"Cells of column {str(name)!r} are lists, not one value; leave the column out."
            ) from None
        columns[index] = pandas.Series(texts, index=table.index, dtype=object)
    result = pandas.DataFrame(columns, index=table.index)
    return result.set_axis(list(table.columns), axis=1)


def convert_column_to_texts(column: Series) -> Series:
    """Convert a column to texts and None; whole numbers get no decimal point.

    pandas makes floats of whole numbers with gaps, so 1.0 is written `1`.
    """
    import pandas

    if not has_numeric_dtype(column):
        return column
    texts: list[str | None] = []
    for value in column:
        if pandas.isna(value):
            texts.append(None)
        elif float(value).is_integer() and abs(float(value)) < 2**53:
            texts.append(str(int(value)))
        else:
            texts.append(str(value.item() if isinstance(value, np.generic) else value))
    return pandas.Series(texts, index=column.index, dtype=object, name=column.name)


def replace_missing_texts_by_none(
    column: Series, lowercase_texts_for_missing: Iterable[str]
) -> Series:
    """Replace each text that means "no value" by None.

    lowercase_texts_for_missing: a number among them stands for all cells of its value (-9 also for
        -9.0)
    """
    tokens = set(lowercase_texts_for_missing)
    values = {float(token) for token in tokens if is_plain_number(token)}

    def is_missing(text: str) -> bool:
        token = text.lower()
        if token in tokens:
            return True
        return bool(values) and is_plain_number(token) and float(token) in values

    missing_texts = {text for text in column.dropna().unique() if is_missing(text)}
    if not missing_texts:
        return column
    return column.mask(column.isin(missing_texts), None)


def make_data_frame(
    raw_rows: FrameDictsOrArray, names_for_nameless_columns: list[str]
) -> DataFrame:
    """Make a DataFrame of the rows that a user gives.

    A DataFrame, a dict and a list of dicts name their columns. The columns of an array or of a list
    of rows are
    `names_for_nameless_columns`, in this order. Raises UsageError.
    """
    import pandas

    if isinstance(raw_rows, pandas.DataFrame):
        return raw_rows.reset_index(drop=True)
    if isinstance(raw_rows, pandas.Series):
        return raw_rows.to_frame().T.infer_objects().reset_index(drop=True)
    try:
        if isinstance(raw_rows, Mapping):
            if any(is_list_tuple_array_or_series(value) for value in raw_rows.values()):
                return pandas.DataFrame(dict(raw_rows))
            return pandas.DataFrame([raw_rows])
        if is_nonempty_list_of_dicts(raw_rows):
            return pandas.DataFrame(list(raw_rows))
        table = pandas.DataFrame(make_list_of_rows(raw_rows))
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UsageError(
            f"The rows cannot be read as a table ({reason}); give a DataFrame, a list of rows or a "
            "file's path."
        ) from None
    if table.shape[1] != len(names_for_nameless_columns):
        raise UsageError(
            f"A row has {table.shape[1]} values, but there are {len(names_for_nameless_columns)} columns: "
            f"{', '.join(names_for_nameless_columns)}; give one value for each, or a DataFrame with the columns' names."
        )
    return table.set_axis(names_for_nameless_columns, axis=1)


def is_list_tuple_array_or_series(value: object) -> bool:
    import pandas

    return isinstance(value, list | tuple | np.ndarray | pandas.Series)


def is_nonempty_list_of_dicts(raw_rows: FrameDictsOrArray) -> bool:
    is_filled_list = isinstance(raw_rows, list | tuple) and len(raw_rows) > 0
    return is_filled_list and all(isinstance(row, Mapping) for row in raw_rows)


def make_list_of_rows(raw_rows: FrameDictsOrArray) -> np.ndarray | list[Sequence[CellValue]]:
    """Make rows [N, D] of an array, a tensor or a list; a single row becomes a list of one row."""
    if hasattr(raw_rows, "detach"):
        raw_rows = raw_rows.detach().cpu().numpy()
    if isinstance(raw_rows, np.ndarray):
        return raw_rows[None] if raw_rows.ndim == 1 else raw_rows
    raw_rows = list(raw_rows)
    if raw_rows and not is_list_tuple_array_or_series(raw_rows[0]):
        return [raw_rows]
    return raw_rows
