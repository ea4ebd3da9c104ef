"""Running studies: interrupted, killed, failing and refused ones, the store, on this machine and through Dask."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fedlab_nb.cli import main
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.jupyter import find_free_port
from fedlab_nb.methods.fens import Fens
from fedlab_nb.papers import overview
from fedlab_nb.studies import Study, engine, store
from fedlab_nb.studies.cluster import is_inside_main_guard, start_or_connect_workers_and_run_cells
from fedlab_nb.studies.engine import study
from fedlab_nb.studies.results import Results
from fedlab_nb.studies.settings import resolve_device

QUICK = {"epochs": 1, "clients": 3}
SIZES = {"train": 90, "test": 30, "public": 20}
EXACT = (
    "method",
    "alpha",
    "seed",
    "accuracy",
    "accuracy_validation",
    "bytes_up",
    "bytes_down",
    "error",
)


def list_exact_values(results: Results) -> list[tuple]:
    """The values that must not depend on how a study is run."""
    return [tuple(row[name] for name in EXACT) for row in results]


@pytest.mark.slow
def test_every_row_holds_its_complete_setting():
    results = study(["fedavg", "fens"], alpha=[0.1, 1], seeds=2, **QUICK, **{"fens.rounds": [2, 3]})
    assert len(results) == 12 and results.axes == ("alpha", "fens.rounds")
    row = next(row for row in results if row["method"] == "fens" and row["alpha"] == 1)
    assert row["fens.rounds"] == 2 and json.loads(row["options"])["rounds"] == 2
    assert json.loads(row["recipe"])["epochs"] == 1
    assert row["device"] == resolve_device("auto")
    assert row["version"]
    assert row["torch"]
    assert row["partition"] == "dirichlet"


def test_validation_images_are_neither_trained_on_nor_tested():
    rows = {
        row["method"]: row for row in study(["fedavg", "fens", "local", "centralized"], **QUICK)
    }
    assert rows["fedavg"]["validation_on"] == "held-out"
    # FENS trains its aggregator on the held-out parts, `local` chooses its best client by them, and `centralized`
    # trains on all samples.
    assert rows["fens"]["validation_on"] == "public"
    assert rows["local"]["validation_on"] == "public"
    assert rows["centralized"]["validation_on"] == "public"
    assert all(0 <= row["accuracy_validation"] <= 1 for row in rows.values())
    (without,) = study(["fedavg"], holdout=0, **QUICK)
    assert without["validation_on"] == "public"


def test_validation_images_of_a_users_file(tmp_path):
    """FENS trains on the held-out parts, so its validation images are the public ones, if the file has their labels."""
    rng = np.random.default_rng(0)
    arrays = {f"x_{part}": rng.integers(0, 255, (n, 8, 8), np.uint8) for part, n in SIZES.items()}
    arrays |= {f"y_{part}": np.arange(n) % 3 for part, n in SIZES.items()}
    np.savez(tmp_path / "labelled.npz", **arrays)
    del arrays["y_public"]
    np.savez(tmp_path / "unlabelled.npz", **arrays)
    names = [str(tmp_path / "labelled.npz"), str(tmp_path / "unlabelled.npz")]
    with_labels, without = study(["fens"], dataset=names, **QUICK)
    assert with_labels["validation_on"] == "public" and 0 <= with_labels["accuracy_validation"] <= 1
    assert (without["validation_on"], without["accuracy_validation"]) == ("", None)
    assert without["accuracy"] == with_labels["accuracy"]


def test_a_failed_cell_has_its_reason_and_the_others_are_run(monkeypatch):
    def fail(self, ctx):
        yield from ()
        raise RunError("The aggregator diverged; use a smaller rate.")

    monkeypatch.setattr(Fens, "run", fail)
    results = study(["fedavg", "fens", "ensemble"], seeds=2, **QUICK)
    assert [row["error"] for row in results.failed] == [
        "The aggregator diverged; use a smaller rate."
    ] * 2
    assert {row["method"] for row in results if not row["error"]} == {"fedavg", "ensemble"}


def test_an_interrupted_study_keeps_its_finished_cells(tmp_path):
    finished = []

    def stop(event):
        if event.outcome is not None:
            finished.append(event)
        if len(finished) == 3:
            raise KeyboardInterrupt

    declaration = Study.declare(["fedavg", "ensemble"], seeds=4, **QUICK)
    with pytest.raises(KeyboardInterrupt):
        study(declaration, out=tmp_path / "out", watch=stop)
    assert 2 <= len(Results.load(tmp_path / "out")) <= 3
    assert overview.count_and_estimate_cells_of_study(declaration).remembered == 3
    results = study(declaration, out=tmp_path / "out")
    assert list_exact_values(Results.load(tmp_path / "out")) == list_exact_values(results)
    assert len(results) == 8


def test_everything_is_checked_before_anything_is_computed(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "run_cells", lambda *a, **options: pytest.fail("work was begun"))
    (tmp_path / "file").write_text("")
    for wrong in ({"out": tmp_path / "file" / "out"}, {"alpha": [0.1, -1]}, {"workers": 0}):
        with pytest.raises(UsageError):
            study(["fedavg"], **wrong)
    with pytest.raises(UsageError):
        study(tmp_path / "mine.toml", alpha=1)


@pytest.mark.slow
def test_studies_on_the_command_line(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    out = tmp_path / "out"
    file.write_text(
        'methods = ["fedavg", "fens"]\nseeds = 2\nalpha = [0.1, 1]\nepochs = 1\nclients = 3\n'
    )
    assert main(["study", str(file), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("8 cells, 0 remembered, 8 to compute: about ")
    assert main(["study", str(file), "--out", str(out), "--plot", "alfa"]) == 2
    assert "'alfa': did you mean 'alpha'" in capsys.readouterr().err
    assert not out.exists()  # refused before anything was run
    assert main(["study", str(file), "--out", str(out), "--table", "latex", "--plot", "alpha"]) == 0
    assert "\\begin{tabular}{lrr}" in capsys.readouterr().out
    assert {p.name for p in out.iterdir()} == {
        "results.csv",
        "results.json",
        "results.parquet",
        "results.svg",
    }
    assert main(["study", str(file), "--dry-run"]) == 0
    assert capsys.readouterr().out == "8 cells, 8 remembered, 0 to compute.\n"
    file.write_text("methods = [")
    assert main(["study", str(file)]) == 2
    assert "not valid TOML" in capsys.readouterr().err


def test_the_store_can_be_listed_verified_and_pruned(capsys, monkeypatch):
    def check_store_command(words, expected_code, expected_text):
        """Run `fedlab-nb store` with these words; refusals are printed to stderr, everything else to stdout."""
        assert main(["store", *words.split()]) == expected_code
        printed = capsys.readouterr()
        assert expected_text in (printed.err if expected_code == 2 else printed.out)

    study(["fedavg", "ensemble"], seeds=2, **QUICK)
    capsys.readouterr()
    assert {entry.kind for entry in store.list_entries_least_recently_used_first()} == {
        "runs",
        "clients",
    }
    check_store_command("size", 0, "4 entries")
    check_store_command("list", 0, "ensemble digits 0.1 3 1")
    check_store_command("verify", 0, "6 of 6 entries are not damaged")
    body = store.list_entries_least_recently_used_first()[0].path / "arrays.npz"
    body.write_bytes(body.read_bytes()[:-1])
    check_store_command("verify", 1, "5 of 6 entries are not damaged")
    check_store_command("prune", 2, "what it may delete")
    check_store_command("prune --size much", 2, "is not a size")
    monkeypatch.setenv("FEDLAB_NB_STORE_LIMIT", "much")
    check_store_command("size", 2, "FEDLAB_NB_STORE_LIMIT is set wrongly: 'much'")
    monkeypatch.delenv("FEDLAB_NB_STORE_LIMIT")
    check_store_command("prune --days 1", 0, "0 entries")
    check_store_command("prune --version", 0, "0 entries")
    head = store.list_entries_least_recently_used_first()[0].path / "entry.json"
    head.write_text(head.read_text().replace('"torch"', '"tarch"'))
    check_store_command("prune --version", 0, "1 entries")
    check_store_command("prune --size 0", 0, "")
    assert store.list_entries_least_recently_used_first() == []


def test_the_store_is_bounded_and_deletes_its_oldest_entries(monkeypatch):
    study(["fedavg"], seeds=3, **QUICK)
    entries = store.list_entries_least_recently_used_first()
    for age, entry in enumerate(reversed(entries)):  # the last entry is the newest
        os.utime(entry.path / "entry.json", (1e9 - age, 1e9 - age))
        os.utime(entry.path / "arrays.npz", (1e9 - age, 1e9 - age))
    total = sum(entry.bytes for entry in entries)
    monkeypatch.setenv("FEDLAB_NB_STORE_LIMIT", str(total - 1))
    monkeypatch.setattr(store, "_limit_calls", iter([0]))
    store.delete_least_recently_used_entries_every_100_calls()
    remaining = store.list_entries_least_recently_used_first()
    assert sum(entry.bytes for entry in remaining) <= 0.9 * total
    assert [entry.path for entry in remaining] == [
        entry.path for entry in entries[-len(remaining) :]
    ]


# ------------------------------------------------------------------------------------------------ processes
GRID = {
    "methods": ["fedavg", "ensemble", "local", "regmean"],
    "alpha": [0.05, 0.1, 0.5, 1, 10],
    **QUICK,
}
MANY = {"seeds": 10, **GRID}  # 200 cells
FEW = {"seeds": 3, **GRID}  # 60 cells
SCRIPT = """
import itertools, json, signal, sys, time
from fedlab_nb.studies.engine import study
# a background job of a shell ignores the signal, and so do its children
signal.signal(signal.SIGINT, signal.default_int_handler)
count = itertools.count(1)
def watch(event):  # further cells are slow, so that the signal arrives before the last one on every machine
    if event.outcome is not None and next(count) > int(sys.argv[3]):
        time.sleep(0.2)
