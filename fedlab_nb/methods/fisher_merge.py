"""Fisher merging: average the weights, each number by how sure its client is of it (Matena & Raffel, NeurIPS 2022).

Around its trained weights θ_k a client's posterior is taken as a Gaussian with a diagonal precision, the diagonal of
the Fisher matrix, F_k = E_x E_y (∂ log p(y|x, θ_k)/∂θ)². The product of the Gaussians has its mean at

    θ̄ = Σ_k w_k (F_k + λ_damp) θ_k / Σ_k w_k (F_k + λ_damp),          element by element.

labels="model", Matena & Raffel's: y ~ p(y|x, θ_k), the model's own prediction. With up to MOST classes the expectation
over y is exact (a pass a class), with more one label a sample is drawn. labels="true": the samples' own labels, the
"empirical" Fisher, as in FedLPA; this is the "DiagonalFisher" baseline of its paper. λ_damp, the prior, decides where
no client's data do: there, and everywhere for λ_damp → ∞, it is the weighted average. Traffic of one client: 4d down,
2·4d up. FedLPA's *factor diagonals* (`solve_layer_with` in `fedlpa/server.py`) are something else: the diagonals of A
and B, damped.

Departures: λ_damp is added to Matena & Raffel's formula, which replaces a Fisher of 0 by a small number. w_k = n_k/N,
as everywhere here; the paper's formula has weights that one may choose. FedLPA's paper gives no λ_damp. Batch norm's
running statistics have no Fisher and are averaged with w_k.

A diagonal cannot know that two networks order units differently, so it needs a common start. Test accuracies on the
digits, beside averaging and FedLPA: course/fedlpa/figures.toml.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import choose
from ..models.state import copy_model
from ..training.evaluate import run_in_chunks
from .base import Context, GlobalModel, Method, NetworkModel, Steps, knob, register, weighted_mean
from .parts.kronecker import (
    find_factor_layers,
    flatten_inputs,
    flatten_outputs,
    join_bias,
    record_inputs_and_gradients,
    replace_layers,
)
from .traffic import Sizes, Traffic

NORMS = (nn.BatchNorm2d, nn.GroupNorm)
LABELS = ("model", "true")
MOST = 32  # classes up to which the expectation over the model's labels is a sum


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
    forgets="its model and its squared gradients leave the weighted average",
)
class FisherMerge(Method):
    """Average the weights. Each number counts by how sure its client is of it."""

    damping: float = knob(1e-6, "Damping", symbol="λ_damp", low=1e-12, high=1e3, log=True)

    labels: str = knob("model", "Labels", options=LABELS)

    def bytes_sent(self, sizes: Sizes) -> Traffic:
        fisher = sizes.clients * sizes.parameter_bytes
        return Traffic(sizes.one_shot.bytes + fisher)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the Fisher diagonal; upload both.
        clients = yield from ctx.local_training()

        def measure_fisher(k: int) -> dict[str, Any]:
            x, y = ctx.private.train(k)
            stream = ctx.generator("fisher_merge", "labels", k)
            fisher = compute_diagonal_fisher(
                clients.module(k), x, y, labels=self.labels, stream=stream
            )
            return {"state": clients.state(k), "fisher": fisher}

        phase = "models and Fisher diagonals"
        received = yield from ctx.collect("Fisher pass", measure_fisher, phase=phase)
        # Server: the weighted average, number by number.
        with ctx.server():
            states = [upload["state"] for upload in received]
            fishers = [upload["fisher"] for upload in received]
            return NetworkModel(
                ctx.new_model(merge_by_fisher(states, fishers, ctx.sizes, self.damping))
            )


ByName = Mapping[str, Tensor]


def merge_by_fisher(
    states: Sequence[ByName], fishers: Sequence[ByName], weights: Sequence[float], damping: float
) -> dict[str, Tensor]:
    """θ̄ from the clients' states and Fisher diagonals (by parameter); entries without one are averaged."""
    merged = weighted_mean(states, weights)
    for name in fishers[0]:
        precisions = []
        for w, fisher in zip(weights, fishers, strict=True):
            precisions.append(w / sum(weights) * (fisher[name] + damping))
        total = torch.zeros_like(merged[name])
        for precision, state in zip(precisions, states, strict=True):
            total = total + precision * state[name]
        merged[name] = total / sum(precisions)
    return merged


