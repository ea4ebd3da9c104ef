"""Every published number stands in its paper's text, at its table, in its order; no table or figure is forgotten.

The texts are no part of the project. Their folder is named by FEDLAB_NB_PAPERS; without it these tests are skipped.
"""

import dataclasses
import itertools
import math
import os
import re
from pathlib import Path

import pytest

from fedlab_nb.declared import read_toml
from fedlab_nb.papers.published import FOLDER, PAPERS, TABLES, load_paper_table

TEXTS = {
    "fens": "fens",
    "fedet": "fed-et",
    "coboosting": "co-boosting",
    "fusefl": "fusefl",
    "fedlpa": "fedlpa",
}
# In one of the texts some numbers stand four times without a space between.
REPEATED = re.compile(r"\b(\d+(?:\.\d+)?)\1{3}\b")
CAPTION = re.compile(r"^(Table|Figure) (\d+):", re.M)
DATASET_OR_NUMBER = re.compile(r"<(\D[\w-]*)>|(\d+(?:\.\d+)?(?:e\d+)?)")
# {our name of a data set: how the texts write it}
DATASETS = {
    "cifar100": r"CIFAR-?\s?100|CF-100",
    "cifar10": r"CIFAR-?\s?10(?!0)|CF-10(?!0)",
    "fashion-mnist": r"F-?MNIST",
    "tiny-imagenet": r"Tiny-?Image[nN]et",
    "mnist": r"(?<![\w<-])MNIST(?!-M)",
    "svhn": "SVHN",
    "sent140": "Sent140",
}
WITHOUT_ORDER = {"fedlpa:7"}  # two numbers of the table stand in one cell of the text
# Tables whose text has no labels beside the numbers, or others than our names.
UNLABELLED = {
    *("fens:4", "coboosting:15", "fusefl:7", "fedlpa:2", "fedlpa:8", "fedlpa:23", "fedlpa:25"),
}
WITH_SPREADS = ("fens:", "fedet:")  # the other texts have lost the spreads


def read_text(paper):
    folder = os.environ.get("FEDLAB_NB_PAPERS")
    if not folder:
        pytest.skip("FEDLAB_NB_PAPERS names no folder with the papers' texts")
    return (Path(folder) / f"{TEXTS[paper]}.txt").read_text(encoding="utf-8")


def split_at_captions(text):
    """{"Table 3": what stands between its caption and the next one}"""
    captions = list(CAPTION.finditer(text))
    ends = [caption.start() for caption in captions[1:]] + [len(text)]
    parts = {}
    for caption, end in zip(captions, ends, strict=True):
        parts[f"{caption[1]} {caption[2]}"] = text[caption.end() : end]
    return parts


def clean(text):
    """Numbers as they are read, each once, and data sets by our names, as <mnist>."""
    text = text.replace(",", "")
    text = re.sub(r"\\pm|imes|[$()±]", " ", text)
    text = REPEATED.sub(r"\1", text)
    for name, pattern in DATASETS.items():
        text = re.sub(pattern, f" <{name}> ", text)
    return text


def has_in_order(text, tokens):
    """Whether these numbers and data sets stand in the text in this order, others between them."""
    remaining = iter([m[1] or float(m[2]) for m in DATASET_OR_NUMBER.finditer(text)])
    return all(any(found == token for found in remaining) for token in tokens)


def list_orders(table, columns, has_labels):
    """The whole table in each order in which a text may have it, as a list of numbers and labels.

    Column by column or row by row; by data set or by setting; in one block, or in blocks of columns
    with the same last setting. With labels, the data set and the settings that differ from column
    to column stand before the numbers: of a block column by column, data sets first, or settings first.
    """
    settings = list(dict.fromkeys(column.setting for column in columns))
    by_setting = sorted(columns, key=lambda column: settings.index(column.setting))
    make_labels = LabelMaker(columns) if has_labels else lambda column, previous: []
    orders = []
    for ordered in (columns, by_setting):
        column_by_column = []
        for column, previous in with_previous(ordered):
            column_by_column += make_labels(column, previous)
            column_by_column += [number.mean for number in column.numbers.values()]
        orders.append(column_by_column)
        for get_block in (lambda column: 0, lambda column: column.values[-1:]):
            blocks = [list(block) for _, block in itertools.groupby(ordered, get_block)]
            for arrangement in ("column by column", "data sets first", "settings first"):
                row_by_row = []
                for block in blocks:
                    row_by_row += make_block_header(block, make_labels, arrangement)
                    row_by_row += list_means_by_row(table, block)
                orders.append(row_by_row)
    return orders


