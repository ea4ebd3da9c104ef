"""FedLPA small enough to compute by hand: two clients, one linear layer with two weights and one output, squared loss.

Client k has found the weights m_k. Its data vary mostly along one direction: along it the precision is `ratio`, across
it 1. So A_k = R(θ_k) diag(ratio, 1) R(θ_k)ᵀ and B_k = 1; client A is sure of weight 1 (θ = 0), client B of the
direction at `angle`. With θ = 90 degrees, ratio 9 and no damping, by hand: A_1 = diag(9, 1), A_2 = diag(1, 9), and with
m_1 = (1, 3), m_2 = (3, 1) the aggregate is ((9·1 + 1·3) / 10, (1·3 + 9·1) / 10) = (1.2, 1.2).
"""

import math
from typing import NamedTuple

import numpy as np
import torch

from ...methods.fedlpa.server import solve_layer_with
from ...methods.parts.kronecker import Factors, Posterior, add_damping

MEANS = ((1.0, 3.0), (3.0, 1.0))


class TwoWeights(NamedTuple):
    """`means [2, 2]` and `precisions [2, 2, 2]` of the clients as sent (damped); the rest are points `[2]`.

    pooled: least squares on both clients' data together, which no server of a federation can compute from data
    """

    means: np.ndarray
    precisions: np.ndarray
    average: np.ndarray
    diagonal: np.ndarray
    aggregate: np.ndarray
    pooled: np.ndarray


def two_weights(angle: float = 90.0, ratio: float = 9.0, damping: float = 0.0) -> TwoWeights:
    """The picture's numbers for an `angle` in degrees, a `ratio` of precisions (1 or more) and λ_damp = `damping`."""
    means = torch.tensor(MEANS, dtype=torch.float64)
    inputs = [_rotated(0.0, ratio), _rotated(angle, ratio)]
    sent = [add_damping(Factors(a, torch.ones(1, 1, dtype=torch.float64)), damping) for a in inputs]
    system = Posterior.stack([m[None] for m in means], sent, [0.5, 0.5])
    pooled = torch.linalg.solve(sum(inputs), sum(a @ m for a, m in zip(inputs, means, strict=True)))
    points = {name: solve_layer_with(system, what)[0].numpy() for name, what in POINTS.items()}
    precisions = torch.stack([torch.kron(f.a, f.b) for f in sent])
    return TwoWeights(means.numpy(), precisions.numpy(), pooled=pooled.numpy(), **points)


POINTS = {"average": "none", "diagonal": "diagonal", "aggregate": "exact"}


def _rotated(angle: float, ratio: float) -> torch.Tensor:
    """`[2, 2]`: eigenvalue `ratio` along the direction at `angle` degrees, 1 across it."""
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    return turn @ torch.diag(torch.tensor([ratio, 1.0], dtype=torch.float64)) @ turn.T
