"""A chosen file in a panel: before anything runs, a card shows each column's role, and a menu changes it."""

import pytest

from fedlab_nb import load
from fedlab_nb.data.card import list_rows_of_column_table
from fedlab_nb.data.files import split_path_and_options
from fedlab_nb.errors import UsageError
from fedlab_nb.panels.controls import OWN_FILE, list_data_file_names_in_current_folder
from fedlab_nb.panels.file_card import CHOICES, make_path_with_column_choice

HEAD = "patient_id,age,blood,sex,ward,outcome"
ROWS = [
    f"P{i:03d},{40 + i % 31},{7 + i % 9}.{i % 10},{'fm'[i % 2]},{('north', 'south')[i % 2]},"
    f"{'ill' if i % 5 == 0 else 'well'}"
    for i in range(100)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a table and a text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patients.csv").write_text("\n".join([HEAD, *ROWS]) + "\n")
    (tmp_path / "notes.txt").write_text("no data")
    return tmp_path


@pytest.fixture
def panel(make_panel, job, folder):
    """A panel in which the table is chosen."""
    panel = make_panel()
    panel.controls.dataset.value = OWN_FILE
    panel.controls.path.value = "patients.csv"
    assert panel.wait(60)
    return panel


def read_roles(panel):
    """Read {column: its role} as the card's menus show it."""
    return {name: menu.value for name, menu in panel.controls.card.menus.items()}


def choose_for_column(panel, column, choice):
    panel.controls.card.menus[column].value = choice
    assert panel.wait(60)


def test_the_card_is_there_before_anything_runs(panel, job):
    card = panel.controls.card
    assert card.widget.layout.display is None and job.calls == []
    assert "80 training and 20 test" in card.summary.value and "unequal" in card.summary.value
    assert read_roles(panel) == {
        "patient_id": "left out",
        "age": "number",
        "blood": "number",
        "sex": "category",
        "ward": "category",
        "outcome": "label",
    }
    assert all(menu.tooltip for menu in card.menus.values())
    assert "P000" in card.rows.value and "patients.csv" in panel.code()


@pytest.mark.slow
def test_a_choice_is_in_the_code_and_changes_the_data(panel):
    choose_for_column(panel, "ward", "client")
    assert "dataset='patients.csv?client=ward'" in panel.code()
    assert read_roles(panel)["ward"] == "client"
    assert "Clients (2)" in panel.controls.card.summary.value
    choose_for_column(panel, "age", "left out")
    choose_for_column(panel, "patient_id", "category")
    assert panel.controls.error.value == "" or "patient_id" in panel.controls.error.value
    choose_for_column(panel, "patient_id", "left out")
    assert "leave_out=age,patient_id" in panel.code()
    choose_for_column(panel, "ward", "category")
    assert "client=&" in panel.code() and read_roles(panel)["ward"] == "category"


@pytest.mark.slow
def test_the_label_needs_another_one_first(panel):
    before = panel.code()
    choose_for_column(panel, "outcome", "category")
    assert "choose another column as the label first" in panel.controls.error.value
    assert read_roles(panel)["outcome"] == "label" and panel.code() == before
    choose_for_column(panel, "sex", "label")
    assert not panel.controls.error.value
    assert read_roles(panel)["sex"] == "label" and read_roles(panel)["outcome"] == "category"


@pytest.mark.slow
def test_a_choice_that_is_not_possible_is_one_sentence_and_can_be_undone(panel):
    choose_for_column(panel, "age", "client")
    choose_for_column(panel, "blood", "client")
    assert panel.controls.error.value.count("<p") == 1
    choose_for_column(panel, "blood", "number")
    assert not panel.controls.error.value and read_roles(panel)["blood"] == "number"


@pytest.mark.slow
def test_another_data_set_puts_the_card_away(panel):
    panel.controls.dataset.value = "digits"
    assert panel.wait(60)
    assert panel.controls.card.widget.layout.display == "none"


@pytest.mark.slow
def test_the_files_of_the_folder_are_suggested(panel, folder):
    assert (
        list_data_file_names_in_current_folder()
        == ["patients.csv"]
        == list(panel.controls.path.options)
    )


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("column", ["age", "sex", "ward"])
def test_a_column_has_the_role_that_was_chosen(folder, column, choice):
    """Choose it, then choose another one: the last choice alone counts."""
    schema = load("patients.csv").schema
    path = make_path_with_column_choice("patients.csv", schema, column, "left out")
    path = make_path_with_column_choice(path, load(path).schema, column, choice)
    try:
        data = load(path)
    except UsageError:
        assert choice in ("number", "split", "client", "group", "label")
        return
    assert {name: kind for name, kind, *_ in list_rows_of_column_table(data.schema)}[
        column
    ] == choice
    assert choice == "left out" or "leave_out" not in split_path_and_options(path)[1]
