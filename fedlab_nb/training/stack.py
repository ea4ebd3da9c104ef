"""M models of one architecture as one: every leaf layer swapped for its twin, which does for M models, `[M, N, ...] ->
[M, N, ...]`, what its layer does for one. You can skip this on a first reading: `loop.py` does the same.

A model of this package is a tree of leaf layers joined by element-wise operations, so its own `forward` also runs on
twins. `Linear` becomes one batched matrix product, `Conv2d` one grouped convolution, `BatchNorm2d`
takes its statistics per model, pooling and activations see models and samples on one axis. Rows that only pad a short
batch are named with `set_share`, and batch norm leaves them out.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UsageError, demand
from ..models import Normalise


class Stack:
    """The stacked form of `models` (one architecture): tensors `[M, ...]` copied from them, and a forward on `[a, N,
    ...]`.

    `use(a)` puts the first `a` models to work, `forward(x)` maps `[a, N, ...]` to logits `[a, N, C]`, `leaves(a)` are
    the parameters to differentiate (views of the same storage), `write_back()` copies everything into the plain models.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        self.net: Any = copy.deepcopy(models[0])
        self._slots: list[tuple[Twin, str, str]] = []  # twin, attribute, name in the state dict
        self._swap(self.net, "")
        self.parameters: dict[str, Tensor] = {}
        self.buffers: dict[str, Tensor] = {}
        for twin, attribute, name in self._slots:
            trained = attribute in twin.names
            target = self.parameters if trained else self.buffers
            rows = (
                model.get_parameter(name) if trained else model.get_buffer(name) for model in models
            )
            target[name] = torch.stack([row.detach() for row in rows])
            if (
                isinstance(twin, StackedLinear) and attribute == "weight"
            ):  # laid out as its gradient will be
                target[name] = target[name].transpose(1, 2).contiguous().transpose(1, 2)
        self._plain: list[Tensor] | None = None
        self._leaves: dict[int, dict[str, Tensor]] = {}
        self.norms = [twin for twin in self.net.modules() if isinstance(twin, StackedBatchNorm2d)]

    def _swap(self, module: nn.Module, prefix: str) -> None:
        for name, child in list(module.named_children()):
            path = f"{prefix}{name}"
            if list(child.children()):
                self._swap(child, path + ".")
                continue
            twin = twin_of(child)
            setattr(module, name, twin)
            if isinstance(twin, Twin):
                for attribute in (*twin.names, *twin.buffers_):
                    if getattr(child, attribute) is None:
                        setattr(twin, attribute, None)
                    else:
                        self._slots.append((twin, attribute, f"{path}.{attribute}"))

    def leaves(self, active: int) -> dict[str, Tensor]:
        """Parameters of the first `active` models, name -> `[a, ...]`, each a leaf that shares the stack's storage."""
        if active not in self._leaves:
            parts = {name: tensor[:active].detach() for name, tensor in self.parameters.items()}
            self._leaves[active] = {name: part.requires_grad_() for name, part in parts.items()}
        return self._leaves[active]

    def use(self, active: int) -> dict[str, Tensor]:
        """Set the first `active` models' tensors on the twins; returns the leaves."""
        leaves = self.leaves(active)
        for twin, attribute, name in self._slots:
            value = leaves[name] if name in leaves else self.buffers[name][:active]
            twin.__dict__[attribute] = value
        return leaves

    def set_share(self, share: Tensor | None) -> None:
        """`share [a, N]`: 1 / (real rows of each model's batch), 0 for its padding; None: all rows are real."""
        for norm in self.norms:
            norm.share = share

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    @torch.no_grad()
    def write_back(self) -> None:
        """Copy parameters and batch-norm statistics into the plain models."""
        if (
            self._plain is None
        ):  # the plain models' tensors, one flat list in the order of the stack's
            self._plain = [
                model.get_parameter(name).data for name in self.parameters for model in self.models
            ]
            self._plain += [
                model.get_buffer(name) for name in self.buffers for model in self.models
            ]
        stacked = [*self.parameters.values(), *self.buffers.values()]
        if self._plain:
            torch._foreach_copy_(
                self._plain, [row for tensor in stacked for row in tensor.contiguous().unbind()]
            )


# ------------------------------------------------------------------------------------------------------------- twins
class Twin(nn.Module):
    """Base of the twins: tensors are plain attributes `[a, ...]` that `Stack.use` sets for the `a` models now at
    work."""

    names: tuple[str, ...] = ()  # parameters, in the order of the leaf's own
    buffers_: tuple[str, ...] = ()
    weight: Tensor
    bias: Any  # a Tensor, or None where the leaf has none
    running_mean: Tensor
    running_var: Tensor


class StackedLinear(Twin):
    names = ("weight", "bias")

    def forward(self, x: Tensor) -> Tensor:  # [M, N, D] -> [M, N, D']
        weight = self.weight.transpose(1, 2)
        return (
            torch.bmm(x, weight)
            if self.bias is None
            else torch.baddbmm(self.bias.unsqueeze(1), x, weight)
        )


