"""The EfficientNet-Lite0 body trained on ImageNet: its size, its padding against plain sums, and its feature cache."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedlab_nb.models import count_parameters, lite0
from fedlab_nb.models.lite0 import Block, make_tensorflow_padded_convolution


def make_images(n=5, channels=1, side=12, seed=0):
    return torch.rand(n, channels, side, side, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch):
    monkeypatch.setattr(lite0, "_cache", {})


def test_the_body_has_the_parameters_of_the_papers_table():
    """716,928 with the four numbers of batch norm a channel; here batch norm is folded, which leaves one of them."""
    body = lite0.load_lite0()
    channels = sum(layer.out_channels for layer in body.modules() if isinstance(layer, nn.Conv2d))
    assert count_parameters(body) + 3 * channels == 716_928
    assert not any(p.requires_grad for p in body.parameters()) and not body.training
    assert sum(isinstance(layer, Block) for layer in body.modules()) == 11
    maps = body.body[:-2](torch.zeros(1, 3, 64, 64))
    assert maps.shape == (1, 112, 4, 4)


@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_equals_tensorflows_same(side, stride):
    """The output has ceil(n / stride) places; of an odd number of zeros the additional one is at the end."""
    layers = nn.Sequential(*make_tensorflow_padded_convolution(1, 1, side, stride))
    layers.double().requires_grad_(False)
    x = make_images(1, 1, 8).double()
    zeros = max((8 // stride - 1) * stride + side - 8, 0)
    padded = np.pad(x[0, 0].numpy(), (zeros // 2, zeros - zeros // 2))
    kernel = layers[-1].weight[0, 0].numpy()
    bias = float(layers[-1].bias)
    by_hand = np.empty((8 // stride, 8 // stride))
    for i, top in enumerate(range(0, 8, stride)):
        for j, left in enumerate(range(0, 8, stride)):
            patch = padded[top : top + side, left : left + side]
            by_hand[i, j] = (patch * kernel).sum() + bias
    np.testing.assert_allclose(layers(x)[0, 0], by_hand, atol=1e-12)


def test_a_block_adds_its_input_where_the_shape_stays():
    for outputs, stride, added in [(4, 1, True), (4, 2, False), (6, 1, False)]:
        block = Block(4, outputs, 3, stride, 6).eval().requires_grad_(False)
        x = make_images(2, 4, 8)
        plain = nn.Sequential(*block)(x)
        assert torch.equal(block(x), x + plain if added else plain)
        assert block.adds_input == added


@torch.no_grad()
def test_an_image_is_scaled_as_in_training():
    body = lite0.load_lite0()
    x = make_images(3, 1, 64)
    expected = body.body(((x * 255 - 127) / 128).repeat(1, 3, 1, 1))
    torch.testing.assert_close(body(x), expected)
    large = F.interpolate(make_images(3), (64, 64), mode="bilinear")
    torch.testing.assert_close(body(make_images(3)), body(large), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(body(make_images(3)), body(make_images(3).repeat(1, 3, 1, 1)))


def test_the_features_of_an_image_are_computed_once(monkeypatch):
    body = lite0.load_lite0()
    x = make_images(6)
    features = body(x)
    assert features.shape == (6, 112)
    assert len(lite0._cache) == 6
    torch.testing.assert_close(
        body(make_images(6, seed=1)[:1].repeat(3, 1, 1, 1))[2], body(make_images(6, seed=1))[0]
    )
    monkeypatch.setattr(
        body, "scale_images", None
    )  # from here on every image must come from the cache
    order = torch.tensor([4, 0, 0, 3])
    assert torch.equal(body(x[order]), features[order])
    assert (
        torch.equal(body(x.double()), features.double()) and body(x.double()).dtype == torch.float64
    )
    assert body(x[:0]).shape == (0, 112)
    with pytest.raises(TypeError):
        body(x.flip(3))


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(lite0, "MOST", 4)
    body = lite0.load_lite0()
    x = make_images(6)
    assert torch.equal(body(x), body(x)) and len(lite0._cache) == 4
