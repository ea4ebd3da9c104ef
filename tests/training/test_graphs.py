"""Recorded gradients without a CUDA device: when they are recorded, and what happens if recording fails.

`test_cuda.py` tests that a recording gives the digits of the plain call.
"""

import torch

from fedlab_nb.models import build
from fedlab_nb.training import graphs
from fedlab_nb.training.graphs import PLAIN_CALLS, GradientGraphs, can_record_cuda_graph


class CountedRecording:
    """Stands for a CUDA graph: counts the recordings and the replays."""

    recorded = 0
    replayed = 0

    def __init__(self, compute, inputs, pool):
        CountedRecording.recorded += 1
        self.compute = compute

    def replay(self, inputs):
        CountedRecording.replayed += 1
        return self.compute(*inputs)


def test_a_shape_is_recorded_once_after_some_plain_calls(monkeypatch):
    monkeypatch.setattr(graphs, "RecordedGraph", CountedRecording)
    CountedRecording.recorded = CountedRecording.replayed = 0
    gradients = GradientGraphs(lambda x: [2 * x])
    for call in range(10):
        x = torch.full((3,), float(call))
        assert torch.equal(gradients(x)[0], 2 * x)
    assert CountedRecording.recorded == 1
    assert CountedRecording.replayed == 10 - PLAIN_CALLS
    assert torch.equal(gradients(torch.ones(2))[0], torch.full((2,), 2.0))
    assert CountedRecording.recorded == 1  # another shape, which came only once


def test_gradients_that_cannot_be_recorded_are_computed_plainly(monkeypatch):
    class Broken:
        def __init__(self, compute, inputs, pool):
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(graphs, "RecordedGraph", Broken)
    gradients = GradientGraphs(lambda x: [2 * x])
    for _ in range(PLAIN_CALLS + 3):
        assert torch.equal(gradients(torch.ones(3))[0], torch.full((3,), 2.0))
    assert not gradients.can_record


def test_nothing_is_recorded_on_a_cpu():
    assert not can_record_cuda_graph(torch.device("cpu"), build("mlp", (1, 8, 8), 10))
