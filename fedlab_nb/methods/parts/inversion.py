"""What the gradient of a few samples gives away of them: the label, as iDLG reads it, and the image, as a quotient.

iDLG (Zhao et al. 2020) reads the label off the sign of the last layer's gradient, and then searches for an image with
the same gradient. Where the first layer is linear and has a bias, no search is needed: the gradient of unit i is
(dL/dz_i) x for its weights and dL/dz_i for its bias, so that their quotient is the image itself (Phong et al. 2018).
For several samples it is a mixture of them.
"""

from torch import Tensor, autograd, nn
from torch.nn import functional as F


def gradient_of(module: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean cross-entropy over the samples `x [n, ...]`, `y [n]`, by the parameter's name."""
    named = dict(module.named_parameters())
    gradients = autograd.grad(F.cross_entropy(module(x), y), list(named.values()))
    return dict(zip(named, gradients, strict=True))


def label_from(last: Tensor) -> int:
    """The label of one sample from the gradient `[C, d]` of the last layer's weights: row c is (p_c - y_c) h. The
    features h are not negative after a ReLU, so only the label's row points below zero."""
    return int(last.sum(1).argmin())


def image_from(weight: Tensor, bias: Tensor) -> Tensor:
    """The input `[d]` of the first layer from its gradients `[h, d]` and `[h]`, at the unit whose bias moves most."""
    unit = int(bias.abs().argmax())
    return weight[unit] / bias[unit]
