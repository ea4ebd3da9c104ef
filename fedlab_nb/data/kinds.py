"""What each column of a table is taken for, and why: a number, a category, words, or nothing.

The whole column decides. Where all of its cells are numbers in one convention it is a number; where
a few are not, or where the cells can be read in two ways, the table is refused with a sentence that
says how to ask for each reading. A person's own word (`?category=grade`) stands above every guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fedlab_nb.data.cells import (
    NO_NUMBER,
    NO_VALUE,
    is_numeric,
    text_of,
    without_missing,
)
from fedlab_nb.data.columns import (
    BODIES,
    CATEGORY,
    CLOCK_FORMATS,
    LEFT_OUT,
    NUMBER,
    WORDS,
    Column,
    NumberCell,
    body_value,
    category_key,
    read_times,
    same_unit,
    split_number,
)
from fedlab_nb.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST_CATEGORIES = (
    20  # values that get a feature each; a column of more different texts is hashed as words
)
FEW_CATEGORIES = 10  # of texts half of which are numbers; more of them are no categories
MOSTLY = 0.9  # from this share of numbers on, what is none is a slip, and the table is refused
ORDINALS = ("st", "nd", "rd", "th")  # 1st, 2nd are no units
DATE_FORMATS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y-%m", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%z", "%d.%m.%Y",
    "%d.%m.%y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y",
    "%B %d, %Y",
)  # fmt: skip
# Dates that a European and an American read differently: day first, month first.
TWO_WAY_DATES = (
    ("%d/%m/%Y", "%m/%d/%Y"), ("%d/%m/%y", "%m/%d/%y"), ("%d-%m-%Y", "%m-%d-%Y"), ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
    ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"),
)  # fmt: skip
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
DATE_LIKE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|\d{4}-\d{2}|\d{1,2}[- ]\w{3,9}[- ]\d{2,4}|\w{3,9} \d{1,2}, \d{4}",
    re.ASCII,
)

# Names of columns that number the rows, and of columns that number people, of whom one may have several rows.
ROW_NAMES = {
    "id", "ids", "uuid", "guid", "index", "idx", "row", "rowid", "rownames", "nr", "no", "number", "key", "mrn", "pid",
    "identifier", "record", "accession",
}  # fmt: skip
WHOLE_NAMES = {
    "patient",
    "subject",
    "case",
    "sample",
    "participant",
    "#",
    "n",
    "person",
    "patnr",
    "patid",
}
GROUP_NAMES = {
    "patient",
    "subject",
    "participant",
    "person",
    "family",
    "household",
    "user",
    "case",
    "animal",
    "mouse",
}


@dataclass(frozen=True)
class Reading:
    """How a person wants a table to be read, and what is known of its file.

    missing: texts that count as no value, in small letters; none: the usual ones
    decimal: "." or ",", "" where nothing was said;   dates: "day-first", "month-first" or ""
    ignore_case: whether texts that differ in case alone are one, None where nothing was said
    forced:  kind by the name of the column, in small letters
    asides:  why a column is left out unless the person says otherwise, by its name in small letters
    """

    file: str
    separator: str = ""
    has_header: bool = True
    missing: tuple[str, ...] = ()
    decimal: str = ""
    dates: str = ""
    ignore_case: bool | None = None
    forced: dict[str, str] = field(default_factory=dict)
    asides: dict[str, str] = field(default_factory=dict)

    @property
    def no_number(self) -> tuple[str, ...]:
        return ("", *self.missing) if self.missing else NO_NUMBER

    @property
    def no_value(self) -> tuple[str, ...]:
        return ("", *self.missing) if self.missing else NO_VALUE


@dataclass(frozen=True)
class NumberTraits:
    """What the cells of a column say about numbers: `cells`, each row's parts or None; which
    decimal marks read all of them; whether marks stand in them at all."""

    cells: dict[str, NumberCell | None]
    texts: Series
    share: float
    decimals: tuple[str, ...]
    marks: str

    @property
    def is_number(self) -> bool:
        return bool(self.cells) and self.share == 1

    @property
    def is_two_way(self) -> bool:
        """Whether the cells are numbers with a point as well as with a comma, and not the same
        ones."""
        return self.is_number and len(self.decimals) == 2 and bool(self.marks)


def number_traits(cells: Series, reading: Reading) -> NumberTraits:
    """What a column's texts say about numbers."""
    texts = without_missing(text_of(cells), reading.no_number).dropna()
    distinct = {text: readable_number(text) for text in texts.unique()}
    good = [parts for parts in distinct.values() if parts is not None]
    share = float(texts.map(lambda text: distinct[text] is not None).mean()) if len(texts) else 0.0
    decimals = []
    for decimal in BODIES:
        if good and all(body_value(parts, decimal, True) is not None for parts in good):
            decimals.append(decimal)
    marks = "".join(mark for mark in ".," if any(mark in parts.body for parts in good))
    return NumberTraits(distinct, texts, share, tuple(decimals), marks)


