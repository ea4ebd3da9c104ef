"""FedLPA's lab without a kernel, on real but short runs and on numbers made by hand; views, controls, extremes."""

import numpy as np
import pytest
from lab_views import (
    check_picture,
    choose_client_and_class,
    move_each_control_to_both_ends,
    show_sentence,
    show_view,
)

from fedlab_nb.labs.fedlpa.damping import DampingSweep, draw_accuracy_against_damping
from fedlab_nb.labs.fedlpa.factors import (
    LayerFactors,
    draw_factors_and_mean_input,
    find_first_layer_image_shape_or_empty,
)
from fedlab_nb.labs.fedlpa.leak import BIAS, DIAGONAL, NoiseSweep, draw_held_and_guessed_classes
from fedlab_nb.labs.fedlpa.plane import draw_two_client_plane, format_plane_point
from fedlab_nb.labs.fedlpa.replay import format_positive_number_briefly
from fedlab_nb.labs.fedlpa.solver import SolverCurves, draw_residuals_of_solvers
from fedlab_nb.labs.fedlpa.two_weights import compute_two_weight_example
from fedlab_nb.plots.style import compute_layout_if_due, use_figure_size
from fedlab_nb.plots.words import format_client_letters

SYSTEM = "fedlpa"
SHORT_SETTINGS = {"epochs": 2, "clients": 3, "seeds": 1, "methods": []}
VIEWS = ["plane", "factors", "damping", "solver", "leak"]


# ------------------------------------------------------------------------------------------------------ the lab
def test_the_plane_has_its_numbers_without_a_run(open_lab):
    panel = open_lab()
    assert panel.views.visible_view_name == "plane"
    table = show_view(panel, "plane", "angle 90").table
    assert [row["distance"] for row in table] == [1.131, 0, 0, 0]
    assert panel.set("plane", angle=45).table[1]["distance"] == 1.212
    assert panel.set("plane", damping=1e6).table[2]["weight 1"] == pytest.approx(2, abs=0.01)


# Slow because it draws every view at both ends of every control.
@pytest.mark.slow
def test_every_view_after_a_run(finished_lab):
    move_each_control_to_both_ends(finished_lab, VIEWS[1:], "")


@pytest.mark.slow
def test_factors_are_those_of_the_chosen_client_and_layer(finished_lab):
    counts = finished_lab.outcomes[0].report.train_counts
    for client in (0, 2):
        choose_client_and_class(finished_lab, client=client)
        start = f"Client {format_client_letters(client)} holds mostly {counts[client].argmax()} "
        assert show_sentence(finished_lab, "factors").startswith(start)
    assert "mean image" not in finished_lab.set("factors", layer=2).sentence
    assert "mean image" in finished_lab.set("factors", layer=0).sentence
    measured = finished_lab.set("factors", what="measured").table[0]["diagonal of B"]
    sent = finished_lab.set("factors", what="sent").table[0]["diagonal of B"]
    assert sent > measured
    choose_client_and_class(finished_lab)


@pytest.mark.slow
def test_lambda_starts_where_the_run_was_and_the_curve_passes_through_the_runs_validation_accuracy(
    finished_lab,
):
    outcome = finished_lab.outcomes[0]
    (row,) = [
        row for row in finished_lab.set("damping", damping=1e-3).table if row["λ_damp"] == "10⁻³"
    ]
    assert row["exact (FedLPA)"] == f"{100 * outcome.accuracy_validation:.0f} %"
    assert "π = trace" in finished_lab.set("damping", pi="trace").alt
    assert "π = 1" in finished_lab.set("damping", pi="one").alt


@pytest.mark.slow
def test_the_solver_of_the_run_then_all_three(finished_lab):
    outcome = finished_lab.outcomes[0]
    assert f"({100 * outcome.accuracy:.0f} % right)" in show_sentence(finished_lab, "solver")
    finished_lab.set("solver", steps=100, damping=1e-6)
    picture = finished_lab.work("solver")
    assert finished_lab.error == ""
    assert "λ_damp = 1e-06" in picture.alt
    solvers = {row["solver"] for row in picture.table}
    assert solvers == {"conjugate gradients", "gradient descent", "shortcut EA"}
    assert [row["steps"] for row in picture.table].count(0) == 3


