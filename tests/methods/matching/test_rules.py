"""The rules that match units: a permuted copy comes back, nothing gets worse, and assignments against all of them."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import seeded
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.matching import record_activations, rules
from fedlab_nb.methods.matching.wiring import find_unit_wiring, permute_units
from fedlab_nb.models import build, load_state, model_state, prepend_input_normalisation_in_place
from fedlab_nb.models.state import copy_model

NETWORKS = [
    ("mlp", (1, 8, 8), None), ("mlp", (7,), 6), ("mlp1", (1, 8, 8), None), ("cnn", (1, 8, 8), 3),
    ("lenet5", (3, 36, 36), 2), ("cnn2", (1, 12, 12), 4), ("cnn3", (3, 8, 9), 5), ("vgg9", (1, 16, 16), 2),
    ("vgg11", (3, 16, 16), 2), ("resnet8", (1, 8, 8), 4), ("resnet18", (3, 8, 8), 2), ("wrn16", (3, 8, 8), 4),
    ("resnet8-nobn", (1, 8, 8), 4), ("resnet8-gn", (1, 8, 8), 16), ("cnn2-gn", (1, 12, 12), 4),
]  # fmt: skip


def network(name="mlp", shape=(1, 8, 8), width=None, seed=0):
    """Untrained, in float64; batch norm's numbers are as random as the rest."""
    module = build(name, shape, 10, width=width, generator=seeded(seed), dtype=torch.float64).eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.GroupNorm)):
            for key in ("weight", "bias", "running_mean", "running_var"):
                if (tensor := getattr(part, key, None)) is not None:
                    tensor.data.copy_(
                        torch.rand(tensor.shape, generator=seeded(seed + 1), dtype=torch.float64)
                        + 0.3
                    )
    return module


def shuffled(wiring, seed=3):
    """Orders in which no unit stays where it is."""
    stream, orders = seeded(seed), []
    for n in wiring.units:
        round_trip, order = torch.randperm(n, generator=stream), torch.empty(n, dtype=torch.long)
        order[round_trip] = round_trip.roll(1)
        orders.append(order)
    return orders


def with_state(module, state):
    twin = copy_model(module)
    load_state(twin, state)
    return twin


@pytest.mark.parametrize(("name", "shape", "width"), NETWORKS)
@torch.no_grad()
def test_each_group_moves_alone_and_one_forgotten_tensor_would_be_seen(name, shape, width):
    module = network(name, shape, width)
    wiring, state = find_unit_wiring(module), model_state(module)
    x, orders = torch.rand(6, *shape, generator=seeded(1), dtype=torch.float64), shuffled(wiring)
    for group in range(len(wiring.units)):
        alone = [o if g == group else torch.arange(len(o)) for g, o in enumerate(orders)]
        other = permute_units(state, wiring, alone)
        assert (with_state(module, other)(x) - module(x)).abs().max() < 1e-10
        touched = [n for n, axes in wiring.axes.items() if group in (g for _, g in axes)]
        assert {n for n in state if not torch.equal(other[n], state[n])} == set(touched)
        forgotten = other | {touched[0]: state[touched[0]]}
        assert (with_state(module, forgotten)(x) - module(x)).abs().max() > 1e-9


def test_a_perceptron_by_hand():
    """Two units of three inputs change places: rows and bias of the first layer, columns of the second."""
    module = build("mlp1", (3,), 2, width=2, dtype=torch.float64)
    wiring, (a, b, c, d) = find_unit_wiring(module), model_state(module).values()
    assert (wiring.layers, wiring.units, wiring.activation_modules) == (
        ("body.0.1",),
        (2,),
        ("body.0.2",),
    )
    swapped = permute_units(model_state(module), wiring, [torch.tensor([1, 0])])
    for tensor, by_hand in zip(
        swapped.values(), (a[[1, 0]], b[[1, 0]], c[:, [1, 0]], d), strict=True
    ):
        assert torch.equal(tensor, by_hand)


def test_running_statistics_move_but_do_not_count():
    wiring = find_unit_wiring(network("cnn2", (1, 12, 12), 4))
    assert "body.0.1.running_mean" in wiring.axes and "body.0.1.running_mean" not in wiring.learnt
    assert "body.0.1.weight" in wiring.learnt


