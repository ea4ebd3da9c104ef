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


def make_generator(seed=0):
    return torch.Generator().manual_seed(seed)


def probe(h, y, x=None):
    """Fit probes on 3/4 of the samples and measure them on the others; without `x` the images are the features."""
    x = h if x is None else x
    cut = 3 * len(h) // 4
    return probes.probe_features(h[:cut], h[cut:], (x[:cut], y[:cut]), (x[cut:], y[cut:]))


def split(rows):
    return rows[: 3 * len(rows) // 4], rows[3 * len(rows) // 4 :]


def standardise(h):
    return (h - h.mean(0)) / h.std(0)


def test_a_probe_finds_linear_information_and_no_other():
    z = torch.randn(400, 4, generator=make_generator())
    y = (z[:, 0] + z[:, 1] > 0).long()
    assert probe(z, y).accuracy > 0.95
    xor = ((z[:, 0] > 0) ^ (z[:, 1] > 0)).long()
    assert probe(z, xor).accuracy < 0.7
    assert probe(z, xor).labels < 0.02
    # Units and dead features do not matter.
    wide = torch.stack([1000 * z + 5, torch.zeros_like(z)], dim=1)
    assert probe(wide, y).accuracy > 0.95
    assert probe(wide, y).labels == pytest.approx(probe(z, y).labels, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.01, 0.1, 0.3, 0.5])
def test_bits_about_labels_are_those_of_a_binary_channel(p):
    """A fair bit that is turned with probability p: I(H; Y) = 1 - h(p) bits, and a classifier on a bit is exact."""
    y = torch.arange(4000) % 2
    is_turned = torch.arange(4000) // 2 % 100 < 100 * p  # exactly this share of every 200
    h = (y ^ is_turned.long())[:, None].float()
    bits = 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)
    assert probe(h, y).labels == pytest.approx(bits, abs=0.005)
    # Random features tell nothing about labels.
    assert probe(torch.randn(4000, 3, generator=make_generator(2)), y).labels < 0.01


@pytest.mark.parametrize("ratios", [(0.1,), (1.0, 9.0), (100.0, 3.0, 0.0)])
def test_bits_about_images_are_those_of_gaussian_channels(ratios):
    """X = h Q with h_j ~ N(0, s_j^2), seen with noise: I(H; X) = Σ ½ log2 (1 + SNR_j), whatever the rotation Q of X and
    the mixing of the features."""
    d = len(ratios)
    generator = make_generator()
    sizes = torch.arange(1, d + 1).double()
    z = torch.randn(20_000, d, generator=generator, dtype=EXACT) * sizes
    noise = torch.randn(20_000, d, generator=generator, dtype=EXACT) * sizes
    h = z * torch.tensor(ratios, dtype=EXACT).sqrt() + noise
    turn, mix = (
        torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=EXACT)).Q for _ in range(2)
    )
    bits = sum(math.log2(1 + ratio) / 2 for ratio in ratios)
    read_bits = probes.measure_bits_about_images(*split(standardise(h @ mix)), *split(z @ turn))
    assert read_bits == pytest.approx(bits, abs=0.03)


def fuse_unchanged(networks, blocks):
    """Put the networks side by side, unchanged, in so many blocks."""
    clients = [ClientBlocks(network, blocks) for network in networks]
    stages = [
        Stage([client.get_block_with_adaptor(k) for client in clients]) for k in range(blocks)
    ]
    return FusedNetwork(stages, [networks[0].classifier], "average", "sum")


def build_two_networks(name="cnn"):
    return [
        build(name, (1, 8, 8), 10, dtype=EXACT, generator=make_generator(seed)) for seed in (1, 2)
    ]


def test_probed_features_are_the_layers_outputs():
    networks = build_two_networks()
    x = torch.rand(4, 1, 8, 8, generator=make_generator(), dtype=EXACT)
    fused = fuse_unchanged(networks, 1)
    outputs = probes.compute_layer_outputs_of_each_client(fused, x)
    (block_outputs,) = probes.compute_block_outputs_of_each_client(fused, x)
    assert len(outputs) == 4 and all(len(client_outputs) == 2 for client_outputs in outputs)
    for m, network in enumerate(networks):
        torch.testing.assert_close(outputs[1][m], network.body[:2](x))
        # In a network that is not fused, the last block ends at the last layer.
        torch.testing.assert_close(outputs[-1][m].flatten(1), block_outputs[m])
    first_block, last_block = probes.compute_block_outputs_of_each_client(
        fuse_unchanged(networks, 2), x
    )
    for m, network in enumerate(networks):
        torch.testing.assert_close(first_block[m], network.body[:2](x).flatten(1))
    joined = (first_block[0] + first_block[1]).view(4, *networks[0].body[:2](x).shape[1:]) / 2
    torch.testing.assert_close(last_block[1], networks[1].body[2:](joined).flatten(1))


def test_a_mean_is_probed_as_a_mean_and_each_client_alone():
    """Two noisy copies of the same code: their mean tells more than either, which nobody has to fuse."""
    y = torch.arange(4).repeat(100)
    code = torch.eye(4)[y]
    train, test = (
        [[code + 1.2 * torch.randn(400, 4, generator=make_generator(m + s)) for m in range(6)]]
        for s in (1, 50)
    )
    samples = torch.rand(400, 1, 2, 2, generator=make_generator()), y
    ((readings, mean_reading),) = probes.probe_features_of_layers(train, test, samples, samples)
    assert len(readings) == 6
    assert mean_reading.accuracy > max(one.accuracy for one in readings) + 0.1
    assert mean_reading.labels > max(one.labels for one in readings) + 0.2
    ((few_readings, same_mean),) = probes.probe_features_of_layers(
        train, test, samples, samples, max_clients=2
    )
    assert few_readings == readings[:2] and same_mean == mean_reading


def test_networks_that_cannot_be_probed_are_refused():
    x = torch.rand(4, 1, 8, 8, generator=make_generator(), dtype=EXACT)
    with pytest.raises(UsageError, match="fused from 2 blocks; run FuseFL with blocks=1"):
        probes.compute_layer_outputs_of_each_client(fuse_unchanged(build_two_networks(), 2), x)
    narrow = torch.rand(4, 3)
    wide = torch.rand(4, 5)
    with pytest.raises(UsageError, match="differ in shape"):
        next(
            probes.probe_features_of_layers(
                [[narrow, wide]], [[narrow, wide]], (x, torch.arange(4)), (x, torch.arange(4))
            )
        )
