"""One column of a table: what it was taken for, and how its cells become numbers.

A column is a number, a category (one feature a value), words (hashed), or it is left out. `Column`
keeps everything that turns a raw cell into features, so that a new row passes through exactly what
the training rows did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data.cells import is_numeric, is_plain_number, mask_missing, to_texts
from fedlab_nb.errors import UsageError

if TYPE_CHECKING:
    from pandas import Series

NUMBER = "number"
CATEGORY = "category"
WORDS = "words"
LEFT_OUT = "left out"
KINDS = (NUMBER, CATEGORY, WORDS, LEFT_OUT)
SHOWN_VALUES = 6  # of a category, on a card
HASHED_FEATURES = 256  # features of a bag of words
MINUS_SIGNS = "\u2212\u2012\u2013\ufe63\uff0d"  # what spreadsheets and papers write for a minus
SPACES = "\u00a0\u2009\u202f"  # spaces that group thousands
GROUPERS = {".": ",", ",": "."}  # the character that groups thousands, by the decimal mark

# What a cell holds apart from digits: a comparison (<0.1), a currency before, a unit behind.
PREFIX = (
    r"(?P<compare>[<>≤≥]=?\s*)?(?P<sign>[+-]?)\s*(?P<currency>[$€£¥₹]|(?:USD|EUR|GBP|CHF)\s)?\s*"
)
SIGN_AFTER_CURRENCY = r"(?P<late_sign>[+-]?)"
SUFFIX = r"\s*(?P<unit>[%‰°µμ€$£¥₹a-zA-Z][%‰°µμ€$£¥₹a-zA-Z²³/.^*·-]*[23]?)?"
EXPONENT = r"(?:[eE][+-]?\d+)?"


@dataclass(frozen=True)
class Column:
    """What a column was taken for.

    name:        as the table has it
    kind:        "number", "category", "words" or "left out"
    reason:      why, in a sentence for the reader
    mean, scale: of a number: its feature is (value - mean) / scale, and 0 where there is no value
    categories:  of a category: its values in the order of its features
    other_categories: values that only test rows have; they have no feature, so that all features
                 are 0
    ignore_case: whether values that differ in case alone are one
    decimal:     the decimal mark of a number, "." or ","
    grouped:     whether thousands are grouped, as in 1,234.5
    unit:        what stands in every cell beside the number, such as "%" or "mg"
    time_format: of a date or a time of day: its form, as `strptime` names it
    missing:     texts that stand for no value here, in small letters
    """

    name: str
    kind: str
    reason: str = ""
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    other_categories: tuple[str, ...] = ()
    ignore_case: bool = False
    decimal: str = "."
    grouped: bool = False
    unit: str = ""
    time_format: str = ""
    missing: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many features the column becomes."""
        if self.kind == NUMBER:
            return 1
        if self.kind == CATEGORY:
            return len(self.categories)
        if self.kind == WORDS:
            return HASHED_FEATURES
        return 0

    def describe_values(self) -> str:
        """Its values in a few words, for a card."""
        if self.kind == NUMBER:
            return f"mean {self.mean:.4g}, deviation {self.scale:.4g}"
        if self.kind == CATEGORY:
            values = ", ".join(self.categories[:SHOWN_VALUES])
            more = len(self.categories) - SHOWN_VALUES
            if more > 0:
                values += f", and {more} more"
            return values
        if self.kind == WORDS:
            return f"{self.width} hashed features"
        return ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Column:
        names = {field.name for field in fields(cls)}
        arguments: dict[str, Any] = {}
        for name, value in values.items():
            if name in names:
                arguments[name] = tuple(value) if isinstance(value, list) else value
        return cls(**arguments)


# ------------------------------------------------------------------------------- a cell as a number
CELL = re.compile(
    rf"{PREFIX}{SIGN_AFTER_CURRENCY}(?P<body>[.,]?\d[\d.,' {SPACES}]*?)(?P<exponent>{EXPONENT}){SUFFIX}",
    re.ASCII,
)


PLAIN_CELL = re.compile(rf"([+-]?)(\d+\.?\d*|\.\d+)({EXPONENT})", re.ASCII)


@dataclass(frozen=True)
class NumberCell:
    """The parts of a cell that may be a number: `body` still has its marks, as in 1.234,5."""

    body: str
    sign: str
    exponent: str
    unit: str
    compare: str


