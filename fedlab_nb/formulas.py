"""What the papers' methods must cost in bytes, as closed formulas, against which the ledger is checked.

d is the number of float32 numbers in one model's state, S = 4 d its bytes; M clients, R rounds, C classes. Every
function gives the bytes of *one client* unless it says "all". Byte counts are exact integers; a MiB is 2^20 bytes,
which is what the papers' "MB" are. Nothing here trains, sends or builds anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

FLOAT = 4  # bytes of a float32 number
MIB = 2**20


def state_bytes(d: int) -> int:
    """S = 4 d: one model in float32, one way."""
    return FLOAT * d


def one_shot_bytes(d: int) -> int:
    """2 S, down and up: the initial model comes down, the trained one goes up (what FENS calls OFL)."""
    return 2 * state_bytes(d)


def iterative_bytes(d: int, rounds: int, per_direction: int = 1) -> int:
    """2 S R, down and up, with `per_direction` model-sized messages each way (1: FedAvg and FedAdam, 2: SCAFFOLD)."""
    return 2 * per_direction * state_bytes(d) * rounds


def fens_bytes(d: int, clients: int, q: int, rounds: int, bits: int = 8, kept: int = 0, tensors: int = 0) -> int:
    """FENS, down and up: S + S + M (ensemble entry) + 2 * 4 q * T, where an entry is one quantised model.

    The paper prints ratios and no formula; this is the simple accounting that gives all of them.

    q: numbers of the aggregator; `rounds`: T of its training; bits = 32 means an ensemble that is not quantised. An
    entry is bits (d - kept) / 8 + 4 kept + 4 tensors bytes: `kept` of the d numbers stay float32 (biases, batch norm),
    and each of `tensors` quantised tensors has a float32 scale. The paper neglects both, hence the defaults. Exact
    where every tensor's codes fill whole bytes (always at 8 bits), otherwise up to one byte a tensor and client too
    low.
    """
    entry = -(-bits * (d - kept) // 8) + FLOAT * (kept + tensors)
    return one_shot_bytes(d) + clients * entry + 2 * state_bytes(q) * rounds


def fens_ratio(d: int, clients: int, q: int, rounds: int, bits: int = 8, kept: int = 0, tensors: int = 0) -> float:
    """`fens_bytes / one_shot_bytes`; with the defaults 1 + M/8 + q T / d.

    FENS costs less than an R-round method only while R is larger than this.
    """
    return fens_bytes(d, clients, q, rounds, bits, kept, tensors) / one_shot_bytes(d)


def triangle(d: int) -> int:
    """d (d + 1) / 2: the numbers of a symmetric d x d matrix that need sending."""
    return d * (d + 1) // 2


def fedlpa_floats(weights: Iterable[Sequence[int]], bias: bool = True) -> int:
    """FedLPA's upload in numbers: every layer's weights and the upper triangles of its two Kronecker factors.

    `weights`: the weight shapes, (out, in) of a linear layer or (out, in, height, breadth) of a convolution. With a
    bias its factors are A of side in * height * breadth + 1 and B of side out. 111,484 for the five-layer CNN on
    1x28x28 images.
    """
    floats = 0
    for out, *fan in weights:
        inputs = prod(fan) + bool(bias)
        floats += out * inputs + triangle(inputs) + triangle(out)
    return floats


def fedlpa_bytes(weights: Iterable[Sequence[int]], bias: bool = True) -> int:
    """FedLPA's upload, one way: 4 `fedlpa_floats`."""
    return FLOAT * fedlpa_floats(weights, bias)


def diagonal_fisher_bytes(d: int) -> int:
    """Upload, one way, of the weights and a diagonal Fisher matrix: 2 S (Fisher merging)."""
    return 2 * state_bytes(d)


def fisher_merge_bytes(d: int, parameters: int | None = None) -> int:
    """Fisher merging, down and up: S down, S and one Fisher number a parameter up (`parameters`: d without buffers)."""
    return 2 * state_bytes(d) + state_bytes(d if parameters is None else parameters)


def regmean_bytes(d: int, weights: Iterable[Sequence[int]], bias: bool = True) -> int:
    """RegMean, down and up: 2 S and the upper triangle of every layer's input moments (`weights`: see
    fedlpa_floats)."""
    return 2 * state_bytes(d) + FLOAT * sum(triangle(prod(fan) + bool(bias)) for _, *fan in weights)


