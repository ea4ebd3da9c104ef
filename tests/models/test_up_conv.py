"""Up-sampling and a convolution in one layer."""

import pytest
import torch

from fedlab_nb.models.up_conv import UpConv2d


@pytest.mark.parametrize("size", [(8, 6), (7, 6), (5, 4)])
def test_maps_are_up_sampled_first(size):
    layer = UpConv2d(2, 3, size)
    x = torch.randn(5, 2, 4, 3)
    assert layer(x).shape == (5, 3, *size)
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(
        torch.nn.functional.interpolate(x, size=size), layer.weight, padding=1
    ))  # fmt: skip


def test_one_pixel_by_hand():
    """A single 1 becomes four. Each output sums the weights that fall on one of them."""
    layer = UpConv2d(1, 1, (2, 2))
    with torch.no_grad():
        layer.weight.copy_(torch.arange(9.0).view(1, 1, 3, 3))
    answer = layer(torch.ones(1, 1, 1, 1))
    assert answer.flatten().tolist() == [4 + 5 + 7 + 8, 3 + 4 + 6 + 7, 1 + 2 + 4 + 5, 0 + 1 + 3 + 4]
