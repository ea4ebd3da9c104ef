"""Kronecker factors of a trained network's empirical Fisher, layer by layer.

For a layer with weights `Θ = [W b]` the Fisher block is approximated by `A (x) B`: `A` is the mean outer product of the
layer's inputs (a 1 appended for the bias), `B` that of the loss gradients at its outputs. `kronecker_factors` measures
both without damping, `input_factors` the first alone (RegMean); `damped` adds the prior (FedLPA, Eq. 10). Linear and
Conv2d have factors; other parameters have none.

The construction is that of Martens & Grosse (2015) for Linear and Grosse & Martens (2016) for Conv2d, with true labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import UsageError, choose
from .layer_io import inputs_and_gradients

# How a convolution over Q positions shares its scale between the factors: A is multiplied by φ, B by 1/φ.
# φ = 1: the published construction (Grosse & Martens 2016); 1/Q: the curvlinops library's; 1/Q^2: the FedLPA authors'.
CONV_SCALES = ("one", "curvlinops", "official")
# pi = 1: the same damping on both factors; from the factors' mean diagonals (K-FAC): the damping follows their scales.
PI_RULES = ("one", "trace")
# A client that fits its few classes perfectly has B near 0, and the trace rule would send pi to infinity. Beyond this
# value the damped block is lambda * I to rounding anyway.
PI_LIMIT = 1e6


@dataclass(frozen=True, eq=False)
class Factors:
    """One layer's factors: `a [i, i]` of its inputs (i counts the appended 1), `b [o, o]` of its output gradients."""

    a: Tensor
    b: Tensor


def factor_layers(module: nn.Module) -> dict[str, nn.Linear | nn.Conv2d]:
    """Name -> layer for every layer that has Kronecker factors, in the order of the module tree."""
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, (nn.Linear, nn.Conv2d))}
    for name, layer in layers.items():
        plain = isinstance(layer, nn.Linear) or (
            layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        )
        if not plain:
            raise UsageError(f"Layer {name!r} has groups or a special padding: Kronecker factors need a plain Conv2d.")
    return layers


def join(weight: Tensor, bias: Tensor | None) -> Tensor:
    """The layer as a matrix `Θ [o, i]`: the weight, one row an output; the bias, if there is one, as last column."""
    rows = weight.reshape(len(weight), -1)
    return rows if bias is None else torch.cat([rows, bias[:, None]], 1)


def layer_matrix(state: Mapping[str, Tensor], layer: str) -> Tensor:
    """`Θ [o, i]` of the layer of that name in a state dict."""
    return join(state[f"{layer}.weight"], state.get(f"{layer}.bias"))


def with_layers(state: Mapping[str, Tensor], matrices: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of `state` with the layers of `matrices` (name -> `Θ [o, i]`) put in; all other entries stay."""
    new = dict(state)
    for layer, matrix in matrices.items():
        weight, bias = state[f"{layer}.weight"], state.get(f"{layer}.bias")
        new[f"{layer}.weight"] = matrix[:, : weight[0].numel()].reshape(weight.shape).to(weight)
        if bias is not None:
            new[f"{layer}.bias"] = matrix[:, -1].to(bias)
    return new


def kronecker_factors(
    module: nn.Module, x: Tensor, y: Tensor | None, *, conv_scale: str = "one", batch_size: int = 128
) -> dict[str, Factors]:
    """Undamped factors of every Linear and Conv2d layer of `module` at its present weights.

    `x [n, ...]` and `y [n]` are the samples and their true labels; the loss is the cross-entropy of one sample. With
    sums over samples s and the Q positions t of a convolution (Q = 1 for Linear), `A = φ/n sum a a'` and
    `B = 1/(φ Q n) sum b b'` (FedLPA, Eq. 10 without damping; φ is `conv_scale`, 1 for Linear). The module is run in
    eval mode and left as it was; `batch_size` only bounds the memory. Without labels B is 0.
    """
    choose("conv_scale", conv_scale, CONV_SCALES)
    layers = factor_layers(module)
    shapes = {name: join(layer.weight, layer.bias).shape for name, layer in layers.items()}
    sums = {name: Factors(x.new_zeros(i, i), x.new_zeros(o, o)) for name, (o, i) in shapes.items()}
    positions = dict.fromkeys(layers, 1)
    for batch in inputs_and_gradients(module, layers, x, y, batch_size):
        for name, (inputs, gradient) in batch.items():
            rows = input_rows(layers[name], inputs)
            positions[name] = rows.shape[1]
            flat = rows.flatten(0, 1)
            sums[name].a.addmm_(flat.T, flat)
            slopes = output_rows(layers[name], gradient)
            sums[name].b.addmm_(slopes.T, slopes)
    factors = {}
    for name, t in positions.items():
        c = {"one": 1.0, "curvlinops": 1 / t, "official": 1 / t**2}[conv_scale]
        a, b = ((total + total.T) / 2 for total in (sums[name].a, sums[name].b))  # one triangle will be sent
        factors[name] = Factors(a * (c / len(x)), b / (c * t * len(x)))
    return factors


def input_factors(module: nn.Module, x: Tensor, *, conv_scale: str = "one", batch_size: int = 128) -> dict[str, Tensor]:
    """The A factors `[i, i]` of `kronecker_factors` alone, by layer: forward passes only, no labels."""
    factors = kronecker_factors(module, x, None, conv_scale=conv_scale, batch_size=batch_size)
    return {name: layer.a for name, layer in factors.items()}


def damping_ratio(factors: Factors, rule: str = "one") -> float:
    """pi of Eq. 10, which splits the damping: 1, or K-FAC's `sqrt(mean diagonal of A / mean diagonal of B)`.

    The paper gives no formula. The ratio is kept within `[1/PI_LIMIT, PI_LIMIT]`.
    """
    if choose("pi", rule, PI_RULES) == "one":
        return 1.0
    a, b = torch.stack([factor.diagonal().double().mean() for factor in (factors.a, factors.b)]).tolist()
    if b <= a / PI_LIMIT**2:
        return PI_LIMIT
    return max((a / b) ** 0.5, 1 / PI_LIMIT)


def damped(factors: Factors, damping: float, pi: float = 1.0) -> Factors:
    """Eq. 10: `A + pi sqrt(lambda) I` and `B + sqrt(lambda)/pi I`, for `damping` = lambda."""
    root = damping**0.5
    return Factors(_plus_identity(factors.a, pi * root), _plus_identity(factors.b, root / pi))


def input_rows(layer: nn.Module, x: Tensor) -> Tensor:
    """Layer inputs `[N, Q, i]`; a convolution's are its patches in the order of `weight.flatten(1)`."""
    if isinstance(layer, nn.Conv2d):
        assert not isinstance(layer.padding, str)  # see factor_layers
        rows = F.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride).transpose(1, 2)
    else:
        rows = x.reshape(len(x), -1, x.shape[-1])
    return rows if layer.bias is None else F.pad(rows, (0, 1), value=1.0)


def output_rows(layer: nn.Module, gradient: Tensor) -> Tensor:
    """Output gradients `[N*Q, o]`, one row for each row of `input_rows`."""
    if isinstance(layer, nn.Conv2d):
        gradient = gradient.flatten(2).transpose(1, 2)
    return gradient.reshape(-1, gradient.shape[-1])


def _plus_identity(matrix: Tensor, value: float) -> Tensor:
    return matrix + value * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