def compute_diagonal_fisher(
    module: nn.Module, samples: Tensor, y: Tensor, *, labels: str = "true", stream: torch.Generator | None = None,
    batch_size: int = 32,
) -> dict[str, Tensor]:  # fmt: skip
    """`F = 1/n Σ_s E_y (∂ℓ_s/∂θ)²` by parameter, ℓ the cross-entropy of one sample with label y, at θ as it is.

    `samples [n, ...]`, `y [n]`; `labels`: one of LABELS (UsageError for another), "model" draws from `stream` (a CPU
    generator) beyond MOST classes. Linear, Conv2d, BatchNorm2d and GroupNorm have one. The module runs in eval mode and
    is left as it was; `batch_size` only bounds the memory. Not the square of the mean gradient: gradients are taken
    sample by sample, put together by hand from what passes through each layer, since a sample's gradient of a layer's
    weights is the sum, over the layer's positions, of output gradient times input.
    """
    choose("labels of the Fisher", labels, LABELS)
    kinds = (nn.Linear, nn.Conv2d, *NORMS)
    find_factor_layers(module)  # refuses convolutions with groups
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, kinds)}
    # [o, i] for a layer with inputs (the bias as last column), [C, 2] for batch norm: scale and shift.
    total = {}
    for name, layer in layers.items():
        total[name] = torch.zeros_like(join_bias(layer.weight, layer.bias).detach())
    passes: Iterable[tuple[Tensor, Tensor | None]] = [(y, None)]
    if labels == "model":
        passes = _predict_labels(module, samples, stream, batch_size)
    for target, probability in passes:
        # A gradient times √p, squared, is the square times p.
        roots = None if probability is None else probability.sqrt().split(batch_size)
        for i, batch in enumerate(
            record_inputs_and_gradients(module, layers, samples, target, batch_size)
        ):
            for name, (inputs, gradient) in batch.items():
                if roots is not None:
                    gradient = gradient * roots[i].view(-1, *[1] * (gradient.dim() - 1))
                total[name] += _sum_squared_gradients(layers[name], inputs, gradient)
    means = {name: squares / len(samples) for name, squares in total.items()}
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}
    fisher = replace_layers(parameters, means)
    return {name: fisher[name] for name in parameters if name.rpartition(".")[0] in layers}


@torch.no_grad()
def _predict_labels(
    module: nn.Module, samples: Tensor, stream: torch.Generator | None, batch_size: int
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Labels `[n]` and their probabilities `[n]` under the model's own prediction of `samples [n, ...]`.

    One pair a class; beyond MOST classes a single draw, with None for its probabilities.
    """
    frozen = copy_model(module).eval()
    probabilities = run_in_chunks(lambda chunk: frozen(chunk).softmax(1), samples, chunk=batch_size)
    classes = probabilities.shape[1]
    if classes > MOST:
        u = torch.rand(len(samples), 1, generator=stream, dtype=torch.float64).to(
            probabilities.device
        )
        drawn_labels = (probabilities.double().cumsum(1) < u).sum(1).clamp(max=classes - 1)
        yield drawn_labels, None
    else:
        for c in range(classes):
            yield torch.full((len(samples),), c, device=samples.device), probabilities[:, c]


def _sum_squared_gradients(layer: nn.Module, inputs: Tensor, gradient: Tensor) -> Tensor:
    """Σ over the batch of the squared gradient of each sample's loss, as a matrix `[o, i]`."""
    if isinstance(layer, NORMS):
        scale_gradient = (gradient * _normalise(layer, inputs)).sum((2, 3))
        shift_gradient = gradient.sum((2, 3))
        return torch.stack([scale_gradient, shift_gradient], -1).square().sum(0)
    rows = flatten_inputs(layer, inputs)  # [b, T, i]
    slopes = flatten_outputs(layer, gradient).unflatten(0, rows.shape[:2])  # [b, T, o]
    if rows.shape[1] == 1:
        return slopes[:, 0].square().T @ rows[:, 0].square()
    return (slopes.transpose(1, 2) @ rows).square().sum(0)


def _normalise(layer: nn.Module, x: Tensor) -> Tensor:
    """The normalised input, in eval mode, before it is multiplied by the layer's scale."""
    if isinstance(layer, nn.GroupNorm):
        return F.group_norm(x, layer.num_groups, eps=layer.eps)
    mean = layer.get_buffer("running_mean")[:, None, None]
    variance = layer.get_buffer("running_var")[:, None, None]
    return (x - mean) / (variance + float(layer.eps)).sqrt()  # type: ignore[arg-type]
