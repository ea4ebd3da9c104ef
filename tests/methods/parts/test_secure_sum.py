"""Masks of pairs: they cancel to the last digit, an upload alone says nothing, and every byte is on the link."""

import pytest
import torch

from fedlab_nb.comm import Link
from fedlab_nb.errors import RunError
from fedlab_nb.methods.parts.privacy import BASE, PRIME, masked, opened, secure_sum

EXACT = torch.float64


def streams(k):
    return torch.Generator().manual_seed(100 + k)


def values(clients, n=40, scale=1000.0):
    stream = torch.Generator().manual_seed(0)
    return [scale * torch.randn(n, generator=stream, dtype=EXACT) for _ in range(clients)]


@pytest.mark.parametrize("clients", [1, 2, 3, 8])
def test_the_masks_cancel_to_the_last_digit(clients):
    own = [(v * 2**32).round() for v in values(clients)]
    whole = [sum(int(v[i]) for v in own) for i in range(40)]  # Python's own whole numbers
    total = secure_sum(Link(clients), values(clients), streams, "x")
    assert total.tolist() == [w / 2**32 for w in whole]
    torch.testing.assert_close(total, sum(values(clients)), rtol=0, atol=clients * 2.0**-33)


def test_it_is_the_same_whatever_the_masks_and_the_order():
    own = values(4)
    total = secure_sum(Link(4), own, streams, "x")
    assert torch.equal(total, secure_sum(Link(4), own, lambda k: streams(k + 50), "x"))
    assert torch.equal(total, secure_sum(Link(4), own[::-1], streams, "x"))


def test_one_upload_says_nothing_and_two_together_only_their_sum():
    small = [torch.zeros(4000, dtype=EXACT) for _ in range(3)]
    received = masked(Link(3), small, streams, "x")
    for upload in received:
        shares = upload.double() / 2.0**63
        assert shares.abs().max() > 0.99 and abs(shares.mean()) < 0.05
        assert shares.std().item() == pytest.approx(0.577, rel=0.05)
    assert (received[0] + received[1]).abs().min() > 0  # the third one's masks are still there
    assert not opened(received).any()


def test_keys_and_numbers_are_counted():
    link = Link(5)
    secure_sum(link, values(5, n=7), streams, "masked sums")
    assert link.ledger.by_phase() == {"keys": (5 * 32, 5 * 4 * 32), "masked sums": (5 * 7 * 8, 0)}


def test_both_ends_of_a_pair_agree_and_the_server_cannot():
    one, other = 123456789, 987654321
    assert pow(pow(BASE, one, PRIME), other, PRIME) == pow(pow(BASE, other, PRIME), one, PRIME)
    assert pow(BASE, one, PRIME) * pow(BASE, other, PRIME) % PRIME != pow(pow(BASE, one, PRIME), other, PRIME)


@pytest.mark.parametrize("bad", [2.0**31, float("nan"), float("inf")])
def test_what_does_not_fit_is_refused(bad):
    own = values(2)
    own[1][3] = bad
    with pytest.raises(RunError, match="to sum securely"):
        secure_sum(Link(2), own, streams, "x")
