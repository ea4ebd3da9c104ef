"""What the papers' methods must cost in bytes, as closed formulas: the tests hold the ledger to them.

d is the number of float32 numbers in one model's state, S = 4 d its bytes; M clients, T rounds, C classes. Every
function gives the bytes of *one client* unless it says "all". What the package itself shows is in `comm/formulas.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from fedlab_nb.comm.formulas import FLOAT, count_model_bytes_one_way


def count_triangle_entries(d: int) -> int:
    """d (d + 1) / 2: the numbers of a symmetric d x d matrix that need sending."""
    return d * (d + 1) // 2


def count_fusefl_adaptor_numbers(channels: Sequence[int], clients: int) -> int:
    """Numbers of one client's 1x1 adaptors: M r^2 + r at each border of r channels (M r inputs, r outputs, a bias)."""
    return sum(clients * c * c + c for c in channels)


def count_ccvr_bytes(features: int, classes: int, symmetric: bool = False) -> int:
    """Upload of CCVR's class means and covariances: 4 C (d + d^2), or 4 C (d + d (d + 1) / 2) as upper triangles."""
    covariance = count_triangle_entries(features) if symmetric else features * features
    return FLOAT * classes * (features + covariance)


def count_fisher_merge_bytes(d: int, parameters: int | None = None) -> int:
    """Fisher merging, down and up: S down, S and one Fisher number a parameter up (`parameters`: d without buffers)."""
    fisher_numbers = d if parameters is None else parameters
    return 2 * count_model_bytes_one_way(d) + count_model_bytes_one_way(fisher_numbers)


def count_regmean_bytes(d: int, weights: Iterable[Sequence[int]], bias: bool = True) -> int:
    """RegMean, down and up: 2 S and the upper triangle of every layer's input moments.

    `weights`: the weight shapes, (out, in) of a linear layer or (out, in, height, breadth) of a convolution.
    """
    moments = sum(count_triangle_entries(prod(inputs) + bool(bias)) for _, *inputs in weights)
    return 2 * count_model_bytes_one_way(d) + FLOAT * moments


def count_fedcvae_bytes(decoder: int, classes: int) -> int:
    """FedCVAE-Ens, up only: the decoder's numbers and the class counts (int32)."""
    return count_model_bytes_one_way(decoder) + FLOAT * classes


def count_distilled_bytes(images: int, pixels: int, state: int = 0) -> int:
    """Distilled data: images of p numbers and their labels (int32) up; the initial model down where one is trained."""
    return FLOAT * images * (pixels + 1) + count_model_bytes_one_way(state)


def count_afl_bytes(d: int, classes: int, number: int = FLOAT) -> int:
    """AFL, up only: one triangle of the moments of d features (the appended 1 among them), and the classes' sums."""
    return number * (count_triangle_entries(d) + d * classes)


def count_secure_afl_bytes_up_and_down(d: int, classes: int, clients: int) -> tuple[int, int]:
    """AFL with masks, (up, down): whole numbers of 8 bytes and a key of 32 up, the others' keys down."""
    return count_afl_bytes(d, classes, 8) + 32, 32 * (clients - 1)


def count_logit_bytes_one_way(samples: int, classes: int) -> int:
    """One way: the logits or probabilities [N, C] of N public samples (DS-FL)."""
    return FLOAT * samples * classes


def count_dsfl_bytes(samples: int, classes: int, rounds: int, image: int = 0) -> int:
    """DS-FL, down and up: 4 N C (2 T - 1), and N images of `image` numbers.

    T times up and T - 1 times down, since the last targets stay at the server.
    """
    return count_logit_bytes_one_way(samples, classes) * (2 * rounds - 1) + FLOAT * samples * image


