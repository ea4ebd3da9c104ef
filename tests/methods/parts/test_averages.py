"""Robust averages: against numpy, scipy and a slow Krum, by hand, and what a poisoned model can reach."""

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


def models(count=7, seed=0, spread=1.0):
    g = torch.Generator().manual_seed(seed)
    return [
        {"w": spread * torch.randn(3, 4, generator=g), "b": torch.randn(4, generator=g)}
        for _ in range(count)
    ]


def test_three_numbers_by_hand():
    states = [{"w": torch.tensor([v, -v])} for v in (1.0, 2.0, 4.0, 100.0)]
    by = {
        rule: average_states(states, [1] * 4, rule, 1)["w"].tolist() for rule in ("mean", *ROBUST)
    }
    assert by["mean"] == [26.75, -26.75] and by["median"] == [3, -3] and by["trimmed"] == [3, -3]
    assert by["krum"] == [1, -1]  # 1 and 2 are nearest to each other; the first of equals
    assert average_states(states[:3], [1] * 3, "median", 0)["w"].tolist() == [2, -2]


@pytest.mark.parametrize("count", [5, 6])
def test_median_and_trimmed_mean_are_numpys_and_scipys(count):
    states = models(count)
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
def test_krum_is_the_slow_one(assumed, seed):
    states = models(8, seed)
    flat = [np.concatenate([p.numpy().ravel() for p in s.values()]).astype(float) for s in states]
    scores = [
        sorted(sum((a - b) ** 2) for j, b in enumerate(flat) if j != i)[: 8 - assumed - 2]
        for i, a in enumerate(flat)
    ]
    assert choose_krum_client(states, assumed) == int(np.argmin([sum(s) for s in scores]))


def test_the_mean_is_weighted_as_ever_to_the_last_bit():
    states = models()
    for name, part in average_states(states, range(1, 8), "mean", 2).items():
        assert torch.equal(part, weighted_mean(states, range(1, 8))[name])


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ROBUST), st.integers(0, 10**6), st.floats(-1e6, 1e6))
def test_two_of_seven_cannot_leave_the_honest_ones(rule, seed, far):
    """Every number stays within those of the honest clients, however far the others are."""
    states = models(5, seed) + [{"w": torch.full((3, 4), far), "b": torch.full((4,), far)}] * 2
    result = average_states(states, [1] * 7, rule, 2)
    for name, part in result.items():
        honest = torch.stack([s[name] for s in states[:5]])
        near = bool((honest.amin(0) <= part + 1e-4).all() and (part - 1e-4 <= honest.amax(0)).all())
        assert near or abs(far) < 10  # then they are among the honest ones


def test_too_few_clients_are_refused():
    for rule, assumed, clients in (("trimmed", 2, 4), ("krum", 2, 4)):
        with pytest.raises(UsageError, match="needs 5 clients or more, but there are 4"):
            check_average_is_possible(rule, assumed, clients, "FedAvg")
        check_average_is_possible(rule, assumed, 5, "FedAvg")
    check_average_is_possible("median", 9, 1, "FedAvg")


# ----------------------------------------------------------------------------------------------- test server optimizers
# Server steps against scalar arithmetic written out in plain Python.


def run(name, start, deltas, **options):
    state = server.make_zero_optimizer_moments(start)
    for delta in deltas:
        start, state = server.take_server_optimizer_step(name, start, delta, state, **options)
    return start


def test_fedavg_is_the_weighted_mean_of_what_came_back():
    now = torch.tensor([1.0, 2.0])
    received = [torch.tensor([3.0, 2.0]), torch.tensor([1.0, -2.0])]
    delta = server.compute_mean_parameter_change([0.25, 0.75], received, now)
    assert delta.tolist() == [0.5, -3.0]
    moved, _ = server.take_server_optimizer_step(
        "fedavg", now, delta, server.make_zero_optimizer_moments(now)
    )
    assert moved.tolist() == [0.25 * 3 + 0.75 * 1, 0.25 * 2 - 0.75 * 2]
    assert server.take_server_optimizer_step(
        "fedavg", now, delta, server.make_zero_optimizer_moments(now), lr=0.5
    )[0].tolist() == [
        1.25,
        0.5,
    ]


@pytest.mark.parametrize("name", list(server.SERVER_OPTIMIZERS))
def test_a_dict_of_tensors_moves_as_one_flat_vector(name):
    flat = torch.arange(6.0)
    deltas = [torch.linspace(-1, 1, 6), torch.linspace(2, -1, 6)]

    def cut(vector):
        return {"w": vector[:4].view(2, 2), "b": vector[4:]}

    end = run(name, flat, deltas, lr=0.3)
    parts = run(name, cut(flat), [cut(d) for d in deltas], lr=0.3)
    assert torch.equal(torch.cat([parts["w"].flatten(), parts["b"]]), end)
    assert list(parts) == ["w", "b"]