@pytest.mark.slow
def test_labels_are_read_off_and_noise_hides_them(finished_lab):
    clean = finished_lab.set("leak", noise=0.0)
    noisy = finished_lab.set("leak", noise=3.0)
    assert clean.table[0]["guessed"]
    assert clean.sentence.startswith("Without noise")
    assert "noise 3" in noisy.sentence
    assert BIAS in finished_lab.set("leak", source=BIAS).sentence
    finished_lab.set("leak", source=DIAGONAL, noise=0.0)


@pytest.mark.slow
def test_one_image_comes_back_and_of_many_their_mean(open_lab):
    panel = open_lab()
    picture_of_one = panel.set("inverted", few=1)
    label = picture_of_one.table[0]["classes"]
    assert picture_of_one.table[1]["classes"] == label
    assert [row["distance"] for row in picture_of_one.table] == ["0.000", "0.000"]
    picture_of_many = panel.set("inverted", few=5)
    assert float(picture_of_many.table[1]["distance"]) > 0.02
    assert "5 samples" in picture_of_many.sentence
    assert "mean" in picture_of_many.sentence
    move_each_control_to_both_ends(panel, ["inverted"], "")


@pytest.mark.slow
def test_the_residuals_move_while_it_solves(record_run):
    panel, pictures = record_run("solver", solver="gd", iterations=2000)
    assert all(picture.sentence.startswith("Solving. Gradient descent: ") for picture in pictures)
    assert "of the error left after 2000 steps" in panel.sentence


# Slow because a convolution's factors are made, and drawn at both ends of every control.
@pytest.mark.slow
def test_one_client_with_a_cnn(open_lab):
    panel = open_lab(model="cnn", clients=1, epochs=1)
    panel.run(wait=True)
    move_each_control_to_both_ends(panel, VIEWS[1:3], "")
    assert "mean patch" in panel.set("factors", layer=0).sentence


