"""Read a table's file as cells of text: its ending, compression, encoding, separator and header, and
the options after a `?`.

pandas reads every cell as text; `kinds.py` then finds the kinds of the columns. A file that can be
read in two ways is refused; the error says how to ask for each of them. `notes` tells the user what
was done to the file.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from fedlab_nb.data.cells import convert_nonnumeric_columns_to_texts, is_plain_number
from fedlab_nb.data.columns import ColumnKind
from fedlab_nb.data.dataset import shorten_error_text
from fedlab_nb.data.input_types import FileOptions, FileOptionTexts
from fedlab_nb.errors import UsageError, check_allowed_name
from fedlab_nb.installation import format_install_command

if TYPE_CHECKING:
    from pandas import DataFrame

TEXTS = (".csv", ".tsv", ".tab", ".txt")
SHEETS = (".xlsx", ".xlsm")
PARQUETS = (".parquet", ".pq")
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
TABLES = (*TEXTS, *SHEETS, *PARQUETS)
ENDINGS = (
    "a table (.csv, .tsv, .txt, also as .gz, .bz2, .xz or .zip; .xlsx; .parquet), arrays (.npz, "
    ".npy) or a folder of pictures"
)
SEPARATORS = "\t;|, "  # comma and blank last, since they also occur within cells
SEPARATOR_NAMES = {"tab": "\t", "semicolon": ";", "comma": ",", "pipe": "|", "space": " "}

# Options behind the ? of a table's path, or arguments of `load`. Those of KINDS name columns.
ROLES = ("label", "client", "split", "group")
KINDS: dict[str, ColumnKind] = {
    "number": "number",
    "category": "category",
    "words": "words",
    "leave_out": "left out",
}
READING = ("missing", "decimal", "case", "header", "sep", "encoding", "sheet", "dates")
OPTIONS = (*ROLES, *KINDS, *READING)
SHOWN_PARTS = 5  # most names or cells that a message lists
HEAD = 20  # lines that are searched for separators
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
GUESSED_ENCODINGS = ("cp1252", "latin-1")  # of texts that are not UTF-8


@dataclass(frozen=True)
class RawTable:
    """A table as it is in its file, before any column is interpreted.

    cells: columns of texts (None for an empty cell) or numbers; the index is the line in the file
    separator: that of a text file; "" for other files
    has_header: whether the first line has names
    notes: sentences on what was done
    """

    cells: DataFrame
    separator: str = ""
    has_header: bool = True
    notes: tuple[str, ...] = ()


class LineNumberAndCells(NamedTuple):
    """A row of a text file: its cells, and the line in which it ends."""

    line: int
    cells: list[str]


class RowsAndSeparator(NamedTuple):
    """The rows of a text, and the separator of their cells."""

    rows: list[LineNumberAndCells]
    separator: str


# -------------------------------------------------------------------------------- paths and options
def get_lowercase_file_ending(path: str | Path) -> str:
    """Return the ending of a path in lower case; for a compressed file both endings.

    >>> [get_lowercase_file_ending(path) for path in ("a/B.CSV.gz", "a.b/c.xlsx", "photos")]
    ['.csv.gz', '.xlsx', '']
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] in (*COMPRESSIONS, ".zip"):
        return suffixes[-2] + suffixes[-1]
    return suffixes[-1] if suffixes else ""


def is_path_of_table_file(path: str | Path) -> bool:
    """True if a path, with or without options, names a table's file.

    >>> is_path_of_table_file("a/b.CSV?label=age"), is_path_of_table_file("a.tsv.gz"), is_path_of_table_file("b.npz")
    (True, True, False)
    """
    text = str(path)
    return has_table_ending(text) or has_table_ending(text.partition("?")[0])


def has_table_ending(path: str) -> bool:
    """True if a path without options has the ending of a table's file, compressed or not."""
    ending = get_lowercase_file_ending(path)
    if ending == ".zip":
        return True
    if ending.count(".") > 1:  # of a compressed file: .csv.gz
        ending = ending.rpartition(".")[0]
    return ending in TABLES


class PathAndOptions(NamedTuple):
    """A path without its options, and the options by name."""

    path: str
    options: dict[str, str]


