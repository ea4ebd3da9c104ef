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
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...comm.codec import from_upper_triangle, upper_triangle
from ...models import model_state
from ..parts.kronecker import Factors, add_damping, compute_damping_ratio, compute_kronecker_factors

# What a client sends: "samples", "state" and "factors", see `LocalPosterior.make_upload`.
Upload = dict[str, Any]


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """A client's Gaussian, layer by layer: its trained `state` is the mean, its undamped `factors` make the precision.

    `samples`: n_k; `parameters`: the names in the state that are trained, which are all but running statistics.
    """

    samples: int
    state: dict[str, Tensor]
    parameters: tuple[str, ...]
    factors: dict[str, Factors]

    @classmethod
    def measure(
        cls, module: nn.Module, samples: Tensor, labels: Tensor, conv_scale: str = "one"
    ) -> LocalPosterior:
        """The factor pass over a client's own `samples [n, ...]`, `labels [n]`; the module is left as it was."""
        factors = compute_kronecker_factors(module, samples, labels, conv_scale=conv_scale)
        parameters = tuple(name for name, _ in module.named_parameters())
        return cls(len(samples), model_state(module), parameters, factors)

    def make_upload(
        self, damping: float, pi: str, noise: float = 0.0, stream: torch.Generator | None = None
    ) -> Upload:
        """What a FedLPA client sends:

        samples: n_k, a whole number in the header, which counts no bytes
        state:   every tensor of the trained network by name, running statistics too
        factors: by layer the upper triangles of the damped factors (Eq. 10), a `[i (i+1) / 2]` and b `[o (o+1) / 2]`

        `noise` is a share of each tensor's size (`add_noise`), drawn from `stream`.
        """
        state = dict(self.state)
        for name in self.parameters:  # running statistics stay as they are
            state[name] = add_noise(state[name], noise, stream)
        triangles = {}
        for name, layer in self.factors.items():
            a = add_factor_noise(layer.a, noise, stream)
            b = add_factor_noise(layer.b, noise, stream)
            precision = add_damping(Factors(a, b), damping, compute_damping_ratio(layer, pi))
            triangles[name] = {"a": upper_triangle(precision.a), "b": upper_triangle(precision.b)}
        return {"samples": self.samples, "state": state, "factors": triangles}

    def damping_ratios(self, pi: str) -> list[float]:
        """π of each layer under a rule: "one" or "trace"."""
        return [compute_damping_ratio(layer, pi) for layer in self.factors.values()]

    @property
    def size(self) -> int:
        """Bytes of the tensors."""
        tensors = list(self.state.values())
        for layer in self.factors.values():
            tensors += [layer.a, layer.b]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def add_noise(tensor: Tensor, share: float, stream: torch.Generator | None) -> Tensor:
    """`tensor` plus independent Laplace noise of scale `share` times its root mean square.

    Its standard deviation is √2 times that. Drawn on the CPU in float64: device and dtype change nothing but rounding.
    """
    if not share:
        return tensor
    u = torch.rand(tensor.shape, generator=stream, dtype=torch.float64) - 0.5
    draw = -u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.5 - 1e-12))
    return tensor + share * tensor.square().mean().sqrt() * draw.to(tensor)


def add_factor_noise(matrix: Tensor, share: float, stream: torch.Generator | None) -> Tensor:
    """A positive semi-definite matrix with noise on its upper triangle, and no negative eigenvalue afterwards."""
    if not share:
        return matrix
    triangle = add_noise(upper_triangle(matrix), share, stream)
    values, vectors = torch.linalg.eigh(from_upper_triangle(triangle))
    clipped = (vectors * values.clamp(min=0)) @ vectors.T
    return (clipped + clipped.T) / 2


# ----------------------------------------------------------------------------------------------------------- label leak
# Which classes a client holds, read from FedLPA's upload: the probe that refutes "no label information is sent".
#
# The last layer's B is the mean of (p - y)(p - y)', so its diagonal is `E[(p_c - y_c)^2]`, by class. For a class that a
# client never saw this is a small probability squared; for one that it saw it is not. Damping adds the same number to
# every entry and hides nothing of the order. The guess is made by an attacker who knows how many classes a client
# holds.


def guess_classes(diagonal: Tensor, count: int) -> list[int]:
    """The `count` classes with the largest entries of `diagonal [C]` (of the last B), the attacker's guess, sorted."""
    return sorted(diagonal.topk(count).indices.tolist())


def measure_label_leak(diagonals: Tensor, counts: Tensor) -> dict[str, float]:
    """How well the guess does, from what M clients sent `[M, C]` and their true class counts `[M, C]`.

    `precision`: mean over the clients of the share of right guesses, where the attacker guesses as many classes as the
    client has; `chance`: the same for a blind guess, mean share of classes held.
    """
    precisions = []
    for diagonal, client_counts in zip(diagonals, counts, strict=True):
        classes = (client_counts > 0).nonzero().flatten().tolist()
        guess = guess_classes(diagonal, len(classes))
        precisions.append(len(set(guess) & set(classes)) / len(classes))
    chance = float((counts > 0).double().mean())
    return {"precision": sum(precisions) / len(precisions), "chance": chance}


def compute_gradient(module: nn.Module, samples: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean cross-entropy over the `samples [n, ...]`, `labels [n]`, by the parameter's name."""
    named = dict(module.named_parameters())
    gradients = torch.autograd.grad(F.cross_entropy(module(samples), labels), list(named.values()))
    return dict(zip(named, gradients, strict=True))


def recover_label(last_gradient: Tensor) -> int:
    """The label of one sample from the gradient `[C, d]` of the last layer's weights.

    Row c is (p_c - y_c) h. The features h are not negative after a ReLU, so only the label's row is below zero.
    """
    return int(last_gradient.sum(1).argmin())


def recover_image(weight_gradient: Tensor, bias_gradient: Tensor) -> Tensor:
    """The input `[d]` of the first layer from its gradients `[h, d]` and `[h]`.

    It is read at the unit with the largest gradient of the bias.
    """
    unit = int(bias_gradient.abs().argmax())
    return weight_gradient[unit] / bias_gradient[unit]
