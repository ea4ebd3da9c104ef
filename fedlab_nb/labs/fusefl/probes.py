"""What a layer's features are worth: linear probes (FuseFL, section 6).

    for each, mean in probe(layers_of(isolated), ...): ...     # after each layer of networks that nobody fused (K = 1)
    for each, mean in probe(blocks_of(fused), ...): ...        # after each fused block

A probe is a fresh linear classifier on frozen, flattened features. It is trained on the *whole* training set: a
measurement from outside, which no party of the federation could make, and never a part of a method.

There are four curves: the features of single clients (`each`) and the mean over the clients of their features (`mean`),
with and without fusing. A mean over M clients is more separable than one client without any fusing, so only curves of
one kind can be compared. The paper's picture (as the authors' code makes it) compares a fused mean with an isolated
client.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ...errors import demand
from ...methods.fusefl.blocks import fresh
from ...methods.fusefl.network import FusedNetwork
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


Outputs = list[list[Tensor]]  # [L][M]: after each layer, of each client, `[N, ...]`


@torch.no_grad()
def layers_of(isolated: FusedNetwork, x: Tensor) -> Outputs:
    """Output of every layer of every client's own network, bottom to top; `isolated`: fused with K = 1.

    UsageError where blocks are fused, or the networks differ in depth.
    """
    (stage,) = demanded(isolated)
    of_clients = []
    for branch in stage.branches:
        out, own = x, []
        for layer in branch:
            own.append(out := in_chunks(layer, out))
        of_clients.append(own)
    demand(
        len({len(own) for own in of_clients}) == 1,
        "The clients' networks differ in shape or depth, so their features have no mean to probe.",
    )
    return [list(layer) for layer in zip(*of_clients, strict=True)]


def demanded(isolated: FusedNetwork) -> nn.ModuleList:
    demand(
        len(isolated.stages) == 1,
        f"These networks are fused from {len(isolated.stages)} blocks; run FuseFL with blocks=1 for isolated ones.",
    )
    return isolated.eval().stages


@torch.no_grad()
def blocks_of(fused: FusedNetwork, x: Tensor) -> Outputs:
    """The M outputs of every fused block, flat `[N, D]` each, bottom to top."""
    sizes = [[own[0].numel() for own in stage] for stage in fused.eval().outputs(x[:1])]

    def flat(part: Tensor) -> Tensor:
        return torch.cat([own.flatten(1) for stage in fused.outputs(part) for own in stage], 1)

    parts = iter(in_chunks(flat, x).split([size for stage in sizes for size in stage], 1))
    return [[next(parts) for _ in stage] for stage in sizes]


def probe(
    train: Outputs, y: Tensor, test: Outputs, y_test: Tensor, most: int | None = None
) -> Iterator[tuple[list[float], float]]:
    """After each layer: probe accuracies on the features of each client (of the first `most`), and on their mean over
    all clients. UsageError where features differ in shape, as these have no mean."""
    for own, held in zip(train, test, strict=True):
        demand(
            len({of.shape for of in own}) == 1,
            "The clients' networks differ in shape or depth, so their features have no mean to probe.",
        )
        each = [linear_probe(a, y, b, y_test) for a, b in list(zip(own, held, strict=True))[:most]]
        yield each, linear_probe(sum(own) / len(own), y, sum(held) / len(held), y_test)
