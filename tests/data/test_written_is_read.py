"""Generated tables: a table is read with the values that were written, or refused in one sentence.

Each column is one of the kinds that hospitals and spreadsheets export. Its true values are known; the file has one of
five separators and four encodings, and gaps written in several ways. `schema.encode` gives features, from which the
values are worked out again.
"""

import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedlab_nb.data import load
from fedlab_nb.data.schema import InputSchema
from fedlab_nb.errors import UsageError

SEPARATORS = [",", ";", "\t", "|", " "]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "cp1252"]
GAPS = ["", "NA", "n/a", "null", "?", "-", "unknown"]
ROWS = 40


def group_thousands(value, decimal, places):
    """A number with grouped thousands, as 1.234,5."""
    text = f"{value:,.{places}f}"
    if decimal == ",":
        return text.translate(str.maketrans(",.", ".,"))
    return text


def make_whole_numbers(rng):
    values = rng.integers(-500, 500, ROWS).tolist()
    return [str(value) for value in values], values


def make_decimals(decimal):
    def make(rng):
        values = rng.integers(-9999, 9999, ROWS).tolist()
        values = [value / 100 for value in values]
        return [f"{value:.2f}".replace(".", decimal) for value in values], values

    return make


def make_thousands(decimal):
    def make(rng):
        values = rng.integers(0, 10 ** rng.integers(3, 8), ROWS).tolist()
        values = [value / 10 for value in values]
        return [group_thousands(value, decimal, 1) for value in values], values

    return make


def make_affixed(before, after, minus="-"):
    def make(rng):
        values = rng.integers(-300, 300, ROWS).tolist()
        texts = [f"{minus if v < 0 else ''}{before}{abs(v)}{after}" for v in values]
        return texts, values

    return make


def make_scientific(rng):
    values = rng.integers(1, 999, ROWS).tolist()
    powers = rng.integers(-3, 4, ROWS).tolist()
    pairs = list(zip(values, powers, strict=True))
    return [f"{v}e{p}" for v, p in pairs], [float(f"{v}e{p}") for v, p in pairs]


def make_limits(rng):
    values = rng.integers(1, 90, ROWS).tolist()
    texts = [f"<{value}" if value < 5 else str(value) for value in values]
    return texts, values


def make_dates(rng):
    values = rng.integers(0, 20000, ROWS).tolist()
    return [str(np.datetime64(0, "D") + value) for value in values], values


def make_words(*words):
    def make(rng):
        values = rng.choice(words, ROWS).tolist()
        return list(values), list(values)

    return make


def make_row_numbers(rng):
    start = int(rng.integers(0, 1000))
    return [str(start + i) for i in range(ROWS)], None


def make_names_of_rows(rng):
    start = int(rng.integers(100, 800))
    return [f"P{start + i}" for i in range(ROWS)], None


def make_sentences(rng):
    numbers = rng.permutation(10**6)[:ROWS]
    return [f"pain since day {number}" for number in numbers], "words"


# Each kind of column with the function that makes it.
KINDS = {
    "whole": make_whole_numbers,
    "decimal point": make_decimals("."),
    "decimal comma": make_decimals(","),
    "thousands, point": make_thousands("."),
    "thousands, comma": make_thousands(","),
    "percent": make_affixed("", "%"),
    "currency": make_affixed("$", ""),
    "unit": make_affixed("", " mg"),
    "minus sign": make_affixed("", "", "\u2212"),
    "scientific": make_scientific,
    "limits": make_limits,
    "dates": make_dates,
    "truth": make_words("TRUE", "FALSE"),
    "categories": make_words("none", "mild", "severe"),
    "signs": make_words("+", "-"),
    "Likert": make_words("strongly agree", "agree", "neutral"),
    "row numbers": make_row_numbers,
    "names of rows": make_names_of_rows,
    "sentences": make_sentences,
}  # fmt: skip
NUMBERS = {name for name in KINDS if name not in (
    "truth", "categories", "signs", "Likert", "row numbers", "names of rows", "sentences")}  # fmt: skip


def make_columns(kinds, gap, seed):
    """A column of each kind: the kind, the texts, the values, and the rows without a value."""
    rng = np.random.default_rng(seed)
    columns = []
    for kind in kinds:
        texts, values = KINDS[kind](rng)
        gaps = set()
        if gap is not None and kind in NUMBERS:
            gaps = set(rng.choice(ROWS, 6).tolist())
        texts = [gap if i in gaps else text for i, text in enumerate(texts)]
        columns.append((kind, texts, values, gaps))
    return columns


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # fmt: skip
@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4),
    gap=st.sampled_from([None, *GAPS]),
    separator=st.sampled_from(SEPARATORS),
    encoding=st.sampled_from(ENCODINGS),
    seed=st.integers(0, 10**6),
)
# Slow because each example writes a table and reads it.
@pytest.mark.slow
def test_a_generated_table_is_read_correctly_or_refused(
    tmp_path, kinds, gap, separator, encoding, seed
):
    columns = make_columns(kinds, gap, seed)
    if encoding == "cp1252" and any(kind == "minus sign" for kind, *_ in columns):
        encoding = "utf-8"  # Windows-1252 has no such sign
    names = [f"feature{i}" for i in range(len(columns))]
    rows = [
        [*(texts[i] for _, texts, _, _ in columns), "größer" if i % 2 else "kleiner"]
        for i in range(ROWS)
    ]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerows([[*names, "ergebnis"], *rows])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    try:
        data = load(path)
    except UsageError as error:
        assert str(error).endswith(".")
        assert "\n" not in str(error)
        assert is_fair_refusal(columns, gap, separator, str(error)), str(error)
        return
    assert data.class_names == ("größer", "kleiner")
    schema = InputSchema.from_json(data.schema.to_json())
    features = schema.encode(path)
    place = 0
    for column, (kind, _, values, gaps) in zip(schema.columns, columns, strict=True):
        block = features[:, place : place + column.feature_count]
        place += column.feature_count
        check_column(kind, column, block, values, gaps)


def is_fair_refusal(columns, gap, separator, message):
    """Tables without a feature may be refused, and so may columns of numbers that can be read in two ways."""
    kinds = [kind for kind, *_ in columns]
    if "columns that are left out" in message:
        return all(
            kind in ("row numbers", "names of rows") or not any(texts)
            for kind, texts, *_ in columns
        )
    if separator == " " and gap == "":  # an empty cell at the end of a line cannot be seen
        return "has one column" in message or "cells" in message
    if "read in two ways" in message:
        return any(kind.startswith(("thousands", "decimal")) for kind in kinds)
    return False


def check_column(kind, column, block, values, gaps):
    if kind in ("row numbers", "names of rows"):
        assert column.kind == "left out"
        return
    if kind == "sentences":
        assert column.kind == "words"
        return
    if kind not in NUMBERS:
        assert column.kind == "category"
        for i, value in enumerate(values):
            categories = [
                name for name, share in zip(column.categories, block[i], strict=True) if share == 1
            ]
            assert categories == [value] or value in column.other_categories and categories == []
        return
    if column.kind == "left out":  # no value at all, or consecutive numbers by chance
        assert len(gaps) == ROWS or "counts the rows" in column.reason
        return
    if column.kind == "category":  # every value is a limit such as <3
        assert kind == "limits"
        return
    assert column.kind == "number", column
    read = block[:, 0].astype(float) * column.scale + column.mean
    for i, value in enumerate(values):
        expected = column.mean if i in gaps else value
        tolerance = 1e-5 * max(abs(expected), abs(column.mean), column.scale)
        assert read[i] == pytest.approx(expected, abs=tolerance)
