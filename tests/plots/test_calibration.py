"""Reliability diagrams: what is drawn and said of overconfident, underconfident and silent methods."""

import pytest

from fedlab_nb import plots
from fedlab_nb.plots.calibration import merge_bins_of_seeds
from fedlab_nb.plots.series import MethodResults
from fedlab_nb.training.calibration import BINS, Calibration


def make_calibration(confidence, right, count=20, bin_index=12, nll=1.0):
    """Make a calibration: all answers have this confidence, and a share `right` of them is right."""
    counts = [0] * BINS
    counts[bin_index] = count
    right_counts = [0] * BINS
    right_counts[bin_index] = round(right * count)
    confidence_sums = [0.0] * BINS
    confidence_sums[bin_index] = confidence * count
    return Calibration("logits", nll, tuple(counts), tuple(right_counts), tuple(confidence_sums))


def make_method_results(label, share, *calibrations, **more):
    """Make a method with the accuracy `share` and a calibration for each seed."""
    by_seed = dict(enumerate(calibrations))
    accuracies = dict.fromkeys(range(max(1, len(calibrations))), share)
    return MethodResults(
        label, setting="digits, α = 0.1", accuracies=accuracies, calibration=by_seed, **more
    )


def test_the_sure_and_the_modest_are_named():
    rows = [
        make_method_results("Sure", 0.4, make_calibration(0.9, 0.4)),
        make_method_results("Modest", 0.75, make_calibration(0.7, 0.75, bin_index=10)),
        make_method_results("Bad", 0.9, make_calibration(0.2, 0.9, bin_index=2)),
    ]
    picture = plots.draw_reliability_diagrams(rows)
    best, worst = picture.sentence.split(";")
    assert all(word in best for word in ("Modest", "70 %", "75 %"))
    assert "Bad" in worst
    assert "20 %" in worst
    assert "Modest: ECE 5 %" in picture.detail
    assert "Sure is too sure: it says 90 %" in plots.draw_reliability_diagrams(rows[:2]).sentence
    assert [row["ECE"] for row in picture.table] == ["50.0 %", "5.0 %", "70.0 %"]
    assert plots.render_picture_png(picture)


def test_seeds_are_counted_together_and_errors_are_means():
    series = make_method_results(
        "A", 0.5, make_calibration(0.8, 0.5, count=20), make_calibration(0.8, 1.0, count=60)
    )
    x, y, counts = merge_bins_of_seeds(series)
    assert counts[12] == 80 and x[12] == pytest.approx(0.8) and y[12] == pytest.approx(70 / 80)
    assert plots.draw_reliability_diagrams([series]).table[0]["ECE"] == "25.0 %"


def test_votes_and_old_results_say_why_they_have_no_line():
    rows = [
        make_method_results("Votes", 0.6, Calibration("votes")),
        make_method_results("Old", 0.5, Calibration()),
        make_method_results("None", 0.4),
    ]
    picture = plots.draw_reliability_diagrams(rows)
    assert "Votes, Old and None" in picture.sentence
    assert [row["ECE"] for row in picture.table] == ["", "", ""]
    assert plots.render_picture_png(picture)
    many_series = [
        make_method_results(f"Method {i}", 0.5, make_calibration(0.6, 0.5), pinned=i % 2 == 1)
        for i in range(30)
    ]
    assert plots.render_picture_png(plots.draw_reliability_diagrams(many_series))
