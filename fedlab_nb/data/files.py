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
from typing import TYPE_CHECKING, Any
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
            return name_columns(read_sheet(data, name, options), name, options)
        if ending in PARQUETS:
            return read_parquet(data, name)
        if ending not in TEXTS:
            raise UsageError(f"{path.name} has the ending {ending!r}; give {ENDINGS}.")
        return name_columns(read_text(data, name, options), name, options)
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


def decompress(data: bytes, ending: str, name: str) -> tuple[bytes, str, str]:
    """The bytes of the table, its own ending, and its name."""
    inner, _, outer = ending.rpartition(".")
    outer = f".{outer}"
    if outer in COMPRESSIONS:
        return COMPRESSIONS[outer](data), inner or ".csv", name
    if outer != ".zip":
        return data, ending, name
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [
            member
            for member in archive.namelist()
            if not member.endswith("/")
            and not member.startswith("__MACOSX")
            and "/." not in f"/{member}"
        ]
        if len(members) != 1:
            listed = ", ".join(members[:SHOWN]) or "nothing"
            raise UsageError(f"{name} holds {len(members)} files ({listed}); pack the table alone.")
        return archive.read(members[0]), find_ending(members[0]), f"{members[0]} in {name}"


def read_parquet(data: bytes, name: str) -> RawTable:
    import pandas

    table = pandas.read_parquet(io.BytesIO(data), engine="pyarrow", dtype_backend="numpy_nullable")
    return read_frame(table, name)


def read_frame(table: DataFrame, name: str) -> RawTable:
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
    cells = cells.set_axis(check_names(names, name), axis=1)
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
    return UsageError(
        f"{name} is empty; give a table with the names of its columns in the first line."
    )


def read_text(data: bytes, name: str, options: Mapping[str, str]) -> RawTable:
    """The cells of a text file, its first line among them."""
    text, notes = decode(data, name, options.get("encoding", ""))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    separator = options.get("sep", "")
    separator = SEPARATOR_NAMES.get(separator, separator)
    start = 0
    while start < len(lines) and not lines[start].strip():
        start += 1
    if start < len(lines):
        said = re.fullmatch(r'"?sep=(.)"?;?', lines[start].strip(" "))  # as Excel writes it
        if said:
            separator = separator or said[1]
            start += 1
    first = skip_comments(lines, start)
    if first > start and is_header_behind_hash(lines, first):
        first -= 1
        lines[first] = lines[first].removeprefix("#")
    comments = sum(line.startswith("#") for line in lines[start:first])
    body = "\n".join(lines[first:])
    if not body.strip():
        raise make_empty_error(name)
    if comments:
        notes = (*notes, f"{comments} lines that begin with # are left out.")
    rows, separator = split_rows(body, separator, name, first)
    cells = read_cells(body, separator, rows, name)
    return RawTable(cells, separator, True, notes)


def skip_comments(lines: Sequence[str], start: int) -> int:
    """The first line from `start` on that is neither blank nor begins with #."""
    for place in range(start, len(lines)):
        if lines[place].strip() and not lines[place].startswith("#"):
            return place
    return len(lines)


