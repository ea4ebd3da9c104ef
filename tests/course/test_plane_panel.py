"""The toy's panel without a kernel: its controls, what it says, how it is saved; and the picture's geometry."""

import numpy as np
import pytest

from fedlab_nb.course import plane
from fedlab_nb.errors import UsageError
from fedlab_nb.panels.plane import make_toy_federation
from fedlab_nb.panels.plane.toy import CLASSES
from fedlab_nb.panels.plane.view import EDGE, GRID, make_plane_grid
from fedlab_nb.plots import plane as picture


@pytest.fixture(scope="module")
def panel():
    made = plane.show(alpha=1)
    yield made
    made.close()


# ------------------------------------------------------------------------------------------------------ the controls
def test_a_move_of_the_slider_draws_at_once(panel):
    panel.set(alpha=1, seed=0, start="common")
    before, words = panel._view.frame.value, panel.sentence
    panel.alpha.value = 0.01
    assert (
        panel._view.frame.value != before
        and panel.sentence.startswith("α = 0.01: ")
        and words.startswith("α = 1: ")
    )
    assert "α = 0.01, seed 0, common start;" in panel._view.frame.alt and not panel.error
    panel.alpha.value = 1
    assert panel._view.frame.value == before and panel.sentence == words


@pytest.mark.parametrize("values", [{"alpha": 1000}, {"seed": -1}, {"start": "mine"}, {"beta": 1}])
def test_values_that_no_control_has(panel, values):
    with pytest.raises(UsageError):
        panel.set(**values)


def test_an_error_is_said_in_the_panel(panel, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.plane.view.draw_toy_federation", lambda *_: 1 / 0)
    panel.seed.value = 77
    assert "division by zero" in panel._failed.value and "ZeroDivisionError" in panel.error
    monkeypatch.undo()
    panel.seed.value = 0
    assert not panel._failed.value and not panel.error


def test_the_picture_fills_its_frame(panel):
    panel._view.frame.size = [900, 270]
    size = panel.picture.figure.get_size_inches()
    assert size[0] == pytest.approx(900 / panel.pixels_per_inch)
    asked = int(panel._view.frame.layout.height.removesuffix("px"))
    panel._view.frame.size = [900, asked]
    assert panel._view.frame.layout.height == f"{asked}px"  # the height does not hunt for itself
    panel._view.frame.size = [0, 0]


# ------------------------------------------------------------------------------------------------------ the geometry
def test_painted_regions_are_the_largest_scores():
    toy = make_toy_federation(0.3, 1)
    scores = toy.predict_with_mean_logits(make_plane_grid()).numpy()
    painted = np.zeros(len(scores), int)
    for c, path in enumerate(
        picture.find_stacked_decision_regions(scores.reshape(GRID, GRID, -1), EDGE)
    ):
        inside = (
            path.contains_points(make_plane_grid().numpy(), radius=r)
            for r in (1e-4, -1e-4)
            if len(path) > 2
        )
        painted = np.where(sum(inside) > 0, c, painted)
    two = np.sort(scores, 1)[:, -2:]
    clear = (two[:, 1] - two[:, 0] > 0.2) & (np.abs(make_plane_grid().numpy()) < EDGE).all(1)
    assert clear.mean() > 0.8 and (painted == scores.argmax(1))[clear].all()
    assert set(painted) == set(range(len(CLASSES)))
