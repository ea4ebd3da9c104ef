"""A network in K blocks (FuseFL): F = classifier . H^K ... H^1, and how narrow a client's network is.

A branch is client m's adaptor and block as one Sequential: it is sent and, in `network.py`, fused.

An adaptor is how a client's next block reads the outputs of all M clients' previous blocks (Eqs. 7 and 8). It has two
parts, so that what is the same for every client is computed once. `join_outputs` makes one tensor of the M
outputs: the mean ("average", Eq. 7) or the concatenation along the channels ("conv", Eq. 8). `make_adaptor`
gives client m's own piece in front of its block: nothing for the mean, a 1x1 convolution (between vectors: a
linear layer) with bias for the concatenation. Nothing normalises or activates what it gives. Without adaptors
the next block would have to be M times as wide.
"""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...errors import UsageError, check_whole_number
from ...models import MODELS, Network
from ...models.build import choose_default_width, initialise, make_layer
from ...models.network import Architecture

# Where the paper cuts: index of the last layer of each block but the last. The stem is layer 0, the pool the last one.
CUTS: dict[str, dict[int, tuple[int, ...]]] = {
    "resnet10": {2: (2,), 3: (0, 2), 4: (0, 2, 3)},
    "resnet18": {
        2: (4,),
        3: (0, 4),
        4: (0, 4, 6),
        8: (0, 1, 2, 3, 5, 7, 8),
    },
    "resnet26": {2: (6,), 3: (0, 6), 4: (0, 6, 9)},
    "vgg9": {3: (1, 3)},  # the paper does not say; at the pools
}
# Widths that the paper used at its clients where the ordinary network has 64, by the number of clients.
PAPER_WIDTHS = {5: 32, 10: 20, 20: 14, 50: 9}
# A 1x1 convolution over the concatenated channels, each client its own; the clients' mean features, without parameters.
ADAPTORS = ("conv", "average")


def narrow_architecture(architecture: Architecture, clients: int) -> Architecture:
    """The architecture with 1/sqrt(M) of its width r_s, rounded; from r_s = 64 the paper's own widths.

    Weights grow with the square of the width, so M such clients hold about as many numbers as one ordinary network.
    """
    name, input_shape, classes, width = architecture
    if width is None:
        width = choose_default_width(name, input_shape)
    narrow_width = round(width / math.sqrt(clients))
    if width == 64:
        narrow_width = PAPER_WIDTHS.get(clients, narrow_width)
    smallest = MODELS[name].widths[0]
    return name, input_shape, classes, max(smallest, narrow_width)


