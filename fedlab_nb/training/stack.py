"""M models of one architecture as one: every leaf layer swapped for its twin on `[M, N, ...]`.

A model of this package is a tree of leaf layers joined by element-wise operations, so its own `forward` also runs on
twins: `Linear` becomes one batched matrix product, `Conv2d` one grouped convolution, `BatchNorm2d` takes its statistics
per model. Rows that only pad a short batch are named with `set_rows`, and batch norm leaves them out.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UsageError


class _Twin(nn.Module):
    """Base of the twins: tensors are plain attributes `[a, ...]` that `Stack.use` sets for the `a` models now at
    work."""

    names: tuple[str, ...] = ()  # parameters, in the order of the leaf's own
    buffers_: tuple[str, ...] = ()


class StackedLinear(_Twin):
    names = ("weight", "bias")

    def forward(self, x: Tensor) -> Tensor:  # [M, N, D] -> [M, N, D']
        weight = self.weight.transpose(1, 2)
        return torch.bmm(x, weight) if self.bias is None else torch.baddbmm(self.bias.unsqueeze(1), x, weight)


class StackedConv2d(_Twin):
    names = ("weight", "bias")

    def __init__(self, leaf: nn.Conv2d) -> None:
        super().__init__()
        if leaf.groups != 1 or leaf.padding_mode != "zeros" or isinstance(leaf.padding, str):
            raise UsageError(
                f"{leaf} cannot be stacked: only ungrouped, zero-padded convolutions can; use backend='loop'."
            )
        self.kernel_size, self.stride = leaf.kernel_size, leaf.stride
        self.padding, self.dilation = leaf.padding, leaf.dilation

    def forward(self, x: Tensor) -> Tensor:  # [M, N, C, H, W] -> [M, N, C', H', W']
        m, n, c, h, w = x.shape
        y = F.conv2d(
            x.transpose(0, 1).reshape(n, m * c, h, w),
            self.weight.flatten(0, 1),
            None if self.bias is None else self.bias.flatten(),
            self.stride,
            self.padding,
            self.dilation,
            groups=m,
        )
        return y.view(n, m, -1, *y.shape[2:]).transpose(0, 1)


class StackedBatchNorm2d(_Twin):
    names = ("weight", "bias")
    buffers_ = ("running_mean", "running_var")

    def __init__(self, leaf: nn.BatchNorm2d) -> None:
        super().__init__()
        if leaf.momentum is None or not leaf.affine or not leaf.track_running_stats:
            raise UsageError(f"{leaf} cannot be stacked: only plain batch norm with running statistics can.")
        self.eps, self.momentum = leaf.eps, leaf.momentum
        self.rows: Tensor | None = None  # [M] real rows of each model's batch; None: all are real

    def forward(self, x: Tensor) -> Tensor:  # [M, N, C, H, W]
        if not self.training:
            mean, var = self.running_mean, self.running_var
        else:
            pixels = x.shape[-1] * x.shape[-2]
            if self.rows is None:
                count = x.shape[1] * pixels
                var, mean = torch.var_mean(x, dim=(1, 3, 4), correction=0)
                unbiased = var.detach() * (count / (count - 1))
            else:
                real = torch.arange(x.shape[1], device=x.device) < self.rows[:, None]  # [M, N]
                real = real.to(x.dtype)[:, :, None, None, None]
                count = (self.rows * pixels).to(x.dtype)[:, None]
                mean = (x * real).sum((1, 3, 4)) / count
                var = ((x - mean[:, None, :, None, None]).square() * real).sum((1, 3, 4)) / count
                unbiased = var.detach() * (count / (count - 1))
            with torch.no_grad():
                self.running_mean.lerp_(mean.detach(), self.momentum)
                self.running_var.lerp_(unbiased, self.momentum)
        scale = self.weight / torch.sqrt(var + self.eps)
        shift = self.bias - mean * scale
        return x * scale[:, None, :, None, None] + shift[:, None, :, None, None]


class PerImage(nn.Module):
    """A leaf without parameters that looks at one image at a time (pooling): models and samples share one axis."""

    def __init__(self, leaf: nn.Module) -> None:
        super().__init__()
        self.leaf = leaf

    def forward(self, x: Tensor) -> Tensor:
        return self.leaf(x.flatten(0, 1)).unflatten(0, x.shape[:2])


def _twin(leaf: nn.Module) -> nn.Module:
    if isinstance(leaf, nn.Linear):
        return StackedLinear()
    if isinstance(leaf, nn.Conv2d):
        return StackedConv2d(leaf)
    if isinstance(leaf, nn.BatchNorm2d):
        return StackedBatchNorm2d(leaf)
    if isinstance(leaf, nn.Flatten):
        return nn.Flatten(leaf.start_dim + 1)
    if isinstance(leaf, nn.MaxPool2d | nn.AvgPool2d | nn.AdaptiveAvgPool2d):
        return PerImage(leaf)
    if isinstance(leaf, nn.ReLU | nn.LeakyReLU | nn.Tanh | nn.Sigmoid | nn.Identity):
        return leaf
    raise UsageError(f"A {type(leaf).__name__} layer cannot be stacked; train this model with backend='loop'.")


class Stack:
    """The stacked form of `models` (one architecture): tensors `[M, ...]` copied from them, and a forward on `[a, N,
    ...]`.

    `use(a)` puts the first `a` models to work, `forward(x)` maps `[a, N, ...]` to logits `[a, N, C]`, `leaves(a)` are
    the parameters to differentiate (views of the same storage), `write_back()` copies everything into the plain models.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        self.net = copy.deepcopy(models[0])
        self._slots: list[tuple[_Twin, str, str]] = []  # twin, attribute, name in the state dict
        self._swap(self.net, "")
        self.parameters: dict[str, Tensor] = {}
        self.buffers: dict[str, Tensor] = {}
        for twin, attribute, name in self._slots:
            rows = (
                [model.get_parameter(name) for model in models]
                if attribute in twin.names
                else [model.get_buffer(name) for model in models]
            )
            target = self.parameters if attribute in twin.names else self.buffers
            target[name] = torch.stack([row.detach() for row in rows])
        self._leaves: dict[int, dict[str, Tensor]] = {}
        self.norms = [twin for twin in self.net.modules() if isinstance(twin, StackedBatchNorm2d)]

    def _swap(self, module: nn.Module, prefix: str) -> None:
        for name, child in list(module.named_children()):
            path = f"{prefix}{name}"
            if list(child.children()):
                self._swap(child, path + ".")
                continue
            twin = _twin(child)
            setattr(module, name, twin)
            if isinstance(twin, _Twin):
                for attribute in (*twin.names, *twin.buffers_):
                    if getattr(child, attribute) is None:
                        setattr(twin, attribute, None)
                    else:
                        self._slots.append((twin, attribute, f"{path}.{attribute}"))

    def leaves(self, active: int) -> dict[str, Tensor]:
        """Parameters of the first `active` models, name -> `[a, ...]`, each a leaf that shares the stack's storage."""
        if active not in self._leaves:
            self._leaves[active] = {
                name: tensor[:active].detach().requires_grad_() for name, tensor in self.parameters.items()
            }
        return self._leaves[active]

    def use(self, active: int) -> dict[str, Tensor]:
        """Set the first `active` models' tensors on the twins; returns the leaves."""
        leaves = self.leaves(active)
        for twin, attribute, name in self._slots:
            value = leaves[name] if name in leaves else self.buffers[name][:active]
            twin.__dict__[attribute] = value
        return leaves

    def set_rows(self, rows: Tensor | None) -> None:
        """`rows [a]`: how many of the N rows are real in each model's batch; None: all."""
        for norm in self.norms:
            norm.rows = rows

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def write_back(self) -> None:
        """Copy parameters and batch-norm statistics into the plain models."""
        with torch.no_grad():
            for name, tensor in self.parameters.items():
                for model, row in zip(self.models, tensor, strict=True):
                    model.get_parameter(name).copy_(row)
            for name, tensor in self.buffers.items():
                for model, row in zip(self.models, tensor, strict=True):
                    model.get_buffer(name).copy_(row)
