"""The accountant of noisy votes against integrals of the noise itself and a second implementation in plain numbers."""

import math

import numpy as np
import pytest
import torch

from fedlab_nb.methods.parts.privacy import (
    any_votes,
    change_bound,
    laplace,
    measured_epsilon,
    moments_epsilon,
    simple_epsilon,
    these_votes,
)

POINTS = np.linspace(-40, 40, 200_001)  # in units of 1/γ


def answers(votes, gamma):
    """P(argmax of votes + Lap(1/γ) = c) for each c, by integrating over the winner's noisy count."""
    grid = POINTS / gamma
    distance = [grid - v for v in votes]
    density = [gamma / 2 * np.exp(-gamma * np.abs(d)) for d in distance]
    below = [np.where(d < 0, 0.5 * np.exp(gamma * d), 1 - 0.5 * np.exp(-gamma * d)) for d in distance]
    others = [np.prod([b for j, b in enumerate(below) if j != c], 0) for c in range(len(votes))]
    return np.array([np.trapezoid(f * o, grid) for f, o in zip(density, others, strict=True)])


def moment(p, q, order):
    """log of the order-th moment of the privacy loss of p against q."""
    return math.log(float((p * (p / q) ** order).sum()))


NEIGHBOURS = [((6, 2, 2), (4, 4, 2)), ((8, 2, 0), (6, 2, 2)), ((4, 4, 2), (2, 6, 2)), ((20, 0, 0), (18, 2, 0))]
COUNTS = torch.tensor([[6, 2, 2], [8, 2, 0], [4, 4, 2], [20, 0, 0]])


def test_the_probabilities_of_the_integral_are_those_of_the_noise():
    noisy = COUNTS[0] + laplace((200_000, 3), 0.3, torch.Generator().manual_seed(0))
    shares = torch.bincount(noisy.argmax(1)) / 200_000
    assert shares.numpy() == pytest.approx(answers(COUNTS[0].numpy(), 0.3), abs=0.005)


def test_noise_has_the_scale_that_is_promised_and_leaves_with_gamma():
    draws = laplace((400_000,), 0.25, torch.Generator().manual_seed(1))
    assert draws.dtype == torch.float64 and draws.abs().mean() == pytest.approx(4, rel=0.01)
    assert draws.var() == pytest.approx(32, rel=0.02) and draws.mean() == pytest.approx(0, abs=0.05)
    assert laplace((1000,), 1e6, torch.Generator().manual_seed(1)).abs().max() < 1e-4


@pytest.mark.parametrize("gamma", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("votes", range(4))
def test_no_moment_of_the_true_loss_is_above_its_bounds(gamma, votes):
    """Two votes of a party move: s = 2, ε_0 = 2 s γ."""
    here, there = (answers(v, gamma) for v in NEIGHBOURS[votes])
    assert here.sum() == pytest.approx(1, abs=1e-4)
    per_query = 2 * 2 * gamma
    assert np.abs(np.log(here / there)).max() <= per_query + 1e-6
    orders = torch.tensor([1.0, 2, 3, 5, 8, 13], dtype=torch.float64)
    q = change_bound(COUNTS[[votes]], gamma)
    assert 1 - here[np.argmax(NEIGHBOURS[votes][0])] <= float(q) + 1e-6
    bounds = zip(any_votes(per_query, orders), these_votes(q, per_query, orders)[0], strict=True)
    for order, (general, own) in zip(orders.tolist(), bounds, strict=True):
        true = max(moment(here, there, order), moment(there, here, order) if votes == 3 else 0)
        assert moment(here, there, order) <= float(general) + 1e-6 and true <= float(general) + 1e-6
        assert moment(here, there, order) <= float(own) + 1e-6


def by_hand(per_query, queries, delta):
    """ε of the moments for real l, from the closed form and a search in small steps."""

    def spent(order):
        whole = queries * min(per_query**2 * order * (order + 1) / 2, per_query * order)
        return (whole + math.log(1 / delta)) / order

    return min(per_query * queries, *(spent(math.exp(i / 1000)) for i in range(15_000)))


SPENT = [(2, 0.05, 200), (1, 0.1, 100), (2, 0.01, 1000), (1, 0.5, 3), (3, 1.0, 50)]


@pytest.mark.parametrize(("s", "gamma", "queries"), SPENT)
def test_epsilon_against_another_implementation(s, gamma, queries):
    per_query = 2 * s * gamma
    assert simple_epsilon(per_query, queries) == pytest.approx(2 * s * gamma * queries)
    epsilon = moments_epsilon(per_query, queries, 1e-5)
    assert epsilon == pytest.approx(by_hand(per_query, queries, 1e-5), rel=0.02)
    assert epsilon >= by_hand(per_query, queries, 1e-5) - 1e-9  # whole l cannot do better than real ones
    assert epsilon <= simple_epsilon(per_query, queries)


def test_moments_pay_where_queries_are_many_and_cheap():
    assert moments_epsilon(0.1, 1000, 1e-5) < 0.4 * simple_epsilon(0.1, 1000)
    assert moments_epsilon(4.0, 2, 1e-5) == simple_epsilon(4.0, 2)


def test_epsilon_of_the_very_votes_in_plain_numbers():
    gamma, per_query, delta = 0.5, 1.0, 1e-5
    votes = [[9, 1, 0], [10, 0, 0], [4, 3, 3], [30, 0, 0], [5, 5, 0]] * 4
    best = per_query * len(votes)
    for order in range(1, 257):
        whole = 0.0
        for row in votes:
            q = sum((2 + gamma * (max(row) - n)) / (4 * math.exp(gamma * (max(row) - n))) for n in row)
            q = min(1, q - 0.5)  # the winner's own term is 2/4
            plain = min(per_query**2 * order * (order + 1) / 2, per_query * order)
            e = math.exp(per_query)
            if q < (e - 1) / (e * e - 1):
                own = (1 - q) * ((1 - q) / (1 - e * q)) ** order + q * math.exp(per_query * order)
                plain = min(plain, math.log(own))
            whole += plain
        best = min(best, (whole + math.log(1 / delta)) / order)
    assert measured_epsilon(torch.tensor(votes), gamma, per_query, delta) == pytest.approx(best, rel=1e-9)


def test_agreement_is_cheap_and_never_dearer_than_the_promise():
    agreed, split = torch.tensor([[40, 0, 0]] * 100), torch.tensor([[14, 13, 13]] * 100)
    promise = moments_epsilon(0.4, 100, 1e-5)
    assert measured_epsilon(agreed, 0.2, 0.4, 1e-5) < 0.5 * promise
    assert measured_epsilon(split, 0.2, 0.4, 1e-5) == pytest.approx(promise)
