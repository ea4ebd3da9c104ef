"""The emulated device itself: what it refuses, and what it counts."""

import pytest
import torch
from torch import nn

from tests.device.emulated import NAME, EmulatedDevice


@pytest.fixture
def device():
    with EmulatedDevice() as device:
        yield device


def count_up(*shape):
    """The numbers 1, 2, 3 … in this shape, on the host."""
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape)


REFUSED = {
    "sum": lambda x: x + count_up(3),
    "in place": lambda x: count_up(3).add_(x[0]),
    "cat": lambda x: torch.cat([x, count_up(3)]),
    "product": lambda x: count_up(2, 3) @ x,
    "layer that stayed": lambda x: nn.Linear(3, 2)(x),
    "where": lambda x: torch.where(x > 1, x, count_up(3)),
    "lists of tensors": lambda x: torch._foreach_add_([x], [count_up(3)]),
    "rows of a host's tensor": lambda x: count_up(3)[x.long() - 1],
    "values written": lambda x: x.index_put_((torch.zeros(3, dtype=torch.long),), count_up(3)),
    "scatter": lambda x: x.scatter_add_(0, torch.zeros(3, dtype=torch.long), x),
    "numpy": lambda x: x.numpy(),
    "a host's stream": lambda x: torch.rand(3, device=NAME, generator=torch.Generator()),
}


@pytest.mark.slow
@pytest.mark.parametrize("operation", REFUSED)
def test_what_a_gpu_refuses_is_refused(operation, device):
    x = count_up(3).to(NAME)
    with pytest.raises((RuntimeError, TypeError)):
        REFUSED[operation](x)


# {name: (operation, transfers to the host, transfers to the device)}
COSTS = {
    "float": (lambda x: float(x[0]), 1, 0),
    "bool": (lambda x: bool(x[0] > 0), 1, 0),
    "item": (lambda x: x[0].item(), 1, 0),
    "tolist": (lambda x: x.tolist(), 1, 0),
    "cpu": (lambda x: x.cpu(), 1, 0),
    "copy out": (lambda x: torch.zeros(3).copy_(x), 1, 0),
    "equal": (lambda x: torch.equal(x, x), 1, 0),
    "nonzero": (lambda x: x.nonzero(), 1, 0),
    "mask": (lambda x: x[x > 1], 1, 0),
    "unique": (lambda x: x.unique(), 1, 0),
    "bincount": (lambda x: x.long().bincount(), 1, 0),
    "to": (lambda x: count_up(3).to(NAME), 0, 1),
    "to the other's": (lambda x: count_up(3).to(x), 0, 1),
    "tensor": (lambda x: torch.tensor([1.0], device=NAME), 0, 1),
    "as_tensor": (lambda x: torch.as_tensor([1.0], device=NAME), 0, 1),
    "new_tensor": (lambda x: x.new_tensor([1.0]), 0, 1),
    "copy in": (lambda x: x.copy_(count_up(3)), 0, 1),
    "rows": (lambda x: x[torch.tensor([0, 2])], 0, 1),
    "list": (lambda x: x[[0, 2]], 0, 1),
    "number": (lambda x: x + torch.tensor(1.0), 0, 0),
    "made there": (
        lambda x: torch.zeros(3, device=NAME) + x.new_full((), 2.0) + torch.arange(3, device=NAME),
        0,
        0,
    ),
    "rows there": (lambda x: x[x.long() - 1], 0, 0),
    "slice": (lambda x: x[1:].double().sum(), 0, 0),
    "number written": (lambda x: x.fill_(2.0).mul_(3)[1:].zero_(), 0, 0),
}


@pytest.mark.parametrize("name", COSTS)
def test_each_operation_costs_its_transfers(name, device):
    operation, to_host, to_device = COSTS[name]
    x = count_up(3).to(NAME)
    device.transfer_counts.clear()
    operation(x)
    assert (device.to_host, device.to_device) == (to_host, to_device)


def test_views_are_no_launches(device):
    x = count_up(2, 3).to(NAME)
    device.launch_counts.clear()
    (x[1:].t().unsqueeze(0).reshape(-1).detach() * 2).sum()
    assert device.launches == 2


def test_the_device_draws_other_numbers_than_the_host_and_leaves_its_stream_alone(device):
    state = torch.get_rng_state()
    drawn_there = [torch.rand(8, device=NAME), torch.zeros(8, device=NAME).uniform_()]
    assert torch.equal(state, torch.get_rng_state())
    with torch.random.fork_rng():
        assert not any(torch.equal(drawn.cpu(), torch.rand(8)) for drawn in drawn_there)


def test_torch_is_as_before_when_the_device_has_ended():
    before = torch.tensor, torch.as_tensor
    with EmulatedDevice():
        x = count_up(3).to(NAME)
    assert (torch.tensor, torch.as_tensor) == before
    with pytest.raises(RuntimeError, match="after the device's end"):
        x + 1
