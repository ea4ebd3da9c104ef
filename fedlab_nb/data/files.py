"""A table's file as cells of text: endings, compression, encodings, separators, headers, options
behind a `?`.

pandas reads the file, every cell as text; what a column is, `columns.py` decides afterwards. Where
a file can be read in two ways, it is refused with a sentence that says how to ask for each. What
was done on the way is said in `notes`.
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from fedlab_nb.data.cells import is_plain_number, to_cells
from fedlab_nb.data.dataset import shorten_error
from fedlab_nb.errors import UsageError, choose
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
SEPARATORS = "\t;|, "  # comma and blank last: they stand within cells, too
SEPARATOR_NAMES = {"tab": "\t", "semicolon": ";", "comma": ",", "pipe": "|", "space": " "}

# Options behind the ? of a table's path, or arguments of `load`. Those of KINDS name columns.
ROLES = ("label", "client", "split", "group")
KINDS = {"number": "number", "category": "category", "words": "words", "leave_out": "left out"}
READING = ("missing", "decimal", "case", "header", "sep", "encoding", "sheet", "dates")
OPTIONS = (*ROLES, *KINDS, *READING)
SHOWN = 5
HEAD = 20  # lines that are searched for separators
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
GUESSED_ENCODINGS = ("cp1252", "latin-1")  # of texts that are not UTF-8


@dataclass(frozen=True)
class RawTable:
    """cells: columns of texts (None: nothing) or numbers; the index says in which line of the file
    they stand
    separator: of a text file, "" of others;   has_header: whether the first line has names
    notes: sentences on what was done"""

    cells: DataFrame
    separator: str = ""
    has_header: bool = True
    notes: tuple[str, ...] = ()


class Row(NamedTuple):
    """A row of a text file: its cells, and the line in which it ends."""

    line: int
    cells: list[str]


class SplitText(NamedTuple):
    """The rows of a text, and the separator of their cells."""

    rows: list[Row]
    separator: str


# -------------------------------------------------------------------------------- paths and options
def find_ending(path: str | Path) -> str:
    """The ending of a path in small letters, that of a compressed file included.

    >>> find_ending("a/B.CSV.gz"), find_ending("a.b/c.xlsx"), find_ending("photos")
    ('.csv.gz', '.xlsx', '')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] in (*COMPRESSIONS, ".zip"):
        return suffixes[-2] + suffixes[-1]
    return suffixes[-1] if suffixes else ""


def is_table(path: str | Path) -> bool:
    """Whether a path, with or without options, names a table's file.

    >>> is_table("a/b.CSV?label=age"), is_table("a.tsv.gz"), is_table("b.npz")
    (True, True, False)
    """
    text = str(path)
    return has_table_ending(text) or has_table_ending(text.partition("?")[0])


def has_table_ending(path: str) -> bool:
    """Whether a path without options ends as a table's file does, compressed or not."""
    ending = find_ending(path)
    if ending == ".zip":
        return True
    if ending.count(".") > 1:  # of a compressed file: .csv.gz
        ending = ending.rpartition(".")[0]
    return ending in TABLES


def split_options(path: str | PathLike) -> tuple[str, dict[str, Any]]:
    """The path without its options, and these by name. A plus stays a plus.

    >>> split_options("f.csv?label=HER2+&missing=NA,-9")
    ('f.csv', {'label': 'HER2+', 'missing': 'NA,-9'})
    """
    text = str(path)
    if "?" not in text or Path(text).expanduser().exists():
        return text, {}
    name, _, query = text.partition("?")
    options: dict[str, Any] = {}
    for part in query.split("&"):
        if part:
            key, _, value = part.partition("=")
            key = unquote(key).strip()
            value = unquote(value)
            if key in options:
                value = f"{options[key]},{value}"
            options[key] = value
    return name, options


def join_options(path: str | Path, options: Mapping[str, Any]) -> str:
    """The path with its options, which `split_options` takes apart again."""
    parts = [f"{key}={quote(str(value), safe=' ,')}" for key, value in sorted(options.items())]
    return f"{path}?{'&'.join(parts)}" if parts else str(path)


