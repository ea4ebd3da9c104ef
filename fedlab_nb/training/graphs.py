"""Gradients as CUDA graphs: on a GPU, the kernels of a batch are recorded once and replayed with one launch.

A step on a small network consists of hundreds of kernels of a few microseconds each, and Python takes longer to launch
them than the GPU to run them. A replayed graph runs the same kernels on the same addresses, so its results are
those of the plain call, bit for bit (`tests/training/test_cuda.py`).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fedlab_nb.value_types import WithBlock

PLAIN_CALLS = 3
Compute = Callable[..., Sequence[Tensor]]


class GradientGraphs:
    """`compute(*inputs) -> gradients`, recorded once for each frequent shape of the inputs.

    compute: may read and write tensors that stay where they are in memory (parameters, running statistics), but must
        not depend on anything else that changes between two calls
    pool: a handle from `torch.cuda.graph_pool_handle`; graphs that never run at the same time can share one

    The first PLAIN_CALLS batches of a shape are not recorded: some libraries choose a kernel on first use, and a
    recording costs as much as several plain calls. The next call overwrites the gradients that a call returns.
    """

    def __init__(self, compute: Compute, pool: Any = None) -> None:
        self.compute = compute
        self.pool = pool
        self.can_record = True
        self.calls: Counter[tuple] = Counter()
        self.recordings: dict[tuple, RecordedGraph] = {}

    def __call__(self, *inputs: Tensor) -> Sequence[Tensor]:
        shapes = tuple((tuple(tensor.shape), tensor.stride()) for tensor in inputs)
        if shapes in self.recordings:
            return self.recordings[shapes].replay(inputs)
        self.calls[shapes] += 1
        if self.calls[shapes] <= PLAIN_CALLS or not self.can_record:
            return self.compute(*inputs)
        try:
            self.recordings[shapes] = RecordedGraph(self.compute, inputs, self.pool)
        except RuntimeError:  # a kernel cannot be recorded; nothing has been computed yet
            self.can_record = False
            return self.compute(*inputs)
        return self.recordings[shapes].replay(inputs)

    def close(self) -> None:
        """Free the recordings now, since freeing a graph while another one is being recorded would break that one."""
        self.recordings.clear()


@contextmanager
def pause_garbage_collection() -> WithBlock:
    """Inside the block Python's garbage collector is off, so that no graph is freed while another one is recorded."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class RecordedGraph:
    """One CUDA graph of `compute`, with the tensors that hold its inputs and its outputs."""

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], pool: Any) -> None:
        self.inputs = [tensor.clone() for tensor in inputs]
        self.graph = torch.cuda.CUDAGraph()
        # CUDA cannot record the default stream, so that needs another one.
        current_stream = torch.cuda.current_stream()
        stream = current_stream
        if current_stream == torch.cuda.default_stream():
            stream = torch.cuda.Stream()
            stream.wait_stream(current_stream)
        with torch.cuda.stream(stream), pause_garbage_collection():
            self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self.outputs = compute(*self.inputs)
            finally:
                self.graph.capture_end()
        if stream is not current_stream:
            current_stream.wait_stream(stream)

    def replay(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        torch._foreach_copy_(self.inputs, list(inputs))
        self.graph.replay()
        return self.outputs


def can_record_cuda_graph(device: torch.device, model: nn.Module) -> bool:
    """True if gradients of `model` can be recorded.

    The device must be a GPU, and all layers must be PyTorch's or this package's, since their `forward` neither looks
    at values nor draws random numbers (dropout does).
    """
    if device.type != "cuda" or not torch.cuda.is_available():
        return False
    package = __name__.partition(".")[0] + "."
    for module in model.modules():
        if not type(module).__module__.startswith(("torch.nn.", package)):
            return False
        if isinstance(module, nn.modules.dropout._DropoutNd):
            return False
    return True
