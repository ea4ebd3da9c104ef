"""Linear probes: what they find, bits where the information is known, and whose features they read."""

import math

import pytest
import torch

from fedlab_nb.errors import UsageError
from fedlab_nb.labs.fusefl import probes
from fedlab_nb.methods.fusefl.blocks import ClientBlocks
from fedlab_nb.methods.fusefl.network import FusedNetwork, Stage
from fedlab_nb.models import build

EXACT = torch.float64


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def read(h, y, x=None):
    """From 3/4 of the samples to the rest; images: the features themselves."""
    x = h if x is None else x
    cut = 3 * len(h) // 4
    return probes.probe_features(h[:cut], h[cut:], (x[:cut], y[:cut]), (x[cut:], y[cut:]))


def split(rows):
    return rows[: 3 * len(rows) // 4], rows[3 * len(rows) // 4 :]


def standard(h):
    return (h - h.mean(0)) / h.std(0)


def test_a_probe_finds_what_is_linear_and_only_that():
    z = torch.randn(400, 4, generator=seeded())
    y = (z[:, 0] + z[:, 1] > 0).long()
    assert read(z, y).accuracy > 0.95
    xor = ((z[:, 0] > 0) ^ (z[:, 1] > 0)).long()
    assert read(z, xor).accuracy < 0.7
    assert read(z, xor).labels < 0.02
    # Units and dead features do not matter.
    wide = torch.stack([1000 * z + 5, torch.zeros_like(z)], dim=1)
    assert read(wide, y).accuracy > 0.95
    assert read(wide, y).labels == pytest.approx(read(z, y).labels, abs=0.03)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.3, 0.5])
def test_bits_about_labels_are_those_of_a_binary_channel(p):
    """A fair bit that is turned with probability p: I(H; Y) = 1 - h(p) bits, and a classifier on a bit is exact."""
    y = torch.arange(4000) % 2
    is_turned = torch.arange(4000) // 2 % 100 < 100 * p  # of every 200 exactly so many
    h = (y ^ is_turned.long())[:, None].float()
    bits = 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)
    assert read(h, y).labels == pytest.approx(bits, abs=0.005)
    assert read(torch.randn(4000, 3, generator=seeded(2)), y).labels < 0.01  # nothing to be read


@pytest.mark.parametrize("ratios", [(0.1,), (1.0, 9.0), (100.0, 3.0, 0.0)])
def test_bits_about_images_are_those_of_gaussian_channels(ratios):
    """X = h Q with h_j ~ N(0, s_j^2), seen with noise: I(H; X) = Σ ½ log2 (1 + SNR_j), whatever the rotation Q of X and
    the mixing of the features."""
    d = len(ratios)
    stream = seeded()
    sizes = torch.arange(1, d + 1).double()
    z = torch.randn(20_000, d, generator=stream, dtype=EXACT) * sizes
    noise = torch.randn(20_000, d, generator=stream, dtype=EXACT) * sizes
    h = z * torch.tensor(ratios, dtype=EXACT).sqrt() + noise
    turn, mix = (
        torch.linalg.qr(torch.randn(d, d, generator=stream, dtype=EXACT)).Q for _ in range(2)
    )
    bits = sum(math.log2(1 + ratio) / 2 for ratio in ratios)
    read_bits = probes.probe_images(*split(standard(h @ mix)), *split(z @ turn))
    assert read_bits == pytest.approx(bits, abs=0.03)


def fused_from(networks, blocks):
    """The networks side by side, unchanged, in so many blocks."""
    clients = [ClientBlocks(network, blocks) for network in networks]
    stages = [
        Stage([client.get_block_with_adaptor(k) for client in clients]) for k in range(blocks)
    ]
    return FusedNetwork(stages, [networks[0].classifier], "average", "sum")


def two_networks(name="cnn"):
    return [build(name, (1, 8, 8), 10, dtype=EXACT, generator=seeded(seed)) for seed in (1, 2)]


def test_probed_features_are_the_layers_outputs():
    networks = two_networks()
    x = torch.rand(4, 1, 8, 8, generator=seeded(), dtype=EXACT)
    outputs, (whole,) = (
        of(fused_from(networks, 1), x)
        for of in (probes.compute_layer_outputs, probes.compute_block_outputs)
    )
    assert len(outputs) == 4 and all(len(of_clients) == 2 for of_clients in outputs)
    for m, network in enumerate(networks):
        torch.testing.assert_close(outputs[1][m], network.body[:2](x))
        torch.testing.assert_close(
            outputs[-1][m].flatten(1), whole[m]
        )  # not fused, the last block ends there
    first, last = probes.compute_block_outputs(fused_from(networks, 2), x)
    for m, network in enumerate(networks):
        torch.testing.assert_close(first[m], network.body[:2](x).flatten(1))
    joined = (first[0] + first[1]).view(4, *networks[0].body[:2](x).shape[1:]) / 2
    torch.testing.assert_close(last[1], networks[1].body[2:](joined).flatten(1))


def test_a_mean_is_probed_as_a_mean_and_each_client_alone():
    """Two noisy copies of the same code: their mean tells more than either, which nobody has to fuse."""
    y = torch.arange(4).repeat(100)
    code = torch.eye(4)[y]
    train, test = (
        [[code + 1.2 * torch.randn(400, 4, generator=seeded(m + s)) for m in range(6)]]
        for s in (1, 50)
    )
    samples = torch.rand(400, 1, 2, 2, generator=seeded()), y
    ((each, of_mean),) = probes.probe_features_of_layers(train, test, samples, samples)
    assert len(each) == 6 and of_mean.accuracy > max(one.accuracy for one in each) + 0.1
    assert of_mean.labels > max(one.labels for one in each) + 0.2
    ((few, same),) = probes.probe_features_of_layers(train, test, samples, samples, max_clients=2)
    assert few == each[:2] and same == of_mean


def test_what_cannot_be_probed():
    x = torch.rand(4, 1, 8, 8, generator=seeded(), dtype=EXACT)
    with pytest.raises(UsageError, match="fused from 2 blocks; run FuseFL with blocks=1"):
        probes.compute_layer_outputs(fused_from(two_networks(), 2), x)
    narrow = torch.rand(4, 3)
    wide = torch.rand(4, 5)
    with pytest.raises(UsageError, match="differ in shape"):
        next(
            probes.probe_features_of_layers(
                [[narrow, wide]], [[narrow, wide]], (x, torch.arange(4)), (x, torch.arange(4))
            )
        )