def cut_into_blocks(network: Network, blocks: int) -> list[list[nn.Module]]:
    """The layers of `network.body` in K consecutive blocks: at the paper's places, else as evenly as it goes.

    A last layer without parameters (the pool) stays with the one before it, unless every layer is a block of its own.
    UsageError if the body has fewer than K layers.
    """
    layers = list(network.body)
    name = network.architecture[0]
    hint = f"{name} has {len(layers)} layers to cut between"
    blocks = check_whole_number("blocks", blocks, 1, len(layers), hint=hint)
    if blocks in CUTS.get(name, {}):
        ends = [last + 1 for last in CUTS[name][blocks]]
    else:
        count = len(layers)
        if blocks < count and not list(layers[-1].parameters()):
            count -= 1
        ends = [(2 * j * count + blocks) // (2 * blocks) for j in range(1, blocks)]
    starts = [0, *ends]
    ends = [*ends, len(layers)]
    return [layers[start:end] for start, end in zip(starts, ends, strict=True)]


class Client:
    """Client m's network in K blocks, while they are trained and sent one after the other.

    `blocks[k]` and `adaptors[k]` are the layers of block k (counted from 0) and of the adaptor in front of it, which is
    empty until it is put there.
    """

    def __init__(self, network: Network, blocks: int) -> None:
        self.architecture = network.architecture
        self.classifier = network.classifier
        self.blocks = cut_into_blocks(network, blocks)
        self.adaptors: list[list[nn.Module]] = [[] for _ in self.blocks]

    @torch.no_grad()
    def measure_borders(self) -> list[tuple[int, ...]]:
        """Shape of the output of each block, (c, h, w) or (d,), before any adaptor is in place."""
        like = self.classifier.weight
        input_shape = self.architecture[1]
        x = torch.zeros(1, *input_shape, dtype=like.dtype, device=like.device)
        shapes = []
        for k in range(len(self.blocks)):
            x = copy.deepcopy(self.get_branch(k)).eval()(x)
            shapes.append(tuple(x.shape[1:]))
        return shapes

    def redraw_weights(self, block: int, generator: torch.Generator) -> None:
        """Draw new first weights for block k and everything above it."""
        initialise(nn.Sequential(*self._layers_from(block), self.classifier), generator)

    def get_branch(self, block: int) -> nn.Sequential:
        """Block k with its adaptor: what is sent."""
        return nn.Sequential(*self.adaptors[block], *self.blocks[block])

    def make_upper_network(self, block: int, layers_in_front: Sequence[nn.Module] = ()) -> Network:
        """What trains in round k: `block` k to the last and the classifier, behind other layers; nothing is
        copied."""
        layers = [*layers_in_front, *self.adaptors[block], *self._layers_from(block)]
        architecture = (*self.architecture, block) if block else self.architecture
        return make_network(layers, self.classifier, architecture)

    def _layers_from(self, k: int) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for block in self.blocks[k:]:
            layers += block
        return layers


def make_network(
    layers: Sequence[nn.Module], classifier: nn.Linear, architecture: Architecture
) -> Network:
    """The network of these layers and this classifier; nothing is copied."""
    # On "meta", as its own classifier is thrown away: no draw from the global random state.
    with torch.device("meta"):
        network = Network(layers, classifier.in_features, architecture)
    network.classifier = classifier
    return network


# ---------------------------------------------------------------------------------------------------------- adaptors
def join_outputs(kind: str, outputs: Sequence[Tensor]) -> Tensor:
    """One tensor of M outputs `[N, c_m, ...]`: "conv" gives `[N, sum c_m, ...]`, "average" their mean `[N, c, ...]`."""
    if kind == "conv":
        return torch.cat(list(outputs), dim=1)
    return sum_tensors(outputs) / len(outputs)


def sum_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Sum of M tensors of one shape."""
    return sum(tensors[1:], tensors[0])


def compute_joined_shape(kind: str, borders: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape of what `join_outputs` gives, without the sample axis, for outputs of the shapes `measure_borders`."""
    channels = borders[0][0]
    if kind == "conv":
        channels = sum(shape[0] for shape in borders)
    return channels, *borders[0][1:]


def make_adaptor(
    kind: str,
    borders: Sequence[tuple[int, ...]],
    client: int,
    generator: torch.Generator,
    like: Tensor,
) -> list[nn.Module]:
    """Client m's adaptor as a list of layers: none, or one that maps all clients' channels to client m's own.

    `measure_borders`: shape of each client's output, (c, h, w) or (d,), without the sample axis. First weights
    by PyTorch's default formula from `generator`, on the device and in the dtype of `like`.
    """
    if kind == "average":
        return []
    inputs = compute_joined_shape(kind, borders)[0]
    outputs = borders[client][0]
    if len(borders[client]) == 3:
        return [make_layer(nn.Conv2d, inputs, outputs, 1, generator=generator, like=like)]
    return [make_layer(nn.Linear, inputs, outputs, generator=generator, like=like)]


def check_borders(kind: str, borders: Sequence[tuple[int, ...]], block: int) -> None:
    """UsageError unless the M outputs of `block` can be joined: same map size, and for the mean also same channels."""
    if kind == "average":
        different = set(borders)
        needed = "one shape"
    else:
        different = {shape[1:] for shape in borders}
        needed = "maps of one size"
    if len(different) != 1:
        shapes = ", ".join("x".join(map(str, shape)) for shape in dict.fromkeys(borders))
        raise UsageError(
            f"After block {block} the clients have {shapes}, but the {kind} adaptor needs {needed};"
            " try another."
        )
