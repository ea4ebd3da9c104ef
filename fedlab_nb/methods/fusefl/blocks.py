"""A network in K blocks (FuseFL): F = classifier . H^K ... H^1, and how narrow a client's network is.

A branch is client m's adaptor and block as one Sequential: what is shipped and, in `network`, fused.

An adaptor is how a client's next block reads the outputs of all M clients' previous blocks (Eqs. 7 and 8).
Two parts, so that what is the same for every client is computed once. `join` makes one tensor of the M outputs: the
mean ("average", Eq. 7) or the concatenation along the channels ("conv", Eq. 8). `adaptor` is client m's own piece in
front of its block: nothing for the mean, a 1x1 convolution (between vectors: a linear layer) with bias for the
concatenation. Nothing normalises or activates what it gives. Without adaptors the next block would have to be M times
as wide.
"""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...errors import demand, whole
from ...models import MODELS, Network
from ...models.build import default_width, initialise, make_layer

# Where the paper cuts: index of the last layer of each block but the last. The stem is layer 0, the pool the last one.
CUTS: dict[str, dict[int, tuple[int, ...]]] = {
    "resnet10": {2: (2,), 3: (0, 2), 4: (0, 2, 3)},
    "resnet18": {2: (4,), 3: (0, 4), 4: (0, 4, 6), 8: (0, 1, 2, 3, 5, 7, 8)},
    "resnet26": {2: (6,), 3: (0, 6), 4: (0, 6, 9)},
    "vgg9": {3: (1, 3)},  # the paper does not say; at the pools
}
# Widths that the paper used at its clients where the ordinary network has 64, by the number of clients.
PAPER_WIDTHS = {5: 32, 10: 20, 20: 14, 50: 9}
# A 1x1 convolution over the concatenated channels, each client its own; the clients' mean features, without parameters.
ADAPTORS = ("conv", "average")


def narrow(architecture: tuple, clients: int) -> tuple:
    """The architecture with 1/sqrt(M) of its width r_s, rounded; from r_s = 64 the paper's own widths.

    Weights grow with the square of the width, so M such clients hold about as many numbers as one ordinary network.
    """
    name, input_shape, classes, width = architecture
    width = default_width(name, input_shape) if width is None else width
    slim = PAPER_WIDTHS.get(clients) if width == 64 else None
    slim = round(width / math.sqrt(clients)) if slim is None else slim
    return name, input_shape, classes, max(MODELS[name].widths[0], slim)


def cut(network: Network, blocks: int) -> list[list[nn.Module]]:
    """The layers of `network.body` in K consecutive blocks: at the paper's places, else as evenly as it goes.

    A last layer without parameters (the pool) stays with the one before it, unless every layer is a block of its own.
    UsageError if the body has fewer than K layers.
    """
    layers, name = list(network.body), network.architecture[0]
    hint = f"{name} has {len(layers)} layers to cut between"
    blocks = whole("blocks", blocks, 1, len(layers), hint=hint)
    if blocks in CUTS.get(name, {}):
        stops = [last + 1 for last in CUTS[name][blocks]]
    else:
        count = len(layers)
        if blocks < count and not list(layers[-1].parameters()):
            count -= 1
        stops = [(2 * j * count + blocks) // (2 * blocks) for j in range(1, blocks)]
    return [
        layers[start:stop] for start, stop in zip([0, *stops], [*stops, len(layers)], strict=True)
    ]


class Client:
    """Client m's network in K blocks, while they are trained and shipped one after the other.

    `blocks[k]` and `adaptors[k]` are the layers of block k (counted from 0) and of the adaptor in front of it, which is
    none before it is put there.
    """

    def __init__(self, network: Network, blocks: int) -> None:
        self.architecture, self.classifier = network.architecture, network.classifier
        self.blocks = cut(network, blocks)
        self.adaptors: list[list[nn.Module]] = [[] for _ in self.blocks]

    @torch.no_grad()
    def borders(self) -> list[tuple[int, ...]]:
        """Shape of the output of each block, (c, h, w) or (d,), before any adaptor is in place."""
        like = self.classifier.weight
        x, shapes = torch.zeros(1, *self.architecture[1], dtype=like.dtype, device=like.device), []
        for k in range(len(self.blocks)):
            x = copy.deepcopy(self.branch(k)).eval()(x)
            shapes.append(tuple(x.shape[1:]))
        return shapes

    def restart(self, k: int, generator: torch.Generator) -> None:
        """Draw block k and everything above it afresh."""
        initialise(nn.Sequential(*sum(self.blocks[k:], []), self.classifier), generator)

    def branch(self, k: int) -> nn.Sequential:
        """Block k with its adaptor: what is shipped."""
        return nn.Sequential(*self.adaptors[k], *self.blocks[k])

    def upper(self, k: int, below: Sequence[nn.Module] = ()) -> Network:
        """What trains in round k: block k to the last and the classifier, on top of `below`; nothing is copied."""
        layers = [*below, *self.adaptors[k], *sum(self.blocks[k:], [])]
        return headed(layers, self.classifier, (*self.architecture, k) if k else self.architecture)


def headed(layers: Sequence[nn.Module], classifier: nn.Linear, architecture: tuple) -> Network:
    """The network of these layers and this classifier; nothing is copied."""
    with torch.device(
        "meta"
    ):  # its own classifier is thrown away; no draw from the global random state
        network = Network(layers, classifier.in_features, architecture)
    network.classifier = classifier
    return network


# ---------------------------------------------------------------------------------------------------------- adaptors
def join(kind: str, outputs: Sequence[Tensor]) -> Tensor:
    """One tensor of M outputs `[N, c_m, ...]`: "conv" gives `[N, sum c_m, ...]`, "average" their mean `[N, c, ...]`."""
    return torch.cat(list(outputs), dim=1) if kind == "conv" else added(outputs) / len(outputs)


def added(outputs: Sequence[Tensor]) -> Tensor:
    """Sum of M tensors of one shape."""
    return sum(outputs[1:], outputs[0])


def joined(kind: str, borders: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape of `join`'s answer, without the sample axis, for outputs of the shapes `borders`."""
    return (
        sum(shape[0] for shape in borders) if kind == "conv" else borders[0][0],
        *borders[0][1:],
    )


def adaptor(
    kind: str, borders: Sequence[tuple[int, ...]], m: int, generator: torch.Generator, like: Tensor
) -> list[nn.Module]:
    """Client m's adaptor as a list of layers: none, or one that maps all clients' channels to client m's own.

    `borders`: shape of each client's output, (c, h, w) or (d,), without the sample axis. First weights by PyTorch's
    default formula from `generator`, on the device and in the dtype of `like`.
    """
    if kind == "average":
        return []
    inputs, outputs = joined(kind, borders)[0], borders[m][0]
    if len(borders[m]) == 3:
        return [make_layer(nn.Conv2d, inputs, outputs, 1, generator=generator, like=like)]
    return [make_layer(nn.Linear, inputs, outputs, generator=generator, like=like)]


def check_borders(kind: str, borders: Sequence[tuple[int, ...]], block: int) -> None:
    """UsageError unless the M outputs of `block` can be joined: same map size, and for the mean also same channels."""
    shapes = ", ".join("x".join(map(str, shape)) for shape in dict.fromkeys(borders))
    wanted = "one shape" if kind == "average" else "maps of one size"
    alike = len({shape if kind == "average" else shape[1:] for shape in borders}) == 1
    demand(
        alike,
        f"After block {block} the clients have {shapes}, but the {kind} adaptor needs {wanted}; try another.",
    )