def check_options(
    options: Mapping[str, Any], allowed: Sequence[str] = OPTIONS, what: str = "a table"
) -> dict[str, str]:
    """The options as texts; lists are joined by commas. Raises UsageError for a name that is
    none."""
    checked = {}
    for name, value in options.items():
        choose(f"option of {what}", name, allowed)
        if value is None:
            value = ""
        if isinstance(value, list | tuple | set):
            value = ",".join(map(str, value))
        checked[name] = str(value)
    return checked


# ----------------------------------------------------------------------------------------- the file
def read_table(path: Path, options: Mapping[str, str]) -> RawTable:
    """The cells of a file. Raises UsageError."""
    path = path.expanduser()
    if not path.is_file():
        raise UsageError(f"The data file {str(path)!r} does not exist; give the path of {ENDINGS}.")
    name = path.name
    ending = find_ending(path)
    try:
        data = path.read_bytes()
        data, ending, name = decompress(data, ending, name)
        if ending in SHEETS:
            return apply_header(read_sheet(data, name, options), name, options)
        if ending in PARQUETS:
            return read_parquet(data, name)
        if ending not in TEXTS:
            raise UsageError(f"{path.name} has the ending {ending!r}; give {ENDINGS}.")
        return apply_header(read_text(data, name, options), name, options)
    except UsageError:
        raise
    except ImportError as error:
        package = "openpyxl" if ending in SHEETS else "pyarrow"
        extra = "excel" if ending in SHEETS else "parquet"
        how = f"{format_install_command(extra)}, or save the table as CSV"
        raise UsageError(
            f"{name} needs {package} to be read ({shorten_error(error)}); {how}."
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
            f"{name} cannot be read as a table: {shorten_error(error)}; save it as CSV (UTF-8)."
        ) from None


class TableBytes(NamedTuple):
    """The bytes of a table's file that is not compressed (any more), its ending, and its name."""

    data: bytes
    ending: str
    name: str


def decompress(data: bytes, ending: str, name: str) -> TableBytes:
    """The table of a file that may be compressed. Raises UsageError for an archive of several."""
    inner, _, outer = ending.rpartition(".")
    outer = f".{outer}"
    if outer in COMPRESSIONS:
        return TableBytes(COMPRESSIONS[outer](data), inner or ".csv", name)
    if outer != ".zip":
        return TableBytes(data, ending, name)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = []
        for member in archive.namelist():
            is_folder = member.endswith("/")
            is_hidden = member.startswith("__MACOSX") or "/." in f"/{member}"
            if not is_folder and not is_hidden:
                members.append(member)
        if len(members) != 1:
            listed = ", ".join(members[:SHOWN]) or "nothing"
            raise UsageError(f"{name} holds {len(members)} files ({listed}); pack the table alone.")
        content = archive.read(members[0])
        return TableBytes(content, find_ending(members[0]), f"{members[0]} in {name}")


def read_parquet(data: bytes, name: str) -> RawTable:
    """The cells of a Parquet file."""
    import pandas

    table = pandas.read_parquet(io.BytesIO(data), engine="pyarrow", dtype_backend="numpy_nullable")
    return read_data_frame(table, name)


def read_data_frame(table: DataFrame, name: str) -> RawTable:
    """The cells of a DataFrame. Its index is no column; names that are a plain count are no
    names."""
    import pandas

    has_header = not isinstance(table.columns, pandas.RangeIndex)
    if isinstance(table.columns, pandas.MultiIndex):
        raise UsageError(
            f"{name} has columns with names of several levels; join them to one name a column."
        )
    notes: tuple[str, ...] = ()
    is_counted = isinstance(table.index, pandas.RangeIndex)
    cells = to_cells(table.reset_index(drop=True))
    if not is_counted and table.index.name:
        notes = (f"The index {table.index.name!r} is no column; reset_index() makes it one.",)
    names = [str(column) for column in table.columns]
    if not has_header:
        names = [f"column {place}" for place in range(1, len(names) + 1)]
    cells.index = cells.index + 1
    cells = cells.set_axis(check_column_names(names, name), axis=1)
    return RawTable(cells.dropna(how="all"), "", has_header, notes)