def fedcvae_bytes(decoder: int, classes: int) -> int:
    """FedCVAE-Ens, up only: the decoder's numbers and the class counts (int32)."""
    return state_bytes(decoder) + FLOAT * classes


def logit_bytes(samples: int, classes: int) -> int:
    """One way: the logits or probabilities [N, C] of N public samples (DS-FL)."""
    return FLOAT * samples * classes


def dsfl_bytes(samples: int, classes: int, rounds: int, image: int = 0) -> int:
    """DS-FL, down and up: 4 N C (2 R - 1), and N images of `image` numbers.

    R times up and R - 1 times down, since the last targets stay at the server.
    """
    return logit_bytes(samples, classes) * (2 * rounds - 1) + FLOAT * samples * image


def sparse_bytes(d: int, kept: int, ternary: bool = False) -> int:
    """One message of compressed FedAvg that keeps over 38 % of d numbers, so that their positions are a bitmap.

    d bits, then 2 bytes a kept number, or a bit and one float32 for all (ternary). FENS counts 2 bytes for d / 2
    numbers and nothing for where they belong: d bytes, a quarter.
    """
    return -(-d // 8) + (-(-kept // 8) + FLOAT if ternary else 2 * kept)


def fedet_numbers(models: Iterable[int]) -> int:
    """Fed-ET's cost, all clients: 2 sum n_M(k), the numbers of each chosen client's small model, down and up.

    `models`: n_M(k), once for every time that a client is chosen. The large model and the public data are never sent.
    """
    return 2 * sum(models)


def fedet_bytes(models: Iterable[int]) -> int:
    """Fed-ET, all clients and rounds, down and up: 4 `fedet_numbers`."""
    return FLOAT * fedet_numbers(models)


def fusefl_adaptor_floats(channels: Sequence[int], clients: int) -> int:
    """Numbers of one client's 1x1 adaptors: M c^2 + c at each border of c channels (M c inputs, c outputs, a bias)."""
    return sum(clients * c * c + c for c in channels)


def fusefl_storage_bytes(
    blocks: Sequence[int], channels: Sequence[int], head: int, clients: int, adaptor: str = "conv"
) -> int:
    """FuseFL's fused model, all clients: 4 [M sum_k P_k + head + M sum_k (M c_k^2 + c_k)].

    `blocks`: P_k, the parameters of one client's K blocks; `channels`: c_k at the K - 1 borders between them;
    `head`: C d + C of the one classifier; the last term is 0 for adaptor = "average". The paper's communication table
    prints M times this.
    """
    adaptors = fusefl_adaptor_floats(channels, clients) if adaptor == "conv" else 0
    return FLOAT * (clients * (sum(blocks) + adaptors) + head)


def fusefl_upload_bytes(
    blocks: Sequence[int], channels: Sequence[int], head: int, clients: int, adaptor: str = "conv"
) -> int:
    """FuseFL, one way, over all its rounds: a client sends each of its blocks, its adaptors and its classifier once."""
    adaptors = fusefl_adaptor_floats(channels, clients) if adaptor == "conv" else 0
    return FLOAT * (sum(blocks) + adaptors + head)


def fusefl_download_bytes(
    blocks: Sequence[int], channels: Sequence[int], clients: int, adaptor: str = "conv", calibrated: bool = True
) -> int:
    """FuseFL, one way, over all its rounds: the other M - 1 clients' blocks and adaptors, after every round.

    The last block comes down for CCVR's statistics only (`calibrated`).
    """
    kept = len(blocks) if calibrated else len(blocks) - 1
    channels = channels[: max(0, kept - 1)]
    return (clients - 1) * fusefl_upload_bytes(blocks[:kept], channels, 0, clients, adaptor)


def ccvr_bytes(features: int, classes: int, symmetric: bool = False) -> int:
    """Upload of CCVR's class means and covariances: 4 C (d + d^2), or 4 C (d + d (d + 1) / 2) as upper triangles."""
    covariance = triangle(features) if symmetric else features * features
    return FLOAT * classes * (features + covariance)
