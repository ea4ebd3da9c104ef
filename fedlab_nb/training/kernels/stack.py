"""M models of one architecture as one: every leaf layer swapped for its twin on `[M, N, ...]` (`twins`).

A model of this package is a tree of leaf layers joined by element-wise operations, so its own `forward` also runs on
twins. Rows that only pad a short batch are named with `set_share`, and batch norm leaves them out.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .stacked_layers import StackedBatchNorm2d, StackedConv2d, StackedLinear, Twin, pooled, twin_of


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
            rows = (model.get_parameter(name) if trained else model.get_buffer(name) for model in models)
            target[name] = torch.stack([row.detach() for row in rows])
            if isinstance(twin, StackedLinear) and attribute == "weight":  # laid out as its gradient will be
                target[name] = target[name].transpose(1, 2).contiguous().transpose(1, 2)
        self._plain: list[Tensor] | None = None
        self._leaves: dict[int, dict[str, Tensor]] = {}
        self.norms = [twin for twin in self.net.modules() if isinstance(twin, StackedBatchNorm2d)]

    def _swap(self, module: nn.Module, prefix: str) -> None:
        together = pooled(module)
        for name, child in list(module.named_children()):
            path = f"{prefix}{name}"
            if list(child.children()):
                self._swap(child, path + ".")
                continue
            twin: nn.Module
            if together:
                twin = StackedConv2d(child, together) if isinstance(child, nn.Conv2d) else nn.Identity()
            else:
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

    def set_share(self, share: Tensor | None) -> None:
        """`share [a, N]`: 1 / (real rows of each model's batch), 0 for its padding; None: all rows are real."""
        for norm in self.norms:
            norm.share = share

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    @torch.no_grad()
    def write_back(self) -> None:
        """Copy parameters and batch-norm statistics into the plain models."""
        if self._plain is None:  # the plain models' tensors, one flat list in the order of the stack's
            self._plain = [model.get_parameter(name).data for name in self.parameters for model in self.models]
            self._plain += [model.get_buffer(name) for name in self.buffers for model in self.models]
        stacked = [*self.parameters.values(), *self.buffers.values()]
        if self._plain:
            torch._foreach_copy_(self._plain, [row for tensor in stacked for row in tensor.contiguous().unbind()])
