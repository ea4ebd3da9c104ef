"""FedLPA's pictures from numbers made by hand: what they draw, say and tabulate, and their extremes."""

import numpy as np
import pytest

from fedlab_nb.draw import png
from fedlab_nb.draw.fedlpa_damping import damping, taken_over
from fedlab_nb.draw.fedlpa_factors import factors, power
from fedlab_nb.draw.fedlpa_leak import leak
from fedlab_nb.draw.fedlpa_plane import Plane, place
from fedlab_nb.draw.fedlpa_solver import solver

DIGITS = [str(c) for c in range(10)]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    monkeypatch.setattr("fedlab_nb.draw.style.DPI", 50)


def is_png(picture):
    return png(picture).startswith(b"\x89PNG\r\n\x1a\n")


# ------------------------------------------------------------------------------------------------------ the plane
MEANS = np.array([[1.0, 3.0], [3.0, 1.0]])
PRECISIONS = np.array([np.diag([9.0, 1.0]), np.diag([1.0, 9.0])])
POINTS = {"average": np.array([2.0, 2.0]), "diagonal": np.array([1.2, 1.2]), "aggregate": np.array([1.2, 1.2])}


def test_plane_says_where_the_answers_lie_and_how_far_off():
    plane = Plane()
    picture = plane.show(MEANS, PRECISIONS, POINTS, np.array([1.2, 1.2]), setting="angle 90 degrees")
    assert is_png(picture) and "angle 90 degrees" in picture.alt and "client 2 at (3.00, 1.00)" in picture.alt
    assert picture.sentence == (
        "Both clients' data together give (1.20, 1.20). FedLPA lies at (1.20, 1.20), which is the same; the average at "
        "(2.00, 2.00), 1.13 away; the diagonal alone at (1.20, 1.20), which is the same."
    )
    assert [row["distance"] for row in picture.table] == [1.131, 0.0, 0.0, 0.0]
    # one and two standard deviations: 1/3 and 2/3 along the sure direction, 1 and 2 across it
    inner, outer = plane.ellipses[0][3], plane.ellipses[0][1]
    assert sorted([inner.width, inner.height]) == pytest.approx([2 / 3, 2])
    assert sorted([outer.width, outer.height]) == pytest.approx([4 / 3, 4])
    moved = {**POINTS, "aggregate": np.array([1.5, 1.2])}
    again = plane.show(MEANS, PRECISIONS, moved, np.array([1.2, 1.2]), setting="x")
    assert again.figure is picture.figure and "FedLPA lies at (1.50, 1.20), 0.30 away" in again.sentence
    assert plane.bars["aggregate"].get_width() == pytest.approx(0.3) and is_png(again)


def test_a_place_has_no_minus_zero():
    assert place([-0.001, 2]) == "(0.00, 2.00)"


# ------------------------------------------------------------------------------------------------------ factors
def gram(rows):
    return rows.T @ rows / len(rows)


