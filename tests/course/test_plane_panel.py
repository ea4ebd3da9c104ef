"""The toy's panel without a kernel: its controls, what it says, how it is saved; and the picture's geometry."""

import numpy as np
import pytest

from fedlab_nb.course import plane
from fedlab_nb.errors import UsageError
from fedlab_nb.panels.plane import make_toy_federation
from fedlab_nb.panels.plane.toy import CLASSES
from fedlab_nb.panels.plane.view import EDGE, GRID, make_grid_points_of_plane
from fedlab_nb.plots import plane as picture


@pytest.fixture(scope="module")
def panel():
    opened = plane.show(alpha=1)
    yield opened
    opened.close()


# ------------------------------------------------------------------------------------------------------ the controls
@pytest.mark.slow
def test_a_move_of_the_slider_draws_at_once(panel):
    panel.set(alpha=1, seed=0, start="common")
    frame = panel._view.frame
    picture_before = frame.value
    sentence_before = panel.sentence
    assert sentence_before.startswith("α = 1: ")
    panel.alpha.value = 0.01
    assert frame.value != picture_before
    assert panel.sentence.startswith("α = 0.01: ")
    assert "α = 0.01, seed 0, common start;" in frame.alt
    assert not panel.error
    panel.alpha.value = 1
    assert frame.value == picture_before
    assert panel.sentence == sentence_before


@pytest.mark.parametrize("values", [{"alpha": 1000}, {"seed": -1}, {"start": "mine"}, {"beta": 1}])
def test_values_that_no_control_has_are_refused(panel, values):
    with pytest.raises(UsageError):
        panel.set(**values)


def test_an_error_is_said_in_the_panel(panel, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.plane.view.draw_toy_federation", lambda *_: 1 / 0)
    panel.seed.value = 77
    assert "division by zero" in panel._failed.value
    assert "ZeroDivisionError" in panel.error
    monkeypatch.undo()
    panel.seed.value = 0
    assert not panel._failed.value
    assert not panel.error


def test_the_picture_fills_its_frame(panel):
    frame = panel._view.frame
    frame.size = [900, 270]
    width, _ = panel.picture.figure.get_size_inches()
    assert width == pytest.approx(900 / panel.pixels_per_inch)
    height = int(frame.layout.height.removesuffix("px"))
    frame.size = [900, height]
    assert frame.layout.height == f"{height}px"  # a frame that has its height keeps it
    frame.size = [0, 0]


# ------------------------------------------------------------------------------------------------------ the geometry
def test_painted_regions_are_the_largest_scores():
    """Judged at points inside the picture where one class is clearly ahead of the second."""
    toy = make_toy_federation(0.3, 1)
    grid = make_grid_points_of_plane()
    points = grid.numpy()
    scores = toy.predict_with_mean_logits(grid).numpy()
    painted = np.zeros(len(scores), int)
    for c, path in enumerate(
        picture.find_stacked_decision_regions(scores.reshape(GRID, GRID, -1), EDGE)
    ):
        if len(path) > 2:
            # the sign of the radius that counts points on the border depends on the path's direction
            is_inside = path.contains_points(points, radius=1e-4)
            is_inside |= path.contains_points(points, radius=-1e-4)
            painted[is_inside] = c
    second, first = np.sort(scores, 1)[:, -2:].T
    is_clear = (first - second > 0.2) & (np.abs(points) < EDGE).all(1)
    assert is_clear.mean() > 0.8
    assert (painted == scores.argmax(1))[is_clear].all()
    assert set(painted) == set(range(len(CLASSES)))
