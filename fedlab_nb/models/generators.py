"""Generators of synthetic samples: z [N, nz] -> images [N, C, H, W] in [0, 1], recordings [N, C, T], or rows [N, D].

In short: `build_generator(input_shape, width=16, latent=32, generator=stream)` gives an nn.Module with `.latent` and
`.forward(z)`; `initialise_generator_in_place(module, stream)` draws all its weights anew. Images may have any size
and any number of channels.

The network is the one of DENSE, DAFL and Co-Boosting: a linear map to a quarter of the image's side, then twice an
up-sampling to double the side and a convolution. Batch norm is used throughout, always with the statistics of the
synthetic batch. Weights are drawn from the `torch.Generator` passed in, never from global state. Nothing is trained
here.
"""

import math
from math import prod

import torch
from torch import nn

from ..errors import check_whole_number
from ..tensor_types import Images, Noise
from ..value_types import SampleShape
from . import batch_last
from .batch_last import UpConv2d
from .state import allocate_uninitialised_parameters_on_cpu

# On a CPU, images of more pixels than this run faster in channels_last, if `batch_last.py` cannot be used.
CHANNELS_LAST_PIXELS = 16 * 16
SLOPE = 0.2  # of LeakyReLU
SPREAD = 0.02  # standard deviation of the initial weights


class Generator(nn.Module):
    """A sequence of `layers` that turns noise z `[N, latent]` into samples.

    `batch_last`: on a CPU, compute with the batch as the last dimension (`batch_last.py`).
    """

    def __init__(self, latent: int, *layers: nn.Module, batch_last: bool = False) -> None:
        super().__init__()
        self.latent = latent
        self.net = nn.Sequential(*layers)
        self.batch_last = batch_last

    def forward(self, noise: Noise) -> Images:
        if self.batch_last and noise.device.type == "cpu":
            return batch_last.run_image_generator_layers(self.net, noise)
        return self.net(noise)


def make_batch_norm_without_running_statistics(
    channels: int, layer_class: type = nn.BatchNorm2d, **options: bool
) -> nn.Module:
    """Batch normalisation that always uses the statistics of the current batch and keeps no running ones."""
    return layer_class(channels, track_running_stats=False, **options)


def build_image_generator(input_shape: SampleShape, width: int, latent_size: int) -> Generator:
    """A generator of images: Linear(nz → 2w·h·h'), BN, ×2, Conv3(2w → 2w), BN, LeakyReLU, ×2, Conv3(2w → w), BN,
    LeakyReLU, Conv3(w → C), sigmoid.

    w is `width`; h and h' are a quarter of the image's sides, rounded up. ×2 is nearest-neighbour up-sampling: first to
    half the side, rounded up, then to the side itself. With width 64, latent size 256 and images of 3x32x32 it is the
    papers' generator, of 2,328,899 parameters.
    """
    channels, *sides = input_shape
    quarter = tuple(math.ceil(side / 4) for side in sides)
    half = tuple(math.ceil(side / 2) for side in sides)
    return Generator(
        latent_size,
        nn.Linear(latent_size, 2 * width * prod(quarter)),
        nn.Unflatten(1, (2 * width, *quarter)),
        make_batch_norm_without_running_statistics(2 * width),
        UpConv2d(2 * width, 2 * width, half),
        make_batch_norm_without_running_statistics(2 * width),
        nn.LeakyReLU(SLOPE),
        UpConv2d(2 * width, width, tuple(sides)),
        make_batch_norm_without_running_statistics(width),
        nn.LeakyReLU(SLOPE),
        nn.Conv2d(width, channels, 3, padding=1),
        nn.Sigmoid(),
        batch_last=batch_last.are_all_divisible_by_four(sides),
    )


def build_row_generator(input_shape: SampleShape, width: int, latent_size: int) -> Generator:
    """A generator of feature rows or recordings: two hidden layers of 4·width units.

    Such samples are standardised, so the output is normalised over the batch to mean 0 and variance 1. The papers have
    no such generator, as they use images only.
    """
    hidden = 4 * width
    features = prod(input_shape)
    reshape: nn.Module = nn.Identity()
    if len(input_shape) > 1:
        reshape = nn.Unflatten(1, input_shape)
    return Generator(
        latent_size,
        nn.Linear(latent_size, hidden),
        make_batch_norm_without_running_statistics(hidden, nn.BatchNorm1d),
        nn.LeakyReLU(SLOPE),
        nn.Linear(hidden, hidden, bias=False),
        make_batch_norm_without_running_statistics(hidden, nn.BatchNorm1d),
        nn.LeakyReLU(SLOPE),
        nn.Linear(hidden, features),
        make_batch_norm_without_running_statistics(features, nn.BatchNorm1d, affine=False),
        reshape,
    )


def build_generator(
    input_shape: SampleShape,
    *,
    width: int = 64,
    latent: int = 256,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Generator:
    """A generator of samples (C, H, W), (C, T) or (D,), freshly drawn, in train mode. UsageError for sizes below 1.

    >>> g = build_generator((1, 8, 8), width=4, latent=16, generator=torch.Generator())
    >>> g(torch.zeros(5, 16)).shape
    torch.Size([5, 1, 8, 8])
    """
    width = check_whole_number("width of the generator", width, 1, 1024)
    latent = check_whole_number("latent size", latent, 1, 100_000)
    with torch.device("meta"):  # no draw from the global random state
        makes_images = len(input_shape) == 3
        if makes_images:
            network = build_image_generator(input_shape, width, latent)
        else:
            network = build_row_generator(input_shape, width, latent)
    allocate_uninitialised_parameters_on_cpu(network)
    initialise_generator_in_place(network, generator)
    network = network.to(device, dtype)
    is_large = makes_images and prod(input_shape[1:]) > CHANNELS_LAST_PIXELS
    if is_large and not network.batch_last and torch.device(device).type == "cpu":
        network = network.to(memory_format=torch.channels_last)
    return network


@torch.no_grad()
def initialise_generator_in_place(module: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights anew: linear and convolution weights N(0, 0.02²), batch-norm scales N(1, 0.02²), all shifts 0.

    Drawn in float32 on the CPU, in the order of `module.modules()`, so that device and dtype change nothing.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            centre = 0.0
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            centre = 1.0
        else:
            continue
        if layer.weight is None:
            continue
        values = torch.empty(layer.weight.shape)
        layer.weight.copy_(values.normal_(centre, SPREAD, generator=generator))
        if layer.bias is not None:
            layer.bias.zero_()
