"""Up-sampling and a convolution in one: the same values and gradients as one after the other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.models.generators import build_generator
from fedlab_nb.models.up_conv import UpConv2d, folded_convolution

EXACT = torch.float64
few = st.integers(1, 4)


def plainly(x, weight):
    return torch.nn.functional.conv2d(torch.nn.functional.interpolate(x, scale_factor=2), weight, padding=1)


@given(n=few, channels=few, outputs=few, height=few, width=few, last=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_values_and_gradients_are_those_of_one_after_the_other(n, channels, outputs, height, width, last, seed):
    stream = torch.Generator().manual_seed(seed)
    layout = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(n, channels, height, width, generator=stream, dtype=EXACT).contiguous(memory_format=layout)
    weight = torch.randn(outputs, channels, 3, 3, generator=stream, dtype=EXACT)
    leaves = x.requires_grad_(), weight.requires_grad_()
    ours, theirs = folded_convolution(*leaves), plainly(*leaves)
    torch.testing.assert_close(ours, theirs)
    slope = torch.randn(theirs.shape, generator=stream, dtype=EXACT)
    for own, other in zip(
        torch.autograd.grad(ours, leaves, slope), torch.autograd.grad(theirs, leaves, slope), strict=True
    ):
        torch.testing.assert_close(own, other)


def test_one_pixel_by_hand():
    """A single 1 becomes four. Each output sums the weights that fall on one of them."""
    answer = folded_convolution(torch.ones(1, 1, 1, 1), torch.arange(9.0).view(1, 1, 3, 3))
    assert answer.flatten().tolist() == [4 + 5 + 7 + 8, 3 + 4 + 6 + 7, 1 + 2 + 4 + 5, 0 + 1 + 3 + 4]


@pytest.mark.parametrize("size, twice", [((8, 6), True), ((7, 6), False), ((5, 4), False)])
def test_other_sizes_are_up_sampled_first(size, twice):
    layer = UpConv2d(2, 3, size, folded=True)
    x = torch.randn(5, 2, 4, 3)
    if twice:
        torch.testing.assert_close(layer(x), plainly(x, layer.weight))
    assert layer(x).shape == (5, 3, *size)
    layer.folded = False
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(
        torch.nn.functional.interpolate(x, size=size), layer.weight, padding=1
    ))  # fmt: skip


@pytest.mark.parametrize("shape, folded", [((1, 8, 8), False), ((3, 16, 16), False), ((1, 28, 28), True)])
def test_a_generator_folds_where_images_are_large_and_says_the_same(shape, folded):
    made = build_generator(shape, width=4, latent=8, generator=torch.Generator().manual_seed(0), dtype=EXACT)
    layers = [layer for layer in made.modules() if isinstance(layer, UpConv2d)]
    assert [layer.folded for layer in layers] == [folded, folded]
    z = torch.randn(6, 8, dtype=EXACT)
    before = made(z)
    for layer in layers:
        layer.folded = not folded
    torch.testing.assert_close(made(z), before)
