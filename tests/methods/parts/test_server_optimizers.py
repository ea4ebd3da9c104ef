"""Server steps against scalar arithmetic written out in plain Python."""

import math

import pytest
import torch

from fedlab_nb.methods.parts import averages as server

DELTAS = [[0.5, -0.01], [-2.0, 0.0], [0.1, 0.3], [0.0, -0.3]]


def by_hand(name, start, deltas, lr, beta1=0.9, beta2=0.99, tau=1e-3):
    """One number at a time, with the branches of FedYogi's sign spelt out."""
    x, m, v = start, 0.0, 0.0
    for d in deltas:
        m = beta1 * m + (1 - beta1) * d
        if name == "fedadam":
            v = beta2 * v + (1 - beta2) * d**2
        elif d**2 > v:
            v = v + (1 - beta2) * d**2
        elif d**2 < v:
            v = v - (1 - beta2) * d**2
        x = x + lr * m / (math.sqrt(v) + tau)
    return x


def run(name, start, deltas, **options):
    state = server.initial_state(start)
    for delta in deltas:
        start, state = server.step(name, start, delta, state, **options)
    return start


@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_adaptive_steps_number_by_number(name):
    start = torch.tensor([1.0, -2.0], dtype=torch.float64)
    end = run(name, start, [torch.tensor(d, dtype=torch.float64) for d in DELTAS], lr=0.07)
    for j in range(2):
        expected = by_hand(name, start[j].item(), [d[j] for d in DELTAS], 0.07)
        assert math.isclose(end[j].item(), expected, rel_tol=0, abs_tol=1e-14)


def test_fedavg_is_the_weighted_mean_of_what_came_back():
    now = torch.tensor([1.0, 2.0])
    received = [torch.tensor([3.0, 2.0]), torch.tensor([1.0, -2.0])]
    delta = server.mean_change([0.25, 0.75], received, now)
    assert delta.tolist() == [0.5, -3.0]
    moved, _ = server.step("fedavg", now, delta, server.initial_state(now))
    assert moved.tolist() == [0.25 * 3 + 0.75 * 1, 0.25 * 2 - 0.75 * 2]
    assert server.step("fedavg", now, delta, server.initial_state(now), lr=0.5)[0].tolist() == [1.25, 0.5]


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
