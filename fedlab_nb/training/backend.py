"""The use of the machine by a training: its backend, its threads, and how many trainings run at the same time.

The backend of a group of clients is chosen by a fixed rule that is based on measurements
(`tests/benchmarks/RESULTS.md`), not by timing at run time. The rule looks only at the device, the architecture, the
input size and the number of cores given to torch, so the same call always uses the same backend. On a CPU the stack is
faster for small networks on small inputs. On a GPU it is faster for small networks; large ones are trained on separate
CUDA streams (`streams.py`).

A run gets one thread for small inputs and all of torch's threads for large ones. Steps on images as small as the digits
take microseconds, and spreading them over cores costs more than it saves. The fixed rule also keeps sums in the same
order, so a run gives the same digits whatever else the machine does.

If steps are long enough to be worth a thread, several trainings run at the same time, each on its own core. Clients
share nothing until their training has ended, and one core for each keeps the cores busier than all cores on every
operation. PyTorch releases Python's lock during an operation, so threads suffice.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from math import prod
from typing import Literal

import torch
from torch import nn
from torch.backends import cudnn

from ..errors import check_allowed_name
from ..models import count_parameters
from ..value_types import SampleShape, WithBlock
from .loop import FinishedEpochCounts
from .recipe import Precision
from .stack import can_stack_model

BACKENDS = ("auto", "loop", "stacked")
Backend = Literal["loop", "stacked"]
BackendChoice = Literal["auto", "loop", "stacked"]
DeviceType = str  # "cpu" or "cuda", `torch.device.type`

# On a CPU the stack is faster than the loop up to this many numbers in the model and, with convolutions, this many
# pixels in an image.
CPU_CONV_PIXELS = 16 * 16
CPU_CONV_NUMBERS = 200_000
CPU_LINEAR_NUMBERS = 40_000
# On a GPU the stack is faster than plain convolutions up to this many multiplications for a sample.
CARD_MULTIPLY_ADDS = 5_000_000
SMALL_INPUT = 1 * 16 * 16  # most numbers in a sample for which a run gets a single thread
# Between two yields of parallel trainings, at which a caller can stop them.
YIELD_INTERVAL_SECONDS = 0.02
# Clients in the smallest stack that pays off; larger stacks take hardly less time for each client.
SMALLEST_CONV_STACK = 5
SMALLEST_LINEAR_STACK = 25

# `cores`: torch's threads before `use_torch_settings_for_run` took them away.
_threads = threading.local()
_known_multiply_adds: dict[tuple, int] = {}


def find_fastest_backend(
    device_type: DeviceType, model: nn.Module, input_shape: SampleShape, client_count: int
) -> Backend:
    """`loop` or `stacked` for `client_count` models like `model` on samples `(C, H, W)`, `(C, T)` or `(D,)`."""
    if client_count == 1 or not can_stack_model(model):
        return "loop"
    if device_type != "cpu":
        is_small = count_multiply_adds_per_sample(model, input_shape) <= CARD_MULTIPLY_ADDS
    elif is_convolutional(model):
        has_few_pixels = prod(input_shape[1:]) <= CPU_CONV_PIXELS
        is_small = has_few_pixels and count_parameters(model) <= CPU_CONV_NUMBERS
    else:
        is_small = count_parameters(model) <= CPU_LINEAR_NUMBERS
    return "stacked" if is_small else "loop"


def resolve_backend_choice(
    backend_or_auto: BackendChoice,
    device_type: DeviceType,
    model: nn.Module,
    input_shape: SampleShape,
    client_count: int,
) -> Backend:
    """The backend of that name; for "auto" the one that `find_fastest_backend` gives. UsageError for another name."""
    check_allowed_name("backend", backend_or_auto, BACKENDS)
    if backend_or_auto == "auto":
        return find_fastest_backend(device_type, model, input_shape, client_count)
    return backend_or_auto


def is_convolutional(model: nn.Module) -> bool:
    """True if `model` has a convolution."""
    return any(isinstance(layer, nn.Conv2d) for layer in model.modules())


def choose_minimum_client_count_for_stack(model: nn.Module) -> int:
    """The fewest clients for which a stack of networks like `model` pays off on a CPU."""
    return SMALLEST_CONV_STACK if is_convolutional(model) else SMALLEST_LINEAR_STACK


def count_multiply_adds_per_sample(model: nn.Module, input_shape: SampleShape) -> int:
    """Multiplications in `model`'s convolutions and linear layers for one sample; cached by architecture."""
    key = (getattr(model, "architecture", id(model)), input_shape)
    if key not in _known_multiply_adds:
        _known_multiply_adds[key] = count_multiply_adds_by_running_one_sample(model, input_shape)
    return _known_multiply_adds[key]