def split_number_text(text: str) -> NumberCell | None:
    """The parts of a cell; None where it is no number in any convention.

    >>> split_number_text("$1,200.50")
    NumberCell(body='1,200.50', sign='', exponent='', unit='$', compare='')
    >>> split_number_text("<0.1 mg").compare, split_number_text("P001")
    ('<', None)
    """
    plain = PLAIN_CELL.fullmatch(text)
    if plain is not None:  # the usual case, and much faster
        return NumberCell(plain[2], plain[1], plain[3], "", "")
    for sign in MINUS_SIGNS:
        text = text.replace(sign, "-")
    found = CELL.fullmatch(text.strip())
    if found is None:
        return None
    currency = (found["currency"] or "").strip()
    unit = found["unit"] or ""
    has_two_units = currency and unit
    has_two_signs = found["sign"] and found["late_sign"]
    if has_two_units or has_two_signs:
        return None
    return NumberCell(
        body=found["body"].strip(),
        sign=found["sign"] or found["late_sign"],
        exponent=found["exponent"],
        unit=currency or unit,
        compare=(found["compare"] or "").strip(),
    )


def make_body_pattern(decimal: str) -> re.Pattern[str]:
    """What the body of a number looks like with that decimal mark; group 1 is there where thousands
    are grouped."""
    mark = re.escape(decimal)
    grouper = re.escape(GROUPERS[decimal])
    grouped = rf"[1-9]\d{{0,2}}([{grouper}' {SPACES}])\d{{3}}(?:\1\d{{3}})*(?:{mark}\d*)?"
    return re.compile(rf"\d+(?:{mark}\d*)?|{mark}\d+|{grouped}", re.ASCII)


BODIES = {decimal: make_body_pattern(decimal) for decimal in GROUPERS}


def parse_number_body(cell: NumberCell, decimal: str, grouped: bool) -> float | None:
    """The number that a cell holds with that decimal mark; None where it is none."""
    if cell.body.isdecimal():
        return float(f"{cell.sign}{cell.body}{cell.exponent}")
    found = BODIES[decimal].fullmatch(cell.body)
    if found is None:
        return None
    if found[1] and (cell.exponent or not grouped):
        return None
    digits = re.sub(rf"[{re.escape(GROUPERS[decimal])}' {SPACES}]", "", cell.body)
    return float(f"{cell.sign}{digits.replace(decimal, '.')}{cell.exponent}")


def normalise_unit(unit: str) -> str:
    """Units that differ in case alone are one; so are the two signs for micro."""
    return unit.lower().replace("\u00b5", "\u03bc")


def parse_times(texts: Series, time_format: str) -> Series:
    """Days since 1970 of dates, seconds since midnight of times of day; nan for what is none. Index
    as `texts`."""
    import pandas

    if time_format in CLOCK_FORMATS:
        seconds = [parse_time_of_day(text, time_format) for text in texts]
        return pandas.Series(seconds, index=texts.index, dtype=float)
    moments = pandas.to_datetime(texts, format=time_format, errors="coerce", utc=True)
    days = (moments - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)
    return days.astype(float)


CLOCK_FORMATS = {
    "%H:%M": r"(\d{1,2}):([0-5]\d)()",
    "%H:%M:%S": r"(\d{1,2}):([0-5]\d):([0-5]\d)",
}


def parse_time_of_day(text: str, time_format: str) -> float:
    """Seconds since midnight of a time of day; nan for what is none."""
    found = re.fullmatch(CLOCK_FORMATS[time_format], text, re.ASCII)
    if not found:
        return float("nan")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def parse_numbers(column: Column, cells: Series) -> np.ndarray:
    """float64 [N], nan where there is no value, of a column that was taken for a number.

    cells: texts and None, or numbers. Raises UsageError for a cell that is no number in the
    column's own convention; the index of `cells` says in which line it stands.
    """
    if is_numeric(cells) and not column.time_format:
        values = cells.to_numpy(dtype=float, na_value=np.nan)
        for token in column.missing:
            if re.fullmatch(r"[+-]?\d+\.?\d*", token):
                values = np.where(values == float(token), np.nan, values)
        if np.isinf(values).any():
            raise UsageError(f"Column {column.name!r} holds infinity; correct it.")
        return values
    texts = mask_missing(to_texts(cells), column.missing).dropna()
    if column.time_format:
        numbers = parse_times(texts, column.time_format)
    elif column.decimal == "." and not column.unit and all(map(is_plain_number, texts)):
        numbers = texts.astype(float)  # the usual case, and much faster
    else:
        number_of_text = {text: parse_number_text(column, text) for text in texts.unique()}
        numbers = texts.map(number_of_text).astype(float)
    wrong = texts[numbers.isna()]
    for line, text in wrong.items():
        raise UsageError(
            f"Column {column.name!r} holds {describe_number_format(column)}, but {text[:40]!r} in line "
            f"{line}; correct that cell, or leave it empty for a missing value."
        )
    for text in texts[~np.isfinite(numbers)]:
        raise UsageError(
            f"Column {column.name!r} holds {text[:40]}, too large for a number; correct it."
        )
    return numbers.reindex(cells.index).to_numpy(dtype=float)


