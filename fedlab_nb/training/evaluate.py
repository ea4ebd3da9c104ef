"""Forward passes without gradients, in chunks, each computed once where a caller asks for it; and accuracies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

LARGEST_CHUNK = 2048  # samples at once
SMALLEST_CHUNK = 64  # below it the calls cost most
# Numbers in the widest map of a chunk on a CPU (8 MiB). A tensor beyond the processor's cache, and still more one for
# which memory is allocated anew each time (32 MiB), costs more a sample.
WIDEST_MAP = 2**21


def choose_chunk_size(function: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """How many samples of `x [N, ...]` `function`, a network or a method of one, reads at once: a power of two.

    By the maps after its first convolution, as wide as the image: ResNet-8 reads 128 images of 28x28, the 5-layer CNN
    512, and every network LARGEST_CHUNK rows of features.
    """
    if x.dim() < 3 or x.device.type != "cpu":
        return LARGEST_CHUNK
    channels = max(count_first_conv_channels(function), x.shape[1])
    fitting = WIDEST_MAP // (channels * prod(x.shape[2:]))
    power_of_two = 1 << max(0, fitting.bit_length() - 1)
    return max(SMALLEST_CHUNK, min(LARGEST_CHUNK, power_of_two))


def count_first_conv_channels(function: Callable[[Tensor], Tensor]) -> int:
    """The channels that the first convolution of a network makes, also for one of its methods; 1 if it has none."""
    network: Any = getattr(function, "__self__", function)
    if isinstance(network, nn.Module):
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                return layer.out_channels
    return 1


@torch.no_grad()
def run_in_chunks(
    function: Callable[[Tensor], Tensor], x: Tensor, dim: int = 0, chunk: int | None = None
) -> Tensor:
    """`function` over `x` in chunks of samples, results joined along `dim` (the sample axis of the result)."""
    chunk = chunk or choose_chunk_size(function, x)
    if x.shape[0] <= chunk:  # no len: it would be a constant of an exported model
        return function(x)
    return torch.cat([function(part) for part in x.split(chunk)], dim=dim)


# Within `cache_passes`: {key: (function, x, result)}. It holds function and x, so that no other objects get their ids.
_cache: ContextVar[dict[tuple, tuple[Any, Tensor, Tensor]] | None] = ContextVar(
    "cache", default=None
)


@contextmanager
def cache_passes() -> Iterator[None]:
    """Within: `run_cached` keeps its results: logits, accuracies and features of the same samples cost one pass.

    For a place where no network learns and no sample changes, such as a point of a curve or the evaluation of a run.
    """
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


def run_cached(function: Callable[[Tensor], Tensor], x: Tensor, dim: int = 0) -> Tensor:
    """`run_in_chunks`; within `cache_passes` computed once for this very tensor `x`.

    function: a network, or a method of one
    """
    cache = _cache.get()
    if cache is None:
        return run_in_chunks(function, x, dim)
    network = getattr(function, "__self__", function)
    key = (id(network), getattr(function, "__name__", ""), id(x), x._version)
    if key not in cache:
        cache[key] = (function, x, run_in_chunks(function, x, dim))
    _, _, result = cache[key]
    return result


class CachedFunction:
    """`function`, whose result for the last tensor is kept if it is no larger than LARGEST_RESULT: readings of the same
    samples that come one after the other cost one pass. For what never changes, such as frozen networks."""

    LARGEST_RESULT = 2**26  # bytes

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function
        self._last_x: Tensor | None = None
        self._last_version = 0  # of `_last_x`: another one when it has been written to since
        self._last_result: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self._last_result is not None and self._last_x is x and self._last_version == x._version:
            return self._last_result
        self._last_x = None  # frees memory before the new result is computed
        self._last_result = None
        result = self.function(x)
        if result.numel() * result.element_size() <= self.LARGEST_RESULT:
            self._last_x = x
            self._last_version = x._version
            self._last_result = result
        return result


def compute_accuracy(predictions: Tensor, labels: Tensor) -> float:
    """Share of `predictions [N]` that equal `labels [N]`, 0–1."""
    return float((predictions == labels).double().mean())


def compute_class_accuracies(predictions: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Accuracy on each class's samples, `[C]`; NaN for a class without samples."""
    return compute_group_accuracies(predictions == labels, labels, classes)


def compute_group_accuracies(is_correct: Tensor, groups: Tensor, count: int) -> Tensor:
    """Share of `right [N]` in each of `count` groups; `groups [N]` says which group a sample is in.

    Returns `[count]`, NaN for a group without samples.
    """
    groups = groups.cpu()
    sums = torch.zeros(count, dtype=torch.float64).index_add_(0, groups, is_correct.double().cpu())
    return sums / torch.bincount(groups, minlength=count)


def compute_client_accuracies(class_accuracies: Tensor, label_counts: Tensor) -> Tensor:
    """The accuracy on each client's own mix of labels, `[M]`: class accuracies `[C]` weighted by `label_counts [M, C]`.

    Classes without test samples count as 0.
    """
    weights = label_counts.double()
    accuracies = torch.nan_to_num(class_accuracies, nan=0.0)
    return (weights * accuracies).sum(1) / weights.sum(1)
