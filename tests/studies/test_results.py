"""Results of a study, with rows by hand: means, bands, differences, choices on validation images, tables, files."""

import csv
import math

import pytest

from fedlab_nb.errors import FedlabError, UsageError
from fedlab_nb.studies.results import COLUMNS, Results
from fedlab_nb.studies.statistics import compute_band, difference


def make_row(method, seed, accuracy, *, alpha=0.1, validation=None, error="", **axes):
    return {
        "method": method, "dataset": "digits", "alpha": alpha, "clients": 10, "seed": seed, "preset": "classroom",
        "accuracy": None if error else accuracy, "bytes_up": 100, "bytes_down": 50, "seconds_total": 1.0,
        "accuracy_validation": accuracy if validation is None else validation, "error": error, **axes,
    }  # fmt: skip


@pytest.fixture
def results():
    """FedAvg and FENS at alpha 0.1 and 1, three seeds; FENS diverged at alpha 1."""
    fedavg = {0: 0.5, 1: 0.6, 2: 0.7}
    fens = {0: 0.6, 1: 0.7, 2: 0.81}
    rows = [make_row("fedavg", seed, accuracy) for seed, accuracy in fedavg.items()]
    rows += [make_row("fens", seed, accuracy) for seed, accuracy in fens.items()]
    rows += [make_row("fedavg", seed, accuracy + 0.1, alpha=1) for seed, accuracy in fedavg.items()]
    rows.append(make_row("fens", 0, 0, alpha=1, error="diverged"))
    return Results(rows, ["alpha"])


def test_summaries_have_means_and_bands(results):
    summary = results.summary()[0]
    assert (summary["method"], summary["alpha"], summary["seeds"]) == ("fedavg", 0.1, 3)
    assert summary["accuracy"] == pytest.approx(0.6)
    assert summary["band"] == pytest.approx(compute_band([0.5, 0.6, 0.7]).half_width)
    assert (summary["bytes_up"], summary["bytes_down"]) == (100, 50)
    assert len(results.summary()) == 3  # the failed cell is in no mean


def test_differences_are_paired_by_seed(results):
    (gap,) = results.differences("fedavg")
    assert gap["difference"] == pytest.approx(0.31 / 3)
    expected = difference({0: 0.6, 1: 0.7, 2: 0.81}, {0: 0.5, 1: 0.6, 2: 0.7})
    assert gap["band"] == pytest.approx(expected.half_width) and gap["verdict"] == "clear"
    with pytest.raises(UsageError, match="fedavg"):
        results.differences("fedavgg")


def test_ranks_and_failed_cells(results):
    ranks = [(r["alpha"], r["method"], r["rank"]) for r in results.ranks()]
    assert ranks == [(0.1, "fens", 1), (0.1, "fedavg", 2), (1, "fedavg", 1)]
    assert [r["error"] for r in results.failed] == ["diverged"]
    assert "1 of 10 cells failed" in repr(results)


def test_a_choice_is_made_on_validation_images():
    """0.001 is best on the test images and 0.01 on the validation images: 0.01 is chosen, with its test accuracy."""
    rows = []
    for rate, test, validation in ((0.001, 0.9, 0.5), (0.01, 0.7, 0.8)):
        rows += [
            make_row("fens", seed, test, validation=validation, **{"fens.eta_s": rate})
            for seed in range(3)
        ]
    (chosen,) = Results(rows, ["fens.eta_s"]).choose("fens.eta_s")
    assert chosen["fens.eta_s"] == 0.01
    assert chosen["accuracy"] == pytest.approx(0.7) and chosen["validation"] == pytest.approx(0.8)
    assert chosen["seeds"] == 3
    with pytest.raises(UsageError, match="axis"):
        Results(rows, ["fens.eta_s"]).choose("fens.eta")
    rows = [make_row("fens", 0, 0.9, **{"fens.eta_s": 0.1}) | {"accuracy_validation": None}]
    with pytest.raises(UsageError, match="no validation accuracy"):
        Results(rows, ["fens.eta_s"]).choose("fens.eta_s")


def test_an_axis_of_one_method_is_part_of_its_name():
    results = Results(
        [make_row("fens", 0, 0.5, **{"fens.rounds": 10}), make_row("fedavg", 0, 0.4)],
        ["fens.rounds"],
    )
    assert list(results.points()[()]) == ["fens (rounds = 10)", "fedavg"]


def test_tables_as_text_markdown_latex_and_html(results):
    assert results.table().splitlines()[0].split("  ")[0] == "method"
    assert results.table("markdown").splitlines() == [
        "| method | alpha = 0.1 | alpha = 1 |",
        "|---|---|---|",
        "| fedavg | 60.0 ± 24.8 | 70.0 ± 24.8 |",
        "| fens | 70.3 ± 26.1 |  |",
    ]
    latex = results.table("latex")
    assert latex.startswith("\\begin{tabular}{lrr}") and latex.endswith("\\end{tabular}")
    assert "60.0 $\\pm$ 24.8" in latex
    assert ">alpha = 0.1</th>" in results._repr_html_()
    with pytest.raises(UsageError, match="latex"):
        results.table("latx")


def test_results_survive_their_files(results, tmp_path):
    folder = results.save(tmp_path / "out")
    with open(folder / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0])[: len(COLUMNS)] == COLUMNS
    assert len(rows) == 10 and float(rows[0]["accuracy"]) == 0.5
    loaded = Results.load(folder)
    assert (loaded.rows, loaded.axes) == (results.rows, results.axes)
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert pyarrow.read_table(folder / "results.parquet").num_rows == 10


def test_files_that_cannot_be_written_or_read_are_refused(results, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FedlabError, match="could not be written"):
        results.save(tmp_path / "file" / "out")
    for content in ("", "[1]"):
        (tmp_path / "results.json").write_text(content)
        with pytest.raises(UsageError, match="no results of a study"):
            Results.load(tmp_path)


def test_one_seed_has_no_band():
    (only,) = Results([make_row("fens", 0, 0.5)]).summary()
    assert math.isnan(only["band"])
    assert Results([make_row("fens", 0, 0.5)]).table("markdown").endswith("| fens | 50.0 |")
