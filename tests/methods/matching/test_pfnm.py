"""PFNM: against all assignments, its limits, and networks worked out by hand."""

import itertools
import math

import pytest
import torch

from fedlab_nb.methods.matching.rules import grow, neurons_of, one_hidden_layer, with_neurons
from fedlab_nb.models import build

from .test_wiring import network, seeded

EXACT = torch.float64


def draws(clients=3, units=3, size=4, seed=0):
    stream = seeded(seed)
    return [torch.randn(units, size, generator=stream, dtype=EXACT) for _ in range(clients)]


def ones(vectors, value=1.0):
    return [torch.full((v.shape[1],), value, dtype=EXACT) for v in vectors]


def log_posterior(vectors, precision, spread, mass, members):
    """Twice the log of what is maximal for the last client, up to a constant, by integrating θ out of each Gaussian:
    the marginal likelihood of each global neuron's members, and the buffet's prior of the last client's choices."""
    prior, clients, total = 1 / spread**2, len(vectors), 0.0
    for i in sorted({int(i) for own in members for i in own}):
        owned = [v[own == i] for v, own in zip(vectors, members, strict=True)]
        pulled = precision * torch.cat(owned).sum(0)
        total += float((pulled.square() / (prior + precision * len(torch.cat(owned)))).sum())
    before = {int(i) for own in members[:-1] for i in own}
    new = 0
    for i in members[-1].tolist():
        if i in before:
            m = sum(int((own == i).any()) for own in members[:-1])
            total += 2 * math.log(m / (clients - m))
        else:
            new += 1
            total += 2 * math.log(mass / clients) - 2 * math.log(new)
    return total


@pytest.mark.parametrize(
    ("spread", "mass", "seed"), [(1.0, 1.0, 0), (2.0, 5.0, 0), (0.5, 0.2, 0), (3.0, 30.0, 0), (2.0, 5.0, 25)]
)
def test_the_last_client_is_matched_by_the_best_of_all_assignments(spread, mass, seed):
    """The first ones' matching is taken as it is; for the last one all choices of old and new neurons are tried. In the
    last case another factor of log m/(M - m) gives another matching."""
    vectors = [0.5 * v for v in draws(seed=seed)]
    vectors[2] = vectors[2] * torch.tensor([1.0, 0.2, 1.0, 1.0])
    grown = grow(vectors, ones(vectors), spread=spread, mass=mass, sweeps=0)
    before = sorted({int(i) for own in grown.members[:2] for i in own})
    choices = [*before, 100, 101, 102]  # three that could be new
    values = {}
    for p in itertools.permutations(choices, 3):
        new = [i for i in p if i >= 100]
        if new == sorted(new) and new == list(range(100, 100 + len(new))):
            members = [*grown.members[:2], torch.tensor(p)]
            values[p] = log_posterior(vectors, 1.0, spread, mass, members)
    taken = [i if i in before else 100 for i in grown.members[2].tolist()]
    best = max(values, key=values.get)
    assert taken == [min(i, 100) for i in best]


def test_a_global_neuron_is_the_posterior_mean_of_its_members():
    """Two clients with the same two neurons in another order, σ = σ0 = 1: twice the neuron, divided by 1 + 2."""
    v = 5 * draws(1, 2)[0]
    grown = grow([v, v[[1, 0]]], ones([v, v]), spread=1.0, mass=1.0, sweeps=2)
    assert [own.tolist() for own in grown.members] == [[0, 1], [1, 0]]
    torch.testing.assert_close(grown.neurons, 2 * v / 3)


def test_a_large_mass_matches_nothing_and_a_small_one_makes_no_neuron_more():
    vectors = draws()
    apart, together = (grow(vectors, ones(vectors), spread=1.0, mass=mass, sweeps=3) for mass in (1e9, 1e-9))
    assert len(apart.neurons) == 9 and len(torch.cat(apart.members).unique()) == 9
    assert len(together.neurons) == 3
    torch.testing.assert_close(apart.neurons[apart.members[1]], vectors[1] / 2)


def test_a_client_has_no_neuron_twice_and_none_is_empty():
    vectors = [*draws(4), *draws(1, 5, seed=1)]
    grown = grow(vectors, ones(vectors, 3.0), spread=1.0, mass=1.0, sweeps=5)
    assert all(len(own.unique()) == len(own) == len(v) for own, v in zip(grown.members, vectors, strict=True))
    assert torch.equal(torch.cat(grown.members).unique(), torch.arange(len(grown.neurons)))


def test_who_has_no_share_of_a_class_does_not_speak_for_it():
    v = draws(1, 2)[0] * 5
    precisions = [torch.tensor([1.0, 1, 1, 0], dtype=EXACT), torch.tensor([1.0, 1, 1, 1], dtype=EXACT)]
    other = v.clone()
    other[:, 3] = 7
    grown = grow([v, other], precisions, spread=1.0, mass=1e-6, sweeps=0)
    torch.testing.assert_close(grown.neurons[:, 3], torch.full((2,), 3.5, dtype=EXACT))  # 7 / (1 + 1)


@torch.no_grad()
def test_neurons_of_a_network_make_it_again():
    module = network("mlp1", (1, 8, 8), 5)
    neurons, bias = neurons_of(module)
    assert neurons.shape == (5, 64 + 1 + 10)
    x = torch.rand(3, 1, 8, 8, generator=seeded(), dtype=EXACT)
    torch.testing.assert_close(with_neurons(module, neurons, bias)(x), module(x))
    # Each neuron twice, with half of its outgoing weights: a wider network with the same function.
    half = torch.cat([neurons[:, :65], neurons[:, 65:] / 2], 1)
    wide = with_neurons(module, torch.cat([half, half]), bias)
    assert wide.body[0][1].out_features == 10 and wide.architecture[3] == 10
    torch.testing.assert_close(wide(x), module(x))
    assert module.architecture[3] == 5


def test_one_hidden_layer_is_two_linear_layers_and_nothing_else():
    assert one_hidden_layer(build("mlp1", (5,), 3))
    for name in ("mlp", "cnn", "cnn2"):
        assert not one_hidden_layer(build(name, (1, 8, 8), 3))
