"""Decide whether each column of a table holds numbers, categories, words or nothing, and say why.

All cells of the column count. If all of them are numbers in one notation, the column holds numbers.
If a few are not, or if the cells can be read in two ways, the table is refused; the error says how to
ask for each reading. An option of the user (`?category=grade`) overrides every guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from fedlab_nb.data.array_types import BooleanPerSample
from fedlab_nb.data.cells import (
    NO_NUMBER,
    NO_VALUE,
    convert_column_to_texts,
    has_numeric_dtype,
    replace_missing_texts_by_none,
)
from fedlab_nb.data.columns import (
    BODIES,
    CATEGORY,
    CLOCK_FORMATS,
    LEFT_OUT,
    NUMBER,
    WORDS,
    ColumnKind,
    ColumnSchema,
    DecimalMark,
    NumberCellParts,
    convert_dates_to_days_or_clock_times_to_seconds,
    make_category_comparison_key,
    normalise_unit_spelling,
    parse_number_with_decimal_mark,
    split_number_and_unit,
)
from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import SentenceOrEmpty

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST_CATEGORIES = 20  # values that get a feature each; more different texts are hashed as words
FEW_CATEGORIES = 10  # the most categories if half of the texts are numbers
MOSTLY = 0.9  # with this share of numbers or more, any other cell is a slip: the table is refused
ORDINALS = ("st", "nd", "rd", "th")  # 1st, 2nd are not units
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y-%m",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S%z",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%B %d, %Y",
)
# Formats of dates with the day first and with the month first: a date may fit both.
TWO_WAY_DATES = (
    ("%d/%m/%Y", "%m/%d/%Y"),
    ("%d/%m/%y", "%m/%d/%y"),
    ("%d-%m-%Y", "%m-%d-%Y"),
    ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
    ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"),
)
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
DATE_LIKE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|\d{4}-\d{2}|\d{1,2}[- ]\w{3,9}[- ]\d{2,4}|\w{3,9} \d{1,2}, \d{4}",
    re.ASCII,
)

# Names of columns that number the rows, and of columns that number people, of whom one may have
# several rows.
ROW_NAMES = set(
    "id ids uuid guid index idx row rowid rownames nr no number key mrn pid identifier record "
    "accession".split()
)
# Names of columns that number rows or people, without a word such as "id".
WHOLE_NAMES = set("patient subject case sample participant # n person patnr patid".split())
GROUP_NAMES = set(
    "patient subject participant person family household user case animal mouse".split()
)
# What is numbered, and the words behind it, as in patient_id: patterns of regular expressions.
NUMBER_WORDS = "id|nr|no|number|num|key|code"
ROW_STEMS = "patient|subject|person|case|record|sample|row|user|passenger|participant|visit|study"
GROUP_STEMS = "patient|subject|person|participant|user|family|household|case|animal"


@dataclass(frozen=True)
class TableReadingOptions:
    """How the user wants a table to be read, and what is known of its file.

    missing: texts that mean a missing value, in small letters; if empty, the usual ones
    decimal: "." or ","; "" if not given
    dates: "day-first" or "month-first"; "" if not given
    ignore_case: whether texts that differ only in case are one category; None if not given
    forced: {the column's name in small letters: the kind that the user gave}
    left_out_reasons: {a column's name in small letters: why it is left out unless the user gives its
        kind}
    """

    file: str
    separator: str = ""
    has_header: bool = True
    missing: tuple[str, ...] = ()
    decimal: DecimalMark | Literal[""] = ""
    dates: Literal["day-first", "month-first", ""] = ""
    ignore_case: bool | None = None
    forced: dict[str, ColumnKind] = field(default_factory=dict)
    left_out_reasons: dict[str, str] = field(default_factory=dict)

    @property
    def texts_for_missing_numbers(self) -> tuple[str, ...]:
        """The texts that mean a missing value in a column of numbers."""
        return ("", *self.missing) if self.missing else NO_NUMBER

    @property
    def texts_for_missing_categories(self) -> tuple[str, ...]:
        """The texts that mean a missing value in a column of categories."""
        return ("", *self.missing) if self.missing else NO_VALUE


@dataclass(frozen=True)
class NumberTraits:
    """The number-like properties of a column's cells.

    cells:    the parts of each different text, None for one that is not a number
    texts:    the texts of all rows that have a value
    share:    of these rows, how many hold a number
    decimals: the decimal marks with which all numbers can be read
    marks:    which of point and comma occur in the numbers
    """

    cells: dict[str, NumberCellParts | None]
    texts: Series
    share: float
    decimals: tuple[DecimalMark, ...]
    marks: str

    @property
    def are_all_numbers(self) -> bool:
        return bool(self.cells) and self.share == 1

    @property
    def has_two_decimal_readings(self) -> bool:
        """Whether the cells are numbers both with a decimal point and with a decimal comma, and the two
        readings differ."""
        return self.are_all_numbers and len(self.decimals) == 2 and bool(self.marks)


# -------------------------------------------------------------------------------------- all columns
def infer_column_schemas(
    table: DataFrame,
    other_columns: DataFrame,
    is_training_row: BooleanPerSample,
    reading: TableReadingOptions,
) -> list[ColumnSchema]:
    """Find the kind of each column of `table`; means and scales are still missing.

    other_columns: the columns of label, clients and the like, whose numbers show the decimal mark,
    too
    is_training_row:  bool [N], the rows that lists of categories are made from
    """
    traits = find_number_traits_of_text_columns(table, reading)
    other_traits = find_number_traits_of_text_columns(other_columns, reading)
    evidence = find_unambiguous_decimal_marks([*traits.values(), *other_traits.values()])
    columns = []
    for index, name in enumerate(table.columns):
        forced = reading.forced.get(name.casefold())
        is_saved_index = index == 0 and name == "column 1" and reading.has_header
        column = infer_column_schema(
            name,
            table[name],
            traits.get(name),
            is_saved_index,
            is_training_row,
            evidence,
            reading,
            forced,
        )
        columns.append(column)
    return columns


def infer_column_schema(
    column_name: str,
    cells: Series,
    number_traits: NumberTraits | None,
    is_saved_index: bool,
    is_training_row: BooleanPerSample,
    unambiguous_decimal_marks: set[DecimalMark],
    reading: TableReadingOptions,
    forced_kind: ColumnKind | None,
) -> ColumnSchema:
    """Find the kind of one column. Raises UsageError for a column that can be read in several
    ways."""
    if forced_kind == LEFT_OUT:
        return ColumnSchema(column_name, LEFT_OUT, "You left it out.")
    if forced_kind == CATEGORY:
        return make_category_column_schema(
            column_name, cells, is_training_row, reading, "You said so."
        )
    if forced_kind == WORDS:
        return ColumnSchema(
            column_name, WORDS, "You said so.", missing=reading.texts_for_missing_numbers
        )
    if not forced_kind and column_name.casefold() in reading.left_out_reasons:
        return ColumnSchema(column_name, LEFT_OUT, reading.left_out_reasons[column_name.casefold()])
    if cells.isna().all():
        return ColumnSchema(column_name, LEFT_OUT, "It has no values.")
    if number_traits is None:
        reason = ""
        if not forced_kind:
            reason = explain_if_row_number_or_person_id(column_name, cells.dropna(), is_saved_index)
        if reason:
            return ColumnSchema(column_name, LEFT_OUT, reason)
        return ColumnSchema(
            column_name,
            NUMBER,
            "Its values are numbers.",
            missing=reading.texts_for_missing_numbers,
        )
    if not len(number_traits.texts):
        return ColumnSchema(
            column_name, LEFT_OUT, "It has no values.", missing=reading.texts_for_missing_numbers
        )
    time_format = find_time_format_or_empty(column_name, number_traits.texts, reading)
    if time_format:
        return make_time_column_schema(column_name, time_format, reading)
    if number_traits.are_all_numbers:
        column = infer_number_column_schema(
            column_name,
            number_traits,
            unambiguous_decimal_marks,
            is_saved_index,
            reading,
            forced_kind,
        )
        if column is not None:
            return column
    elif (
        number_traits.share >= MOSTLY
        or forced_kind == NUMBER
        or is_number_column_with_wrong_cells(number_traits)
    ):
        raise_if_text_among_numbers(column_name, number_traits, reading)
    return infer_text_column_schema(
        column_name, cells, number_traits, is_training_row, is_saved_index, reading
    )


def make_time_column_schema(
    column_name: str, strptime_format: str, reading: TableReadingOptions
) -> ColumnSchema:
    """Make a column of dates or of times of day."""
    description = "dates, as days since 1970"
    if strptime_format in CLOCK_FORMATS:
        description = "times of day, as seconds"
    reason = f"Its values are {description} ({strptime_format})."
    return ColumnSchema(
        column_name,
        NUMBER,
        reason,
        time_format=strptime_format,
        missing=reading.texts_for_missing_numbers,
    )


# ------------------------------------------------------------------------------------------ numbers
def find_number_traits_of_text_columns(
    table: DataFrame, reading: TableReadingOptions
) -> dict[str, NumberTraits]:
    """Find the number-like properties of each column of texts, by the column's name."""
    traits = {}
    for name in table.columns:
        if not has_numeric_dtype(table[name]):
            traits[name] = find_number_traits(table[name], reading)
    return traits


def find_number_traits(cells: Series, reading: TableReadingOptions) -> NumberTraits:
    """Find the number-like properties of a column's texts."""
    texts = replace_missing_texts_by_none(
        convert_column_to_texts(cells), reading.texts_for_missing_numbers
    ).dropna()
    cells_of_texts = {text: split_number_with_any_decimal_mark(text) for text in texts.unique()}
    numbers = [cell for cell in cells_of_texts.values() if cell is not None]
    share = 0.0
    if len(texts):
        share = float(texts.map(lambda text: cells_of_texts[text] is not None).mean())
    decimals = []
    for decimal in BODIES:
        values = [parse_number_with_decimal_mark(cell, decimal, True) for cell in numbers]
        if values and None not in values:
            decimals.append(decimal)
    marks = "".join(mark for mark in ".," if any(mark in cell.body for cell in numbers))
    return NumberTraits(cells_of_texts, texts, share, tuple(decimals), marks)


def split_number_with_any_decimal_mark(text: str) -> NumberCellParts | None:
    """Split a number in either notation into its parts; None for a text that is not a number."""
    cell = split_number_and_unit(text)
    if cell is None:
        return None
    if all(parse_number_with_decimal_mark(cell, decimal, True) is None for decimal in BODIES):
        return None
    return cell


def choose_decimal_mark(
    column_name: str,
    number_traits: NumberTraits,
    unambiguous_decimal_marks: set[DecimalMark],
    reading: TableReadingOptions,
) -> DecimalMark:
    """Choose the decimal mark of a column of numbers. Raises UsageError if the column can be read in
    two ways."""
    if reading.decimal:
        if reading.decimal not in number_traits.decimals:
            wrong = find_first_unreadable_number(number_traits, reading.decimal)
            raise UsageError(
                f"Column {column_name!r} of {reading.file} holds {wrong!r}, which is no number with "
                f"decimal={reading.decimal}; correct it, or leave decimal out."
            )
        return reading.decimal
    if not number_traits.decimals:
        with_point = find_first_unreadable_number(number_traits, ",")
        with_comma = find_first_unreadable_number(number_traits, ".")
        raise UsageError(
            f"Column {column_name!r} of {reading.file} holds {with_point!r} and {with_comma!r}, a point "
            "and a comma as decimal marks; write all cells alike."
        )
    if not number_traits.has_two_decimal_readings:
        return number_traits.decimals[0]
    if len(unambiguous_decimal_marks) == 1:
        return next(iter(unambiguous_decimal_marks))
    if number_traits.marks == "." and not unambiguous_decimal_marks and reading.separator != ";":
        return "."
    example = next(
        text for text, cell in number_traits.cells.items() if cell and re.search("[.,]", cell.body)
    )
    raise UsageError(
        f"Column {column_name!r} of {reading.file} holds {example!r}, which can be read in two ways; say "
        "?decimal=point or ?decimal=comma, whichever is its decimal mark."
    )


def find_first_unreadable_number(traits: NumberTraits, decimal_mark: DecimalMark) -> str:
    """Find the first number of a column that cannot be read with this decimal mark."""
    for text, cell in traits.cells.items():
        if cell and parse_number_with_decimal_mark(cell, decimal_mark, True) is None:
            return text
    raise AssertionError(f"all numbers can be read with {decimal_mark!r}")


def find_unambiguous_decimal_marks(traits_of_columns: Iterable[NumberTraits]) -> set[DecimalMark]:
    """Find the decimal marks of the columns that can be read in one way only."""
    evidence: set[DecimalMark] = set()
    for traits in traits_of_columns:
        if traits.are_all_numbers and traits.marks and len(traits.decimals) == 1:
            evidence.add(traits.decimals[0])
    return evidence


def infer_number_column_schema(
    column_name: str,
    number_traits: NumberTraits,
    unambiguous_decimal_marks: set[DecimalMark],
    is_saved_index: bool,
    reading: TableReadingOptions,
    forced_kind: ColumnKind | None,
) -> ColumnSchema | None:
    """Make a column whose cells are all numbers; None if they name categories, such as 1a and 2b."""
    numbers = {text: cell for text, cell in number_traits.cells.items() if cell is not None}
    units = {normalise_unit_spelling(cell.unit): cell.unit for cell in numbers.values()}
    if len(units) > 1:
        if forced_kind != NUMBER and not any(is_plausible_unit(unit) for unit in units):
            return None
        raise_mixed_units_error(column_name, numbers, sorted(units), reading)
    unit = next(iter(units.values()))
    compared = [text for text, cell in numbers.items() if cell.compare]
    if len(compared) == len(numbers) and forced_kind != NUMBER:
        return None
    is_whole = all(re.fullmatch(r"\d+(\.0+)?", cell.body) for cell in numbers.values())
    has_digits_alone = all(is_written_in_digits_alone(cell) for cell in numbers.values())
    is_integer = has_digits_alone and not unit and not compared
    # Numbers of rows and of people become 1.0 where some of them were missing.
    may_number_rows = (
        is_integer or is_whole and not unit and is_row_number_or_person_id_name(column_name)
    )
    if may_number_rows and not forced_kind:
        reason = explain_if_row_number_or_person_id(
            column_name, number_traits.texts, is_saved_index
        )
        if reason:
            return ColumnSchema(column_name, LEFT_OUT, reason)
    if is_integer and not forced_kind and are_codes_with_leading_zeros(number_traits.texts):
        if number_traits.texts.nunique() <= MOST_CATEGORIES:
            return None
        example = number_traits.texts.iloc[0]
        raise UsageError(
            f"Column {column_name!r} of {reading.file} holds codes with leading zeros, such as "
            f"{example!r}; say what it is: ?number={column_name}, ?words={column_name} or ?leave_out={column_name}."
        )
    decimal = choose_decimal_mark(column_name, number_traits, unambiguous_decimal_marks, reading)
    grouped = any(has_grouped_thousands(cell, decimal) for cell in numbers.values())
    details = []
    if unit:
        details.append(f"in {unit}")
    if decimal == "," and "," in number_traits.marks:
        details.append("with a decimal comma")
    if grouped:
        details.append("with grouped thousands")
    if compared:
        value = compared[0].lstrip("<>≤≥= ")
        details.append(f"where {compared[0]!r} counts as {value}")
    reason = f"Its values are numbers {', '.join(details)}".strip() + "."
    return ColumnSchema(
        column_name,
        NUMBER,
        reason,
        decimal=decimal,
        grouped=grouped,
        unit=unit,
        missing=reading.texts_for_missing_numbers,
    )


def is_plausible_unit(unit: str) -> bool:
    """Whether letters after a number are a unit, and not part of a name such as 1a or 2nd."""
    if not unit or unit in ORDINALS:
        return False
    return len(unit) > 1 or not unit.isalpha()


def raise_mixed_units_error(
    column_name: str,
    cells: dict[str, NumberCellParts],
    units: list[str],
    reading: TableReadingOptions,
) -> NoReturn:
    """Raise a UsageError that shows a cell of each of the first two units."""
    examples = []
    for unit in units[:2]:
        examples.append(
            next(text for text, cell in cells.items() if normalise_unit_spelling(cell.unit) == unit)
        )
    first_example, second_example = examples
    raise UsageError(
        f"Column {column_name!r} of {reading.file} holds {first_example!r} and {second_example!r}; "
        f"write all numbers with the same unit, or with none, or say ?category={column_name}."
    )


def is_written_in_digits_alone(cell: NumberCellParts) -> bool:
    """Whether a number is written in digits alone, without a point, a comma or an exponent."""
    return cell.body.isdecimal() and not cell.exponent


def has_grouped_thousands(cell: NumberCellParts, decimal_mark: DecimalMark) -> bool:
    """Whether the thousands of a number are grouped."""
    has_several_groups = len(re.findall(r"\d+", cell.body)) > 1
    return has_several_groups and parse_number_with_decimal_mark(cell, decimal_mark, False) is None


def are_codes_with_leading_zeros(texts: Series) -> bool:
    """Whether whole numbers are codes: all have the same number of digits, three or more, and some
    begin with 0."""
    lengths = texts.str.len()
    has_one_length = lengths.nunique() == 1
    return bool(has_one_length and lengths.iloc[0] > 2 and texts.str.startswith("0").any())


def is_number_column_with_wrong_cells(traits: NumberTraits) -> bool:
    """Whether at least half of the cells are numbers, with too many values for categories and with
    few age groups among them."""
    numbers = [text for text, parts in traits.cells.items() if parts is not None]
    bands = [text for text in traits.cells if is_number_range(text)]
    return traits.share >= 0.5 and len(numbers) > FEW_CATEGORIES and len(bands) * 2 < len(numbers)


def raise_if_text_among_numbers(
    column_name: str, traits: NumberTraits, reading: TableReadingOptions
) -> None:
    """Raise a UsageError that shows the first cell that is not a number."""
    for line, text in traits.texts.items():
        if traits.cells[text] is None:
            as_missing = f"?missing={text[:40]} or " if text.isprintable() else ""
            raise UsageError(
                f"Column {column_name!r} of {reading.file} holds numbers, but {text[:40]!r} in line "
                f"{line}; correct that cell, leave it empty for a missing value, or say "
                f"{as_missing}?category={column_name}."
            )


# -------------------------------------------------------------------------------------------- texts
def infer_text_column_schema(
    column_name: str,
    cells: Series,
    number_traits: NumberTraits,
    is_training_row: BooleanPerSample,
    is_saved_index: bool,
    reading: TableReadingOptions,
) -> ColumnSchema:
    """Make a column of texts: categories, words, or names of the rows."""
    texts = replace_missing_texts_by_none(
        convert_column_to_texts(cells), reading.texts_for_missing_categories
    )
    present = texts.dropna()
    is_unique = present.is_unique and len(present) > 1
    has_blanks = bool(present.str.contains(r"\s").any())
    has_row_names = is_row_number_name(column_name) or are_numbered_with_one_prefix(present)
    names_rows = ColumnSchema(
        column_name, LEFT_OUT, "Every row has a value of its own: it names the rows."
    )
    if is_unique and (is_saved_index or not has_blanks and has_row_names):
        return names_rows
    has_many = (
        present.nunique() > MOST_CATEGORIES
        or len(split_column_name_into_lowercase_words(column_name)) > 1
    )
    if is_person_id_name(column_name) and not is_unique and has_many:
        return ColumnSchema(
            column_name,
            LEFT_OUT,
            f"It names whose rows these are; ?group={column_name} keeps them in one part.",
        )
    share_of_bands = present.map(is_number_range).mean() if len(present) else 0
    most_categories = MOST_CATEGORIES
    if share_of_bands < 0.5 and number_traits.share >= 0.5:
        most_categories = FEW_CATEGORIES
    if texts[is_training_row].nunique() <= most_categories:
        return make_category_column_schema(column_name, cells, is_training_row, reading, "")
    is_nearly_number = present.map(looks_like_number_with_short_suffix)
    if len(present) and is_nearly_number.mean() >= 0.5:
        example = present[is_nearly_number].iloc[0]
        raise UsageError(
            f"Column {column_name!r} of {reading.file} holds {example[:40]!r} and other values that are "
            f"nearly numbers; write plain numbers, or say what it is: ?category={column_name}, "
            f"?words={column_name} or ?leave_out={column_name}."
        )
    if is_unique and not has_blanks and texts.notna().all():
        return names_rows
    reason = f"It has more than {MOST_CATEGORIES} different texts: their words are hashed."
    return ColumnSchema(column_name, WORDS, reason, missing=reading.texts_for_missing_numbers)


def make_category_column_schema(
    column_name: str,
    cells: Series,
    is_training_row: BooleanPerSample,
    reading: TableReadingOptions,
    reason: str,
) -> ColumnSchema:
    """Make a column of categories; each text of the training rows gets a feature."""
    texts = replace_missing_texts_by_none(
        convert_column_to_texts(cells), reading.texts_for_missing_categories
    )
    ignore_case = bool(reading.ignore_case)
    categories = list_distinct_categories_sorted(
        texts[is_training_row].dropna().unique(), ignore_case
    )
    known_keys = {make_category_comparison_key(text, ignore_case) for text in categories}
    other_categories = []
    for text in list_distinct_categories_sorted(texts.dropna().unique(), ignore_case):
        if make_category_comparison_key(text, ignore_case) not in known_keys:
            other_categories.append(text)
    return ColumnSchema(
        column_name,
        CATEGORY,
        reason or f"It has {len(categories)} different values.",
        categories=tuple(categories),
        other_categories=tuple(other_categories),
        ignore_case=ignore_case,
        missing=reading.texts_for_missing_categories,
    )


def list_distinct_categories_sorted(texts: Iterable[str], ignore_case: bool) -> list[str]:
    """List the texts in alphabetical order, each category once: 1 and 1.0 are the same."""
    by_key: dict = {}
    for text in sorted(texts):
        by_key.setdefault(make_category_comparison_key(text, ignore_case), text)
    return sorted(by_key.values())


def is_number_range(text: str) -> bool:
    """Whether a text is a range of numbers, as age groups are.

    >>> [is_number_range(text) for text in ("10-19", "85+", "<5", "12,5")]
    [True, True, True, False]
    """
    pattern = r"\d+([.,]\d+)?\s*(-|\u2013|to|bis)\s*\d+([.,]\d+)?|\d+\s*\+|[<>≤≥]=?\s*\d+"
    return re.fullmatch(pattern, text, re.ASCII) is not None


def looks_like_number_with_short_suffix(text: str) -> bool:
    """Whether a text is nearly a number: it begins with digits, and hardly a letter follows.

    >>> looks_like_number_with_short_suffix("120/80"), looks_like_number_with_short_suffix("12 mg")
    (True, True)
    >>> looks_like_number_with_short_suffix("E11.9"), looks_like_number_with_short_suffix("3 weeks of pain")
    (False, False)
    """
    letters = sum(character.isalpha() for character in text)
    begins_with_number = re.match(r"[~≈<>≤≥=('\"\s]*[+\-\u2212$€£]?\s*[.,]?\d", text)
    return begins_with_number is not None and letters <= 6


def find_time_format_or_empty(column_name: str, texts: Series, reading: TableReadingOptions) -> str:
    """Find the format of a column of dates or times of day; "" for other columns. Raises UsageError
    for dates that can be read in two ways."""
    sample = str(texts.iloc[0])
    for clock, pattern in CLOCK_FORMATS.items():
        if not re.fullmatch(pattern, sample, re.ASCII):
            continue
        if convert_dates_to_days_or_clock_times_to_seconds(texts, clock).notna().all():
            return clock
    if not DATE_LIKE.fullmatch(sample):
        return ""
    distinct = texts.drop_duplicates()
    for time_format in DATE_FORMATS:
        if convert_dates_to_days_or_clock_times_to_seconds(distinct, time_format).notna().all():
            return time_format
    for day_first, month_first in TWO_WAY_DATES:
        days = convert_dates_to_days_or_clock_times_to_seconds(distinct, day_first)
        months = convert_dates_to_days_or_clock_times_to_seconds(distinct, month_first)
        fits_day_first = days.notna().all()
        fits_month_first = months.notna().all()
        if fits_day_first and not fits_month_first:
            return day_first
        if fits_month_first and not fits_day_first:
            return month_first
        if not fits_day_first:
            continue
        if days.equals(months) or reading.dates == DAY_FIRST:
            return day_first
        if reading.dates == MONTH_FIRST:
            return month_first
        raise UsageError(
            f"Column {column_name!r} of {reading.file} holds dates such as {sample!r}, which can be read "
            f"in two ways; say ?dates={DAY_FIRST} or ?dates={MONTH_FIRST}."
        )
    return ""


# ------------------------------------------------------------------------------------ names of rows
def split_column_name_into_lowercase_words(column_name: str) -> list[str]:
    """Split a column's name into words.

    >>> names = ("PatientID", "row_nr", "Unnamed: 0")
    >>> [split_column_name_into_lowercase_words(name) for name in names]
    [['patient', 'id'], ['row', 'nr'], ['unnamed', '0']]
    """
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|#", column_name)
    return [word.lower() for word in words]


def is_row_number_name(column_name: str) -> bool:
    """Whether a column's name says that it numbers the rows."""
    parts = split_column_name_into_lowercase_words(column_name)
    text = column_name.lower().strip()
    if re.fullmatch(rf"({ROW_STEMS})s?[ _.-]?({NUMBER_WORDS})", text) or text in WHOLE_NAMES:
        return True
    return bool(parts) and (parts[-1] in ROW_NAMES or parts[0] in ("id", "unnamed"))


def is_person_id_name(column_name: str) -> bool:
    """Whether a column's name says that it numbers people, who may have several rows."""
    parts = split_column_name_into_lowercase_words(column_name)
    text = column_name.lower().strip()
    if re.fullmatch(rf"({GROUP_STEMS})s?[ _.-]?({NUMBER_WORDS})", text):
        return True
    if text in ("mrn", "pid", "patient", "subject", "participant"):
        return True
    return bool(parts) and parts[0] in GROUP_NAMES and parts[-1] in ROW_NAMES


def is_row_number_or_person_id_name(column_name: str) -> bool:
    """Whether a column's name says that it numbers rows or people."""
    return is_row_number_name(column_name) or is_person_id_name(column_name)


def explain_if_row_number_or_person_id(
    column_name: str, values: Series, is_saved_index: bool
) -> SentenceOrEmpty:
    """Say why a column of whole numbers is not a feature; "" if it is one.

    It names the rows where its numbers are whole, differ in every row, and are a plain count or
    have such a name, or where they are the first column and have no name, as an index has that was
    saved with a table.
    """
    if len(values) < 3:
        return ""
    if has_numeric_dtype(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        is_whole = (numbers == np.floor(numbers)).all()
        is_integer = values.dtype.kind in "iu"
        if not is_integer and not (is_whole and is_row_number_or_person_id_name(column_name)):
            return ""
    else:
        number_of_text = {}
        for text in values.unique():
            cell = split_number_with_any_decimal_mark(text)
            number_of_text[text] = parse_number_with_decimal_mark(cell, ".", True) if cell else None
        numbers = values.map(number_of_text).to_numpy(dtype=float)
    if len(np.unique(numbers)) < len(numbers):
        if is_person_id_name(column_name):
            return f"It names whose rows these are; ?group={column_name} keeps the rows of each in one part."
        return ""
    if is_saved_index:
        return "It is an index that was saved with the table: it names the rows."
    if is_row_number_name(column_name):
        return "Every row has a number of its own, and its name says that it names the rows."
    steps = np.diff(numbers)
    sorted_steps = np.diff(np.sort(numbers))
    if (steps == steps[0]).all() or (sorted_steps == 1).all():
        return "It counts the rows."
    return ""


def are_numbered_with_one_prefix(texts: Series) -> bool:
    """Whether texts are one prefix and a count, as P001, P002."""
    parts = texts.str.extract(r"^(?P<prefix>\D*)(?P<count>\d+)(?P<suffix>\D*)$")
    if len(texts) < 3 or parts.isna().any(axis=None):
        return False
    return parts["prefix"].nunique() == 1 and parts["suffix"].nunique() == 1
