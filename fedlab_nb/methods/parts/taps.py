"""What passes through the layers of a trained network: inputs, and the gradients of each sample's loss at the outputs.

The raw material of Kronecker factors (FedLPA) and of the diagonal Fisher (Fisher merging).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import UsageError


def tapped(
    module: nn.Module, layers: Iterable[str], x: Tensor, y: Tensor, batch_size: int
) -> Iterator[dict[str, tuple[Tensor, Tensor]]]:
    """For each batch of `x [n, ...]`, `y [n]`: layer name -> (its input, the gradient at its output), both `[b, ...]`.

    The loss is the cross-entropy with the true labels, summed, so that every gradient is one sample's own. The module
    is run in eval mode and left as it was; no gradient of a weight is computed.
    """
    if len(x) == 0 or len(x) != len(y):
        raise UsageError(f"The factor pass got {len(x)} samples and {len(y)} labels; it needs one label a sample.")
    probe = copy.deepcopy(module).eval().requires_grad_(False)
    seen: list[tuple[str, Tensor, Tensor]] = []

    def watch(name):
        def hook(layer, inputs, output):
            # A zero added to the output: the gradient at that zero is the one we want.
            tap = torch.zeros_like(output, requires_grad=True)
            seen.append((name, inputs[0].detach(), tap))
            return output + tap

        return hook

    for name in layers:
        probe.get_submodule(name).register_forward_hook(watch(name))
    for xs, ys in zip(x.split(batch_size), y.split(batch_size), strict=True):
        seen.clear()
        with torch.enable_grad():
            loss = F.cross_entropy(probe(xs), ys, reduction="sum")
            gradients = torch.autograd.grad(loss, [tap for *_, tap in seen], materialize_grads=True)
        yield {name: (inputs, gradient) for (name, inputs, _), gradient in zip(seen, gradients, strict=True)}
