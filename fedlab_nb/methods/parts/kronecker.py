"""Kronecker factors of a trained network's empirical Fisher, layer by layer.

For a layer with weights `Θ = [W b]` the Fisher block is approximated by `A (x) B`: `A` is the mean outer product of the
layer's inputs (a 1 appended for the bias), `B` that of the loss gradients at its outputs.
`compute_mean_kronecker_factors` measures both without damping, without labels A alone (RegMean); `add_damping` adds
the prior (FedLPA, Eq. 10). Linear and Conv2d have factors; other parameters have none.

The construction is that of Martens & Grosse (2015) for Linear and Grosse & Martens (2016) for Conv2d, with true labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import RunError, UsageError, check_allowed_name
from ...models.state import ModelState, copy_model
from ...tensor_types import (
    ClientShares,
    Labels,
    LayerMatrix,
    Samples,
    ScalarTensor,
    SquareMatrix,
    Vector,
)
from ..context import Context
from ..memory import SquareMatricesInMemory

LayerInputRows = Tensor  # [N, Q, inputs], Q = 1 for a linear layer
OutputGradientRows = Tensor  # [N Q, outputs]

LayerName = str  # as in `named_modules`
MatrixFunction = Callable[[Tensor], Tensor]  # of a matrix of the layer's shape

# How a convolution over Q positions shares its scale between the factors: A is multiplied by φ, B by 1/φ.
# φ = 1: the published construction (Grosse & Martens 2016); 1/Q: the curvlinops library's; 1/Q^2: the FedLPA authors'.
ConvScale = Literal["one", "curvlinops", "official"]
CONV_SCALES: tuple[ConvScale, ...] = get_args(ConvScale)
# pi = 1: the same damping on both factors; from the factors' mean diagonals (K-FAC): the damping follows their scales.
DampingSplit = Literal["one", "trace"]
PI_RULES: tuple[DampingSplit, ...] = get_args(DampingSplit)
# A client that fits its few classes perfectly has B near 0, and the trace rule would send pi to infinity. Beyond this
# value the damped block is lambda * I to rounding anyway.
PI_LIMIT = 1e6


@dataclass(frozen=True, eq=False)
class KroneckerFactors:
    """One layer's factors: `a [i, i]` of its inputs (i counts the appended 1), `b [o, o]` of its output gradients."""

    a: Tensor
    b: Tensor


def find_layers_with_kronecker_factors(module: nn.Module) -> dict[LayerName, nn.Linear | nn.Conv2d]:
    """Name -> layer for every layer that has Kronecker factors, in the order of the module tree."""
    layers: dict[str, nn.Linear | nn.Conv2d] = {}
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Conv2d) and not _is_plain_convolution(layer):
            raise UsageError(
                f"Layer {name!r} has groups or a special padding: Kronecker factors need a plain Conv2d."
            )
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            layers[name] = layer
    return layers


def _is_plain_convolution(layer: nn.Conv2d) -> bool:
    if layer.groups != 1 or layer.padding_mode != "zeros":
        return False
    return not isinstance(layer.padding, str)


def list_kronecker_factor_sizes(
    ctx: Context, *, has_output_factors: bool = True
) -> list[SquareMatricesInMemory]:
    """The factors of every client's network: A `[i, i]` and, with `has_output_factors`, B `[o, o]` of each layer."""
    count = 2 * ctx.clients_count  # as the clients have them, and as they have arrived
    matrices = []
    for layer in find_layers_with_kronecker_factors(ctx.initial_model()).values():
        rows, columns = append_bias_column(layer.weight, layer.bias).shape
        matrices.append(SquareMatricesInMemory(count, columns, ctx.dtype.itemsize))
        if has_output_factors:
            matrices.append(SquareMatricesInMemory(count, rows, ctx.dtype.itemsize))
    return matrices


def append_bias_column(weight: LayerMatrix, bias: Vector | None) -> LayerMatrix:
    """The layer as a matrix `Θ [o, i]`: the weight, one row an output; the bias, if there is one, as last column."""
    rows = weight.reshape(len(weight), -1)
    if bias is None:
        return rows
    return torch.cat([rows, bias[:, None]], 1)


def join_weight_and_bias_of_layer(state: Mapping[str, Tensor], layer_name: str) -> LayerMatrix:
    """`Θ [o, i]` of the layer of that name in a state dict."""
    return append_bias_column(state[f"{layer_name}.weight"], state.get(f"{layer_name}.bias"))


