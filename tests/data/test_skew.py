"""Skew numbers against values worked out by hand and against mutual information computed another way."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedlab_nb.data.partition import Skew, skew_of


def test_ends_of_the_scale():
    assert skew_of(np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3]])) == Skew(1.0, 1.0)
    even = skew_of(np.full((4, 10), 7))
    assert even.jensen_shannon == pytest.approx(0, abs=1e-15) and even.effective_classes == pytest.approx(10)


def test_by_hand():
    # Client 0: 2 of class 0. Client 1: 1 of each. N = 4, pooled (3/4, 1/4): H = 2 log 2 - (3/4) log 3.
    # Within: (2/4) 0 + (2/4) log 2. Effective classes: (1 + 2) / 2.
    pooled = 2 * math.log(2) - 0.75 * math.log(3)
    skew = skew_of(np.array([[2, 0], [1, 1]]))
    assert skew.jensen_shannon == pytest.approx((pooled - 0.5 * math.log(2)) / pooled)
    assert skew.effective_classes == pytest.approx(1.5)


def test_two_clients_cannot_be_fully_skewed_over_four_classes():
    skew = skew_of(np.array([[5, 5, 0, 0], [0, 0, 5, 5]]))
    assert skew.jensen_shannon == pytest.approx(math.log(2) / math.log(4))  # log M / H, reached


def test_empty_clients_and_a_single_class():
    assert skew_of(np.array([[4, 0], [0, 0], [0, 4]])) == Skew(1.0, 1.0)
    assert skew_of(np.array([[4, 0], [9, 0]])) == Skew(0.0, 1.0)
    assert skew_of(np.zeros((2, 3))) == Skew(0.0, 0.0)


@settings(max_examples=100, deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 6)), elements=st.integers(0, 20)))
def test_equals_mutual_information_over_label_entropy(counts):
    if counts.sum() == 0:
        return
    joint = counts / counts.sum()
    k, y = joint.sum(axis=1), joint.sum(axis=0)
    information = sum(
        joint[i, c] * math.log(joint[i, c] / (k[i] * y[c])) for i, c in zip(*np.nonzero(joint), strict=True)
    )
    entropy = -sum(p * math.log(p) for p in y if p > 0)
    skew = skew_of(counts)
    if entropy > 0:
        assert skew.jensen_shannon == pytest.approx(information / entropy, abs=1e-9)
        assert skew.jensen_shannon <= math.log(len(counts)) / entropy + 1e-9
    assert 1 - 1e-9 <= skew.effective_classes <= counts.shape[1] + 1e-9
