"""The stored table: complete, of the present settings, and its numbers come out again when they are computed anew."""

import itertools
import json
from datetime import date

import pytest

from fedlab_nb.data import describe
from fedlab_nb.errors import FedlabError
from fedlab_nb.methods import METHODS, ORDER
from fedlab_nb.study import compare
from fedlab_nb.study.settings import Settings
from fedlab_nb.study.stored import ALPHAS, CLIENTS, FILE, GRIDS, SEEDS, file_of, load, make, sets, table

# Another processor adds up in another order, and training carries that on. Here the two backends, whose sums differ
# in the same way, were at most 1 of the 360 test images apart on 54 cells; 7 images are allowed.
TOLERANCE = 7 / 360


@pytest.fixture(params=list(GRIDS))
def stored(request):
    """The table of each data set that has one."""
    if request.param not in sets():
        pytest.skip(f"there is no table of {request.param}: python -m fedlab_nb.study.stored {request.param}")
    return load(request.param)


def test_it_is_complete_and_says_where_it_is_from(stored):
    grid, about = stored.grid, stored.about
    assert stored.methods == list(ORDER)
    every = itertools.product(ORDER, grid.alphas, grid.clients, grid.seeds)
    assert set(stored.rows) == set(every)
    assert about["version"].count(".") == 2 and about["torch"][0].isdigit()
    assert about["command"].removeprefix(make.COMMAND).strip() in (stored.dataset, "")
    assert about["settings"]["dataset"] == stored.dataset and str(describe(stored.dataset).n_test) in about["note"]
    assert 2025 < date.fromisoformat(about["date"]).year < 2100
    assert about["date"] in stored.label and f"version {about['version']}" in stored.label
    assert file_of(stored.dataset).stat().st_size < 600_000
    for row in stored.rows.values():
        assert 0 < row["accuracy"] <= 1 and row["parameters"] > 0 and row["seconds_method"] >= 0


def test_its_settings_are_the_present_ones(stored):
    """A method whose classroom settings have changed since needs `python -m fedlab_nb.study.stored --only METHOD`."""
    assert stored.about["recipe"] == make.recipe(stored.dataset)
    for name in ORDER:
        now = make.options(name, stored.dataset)
        then = stored.about["methods"][name]["options"]
        assert {key: now.get(key) for key in then} == then, f"compute it anew: {stored.about['command']} --only {name}"


def test_the_digits_are_always_there_and_the_grids_can_be_run():
    assert sets()[0] == "digits" and FILE == file_of("digits")
    assert (GRIDS["digits"].alphas, GRIDS["digits"].clients, GRIDS["digits"].seeds) == (ALPHAS, CLIENTS, SEEDS)
    for name, grid in GRIDS.items():
        assert 0.1 in grid.alphas and 10 in grid.clients and list(grid.alphas) == sorted(grid.alphas)
        Settings.make(dataset=name, alpha=grid.alphas[0], clients=grid.clients[0], seed=grid.seeds[-1])


@pytest.mark.parametrize(("clients", "alpha", "seed"), [(5, 0.01, 0), (5, 1.0, 1), (10, 0.1, 2)])
def test_a_sample_comes_out_again(clients, alpha, seed):
    methods = ["local", "fedavg", "ensemble", "fens", "fedlpa", "regmean"]
    for outcome in compare(methods, alpha=alpha, clients=clients, seed=seed, **make.SETTINGS):
        row = load().row(outcome.method, alpha, clients, seed)
        assert outcome.accuracy == pytest.approx(row["accuracy"], abs=TOLERANCE)
        assert (outcome.bytes_up, outcome.bytes_down) == (row["bytes_up"], row["bytes_down"])
        assert outcome.parameters == row["parameters"]


def test_making_it_resumes_and_computes_single_methods_anew(tmp_path, monkeypatch):
    monkeypatch.setitem(make.SETTINGS, "epochs", 1)
    path, seen = tmp_path / "table.json", []

    def watch(event):
        if event.outcome is not None:
            seen.append((event.method, event.outcome.settings.clients))

    assert make.make(path, ["fedavg"], grid=[(2, 1.0, 0)], watch=watch) is None
    assert table.read(path).about["settings"]["dataset"] == "digits"
    assert make.make(path, ["fedavg", "ensemble"], grid=[(2, 1.0, 0), (3, 1.0, 0)], watch=watch) is None
    assert seen == [("fedavg", 2), ("ensemble", 2), ("fedavg", 3), ("ensemble", 3)]
    before = table.read(path)
    assert make.make(path, ["ensemble"], anew=True, grid=[(2, 1.0, 0)], watch=watch) is None
    assert seen[4:] == [("ensemble", 2)]
    after = table.read(path)
    assert list(after.rows) == list(before.rows) and len(after.rows) == 4
    assert after.methods == ["fedavg", "ensemble"]
    assert json.loads(path.read_text())["settings"]["epochs"] == 1


def test_a_table_of_the_second_classroom_set(tmp_path, monkeypatch):
    monkeypatch.setitem(make.SETTINGS, "epochs", 1)
    path = tmp_path / "glyphs.json"
    assert make.make(path, ["fedavg"], dataset="glyphs:16g", grid=[(2, 1.0, 0)]) is None
    made = table.read(path)
    assert list(made.rows) == [("fedavg", 1.0, 2, 0)] and made.dataset == "glyphs:16g"
    assert made.grid is GRIDS["glyphs:16g"] and made.nearest_clients(3) == made.grid.clients[0]
    assert made.about["recipe"]["lr"] == make.recipe("glyphs:16g")["lr"] != make.recipe()["lr"]
    assert made.rows["fedavg", 1.0, 2, 0]["parameters"] == 15_626


def test_a_failure_is_returned_and_the_rest_is_kept(tmp_path, monkeypatch):
    monkeypatch.setitem(make.SETTINGS, "epochs", 1)
    monkeypatch.setattr(METHODS["fedavg"], "run", lambda self, ctx: 1 / 0)
    path = tmp_path / "table.json"
    failure = make.make(path, ["fedavg", "ensemble"], grid=[(2, 1.0, 1)])
    assert isinstance(failure, ZeroDivisionError)
    assert list(table.read(path).rows) == [("ensemble", 1.0, 2, 1)]


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(FedlabError, match="stored results in none.json cannot be read"):
        table.read(tmp_path / "none.json")
    (tmp_path / "old.json").write_text('{"columns": ["method"], "rows": []}')
    with pytest.raises(FedlabError, match="another version"):
        table.read(tmp_path / "old.json")


def test_looking_up():
    stored = load()
    assert [stored.nearest_clients(n) for n in (1, 7, 8, 14, 15, 50)] == [5, 5, 10, 10, 20, 20]
    assert set(stored.against_alpha("fens", 10)) == set(ALPHAS)
    assert stored.accuracies("fens", 0.1, 10)[2] == stored.row("fens", 0.1, 10, 2)["accuracy"]
    assert stored.accuracies("fens", 0.2, 10) == {}
