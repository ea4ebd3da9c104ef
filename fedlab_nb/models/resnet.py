"""The papers' residual networks with batch normalisation: FENS' ResNet-8, the CIFAR variant of ResNet-18 and its kin,
and the wide networks for small images (Zagoruyko & Komodakis, BMVC 2016), WRN-16-k and WRN-40-k.

No map shrinks below 2x2: a stride of 2 that would do that becomes 1. So batch normalisation sees at least four values
of each channel, even in a batch of one sample.

There are also two networks for small devices, MobileNetV3-small and ShuffleNetV2, which are torchvision's own modules
adapted to small images. Their first convolution takes as many channels as the images have. Both networks halve a map
five times; on small images the first of these strides become 1, so that no map is below 2x2 (at 32x32 one stride, that
of the first convolution; at 8x8 three). At 33x33 and above only the channels are changed. Dropout is left out. Batch
norm's momentum is 0.1, as everywhere here; torchvision's MobileNet has 0.01, too slow for the few steps of a client.
The `forward` of both networks looks at shapes, and their convolutions have groups, so they cannot be stacked and are
trained by the loop.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import nn

from ..tensor_types import FeatureMaps
from ..value_types import ImageShape
from .network import BlocksAndFeatureCount, compute_feature_map_side


class Residual(nn.Module):
    """Basic block: relu(main(x) + shortcut(x)), where the shortcut is a 1x1 convolution if shape or stride change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        first_layers = _make_conv_norm(inputs, outputs, 3, stride)
        second = _make_conv_norm(outputs, outputs, 3, 1)
        self.main = nn.Sequential(*first_layers, nn.ReLU(), *second)
        if inputs == outputs and stride == 1:
            self.shortcut: nn.Module = nn.Identity()
        else:
            self.shortcut = nn.Sequential(*_make_conv_norm(inputs, outputs, 1, stride))
        self.relu = nn.ReLU()

    def forward(self, feature_maps: FeatureMaps) -> FeatureMaps:
        return self.relu(self.main(feature_maps) + self.shortcut(feature_maps))


