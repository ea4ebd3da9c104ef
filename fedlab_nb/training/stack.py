"""M models of one architecture as one: every leaf layer is replaced by its stacked layer.

A stacked layer does for M models, `[M, N, ...] -> [M, N, ...]`, what its layer does for one. You
can skip this on a first reading: `loop.py` does the same.

A model of this package is a tree of leaf layers joined by element-wise operations, so its own
`forward` also runs on stacked layers. `Linear` becomes one batched matrix product, `Conv2d` one
grouped convolution, `BatchNorm2d` takes its statistics per model, pooling and activations see
models and samples on one axis. Rows that only pad a short batch are named with
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
from ..tensor_types import ClientLogits

ClientBatches = Tensor  # [a, N, ...], the batches of the a clients that are at work
ClientSampleWeights = Tensor  # [a, N]
StackedParameters = dict[str, Tensor]  # name -> [a, ...]


class Stack:
    """The stacked form of `models` (one architecture): tensors `[M, ...]` copied from them.

    `activate_first_models(a)` puts the first `a` models to work, `forward(x)` maps `[a, N, ...]` to logits `[a,
    N, C]`, `get_leaf_parameters_of_first_models(a)` are the parameters to differentiate (views of the same
    storage), `copy_weights_to_models()` copies everything into the plain models.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        self.net: Any = copy.deepcopy(models[0])
        self.parameters: dict[str, Tensor] = {}  # by their names in a model's state, [M, ...]
        self.buffers: dict[str, Tensor] = {}
        self._slots: list[
            tuple[StackedLayer, str, str]
        ] = []  # stacked layer, attribute, name in a model's state
        self._replace_layers_by_stacked_ones(self.net, "")
        for stacked, attribute, name in self._slots:
            self._stack_tensor_of_all_models(stacked, attribute, name)
        self.batch_norms = [
            stacked for stacked in self.net.modules() if isinstance(stacked, StackedBatchNorm2d)
        ]
        self._leaves: dict[int, dict[str, Tensor]] = {}
        self._model_tensors: list[Tensor] | None = None  # see `_list_model_tensors`

    def _replace_layers_by_stacked_ones(self, module: nn.Module, prefix: str) -> None:
        """Replace every leaf below `module` by its stacked layer, and note which tensors the
        stacked layers need."""
        for name, child in list(module.named_children()):
            path = f"{prefix}{name}"
            if list(child.children()):
                self._replace_layers_by_stacked_ones(child, path + ".")
                continue
            stacked = make_stacked_layer(child)
            setattr(module, name, stacked)
            if isinstance(stacked, StackedLayer):
                for attribute in (*stacked.parameter_names, *stacked.buffer_names):
                    if getattr(child, attribute) is None:
                        setattr(stacked, attribute, None)
                    else:
                        self._slots.append((stacked, attribute, f"{path}.{attribute}"))

    def _stack_tensor_of_all_models(
        self, stacked_layer: "StackedLayer", attribute: str, tensor_name: str
    ) -> None:
        """Copy the tensor `tensor_name` of all models into one, `[M, ...]`."""
        if attribute in stacked_layer.parameter_names:
            rows = [model.get_parameter(tensor_name).detach() for model in self.models]
            self.parameters[tensor_name] = torch.stack(rows)
        else:
            self.buffers[tensor_name] = torch.stack(
                [model.get_buffer(tensor_name) for model in self.models]
            )
        if isinstance(stacked_layer, StackedLinear) and attribute == "weight":
            # In memory as its gradient will be.
            transposed = self.parameters[tensor_name].transpose(1, 2).contiguous()
            self.parameters[tensor_name] = transposed.transpose(1, 2)

    def get_leaf_parameters_of_first_models(self, model_count: int) -> StackedParameters:
        """Parameters of the first `model_count` models, name -> `[a, ...]`, each a leaf that shares the
        stack's storage."""
        if model_count not in self._leaves:
            self._leaves[model_count] = {
                name: tensor[:model_count].detach().requires_grad_()
                for name, tensor in self.parameters.items()
            }
        return self._leaves[model_count]

    def activate_first_models(self, model_count: int) -> StackedParameters:
        """Set the first `model_count` models' tensors on the stacked layers; returns the leaves."""
        leaves = self.get_leaf_parameters_of_first_models(model_count)
        for stacked, attribute, name in self._slots:
            value = leaves[name] if name in leaves else self.buffers[name][:model_count]
            stacked.__dict__[attribute] = value
        return leaves

    def set_sample_weights(
        self, weights_or_none_without_padding: ClientSampleWeights | None
    ) -> None:
        """`weights_or_none_without_padding [a, N]`: 1 / (real rows of each model's batch), 0 for its padding; None: all
        rows are real."""
        for layer in self.batch_norms:
            layer.sample_weights = weights_or_none_without_padding

    def forward(self, client_samples: ClientBatches) -> ClientLogits:
        return self.net(client_samples)

    @torch.no_grad()
    def copy_weights_to_models(self) -> None:
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


