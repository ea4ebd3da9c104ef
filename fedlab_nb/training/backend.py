"""Which backend trains a group of clients: a fixed rule, drawn from measurements, never a race at run time.

The rule looks at the device, the architecture, the input size and the number of cores given to torch only, so the same
call always takes the same way. Wall time of the loop over the stack's on one CPU thread, 10 clients, batches of 32
(one run; above 1 the stack wins; `tests/benchmarks` has more):

    mlp 8x8 4.0, 14x14 1.5, 28x28 0.7        cnn 8x8 2.7, 16x16 1.7, 28x28 0.9        lenet5 8x8 1.7
    resnet8 8x8 1.4, 3x32x32 0.5             vgg9 8x8 0.8
"""

from math import prod

from torch import nn

from ..errors import choose
from ..models import parameter_count
from .kernels.stacked_layers import stackable
from .threads import SMALL_INPUT, cores

BACKENDS = ("auto", "loop", "stacked")

# On a CPU the stack wins up to this many numbers in the model and, with convolutions, pixels; above, the loop does.
CPU_CONV_PIXELS, CPU_CONV_NUMBERS = 16 * 16, 200_000
CPU_LINEAR_NUMBERS = 40_000
SMALLEST_STACK = {True: 5, False: 25}  # with convolutions, or without: larger ones take hardly less time a client


def auto_backend(device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`loop` or `stacked` for `clients` models like `model` on images of `input_shape` `(C, H, W)` or rows `(D,)`."""
    if clients == 1 or not stackable(model):
        return "loop"
    if device != "cpu":
        return "stacked"
    if is_convolutional(model):
        small = prod(input_shape[-2:]) <= CPU_CONV_PIXELS and parameter_count(model) <= CPU_CONV_NUMBERS
    else:
        small = parameter_count(model) <= CPU_LINEAR_NUMBERS
    return "stacked" if small else "loop"


def is_convolutional(model: nn.Module) -> bool:
    """Whether `model` has a convolution."""
    return any(isinstance(layer, nn.Conv2d) for layer in model.modules())


def choose_backend(backend: str, device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`backend` itself if it names one, else the rule's answer."""
    choose("backend", backend, BACKENDS)
    return auto_backend(device, model, input_shape, clients) if backend == "auto" else backend


def wants_channels_last(device: str, model: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Whether the loop runs faster with channels-last images: batch norm on a CPU, above the stack's range."""
    large = device == "cpu" and is_convolutional(model) and prod(input_shape[-2:]) > CPU_CONV_PIXELS
    return large and any(isinstance(layer, nn.BatchNorm2d) for layer in model.modules())


def pieces(device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> int:
    """In how many parts `clients` are trained, each on a core of its own if there are so many.

    Stacks of at least SMALLEST_STACK clients of like sizes need less padding than one for all. In the loop, single
    clients where there are several cores and steps are long enough.
    """
    if device != "cpu":
        return 1
    if auto_backend(device, model, input_shape, clients) == "stacked":
        return max(1, clients // SMALLEST_STACK[is_convolutional(model)])
    return clients if prod(input_shape) > SMALL_INPUT and cores() > 1 else 1