def parse_number_text(column: Column, text: str) -> float:
    """The number in a cell, nan for none; `<0.1` is taken as 0.1."""
    cell = split_number_text(text)
    if cell is None or normalise_unit(cell.unit) != normalise_unit(column.unit):
        return float("nan")
    value = parse_number_body(cell, column.decimal, column.grouped)
    if value is None:
        return float("nan")
    return value


def describe_number_format(column: Column) -> str:
    """What a number of this column looks like, for a sentence."""
    if column.time_format:
        return f"times such as {column.time_format}"
    unit = f" with {column.unit}" if column.unit else ""
    mark = " with a decimal comma" if column.decimal == "," else ""
    return f"numbers{unit}{mark}"


# ----------------------------------------------------------------------------------------- features
def encode_column(column: Column, cells: Series, strict: bool = True) -> np.ndarray:
    """float64 [N, width], the features of a column's cells. Raises UsageError for what it cannot
    read.

    strict: whether a category that the column does not know is an error; if not, all of its
    features are 0.
    """
    if column.kind == NUMBER:
        numbers = parse_numbers(column, cells)
        with np.errstate(over="ignore", invalid="ignore"):
            ready = (numbers - column.mean) / column.scale
            ready = np.nan_to_num(ready, nan=0.0, posinf=np.inf, neginf=-np.inf)
            is_finite = np.isfinite(ready.astype(np.float32)).all()
        if not is_finite:
            raise UsageError(
                f"The numbers of column {column.name!r} are too large to standardise in 32-bit "
                "numbers; rescale them."
            )
        return ready[:, None]
    texts = mask_missing(to_texts(cells), column.missing)
    if column.kind == WORDS:
        return hash_words(texts)
    if column.kind == LEFT_OUT:
        return np.zeros((len(cells), 0))
    values = match_categories(column, texts, strict)
    return (values[:, None] == np.array(column.categories, dtype=object)).astype(float)


def match_categories(column: Column, texts: Series, strict: bool) -> np.ndarray:
    """object [N], each text as the column's categories write it, None for no value."""
    category_by_key = {}
    for text in (*column.other_categories, *column.categories):
        category_by_key[make_category_key(text, column.ignore_case)] = text
    matched = {}
    for text in texts.dropna().unique():
        key = make_category_key(text, column.ignore_case)
        if key in category_by_key:
            matched[text] = category_by_key[key]
        elif strict:
            allowed = ", ".join(map(repr, column.categories[:12]))
            raise UsageError(
                f"Column {column.name!r} has the value {text[:40]!r}, which the training rows do "
                f"not have; they have {allowed}: correct it, or leave it empty for a missing value."
            )
    return np.array([matched.get(text) for text in texts], dtype=object)


def make_category_key(text: str, ignore_case: bool) -> Any:
    """Equal for texts that are one category: 1 and 1.0 are."""
    has_leading_zero = re.match(r"[+-]?0\d", text)
    if is_plain_number(text) and not has_leading_zero:
        return float(text)
    return text.casefold() if ignore_case else text


def hash_words(texts: Iterable[str | None]) -> np.ndarray:
    """float64 [N, HASHED_FEATURES]: words counted with a sign at hashed places, rows of length
    √HASHED_FEATURES, so that a number is about 1 in size; zeros for no text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=HASHED_FEATURES, norm=None, token_pattern=r"(?u)\b\w+\b"
    )
    documents = [text if isinstance(text, str) else "" for text in texts]
    counts = vectorizer.transform(documents).toarray()
    # squares of whole numbers: their sum is exact in any order
    length = np.sqrt((counts * counts).sum(axis=1, keepdims=True))
    return np.sqrt(HASHED_FEATURES) * (counts / np.where(length > 0, length, 1.0))
