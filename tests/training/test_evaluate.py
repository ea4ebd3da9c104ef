"""Forward passes in chunks, cached answers, and curves for which each client evaluates a part of the samples."""

from collections import Counter

import pytest
import torch
from torch import nn

from fedlab_nb.methods.run_outputs import ClientsAlone, NetworkModel
from fedlab_nb.models import build
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies import run
from fedlab_nb.studies.experiment import CURVE, EVALUATION, Run
from fedlab_nb.training import (
    ClientModels,
    cache_forward_passes,
    evaluate,
    run_in_chunks,
    run_in_chunks_with_cache,
)
from fedlab_nb.training.evaluate import LARGEST_CHUNK, CachedFunction, choose_samples_per_chunk


@pytest.mark.parametrize(
    ("name", "shape", "rows"),
    [
        ("mlp", (64,), LARGEST_CHUNK),
        # Small images are not divided, so their results stay the same to the last bit.
        ("resnet8", (1, 8, 8), LARGEST_CHUNK),
        ("cnn", (1, 28, 28), 256),
        ("resnet8", (1, 28, 28), 128),
        ("resnet8", (3, 32, 32), 128),
        ("resnet18:8", (1, 28, 28), 256),
        ("resnet18:64", (3, 32, 32), 64),
    ],
)
def test_chunks_of_large_maps_are_small(name, shape, rows):
    name, _, width = name.partition(":")
    model = build(name, shape, 10, width=int(width) if width else None)
    x = torch.zeros(2, *shape)
    assert choose_samples_per_chunk(model, x) == choose_samples_per_chunk(model.features, x) == rows
    assert choose_samples_per_chunk(model, x.to("meta")) == LARGEST_CHUNK


def test_chunks_change_nothing_but_rounding():
    model = build("resnet8", (1, 28, 28), 10).eval()
    x = torch.rand(150, 1, 28, 28, generator=make_torch_generator(0, "images"))
    with torch.no_grad():
        torch.testing.assert_close(run_in_chunks(model, x), model(x), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(NetworkModel(model).logits(x), model(x), rtol=1e-5, atol=1e-6)


class CountingNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + 1


def test_forward_passes_are_cached_within_the_block_and_for_the_same_tensor():
    network = CountingNetwork()
    x = torch.zeros(3, 2)
    run_in_chunks_with_cache(network, x)
    run_in_chunks_with_cache(network, x)
    assert network.calls == 2  # nothing is cached outside the block
    with cache_forward_passes():
        result = run_in_chunks_with_cache(network, x)
        assert run_in_chunks_with_cache(network, x) is result and network.calls == 3
        run_in_chunks_with_cache(network, x.clone())
        assert network.calls == 4
        x.add_(1)
        assert (
            torch.equal(run_in_chunks_with_cache(network, x), torch.full((3, 2), 2.0))
            and network.calls == 5
        )
    run_in_chunks_with_cache(network, x)
    assert network.calls == 6


def test_a_cached_function_drops_changed_inputs_and_large_results(monkeypatch):
    network = CountingNetwork()
    x = torch.zeros(3, 2)
    function = CachedFunction(network)
    assert function(x) is function(x) and network.calls == 1
    x.add_(1)
    assert torch.equal(function(x), x + 1) and network.calls == 2
    monkeypatch.setattr(CachedFunction, "LARGEST_RESULT", 23)
    function(x.clone())
    function(x)
    function(x)
    assert network.calls == 5


def make_clients(shape: tuple, count: int) -> ClientModels:
    return ClientModels(
        [build("mlp", shape, 10, generator=make_torch_generator(k, "init")) for k in range(count)]
    )


def test_each_sample_is_predicted_by_one_client_in_turn():
    models = make_clients((1, 8, 8), 3)
    x = torch.rand(8, 1, 8, 8, generator=make_torch_generator(0, "images"))
    classes = models.predict_each_sample_by_one_client(x)
    of_every_client = models.logits(x).argmax(-1)
    assert classes.tolist() == [int(of_every_client[i % 3, i]) for i in range(8)]
    five_clients = make_clients((1, 8, 8), 5)
    assert five_clients.predict_each_sample_by_one_client(x[:3]).shape == (3,)


@pytest.mark.parametrize(("side", "turns"), [(16, False), (18, True)])
def test_the_curve_divides_only_large_images_among_clients(side, turns):
    models = make_clients((1, side, side), 3)
    x = torch.rand(60, 1, side, side, generator=make_torch_generator(0, "images"))
    y = models.logits(x)[0].argmax(1)  # the first client is always right
    y[1::3] = models.logits(x)[1, 1::3].argmax(1)  # and the second one on its own samples
    everyone = (models.logits(x).argmax(-1) == y).double().mean()
    in_turn = (models.predict_each_sample_by_one_client(x) == y).double().mean()
    assert in_turn > everyone
    expected = float(in_turn if turns else everyone)
    assert ClientsAlone(models).accuracy(x, y) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ensemble", "fedavg", "fens", "fusefl", "fedov", "coboosting"])
def test_no_network_reads_the_test_images_twice(method, monkeypatch):
    """The evaluation of a run: accuracy, features and report come from one pass of each network."""
    evaluate_and_make_outcome = Run.evaluate_and_make_outcome
    passes = Counter()

    def count_and_run(function, x, dim=0, chunk_size=None):
        passes[id(getattr(function, "__self__", function)), id(x)] += 1
        return run_in_chunks(function, x, dim, chunk_size)

    def count_and_evaluate(self, model):
        monkeypatch.setattr(evaluate, "run_in_chunks", count_and_run)
        return evaluate_and_make_outcome(self, model)

    monkeypatch.setattr(Run, "evaluate_and_make_outcome", count_and_evaluate)
    short = {"generator_steps": 2, "passes": 2} if method == "coboosting" else {}
    outcome = run(method, epochs=2, clients=3, model="cnn", cache=False, **short)
    assert set(passes.values()) == {1}
    assert 0 < outcome.seconds[EVALUATION] and 0 < outcome.seconds[CURVE]
