"""The rules that match units: permuted copies are recovered, objectives never fall, assignments against all of them."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import make_torch_generator
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.matching import record_unit_activations, rules
from fedlab_nb.methods.matching.wiring import find_unit_wiring, permute_units
from fedlab_nb.models import (
    build,
    copy_model_state,
    load_state,
    prepend_input_normalisation_in_place,
)
from fedlab_nb.models.state import copy_model

NETWORKS = [
    ("mlp", (1, 8, 8), None), ("mlp", (7,), 6), ("mlp1", (1, 8, 8), None), ("cnn", (1, 8, 8), 3),
    ("lenet5", (3, 36, 36), 2), ("cnn2", (1, 12, 12), 4), ("cnn3", (3, 8, 9), 5), ("vgg9", (1, 16, 16), 2),
    ("vgg11", (3, 16, 16), 2), ("resnet8", (1, 8, 8), 4), ("resnet18", (3, 8, 8), 2), ("wrn16", (3, 8, 8), 4),
    ("resnet8-nobn", (1, 8, 8), 4), ("resnet8-gn", (1, 8, 8), 16), ("cnn2-gn", (1, 12, 12), 4),
]  # fmt: skip


def build_network(name="mlp", shape=(1, 8, 8), width=None, seed=0):
    """An untrained network in float64, with random numbers in its normalisation layers too."""
    module = build(
        name, shape, 10, width=width, generator=make_torch_generator(seed), dtype=torch.float64
    ).eval()
    for layer in module.modules():
        if not isinstance(layer, (nn.BatchNorm2d, nn.GroupNorm)):
            continue
        for key in ("weight", "bias", "running_mean", "running_var"):
            tensor = getattr(layer, key, None)
            if tensor is not None:
                stream = make_torch_generator(seed + 1)
                numbers = torch.rand(tensor.shape, generator=stream, dtype=torch.float64)
                tensor.data.copy_(numbers + 0.3)
    return module


def draw_orders(wiring, seed=3):
    """Random orders in which every unit moves: cycles through all units of a group."""
    stream = make_torch_generator(seed)
    orders = []
    for n in wiring.units:
        cycle = torch.randperm(n, generator=stream)
        order = torch.empty(n, dtype=torch.long)
        order[cycle] = cycle.roll(1)
        orders.append(order)
    return orders


def copy_with_state(module, state):
    twin = copy_model(module)
    load_state(twin, state)
    return twin


@pytest.mark.parametrize(("name", "shape", "width"), NETWORKS)
@torch.no_grad()
def test_permuting_one_group_keeps_the_function_and_every_tensor_of_it_matters(name, shape, width):
    module = build_network(name, shape, width)
    wiring = find_unit_wiring(module)
    state = copy_model_state(module)
    orders = draw_orders(wiring)
    x = torch.rand(6, *shape, generator=make_torch_generator(1), dtype=torch.float64)
    for group in range(len(wiring.units)):
        orders_of_group = [
            order if g == group else torch.arange(len(order)) for g, order in enumerate(orders)
        ]
        permuted = permute_units(state, wiring, orders_of_group)
        assert (copy_with_state(module, permuted)(x) - module(x)).abs().max() < 1e-10
        names = [n for n, axes in wiring.axes.items() if group in (g for _, g in axes)]
        assert {n for n in state if not torch.equal(permuted[n], state[n])} == set(names)
        incomplete = permuted | {names[0]: state[names[0]]}
        assert (copy_with_state(module, incomplete)(x) - module(x)).abs().max() > 1e-9


def test_permuting_a_perceptron_by_hand():
    """Two units of three inputs change places: rows and bias of the first layer, columns of the second."""
    module = build("mlp1", (3,), 2, width=2, dtype=torch.float64)
    wiring = find_unit_wiring(module)
    a, b, c, d = copy_model_state(module).values()
    assert (wiring.layers, wiring.units, wiring.activation_modules) == (
        ("body.0.1",),
        (2,),
        ("body.0.2",),
    )
    swapped = permute_units(copy_model_state(module), wiring, [torch.tensor([1, 0])])
    expected = (a[[1, 0]], b[[1, 0]], c[:, [1, 0]], d)
    assert all(map(torch.equal, swapped.values(), expected))
    assert len(swapped) == len(expected)


def test_running_statistics_are_permuted_but_not_compared():
    wiring = find_unit_wiring(build_network("cnn2", (1, 12, 12), 4))
    assert "body.0.1.running_mean" in wiring.axes and "body.0.1.running_mean" not in wiring.learnt
    assert "body.0.1.weight" in wiring.learnt


def test_channels_of_group_norm_with_several_groups_are_not_permuted():
    """Such channels share their statistics with a part of the others alone."""
    module = build_network("resnet8-gn", (1, 8, 8), 16)
    several = [m for m in module.modules() if isinstance(m, nn.GroupNorm) and m.num_groups > 1]
    wiring = find_unit_wiring(module)
    assert several and len(wiring.units) < len(
        find_unit_wiring(build_network("resnet8", (1, 8, 8), 16)).units
    )


def test_input_normalisation_is_passed_through():
    module = prepend_input_normalisation_in_place(
        build_network("mlp"), torch.tensor([0.3]), torch.tensor([0.5])
    )
    assert find_unit_wiring(module).units == (64, 32)


class UnknownLayer(nn.Module):
    def forward(self, x):
        return x.flip(1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet", "shufflenet", "unknown layer"])
def test_networks_that_cannot_be_followed_are_refused_in_one_sentence(name):
    if name == "unknown layer":
        module = build_network("mlp")
        module.body.append(UnknownLayer())
    else:
        module = build(name, (1, 16, 16), 10, width=8)
    with pytest.raises(UsageError, match="cannot follow the units") as error:
        find_unit_wiring(module)
    assert str(error.value).endswith(".") and ". " not in str(error.value)


# ------------------------------------------------------------------------------------------------------ rules
FEW_NETWORKS = [
    ("mlp", (1, 8, 8), None),
    ("cnn", (1, 8, 8), 3),
    ("resnet8", (1, 8, 8), 4),
    ("cnn2", (1, 12, 12), 4),
]


def find_orders(rule, reference, state, wiring, start=None):
    if rule == "greedy":
        return rules.find_unit_orders_greedily(reference, state, wiring)
    return rules.find_unit_orders_by_rebasin(
        reference,
        state,
        wiring,
        make_torch_generator(5),
        start or wiring.make_identity_orders(),
        lambda value: None,
    )


@pytest.mark.parametrize(("name", "shape", "width"), FEW_NETWORKS)
@pytest.mark.parametrize("rule", ["greedy", "rebasin"])
def test_a_permuted_copy_is_recovered_to_the_last_digit(rule, name, shape, width):
    module = build_network(name, shape, width)
    wiring = find_unit_wiring(module)
    state = copy_model_state(module)
    orders = draw_orders(wiring)
    permuted = permute_units(state, wiring, orders)
    found = find_orders(rule, state, permuted, wiring)
    recovered = permute_units(permuted, wiring, found)
    assert all(torch.equal(recovered[n], state[n]) for n in state)
    for order, inverse in zip(orders, found, strict=True):
        assert torch.equal(order[inverse], torch.arange(len(inverse)))


@torch.no_grad()
def test_matching_by_activations_recovers_the_function_of_a_permuted_copy():
    """The function alone, because dead units cannot be told apart."""
    module = build_network("mlp")
    module.body[0][1].bias[:4] = -100  # four dead units
    wiring = find_unit_wiring(module)
    state = copy_model_state(module)
    permuted = permute_units(state, wiring, draw_orders(wiring))
    x = torch.rand(200, 1, 8, 8, generator=make_torch_generator(200), dtype=torch.float64)
    other_x = torch.rand(50, 1, 8, 8, generator=make_torch_generator(50), dtype=torch.float64)
    activations = record_unit_activations(module, state, wiring, x)
    permuted_activations = record_unit_activations(module, permuted, wiring, x)
    orders = []
    for ours, theirs in zip(activations, permuted_activations, strict=True):
        orders.append(rules.find_best_permutation(rules.compute_unit_correlations(ours, theirs)))
    recovered = permute_units(permuted, wiring, orders)
    difference = copy_with_state(module, recovered)(other_x) - module(other_x)
    assert difference.abs().max() < 1e-10
    average = {n: (state[n] + recovered[n]) / 2 for n in state}
    assert (copy_with_state(module, average)(x) - module(x)).abs().max() < 1e-10


@pytest.mark.parametrize(("name", "shape", "width"), FEW_NETWORKS)
def test_the_objective_of_rebasin_never_falls_and_ends_at_a_local_maximum(name, shape, width):
    module = build_network(name, shape, width)
    wiring = find_unit_wiring(module)
    reference = copy_model_state(module)
    state = copy_model_state(build_network(name, shape, width, seed=9))
    values = []
    orders = rules.find_unit_orders_by_rebasin(
        reference,
        state,
        wiring,
        make_torch_generator(5),
        wiring.make_identity_orders(),
        values.append,
    )
    assert len(values) > 1
    assert all(later > earlier for earlier, later in itertools.pairwise(values))
    matched = permute_units(state, wiring, orders)
    names = [n for n in wiring.axes if n in wiring.learnt]
    squared_distance = sum((reference[n] - matched[n]).square().sum() for n in names)
    sizes = sum(reference[n].square().sum() + state[n].square().sum() for n in names)
    assert values[-1] == pytest.approx(float((sizes - squared_distance) / 2))
    agreement = rules.compute_weight_inner_product(reference, state, wiring, orders)
    assert values[-1] == pytest.approx(agreement)
    # No swap of two units is better.
    for group, n in enumerate(wiring.units):
        for i, j in itertools.combinations(range(min(n, 6)), 2):
            swapped = [o.clone() for o in orders]
            swapped[group][[i, j]] = swapped[group][[j, i]]
            agreement = rules.compute_weight_inner_product(reference, state, wiring, swapped)
            assert agreement <= values[-1] + 1e-8


def test_the_greedy_order_is_the_nearest_of_all_orders():
    """Five hidden units: the sum of their distances for all 120 orders."""
    ours = build_network("mlp1", (4,), 5)
    theirs = build_network("mlp1", (4,), 5, seed=2)
    wiring = find_unit_wiring(ours)
    (order,) = rules.find_unit_orders_greedily(
        copy_model_state(ours), copy_model_state(theirs), wiring
    )

    def get_units(module):
        layer = module.body[0][1]
        return torch.cat([layer.weight, layer.bias[:, None]], 1).detach()

    our_units = get_units(ours)
    their_units = get_units(theirs)

    def compute_distance(order):
        return sum(float((our_units[i] - their_units[j]).norm()) for i, j in enumerate(order))

    assert tuple(order.tolist()) == min(itertools.permutations(range(5)), key=compute_distance)


def test_rebasin_of_one_hidden_layer_finds_the_nearest_of_all_orders():
    """With one group the descent is exact: rows, bias and columns together."""
    ours = build_network("mlp1", (4,), 5)
    wiring = find_unit_wiring(ours)
    reference = copy_model_state(ours)
    state = copy_model_state(build_network("mlp1", (4,), 5, seed=2))
    (order,) = find_orders("rebasin", reference, state, wiring)

    def compute_squared_distance(order):
        matched = permute_units(state, wiring, [torch.tensor(order)])
        return sum(float((t - matched[n]).square().sum()) for n, t in reference.items())

    nearest = min(itertools.permutations(range(5)), key=compute_squared_distance)
    assert tuple(order.tolist()) == nearest


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 10**6))
def test_an_assignment_is_the_best_of_all(n, additional_columns, seed):
    scores = torch.randn(
        n, n + additional_columns, generator=make_torch_generator(seed), dtype=torch.float64
    )
    best = max(
        sum(float(scores[i, j]) for i, j in enumerate(p))
        for p in itertools.permutations(range(n + additional_columns), n)
    )
    order = rules.assign_column_to_each_row(scores)
    assert len(set(order.tolist())) == n
    assert float(scores[torch.arange(n), order].sum()) == pytest.approx(best)


def test_ties_keep_the_current_order():
    assert torch.equal(rules.find_best_permutation(torch.zeros(4, 4)), torch.arange(4))
    current_order = torch.tensor([2, 0, 1])
    assert torch.equal(rules.find_best_permutation(torch.ones(3, 3), current_order), current_order)
    better = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert torch.equal(rules.find_best_permutation(better), torch.tensor([1, 0]))


def test_correlations_equal_torchs_and_are_0_for_a_dead_unit():
    z = torch.rand(50, 3, generator=make_torch_generator(), dtype=torch.float64)
    w = torch.cat([z[:, [2, 0]] * 3 + 1, torch.full((50, 1), 7.0, dtype=torch.float64)], 1)
    by_hand = torch.corrcoef(torch.cat([z, w[:, :2]], 1).T)[:3, 3:]
    torch.testing.assert_close(rules.compute_unit_correlations(z, w)[:, :2], by_hand)
    assert torch.equal(
        rules.compute_unit_correlations(z, w)[:, 2], torch.zeros(3, dtype=torch.float64)
    )


# ------------------------------------------------------------------------------------------------------------ PFNM
# Against all assignments, in limiting cases, and networks worked out by hand.

EXACT = torch.float64


def draw_neurons(clients=3, units=3, size=4, seed=0):
    stream = make_torch_generator(seed)
    return [torch.randn(units, size, generator=stream, dtype=EXACT) for _ in range(clients)]


def make_precisions(vectors, value=1.0):
    return [torch.full((v.shape[1],), value, dtype=EXACT) for v in vectors]


def compute_log_posterior(vectors, precision, spread, mass, members):
    """Twice the log posterior of the last client's choices, up to a constant: with each θ integrated out, the marginal
    likelihood of every global neuron's members, and the Indian buffet prior of the last client's choices."""
    prior = 1 / spread**2
    clients = len(vectors)
    total = 0.0
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
    """Given the matching of the first two clients, all choices of old and new neurons are tried for the last one. The
    last case is one where another factor of log m/(M - m) would give another matching."""
    vectors = [0.5 * v for v in draw_neurons(seed=seed)]
    vectors[2] = vectors[2] * torch.tensor([1.0, 0.2, 1.0, 1.0])
    matching = rules.match_neurons_of_clients(
        vectors, make_precisions(vectors), prior_deviation=spread, mass=mass, sweeps=0
    )
    old_neurons = sorted(
        {int(i) for client_members in matching.members[:2] for i in client_members}
    )
    choices = [*old_neurons, 100, 101, 102]  # and three new neurons
    values = {}
    for p in itertools.permutations(choices, 3):
        new = [i for i in p if i >= 100]
        if new == sorted(new) and new == list(range(100, 100 + len(new))):
            members = [*matching.members[:2], torch.tensor(p)]
            values[p] = compute_log_posterior(vectors, 1.0, spread, mass, members)
    matched = [i if i in old_neurons else 100 for i in matching.members[2].tolist()]
    best = max(values, key=values.get)
    assert matched == [min(i, 100) for i in best]


def test_a_global_neuron_is_the_posterior_mean_of_its_members():
    """Two clients with the same two neurons in another order, σ = σ0 = 1: the neuron times 2 / (1 + 2)."""
    v = 5 * draw_neurons(1, 2)[0]
    matching = rules.match_neurons_of_clients(
        [v, v[[1, 0]]], make_precisions([v, v]), prior_deviation=1.0, mass=1.0, sweeps=2
    )
    assert [client_members.tolist() for client_members in matching.members] == [[0, 1], [1, 0]]
    torch.testing.assert_close(matching.neurons, 2 * v / 3)


def test_a_large_mass_matches_nothing_and_a_small_one_adds_no_neuron():
    vectors = draw_neurons()

    def match(mass):
        return rules.match_neurons_of_clients(
            vectors, make_precisions(vectors), prior_deviation=1.0, mass=mass, sweeps=3
        )

    apart = match(1e9)
    together = match(1e-9)
    assert len(apart.neurons) == 9 and len(torch.cat(apart.members).unique()) == 9
    assert len(together.neurons) == 3
    torch.testing.assert_close(apart.neurons[apart.members[1]], vectors[1] / 2)


def test_every_global_neuron_has_members_and_none_twice_from_a_client():
    vectors = [*draw_neurons(4), *draw_neurons(1, 5, seed=1)]
    matching = rules.match_neurons_of_clients(
        vectors, make_precisions(vectors, 3.0), prior_deviation=1.0, mass=1.0, sweeps=5
    )
    assert all(
        len(client_members.unique()) == len(client_members) == len(v)
        for client_members, v in zip(matching.members, vectors, strict=True)
    )
    assert torch.equal(torch.cat(matching.members).unique(), torch.arange(len(matching.neurons)))


def test_a_client_without_precision_for_a_weight_has_no_effect_on_it():
    v = draw_neurons(1, 2)[0] * 5
    precisions = [
        torch.tensor([1.0, 1, 1, 0], dtype=EXACT),
        torch.tensor([1.0, 1, 1, 1], dtype=EXACT),
    ]
    other = v.clone()
    other[:, 3] = 7
    matching = rules.match_neurons_of_clients(
        [v, other], precisions, prior_deviation=1.0, mass=1e-6, sweeps=0
    )
    # 7 / (1 + 1): the prior, and the second client alone.
    torch.testing.assert_close(matching.neurons[:, 3], torch.full((2,), 3.5, dtype=EXACT))


@torch.no_grad()
def test_a_network_can_be_rebuilt_from_its_neurons():
    module = build_network("mlp1", (1, 8, 8), 5)
    neurons, bias = rules.extract_neurons(module)
    assert neurons.shape == (5, 64 + 1 + 10)
    x = torch.rand(3, 1, 8, 8, generator=make_torch_generator(), dtype=EXACT)
    torch.testing.assert_close(rules.copy_network_with_neurons(module, neurons, bias)(x), module(x))
    # Each neuron twice, with half of its outgoing weights: a wider network with the same function.
    half = torch.cat([neurons[:, :65], neurons[:, 65:] / 2], 1)
    wide = rules.copy_network_with_neurons(module, torch.cat([half, half]), bias)
    assert wide.body[0][1].out_features == 10 and wide.architecture[3] == 10
    torch.testing.assert_close(wide(x), module(x))
    assert module.architecture[3] == 5
