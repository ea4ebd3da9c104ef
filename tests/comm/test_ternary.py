"""Sparse messages: which entries are kept, their bytes, and error feedback that sends the others later."""

import math

import byte_formulas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.comm import Link, count_payload_bytes, formulas, serialise_payload
from fedlab_nb.comm.codec import (
    SparsifierWithResidual,
    choose_golomb_remainder_bits,
    count_kept_entries,
    pack_largest_entries,
    unpack_largest_entries,
)
from fedlab_nb.errors import UsageError


def draw_vector(d, seed=0, dtype=torch.float32):
    return torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def sparsify_by_hand(values, count, ternary):
    """The largest `count` entries, by a plain sort."""
    order = sorted(range(len(values)), key=lambda i: -abs(values[i].item()))[:count]
    out = torch.zeros_like(values)
    mean = sum(abs(values[i].item()) for i in order) / count
    for i in order:
        out[i] = math.copysign(mean, values[i]) if ternary else values[i].half().item()
    return out


@pytest.mark.slow
@pytest.mark.parametrize("ternary", [False, True])
@pytest.mark.parametrize("keep", [1.0, 0.5, 0.3, 0.1, 0.01])
@pytest.mark.parametrize("d", [1, 2, 7, 64, 1001])
def test_the_largest_entries_alone_arrive(d, keep, ternary):
    values = draw_vector(d)
    message = Link(1).up(0, pack_largest_entries(values, keep, ternary=ternary), phase="test")
    torch.testing.assert_close(
        unpack_largest_entries(message),
        sparsify_by_hand(values, count_kept_entries(d, keep), ternary),
        rtol=1e-6,
        atol=0,
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.floats(0.001, 1), st.integers(0, 1000))
def test_any_set_of_positions_can_be_unpacked(d, keep, seed):
    # Different magnitudes in random order, so that the kept set is unique; small whole numbers are exact at 16 bits.
    values = torch.randperm(d, generator=torch.Generator().manual_seed(seed)).float() + 1
    restored = unpack_largest_entries(pack_largest_entries(values, keep, ternary=False))
    assert torch.equal(
        restored, torch.where(values > d - count_kept_entries(d, keep), values, torch.zeros(()))
    )


def test_a_message_by_hand():
    """d = 6, keep = 1/2: entries 1, 3 and 4. The bitmap, lowest bit first, has zeros at the kept entries."""
    values = torch.tensor([0.0, -3.0, 1.0, 2.0, 4.0, -1.0])
    message = pack_largest_entries(values, 0.5, ternary=True)
    assert message["b"] == 0 and message["count"] == 3
    assert message["quotients"].tolist() == [0b100101]
    assert message["signs"].tolist() == [0b110] and message["scale"].item() == 3
    assert unpack_largest_entries(message).tolist() == [0, -3, 0, 3, 3, 0]
    assert count_payload_bytes(message) == 1 + 1 + 4


def test_golomb_positions_cost_little_more_than_their_entropy():
    """b + 1 / (1 - (1 - p)^(2^b)) bits a position on average; no code can do with less than H(p) / p."""
    assert [choose_golomb_remainder_bits(p) for p in (0.5, 0.25, 0.1, 0.04, 0.01)] == [
        0,
        1,
        3,
        4,
        6,
    ]
    d = 200_000
    for p in (0.5, 0.1, 0.04, 0.01):
        message = pack_largest_entries(draw_vector(d), p, ternary=True)
        position_bytes = message["quotients"].numel()
        if "remainders" in message:
            position_bytes += message["remainders"].numel()
        bits = 8 * position_bytes / count_kept_entries(d, p)
        b = choose_golomb_remainder_bits(p)
        assert abs(bits - (b + 1 / (1 - (1 - p) ** (2**b)))) < 0.1
        entropy = -(p * math.log2(p) + (1 - p) * math.log2(1 - p)) / p
        assert 0.98 * entropy < bits < 1.03 * entropy


@pytest.mark.parametrize("ternary", [False, True])
@pytest.mark.parametrize("d", [1, 8, 1000, 6570])
@pytest.mark.parametrize("keep", [0.5, 0.4])
def test_bytes_follow_the_formula(d, keep, ternary):
    message = pack_largest_entries(draw_vector(d), keep, ternary=ternary)
    formula = byte_formulas.count_sparse_message_bytes(d, count_kept_entries(d, keep), ternary)
    assert count_payload_bytes(message) == len(serialise_payload(message)) == formula


def test_half_of_the_entries_at_16_bits_take_more_than_a_quarter_of_the_bytes():
    """FENS counts 4x less; with the positions it is 32/9 = 3.56x."""
    d = 4_932_344
    assert 4 * (2 * d // 2) == formulas.count_model_bytes_one_way(d)
    assert math.isclose(
        formulas.count_model_bytes_one_way(d) / byte_formulas.count_sparse_message_bytes(d, d // 2),
        32 / 9,
        rel_tol=1e-6,
    )


@pytest.mark.slow
@pytest.mark.parametrize("ternary", [False, True])
def test_entries_that_are_not_sent_are_sent_later(ternary):
    """Error feedback: all messages so far plus the residual equal all inputs."""
    send = SparsifierWithResidual(0.1, ternary=ternary)
    total = torch.zeros(50, dtype=torch.float64)
    arrived = torch.zeros(50, dtype=torch.float64)
    for i in range(20):
        values = draw_vector(50, i, torch.float64)
        total += values
        arrived += unpack_largest_entries(send(values), torch.float64)
        torch.testing.assert_close(arrived + send.residual, total, rtol=0, atol=1e-12)


def test_zeros_can_be_sent_and_keep_must_be_a_share():
    message = pack_largest_entries(torch.zeros(10), 0.2, ternary=True)
    assert unpack_largest_entries(message).abs().sum() == 0
    for keep in (0.0, 1.5, float("nan")):
        with pytest.raises(UsageError, match="keep"):
            pack_largest_entries(torch.ones(4), keep, ternary=True)
