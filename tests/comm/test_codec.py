"""Quantisation and packing: against the paper's rule in plain Python, its error bound, and numbers by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.comm.codec import (
    dequantise_state,
    pack_bits,
    pack_upper_triangle,
    quantise,
    quantise_state,
    unpack_bits,
    unpack_upper_triangle,
)
from fedlab_nb.errors import UsageError
from fedlab_nb.models import build, copy_model_state, load_state

BITS = range(2, 9)
WEIGHTS = npst.arrays(
    "float32",
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
    elements=st.floats(-(2.0**100), 2.0**100, width=32),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(WEIGHTS, st.sampled_from(BITS))
def test_symmetric_codes_follow_the_papers_rule(array, bits):
    """s = max|w| / L, code = clip(round(w / s), -L, L), in Python's numbers; no number is off by more than
    half a step."""
    quantised = quantise(torch.from_numpy(array), bits)
    flat = array.reshape(-1).tolist()
    levels = 2 ** (bits - 1) - 1
    step = quantised.scale.item()
    restored = quantised.dequantise()
    assert restored.shape == array.shape and restored.dtype == torch.float32
    assert count_payload_bytes(quantised) == math.ceil(len(flat) * bits / 8) + 4
    largest = max((abs(w) for w in flat), default=0.0)
    assert step == pytest.approx(max(largest / levels, 2.0**-126), rel=1e-6)
    codes = unpack_bits(quantised.codes, bits, len(flat)).tolist()
    for code, w, decoded in zip(codes, flat, restored.double().flatten().tolist(), strict=True):
        assert -levels <= code - levels <= levels
        # The nearest code; the tolerance is float32's, for ties and for the largest number.
        assert abs(code - levels - w / step) <= 0.5 + 1e-4
        assert abs(decoded - w) <= step / 2 * (1 + 1e-5) + 1e-6 * abs(w)


@settings(deadline=None, max_examples=80)
@given(st.integers(2, 8), st.data())
def test_packed_codes_are_one_binary_number_and_can_be_unpacked(bits, data):
    codes = data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=40))
    packed = pack_bits(torch.tensor(codes, dtype=torch.uint8), bits)
    assert packed.numel() == math.ceil(len(codes) * bits / 8)
    assert unpack_bits(packed, bits, len(codes)).tolist() == codes
    number = sum(code << (bits * position) for position, code in enumerate(codes))
    assert bytes(packed.tolist()) == number.to_bytes(packed.numel(), "little")


def test_quantising_three_numbers_by_hand():
    quantised = quantise(torch.tensor([1.27, -0.014, 0.0]))
    assert quantised.scale.item() == pytest.approx(0.01)
    assert (quantised.codes.int() - 127).tolist() == [127, -1, 0]
    quantised = quantise(torch.tensor([0.0, 0.4, -0.7]), bits=4)
    assert quantised.scale.item() == pytest.approx(0.1)
    assert quantised.codes.tolist() == [7 | 11 << 4, 0]
    assert quantise(torch.full((4,), 1e-44)).dequantise().isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_keep_their_dtype(dtype):
    tensor = torch.linspace(-2, 3, 50, dtype=dtype)
    quantised = quantise(tensor, 8)
    restored = quantised.dequantise()
    assert restored.dtype == dtype and count_payload_bytes(quantised) == 50 + 4
    error = (restored.double() - tensor.double()).abs().max()
    assert error <= quantised.scale.item() / 2 + torch.finfo(dtype).eps * 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(UsageError, match="NaN, infinite or beyond float32"):
        quantise(torch.tensor([0.0, value]), 8)
    with pytest.raises(UsageError, match="beyond float32"):
        quantise(torch.tensor([1e300], dtype=torch.float64), 8)


def test_wrong_requests_are_refused():
    with pytest.raises(UsageError, match="bits is 1, but it must be a whole number from 2 to 8"):
        quantise(torch.ones(2), 1)
    with pytest.raises(UsageError, match="torch.int64 cannot be quantised"):
        quantise(torch.ones(2, dtype=torch.int64))


def test_quantising_a_state_keeps_biases_and_batch_norm():
    model = build("resnet8", (1, 8, 8), 3, width=4)
    state = copy_model_state(model)
    quantised = quantise_state(state)
    coded = {name for name, t in quantised.items() if not isinstance(t, torch.Tensor)}
    assert coded == {name for name, t in state.items() if t.ndim >= 2}
    restored = dequantise_state(quantised)
    assert all(torch.equal(restored[name], t) for name, t in state.items() if t.ndim < 2)
    load_state(model, restored)
    steps = torch.tensor([[3]])
    assert quantise_state({"steps": steps})["steps"] is steps


def test_a_packed_triangle_can_be_unpacked():
    a = torch.randn(3, 6, 6, generator=torch.Generator().manual_seed(0))
    symmetric = a + a.mT
    assert pack_upper_triangle(symmetric).shape == (3, 21)
    assert torch.equal(unpack_upper_triangle(pack_upper_triangle(symmetric)), symmetric)
    by_hand = torch.tensor([[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    assert pack_upper_triangle(by_hand).tolist() == [1, 2, 3, 4, 5, 6]
    assert unpack_upper_triangle(torch.tensor([7.0])).tolist() == [[7.0]]


@pytest.mark.parametrize("wrong", [torch.zeros(5), torch.tensor(1.0)])
def test_other_shapes_than_triangles_are_refused(wrong):
    with pytest.raises(UsageError, match="not the upper triangle"):
        unpack_upper_triangle(wrong)
    with pytest.raises(UsageError, match="square matrix"):
        pack_upper_triangle(wrong)