study(**json.loads(sys.argv[2]), out=sys.argv[1], progress=False, watch=watch)
"""


def start_study(grid: dict, store: Path, out: Path, cells: int) -> subprocess.Popen:
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "FEDLAB_NB_STORE": str(store), "PYTHONPATH": root}
    call = [sys.executable, "-c", SCRIPT, str(out), json.dumps(grid), str(cells)]
    return subprocess.Popen(call, env=env, cwd=root, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def rows_of_grid(tmp_path_factory):
    """A function that gives the values of a grid from a study in this process that was never stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAB_NB_STORE", str(tmp_path_factory.mktemp("whole")))
        rows = list(study(**MANY))
    return lambda grid: list_exact_values(
        Results(row for row in rows if row["seed"] < grid["seeds"])
    )


def count_stored_runs(store: Path) -> int:
    return len(list((store / "runs").glob("[!.]*"))) if (store / "runs").is_dir() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signal_number", "grid", "cells"),
    [(signal.SIGKILL, MANY, 200), (signal.SIGINT, FEW, 60)],
    ids=["200 cells killed", "60 cells interrupted"],
)
def test_a_killed_study_continues_to_the_same_results(
    tmp_path, monkeypatch, rows_of_grid, signal_number, grid, cells
):
    store = tmp_path / "other"
    out = tmp_path / "out"
    process = start_study(grid, store, out, cells // 3)
    limit = time.monotonic() + 300  # on a busy machine the import alone can take a minute
    while (
        count_stored_runs(store) < cells // 3
        and process.poll() is None
        and time.monotonic() < limit
    ):
        time.sleep(0.01)
    process.send_signal(signal_number)
    process.communicate(timeout=300)
    assert process.returncode != 0 and cells // 3 <= count_stored_runs(store) < cells
    if signal_number == signal.SIGINT:
        assert 0 < len(Results.load(out)) < cells
    # This process continues where the other one ended.
    monkeypatch.setenv("FEDLAB_NB_STORE", str(store))
    study(**grid, out=out)
    results = Results.load(out)
    assert len(results) == cells and not results.failed
    assert list_exact_values(results) == rows_of_grid(grid)


# ------------------------------------------------------------------------------------------------ Dask
@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A real Dask scheduler on loopback: its address, and a function that starts a worker."""
    monkeypatch.setattr("fedlab_nb.studies.cluster.TIMEOUT", 300)  # the machine may be busy
    processes = []

    def start(*words: str, root: Path = Path(__file__).parents[2]) -> subprocess.Popen:
        environment = {
            "FEDLAB_NB_STORE": str(tmp_path / "theirs"),
            "PYTHONPATH": str(root),
            "OMP_NUM_THREADS": "1",
        }
        env = {**os.environ, **environment}
        call = [sys.executable, "-m", "dask", *words, "--dashboard-address", "127.0.0.1:0"]
        processes.append(subprocess.Popen(call, env=env, cwd=root, stderr=subprocess.DEVNULL))
        return processes[-1]

    address = f"tcp://127.0.0.1:{find_free_port(8786)}"
    start("scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2])

    def start_worker(**options) -> subprocess.Popen:
        folder = str(tmp_path / f"worker-{len(processes)}")
        return start(
            "worker",
            address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--local-directory",
            folder,
            **options,
        )

    yield address, start_worker
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_dask_workers_one_of_them_killed_give_the_same_table(tmp_path, rows_of_grid, cluster):
    address, start_worker = cluster
    worker = start_worker()
    start_worker()
    rows = {}
    for cell_and_outcome in start_or_connect_workers_and_run_cells(
        Study.declare(**FEW).cells(),
        worker_count=1,
        scheduler_address=address,
        client=None,
        use_store=True,
    ):
        cell = cell_and_outcome[0]
        rows[id(cell)] = engine.make_results_row_of_cell(*cell_and_outcome)
        if len(rows) == 15:
            worker.kill()
    assert len(rows) == 60
    assert not any(row["error"] for row in rows.values())
    # The workers' results were sent back into the store of this process.
    assert count_stored_runs(store.find_store_folder()) == 60
    assert sorted(list_exact_values(Results(rows.values())), key=str) == sorted(
        rows_of_grid(FEW), key=str
    )


@pytest.mark.slow
def test_workers_on_this_machine_give_the_same_table(tmp_path, monkeypatch, capsys):
    grid = {"alpha": [0.1, 1], "seeds": 3, **QUICK, "fedavg_multi.rounds": 3, "fens.rounds": 5}
    theirs = list_exact_values(study(["fedavg", "fens", "fedavg_multi"], workers=2, **grid))
    assert "Dask's dashboard: http" in capsys.readouterr().err
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path / "third"))
    assert theirs == list_exact_values(study(["fedavg", "fens", "fedavg_multi"], **grid))


@pytest.mark.slow
def test_a_worker_of_another_version_is_refused(tmp_path, cluster):
    address, start_worker = cluster
    other = tmp_path / "other"
    shutil.copytree(Path(__file__).parents[2] / "fedlab_nb", other / "fedlab_nb")
    init = other / "fedlab_nb" / "__init__.py"
    init.write_text(init.read_text().replace('__version__ = "', '__version__ = "9.'))
    start_worker(root=other)
    with pytest.raises(UsageError, match="has another version"):
        study(["fedavg"], scheduler=address, **QUICK)


GUARD = 'if __name__ == "__main__":'


UNGUARDED = [
    ["import fedlab_nb as fl", "CALL"],
    ["import fedlab_nb as fl", "def main():", "    CALL", "main()"],
    ["import fedlab_nb as fl", GUARD, "    pass", "CALL"],
]


def write_script(folder, lines):
    script = folder / "mine.py"
    call = 'fl.study(["local"], clients=3, epochs=1, seeds=2, workers=2, out="o")'
    script.write_text("\n".join(lines).replace("CALL", call))
    return script


@pytest.mark.parametrize("lines", UNGUARDED)
def test_a_script_that_every_worker_would_run_again_is_refused(tmp_path, monkeypatch, lines):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="starts processes") as error:
        runpy.run_path(str(write_script(tmp_path, lines)), run_name="__main__")
    assert GUARD in str(error.value)
    assert f"Line {len(lines)} of mine.py" in str(error.value)
    assert not list((tmp_path / "o").iterdir())


@pytest.mark.slow
def test_running_such_a_script_shows_one_error(tmp_path):
    """In a process of its own, because only there a worker would run the script again."""
    script = write_script(tmp_path, UNGUARDED[0])
    process = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert process.returncode == 1 and "starts processes" in process.stderr.strip().splitlines()[-1]
    assert process.stderr.count("Traceback") == 1 and "bootstrapping" not in process.stderr


def test_lines_under_the_main_guard_are_recognised():
    script = [
        "import os",
        "if __name__ == '__main__' and os.name:",
        "    if True:",
        "        main()",
        "main()",
    ]
    text = "\n".join(script)
    assert not is_inside_main_guard(text, 1)
    assert is_inside_main_guard(text, 4)
    assert not is_inside_main_guard(text, 5)


@pytest.mark.slow
def test_a_study_that_cannot_start_leaves_earlier_results(tmp_path, monkeypatch):
    study(["local"], out=tmp_path, **QUICK)
    before = (tmp_path / "results.csv").read_bytes()
    monkeypatch.setattr("fedlab_nb.studies.cluster.TIMEOUT", 1)
    with pytest.raises(UsageError):
        study(["local"], out=tmp_path, scheduler="tcp://127.0.0.1:1", **QUICK)
    assert (tmp_path / "results.csv").read_bytes() == before


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr("fedlab_nb.studies.cluster.TIMEOUT", 1)
    with pytest.raises(UsageError, match="No Dask scheduler answers at 'tcp://127.0.0.1:1'"):
        study(["fedavg"], scheduler="tcp://127.0.0.1:1", **QUICK)


def test_without_dask_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(UsageError, match=r"pip install .*\[cluster\]'"):
        study(["fedavg"], workers=2, **QUICK)