def readable_number(text: str) -> NumberCell | None:
    """The parts of a number in either convention."""
    parts = split_number(text)
    if parts is None:
        return None
    readable = any(body_value(parts, decimal, True) is not None for decimal in BODIES)
    return parts if readable else None


def choose_decimal(name: str, traits: NumberTraits, evidence: set[str], reading: Reading) -> str:
    """The decimal mark of a column of numbers. Raises UsageError where it can be read in two
    ways."""
    if reading.decimal:
        if reading.decimal not in traits.decimals:
            wrong = next(
                text
                for text, parts in traits.cells.items()
                if parts and body_value(parts, reading.decimal, True) is None
            )
            raise UsageError(
                f"Column {name!r} of {reading.file} holds {wrong!r}, which is no number with "
                f"decimal={reading.decimal}; "
                f"correct it, or leave decimal out."
            )
        return reading.decimal
    if not traits.decimals:
        point = next(
            text
            for text, parts in traits.cells.items()
            if parts and body_value(parts, ",", True) is None
        )
        comma = next(
            text
            for text, parts in traits.cells.items()
            if parts and body_value(parts, ".", True) is None
        )
        raise UsageError(
            f"Column {name!r} of {reading.file} holds {point!r} and {comma!r}, a point and a comma "
            f"as decimal marks; "
            f"write all cells alike."
        )
    if not traits.is_two_way:
        return traits.decimals[0]
    if len(evidence) == 1:
        return next(iter(evidence))
    is_plain = traits.marks == "." and not evidence and reading.separator != ";"
    if is_plain:
        return "."
    example = next(
        text for text, parts in traits.cells.items() if parts and re.search("[.,]", parts.body)
    )
    raise UsageError(
        f"Column {name!r} of {reading.file} holds {example!r}, which can be read in two ways; say "
        f"?decimal=point or ?decimal=comma, whichever is its decimal mark."
    )


def decimal_evidence(traits: Iterable[NumberTraits]) -> set[str]:
    """The decimal marks of the columns that can be read in one way alone."""
    return {
        one.decimals[0] for one in traits if one.is_number and one.marks and len(one.decimals) == 1
    }


# -------------------------------------------------------------------------------------- all columns
def infer_columns(
    table: DataFrame, others: DataFrame, train: np.ndarray, reading: Reading
) -> list[Column]:
    """What each column of `table` is taken for; means and scales are still missing.

    others: the columns of label, clients and the like, whose numbers show the decimal mark, too
    train:  bool [N], the rows that lists of categories are made from
    """
    traits = {}
    for name in table.columns:
        if not is_numeric(table[name]):
            traits[name] = number_traits(table[name], reading)
    all_traits = [
        *traits.values(),
        *(number_traits(others[name], reading) for name in others if not is_numeric(others[name])),
    ]
    evidence = decimal_evidence(all_traits)
    found = []
    for place, name in enumerate(table.columns):
        forced = reading.forced.get(name.casefold(), "")
        is_saved_index = place == 0 and name == "column 1" and reading.has_header
        column = infer_column(
            name, table[name], traits.get(name), is_saved_index, train, evidence, reading, forced
        )
        found.append(column)
    return found


def infer_column(
    name: str,
    cells: Series,
    traits: NumberTraits | None,
    is_saved_index: bool,
    train: np.ndarray,
    evidence: set[str],
    reading: Reading,
    forced: str,
) -> Column:
    """What one column is taken for. Raises UsageError for a column that can be read in several
    ways."""
    if forced == LEFT_OUT:
        return Column(name, LEFT_OUT, "You left it out.")
    if forced == CATEGORY:
        return category_column(name, cells, train, reading, "You said so.")
    if forced == WORDS:
        return Column(name, WORDS, "You said so.", missing=reading.no_number)
    if not forced and name.casefold() in reading.asides:
        return Column(name, LEFT_OUT, reading.asides[name.casefold()])
    if cells.isna().all():
        return Column(name, LEFT_OUT, "It has no values.")
    if traits is None:
        if not forced and (why := why_row_number(name, cells.dropna(), is_saved_index)):
            return Column(name, LEFT_OUT, why)
        return Column(name, NUMBER, "Its values are numbers.", missing=reading.no_number)
    if not len(traits.texts):
        return Column(name, LEFT_OUT, "It has no values.", missing=reading.no_number)
    if time_format := find_time_format(name, traits.texts, reading):
        what = (
            "times of day, as seconds"
            if time_format in CLOCK_FORMATS
            else "dates, as days since 1970"
        )
        return Column(
            name,
            NUMBER,
            f"Its values are {what} ({time_format}).",
            time_format=time_format,
            missing=reading.no_number,
        )
    if traits.is_number:
        column = number_column(name, traits, evidence, is_saved_index, reading, forced)
        if column is not None:
            return column
    elif traits.share >= MOSTLY or forced == NUMBER or is_mostly_numbers(traits):
        refuse_slip(name, traits, reading)
    return text_column(name, cells, traits, train, is_saved_index, reading)