@pytest.mark.slow
def test_posteriors_that_are_too_large_get_one_sentence(open_lab, monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.fedlpa.server.LIMIT", 100)
    panel = open_lab(seed=5)
    panel.run(wait=True)
    assert panel.show("factors") is None
    assert "too large to be stored" in panel.controls.error.value


# ------------------------------------------------------------------------------------------------------ by hand
def test_two_weights_by_hand():
    straight = compute_two_weight_example(angle_degrees=90, precision_ratio=9, damping=0)
    assert straight.average == pytest.approx([2, 2])
    for point in (straight.aggregate, straight.diagonal, straight.pooled):
        assert point == pytest.approx([1.2, 1.2])  # ((9*1 + 1*3) / 10, (1*3 + 9*1) / 10)
    precisions = np.array([np.diag([9, 1]), np.diag([1, 9])])
    assert straight.precisions == pytest.approx(precisions, abs=1e-12)
    # A_2 = [[5, 4], [4, 5]], S = [[14, 4], [4, 6]], Z = (28, 20)
    points = compute_two_weight_example(angle_degrees=45, precision_ratio=9, damping=0)
    assert points.precisions[1] == pytest.approx(np.array([[5, 4], [4, 5]]))
    assert points.aggregate == pytest.approx([88 / 68, 168 / 68])
    assert points.diagonal == pytest.approx([24 / 14, 8 / 6])
    # (10*1 + 2*3) / 12
    assert compute_two_weight_example(90, 9, damping=1).aggregate == pytest.approx(
        [16 / 12, 16 / 12]
    )
    assert compute_two_weight_example(45, 9, damping=1e12).aggregate == pytest.approx(
        [2, 2], abs=1e-4
    )
    # Circles: the average is right.
    assert compute_two_weight_example(30, 1, damping=0).aggregate == pytest.approx([2, 2])
    for angle in range(0, 181, 15):
        points = compute_two_weight_example(angle, 16, 0)
        assert points.aggregate == pytest.approx(points.pooled, abs=1e-9)


def test_the_ellipses_are_one_and_two_standard_deviations():
    picture = check_picture(draw_two_client_plane(90, 9, 0), "angle 90 degrees")
    # 1/3 and 2/3 along the sure direction, 1 and 2 across it
    outer, inner = picture.figure.axes[0].patches[:2]
    assert sorted([inner.width, inner.height]) == pytest.approx([2 / 3, 2])
    assert sorted([outer.width, outer.height]) == pytest.approx([4 / 3, 4])
    assert format_plane_point([-0.001, 2]) == "(0.00, 2.00)"  # no minus zero


def compute_gram_matrix(rows):
    return rows.T @ rows / len(rows)


def test_factors_of_a_client_with_two_images():
    # Two images of 2 x 2 pixels, each with a 1 appended.
    x = np.array([[1.0, 0, 0, 0.5, 1], [0, 0, 1, 0.5, 1]])
    g = np.array([[0.5, -0.5, 0], [0.5, -0.5, 0]])
    layer = LayerFactors(
        compute_gram_matrix(x),
        compute_gram_matrix(g),
        "layer 1",
        4,
        np.array([3, 1, 0]),
        "image",
        (1, 2, 2),
        True,
        "toy",
    )
    picture = check_picture(
        draw_factors_and_mean_input(layer, list("abc"), selected_class=2), "toy"
    )
    assert layer.mean_input.flatten().tolist() == [0.5, 0, 0.5, 0.5]
    patch_at_four_positions = layer._replace(a=4 * layer.a)
    assert patch_at_four_positions.mean_input.tolist() == layer.mean_input.tolist()
    assert "mostly a (75 %) and b (25 %)" in picture.sentence
    assert "in 2 of 5 directions, its errors in 1 of 3" in picture.detail
    assert [row["diagonal of B"] for row in picture.table] == [0.25, 0.25, 0]
    noisy_factors = layer.a + 0.5 * np.eye(5), layer.b + 0.5 * np.eye(3)
    sent = draw_factors_and_mean_input(layer._replace(sent=noisy_factors), list("abc"))
    assert "errors in 1 of 3" in sent.detail
    assert [row["diagonal of B"] for row in sent.table] == [0.75, 0.75, 0.5]


def test_factors_of_images_in_colour_and_of_many_classes():
    counts = np.eye(100, dtype=int)[1]
    for b in (np.zeros((100, 100)), np.eye(100)):  # a client that fits perfectly has B = 0
        layer = LayerFactors(
            np.ones((76, 76)), b, "layer 1", 0, counts, "image", (3, 5, 5), True, "toy"
        )
        assert (
            "holds mostly 1 (100 %)"
            in check_picture(
                draw_factors_and_mean_input(layer, list(map(str, range(100))), selected_class=1),
                "toy",
            ).sentence
        )


@pytest.mark.parametrize("size", [(7.2, 4.8), (9.2, 3.5), (12.1, 5.8)])
def test_the_factors_and_the_mean_image_stand_at_one_height_within_the_frame(size):
    counts = np.eye(10, dtype=int)[1]
    factors = np.ones((65, 65)), np.eye(10)
    layer = LayerFactors(*factors, "layer 1", 0, counts, "image", (1, 8, 8), True, "toy")
    with use_figure_size(size):
        figure = draw_factors_and_mean_input(layer, list("0123456789")).figure
    compute_layout_if_due(figure)
    renderer = figure.canvas.get_renderer()
    figure.draw_without_rendering()  # square axes find their places
    squares = [ax.get_window_extent(renderer) for ax in figure.axes[:3]]
    for square in squares[1:]:
        assert square.y1 == pytest.approx(squares[0].y1, abs=2) and square.y0 == pytest.approx(
            squares[0].y0, abs=2
        )
    box = figure.get_tightbbox(renderer)  # inches
    assert box.y0 >= -0.02 and box.y1 <= size[1] + 0.02
    assert size[1] - box.y1 < 0.8  # nothing is empty above them


def test_which_first_layers_see_an_image():
    assert find_first_layer_image_shape_or_empty("digits", (64, 64)) == (1, 8, 8)
    assert find_first_layer_image_shape_or_empty("digits", (6, 1, 5, 5)) == (1, 5, 5)
    assert find_first_layer_image_shape_or_empty("digits", (16, 6, 5, 5)) == ()


def test_small_numbers_are_readable():
    formatted = {
        1e-3: "10⁻³",
        8.6e-6: "8.6·10⁻⁶",
        16.2: "16",
        0.254: "0.25",
        784.0: "784",
        2e5: "2.0·10⁵",
    }
    assert [format_positive_number_briefly(value) for value in formatted] == list(
        formatted.values()
    )


LAMBDAS = [1e-6, 1e-3, 1.0]
CURVES = {"exact": [0.9, 0.8, 0.3], "shortcut": [0.2, 0.8, 0.3], "none": [0.3, 0.3, 0.3]}


@pytest.mark.parametrize(
    ("ratio", "overdamped_layers"), [(1.0, ["layer 1"]), (0.1, ["layer 1", "layer 2"]), (10.0, [])]
)  # at λ_damp = 10⁻³ the damping adds 0.032 / π to B
def test_damping_tabulates_every_curve_and_names_where_it_has_taken_over(ratio, overdamped_layers):
    measured = np.array([[0.01, 0.2]] * 3)
    ratios = {"one": np.full((3, 2), ratio)}
    sweep = DampingSweep(
        LAMBDAS, {"one": CURVES}, measured, ratios, ["layer 1", "layer 2"], "toy", {"one": 0.7}
    )
    assert sweep.list_overdamped_layers("one", 1) == overdamped_layers
    picture = check_picture(draw_accuracy_against_damping(sweep, "one", 1), "toy, rule π = 1")
    assert picture.sentence == (
        "At λ_damp = 10⁻³ FedLPA gets 80 % right; at 10⁻⁶, the best λ_damp, it gets 90 %."
    )
    assert "exact 80 %, shortcut EA 80 %" in picture.detail
    assert "on test images: 70 %" in picture.detail
    assert picture.table[0] == {
        "λ_damp": "10⁻⁶",
        "exact (FedLPA)": "90 %",
        "shortcut EA": "20 %",
        "average": "30 %",
    }


CG = {"a": [1.0, 1e-3, 1e-7], "b": [0.5, 1e-7]}
GD = {"a": [1.0, *[0.5] * 100], "b": [0.5, *[0.25] * 100]}


def test_solver_names_residual_and_accuracy_of_each_solver():
    curves = {"cg": CG, "gd": GD, "ea": {"a": [1.0], "b": [0.5]}}
    points = {
        "cg": [(0, 0.2), (1, 0.7), (2, 0.8)],
        "gd": [(0, 0.2), (1, 0.3), (100, 0.4)],
        "ea": [(0, 0.2)],
    }
    picture = check_picture(draw_residuals_of_solvers(SolverCurves(curves, points, "toy")), "toy")
    assert picture.sentence == (
        "Conjugate gradients: solved after 2 steps (80 % right); gradient descent: 50 % of the error left after 100 "
        "steps (40 % right); shortcut EA: 100 % of the error left after 0 steps (20 % right)."
    )
    assert list(picture.table[1].values()) == ["conjugate gradients", 1, "10⁻³", "70 %"]
    steps = [row["steps"] for row in picture.table if row["solver"] == "gradient descent"]
    assert steps[-2:] == [64, 100]


def test_solver_while_it_runs_and_with_many_layers():
    record_run = check_picture(
        draw_residuals_of_solvers(
            SolverCurves({"gd": {"a": [1.0, 0.5]}}, {}, "toy"), is_running=True
        ),
        "toy, so far",
    )
    assert record_run.sentence == "Solving. Gradient descent: 50 % of the error left after 1 step."
    many_layers = {f"layer {i}": [1.0, 0.0] for i in range(20)}
    check_picture(draw_residuals_of_solvers(SolverCurves({"cg": many_layers}, {}, "toy")), "toy")


@pytest.mark.slow
def test_leak_counts_right_guesses_and_describes_the_client():
    counts = np.array([[5, 3, 0], [0, 0, 8]])
    sent = np.array([[0.3, 0.2, 0.1], [0.3, 0.0, 0.2]])
    sweep = NoiseSweep(
        [0, 0.1], counts, {"bias": [sent, sent]}, {"bias": [0.5, 0.4]}, [0.8, 0.6], 0.5, "toy"
    )
    assert sweep.guess_classes_of_each_client("bias", 0) == [[0, 1], [0]]
    picture = check_picture(draw_held_and_guessed_classes(sweep, "bias", 0, list("abc")), "toy")
    assert "names 50 % of a client's classes correctly (a blind guess 50 %)" in picture.sentence
    assert "an accuracy of 80 %" in picture.detail
    assert picture.table[1] == {"client": "B", "holds": "c", "guessed": "a", "largest": "a, c, b"}
    noisy = draw_held_and_guessed_classes(
        sweep, "bias", 1, list("abc"), selected_client=0, selected_class=2
    )
    assert noisy.sentence.startswith(
        "Client A holds a and b; a reader of its upload names a and b. At noise 0.1"
    )

    sweep_of_many = NoiseSweep(
        [0], np.ones((50, 60), int), {"w": [np.zeros((50, 60))]}, {"w": [1.0]}, [0.1], 1.0, "toy"
    )
    check_picture(
        draw_held_and_guessed_classes(
            sweep_of_many, "w", 0, [str(c) for c in range(60)], selected_client=0, selected_class=1
        ),
        "toy",
    )
