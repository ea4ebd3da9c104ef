"""How a training uses the machine: which backend, how many threads, how many trainings at a time.

Which backend trains a group of clients is a fixed rule, drawn from measurements, never a race at run time.

The rule looks at the device, the architecture, the input size and the number of cores given to torch only, so the same
call always takes the same way. On a card the stack wins for small networks, and clients on streams of their own for
large ones (`streams.py`; `tests/benchmarks/RESULTS.md`). Wall time of the loop over the
stack's on one CPU thread, 10 clients, batches of 32 (one run; above 1 the stack wins; `tests/benchmarks` has more):

    mlp 8x8 4.0, 14x14 1.5, 28x28 0.7        cnn 8x8 2.7, 16x16 1.7, 28x28 0.9        lenet5 8x8 1.7
    resnet8 8x8 1.4, 3x32x32 0.5             vgg9 8x8 0.8

A run gets one thread for small inputs, the machine's for large ones. Steps on digits-sized images last microseconds;
spreading them over cores costs more than it saves, and on a busy machine a hundred times more. A fixed rule also keeps
sums in one order, so a run gives the same digits whatever else goes on.

Where steps are long enough to be worth a thread, several trainings run at a time, each on a core of its own. Clients
share nothing until their training has ended. One core each keeps the cores busier than all cores on every operation
does, and waits for nobody on a machine that others use too. PyTorch lets go of Python's lock during an operation, so
threads suffice.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from math import prod

import torch
from torch import nn
from torch.backends import cudnn

from ..errors import choose
from ..models import parameter_count
from .stack import stackable

BACKENDS = ("auto", "loop", "stacked")

# On a CPU the stack wins up to this many numbers in the model and, with convolutions, pixels; above, the loop does.
CPU_CONV_PIXELS, CPU_CONV_NUMBERS = 16 * 16, 200_000
CPU_LINEAR_NUMBERS = 40_000
# On a card the stack wins up to this many multiplications a sample; above, plain convolutions do.
CARD_MULTIPLY_ADDS = 5_000_000
SMALL_INPUT = 1 * 16 * 16  # numbers in a sample, above which a run gets the machine's threads
PATIENCE = 0.02  # seconds between two yields, so that a caller can stop
SMALLEST_STACK = {
    True: 5,
    False: 25,
}  # with convolutions, or without: larger ones take hardly less time a client

_given = threading.local()
_counted: dict[tuple, int] = {}  # see multiply_adds


def auto_backend(device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int) -> str:
    """`loop` or `stacked` for `clients` models like `model` on samples `(C, H, W)`, `(C, T)` or `(D,)`."""
    if clients == 1 or not stackable(model):
        return "loop"
    if device != "cpu":
        return "stacked" if multiply_adds(model, input_shape) <= CARD_MULTIPLY_ADDS else "loop"
    if is_convolutional(model):
        small = (
            prod(input_shape[1:]) <= CPU_CONV_PIXELS and parameter_count(model) <= CPU_CONV_NUMBERS
        )
    else:
        small = parameter_count(model) <= CPU_LINEAR_NUMBERS
    return "stacked" if small else "loop"


def is_convolutional(model: nn.Module) -> bool:
    """Whether `model` has a convolution."""
    return any(isinstance(layer, nn.Conv2d) for layer in model.modules())


def choose_backend(
    backend: str, device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int
) -> str:
    """`backend` itself if it names one, else the rule's answer."""
    choose("backend", backend, BACKENDS)
    return auto_backend(device, model, input_shape, clients) if backend == "auto" else backend


def multiply_adds(model: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Multiplications of `model`'s convolutions and linear layers for one sample; counted once for an architecture."""
    key = (getattr(model, "architecture", id(model)), input_shape)
    if key not in _counted:
        _counted[key] = count_multiply_adds(model, input_shape)
    return _counted[key]


@torch.no_grad()
def count_multiply_adds(model: nn.Module, input_shape: tuple[int, ...]) -> int:
    """As `multiply_adds`, from the shapes that one sample takes on its way through `model`."""
    total = 0

    def add_layer(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal total
        positions = prod(output.shape[2:]) if isinstance(layer, nn.Conv2d) else 1
        total += layer.get_parameter("weight").numel() * positions

    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(add_layer) for layer in layers]
    was_training = model.training
    parameter = next(model.parameters())
    try:
        model.eval()
        model(torch.zeros(1, *input_shape, device=parameter.device, dtype=parameter.dtype))
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    return total


def wants_channels_last(
    device: str, model: nn.Module, input_shape: tuple[int, ...], precision: str
) -> bool:
    """Whether the loop runs faster with channels-last images: batch norm on a CPU, above the stack's range, and
    convolutions in bf16 on a card."""
    if device != "cpu":
        return precision == "bf16" and is_convolutional(model)
    large = device == "cpu" and is_convolutional(model) and prod(input_shape[1:]) > CPU_CONV_PIXELS
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


@contextmanager
def suited(device: str, input_shape: tuple[int, ...]) -> Iterator[None]:
    """Within: one torch thread on a CPU if a sample has at most SMALL_INPUT numbers; on a card, convolutions that are
    summed in one order and in float32, not in its shorter TF32, so that a call gives the same digits again."""
    before = torch.get_num_threads()
    small = device == "cpu" and prod(input_shape) <= SMALL_INPUT
    exact = (
        nullcontext()
        if device == "cpu"
        else cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    )
    if small:
        _given.cores = cores()
        torch.set_num_threads(1)
    try:
        with exact:
            yield
    finally:
        if small:
            torch.set_num_threads(before)
            del _given.cores


def cores() -> int:
    """How many cores a run may use: torch's threads, as they were before `suited` took them away."""
    return getattr(_given, "cores", 0) or torch.get_num_threads()


def side_by_side(
    trainings: Sequence[Iterator[int]], stops: Sequence[int], workers: int
) -> Generator[int, None, None]:
    """Run `trainings`, generators of finished epochs, on `workers` threads; yields finished epochs as they do.

    All have finished epoch e of `stops` (ascending, the last one is the end)
    when e is yielded for the first time; in between one may be ahead of another. Those that come first begin first.
    Closing stops each between two of its steps; an error in one stops all and is raised.
    """
    stop, cores = threading.Event(), torch.get_num_threads()
    done = [0] * len(trainings)

    def advance(i: int, target: int) -> None:
        while done[i] < target and not stop.is_set():
            done[i] = next(trainings[i])

    def finish(i: int, target: int) -> None:
        for _ in trainings[i]:  # nothing is left but to clean up
            pass

    def everywhere(work: Callable[[int, int], None], target: int) -> Iterator[int]:
        waiting = {pool.submit(work, i, target) for i in range(len(trainings))}
        while waiting:
            ended, waiting = wait(waiting, PATIENCE, FIRST_COMPLETED)
            for future in ended:
                future.result()
            yield max(0, min(min(done), target - 1))

    pool = ThreadPoolExecutor(workers, "training", initializer=torch.set_num_threads, initargs=(1,))
    try:
        for target in stops:
            yield from everywhere(advance, target)
            if target == stops[-1]:
                yield from everywhere(finish, target)
            yield target
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(
            cores
        )  # the workers' choice is also what threads to come would begin with