def read_sheet(data: bytes, name: str, options: Mapping[str, str]) -> RawTable:
    """The cells of a spreadsheet, its first line among them, as texts. `sheet` names one of
    several."""
    import pandas

    wanted = options.get("sheet") or None
    sheets = pandas.read_excel(
        io.BytesIO(data),
        sheet_name=None,
        header=None,
        dtype=object,
        keep_default_na=False,
        na_values=[],
        engine="openpyxl",
    )
    if wanted is not None and wanted not in sheets:
        raise UsageError(f"{name} has no sheet {wanted!r}; it has {', '.join(sheets)}.")
    full = [title for title, table in sheets.items() if table.size]
    if wanted is None and len(full) > 1:
        raise UsageError(
            f"{name} has the sheets {', '.join(full)}; say which, as in {name}?sheet={full[0]}."
        )
    if wanted is None and not full:
        raise make_empty_error(name)
    table = to_cells(sheets[wanted or full[0]].astype(object))
    table.index = table.index + 1
    table = table.dropna(how="all").dropna(how="all", axis=1)
    return RawTable(table.set_axis(range(table.shape[1]), axis=1))


def make_empty_error(name: str) -> UsageError:
    """The error for a table without a row."""
    return UsageError(
        f"{name} is empty; give a table with the names of its columns in the first line."
    )


def read_text(data: bytes, name: str, options: Mapping[str, str]) -> RawTable:
    """The cells of a text file, its first line among them."""
    text, notes = decode_text(data, name, options.get("encoding", ""))
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
    first_row = find_line_after_comments(lines, start)
    if first_row > start and is_header_behind_hash(lines, first_row):
        first_row -= 1
        lines[first_row] = lines[first_row].removeprefix("#")
    comments = sum(line.startswith("#") for line in lines[start:first_row])
    body = "\n".join(lines[first_row:])
    if not body.strip():
        raise make_empty_error(name)
    if comments:
        notes = (*notes, f"{comments} lines that begin with # are left out.")
    rows, separator = split_text_into_rows(body, separator, name, first_row)
    cells = read_cells(body, separator, rows, name)
    return RawTable(cells, separator, True, notes)


def find_line_after_comments(lines: Sequence[str], start: int) -> int:
    """The first line from `start` on that is neither blank nor begins with #."""
    for place in range(start, len(lines)):
        if lines[place].strip() and not lines[place].startswith("#"):
            return place
    return len(lines)


