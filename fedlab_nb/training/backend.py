"""How a training uses the machine: which backend, how many threads, how many trainings at a time.

Which backend trains a group of clients is a fixed rule, drawn from measurements (`tests/benchmarks/RESULTS.md`), never
a race at run time. It looks at the device, the architecture, the input size and the number of cores given to torch
only, so the same call always takes the same way. On a CPU the stack wins for small networks on small inputs; on a card
it wins for small networks, and clients on CUDA streams of their own win for large ones (`streams.py`).

A run gets one thread for small inputs, the machine's for large ones. Steps on digits-sized images last microseconds;
spreading them over cores costs more than it saves. A fixed rule also keeps sums in one order, so a run gives the same
digits whatever else the machine does.

Where steps are long enough to be worth a thread, several trainings run at a time, each on a core of its own. Clients
share nothing until their training has ended. One core each keeps the cores busier than all cores on every operation
does. PyTorch releases Python's lock during an operation, so threads suffice.
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
from .stack import can_stack

BACKENDS = ("auto", "loop", "stacked")

# On a CPU the stack wins up to this many numbers in the model and, with convolutions, this many
# pixels; above, the loop does.
CPU_CONV_PIXELS = 16 * 16
CPU_CONV_NUMBERS = 200_000
CPU_LINEAR_NUMBERS = 40_000
# On a card the stack wins up to this many multiplications a sample; above, plain convolutions do.
CARD_MULTIPLY_ADDS = 5_000_000
SMALL_INPUT = 1 * 16 * 16  # numbers in a sample, above which a run gets the machine's threads
YIELD_INTERVAL = 0.02  # seconds between two yields of `run_in_parallel`, so that a caller can stop
# Clients in the smallest stack that is worth making; larger ones take hardly less time a client.
SMALLEST_CONV_STACK = 5
SMALLEST_LINEAR_STACK = 25

_threads = threading.local()  # `cores`: torch's threads before `configure_torch` took them away
_known_multiply_adds: dict[tuple, int] = {}


def find_fastest_backend(
    device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int
) -> str:
    """`loop` or `stacked` for `clients` models like `model` on samples `(C, H, W)`, `(C, T)` or `(D,)`."""
    if clients == 1 or not can_stack(model):
        return "loop"
    if device != "cpu":
        is_small = count_multiply_adds(model, input_shape) <= CARD_MULTIPLY_ADDS
    elif is_convolutional(model):
        has_few_pixels = prod(input_shape[1:]) <= CPU_CONV_PIXELS
        is_small = has_few_pixels and parameter_count(model) <= CPU_CONV_NUMBERS
    else:
        is_small = parameter_count(model) <= CPU_LINEAR_NUMBERS
    return "stacked" if is_small else "loop"


def choose_backend(
    backend: str, device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int
) -> str:
    """`backend` itself if it names one, else the rule's answer."""
    choose("backend", backend, BACKENDS)
    if backend == "auto":
        return find_fastest_backend(device, model, input_shape, clients)
    return backend


def is_convolutional(model: nn.Module) -> bool:
    """Whether `model` has a convolution."""
    return any(isinstance(layer, nn.Conv2d) for layer in model.modules())


def choose_smallest_stack(model: nn.Module) -> int:
    """How many clients a stack of networks like `model` should have at least, on a CPU."""
    return SMALLEST_CONV_STACK if is_convolutional(model) else SMALLEST_LINEAR_STACK


