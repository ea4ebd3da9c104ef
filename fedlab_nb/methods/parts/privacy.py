"""Differential privacy with Gaussian noise: how much noise a promise (epsilon, delta) needs, and what a noise promises.

Two sets of samples are neighbours if one has one sample more. A release is (ε, δ)-private if no set of its outcomes is
more than e^ε times as likely for the one than for its neighbour, up to δ. Sums that one sample moves by at most Δ
(Euclidean length, all sums together), each with noise N(0, σ²), are so exactly for

    δ ≥ Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ)          (Balle & Wang, ICML 2018, Theorem 8),

the *analytic Gaussian mechanism*. The older rule σ = Δ √(2 ln(1.25/δ))/ε is proven for ε below 1 only. A release that
is repeated on the same samples spends more: `queries` of them are as one with Δ √queries, which is exact for Gaussian
noise (Dong, Roth & Su, JRSS-B 2022, corollary 2).

The noise here is drawn from floating-point numbers and a repeatable seed: right for a lesson, not for real patients.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ...errors import number

STEPS = 200  # halvings; more than a double can tell apart


def delta_of(sigma: float, epsilon: float, *, queries: int = 1, sensitivity: float = 1.0) -> float:
    """The smallest δ for which `queries` releases with noise `sigma` are (`epsilon`, δ)-private (Theorem 8)."""
    if sigma == 0:
        return 1.0
    sigma = sigma / (sensitivity * math.sqrt(queries))
    first, second = (_log_normal(sign / (2 * sigma) - epsilon * sigma) for sign in (1, -1))
    return max(0.0, math.exp(first) - math.exp(min(epsilon + second, 0.0)))


def sigma_for(epsilon: float, delta: float, *, queries: int = 1, sensitivity: float = 1.0) -> float:
    """The smallest σ for which `queries` releases are (ε, δ)-private; 0 for ε = ∞. UsageError unless ε > 0, 0 < δ < 1.

    >>> round(sigma_for(1.0, 1e-5), 3)
    3.731
    """
    if epsilon == math.inf:
        return 0.0
    number("epsilon", epsilon, 0, open_low=True)
    number("delta", delta, 1e-300, 1 - 1e-9)

    def enough(sigma: float) -> bool:
        return delta_of(sigma, epsilon) <= delta

    return sensitivity * math.sqrt(queries) * _least(enough)


def epsilon_of(sigma: float, delta: float, *, queries: int = 1, sensitivity: float = 1.0) -> float:
    """The accountant: the smallest ε for which `queries` releases with noise `sigma` are (ε, `delta`)-private; ∞
    without noise."""
    if sigma == 0:
        return math.inf

    def enough(epsilon: float) -> bool:
        return delta_of(sigma, epsilon, queries=queries, sensitivity=sensitivity) <= delta

    return 0.0 if enough(0.0) else _least(enough)


def gaussian(like: Tensor, sigma: float, stream: torch.Generator) -> Tensor:
    """N(0, `sigma`²) in the shape, dtype and place of `like`, drawn on the CPU in float64."""
    return (sigma * torch.randn(like.shape, generator=stream, dtype=torch.float64)).to(like)


def _least(enough: Callable[[float], bool]) -> float:
    """The smallest positive number that is `enough`, which no number below it is; the answer is never too small."""
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _log_normal(x: float) -> float:
    """ln Φ(x), also where Φ(x) underflows."""
    return float(torch.special.log_ndtr(torch.tensor(x, dtype=torch.float64)))
