"""What passes through the layers of a trained network: inputs, and the gradients of each sample's loss at the outputs.

The raw material of Kronecker factors (FedLPA, RegMean) and of the diagonal Fisher (Fisher merging).
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import UsageError
from ...models.state import copied


def inputs_and_gradients(
    module: nn.Module, layers: Iterable[str], x: Tensor, y: Tensor | None, batch_size: int
) -> Iterator[dict[str, tuple[Tensor, Tensor]]]:
    """For each batch of `x [n, ...]`, `y [n]`: layer name -> (its input, the gradient at its output), both `[b, ...]`.

    The loss is the cross-entropy with the true labels, summed, so that every gradient is one sample's own; without
    labels they are 0, and none is computed. The module is run in eval mode and left as it was.
    """
    count = len(x) if y is None else len(y)
    if len(x) == 0 or len(x) != count:
        raise UsageError(
            f"The factor pass got {len(x)} samples and {count} labels; it needs one label for each sample."
        )
    probe = copied(module).eval().requires_grad_(False)
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def watch(name):
        def hook(layer, inputs, output):
            # The gradient at a zero that is added to the output is the one at the output.
            zero = torch.zeros_like(output, requires_grad=y is not None)
            seen[name] = inputs[0].detach(), zero
            return output + zero

        return hook

    for name in layers:
        probe.get_submodule(name).register_forward_hook(watch(name))
    for start in range(0, len(x), batch_size):
        batch = slice(start, start + batch_size)
        with torch.set_grad_enabled(y is not None):
            logits = probe(x[batch])
            slopes: Sequence[Tensor] = [zero for _, zero in seen.values()]
            if y is not None:
                loss = F.cross_entropy(logits, y[batch], reduction="sum")
                slopes = torch.autograd.grad(loss, slopes, materialize_grads=True)
        yield {name: (inputs, slope) for (name, (inputs, _)), slope in zip(seen.items(), slopes, strict=True)}