def number_column(
    name: str,
    traits: NumberTraits,
    evidence: set[str],
    is_saved_index: bool,
    reading: Reading,
    forced: str,
) -> Column | None:
    """A column all of whose cells are numbers; None where they are names of categories, such as 1a,
    2b."""
    units = {same_unit(parts.unit): parts.unit for parts in traits.cells.values() if parts}
    parts = [part for part in traits.cells.values() if part]
    if len(units) > 1:
        says_units = any(
            len(unit) > 1 or not unit.isalpha() for unit in units if unit and unit not in ORDINALS
        )
        if not says_units and forced != NUMBER:
            return None
        one, other = [next(text for text, part in traits.cells.items() if part and same_unit(part.unit) == unit)
                      for unit in sorted(units)[:2]]  # fmt: skip
        raise UsageError(
            f"Column {name!r} of {reading.file} holds {one!r} and {other!r}; write all numbers "
            f"with the same unit, or with "
            f"none, or say ?category={name}."
        )
    compared = [text for text, part in traits.cells.items() if part and part.compare]
    if len(compared) == len(parts) and forced != NUMBER:
        return None
    unit = next(iter(units.values()))
    integers = (
        not unit
        and not compared
        and all(part.body.isdecimal() and not part.exponent for part in parts)
    )
    is_counted = all(re.fullmatch(r"\d+(\.0+)?", part.body) for part in parts)
    if is_counted and not integers and not unit and not forced and names_something(name):
        # numbers of rows and of people become 1.0 where some of them were missing
        if why := why_row_number(name, traits.texts, is_saved_index):
            return Column(name, LEFT_OUT, why)
    if integers and not forced:
        if why := why_row_number(name, traits.texts, is_saved_index):
            return Column(name, LEFT_OUT, why)
        if is_code(traits.texts):
            if traits.texts.nunique() <= MOST_CATEGORIES:
                return None
            example = traits.texts.iloc[0]
            raise UsageError(
                f"Column {name!r} of {reading.file} holds codes with leading zeros, such as "
                f"{example!r}; say what it is: "
                f"?number={name}, ?words={name} or ?leave_out={name}."
            )
    decimal = choose_decimal(name, traits, evidence, reading)
    grouped = any(
        len(re.findall(r"\d+", part.body)) > 1 and is_grouped(part, decimal) for part in parts
    )
    about = []
    if unit:
        about.append(f"in {unit}")
    if decimal == "," and "," in traits.marks:
        about.append("with a decimal comma")
    if grouped:
        about.append("with grouped thousands")
    if compared:
        value = compared[0].lstrip("<>≤≥= ")
        about.append(f"where {compared[0]!r} counts as {value}")
    reason = f"Its values are numbers{' ' if about else ''}{', '.join(about)}."
    return Column(
        name, NUMBER, reason, decimal=decimal, grouped=grouped, unit=unit, missing=reading.no_number
    )


def is_grouped(part: NumberCell, decimal: str) -> bool:
    """Whether the thousands of a number are grouped."""
    return body_value(part, decimal, False) is None


def is_code(texts: Series) -> bool:
    """Whether whole numbers are codes: all of three or more digits, as many in each, and some begin
    with 0."""
    lengths = set(texts.str.len())
    return len(lengths) == 1 and lengths.pop() > 2 and bool(texts.str.startswith("0").any())


def is_mostly_numbers(traits: NumberTraits) -> bool:
    """Whether half of the cells are numbers, too many different ones to be categories, and no age
    groups."""
    numbers = [text for text, parts in traits.cells.items() if parts is not None]
    bands = [text for text in traits.cells if is_band(text)]
    return traits.share >= 0.5 and len(numbers) > FEW_CATEGORIES and len(bands) * 2 < len(numbers)


