"""The plain networks: perceptrons, FedLPA's five-layer CNN, LeNet-5, the two that DENSE works with, VGG-9, the
network of FuseFL's comparison with FedMA, and VGG-11 with batch norm (Co-Boosting).

Each function returns the blocks of a `Network` and D, the length of its feature vector. The convolutional ones take
images of any size from 8x8 on; small images are padded, so that their maps do not vanish. Pooling comes before ReLU:
max-pooling and ReLU give the same numbers and gradients in either order, and in this one ReLU has only a quarter of the
map to read.
"""

from math import prod

from torch import nn

from ..value_types import ImageShape, RecordingShape, SampleShape
from .network import BlocksAndFeatureCount, compute_feature_map_side

MLP_SMALL_INPUT = 256  # inputs of up to so many numbers get the small perceptron


def choose_mlp_width(input_shape: SampleShape) -> int:
    """Default width of the first hidden layer: 64 for inputs of at most 256 numbers, otherwise 256."""
    return 64 if prod(input_shape) <= MLP_SMALL_INPUT else 256


def build_mlp_blocks(input_shape: SampleShape, width: int) -> BlocksAndFeatureCount:
    """Two hidden layers: `width` and `width // 2` for inputs of at most 256 numbers, else `width` and `width // 4`.

    The defaults are 64-32 and FedLPA's 256-64, which has 218,058 parameters for 28x28 images and 10 classes. (FedLPA's
    paper prints 217,930, which would fit a second layer of 255 x 64 numbers instead of 257 x 64.)
    """
    inputs = prod(input_shape)
    divisor = 2 if inputs <= MLP_SMALL_INPUT else 4
    second_width = max(1, width // divisor)
    first_layer = nn.Sequential(nn.Flatten(1), nn.Linear(inputs, width), nn.ReLU())
    second_layer = nn.Sequential(nn.Linear(width, second_width), nn.ReLU())
    return [first_layer, second_layer], second_width


def build_mlp1_blocks(input_shape: SampleShape, width: int) -> BlocksAndFeatureCount:
    """One hidden layer of `width` (32) units: 2,410 parameters for 64 inputs and 10 classes."""
    layer = nn.Sequential(nn.Flatten(1), nn.Linear(prod(input_shape), width), nn.ReLU())
    return [layer], width


def build_cnn_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """FedLPA's CNN: conv5(6)-pool-conv5(16)-pool-fc120-fc84-fc, `width` (6) scales the other sizes too.

    44,426 parameters for 1x28x28 and 62,006 for 3x32x32, with 10 classes. Where a side is below 16, both convolutions
    pad by 2.
    """
    channels, height, breadth = input_shape
    padding = 2 if min(height, breadth) < 16 else 0
    first, second, third, fourth = (max(1, round(size * width / 6)) for size in (6, 16, 120, 84))
    sides = []
    for side in (height, breadth):
        side = compute_feature_map_side(side, 5, padding=padding) // 2
        side = compute_feature_map_side(side, 5, padding=padding) // 2
        sides.append(side)
    blocks = [
        nn.Sequential(nn.Conv2d(channels, first, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(first, second, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Flatten(1), nn.Linear(second * prod(sides), third), nn.ReLU()),
        nn.Sequential(nn.Linear(third, fourth), nn.ReLU()),
    ]
    return blocks, fourth


def build_cnn1d_blocks(input_shape: RecordingShape, width: int) -> BlocksAndFeatureCount:
    """Our own network for recordings [C, T]: three convolutions over 5 time steps, with w, 2w and 2w channels, each
    followed by a pool of 2 and ReLU; then the mean over time, so that a movement is recognised wherever it begins.

    8,471 parameters for 6 channels and 7 classes; T may be any length from 8 on. A convolution along time is written as
    one of 1x5 over an image one row high, so that code written for Conv2d (stack, FedLPA, matching) handles it, too.
    """
    channels, steps = input_shape
    blocks: list[nn.Sequential] = []
    for outputs in (width, 2 * width, 2 * width):
        layers: list[nn.Module] = []
        if not blocks:
            layers.append(nn.Unflatten(-1, (1, steps)))
        layers.append(nn.Conv2d(channels, outputs, (1, 5), padding=(0, 2)))
        layers += [nn.MaxPool2d((1, 2)), nn.ReLU()]
        blocks.append(nn.Sequential(*layers))
        channels = outputs
    blocks[-1].extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(1)])
    return blocks, channels


def build_lenet5_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """Co-Boosting's LeNet-5: conv5(6)-pool-conv5(16)-pool-conv5(120)-fc84-fc; `width` (6) scales the other sizes too.

    61,706 parameters for one channel and 10 classes, at every image size. The first convolution pads images below 32x32
    by 2 (so 28x28 becomes 32x32, as in LeCun's network); below 28x28 the other two pad by 2 as well. If the third
    convolution leaves maps larger than 1x1 (for images below 28x28 or from 36x36 on), they are averaged.
    """
    channels, height, breadth = input_shape
    smallest = min(height, breadth)
    outer = 2 if smallest < 32 else 0
    inner = 2 if smallest < 28 else 0
    first, second, third, fourth = (max(1, round(size * width / 6)) for size in (6, 16, 120, 84))
    sides = []
    for side in (height, breadth):
        side = compute_feature_map_side(side, 5, padding=outer) // 2
        side = compute_feature_map_side(side, 5, padding=inner) // 2
        sides.append(compute_feature_map_side(side, 5, padding=inner))
    pool = nn.Identity() if sides == [1, 1] else nn.AdaptiveAvgPool2d(1)
    blocks = [
        nn.Sequential(nn.Conv2d(channels, first, 5, padding=outer), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(first, second, 5, padding=inner), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(second, third, 5, padding=inner), nn.ReLU(), pool, nn.Flatten(1)),
        nn.Sequential(nn.Linear(third, fourth), nn.ReLU()),
    ]
    return blocks, fourth


def build_cnn2_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """DENSE's CNN for grey images: twice conv5, batch norm, ReLU, pool; `width` (16) channels, then twice as many.

    29,034 parameters for 1x28x28 and 10 classes; D = 32·7·7. It is the only small network here with batch norm, whose
    statistics tell a server something about images that it never saw.
    """
    channels, height, breadth = input_shape
    blocks = []
    for outputs in (width, 2 * width):
        layers = [
            nn.Conv2d(channels, outputs, 5, padding=2),
            nn.BatchNorm2d(outputs),
            nn.MaxPool2d(2),
            nn.ReLU(),
        ]
        blocks.append(nn.Sequential(*layers))
        channels = outputs
    blocks[-1].append(nn.Flatten(1))
    return blocks, channels * (height // 4) * (breadth // 4)


def build_cnn3_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """DENSE's and Co-Boosting's CNN for colour images: three conv3 of `width` (128) channels with ReLU, a pool after
    the first two; no normalisation, and no linear layer but the classifier.

    319,242 parameters for 3x32x32 and 10 classes; D = 128·4·4. If a side is below 18, the convolutions pad by 1.
    """
    channels, *sides = input_shape
    padding = 1 if min(sides) < 18 else 0
    blocks = []
    for has_pool in (True, True, False):
        convolution = nn.Conv2d(channels, width, 3, padding=padding)
        sides = [compute_feature_map_side(side, 3, padding=padding) for side in sides]
        if has_pool:
            blocks.append(nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU()))
            sides = [side // 2 for side in sides]
        else:
            blocks.append(nn.Sequential(convolution, nn.ReLU(), nn.Flatten(1)))
        channels = width
    return blocks, width * prod(sides)


def build_vgg9_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """FedMA's VGG-9: three pairs of convolutions, of (w, 2w), (4w, 4w) and (8w, 8w) channels, each pair followed by a
    2x2 max-pool; then two linear layers of 16w units.

    Width 32 is FedMA's: 3,491,530 parameters for 3x32x32 images and 10 classes. Its dropout is left out. Each block of
    `body` is one convolution or linear layer with its ReLU, and with the pool if there is one.
    """
    channels, height, breadth = input_shape
    blocks: list[nn.Sequential] = []
    for multiple, has_pool in [(1, False), (2, True), (4, False), (4, True), (8, False), (8, True)]:
        layers: list[nn.Module] = [nn.Conv2d(channels, multiple * width, 3, padding=1)]
        if has_pool:
            layers.append(nn.MaxPool2d(2))
        layers.append(nn.ReLU())
        blocks.append(nn.Sequential(*layers))
        channels = multiple * width
    inputs = channels * (height // 8) * (breadth // 8)  # three pools, each rounding down
    features = 16 * width
    blocks.append(nn.Sequential(nn.Flatten(1), nn.Linear(inputs, features), nn.ReLU()))
    blocks.append(nn.Sequential(nn.Linear(features, features), nn.ReLU()))
    return blocks, features


def build_vgg11_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """VGG-11 with batch norm and one linear layer: convolutions of w, 2w, 4w, 4w, 8w, 8w, 8w, 8w, five 2x2 max-pools.

    Width 64 is Co-Boosting's: 9,231,114 parameters for 3x32x32 images and 10 classes. A pool is left out if a later
    batch norm would get a map below 2x2 after it. The last map is averaged, so D = 8 w.
    """
    channels, *sides = input_shape
    blocks: list[nn.Sequential] = []
    multiples = (1, 2, 4, 4, 8, 8, 8, 8)
    pooled = (0, 1, 3, 5, 7)  # the blocks that end in a pool
    for i, multiple in enumerate(multiples):
        outputs = multiple * width
        layers: list[nn.Module] = [nn.Conv2d(channels, outputs, 3, padding=1)]
        layers.append(nn.BatchNorm2d(outputs))
        is_last = i == len(multiples) - 1
        if i in pooled and (is_last or min(sides) >= 4):
            layers.append(nn.MaxPool2d(2))
            sides = [side // 2 for side in sides]
        layers.append(nn.ReLU())
        blocks.append(nn.Sequential(*layers))
        channels = outputs
    blocks[-1].extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(1)])
    return blocks, channels
