"""Linear probes: what they find, and whose features they read."""

import torch

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


def test_probed_features_are_the_layers_outputs():
    network = build("cnn", (1, 8, 8), 10, dtype=EXACT)
    x = torch.rand(4, 1, 8, 8, generator=seeded(), dtype=EXACT)
    outputs = probes.layer_outputs(network, x)
    assert len(outputs) == 4
    torch.testing.assert_close(outputs[1], network.body[:2](x))
    client = Client(network, 2)
    fused = FusedNetwork([Stage([client.branch(k)] * 3) for k in range(2)], [network.classifier], "average", "sum")
    first, last = probes.fused_outputs(fused, x)
    torch.testing.assert_close(first, outputs[1].flatten(1))
    torch.testing.assert_close(last, outputs[3])
    y = torch.arange(4)
    assert len([*probes.probe_network(network, x, y, x, y)]) == 4 and len([*probes.probe_fused(fused, x, y, x, y)]) == 2
