"""One column of a table: its kind, and the conversion of its cells to numbers.

A column holds numbers, categories (one feature for each value) or words (hashed), or it is left out.
`ColumnSchema` keeps everything that is needed to turn a raw cell into features, so that new rows are
processed exactly as the training rows were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from fedlab_nb.data.array_types import FeatureArray, NumberOrNanPerRow, TextOrNoneArray
from fedlab_nb.data.cells import (
    convert_column_to_texts,
    has_numeric_dtype,
    is_plain_number,
    replace_missing_texts_by_none,
)
from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import JsonObject, JsonValue

if TYPE_CHECKING:
    from pandas import Series

TextOrNumber = str | float

NUMBER: Final = "number"
CATEGORY: Final = "category"
WORDS: Final = "words"
LEFT_OUT: Final = "left out"
KINDS = (NUMBER, CATEGORY, WORDS, LEFT_OUT)
SHOWN_VALUES = 6  # values of a category that a data card lists at most
HASHED_FEATURES = 256  # features of a bag of words
MINUS_SIGNS = (
    "\u2212\u2012\u2013\ufe63\uff0d"  # other characters for a minus, in spreadsheets and papers
)
SPACES = "\u00a0\u2009\u202f"  # spaces that group thousands
DecimalMark = Literal[".", ","]
# The character that groups thousands, by the decimal mark.
GROUPERS: dict[DecimalMark, str] = {".": ",", ",": "."}
ColumnKind = Literal["number", "category", "words", "left out"]

# The parts of a cell besides its digits: a comparison (<0.1), a currency in front, a unit behind.
PREFIX = (
    r"(?P<compare>[<>≤≥]=?\s*)?(?P<sign>[+-]?)\s*(?P<currency>[$€£¥₹]|(?:USD|EUR|GBP|CHF)\s)?\s*"
)
SIGN_AFTER_CURRENCY = r"(?P<late_sign>[+-]?)"
SUFFIX = r"\s*(?P<unit>[%‰°µμ€$£¥₹a-zA-Z][%‰°µμ€$£¥₹a-zA-Z²³/.^*·-]*[23]?)?"
EXPONENT = r"(?:[eE][+-]?\d+)?"


@dataclass(frozen=True)
class ColumnSchema:
    """The kind of a column, and how its cells become features.

    name:        its name in the table
    kind:        "number", "category", "words" or "left out"
    reason:      why it is of this kind, in a sentence for the user
    mean, scale: of a number: its feature is (value - mean) / scale, or 0 if there is no value
    categories:  of a category: its values, in the order of its features
    other_categories: values that only test rows have; there is no feature for them, so that all
                 features are 0
    ignore_case: whether values that differ only in case are the same
    decimal:     the decimal mark of a number, "." or ","
    grouped:     whether thousands are grouped, as in 1,234.5
    unit:        the unit in every cell, such as "%" or "mg"
    time_format: of a date or a time of day: its format, as in `strptime`
    missing:     texts that mean a missing value in this column, in lower case
    """

    name: str
    kind: ColumnKind
    reason: str = ""
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    other_categories: tuple[str, ...] = ()
    ignore_case: bool = False
    decimal: DecimalMark = "."
    grouped: bool = False
    unit: str = ""
    time_format: str = ""
    missing: tuple[str, ...] = ()

    @property
    def feature_count(self) -> int:
        """The number of features that the column becomes."""
        if self.kind == NUMBER:
            return 1
        if self.kind == CATEGORY:
            return len(self.categories)
        if self.kind == WORDS:
            return HASHED_FEATURES
        return 0

    def describe_values(self) -> str:
        """Describe the column's values in a few words, for a data card."""
        if self.kind == NUMBER:
            return f"mean {self.mean:.4g}, deviation {self.scale:.4g}"
        if self.kind == CATEGORY:
            values = ", ".join(self.categories[:SHOWN_VALUES])
            hidden_count = len(self.categories) - SHOWN_VALUES
            if hidden_count > 0:
                values += f", and {hidden_count} more"
            return values
        if self.kind == WORDS:
            return f"{self.feature_count} hashed features"
        return ""

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, JsonValue]) -> ColumnSchema:
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
class NumberCellParts:
    """The parts of a cell that may be a number: `body` still has its marks, as in 1.234,5."""

    body: str
    sign: str
    exponent: str
    unit: str
    compare: str


def split_number_and_unit(text: str) -> NumberCellParts | None:
    """Split a cell into its parts; None if it is not a number in any convention.

    >>> split_number_and_unit("$1,200.50")
    NumberCellParts(body='1,200.50', sign='', exponent='', unit='$', compare='')
    >>> split_number_and_unit("<0.1 mg").compare, split_number_and_unit("P001")
    ('<', None)
    """
    plain = PLAIN_CELL.fullmatch(text)
    if plain is not None:  # the usual case, and much faster
        return NumberCellParts(plain[2], plain[1], plain[3], "", "")
    for sign in MINUS_SIGNS:
        text = text.replace(sign, "-")
    match = CELL.fullmatch(text.strip())
    if match is None:
        return None
    currency = (match["currency"] or "").strip()
    unit = match["unit"] or ""
    has_two_units = currency and unit
    has_two_signs = match["sign"] and match["late_sign"]
    if has_two_units or has_two_signs:
        return None
    return NumberCellParts(
        body=match["body"].strip(),
        sign=match["sign"] or match["late_sign"],
        exponent=match["exponent"],
        unit=currency or unit,
        compare=(match["compare"] or "").strip(),
    )


