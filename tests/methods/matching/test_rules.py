"""The rules that match units: a permuted copy comes back, nothing gets worse, and assignments against all of them."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.methods.matching import activations
from fedlab_nb.methods.matching.rules import (
    agreement,
    assigned,
    assigned_to,
    by_activations,
    correlation,
    greedy,
    rebasin,
)
from fedlab_nb.methods.matching.wiring import permuted, wiring_of
from fedlab_nb.models import model_state

from .test_wiring import network, seeded, shuffled, with_state

SOME = [("mlp", (1, 8, 8), None), ("cnn", (1, 8, 8), 3), ("resnet8", (1, 8, 8), 4), ("cnn2", (1, 12, 12), 4)]


def orders_by(rule, reference, state, wiring, start=None, heard=lambda value: None):
    if rule == "greedy":
        return greedy(reference, state, wiring)
    return rebasin(reference, state, wiring, seeded(5), start, heard)


@pytest.mark.parametrize(("name", "shape", "width"), SOME)
@pytest.mark.parametrize("rule", ["greedy", "rebasin"])
def test_a_permuted_copy_is_recovered_to_the_last_digit(rule, name, shape, width):
    module = network(name, shape, width)
    wiring, state = wiring_of(module), model_state(module)
    orders = shuffled(wiring)
    back = orders_by(rule, state, permuted(state, wiring, orders), wiring)
    again = permuted(permuted(state, wiring, orders), wiring, back)
    assert all(torch.equal(again[n], state[n]) for n in state)
    for there, here in zip(orders, back, strict=True):  # it is the inverse order
        assert torch.equal(there[here], torch.arange(len(here)))


@torch.no_grad()
def test_activations_recover_the_function_of_a_permuted_copy():
    """Of the function, since units that never answer can take each other's places."""
    module = network("mlp")
    module.body[0][1].bias[:4] = -100  # four dead units
    wiring, state = wiring_of(module), model_state(module)
    x, y = (torch.rand(n, 1, 8, 8, generator=seeded(n), dtype=torch.float64) for n in (200, 50))
    other = permuted(state, wiring, shuffled(wiring))
    pairs = zip(*(activations(module, s, wiring, x) for s in (state, other)), strict=True)
    again = permuted(other, wiring, by_activations([correlation(*pair) for pair in pairs]))
    assert (with_state(module, again)(y) - module(y)).abs().max() < 1e-10
    average = {n: (state[n] + again[n]) / 2 for n in state}
    assert (with_state(module, average)(x) - module(x)).abs().max() < 1e-10


@pytest.mark.parametrize(("name", "shape", "width"), SOME)
@pytest.mark.parametrize("rule", ["greedy", "rebasin"])
def test_matching_what_is_matched_moves_nothing(rule, name, shape, width):
    one, other = network(name, shape, width), network(name, shape, width, seed=9)
    wiring, reference, state = wiring_of(one), model_state(one), model_state(other)
    first = orders_by(rule, reference, state, wiring)
    assert any(not torch.equal(o, torch.arange(len(o))) for o in first)
    again = orders_by(rule, reference, permuted(state, wiring, first), wiring)
    assert all(torch.equal(o, torch.arange(len(o))) for o in again)


@pytest.mark.parametrize(("name", "shape", "width"), SOME)
def test_the_objective_of_rebasin_never_falls_and_is_what_it_says(name, shape, width):
    one, other = network(name, shape, width), network(name, shape, width, seed=9)
    wiring, reference, state = wiring_of(one), model_state(one), model_state(other)
    values = []
    orders = rebasin(reference, state, wiring, seeded(5), heard=values.append)
    assert len(values) > 1 and all(b > a for a, b in itertools.pairwise(values))
    matched = permuted(state, wiring, orders)
    names = [n for n in wiring.axes if n in wiring.learnt]
    far = sum((reference[n] - matched[n]).square().sum() for n in names)
    sizes = sum(reference[n].square().sum() + state[n].square().sum() for n in names)
    assert (
        values[-1]
        == pytest.approx(float((sizes - far) / 2))
        == pytest.approx(agreement(reference, state, wiring, orders))
    )
    # No order of one group alone is better: all swaps of two units.
    for group, n in enumerate(wiring.units):
        for i, j in itertools.combinations(range(min(n, 6)), 2):
            swapped = [o.clone() for o in orders]
            swapped[group][[i, j]] = swapped[group][[j, i]]
            assert agreement(reference, state, wiring, swapped) <= values[-1] + 1e-8


def test_greedy_is_the_nearest_of_all_orders():
    """Five hidden units: the sum of distances against all 120 orders."""
    one, other = network("mlp1", (4,), 5), network("mlp1", (4,), 5, seed=2)
    wiring = wiring_of(one)
    (order,) = greedy(model_state(one), model_state(other), wiring)
    u, v = (torch.cat([m.body[0][1].weight, m.body[0][1].bias[:, None]], 1).detach() for m in (one, other))
    costs = {p: sum(float((u[i] - v[j]).norm()) for i, j in enumerate(p)) for p in itertools.permutations(range(5))}
    assert tuple(order.tolist()) == min(costs, key=costs.get)


def test_rebasin_of_one_hidden_layer_is_the_nearest_of_all_orders():
    """There is one group, so that the descent is exact: rows, bias and columns together."""
    one, other = network("mlp1", (4,), 5), network("mlp1", (4,), 5, seed=2)
    wiring, reference, state = wiring_of(one), model_state(one), model_state(other)
    (order,) = orders_by("rebasin", reference, state, wiring)

    def far(p):
        matched = permuted(state, wiring, [torch.tensor(p)])
        return sum(float((t - matched[n]).square().sum()) for n, t in reference.items())

    assert tuple(order.tolist()) == min(itertools.permutations(range(5)), key=far)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 10**6))
def test_an_assignment_is_the_best_of_all(n, more, seed):
    scores = torch.randn(n, n + more, generator=seeded(seed), dtype=torch.float64)
    best = max(sum(float(scores[i, j]) for i, j in enumerate(p)) for p in itertools.permutations(range(n + more), n))
    order = assigned_to(scores)
    assert len(set(order.tolist())) == n
    assert float(scores[torch.arange(n), order].sum()) == pytest.approx(best)


def test_ties_move_nothing():
    assert torch.equal(assigned(torch.zeros(4, 4)), torch.arange(4))
    standing = torch.tensor([2, 0, 1])
    assert torch.equal(assigned(torch.ones(3, 3), standing), standing)
    better = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert torch.equal(assigned(better), torch.tensor([1, 0]))


def test_correlation_is_numpys_and_0_for_a_dead_unit():
    z = torch.rand(50, 3, generator=seeded(), dtype=torch.float64)
    w = torch.cat([z[:, [2, 0]] * 3 + 1, torch.full((50, 1), 7.0, dtype=torch.float64)], 1)
    by_hand = torch.corrcoef(torch.cat([z, w[:, :2]], 1).T)[:3, 3:]
    torch.testing.assert_close(correlation(z, w)[:, :2], by_hand)
    assert torch.equal(correlation(z, w)[:, 2], torch.zeros(3, dtype=torch.float64))