def split_path_and_options(path: str | PathLike) -> PathAndOptions:
    """Split a path into the path itself and its options by name. A plus sign stays a plus sign.

    >>> split_path_and_options("f.csv?label=HER2+&missing=NA,-9")
    PathAndOptions(path='f.csv', options={'label': 'HER2+', 'missing': 'NA,-9'})
    """
    text = str(path)
    if "?" not in text or Path(text).expanduser().exists():
        return PathAndOptions(text, {})
    name, _, query = text.partition("?")
    options: dict[str, str] = {}
    for part in query.split("&"):
        if part:
            key, _, value = part.partition("=")
            key = unquote(key).strip()
            value = unquote(value)
            if key in options:
                value = f"{options[key]},{value}"
            options[key] = value
    return PathAndOptions(name, options)


def join_path_and_options(path: str | Path, options: FileOptions) -> str:
    """Append options to a path; `split_path_and_options` splits them again."""
    parts = [f"{key}={quote(str(value), safe=' ,')}" for key, value in sorted(options.items())]
    return f"{path}?{'&'.join(parts)}" if parts else str(path)


def check_and_convert_file_options_to_texts(
    options: FileOptions,
    allowed_names: Sequence[str] = OPTIONS,
    option_owner_in_errors: str = "a table",
) -> dict[str, str]:
    """Convert options to texts; lists are joined by commas. Raises UsageError for an unknown option."""
    checked = {}
    for name, value in options.items():
        check_allowed_name(f"option of {option_owner_in_errors}", name, allowed_names)
        if value is None:
            value = ""
        if isinstance(value, list | tuple | set):
            value = ",".join(map(str, value))
        checked[name] = str(value)
    return checked


# ----------------------------------------------------------------------------------------- the file
def read_table_file(path: Path, options: FileOptionTexts) -> RawTable:
    """Read the cells of a table's file. Raises UsageError if that is not possible."""
    path = path.expanduser()
    if not path.is_file():
        raise UsageError(f"The data file {str(path)!r} does not exist; give the path of {ENDINGS}.")
    name = path.name
    ending = get_lowercase_file_ending(path)
    try:
        data = path.read_bytes()
        data, ending, name = decompress_table(data, ending, name)
        if ending in SHEETS:
            raw = read_spreadsheet(data, name, options)
            return name_columns_by_first_row_or_number(raw, name, options)
        if ending in PARQUETS:
            return read_parquet_table(data, name)
        if ending not in TEXTS:
            raise UsageError(f"{path.name} has the ending {ending!r}; give {ENDINGS}.")
        raw = read_text_table(data, name, options)
        return name_columns_by_first_row_or_number(raw, name, options)
    except UsageError:
        raise
    except ImportError as error:
        package = "openpyxl" if ending in SHEETS else "pyarrow"
        extra = "excel" if ending in SHEETS else "parquet"
        remedy = f"{format_install_command(extra)}, or save the table as CSV"
        raise UsageError(
            f"{name} needs {package} to be read ({shorten_error_text(error)}); {remedy}."
        ) from None
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
    ) as error:
        raise UsageError(
            f"{name} cannot be read as a table: {shorten_error_text(error)}; save it as CSV (UTF-8)."
        ) from None


class BytesEndingAndName(NamedTuple):
    """The uncompressed bytes of a table's file, its ending, and its name."""

    data: bytes
    ending: str
    name: str


def decompress_table(
    file_bytes: bytes, lowercase_ending: str, file_name: str
) -> BytesEndingAndName:
    """Decompress a file if needed. Raises UsageError for an archive of several files."""
    inner, _, outer = lowercase_ending.rpartition(".")
    outer = f".{outer}"
    if outer in COMPRESSIONS:
        return BytesEndingAndName(COMPRESSIONS[outer](file_bytes), inner or ".csv", file_name)
    if outer != ".zip":
        return BytesEndingAndName(file_bytes, lowercase_ending, file_name)
    with zipfile.ZipFile(io.BytesIO(file_bytes)) as archive:
        members = []
        for member in archive.namelist():
            is_folder = member.endswith("/")
            is_hidden = member.startswith("__MACOSX") or "/." in f"/{member}"
            if not is_folder and not is_hidden:
                members.append(member)
        if len(members) != 1:
            listed = ", ".join(members[:SHOWN_PARTS]) or "nothing"
            raise UsageError(
                f"{file_name} holds {len(members)} files ({listed}); pack the table alone."
            )
        content = archive.read(members[0])
        return BytesEndingAndName(
            content, get_lowercase_file_ending(members[0]), f"{members[0]} in {file_name}"
        )


