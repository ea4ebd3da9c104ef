"""Differential privacy with Gaussian noise: the noise that a guarantee (epsilon, delta) needs, and
the guarantee that a noise gives.

Two sets of samples are neighbours if one has one sample more. A release is (ε, δ)-private if no set
of its outcomes is more than e^ε times as likely for one of them as for the other, except for δ.
Sums that one sample changes by at most Δ (Euclidean length, all sums together), each with noise
N(0, σ²), are (ε, δ)-private exactly for

    δ ≥ Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ)          (Balle & Wang, ICML 2018, Theorem 8),

the *analytic Gaussian mechanism*. The older rule σ = Δ √(2 ln(1.25/δ))/ε is proven only for ε below 1. Repeated
releases
of the same samples spend more: `queries` releases are like one with Δ √queries, which is exact for Gaussian noise
(Dong, Roth & Su, JRSS-B 2022, corollary 2).

The noise here is drawn in floating point from a repeatable seed. This is enough for a lesson, but
not for real patients.
"""

import hashlib
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...comm import Link
from ...errors import RunError, check_number
from ...rng import make_torch_generator
from ...tensor_types import Vector
from ..context import ClientIndex


def find_smallest_delta_at_sensitivity_1(noise_sigma: float, epsilon: float) -> float:
    """The smallest δ for which a release of sensitivity 1 with noise N(0, σ²) is (ε, δ)-private (Theorem 8)."""
    if noise_sigma == 0:
        return 1.0
    ends = (
        torch.tensor([1 / (2 * noise_sigma), -1 / (2 * noise_sigma)], dtype=torch.float64)
        - epsilon * noise_sigma
    )
    first, second = torch.special.log_ndtr(ends).tolist()  # the logarithm of Φ
    return max(0.0, math.exp(first) - math.exp(min(epsilon + second, 0.0)))


