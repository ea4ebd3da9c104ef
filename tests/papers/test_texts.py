"""Every published number stands in its paper's text, at its table, in its order; no table or figure is forgotten.

The texts are no part of the project. Their folder is named by FEDLAB_NB_PAPERS; without it these tests are skipped.
"""

import dataclasses
import itertools
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
REPEATED = re.compile(r"\b(\d+(?:\.\d+)?)\1{3}\b")  # how one of the texts writes some numbers
CAPTION = re.compile(r"^(Table|Figure) (\d+):", re.M)
TOKEN = re.compile(r"<(\D[\w-]*)>|(\d+(?:\.\d+)?(?:e\d+)?)")
DATASETS = {  # how the texts write their names
    "cifar100": r"CIFAR-?\s?100|CF-100", "cifar10": r"CIFAR-?\s?10(?!0)|CF-10(?!0)", "fashion-mnist": r"F-?MNIST",
    "tiny-imagenet": r"Tiny-?Image[nN]et", "mnist": r"(?<![\w<-])MNIST(?!-M)", "svhn": "SVHN", "sent140": "Sent140",
}  # fmt: skip
OTHERWISE = {"fedlpa:7"}  # two numbers of the table stand in one cell of the text
UNLABELLED = {  # the text has no labels beside the numbers, or others than our names
    *("fens:4", "coboosting:15", "fusefl:7", "fedlpa:2", "fedlpa:8", "fedlpa:23", "fedlpa:25"),
}


def text_of(paper):
    folder = os.environ.get("FEDLAB_NB_PAPERS")
    if not folder:
        pytest.skip("FEDLAB_NB_PAPERS names no folder with the papers' texts")
    return (Path(folder) / f"{TEXTS[paper]}.txt").read_text(encoding="utf-8")


def windows(text):
    """{"Table 3": what stands between its caption and the next one}"""
    found = list(CAPTION.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {f"{m[1]} {m[2]}": text[m.end() : end] for m, end in zip(found, ends, strict=True)}


def clean(window):
    """Numbers as they are read, each once, and data sets by their names here."""
    window = REPEATED.sub(
        r"\1", re.sub(r"\\pm|imes|[,$()±]", lambda m: {",": ""}.get(m[0], " "), window)
    )
    for name, pattern in DATASETS.items():
        window = re.sub(pattern, f" <{name}> ", window)
    return window


def sequence(wanted, text):
    """Whether these numbers and data sets stand in the text in this order, others between them."""
    rest = iter([m[1] or float(m[2]) for m in TOKEN.finditer(text)])
    return all(any(there == one for there in rest) for one in wanted)


def orders(table, columns, labels):
    """The whole table as the text may have it: column by column or row by row, by data set, by setting, or in blocks of
    equal last settings. `labels`: data sets and settings that differ from column to column stand before the numbers."""
    dealt = [dict(column.values) for column in columns if column.has_drawn_clients]
    varied = {key for of in dealt for key in of if len({other.get(key) for other in dealt}) > 1}
    many = len({column.dataset for column in columns}) > 1

    def names(column, before=None):
        data = (
            [column.dataset]
            if many and (before is None or before.dataset != column.dataset)
            else []
        )
        return (
            [
                *data,
                *(v for key, v in column.values if key in varied and isinstance(v, int | float)),
            ]
            if labels
            else []
        )

    settings = list(dict.fromkeys(column.setting for column in columns))
    for of in (columns, sorted(columns, key=lambda column: settings.index(column.setting))):
        before = zip(of, [None, *of], strict=False)
        yield [
            x
            for c, last in before
            for x in (*names(c, last), *(n.mean for n in c.numbers.values()))
        ]
        for split in ((lambda column: 0), (lambda column: column.values[-1:])):
            blocks = [list(block) for _, block in itertools.groupby(of, split)]
            for head in (
                0,
                1,
                -1,
            ):  # labels of a column beside each other, data sets first, settings first
                yield [
                    x
                    for block in blocks
                    for x in (*header(block, names, head), *by_row(table, block))
                ]


def header(block, names, apart):
    found = [
        x for column, last in zip(block, [None, *block], strict=False) for x in names(column, last)
    ]
    found = sorted(found, key=lambda x: apart * isinstance(x, int | float))
    return [x for x, last in zip(found, [None, *found], strict=False) if x != last]


def by_row(table, columns):
    return [
        column.numbers[row].mean
        for row in table.rows
        for column in columns
        if row in column.numbers
    ]


def fits(table, columns, text, labels=False):
    """The places of the orders in which the text has the table."""
    return {
        place for place, order in enumerate(orders(table, columns, labels)) if sequence(order, text)
    }


@pytest.mark.parametrize("name", TABLES)
def test_the_numbers_stand_in_the_text_in_their_order(name):
    table, text = load_paper_table(name), text_of(name.split(":")[0])
    if table.kind == "Figure":  # a sentence of the text names its numbers, in an order of its own
        assert all(
            sequence([n.mean], clean(text))
            for column in table.columns
            for n in column.numbers.values()
        )
        return
    window, columns = clean(windows(text)[table.item]), list(table.columns)
    for column in columns:  # the spreads; the other texts have lost them
        if (
            name.startswith("fe")
            and not name.startswith("fedlpa")
            and table.runs
            and not column.is_shown_only
        ):
            each = [x for n in column.numbers.values() for x in (n.mean, n.spread) if x == x]
            assert sequence(each, window), (column.dataset, column.setting)
    if name in OTHERWISE:
        assert all(
            sequence([n.mean for n in column.numbers.values()], window) for column in columns
        )
        return
    there = fits(table, columns, window)
    assert there and bool(fits(table, columns, window, labels=True)) != (name in UNLABELLED)
    for one, other in itertools.pairwise(
        range(len(columns))
    ):  # two columns that change places are seen
        if [n.mean for n in columns[one].numbers.values()] != [
            n.mean for n in columns[other].numbers.values()
        ]:
            swapped = list(columns)
            swapped[one] = dataclasses.replace(columns[one], numbers=columns[other].numbers)
            swapped[other] = dataclasses.replace(columns[other], numbers=columns[one].numbers)
            assert there - fits(table, swapped, window), (
                columns[one].setting,
                columns[other].setting,
            )


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_is_named(paper):
    here = {load_paper_table(name).item for name in TABLES if name.startswith(f"{paper}:")}
    others = set(read_toml(f"{FOLDER}/others.toml")[paper])
    assert not here & others
    there = set(windows(text_of(paper)))
    assert there <= here | others
    assert {item for item in here | others if item.startswith("Table")} == {
        i for i in there if i.startswith("Table")
    }