@torch.no_grad()
def count_multiply_adds_by_running_one_sample(model: nn.Module, input_shape: SampleShape) -> int:
    """Count the multiplications by running one sample through `model` and reading the shapes of its outputs."""
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
    device_type: DeviceType, model: nn.Module, input_shape: SampleShape, precision: Precision
) -> bool:
    """True if the loop runs faster with channels-last images.

    On a CPU these are networks with batch norm on images too large for the stack; on a GPU, convolutions in bf16.
    """
    if not is_convolutional(model):
        return False
    if device_type != "cpu":
        return precision == "bf16"
    has_batch_norm = any(isinstance(layer, nn.BatchNorm2d) for layer in model.modules())
    return has_batch_norm and prod(input_shape[1:]) > CPU_CONV_PIXELS


def choose_parallel_group_count(
    device_type: DeviceType, model: nn.Module, input_shape: SampleShape, client_count: int
) -> int:
    """The number of parts into which `client_count` clients are split, to be trained at the same time.

    Several stacks, each of clients of similar sizes, need less padding than one for all. In the loop each client is a
    part of its own if there are several cores and steps are long enough.
    """
    if device_type != "cpu":
        return 1
    if find_fastest_backend(device_type, model, input_shape, client_count) == "stacked":
        return max(1, client_count // choose_minimum_client_count_for_stack(model))
    if prod(input_shape) > SMALL_INPUT and count_usable_cores() > 1:
        return client_count
    return 1


@contextmanager
def use_torch_settings_for_run(device_type: DeviceType, input_shape: SampleShape) -> WithBlock:
    """Inside the block torch's threads and convolutions are set for a run on samples of `input_shape`.

    On a CPU: one thread if a sample has at most SMALL_INPUT numbers. On a GPU: convolutions are deterministic and use
    float32 instead of the shorter TF32, so that the same call gives the same digits again.
    """
    if device_type != "cpu":
        with cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield
    elif prod(input_shape) <= SMALL_INPUT:
        with use_one_torch_thread():
            yield
    else:
        yield


@contextmanager
def use_one_torch_thread() -> WithBlock:
    """Inside the block torch computes on one thread; `count_usable_cores` still gives the number before it."""
    threads_before = torch.get_num_threads()
    _threads.cores = count_usable_cores()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads_before)
        del _threads.cores


def count_usable_cores() -> int:
    """The number of cores that a run may use: torch's threads, without the limit of `use_torch_settings_for_run`."""
    return getattr(_threads, "cores", 0) or torch.get_num_threads()


def run_trainings_in_parallel_threads(
    trainings: Sequence[FinishedEpochCounts],
    synchronisation_epochs: Sequence[int],
    thread_count: int,
) -> FinishedEpochCounts:
    """Run `trainings`, generators of finished epochs, on `thread_count` threads; yields the epochs finished by all.

    synchronisation_epochs: epochs in ascending order, the last of which is the end. Trainings wait for each other at
        each of them, so none has gone beyond epoch e when e is yielded for the first time; in between one may be ahead
        of another

    The trainings are started in the given order. This is where a run is stopped: closing this generator (a panel's Stop
    button closes the run's generator, and with it this one) stops every training between two of its steps. An error in
    one training stops all of them and is raised.
    """
    stop_requested = threading.Event()
    threads_before = torch.get_num_threads()
    finished = [0] * len(trainings)

    def advance(i: int, target_epoch: int) -> None:
        while finished[i] < target_epoch and not stop_requested.is_set():
            finished[i] = next(trainings[i])

    def finish(i: int, target_epoch: int) -> None:
        for _ in trainings[i]:  # runs the code after the last epoch; nothing more is yielded
            pass

    def run_all(work: Callable[[int, int], None], target_epoch: int) -> Iterator[int]:
        waiting = {pool.submit(work, i, target_epoch) for i in range(len(trainings))}
        while waiting:
            ended, waiting = wait(waiting, YIELD_INTERVAL_SECONDS, FIRST_COMPLETED)
            for future in ended:
                future.result()
            # `target_epoch` itself is yielded by the caller, when all trainings have reached it.
            yield max(0, min(*finished, target_epoch - 1))

    pool = ThreadPoolExecutor(
        thread_count, "training", initializer=torch.set_num_threads, initargs=(1,)
    )
    try:
        for target in synchronisation_epochs:
            yield from run_all(advance, target)
            if target == synchronisation_epochs[-1]:
                yield from run_all(finish, target)
            yield target
    finally:
        stop_requested.set()
        pool.shutdown(wait=True, cancel_futures=True)
        # The workers' setting of one thread also became the default of new threads.
        torch.set_num_threads(threads_before)