def test_factors_of_a_client_with_two_images():
    x = np.array([[1.0, 0, 0, 0.5, 1], [0, 0, 1, 0.5, 1]])  # two images of 2 x 2 pixels, the appended 1 last
    g = np.array([[0.5, -0.5, 0], [0.5, -0.5, 0]])
    counts = np.array([3, 1, 0])
    given = {"layer": "layer 1", "client": 4, "counts": counts, "class_names": list("abc"), "setting": "toy, seed 0"}
    picture = factors(gram(x), gram(g), shape=(1, 2, 2), outputs_are_classes=True, klass=2, **given)
    assert is_png(picture) and "toy, seed 0" in picture.alt and "A, 5 by 5, and B, 3 by 3" in picture.alt
    assert picture.sentence == (
        "Client 4 holds mostly a (75 %) and b (25 %). Its inputs to layer 1 vary in 2 of 5 directions, its errors in "
        "1 of 3; the last column of A is its mean image."
    )
    assert [row["mean input"] for row in picture.table] == [0.5, 0, 0.5]
    assert [row["diagonal of B"] for row in picture.table] == [0.25, 0.25, 0]
    assert not factors(gram(x), gram(g), **given).sentence.endswith("image.")  # inputs are units: bars
    convolution = factors(4 * gram(x), gram(g), shape=(1, 2, 2), patch=True, **given)  # four positions
    assert convolution.table == factors(gram(x), gram(g), **given).table and "mean patch" in convolution.sentence
    without = factors(gram(x), gram(g), bias=False, **given)
    assert "last column" not in without.alt and is_png(without)


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_factors_at_their_extremes(classes):
    names = [f"class number {c}" for c in range(classes)]
    counts = np.zeros(classes, int)
    counts[1] = 5
    for b in (np.zeros((classes, classes)), np.eye(classes)):  # a client that fits perfectly has B = 0
        picture = factors(
            np.ones((785, 785)), b, layer="layer 1", client=0, counts=counts, class_names=names, setting="s",
            shape=(1, 28, 28), outputs_are_classes=True,
        )  # fmt: skip
        assert is_png(picture) and "nan" not in picture.sentence and "holds only class number 1" in picture.sentence
    colour = factors(
        np.ones((76, 76)), np.eye(classes), layer="layer 1", client=0, counts=counts, class_names=names, setting="s",
        shape=(3, 5, 5), patch=True, klass=1,
    )  # fmt: skip
    assert is_png(colour)