def count_sparse_message_bytes(d: int, kept: int, ternary: bool = False) -> int:
    """One message of compressed FedAvg that keeps over 38 % of d numbers, so that their positions are a bitmap.

    d bits, then 2 bytes a kept number, or a bit and one float32 for all (ternary). FENS counts 2 bytes for d / 2
    numbers and nothing for where they belong: d bytes, a quarter.
    """
    bitmap = -(-d // 8)
    values = -(-kept // 8) + FLOAT if ternary else 2 * kept
    return bitmap + values


def count_fedet_numbers_of_all_clients(models: Iterable[int]) -> int:
    """Fed-ET's cost, all clients: 2 sum n_M(k), the numbers of each chosen client's small model, down and up.

    `models`: n_M(k), once for every time that a client is chosen. The large model and the public data are never sent.
    """
    return 2 * sum(models)


def count_fedet_bytes_of_all_clients(models: Iterable[int]) -> int:
    """Fed-ET, all clients and rounds, down and up: 4 `count_fedet_numbers_of_all_clients`."""
    return FLOAT * count_fedet_numbers_of_all_clients(models)


def count_fusefl_storage_bytes_of_all_clients(
    blocks: Sequence[int], channels: Sequence[int], head: int, clients: int, adaptor: str = "conv"
) -> int:
    """FuseFL's fused model, all clients: 4 [M sum_k P_k + head + M sum_k (M c_k^2 + c_k)].

    `blocks`: P_k, the parameters of one client's K blocks; `channels`: c_k at the K - 1 borders between them;
    `head`: C d + C of the one classifier; the last term is 0 for adaptor = "average". The paper's communication table
    prints M times this.
    """
    adaptors = count_fusefl_adaptor_numbers(channels, clients) if adaptor == "conv" else 0
    return FLOAT * (clients * (sum(blocks) + adaptors) + head)


def count_fusefl_upload_bytes(
    blocks: Sequence[int], channels: Sequence[int], head: int, clients: int, adaptor: str = "conv"
) -> int:
    """FuseFL, one way, over all its rounds: a client sends each of its blocks, its adaptors and its classifier once."""
    adaptors = count_fusefl_adaptor_numbers(channels, clients) if adaptor == "conv" else 0
    return FLOAT * (sum(blocks) + adaptors + head)


def count_fusefl_download_bytes(
    blocks: Sequence[int],
    channels: Sequence[int],
    clients: int,
    adaptor: str = "conv",
    calibrated: bool = True,
) -> int:
    """FuseFL, one way, over all its rounds: the other M - 1 clients' blocks and adaptors, after every round.

    The last block comes down for CCVR's statistics only (`calibrated`).
    """
    sent_down = len(blocks) if calibrated else len(blocks) - 1
    channels = channels[: max(0, sent_down - 1)]
    return (clients - 1) * count_fusefl_upload_bytes(
        blocks[:sent_down], channels, 0, clients, adaptor
    )


def count_matching_bytes_up_and_down(
    d: int, classes: int = 0, own_start: bool = False
) -> tuple[int, int]:
    """Neuron matching, up and down: the model (PFNM: and C class counts, int32); the start, unless each has its own."""
    model = count_model_bytes_one_way(d)
    return model + FLOAT * classes, 0 if own_start else model


def count_trimmed_change_bytes(positions: Sequence[int], d: int, keep: float) -> int:
    """TIES' trimmed upload of `positions` (ascending) among d parameters: 16 bits an entry, and gaps in Golomb code.

    A gap g takes g // 2^b ones and a zero, and b bits; the gap behind the last entry takes ones alone.
    """
    b = 0
    while keep < 1 and (1 - keep) ** (2**b) > 0.6180339887498949:  # Golomb's best parameter 2^b
        b += 1
    ends = [*positions, d]
    gaps = [end - start - 1 for start, end in zip([-1, *positions], ends, strict=True)]
    unary = sum(g >> b for g in gaps) + len(positions)
    return -(-unary // 8) + -(-b * len(positions) // 8) + 2 * len(positions)


def count_gauss_bytes(features: int, held: int, classes: int, head: str) -> int:
    """Gaussian heads, up only: the counts of all classes; of each class `held` a sum of d features; second moments.

    `means`: none; `nb`: d a class held; `lda`, `fedcgs`: one triangle; `qda`: a triangle a class held. With d = 256 and
    10 classes held of 10: 20,520 (nb), 141,864 (lda), 1,326,120 (qda).
    """
    matrix = count_triangle_entries(features)
    second = {
        "means": 0,
        "nb": held * features,
        "lda": matrix,
        "fedcgs": matrix,
        "qda": held * matrix,
    }[head]
    return FLOAT * (classes + held * features + second)


def count_fedpft_bytes(
    features: int, components: Iterable[int], classes: int, covariance: str
) -> int:
    """FedPFT, up only: the counts of all classes and, a component, its weight, its mean and its spread.

    `components`: of each class that is sent. One diagonal Gaussian of 64 features has 4 (1 + 2 * 64) = 516 bytes.
    """
    spread = {
        "none": 0,
        "spherical": 1,
        "diagonal": features,
        "full": count_triangle_entries(features),
    }[covariance]
    return FLOAT * (classes + sum(components) * (1 + features + spread))


def count_fedkt_bytes(d: int, students: int) -> int:
    """FedKT, up only: s students. Labels of public samples stay where they are made."""
    return students * count_model_bytes_one_way(d)


def count_ensemble_selection_bytes_of_all_clients(
    d: int, keep: int, clients: int, last_layer: int = 0
) -> int:
    """Guha et al.'s selection, all clients, up: k models, and from everybody a score and n_k, 8 bytes.

    `last_layer`: its numbers, which DeDES clusters.
    """
    return keep * count_model_bytes_one_way(d) + clients * (8 + FLOAT * last_layer)


def count_beta_bytes(d: int, clients: int, grid: int) -> int:
    """β-predictive Bayes with β chosen at the clients, up and down: 2 S, M S more down, 4 bytes up a β of the grid."""
    return (2 + clients) * count_model_bytes_one_way(d) + FLOAT * grid