def test_groups_of_group_norm_stay_where_they_are():
    """Channels that share their statistics with a part of the others cannot go anywhere."""
    module = network("resnet8-gn", (1, 8, 8), 16)
    several = [m for m in module.modules() if isinstance(m, nn.GroupNorm) and m.num_groups > 1]
    wiring = find_unit_wiring(module)
    assert several and len(wiring.units) < len(
        find_unit_wiring(network("resnet8", (1, 8, 8), 16)).units
    )


def test_the_scale_of_the_inputs_is_passed_through():
    module = prepend_input_normalisation_in_place(
        network("mlp"), torch.tensor([0.3]), torch.tensor([0.5])
    )
    assert find_unit_wiring(module).units == (64, 32)


class Own(nn.Module):
    def forward(self, x):
        return x.flip(1)


@pytest.mark.parametrize("name", ["mobilenet", "shufflenet", "own"])
def test_what_cannot_be_followed_is_refused_in_one_sentence(name):
    module = network("mlp") if name == "own" else build(name, (1, 16, 16), 10, width=8)
    if name == "own":
        module.body.append(Own())
    with pytest.raises(UsageError, match="cannot follow the units") as error:
        find_unit_wiring(module)
    assert str(error.value).endswith(".") and ". " not in str(error.value)


# ------------------------------------------------------------------------------------------------------ rules
SOME = [
    ("mlp", (1, 8, 8), None),
    ("cnn", (1, 8, 8), 3),
    ("resnet8", (1, 8, 8), 4),
    ("cnn2", (1, 12, 12), 4),
]


def orders_by(rule, reference, state, wiring, start=None):
    if rule == "greedy":
        return rules.find_unit_orders_greedily(reference, state, wiring)
    return rules.find_unit_orders_by_rebasin(
        reference,
        state,
        wiring,
        seeded(5),
        start or wiring.make_unchanged_orders(),
        lambda value: None,
    )


@pytest.mark.parametrize(("name", "shape", "width"), SOME)
@pytest.mark.parametrize("rule", ["greedy", "rebasin"])
def test_a_permuted_copy_is_recovered_to_the_last_digit(rule, name, shape, width):
    module = network(name, shape, width)
    wiring, state = find_unit_wiring(module), model_state(module)
    orders = shuffled(wiring)
    back = orders_by(rule, state, permute_units(state, wiring, orders), wiring)
    again = permute_units(permute_units(state, wiring, orders), wiring, back)
    assert all(torch.equal(again[n], state[n]) for n in state)
    for there, here in zip(orders, back, strict=True):  # it is the inverse order
        assert torch.equal(there[here], torch.arange(len(here)))


@torch.no_grad()
def test_activations_recover_the_function_of_a_permuted_copy():
    """Of the function, since units that never answer can take each other's places."""
    module = network("mlp")
    module.body[0][1].bias[:4] = -100  # four dead units
    wiring, state = find_unit_wiring(module), model_state(module)
    x, y = (torch.rand(n, 1, 8, 8, generator=seeded(n), dtype=torch.float64) for n in (200, 50))
    other = permute_units(state, wiring, shuffled(wiring))
    pairs = zip(*(record_activations(module, s, wiring, x) for s in (state, other)), strict=True)
    again = permute_units(
        other,
        wiring,
        [rules.find_best_permutation(rules.compute_unit_correlations(*pair)) for pair in pairs],
    )
    assert (with_state(module, again)(y) - module(y)).abs().max() < 1e-10
    average = {n: (state[n] + again[n]) / 2 for n in state}
    assert (with_state(module, average)(x) - module(x)).abs().max() < 1e-10


