"""FedLPA's client: what it measures after its training, and what it sends of that (`LocalPosterior.upload`).

With noise, to see how much the method tolerates; it is no privacy guarantee. FedLPA's paper adds Laplace noise to the
sent parameters and calls it differential privacy, with a sensitivity of 1 that nothing enforces (weights and factors
are not bounded). So the scale is stated here for what it is: a share of each tensor's own root mean square.

What an attacker reads off it is here, too: the classes off the last factor, and beside it, to compare with, what the
gradient of a few samples gives away. iDLG (Zhao et al. 2020) reads the label off the sign of the last layer's gradient,
and then searches for an image with the same gradient. Where the first layer is linear and has a bias, no search is
needed: the gradient of unit i is (dL/dz_i) x for its weights and dL/dz_i for its bias, so that their quotient is the
image itself (Phong et al. 2018). For several samples it is a mixture of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...comm.codec import from_upper_triangle, upper_triangle
from ...models import model_state
from ..parts.kronecker import Factors, damped, damping_ratio, kronecker_factors


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
        cls, module: nn.Module, x: Tensor, y: Tensor, conv_scale: str = "one"
    ) -> LocalPosterior:
        """The factor pass over a client's own samples `x [n, ...]`, `y [n]`; the module is left as it was."""
        factors = kronecker_factors(module, x, y, conv_scale=conv_scale)
        return cls(
            len(x),
            model_state(module),
            tuple(name for name, _ in module.named_parameters()),
            factors,
        )

    def upload(
        self, damping: float, pi: str, noise: float = 0.0, stream: torch.Generator | None = None
    ) -> dict:
        """What a FedLPA client sends:

        samples: n_k, a whole number in the header, which counts no bytes
        state:   every tensor of the trained network by name, running statistics too
        factors: by layer the upper triangles of the damped factors (Eq. 10), a `[i (i+1) / 2]` and b `[o (o+1) / 2]`

        `noise` is a share of each tensor's size (`noisy`), drawn from `stream`.
        """
        state, triangles = dict(self.state), {}
        for name in self.parameters:  # running statistics stay
            state[name] = noisy(state[name], noise, stream)
        for name, layer in self.factors.items():
            noised = Factors(
                noisy_factor(layer.a, noise, stream), noisy_factor(layer.b, noise, stream)
            )
            precision = damped(noised, damping, damping_ratio(layer, pi))
            triangles[name] = {"a": upper_triangle(precision.a), "b": upper_triangle(precision.b)}
        return {"samples": self.samples, "state": state, "factors": triangles}

    def ratios(self, pi: str) -> list[float]:
        """π of each layer under a rule: "one" or "trace"."""
        return [damping_ratio(layer, pi) for layer in self.factors.values()]

    @property
    def size(self) -> int:
        """Bytes of the tensors."""
        tensors = [
            *self.state.values(),
            *(t for layer in self.factors.values() for t in (layer.a, layer.b)),
        ]
        return sum(t.numel() * t.element_size() for t in tensors)


def noisy(tensor: Tensor, share: float, stream: torch.Generator | None) -> Tensor:
    """`tensor` plus independent Laplace noise of scale `share` times its root mean square.

    Its standard deviation is √2 times that. Drawn on the CPU in float64: device and dtype change nothing but rounding.
    """
    if not share:
        return tensor
    u = torch.rand(tensor.shape, generator=stream, dtype=torch.float64) - 0.5
    draw = -u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.5 - 1e-12))
    return tensor + share * tensor.square().mean().sqrt() * draw.to(tensor)


def noisy_factor(matrix: Tensor, share: float, stream: torch.Generator | None) -> Tensor:
    """A positive semi-definite matrix with noise on its upper triangle, and no negative eigenvalue afterwards."""
    if not share:
        return matrix
    values, vectors = torch.linalg.eigh(
        from_upper_triangle(noisy(upper_triangle(matrix), share, stream))
    )
    mended = (vectors * values.clamp(min=0)) @ vectors.T
    return (mended + mended.T) / 2


# ----------------------------------------------------------------------------------------------------------- label leak
# Which classes a client holds, read off FedLPA's upload: the probe that refutes "no label information is sent".
#
# The last layer's B is the mean of (p - y)(p - y)', so its diagonal is `E[(p_c - y_c)^2]`, by class. For a class that a
# client never saw this is a small probability squared; for one that it saw it is not. Damping adds the same number to
# every entry and hides nothing of the order. The guess is made by an attacker who knows how many classes a client
# holds.


def classes_read_off(diagonal: Tensor, count: int) -> list[int]:
    """The `count` classes with the largest entries of `diagonal [C]` (of the last B), the attacker's guess, sorted."""
    return sorted(diagonal.topk(count).indices.tolist())


def label_leak(diagonals: Tensor, counts: Tensor) -> dict[str, float]:
    """How well the guess does, from what M clients sent `[M, C]` and their true class counts `[M, C]`.

    `precision`: mean over the clients of the share of right guesses, where the attacker guesses as many classes as the
    client has; `chance`: the same for a blind guess, mean share of classes held.
    """
    hits = []
    for diagonal, own in zip(diagonals, counts, strict=True):
        held = (own > 0).nonzero().flatten().tolist()
        hits.append(len(set(classes_read_off(diagonal, len(held))) & set(held)) / len(held))
    return {"precision": sum(hits) / len(hits), "chance": float((counts > 0).double().mean())}


def gradient_of(module: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean cross-entropy over the samples `x [n, ...]`, `y [n]`, by the parameter's name."""
    named = dict(module.named_parameters())
    gradients = torch.autograd.grad(F.cross_entropy(module(x), y), list(named.values()))
    return dict(zip(named, gradients, strict=True))


def label_from(last: Tensor) -> int:
    """The label of one sample from the gradient `[C, d]` of the last layer's weights: row c is (p_c - y_c) h. The
    features h are not negative after a ReLU, so only the label's row points below zero."""
    return int(last.sum(1).argmin())


def image_from(weight: Tensor, bias: Tensor) -> Tensor:
    """The input `[d]` of the first layer from its gradients `[h, d]` and `[h]`, at the unit whose bias moves most."""
    unit = int(bias.abs().argmax())
    return weight[unit] / bias[unit]