def read_cells(
    body: str, separator: str, rows: Sequence[tuple[int, list[str]]], name: str
) -> DataFrame:
    """The cells of a text as pandas reads them, as many rows as `rows`; the index has their
    lines."""
    import pandas

    width = max(len(row) for _, row in rows)
    table = pandas.read_csv(
        io.StringIO(strip_lines(body, separator)),
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
    table.index = [line for line, _ in rows]
    return to_cells(table).dropna(how="all")


def is_header_behind_hash(lines: Sequence[str], end: int) -> bool:
    """Whether the last line before `end`, with #, is the header: as many separators as the next
    line, which has numbers."""
    last = lines[end - 1]
    if end >= len(lines) or not last.startswith("#"):
        return False
    for separator in SEPARATORS:
        count = last.count(separator)
        cells = lines[end].split(separator)
        numbers = [cell for cell in cells if is_plain_number(cell.strip())]
        if count and count == len(cells) - 1 and len(numbers) * 2 >= len(cells):
            return True
    return False


def decode(data: bytes, name: str, encoding: str) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and a sentence where its encoding was guessed."""
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
    return text, notes


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
    return not any(byte in data for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D))


def find_wide_encoding(data: bytes) -> str | None:
    """UTF-16 without a mark: every second byte of plain letters is 0."""
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
def strip_lines(text: str, separator: str) -> str:
    """The text without blanks around its lines, where blanks separate cells."""
    if separator != " ":
        return text
    return "\n".join(line.strip() for line in text.split("\n"))


def parse_rows(text: str, separator: str, offset: int) -> list[tuple[int, list[str]]]:
    """Each row with the line that it ends in; a blank line is a row of no cells."""
    reader = csv.reader(
        io.StringIO(strip_lines(text, separator)), delimiter=separator, skipinitialspace=True
    )
    rows = [(offset + reader.line_num, [cell.strip() for cell in row]) for row in reader]
    while rows and not any(rows[-1][1]):
        rows.pop()
    return rows


def find_uneven_row(rows: Sequence[tuple[int, list[str]]]) -> int | None:
    """The place of the first row that has another number of cells than the first one; None where
    all have as many.

    Cells behind the last name do not count while they are empty, and a blank line is no row.
    """
    full = [place for place, (_, row) in enumerate(rows) if any(row)]
    first = rows[full[0]][1]
    named = len(first)  # cells up to the last name
    while named and not first[named - 1]:
        named -= 1
    has_nameless = any(any(rows[place][1][named:]) for place in full)
    for place in full:
        width = len(rows[place][1])
        if has_nameless and width != len(first):
            return place
        if not has_nameless and width < named:
            return place
    return None


def split_rows(
    text: str, separator: str, name: str, offset: int
) -> tuple[list[tuple[int, list[str]]], str]:
    """The rows, and the separator: the one that gives the same number of cells, more than one, in
    every row."""
    csv.field_size_limit(10**9)
    if separator and len(separator) != 1:
        raise UsageError(
            f"sep is {separator!r}, but a separator is one character, or "
            f"{', '.join(SEPARATOR_NAMES)}."
        )
    candidates = [separator]
    if not separator:
        head = text.split("\n", HEAD)[:HEAD]
        candidates = [mark for mark in SEPARATORS if any(mark in line for line in head)]
    most_even = 0  # rows of the best separator that have as many cells as the first one
    problem = ""
    for candidate in candidates:
        try:
            rows = parse_rows(text, candidate, offset)
        except csv.Error as error:
            raise UsageError(
                f"{name} cannot be read as a table: {shorten_error(error)}; save it as CSV (UTF-8)."
            ) from None
        uneven = find_uneven_row(rows)
        width = len(find_first_row(rows))
        if uneven is None and width > 1:
            return rows, candidate
        if candidate == " " and not separator:
            continue  # sentences have blanks: they are no reason to call a line too long
        even = sum(len(row) == width for _, row in rows)
        if uneven is not None and even > most_even:
            most_even = even
            line, row = rows[uneven]
            problem = describe_uneven_row(line, len(row), width, name)
    if problem:
        raise UsageError(problem)
    first = next(line for line in text.split("\n") if line.strip())
    raise UsageError(
        f"{name} has one column, {first.strip()[:60]!r}; give a table with commas, semicolons or "
        "tabs, one column is the label."
    )


def describe_uneven_row(line: int, cells: int, width: int, name: str) -> str:
    """A sentence on a row that has another number of cells than the first one."""
    many = "too few" if cells < width else "too many"
    return (
        f"Line {line} of {name} has {many} cells ({cells}, and the first line {width}); correct "
        "it, remove lines that are no rows, or name the separator with ?sep=."
    )


def find_first_row(rows: Sequence[tuple[int, list[str]]]) -> list[str]:
    """The first row that is not blank."""
    return next(row for _, row in rows if any(row))


# ------------------------------------------------------------------------------------------- header
def name_columns(raw: RawTable, name: str, options: Mapping[str, str]) -> RawTable:
    """The table with the names from its first line, if that has names. Raises UsageError where it
    may have none."""
    table = raw.cells
    if not len(table):
        raise make_empty_error(name)
    first = [cell or "" for cell in table.iloc[0]]
    rest = table.iloc[1:]
    header = options.get("header", "").lower()
    if header not in ("", "yes", "no"):
        raise UsageError(f"header is {header!r}, but it must be yes or no.")
    if header == "no":
        table = table.dropna(how="all", axis=1)
        names = [f"column {place}" for place in range(1, table.shape[1] + 1)]
        return replace(raw, cells=table.set_axis(names, axis=1), has_header=False)
    repeats = (rest == [cell or None for cell in first]).all(axis=1)  # rows that repeat the names
    notes = raw.notes
    if not header and seems_headless(first, rest[~repeats]):
        listed = ", ".join(first[:SHOWN])
        what = "numbers" if any(map(is_plain_number, first)) else "values that stand below, too"
        raise UsageError(
            f"The first line of {name} holds {what} ({listed}), so that it may be a sample and no "
            "names; say ?header=no if it is one, or ?header=yes if these are the names."
        )
    if not header and repeats.any():
        rest = rest[~repeats]
        notes = (*notes, f"{int(repeats.sum())} lines that repeat the names are left out.")
    rest = rest.set_axis(range(rest.shape[1]), axis=1)
    used = [place for place, cell in enumerate(first) if cell or rest[place].notna().any()]
    nameless = [place + 1 for place in used if not first[place]]
    if len(nameless) > 1:
        places = ", ".join(map(str, nameless[:SHOWN]))
        raise UsageError(
            f"The columns {places} of {name} have no name in the first line; name each of them "
            "there, remove lines above the names, and undo merged cells."
        )
    names = [first[place] or f"column {place + 1}" for place in used]
    named = rest[used].set_axis(check_names(names, name), axis=1)
    return replace(raw, cells=named, notes=notes)


def seems_headless(first: list[str], rest: DataFrame) -> bool:
    """Whether the first line may be a sample: half of its cells or more are numbers, or each of
    them is a number above numbers, or a text that stands again below."""
    filled = [cell for cell in first if cell]
    numbers = [cell for cell in filled if is_plain_number(cell.replace(",", "."))]
    if filled and len(numbers) * 2 >= len(filled):
        return True
    if len(rest) < 2 or len(filled) < 2:
        return False
    for place, cell in enumerate(first):
        below = set(rest.iloc[:, place].dropna())
        is_number_above_numbers = cell in numbers and all(map(is_plain_number, below))
        if cell and cell not in below and not is_number_above_numbers:
            return False
    return True


def check_names(header: Iterable[str], file: str) -> list[str]:
    """The names, each once; UsageError for one that is there twice."""
    names = []
    for place, name in enumerate(header, start=1):
        names.append(" ".join(str(name).split()) or f"column {place}")
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise UsageError(f"{file} has two columns with the name {name!r}; rename one of them.")
    return names