@pytest.mark.parametrize(("name", "shape", "width"), SOME)
def test_the_objective_of_rebasin_never_falls_and_is_what_it_says(name, shape, width):
    one, other = network(name, shape, width), network(name, shape, width, seed=9)
    wiring, reference, state = find_unit_wiring(one), model_state(one), model_state(other)
    values = []
    orders = rules.find_unit_orders_by_rebasin(
        reference, state, wiring, seeded(5), wiring.make_unchanged_orders(), values.append
    )
    assert len(values) > 1 and all(b > a for a, b in itertools.pairwise(values))
    matched = permute_units(state, wiring, orders)
    names = [n for n in wiring.axes if n in wiring.learnt]
    far = sum((reference[n] - matched[n]).square().sum() for n in names)
    sizes = sum(reference[n].square().sum() + state[n].square().sum() for n in names)
    assert (
        values[-1]
        == pytest.approx(float((sizes - far) / 2))
        == pytest.approx(rules.compute_weight_agreement(reference, state, wiring, orders))
    )
    # No order of one group alone is better: all swaps of two units.
    for group, n in enumerate(wiring.units):
        for i, j in itertools.combinations(range(min(n, 6)), 2):
            swapped = [o.clone() for o in orders]
            swapped[group][[i, j]] = swapped[group][[j, i]]
            assert (
                rules.compute_weight_agreement(reference, state, wiring, swapped)
                <= values[-1] + 1e-8
            )


def test_greedy_is_the_nearest_of_all_orders():
    """Five hidden units: the sum of distances against all 120 orders."""
    one, other = network("mlp1", (4,), 5), network("mlp1", (4,), 5, seed=2)
    wiring = find_unit_wiring(one)
    (order,) = rules.find_unit_orders_greedily(model_state(one), model_state(other), wiring)
    u, v = (
        torch.cat([m.body[0][1].weight, m.body[0][1].bias[:, None]], 1).detach()
        for m in (one, other)
    )
    costs = {
        p: sum(float((u[i] - v[j]).norm()) for i, j in enumerate(p))
        for p in itertools.permutations(range(5))
    }
    assert tuple(order.tolist()) == min(costs, key=costs.get)


def test_rebasin_of_one_hidden_layer_is_the_nearest_of_all_orders():
    """There is one group, so that the descent is exact: rows, bias and columns together."""
    one, other = network("mlp1", (4,), 5), network("mlp1", (4,), 5, seed=2)
    wiring, reference, state = find_unit_wiring(one), model_state(one), model_state(other)
    (order,) = orders_by("rebasin", reference, state, wiring)

    def far(p):
        matched = permute_units(state, wiring, [torch.tensor(p)])
        return sum(float((t - matched[n]).square().sum()) for n, t in reference.items())

    assert tuple(order.tolist()) == min(itertools.permutations(range(5)), key=far)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 10**6))
def test_an_assignment_is_the_best_of_all(n, more, seed):
    scores = torch.randn(n, n + more, generator=seeded(seed), dtype=torch.float64)
    best = max(
        sum(float(scores[i, j]) for i, j in enumerate(p))
        for p in itertools.permutations(range(n + more), n)
    )
    order = rules.assign_column_to_each_row(scores)
    assert len(set(order.tolist())) == n
    assert float(scores[torch.arange(n), order].sum()) == pytest.approx(best)


def test_ties_move_nothing():
    assert torch.equal(rules.find_best_permutation(torch.zeros(4, 4)), torch.arange(4))
    standing = torch.tensor([2, 0, 1])
    assert torch.equal(rules.find_best_permutation(torch.ones(3, 3), standing), standing)
    better = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert torch.equal(rules.find_best_permutation(better), torch.tensor([1, 0]))


def test_correlation_is_numpys_and_0_for_a_dead_unit():
    z = torch.rand(50, 3, generator=seeded(), dtype=torch.float64)
    w = torch.cat([z[:, [2, 0]] * 3 + 1, torch.full((50, 1), 7.0, dtype=torch.float64)], 1)
    by_hand = torch.corrcoef(torch.cat([z, w[:, :2]], 1).T)[:3, 3:]
    torch.testing.assert_close(rules.compute_unit_correlations(z, w)[:, :2], by_hand)
    assert torch.equal(
        rules.compute_unit_correlations(z, w)[:, 2], torch.zeros(3, dtype=torch.float64)
    )


# ------------------------------------------------------------------------------------------------------------ test pfnm
# PFNM: against all assignments, its limits, and networks worked out by hand.

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
    for i in sorted({int(i) for client_members in members for i in client_members}):
        members_of_i = [
            v[client_members == i] for v, client_members in zip(vectors, members, strict=True)
        ]
        pulled = precision * torch.cat(members_of_i).sum(0)
        total += float((pulled.square() / (prior + precision * len(torch.cat(members_of_i)))).sum())
    before = {int(i) for client_members in members[:-1] for i in client_members}
    new = 0
    for i in members[-1].tolist():
        if i in before:
            m = sum(int((client_members == i).any()) for client_members in members[:-1])
            total += 2 * math.log(m / (clients - m))
        else:
            new += 1
            total += 2 * math.log(mass / clients) - 2 * math.log(new)
    return total