def count_multiply_adds(model: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Multiplications of `model`'s convolutions and linear layers for one sample; counted once for an architecture."""
    key = (getattr(model, "architecture", id(model)), input_shape)
    if key not in _known_multiply_adds:
        _known_multiply_adds[key] = measure_multiply_adds(model, input_shape)
    return _known_multiply_adds[key]


@torch.no_grad()
def measure_multiply_adds(model: nn.Module, input_shape: tuple[int, ...]) -> int:
    """As `count_multiply_adds`, from the shapes that one sample takes on its way through `model`."""
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


def should_use_channels_last(
    device: str, model: nn.Module, input_shape: tuple[int, ...], precision: str
) -> bool:
    """Whether the loop runs faster with channels-last images.

    On a CPU: networks with batch norm, on images above the stack's range. On a card: convolutions in bf16.
    """
    if not is_convolutional(model):
        return False
    if device != "cpu":
        return precision == "bf16"
    has_batch_norm = any(isinstance(layer, nn.BatchNorm2d) for layer in model.modules())
    return has_batch_norm and prod(input_shape[1:]) > CPU_CONV_PIXELS


def choose_part_count(
    device: str, model: nn.Module, input_shape: tuple[int, ...], clients: int
) -> int:
    """Into how many parts `clients` are split, each trained on a core of its own if there are so many.

    Several stacks of clients of similar sizes need less padding than one for all. In the loop each client is a part
    where there are several cores and steps are long enough.
    """
    if device != "cpu":
        return 1
    if find_fastest_backend(device, model, input_shape, clients) == "stacked":
        return max(1, clients // choose_smallest_stack(model))
    if prod(input_shape) > SMALL_INPUT and count_cores() > 1:
        return clients
    return 1


@contextmanager
def configure_torch(device: str, input_shape: tuple[int, ...]) -> Iterator[None]:
    """Within: torch's threads and convolutions are set for a run on samples of `input_shape`.

    On a CPU: one thread if a sample has at most SMALL_INPUT numbers. On a card: convolutions that are summed in one
    order, and in float32 instead of the shorter TF32, so that the same call gives the same digits again.
    """
    if device != "cpu":
        with cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield
        return
    with use_one_thread() if prod(input_shape) <= SMALL_INPUT else nullcontext():
        yield


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Within: torch computes on one thread; `count_cores` still knows how many there were."""
    threads_before = torch.get_num_threads()
    _threads.cores = count_cores()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads_before)
        del _threads.cores


def count_cores() -> int:
    """How many cores a run may use: torch's threads, as they were before `configure_torch` took them away."""
    return getattr(_threads, "cores", 0) or torch.get_num_threads()


def run_in_parallel(
    trainings: Sequence[Iterator[int]], meeting_epochs: Sequence[int], workers: int
) -> Generator[int, None, None]:
    """Run `trainings`, generators of finished epochs, on `workers` threads; yields how many epochs all have finished.

    meeting_epochs: epochs in ascending order, the last one the end. Trainings wait for each other at each of them, so
    none has gone beyond epoch e when e is yielded for the first time; in between one may be ahead of another

    The first trainings begin first. What stops a run: whoever closes this generator (the Stop button of a panel closes
    the run's generator, and with it this one) stops every training between two of its steps; an error in one training
    stops all and is raised.
    """
    stop_requested = threading.Event()
    threads_before = torch.get_num_threads()
    finished = [0] * len(trainings)

    def advance(i: int, target_epoch: int) -> None:
        while finished[i] < target_epoch and not stop_requested.is_set():
            finished[i] = next(trainings[i])

    def finish(i: int, target_epoch: int) -> None:
        for _ in trainings[i]:  # no epoch is left, only what follows the last one
            pass

    def run_all(work: Callable[[int, int], None], target_epoch: int) -> Iterator[int]:
        waiting = {pool.submit(work, i, target_epoch) for i in range(len(trainings))}
        while waiting:
            ended, waiting = wait(waiting, YIELD_INTERVAL, FIRST_COMPLETED)
            for future in ended:
                future.result()
            # `target_epoch` itself is yielded when all have arrived there.
            yield max(0, min(*finished, target_epoch - 1))

    pool = ThreadPoolExecutor(workers, "training", initializer=torch.set_num_threads, initargs=(1,))
    try:
        for target in meeting_epochs:
            yield from run_all(advance, target)
            if target == meeting_epochs[-1]:
                yield from run_all(finish, target)
            yield target
    finally:
        stop_requested.set()
        pool.shutdown(wait=True, cancel_futures=True)
        # What the workers chose is also what new threads would begin with.
        torch.set_num_threads(threads_before)
