"""What a layer's features are worth: linear probes (FuseFL, section 6), and mutual information of small tables.

    probe_network(network, *train, *test)       # accuracy after each layer of one client's network
    probe_fused(fused, *train, *test)           # after each fused block: the mean over the M clients' features

A probe is a fresh linear classifier on frozen, flattened features. It is trained on the *whole* training set: a
measurement from outside, which no party of the federation could make, and never a part of a method.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...models import Network
from ...rng import generator
from ...training import Recipe, accuracy, in_chunks
from ...training.loop import train_loop
from .adaptors import fresh
from .blocks import FusedNetwork

# The paper's probe trains 10 epochs at 0.01 with Nesterov momentum; here features are rescaled, so that it converges.
PROBE = Recipe(epochs=10, batch_size=128, lr=0.05, momentum=0.9, weight_decay=1e-4)


def linear_probe(
    x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, *, recipe: Recipe = PROBE, seed: int = 0
) -> float:
    """Test accuracy, 0-1, of a linear classifier on features `x [N, ...]`, brought to mean 0 and variance 1."""
    x, x_test = x.flatten(1), x_test.flatten(1)
    centre, scale = x.mean(0), x.std(0)
    scale = torch.where(scale > 0, scale, 1)
    classes = int(max(y.max(), y_test.max())) + 1
    probe = fresh(lambda: nn.Linear(x.shape[1], classes), generator(seed, "probe"), x)
    for _ in train_loop([probe], [((x - centre) / scale, y)], recipe, [generator(seed, "probe", "batches")]):
        pass
    with torch.no_grad():
        return accuracy(probe((x_test - centre) / scale).argmax(1), y_test)


def layer_outputs(network: Network, x: Tensor) -> list[Tensor]:
    """Output of every layer of `network.body` in eval mode, `[N, ...]` each, bottom to top."""
    network.eval()
    found = []
    for layer in network.body:
        x = in_chunks(layer, x)
        found.append(x)
    return found


def fused_outputs(fused: FusedNetwork, x: Tensor) -> list[Tensor]:
    """Mean over the clients of every fused block's M outputs (of one shape), flat `[N, D_k]` each, bottom to top."""

    def flat_means(part: Tensor) -> Tensor:
        return torch.cat([(sum(own) / len(own)).flatten(1) for own in fused.outputs(part)], 1)

    with torch.no_grad():
        widths = [own[0][0].numel() for own in fused.eval().outputs(x[:1])]
    return list(in_chunks(flat_means, x).split(widths, 1))


def probe_network(network: Network, x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, **options) -> list[float]:
    """Probe accuracy after each layer of one network."""
    layers = zip(layer_outputs(network, x), layer_outputs(network, x_test), strict=True)
    return [linear_probe(train, y, test, y_test, **options) for train, test in layers]


def probe_fused(fused: FusedNetwork, x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, **options) -> list[float]:
    """Probe accuracy after each fused block."""
    blocks = zip(fused_outputs(fused, x), fused_outputs(fused, x_test), strict=True)
    return [linear_probe(train, y, test, y_test, **options) for train, test in blocks]


def mutual_information(joint: Tensor) -> Tensor:
    """I(A; B) in nats of a table of probabilities `[A, B]`.

    With it FuseFL's Lemma 3.1 can be tried on tables: where label Y and nuisance R are independent, features H of X
    satisfy I(H; R) <= I(H; X) - I(H; Y); inside one client, where they are not, the bound fails.
    """
    joint = joint.double() / joint.sum()
    independent = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    return (torch.xlogy(joint, joint) - torch.xlogy(joint, independent)).sum()