def read_parquet_table(file_bytes: bytes, file_name: str) -> RawTable:
    """Read the cells of a Parquet file."""
    import pandas

    table = pandas.read_parquet(
        io.BytesIO(file_bytes), engine="pyarrow", dtype_backend="numpy_nullable"
    )
    return make_raw_table_from_data_frame(table, file_name)


def make_raw_table_from_data_frame(table: DataFrame, file_name: str) -> RawTable:
    """Make a RawTable of a DataFrame. Its index is not a column, and a plain count of the columns is
    not a header."""
    import pandas

    has_header = not isinstance(table.columns, pandas.RangeIndex)
    if isinstance(table.columns, pandas.MultiIndex):
        raise UsageError(
            f"{file_name} has columns with names of several levels; join them to one name a column."
        )
    notes: tuple[str, ...] = ()
    is_counted = isinstance(table.index, pandas.RangeIndex)
    cells = convert_nonnumeric_columns_to_texts(table.reset_index(drop=True))
    if not is_counted and table.index.name:
        notes = (f"The index {table.index.name!r} is no column; reset_index() makes it one.",)
    names = [str(column) for column in table.columns]
    if not has_header:
        names = [f"column {number}" for number in range(1, len(names) + 1)]
    cells.index = cells.index + 1
    cells = cells.set_axis(normalise_column_names_and_check_uniqueness(names, file_name), axis=1)
    return RawTable(cells.dropna(how="all"), "", has_header, notes)


def read_spreadsheet(file_bytes: bytes, file_name: str, options: FileOptionTexts) -> RawTable:
    """Read the cells of a spreadsheet, including its first line. The option `sheet` names one of
    several sheets."""
    import pandas

    sheet_name = options.get("sheet") or None
    sheets = pandas.read_excel(
        io.BytesIO(file_bytes),
        sheet_name=None,
        header=None,
        dtype=object,
        keep_default_na=False,
        na_values=[],
        engine="openpyxl",
    )
    if sheet_name is not None and sheet_name not in sheets:
        raise UsageError(f"{file_name} has no sheet {sheet_name!r}; it has {', '.join(sheets)}.")
    full = [title for title, table in sheets.items() if table.size]
    if sheet_name is None and len(full) > 1:
        raise UsageError(
            f"{file_name} has the sheets {', '.join(full)}; say which, as in {file_name}?sheet={full[0]}."
        )
    if sheet_name is None and not full:
        raise make_empty_table_error(file_name)
    table = convert_nonnumeric_columns_to_texts(sheets[sheet_name or full[0]].astype(object))
    table.index = table.index + 1
    table = table.dropna(how="all").dropna(how="all", axis=1)
    return RawTable(table.set_axis(range(table.shape[1]), axis=1))


def make_empty_table_error(file_name: str) -> UsageError:
    """Make the error for a table without rows."""
    return UsageError(
        f"{file_name} is empty; give a table with the names of its columns in the first line."
    )


def read_text_table(file_bytes: bytes, file_name: str, options: FileOptionTexts) -> RawTable:
    """Read the cells of a text file, including its first line."""
    text, notes = decode_text(file_bytes, file_name, options.get("encoding", ""))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    separator = options.get("sep", "")
    separator = SEPARATOR_NAMES.get(separator, separator)
    start = 0
    while start < len(lines) and not lines[start].strip():
        start += 1
    if start < len(lines):
        separator_line = re.fullmatch(r'"?sep=(.)"?;?', lines[start].strip(" "))  # of Excel
        if separator_line:
            separator = separator or separator_line[1]
            start += 1
    first_row = find_first_index_after_hash_comments(lines, start)
    if first_row > start and is_last_comment_line_header(lines, first_row):
        first_row -= 1
        lines[first_row] = lines[first_row].removeprefix("#")
    comments = sum(line.startswith("#") for line in lines[start:first_row])
    body = "\n".join(lines[first_row:])
    if not body.strip():
        raise make_empty_table_error(file_name)
    if comments:
        notes = (*notes, f"{comments} lines that begin with # are left out.")
    rows, separator = split_text_into_rows(body, separator, file_name, first_row)
    cells = parse_table_cells(body, separator, rows, file_name)
    return RawTable(cells, separator, True, notes)


def find_first_index_after_hash_comments(lines: Sequence[str], start_index: int) -> int:
    """Find the first line, from `start_index` on, that is neither blank nor begins with #."""
    for line_index in range(start_index, len(lines)):
        if lines[line_index].strip() and not lines[line_index].startswith("#"):
            return line_index
    return len(lines)