def test_small_numbers_are_readable():
    assert [power(v) for v in (1e-3, 8.6e-6, 16.2, 0.254, 784.0, 3.16e-4, 2e5)] == [
        "10⁻³", "8.6·10⁻⁶", "16", "0.25", "784", "3.2·10⁻⁴", "2.0·10⁵",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------ λ
LAMBDAS = [1e-6, 1e-3, 1.0]
CURVES = {"exact": [0.9, 0.8, 0.3], "shortcut": [0.2, 0.8, 0.3], "none": [0.3, 0.3, 0.3]}


def test_damping_names_every_curve_at_the_chosen_lambda_and_where_it_has_taken_over():
    measured = {"A": np.array([[1.0, 2.0]] * 3), "B": np.array([[0.01, 0.2]] * 3)}
    added = {"A": np.full((3, 2), 0.1), "B": np.full((3, 2), 0.1)}
    words = {"layers": ["layer 1", "layer 2"], "setting": "toy", "pi": "1"}
    picture = damping(LAMBDAS, CURVES, 1, measured, added, client=2, **words)
    assert is_png(picture) and "toy" in picture.alt and "π = 1" in picture.alt
    assert picture.sentence == (
        "At λ = 10⁻³: exact (FedLPA) 80 %, shortcut EA 80 %, average 30 %. λ adds more to B than was measured in "
        "layer 1."
    )
    assert picture.table[0] == {"λ": "10⁻⁶", "exact (FedLPA)": "90 %", "shortcut EA": "20 %", "average": "30 %"}
    assert taken_over(measured, added).tolist() == [True, False]
    everywhere = damping(LAMBDAS, CURVES, 0, measured, {"A": added["A"], "B": added["B"] * 10}, **words)
    assert "FedLPA is close to A alone" in everywhere.sentence
    nowhere = damping(LAMBDAS, CURVES, 2, measured, {"A": added["A"], "B": added["B"] * 0}, **words)
    assert "In no layer" in nowhere.sentence and is_png(nowhere)


@pytest.mark.parametrize(("clients", "layers"), [(1, 1), (50, 12)])
def test_damping_at_its_extremes(clients, layers):
    some = {f: np.zeros((clients, layers)) for f in "AB"}  # nothing measured at all: no logarithm of 0
    names = [f"layer {i}" for i in range(layers)]
    assert is_png(damping(LAMBDAS, CURVES, 0, some, some, layers=names, setting="s", pi="1", client=0))


# ------------------------------------------------------------------------------------------------------ the solver
def test_solver_tells_residual_and_accuracy_of_each_way():
    curves = {
        "cg": {"a": [1.0, 1e-3, 1e-7], "b": [0.5, 1e-7]},
        "gd": {"a": [1.0, *[0.5] * 100], "b": [0.5, *[0.25] * 100]},
        "ea": {"a": [1.0], "b": [0.5]},
    }
    points = {"cg": [(0, 0.2), (1, 0.7), (2, 0.8)], "gd": [(0, 0.2), (1, 0.3), (100, 0.4)], "ea": [(0, 0.2)]}
    words = {"layers": ["layer 1", "layer 2"], "setting": "toy"}
    picture = solver(curves, points, **words)
    assert is_png(picture) and "toy" in picture.alt and "gradient descent from 1 to 0.5 in 100 steps" in picture.alt
    assert picture.sentence == (
        "Conjugate gradients after 2 steps: residual 10⁻⁷, accuracy 80 %; gradient descent after 100 steps: residual "
        "0.5, accuracy 40 %; shortcut EA after 0 steps: residual 1, accuracy 20 %."
    )
    early = solver(curves, points, step=1, **words)
    assert "Conjugate gradients after 1 step: residual 10⁻³, accuracy 70 %" in early.sentence
    assert picture.table[1] == {
        "solver": "conjugate gradients", "steps": 1, "layer 1": "10⁻³", "layer 2": "10⁻⁷", "accuracy": "70 %",
    }  # fmt: skip


def test_solver_while_it_runs_and_with_many_layers():
    live = solver({"gd": {"a": [1.0, 0.5]}}, {}, layers=["layer 1"], setting="toy", running=True)
    assert live.sentence == "Solving. Gradient descent after 1 step: residual 0.5." and "so far" in live.alt
    names = [f"layer {i}" for i in range(20)]
    many = solver({"cg": {n: [1.0, 0.0] for n in names}}, {}, layers=names, setting="toy", step=8192)
    assert is_png(live) and is_png(many)


# ------------------------------------------------------------------------------------------------------ the labels
def test_leak_counts_right_guesses_and_marks_the_client():
    counts = np.array([[5, 3, 0], [0, 0, 8]])
    sent = np.array([[0.3, 0.2, 0.1], [0.3, 0.0, 0.2]])
    given = {
        "setting": "toy", "what": "diagonal of the last B", "noises": [0, 0.1], "precision": [0.5, 0.4],
        "accuracy": [0.8, 0.6], "chance": 0.5,
    }  # fmt: skip
    picture = leak(counts, sent, [[0, 1], [0]], list("abc"), chosen=0, **given)
    assert is_png(picture) and "toy" in picture.alt and "2 clients across and 3 classes down" in picture.alt
    assert picture.sentence == (
        "Without noise whoever reads the diagonal of the last B, told how many classes a client has, names 50 % of "
        "them rightly (blind guess 50 %); FedLPA has an accuracy of 80 %."
    )
    assert picture.table[1] == {"client": 1, "holds": "c", "guessed": "a", "largest": "a, c, b"}
    noisy = leak(counts, sent, [[0, 1], [0]], list("abc"), chosen=1, client=0, klass=2, **given)
    assert noisy.sentence.startswith("Client 0 holds a and b; read off its upload: a and b. At noise 0.1 whoever")


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 10), (3, 100)])
def test_leak_at_its_extremes(clients, classes):
    counts = np.ones((clients, classes), int)
    guesses = [list(range(classes))] * clients
    picture = leak(
        counts, np.zeros((clients, classes)), guesses, [str(c) for c in range(classes)], setting="s", what="w",
        noises=[0], chosen=0, precision=[1.0], accuracy=[0.1], chance=1.0, client=0, klass=1,
    )  # fmt: skip
    assert is_png(picture)
