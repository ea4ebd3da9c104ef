"""Which backend trains a group of clients: a fixed rule, drawn from measurements, never a race at run time.

The rule looks at the device, the architecture and the image size only, so the same call always takes the same way. Measured on two
CPU cores (ratios of the loop's wall time to the stack's; tests/benchmarks repeats them): see `auto_backend`.
"""

from __future__ import annotations

from torch import nn

from ..errors import choose

BACKENDS = ("auto", "loop", "stacked")

# Convolutions on a CPU: up to this many pixels the stack wins, above it the loop does.
CPU_CONV_PIXELS = 16 * 16


def auto_backend(device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`loop` or `stacked` for `clients` models like `model` on images of `input_shape` `(C, H, W)` or rows `(D,)`."""
    if clients == 1:
        return "loop"
    if device != "cpu":
        return "stacked"
    convolutional = any(isinstance(layer, nn.Conv2d) for layer in model.modules())
    if convolutional and input_shape[-1] * input_shape[-2] > CPU_CONV_PIXELS:
        return "loop"
    return "stacked"


def choose_backend(backend: str, device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`backend` itself if it names one, else the rule's answer."""
    choose("backend", backend, BACKENDS)
    return auto_backend(device, model, input_shape, clients) if backend == "auto" else backend


def wants_channels_last(device: str, model: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Whether the loop runs faster with channels-last images: convolutions on a CPU, above the stack's range."""
    convolutional = any(isinstance(layer, nn.Conv2d) for layer in model.modules())
    return device == "cpu" and convolutional and input_shape[-1] * input_shape[-2] > CPU_CONV_PIXELS
