"""The table of architectures, and `build`, which checks the request and draws the first weights."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import nn

from .. import rng
from ..errors import UsageError, choose, parsed, whole
from . import plain, resnet
from .network import Layout, Network
from .state import materialise

SMALLEST_SIDE = 8
CHANNELS = (1, 3)


@dataclass(frozen=True)
class ModelInfo:
    """One row of `MODELS`. `default_width` is None where the size of the input decides (the mlp: 64 or 256)."""

    title: str
    help: str
    default_width: int | None
    layout: Callable[[Any, int], Layout]  # (input_shape, width) -> blocks, feature length
    widths: tuple[int, int] = (1, 256)  # smallest and largest `width` that build accepts
    images_only: bool = True


MODELS: dict[str, ModelInfo] = {
    "mlp": ModelInfo(
        "Perceptron, two hidden layers",
        "Hidden layers 64-32 up to 256 inputs, else 256-64; width = first hidden layer. Takes feature rows too.",
        None,
        plain.mlp,
        (4, 4096),
        images_only=False,
    ),
    "cnn": ModelInfo(
        "Five-layer CNN (FedLPA)",
        "Two 5x5 convolutions, three linear layers, no normalisation; width = channels of the first convolution.",
        6,
        plain.cnn,
    ),
    "lenet5": ModelInfo(
        "LeNet-5 (Co-Boosting)",
        "Three 5x5 convolutions, two linear layers, no normalisation; width = channels of the first convolution.",
        6,
        plain.lenet5,
    ),
    "cnn2": ModelInfo(
        "Two-convolution CNN (DENSE)",
        "Two 5x5 convolutions with batch norm, one linear layer; width = channels of the first convolution.",
        16,
        plain.cnn2,
    ),
    "cnn3": ModelInfo(
        "Three-convolution CNN (DENSE, Co-Boosting)",
        "Three 3x3 convolutions, one linear layer, no normalisation; width = channels of every convolution.",
        128,
        plain.cnn3,
        (1, 512),
    ),
    "resnet8": ModelInfo(
        "ResNet-8 (FENS)",
        "Three residual blocks with batch norm; width = channels of the first convolution, 128 in the paper.",
        16,
        resnet.resnet8,
        (1, 512),
    ),
    "resnet18": ModelInfo(
        "ResNet-18, CIFAR variant (FuseFL)",
        "Eight residual blocks with batch norm; width = channels of the first convolution. Made for a GPU.",
        64,
        resnet.resnet18,
    ),
    "resnet10": ModelInfo(
        "ResNet-10, CIFAR variant (FuseFL)",
        "ResNet-18 with one residual block a stage, so that the two can work together block by block.",
        64,
        resnet.resnet10,
    ),
    "resnet26": ModelInfo(
        "ResNet-26, CIFAR variant (FuseFL)",
        "ResNet-18 with three residual blocks a stage, so that the two can work together block by block.",
        64,
        resnet.resnet26,
    ),
    "vgg9": ModelInfo(
        "VGG-9 (FedMA)",
        "Six 3x3 convolutions, three linear layers, no normalisation; width = channels of the first convolution.",
        32,
        plain.vgg9,
    ),
}


def add_model(
    name: str,
    layout: Callable[[Any, int], Layout],
    *,
    title: str = "",
    help: str = "",
    width: int = 32,
    widths: tuple[int, int] = (1, 4096),
    images_only: bool = False,
) -> None:
    """Add an architecture of your own to MODELS, for `model="name"` or `model="name:width"`.

    layout: (input_shape, width) -> (blocks, D): modules that turn a batch `[N, *input_shape]` into features `[N, D]`,
    which one linear layer then reads. UsageError if `name` is one of the package's own.

    >>> add_model("one_layer", lambda shape, width: ([nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU()], width))
    >>> build("one_layer", (1, 8, 8), 10).features(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 32])
    """
    if name in MODELS and MODELS[name].layout.__module__.startswith(__name__.partition(".")[0] + "."):
        raise UsageError(f"The model name {name!r} is taken by {MODELS[name].title}; choose another one.")
    MODELS[name] = ModelInfo(title or name, help, width, layout, widths, images_only)


def default_model(input_shape: tuple[int, ...]) -> str:
    """The architecture for "auto": the cnn for images of more than 256 numbers that it can take, else the mlp."""
    if len(input_shape) != 3 or prod(input_shape) <= plain.MLP_SMALL_INPUT:
        return "mlp"
    return "cnn" if input_shape[0] in CHANNELS and min(input_shape[1:]) >= SMALLEST_SIDE else "mlp"


def specified(text: str, input_shape: tuple[int, ...]) -> list[tuple[str, int | None]]:
    """(name, width) of each model that `text` specifies: "mlp", "cnn:12", or several joined by commas.

    "auto" is what suits `input_shape`; width None is the usual one. UsageError for what no model is.

    >>> specified("auto, cnn:12", (1, 8, 8))
    [('mlp', None), ('cnn', 12)]
    """
    models = []
    for part in str(text).split(","):
        name, _, width = part.strip().partition(":")
        choose("model", name, ("auto", *MODELS))
        wide = whole("width", parsed(width), 1, 4096) if width else None
        models.append((default_model(input_shape) if name == "auto" else name, wide))
    return models


def build_specified(text: str, input_shape: tuple[int, ...], classes: int) -> Network:
    """The (first) model that `text` specifies, untrained."""
    name, width = specified(text, input_shape)[0]
    return build(name, input_shape, classes, width=width)


def default_width(name: str, input_shape: tuple[int, ...]) -> int:
    """The width of architecture `name` where nobody asks for another."""
    return MODELS[name].default_width or plain.mlp_width(input_shape)


def build(
    name: str,
    input_shape: tuple[int, ...],
    classes: int,
    *,
    width: int | None = None,
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Network:
    """A freshly initialised model of architecture `name` for inputs of shape (C, H, W) or (D,).

    Weights follow PyTorch's default formula (see `initialise`), drawn from `generator`, a CPU generator (None: one
    fixed stream); the same generator state gives the same weights on every device and, to rounding, for every dtype.
    UsageError: unknown name; feature rows or images below 8x8 or with channels other than 1 or 3 for an image
    architecture; a width outside `MODELS[name].widths`.

    >>> build("cnn", (1, 28, 28), 10).features(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 84])
    """
    info = MODELS[choose("model", name, MODELS)]
    input_shape = _checked_shape(name, input_shape)
    classes = whole("classes", classes, 2)
    width = whole(f"width of {name}", default_width(name, input_shape) if width is None else width, *info.widths)
    if not dtype.is_floating_point:
        raise UsageError(f"dtype is {dtype}, but a model needs a floating-point type such as torch.float32.")
    with torch.device("meta"):  # no memory yet, and no draw from the global random state
        model = Network(*info.layout(input_shape, width), (name, input_shape, classes, width))
    materialise(model, dtype)
    initialise(model, rng.generator(0, "models", name) if generator is None else generator)
    return model.to(device)


@torch.no_grad()
def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """PyTorch's default: Linear and Conv2d weights and biases uniform in +-1/sqrt(fan-in), batch norm scale 1, shift 0.

    Draws in float32 on the CPU, weight before bias, in the order of `model.modules()`.
    """
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            for parameter in (layer.weight, layer.bias):
                if parameter is not None:
                    parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_parameters()  # scale 1, shift 0, running mean 0, running variance 1


def _checked_shape(name: str, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    shape = tuple(whole("a side of input_shape", side, 1) for side in input_shape)
    if len(shape) not in (1, 3):
        raise UsageError(f"input_shape is {shape}, but it must be (C, H, W) for images or (D,) for feature rows.")
    if not MODELS[name].images_only:
        return shape
    if len(shape) == 1:
        raise UsageError(f"Model {name!r} needs images, not rows of {shape[0]} features; use 'mlp'.")
    channels, height, breadth = shape
    if channels not in CHANNELS:
        raise UsageError(f"Model {name!r} takes images of 1 or 3 channels, not {channels}; use 'mlp'.")
    if min(height, breadth) < SMALLEST_SIDE:
        raise UsageError(f"Model {name!r} needs images of at least 8x8, not {height}x{breadth}; use 'mlp'.")
    return shape
