"""A table of one's own as a data set: one sample a row, names in the first line. Text files
(`.csv`, `.tsv`, packed or not), spreadsheets (`.xlsx`), `.parquet` files, and DataFrames.

    fl.run("fens", dataset="patients.csv")
    fl.run("fens", dataset="patients.csv?label=outcome&client=ward")
    fl.load("patients.csv", label="outcome", client="ward")

The label column is the one called `label`, `y` or `target`, else the last one. A column called
`client`, `hospital`, `site` or the like says who holds each row: the clients are then the data's
own. `?label=…&client=…` names other columns (`client=` none). A fifth of the rows, in each class,
are test samples; `split=` names a column that says which, and `group=` one whose values never stand
on both sides. Rows without a label or a client are left out.

How a file becomes cells is told in `files.py`, what a column is taken for in `kinds.py`. Here the
columns become features as a federation can do it: nothing is looked up in anybody's rows.

- Numbers: minus the mean, divided by the standard deviation, both from sums that the clients send
  once: how many values a column has, their sum and the sum of their squares (`compute_pooled_moments`). A
  missing value becomes the mean, 0. A column that never changes becomes 0.
- Categories, texts of at most 20 different values: one feature a value, 1 where it stands. The
  values are a list that all know.
- Words, longer texts: a bag of words in 256 features, each word at the place that a hash function
  gives it, so that nobody has to agree on words (scikit-learn's HashingVectorizer).
- Row numbers and names of rows are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fedlab_nb.data import files
from fedlab_nb.data.cells import is_numeric, is_plain_number, mask_missing, to_texts
from fedlab_nb.data.columns import (
    CATEGORY,
    HASHED_FEATURES,
    LEFT_OUT,
    NUMBER,
    WORDS,
    Column,
    make_category_key,
    parse_numbers,
)
from fedlab_nb.data.dataset import Dataset, make_dataset
from fedlab_nb.data.files import KINDS, RawTable
from fedlab_nb.data.kinds import (
    DAY_FIRST,
    MONTH_FIRST,
    Reading,
    find_number_traits,
    infer_columns,
    is_group_name,
)
from fedlab_nb.data.schema import TABLE, InputSchema, make_name_key
from fedlab_nb.data.sums import Moments, sum_in_fixed_order
from fedlab_nb.errors import UsageError
from fedlab_nb.rng import numpy_rng

if TYPE_CHECKING:
    from pandas import DataFrame, Series

LABELS = ("label", "y", "target")
CLIENTS = ("client", "client_id", "hospital", "site", "clinic", "centre", "center", "institution")
SPLITS = ("split", "subset", "set", "partition", "fold", "train_test", "is_train", "is_test")
TRAIN_WORDS = ("train", "training", "learn", "fit")
TEST_WORDS = ("test", "testing", "holdout", "hold-out", "eval", "evaluation")
VALIDATION_WORDS = ("val", "valid", "validation", "dev")
FEWEST_ROWS = 10  # with a label
TEST_SHARE = 5  # one row of so many is a test sample
# A label may have a tenth as many values as there are rows, between these.
FEWEST_CLASSES, MOST_CLASSES = 10, 100
NO_LABEL = ("", "nan", "nat", "<na>", "#n/a", "#na", "?")  # all other words are classes
SUSPICIOUS_WORDS = ("na", "n/a", "null", "none", "unknown", "missing", "-", ".")
TOTALS = re.compile(
    r"(grand |sub)?(totals?|sum|summe|gesamt|average|mean|mittelwert|count|anzahl)\s*:?",
    re.IGNORECASE,
)
SENTINELS = (-9.0, -99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0)
SHOWN = 8
FIRST_ROWS = 5  # that a card shows
VERSION = 3  # raise it whenever the same file gives other numbers: it is part of the digest


@dataclass(frozen=True)
class Roles:
    """The columns that are no features, None where there is none."""

    label: str
    client: str | None = None
    split: str | None = None
    group: str | None = None

    def names(self) -> list[str]:
        """The columns that have a role."""
        return [name for name in (self.label, self.client, self.split, self.group) if name]


def load(
    path: Path,
    options: Mapping[str, str],
    digest: str,
    split: Callable | None = None,
    name: str = "",
) -> Dataset:
    """The Dataset of a file, called as it or `name`. `split(y, owner)` says which rows are for
    testing (`draw_test_rows` unless the file says it)."""
    return from_table(files.read_table(path, options), options, digest, path.name, split, name)


def from_table(
    raw: RawTable,
    options: Mapping[str, str],
    digest: str,
    file: str,
    split: Callable | None = None,
    name: str = "",
) -> Dataset:
    """The Dataset of a table's cells. file: what sentences call it. Raises UsageError."""
    table = raw.cells
    names = list(table.columns)
    if len(names) < 2:
        raise UsageError(
            f"{file} has one column, {names[0]!r}; give a table with commas, one column is the "
            "label."
        )
    roles = choose_roles(table, options, file)
    reading = choose_reading(raw, options, file, names)
    refuse_totals_row(table, file)
    inputs = [column for column in names if column not in roles.names()]
    if not inputs:
        raise UsageError(
            f"{file} has only columns for label and clients; add columns for a network to read."
        )

    table, lost = drop_unlabelled(table, roles, reading, file)
    y, class_names = encode_classes(table[roles.label], roles.label, reading)
    check_classes(class_names, len(y), roles.label, file)
    owner: np.ndarray | None = None
    client_names: tuple[str, ...] = ()
    clients_note = ""
    if roles.client:
        owner, client_names, clients_note = encode_client_column(
            table[roles.client], roles.client, file, reading
        )
    test, split_note = choose_test_rows(table, roles, y, owner, split, file, reading)

    features = table[inputs]
    reading = replace(reading, left_out_reasons=explain_left_out(features, roles, reading))
    columns = infer_columns(features, table[roles.names()], ~test, reading)
    check_features(columns, file)
    columns, numbers = fit_number_columns(columns, features, ~test, owner)
    schema = InputSchema(
        kind=TABLE,
        input_shape=(sum(column.width for column in columns),),
        class_names=class_names,
        columns=tuple(columns),
        names=tuple(names),
        has_header=raw.has_header,
        label=roles.label,
        client=roles.client or "",
        split=roles.split or "",
        group=roles.group or "",
        missing=reading.missing,
    )
    needed = [column.name for column in columns if column.kind != LEFT_OUT]
    x = schema.encode_table(features[needed], strict=False)

    arrays = {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
    if owner is not None:
        clients, arrays["client_train"] = np.unique(owner[~test], return_inverse=True)
        if np.array_equal(clients, np.unique(owner[test])):
            arrays["client_test"] = np.searchsorted(clients, owner[test])
        client_names = tuple(client_names[k] for k in clients)
    schema = replace(schema, client_names=client_names)
    notes = [
        f"The label is column {roles.label!r}.{clients_note}",
        split_note,
        describe_columns(columns, owner is not None, numbers),
        describe_dropped_rows(lost),
        *describe_doubtful_columns(schema, table, y[~test], reading),
        *raw.notes,
    ]
    note = " ".join(sentence for sentence in notes if sentence)
    dataset = make_dataset(name or file, digest, arrays, class_names, note, client_names, schema)
    return replace(dataset, first_rows=raw.cells.head(FIRST_ROWS))


def check_features(columns: list[Column], file: str) -> None:
    """Raises UsageError where no column becomes a feature."""
    if any(column.width for column in columns):
        return
    reasons = " ".join(f"{column.name!r}: {column.reason}" for column in columns[:SHOWN])
    raise UsageError(
        f"{file} has only columns for label and clients, and columns that are left out "
        f"({reasons}); add columns for a network to read, or say ?number=NAME or ?words=NAME."
    )


# ------------------------------------------------------------------------------------------ options
def choose_roles(table: DataFrame, options: Mapping[str, str], file: str) -> Roles:
    """Which columns are label, client, split and group. Raises UsageError."""
    names = list(table.columns)
    by_key = {make_name_key(name): name for name in names}

    def find_column(role: str) -> str:
        wanted = make_name_key(options[role])
        if wanted not in by_key:
            raise UsageError(
                f"{file} has no column {options[role]!r} for its {role}; it has {', '.join(names)}."
            )
        return by_key[wanted]

    split = find_column("split") if options.get("split") else None
    group = find_column("group") if options.get("group") else None
    client = None
    if options.get("client"):
        client = find_column("client")
    elif "client" not in options:
        client = next((by_key[name] for name in CLIENTS if name in by_key), None)
        if client in (split, group):
            client = None
    if options.get("label"):
        label = find_column("label")
    else:
        candidates = [name for name in names if name not in (client, split, group)]
        if not candidates:
            raise UsageError(f"{file} has no column for the label; add one.")
        usual = [by_key[name] for name in LABELS if by_key.get(name) in candidates]
        label = usual[0] if usual else candidates[-1]
    for role, column in (("client", client), ("split", split), ("group", group)):
        if column == label:
            raise UsageError(
                f"Column {label!r} of {file} cannot be label and {role}; name another one, as in "
                f"{file}?label=NAME."
            )
    return Roles(label, client, split, group)


def choose_reading(
    raw: RawTable, options: Mapping[str, str], file: str, names: list[str]
) -> Reading:
    """How the cells are to be read. Raises UsageError for an option's wrong value."""
    decimal = options.get("decimal", "")
    decimal = {"point": ".", "comma": ","}.get(decimal, decimal)
    if decimal not in ("", ".", ","):
        raise UsageError(f"decimal is {decimal!r}, but it must be . or , (point or comma).")
    dates = options.get("dates", "")
    if dates not in ("", DAY_FIRST, MONTH_FIRST):
        raise UsageError(f"dates is {dates!r}, but it must be {DAY_FIRST} or {MONTH_FIRST}.")
    case = options.get("case", "")
    if case not in ("", "ignore", "keep"):
        raise UsageError(f"case is {case!r}, but it must be ignore or keep.")
    tokens = [token.strip().lower() for token in options.get("missing", "").split(",")]
    missing = tuple(token for token in tokens if token)
    keys = {make_name_key(name): name for name in names}
    forced: dict[str, str] = {}
    for option, kind in KINDS.items():
        for name in find_listed_columns(options.get(option, ""), keys, file):
            if name.casefold() in forced:
                raise UsageError(f"Column {name!r} is given two kinds; name it once.")
            forced[name.casefold()] = kind
    return Reading(
        file=file,
        separator=raw.separator,
        missing=missing,
        decimal=decimal,
        dates=dates,
        ignore_case=None if not case else case == "ignore",
        forced=forced,
    )


def find_listed_columns(text: str, keys: Mapping[str, str], file: str) -> list[str]:
    """The columns that an option names, separated by commas; a name may have a comma itself."""
    if not text.strip():
        return []
    if make_name_key(text) in keys:
        return [keys[make_name_key(text)]]
    columns = []
    for part in text.split(","):
        if not part.strip():
            continue
        if make_name_key(part) not in keys:
            raise UsageError(
                f"{file} has no column {part.strip()!r}; it has {', '.join(keys.values())}."
            )
        columns.append(keys[make_name_key(part)])
    return columns


# ----------------------------------------------------------------------------------------- the rows
def read_role_texts(cells: Series, reading: Reading) -> Series:
    """The texts of a column of labels, clients and the like; only what is surely no word is
    missing."""
    missing = ("", *reading.missing) if reading.missing else NO_LABEL
    return mask_missing(to_texts(cells), missing)


class LabelledRows(NamedTuple):
    """The rows of a table that have a value for every role;   dropped: how many others lack which
    role"""

    table: DataFrame
    dropped: Counter[str]


def drop_unlabelled(table: DataFrame, roles: Roles, reading: Reading, file: str) -> LabelledRows:
    """Drop the rows without a label, a client or another role. Raises UsageError if too few are
    left."""
    lost: Counter[str] = Counter()
    is_complete = np.ones(len(table), dtype=bool)
    for role in ("label", "client", "split", "group"):
        name = getattr(roles, role)
        if name is not None:
            has_value = read_role_texts(table[name], reading).notna().to_numpy()
            lost[role] = int((is_complete & ~has_value).sum())
            is_complete &= has_value
    count = int(is_complete.sum())
    if count < FEWEST_ROWS:
        raise UsageError(
            f"{file} has {count} rows with a label in column {roles.label!r}, but it needs at "
            f"least {FEWEST_ROWS}; add rows, or name another column."
        )
    return LabelledRows(table[is_complete], lost)


def refuse_totals_row(table: DataFrame, file: str) -> None:
    """Raises UsageError where the last row looks like totals: no sample, but sums of the others."""
    for line in table.index[-2:]:
        row = table.loc[line]
        for name, cell in row.items():
            is_text = isinstance(cell, str) and not is_numeric(table[name])
            if is_text and TOTALS.fullmatch(cell) and (table[name] == cell).sum() == 1:
                raise UsageError(
                    f"Line {line} of {file} seems to hold totals and no sample ({name}: {cell!r}); "
                    "remove that line."
                )
    if is_last_row_of_sums(table):
        raise UsageError(
            f"Line {table.index[-1]} of {file} holds the sums of the lines above it and no sample; "
            "remove that line."
        )


def is_last_row_of_sums(table: DataFrame) -> bool:
    """Whether each number of the last row, two or more, is the sum of its column."""
    import pandas

    matches = 0
    if len(table) <= FEWEST_ROWS:
        return False
    for name in table.columns:
        last_cell = table[name].iloc[-1]
        if pandas.isna(last_cell) or not is_plain_number(str(last_cell)):
            continue
        cells_above = pandas.to_numeric(table[name].iloc[:-1], errors="coerce").dropna()
        if (cells_above != 0).sum() < FEWEST_ROWS // 2 or not np.isclose(
            cells_above.sum(), float(last_cell)
        ):
            return False
        matches += 1
    return matches > 1


