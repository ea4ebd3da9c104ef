"""Forward passes without gradients, in chunks and with a cache on request; and accuracies."""

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from fedlab_nb.value_types import Accuracy0To1, WithBlock

from ..tensor_types import (
    AccuracyPerClass,
    AccuracyPerClient,
    AccuracyPerGroup,
    BooleanPerSample,
    ClientClassCounts,
    GroupIndexPerSample,
    Labels,
    Predictions,
    Samples,
)

TensorFunction = Callable[[Tensor], Tensor]  # a network, or one of its methods

LARGEST_CHUNK = 2048  # samples at once
SMALLEST_CHUNK = 64  # in smaller chunks the calls themselves take most of the time
# Most numbers in the widest map of a chunk on a CPU (8 MiB). Larger tensors cost more time for each sample: they do not
# fit into the processor's cache, and from 32 MiB on their memory is allocated anew each time.
WIDEST_MAP = 2**21


def choose_samples_per_chunk(network_or_method: TensorFunction, samples: Samples) -> int:
    """The number of samples, a power of two, that a network (or its method) should read at once.

    On a CPU it depends on the size of the maps after the first convolution, which are as large as the image: ResNet-8
    reads 128 images of 28x28 at once, the 5-layer CNN 512, and every network LARGEST_CHUNK rows of features.
    """
    if samples.dim() < 3 or samples.device.type != "cpu":
        return LARGEST_CHUNK
    channels = max(count_first_conv_channels(network_or_method), samples.shape[1])
    fitting = WIDEST_MAP // (channels * prod(samples.shape[2:]))
    power_of_two = 1 << max(0, fitting.bit_length() - 1)
    return max(SMALLEST_CHUNK, min(LARGEST_CHUNK, power_of_two))


def count_first_conv_channels(network_or_method: TensorFunction) -> int:
    """The output channels of a network's first convolution; 1 if it has none. A method stands for its network."""
    network: Any = getattr(network_or_method, "__self__", network_or_method)
    if isinstance(network, nn.Module):
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                return layer.out_channels
    return 1


@torch.no_grad()
def run_in_chunks(
    function: TensorFunction,
    samples: Samples,
    sample_axis_of_result: int = 0,
    samples_per_chunk: int | None = None,
) -> Tensor:
    """`function` over `samples` in chunks of samples, results joined along `sample_axis_of_result`."""
    samples_per_chunk = samples_per_chunk or choose_samples_per_chunk(function, samples)
    # Not len(), which would become a constant in an exported model.
    if samples.shape[0] <= samples_per_chunk:
        return function(samples)
    return torch.cat(
        [function(part) for part in samples.split(samples_per_chunk)], dim=sample_axis_of_result
    )


# Within `cache_forward_passes`: {key: (function, x, result)}. The keys contain the ids of function and x; as the cache
# holds both objects, no other objects can get these ids.
_cache: ContextVar[dict[tuple, tuple[Any, Tensor, Tensor]] | None] = ContextVar(
    "cache", default=None
)


@contextmanager
def cache_forward_passes() -> WithBlock:
    """Inside the block `run_in_chunks_with_cache` caches its results.

    Logits, accuracies and features of the same samples then cost one pass. Use it only where networks and samples do
    not change, as for a point of a curve or the evaluation of a run.
    """
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


def run_in_chunks_with_cache(
    network_or_method: TensorFunction, samples: Samples, sample_axis_of_result: int = 0
) -> Tensor:
    """Like `run_in_chunks`, but within `cache_forward_passes` computed only once for the same tensor object."""
    cache = _cache.get()
    if cache is None:
        return run_in_chunks(network_or_method, samples, sample_axis_of_result)
    network = getattr(network_or_method, "__self__", network_or_method)
    key = (id(network), getattr(network_or_method, "__name__", ""), id(samples), samples._version)
    if key not in cache:
        cache[key] = (
            network_or_method,
            samples,
            run_in_chunks(network_or_method, samples, sample_axis_of_result),
        )
    _, _, result = cache[key]
    return result


class CachedFunction:
    """`function`, with its result for the last tensor cached if it has at most LARGEST_RESULT bytes.

    Several calls in a row with the same tensor then cost one pass. Use it only for functions that never change, such as
    frozen networks.
    """

    LARGEST_RESULT = 2**26  # bytes

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function
        self._last_x: Tensor | None = None
        self._last_version = 0  # of `_last_x`; PyTorch raises it whenever the tensor is written to
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


def compute_accuracy(predictions: Predictions, labels: Labels) -> Accuracy0To1:
    """Share of `predictions [N]` that equal `labels [N]`, 0–1."""
    return float((predictions == labels).double().mean())


def compute_class_accuracies(
    predictions: Predictions, labels: Labels, class_count: int
) -> AccuracyPerClass:
    """Accuracy on each class's samples, `[C]`; NaN for a class without samples."""
    return compute_group_accuracies(predictions == labels, labels, class_count)


def compute_group_accuracies(
    is_correct: BooleanPerSample, group_of_each_sample: GroupIndexPerSample, group_count: int
) -> AccuracyPerGroup:
    """Share of correct predictions in each group, `[group_count]`; NaN for a group without samples."""
    group_of_each_sample = group_of_each_sample.cpu()
    sums = torch.zeros(group_count, dtype=torch.float64).index_add_(
        0, group_of_each_sample, is_correct.double().cpu()
    )
    return sums / torch.bincount(group_of_each_sample, minlength=group_count)


def compute_client_accuracies_from_class_accuracies(
    class_accuracies: AccuracyPerClass, label_counts: ClientClassCounts
) -> AccuracyPerClient:
    """The accuracy on each client's own mix of labels, `[M]`: class accuracies `[C]` weighted by `label_counts [M, C]`.

    Classes without test samples count as 0.
    """
    weights = label_counts.double()
    accuracies = torch.nan_to_num(class_accuracies, nan=0.0)
    return (weights * accuracies).sum(1) / weights.sum(1)
