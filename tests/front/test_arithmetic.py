"""What the browser adds up on one image is what Python sent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript

MODULES = "text dom arithmetic"


@st.composite
def sums(draw):
    clients, classes = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    number = st.floats(-50, 50)
    rows = st.lists(
        st.lists(number, min_size=classes, max_size=classes), min_size=clients, max_size=clients
    )
    values, weights = draw(rows), draw(rows)
    total = (np.array(values) * np.array(weights)).sum(0).tolist()
    return {"values": values, "weights": weights, "total": total}


@settings(max_examples=3, deadline=None)
@given(st.lists(sums(), min_size=30, max_size=30))
def test_terms_add_up(cases):
    code = "return cases.map((one) => [addTerms(one), findMost(one.total), listTerms(one, 0)])"
    for one, (added, most, terms) in zip(
        cases, run_javascript(MODULES, code, cases=cases), strict=True
    ):
        assert added == pytest.approx(one["total"], abs=1e-6)
        assert most == int(np.argmax(one["total"]))
        expected = [
            row[0] * weight[0] for row, weight in zip(one["values"], one["weights"], strict=True)
        ]
        assert terms == pytest.approx(expected)


def test_numbers_are_written_with_a_true_minus():
    code = "return [-12.345, 0.0312, -0.0001, 9.9996, 123.456].map((value) => writeNumber(value))"
    assert run_javascript(MODULES, code) == ["−12.3", "0.031", "0.000", "10.000", "123.5"]