def build_resnet8_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """FENS' ResNet-8: conv3(w), basic blocks of w, 2w (stride 2), 4w (stride 2), average pool to 2x2, so D = 16 w.

    Width 128 is the paper's: 4,911,754 parameters for 10 classes. The paper counts 4,932,344, because its public code
    also has a second linear layer and an embedding, 20,590 numbers, which its forward pass never uses; they are left
    out here. At 32x32 the pool has the paper's windows of 4x4; at other sizes they have ceil(side / 2) pixels a side
    and overlap if the side is odd.
    """
    stem = nn.Sequential(*_make_conv_norm(input_shape[0], width, 3, 1), nn.ReLU())
    widths = [width, 2 * width, 4 * width]
    blocks, sides, channels = _make_stages(
        Residual, stem, width, input_shape[1:], widths, blocks_per_stage=1
    )
    high, wide = sides
    window = ((high + 1) // 2, (wide + 1) // 2)
    pool = nn.AvgPool2d(window, stride=(high // 2, wide // 2))
    return [*blocks, nn.Sequential(pool, nn.Flatten(1))], 4 * channels


def build_resnet18_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """ResNet-18 with a 3x3 stem and no max-pool: two basic blocks each of w, 2w, 4w, 8w, global average pool, D = 8 w.

    Width 64 is the papers': 11,173,962 parameters for 3 channels and 10 classes. `body` has FuseFL's ten layer indices:
    0 the stem, 1 to 8 the basic blocks, 9 the pool.
    """
    return _build_four_stage_resnet(input_shape, width, blocks_per_stage=2)


def build_resnet10_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """ResNet-18 with one basic block a stage (FuseFL's small one): 4,903,242 parameters at 3x32x32, 10 classes."""
    return _build_four_stage_resnet(input_shape, width, blocks_per_stage=1)


def build_resnet26_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """ResNet-18 with three basic blocks a stage (FuseFL's large one): 17,444,682 parameters at 3x32x32, 10 classes."""
    return _build_four_stage_resnet(input_shape, width, blocks_per_stage=3)


def _build_four_stage_resnet(
    input_shape: ImageShape, width: int, blocks_per_stage: int
) -> BlocksAndFeatureCount:
    stem = nn.Sequential(*_make_conv_norm(input_shape[0], width, 3, 1), nn.ReLU())
    widths = [width, 2 * width, 4 * width, 8 * width]
    blocks, _, channels = _make_stages(
        Residual, stem, width, input_shape[1:], widths, blocks_per_stage
    )
    return [*blocks, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))], channels


class PreActivated(nn.Module):
    """Basic block: x + main(a) with a = relu(norm(x)), where main is conv3, batch norm, ReLU, conv3.

    If shape or stride change, a 1x1 convolution of a is added instead of x.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        first_layers = _make_conv_norm(inputs, outputs, 3, stride)
        second = _make_conv_without_bias(outputs, outputs, 3, 1)
        self.main = nn.Sequential(*first_layers, nn.ReLU(), second)
        if inputs == outputs and stride == 1:
            self.shortcut: nn.Module = nn.Identity()
        else:
            self.shortcut = _make_conv_without_bias(inputs, outputs, 1, stride)

    @property
    def keeps_shape(self) -> bool:
        return isinstance(self.shortcut, nn.Identity)

    def forward(self, feature_maps: FeatureMaps) -> FeatureMaps:
        active = self.before(feature_maps)
        shortcut_input = feature_maps if self.keeps_shape else active
        return self.main(active) + self.shortcut(shortcut_input)


def build_wrn16_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """WRN-16-k, for `width` w = 16 k: conv3(16), three groups of two blocks with w, 2w and 4w channels, the last two
    groups with stride 2; then batch norm, ReLU and global average pool, so D = 4 w.

    WRN-16-1 has 175,066 parameters at 3x32x32 with 10 classes, WRN-16-2 691,674. Dropout is left out.
    """
    return _build_wide_resnet(input_shape, width, 16)


def build_wrn40_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """WRN-40-k, for `width` w = 16 k: WRN-16-k with six blocks in each group.

    WRN-40-1 has 563,930 parameters at 3x32x32 with 10 classes, WRN-40-2 2,243,546.
    """
    return _build_wide_resnet(input_shape, width, 40)


def _build_wide_resnet(input_shape: ImageShape, width: int, depth: int) -> BlocksAndFeatureCount:
    """WRN-`depth`-k, `width` = 16 k: (depth - 4) / 6 blocks in each of three groups."""
    stem = _make_conv_without_bias(input_shape[0], 16, 3, 1)
    widths = [width, 2 * width, 4 * width]
    repeats = (depth - 4) // 6
    blocks, _, channels = _make_stages(PreActivated, stem, 16, input_shape[1:], widths, repeats)
    end = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return [*blocks, end], channels


class Stages(NamedTuple):
    """The first blocks of a network, and the sides and channels of their output map."""

    blocks: list[nn.Module]
    sides: list[int]
    channels: int


def _make_stages(
    block_class: type,
    stem: nn.Module,
    input_channels: int,
    input_sides: Sequence[int],
    widths: Sequence[int],
    blocks_per_stage: int,
) -> Stages:
    """The stem and the stages behind it, of `blocks_per_stage` blocks each; every stage but the first has stride 2.

    `input_channels` and `input_sides` are those of the stem's output map.
    """
    blocks = [stem]
    input_sides = list(input_sides)
    for stage, width in enumerate(widths):
        stride = 1 if stage == 0 else 2
        if (
            min(compute_feature_map_side(side, 3, padding=1, stride=stride) for side in input_sides)
            < 2
        ):
            stride = 1
        blocks.append(block_class(input_channels, width, stride))
        for _ in range(blocks_per_stage - 1):
            blocks.append(block_class(width, width, 1))
        input_channels = width
        input_sides = [
            compute_feature_map_side(side, 3, padding=1, stride=stride) for side in input_sides
        ]
    return Stages(blocks, input_sides, input_channels)


def _make_conv_without_bias(
    input_channels: int, output_channels: int, kernel_side: int, stride: int
) -> nn.Conv2d:
    """A convolution without bias, as the normalisation that follows would remove any bias again."""
    return nn.Conv2d(
        input_channels,
        output_channels,
        kernel_side,
        stride=stride,
        padding=kernel_side // 2,
        bias=False,
    )


def _make_conv_norm(
    input_channels: int, output_channels: int, kernel_side: int, stride: int
) -> list[nn.Module]:
    """A convolution and the batch norm behind it."""
    return [
        _make_conv_without_bias(input_channels, output_channels, kernel_side, stride),
        nn.BatchNorm2d(output_channels),
    ]


HALVINGS = 5  # of a map, in MobileNetV3 and in ShuffleNetV2


def build_mobilenet_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """MobileNetV3-small (Howard et al., ICCV 2019). D = 1024.

    width: channels of the first convolution, by default 16; all other layers scale with them, in multiples of 8

    1,528,106 parameters for 3 channels and 10 classes, at every image size.
    """
    from torchvision.models.mobilenetv3 import MobileNetV3, _mobilenet_v3_conf

    settings, features = _mobilenet_v3_conf("mobilenet_v3_small", width_mult=width / 16)
    net = MobileNetV3(settings, features, num_classes=2)
    halvings = [[layer] for layer in net.features.modules() if _halves_map_size(layer)]
    _adapt_stem_to_small_images_in_place(net.features[0], input_shape, halvings)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 0.1
    hidden = net.classifier[0]
    activation = net.classifier[1]
    end = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1), hidden, activation)
    return [*net.features, end], features


def build_shufflenet_blocks(input_shape: ImageShape, width: int) -> BlocksAndFeatureCount:
    """ShuffleNetV2 (Ma et al., ECCV 2018). D = 1024.

    width: half the channels of the first stage, 58 for the paper's 1.0x and 24 for 0.5x

    1,263,854 parameters at 1.0x and 352,042 at 0.5x, for 3 channels and 10 classes, at every image size.
    """
    from torchvision.models.shufflenetv2 import ShuffleNetV2

    net = ShuffleNetV2([4, 8, 4], [24, 2 * width, 4 * width, 8 * width, 1024], num_classes=2)
    units: list[nn.Module] = []
    halvings = [[net.conv1[0]], [net.maxpool]]
    for stage in (net.stage2, net.stage3, net.stage4):
        units += stage
        # The first unit has two branches, and a convolution of stride 2 in each.
        halvings.append([layer for layer in stage[0].modules() if _halves_map_size(layer)])
    _adapt_stem_to_small_images_in_place(net.conv1, input_shape, halvings)
    end = nn.Sequential(net.conv5, nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return [nn.Sequential(net.conv1, net.maxpool), *units, end], 1024


def _halves_map_size(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Conv2d) and layer.stride == (2, 2)


def _adapt_stem_to_small_images_in_place(
    stem: nn.Sequential, input_shape: ImageShape, halvings: Sequence[Sequence[nn.Module]]
) -> None:
    """Adapt a network to small images, in place.

    The stem's convolution gets as many input channels as the images have. The strides of the first halvings become 1,
    as many as are needed to keep the map from shrinking below 2x2.

    halvings: the layers with stride 2 that make each halving of the map, in order; the stem's convolution, if it is
        one of them, is alone in the first
    """
    channels, *sides = input_shape
    published = stem[0]
    assert isinstance(published, nn.Conv2d)
    fitted = nn.Conv2d(channels, published.out_channels, 3, stride=2, padding=1, bias=False)
    stem[0] = fitted
    # After s halvings a side n is ceil(n / 2^s), which is at least 2 if 2^s < n. This is the largest such s.
    affordable = (min(sides) - 1).bit_length() - 1
    for layers in halvings[: max(0, HALVINGS - affordable)]:
        for layer in layers:
            if layer is published:
                layer = fitted
            layer.stride = (1, 1)  # type: ignore[assignment]
