"""Read a user's own table as a data set: one sample a row, column names in the first line.

The table is a text file (`.csv`, `.tsv`, compressed or not), a spreadsheet (`.xlsx`), a `.parquet` file
or a DataFrame.

    fl.run("fens", dataset="patients.csv")
    fl.run("fens", dataset="patients.csv?label=outcome&client=ward")
    fl.load("patients.csv", label="outcome", client="ward")

The label column is the one called `label`, `y` or `target`, or else the last one. A column called
`client`, `hospital`, `site` or the like gives the client of each row. `?label=…&client=…` names other
columns; an empty `client=` means that there is none. A fifth of the rows of each class are test
samples. Instead, `split=` may name a column that says which rows are for testing, or `group=` a
column: rows with the same value then stay on the same side. Rows without a label or a client are left
out.

`files.py` reads a file as cells, and `kinds.py` finds the kind of each column. Here the columns become
features in a way that a federation could follow, without sending any rows:

- Numbers: the mean is subtracted, and the result is divided by the standard deviation. Both come from
  sums that the clients send once: the number of values in a column, their sum and the sum of their
  squares (`compute_pooled_mean_and_deviation`). A missing value becomes 0, the mean. A constant column becomes 0.
- Categories, texts of at most 20 different values: one feature for each value, 1 in the rows that
  have it. All clients know the list of values.
- Words, longer texts: a bag of words in 256 features. A hash function gives each word its feature, so
  that the clients need no common list of words (scikit-learn's HashingVectorizer).
- Row numbers and names of rows are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from fedlab_nb.data import files
from fedlab_nb.data.array_types import (
    BooleanPerSample,
    ClientOfSample,
    ColumnSums,
    FeatureArray,
    GroupOfSample,
    LabelArray,
)
from fedlab_nb.data.cells import (
    convert_column_to_texts,
    has_numeric_dtype,
    is_plain_number,
    replace_missing_texts_by_none,
)
from fedlab_nb.data.columns import (
    CATEGORY,
    HASHED_FEATURES,
    LEFT_OUT,
    NUMBER,
    WORDS,
    ColumnKind,
    ColumnSchema,
    make_category_comparison_key,
    parse_number_column,
)
from fedlab_nb.data.dataset import Dataset, make_dataset_from_checked_arrays
from fedlab_nb.data.files import KINDS, RawTable
from fedlab_nb.data.input_types import FileOptionTexts
from fedlab_nb.data.kinds import (
    DAY_FIRST,
    MONTH_FIRST,
    TableReadingOptions,
    find_number_traits,
    infer_column_schemas,
    is_person_id_name,
)
from fedlab_nb.data.schema import TABLE, InputSchema, normalise_column_name
from fedlab_nb.data.sums import MeanAndDeviation, sum_rows_in_fixed_order
from fedlab_nb.errors import UsageError
from fedlab_nb.rng import make_numpy_generator
from fedlab_nb.value_types import Sentence, SentenceOrEmpty

if TYPE_CHECKING:
    from pandas import DataFrame, Series

LABELS = ("label", "y", "target")
CLIENTS = ("client", "client_id", "hospital", "site", "clinic", "centre", "center", "institution")
SPLITS = ("split", "subset", "set", "partition", "fold", "train_test", "is_train", "is_test")
TRAIN_WORDS = ("train", "training", "learn", "fit")
TEST_WORDS = ("test", "testing", "holdout", "hold-out", "eval", "evaluation")
VALIDATION_WORDS = ("val", "valid", "validation", "dev")
FEWEST_ROWS = 10  # the fewest rows with a label that a table may have
TEST_SHARE = 5  # one row in this many is a test sample
# A label may have as many values as a tenth of the rows, but never fewer or more than these.
FEWEST_CLASSES, MOST_CLASSES = 10, 100
NO_LABEL = ("", "nan", "nat", "<na>", "#n/a", "#na", "?")  # all other words are classes
SUSPICIOUS_WORDS = ("na", "n/a", "null", "none", "unknown", "missing", "-", ".")
TOTALS = re.compile(
    r"(grand |sub)?(totals?|sum|summe|gesamt|average|mean|mittelwert|count|anzahl)\s*:?",
    re.IGNORECASE,
)
SENTINELS = (-9.0, -99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0)
SHOWN_NAMES = 8  # names that a sentence lists
FIRST_ROWS = 5  # rows that a card shows
VERSION = 3  # raise it whenever the same file gives other numbers: it is part of the digest


ReasonByLowercaseColumnName = dict[str, str]
# Chooses the test rows of a table that does not name them: (labels [N], client of each row [N] or
# None) -> bool [N].
ChooseTestRows = Callable[[np.ndarray, "np.ndarray | None"], np.ndarray]


@dataclass(frozen=True)
class ColumnRoles:
    """The columns that are not features, by role; None for a role that no column has."""

    label: str
    client: str | None = None
    split: str | None = None
    group: str | None = None

    def list_column_names(self) -> list[str]:
        """List the columns that have a role."""
        return [name for name in (self.label, self.client, self.split, self.group) if name]


def load_table(
    table_file: Path,
    options: FileOptionTexts,
    file_digest: str,
    split_function: ChooseTestRows | None = None,
    dataset_name: str = "",
) -> Dataset:
    """Load the Dataset of a table's file, under the file's name or `dataset_name`.

    split_function: chooses the test rows from the labels and the client of each row, unless the
        file says which they are; by default `draw_fifth_of_rows_for_test`
    """
    return make_dataset_from_raw_table(
        files.read_table_file(table_file, options),
        options,
        file_digest,
        table_file.name,
        split_function,
        dataset_name,
    )


def make_dataset_from_raw_table(
    raw: RawTable,
    options: FileOptionTexts,
    file_digest: str,
    file_name: str,
    split_function: ChooseTestRows | None = None,
    dataset_name: str = "",
) -> Dataset:
    """Make the Dataset of a table's cells. Raises UsageError.

    file_name: the file's name in the note and in error messages
    split_function: as in `load_table`
    """
    table = raw.cells
    names = list(table.columns)
    if len(names) < 2:
        raise UsageError(
            f"{file_name} has one column, {names[0]!r}; give a table with commas, one column is the "
            "label."
        )
    roles = choose_column_roles(table, options, file_name)
    reading = make_reading_options(raw, options, file_name, names)
    check_last_row_is_not_totals(table, file_name)
    inputs = [column for column in names if column not in roles.list_column_names()]
    if not inputs:
        raise UsageError(
            f"{file_name} has only columns for label and clients; add columns for a network to read."
        )

    table, dropped_by_role = drop_rows_without_label_or_role(table, roles, reading, file_name)
    y, class_names = encode_label_column_or_refuse_mixed_case(
        table[roles.label], roles.label, reading
    )
    check_class_count(class_names, len(y), roles.label, file_name)
    client_of_row: np.ndarray | None = None
    client_names: tuple[str, ...] = ()
    clients_note = ""
    if roles.client:
        client_of_row, client_names, clients_note = encode_client_column(
            table[roles.client], roles.client, file_name, reading
        )
    is_test, split_note = choose_test_rows(
        table, roles, y, client_of_row, split_function, file_name, reading
    )

    features = table[inputs]
    reading = replace(
        reading, left_out_reasons=explain_columns_that_mark_the_split(features, roles, reading)
    )
    columns = infer_column_schemas(features, table[roles.list_column_names()], ~is_test, reading)
    check_has_features(columns, file_name)
    columns, numbers = fit_number_columns(columns, features, ~is_test, client_of_row)
    schema = InputSchema(
        kind=TABLE,
        input_shape=(sum(column.feature_count for column in columns),),
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
    x = schema.encode_feature_columns(features[needed], reject_unknown_categories=False)

    arrays = {
        "x_train": x[~is_test],
        "y_train": y[~is_test],
        "x_test": x[is_test],
        "y_test": y[is_test],
    }
    if client_of_row is not None:
        clients, arrays["client_train"] = np.unique(client_of_row[~is_test], return_inverse=True)
        if np.array_equal(clients, np.unique(client_of_row[is_test])):
            arrays["client_test"] = np.searchsorted(clients, client_of_row[is_test])
        client_names = tuple(client_names[k] for k in clients)
    schema = replace(schema, client_names=client_names)
    notes = [
        f"The label is column {roles.label!r}.{clients_note}",
        split_note,
        describe_column_encodings(columns, client_of_row is not None, numbers),
        describe_dropped_rows(dropped_by_role),
        *list_reading_doubts(schema, table, y[~is_test], reading),
        *raw.notes,
    ]
    note = " ".join(sentence for sentence in notes if sentence)
    dataset = make_dataset_from_checked_arrays(
        dataset_name or file_name, file_digest, arrays, class_names, note, client_names, schema
    )
    return replace(dataset, first_rows=raw.cells.head(FIRST_ROWS))


def check_has_features(columns: list[ColumnSchema], file_name: str) -> None:
    """Raise UsageError if no column becomes a feature."""
    if any(column.feature_count for column in columns):
        return
    reasons = " ".join(f"{column.name!r}: {column.reason}" for column in columns[:SHOWN_NAMES])
    raise UsageError(
        f"{file_name} has only columns for label and clients, and columns that are left out "
        f"({reasons}); add columns for a network to read, or say ?number=NAME or ?words=NAME."
    )


# ------------------------------------------------------------------------------------------ options
def choose_column_roles(table: DataFrame, options: FileOptionTexts, file_name: str) -> ColumnRoles:
    """Choose the columns of label, client, split and group. Raises UsageError."""
    names = list(table.columns)
    by_key = {normalise_column_name(name): name for name in names}

    def find_column(role: str) -> str:
        column_key = normalise_column_name(options[role])
        if column_key not in by_key:
            raise UsageError(
                f"{file_name} has no column {options[role]!r} for its {role}; it has {', '.join(names)}."
            )
        return by_key[column_key]

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
            raise UsageError(f"{file_name} has no column for the label; add one.")
        usual = [by_key[name] for name in LABELS if by_key.get(name) in candidates]
        label = usual[0] if usual else candidates[-1]
    for role, column in (("client", client), ("split", split), ("group", group)):
        if column == label:
            raise UsageError(
                f"Column {label!r} of {file_name} cannot be label and {role}; name another one, as in "
                f"{file_name}?label=NAME."
            )
    return ColumnRoles(label, client, split, group)


def make_reading_options(
    raw: RawTable, options: FileOptionTexts, file_name: str, column_names: list[str]
) -> TableReadingOptions:
    """Collect the options for reading the cells. Raises UsageError for an option's wrong value."""
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
    keys = {normalise_column_name(name): name for name in column_names}
    forced: dict[str, ColumnKind] = {}
    for option, kind in KINDS.items():
        for name in find_columns_listed_in_option(options.get(option, ""), keys, file_name):
            if name.casefold() in forced:
                raise UsageError(f"Column {name!r} is given two kinds; name it once.")
            forced[name.casefold()] = kind
    return TableReadingOptions(
        file=file_name,
        separator=raw.separator,
        missing=missing,
        decimal=cast(Any, decimal),
        dates=cast(Any, dates),
        ignore_case=None if not case else case == "ignore",
        forced=forced,
    )


