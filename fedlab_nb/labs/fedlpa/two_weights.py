"""FedLPA small enough to compute by hand: two clients, one linear layer with two weights and one
output, squared loss.

Client k has found the weights m_k. Its data vary mostly along one direction: along it the precision
is `ratio`, across it 1. So A_k = R(θ_k) diag(ratio, 1) R(θ_k)ᵀ and B_k = 1; client A is sure of
weight 1 (θ = 0), client B of the direction at `angle`. With θ = 90 degrees, ratio 9 and no damping,
by hand: A_1 = diag(9, 1), A_2 = diag(1, 9), and with m_1 = (1, 3), m_2 = (3, 1) the aggregate is
((9·1 + 1·3) / 10, (1·3 + 9·1) / 10) = (1.2, 1.2).
"""

import math
from typing import NamedTuple

import numpy as np
import torch

from ...methods.fedlpa.server import solve_layer_with_part_of_precision
from ...methods.parts.kronecker import KroneckerFactors, LayerPosterior, add_damping
from ...tensor_types import SquareMatrix

MEANS = ((1.0, 3.0), (3.0, 1.0))


class TwoWeightExample(NamedTuple):
    """What both clients send, and the answers that can be computed from it.

    means:      `[2, 2]`, each client's weights
    precisions: `[2, 2, 2]`, each client's precision, damped
    average:    `[2]`, the plain average
    diagonal:   `[2]`, FedLPA with the precisions' diagonals
    aggregate:  `[2]`, FedLPA
    pooled:     `[2]`, least squares on both clients' data together, which no server of a federation
                can compute
    """

    means: np.ndarray
    precisions: np.ndarray
    average: np.ndarray
    diagonal: np.ndarray
    aggregate: np.ndarray
    pooled: np.ndarray


def compute_two_weight_example(
    angle_degrees: float = 90.0, precision_ratio: float = 9.0, damping: float = 0.0
) -> TwoWeightExample:
    """Compute the example of the picture.

    angle_degrees:   the direction of which client B is sure
    precision_ratio: precision along a client's direction over that across it, 1 or more
    damping:         λ_damp
    """
    means = torch.tensor(MEANS, dtype=torch.float64)
    inputs = [
        make_rotated_precision(0.0, precision_ratio),
        make_rotated_precision(angle_degrees, precision_ratio),
    ]
    errors = torch.ones(1, 1, dtype=torch.float64)
    sent = [add_damping(KroneckerFactors(a, errors), damping) for a in inputs]
    posterior = LayerPosterior.from_clients([mean[None] for mean in means], sent, [0.5, 0.5])
    weighted_means = inputs[0] @ means[0] + inputs[1] @ means[1]
    return TwoWeightExample(
        means=means.numpy(),
        precisions=torch.stack([torch.kron(factors.a, factors.b) for factors in sent]).numpy(),
        average=solve_layer_with_part_of_precision(posterior, "none")[0].numpy(),
        diagonal=solve_layer_with_part_of_precision(posterior, "diagonal")[0].numpy(),
        aggregate=solve_layer_with_part_of_precision(posterior, "exact")[0].numpy(),
        pooled=torch.linalg.solve(inputs[0] + inputs[1], weighted_means).numpy(),
    )


def make_rotated_precision(angle_degrees: float, precision_ratio: float) -> SquareMatrix:
    """Make a matrix `[2, 2]` with the eigenvalue `precision_ratio` along the direction at
    `angle_degrees`, and 1 across it.
    """
    cosine = math.cos(math.radians(angle_degrees))
    sine = math.sin(math.radians(angle_degrees))
    rotation = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
    precision = torch.diag(torch.tensor([precision_ratio, 1.0], dtype=torch.float64))
    return rotation @ precision @ rotation.T
