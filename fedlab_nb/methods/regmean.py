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
    compute_kronecker_factors,
    get_layer_matrix,
    list_factor_matrices,
    make_inverse,
    replace_layers,
)
from .traffic import Sizes, Traffic


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
    forgets="its model and its moments leave the sums, and each layer is solved again",
)
class RegMean(Method):
    """Merge each layer by least squares, with the second moments of its inputs."""

    ridge: float = knob(1e-2, "Ridge", symbol="λ_damp", low=0, high=1e3)
    off_diagonal: float = knob(1.0, "Off the diagonal", symbol="ξ", low=0, high=1)

    def bytes_sent(self, sizes: Sizes) -> Traffic:
        moments = sizes.count_bytes_of_all(sizes.input_triangles)
        return Traffic(sizes.one_shot.bytes + moments)

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """The input moments of every layer, one each a client."""
        return list_factor_matrices(ctx, outputs=False)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the layers' input moments; upload both.
        clients = yield from ctx.local_training()

        def measure_moments(k: int) -> dict[str, Any]:
            x, _ = ctx.private.train(k)
            factors = compute_kronecker_factors(clients.module(k), x, None)
            moments = {name: upper_triangle(layer.a) for name, layer in factors.items()}
            return {"state": clients.state(k), "moments": moments}

        phase = "models and input moments"
        received = yield from ctx.collect("moments", measure_moments, phase=phase)
        # Server: least squares, layer by layer.
        with ctx.server():
            shares = [n / sum(ctx.sizes) for n in ctx.sizes]
            states = [upload["state"] for upload in received]
            average = weighted_mean(states, shares)
            names = list(received[0]["moments"])
            matrices = {}
            for done, name in enumerate(names, 1):
                layers = [get_layer_matrix(state, name) for state in states]
                moments = []
                for upload in received:
                    a = from_upper_triangle(upload["moments"][name])
                    moments.append(shrink_off_diagonal(a, self.off_diagonal))
                matrices[name] = merge_layer(layers, moments, shares, self.ridge)
                yield Progress("merge", done, len(names))
            return NetworkModel(ctx.new_model(replace_layers(average, matrices)))


def shrink_off_diagonal(moments: Tensor, share: float) -> Tensor:
    """A `[i, i]` with its off-diagonal entries times `share`."""
    if share == 1:
        return moments
    return share * moments + (1 - share) * torch.diag(moments.diag())


def merge_layer(
    layers: Sequence[Tensor], moments: Sequence[Tensor], shares: Sequence[float], ridge: float
) -> Tensor:
    """Θ̄ `[o, i]` from layers Θ_k `[o, i]` and input moments A_k `[i, i]`; `shares` are w_k.

    Solved as Θ̄ = average + correction, in float64. Directions without any input (with λ_damp = 0) keep the average.
    """
    layers_64 = [layer.double() for layer in layers]
    average = torch.zeros_like(layers_64[0])
    for w, layer in zip(shares, layers_64, strict=True):
        average = average + w * layer
    system = torch.zeros_like(moments[0], dtype=torch.float64)
    right_side = torch.zeros_like(average)
    for w, a, layer in zip(shares, moments, layers_64, strict=True):
        damped = w * add_identity(a.double(), ridge)
        system = system + damped
        right_side = right_side + (layer - average) @ damped
    correction = make_inverse(system)(right_side.T).T
    return (average + correction).to(layers[0])
