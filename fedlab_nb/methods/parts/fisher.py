"""The diagonal of a trained network's empirical Fisher: of every parameter, the mean squared gradient of one sample.

Not the square of the mean gradient: gradients are taken sample by sample, batch norm's scale and shift included. They
are put together by hand from what passes through each layer, since a sample's gradient of a layer's weights is the sum,
over the layer's positions, of output gradient times input.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .kronecker import input_rows, join, output_rows, split
from .taps import tapped


def diagonal_fisher(module: nn.Module, x: Tensor, y: Tensor, *, batch_size: int = 32) -> dict[str, Tensor]:
    """`F = 1/n Σ_s (∂ℓ_s/∂θ)²` by parameter, ℓ the cross-entropy of one sample with its true label, at θ as it is.

    `x [n, ...]`, `y [n]`. Linear, Conv2d and BatchNorm2d have one. The module runs in eval mode and is left as it was;
    `batch_size` only bounds the memory.
    """
    kinds = (nn.Linear, nn.Conv2d, nn.BatchNorm2d)
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, kinds)}
    # [o, i] for a layer with inputs (the bias as last column), [C, 2] for batch norm: scale and shift.
    total = {name: torch.zeros_like(join(layer.weight, layer.bias).detach()) for name, layer in layers.items()}
    for batch in tapped(module, layers, x, y, batch_size):
        for name, (inputs, gradient) in batch.items():
            total[name] += _squares(layers[name], inputs, gradient)
    fisher = {}
    for name, layer in layers.items():
        weight, bias = split(total[name] / len(x), layer.weight.detach(), layer.bias)
        fisher[f"{name}.weight"] = weight
        if bias is not None:
            fisher[f"{name}.bias"] = bias
    return {name: fisher[name] for name, _ in module.named_parameters() if name in fisher}


def _squares(layer: nn.Module, inputs: Tensor, gradient: Tensor) -> Tensor:
    """Σ over the batch of the squared gradient of each sample's loss, as a matrix `[o, i]`."""
    if isinstance(layer, nn.BatchNorm2d):
        mean, deviation = layer.running_mean[:, None, None], (layer.running_var + layer.eps).sqrt()[:, None, None]
        scale = (gradient * (inputs - mean) / deviation).sum((2, 3))
        return torch.stack([scale, gradient.sum((2, 3))], -1).square().sum(0)
    rows = input_rows(layer, inputs)  # [b, T, i]
    slopes = output_rows(layer, gradient).unflatten(0, rows.shape[:2])  # [b, T, o]
    if rows.shape[1] == 1:
        return slopes[:, 0].square().T @ rows[:, 0].square()
    return (slopes.transpose(1, 2) @ rows).square().sum(0)
