"""Two networks for small devices, torchvision's own modules fitted to small images: MobileNetV3-small, ShuffleNetV2.

What is fitted: the first convolution takes as many channels as the images have. Both networks shrink a map five times
by 2; on small images the first of these strides become 1, so that no map is below 2x2 (at 32x32 one, the first
convolution's; at 8x8 three). At 33x33 and above nothing changes but the channels. Dropout is left out, and batch norm's
statistics follow a batch by 0.1, as everywhere here (torchvision's MobileNet: 0.01, too slow for a client's few steps).

Their forwards look at shapes, and their convolutions have groups, so they are trained by the loop; the stack refuses
them.
"""

from collections.abc import Sequence

from torch import nn

from .network import Layout

STEPS = 5


def mobilenet(input_shape: tuple[int, int, int], width: int) -> Layout:
    """MobileNetV3-small (Howard et al., ICCV 2019); `width`: channels of the first convolution, 16, which scale all
    others too, in multiples of 8. D = 1024.

    1,528,106 parameters for 3 channels and 10 classes, at every image size.
    """
    from torchvision.models.mobilenetv3 import MobileNetV3, _mobilenet_v3_conf

    settings, last = _mobilenet_v3_conf("mobilenet_v3_small", width_mult=width / 16)
    net = MobileNetV3(settings, last, num_classes=2)
    shrinking = [[layer] for layer in net.features.modules() if _shrinks(layer)]
    _fit(net.features[0], input_shape, shrinking)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 0.1
    hidden, activation = net.classifier[0], net.classifier[1]
    return [*net.features, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1), hidden, activation)], last


def shufflenet(input_shape: tuple[int, int, int], width: int) -> Layout:
    """ShuffleNetV2 (Ma et al., ECCV 2018); `width`: half the channels of its first stage, 58 for the paper's 1.0x and
    24 for 0.5x. D = 1024.

    1,263,854 parameters at 1.0x and 352,042 at 0.5x, for 3 channels and 10 classes, at every image size.
    """
    from torchvision.models.shufflenetv2 import ShuffleNetV2

    net = ShuffleNetV2([4, 8, 4], [24, 2 * width, 4 * width, 8 * width, 1024], num_classes=2)
    stages = [net.stage2, net.stage3, net.stage4]
    halving = [[layer for layer in stage[0].modules() if _shrinks(layer)] for stage in stages]  # two branches each
    _fit(net.conv1, input_shape, [[net.conv1[0]], [net.maxpool], *halving])
    units = [unit for stage in stages for unit in stage]
    end = nn.Sequential(net.conv5, nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return [nn.Sequential(net.conv1, net.maxpool), *units, end], 1024


def _shrinks(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Conv2d) and layer.stride == (2, 2)


def _fit(stem: nn.Sequential, input_shape: tuple[int, int, int], shrinking: Sequence[Sequence[nn.Module]]) -> None:
    """Give the stem's convolution the images' channels; the first strides become 1 where the map would go below 2x2.

    `shrinking`: the layers of each step by 2, in their order. After s steps a side n is ceil(n / 2^s), at least 2 if
    n > 2^s.
    """
    channels, *sides = input_shape
    first = stem[0]
    assert isinstance(first, nn.Conv2d)
    own = nn.Conv2d(channels, first.out_channels, 3, stride=2, padding=1, bias=False)
    stem[0] = own
    shrinking = [[own if layer is first else layer for layer in step] for step in shrinking]
    fitting = (min(sides) - 1).bit_length() - 1
    for step in shrinking[: max(0, STEPS - fitting)]:
        for layer in step:
            layer.stride = (1, 1)  # type: ignore[assignment]
