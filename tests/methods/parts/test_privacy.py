"""The analytic Gaussian mechanism against the privacy loss itself, integrated and convolved."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from fedlab_nb.comm import Link
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.methods.fedkt import (
    bound_probability_of_changed_winner,
    compute_data_dependent_epsilon,
    compute_data_dependent_log_moments,
    compute_worst_case_epsilon,
    compute_worst_case_log_moments,
)
from fedlab_nb.methods.parts.privacy import (
    draw_gaussian_noise,
    find_smallest_delta_at_sensitivity_1,
    find_smallest_noise_sigma,
    send_and_sum_masked_vectors,
    send_masked_vectors,
    sum_masked_vectors,
)
from fedlab_nb.rng import draw_laplace_noise_of_scale_1


def integrated_delta(sigma, epsilon):
    """δ = ∫ max(p − e^ε q, 0), where p and q are the outcomes' densities with and without the sample; one query."""
    p, q = stats.norm(1, sigma), stats.norm(0, sigma)
    edge = 0.5 + epsilon * sigma**2  # above it p > e^ε q
    return integrate.quad(
        lambda t: p.pdf(t) - math.exp(epsilon) * q.pdf(t), edge, edge + 40 * sigma, epsabs=1e-14
    )[0]


def convolved_delta(sigma, queries, epsilon, points=2**15):
    """The same for several queries: the loss ln(p/q) of one query on a grid, convolved with itself, query by query."""
    mean, width = (
        1 / (2 * sigma**2),
        1 / sigma,
    )  # of one query's loss under p, a sum of which is wanted
    far = queries * mean + 12 * width * math.sqrt(queries) + 1
    step = 2 * far / points
    loss = (np.arange(points) - points // 2) * step
    one = np.diff(
        stats.norm(mean, width).cdf(np.concatenate([loss - step / 2, loss[-1:] + step / 2]))
    )
    many = np.fft.ifft(np.fft.fft(np.fft.ifftshift(one)) ** queries).real
    many = np.fft.fftshift(many)
    above = loss > epsilon
    return float((many[above] * (1 - np.exp(epsilon - loss[above]))).sum())


@pytest.mark.parametrize(
    ("sigma", "epsilon"), [(0.7, 0.5), (1.0, 3.0), (3.73, 1.0), (4.0, 0.0), (0.3, 8.0)]
)
def test_delta_is_the_integral_of_the_densities(sigma, epsilon):
    assert find_smallest_delta_at_sensitivity_1(sigma, epsilon) == pytest.approx(
        integrated_delta(sigma, epsilon), rel=1e-6, abs=1e-13
    )


@pytest.mark.parametrize("queries", [1, 7, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-5), (1.0, 1e-3), (4.0, 1e-5)])
def test_the_noise_gives_the_convolved_loss_that_delta(epsilon, delta, queries):
    sigma = find_smallest_noise_sigma(epsilon, delta, query_count=queries)
    assert convolved_delta(sigma, queries, epsilon) == pytest.approx(delta, rel=5e-3)
    assert convolved_delta(sigma, queries, 0.97 * epsilon) > 1.02 * delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (5.0, 1e-5), (50.0, 1e-3)]
)
def test_sigma_is_enough_and_not_more_and_scales_with_the_sensitivity(epsilon, delta):
    sigma = find_smallest_noise_sigma(epsilon, delta)
    assert (
        find_smallest_delta_at_sensitivity_1(sigma, epsilon)
        <= delta
        < find_smallest_delta_at_sensitivity_1(0.999 * sigma, epsilon)
    )
    assert find_smallest_noise_sigma(
        epsilon, delta, sensitivity=3.0, query_count=4
    ) == pytest.approx(6 * sigma, rel=1e-12)


def test_the_ends():
    assert (
        find_smallest_noise_sigma(math.inf, 1e-5) == 0
        and find_smallest_delta_at_sensitivity_1(0, 5.0) == 1
    )
    assert 0 < find_smallest_noise_sigma(1e6, 1e-5) < 1e-2 and math.isfinite(
        find_smallest_delta_at_sensitivity_1(1e-3, 1e6)
    )
    for epsilon, delta in [(0, 1e-5), (-1, 1e-5), (math.nan, 1e-5), (1, 0), (1, 1)]:
        with pytest.raises(UsageError):
            find_smallest_noise_sigma(epsilon, delta)


