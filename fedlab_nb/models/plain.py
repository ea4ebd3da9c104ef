"""The plain networks: perceptrons, FedLPA's five-layer CNN, LeNet-5, the two that DENSE works with, VGG-9, the
network of FuseFL's comparison with FedMA, and VGG-11 with batch norm (Co-Boosting).

Each function returns the blocks of a `Network` and D, the length of its feature vector. The convolutional ones take
images of any size from 8x8 on; padding, chosen from the size, is what keeps the maps of small images from vanishing.
Pooling comes before ReLU: the largest of four and ReLU give the same numbers and gradients in either order, and so ReLU
reads a quarter of the map.
"""

from math import prod

from torch import nn

from .network import Layout, compute_map_size

MLP_SMALL_INPUT = 256  # inputs of up to so many numbers get the small perceptron


def choose_mlp_width(input_shape: tuple[int, ...]) -> int:
    """Default width of the first hidden layer: 64 for inputs of at most 256 numbers, otherwise 256."""
    return 64 if prod(input_shape) <= MLP_SMALL_INPUT else 256


def mlp(input_shape: tuple[int, ...], width: int) -> Layout:
    """Two hidden layers: `width` and `width // 2` for inputs of at most 256 numbers, else `width` and `width // 4`.

    The defaults are 64-32 and FedLPA's 256-64: 218,058 parameters for 28x28 images and 10 classes. (The printed
    217,930 fits a second layer of 255 x 64 numbers instead of 257 x 64.)
    """
    inputs = prod(input_shape)
    divisor = 2 if inputs <= MLP_SMALL_INPUT else 4
    second_width = max(1, width // divisor)
    first_layer = nn.Sequential(nn.Flatten(1), nn.Linear(inputs, width), nn.ReLU())
    second_layer = nn.Sequential(nn.Linear(width, second_width), nn.ReLU())
    return [first_layer, second_layer], second_width


def mlp1(input_shape: tuple[int, ...], width: int) -> Layout:
    """One hidden layer of `width` (32) units: 2,410 parameters for 64 inputs and 10 classes."""
    layer = nn.Sequential(nn.Flatten(1), nn.Linear(prod(input_shape), width), nn.ReLU())
    return [layer], width


def cnn(input_shape: tuple[int, int, int], width: int) -> Layout:
    """FedLPA's CNN: conv5(6)-pool-conv5(16)-pool-fc120-fc84-fc, `width` (6) scales the other sizes too.

    44,426 parameters for 1x28x28 and 62,006 for 3x32x32, with 10 classes. Where a side is below 16, both convolutions
    pad by 2.
    """
    channels, height, breadth = input_shape
    padding = 2 if min(height, breadth) < 16 else 0
    first, second, third, fourth = (max(1, round(size * width / 6)) for size in (6, 16, 120, 84))
    sides = []
    for side in (height, breadth):
        side = compute_map_size(side, 5, padding=padding) // 2
        side = compute_map_size(side, 5, padding=padding) // 2
        sides.append(side)
    blocks = [
        nn.Sequential(nn.Conv2d(channels, first, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(first, second, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Flatten(1), nn.Linear(second * prod(sides), third), nn.ReLU()),
        nn.Sequential(nn.Linear(third, fourth), nn.ReLU()),
    ]
    return blocks, fourth


def cnn1d(input_shape: tuple[int, int], width: int) -> Layout:
    """For recordings [C, T], ours: three convolutions over 5 steps of w, 2w and 2w channels, each with a pool of 2 and
    ReLU; then the mean over time, so that a movement counts wherever it begins.

    8,471 parameters for 6 channels and 7 classes, of any length from 8 on. A convolution along time is written as one
    of 1x5 over an image one row high: code that knows Conv2d (the stack, FedLPA, matching) then handles it, too.
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


def lenet5(input_shape: tuple[int, int, int], width: int) -> Layout:
    """Co-Boosting's LeNet-5: conv5(6)-pool-conv5(16)-pool-conv5(120)-fc84-fc; `width` (6) scales the other sizes too.

    61,706 parameters for one channel and 10 classes, at every image size. The first convolution pads by 2 below 32x32
    (28x28 then counts as 32x32, as LeCun had it); below 28x28 the other two pad by 2 as well. Where the third
    convolution leaves more than one place (images below 28x28 or from 36x36 on), its maps are averaged.
    """
    channels, height, breadth = input_shape
    smallest = min(height, breadth)
    outer = 2 if smallest < 32 else 0
    inner = 2 if smallest < 28 else 0
    first, second, third, fourth = (max(1, round(size * width / 6)) for size in (6, 16, 120, 84))
    sides = []
    for side in (height, breadth):
        side = compute_map_size(side, 5, padding=outer) // 2
        side = compute_map_size(side, 5, padding=inner) // 2
        sides.append(compute_map_size(side, 5, padding=inner))
    pool = nn.Identity() if sides == [1, 1] else nn.AdaptiveAvgPool2d(1)
    blocks = [
        nn.Sequential(nn.Conv2d(channels, first, 5, padding=outer), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(first, second, 5, padding=inner), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(second, third, 5, padding=inner), nn.ReLU(), pool, nn.Flatten(1)),
        nn.Sequential(nn.Linear(third, fourth), nn.ReLU()),
    ]
    return blocks, fourth


def cnn2(input_shape: tuple[int, int, int], width: int) -> Layout:
    """DENSE's CNN for grey images: twice conv5, batch norm, ReLU, pool; `width` (16) channels, then twice as many.

    29,034 parameters for 1x28x28 and 10 classes, features 32·7·7. The only small network here with batch norm, whose
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


def cnn3(input_shape: tuple[int, int, int], width: int) -> Layout:
    """DENSE's and Co-Boosting's CNN for colour images: three conv3 of `width` (128) channels, a pool after the first
    two; no normalisation, nothing but the classifier is linear.

    319,242 parameters for 3x32x32 and 10 classes, features 128·4·4. Where a side is below 18, convolutions pad by 1.
    """
    channels, *sides = input_shape
    padding = 1 if min(sides) < 18 else 0
    blocks = []
    for has_pool in (True, True, False):
        convolution = nn.Conv2d(channels, width, 3, padding=padding)
        sides = [compute_map_size(side, 3, padding=padding) for side in sides]
        if has_pool:
            blocks.append(nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU()))
            sides = [side // 2 for side in sides]
        else:
            blocks.append(nn.Sequential(convolution, nn.ReLU(), nn.Flatten(1)))
        channels = width
    return blocks, width * prod(sides)


def vgg9(input_shape: tuple[int, int, int], width: int) -> Layout:
    """FedMA's VGG-9: pairs of convolutions of (w, 2w), (4w, 4w), (8w, 8w), 2x2 max-pool after each, two layers of 16w.

    Width 32 is FedMA's: 3,491,530 parameters for 3x32x32 images and 10 classes. Its dropout is left out. Each block of
    `body` is one weight layer with its ReLU, and its pool where it has one.
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


def vgg11(input_shape: tuple[int, int, int], width: int) -> Layout:
    """VGG-11 with batch norm and one linear layer: convolutions of w, 2w, 4w, 4w, 8w, 8w, 8w, 8w, five 2x2 max-pools.

    Width 64 is Co-Boosting's: 9,231,114 parameters for 3x32x32 images and 10 classes. A pool that would leave a later
    batch norm a map below 2x2 is left out; what the last one leaves is averaged. D = 8 w.
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
