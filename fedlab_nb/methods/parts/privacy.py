"""Differential privacy with Gaussian noise: how much noise a promise (epsilon, delta) needs, and what a noise promises.

Two sets of samples are neighbours if one has one sample more. A release is (ε, δ)-private if no set of its outcomes is
more than e^ε times as likely for the one than for its neighbour, up to δ. Sums that one sample moves by at most Δ
(Euclidean length, all sums together), each with noise N(0, σ²), are so exactly for

    δ ≥ Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ)          (Balle & Wang, ICML 2018, Theorem 8),

the *analytic Gaussian mechanism*. The older rule σ = Δ √(2 ln(1.25/δ))/ε is proven for ε below 1 only. A release that
is repeated on the same samples spends more: `queries` of them are as one with Δ √queries, which is exact for Gaussian
noise (Dong, Roth & Su, JRSS-B 2022, corollary 2).

FedKT's ε below is another promise: its neighbours *replace* one client's samples (`server`) or one sample (`client`),
as one more sample would cut a client's data in other places. So its ε and that of afl and gauss cannot be compared.

The noise here is drawn from floating-point numbers and a repeatable seed: right for a lesson, not for real patients.
"""

import hashlib
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...comm import Link
from ...errors import RunError, number
from ...rng import generator


def delta_of(sigma: float, epsilon: float) -> float:
    """The smallest δ for which a release of sensitivity 1 with noise `sigma` is (`epsilon`, δ)-private (Theorem 8)."""
    if sigma == 0:
        return 1.0
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
    low, high = 0.0, 1.0
    while delta_of(high, epsilon) > delta:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:  # until no double lies between; `high` is always enough
        low, high = (low, middle) if delta_of(middle, epsilon) <= delta else (middle, high)
    return sensitivity * math.sqrt(queries) * high


def gaussian(like: Tensor, sigma: float, stream: torch.Generator) -> Tensor:
    """N(0, `sigma`²) in the shape, dtype and place of `like`, drawn on the CPU in float64."""
    return (sigma * torch.randn(like.shape, generator=stream, dtype=torch.float64)).to(like)


def _log_normal(x: float) -> float:
    """ln Φ(x), also where Φ(x) underflows."""
    return float(torch.special.log_ndtr(torch.tensor(x, dtype=torch.float64)))


# -------------------------------------------------------------------------------------------------------- votes privacy
# Noisy votes and what they promise: Laplace noise on counts, and the ε that T noisy votes have spent (PATE).
#
# Papernot et al., *Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data*, ICLR 2017; for
# students of a federation Li, He, Song, *Practical One-Shot Federated Learning for Cross-Silo Setting* (FedKT), 2021.
#
# A query counts votes n_c and answers argmax_c n_c + Lap(1/γ). Where one neighbour (a party, or a sample) moves at most
# v votes from a class to another, a query is ε_0-differentially private with ε_0 = 2 v γ. After T queries:
#
#     simple composition   ε = T ε_0, with δ = 0
#     moments              ε = min over l = 1, 2, … of (Σ_queries α(l) + ln(1/δ)) / l
#
# where α(l) bounds the logarithm of the l-th moment of the privacy loss of one query: ε_0² l (l+1) / 2 for any votes
# (Bun and Steinke 2016; for v = 1 it is PATE's 2 γ² l (l+1)), never more than l ε_0. Where the votes agree, the noise
# hardly ever changes the answer, and α is far smaller (PATE, theorem 3). That bound depends on the votes, so this ε is
# itself not private: it is a measurement, not a promise.

ORDERS = torch.cat([torch.arange(1.0, 257), 2.0 ** torch.arange(9, 21)]).double()  # l that are tried


def laplace(shape: tuple[int, ...], gamma: float, stream: torch.Generator) -> Tensor:
    """Lap(1/γ) noise, float64 on the CPU: the difference of two exponential draws."""
    draws = torch.empty(2, *shape, dtype=torch.float64).exponential_(generator=stream)
    return (draws[0] - draws[1]) / gamma


def simple_epsilon(per_query: float, queries: int) -> float:
    """ε of `queries` answers of ε_0 = `per_query` each, by simple composition; δ is 0."""
    return per_query * queries


def moments_epsilon(per_query: float, queries: int, delta: float) -> float:
    """ε at `delta` of `queries` answers of ε_0 = `per_query` each, whatever the votes were; at most the simple one."""
    return _least_epsilon(queries * any_votes(per_query), delta, simple_epsilon(per_query, queries))


def measured_epsilon(votes: Tensor, gamma: float, per_query: float, delta: float) -> float:
    """ε at `delta` of these very `votes [T, C]` (counts without noise): small where they agree. It is not private."""
    whole = these_votes(change_bound(votes, gamma), per_query).sum(0)
    return _least_epsilon(whole, delta, simple_epsilon(per_query, len(votes)))


def any_votes(per_query: float, orders: Tensor = ORDERS) -> Tensor:
    """α(l) of one query for whatever votes, `[L]`."""
    return torch.minimum(per_query**2 * orders * (orders + 1) / 2, per_query * orders)


