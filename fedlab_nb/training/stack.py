"""M models of one architecture as one: every leaf layer is replaced by its twin.

A twin does for M models, `[M, N, ...] -> [M, N, ...]`, what its layer does for one. You can skip this on a first
reading: `loop.py` does the same.

A model of this package is a tree of leaf layers joined by element-wise operations, so its own `forward` also runs on
twins. `Linear` becomes one batched matrix product, `Conv2d` one grouped convolution, `BatchNorm2d` takes its statistics
per model, pooling and activations see models and samples on one axis. Rows that only pad a short batch are named with
`set_sample_weights`, and batch norm leaves them out.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UsageError
from ..models import Normalise


class Stack:
    """The stacked form of `models` (one architecture): tensors `[M, ...]` copied from them.

    `activate(a)` puts the first `a` models to work, `forward(x)` maps `[a, N, ...]` to logits `[a, N, C]`,
    `list_leaves(a)` are the parameters to differentiate (views of the same storage), `write_back()` copies everything
    into the plain models.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        self.net: Any = copy.deepcopy(models[0])
        self.parameters: dict[str, Tensor] = {}  # by their names in a model's state, [M, ...]
        self.buffers: dict[str, Tensor] = {}
        self._slots: list[tuple[Twin, str, str]] = []  # twin, attribute, name in a model's state
        self._replace_layers(self.net, "")
        for twin, attribute, name in self._slots:
            self._stack_tensor(twin, attribute, name)
        self.batch_norms = [
            twin for twin in self.net.modules() if isinstance(twin, StackedBatchNorm2d)
        ]
        self._leaves: dict[int, dict[str, Tensor]] = {}
        self._model_tensors: list[Tensor] | None = None  # see `_list_model_tensors`

    def _replace_layers(self, module: nn.Module, prefix: str) -> None:
        """Replace every leaf below `module` by its twin, and note which tensors the twins need."""
        for name, child in list(module.named_children()):
            path = f"{prefix}{name}"
            if list(child.children()):
                self._replace_layers(child, path + ".")
                continue
            twin = make_twin(child)
            setattr(module, name, twin)
            if isinstance(twin, Twin):
                for attribute in (*twin.parameter_names, *twin.buffer_names):
                    if getattr(child, attribute) is None:
                        setattr(twin, attribute, None)
                    else:
                        self._slots.append((twin, attribute, f"{path}.{attribute}"))

    def _stack_tensor(self, twin: "Twin", attribute: str, name: str) -> None:
        """Copy the tensor `name` of all models into one, `[M, ...]`."""
        if attribute in twin.parameter_names:
            rows = [model.get_parameter(name).detach() for model in self.models]
            self.parameters[name] = torch.stack(rows)
        else:
            self.buffers[name] = torch.stack([model.get_buffer(name) for model in self.models])
        if isinstance(twin, StackedLinear) and attribute == "weight":
            # In memory as its gradient will be.
            transposed = self.parameters[name].transpose(1, 2).contiguous()
            self.parameters[name] = transposed.transpose(1, 2)

    def list_leaves(self, active: int) -> dict[str, Tensor]:
        """Parameters of the first `active` models, name -> `[a, ...]`, each a leaf that shares the stack's storage."""
        if active not in self._leaves:
            self._leaves[active] = {
                name: tensor[:active].detach().requires_grad_()
                for name, tensor in self.parameters.items()
            }
        return self._leaves[active]

    def activate(self, active: int) -> dict[str, Tensor]:
        """Set the first `active` models' tensors on the twins; returns the leaves."""
        leaves = self.list_leaves(active)
        for twin, attribute, name in self._slots:
            value = leaves[name] if name in leaves else self.buffers[name][:active]
            twin.__dict__[attribute] = value
        return leaves

    def set_sample_weights(self, weights: Tensor | None) -> None:
        """`weights [a, N]`: 1 / (real rows of each model's batch), 0 for its padding; None: all rows are real."""
        for layer in self.batch_norms:
            layer.sample_weights = weights

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    @torch.no_grad()
    def write_back(self) -> None:
        """Copy parameters and batch-norm statistics into the plain models."""
        if self._model_tensors is None:
            self._model_tensors = self._list_model_tensors()
        rows: list[Tensor] = []
        for tensor in (*self.parameters.values(), *self.buffers.values()):
            rows.extend(tensor.contiguous().unbind())
        if rows:
            torch._foreach_copy_(self._model_tensors, rows)

    def _list_model_tensors(self) -> list[Tensor]:
        """The plain models' tensors: by name in the order of the stack's, and model by model."""
        tensors: list[Tensor] = []
        for name in self.parameters:
            tensors.extend(model.get_parameter(name).data for model in self.models)
        for name in self.buffers:
            tensors.extend(model.get_buffer(name) for model in self.models)
        return tensors