def find_columns_listed_in_option(
    option_text: str, columns_by_normalised_name: Mapping[str, str], file_name: str
) -> list[str]:
    """Find the columns that an option lists, separated by commas; a name may contain a comma."""
    if not option_text.strip():
        return []
    if normalise_column_name(option_text) in columns_by_normalised_name:
        return [columns_by_normalised_name[normalise_column_name(option_text)]]
    columns = []
    for part in option_text.split(","):
        if not part.strip():
            continue
        if normalise_column_name(part) not in columns_by_normalised_name:
            raise UsageError(
                f"{file_name} has no column {part.strip()!r}; it has {', '.join(columns_by_normalised_name.values())}."
            )
        columns.append(columns_by_normalised_name[normalise_column_name(part)])
    return columns


# ----------------------------------------------------------------------------------------- the rows
def read_role_column_as_texts(cells: Series, reading: TableReadingOptions) -> Series:
    """Read a column of labels, clients and the like as texts; only the texts of NO_LABEL, or
    those that the user gives, count as missing."""
    missing = ("", *reading.missing) if reading.missing else NO_LABEL
    return replace_missing_texts_by_none(convert_column_to_texts(cells), missing)


class LabelledRows(NamedTuple):
    """The rows of a table that have a value for every role.

    dropped: the number of other rows, by the role that they lack
    """

    table: DataFrame
    dropped: Counter[str]


