"""Robust averages against numpy, scipy and a plain Krum, and their bound on poisoned models; server optimizers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import trim_mean

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.parts import averages as server
from fedlab_nb.methods.parts.averages import (
    average_states,
    check_average_is_possible,
    choose_krum_client,
)

ROBUST = ("median", "trimmed", "krum")


def draw_states(count=7, seed=0, spread=1.0):
    stream = torch.Generator().manual_seed(seed)
    return [
        {"w": spread * torch.randn(3, 4, generator=stream), "b": torch.randn(4, generator=stream)}
        for _ in range(count)
    ]


def test_averages_of_four_numbers_by_hand():
    states = [{"w": torch.tensor([number, -number])} for number in (1.0, 2.0, 4.0, 100.0)]
    averages = {
        rule: average_states(states, [1] * 4, rule, 1)["w"].tolist() for rule in ("mean", *ROBUST)
    }
    assert averages["mean"] == [26.75, -26.75]
    assert averages["median"] == [3, -3]
    assert averages["trimmed"] == [3, -3]
    assert averages["krum"] == [
        1,
        -1,
    ]  # 1 and 2 are nearest to each other, and the first of them is chosen
    assert average_states(states[:3], [1] * 3, "median", 0)["w"].tolist() == [2, -2]


@pytest.mark.parametrize("count", [5, 6])
def test_median_and_trimmed_mean_equal_numpys_and_scipys(count):
    states = draw_states(count)
    stack = np.stack([s["w"].numpy() for s in states])
    np.testing.assert_allclose(
        average_states(states, [1] * count, "median", 0)["w"], np.median(stack, 0), rtol=1e-6
    )
    trimmed = average_states(states, [1] * count, "trimmed", 2)["w"]
    np.testing.assert_allclose(trimmed, trim_mean(stack, 2 / count, 0), rtol=1e-5)
    plain = average_states(states, [1] * count, "trimmed", 0)["b"]
    np.testing.assert_allclose(
        plain, np.mean([s["b"].numpy() for s in states], 0), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("assumed", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_krum_equals_a_plain_loop(assumed, seed):
    states = draw_states(8, seed)
    flat = [np.concatenate([p.numpy().ravel() for p in s.values()]).astype(float) for s in states]
    scores = [
        sorted(sum((a - b) ** 2) for j, b in enumerate(flat) if j != i)[: 8 - assumed - 2]
        for i, a in enumerate(flat)
    ]
    assert choose_krum_client(states, assumed) == int(np.argmin([sum(s) for s in scores]))


def test_the_mean_is_the_weighted_mean_to_the_last_bit():
    states = draw_states()
    for name, part in average_states(states, range(1, 8), "mean", 2).items():
        assert torch.equal(part, weighted_mean(states, range(1, 8))[name])


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ROBUST), st.integers(0, 10**6), st.floats(-1e6, 1e6))
def test_two_of_seven_cannot_move_the_average_beyond_the_honest_models(rule, seed, lie):
    """Every number stays within those of the honest clients, whatever the others send."""
    states = draw_states(5, seed) + [{"w": torch.full((3, 4), lie), "b": torch.full((4,), lie)}] * 2
    averages = average_states(states, [1] * 7, rule, 2)
    for name, part in averages.items():
        honest = torch.stack([s[name] for s in states[:5]])
        is_within_bounds = bool(
            (honest.amin(0) <= part + 1e-4).all() and (part - 1e-4 <= honest.amax(0)).all()
        )
        assert (
            is_within_bounds or abs(lie) < 10
        )  # a small lie may itself be among the honest numbers


def test_too_few_clients_are_refused():
    for rule, assumed, clients in (("trimmed", 2, 4), ("krum", 2, 4)):
        with pytest.raises(UsageError, match="needs 5 clients or more, but there are 4"):
            check_average_is_possible(rule, assumed, clients, "FedAvg")
        check_average_is_possible(rule, assumed, 5, "FedAvg")
    check_average_is_possible("median", 9, 1, "FedAvg")


# ----------------------------------------------------------------------------------------------- server optimizers
# Server steps against scalar arithmetic written out in plain Python.


def take_steps(name, start, deltas, **options):
    state = server.make_zero_optimizer_moments(start)
    for delta in deltas:
        start, state = server.compute_server_optimizer_step(name, start, delta, state, **options)
    return start


def test_fedavgs_server_step_is_the_weighted_mean():
    current = torch.tensor([1.0, 2.0])
    received = [torch.tensor([3.0, 2.0]), torch.tensor([1.0, -2.0])]
    delta = server.compute_mean_parameter_change([0.25, 0.75], received, current)
    assert delta.tolist() == [0.5, -3.0]
    updated, _ = server.compute_server_optimizer_step(
        "fedavg", current, delta, server.make_zero_optimizer_moments(current)
    )
    assert updated.tolist() == [0.25 * 3 + 0.75 * 1, 0.25 * 2 - 0.75 * 2]
    half_step, _ = server.compute_server_optimizer_step(
        "fedavg", current, delta, server.make_zero_optimizer_moments(current), lr=0.5
    )
    assert half_step.tolist() == [1.25, 0.5]


@pytest.mark.parametrize("name", list(server.SERVER_OPTIMIZERS))
def test_a_dict_of_tensors_is_optimised_like_one_flat_vector(name):
    flat = torch.arange(6.0)
    deltas = [torch.linspace(-1, 1, 6), torch.linspace(2, -1, 6)]

    def cut(vector):
        return {"w": vector[:4].view(2, 2), "b": vector[4:]}

    end = take_steps(name, flat, deltas, lr=0.3)
    parts = take_steps(name, cut(flat), [cut(d) for d in deltas], lr=0.3)
    assert torch.equal(torch.cat([parts["w"].flatten(), parts["b"]]), end)
    assert list(parts) == ["w", "b"]
