"""The table of architectures, and `build`, which checks the request and draws the first weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, NamedTuple, cast

import torch
from torch import nn

from .. import rng
from ..declared import read_toml
from ..errors import SAMPLES, UsageError, check_allowed_name, check_whole_number, parse_if_number
from ..value_types import SampleShape
from . import plain, resnet
from .network import (
    KINDS,
    Architecture,
    LayoutFunction,
    Network,
    NormReplacement,
    make_layout_with_replaced_batch_norm,
)
from .state import allocate_uninitialised_parameters_on_cpu

SMALLEST_SIDE = 8
CNN_FROM = (
    256  # images of at least so many numbers get the cnn by default; 16x16 grey ones have as many
)
CHANNELS = (1, 3)


@dataclass(frozen=True)
class ModelInfo:
    """One row of `MODELS`. `default_width` is None if the width depends on the input's size (the mlp: 64 or 256)."""

    title: str
    help: str
    layout: LayoutFunction  # (input_shape, width) -> blocks, feature length
    default_width: int | None = None
    widths: Sequence[int] = (1, 256)  # smallest and largest `width` that build accepts
    images_only: bool = True
    batch_norm: bool = False  # whether it has batch norm, and so the variants NAME-nobn and NAME-gn
    recordings_only: bool = False

    @property
    def required_sample_kind(self) -> Literal["images", "recordings", ""]:
        """The only kind of samples that the architecture takes, one of errors.SAMPLES; "" if it takes any."""
        if self.images_only:
            return "images"
        if self.recordings_only:
            return "recordings"
        return ""


class Models(dict[str, ModelInfo]):
    """The architectures by name.

    An architecture with batch norm can also be looked up as NAME-nobn and NAME-gn (see `network.py`). These variants
    are made on demand and are not listed, so that lists of names stay short.
    """

    def __missing__(self, name: str) -> ModelInfo:
        base, _, kind = name.rpartition("-")
        if kind not in KINDS or base not in self or not self[base].batch_norm:
            raise KeyError(name)
        info = self[base]
        title = f"{info.title}, {KINDS[kind]}"
        layout = make_layout_with_replaced_batch_norm(info.layout, cast(NormReplacement, kind))
        return replace(info, title=title, layout=layout, batch_norm=False)

    def check_model_name(self, model_name: str) -> str:
        """`model_name` if there is such an architecture; else UsageError with the nearest match."""
        try:
            self[model_name]
        except (KeyError, AttributeError):  # no such name, or not even text
            check_allowed_name("model", model_name, self)
        return model_name


# Each model NAME of models.toml has a function build_NAME_blocks here.
LAYOUTS = vars(resnet) | vars(plain)
MODELS = Models()
for _name, _row in read_toml("models/models.toml").items():
    MODELS[_name] = ModelInfo(layout=LAYOUTS[f"build_{_name}_blocks"], **_row)

# What menus suggest; every other name of MODELS can be typed.
MENU = ("mlp", "cnn", "cnn1d", "lenet5", "cnn2", "cnn3", "resnet8", "resnet18")


