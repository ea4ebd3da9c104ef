"""The bells in the plane: Bayes' rule by scipy, the fit by NumPy, the handles of the drawing in Node.js, the panel."""

import json
import shutil
import subprocess
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fedlab_nb.course import bells
from fedlab_nb.course.bells import panel, plane
from fedlab_nb.errors import UsageError
from fedlab_nb.panels.theme import SAVED_STYLE

POINTS = np.random.default_rng(0).normal(size=(200, 2)) * 1.5


@pytest.fixture(scope="module")
def bells_panel():
    opened = bells.show()
    yield opened
    opened.close()


def test_curved_borders_are_those_of_the_normal_density():
    placed = plane.fit_bells_to_all_training_images()
    densities = [multivariate_normal(b.mean, b.covariance).logpdf(POINTS) for b in placed]
    assert (plane.classify_points_by_bells(placed, "qda", POINTS) == np.argmax(densities, 0)).all()


def test_straight_borders_share_the_mean_covariance():
    placed = plane.fit_bells_to_all_training_images()
    shared = np.mean([bell.covariance for bell in placed], 0)
    densities = [multivariate_normal(b.mean, shared).logpdf(POINTS) for b in placed]
    assert (plane.classify_points_by_bells(placed, "lda", POINTS) == np.argmax(densities, 0)).all()


def test_the_nearest_mean_forgets_the_spread():
    placed = plane.fit_bells_to_all_training_images()
    distances = [((POINTS - bell.mean) ** 2).sum(1) for bell in placed]
    labels = plane.classify_points_by_bells(placed, "means", POINTS)
    assert (labels == np.argmin(distances, 0)).all()


def test_a_fitted_bell_has_the_mean_and_the_covariance_of_its_points():
    points = POINTS @ np.array([[1.0, 0.4], [0.0, 0.3]]) + 2
    bell = plane.Bell.fit(points)
    np.testing.assert_allclose(bell.mean, points.mean(0))
    np.testing.assert_allclose(bell.covariance, np.cov(points.T, bias=True))


def test_each_head_is_better_than_the_one_before_and_than_the_start():
    """On these 109 test images; the lesson makes no claim of it beyond this picture."""
    placed = plane.fit_bells_to_all_training_images()
    accuracies = [plane.measure_test_accuracy_of_bells(placed, head) for head in plane.HEADS]
    nearest_mean, straight_borders, curved_borders = accuracies
    assert nearest_mean < straight_borders < curved_borders
    assert plane.measure_test_accuracy_of_bells(plane.make_misplaced_starting_bells(), "qda") < 0.5


def test_the_live_panel_hides_its_still_picture(bells_panel):
    """The style of a saved panel shows the picture unless the page has an element of this class."""
    assert "fl-live" in bells_panel._dom_classes and "fl-live" in SAVED_STYLE


def test_a_drag_in_the_browser_draws_the_borders_anew(bells_panel):
    bells_panel._set_bells(plane.make_misplaced_starting_bells())
    before = bells_panel.field.regions
    assert len(before) == plane.COLUMNS * plane.ROWS and set(before) == set("012")
    moved = [asdict(bell) for bell in plane.make_misplaced_starting_bells()]
    moved[0]["x"] = -1.0
    bells_panel.field.bells = moved
    assert bells_panel.field.regions != before
    assert "your bells get" in bells_panel.note.value


def test_the_sums_place_the_bells(bells_panel):
    bells_panel.sums.click()
    assert bells_panel.bells == plane.fit_bells_to_all_training_images()
    assert bells_panel.test_accuracy == plane.measure_test_accuracy_of_bells(
        plane.fit_bells_to_all_training_images(), bells_panel.head
    )
    bells_panel.heads.value = "means"
    assert "nearest mean your bells get 89 %" in bells_panel.sentence
    assert len(bells_panel.still().table) == 3
    with pytest.raises(UsageError, match="head"):
        bells.show(head="gda")


@pytest.mark.parametrize("handle", ["centre", "along", "across"])
def test_a_handle_is_where_it_was_put(handle):
    """The drawing's own functions: a bell whose handle is moved has this handle there, and its others stay."""
    node = shutil.which("node") or pytest.skip("there is no Node.js on this machine")
    source = (panel.HERE / "bells.js").read_text(encoding="utf-8").split("export default")[0]
    bell = {"x": 0.5, "y": -0.2, "along_x": 0.6, "along_y": 0.3, "across": 0.4}
    code = f"""{source}
const bell = {json.dumps(bell)};
const at = handles(bell)["{handle}"];
const outwards = [at[0] + 0.5 * (at[0] - bell.x), at[1] + 0.5 * (at[1] - bell.y)];
const goal = "{handle}" === "across" ? outwards : [at[0] + 0.3, at[1] - 0.4];
const after = moved(bell, "{handle}", goal);
console.log(JSON.stringify({{ goal, found: handles(after)["{handle}"], after }}));"""
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    np.testing.assert_allclose(answer["found"], answer["goal"])
    kept = {"centre": ("along_x", "along_y", "across"), "along": ("x", "y", "across")}
    for name in kept.get(handle, ("x", "y", "along_x", "along_y")):
        assert answer["after"][name] == bell[name]