def drop_rows_without_label_or_role(
    table: DataFrame, roles: ColumnRoles, reading: TableReadingOptions, file_name: str
) -> LabelledRows:
    """Drop the rows without a label, a client or another role. Raises UsageError if too few are
    left."""
    lost: Counter[str] = Counter()
    is_complete = np.ones(len(table), dtype=bool)
    for role in ("label", "client", "split", "group"):
        name = getattr(roles, role)
        if name is not None:
            has_value = read_role_column_as_texts(table[name], reading).notna().to_numpy()
            lost[role] = int((is_complete & ~has_value).sum())
            is_complete &= has_value
    count = int(is_complete.sum())
    if count < FEWEST_ROWS:
        raise UsageError(
            f"{file_name} has {count} rows with a label in column {roles.label!r}, but it needs at "
            f"least {FEWEST_ROWS}; add rows, or name another column."
        )
    return LabelledRows(table[is_complete], lost)


def check_last_row_is_not_totals(table: DataFrame, file_name: str) -> None:
    """Raise UsageError if the last row seems to hold the sums of the other rows, and no sample."""
    for line in table.index[-2:]:
        row = table.loc[line]
        for name, cell in row.items():
            is_text = isinstance(cell, str) and not has_numeric_dtype(table[name])
            if is_text and TOTALS.fullmatch(cell) and (table[name] == cell).sum() == 1:
                raise UsageError(
                    f"Line {line} of {file_name} seems to hold totals and no sample ({name}: {cell!r}); "
                    "remove that line."
                )
    if has_sums_in_last_row(table):
        raise UsageError(
            f"Line {table.index[-1]} of {file_name} holds the sums of the lines above it and no sample; "
            "remove that line."
        )


