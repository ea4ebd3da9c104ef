"""What the browser adds up for one image is what Python sent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript

MODULES = "text dom arithmetic"


@st.composite
def weighted_sums(draw):
    """Values and weights of each client and class, and the sum over the clients."""
    clients = draw(st.integers(1, 6))
    classes = draw(st.integers(2, 5))
    row = st.lists(st.floats(-50, 50), min_size=classes, max_size=classes)
    rows = st.lists(row, min_size=clients, max_size=clients)
    values = draw(rows)
    weights = draw(rows)
    total = (np.array(values) * np.array(weights)).sum(0).tolist()
    return {"values": values, "weights": weights, "total": total}


@settings(max_examples=3, deadline=None)
@given(st.lists(weighted_sums(), min_size=30, max_size=30))
def test_terms_add_up(cases):
    code = "return cases.map((one) => [addTerms(one), findMost(one.total), listTerms(one, 0)])"
    answers = run_javascript(MODULES, code, cases=cases)
    for case, (added, most, terms) in zip(cases, answers, strict=True):
        assert added == pytest.approx(case["total"], abs=1e-6)
        assert most == int(np.argmax(case["total"]))
        products = np.array(case["values"]) * np.array(case["weights"])
        assert terms == pytest.approx(products[:, 0].tolist())


def test_numbers_are_written_with_a_true_minus():
    code = "return [-12.345, 0.0312, -0.0001, 9.9996, 123.456].map((value) => writeNumber(value))"
    assert run_javascript(MODULES, code) == ["−12.3", "0.031", "0.000", "10.000", "123.5"]
