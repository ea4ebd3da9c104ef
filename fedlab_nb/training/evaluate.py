"""Forward passes without gradients, in chunks, each done once where a caller asks for it, and accuracies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

CHUNK = 2048  # samples at once, at most
# Numbers in the widest map of a chunk on a CPU (8 MiB). A tensor beyond the processor's cache, and still more one for
# which memory is asked anew each time (32 MiB), costs 2-4 times as much a sample; below 64 samples calls cost most.
WIDEST_MAP, SMALLEST_CHUNK = 2**21, 64


def rows_at_once(function: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """How many samples of `x [N, ...]` `function`, a network or a method of one, reads at once: a power of two.

    By the maps after its first convolution, as wide as the image: ResNet-8 reads 128 images of 28x28, the 5-layer CNN
    512, and every network CHUNK rows of features.
    """
    if x.dim() < 3 or x.device.type != "cpu":
        return CHUNK
    owner: Any = getattr(function, "__self__", function)
    layers = owner.modules() if isinstance(owner, nn.Module) else ()
    maps = next((layer.out_channels for layer in layers if isinstance(layer, nn.Conv2d)), 1)
    fit = WIDEST_MAP // (max(maps, x.shape[1]) * prod(x.shape[2:]))
    return max(SMALLEST_CHUNK, min(CHUNK, 1 << max(0, fit.bit_length() - 1)))


@torch.no_grad()
def in_chunks(
    function: Callable[[Tensor], Tensor], x: Tensor, dim: int = 0, chunk: int | None = None
) -> Tensor:
    """`function` over `x` in chunks of samples, results joined along `dim` (the sample axis of the result)."""
    chunk = chunk or rows_at_once(function, x)
    if x.shape[0] <= chunk:  # no len: it would be a constant of an exported model
        return function(x)
    return torch.cat([function(part) for part in x.split(chunk)], dim=dim)


_passes: ContextVar[dict | None] = ContextVar("passes", default=None)


@contextmanager
def one_pass() -> Iterator[None]:
    """Within: `once` remembers its answers, so that logits, accuracies and features of the same samples cost one pass.

    For a place where no network learns and no sample changes, such as a point of a curve or the evaluation of a run.
    """
    token = _passes.set({})
    try:
        yield
    finally:
        _passes.reset(token)


def once(function: Callable[[Tensor], Tensor], x: Tensor, dim: int = 0) -> Tensor:
    """`in_chunks`, remembered for this very tensor `x` within `one_pass`; `function`: a network or a method of one."""
    known = _passes.get()
    if known is None:
        return in_chunks(function, x, dim)
    key = (
        id(getattr(function, "__self__", function)),
        getattr(function, "__name__", ""),
        id(x),
        x._version,
    )
    if key not in known:
        known[key] = (
            function,
            x,
            in_chunks(function, x, dim),
        )  # both are held, so that no other gets their id
    return known[key][2]


class Remembered:
    """`function`, whose answer to the last tensor is remembered, if it is no larger than MOST_BYTES: readings of the
    same samples that come one after the other cost one pass. For what never changes, such as frozen networks."""

    MOST_BYTES = 2**26

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function
        self._last: tuple[Tensor, int, Tensor] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if (
            self._last is not None and self._last[0] is x and self._last[1] == x._version
        ):  # not written to since
            return self._last[2]
        self._last, answer = None, self.function(x)
        if answer.numel() * answer.element_size() <= self.MOST_BYTES:
            self._last = x, x._version, answer
        return answer


def accuracy(predictions: Tensor, labels: Tensor) -> float:
    """Share of `predictions [N]` that equal `labels [N]`, 0–1."""
    return float((predictions == labels).double().mean())


def class_accuracy(predictions: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Accuracy on each class's samples, `[C]`; NaN for a class without samples."""
    return group_accuracy(predictions == labels, labels, classes)


def group_accuracy(right: Tensor, groups: Tensor, count: int) -> Tensor:
    """Share of `right [N]` in each of `count` groups, `groups [N]` says which; NaN for a group without samples."""
    right, groups = right.double().cpu(), groups.cpu()
    sums = torch.zeros(count, dtype=torch.float64).index_add_(0, groups, right)
    return sums / torch.bincount(groups, minlength=count)


def client_accuracy(per_class: Tensor, label_counts: Tensor) -> Tensor:
    """What each client would see at home, `[M]`: class accuracies `[C]` weighted by its own label mix `label_counts
    [M, C]`."""
    weights = label_counts.double()
    known = torch.nan_to_num(per_class, nan=0.0)
    return (weights * known).sum(1) / weights.sum(1)
