"""Which backend trains a group of clients: a fixed rule, drawn from measurements, never a race at run time.

The rule looks at the device, the architecture and the input size only, so the same call always takes the same way. Wall
time of the loop over the stack's on one CPU thread, 10 clients, batches of 32 (medians of 3 in one run; larger than 1:
stack wins):

    mlp  8x8 3.2, 14x14 3.0, 28x28 with 51,000 numbers 0.9, with 218,000 numbers 0.7
    cnn  8x8 1.5, 16x16 2.2, 20x20 1.2, 28x28 0.96        resnet8  8x8 1.3-1.6, 3x32x32 0.5
"""

from __future__ import annotations

from torch import nn

from ..errors import choose
from ..models import parameter_count

BACKENDS = ("auto", "loop", "stacked")

# On a CPU the stack wins up to this many pixels (with convolutions) or numbers in the model (without), above it the
# loop does.
CPU_CONV_PIXELS = 16 * 16
CPU_LINEAR_NUMBERS = 40_000


def auto_backend(device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`loop` or `stacked` for `clients` models like `model` on images of `input_shape` `(C, H, W)` or rows `(D,)`."""
    if clients == 1:
        return "loop"
    if device != "cpu":
        return "stacked"
    if is_convolutional(model):
        return "stacked" if input_shape[-1] * input_shape[-2] <= CPU_CONV_PIXELS else "loop"
    return "stacked" if parameter_count(model) <= CPU_LINEAR_NUMBERS else "loop"


def is_convolutional(model: nn.Module) -> bool:
    """Whether `model` has a convolution."""
    return any(isinstance(layer, nn.Conv2d) for layer in model.modules())


def choose_backend(backend: str, device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`backend` itself if it names one, else the rule's answer."""
    choose("backend", backend, BACKENDS)
    return auto_backend(device, model, input_shape, clients) if backend == "auto" else backend


def wants_channels_last(device: str, model: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Whether the loop runs faster with channels-last images: convolutions on a CPU, above the stack's range."""
    return device == "cpu" and is_convolutional(model) and input_shape[-1] * input_shape[-2] > CPU_CONV_PIXELS