def refuse_slip(name: str, traits: NumberTraits, reading: Reading) -> None:
    """Raises UsageError, which names the first cell that is no number."""
    for line, text in traits.texts.items():
        if traits.cells[text] is None:
            as_missing = f"?missing={text[:40]} or " if text.isprintable() else ""
            raise UsageError(
                f"Column {name!r} of {reading.file} holds numbers, but {text[:40]!r} in line "
                f"{line}; correct that cell, leave it empty for a missing value, or say "
                f"{as_missing}?category={name}."
            )


# -------------------------------------------------------------------------------------------- texts
def text_column(
    name: str,
    cells: Series,
    traits: NumberTraits,
    train: np.ndarray,
    is_saved_index: bool,
    reading: Reading,
) -> Column:
    """A column of texts: a category, words, or names of the rows."""
    texts = without_missing(text_of(cells), reading.no_value)
    there = texts.dropna()
    is_unique = there.is_unique and len(there) > 1
    has_blanks = bool(there.str.contains(r"\s").any())
    names_rows = is_row_name(name) or is_counted_text(there)
    if is_unique and (is_saved_index or not has_blanks and names_rows):
        return Column(name, LEFT_OUT, "Every row has a value of its own: it names the rows.")
    is_many = there.nunique() > MOST_CATEGORIES or len(name_parts(name)) > 1
    if is_group_name(name) and not is_unique and is_many:
        return Column(
            name, LEFT_OUT, f"It names whose rows these are; ?group={name} keeps them in one part."
        )
    bands = there.map(is_band).mean() if len(there) else 0
    most = MOST_CATEGORIES if bands >= 0.5 or traits.share < 0.5 else FEW_CATEGORIES
    if texts[train].nunique() <= most:
        return category_column(name, cells, train, reading, "")
    almost = there.map(looks_numeric)
    if len(there) and almost.mean() >= 0.5:
        example = there[almost].iloc[0]
        raise UsageError(
            f"Column {name!r} of {reading.file} holds {example[:40]!r} and other values that are "
            f"nearly numbers; write "
            f"plain numbers, or say what it is: ?category={name}, ?words={name} or "
            f"?leave_out={name}."
        )
    if is_unique and not has_blanks and texts.notna().all():
        return Column(name, LEFT_OUT, "Every row has a value of its own: it names the rows.")
    return Column(
        name, WORDS, f"It has more than {MOST_CATEGORIES} different texts: their words are hashed.",
        missing=reading.no_number,
    )  # fmt: skip


def category_column(
    name: str, cells: Series, train: np.ndarray, reading: Reading, reason: str
) -> Column:
    """A column of a few texts; those of the training rows get a feature each."""
    texts = without_missing(text_of(cells), reading.no_value)
    ignore_case = bool(reading.ignore_case)
    categories = distinct_texts(texts[train].dropna().unique(), ignore_case)
    keys = {category_key(text, ignore_case) for text in categories}
    rest = distinct_texts(texts.dropna().unique(), ignore_case)
    others = [text for text in rest if category_key(text, ignore_case) not in keys]
    reason = reason or f"It has {len(categories)} different values."
    return Column(
        name, CATEGORY, reason, categories=tuple(categories), other_categories=tuple(others), ignore_case=ignore_case,
        missing=reading.no_value,
    )  # fmt: skip


def distinct_texts(texts: Iterable[str], ignore_case: bool) -> list[str]:
    """The texts in alphabetical order, each category once: 1 and 1.0 are one."""
    found: dict = {}
    for text in sorted(texts, key=lambda text: (text, len(text))):
        found.setdefault(category_key(text, ignore_case), text)
    return sorted(found.values())


def is_band(text: str) -> bool:
    """Whether a text is a range of numbers, as age groups are.

    >>> is_band("10-19"), is_band("85+"), is_band("<5"), is_band("12,5")
    (True, True, True, False)
    """
    pattern = r"\d+([.,]\d+)?\s*(-|\u2013|to|bis)\s*\d+([.,]\d+)?|\d+\s*\+|[<>≤≥]=?\s*\d+"
    return re.fullmatch(pattern, text, re.ASCII) is not None


def looks_numeric(text: str) -> bool:
    """Whether a text is nearly a number: it begins with digits, and hardly a letter follows.

    >>> looks_numeric("120/80"), looks_numeric("12 mg"), looks_numeric("E11.9"), looks_numeric("3 weeks of pain")
    (True, True, False, False)
    """
    letters = sum(char.isalpha() for char in text)
    return letters <= 6 and re.match(r"[~≈<>≤≥=('\"\s]*[+\-\u2212$€£]?\s*[.,]?\d", text) is not None


