"""FedLPA's pictures from numbers made by hand: what they draw, say and tabulate, and their extremes."""

import dataclasses

import numpy as np
import pytest

from fedlab_nb.labs.fedlpa.numbers import DampingSweep, LayerFactors, NoiseSweep, Solutions
from fedlab_nb.labs.fedlpa.plots.damping import damping
from fedlab_nb.labs.fedlpa.plots.factors import factors, power
from fedlab_nb.labs.fedlpa.plots.leak import leak
from fedlab_nb.labs.fedlpa.plots.plane import Plane, place
from fedlab_nb.labs.fedlpa.plots.solver import solver
from fedlab_nb.labs.fedlpa.two_weights import TwoWeights
from fedlab_nb.plots import png

DIGITS = [str(c) for c in range(10)]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    monkeypatch.setattr("fedlab_nb.plots.style.DPI", 50)


def is_png(picture):
    return png(picture).startswith(b"\x89PNG\r\n\x1a\n")


# ------------------------------------------------------------------------------------------------------ the plane
PAIR = TwoWeights(
    means=np.array([[1.0, 3.0], [3.0, 1.0]]),
    precisions=np.array([np.diag([9.0, 1.0]), np.diag([1.0, 9.0])]),
    average=np.array([2.0, 2.0]),
    diagonal=np.array([1.2, 1.2]),
    aggregate=np.array([1.2, 1.2]),
    pooled=np.array([1.2, 1.2]),
)


def test_plane_says_where_the_answers_lie_and_how_far_off():
    plane = Plane()
    picture = plane.show(PAIR, "angle 90 degrees")
    assert is_png(picture) and "angle 90 degrees" in picture.alt and "client 2 at (3.00, 1.00)" in picture.alt
    assert picture.sentence == (
        "Both clients' data together give (1.20, 1.20). FedLPA lies at (1.20, 1.20), which is the same; the average at "
        "(2.00, 2.00), 1.13 away; the precision's diagonal at (1.20, 1.20), which is the same."
    )
    assert [row["distance"] for row in picture.table] == [1.131, 0.0, 0.0, 0.0]
    # one and two standard deviations: 1/3 and 2/3 along the sure direction, 1 and 2 across it
    ellipses, _, _ = plane.clients[0]
    inner, outer = ellipses[3], ellipses[1]
    assert sorted([inner.width, inner.height]) == pytest.approx([2 / 3, 2])
    assert sorted([outer.width, outer.height]) == pytest.approx([4 / 3, 4])
    again = plane.show(dataclasses.replace(PAIR, aggregate=np.array([1.5, 1.2])), "x")
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
    units = LayerFactors(gram(x), gram(g), "layer 1", 4, np.array([3, 1, 0]), "units", setting="toy, seed 0")
    image = dataclasses.replace(units, kind="image", shape=(1, 2, 2), outputs_are_classes=True)
    picture = factors(image, list("abc"), klass=2)
    assert is_png(picture) and "toy, seed 0" in picture.alt and "A, 5 by 5, and B, 3 by 3" in picture.alt
    assert picture.sentence == (
        "Client 4 holds mostly a (75 %) and b (25 %). Its inputs to layer 1 vary in 2 of 5 directions, its errors in "
        "1 of 3; the last column of A is its mean image. Shown before damping, as they are not sent."
    )
    assert [row["mean input"] for row in picture.table] == [0.5, 0, 0.5]
    assert [row["diagonal of B"] for row in picture.table] == [0.25, 0.25, 0]
    both = image.a + 0.5 * np.eye(5), image.b + 0.5 * np.eye(3)
    sent = factors(dataclasses.replace(image, sent=both, added=(0.5, 0.5)), list("abc"))
    assert "errors in 1 of 3" in sent.sentence
    assert sent.sentence.endswith("Shown as sent: λ_damp adds 0.5 to A's diagonal and 0.5 to B's.")
    assert [row["diagonal of B"] for row in sent.table] == [0.75, 0.75, 0.5] and sent.table[0]["mean input"] == 0.5
    bars = factors(units, list("abc"))
    assert "its errors in 1 of 3. Shown" in bars.sentence and "the mean of each input unit" in bars.alt
    patch = dataclasses.replace(units, a=4 * gram(x), kind="patch", shape=(1, 2, 2))  # four positions
    convolution = factors(patch, list("abc"))
    assert convolution.table == bars.table and "mean patch" in convolution.sentence
    without = factors(dataclasses.replace(units, kind=None), list("abc"))
    assert "last column" not in without.alt and is_png(without)


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_factors_at_their_extremes(classes):
    names = [f"class number {c}" for c in range(classes)]
    counts = np.zeros(classes, int)
    counts[1] = 5
    for b in (np.zeros((classes, classes)), np.eye(classes)):  # a client that fits perfectly has B = 0
        layer = LayerFactors(np.ones((785, 785)), b, "layer 1", 0, counts, "image", (1, 28, 28), True)
        picture = factors(layer, names)
        assert is_png(picture) and "nan" not in picture.sentence and "holds only class number 1" in picture.sentence
    colour = LayerFactors(np.ones((76, 76)), np.eye(classes), "layer 1", 0, counts, "patch", (3, 5, 5))
    assert is_png(factors(colour, names, klass=1))