def copy_state_with_layers(
    state: Mapping[str, Tensor], matrices: Mapping[LayerName, LayerMatrix]
) -> ModelState:
    """A copy of `state` with the layers of `matrices` (name -> `Θ [o, i]`) put in; all other entries stay."""
    new = dict(state)
    for layer, matrix in matrices.items():
        weight = state[f"{layer}.weight"]
        bias = state.get(f"{layer}.bias")
        new[f"{layer}.weight"] = matrix[:, : weight[0].numel()].reshape(weight.shape).to(weight)
        if bias is not None:
            new[f"{layer}.bias"] = matrix[:, -1].to(bias)
    return new


def compute_mean_kronecker_factors(
    module: nn.Module,
    samples: Samples,
    true_labels_or_none_for_zero_b: Labels | None,
    *,
    conv_scale: ConvScale = "one",
    batch_size: int = 128,
) -> dict[LayerName, KroneckerFactors]:
    """Undamped factors of every Linear and Conv2d layer of `module` at its present weights.

    `samples [n, ...]` and `true_labels_or_none_for_zero_b [n]` are the samples and their true labels; the loss is the
    cross-entropy of one sample. With sums over samples s and the Q positions t of a convolution (Q = 1 for Linear),
    `A = φ/n sum a a'` and `B = 1/(φ Q n) sum b b'` (FedLPA, Eq. 10 without damping; φ is `conv_scale`, 1 for
    Linear). The module is run in eval mode and left as it was; `batch_size` only bounds the memory. Without labels
    B is 0.
    """
    check_allowed_name("conv_scale", conv_scale, CONV_SCALES)
    layers = find_layers_with_kronecker_factors(module)
    sums = {}
    for name, layer in layers.items():
        outputs, inputs = append_bias_column(layer.weight, layer.bias).shape
        sums[name] = KroneckerFactors(
            samples.new_zeros(inputs, inputs), samples.new_zeros(outputs, outputs)
        )
    positions = dict.fromkeys(layers, 1)
    for batch in iterate_layer_inputs_and_gradients(
        module, layers, samples, true_labels_or_none_for_zero_b, batch_size
    ):
        for name, (layer_input, gradient) in batch.items():
            patches = flatten_layer_inputs_with_bias_one(layers[name], layer_input)
            positions[name] = patches.shape[1]
            rows = patches.flatten(0, 1)
            sums[name].a.addmm_(rows.T, rows)
            slopes = flatten_output_gradients(layers[name], gradient)
            sums[name].b.addmm_(slopes.T, slopes)
    factors = {}
    for name, q in positions.items():
        phi = {"one": 1.0, "curvlinops": 1 / q, "official": 1 / q**2}[conv_scale]
        # Exactly symmetric, as only one triangle will be sent.
        a = (sums[name].a + sums[name].a.T) / 2
        b = (sums[name].b + sums[name].b.T) / 2
        factors[name] = KroneckerFactors(a * (phi / len(samples)), b / (phi * q * len(samples)))
    return factors


def compute_damping_ratio(factors: KroneckerFactors, damping_split: DampingSplit = "one") -> float:
    """pi of Eq. 10, which splits the damping: 1, or K-FAC's `sqrt(mean diagonal of A / mean diagonal of B)`.

    The paper gives no formula. The ratio is kept within `[1/PI_LIMIT, PI_LIMIT]`.
    """
    if check_allowed_name("pi", damping_split, PI_RULES) == "one":
        return 1.0
    means = [factor.diagonal().double().mean() for factor in (factors.a, factors.b)]
    a, b = torch.stack(means).tolist()  # together: on a GPU each question waits
    if b <= a / PI_LIMIT**2:
        return PI_LIMIT
    return max((a / b) ** 0.5, 1 / PI_LIMIT)


def add_damping(
    factors: KroneckerFactors, damping_lambda: float, damping_ratio: float = 1.0
) -> KroneckerFactors:
    """Eq. 10: `A + pi sqrt(lambda) I` and `B + sqrt(lambda)/pi I`; `damping_ratio` is pi."""
    root = damping_lambda**0.5
    return KroneckerFactors(
        add_to_diagonal(factors.a, damping_ratio * root),
        add_to_diagonal(factors.b, root / damping_ratio),
    )


