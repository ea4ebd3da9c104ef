"""Low-rank changes: the exact sum against the sum of products, when averaging apart is exact, and the bytes."""

import pytest
import torch

from fedlab_nb.comm import size
from fedlab_nb.course.fedlpa.low_rank import LowRank, averaged, bytes_of, fitted, low_rank, missing, stacked


def clients(count=5, o=6, i=9, rank=3, common=False, dtype=torch.float64):
    g = torch.Generator().manual_seed(0)
    first = torch.randn(rank, i, generator=g, dtype=dtype)
    made = [
        LowRank(torch.randn(o, rank, generator=g, dtype=dtype), torch.randn(rank, i, generator=g, dtype=dtype))
        for _ in range(count)
    ]
    weights = torch.rand(count, generator=g, dtype=dtype)
    return [LowRank(c.b, first) for c in made] if common else made, (weights / weights.sum()).tolist()


def by_hand(own, weights):
    return sum(w * (c.b @ c.a) for w, c in zip(weights, own, strict=True))


def test_stacking_and_mending_are_the_mean_of_the_products():
    own, weights = clients()
    exact = by_hand(own, weights)
    torch.testing.assert_close(stacked(own, weights).change, exact)
    torch.testing.assert_close(averaged(own, weights).change + missing(own, weights), exact)
    assert stacked(own, weights).b.shape == (6, 15) and averaged(own, weights).b.shape == (6, 3)
    assert missing(own, weights).norm() > 0.2 * exact.norm()
    single, weights = clients(dtype=torch.float32)
    torch.testing.assert_close(stacked(single, weights).change, by_hand(single, weights), rtol=0, atol=1e-6)


def test_averaging_apart_is_exact_for_one_client_and_for_a_common_a():
    for own, weights in ((clients(1)[0], [1.0]), clients(common=True)):
        torch.testing.assert_close(averaged(own, weights).change, by_hand(own, weights))
        assert missing(own, weights).norm() < 1e-12


def test_a_full_rank_change_reaches_any_layer():
    target = torch.randn(4, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    left, values, right = torch.linalg.svd(target, full_matrices=False)
    torch.testing.assert_close(LowRank(left * values, right).change, target)


def test_a_clients_fit_starts_at_nothing_and_learns():
    g = torch.Generator().manual_seed(2)
    x, w = torch.randn(60, 8, generator=g), torch.zeros(3, 8)
    y = (x[:, :3]).argmax(1)
    start = fitted(w, x, y, 2, stream=torch.Generator().manual_seed(0), steps=0)
    assert start.change.abs().max() == 0 and start.a.std() > 0.1
    same = fitted(w, x, y, 2, stream=torch.Generator().manual_seed(0), steps=0)
    assert torch.equal(start.a, same.a)
    learnt = fitted(w, x, y, 2, stream=torch.Generator().manual_seed(0), steps=200)
    assert ((x @ learnt.change.T).argmax(1) == y).float().mean() > 0.7


def test_bytes():
    own, _ = clients(1, 64, 64, 4, dtype=torch.float32)
    assert own[0].bytes == size({"b": own[0].b, "a": own[0].a}) == 4 * 4 * 128
    assert bytes_of(4) == 4 * 4 * (128 + 96 + 42) < 26_280


@pytest.fixture(scope="module")
def card():
    return low_rank()


def test_the_card_says_how_far_off(card):
    lines = card.text.splitlines()
    off = [int(line.split("apart are ")[1].split(" %")[0]) for line in lines[:3]]
    assert all(10 < share < 100 for share in off) and all("added 0 %" in line for line in lines[:3])
    assert "rank 40" in lines[2] and "25.9 kB" in lines[3] and "4.26 kB with rank 4" in lines[3]
