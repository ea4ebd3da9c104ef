"""Low-rank changes: the exact sum against the sum of products, when averaging apart is exact, and the bytes."""

import torch

from fedlab_nb.course.fedlpa.low_rank import averaged, bytes_of, change, fitted, low_rank, missing, stacked


def clients(count=5, o=6, i=9, rank=3, common=False):
    g = torch.Generator().manual_seed(0)
    first, *made = (torch.randn(*size, generator=g).double() for size in [(rank, i)] + [(o, rank), (rank, i)] * count)
    weights = torch.rand(count, generator=g).double()
    return [(b, first if common else a) for b, a in zip(made[::2], made[1::2])], (weights / weights.sum()).tolist()  # noqa: B905


def by_hand(own, weights):
    return sum(w * (b @ a) for w, (b, a) in zip(weights, own, strict=True))


def test_stacking_and_mending_are_the_mean_of_the_products():
    own, weights = clients()
    exact = by_hand(own, weights)
    torch.testing.assert_close(change(*stacked(own, weights)), exact)
    torch.testing.assert_close(change(*averaged(own, weights)) + missing(own, weights), exact)
    assert stacked(own, weights)[0].shape == (6, 15) and averaged(own, weights)[0].shape == (6, 3)
    assert missing(own, weights).norm() > 0.2 * exact.norm()


def test_averaging_apart_is_exact_for_one_client_and_for_a_common_a():
    for own, weights in ((clients(1)[0], [1.0]), clients(common=True)):
        torch.testing.assert_close(change(*averaged(own, weights)), by_hand(own, weights))
        assert missing(own, weights).norm() < 1e-12


def test_a_clients_fit_starts_at_nothing_and_learns():
    g = torch.Generator().manual_seed(2)
    x, w = torch.randn(60, 8, generator=g), torch.zeros(3, 8)
    y = (x[:, :3]).argmax(1)
    start, same, learnt = (fitted(w, x, y, 2, torch.Generator().manual_seed(0), steps) for steps in (0, 0, 200))
    assert start[0].abs().max() == 0 and start[1].std() > 0.1 and torch.equal(start[1], same[1])
    assert ((x @ change(*learnt).T).argmax(1) == y).float().mean() > 0.7


def test_the_card_says_how_far_off():
    assert bytes_of(4) == 4 * 4 * (128 + 96 + 42) < 26_280
    lines = low_rank().text.splitlines()
    off = [int(line.split("apart are ")[1].split(" %")[0]) for line in lines[:3]]
    assert all(10 < share < 100 for share in off) and all("added 0 %" in line for line in lines[:3])
    assert "rank 40" in lines[2] and "25.9 kB" in lines[3] and "4.26 kB with rank 4" in lines[3]