# ------------------------------------------------------------------------------------------------------------- twins
class Twin(nn.Module):
    """Base of the twins: tensors are plain attributes `[a, ...]` that `Stack.activate` sets for the `a` models now at
    work."""

    parameter_names: tuple[str, ...] = ()  # in the order of the layer's own
    buffer_names: tuple[str, ...] = ()
    weight: Tensor
    bias: Any  # a Tensor, or None where the layer has none
    running_mean: Tensor
    running_var: Tensor


class StackedLinear(Twin):
    """One batched matrix product: `[M, N, D] -> [M, N, D']`."""

    parameter_names = ("weight", "bias")

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.transpose(1, 2)
        if self.bias is None:
            return torch.bmm(x, weight)
        return torch.baddbmm(self.bias.unsqueeze(1), x, weight)


class StackedConv2d(Twin):
    """One grouped convolution: `[M, N, C, H, W] -> [M, N, C', H', W']`."""

    parameter_names = ("weight", "bias")
    leaf: nn.Conv2d

    def __init__(self, leaf: nn.Conv2d) -> None:
        super().__init__()
        is_zero_padded = leaf.padding_mode == "zeros" and not isinstance(leaf.padding, str)
        if leaf.groups != 1 or not is_zero_padded:
            raise UsageError(
                f"{leaf} cannot be stacked: only ungrouped, zero-padded convolutions can; "
                "use backend='loop'."
            )
        self.__dict__["leaf"] = leaf  # for its sizes; as an attribute it would be a submodule

    def forward(self, x: Tensor) -> Tensor:
        leaf = self.leaf
        m, n = x.shape[:2]
        if x.stride(0) == 0:
            # Every model sees the same samples: one convolution with the channels of all models.
            images = x[0]
            groups = 1
        else:
            images = x.transpose(0, 1).flatten(1, 2)
            groups = m
        weight = self.weight.flatten(0, 1)
        bias = None if self.bias is None else self.bias.flatten()
        y = F.conv2d(images, weight, bias, leaf.stride, leaf.padding, leaf.dilation, groups)
        return y.view(n, m, -1, *y.shape[2:]).transpose(0, 1)


class StackedBatchNorm2d(Twin):
    """Batch norm with statistics per model: `[M, N, C, H, W] -> [M, N, C, H, W]`.

    `sample_weights`: `[M, N]`, 1 / (real rows of the model's batch), 0 for padding; None: all rows are real.
    """

    parameter_names = ("weight", "bias")
    buffer_names = ("running_mean", "running_var")

    def __init__(self, leaf: nn.BatchNorm2d) -> None:
        super().__init__()
        if leaf.momentum is None or not leaf.affine or not leaf.track_running_stats:
            raise UsageError(
                f"{leaf} cannot be stacked: only plain batch norm with running statistics can."
            )
        self.eps = leaf.eps
        self.momentum = leaf.momentum
        self.sample_weights: Any = None

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.sample_weights is not None:
            return self._normalise_padded(x)
        images = x.transpose(0, 1).flatten(1, 2)
        y = F.batch_norm(
            images,
            self.running_mean.view(-1),
            self.running_var.view(-1),
            self.weight.flatten(),
            self.bias.flatten(),
            self.training,
            self.momentum,
            self.eps,
        )
        return y.unflatten(1, (len(x), -1)).transpose(0, 1)

    def _normalise_padded(self, x: Tensor) -> Tensor:
        """By mean and variance of a model's real images, from those of each image: one pass over the maps."""
        weights = self.sample_weights.unsqueeze(2)  # [M, N, 1]
        image_var, image_mean = torch.var_mean(x, dim=(3, 4), correction=0)  # [M, N, C]
        mean = (image_mean * weights).sum(1)
        squares = image_var + (image_mean - mean.unsqueeze(1)).square()
        var = (squares * weights).sum(1)
        with torch.no_grad():
            pixels = x.shape[-1] * x.shape[-2]
            count = pixels / weights.amax(1)  # [M, 1], pixels of all real images
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


# Layers that do for M models what they do for one, as they are; an empty Sequential is a leaf.
UNCHANGED = (
    nn.ReLU,
    nn.LeakyReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Identity,
    nn.Sequential,
    Normalise,
)


def make_twin(leaf: nn.Module) -> nn.Module:
    """What does for M models what `leaf` does for one. UsageError for a layer that cannot be stacked."""
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
    if isinstance(leaf, UNCHANGED):
        return leaf
    raise UsageError(
        f"A {type(leaf).__name__} layer cannot be stacked; train this model with backend='loop'."
    )


def can_stack(model: nn.Module) -> bool:
    """Whether the stack can stand for `model`: every layer has a twin, and nothing but Sequential and the package's own
    classes joins them (somebody else's `forward` may look at shapes)."""
    package = __name__.partition(".")[0] + "."
    for module in model.modules():
        if list(module.children()):
            is_known = isinstance(module, nn.Sequential) or type(module).__module__.startswith(
                package
            )
        else:
            is_known = has_twin(module)
        if not is_known:
            return False
    return True


def has_twin(leaf: nn.Module) -> bool:
    """Whether a layer can be stacked."""
    try:
        make_twin(leaf)
    except UsageError:
        return False
    return True
