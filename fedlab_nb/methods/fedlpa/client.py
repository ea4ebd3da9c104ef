"""FedLPA's client: what it measures after its training, and what it sends of that (`LocalPosterior.make_upload`).

It can add noise to what it sends, which shows how much the method tolerates and is no privacy guarantee. FedLPA's paper
adds Laplace noise to the sent parameters and calls it differential privacy, with a sensitivity of 1 that nothing
enforces (weights and factors are not bounded). Here the scale is a share of each tensor's own root mean square.

Attacks on the upload are here, too: the classes are read from the last factor; and, for comparison, label and image
from the gradient of a few samples. iDLG (Zhao et al. 2020) reads the label from the sign of the last layer's gradient,
and then searches for an image with the same gradient. Where the first layer is linear and has a bias, no search is
needed: the gradient of unit i is (dL/dz_i) x for its weights and dL/dz_i for its bias, so that their quotient is the
image itself (Phong et al. 2018). For several samples it is a mixture of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...comm.codec import pack_upper_triangle, unpack_upper_triangle
from ...models import copy_model_state
from ...tensor_types import (
    ClientClassCounts,
    Labels,
    LayerMatrix,
    Samples,
    SquareMatrix,
    TensorsByName,
    ValuePerClientAndClass,
    Vector,
)
from ..parts.kronecker import (
    ConvScale,
    DampingSplit,
    KroneckerFactors,
    add_damping,
    compute_damping_ratio,
    compute_mean_kronecker_factors,
)


# What a client sends: "samples", "state" and "factors", see `LocalPosterior.make_upload`.
class FactorTriangles(TypedDict):
    """Upper triangles of a layer's damped factors (Eq. 10): a `[i (i+1) / 2]`, b `[o (o+1) / 2]`."""

    a: Tensor
    b: Tensor


class PosteriorUpload(TypedDict):
    """A FedLPA client's upload.

    samples: n_k, a whole number in the header, which counts no bytes
    state: every tensor of the trained network by name, running statistics too
    factors: by the name of the layer
    """

    samples: int
    state: dict[str, Tensor]
    factors: dict[str, FactorTriangles]


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """A client's Gaussian, layer by layer: its trained `state` is the mean, its undamped `factors` make the precision.

    `samples`: n_k; `parameters`: the names in the state that are trained, which are all but running statistics.
    """

    samples: int
    state: dict[str, Tensor]
    parameters: tuple[str, ...]
    factors: dict[str, KroneckerFactors]

    @classmethod
    def measure(
        cls, module: nn.Module, samples: Samples, labels: Labels, conv_scale: ConvScale = "one"
    ) -> LocalPosterior:
        """The factor pass over a client's own `samples [n, ...]`, `labels [n]`; the module is left as it was."""
        factors = compute_mean_kronecker_factors(module, samples, labels, conv_scale=conv_scale)
        parameters = tuple(name for name, _ in module.named_parameters())
        return cls(len(samples), copy_model_state(module), parameters, factors)

    def make_upload(
        self,
        damping: float,
        damping_split: DampingSplit,
        noise_relative_to_rms: float = 0.0,
        noise_stream: torch.Generator | None = None,
    ) -> PosteriorUpload:
        """The message of this client.

        noise_relative_to_rms: the scale of the noise, as a share of each tensor's root mean square
        noise_stream: draws the noise; not needed without
        """
        state = dict(self.state)
        for name in self.parameters:  # running statistics stay as they are
            state[name] = add_laplace_noise(state[name], noise_relative_to_rms, noise_stream)
        triangles = {}
        for name, layer in self.factors.items():
            a = add_noise_and_remove_negative_eigenvalues(
                layer.a, noise_relative_to_rms, noise_stream
            )
            b = add_noise_and_remove_negative_eigenvalues(
                layer.b, noise_relative_to_rms, noise_stream
            )
            precision = add_damping(
                KroneckerFactors(a, b), damping, compute_damping_ratio(layer, damping_split)
            )
            triangles[name] = FactorTriangles(
                a=pack_upper_triangle(precision.a), b=pack_upper_triangle(precision.b)
            )
        return PosteriorUpload(samples=self.samples, state=state, factors=triangles)

    def compute_damping_ratio_of_each_layer(self, damping_split: DampingSplit) -> list[float]:
        """π of each layer under a rule: "one" or "trace"."""
        return [compute_damping_ratio(layer, damping_split) for layer in self.factors.values()]

    @property
    def byte_count(self) -> int:
        """The bytes of the tensors in memory, with the whole factors."""
        tensors = list(self.state.values())
        for layer in self.factors.values():
            tensors += [layer.a, layer.b]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def add_laplace_noise(
    tensor: Tensor, scale_relative_to_rms: float, noise_stream: torch.Generator | None
) -> Tensor:
    """`tensor` plus independent Laplace noise of scale `scale_relative_to_rms` times its root mean square.

    Its standard deviation is √2 times that. Drawn on the CPU in float64: device and dtype change nothing but rounding.
    """
    if not scale_relative_to_rms:
        return tensor
    u = torch.rand(tensor.shape, generator=noise_stream, dtype=torch.float64) - 0.5
    draw = -u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.5 - 1e-12))
    return tensor + scale_relative_to_rms * tensor.square().mean().sqrt() * draw.to(tensor)