class EncodedTexts(NamedTuple):
    """codes: int64 [N], the place of each text among the distinct ones, which are `names`."""

    codes: np.ndarray
    names: tuple[str, ...]


def encode_texts(texts: Iterable[str], ignore_case: bool = False) -> EncodedTexts:
    """Number the distinct texts, numbers first by size, then the alphabet. Equal numbers are one:
    `0` and `0.0`.

    >>> codes, names = encode_texts(["b", "10", "a", "9", "9.0"])
    >>> codes.tolist(), names
    ([3, 1, 2, 0, 0], ('9', '10', 'a', 'b'))
    """
    texts = list(texts)
    names: dict = {}
    for text in sorted(set(texts), key=lambda text: (len(text), text)):
        names.setdefault(make_category_key(text, ignore_case), text)

    numbers = sorted(key for key in names if isinstance(key, float))
    words = sorted((key for key in names if not isinstance(key, float)), key=names.__getitem__)
    keys = [*numbers, *words]
    code_of_key = {key: code for code, key in enumerate(keys)}
    codes = [code_of_key[make_category_key(text, ignore_case)] for text in texts]
    return EncodedTexts(np.array(codes, dtype=np.int64), tuple(names[key] for key in keys))


def encode_classes(cells: Series, name: str, reading: Reading) -> EncodedTexts:
    """The classes of the label column and their names. Raises UsageError for labels that differ
    in case alone."""
    texts = read_role_texts(cells, reading)
    texts = replace_decimal_commas(texts, reading)
    refuse_mixed_case(texts, name, reading)
    return encode_texts(texts, bool(reading.ignore_case))


