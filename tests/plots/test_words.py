"""What pictures say: numbers in words, sentences about noise, and the scores of feature maps."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from fedlab_nb import plots
from fedlab_nb.plots import FeatureMap, MethodResults, words
from fedlab_nb.plots.embed import compute_tsne_in_subprocess
from fedlab_nb.plots.marks import get_hover_texts_and_keys_by_mark_id
from fedlab_nb.plots.style import use_figure_size
from fedlab_nb.plots.vector import get_thumbnail_sheet_or_empty
from fedlab_nb.studies.statistics import Band

CLEAR = Band(0.031, 0.012, 5)
NOISE = Band(0.01, 0.03, 3)
ALONE = Band(-0.031, math.nan, 1)
FEW = Band(0.031, 0.012, 4)


@pytest.mark.parametrize(
    ("formatted", "text"),
    [
        (words.format_data_size(26280), "26.3 kB"),
        (words.format_data_size(5e16), "5e+04 TB"),
        (words.build_table("a | b", [(0, "5 %")]), [{"a": 0, "b": "5 %"}]),
        (words.format_percent_of_each_seed({1: 0.8, 0: 0.5}), "0: 50.0 %, 1: 80.0 %"),
        (words.choose_words_by_significance(NOISE), "within the noise"),
        (words.choose_words_by_significance(ALONE, one_seed_words="unknown"), "unknown"),
        (words.format_difference_in_points(ALONE), "-3 points"),
        (words.format_difference_in_points(CLEAR), "+3 ± 1 points"),
        (words.format_difference_in_points(CLEAR, ""), "3 ± 1 points"),
        (words.format_difference_in_points(Band(0.0041, 0.0032, 9)), "+0.4 ± 0.3 points"),
        (words.format_percent_band(Band(0.834, 0.0214, 9), 1), "83.4 ± 2.1"),
        (words.format_percent_band(ALONE), "-3"),
        (words.format_percent_band(Band(0.834, 0.0044, 9)), "83.4 ± 0.4"),
        (words.format_percent_band(CLEAR, sign="+"), "+3 ± 1"),
        (words.format_half_width_or_seed_count(CLEAR), "1.2 points"),
        (words.format_difference_in_points(FEW), "+3 points"),
        (words.format_difference_in_points(FEW, shows_band_of_few_seeds=True), "+3 ± 1 points"),
        (words.format_half_width_or_seed_count(FEW), "4 seeds"),
        (words.format_mean_percent({0: 0.8, 1: 0.9}), "85 %"),
        (words.describe_guess_error(40, 88), "48 points too low"),
        (words.describe_guess_error(5, 2.7, "digits"), "2.3 digits too high"),
        (words.describe_guess_error(3, 3.5), "very near"),
    ],
)
def test_numbers_in_words(formatted, text):
    assert formatted == text


@pytest.mark.parametrize("values", [(0.1, 1, 0.1, 0.9, 1), (0.5, 0.51, 0.52, 0.5, 0.5)])
def test_the_ends_of_a_series_are_those_of_its_band_within_0_and_1(values):
    series = MethodResults("A", accuracies=dict(enumerate(values)))
    low, high = scipy.stats.t.interval(
        0.95, len(values) - 1, np.mean(values), scipy.stats.sem(values)
    )
    assert series.band_ends == pytest.approx((max(0, low), min(1, high)))
    assert series.accuracy_text == f"{100 * np.mean(values):.0f} ± {50 * (high - low):.0f}"


def test_verdicts_are_paired_by_seed_where_the_federation_is_the_same():
    """A leads by 5 to 10 points seed by seed; unpaired, the spread between the seeds hides it."""
    best = [0.5, 0.7, 0.9, 0.6, 0.8]
    second = [0.4, 0.65, 0.8, 0.52, 0.72]
    gaps = [0.1, 0.05, 0.1, 0.08, 0.08]
    half_width = scipy.stats.t.ppf(0.975, 4) * scipy.stats.sem(gaps)
    assert f"clearly ahead of B (by 8 ± {100 * half_width:.0f} points)" in describe_best(
        ("A", best), ("B", second)
    )
    welch = scipy.stats.ttest_ind(best, second, equal_var=False).confidence_interval(0.95)
    rows = [
        MethodResults("A", setting="A", accuracies=dict(enumerate(best))),
        MethodResults("B", setting="B", accuracies=dict(enumerate(second))),
    ]
    behind = (
        f"B is 8 ± {50 * (welch.high - welch.low):.0f} points behind, which is within the noise"
    )
    assert behind in plots.describe_best_method(rows)


def describe_best(*rows):
    """Describe these (name, accuracies) in the same setting; "Local" is only a bound."""
    series = []
    for name, accuracies in rows:
        accuracies = dict(enumerate(accuracies))
        series.append(
            MethodResults(name, setting="s", accuracies=accuracies, bound=name == "Local")
        )
    return plots.describe_best_method(series)


def test_verdicts_say_what_is_noise():
    clear = describe_best(("FENS", [0.8, 0.82, 0.84]), ("FedAvg", [0.3, 0.33, 0.33]))
    assert "FENS is best with 82 %" in clear and "FedAvg (by 50 points)" in clear
    noise = describe_best(
        ("FENS", [0.8, 0.9, 0.7]), ("FedLPA", [0.82, 0.7, 0.82]), ("FedAvg", [0.1, 0.1, 0.1])
    )
    assert (
        "FedLPA is 2 points behind, which is within the noise; FedAvg is last with 10 %." in noise
    )
    assert "one seed" in describe_best(("FENS", [0.8]), ("FedAvg", [0.3])) and describe_best()
    equal = [(name, [0.8, 0.9, 0.7]) for name in ("FedAvg", "FENS", "FedLPA")]
    assert [describe_best(*equal[:n]) for n in (3, 2)] == [
        f"{pronoun} reach the same 80 %." for pronoun in ("All", "Both")
    ]
    assert "one seed" in describe_best(("FENS", [0.8]), ("FedLPA", [0.8]))
    bound = describe_best(("FENS", [0.8]), ("Local", [0.9]))
    assert "FENS reaches 80 %" in bound and bound.endswith("Local 90 %.")


def test_communication_compares_the_cheapest_with_the_most_expensive():
    cheap = MethodResults("A", accuracies={0: 0.5, 1: 0.6, 2: 0.4}, up=1000, down=1000)
    noisy = MethodResults("B", accuracies={0: 0.7, 1: 0.5, 2: 0.45}, up=4000, down=1000)
    # Seed by seed 9, 10 and 10 points below.
    clear = MethodResults("B", accuracies={0: 0.41, 1: 0.5, 2: 0.3}, up=4000, down=1000)
    for dear, ending in (
        (noisy, "for 5 points more, which is within the noise."),
        (clear, "and gets 10 points less."),
    ):
        sentence = plots.draw_bytes_by_phase_and_accuracy([cheap, dear]).sentence
        assert sentence.startswith("A costs least, 1 kB")
        assert "2.5 times as much" in sentence
        assert ending in sentence
    as_cheap, third = (
        MethodResults(name, accuracies={0: 0.3}, up=1000, down=1000) for name in "CD"
    )
    for rows, beginning in (
        ([cheap, as_cheap, noisy], "A and C cost least"), ([cheap], "A costs 1 kB up and 1 kB down for all"),
        ([cheap, as_cheap, third, noisy], "A, C and D cost least"), ([cheap, as_cheap], "A and C cost the same"),
    ):  # fmt: skip
        assert plots.draw_bytes_by_phase_and_accuracy(rows).sentence.startswith(beginning)
    sums = MethodResults("AFL", accuracies={0: 0.9}, up=1000, down=0)
    assert "1 kB up and nothing down" in plots.draw_bytes_by_phase_and_accuracy([sums]).sentence


def measure_neighbour_accuracy_by_hand(x, y, k):
    """Measure the share of points whose k nearest neighbours vote for their class; nearer neighbours break a tie."""
    right = 0
    for i in range(len(x)):
        squared_distances = ((x - x[i]) ** 2).sum(1)
        squared_distances[i] = np.inf
        neighbours = sorted(range(len(x)), key=squared_distances.__getitem__)[:k]
        votes = Counter()
        nearness = Counter()
        for rank, j in enumerate(neighbours):
            label = int(y[j])
            votes[label] += 1
            nearness[label] += k - rank
        winner = max(votes, key=lambda label: (votes[label], nearness[label]))
        right += winner == y[i]
    return right / len(x)


def test_neighbour_accuracy_is_what_a_loop_finds():
    rng = np.random.default_rng(0)
    for k, spread in ((10, 0.1), (10, 3.0), (3, 1.0)):
        y = rng.integers(0, 4, 60)
        x = np.eye(4)[y] + spread * rng.normal(size=(60, 4))
        assert plots.compute_neighbour_accuracy(x, y, k) == measure_neighbour_accuracy_by_hand(
            x, y, k
        )
    labels = np.repeat([0, 1], 20)
    assert (
        plots.compute_neighbour_accuracy(labels[:, None] * 100.0 + rng.random((40, 1)), labels) == 1
    )
    assert math.isnan(plots.compute_neighbour_accuracy(np.zeros((1, 3)), np.zeros(1, int)))


def test_pca_keeps_the_variance_of_the_leading_eigenvectors():
    x = np.random.default_rng(0).normal(size=(50, 6)) * [5, 3, 1, 1, 1, 1]
    plane = plots.project_by_pca(x)
    values = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    assert np.allclose(plane.var(0, ddof=1), values[:2]) and abs(plane[:, 0] @ plane[:, 1]) < 1e-9
    assert plots.project_by_pca(np.zeros((5, 1))).shape == (5, 2)


def test_tsne_gives_the_same_map_again_and_takes_degenerate_points():
    x = np.random.default_rng(0).normal(size=(40, 8))
    assert np.array_equal(plots.project_by_tsne(x), plots.project_by_tsne(x))
    for flat in (np.zeros((20, 3)), x[:3], x[:6]):
        assert plots.project_by_tsne(flat).shape == (len(flat), 2)
        assert np.isfinite(plots.project_by_tsne(flat)).all()


@pytest.mark.slow
def test_maps_of_a_subprocess_are_the_same_and_are_made_here_where_no_process_starts(monkeypatch):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(12, 4)), rng.normal(size=(9, 3))]
    expected = [plots.project_by_tsne(x) for x in tables]

    def compute_apart(x):
        steps = compute_tsne_in_subprocess(x)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    assert all(
        np.array_equal(a, b) for a, b in zip(expected, map(compute_apart, tables), strict=True)
    )

    def refuse(*_, **__):
        raise OSError("no process")

    monkeypatch.setattr("joblib.externals.loky.get_reusable_executor", refuse)
    assert all(
        np.array_equal(a, b) for a, b in zip(expected, map(compute_apart, tables), strict=True)
    )


def test_feature_maps_say_which_is_a_preview_and_how_many_are_left_out():
    rng = np.random.default_rng(0)
    maps = [
        FeatureMap(f"m{i}", rng.normal(size=(9, 2)), np.arange(9), i / 12, "PCA") for i in range(10)
    ]
    picture = plots.draw_feature_maps(
        maps,
        tuple("012345678"),
        setting="s",
        is_class_bright=[True] * 9,
        bright_class_words="client 1",
    )
    assert picture.sentence == (
        "M7 keeps the classes apart best: 58 % of its points lie among their own class; least does "
        "m0, with 0 %. Bright: client 1. 2 more methods in the table."
    )
    assert len(picture.table) == 10
    second_picture = plots.draw_feature_maps(
        maps, tuple("012345678"), setting="s", first_map_index=8
    )
    assert len(second_picture.table) == 10
    assert [ax.get_title("left") for ax in second_picture.figure.axes if ax.collections] == [
        "m8",
        "m9",
    ]
    assert second_picture.figure.axes[0].get_xlabel() == "PCA · 67 %"
    with use_figure_size((3.2, 5.0)):  # in a narrow frame at most two side by side
        grid = (
            plots.draw_feature_maps(maps[:3], tuple("012345678"), setting="s")
            .figure.axes[0]
            .get_gridspec()
        )
    assert (grid.nrows, grid.ncols) == (2, 2)


@pytest.mark.parametrize(
    ("size", "maps", "rows", "columns"),
    [((6.7, 4.2), 3, 1, 3), ((6.7, 4.2), 8, 2, 4), ((14, 6), 4, 1, 4), ((4.4, 6), 4, 2, 2)],
)
def test_maps_of_features_are_squares_as_large_as_the_frame_allows(size, maps, rows, columns):
    rng = np.random.default_rng(0)
    maps_of_features = [
        FeatureMap(f"m{i}", rng.normal(size=(9, 2)), np.arange(9), 0.5) for i in range(maps)
    ]
    with use_figure_size(size):
        picture = plots.draw_feature_maps(maps_of_features, tuple("012345678"), setting="s")
    grid = picture.figure.axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == (rows, columns)
    plots.render_picture_png(picture)
    for ax in picture.figure.axes[:maps]:
        box = ax.get_window_extent()
        assert box.width == pytest.approx(box.height)


def test_a_point_has_its_class_its_prediction_and_its_image():
    points = np.eye(3)[:, :2]
    labels = np.array([1, 0, 1])
    feature_map = FeatureMap(
        "FENS", points, labels, 0.5, "t-SNE", np.array([1, 1, 0]), np.array([0, 1, 2])
    )
    sheet = {"image": "data:,", "width": 8, "height": 8, "columns": 20, "rows": 1}
    figure = plots.draw_feature_maps(
        [feature_map], ("a", "b"), setting="s", thumbnail_sheet=sheet
    ).figure
    zeros, ones = get_hover_texts_and_keys_by_mark_id(figure).values()
    assert zeros["says"] == ["FENS\nclass a, read as b"] and zeros["thumbnail"] == [1]
    assert ones["says"] == ["FENS\nclass b, read rightly", "FENS\nclass b, read as a"]
    assert ones["thumbnail"] == [0, 2] and ones["class_index"] == [1, 1]
    assert get_thumbnail_sheet_or_empty(figure) == sheet