class StackedConv2d(Twin):
    """One grouped convolution."""

    names = ("weight", "bias")
    leaf: nn.Conv2d

    def __init__(self, leaf: nn.Conv2d) -> None:
        super().__init__()
        plain = (
            leaf.groups == 1 and leaf.padding_mode == "zeros" and not isinstance(leaf.padding, str)
        )
        demand(
            plain,
            f"{leaf} cannot be stacked: only ungrouped, zero-padded convolutions can; use backend='loop'.",
        )
        self.__dict__["leaf"] = leaf  # its sizes; not a submodule

    def forward(self, x: Tensor) -> Tensor:  # [M, N, C, H, W] -> [M, N, C', H', W']
        leaf = self.leaf
        m, n = x.shape[:2]
        alike = (
            x.stride(0) == 0
        )  # every model sees the same samples: one convolution of many channels
        images, groups = (x[0], 1) if alike else (x.transpose(0, 1).flatten(1, 2), m)
        bias = None if self.bias is None else self.bias.flatten()
        y = F.conv2d(
            images,
            self.weight.flatten(0, 1),
            bias,
            leaf.stride,
            leaf.padding,
            leaf.dilation,
            groups,
        )
        return y.view(n, m, -1, *y.shape[2:]).transpose(0, 1)


class StackedBatchNorm2d(Twin):
    names = ("weight", "bias")
    buffers_ = ("running_mean", "running_var")

    def __init__(self, leaf: nn.BatchNorm2d) -> None:
        super().__init__()
        if leaf.momentum is None or not leaf.affine or not leaf.track_running_stats:
            raise UsageError(
                f"{leaf} cannot be stacked: only plain batch norm with running statistics can."
            )
        self.eps, self.momentum = leaf.eps, leaf.momentum
        self.share: Any = (
            None  # [M, N] 1 / (real rows of the model's batch), 0 for padding; None: all real
        )

    def forward(self, x: Tensor) -> Tensor:  # [M, N, C, H, W]
        if self.training and self.share is not None:
            return self._padded(x)
        m, n = x.shape[:2]
        statistics = self.running_mean.view(-1), self.running_var.view(-1)
        parameters = self.weight.flatten(), self.bias.flatten()
        images = x.transpose(0, 1).flatten(1, 2)
        y = F.batch_norm(images, *statistics, *parameters, self.training, self.momentum, self.eps)
        return y.unflatten(1, (m, -1)).transpose(0, 1)

    def _padded(self, x: Tensor) -> Tensor:
        """Mean and variance of each image, then of a model's real images: one pass over the maps."""
        share, pixels = self.share.unsqueeze(2), x.shape[-1] * x.shape[-2]
        own_var, own_mean = torch.var_mean(x, dim=(3, 4), correction=0)  # [M, N, C]
        mean = (own_mean * share).sum(1)
        var = ((own_var + (own_mean - mean.unsqueeze(1)).square()) * share).sum(1)
        with torch.no_grad():
            count = pixels / share.amax(1)  # [M, 1]
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * (count / (count - 1)), self.momentum)
        scale = self.weight / torch.sqrt(var + self.eps)
        shift = self.bias - mean * scale
        return torch.addcmul(shift[:, None, :, None, None], x, scale[:, None, :, None, None])


class PerImage(nn.Module):
    """A leaf without parameters that looks at one image at a time (pooling): models and samples share one axis."""

    def __init__(self, leaf: nn.Module) -> None:
        super().__init__()
        self.leaf = leaf

    def forward(self, x: Tensor) -> Tensor:
        return self.leaf(x.flatten(0, 1)).unflatten(0, x.shape[:2])


def twin_of(leaf: nn.Module) -> nn.Module:
    if isinstance(leaf, nn.Linear):
        return StackedLinear()
    if isinstance(leaf, nn.Conv2d):
        return StackedConv2d(leaf)
    if isinstance(leaf, nn.BatchNorm2d):
        return StackedBatchNorm2d(leaf)
    if isinstance(leaf, nn.Flatten):
        return nn.Flatten(leaf.start_dim + 1)
    if isinstance(leaf, nn.Unflatten) and leaf.dim < 0:  # counted from the end
        return leaf
    if isinstance(leaf, nn.MaxPool2d | nn.AvgPool2d | nn.AdaptiveAvgPool2d):
        return PerImage(leaf)
    if isinstance(
        leaf,
        nn.ReLU | nn.LeakyReLU | nn.Tanh | nn.Sigmoid | nn.Identity | nn.Sequential | Normalise,
    ):
        return leaf
    raise UsageError(
        f"A {type(leaf).__name__} layer cannot be stacked; train this model with backend='loop'."
    )


def stackable(model: nn.Module) -> bool:
    """Whether the stack can stand for `model`: every layer has a twin, and nothing but Sequential and the package's own
    classes joins them (somebody else's `forward` may look at shapes)."""
    own = __name__.partition(".")[0] + "."
    try:
        for module in model.modules():
            if not list(module.children()):
                twin_of(module)
            elif not isinstance(module, nn.Sequential) and not type(module).__module__.startswith(
                own
            ):
                return False
    except UsageError:
        return False
    return True
