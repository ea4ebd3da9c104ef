"""The units of a network in another order: the same function, every number in one place, and what is refused."""

import pytest
import torch
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.matching.wiring import permuted, wiring_of
from fedlab_nb.models import build, load_state, model_state, normalise_inputs
from fedlab_nb.models.state import copied

NETWORKS = [
    ("mlp", (1, 8, 8), None), ("mlp", (7,), 6), ("mlp1", (1, 8, 8), None), ("cnn", (1, 8, 8), 3),
    ("lenet5", (3, 36, 36), 2), ("cnn2", (1, 12, 12), 4), ("cnn3", (3, 8, 9), 5), ("vgg9", (1, 16, 16), 2),
    ("vgg11", (3, 16, 16), 2), ("resnet8", (1, 8, 8), 4), ("resnet18", (3, 8, 8), 2), ("wrn16", (3, 8, 8), 4),
    ("resnet8-nobn", (1, 8, 8), 4), ("resnet8-gn", (1, 8, 8), 16), ("cnn2-gn", (1, 12, 12), 4),
]  # fmt: skip


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def network(name="mlp", shape=(1, 8, 8), width=None, seed=0):
    """Untrained, in float64; batch norm's numbers are as random as the rest."""
    module = build(name, shape, 10, width=width, generator=seeded(seed), dtype=torch.float64).eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.GroupNorm)):
            for key in ("weight", "bias", "running_mean", "running_var"):
                if (tensor := getattr(part, key, None)) is not None:
                    tensor.data.copy_(torch.rand(tensor.shape, generator=seeded(seed + 1), dtype=torch.float64) + 0.3)
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
    twin = copied(module)
    load_state(twin, state)
    return twin


@pytest.mark.parametrize(("name", "shape", "width"), NETWORKS)
@torch.no_grad()
def test_each_group_moves_alone_and_one_forgotten_tensor_would_be_seen(name, shape, width):
    module = network(name, shape, width)
    wiring, state = wiring_of(module), model_state(module)
    x, orders = torch.rand(6, *shape, generator=seeded(1), dtype=torch.float64), shuffled(wiring)
    for group in range(len(wiring.units)):
        alone = [o if g == group else torch.arange(len(o)) for g, o in enumerate(orders)]
        other = permuted(state, wiring, alone)
        assert (with_state(module, other)(x) - module(x)).abs().max() < 1e-10
        touched = [n for n, axes in wiring.axes.items() if group in (g for _, g in axes)]
        assert {n for n in state if not torch.equal(other[n], state[n])} == set(touched)
        forgotten = other | {touched[0]: state[touched[0]]}
        assert (with_state(module, forgotten)(x) - module(x)).abs().max() > 1e-9


def test_a_perceptron_by_hand():
    """Two units of three inputs change places: rows and bias of the first layer, columns of the second."""
    module = build("mlp1", (3,), 2, width=2, dtype=torch.float64)
    wiring, (a, b, c, d) = wiring_of(module), model_state(module).values()
    assert (wiring.layers, wiring.units, wiring.reads) == (("body.0.1",), (2,), ("body.0.2",))
    swapped = permuted(model_state(module), wiring, [torch.tensor([1, 0])])
    for tensor, by_hand in zip(swapped.values(), (a[[1, 0]], b[[1, 0]], c[:, [1, 0]], d), strict=True):
        assert torch.equal(tensor, by_hand)


def test_running_statistics_move_but_do_not_count():
    wiring = wiring_of(network("cnn2", (1, 12, 12), 4))
    assert "body.0.1.running_mean" in wiring.axes and "body.0.1.running_mean" not in wiring.learnt
    assert "body.0.1.weight" in wiring.learnt


def test_groups_of_group_norm_stay_where_they_are():
    """Channels that share their statistics with a part of the others cannot go anywhere."""
    module = network("resnet8-gn", (1, 8, 8), 16)
    several = [m for m in module.modules() if isinstance(m, nn.GroupNorm) and m.num_groups > 1]
    wiring = wiring_of(module)
    assert several and len(wiring.units) < len(wiring_of(network("resnet8", (1, 8, 8), 16)).units)


def test_the_scale_of_the_inputs_is_passed_through():
    module = normalise_inputs(network("mlp"), torch.tensor([0.3]), torch.tensor([0.5]))
    assert wiring_of(module).units == (64, 32)


class Own(nn.Module):
    def forward(self, x):
        return x.flip(1)


@pytest.mark.parametrize("name", ["mobilenet", "shufflenet", "own"])
def test_what_cannot_be_followed_is_refused_in_one_sentence(name):
    module = network("mlp") if name == "own" else build(name, (1, 16, 16), 10, width=8)
    if name == "own":
        module.body.append(Own())
    with pytest.raises(UsageError, match="cannot follow the units") as error:
        wiring_of(module)
    assert str(error.value).endswith(".") and ". " not in str(error.value)