def replace_decimal_commas(texts: Series, reading: Reading) -> Series:
    """Labels that are numbers with decimal commas (0,0 and 1,0) as plain numbers, so that equal
    ones are one class."""
    traits = find_number_traits(texts, replace(reading, missing=("nan",)))
    if not traits.is_number or traits.decimals != (",",):
        return texts
    if not all(is_plain_number(text.replace(",", ".")) for text in traits.cells):
        return texts
    return texts.map(lambda text: text.replace(",", "."))


def refuse_mixed_case(texts: Series, name: str, reading: Reading) -> None:
    """Raises UsageError for two texts that differ in case alone, unless the person has said what
    they are."""
    if reading.ignore_case is not None:
        return
    by_folded: dict[str, str] = {}
    for text in sorted(texts.unique()):
        earlier_text = by_folded.setdefault(text.casefold(), text)
        if earlier_text != text:
            raise UsageError(
                f"Column {name!r} of {reading.file} has {earlier_text!r} and {text!r}, which differ in "
                "case alone; say ?case=ignore if they are one, or ?case=keep if they are two."
            )


def check_classes(classes: tuple[str, ...], count: int, label: str, file: str) -> None:
    """Raises UsageError for one class, or for more than a label can have."""
    advice = f"name another column, as in {file}?label=NAME"
    if len(classes) < 2:
        raise UsageError(
            f"Column {label!r} of {file} has one value, {classes[0]!r}, in all rows; {advice}."
        )
    most = min(MOST_CLASSES, max(FEWEST_CLASSES, count // 10))
    if len(classes) > most:
        raise UsageError(
            f"Column {label!r} of {file} has {len(classes)} different values in {count} rows, but "
            f"a label may have at most {most}; {advice}."
        )


class ClientColumn(NamedTuple):
    """owners: int64 [N], the client of each row, None if all are one client's;   names: of the M
    clients;   note: a sentence on the column"""

    owners: np.ndarray | None
    names: tuple[str, ...]
    note: str


def encode_client_column(cells: Series, name: str, file: str, reading: Reading) -> ClientColumn:
    """The clients that a column names. Raises UsageError for nearly as many clients as rows."""
    texts = read_role_texts(cells, reading)
    refuse_mixed_case(texts, name, reading)
    owner, distinct = encode_texts(texts, bool(reading.ignore_case))
    if len(distinct) == 1:
        return ClientColumn(None, (), f" All rows are of one {name}, so it names no clients.")
    if len(distinct) > len(cells) // 2:
        raise UsageError(
            f"Column {name!r} of {file} names {len(distinct)} clients for {len(cells)} rows, but "
            "each needs two; name another column with ?client=NAME, or none with ?client=."
        )
    return ClientColumn(owner, distinct, f" Its clients are column {name!r}.")


# ---------------------------------------------------------------------------------------- test rows
class SplitChoice(NamedTuple):
    """is_test: bool [N], which samples are for testing;   note: a sentence on how they were chosen."""

    is_test: np.ndarray
    note: str


def choose_test_rows(
    table: DataFrame,
    roles: Roles,
    y: np.ndarray,
    owner: np.ndarray | None,
    split: Callable | None,
    file: str,
    reading: Reading,
) -> SplitChoice:
    """The test rows: by the split column, by groups, or drawn."""
    groups = None
    if roles.group:
        groups, names = encode_texts(read_role_texts(table[roles.group], reading))
        if len(names) < 2:
            raise UsageError(
                f"Column {roles.group!r} of {file} has one group; name another column with "
                "?group=NAME."
            )
    if roles.split:
        test, note = parse_split_column(
            read_role_texts(table[roles.split], reading), roles.split, file
        )
        both = set() if groups is None else set(groups[test]) & set(groups[~test])
        if both:
            raise UsageError(
                f"{len(both)} groups of column {roles.group!r} stand on both sides of column "
                f"{roles.split!r} of {file}; correct the split, or leave out ?split=."
            )
        if owner is not None and set(owner[test]) - set(owner[~test]):
            raise UsageError(
                f"A client of {file} has test rows alone in column {roles.split!r}; name no "
                "clients with ?client=."
            )
        return SplitChoice(test, note)
    if groups is not None:
        test = draw_test_groups(y, groups, owner)
        note = f"No value of column {roles.group!r} stands among training and test rows."
        return SplitChoice(test, note)
    if split is not None:
        return SplitChoice(split(y, owner), "")
    return SplitChoice(draw_test_rows(y, owner), "")


def parse_split_column(texts: Series, name: str, file: str) -> SplitChoice:
    """The rows that a column calls test. Raises UsageError for a column that says anything else."""
    words = texts.str.lower()
    split_words = (*TRAIN_WORDS, *TEST_WORDS, *VALIDATION_WORDS)
    unknown = [text for text in texts.unique() if text.lower() not in split_words]
    if unknown:
        raise UsageError(
            f"Column {name!r} of {file} holds {unknown[0]!r}, but a split says train or test (or "
            "validation) in each row; correct it, or leave out ?split=."
        )
    test = words.isin(TEST_WORDS).to_numpy()
    validation = words.isin(VALIDATION_WORDS).to_numpy()
    if not test.any() and validation.any():
        test = validation
        validation = np.zeros_like(test)
    for part, is_part in (("training", ~test), ("test", test)):
        if not is_part.any():
            raise UsageError(f"Column {name!r} of {file} has no {part} rows; correct it.")
    note = f"Column {name!r} says which rows are for testing."
    if validation.any():
        note += f" Its {int(validation.sum())} validation rows are among the training rows."
    return SplitChoice(test, note)


def draw_test_rows(y: np.ndarray, owner: np.ndarray | None) -> np.ndarray:
    """bool [N], the test rows: one of five in each class, drawn once and for all. No client loses
    its last row, and at least one row is a test row."""
    client = owner if owner is not None else np.zeros(len(y), dtype=np.int64)
    rows_left = np.bincount(client)  # of each client
    class_sizes = np.bincount(y)
    wanted = class_sizes // TEST_SHARE  # test rows of each class
    test = np.zeros(len(y), dtype=bool)
    order = numpy_rng(0, "test rows").permutation(len(y))
    for row in order:
        if wanted[y[row]] and rows_left[client[row]] > 1:
            test[row] = True
            wanted[y[row]] -= 1
            rows_left[client[row]] -= 1
    if not test.any():  # no class has five rows: one row of the largest class that can spare one
        candidates = [row for row in order if rows_left[client[row]] > 1]
        test[max(candidates, key=lambda row: class_sizes[y[row]])] = True
    return test


def draw_test_groups(y: np.ndarray, groups: np.ndarray, owner: np.ndarray | None) -> np.ndarray:
    """bool [N], the test rows: whole groups, drawn once and for all, until about a fifth of each
    class is for testing. No client and no class loses its last training row."""
    client = owner if owner is not None else np.zeros(len(y), dtype=np.int64)
    rows_of_client = np.bincount(client)  # training rows that are left
    rows_of_class = np.bincount(y)
    wanted = np.bincount(y) / TEST_SHARE  # test rows of each class
    test = np.zeros(len(y), dtype=bool)
    smallest = None  # of the groups that can be spared
    for group in numpy_rng(0, "test groups").permutation(int(groups.max()) + 1):
        rows = groups == group
        by_client = np.bincount(client[rows], minlength=len(rows_of_client))
        by_class = np.bincount(y[rows], minlength=len(wanted))
        takes_all_of_client = (by_client > 0) & (by_client >= rows_of_client)
        takes_all_of_class = (by_class > 0) & (by_class >= rows_of_class)
        if takes_all_of_client.any() or takes_all_of_class.any():
            continue
        if smallest is None or rows.sum() < smallest.sum():
            smallest = rows
        wanted_rows = np.minimum(by_class, np.maximum(wanted, 0)).sum()
        if wanted_rows * 2 >= rows.sum():  # most of its rows are still wanted
            test |= rows
            wanted -= by_class
            rows_of_client -= by_client
            rows_of_class -= by_class
    if test.any():
        return test
    if smallest is None:
        raise UsageError(
            "Each group holds all rows of a class or a client, so none can be for testing; name no "
            "group."
        )
    return smallest


# ----------------------------------------------------------------------------------------- features
def explain_left_out(features: DataFrame, roles: Roles, reading: Reading) -> dict[str, str]:
    """Why a column is no feature although nothing was said: it says which rows are for testing."""
    reasons = {}
    for name in features.columns:
        is_named_split = make_name_key(name) in SPLITS
        if not roles.split and is_named_split and looks_like_split_column(features[name], reading):
            reasons[name.casefold()] = "It says train and test."
    return reasons


def fit_number_columns(
    columns: list[Column], features: DataFrame, train: np.ndarray, owner: np.ndarray | None
) -> tuple[list[Column], int]:
    """The columns, those of numbers with mean and scale of the training rows; and how many of them
    are numbers."""
    numbers = [column for column in columns if column.kind == NUMBER]
    if not numbers:
        return columns, 0
    values = np.stack([parse_numbers(column, features[column.name]) for column in numbers], axis=1)
    mean, scale = compute_pooled_moments(values[train], None if owner is None else owner[train])
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise UsageError(
            "The features are too large to standardise in 32-bit numbers; rescale their columns."
        )
    fitted = {}
    for place, column in enumerate(numbers):
        fitted[column.name] = replace(column, mean=float(mean[place]), scale=float(scale[place]))
    return [fitted.get(column.name, column) for column in columns], len(numbers)


class SumsBytes(NamedTuple):
    """Bytes that a client sends up, and those that come down to it."""

    up: int
    down: int


def count_sums_bytes(columns: int) -> SumsBytes:
    """Bytes that a client sends and gets once, for that many columns of numbers: three sums up,
    mean and scale down, in double precision."""
    return SumsBytes(3 * 8 * columns, 2 * 8 * columns)


def compute_column_sums(rows: np.ndarray) -> np.ndarray:
    """What one client sends: count, sum and sum of squares of each column's values, float64 [3, D];
    nan: no value."""
    with np.errstate(over="ignore", invalid="ignore"):
        is_missing = np.isnan(rows)
        count = (~is_missing).sum(axis=0).astype(np.float64)
        values = np.where(is_missing, 0.0, rows)
        return np.stack([count, sum_in_fixed_order(values), sum_in_fixed_order(values * values)])


def compute_pooled_moments(x: np.ndarray, owner: np.ndarray | None = None) -> Moments:
    """Mean and scale [D] of the columns of x [N, D] (nan: no value) from the sums that the clients
    send.

    The scale is the standard deviation, or 1 for a column without two different values.
    """
    rows_of_clients = [x]
    if owner is not None:
        rows_of_clients = [x[owner == k] for k in np.unique(owner)]
    sums_of_clients = np.stack([compute_column_sums(rows) for rows in rows_of_clients])
    count, total, squares = sum_in_fixed_order(sums_of_clients)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares / np.maximum(count, 1) - mean * mean, 0)
        is_constant = variance <= 1e-12 * np.maximum(mean * mean, np.finfo(np.float64).tiny)
        return Moments(mean, np.where(is_constant, 1.0, np.sqrt(variance)))


# ---------------------------------------------------------------------------------------- sentences
def describe_columns(columns: list[Column], has_clients: bool, numbers: int) -> str:
    """What was done with the columns, in sentences."""
    notes = []
    if numbers:
        bytes_up, bytes_down = count_sums_bytes(numbers)
        rows = "of its rows" if has_clients else "of its rows, whichever rows it gets,"
        what = "columns of numbers are" if numbers > 1 else "column of numbers is"
        notes.append(
            f"{numbers} {what} standardised by sums over the clients. Each client sends count, sum "
            f"and sum of squares {rows} once ({bytes_up} bytes), and gets {bytes_down} bytes back. "
            "A run's bytes do not count these."
        )
    for column in columns:
        if column.kind == NUMBER and is_unusual_number(column):
            notes.append(f"{column.name}: {column.reason}")
    categories = [column.name for column in columns if column.kind == CATEGORY]
    if categories:
        notes.append(f"One column for each value: {', '.join(categories[:SHOWN])}.")
    words = [column.name for column in columns if column.kind == WORDS]
    if words:
        notes.append(
            f"Bags of hashed words, {HASHED_FEATURES} columns each: {', '.join(words[:SHOWN])}."
        )
    left_out = [column for column in columns if column.kind == LEFT_OUT]
    for column in left_out[:SHOWN]:
        notes.append(f"Left out: {column.name}. {column.reason}")
    return " ".join(notes)


def is_unusual_number(column: Column) -> bool:
    """Whether the cells of a column of numbers are more than plain digits with a point."""
    return bool(
        column.unit
        or column.decimal == ","
        or column.grouped
        or column.time_format
        or "counts as" in column.reason
    )


def describe_dropped_rows(dropped: Counter) -> str:
    """How many rows are left out, and why."""
    total = sum(dropped.values())
    if not total:
        return ""
    roles = " or a ".join(role for role, count in dropped.items() if count)
    if total == 1:
        return f"1 row without a {roles} is left out."
    return f"{total} rows without a {roles} are left out."


def describe_doubtful_columns(
    schema: InputSchema, table: DataFrame, train_labels: np.ndarray, reading: Reading
) -> list[str]:
    """What a reader should look at: words that may be no values, numbers that may be none, columns
    that ask for a role."""
    notes = []
    for what, names in (("class", schema.class_names), ("client", schema.client_names)):
        suspicious = [name for name in names if name.lower() in SUSPICIOUS_WORDS]
        if suspicious and not reading.missing:
            word = suspicious[0]
            notes.append(
                f"{word!r} is a {what} of its own; say ?missing={word} to leave its rows out."
            )
    absent = [name for k, name in enumerate(schema.class_names) if k not in set(train_labels)]
    if absent:
        notes.append(f"No training row has the label {', '.join(absent[:SHOWN])}.")
    notes.extend(describe_missing(schema.columns, table))
    for column in schema.columns:
        if column.kind == NUMBER and not column.time_format:
            notes.extend(describe_sentinel(column, table[column.name]))
        if column.kind == CATEGORY and reading.ignore_case is None:
            values = (*column.categories, *column.other_categories)
            if len({text.casefold() for text in values}) < len(values):
                notes.append(
                    f"Values of {column.name!r} differ in case alone; ?case=ignore takes them as "
                    "one."
                )
    for column in schema.columns:
        name = column.name
        if not schema.split and name.casefold() in reading.left_out_reasons:
            notes.append(
                f"Does column {name!r} say which rows are for testing? Then say ?split={name}."
            )
        if not schema.group and is_group_name(name) and has_repeated_values(table[name]):
            notes.append(f"Does column {name!r} say whose rows these are? Then say ?group={name}.")
    return notes


def describe_missing(columns: Iterable[Column], table: DataFrame) -> list[str]:
    """Which texts count as missing in columns of numbers, and how often they stand there."""
    missing: Counter = Counter()
    for column in columns:
        cells = table[column.name]
        if column.kind == NUMBER and not is_numeric(cells):
            kept = mask_missing(cells, column.missing)
            missing.update(cells[kept.isna() & cells.notna()])
    if not missing:
        return []
    listed = ", ".join(f"{text!r} ({count} times)" for text, count in missing.most_common(SHOWN))
    return [f"In columns of numbers these count as missing: {listed}."]


def looks_like_split_column(cells: Series, reading: Reading) -> bool:
    """Whether a column says train and test."""
    words = set(read_role_texts(cells, reading).dropna().str.lower())
    split_words = {*TRAIN_WORDS, *TEST_WORDS, *VALIDATION_WORDS}
    return words <= split_words and not words.isdisjoint(TRAIN_WORDS)


def has_repeated_values(cells: Series) -> bool:
    """Whether a column has several values, and some of them more than once."""
    count = cells.nunique()
    return 1 < count < len(cells.dropna())


def describe_sentinel(column: Column, cells: Series) -> list[str]:
    """A sentence where a number such as -999 stands far from all others: it may mean that there is
    no value."""
    values = parse_numbers(column, cells)
    values = values[np.isfinite(values)]
    for sentinel in SENTINELS:
        count = int((values == sentinel).sum())
        rest = values[values != sentinel]
        if count < 2 or not len(rest):
            continue
        spread = float(rest.max() - rest.min())
        gap = float(min(abs(rest - sentinel)))
        if gap > spread:
            return [
                f"Column {column.name!r} holds {sentinel:g} {count} times; if that means no value, "
                f"say ?missing={sentinel:g}."
            ]
    return []
