"""RegMean: merge layers so that their outputs are close to each client's on its own inputs (Jin et
al., ICLR 2023).

For a linear layer y = Θ a (the bias as last column of Θ, a 1 as last entry of a), client k sends
Θ_k and the second moments of its inputs, A_k = (1/n_k) Σ_s a_s a_sᵀ. The server takes the Θ that is
nearest to all clients' layers,

    Θ̄ = argmin_Θ Σ_k w_k tr[(Θ - Θ_k) (A_k + λ_damp I) (Θ - Θ_k)ᵀ]
      = Σ_k w_k Θ_k (A_k + λ_damp I) · [Σ_k w_k (A_k + λ_damp I)]⁻¹.

No labels, no gradients. It is FedLPA with B_k = I: most of FedLPA's gain on perceptrons is here.
For one linear layer with squared loss, λ_damp = 0 and w_k = n_k/N it is pooled least squares,
exactly. Convolutions count every patch as an input (φ = 1 as in FedLPA here, sums over positions).

Departures: the ridge λ_damp keeps the sum invertible and draws towards the average where no client has inputs; the
paper has none, and shrinks A_k's off-diagonal entries by a factor ξ (its α) instead (0.9; `off_diagonal`). The bias
is part of Θ, and A_k is a mean with w_k = n_k/N where the paper has sums. Parameters of other layers (batch norm) are
averaged with w_k.

The gain is smaller with convolutions than with perceptrons: each layer is fitted to the inputs that it had at its
client, but in the merged network it gets the outputs of merged layers, and this difference grows from layer to layer.
Test accuracies with perceptrons, beside averaging and FedLPA: course/fedlpa/figures.toml.
"""

from collections.abc import Sequence
from typing import Any

import torch

from ..comm import pack_upper_triangle, unpack_upper_triangle
from ..tensor_types import LayerMatrix, SquareMatrix
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
from .memory import SquareMatricesInMemory
from .parts.kronecker import (
    add_to_diagonal,
    compute_mean_kronecker_factors,
    copy_state_with_layers,
    join_weight_and_bias_of_layer,
    list_kronecker_factor_sizes,
    make_inverse_multiplier,
)
from .traffic import FederationSizes, RunBytesUpPlusDown


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

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        moments = sizes.count_bytes_from_all_clients(sizes.input_triangles)
        return RunBytesUpPlusDown(sizes.one_shot_bytes.bytes + moments)

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """The input moments of every layer, one of each per client."""
        return list_kronecker_factor_sizes(ctx, has_output_factors=False)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the layers' input moments; upload both.
        clients = yield from ctx.local_training()

        def measure_moments(k: int) -> dict[str, Any]:
            x, _ = ctx.private.train(k)
            factors = compute_mean_kronecker_factors(clients.module(k), x, None)
            moments = {name: pack_upper_triangle(layer.a) for name, layer in factors.items()}
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
                layers = [join_weight_and_bias_of_layer(state, name) for state in states]
                moments = []
                for upload in received:
                    a = unpack_upper_triangle(upload["moments"][name])
                    moments.append(shrink_off_diagonal(a, self.off_diagonal))
                matrices[name] = merge_layer_by_regmean(layers, moments, shares, self.ridge)
                yield Progress("merge", done, len(names))
            return NetworkModel(ctx.new_model(copy_state_with_layers(average, matrices)))


def shrink_off_diagonal(input_moments: SquareMatrix, off_diagonal_factor: float) -> SquareMatrix:
    """A `[i, i]` with its off-diagonal entries times `off_diagonal_factor`."""
    if off_diagonal_factor == 1:
        return input_moments
    return off_diagonal_factor * input_moments + (1 - off_diagonal_factor) * torch.diag(
        input_moments.diag()
    )


def merge_layer_by_regmean(
    client_layers: Sequence[LayerMatrix],
    client_moments: Sequence[SquareMatrix],
    client_shares: Sequence[float],
    ridge: float,
) -> LayerMatrix:
    """Θ̄ `[o, i]` from layers Θ_k `[o, i]` and input moments A_k `[i, i]`; `client_shares` are w_k.

    Solved as Θ̄ = average + correction, in float64. Directions without any input (with λ_damp = 0)
    keep the average.
    """
    layers_64 = [layer.double() for layer in client_layers]
    average = torch.zeros_like(layers_64[0])
    for w, layer in zip(client_shares, layers_64, strict=True):
        average = average + w * layer
    system = torch.zeros_like(client_moments[0], dtype=torch.float64)
    right_side = torch.zeros_like(average)
    for w, a, layer in zip(client_shares, client_moments, layers_64, strict=True):
        damped = w * add_to_diagonal(a.double(), ridge)
        system = system + damped
        right_side = right_side + (layer - average) @ damped
    correction = make_inverse_multiplier(system)(right_side.T).T
    return (average + correction).to(client_layers[0])