def parse_table_cells(
    text: str, separator: str, expected_rows: Sequence[LineNumberAndCells], file_name: str
) -> DataFrame:
    """Read the cells of a text by pandas.

    There must be as many rows as `expected_rows`, from which the index takes their lines.
    """
    import pandas

    width = max(len(row.cells) for row in expected_rows)
    table = pandas.read_csv(
        io.StringIO(strip_lines_if_separator_is_blank(text, separator)),
        sep=separator,
        header=None,
        names=list(range(width)),
        index_col=False,
        dtype=str,
        keep_default_na=False,
        na_filter=False,
        skip_blank_lines=False,
        skipinitialspace=True,
    )
    surplus = table.iloc[len(expected_rows) :]
    has_surplus_values = surplus.astype(bool).any(axis=None)
    if len(surplus) and not has_surplus_values:  # blank lines at the end
        table = table.iloc[: len(expected_rows)]
    if len(table) != len(expected_rows):
        raise UsageError(
            f"{file_name} has a quotation mark that is never closed, or a broken line; correct it."
        )
    table.index = [row.line for row in expected_rows]
    return convert_nonnumeric_columns_to_texts(table).dropna(how="all")


def is_last_comment_line_header(lines: Sequence[str], end_index: int) -> bool:
    """True if the last comment before `end_index` is the header.

    It is if it has as many separators as the next line, and at least half of that line's cells are
    numbers.
    """
    last_line = lines[end_index - 1]
    if end_index >= len(lines) or not last_line.startswith("#"):
        return False
    for separator in SEPARATORS:
        count = last_line.count(separator)
        cells = lines[end_index].split(separator)
        numbers = [cell for cell in cells if is_plain_number(cell.strip())]
        if count and count == len(cells) - 1 and len(numbers) * 2 >= len(cells):
            return True
    return False


class TextAndNotes(NamedTuple):
    """The text of a file.

    notes: a sentence where its encoding was guessed
    """

    text: str
    notes: tuple[str, ...]


def decode_text(file_bytes: bytes, file_name: str, encoding_or_empty_to_guess: str) -> TextAndNotes:
    """Decode the text of a file; an empty encoding is guessed. Raises UsageError if the bytes are
    not text."""
    notes: tuple[str, ...] = ()
    try:
        if encoding_or_empty_to_guess:
            text = file_bytes.decode(encoding_or_empty_to_guess)
        else:
            encoding = guess_encoding(file_bytes)
            text = file_bytes.decode(encoding)
            if encoding in GUESSED_ENCODINGS:
                notes = (
                    f"{file_name} is not UTF-8 and is read as Windows-1252; ?encoding= names another.",
                )
    except LookupError:
        raise UsageError(
            f"{encoding_or_empty_to_guess!r} is not an encoding; give one such as utf-8, cp1252 or shift_jis."
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file_name} is not {error.encoding} text (byte {error.start}); save it as CSV (UTF-8)."
        ) from None
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise UsageError(f"{file_name} is not text; save the table as CSV (UTF-8).")
    return TextAndNotes(text, notes)


