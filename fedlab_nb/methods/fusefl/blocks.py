"""FuseFL's networks: cut into K blocks, F = classifier . H^K ... H^1, and narrow enough that M of them are as large as
one ordinary network.

A branch is client m's adaptor and block as one Sequential. It is what a client sends, and what `network.py` fuses.

An adaptor lets a client's next block read the outputs of all M clients' previous blocks (Eqs. 7 and 8); without it the
next block would have to be M times as wide. It has two parts, so that what all clients share is computed once.
`join_client_outputs` makes one tensor of the M outputs: their mean ("average", Eq. 7) or their concatenation along the
channels ("conv", Eq. 8). `make_adaptor_layers` makes client m's own layer in front of its block: none for the
mean; for the concatenation a 1x1 convolution with bias (a linear layer if the outputs are vectors). No normalisation
or activation follows it.
"""

import copy
import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ...data.dataset import SampleShape
from ...errors import UsageError, check_whole_number
from ...models import MODELS, Network
from ...models.build import (
    choose_default_width,
    initialise_parameters_in_place,
    make_initialised_layer,
)
from ...models.network import Architecture
from ...tensor_types import FeatureMaps
from ..context import ClientIndex

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
# "conv": each client's own 1x1 convolution over all clients' channels. "average": their mean, without parameters.
ConvOrAverage = Literal["conv", "average"]
ADAPTORS: tuple[ConvOrAverage, ...] = get_args(ConvOrAverage)


def narrow_architecture(architecture: Architecture, client_count: int) -> Architecture:
    """The architecture with 1/sqrt(M) of its width, rounded; if its width is 64, with the paper's own width for M.

    The number of weights grows with the square of the width, so M such networks have about as many as an ordinary one.
    """
    name, input_shape, classes, width = architecture
    if width is None:
        width = choose_default_width(name, input_shape)
    narrow_width = round(width / math.sqrt(client_count))
    if width == 64:
        narrow_width = PAPER_WIDTHS.get(client_count, narrow_width)
    smallest = MODELS[name].widths[0]
    return name, input_shape, classes, max(smallest, narrow_width)