def flatten_layer_inputs_with_bias_one(layer: nn.Module, layer_inputs: Samples) -> LayerInputRows:
    """Layer inputs `[N, Q, i]`, with a 1 appended if the layer has a bias.

    A convolution's inputs are its patches, in the order of `weight.flatten(1)`.
    """
    if isinstance(layer, nn.Conv2d):
        assert not isinstance(layer.padding, str)  # see find_layers_with_kronecker_factors
        patches = F.unfold(
            layer_inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride
        )
        rows = patches.transpose(1, 2)
    else:
        rows = layer_inputs.reshape(len(layer_inputs), -1, layer_inputs.shape[-1])
    if layer.bias is None:
        return rows
    return F.pad(rows, (0, 1), value=1.0)


def flatten_output_gradients(layer: nn.Module, output_gradient: Tensor) -> OutputGradientRows:
    """Output gradients `[N*Q, o]`, one row for each row of `flatten_layer_inputs_with_bias_one`."""
    if isinstance(layer, nn.Conv2d):
        output_gradient = output_gradient.flatten(2).transpose(1, 2)
    return output_gradient.reshape(-1, output_gradient.shape[-1])


def add_to_diagonal(matrix: SquareMatrix, value: float) -> SquareMatrix:
    """`matrix + value I`, for a `matrix [d, d]`."""
    return matrix + value * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)


# ------------------------------------------------------------------------------------------------------------- layer io
# What passes through the layers of a trained network: inputs, and the gradients of each sample's loss at the outputs.
#
# The raw material of Kronecker factors (FedLPA, RegMean) and of the diagonal Fisher (Fisher merging).


class InputAndGradient(NamedTuple):
    """The input of a layer for a batch, and the gradient of the loss at its output, both `[b, ...]`."""

    layer_input: Tensor
    output_gradient: Tensor


def iterate_layer_inputs_and_gradients(
    module: nn.Module,
    layer_names: Iterable[LayerName],
    samples: Samples,
    true_labels_or_none_for_zero_gradients: Labels | None,
    batch_size: int,
) -> Iterator[dict[LayerName, InputAndGradient]]:
    """For each batch of `samples [n, ...]`, labels `[n]`: layer name -> its input, and the gradient at its output.

    The loss is the cross-entropy with the true labels, summed, so that every gradient is one sample's own; without
    labels they are 0, and none is computed. The module is run in eval mode and left as it was.
    """
    labels = true_labels_or_none_for_zero_gradients
    count = len(samples) if labels is None else len(labels)
    if len(samples) == 0 or len(samples) != count:
        raise UsageError(
            f"There are {len(samples)} samples and {count} labels; give one label for each sample."
        )
    probe = copy_model(module).eval().requires_grad_(False)
    recorded: dict[str, tuple[Tensor, Tensor]] = {}  # {layer: (input, zero added to the output)}

    def make_hook(name):
        def hook(layer, inputs, output):
            # The gradient at a zero that is added to the output is the one at the output.
            zero = torch.zeros_like(output, requires_grad=labels is not None)
            recorded[name] = inputs[0].detach(), zero
            return output + zero

        return hook

    for name in layer_names:
        probe.get_submodule(name).register_forward_hook(make_hook(name))
    for start in range(0, len(samples), batch_size):
        batch = slice(start, start + batch_size)
        with torch.set_grad_enabled(labels is not None):
            logits = probe(samples[batch])
            slopes: Sequence[Tensor] = [zero for _, zero in recorded.values()]
            if labels is not None:
                loss = F.cross_entropy(logits, labels[batch], reduction="sum")
                slopes = torch.autograd.grad(loss, slopes, materialize_grads=True)
        results = {}
        for name, slope in zip(recorded, slopes, strict=True):
            layer_input, _ = recorded[name]
            results[name] = InputAndGradient(layer_input, slope)
        yield results


# ------------------------------------------------------------------------------------------------------------ posterior
# The server side of FedLPA for one layer: the mean of a product of M Gaussians with Kronecker-factored precisions.
#
# Client k sends the layer's weights `Θ_k [o, i]` and the precision `A_k (x) B_k`; the global layer solves
#
#     sum_k w_k B_k Θ A_k = Z,    Z = sum_k w_k B_k Θ_k A_k                                  (Eqs. 11-13)
#
# Everything stays in the matrix form `B Θ A`, which equals `(A (x) B) vec(Θ)` with stacked columns; nothing is ever
# flattened. `fedlpa/solvers.py` solves it.