def compile_number_pattern(decimal_mark: DecimalMark) -> re.Pattern[str]:
    """Compile the pattern of a number's body with that decimal mark; group 1 matches if thousands are
    grouped."""
    mark = re.escape(decimal_mark)
    grouper = re.escape(GROUPERS[decimal_mark])
    grouped = rf"[1-9]\d{{0,2}}([{grouper}' {SPACES}])\d{{3}}(?:\1\d{{3}})*(?:{mark}\d*)?"
    return re.compile(rf"\d+(?:{mark}\d*)?|{mark}\d+|{grouped}", re.ASCII)


BODIES = {decimal: compile_number_pattern(decimal) for decimal in GROUPERS}


def parse_number_with_decimal_mark(
    cell_parts: NumberCellParts, decimal_mark: DecimalMark, allows_grouped_thousands: bool
) -> float | None:
    """Parse a cell as a number with that decimal mark; None if it is not one."""
    if cell_parts.body.isdecimal():
        return float(f"{cell_parts.sign}{cell_parts.body}{cell_parts.exponent}")
    match = BODIES[decimal_mark].fullmatch(cell_parts.body)
    if match is None:
        return None
    if match[1] and (cell_parts.exponent or not allows_grouped_thousands):
        return None
    grouper = re.escape(GROUPERS[decimal_mark])
    digits = re.sub(rf"[{grouper}' {SPACES}]", "", cell_parts.body)
    digits = digits.replace(decimal_mark, ".")
    return float(f"{cell_parts.sign}{digits}{cell_parts.exponent}")


def normalise_unit_spelling(unit: str) -> str:
    """Write a unit in a form in which neither case nor the choice of sign for micro (µ, μ)
    matters."""
    return unit.lower().replace("\u00b5", "\u03bc")


def convert_dates_to_days_or_clock_times_to_seconds(texts: Series, strptime_format: str) -> Series:
    """Convert dates to days since 1970, and times of day to seconds since midnight.

    A text that is neither gives nan. The index is that of `texts`.
    """
    import pandas

    if strptime_format in CLOCK_FORMATS:
        seconds = [parse_seconds_since_midnight_or_nan(text, strptime_format) for text in texts]
        return pandas.Series(seconds, index=texts.index, dtype=float)
    moments = pandas.to_datetime(texts, format=strptime_format, errors="coerce", utc=True)
    days = (moments - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)
    return days.astype(float)


CLOCK_FORMATS = {
    "%H:%M": r"(\d{1,2}):([0-5]\d)()",
    "%H:%M:%S": r"(\d{1,2}):([0-5]\d):([0-5]\d)",
}


def parse_seconds_since_midnight_or_nan(text: str, clock_format: str) -> float:
    """Parse a time of day as seconds since midnight; nan if it is none."""
    match = re.fullmatch(CLOCK_FORMATS[clock_format], text, re.ASCII)
    if not match:
        return float("nan")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def parse_number_column(column_schema: ColumnSchema, cells: Series) -> NumberOrNanPerRow:
    """Parse the cells of a column of numbers: float64 [N], nan for a missing value.

    cells: texts and None, or numbers; the index is the line of each cell in its file

    Raises UsageError for a cell that is not a number in the column's own convention.
    """
    if has_numeric_dtype(cells) and not column_schema.time_format:
        values = cells.to_numpy(dtype=float, na_value=np.nan)
        for token in column_schema.missing:
            if re.fullmatch(r"[+-]?\d+\.?\d*", token):
                values = np.where(values == float(token), np.nan, values)
        if np.isinf(values).any():
            raise UsageError(f"Column {column_schema.name!r} holds infinity; correct it.")
        return values
    texts = replace_missing_texts_by_none(
        convert_column_to_texts(cells), column_schema.missing
    ).dropna()
    if column_schema.time_format:
        numbers = convert_dates_to_days_or_clock_times_to_seconds(texts, column_schema.time_format)
    elif (
        column_schema.decimal == "." and not column_schema.unit and all(map(is_plain_number, texts))
    ):
        numbers = texts.astype(float)  # the usual case, and much faster
    else:
        number_of_text = {
            text: parse_number_text_or_nan(column_schema, text) for text in texts.unique()
        }
        numbers = texts.map(number_of_text).astype(float)
    wrong = texts[numbers.isna()]
    for line, text in wrong.items():
        raise UsageError(
            f"Column {column_schema.name!r} holds {describe_number_format(column_schema)}, but {text[:40]!r} in line "
            f"{line}; correct that cell, or leave it empty for a missing value."
        )
    for text in texts[~np.isfinite(numbers)]:
        raise UsageError(
            f"Column {column_schema.name!r} holds {text[:40]}, too large for a number; correct it."
        )
    return numbers.reindex(cells.index).to_numpy(dtype=float)


