"""Gradients as CUDA graphs: on a card, the kernels of a batch are recorded once and replayed with one launch.

A step on small networks is hundreds of kernels of a few microseconds each, and Python takes longer to launch
them than the card to run them. A replayed graph runs the same kernels on the same addresses, so its numbers
are those of the plain call, bit for bit (`tests/training/test_cuda.py`).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

PLAIN_CALLS = 3
Compute = Callable[..., Sequence[Tensor]]


class GradientGraphs:
    """`compute(*inputs) -> gradients`, recorded for each shape of the inputs that comes often.

    The first PLAIN_CALLS batches of a shape are computed plainly: that warms up the libraries which choose a
    kernel on first use, and a recording costs as much as several plain calls. `compute` may read and write
    tensors that stay where they are (parameters, running statistics), and must not depend on anything else
    that changes between two calls. The gradients that a call returns are overwritten by the next one. `pool`
    (a handle of `torch.cuda.graph_pool_handle`): graphs that never run at the same time can share their memory.
    """

    def __init__(self, compute: Compute, pool: Any = None) -> None:
        self.compute = compute
        self.pool = pool
        self.can_record = True
        self.calls: Counter[tuple] = Counter()
        self.recordings: dict[tuple, Recording] = {}

    def __call__(self, *inputs: Tensor) -> Sequence[Tensor]:
        shapes = tuple((tuple(tensor.shape), tensor.stride()) for tensor in inputs)
        if shapes in self.recordings:
            return self.recordings[shapes].replay(inputs)
        self.calls[shapes] += 1
        if self.calls[shapes] <= PLAIN_CALLS or not self.can_record:
            return self.compute(*inputs)
        try:
            self.recordings[shapes] = Recording(self.compute, inputs, self.pool)
        except RuntimeError:  # a kernel that cannot be recorded; nothing has been computed yet
            self.can_record = False
            return self.compute(*inputs)
        return self.recordings[shapes].replay(inputs)

    def close(self) -> None:
        """Free the recordings now: a graph that Python frees while another is recorded spoils that one."""
        self.recordings.clear()


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Within: Python collects no cycles, so that it frees no graph while another one is recorded."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Recording:
    """One CUDA graph of `compute`, with the tensors that it reads its inputs from and writes its outputs to."""

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], pool: Any) -> None:
        self.inputs = [tensor.clone() for tensor in inputs]
        self.graph = torch.cuda.CUDAGraph()
        # Recording wants a stream of its own: the default one cannot be recorded.
        outside = torch.cuda.current_stream()
        stream = outside
        if outside == torch.cuda.default_stream():
            stream = torch.cuda.Stream()
            stream.wait_stream(outside)
        with torch.cuda.stream(stream), pause_garbage_collection():
            self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self.outputs = compute(*self.inputs)
            finally:
                self.graph.capture_end()
        if stream is not outside:
            outside.wait_stream(stream)

    def replay(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        torch._foreach_copy_(self.inputs, list(inputs))
        self.graph.replay()
        return self.outputs


def can_record(device: torch.device, model: nn.Module) -> bool:
    """Whether gradients of `model` can be recorded: on a card, and only with layers of PyTorch or of this
    package, whose forward neither looks at values nor draws random numbers."""
    if device.type != "cuda" or not torch.cuda.is_available():
        return False
    package = __name__.partition(".")[0] + "."
    for module in model.modules():
        if not type(module).__module__.startswith(("torch.nn.", package)):
            return False
        if isinstance(module, nn.modules.dropout._DropoutNd):
            return False
    return True