def has_sums_in_last_row(table: DataFrame) -> bool:
    """Whether the last row has two numbers or more, and each is the sum of its column."""
    import pandas

    matches = 0
    if len(table) <= FEWEST_ROWS:
        return False
    for name in table.columns:
        last_cell = table[name].iloc[-1]
        if pandas.isna(last_cell) or not is_plain_number(str(last_cell)):
            continue
        cells_above = pandas.to_numeric(table[name].iloc[:-1], errors="coerce").dropna()
        has_few_numbers = (cells_above != 0).sum() < FEWEST_ROWS // 2
        if has_few_numbers or not np.isclose(cells_above.sum(), float(last_cell)):
            return False
        matches += 1
    return matches > 1


class CodesAndNames(NamedTuple):
    """Texts as numbers.

    codes: int64 [N], the index of each text in `names`
    names: the distinct texts
    """

    codes: np.ndarray
    names: tuple[str, ...]


def number_distinct_texts(texts: Iterable[str], ignore_case: bool = False) -> CodesAndNames:
    """Number the distinct texts: first the numbers by size, then the others by the alphabet. Equal
    numbers, such as `0` and `0.0`, count as one text.

    >>> codes, names = number_distinct_texts(["b", "10", "a", "9", "9.0"])
    >>> codes.tolist(), names
    ([3, 1, 2, 0, 0], ('9', '10', 'a', 'b'))
    """
    texts = list(texts)
    names: dict = {}
    for text in sorted(set(texts), key=lambda text: (len(text), text)):
        names.setdefault(make_category_comparison_key(text, ignore_case), text)

    numbers = sorted(key for key in names if isinstance(key, float))
    text_keys = sorted((key for key in names if not isinstance(key, float)), key=names.__getitem__)
    keys = [*numbers, *text_keys]
    code_of_key = {key: code for code, key in enumerate(keys)}
    codes = [code_of_key[make_category_comparison_key(text, ignore_case)] for text in texts]
    return CodesAndNames(np.array(codes, dtype=np.int64), tuple(names[key] for key in keys))


def encode_label_column_or_refuse_mixed_case(
    cells: Series, column_name: str, reading: TableReadingOptions
) -> CodesAndNames:
    """Encode the label column as classes with names. Raises UsageError for labels that differ only in
    case."""
    texts = read_role_column_as_texts(cells, reading)
    texts = normalise_decimal_commas_in_labels(texts, reading)
    check_texts_do_not_differ_only_in_case(texts, column_name, reading)
    return number_distinct_texts(texts, bool(reading.ignore_case))


def normalise_decimal_commas_in_labels(texts: Series, reading: TableReadingOptions) -> Series:
    """Write labels with decimal commas (0,0 and 1,0) as plain numbers, so that equal numbers are one
    class."""
    traits = find_number_traits(texts, replace(reading, missing=("nan",)))
    if not traits.are_all_numbers or traits.decimals != (",",):
        return texts
    if not all(is_plain_number(text.replace(",", ".")) for text in traits.cells):
        return texts
    return texts.map(lambda text: text.replace(",", "."))


def check_texts_do_not_differ_only_in_case(
    texts: Series, column_name: str, reading: TableReadingOptions
) -> None:
    """Raise UsageError for two texts that differ only in case, unless the user has given the option
    for it."""
    if reading.ignore_case is not None:
        return
    by_folded: dict[str, str] = {}
    for text in sorted(texts.unique()):
        earlier_text = by_folded.setdefault(text.casefold(), text)
        if earlier_text != text:
            raise UsageError(
                f"Column {column_name!r} of {reading.file} has {earlier_text!r} and {text!r}, which differ in "
                "case alone; say ?case=ignore if they are one, or ?case=keep if they are two."
            )


