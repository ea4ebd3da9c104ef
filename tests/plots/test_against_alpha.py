"""The picture of accuracy against α: what it draws, says and tabulates, from three-number inputs."""

from fedlab_nb.plots import png
from fedlab_nb.plots.against_alpha import against_alpha

POINTS = {
    "weights": {0.1: {0: 0.2, 1: 0.4}, 10: {0: 0.9, 1: 0.9}},
    "predictions": {0.1: {0: 0.5, 1: 0.6}, 10: {0: 0.9}},
}


def test_words_table_and_picture():
    picture = against_alpha(POINTS, setting="digits", chance=0.1)
    assert picture.table == [
        {"method": "weights", "α = 0.1": "30 %", "α = 10": "90 %"},
        {"method": "predictions", "α = 0.1": "55 %", "α = 10": "90 %"},
    ]
    assert picture.sentence == "weights 30 % at α = 0.1, 90 % at α = 10; predictions 55 % at α = 0.1, 90 % at α = 10."
    assert "digits" in picture.alt
    assert "weights: 30 % at α = 0.1" in picture.alt
    assert png(picture).startswith(b"\x89PNG")


def test_lines_and_bands():
    axes = against_alpha(POINTS, setting="digits").figure.axes[0]
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
    assert lines["weights"] == [sum([0.2, 0.4]) / 2, 0.9]
    assert len(axes.collections) == 2  # a band each; one seed gives a band of no width, not nan
    for band in axes.collections:
        assert not any(map(lambda v: v != v, band.get_paths()[0].vertices.ravel()))
