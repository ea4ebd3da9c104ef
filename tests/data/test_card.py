"""The card of a data set: every column with its role, the counts of the file, the same in terminal and notebook."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import fedlab_nb as fl
from fedlab_nb.cli import main
from fedlab_nb.data.card import (
    format_data_card_as_html,
    format_data_card_as_text,
    has_unequal_classes,
    list_rows_of_column_table,
)

ROWS = pd.DataFrame(
    {
        "patient_id": [f"P{i:03d}" for i in range(60)],
        "age": [30 + i % 17 for i in range(60)],
        "<b>sex</b>": ["f", "m"] * 30,
        "text": [f"word{i % 40} and word{i % 7} & more" for i in range(60)],
        "hospital": ["north", "south", "east"] * 20,
        "outcome": ["ill" if i % 10 == 0 else "well" for i in range(60)],
    }
)


@pytest.fixture
def data(tmp_path):
    ROWS.to_csv(tmp_path / "mine.csv", index=False)
    return fl.load(tmp_path / "mine.csv")


class TagChecker(HTMLParser):
    """Keeps the open tags; a closing tag must match the last of them."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_each_column_is_listed_with_its_role_or_kind_and_the_reason(data):
    rows = {
        name: (role, reason) for name, role, reason, _ in list_rows_of_column_table(data.schema)
    }
    assert {name: role for name, (role, _) in rows.items()} == {
        "patient_id": "left out",
        "age": "number",
        "<b>sex</b>": "category",
        "text": "words",
        "hospital": "client",
        "outcome": "label",
    }
    assert all(reason for _, reason in rows.values())
    assert list(rows) == list(ROWS.columns)


def test_the_card_states_the_counts_of_the_file(data):
    text = format_data_card_as_text(data)
    counts = ROWS["outcome"].value_counts()
    assert f"Classes: ill {counts['ill']}, well {counts['well']}." in text
    train = len(data.y_train)
    assert f"{train} training and {60 - train} test" in text
    assert "Left out: patient_id." in text
    client_counts = dict(re.findall(r"(north|south|east) (\d+)", text.partition("Clients (3)")[2]))
    owners = np.array(data.client_names)[data.client_train.numpy()]
    assert client_counts == {
        name: str((owners == name).sum()) for name in ("north", "south", "east")
    }


def test_the_card_warns_of_unequal_classes_alone(data, tmp_path):
    assert has_unequal_classes(data)
    assert "gets 90% right" in format_data_card_as_text(data)
    ROWS.assign(outcome=["ill", "well"] * 30).to_csv(tmp_path / "even.csv", index=False)
    even = fl.load(tmp_path / "even.csv")
    assert not has_unequal_classes(even)
    assert "unequal" not in format_data_card_as_text(even)


def test_the_card_shows_the_files_first_rows(data):
    lines = format_data_card_as_text(data).partition("First rows:\n")[2].splitlines()
    assert lines[0].split() == list(ROWS.columns)
    assert lines[1].split()[:3] == ["P000", "30", "f"]


def test_a_notebook_and_a_terminal_show_the_card(data, tmp_path, capsys):
    assert repr(data) == format_data_card_as_text(data)
    html = data._repr_html_()
    tags = TagChecker()
    tags.feed(html)
    assert not tags.open
    assert "<b>sex" not in html
    assert "&lt;b&gt;sex&lt;/b&gt;" in html
    for name, role, reason, _ in list_rows_of_column_table(data.schema):
        assert role in html
        assert reason
        assert name.startswith("<") or name in html
    assert main(["look", str(tmp_path / "mine.csv")]) == 0
    assert capsys.readouterr().out == format_data_card_as_text(data) + "\n"
    assert main(["look", f"{tmp_path / 'mine.csv'}?label=age"]) == 2


def test_an_option_changes_what_the_card_says(data, tmp_path):
    with_options = fl.load(
        tmp_path / "mine.csv", client="", leave_out="age", category="patient_id,text"
    )
    rows = {name: role for name, role, *_ in list_rows_of_column_table(with_options.schema)}
    assert (rows["age"], rows["text"], rows["hospital"]) == ("left out", "category", "category")
    assert "none are named" in format_data_card_as_text(with_options)


def test_the_card_shows_images():
    data = fl.load("digits")
    html = format_data_card_as_html(data)
    assert html.count("<img alt=") == 8
    assert "1,237 training" in html
    assert repr(data).startswith("Dataset('digits'")


def test_the_card_of_a_wide_table_counts_the_columns_that_it_omits(tmp_path):
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 100)).round(3))
    wide.columns = [f"c{i}" for i in range(100)]
    wide.assign(label=["a", "b"] * 15).to_csv(tmp_path / "wide.csv", index=False)
    text = format_data_card_as_text(fl.load(tmp_path / "wide.csv"))
    assert "61 more columns" in text
