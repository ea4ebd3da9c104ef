"""Fisher merging: average the weights, each number by how sure its client is of it (Matena & Raffel, NeurIPS 2022).

Around its trained weights θ_k a client's posterior is taken as a Gaussian with a diagonal precision, the diagonal of
the Fisher matrix, F_k = E_x E_y (∂ log p(y|x, θ_k)/∂θ)². The product of the Gaussians has its mean at

    θ̄ = Σ_k w_k (F_k + λ_damp) θ_k / Σ_k w_k (F_k + λ_damp),          element by element.

labels="model", Matena & Raffel's: y ~ p(y|x, θ_k), the model's own prediction. With up to MOST classes the expectation
over y is exact (a pass a class), with more one label a sample is drawn. labels="true": the samples' own labels, the
"empirical" Fisher, as in FedLPA; this is the "DiagonalFisher" baseline of its paper. λ_damp, the prior, decides where
nobody's data speak: there, and everywhere for λ_damp → ∞, it is the weighted average. Traffic of one client: 4d down,
2·4d up. FedLPA's *factor diagonals* (`used` in `fedlpa/server.py`) are another thing: those of A and B, damped.

Departures: λ_damp is added to Matena & Raffel's formula, which replaces a Fisher of 0 by a small number. w_k = n_k/N,
as everywhere here; the paper's formula has weights that one may choose. FedLPA's paper gives no λ_damp. Batch norm's
running statistics have no Fisher and are averaged with w_k.

A diagonal cannot know that two networks order units differently, so it needs a common start. Test accuracies on the
digits, beside averaging and FedLPA: course/fedlpa/figures.toml.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import choose
from ..models.state import copy_model
from ..training.evaluate import in_chunks
from .base import Context, GlobalModel, Method, NetworkModel, Steps, knob, register, weighted_mean
from .parts.kronecker import (
    factor_layers,
    input_rows,
    inputs_and_gradients,
    join,
    output_rows,
    with_layers,
)

NORMS = (nn.BatchNorm2d, nn.GroupNorm)
LABELS = ("model", "true")
MOST = 32  # classes; up to so many the expectation over the model's labels is a sum


@register(
    "fisher_merge",
    title="Fisher merging",
    group="Average weights",
    paper="Matena & Raffel, NeurIPS 2022",
    traffic="3 S_θ",
    needs=["one architecture"],
    extra="one more pass over the training data",
    sends="its network + squared gradients",
    leaks="each client's model, its mean squared gradients and sample count",
)
class FisherMerge(Method):
    """Average the weights. Each number counts by how sure its client is of it."""

    damping: float = knob(1e-6, "Damping", symbol="λ_damp", low=1e-12, high=1e3, log=True)

    labels: str = knob("model", "Labels", options=LABELS)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the Fisher diagonal; upload both.
        clients = yield from ctx.local_training()

        def both(k: int) -> dict[str, Any]:
            stream = ctx.generator("fisher_merge", "labels", k)
            fisher = diagonal_fisher(
                clients.module(k), *ctx.private.train(k), labels=self.labels, stream=stream
            )
            return {"state": clients.state(k), "fisher": fisher}

        received = yield from ctx.collect("Fisher pass", both, phase="models and Fisher diagonals")
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
        trust = [
            w / sum(weights) * (fisher[name] + damping)
            for w, fisher in zip(weights, fishers, strict=True)
        ]
        weighted = (t * state[name] for t, state in zip(trust, states, strict=True))
        merged[name] = sum(weighted, torch.zeros_like(merged[name])) / sum(trust)
    return merged


def diagonal_fisher(
    module: nn.Module, x: Tensor, y: Tensor, *, labels: str = "true", stream: torch.Generator | None = None,
    batch_size: int = 32,
) -> dict[str, Tensor]:  # fmt: skip
    """`F = 1/n Σ_s E_y (∂ℓ_s/∂θ)²` by parameter, ℓ the cross-entropy of one sample with label y, at θ as it is.

    `x [n, ...]`, `y [n]`; `labels`: one of LABELS (UsageError for another), "model" draws from `stream` (a CPU
    generator) beyond MOST classes. Linear, Conv2d, BatchNorm2d and GroupNorm have one. The module runs in eval mode and
    is left as it was; `batch_size` only bounds the memory. Not the square of the mean gradient: gradients are taken
    sample by sample, put together by hand from what passes through each layer, since a sample's gradient of a layer's
    weights is the sum, over the layer's positions, of output gradient times input.
    """
    choose("labels of the Fisher", labels, LABELS)
    kinds = (nn.Linear, nn.Conv2d, *NORMS)
    factor_layers(module)  # refuses convolutions with groups
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, kinds)}
    # [o, i] for a layer with inputs (the bias as last column), [C, 2] for batch norm: scale and shift.
    total = {
        name: torch.zeros_like(join(layer.weight, layer.bias).detach())
        for name, layer in layers.items()
    }
    for target, chance in (
        [(y, None)] if labels == "true" else _predicted(module, x, stream, batch_size)
    ):
        roots = None if chance is None else chance.sqrt().split(batch_size)
        for at, batch in enumerate(inputs_and_gradients(module, layers, x, target, batch_size)):
            for name, (inputs, gradient) in batch.items():
                if roots is not None:
                    gradient = gradient * roots[at].view(-1, *[1] * (gradient.dim() - 1))
                total[name] += _squares(layers[name], inputs, gradient)
    state = {name: parameter.detach() for name, parameter in module.named_parameters()}
    fisher = with_layers(state, {name: squares / len(x) for name, squares in total.items()})
    measured = [f"{name}.{part}" for name in layers for part in ("weight", "bias")]
    return {name: fisher[name] for name in state if name in measured}


@torch.no_grad()
def _predicted(
    module: nn.Module, x: Tensor, stream: torch.Generator | None, batch_size: int
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Labels `[n]` and their chances `[n]` under the model's own prediction of `x [n, ...]`: every class, or a draw."""
    frozen = copy_model(module).eval()
    chances = in_chunks(lambda part: frozen(part).softmax(1), x, chunk=batch_size)
    classes = chances.shape[1]
    if classes > MOST:
        at = torch.rand(len(x), 1, generator=stream, dtype=torch.float64).to(chances.device)
        yield (chances.double().cumsum(1) < at).sum(1).clamp(max=classes - 1), None
    else:
        for c in range(classes):
            yield torch.full((len(x),), c, device=x.device), chances[:, c]


def _squares(layer: nn.Module, inputs: Tensor, gradient: Tensor) -> Tensor:
    """Σ over the batch of the squared gradient of each sample's loss, as a matrix `[o, i]`."""
    if isinstance(layer, NORMS):
        scale = (gradient * _normalised(layer, inputs)).sum((2, 3))
        return torch.stack([scale, gradient.sum((2, 3))], -1).square().sum(0)
    rows = input_rows(layer, inputs)  # [b, T, i]
    slopes = output_rows(layer, gradient).unflatten(0, rows.shape[:2])  # [b, T, o]
    if rows.shape[1] == 1:
        return slopes[:, 0].square().T @ rows[:, 0].square()
    return (slopes.transpose(1, 2) @ rows).square().sum(0)


def _normalised(layer: nn.Module, x: Tensor) -> Tensor:
    """What the scale of a normalisation multiplies, in eval mode."""
    if isinstance(layer, nn.GroupNorm):
        return F.group_norm(x, layer.num_groups, eps=layer.eps)
    mean, variance = (
        layer.get_buffer(f"running_{name}")[:, None, None] for name in ("mean", "var")
    )
    return (x - mean) / (variance + float(layer.eps)).sqrt()  # type: ignore[arg-type]