@dataclass(frozen=True, eq=False)
class LayerPosterior:
    """One layer's linear system: weights `m [M, o, i]`, damped factors `a [M, i, i]`, `b [M, o, o]`, trust `w [M]`."""

    m: Tensor
    a: Tensor
    b: Tensor
    w: Tensor

    @classmethod
    def from_clients(
        cls,
        client_matrices: Sequence[LayerMatrix],
        client_factors: Sequence[KroneckerFactors],
        client_weights: Sequence[float] | ClientShares,
    ) -> LayerPosterior:
        """The system of M clients; `client_weights` are n_k/N (their sum is 1), or 1/M each."""
        m = torch.stack(list(client_matrices))
        a = torch.stack([f.a for f in client_factors])
        b = torch.stack([f.b for f in client_factors])
        w = torch.as_tensor(client_weights, dtype=m.dtype, device=m.device)
        return cls(m, a, b, w)

    @cached_property
    def precision_weighted_sum(self) -> LayerMatrix:
        """Z `[o, i]`: the clients' weights, each multiplied by its own precision (Eq. 12)."""
        return self._sum_weighted_over_clients(self.b @ self.m @ self.a)

    @cached_property
    def weighted_client_average(self) -> LayerMatrix:
        """The plain weighted average `[o, i]`, which the solution tends to as the damping grows."""
        return self._sum_weighted_over_clients(self.m) / self.w.sum()

    def apply_precision(self, matrix: LayerMatrix) -> LayerMatrix:
        """`S Θ = sum_k w_k B_k Θ A_k`; S is symmetric positive definite."""
        return self._sum_weighted_over_clients(self.b @ matrix @ self.a)

    def compute_relative_residual(self, residual: LayerMatrix) -> ScalarTensor:
        """`|residual| / |Z|`, and 0 when both are 0."""
        return residual.norm() / self.precision_weighted_sum.norm().clamp_min(
            torch.finfo(self.precision_weighted_sum.dtype).tiny
        )

    @cached_property
    def apply_approximate_inverse(self) -> MatrixFunction:
        """R -> `Bbar^-1 R Abar^-1` with the weighted means of the factors: the inverse that EA takes for that of S.

        Raises RunError if a mean factor is not finite or has no positive direction.
        """
        total = self.w.sum()
        # S ~ (sum w) Abar (x) Bbar; dividing by the total keeps the scale right also when the weights do not sum to 1.
        a_inverse = make_inverse_multiplier(self._sum_weighted_over_clients(self.a) / total)
        b_inverse = make_inverse_multiplier(self._sum_weighted_over_clients(self.b) / total)
        return lambda r: a_inverse(b_inverse(r).T).T / total

    def solve_with_averaged_factors(self) -> LayerMatrix:
        """Eq. 16: `Bbar^-1 Z Abar^-1`. Exact if all A_k or all B_k are equal; otherwise biased by the cross terms."""
        return self.apply_approximate_inverse(self.precision_weighted_sum)

    def estimate_largest_squared_eigenvalue(self, power_iterations: int = 30) -> ScalarTensor:
        """L, the largest eigenvalue of S squared, by power iterations from Z.

        A Rayleigh quotient lies below the eigenvalue; its error |S v - rho v| is added, so that 1/L is short.
        """
        v = self.precision_weighted_sum
        tiny = torch.finfo(self.precision_weighted_sum.dtype).tiny
        for _ in range(power_iterations):
            v = v / v.norm().clamp_min(tiny)
            product = self.apply_precision(v)
            rho = (v * product).sum()
            error = (product - rho * v).norm()
            v = product
        return (rho + error).square().clamp_min(tiny)

    def _sum_weighted_over_clients(self, stack: Tensor) -> Tensor:
        return torch.tensordot(self.w, stack, dims=1)


def make_inverse_multiplier(matrix: SquareMatrix) -> MatrixFunction:
    """R -> `matrix^-1 R` for a symmetric positive definite matrix `[d, d]`.

    Where the damping is below the matrix's own rounding, directions that no data excite would be filled with amplified
    noise; they are then left out (a pseudo-inverse).
    """
    if not torch.isfinite(matrix).all():
        raise RunError(
            "A layer's factor is not finite: a client's training has diverged; use a smaller learning rate."
        )
    rounding = torch.finfo(matrix.dtype).eps * matrix.diagonal().max()
    lower, info = torch.linalg.cholesky_ex(matrix)
    if info == 0 and lower.diagonal().min() ** 2 > rounding:
        return lambda r: torch.cholesky_solve(r, lower)
    values, vectors = torch.linalg.eigh(matrix)
    excited = values > len(matrix) * rounding
    if rounding <= 0 or not excited.any():
        raise RunError("A layer's mean factor is not positive definite; use a larger damping.")
    values = values[excited, None]
    vectors = vectors[:, excited]
    return lambda r: vectors @ (vectors.T @ r / values)
