"""Every published number stands in its paper's text, at its table, in its order; no table or figure is forgotten.

The texts are no part of the project. Their folder is named by FEDLAB_NB_PAPERS; without it these tests are skipped.
"""

import os
import re
from pathlib import Path

import pytest

from fedlab_nb.declared import declared
from fedlab_nb.studies.papers.published import FOLDER, PAPERS, TABLES, paper_table

TEXTS = {"fens": "fens", "fedet": "fed-et", "coboosting": "co-boosting", "fusefl": "fusefl", "fedlpa": "fedlpa"}
REPEATED = re.compile(r"(\d+\.\d+)\1{3}")  # how one of the texts writes some numbers
CAPTION = re.compile(r"^(Table|Figure) (\d+):", re.M)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e\d+)?")


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


def sequence(numbers, text):
    """Whether `numbers` stand in the text in this order, others between them."""
    rest = iter(float(number) for number in NUMBER.findall(text))
    return all(any(there == number for there in rest) for number in numbers)


@pytest.mark.parametrize("name", TABLES)
def test_the_numbers_stand_in_the_text_in_their_order(name):
    table, text = paper_table(name), text_of(name.split(":")[0])
    window = windows(text)[table.item] if table.kind == "Table" else text
    window = REPEATED.sub(r"\1", re.sub(r"\\pm|imes|[,$()±]", lambda m: {",": ""}.get(m[0], " "), window))
    spreads = name.startswith("fe") and not name.startswith("fedlpa")  # the other texts have lost them
    for column in table.columns:  # each column, top to bottom; where the text has it as a row, left to right
        numbers = [number.mean for number in column.numbers.values()]
        if table.kind == "Figure":  # a sentence of the text names them, in an order of its own
            assert all(sequence([number], window) for number in numbers)
            continue
        assert sequence(numbers, window), (column.dataset, column.setting)
        if spreads and table.runs and not column.plain:
            each = [x for n in column.numbers.values() for x in (n.mean, n.spread) if x == x]
            assert sequence(each, window), (column.dataset, column.setting)
    for row in table.rows:
        numbers = [c.numbers[row].mean for c in table.columns if row in c.numbers]
        assert sorted(numbers) == sorted(n for n in numbers if sequence([n], window)), row


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_is_named(paper):
    here = {paper_table(name).item for name in TABLES if name.startswith(f"{paper}:")}
    others = set(declared(f"{FOLDER}/others.toml")[paper])
    assert not here & others
    there = set(windows(text_of(paper)))
    assert there <= here | others
    assert {item for item in here | others if item.startswith("Table")} == {i for i in there if i.startswith("Table")}