def check_class_count(
    classes: tuple[str, ...], label_count: int, label_column: str, file_name: str
) -> None:
    """Raise UsageError for a single class, or for more classes than a label may have."""
    advice = f"name another column, as in {file_name}?label=NAME"
    if len(classes) < 2:
        raise UsageError(
            f"Column {label_column!r} of {file_name} has one value, {classes[0]!r}, in all rows; {advice}."
        )
    most_classes = min(MOST_CLASSES, max(FEWEST_CLASSES, label_count // 10))
    if len(classes) > most_classes:
        raise UsageError(
            f"Column {label_column!r} of {file_name} has {len(classes)} different values in {label_count} rows, but "
            f"a label may have at most {most_classes}; {advice}."
        )


class ClientOfRowNamesAndNote(NamedTuple):
    """The clients that a column names.

    owners: int64 [N], the client of each row; None if all rows belong to one client
    names: the names of the M clients
    note: a sentence on the column
    """

    owners: np.ndarray | None
    names: tuple[str, ...]
    note: str


def encode_client_column(
    cells: Series, column_name: str, file_name: str, reading: TableReadingOptions
) -> ClientOfRowNamesAndNote:
    """Encode the column of clients. Raises UsageError for nearly as many clients as rows."""
    texts = read_role_column_as_texts(cells, reading)
    check_texts_do_not_differ_only_in_case(texts, column_name, reading)
    owner, distinct = number_distinct_texts(texts, bool(reading.ignore_case))
    if len(distinct) == 1:
        return ClientOfRowNamesAndNote(
            None, (), f" All rows are of one {column_name}, so it names no clients."
        )
    if len(distinct) > len(cells) // 2:
        raise UsageError(
            f"Column {column_name!r} of {file_name} names {len(distinct)} clients for {len(cells)} rows, but "
            "each needs two; name another column with ?client=NAME, or none with ?client=."
        )
    return ClientOfRowNamesAndNote(owner, distinct, f" Its clients are column {column_name!r}.")


# ---------------------------------------------------------------------------------------- test rows
class TestMaskAndNote(NamedTuple):
    """Which samples are for testing.

    is_test: bool [N], which samples are for testing
    note: a sentence on how they were chosen
    """

    is_test: np.ndarray
    note: str


def choose_test_rows(
    table: DataFrame,
    roles: ColumnRoles,
    labels: LabelArray,
    client_of_row: ClientOfSample | None,
    split_function: ChooseTestRows | None,
    file_name: str,
    reading: TableReadingOptions,
) -> TestMaskAndNote:
    """Choose the test rows: by the split column, by groups, or at random."""
    groups = None
    if roles.group:
        groups, names = number_distinct_texts(
            read_role_column_as_texts(table[roles.group], reading)
        )
        if len(names) < 2:
            raise UsageError(
                f"Column {roles.group!r} of {file_name} has one group; name another column with "
                "?group=NAME."
            )
    if roles.split:
        test, note = parse_split_column(
            read_role_column_as_texts(table[roles.split], reading), roles.split, file_name
        )
        groups_on_both_sides = set() if groups is None else set(groups[test]) & set(groups[~test])
        if groups_on_both_sides:
            raise UsageError(
                f"{len(groups_on_both_sides)} groups of column {roles.group!r} stand on both sides of column "
                f"{roles.split!r} of {file_name}; correct the split, or leave out ?split=."
            )
        if client_of_row is not None and set(client_of_row[test]) - set(client_of_row[~test]):
            raise UsageError(
                f"A client of {file_name} has test rows alone in column {roles.split!r}; name no "
                "clients with ?client=."
            )
        return TestMaskAndNote(test, note)
    if groups is not None:
        test = draw_test_rows_in_whole_groups(labels, groups, client_of_row)
        note = f"No value of column {roles.group!r} stands among training and test rows."
        return TestMaskAndNote(test, note)
    if split_function is not None:
        return TestMaskAndNote(split_function(labels, client_of_row), "")
    return TestMaskAndNote(draw_fifth_of_rows_for_test(labels, client_of_row), "")


def parse_split_column(texts: Series, column_name: str, file_name: str) -> TestMaskAndNote:
    """Find the rows that a column marks as test rows. Raises UsageError for a value that is not
    a word for train, test or validation."""
    lowercase_texts = texts.str.lower()
    split_words = (*TRAIN_WORDS, *TEST_WORDS, *VALIDATION_WORDS)
    unknown = [text for text in texts.unique() if text.lower() not in split_words]
    if unknown:
        raise UsageError(
            f"Column {column_name!r} of {file_name} holds {unknown[0]!r}, but a split says train or test (or "
            "validation) in each row; correct it, or leave out ?split=."
        )
    test = lowercase_texts.isin(TEST_WORDS).to_numpy()
    validation = lowercase_texts.isin(VALIDATION_WORDS).to_numpy()
    if not test.any() and validation.any():
        test = validation
        validation = np.zeros_like(test)
    for part, is_part in (("training", ~test), ("test", test)):
        if not is_part.any():
            raise UsageError(
                f"Column {column_name!r} of {file_name} has no {part} rows; correct it."
            )
    note = f"Column {column_name!r} says which rows are for testing."
    if validation.any():
        note += f" Its {int(validation.sum())} validation rows are among the training rows."
    return TestMaskAndNote(test, note)


def draw_fifth_of_rows_for_test(
    labels: LabelArray, client_of_row: ClientOfSample | None
) -> BooleanPerSample:
    """Draw the test rows, bool [N]: one in five of each class, the same in every run. No client loses
    its last row, and at least one row is a test row."""
    client = client_of_row if client_of_row is not None else np.zeros(len(labels), dtype=np.int64)
    rows_left = np.bincount(client)  # training rows that each client still has
    class_sizes = np.bincount(labels)
    test_rows_by_class = class_sizes // TEST_SHARE  # test rows of each class
    test = np.zeros(len(labels), dtype=bool)
    order = make_numpy_generator(0, "test rows").permutation(len(labels))
    for row in order:
        if test_rows_by_class[labels[row]] and rows_left[client[row]] > 1:
            test[row] = True
            test_rows_by_class[labels[row]] -= 1
            rows_left[client[row]] -= 1
    if not test.any():  # no class has five rows: one row of the largest class that can spare one
        candidates = [row for row in order if rows_left[client[row]] > 1]
        test[max(candidates, key=lambda row: class_sizes[labels[row]])] = True
    return test


def draw_test_rows_in_whole_groups(
    labels: LabelArray, group_of_row: GroupOfSample, client_of_row: ClientOfSample | None
) -> BooleanPerSample:
    """Draw the test rows, bool [N], in whole groups, the same in every run, until about a fifth of each
    class is for testing. No client and no class loses its last training row."""
    client = client_of_row if client_of_row is not None else np.zeros(len(labels), dtype=np.int64)
    rows_of_client = np.bincount(client)  # training rows that are left
    rows_of_class = np.bincount(labels)
    test_rows_by_class = np.bincount(labels) / TEST_SHARE  # test rows of each class
    test = np.zeros(len(labels), dtype=bool)
    smallest = None  # the smallest group that can be spared
    for group in make_numpy_generator(0, "test groups").permutation(int(group_of_row.max()) + 1):
        rows = group_of_row == group
        by_client = np.bincount(client[rows], minlength=len(rows_of_client))
        by_class = np.bincount(labels[rows], minlength=len(test_rows_by_class))
        takes_all_of_client = (by_client > 0) & (by_client >= rows_of_client)
        takes_all_of_class = (by_class > 0) & (by_class >= rows_of_class)
        if takes_all_of_client.any() or takes_all_of_class.any():
            continue
        if smallest is None or rows.sum() < smallest.sum():
            smallest = rows
        wanted_rows = np.minimum(by_class, np.maximum(test_rows_by_class, 0)).sum()
        if wanted_rows * 2 >= rows.sum():  # most of its rows are still wanted
            test |= rows
            test_rows_by_class -= by_class
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
def explain_columns_that_mark_the_split(
    features: DataFrame, roles: ColumnRoles, reading: TableReadingOptions
) -> ReasonByLowercaseColumnName:
    """Explain why columns are left out without an option: they mark the training and test rows."""
    reasons = {}
    for name in features.columns:
        is_named_split = normalise_column_name(name) in SPLITS
        if not roles.split and is_named_split and is_train_or_test_column(features[name], reading):
            reasons[name.casefold()] = "It says train and test."
    return reasons


class ColumnSchemasAndNumberCount(NamedTuple):
    """All columns, those of numbers with mean and scale, and the number of such columns."""

    columns: list[ColumnSchema]
    number_columns: int


def fit_number_columns(
    columns: list[ColumnSchema],
    features: DataFrame,
    is_training_row: BooleanPerSample,
    client_of_row: ClientOfSample | None,
) -> ColumnSchemasAndNumberCount:
    """Give the columns of numbers the mean and the scale of the training rows.

    is_training_row: bool [N]
    client_of_row: int [N], or None if the table names no clients
    """
    numbers = [column for column in columns if column.kind == NUMBER]
    if not numbers:
        return ColumnSchemasAndNumberCount(columns, 0)
    values = np.stack(
        [parse_number_column(column, features[column.name]) for column in numbers], axis=1
    )
    mean, scale = compute_pooled_mean_and_deviation(
        values[is_training_row], None if client_of_row is None else client_of_row[is_training_row]
    )
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise UsageError(
            "The features are too large to standardise in 32-bit numbers; rescale their columns."
        )
    fitted = {}
    for index, column in enumerate(numbers):
        fitted[column.name] = replace(column, mean=float(mean[index]), scale=float(scale[index]))
    all_columns = [fitted.get(column.name, column) for column in columns]
    return ColumnSchemasAndNumberCount(all_columns, len(numbers))


class BytesUpAndDownPerClient(NamedTuple):
    """The bytes that a client sends up, and those that it gets back."""

    up: int
    down: int


def count_bytes_to_standardise_columns(column_count: int) -> BytesUpAndDownPerClient:
    """Count the bytes that a client sends and gets once to standardise so many columns: three sums up,
    mean and scale down, in double precision."""
    return BytesUpAndDownPerClient(3 * 8 * column_count, 2 * 8 * column_count)


def compute_count_sum_and_squares_of_columns(rows_of_client: FeatureArray) -> ColumnSums:
    """Compute what one client sends: the count, sum and sum of squares of each column's values, float64
    [3, D]. A nan is no value."""
    with np.errstate(over="ignore", invalid="ignore"):
        is_missing = np.isnan(rows_of_client)
        count = (~is_missing).sum(axis=0).astype(np.float64)
        values = np.where(is_missing, 0.0, rows_of_client)
        return np.stack(
            [count, sum_rows_in_fixed_order(values), sum_rows_in_fixed_order(values * values)]
        )


def compute_pooled_mean_and_deviation(
    rows: FeatureArray, client_of_row: ClientOfSample | None = None
) -> MeanAndDeviation:
    """Compute the mean and scale [D] of the columns of `rows` [N, D] (nan: no value) from the sums
    that the clients send.

    The scale is the standard deviation, or 1 for a column without two different values.
    """
    rows_of_clients = [rows]
    if client_of_row is not None:
        rows_of_clients = [rows[client_of_row == k] for k in np.unique(client_of_row)]
    sums_of_clients = np.stack(
        [compute_count_sum_and_squares_of_columns(client_rows) for client_rows in rows_of_clients]
    )
    count, total, squares = sum_rows_in_fixed_order(sums_of_clients)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares / np.maximum(count, 1) - mean * mean, 0)
        is_constant = variance <= 1e-12 * np.maximum(mean * mean, np.finfo(np.float64).tiny)
        return MeanAndDeviation(mean, np.where(is_constant, 1.0, np.sqrt(variance)))


# ---------------------------------------------------------------------------------------- sentences
def describe_column_encodings(
    columns: list[ColumnSchema], has_clients: bool, number_column_count: int
) -> str:
    """Describe in sentences what was done with the columns."""
    notes = []
    if number_column_count:
        bytes_up, bytes_down = count_bytes_to_standardise_columns(number_column_count)
        rows = "of its rows" if has_clients else "of its rows, whichever rows it gets,"
        columns_are = (
            "columns of numbers are" if number_column_count > 1 else "column of numbers is"
        )
        notes.append(
            f"{number_column_count} {columns_are} standardised by sums over the clients. Each client sends count, sum "
            f"and sum of squares {rows} once ({bytes_up} bytes), and gets {bytes_down} bytes back. "
            "A run's bytes do not count these."
        )
    for column in columns:
        if column.kind == NUMBER and has_unusual_number_format(column):
            notes.append(f"{column.name}: {column.reason}")
    categories = [column.name for column in columns if column.kind == CATEGORY]
    if categories:
        notes.append(f"One column for each value: {', '.join(categories[:SHOWN_NAMES])}.")
    word_columns = [column.name for column in columns if column.kind == WORDS]
    if word_columns:
        notes.append(
            f"Bags of hashed words, {HASHED_FEATURES} columns each: {', '.join(word_columns[:SHOWN_NAMES])}."
        )
    left_out = [column for column in columns if column.kind == LEFT_OUT]
    for column in left_out[:SHOWN_NAMES]:
        notes.append(f"Left out: {column.name}. {column.reason}")
    return " ".join(notes)


def has_unusual_number_format(column: ColumnSchema) -> bool:
    """Whether the cells of a column of numbers are more than plain digits with a point."""
    return bool(
        column.unit
        or column.decimal == ","
        or column.grouped
        or column.time_format
        or "counts as" in column.reason
    )


def describe_dropped_rows(dropped_row_count_by_role: Counter) -> SentenceOrEmpty:
    """Say how many rows are left out, and why."""
    total = sum(dropped_row_count_by_role.values())
    if not total:
        return ""
    roles = " or a ".join(role for role, count in dropped_row_count_by_role.items() if count)
    if total == 1:
        return f"1 row without a {roles} is left out."
    return f"{total} rows without a {roles} are left out."


def list_reading_doubts(
    schema: InputSchema, table: DataFrame, train_labels: LabelArray, reading: TableReadingOptions
) -> list[Sentence]:
    """List what the user should check: words and numbers that may mean a missing value, and columns
    that may have a role."""
    notes = []
    for role, names in (("class", schema.class_names), ("client", schema.client_names)):
        suspicious = [name for name in names if name.lower() in SUSPICIOUS_WORDS]
        if suspicious and not reading.missing:
            word = suspicious[0]
            notes.append(
                f"{word!r} is a {role} of its own; say ?missing={word} to leave its rows out."
            )
    absent = [name for k, name in enumerate(schema.class_names) if k not in set(train_labels)]
    if absent:
        notes.append(f"No training row has the label {', '.join(absent[:SHOWN_NAMES])}.")
    notes.extend(describe_missing_values(schema.columns, table))
    for column in schema.columns:
        if column.kind == NUMBER and not column.time_format:
            notes.extend(describe_suspected_missing_number_if_any(column, table[column.name]))
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
        may_be_group = not schema.group and is_person_id_name(name)
        if may_be_group and has_several_and_repeated_values(table[name]):
            notes.append(f"Does column {name!r} say whose rows these are? Then say ?group={name}.")
    return notes


def describe_missing_values(columns: Iterable[ColumnSchema], table: DataFrame) -> list[Sentence]:
    """Say which texts count as missing in columns of numbers, and how often they occur."""
    missing: Counter = Counter()
    for column in columns:
        cells = table[column.name]
        if column.kind == NUMBER and not has_numeric_dtype(cells):
            present_cells = replace_missing_texts_by_none(cells, column.missing)
            missing.update(cells[present_cells.isna() & cells.notna()])
    if not missing:
        return []
    listed = ", ".join(
        f"{text!r} ({count} times)" for text, count in missing.most_common(SHOWN_NAMES)
    )
    return [f"In columns of numbers these count as missing: {listed}."]


def is_train_or_test_column(cells: Series, reading: TableReadingOptions) -> bool:
    """Whether a column holds the words train and test."""
    lowercase_texts = set(read_role_column_as_texts(cells, reading).dropna().str.lower())
    split_words = {*TRAIN_WORDS, *TEST_WORDS, *VALIDATION_WORDS}
    return lowercase_texts <= split_words and not lowercase_texts.isdisjoint(TRAIN_WORDS)


def has_several_and_repeated_values(cells: Series) -> bool:
    """Whether a column has several values, and some of them more than once."""
    count = cells.nunique()
    return 1 < count < len(cells.dropna())


def describe_suspected_missing_number_if_any(column: ColumnSchema, cells: Series) -> list[Sentence]:
    """Point out a number such as -999 that is far from all others: it may mean a missing value."""
    values = parse_number_column(column, cells)
    values = values[np.isfinite(values)]
    for sentinel in SENTINELS:
        count = int((values == sentinel).sum())
        other_values = values[values != sentinel]
        if count < 2 or not len(other_values):
            continue
        spread = float(other_values.max() - other_values.min())
        gap = float(min(abs(other_values - sentinel)))
        if gap > spread:
            return [
                f"Column {column.name!r} holds {sentinel:g} {count} times; if that means no value, "
                f"say ?missing={sentinel:g}."
            ]
    return []