def with_previous(items):
    """(item, the item before it or None)"""
    return zip(items, [None, *items], strict=False)


class LabelMaker:
    """The labels of a column: its data set where it is another than before, and the settings that differ."""

    def __init__(self, columns):
        values_by_setting = {}
        drawn = [dict(column.values) for column in columns if column.is_divided_at_random]
        for name in {name for values in drawn for name in values}:
            values_by_setting[name] = {values.get(name) for values in drawn}
        self.varied = {name for name, values in values_by_setting.items() if len(values) > 1}
        self.has_many_datasets = len({column.dataset for column in columns}) > 1

    def __call__(self, column, previous):
        labels = []
        is_other_dataset = previous is None or previous.dataset != column.dataset
        if self.has_many_datasets and is_other_dataset:
            labels.append(column.dataset)
        for name, value in column.values:
            if name in self.varied and isinstance(value, int | float):
                labels.append(value)
        return labels


def make_block_header(block, make_labels, arrangement):
    """The labels of a block's columns, each once where equal ones follow each other."""
    labels = []
    for column, previous in with_previous(block):
        labels += make_labels(column, previous)
    datasets = [label for label in labels if isinstance(label, str)]
    values = [label for label in labels if not isinstance(label, str)]
    if arrangement == "data sets first":
        labels = datasets + values
    if arrangement == "settings first":
        labels = values + datasets
    return [label for label, previous in with_previous(labels) if label != previous]


def list_means_by_row(table, columns):
    means = []
    for row in table.rows:
        means += [column.numbers[row].mean for column in columns if row in column.numbers]
    return means


def find_matching_orders(table, columns, text, has_labels=False):
    """The indices of the orders in which the text has the table."""
    orders = list_orders(table, columns, has_labels)
    return {i for i, order in enumerate(orders) if has_in_order(text, order)}


def list_means(column):
    return [number.mean for number in column.numbers.values()]


def has_all_columns(text, columns):
    return all(has_in_order(text, list_means(column)) for column in columns)


@pytest.mark.parametrize(
    "name", [name for name in TABLES if load_paper_table(name).kind == "Figure"]
)
def test_the_numbers_of_a_figure_stand_in_the_text(name):
    """A sentence of the text names them, in an order of its own."""
    text = clean(read_text(name.split(":")[0]))
    for column in load_paper_table(name).columns:
        for mean in list_means(column):
            assert has_in_order(text, [mean])


@pytest.mark.parametrize(
    "name", [name for name in TABLES if load_paper_table(name).kind != "Figure"]
)
def test_the_numbers_of_a_table_stand_in_the_text_in_their_order(name):
    table = load_paper_table(name)
    columns = list(table.columns)
    text = clean(split_at_captions(read_text(name.split(":")[0]))[table.name_in_paper])
    if name.startswith(WITH_SPREADS) and table.runs:
        assert_spreads_follow_means(columns, text)
    if name in WITHOUT_ORDER:
        assert has_all_columns(text, columns)
        return
    matching = find_matching_orders(table, columns, text)
    assert matching
    has_labels = bool(find_matching_orders(table, columns, text, has_labels=True))
    assert has_labels == (name not in UNLABELLED)
    # two columns that change places are seen
    for column, other in itertools.pairwise(columns):
        if list_means(column) != list_means(other):
            swapped = list(columns)
            swapped[columns.index(column)] = dataclasses.replace(column, numbers=other.numbers)
            swapped[columns.index(other)] = dataclasses.replace(other, numbers=column.numbers)
            still_matching = find_matching_orders(table, swapped, text)
            assert matching - still_matching, (column.setting, other.setting)


def assert_spreads_follow_means(columns, text):
    for column in columns:
        if not column.is_shown_only:
            numbers = []
            for number in column.numbers.values():
                numbers += [x for x in (number.mean, number.spread) if not math.isnan(x)]
            assert has_in_order(text, numbers), (column.dataset, column.setting)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_is_named(paper):
    ours = {load_paper_table(name).name_in_paper for name in TABLES if name.startswith(f"{paper}:")}
    others = set(read_toml(f"{FOLDER}/others.toml")[paper])
    assert not ours & others
    items = set(split_at_captions(read_text(paper)))
    assert items <= ours | others
    named_tables = {item for item in ours | others if item.startswith("Table")}
    assert named_tables == {item for item in items if item.startswith("Table")}
