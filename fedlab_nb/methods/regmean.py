"""RegMean: merge layers so that they answer as each client's own does on its own inputs (Jin et al., ICLR 2023).

For a linear layer y = Θ a (the bias as last column of Θ, a 1 as last entry of a), client k sends Θ_k and the second
moments of its inputs, A_k = (1/n_k) Σ_s a_s a_sᵀ. The server takes the Θ that is nearest to all clients' layers,

    Θ̄ = argmin_Θ Σ_k w_k tr[(Θ - Θ_k) (A_k + λ_damp I) (Θ - Θ_k)ᵀ]
      = Σ_k w_k Θ_k (A_k + λ_damp I) · [Σ_k w_k (A_k + λ_damp I)]⁻¹.

No labels, no gradients. It is FedLPA with B_k = I: most of FedLPA's gain on perceptrons is here. For one linear layer
with squared loss, λ_damp = 0 and w_k = n_k/N it is pooled least squares, exactly. Convolutions count every patch as an
input (φ = 1 as in FedLPA here, sums over positions).

Departures: the ridge λ_damp keeps the sum invertible and draws towards the average where no client has inputs; the
paper has none, and shrinks A_k's off-diagonal entries by a factor ξ (its α) instead (0.9; `off_diagonal`). The bias
is part of Θ, and A_k is a mean with w_k = n_k/N where the paper has sums. Parameters of other layers (batch norm) are
averaged with w_k.

With convolutions less is left of it than with perceptrons: each layer is exact for the inputs that it had at its
client, but in the merged network it gets those of merged layers, and every layer adds to that. Test accuracies with
perceptrons, beside averaging and FedLPA: course/fedlpa/figures.toml.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..comm import from_upper_triangle, upper_triangle
from .base import (
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Progress,
    Steps,
    knob,
    register,
    weighted_mean,
)
from .memory import SquareMatrices
from .parts.kronecker import (
    add_identity,
    factor_matrices,
    inverse,
    kronecker_factors,
    layer_matrix,
    replace_layers,
)


@register(
    "regmean",
    title="RegMean",
    group="Average weights",
    paper="Jin et al., ICLR 2023",
    traffic="2 S_θ + Σ d(d+1)/2 floats of the input moments",
    needs=["one architecture"],
    extra="one more pass over the training data",
    sends="its network + input moments",
    leaks="each client's model, sample count, and the mean and second moments of its inputs",
)
class RegMean(Method):
    """Merge each layer by least squares, with the second moments of its inputs."""

    ridge: float = knob(1e-2, "Ridge", symbol="λ_damp", low=0, high=1e3)
    off_diagonal: float = knob(1.0, "Off the diagonal", symbol="ξ", low=0, high=1)

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """The input moments of every layer, one each a client."""
        return factor_matrices(ctx, outputs=False)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the layers' input moments; upload both.
        clients = yield from ctx.local_training()

        def both(k: int) -> dict[str, Any]:
            factors = kronecker_factors(clients.module(k), ctx.private.train(k)[0], None)
            moments = {name: upper_triangle(own.a) for name, own in factors.items()}
            return {"state": clients.state(k), "moments": moments}

        received = yield from ctx.collect("moments", both, phase="models and input moments")
        # Server: least squares, layer by layer.
        with ctx.server():
            shares = [n / sum(ctx.sizes) for n in ctx.sizes]
            average = weighted_mean([r["state"] for r in received], shares)
            matrices = {}
            for done, name in enumerate(received[0]["moments"], 1):
                layers = [layer_matrix(r["state"], name) for r in received]
                inputs = [
                    shrunk(from_upper_triangle(r["moments"][name]), self.off_diagonal)
                    for r in received
                ]
                matrices[name] = merge(layers, inputs, shares, self.ridge)
                yield Progress("merge", done, len(received[0]["moments"]))
            return NetworkModel(ctx.new_model(replace_layers(average, matrices)))


def shrunk(moments: Tensor, share: float) -> Tensor:
    """A `[i, i]` with its off-diagonal entries times `share`."""
    return moments if share == 1 else share * moments + (1 - share) * torch.diag(moments.diag())


def merge(
    layers: Sequence[Tensor], moments: Sequence[Tensor], shares: Sequence[float], ridge: float
) -> Tensor:
    """Θ̄ `[o, i]` from layers Θ_k `[o, i]` and input moments A_k `[i, i]`; `shares` are w_k.

    Solved as Θ̄ = average + correction, in float64. Directions without any input (with λ_damp = 0) keep the average.
    """
    wide = [layer.double() for layer in layers]
    average = sum((w * m for w, m in zip(shares, wide, strict=True)), torch.zeros_like(wide[0]))
    add_damping = [
        w * add_identity(a.double(), ridge) for w, a in zip(shares, moments, strict=True)
    ]
    pull = sum(
        ((m - average) @ a for m, a in zip(wide, add_damping, strict=True)),
        torch.zeros_like(average),
    )
    return (average + inverse(sum(add_damping, torch.zeros_like(add_damping[0])))(pull.T).T).to(
        layers[0]
    )
