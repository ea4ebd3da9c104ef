"""The world of two cues, exactly: bits, and the bound that breaks inside a client."""

import itertools
import math

import pytest
import torch

from fedlab_nb.labs.fusefl.two_cues import bits, cue_over_clients, mutual_information, two_cues

EXACT = torch.float64


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("real", [0.0, 0.4, 1.0])
def test_two_cues(classes, real):
    for spurious in (0.0, 0.3, 1.0):
        cue, short = two_cues(classes, real, spurious)
        assert short.nuisance - short.bound == pytest.approx(short.label)  # broken by exactly I(R; Y)
        assert short.broken == (spurious > 0) and (short.label > cue.label) == (spurious > real)
        assert cue.nuisance <= min(cue.label, short.label) + 1e-12
    assert two_cues(classes, 1, 1)[1].label == pytest.approx(math.log2(classes))
    for cue in two_cues(classes, real, 0):
        assert cue.nuisance <= cue.image - cue.label + 1e-12 and not cue.broken  # independent: it holds


def test_bits_of_a_coin():
    assert bits(torch.eye(2)) == pytest.approx(1) and bits(torch.ones(2, 2)) == 0


def test_mutual_information_of_known_tables():
    assert mutual_information(torch.eye(4)).item() == pytest.approx(torch.tensor(4.0).log().item())
    assert mutual_information(
        torch.outer(torch.arange(1.0, 4).double(), torch.arange(1.0, 6).double())
    ).item() == pytest.approx(0, abs=1e-12)


def joints(py, pr_y, px_yr, ph_x):
    """Tables (H, R), (H, X), (H, Y) of the chain (R, Y) -> X -> H: p(y) p(r|y) p(x|y,r) p(h|x)."""
    full = torch.einsum("y,yr,yrx,xh->yrxh", py, pr_y, px_yr, ph_x)
    return full.sum((0, 2)).T, full.sum((0, 1)).T, full.sum((1, 2)).T


def test_nuisance_bound_holds_globally():
    """I(H;R) <= I(H;X) - I(H;Y) on random tables where Y and R are independent (the form that Remark 3.1 uses)."""
    stream = torch.Generator().manual_seed(0)

    def table(*shape):
        logits = torch.randn(*shape, generator=stream, dtype=EXACT) * 3
        return logits.softmax(-1)

    for _ in range(500):
        h_r, h_x, h_y = joints(table(3), table(1, 4).expand(3, 4), table(3, 4, 6), table(6, 5))
        slack = mutual_information(h_x) - mutual_information(h_y) - mutual_information(h_r)
        assert slack > -1e-12


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.9])
def test_nuisance_bound_fails_inside_a_client(rho):
    """X = (Y, R) and H = R, where R agrees with Y more often than by chance: violated by exactly I(R;Y)."""
    classes = 3
    py = torch.full((classes,), 1 / classes, dtype=EXACT)
    pr_y = rho * torch.eye(classes, dtype=EXACT) + (1 - rho) / classes
    px = torch.zeros(classes, classes, classes**2, dtype=EXACT)
    ph = torch.zeros(classes**2, classes, dtype=EXACT)
    for y, r in itertools.product(range(classes), repeat=2):
        px[y, r, classes * y + r] = 1
        ph[classes * y + r, r] = 1
    h_r, h_x, h_y = joints(py, pr_y, px, ph)
    excess = mutual_information(h_r) - (mutual_information(h_x) - mutual_information(h_y))
    torch.testing.assert_close(excess, mutual_information(py[:, None] * pr_y))
    assert excess > 0


def test_a_cue_that_two_clients_share_is_not_independent_of_the_label():
    counts = torch.tensor([[30, 0, 10], [0, 20, 20], [10, 20, 10]])
    shared, entropy = cue_over_clients(counts, [0, 1])
    total, by_hand = 120, 0.0  # a loop over (cue, label), cue 3 being "none"
    for cue in range(4):
        for label in range(3):
            joint = int(counts[2, label]) if cue == 3 else (cue == label) * int(counts[:2, label].sum())
            of_cue = int(counts[2].sum()) if cue == 3 else int(counts[:2, cue].sum())
            if joint:
                by_hand += joint / total * math.log2(joint * total / (of_cue * int(counts[:, label].sum())))
    assert shared == pytest.approx(by_hand) and entropy == pytest.approx(math.log2(3))
    assert cue_over_clients(counts, [])[0] == 0 < cue_over_clients(counts, [0])[0] < shared
    assert cue_over_clients(counts, [0, 1, 2])[0] == pytest.approx(entropy)