def parse_number_text_or_nan(column_schema: ColumnSchema, text: str) -> float:
    """Parse a cell as a number; nan if it is not one. `<0.1` is read as 0.1."""
    cell = split_number_and_unit(text)
    if cell is None:
        return float("nan")
    if normalise_unit_spelling(cell.unit) != normalise_unit_spelling(column_schema.unit):
        return float("nan")
    value = parse_number_with_decimal_mark(cell, column_schema.decimal, column_schema.grouped)
    if value is None:
        return float("nan")
    return value


def describe_number_format(column_schema: ColumnSchema) -> str:
    """Describe the numbers of a column, for an error message."""
    if column_schema.time_format:
        return f"times such as {column_schema.time_format}"
    unit = f" with {column_schema.unit}" if column_schema.unit else ""
    mark = " with a decimal comma" if column_schema.decimal == "," else ""
    return f"numbers{unit}{mark}"


# ----------------------------------------------------------------------------------------- features
def encode_cells_as_features(
    column_schema: ColumnSchema, cells: Series, reject_unknown_categories: bool = True
) -> FeatureArray:
    """Encode a column's cells as features, float64 [N, width]. Raises UsageError for a cell that cannot
    be read.

    reject_unknown_categories: whether a category that the column does not know is an error; if not,
        all features are 0 for it
    """
    if column_schema.kind == NUMBER:
        numbers = parse_number_column(column_schema, cells)
        with np.errstate(over="ignore", invalid="ignore"):
            standardised = (numbers - column_schema.mean) / column_schema.scale
            # A missing value becomes 0, the mean; infinity is kept, and refused below.
            standardised = np.nan_to_num(standardised, nan=0.0, posinf=np.inf, neginf=-np.inf)
            is_finite = np.isfinite(standardised.astype(np.float32)).all()
        if not is_finite:
            raise UsageError(
                f"The numbers of column {column_schema.name!r} are too large to standardise in 32-bit "
                "numbers; rescale them."
            )
        return standardised[:, None]
    texts = replace_missing_texts_by_none(convert_column_to_texts(cells), column_schema.missing)
    if column_schema.kind == WORDS:
        return encode_texts_as_hashed_words(texts)
    if column_schema.kind == LEFT_OUT:
        return np.zeros((len(cells), 0))
    values = match_texts_to_categories(column_schema, texts, reject_unknown_categories)
    categories = np.array(column_schema.categories, dtype=object)
    is_category = values[:, None] == categories  # [N, number of categories]
    return is_category.astype(float)


def match_texts_to_categories(
    column_schema: ColumnSchema, texts: Series, reject_unknown_categories: bool
) -> TextOrNoneArray:
    """Find the category of each text: object [N], spelt as in the column; None for a missing or unknown
    one."""
    category_by_key = {}
    for text in (*column_schema.other_categories, *column_schema.categories):
        category_by_key[make_category_comparison_key(text, column_schema.ignore_case)] = text
    matched = {}
    for text in texts.dropna().unique():
        key = make_category_comparison_key(text, column_schema.ignore_case)
        if key in category_by_key:
            matched[text] = category_by_key[key]
        elif reject_unknown_categories:
            allowed = ", ".join(map(repr, column_schema.categories[:12]))
            raise UsageError(
                f"Column {column_schema.name!r} has the value {text[:40]!r}, which the training rows do "
                f"not have; they have {allowed}: correct it, or leave it empty for a missing value."
            )
    return np.array([matched.get(text) for text in texts], dtype=object)


def make_category_comparison_key(text: str, ignore_case: bool) -> TextOrNumber:
    """Make a key that is equal for texts of the same category, such as 1 and 1.0."""
    has_leading_zero = re.match(r"[+-]?0\d", text)
    if is_plain_number(text) and not has_leading_zero:
        return float(text)
    return text.casefold() if ignore_case else text


def encode_texts_as_hashed_words(texts: Iterable[str | None]) -> FeatureArray:
    """Encode texts as hashed bags of words, float64 [N, HASHED_FEATURES].

    A hash of each word chooses the feature in which it is counted, and the sign. Each row is scaled
    to the length √HASHED_FEATURES, so that its numbers are about 1 in size; a missing text gives
    zeros.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=HASHED_FEATURES, norm=None, token_pattern=r"(?u)\b\w+\b"
    )
    documents = [text if isinstance(text, str) else "" for text in texts]
    counts = vectorizer.transform(documents).toarray()
    # The squares of whole numbers have the same exact sum in any order, on every machine.
    length = np.sqrt((counts * counts).sum(axis=1, keepdims=True))
    safe_length = np.where(length > 0, length, 1.0)
    return np.sqrt(HASHED_FEATURES) * (counts / safe_length)