def find_time_format(name: str, texts: Series, reading: Reading) -> str:
    """The form of a column of dates or times of day, "" for others. Raises UsageError for dates
    that can be read in two ways."""
    sample = str(texts.iloc[0])
    for clock, pattern in CLOCK_FORMATS.items():
        if re.fullmatch(pattern, sample, re.ASCII) and read_times(texts, clock).notna().all():
            return clock
    if not DATE_LIKE.fullmatch(sample):
        return ""
    distinct = texts.drop_duplicates()
    for time_format in DATE_FORMATS:
        if read_times(distinct, time_format).notna().all():
            return time_format
    for day_first, month_first in TWO_WAY_DATES:
        days = read_times(distinct, day_first)
        months = read_times(distinct, month_first)
        fits = [
            fmt
            for fmt, values in ((day_first, days), (month_first, months))
            if values.notna().all()
        ]
        if len(fits) == 1:
            return fits[0]
        if len(fits) == 2 and days.equals(months):
            return day_first
        if len(fits) == 2 and reading.dates:
            return day_first if reading.dates == DAY_FIRST else month_first
        if len(fits) == 2:
            raise UsageError(
                f"Column {name!r} of {reading.file} holds dates such as {sample!r}, which can be "
                f"read in two ways; say ?dates={DAY_FIRST} or ?dates={MONTH_FIRST}."
            )
    return ""


# ------------------------------------------------------------------------------------ names of rows
def name_parts(name: str) -> list[str]:
    """The words of a column's name.

    >>> name_parts("PatientID"), name_parts("row_nr"), name_parts("Unnamed: 0")
    (['patient', 'id'], ['row', 'nr'], ['unnamed', '0'])
    """
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|#", name)
    return [part.lower() for part in found]


def is_row_name(name: str) -> bool:
    """Whether a column's name says that it numbers the rows."""
    parts = name_parts(name)
    low = name.lower().strip()
    joined = re.fullmatch(r"(patient|subject|person|case|record|sample|row|user|passenger|participant|visit|study)s?"
                          r"[ _.-]?(id|nr|no|number|num|key|code)", low)  # fmt: skip
    return bool(
        joined
        or low in WHOLE_NAMES
        or parts
        and (parts[-1] in ROW_NAMES or parts[0] in ("id", "unnamed"))
    )


def is_group_name(name: str) -> bool:
    """Whether a column's name says that it numbers people, who may have several rows."""
    low = name.lower().strip()
    parts = name_parts(name)
    stems = "patient|subject|person|participant|user|family|household|case|animal"
    joined = re.fullmatch(rf"({stems})s?[ _.-]?(id|nr|no|number|num|key|code)", low)
    return bool(
        joined
        or low in ("mrn", "pid", "patient", "subject", "participant")
        or parts
        and parts[0] in GROUP_NAMES
        and parts[-1] in ROW_NAMES
    )


def names_something(name: str) -> bool:
    """Whether a column's name says that it numbers rows or people."""
    return is_row_name(name) or is_group_name(name)


def why_row_number(name: str, values: Series, is_saved_index: bool) -> str:
    """Why a column of whole numbers is no feature, "" where it is one.

    It names the rows where its numbers are whole, differ in every row, and are a plain count or
    have such a name, or where they are the first column and have no name, as an index has that was
    saved with a table.
    """
    if not len(values) or len(values) < 3:
        return ""
    if is_numeric(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        is_whole = (numbers == np.floor(numbers)).all()
        is_integer = values.dtype.kind in "iu"
        if not is_integer and not (is_whole and names_something(name)):
            return ""
    else:
        distinct = {}
        for text in values.unique():
            parts = readable_number(text)
            distinct[text] = body_value(parts, ".", True) if parts else None
        numbers = values.map(distinct).to_numpy(dtype=float)
    if len(np.unique(numbers)) < len(numbers):
        if is_group_name(name):
            return (
                f"It names whose rows these are; ?group={name} keeps the rows of each in one part."
            )
        return ""
    if is_saved_index:
        return "It is an index that was saved with the table: it names the rows."
    if is_row_name(name):
        return "Every row has a number of its own, and its name says that it names the rows."
    steps = np.diff(numbers)
    sorted_steps = np.diff(np.sort(numbers))
    if (steps == steps[0]).all() or (sorted_steps == 1).all():
        return "It counts the rows."
    return ""


def is_counted_text(texts: Series) -> bool:
    """Whether texts are one prefix and a count, as P001, P002."""
    found = texts.str.extract(r"^(\D*)(\d+)(\D*)$")
    if found.isna().any(axis=None) or found[0].nunique() > 1 or found[2].nunique() > 1:
        return False
    return bool(len(texts) > 2)