def cut_into_blocks(network: Network, block_count: int) -> list[list[nn.Module]]:
    """The layers of `network.body` in K = `block_count` consecutive blocks.

    They are cut where the paper cuts them, otherwise as evenly as possible. A last layer without parameters (the pool)
    stays with the one before it, unless every layer is a block of its own. UsageError if there are fewer than K layers.
    """
    layers = list(network.body)
    name = network.architecture[0]
    hint = f"{name} has {len(layers)} layers to cut between"
    block_count = check_whole_number("blocks", block_count, 1, len(layers), hint=hint)
    if block_count in CUTS.get(name, {}):
        ends = [last + 1 for last in CUTS[name][block_count]]
    else:
        count = len(layers)
        if block_count < count and not list(layers[-1].parameters()):
            count -= 1
        # Block j ends at j * count / block_count, rounded to the nearest whole number.
        ends = [(2 * j * count + block_count) // (2 * block_count) for j in range(1, block_count)]
    starts = [0, *ends]
    ends = [*ends, len(layers)]
    return [layers[start:end] for start, end in zip(starts, ends, strict=True)]


class ClientBlocks:
    """Client m's network in K blocks, which are trained and sent one after the other.

    `blocks[k]` are the layers of block k, counted from 0. `adaptors[k]` are those of the adaptor in front of it; the
    list is empty until that adaptor is made.
    """

    def __init__(self, network: Network, blocks: int) -> None:
        self.architecture = network.architecture
        self.classifier = network.classifier
        self.blocks = cut_into_blocks(network, blocks)
        self.adaptors: list[list[nn.Module]] = [[] for _ in self.blocks]

    @torch.no_grad()
    def measure_block_output_shapes(self) -> list[SampleShape]:
        """Shape of the output of each block, (c, h, w) or (d,), before any adaptor is in place."""
        like = self.classifier.weight
        input_shape = self.architecture[1]
        x = torch.zeros(1, *input_shape, dtype=like.dtype, device=like.device)
        shapes = []
        for k in range(len(self.blocks)):
            x = copy.deepcopy(self.get_block_with_adaptor(k)).eval()(x)
            shapes.append(tuple(x.shape[1:]))
        return shapes

    def redraw_weights_from_block_upwards(
        self, block_index: int, generator: torch.Generator
    ) -> None:
        """Draw new first weights for a block, all above it and the classifier, in place."""
        upper_layers = nn.Sequential(
            *self._list_layers_from_block_upwards(block_index), self.classifier
        )
        initialise_parameters_in_place(upper_layers, generator)

    def get_block_with_adaptor(self, block_index: int) -> nn.Sequential:
        """Block k with its adaptor: what is sent."""
        return nn.Sequential(*self.adaptors[block_index], *self.blocks[block_index])

    def make_network_from_block_upwards(
        self, block_index: int, layers_in_front: Sequence[nn.Module] = ()
    ) -> Network:
        """The network that trains in a round: the layers in front, the block, all above it and the classifier.

        Nothing is copied: training it changes these blocks.
        """
        layers = [
            *layers_in_front,
            *self.adaptors[block_index],
            *self._list_layers_from_block_upwards(block_index),
        ]
        architecture = (*self.architecture, block_index) if block_index else self.architecture
        return make_network_of_layers(layers, self.classifier, architecture)

    def _list_layers_from_block_upwards(self, block_index: int) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for block_layers in self.blocks[block_index:]:
            layers += block_layers
        return layers


def make_network_of_layers(
    layers: Sequence[nn.Module], classifier: nn.Linear, architecture: Architecture
) -> Network:
    """The network of these layers and this classifier; nothing is copied."""
    # On "meta", where no weights are drawn: the classifier that Network makes is replaced at once.
    with torch.device("meta"):
        network = Network(layers, classifier.in_features, architecture)
    network.classifier = classifier
    return network


# ---------------------------------------------------------------------------------------------------------- adaptors
def join_client_outputs(
    adaptor_kind: ConvOrAverage, client_outputs: Sequence[FeatureMaps]
) -> FeatureMaps:
    """One tensor of M outputs `[N, c_m, ...]`: "conv" gives `[N, sum c_m, ...]`, "average" their mean `[N, c, ...]`."""
    if adaptor_kind == "conv":
        return torch.cat(list(client_outputs), dim=1)
    return sum_tensors(client_outputs) / len(client_outputs)


def sum_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Sum of M tensors of one shape."""
    return sum(tensors[1:], tensors[0])


def compute_joined_shape(
    adaptor_kind: ConvOrAverage, shape_of_each_client_output: Sequence[SampleShape]
) -> SampleShape:
    """The shape of what `join_client_outputs` returns for outputs of these shapes, all without the sample axis."""
    channels = shape_of_each_client_output[0][0]
    if adaptor_kind == "conv":
        channels = sum(shape[0] for shape in shape_of_each_client_output)
    return channels, *shape_of_each_client_output[0][1:]


def make_adaptor_layers(
    adaptor_kind: ConvOrAverage,
    shape_of_each_client_output: Sequence[SampleShape],
    client: ClientIndex,
    generator: torch.Generator,
    dtype_device_template: Tensor,
) -> list[nn.Module]:
    """Client m's adaptor as a list of layers: none, or one that maps all clients' channels to client m's own.

    shape_of_each_client_output: (c, h, w) or (d,), without the sample axis
    generator: draws the initial weights, by PyTorch's default formula
    dtype_device_template: a tensor whose dtype and device the layer gets
    """
    if adaptor_kind == "average":
        return []
    inputs = compute_joined_shape(adaptor_kind, shape_of_each_client_output)[0]
    outputs = shape_of_each_client_output[client][0]
    if len(shape_of_each_client_output[client]) == 3:
        return [
            make_initialised_layer(
                nn.Conv2d,
                inputs,
                outputs,
                1,
                generator=generator,
                dtype_device_template=dtype_device_template,
            )
        ]
    return [
        make_initialised_layer(
            nn.Linear,
            inputs,
            outputs,
            generator=generator,
            dtype_device_template=dtype_device_template,
        )
    ]


def check_outputs_can_be_joined(
    adaptor_kind: ConvOrAverage,
    shape_of_each_client_output: Sequence[SampleShape],
    block_number_from_1: int,
) -> None:
    """UsageError unless the M outputs of a block can be joined: same map size, and for the mean also same channels.

    block_number_from_1: for the text of the error
    """
    if adaptor_kind == "average":
        different = set(shape_of_each_client_output)
        needed = "one shape"
    else:
        different = {shape[1:] for shape in shape_of_each_client_output}
        needed = "maps of one size"
    if len(different) != 1:
        shapes = ", ".join(
            "x".join(map(str, shape)) for shape in dict.fromkeys(shape_of_each_client_output)
        )
        raise UsageError(
            f"After block {block_number_from_1} the clients have {shapes}, but the "
            f"{adaptor_kind} adaptor needs {needed};"
            " try another."
        )
