"""A sum that nobody sees the parts of: masks that each pair of clients shares, and that cancel (Bonawitz et al., CCS
2017, without its recovery from clients that drop out).

1. Each client k draws a secret and sends the public key g^secret mod p; the server passes the others' keys on. Clients
   i and j compute the same number g^(secret_i secret_j) from them (Diffie & Hellman); the server, which sees public
   keys only, does not.
2. From that number both draw the same mask m_ij. Client i sends v_i + Σ_{j>i} m_ij − Σ_{j<i} m_ij.
3. The server adds up. Every mask is there once with + and once with −, and what is left is Σ v_i.

The masks cancel to the last digit because all is done in whole numbers modulo 2^64: v is rounded to multiples of 2^-32.
A number modulo 2^64 with a uniform mask is itself uniform, so one upload says nothing. What is not promised: a client
that drops out spoils the sum, one that lies is not noticed, M - 1 clients that conspire know the last one's part, and
with two clients each knows the other's. p has 255 bits and the secrets come from the run's seed: a classroom's key
exchange.
"""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...comm import Link
from ...errors import RunError
from ...rng import generator

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
    secrets = [int.from_bytes(_bytes(streams(k)), "little") for k in clients]
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
    total = torch.zeros_like(received[0])
    for upload in received:
        total += upload
    return total.double() / 2.0**FRACTION


def mask(shared: int, like: Tensor) -> Tensor:
    """The mask that two clients draw from their shared number: int64, uniform, shaped as `like`."""
    seed = int.from_bytes(hashlib.sha256(_long(shared)).digest()[:8], "big") >> 1
    bits = torch.empty(like.shape, dtype=torch.int64).random_(-(2**63), None, generator=generator(seed, "mask"))
    return bits.to(like.device)


def _bytes(stream: torch.Generator) -> bytes:
    return bytes(torch.randint(256, (KEY,), generator=stream).tolist())


def _long(value: int) -> bytes:
    return value.to_bytes(KEY, "little")


def _packed(value: int) -> Tensor:
    return torch.tensor(list(_long(value)), dtype=torch.uint8)


def _whole(key: Tensor) -> int:
    return int.from_bytes(bytes(key.tolist()), "little")