def change_bound(votes: Tensor, gamma: float) -> Tensor:
    """q `[T]`: at most so probable is it that noise gives another answer than the most voted class (PATE, lemma 4)."""
    votes = votes.double().cpu()
    top, first = votes.max(1, keepdim=True)
    behind = gamma * (top - votes)
    terms = (2 + behind) / (4 * behind.exp())
    return (terms.sum(1) - terms.gather(1, first)[:, 0]).clamp(max=1.0)


def these_votes(q: Tensor, per_query: float, orders: Tensor = ORDERS) -> Tensor:
    """α(l) `[T, L]` of queries whose answer changes with probability q `[T]` at most (PATE, theorem 3)."""
    q = q[:, None]
    grown = math.exp(min(per_query, 700.0))
    holds = q < (grown - 1) / (grown * grown - 1) if grown > 1 else torch.zeros_like(q, dtype=torch.bool)
    small = torch.where(holds, q, 0.0)
    stays = (1 - small).log() + orders * ((1 - small).log() - (1 - grown * small).log())
    alpha = torch.logaddexp(stays, small.log() + per_query * orders)
    return torch.where(holds, torch.minimum(alpha, any_votes(per_query, orders)), any_votes(per_query, orders))


def _least_epsilon(moments: Tensor, delta: float, simple: float) -> float:
    return min(float(((moments + math.log(1 / delta)) / ORDERS).min()), simple)


# ----------------------------------------------------------------------------------------------------------- secure sum
# A sum that nobody sees the parts of: masks that each pair of clients shares, and that cancel (Bonawitz et al., CCS
# 2017, without its recovery from clients that drop out).
#
# 1. Each client k draws a secret and sends the public key g^secret mod p; the server passes the others' keys on.
# Clients
#    i and j compute the same number g^(secret_i secret_j) from them (Diffie & Hellman); the server, which sees public
#    keys only, does not.
# 2. From that number both draw the same mask m_ij. Client i sends v_i + Σ_{j>i} m_ij − Σ_{j<i} m_ij.
# 3. The server adds up. Every mask is there once with + and once with −, and what is left is Σ v_i.
#
# The masks cancel to the last digit because all is done in whole numbers modulo 2^64: v is rounded to multiples of
# 2^-32. A number modulo 2^64 with a uniform mask is itself uniform, so one upload says nothing. What is not promised: a
# client that drops out spoils the sum, one that lies is not noticed, M - 1 clients that conspire know the last one's
# part, and with two clients each knows the other's. p has 255 bits and the secrets come from the run's seed: a
# classroom's key exchange.

PRIME, BASE, KEY = 2**255 - 19, 2, 32  # modulus, g, bytes of a key
FRACTION = 32  # binary places of what is summed


def secure_sum(link: Link, values: Sequence[Tensor], streams: Callable[[int], torch.Generator], phase: str) -> Tensor:
    """Σ_k of the clients' float64 vectors `values` `[M][n]`, each rounded to 2^-32: `[n]`, float64.

    On `link`: 32 bytes up and 32 (M - 1) down a client for the keys (phase "keys"), then 8 n up (`phase`). `streams`:
    client k's source of its secret. RunError where a sum would not fit into 64 bits.
    """
    return opened(masked(link, values, streams, phase))


def masked(link: Link, values: Sequence[Tensor], streams: Callable[[int], torch.Generator], phase: str) -> list[Tensor]:
    """What the server receives: int64 `[M][n]`."""
    clients = range(len(values))
    limit = 2.0 ** (63 - FRACTION) / len(values)
    if not bool(torch.stack([value.abs().max() for value in values]).max() < limit):
        raise RunError(f"A number to sum securely is not below {limit:g}; scale the samples down, or set secure=false.")
    secrets = [_whole(torch.randint(256, (KEY,), generator=streams(k))) for k in clients]
    public = [link.up(k, _packed(pow(BASE, secrets[k], PRIME)), phase="keys") for k in clients]
    received = []
    for k in clients:
        keys = link.down(k, {j: public[j] for j in clients if j != k}, phase="keys")
        upload = (values[k].double() * 2.0**FRACTION).round().long()
        for j, key in keys.items():
            upload += (1 if j > k else -1) * mask(pow(_whole(key), secrets[k], PRIME), upload)
        received.append(link.up(k, upload, phase=phase))
    return received


def opened(received: Sequence[Tensor]) -> Tensor:
    """The sum of the masked vectors, masks cancelled, as float64."""
    return torch.stack(list(received)).sum(0).double() / 2.0**FRACTION


def mask(shared: int, like: Tensor) -> Tensor:
    """The mask that two clients draw from their shared number: int64, uniform, shaped as `like`."""
    seed = int.from_bytes(hashlib.sha256(shared.to_bytes(KEY, "little")).digest()[:8], "big") >> 1
    bits = torch.empty(like.shape, dtype=torch.int64).random_(-(2**63), None, generator=generator(seed, "mask"))
    return bits.to(like.device)


def _packed(value: int) -> Tensor:
    return torch.tensor(list(value.to_bytes(KEY, "little")), dtype=torch.uint8)


def _whole(key: Tensor) -> int:
    return int.from_bytes(bytes(key.tolist()), "little")