def add_noise_and_remove_negative_eigenvalues(
    matrix: SquareMatrix, scale_relative_to_rms: float, noise_stream: torch.Generator | None
) -> SquareMatrix:
    """A positive semi-definite matrix with noise on its upper triangle, and no negative eigenvalue afterwards."""
    if not scale_relative_to_rms:
        return matrix
    triangle = add_laplace_noise(pack_upper_triangle(matrix), scale_relative_to_rms, noise_stream)
    values, vectors = torch.linalg.eigh(unpack_upper_triangle(triangle))
    clipped = (vectors * values.clamp(min=0)) @ vectors.T
    return (clipped + clipped.T) / 2


# ----------------------------------------------------------------------------------------------------------- label leak
# Which classes a client holds, read from FedLPA's upload: the probe that refutes "no label information is sent".
#
# The last layer's B is the mean of (p - y)(p - y)', so its diagonal is `E[(p_c - y_c)^2]`, by class. For a class that a
# client never saw this is a small probability squared; for one that it saw it is not. Damping adds the same number to
# every entry and hides nothing of the order. The guess is made by an attacker who knows how many classes a client
# holds.


def guess_client_classes_from_diagonal(
    output_factor_diagonal: Vector, guessed_class_count: int
) -> list[int]:
    """The attacker's guess: the classes with the largest entries of the last B's diagonal `[C]`, ascending."""
    return sorted(output_factor_diagonal.topk(guessed_class_count).indices.tolist())


class PrecisionAndChanceOfGuess(TypedDict):
    """The success of an attacker who guesses as many classes as a client has.

    precision: share of right guesses, the mean over the clients
    chance: the same for blind guesses: the mean share of classes that a client has
    """

    precision: float
    chance: float


def measure_label_leak(
    output_factor_diagonals: ValuePerClientAndClass, client_class_counts: ClientClassCounts
) -> PrecisionAndChanceOfGuess:
    """The success of the guess, from the M uploaded diagonals `[M, C]` and the true class counts `[M, C]`."""
    precisions = []
    for diagonal, client_counts in zip(output_factor_diagonals, client_class_counts, strict=True):
        classes = (client_counts > 0).nonzero().flatten().tolist()
        guess = guess_client_classes_from_diagonal(diagonal, len(classes))
        precisions.append(len(set(guess) & set(classes)) / len(classes))
    chance = float((client_class_counts > 0).double().mean())
    return PrecisionAndChanceOfGuess(precision=sum(precisions) / len(precisions), chance=chance)


def compute_mean_loss_gradients(
    module: nn.Module, samples: Samples, labels: Labels
) -> TensorsByName:
    """The gradient of the mean cross-entropy over the `samples [n, ...]`, `labels [n]`, by the parameter's name."""
    named = dict(module.named_parameters())
    gradients = torch.autograd.grad(F.cross_entropy(module(samples), labels), list(named.values()))
    return dict(zip(named, gradients, strict=True))


def recover_label_of_single_sample(last_layer_weight_gradient: LayerMatrix) -> int:
    """The label of one sample from the gradient `[C, d]` of the last layer's weights.

    Row c is (p_c - y_c) h. The features h are not negative after a ReLU, so only the label's row is below zero.
    """
    return int(last_layer_weight_gradient.sum(1).argmin())


def recover_flat_image_from_gradients(
    first_layer_weight_gradient: LayerMatrix, first_layer_bias_gradient: Vector
) -> Vector:
    """The input `[d]` of the first layer from its gradients `[h, d]` and `[h]`.

    It is read at the unit with the largest gradient of the bias.
    """
    unit = int(first_layer_bias_gradient.abs().argmax())
    return first_layer_weight_gradient[unit] / first_layer_bias_gradient[unit]
