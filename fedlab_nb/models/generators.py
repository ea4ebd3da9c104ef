"""Generators of synthetic samples: z [N, nz] -> images [N, C, H, W] in [0, 1], recordings [N, C, T], or rows [N, D].

In short: `build_generator(input_shape, width=16, latent=32, generator=stream)` -> nn.Module with `.latent`,
`.forward(z)`; `initialise_generator(module, stream)` draws all its weights anew. Images of any size and any number of
channels.

The network is the one of DENSE, DAFL and Co-Boosting: a linear map to a quarter of the image's side, then twice
"double the side, convolve", batch norm throughout, by the statistics of the synthetic batch. Weights come from the
`torch.Generator` passed in, never from global state. Nothing is trained here.
"""

import math
from math import prod

import torch
from torch import Tensor, nn

from ..errors import check_whole_number
from . import batch_last
from .batch_last import UpConv2d
from .state import allocate_memory

# On a CPU, images of more pixels than this run faster as channels_last, where the batch is not last.
CHANNELS_LAST_PIXELS = 16 * 16
SLOPE = 0.2  # of LeakyReLU
SPREAD = 0.02  # standard deviation of the initial weights


class Generator(nn.Module):
    """`layers`, one after the other, that make samples of z `[N, latent]`.

    `batch_last`: on a CPU, compute with the batch as the last dimension (`batch_last.py`).
    """

    def __init__(self, latent: int, *layers: nn.Module, batch_last: bool = False) -> None:
        super().__init__()
        self.latent = latent
        self.net = nn.Sequential(*layers)
        self.batch_last = batch_last

    def forward(self, z: Tensor) -> Tensor:
        if self.batch_last and z.device.type == "cpu":
            return batch_last.run_layers(self.net, z)
        return self.net(z)


def make_batch_norm(channels: int, kind: type = nn.BatchNorm2d, **options: bool) -> nn.Module:
    """Batch normalisation that always uses the statistics of the current batch: no running ones are kept."""
    return kind(channels, track_running_stats=False, **options)


def build_image_generator(input_shape: tuple[int, ...], width: int, latent: int) -> Generator:
    """Linear(nz → 2w·h·h'), BN, ×2, Conv3(2w → 2w), BN, LeakyReLU, ×2, Conv3(2w → w), BN, LeakyReLU, Conv3(w → C),
    sigmoid.

    w is `width`, h and h' a quarter of the image's sides, rounded up; ×2 is nearest-neighbour up-sampling to half the
    side, rounded up, then to the side itself. width 64, latent 256, 3x32x32: 2,328,899 parameters, the papers'
    generator.
    """
    channels, *sides = input_shape
    quarter = tuple(math.ceil(side / 4) for side in sides)
    half = tuple(math.ceil(side / 2) for side in sides)
    return Generator(
        latent,
        nn.Linear(latent, 2 * width * prod(quarter)),
        nn.Unflatten(1, (2 * width, *quarter)),
        make_batch_norm(2 * width),
        UpConv2d(2 * width, 2 * width, half),
        make_batch_norm(2 * width),
        nn.LeakyReLU(SLOPE),
        UpConv2d(2 * width, width, tuple(sides)),
        make_batch_norm(width),
        nn.LeakyReLU(SLOPE),
        nn.Conv2d(width, channels, 3, padding=1),
        nn.Sigmoid(),
        batch_last=batch_last.are_divisible_by_four(sides),
    )


def build_row_generator(input_shape: tuple[int, ...], width: int, latent: int) -> Generator:
    """For feature rows and recordings: two hidden layers of 4·width units.

    The output is normalised over the batch to mean 0 and variance 1, as such samples are standardised. Not in the
    papers, which have images only.
    """
    hidden = 4 * width
    features = prod(input_shape)
    return Generator(
        latent,
        nn.Linear(latent, hidden),
        make_batch_norm(hidden, nn.BatchNorm1d),
        nn.LeakyReLU(SLOPE),
        nn.Linear(hidden, hidden, bias=False),
        make_batch_norm(hidden, nn.BatchNorm1d),
        nn.LeakyReLU(SLOPE),
        nn.Linear(hidden, features),
        make_batch_norm(features, nn.BatchNorm1d, affine=False),
        nn.Unflatten(1, input_shape) if len(input_shape) > 1 else nn.Identity(),
    )


def build_generator(
    input_shape: tuple[int, ...],
    *,
    width: int = 64,
    latent: int = 256,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Generator:
    """A generator for samples (C, H, W), (C, T) or (D,), freshly drawn, in train mode. UsageError for sizes below 1.

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
    allocate_memory(network)
    initialise_generator(network, generator)
    network = network.to(device, dtype)
    is_large = makes_images and prod(input_shape[1:]) > CHANNELS_LAST_PIXELS
    if is_large and not network.batch_last and torch.device(device).type == "cpu":
        network = network.to(memory_format=torch.channels_last)
    return network


@torch.no_grad()
def initialise_generator(module: nn.Module, generator: torch.Generator) -> None:
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
