"""The stored table: complete, it says where it is from, and it is looked up."""

import itertools
from datetime import date

import pytest

from fedlab_nb.data import describe
from fedlab_nb.methods import ORDER
from fedlab_nb.studies.settings import Settings
from fedlab_nb.studies.stored import ALPHAS, GRIDS, file_of, load, sets


@pytest.fixture(params=list(GRIDS))
def stored(request):
    """The table of each data set that has one."""
    return load(request.param)


def test_it_is_complete_and_says_where_it_is_from(stored):
    grid, about = stored.grid, stored.about
    assert set(stored.methods) == set(ORDER) == set(about["methods"])
    every = itertools.product(ORDER, grid.alphas, grid.clients, grid.seeds)
    assert set(stored.rows) == set(every)
    assert about["version"].count(".") == 2 and about["torch"][0].isdigit()
    assert about["command"].endswith(file_of(stored.dataset).stem)
    assert about["settings"]["dataset"] == stored.dataset and str(describe(stored.dataset).n_test) in about["note"]
    assert 2025 < date.fromisoformat(about["date"]).year < 2100
    assert about["date"] in stored.label and f"version {about['version']}" in stored.label
    assert file_of(stored.dataset).stat().st_size < 600_000
    for row in stored.rows.values():
        assert 0 < row["accuracy"] <= 1 and row["parameters"] > 0 and row["seconds_method"] >= 0


def test_the_digits_are_always_there_and_the_grids_can_be_run():
    assert sets() == list(GRIDS) and sets()[0] == "digits"
    for name, grid in GRIDS.items():
        assert 0.1 in grid.alphas and 10 in grid.clients and list(grid.alphas) == sorted(grid.alphas)
        Settings.make(dataset=name, alpha=grid.alphas[0], clients=grid.clients[0], seed=grid.seeds[-1])


def test_looking_up():
    stored = load()
    assert [stored.nearest_clients(n) for n in (1, 7, 8, 14, 15, 50)] == [5, 5, 10, 10, 20, 20]
    assert set(stored.against_alpha("fens", 10)) == set(ALPHAS)
    assert stored.accuracies("fens", 0.1, 10)[2] == stored.row("fens", 0.1, 10, 2)["accuracy"]
    assert stored.accuracies("fens", 0.2, 10) == {}