def test_noise_has_its_spread_and_its_stream():
    one, again = (
        draw_gaussian_noise(torch.zeros(200, 100), 3.0, torch.Generator().manual_seed(1))
        for _ in range(2)
    )
    assert torch.equal(one, again) and one.dtype == torch.float32
    assert one.std().item() == pytest.approx(3, rel=0.02) and abs(one.mean().item()) < 0.1


# --------------------------------------------------------------------------------------------------- test votes privacy
# The accountant of noisy votes against integrals of the noise itself and a second implementation in plain numbers.

POINTS = np.linspace(-40, 40, 200_001)  # in units of 1/γ


def answers(votes, gamma):
    """P(argmax of votes + Lap(1/γ) = c) for each c, by integrating over the winner's noisy count."""
    grid = POINTS / gamma
    distance = [grid - v for v in votes]
    density = [gamma / 2 * np.exp(-gamma * np.abs(d)) for d in distance]
    below = [
        np.where(d < 0, 0.5 * np.exp(gamma * d), 1 - 0.5 * np.exp(-gamma * d)) for d in distance
    ]
    others = [np.prod([b for j, b in enumerate(below) if j != c], 0) for c in range(len(votes))]
    return np.array(
        [integrate.trapezoid(f * o, grid) for f, o in zip(density, others, strict=True)]
    )


def moment(p, q, order):
    """log of the order-th moment of the privacy loss of p against q."""
    return math.log(float((p * (p / q) ** order).sum()))


NEIGHBOURS = [
    ((6, 2, 2), (4, 4, 2)),
    ((8, 2, 0), (6, 2, 2)),
    ((4, 4, 2), (2, 6, 2)),
    ((20, 0, 0), (18, 2, 0)),
]
COUNTS = torch.tensor([[6, 2, 2], [8, 2, 0], [4, 4, 2], [20, 0, 0]])


def test_the_probabilities_of_the_integral_are_those_of_the_noise():
    noisy = (
        COUNTS[0]
        + draw_laplace_noise_of_scale_1((200_000, 3), torch.Generator().manual_seed(0)) / 0.3
    )
    shares = torch.bincount(noisy.argmax(1)) / 200_000
    assert shares.numpy() == pytest.approx(answers(COUNTS[0].numpy(), 0.3), abs=0.005)