def find_smallest_noise_sigma(
    epsilon: float, delta: float, *, query_count: int = 1, sensitivity: float = 1.0
) -> float:
    """The smallest σ that makes `query_count` releases (ε, δ)-private; 0 for ε = ∞.

    UsageError unless ε > 0 and 0 < δ < 1.

    >>> round(find_smallest_noise_sigma(1.0, 1e-5), 3)
    3.731
    """
    if epsilon == math.inf:
        return 0.0
    check_number("epsilon", epsilon, 0, excludes_low=True)
    check_number("delta", delta, 1e-300, 1 - 1e-9)
    low, high = 0.0, 1.0
    while find_smallest_delta_at_sensitivity_1(high, epsilon) > delta:
        low, high = high, 2 * high
    # Bisection until no double lies between; `high` is always enough.
    middle = (low + high) / 2
    while low < middle < high:
        if find_smallest_delta_at_sensitivity_1(middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
        middle = (low + high) / 2
    return sensitivity * math.sqrt(query_count) * high


def draw_gaussian_noise(
    shape_dtype_device_template: Tensor, noise_sigma: float, stream: torch.Generator
) -> Tensor:
    """N(0, `noise_sigma`²) in the shape, dtype and device of `shape_dtype_device_template`, drawn on the
    CPU in float64."""
    noise = torch.randn(shape_dtype_device_template.shape, generator=stream, dtype=torch.float64)
    return (noise_sigma * noise).to(shape_dtype_device_template)


# ----------------------------------------------------------------------------------------------------------- secure sum
# A sum whose summands nobody sees: masks that each pair of clients shares, and that cancel (Bonawitz et al., CCS 2017,
# without its recovery from clients that drop out).
#
# 1. Each client k draws a secret and sends the public key g^secret mod p; the server passes the others' keys on.
#    Clients i and j compute the same number g^(secret_i secret_j) from them (Diffie & Hellman); the server, which sees
#    public keys only, cannot.
# 2. From that number both draw the same mask m_ij. Client i sends v_i + Σ_{j>i} m_ij − Σ_{j<i} m_ij.
# 3. The server adds up. Every mask is there once with + and once with −, and what is left is Σ v_i.
#
# The masks cancel exactly because all numbers are whole and computed modulo 2^64: v is rounded to multiples of
# 2^-32. A number modulo 2^64 with a uniform mask is itself uniform, so one upload reveals nothing. There are
# limits: a client that drops out spoils the sum, one that lies is not noticed, M - 1 clients that collude know the
# vector of the last one, and with two clients each knows the other's. p has 255 bits and the secrets come from the
# run's seed, which is enough for a classroom only.

MaskedVector = Tensor  # int64 [n]
MaskOfVector = Tensor  # int64 [n]
PRIME = 2**255 - 19  # the modulus p
BASE = 2  # g
KEY = 32  # bytes of a key
FRACTION = 32  # binary places of the numbers that are summed


def send_and_sum_masked_vectors(
    link: Link,
    client_vectors: Sequence[Vector],
    make_client_stream: Callable[[ClientIndex], torch.Generator],
    upload_phase: str,
) -> Vector:
    """Σ_k of `client_vectors [M][n]`, float64, each rounded to 2^-32: `[n]`, float64.

    On `link`: 32 bytes up and 32 (M - 1) down a client for the keys (phase "keys"), then 8 n up (`upload_phase`).
    `make_client_stream(k)`: the source of client k's secret. RunError if a sum would not fit into 64 bits.
    """
    return sum_masked_vectors(
        send_masked_vectors(link, client_vectors, make_client_stream, upload_phase)
    )


def send_masked_vectors(
    link: Link,
    client_vectors: Sequence[Vector],
    make_client_stream: Callable[[ClientIndex], torch.Generator],
    upload_phase: str,
) -> list[MaskedVector]:
    """Exchange keys, then send the masked vectors; returns what the server receives, int64 `[M][n]`."""
    clients = range(len(client_vectors))
    limit = 2.0 ** (63 - FRACTION) / len(client_vectors)
    if not bool(torch.stack([value.abs().max() for value in client_vectors]).max() < limit):
        raise RunError(
            f"A number to sum securely is not below {limit:g};"
            " scale the samples down, or set secure=false."
        )
    secrets = []
    public_keys = []
    for k in clients:
        secret = _convert_key_to_int(torch.randint(256, (KEY,), generator=make_client_stream(k)))
        secrets.append(secret)
        public_keys.append(
            link.up(k, _convert_key_to_tensor(pow(BASE, secret, PRIME)), phase="keys")
        )
    received = []
    for k in clients:
        others = {j: public_keys[j] for j in clients if j != k}
        keys = link.down(k, others, phase="keys")
        upload = (client_vectors[k].double() * 2.0**FRACTION).round().long()
        for j, key in keys.items():
            shared = pow(_convert_key_to_int(key), secrets[k], PRIME)
            sign = 1 if j > k else -1
            upload += sign * draw_pairwise_mask(shared, upload)
        received.append(link.up(k, upload, phase=upload_phase))
    return received


def sum_masked_vectors(masked_vectors: Sequence[MaskedVector]) -> Vector:
    """The sum of the masked vectors, in which the masks cancel, as float64."""
    return torch.stack(list(masked_vectors)).sum(0).double() / 2.0**FRACTION


def draw_pairwise_mask(shared_secret: int, shape_device_template: Tensor) -> MaskOfVector:
    """The mask that two clients draw from their shared number: int64, uniform over all values."""
    digest = hashlib.sha256(shared_secret.to_bytes(KEY, "little")).digest()
    seed = int.from_bytes(digest[:8], "big") >> 1
    mask = torch.empty(shape_device_template.shape, dtype=torch.int64)
    mask.random_(-(2**63), None, generator=make_torch_generator(seed, "mask"))
    return mask.to(shape_device_template.device)


def _convert_key_to_tensor(key: int) -> Tensor:
    return torch.tensor(list(key.to_bytes(KEY, "little")), dtype=torch.uint8)


def _convert_key_to_int(key: Tensor) -> int:
    return int.from_bytes(bytes(key.tolist()), "little")
