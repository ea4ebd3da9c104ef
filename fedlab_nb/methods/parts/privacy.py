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
    ends = torch.tensor([1 / (2 * sigma), -1 / (2 * sigma)], dtype=torch.float64) - epsilon * sigma
    first, second = torch.special.log_ndtr(
        ends
    ).tolist()  # the logarithm of the normal distribution
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
    while (
        low < (middle := (low + high) / 2) < high
    ):  # until no double lies between; `high` is always enough
        low, high = (low, middle) if delta_of(middle, epsilon) <= delta else (middle, high)
    return sensitivity * math.sqrt(queries) * high


def gaussian(like: Tensor, sigma: float, stream: torch.Generator) -> Tensor:
    """N(0, `sigma`²) in the shape, dtype and place of `like`, drawn on the CPU in float64."""
    return (sigma * torch.randn(like.shape, generator=stream, dtype=torch.float64)).to(like)


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


def secure_sum(
    link: Link, values: Sequence[Tensor], streams: Callable[[int], torch.Generator], phase: str
) -> Tensor:
    """Σ_k of the clients' float64 vectors `values` `[M][n]`, each rounded to 2^-32: `[n]`, float64.

    On `link`: 32 bytes up and 32 (M - 1) down a client for the keys (phase "keys"), then 8 n up (`phase`). `streams`:
    client k's source of its secret. RunError where a sum would not fit into 64 bits.
    """
    return opened(masked(link, values, streams, phase))


def masked(
    link: Link, values: Sequence[Tensor], streams: Callable[[int], torch.Generator], phase: str
) -> list[Tensor]:
    """What the server receives: int64 `[M][n]`."""
    clients = range(len(values))
    limit = 2.0 ** (63 - FRACTION) / len(values)
    if not bool(torch.stack([value.abs().max() for value in values]).max() < limit):
        raise RunError(
            f"A number to sum securely is not below {limit:g}; scale the samples down, or set secure=false."
        )
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
    bits = torch.empty(like.shape, dtype=torch.int64).random_(
        -(2**63), None, generator=generator(seed, "mask")
    )
    return bits.to(like.device)


def _packed(value: int) -> Tensor:
    return torch.tensor(list(value.to_bytes(KEY, "little")), dtype=torch.uint8)


def _whole(key: Tensor) -> int:
    return int.from_bytes(bytes(key.tolist()), "little")