@pytest.mark.parametrize(
    ("spread", "mass", "seed"),
    [(1.0, 1.0, 0), (2.0, 5.0, 0), (0.5, 0.2, 0), (3.0, 30.0, 0), (2.0, 5.0, 25)],
)
def test_the_last_client_is_matched_by_the_best_of_all_assignments(spread, mass, seed):
    """The first ones' matching is taken as it is; for the last one all choices of old and new neurons are tried. In the
    last case another factor of log m/(M - m) gives another matching."""
    vectors = [0.5 * v for v in draws(seed=seed)]
    vectors[2] = vectors[2] * torch.tensor([1.0, 0.2, 1.0, 1.0])
    grown = rules.match_neurons_of_clients(
        vectors, ones(vectors), prior_deviation=spread, mass=mass, sweeps=0
    )
    before = sorted({int(i) for client_members in grown.members[:2] for i in client_members})
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
    grown = rules.match_neurons_of_clients(
        [v, v[[1, 0]]], ones([v, v]), prior_deviation=1.0, mass=1.0, sweeps=2
    )
    assert [client_members.tolist() for client_members in grown.members] == [[0, 1], [1, 0]]
    torch.testing.assert_close(grown.neurons, 2 * v / 3)


def test_a_large_mass_matches_nothing_and_a_small_one_makes_no_neuron_more():
    vectors = draws()
    apart, together = (
        rules.match_neurons_of_clients(
            vectors, ones(vectors), prior_deviation=1.0, mass=mass, sweeps=3
        )
        for mass in (1e9, 1e-9)
    )
    assert len(apart.neurons) == 9 and len(torch.cat(apart.members).unique()) == 9
    assert len(together.neurons) == 3
    torch.testing.assert_close(apart.neurons[apart.members[1]], vectors[1] / 2)


def test_a_client_has_no_neuron_twice_and_none_is_empty():
    vectors = [*draws(4), *draws(1, 5, seed=1)]
    grown = rules.match_neurons_of_clients(
        vectors, ones(vectors, 3.0), prior_deviation=1.0, mass=1.0, sweeps=5
    )
    assert all(
        len(client_members.unique()) == len(client_members) == len(v)
        for client_members, v in zip(grown.members, vectors, strict=True)
    )
    assert torch.equal(torch.cat(grown.members).unique(), torch.arange(len(grown.neurons)))


def test_who_has_no_share_of_a_class_does_not_speak_for_it():
    v = draws(1, 2)[0] * 5
    precisions = [
        torch.tensor([1.0, 1, 1, 0], dtype=EXACT),
        torch.tensor([1.0, 1, 1, 1], dtype=EXACT),
    ]
    other = v.clone()
    other[:, 3] = 7
    grown = rules.match_neurons_of_clients(
        [v, other], precisions, prior_deviation=1.0, mass=1e-6, sweeps=0
    )
    torch.testing.assert_close(
        grown.neurons[:, 3], torch.full((2,), 3.5, dtype=EXACT)
    )  # 7 / (1 + 1)


@torch.no_grad()
def test_neurons_of_a_network_make_it_again():
    module = network("mlp1", (1, 8, 8), 5)
    neurons, bias = rules.extract_neurons(module)
    assert neurons.shape == (5, 64 + 1 + 10)
    x = torch.rand(3, 1, 8, 8, generator=seeded(), dtype=EXACT)
    torch.testing.assert_close(rules.copy_network_with_neurons(module, neurons, bias)(x), module(x))
    # Each neuron twice, with half of its outgoing weights: a wider network with the same function.
    half = torch.cat([neurons[:, :65], neurons[:, 65:] / 2], 1)
    wide = rules.copy_network_with_neurons(module, torch.cat([half, half]), bias)
    assert wide.body[0][1].out_features == 10 and wide.architecture[3] == 10
    torch.testing.assert_close(wide(x), module(x))
    assert module.architecture[3] == 5
