"""The diagonal of a trained network's empirical Fisher: of every parameter, the mean squared gradient of one sample's loss.

Not the square of the mean gradient: gradients are taken sample by sample, all layers alike, batch norm's scale and shift
included.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ...errors import UsageError

NUMBERS_AT_ONCE = 2**21  # of per-sample gradients; more is slower on a CPU


def diagonal_fisher(module: nn.Module, x: Tensor, y: Tensor, *, at_once: int | None = None) -> dict[str, Tensor]:
    """`F = 1/n Σ_s (∂ℓ_s/∂θ)²` by parameter, ℓ the cross-entropy of one sample with its true label, at θ as it is.

    `x [n, ...]`, `y [n]`. The module runs in eval mode and is left as it was. `at_once` only bounds the memory.
    """
    if len(x) == 0 or len(x) != len(y):
        raise UsageError(f"The Fisher pass got {len(x)} samples and {len(y)} labels; it needs one label a sample.")
    probe = copy.deepcopy(module).eval()
    parameters = {name: p.detach() for name, p in probe.named_parameters()}
    buffers = dict(probe.named_buffers())

    def loss(theta: dict[str, Tensor], sample: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(probe, (theta, buffers), (sample[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    chunk = at_once or max(1, NUMBERS_AT_ONCE // sum(p.numel() for p in parameters.values()))
    total = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for xs, ys in zip(x.split(chunk), y.split(chunk), strict=True):
        for name, each in gradients(parameters, xs, ys).items():
            total[name] += each.square().sum(0)
    return {name: value / len(x) for name, value in total.items()}