def read_cells(body: str, separator: str, rows: Sequence[Row], name: str) -> DataFrame:
    """The cells of a text as pandas reads them, as many rows as `rows`; the index has their
    lines."""
    import pandas

    width = max(len(row.cells) for row in rows)
    table = pandas.read_csv(
        io.StringIO(strip_blanks_of_lines(body, separator)),
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
    surplus = table.iloc[len(rows) :]
    if len(surplus) and not surplus.astype(bool).any(axis=None):  # blank lines at the end
        table = table.iloc[: len(rows)]
    if len(table) != len(rows):
        raise UsageError(
            f"{name} has a quotation mark that is never closed, or a broken line; correct it."
        )
    table.index = [row.line for row in rows]
    return to_cells(table).dropna(how="all")


def is_header_behind_hash(lines: Sequence[str], end: int) -> bool:
    """Whether the last line before `end`, with #, is the header: as many separators as the next
    line, which has numbers."""
    last_line = lines[end - 1]
    if end >= len(lines) or not last_line.startswith("#"):
        return False
    for separator in SEPARATORS:
        count = last_line.count(separator)
        cells = lines[end].split(separator)
        numbers = [cell for cell in cells if is_plain_number(cell.strip())]
        if count and count == len(cells) - 1 and len(numbers) * 2 >= len(cells):
            return True
    return False


class DecodedText(NamedTuple):
    """The text of a file;   notes: a sentence where its encoding was guessed."""

    text: str
    notes: tuple[str, ...]


def decode_text(data: bytes, name: str, encoding: str) -> DecodedText:
    """The text of a file. encoding: "" guesses it. Raises UsageError for bytes that are no text."""
    notes: tuple[str, ...] = ()
    try:
        if encoding:
            text = data.decode(encoding)
        else:
            encoding = find_encoding(data)
            text = data.decode(encoding)
            if encoding in GUESSED_ENCODINGS:
                notes = (
                    f"{name} is not UTF-8 and is read as Windows-1252; ?encoding= names another.",
                )
    except LookupError:
        raise UsageError(
            f"{encoding!r} is no encoding; give one such as utf-8, cp1252 or shift_jis."
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not {error.encoding} text (byte {error.start}); save it as CSV (UTF-8)."
        ) from None
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise UsageError(f"{name} is not text; save the table as CSV (UTF-8).")
    return DecodedText(text, notes)


def find_encoding(data: bytes) -> str:
    """The encoding by the mark at the beginning, by the zeros of UTF-16, or by what can be read."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return encoding
    wide_encoding = find_wide_encoding(data)
    if wide_encoding is not None:
        return wide_encoding
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252" if is_cp1252(data) else "latin-1"
    return "utf-8"


def is_cp1252(data: bytes) -> bool:
    """Whether bytes may be text in Windows-1252: none of them is undefined there."""
    return not any(byte in data for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D))


def find_wide_encoding(data: bytes) -> str | None:
    """UTF-16 without a mark, or None: every second byte of plain letters is 0."""
    head = data[:4000]
    if len(head) < 4 or len(data) % 2:
        return None
    half = len(head) // 2
    if head[1::2].count(0) > 0.7 * half and not head[0::2].count(0):
        return "utf-16-le"
    if head[0::2].count(0) > 0.7 * half and not head[1::2].count(0):
        return "utf-16-be"
    return None


# --------------------------------------------------------------------------------------- separators
def strip_blanks_of_lines(text: str, separator: str) -> str:
    """The text without blanks around its lines, where blanks separate cells."""
    if separator != " ":
        return text
    return "\n".join(line.strip() for line in text.split("\n"))


def parse_rows(text: str, separator: str, first_line: int) -> list[Row]:
    """The rows of a text; a blank line is a row of no cells. Blank rows at the end are left out.

    first_line: how many lines of the file stand above the text
    """
    lines = io.StringIO(strip_blanks_of_lines(text, separator))
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = []
    for cells in reader:
        stripped_cells = [cell.strip() for cell in cells]
        rows.append(Row(first_line + reader.line_num, stripped_cells))
    while rows and not any(rows[-1].cells):
        rows.pop()
    return rows


def find_first_uneven_row(rows: Sequence[Row]) -> Row | None:
    """The first row that has another number of cells than the header; None if all have as many.

    The header is the first row that is not blank. Where no row has anything behind the header's
    last name, empty cells there do not count, and a row may be longer than the header. Blank rows
    are passed over.
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


def split_text_into_rows(text: str, separator: str, name: str, first_line: int) -> SplitText:
    """Split a text at `separator`; if that is "", at the one that gives the same number of cells,
    more than one, in every row.

    name: what sentences call the file;   first_line: how many of its lines stand above the text.
    Raises UsageError where no separator does.
    """
    csv.field_size_limit(10**9)
    if len(separator) > 1:
        raise UsageError(
            f"sep is {separator!r}, but a separator is one character, or "
            f"{', '.join(SEPARATOR_NAMES)}."
        )
    candidates = [separator] if separator else list_possible_separators(text)
    most_even_rows = 0
    problem = ""  # of the separator with which most rows have as many cells as the header
    for candidate in candidates:
        try:
            rows = parse_rows(text, candidate, first_line)
        except csv.Error as error:
            raise UsageError(
                f"{name} cannot be read as a table: {shorten_error(error)}; save it as CSV (UTF-8)."
            ) from None
        uneven_row = find_first_uneven_row(rows)
        width = len(find_header_cells(rows))
        if uneven_row is None and width > 1:
            return SplitText(rows, candidate)
        if candidate == " " and not separator:
            continue  # sentences have blanks: they are no reason to call a line too long
        even_rows = sum(len(row.cells) == width for row in rows)
        if uneven_row is not None and even_rows > most_even_rows:
            most_even_rows = even_rows
            problem = describe_uneven_row(uneven_row, width, name)
    if problem:
        raise UsageError(problem)
    first_text = next(line for line in text.split("\n") if line.strip())
    raise UsageError(
        f"{name} has one column, {first_text.strip()[:60]!r}; give a table with commas, semicolons "
        "or tabs, one column is the label."
    )


def list_possible_separators(text: str) -> list[str]:
    """The usual separators that stand in the first HEAD lines."""
    first_lines = text.split("\n", HEAD)[:HEAD]
    return [mark for mark in SEPARATORS if any(mark in line for line in first_lines)]


def describe_uneven_row(row: Row, header_width: int, name: str) -> str:
    """A sentence on a row that has another number of cells than the header."""
    cells = len(row.cells)
    problem = "too few" if cells < header_width else "too many"
    return (
        f"Line {row.line} of {name} has {problem} cells ({cells}, and the first line "
        f"{header_width}); correct it, remove lines that are no rows, or name the separator with "
        "?sep=."
    )


def find_header_cells(rows: Sequence[Row]) -> list[str]:
    """The cells of the first row that is not blank."""
    return next(row.cells for row in rows if any(row.cells))


# ------------------------------------------------------------------------------------------- header
def apply_header(raw: RawTable, name: str, options: Mapping[str, str]) -> RawTable:
    """The table with its columns called as its first row says, which is then no sample.

    name: what sentences call the file. The option `header` says yes or no; without it, a first row
    that may be a sample is refused with a UsageError.
    """
    if not len(raw.cells):
        raise make_empty_error(name)
    header_option = options.get("header", "").lower()
    if header_option not in ("", "yes", "no"):
        raise UsageError(f"header is {header_option!r}, but it must be yes or no.")
    if header_option == "no":
        return number_columns(raw)
    header = [cell or "" for cell in raw.cells.iloc[0]]
    samples = raw.cells.iloc[1:]
    notes = raw.notes
    if not header_option:
        repeats_header = (samples == [cell or None for cell in header]).all(axis=1)
        samples = samples[~repeats_header]
        check_header(header, samples, name)
        if repeats_header.any():
            count = int(repeats_header.sum())
            notes = (*notes, f"{count} lines that repeat the names are left out.")
    samples = samples.set_axis(range(samples.shape[1]), axis=1)
    used_columns = []
    for place, cell in enumerate(header):
        if cell or samples[place].notna().any():
            used_columns.append(place)
    check_nameless_columns(header, used_columns, name)
    names = [header[place] or f"column {place + 1}" for place in used_columns]
    cells = samples[used_columns].set_axis(check_column_names(names, name), axis=1)
    return replace(raw, cells=cells, notes=notes)


def number_columns(raw: RawTable) -> RawTable:
    """A table without a header: its columns are called column 1, column 2, …"""
    cells = raw.cells.dropna(how="all", axis=1)
    names = [f"column {place}" for place in range(1, cells.shape[1] + 1)]
    return replace(raw, cells=cells.set_axis(names, axis=1), has_header=False)


def check_header(header: list[str], samples: DataFrame, name: str) -> None:
    """UsageError where the first row may be a sample and no header."""
    if not may_be_sample(header, samples):
        return
    has_numbers = any(is_plain_number(cell) for cell in header)
    content = "numbers" if has_numbers else "values that stand below, too"
    first_cells = ", ".join(header[:SHOWN])
    raise UsageError(
        f"The first line of {name} holds {content} ({first_cells}), so that it may be a sample and "
        "no names; say ?header=no if it is one, or ?header=yes if these are the names."
    )


def check_nameless_columns(header: list[str], used_columns: Sequence[int], name: str) -> None:
    """UsageError where several columns with values have no name: the header is another row."""
    nameless = [place + 1 for place in used_columns if not header[place]]
    if len(nameless) > 1:
        places = ", ".join(map(str, nameless[:SHOWN]))
        raise UsageError(
            f"The columns {places} of {name} have no name in the first line; name each of them "
            "there, remove lines above the names, and undo merged cells."
        )


def may_be_sample(first_row: list[str], rows_below: DataFrame) -> bool:
    """Whether a table's first row may be a sample instead of names.

    It may if half of its cells or more are numbers, or if each of them is a number above numbers,
    or a text that stands again below.
    """
    filled = [cell for cell in first_row if cell]
    numbers = [cell for cell in filled if is_plain_number(cell.replace(",", "."))]
    if filled and len(numbers) * 2 >= len(filled):
        return True
    if len(rows_below) < 2 or len(filled) < 2:
        return False
    for place, cell in enumerate(first_row):
        values_below = set(rows_below.iloc[:, place].dropna())
        is_number_above_numbers = cell in numbers and all(map(is_plain_number, values_below))
        if cell and cell not in values_below and not is_number_above_numbers:
            return False
    return True


def check_column_names(header: Iterable[str], file: str) -> list[str]:
    """The names, each once; UsageError for one that is there twice."""
    names = []
    for place, name in enumerate(header, start=1):
        names.append(" ".join(str(name).split()) or f"column {place}")
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise UsageError(f"{file} has two columns with the name {name!r}; rename one of them.")
    return names
