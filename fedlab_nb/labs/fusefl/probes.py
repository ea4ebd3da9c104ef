"""What a layer's features are worth: linear probes (FuseFL, section 6).

    probe_network(network, *train, *test)       # accuracy after each layer of one client's network, one by one
    probe_fused(fused, *train, *test)           # after each fused block: of the mean over the clients' features

A probe is a fresh linear classifier on frozen, flattened features. It is trained on the *whole* training set: a
measurement from outside, which no party of the federation could make, and never a part of a method.

The two are not like with like: a mean over M clients' features can be more separable than one client's without any
fusing. It is what the authors' code measures.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ...methods.fusefl.blocks import fresh
from ...methods.fusefl.network import FusedNetwork
from ...models import Network
from ...rng import generator
from ...training import Recipe, accuracy, in_chunks
from ...training.loop import train_loop

# The paper's probe trains 10 epochs at 0.01 with Nesterov momentum; here features are rescaled, so that it converges.
PROBE = Recipe(epochs=10, batch_size=128, lr=0.05, momentum=0.9, weight_decay=1e-4)


def linear_probe(x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor) -> float:
    """Test accuracy, 0-1, of a linear classifier on features `x [N, ...]`, brought to mean 0 and variance 1."""
    x, x_test = x.flatten(1), x_test.flatten(1)
    centre, scale = x.mean(0), x.std(0)
    scale = torch.where(scale > 0, scale, 1)
    classes = int(max(y.max(), y_test.max())) + 1
    probe = fresh(nn.Linear, x.shape[1], classes, generator=generator(0, "probe"), like=x)
    for _ in train_loop([probe], [((x - centre) / scale, y)], PROBE, [generator(0, "probe", "batches")]):
        pass
    with torch.no_grad():
        return accuracy(probe((x_test - centre) / scale).argmax(1), y_test)


def layer_outputs(network: Network, x: Tensor) -> list[Tensor]:
    """Output of every layer of `network.body` in eval mode, `[N, ...]` each, bottom to top."""
    network.eval()
    return [x := in_chunks(layer, x) for layer in network.body]


def fused_outputs(fused: FusedNetwork, x: Tensor) -> list[Tensor]:
    """Mean over the clients of every fused block's M outputs (of one shape), flat `[N, D_k]` each, bottom to top."""

    def flat_means(part: Tensor) -> Tensor:
        return torch.cat([(sum(own) / len(own)).flatten(1) for own in fused.outputs(part)], 1)

    with torch.no_grad():
        widths = [own[0][0].numel() for own in fused.eval().outputs(x[:1])]
    return list(in_chunks(flat_means, x).split(widths, 1))


def probe_network(network: Network, x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor) -> Iterator[float]:
    """Probe accuracy after each layer of one network."""
    for train, test in zip(layer_outputs(network, x), layer_outputs(network, x_test), strict=True):
        yield linear_probe(train, y, test, y_test)


def probe_fused(fused: FusedNetwork, x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor) -> Iterator[float]:
    """Probe accuracy after each fused block."""
    for train, test in zip(fused_outputs(fused, x), fused_outputs(fused, x_test), strict=True):
        yield linear_probe(train, y, test, y_test)
