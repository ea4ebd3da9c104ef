"""Recorded gradients, as far as they can be tested without a card: when one records, and what happens if it fails.

That a recording gives the plain call's digits is in `test_cuda.py`.
"""

import torch

from fedlab_nb.models import build
from fedlab_nb.training import graphs
from fedlab_nb.training.graphs import PLAIN_CALLS, GradientGraphs, can_record_cuda_graph


class CountedRecording:
    """Stands for a CUDA graph: it counts how often it is made and replayed."""

    made = 0
    replayed = 0

    def __init__(self, compute, inputs, pool):
        CountedRecording.made += 1
        self.compute = compute

    def replay(self, inputs):
        CountedRecording.replayed += 1
        return self.compute(*inputs)


def test_a_shape_is_recorded_once_after_its_plain_calls(monkeypatch):
    monkeypatch.setattr(graphs, "RecordedGraph", CountedRecording)
    CountedRecording.made = CountedRecording.replayed = 0
    gradients = GradientGraphs(lambda x: [2 * x])
    for call in range(10):
        x = torch.full((3,), float(call))
        assert torch.equal(gradients(x)[0], 2 * x)
    assert CountedRecording.made == 1
    assert CountedRecording.replayed == 10 - PLAIN_CALLS
    assert torch.equal(gradients(torch.ones(2))[0], torch.full((2,), 2.0))
    assert CountedRecording.made == 1  # another shape, which came only once


def test_what_cannot_be_recorded_is_computed_plainly(monkeypatch):
    class Broken:
        def __init__(self, compute, inputs, pool):
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(graphs, "RecordedGraph", Broken)
    gradients = GradientGraphs(lambda x: [2 * x])
    for _ in range(PLAIN_CALLS + 3):
        assert torch.equal(gradients(torch.ones(3))[0], torch.full((3,), 2.0))
    assert not gradients.can_record


def test_a_processor_records_nothing():
    assert not can_record_cuda_graph(torch.device("cpu"), build("mlp", (1, 8, 8), 10))
