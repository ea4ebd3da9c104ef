"""A study's pictures agree with its rows."""

import numpy as np
import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.plots.study import (
    average_accuracy_by_method_and_seed,
    draw_accuracy_lines_with_bands,
    plot_study,
)
from fedlab_nb.studies.results import Results
from fedlab_nb.studies.statistics import difference


@pytest.fixture
def results():
    """Two methods, two α, two numbers of clients, three seeds; fens is 20 points better, give or take one."""
    rows = []
    for alpha in (0.1, 1):
        for clients in (5, 10):
            for seed in range(3):
                base = 0.4 + 0.3 * (alpha == 1) + 0.01 * seed - 0.01 * (clients == 10)
                for method, gain, size in (
                    ("fedavg", 0, 100),
                    ("fens", 0.2 + 0.01 * (seed == 1), 1000),
                ):
                    row = {
                        "method": method,
                        "alpha": alpha,
                        "clients": clients,
                        "seed": seed,
                        "error": "",
                    }
                    rows.append(
                        {**row, "accuracy": base + gain, "bytes_up": size, "bytes_down": size}
                    )
    return Results(rows, ["alpha", "clients"])


def test_against_an_axis_and_as_a_file(results, tmp_path):
    picture = results.plot("alpha")
    assert "fedavg 40 % to 70 %; fens 61 %" in picture.sentence
    assert [row["method"] for row in picture.table] == ["fedavg", "fens"]
    assert picture.save(tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    assert picture.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


POINTS = {
    "weights": {0.1: {0: 0.2, 1: 0.4}, 10: {0: 0.9, 1: 0.9}},
    "predictions": {0.1: {0: 0.5, 1: 0.6}, 10: {0: 0.9}},
}


def test_accuracy_against_alpha():
    picture = draw_accuracy_lines_with_bands(POINTS, "α", setting="digits", chance_accuracy=0.1)
    assert [row["α = 10"] for row in picture.table] == ["90.0 ± 0.0 %", "90.0 %"]
    assert picture.sentence == "From α = 0.1 to 10: weights 30 % to 90 %; predictions 55 % to 90 %."
    axes = picture.figure.axes[0]
    heights_by_label = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert heights_by_label["weights"] == [pytest.approx(0.3), 0.9]
    assert len(axes.collections) == 2  # a band each; one seed gives a band of no width, not nan
    assert not any(np.isnan(band.get_paths()[0].vertices).any() for band in axes.collections)


def test_against_bytes(results):
    picture = plot_study(results, "bytes")
    assert [(row["method"], row["bytes"]) for row in picture.table] == [
        ("fens", "2 kB"),
        ("fedavg", "200 B"),
    ]
    assert {row["Pareto"] for row in picture.table} == {"yes"}


def test_a_heat_map(results):
    picture = plot_study(results, "alpha x clients", method="fens")
    assert picture.sentence == "fens is best at alpha = 1, clients = 5 (91 %)."
    assert [row["clients"] for row in picture.table] == [5, 10]


def test_differences_are_paired_by_seed(results):
    """Points of a study are no independent trials: there are three pairs here, not twelve."""
    picture = plot_study(results, "differences", reference="fedavg")
    means = average_accuracy_by_method_and_seed(results)
    expected = difference(means["fens"], means["fedavg"])
    assert (expected.n, expected.verdict) == (3, "clear")
    gap = f"20.3 ± {100 * expected.half_width:.1f} points"
    assert picture.table == [{"method": "fens", "difference": gap, "verdict": "clear", "seeds": 3}]
    assert "fens +20" in picture.sentence


def test_an_impossible_plot_is_refused(results):
    one_method = results.select(method="fens")
    no_results = Results([], [])
    for results_of_study, name in (
        (results, "alfa"),
        (no_results, "alpha"),
        (one_method, "differences"),
    ):
        with pytest.raises(UsageError):
            plot_study(results_of_study, name)
    with pytest.raises(UsageError):
        plot_study(results, "alpha x clients", method="fenss")
