"""Fisher merging: average the weights, each number by how sure its client is of it (Matena & Raffel, NeurIPS 2022).

Around its trained weights θ_k a client's posterior is taken as a Gaussian with a diagonal precision, the empirical
Fisher F_k (mean squared gradient of one sample's loss). The product of the Gaussians has its mean at

    θ̄ = Σ_k w_k (F_k + λ_damp) θ_k / Σ_k w_k (F_k + λ_damp),          element by element.

It is the "DiagonalFisher" baseline of FedLPA's paper: FedLPA with the precision's diagonal alone. λ_damp, the prior,
decides where nobody's data speak: there, and everywhere for λ_damp → ∞, it is the weighted average. Traffic of one
client: 4d down, 2·4d up.

Departures: true labels, as in FedLPA's baseline; Matena & Raffel take labels from the model's own prediction, which
makes it the Fisher matrix proper. w_k = n_k/N, as everywhere here; the paper's formula has weights that one may choose.
FedLPA's paper gives no λ_damp. Batch norm's running statistics have no Fisher and are averaged with w_k.

Findings (digits, mlp, 5 clients, alpha = 0.1, test accuracy, seeds 0-2): 51 where averaging has 37 and FedLPA 87; with
λ_damp = 1e-3 39. With different initial models 29, 15 and 88: a diagonal cannot know that two networks order units
differently. With the cnn and ten clients (seeds 0-5) 27 where averaging has 13, FedLPA 33 and RegMean 44, but from 12
to 42: after 40 epochs a client fits its own few classes, and half of its Fisher's entries are below 1e-8 (dead units:
0). Another λ_damp does not help (a validation part, two partitions: 9 to 16, whatever λ_damp from 1e-12 to 0.1).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from .base import GlobalModel, Method, NetworkModel, Progress, Steps, knob, register, weighted_mean
from .context import Context
from .parts.kronecker import input_rows, join, output_rows, with_layers
from .parts.layer_io import inputs_and_gradients


@register(
    "fisher_merge",
    title="Fisher merging",
    paper="Matena & Raffel, NeurIPS 2022",
    traffic="3 S_θ",
    needs=["one architecture"],
    extra="one more pass over the training data",
    leaks="each client's model, its mean squared gradients and sample count",
)
class FisherMerge(Method):
    """Average the weights, each number by how sure its client is of it."""

    damping: float = knob(
        1e-6,
        "Damping",
        "Prior precision, added to every number's Fisher. Large: plain averaging.",
        symbol="λ_damp",
        low=1e-12,
        high=1e3,
        log=True,
    )

    paper_model = "mlp"  # FedLPA, Tables 6 and 7

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the Fisher diagonal; upload both.
        clients = yield from ctx.local_training()
        received = []
        for k in range(ctx.clients_count):
            upload = {"state": clients.state(k), "fisher": diagonal_fisher(clients.module(k), *ctx.private.train(k))}
            received.append(ctx.link.up(k, upload, phase="models and Fisher diagonals"))
            yield Progress("Fisher pass", k + 1, ctx.clients_count)
        # Server: the weighted average, number by number.
        with ctx.server():
            states, fishers = ([r[part] for r in received] for part in ("state", "fisher"))
            return NetworkModel(ctx.new_model(merge(states, fishers, ctx.sizes, self.damping)))


ByName = Mapping[str, Tensor]


def merge(
    states: Sequence[ByName], fishers: Sequence[ByName], weights: Sequence[float], damping: float
) -> dict[str, Tensor]:
    """θ̄ from the clients' states and Fisher diagonals (by parameter); entries without one are averaged."""
    merged = weighted_mean(states, weights)
    for name in fishers[0]:
        trust = [w / sum(weights) * (fisher[name] + damping) for w, fisher in zip(weights, fishers, strict=True)]
        weighted = (t * state[name] for t, state in zip(trust, states, strict=True))
        merged[name] = sum(weighted, torch.zeros_like(merged[name])) / sum(trust)
    return merged


def diagonal_fisher(module: nn.Module, x: Tensor, y: Tensor, *, batch_size: int = 32) -> dict[str, Tensor]:
    """`F = 1/n Σ_s (∂ℓ_s/∂θ)²` by parameter, ℓ the cross-entropy of one sample with its true label, at θ as it is.

    `x [n, ...]`, `y [n]`. Linear, Conv2d and BatchNorm2d have one. The module runs in eval mode and is left as it was;
    `batch_size` only bounds the memory. Not the square of the mean gradient: gradients are taken sample by sample, put
    together by hand from what passes through each layer, since a sample's gradient of a layer's weights is the sum,
    over the layer's positions, of output gradient times input.
    """
    kinds = (nn.Linear, nn.Conv2d, nn.BatchNorm2d)
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, kinds)}
    # [o, i] for a layer with inputs (the bias as last column), [C, 2] for batch norm: scale and shift.
    total = {name: torch.zeros_like(join(layer.weight, layer.bias).detach()) for name, layer in layers.items()}
    for batch in inputs_and_gradients(module, layers, x, y, batch_size):
        for name, (inputs, gradient) in batch.items():
            total[name] += _squares(layers[name], inputs, gradient)
    state = {name: parameter.detach() for name, parameter in module.named_parameters()}
    fisher = with_layers(state, {name: squares / len(x) for name, squares in total.items()})
    measured = [f"{name}.{part}" for name in layers for part in ("weight", "bias")]
    return {name: fisher[name] for name in state if name in measured}


def _squares(layer: nn.Module, inputs: Tensor, gradient: Tensor) -> Tensor:
    """Σ over the batch of the squared gradient of each sample's loss, as a matrix `[o, i]`."""
    if isinstance(layer, nn.BatchNorm2d):
        mean, variance = (layer.get_buffer(f"running_{name}")[:, None, None] for name in ("mean", "var"))
        scale = (gradient * (inputs - mean) / (variance + layer.eps).sqrt()).sum((2, 3))
        return torch.stack([scale, gradient.sum((2, 3))], -1).square().sum(0)
    rows = input_rows(layer, inputs)  # [b, T, i]
    slopes = output_rows(layer, gradient).unflatten(0, rows.shape[:2])  # [b, T, o]
    if rows.shape[1] == 1:
        return slopes[:, 0].square().T @ rows[:, 0].square()
    return (slopes.transpose(1, 2) @ rows).square().sum(0)
