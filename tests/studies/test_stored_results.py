"""The stored results: complete, with their origin, and found by the nearest setting."""

import itertools
from datetime import date

import pytest

from fedlab_nb.data import describe
from fedlab_nb.methods import ORDER
from fedlab_nb.studies.stored_results import SETS, list_datasets_with_stored_results, load
from fedlab_nb.studies.stored_rows import make_path_of_stored_rows


@pytest.fixture(params=SETS)
def stored(request):
    """The table of each data set that has one."""
    return load(request.param)


def test_stored_results_are_complete_and_state_their_origin(stored):
    about = stored.about
    assert (
        0.1 in stored.alphas
        and stored.alphas == sorted(stored.alphas)
        and 10 in stored.client_counts
    )
    assert set(stored.rows) == set(itertools.product(ORDER, stored.alphas, stored.client_counts))
    assert about["version"].count(".") == 2 and about["torch"][0].isdigit()
    assert about["command"].endswith(make_path_of_stored_rows("stored", stored.dataset).stem)
    assert str(describe(stored.dataset).n_test) in about["note"]
    assert 2025 < date.fromisoformat(about["date"]).year < 2100
    assert about["date"] in stored.label and f"version {about['version']}" in stored.label
    assert make_path_of_stored_rows("stored", stored.dataset).stat().st_size < 600_000
    for row in stored.rows.values():
        assert (
            row["seeds"] == stored.seeds and 0 < min(row["accuracy"]) <= max(row["accuracy"]) <= 1
        )
        assert min(row["parameters"]) > 0 and min(row["seconds_method"]) >= 0


def test_stored_results_are_found_by_the_nearest_setting():
    stored = load()
    assert list_datasets_with_stored_results()[0] == stored.dataset == "digits"
    assert [stored.find_nearest_client_count(n) for n in (1, 7, 8, 14, 15, 50)] == [
        5,
        5,
        10,
        10,
        20,
        20,
    ]
    assert list(stored.get_accuracies_by_alpha_and_seed("fens", 10)) == stored.alphas
    assert (
        stored.get_accuracies_by_seed("fens", 0.1, 10)[2]
        == stored.rows["fens", 0.1, 10]["accuracy"][2]
    )
    assert stored.get_accuracies_by_seed("fens", 0.2, 10) == {}