def add_model(
    name: str,
    layout: LayoutFunction,
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
    if name in MODELS and not is_added_model(name):
        raise UsageError(
            f"The model name {name!r} is taken by {MODELS[name].title}; choose another one."
        )
    MODELS[name] = ModelInfo(title or name, help, layout, width, widths, images_only)


def is_added_model(model_name: str) -> bool:
    """True if an architecture of that name was added with `add_model`."""
    package = __name__.partition(".")[0] + "."
    return model_name in MODELS and not str(MODELS[model_name].layout.__module__).startswith(
        package
    )


def choose_default_model_name(input_shape: SampleShape) -> str:
    """The architecture for "auto".

    It is the cnn for images of 256 numbers or more (if the cnn can take them), the cnn1d for recordings of eight steps
    or more, and the mlp for everything else.
    """
    if len(input_shape) == 2 and input_shape[1] >= SMALLEST_SIDE:
        return "cnn1d"
    if len(input_shape) != 3 or prod(input_shape) < CNN_FROM:
        return "mlp"
    if input_shape[0] in CHANNELS and min(input_shape[1:]) >= SMALLEST_SIDE:
        return "cnn"
    return "mlp"


class SizedModel(NamedTuple):
    """The name of an architecture and its width; None is the architecture's default width."""

    name: str
    width: int | None


def parse_models(models_joined_by_commas: str, input_shape: SampleShape) -> list[SizedModel]:
    """The models that `models_joined_by_commas` specifies: "mlp", "cnn:12", or several joined by commas.

    "auto" becomes the default for `input_shape`. UsageError for an unknown model.

    >>> parse_models("auto, cnn:12", (1, 8, 8))
    [SizedModel(name='mlp', width=None), SizedModel(name='cnn', width=12)]
    """
    models = []
    for part in str(models_joined_by_commas).split(","):
        name, _, width_text = part.strip().partition(":")
        if name != "auto":
            MODELS.check_model_name(name)
        width = None
        if width_text:
            width = check_whole_number("width", parse_if_number(width_text), 1, 4096)
        if name == "auto":
            name = choose_default_model_name(input_shape)
        models.append(SizedModel(name, width))
    return models


def check_model_text_names_one(model_text: str) -> str:
    """`model_text` itself if it is "auto" or specifies one model, "cnn" or "cnn:12"; else UsageError."""
    model_text = str(model_text).strip()
    if model_text == "auto":
        return model_text
    models = parse_models(model_text, ())
    if len(models) != 1:
        raise UsageError(
            f"server_model must be one model, such as 'cnn' or 'cnn:12', not {model_text!r}."
        )
    name, width = models[0]
    if width is not None:
        check_whole_number(f"width of {name}", width, *MODELS[name].widths)
    return model_text


def parse_architecture(model_text: str, input_shape: SampleShape, class_count: int) -> Architecture:
    """(name, input_shape, classes, width) of the one model that `model_text` specifies, which must not be "auto".

    UsageError if it cannot take such inputs.
    """
    name, width = parse_models(check_model_text_names_one(model_text), input_shape)[0]
    return name, check_and_convert_input_shape(name, input_shape), class_count, width


def build_untrained_network_of_first_model(
    models_joined_by_commas: str, input_shape: SampleShape, class_count: int
) -> Network:
    """The first model that `models_joined_by_commas` specifies, untrained."""
    name, width = parse_models(models_joined_by_commas, input_shape)[0]
    return build(name, input_shape, class_count, width=width)


def choose_default_width(model_name: str, input_shape: SampleShape) -> int:
    """The width of architecture `model_name` where no other is set."""
    return MODELS[model_name].default_width or plain.choose_mlp_width(input_shape)


def build(
    name: str,
    input_shape: SampleShape,
    classes: int,
    *,
    width: int | None = None,
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Network:
    """A freshly initialised model of architecture `name` for inputs of shape (C, H, W), (C, T) or (D,).

    Weights follow PyTorch's default formula (see `initialise_parameters_in_place`), drawn from `generator`,
    a CPU generator (None: one fixed stream); the same generator state gives the same weights on
    every device and, to rounding, for every dtype. UsageError: unknown name; feature rows or
    images below 8x8 or with channels other than 1 or 3 for an image architecture; a width outside
    `MODELS[name].widths`.

    >>> build("cnn", (1, 28, 28), 10).features(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 84])
    """
    info = MODELS[MODELS.check_model_name(name)]
    input_shape = check_and_convert_input_shape(name, input_shape)
    classes = check_whole_number("classes", classes, 2)
    if width is None:
        width = choose_default_width(name, input_shape)
    width = check_whole_number(f"width of {name}", width, *info.widths)
    if not dtype.is_floating_point:
        raise UsageError(
            f"dtype is {dtype}, but a model needs a floating-point type such as torch.float32."
        )
    if generator is None:
        generator = rng.make_torch_generator(0, "models", name)
    architecture = (name, input_shape, classes, width)
    if is_added_model(name):
        model = build_added_model(info.layout, architecture, generator).to(dtype)
    else:
        with torch.device("meta"):  # no memory yet, and no draw from the global random state
            blocks, features = info.layout(input_shape, width)
            model = Network(blocks, features, architecture)
        allocate_uninitialised_parameters_on_cpu(model, dtype)
    initialise_parameters_in_place(model, generator)
    return model.to(device)


def build_added_model(
    layout: LayoutFunction, architecture: Architecture, seed_source: torch.Generator
) -> Network:
    """A network from a layout that a person has added, on the CPU, with its layers' own initial weights.

    The layers draw these from PyTorch's global random stream, which is seeded from `seed_source` here and
    restored afterwards.
    """
    _, input_shape, _, width = architecture
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed_source.initial_seed())
        blocks, features = layout(input_shape, width)
        return Network(blocks, features, architecture)


@torch.no_grad()
def initialise_parameters_in_place(model: nn.Module, generator: torch.Generator | None) -> None:
    """Draw initial weights by PyTorch's default formula.

    Weights and biases of Linear and Conv2d are uniform in ±1/sqrt(fan-in); normalisation layers get scale 1 and shift
    0. The draws are float32 on the CPU, weight before bias, in the order of `model.modules()`.
    """
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            for parameter in (layer.weight, layer.bias):
                if parameter is not None:
                    values = torch.empty(parameter.shape)
                    parameter.copy_(values.uniform_(-bound, bound, generator=generator))
        elif isinstance(layer, (nn.BatchNorm2d, nn.GroupNorm)):
            layer.reset_parameters()  # scale 1, shift 0, running mean 0, running variance 1


def make_initialised_layer(
    layer_class: type[nn.Module],
    *sizes: int,
    generator: torch.Generator | None,
    dtype_device_template: torch.Tensor | None = None,
) -> nn.Module:
    """The layer `layer_class(*sizes)` with first weights from `generator`, on the device and in
    the dtype of `dtype_device_template`."""
    with torch.device("meta"):  # no draw from the global random state
        layer = layer_class(*sizes)
    allocate_uninitialised_parameters_on_cpu(layer)
    initialise_parameters_in_place(layer, generator)
    if dtype_device_template is None:
        return layer
    return layer.to(dtype_device_template.device, dtype_device_template.dtype)


def check_and_convert_input_shape(model_name: str, input_shape: SampleShape) -> tuple[int, ...]:
    """Return `input_shape`; UsageError if it is no shape of samples, or if architecture `model_name` cannot take it."""
    shape = tuple(check_whole_number("a side of input_shape", side, 1) for side in input_shape)
    if len(shape) not in SAMPLES:
        raise UsageError(
            f"input_shape is {shape}, but must be (C, H, W) for images, (C, T) for "
            "recordings, (D,) for feature rows."
        )
    kind = SAMPLES[len(shape)]
    needs = MODELS[model_name].required_sample_kind
    if needs not in ("", kind):
        sides = "x".join(map(str, shape))
        raise UsageError(
            f"Model {model_name!r} needs {needs}, not {kind} of {sides}; use {choose_default_model_name(shape)!r}."
        )
    if needs == "recordings" and shape[1] < SMALLEST_SIDE:
        raise UsageError(
            f"Model {model_name!r} needs recordings of at least {SMALLEST_SIDE} steps, not {shape[1]}; use 'mlp'."
        )
    if needs == "images" and shape[0] not in CHANNELS:
        raise UsageError(
            f"Model {model_name!r} takes images of 1 or 3 channels, not {shape[0]}; use 'mlp'."
        )
    if needs == "images" and min(shape[1:]) < SMALLEST_SIDE:
        raise UsageError(
            f"Model {model_name!r} needs images of at least 8x8, not {shape[1]}x{shape[2]}; use 'mlp'."
        )
    return shape