def guess_encoding(file_bytes: bytes) -> str:
    """Guess the encoding: by a byte order mark, by the zeros of UTF-16, or by trying to decode."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if file_bytes.startswith(mark):
            return encoding
    wide_encoding = guess_utf16_encoding(file_bytes)
    if wide_encoding is not None:
        return wide_encoding
    try:
        file_bytes.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252" if may_be_cp1252(file_bytes) else "latin-1"
    return "utf-8"


def may_be_cp1252(file_bytes: bytes) -> bool:
    """True if bytes may be text in Windows-1252, because none of them is undefined there."""
    return not any(byte in file_bytes for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D))


def guess_utf16_encoding(file_bytes: bytes) -> str | None:
    """Recognise UTF-16 without a byte order mark, in which every second byte of plain letters is 0;
    None for other encodings."""
    head = file_bytes[:4000]
    if len(head) < 4 or len(file_bytes) % 2:
        return None
    half = len(head) // 2
    if head[1::2].count(0) > 0.7 * half and not head[0::2].count(0):
        return "utf-16-le"
    if head[0::2].count(0) > 0.7 * half and not head[1::2].count(0):
        return "utf-16-be"
    return None


# --------------------------------------------------------------------------------------- separators
def strip_lines_if_separator_is_blank(text: str, separator: str) -> str:
    """Strip the blanks around each line if blanks separate the cells; otherwise return `text`."""
    if separator != " ":
        return text
    return "\n".join(line.strip() for line in text.split("\n"))


def parse_rows_of_text(
    text: str, separator: str, lines_above_text: int
) -> list[LineNumberAndCells]:
    """Parse the rows of a text. A blank line is a row without cells; blank rows at the end are
    dropped.

    lines_above_text: their number in the file
    """
    lines = io.StringIO(strip_lines_if_separator_is_blank(text, separator))
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = []
    for cells in reader:
        stripped_cells = [cell.strip() for cell in cells]
        rows.append(LineNumberAndCells(lines_above_text + reader.line_num, stripped_cells))
    while rows and not any(rows[-1].cells):
        rows.pop()
    return rows


def find_first_uneven_row(rows: Sequence[LineNumberAndCells]) -> LineNumberAndCells | None:
    """Find the first row with more or fewer cells than the header; None if there is none.

    The header is the first row that is not blank. Blank rows are skipped. If all cells to the right of
    the header's last name are empty, in every row, they are not counted.
    """
    full_rows = [row for row in rows if any(row.cells)]
    header = full_rows[0].cells
    named_columns = len(header)
    while named_columns and not header[named_columns - 1]:
        named_columns -= 1
    has_cells_without_name = any(any(row.cells[named_columns:]) for row in full_rows)
    for row in full_rows:
        width = len(row.cells)
        if has_cells_without_name:
            if width != len(header):
                return row
        elif width < named_columns:
            return row
    return None


def split_text_into_rows(
    text: str, separator_or_empty_to_guess: str, file_name: str, lines_above_text: int
) -> RowsAndSeparator:
    """Split a text into rows of cells.

    If no separator is given, it is the first one that gives the same number of cells in every row, and
    more than one. Raises UsageError if there is none.

    file_name: the file's name in messages
    lines_above_text: their number in the file
    """
    csv.field_size_limit(10**9)
    if len(separator_or_empty_to_guess) > 1:
        raise UsageError(
            f"sep is {separator_or_empty_to_guess!r}, but a separator is one character, or "
            f"{', '.join(SEPARATOR_NAMES)}."
        )
    if separator_or_empty_to_guess:
        candidates = [separator_or_empty_to_guess]
    else:
        candidates = list_separators_in_first_lines(text)
    most_even_rows = 0
    problem = ""  # that of the separator with which the most rows have as many cells as the header
    for candidate in candidates:
        try:
            rows = parse_rows_of_text(text, candidate, lines_above_text)
        except csv.Error as error:
            raise UsageError(
                f"{file_name} cannot be read as a table: {shorten_error_text(error)}; save it as CSV (UTF-8)."
            ) from None
        uneven_row = find_first_uneven_row(rows)
        width = len(get_cells_of_first_nonblank_row(rows))
        if uneven_row is None and width > 1:
            return RowsAndSeparator(rows, candidate)
        if candidate == " " and not separator_or_empty_to_guess:
            continue  # blanks occur in every sentence, so they do not show that a line is too long
        even_rows = sum(len(row.cells) == width for row in rows)
        if uneven_row is not None and even_rows > most_even_rows:
            most_even_rows = even_rows
            problem = describe_uneven_row(uneven_row, width, file_name)
    if problem:
        raise UsageError(problem)
    first_text = next(line for line in text.split("\n") if line.strip())
    raise UsageError(
        f"{file_name} has one column, {first_text.strip()[:60]!r}; give a table with commas, semicolons "
        "or tabs, in which one column is the label."
    )


def list_separators_in_first_lines(text: str) -> list[str]:
    """List the usual separators that occur in the first HEAD lines."""
    first_lines = "\n".join(text.split("\n", HEAD)[:HEAD])
    return [separator for separator in SEPARATORS if separator in first_lines]


def describe_uneven_row(row: LineNumberAndCells, header_width: int, file_name: str) -> str:
    """Describe a row with more or fewer cells than the header, for an error message."""
    cells = len(row.cells)
    problem = "too few" if cells < header_width else "too many"
    return (
        f"Line {row.line} of {file_name} has {problem} cells ({cells}, and the first line "
        f"{header_width}); correct it, remove lines that are not rows, or name the separator with "
        "?sep=."
    )


def get_cells_of_first_nonblank_row(rows: Sequence[LineNumberAndCells]) -> list[str]:
    """Return the cells of the first row that is not blank."""
    return next(row.cells for row in rows if any(row.cells))


# ------------------------------------------------------------------------------------------- header
def name_columns_by_first_row_or_number(
    raw: RawTable, file_name: str, options: FileOptionTexts
) -> RawTable:
    """Take the names of a table's columns from its first row.

    file_name: the file's name in messages
    options: `header` says whether the first row has names; without this option, a first row that
        may be a sample raises UsageError
    """
    if not len(raw.cells):
        raise make_empty_table_error(file_name)
    header_option = options.get("header", "").lower()
    if header_option not in ("", "yes", "no"):
        raise UsageError(f"header is {header_option!r}, but it must be yes or no.")
    if header_option == "no":
        return name_columns_by_number(raw)
    header = [cell or "" for cell in raw.cells.iloc[0]]
    samples = raw.cells.iloc[1:]
    notes = raw.notes
    if not header_option:
        repeats_header = (samples == [cell or None for cell in header]).all(axis=1)
        samples = samples[~repeats_header]
        check_first_row_is_header(header, samples, file_name)
        if repeats_header.any():
            count = int(repeats_header.sum())
            notes = (*notes, f"{count} lines that repeat the names are left out.")
    samples = samples.set_axis(range(samples.shape[1]), axis=1)
    used_columns = []
    for index, cell in enumerate(header):
        if cell or samples[index].notna().any():
            used_columns.append(index)
    check_at_most_one_used_column_is_nameless(header, used_columns, file_name)
    names = [header[index] or f"column {index + 1}" for index in used_columns]
    cells = samples[used_columns].set_axis(
        normalise_column_names_and_check_uniqueness(names, file_name), axis=1
    )
    return replace(raw, cells=cells, notes=notes)


def name_columns_by_number(raw: RawTable) -> RawTable:
    """Name the columns of a table without a header: column 1, column 2, …"""
    cells = raw.cells.dropna(how="all", axis=1)
    names = [f"column {number}" for number in range(1, cells.shape[1] + 1)]
    return replace(raw, cells=cells.set_axis(names, axis=1), has_header=False)


def check_first_row_is_header(header: list[str], samples: DataFrame, file_name: str) -> None:
    """Raise UsageError if the first row may be a sample instead of the header."""
    if not may_first_row_be_sample_not_header(header, samples):
        return
    has_numbers = any(is_plain_number(cell) for cell in header)
    content = "numbers" if has_numbers else "values that stand below, too"
    first_cells = ", ".join(header[:SHOWN_PARTS])
    raise UsageError(
        f"The first line of {file_name} holds {content} ({first_cells}), so it may be a sample and not "
        "the names; say ?header=no if it is one, or ?header=yes if these are the names."
    )


def check_at_most_one_used_column_is_nameless(
    header: list[str], used_columns: Sequence[int], file_name: str
) -> None:
    """Raise UsageError if several columns with values have no name; the header is then another row."""
    nameless = [index + 1 for index in used_columns if not header[index]]
    if len(nameless) > 1:
        column_numbers = ", ".join(map(str, nameless[:SHOWN_PARTS]))
        raise UsageError(
            f"The columns {column_numbers} of {file_name} have no name in the first line; name each of them "
            "there, remove lines above the names, and undo merged cells."
        )


def may_first_row_be_sample_not_header(first_row: list[str], rows_below: DataFrame) -> bool:
    """True if a table's first row may be a sample instead of names.

    It may if at least half of its cells are numbers, or if every cell is either a number above numbers
    or a text that occurs again below.
    """
    filled = [cell for cell in first_row if cell]
    numbers = [cell for cell in filled if is_plain_number(cell.replace(",", "."))]
    if filled and len(numbers) * 2 >= len(filled):
        return True
    if len(rows_below) < 2 or len(filled) < 2:
        return False
    for index, cell in enumerate(first_row):
        values_below = set(rows_below.iloc[:, index].dropna())
        is_number_above_numbers = cell in numbers and all(map(is_plain_number, values_below))
        if cell and cell not in values_below and not is_number_above_numbers:
            return False
    return True


def normalise_column_names_and_check_uniqueness(header: Iterable[str], file_name: str) -> list[str]:
    """Return the names with blanks normalised; UsageError for a name that occurs twice."""
    names = []
    for number, name in enumerate(header, start=1):
        names.append(" ".join(str(name).split()) or f"column {number}")
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise UsageError(
                f"{file_name} has two columns with the name {name!r}; rename one of them."
            )
    return names