# ----------------------------------------------------------------------------------- stacked layers
class StackedLayer(nn.Module):
    """Base of the stacked layers: tensors are plain attributes `[a, ...]` that `Stack.activate_first_models`
    sets for the `a` models now at work."""

    parameter_names: tuple[str, ...] = ()  # in the order of the layer's own
    buffer_names: tuple[str, ...] = ()
    weight: Tensor
    bias: Any  # a Tensor, or None if the layer has none
    running_mean: Tensor
    running_var: Tensor


class StackedLinear(StackedLayer):
    """One batched matrix product: `[M, N, D] -> [M, N, D']`."""

    parameter_names = ("weight", "bias")

    def forward(self, client_inputs: ClientBatches) -> ClientBatches:
        weight = self.weight.transpose(1, 2)
        if self.bias is None:
            return torch.bmm(client_inputs, weight)
        return torch.baddbmm(self.bias.unsqueeze(1), client_inputs, weight)


class StackedConv2d(StackedLayer):
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

    def forward(self, client_maps: ClientBatches) -> ClientBatches:
        leaf = self.leaf
        m, n = client_maps.shape[:2]
        if client_maps.stride(0) == 0:
            # Every model sees the same samples: one convolution with the channels of all models.
            images = client_maps[0]
            groups = 1
        else:
            images = client_maps.transpose(0, 1).flatten(1, 2)
            groups = m
        weight = self.weight.flatten(0, 1)
        bias = None if self.bias is None else self.bias.flatten()
        y = F.conv2d(images, weight, bias, leaf.stride, leaf.padding, leaf.dilation, groups)
        return y.view(n, m, -1, *y.shape[2:]).transpose(0, 1)


class StackedBatchNorm2d(StackedLayer):
    """Batch norm with statistics per model: `[M, N, C, H, W] -> [M, N, C, H, W]`.

    `sample_weights`: `[M, N]`, 1 / (real rows of the model's batch), 0 for padding; None: all rows
    are real.
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

    def forward(self, client_maps: ClientBatches) -> ClientBatches:
        if self.training and self.sample_weights is not None:
            return self._normalise_padded(client_maps)
        images = client_maps.transpose(0, 1).flatten(1, 2)
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
        return y.unflatten(1, (len(client_maps), -1)).transpose(0, 1)

    def _normalise_padded(self, client_maps: ClientBatches) -> ClientBatches:
        """By mean and variance of a model's real images, from those of each image: one pass over
        the maps."""
        weights = self.sample_weights.unsqueeze(2)  # [M, N, 1]
        image_var, image_mean = torch.var_mean(client_maps, dim=(3, 4), correction=0)  # [M, N, C]
        mean = (image_mean * weights).sum(1)
        squares = image_var + (image_mean - mean.unsqueeze(1)).square()
        var = (squares * weights).sum(1)
        with torch.no_grad():
            pixels = client_maps.shape[-1] * client_maps.shape[-2]
            count = pixels / weights.amax(1)  # [M, 1], pixels of all real images
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * (count / (count - 1)), self.momentum)
        scale = self.weight / torch.sqrt(var + self.eps)
        shift = self.bias - mean * scale
        return torch.addcmul(
            shift[:, None, :, None, None], client_maps, scale[:, None, :, None, None]
        )


class PerImage(nn.Module):
    """A leaf without parameters that looks at one image at a time (pooling): models and samples
    share one axis."""

    def __init__(self, leaf: nn.Module) -> None:
        super().__init__()
        self.leaf = leaf

    def forward(self, client_images: ClientBatches) -> ClientBatches:
        return self.leaf(client_images.flatten(0, 1)).unflatten(0, client_images.shape[:2])


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


def make_stacked_layer(plain_layer: nn.Module) -> nn.Module:
    """The layer that does for M models what `plain_layer` does for one.

    UsageError for a layer that cannot be stacked.
    """
    if isinstance(plain_layer, nn.Linear):
        return StackedLinear()
    if isinstance(plain_layer, nn.Conv2d):
        return StackedConv2d(plain_layer)
    if isinstance(plain_layer, nn.BatchNorm2d):
        return StackedBatchNorm2d(plain_layer)
    if isinstance(plain_layer, nn.Flatten):
        return nn.Flatten(plain_layer.start_dim + 1)
    if isinstance(plain_layer, nn.Unflatten) and plain_layer.dim < 0:  # counted from the end
        return plain_layer
    if isinstance(plain_layer, nn.MaxPool2d | nn.AvgPool2d | nn.AdaptiveAvgPool2d):
        return PerImage(plain_layer)
    if isinstance(plain_layer, UNCHANGED):
        return plain_layer
    raise UsageError(
        f"A {type(plain_layer).__name__} layer cannot be stacked; train this model with "
        "backend='loop'."
    )


def can_stack_model(model: nn.Module) -> bool:
    """True if the stack can stand for `model`: every layer has a stacked layer, and nothing but
    Sequential and the package's own classes joins them (somebody else's `forward` may look at
    shapes)."""
    package = __name__.partition(".")[0] + "."
    for module in model.modules():
        if list(module.children()):
            is_known = isinstance(module, nn.Sequential) or type(module).__module__.startswith(
                package
            )
        else:
            is_known = can_stack_layer(module)
        if not is_known:
            return False
    return True


def can_stack_layer(layer: nn.Module) -> bool:
    """True if a layer can be stacked."""
    try:
        make_stacked_layer(layer)
    except UsageError:
        return False
    return True
