"""FedLPA small enough to compute by hand: two clients, two weights."""

import numpy as np
import pytest

from fedlab_nb.labs.fedlpa.two_weights import two_weights


def test_two_weights_at_right_angles():
    points = two_weights(angle=90, ratio=9, damping=0)
    assert points.average == pytest.approx([2, 2])
    for point in (points.aggregate, points.diagonal, points.pooled):
        assert point == pytest.approx([1.2, 1.2])  # ((9*1 + 1*3) / 10, (1*3 + 9*1) / 10)
    assert points.precisions == pytest.approx(np.array([np.diag([9, 1]), np.diag([1, 9])]), abs=1e-12)


def test_two_weights_at_45_degrees_need_more_than_the_diagonal():
    points = two_weights(angle=45, ratio=9, damping=0)  # A_2 = [[5, 4], [4, 5]], S = [[14, 4], [4, 6]], Z = (28, 20)
    assert points.precisions[1] == pytest.approx(np.array([[5, 4], [4, 5]]))
    assert points.aggregate == pytest.approx([88 / 68, 168 / 68])
    assert points.pooled == pytest.approx(points.aggregate)
    assert points.diagonal == pytest.approx([24 / 14, 8 / 6])


def test_two_weights_and_the_damping():
    assert two_weights(90, 9, damping=1).aggregate == pytest.approx([16 / 12, 16 / 12])  # (10*1 + 2*3) / 12
    assert two_weights(45, 9, damping=1e12).aggregate == pytest.approx([2, 2], abs=1e-4)
    assert two_weights(30, 1, damping=0).aggregate == pytest.approx([2, 2])  # circles: the average is right
    assert two_weights(0, 25, damping=0).aggregate == pytest.approx([2, 2])  # equal ellipses too


def test_two_weights_equal_pooled_least_squares_at_every_angle():
    for angle in range(0, 181, 15):
        points = two_weights(angle, 16, 0)
        assert points.aggregate == pytest.approx(points.pooled, abs=1e-9)