def test_noise_has_the_scale_that_is_promised():
    draws = draw_laplace_noise_of_scale_1((400_000,), torch.Generator().manual_seed(1)) / 0.25
    assert draws.dtype == torch.float64 and draws.abs().mean() == pytest.approx(4, rel=0.01)
    assert draws.var() == pytest.approx(32, rel=0.02) and draws.mean() == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("gamma", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("votes", range(4))
def test_no_moment_of_the_true_loss_is_above_its_bounds(gamma, votes):
    """Two votes of a party move: s = 2, ε_0 = 2 s γ."""
    first, second = (answers(v, gamma) for v in NEIGHBOURS[votes])
    assert first.sum() == pytest.approx(1, abs=1e-4)
    per_query = 2 * 2 * gamma
    assert np.abs(np.log(first / second)).max() <= per_query + 1e-6
    orders = torch.tensor([1.0, 2, 3, 5, 8, 13], dtype=torch.float64)
    q = bound_probability_of_changed_winner(COUNTS[[votes]], gamma)
    assert 1 - first[np.argmax(NEIGHBOURS[votes][0])] <= float(q) + 1e-6
    bounds = zip(
        compute_worst_case_log_moments(per_query, orders),
        compute_data_dependent_log_moments(q, per_query, orders)[0],
        strict=True,
    )
    for order, (general, measured) in zip(orders.tolist(), bounds, strict=True):
        true = max(moment(first, second, order), moment(second, first, order) if votes == 3 else 0)
        assert (
            moment(first, second, order) <= float(general) + 1e-6 and true <= float(general) + 1e-6
        )
        assert moment(first, second, order) <= float(measured) + 1e-6


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
    epsilon = compute_worst_case_epsilon(per_query, queries, 1e-5)
    assert epsilon == pytest.approx(by_hand(per_query, queries, 1e-5), rel=0.02)
    assert (
        epsilon >= by_hand(per_query, queries, 1e-5) - 1e-9
    )  # whole l cannot do better than real ones
    assert epsilon <= per_query * queries  # simple composition


def test_epsilon_of_the_very_votes_in_plain_numbers():
    gamma, per_query, delta = 0.5, 1.0, 1e-5
    votes = [[9, 1, 0], [10, 0, 0], [4, 3, 3], [30, 0, 0], [5, 5, 0]] * 4
    best = per_query * len(votes)
    for order in range(1, 257):
        whole = 0.0
        for row in votes:
            q = sum(
                (2 + gamma * (max(row) - n)) / (4 * math.exp(gamma * (max(row) - n))) for n in row
            )
            q = min(1, q - 0.5)  # the winner's own term is 2/4
            plain = min(per_query**2 * order * (order + 1) / 2, per_query * order)
            e = math.exp(per_query)
            if q < (e - 1) / (e * e - 1):
                moment_bound = (1 - q) * ((1 - q) / (1 - e * q)) ** order + q * math.exp(
                    per_query * order
                )
                plain = min(plain, math.log(moment_bound))
            whole += plain
        best = min(best, (whole + math.log(1 / delta)) / order)
    assert compute_data_dependent_epsilon(
        torch.tensor(votes), gamma, per_query, delta
    ) == pytest.approx(best, rel=1e-9)


# ------------------------------------------------------------------------------------------------------ test secure sum
# Masks of pairs: they cancel to the last digit, an upload alone says nothing, and every byte is on the link.

EXACT = torch.float64


def streams(k):
    return torch.Generator().manual_seed(100 + k)


def values(clients, n=40, scale=1000.0):
    stream = torch.Generator().manual_seed(0)
    return [scale * torch.randn(n, generator=stream, dtype=EXACT) for _ in range(clients)]


@pytest.mark.parametrize("clients", [1, 2, 3, 8])
def test_the_masks_cancel_to_the_last_digit(clients):
    rounded = [(v * 2**32).round() for v in values(clients)]
    whole = [sum(int(v[i]) for v in rounded) for i in range(40)]  # Python's own whole numbers
    total = send_and_sum_masked_vectors(Link(clients), values(clients), streams, "x")
    assert total.tolist() == [w / 2**32 for w in whole]
    torch.testing.assert_close(total, sum(values(clients)), rtol=0, atol=clients * 2.0**-33)


def test_one_upload_says_nothing_and_two_together_only_their_sum():
    small = [torch.zeros(4000, dtype=EXACT) for _ in range(3)]
    received = send_masked_vectors(Link(3), small, streams, "x")
    for upload in received:
        shares = upload.double() / 2.0**63
        assert shares.abs().max() > 0.99 and abs(shares.mean()) < 0.05
        assert shares.std().item() == pytest.approx(0.577, rel=0.05)
    assert (received[0] + received[1]).abs().min() > 0  # the third one's masks are still there
    assert not sum_masked_vectors(received).any()


def test_keys_and_numbers_are_counted():
    link = Link(5)
    send_and_sum_masked_vectors(link, values(5, n=7), streams, "masked sums")
    assert link.ledger.by_phase() == {"keys": (5 * 32, 5 * 4 * 32), "masked sums": (5 * 7 * 8, 0)}


@pytest.mark.parametrize("bad", [2.0**31, float("nan"), float("inf")])
def test_what_does_not_fit_is_refused(bad):
    vectors = values(2)
    vectors[1][3] = bad
    with pytest.raises(RunError, match="to sum securely"):
        send_and_sum_masked_vectors(Link(2), vectors, streams, "x")