def test_small_numbers_are_readable():
    assert [power(v) for v in (1e-3, 8.6e-6, 16.2, 0.254, 784.0, 3.16e-4, 2e5)] == [
        "10⁻³", "8.6·10⁻⁶", "16", "0.25", "784", "3.2·10⁻⁴", "2.0·10⁵",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------ λ_damp
LAMBDAS = [1e-6, 1e-3, 1.0]
CURVES = {"exact": [0.9, 0.8, 0.3], "shortcut": [0.2, 0.8, 0.3], "none": [0.3, 0.3, 0.3]}


def damping_sweep(a, b, ratio):
    """The two factors' mean diagonals `[layers]` at three clients, and π of all layers."""
    measured = {"A": np.array([a] * 3), "B": np.array([b] * 3)}
    ratios = {"one": np.full((3, len(a)), ratio)}
    return DampingSweep(LAMBDAS, {"one": CURVES}, measured, ratios, ["layer 1", "layer 2"], "toy", {"one": 0.7})


def test_damping_names_every_curve_at_the_chosen_lambda_and_where_it_has_taken_over():
    sweep = damping_sweep([1.0, 2.0], [0.01, 0.2], 1.0)
    assert sweep.added("one", 1)["A"] == pytest.approx(1e-3**0.5)
    picture = damping(sweep, "one", 1, client=2)
    assert is_png(picture) and "toy" in picture.alt and "π = 1 " in picture.alt
    assert picture.sentence == (
        "At λ_damp = 10⁻³, on validation images (the clients' held-out samples): exact 80 %, "
        "shortcut EA 80 %, average 30 %. Best for FedLPA: 10⁻⁶ (90 %; on test images 70 %). "
        "λ_damp adds more to B than was measured in layer 1."
    )
    assert picture.table[0] == {"λ_damp": "10⁻⁶", "exact (FedLPA)": "90 %", "shortcut EA": "20 %", "average": "30 %"}
    everywhere = damping(damping_sweep([1.0, 2.0], [0.01, 0.2], 0.1), "one", 1)  # added to B: 0.3
    assert "FedLPA is close to A alone" in everywhere.sentence
    nowhere = damping(damping_sweep([1.0, 2.0], [0.01, 0.2], 10.0), "one", 1)  # 0.003
    assert "In no layer" in nowhere.sentence and is_png(nowhere)


@pytest.mark.parametrize(("clients", "layers"), [(1, 1), (50, 12)])
def test_damping_at_its_extremes(clients, layers):
    nothing = {f: np.zeros((clients, layers)) for f in "AB"}  # nothing measured at all: no logarithm of 0
    names, ratios = [f"layer {i}" for i in range(layers)], {"trace": np.full((clients, layers), 1e6)}
    picture = damping(DampingSweep(LAMBDAS, {"trace": CURVES}, nothing, ratios, names, "s"), "trace", 0, client=0)
    assert is_png(picture) and "π = trace" in picture.alt


# ------------------------------------------------------------------------------------------------------ the solver
def test_solver_tells_residual_and_accuracy_of_each_way():
    curves = {
        "cg": {"a": [1.0, 1e-3, 1e-7], "b": [0.5, 1e-7]},
        "gd": {"a": [1.0, *[0.5] * 100], "b": [0.5, *[0.25] * 100]},
        "ea": {"a": [1.0], "b": [0.5]},
    }
    points = {"cg": [(0, 0.2), (1, 0.7), (2, 0.8)], "gd": [(0, 0.2), (1, 0.3), (100, 0.4)], "ea": [(0, 0.2)]}
    solutions = Solutions(curves, points, ["layer 1", "layer 2"], "toy", outcome="a run")
    picture = solver(solutions)
    assert is_png(picture) and "toy" in picture.alt and "gradient descent from 1 to 0.5 in 100 steps" in picture.alt
    assert picture.sentence == (
        "Conjugate gradients after 2 steps: residual 10⁻⁷, accuracy 80 %; gradient descent after 100 steps: residual "
        "0.5, accuracy 40 %; shortcut EA after 0 steps: residual 1, accuracy 20 %."
    )
    early = solver(solutions, step=1)
    assert "Conjugate gradients after 1 step: residual 10⁻³, accuracy 70 %" in early.sentence
    assert picture.table[1] == {
        "solver": "conjugate gradients", "steps": 1, "layer 1": "10⁻³", "layer 2": "10⁻⁷", "accuracy": "70 %",
    }  # fmt: skip


def test_solver_while_it_runs_and_with_many_layers():
    live = solver(Solutions({"gd": {"a": [1.0, 0.5]}}, {}, ["layer 1"], "toy"))
    assert live.sentence == "Solving. Gradient descent after 1 step: residual 0.5." and "so far" in live.alt
    names = [f"layer {i}" for i in range(20)]
    many = solver(Solutions({"cg": {n: [1.0, 0.0] for n in names}}, {}, names, "toy"), step=8192)
    assert is_png(live) and is_png(many)


# ------------------------------------------------------------------------------------------------------ the labels
def test_leak_counts_right_guesses_and_marks_the_client():
    counts = np.array([[5, 3, 0], [0, 0, 8]])
    sent = np.array([[0.3, 0.2, 0.1], [0.3, 0.0, 0.2]])
    sweep = NoiseSweep([0, 0.1], counts, {"bias": [sent, sent]}, {"bias": [0.5, 0.4]}, [0.8, 0.6], 0.5, "toy")
    assert sweep.guesses("bias", 0) == [[0, 1], [0]]
    picture = leak(sweep, "bias", 0, list("abc"))
    assert is_png(picture) and "toy" in picture.alt and "2 clients across and 3 classes down" in picture.alt
    assert picture.sentence == (
        "Without noise a reader of the bias, who is told how many classes a client has, names 50 % of them "
        "correctly (blind guess 50 %); FedLPA has an accuracy of 80 %."
    )
    assert picture.table[1] == {"client": 1, "holds": "c", "guessed": "a", "largest": "a, c, b"}
    noisy = leak(sweep, "bias", 1, list("abc"), client=0, klass=2)
    assert noisy.sentence.startswith(
        "Client 0 holds a and b; a reader of its upload names a and b. At noise 0.1 a reader"
    )


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 10), (3, 100)])
def test_leak_at_its_extremes(clients, classes):
    counts, sent = np.ones((clients, classes), int), np.zeros((clients, classes))
    sweep = NoiseSweep([0], counts, {"w": [sent]}, {"w": [1.0]}, [0.1], 1.0, "s")
    picture = leak(sweep, "w", 0, [str(c) for c in range(classes)], client=0, klass=1)
    assert is_png(picture)
