"""Linear probes: what they find, and whose features they read."""

import pytest
import torch

from fedlab_nb.errors import UsageError
from fedlab_nb.labs.fusefl import probes
from fedlab_nb.methods.fusefl.blocks import Client
from fedlab_nb.methods.fusefl.network import FusedNetwork, Stage
from fedlab_nb.models import build

EXACT = torch.float64


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_probe_finds_what_is_linear_and_only_that():
    z = torch.randn(400, 4, generator=seeded())
    y = (z[:, 0] + z[:, 1] > 0).long()
    assert probes.linear_probe(z[:300], y[:300], z[300:], y[300:]) > 0.95
    xor = ((z[:, 0] > 0) ^ (z[:, 1] > 0)).long()
    assert probes.linear_probe(z[:300], xor[:300], z[300:], xor[300:]) < 0.7
    wide = torch.stack([1000 * z + 5, torch.zeros_like(z)], dim=1)  # units and dead features do not matter
    assert probes.linear_probe(wide[:300], y[:300], wide[300:], y[300:]) > 0.95


def fused_from(networks, blocks):
    """The networks side by side, unchanged, in so many blocks."""
    clients = [Client(network, blocks) for network in networks]
    stages = [Stage([client.branch(k) for client in clients]) for k in range(blocks)]
    return FusedNetwork(stages, [networks[0].classifier], "average", "sum")


def two_networks(name="cnn"):
    return [build(name, (1, 8, 8), 10, dtype=EXACT, generator=seeded(seed)) for seed in (1, 2)]


def test_probed_features_are_the_layers_outputs():
    networks, x = two_networks(), torch.rand(4, 1, 8, 8, generator=seeded(), dtype=EXACT)
    outputs, (whole,) = (of(fused_from(networks, 1), x) for of in (probes.layers_of, probes.blocks_of))
    assert len(outputs) == 4 and all(len(of_clients) == 2 for of_clients in outputs)
    for m, network in enumerate(networks):
        torch.testing.assert_close(outputs[1][m], network.body[:2](x))
        torch.testing.assert_close(outputs[-1][m].flatten(1), whole[m])  # not fused, the last block ends there
    first, last = probes.blocks_of(fused_from(networks, 2), x)
    for m, network in enumerate(networks):
        torch.testing.assert_close(first[m], network.body[:2](x).flatten(1))
    joined = (first[0] + first[1]).view(4, *networks[0].body[:2](x).shape[1:]) / 2
    torch.testing.assert_close(last[1], networks[1].body[2:](joined).flatten(1))


def test_a_mean_is_probed_as_a_mean_and_each_client_alone():
    """Two noisy copies of the same code: their mean tells more than either, which nobody has to fuse."""
    y = torch.arange(4).repeat(100)
    code = torch.eye(4)[y]
    train, test = ([[code + 1.2 * torch.randn(400, 4, generator=seeded(m + s)) for m in range(6)]] for s in (1, 50))
    ((each, of_mean),) = probes.probe(train, y, test, y)
    assert len(each) == 6 and of_mean > max(each) + 0.1
    ((few, same),) = probes.probe(train, y, test, y, most=2)
    assert few == each[:2] and same == of_mean


def test_what_cannot_be_probed():
    x = torch.rand(4, 1, 8, 8, generator=seeded(), dtype=EXACT)
    with pytest.raises(UsageError, match="fused from 2 blocks; run FuseFL with blocks=1"):
        probes.layers_of(fused_from(two_networks(), 2), x)
    narrow, wide = torch.rand(4, 3), torch.rand(4, 5)
    with pytest.raises(UsageError, match="differ in shape"):
        next(probes.probe([[narrow, wide]], torch.arange(4), [[narrow, wide]], torch.arange(4)))
