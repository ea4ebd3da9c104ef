"""Image generators with the batch as the last dimension: the same values and gradients as PyTorch's layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.models import batch_last
from fedlab_nb.models.batch_last import (
    Convolution,
    UpConv2d,
    UpConvolution,
    are_all_divisible_by_four,
)
from fedlab_nb.models.generators import build_generator

EXACT = torch.float64
small_sizes = st.integers(1, 4)


def put_batch_last(x):
    """`[N, C, H, W]` as `[1, C, H, W, N]`."""
    return x.permute(1, 2, 3, 0).contiguous()[None]


def put_batch_first(x):
    return x[0].permute(3, 0, 1, 2)


def draw_numbers(stream, *shape):
    return torch.randn(shape, generator=stream, dtype=EXACT).requires_grad_()


def assert_same(ours, theirs, leaves, stream):
    """Equal values `[N, O, H, W]`, and equal gradients with respect to `leaves`."""
    torch.testing.assert_close(ours, theirs)
    slope = torch.randn(theirs.shape, generator=stream, dtype=EXACT)
    gradients = (torch.autograd.grad(answer, leaves, slope) for answer in (ours, theirs))
    for ours_by_leaf, theirs_by_leaf in zip(*gradients, strict=True):
        torch.testing.assert_close(ours_by_leaf, theirs_by_leaf)


@given(
    n=small_sizes,
    channels=small_sizes,
    outputs=small_sizes,
    height=small_sizes,
    width=small_sizes,
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_both_convolutions_equal_pytorchs(n, channels, outputs, height, width, seed):
    stream = torch.Generator().manual_seed(seed)
    x = draw_numbers(stream, n, channels, height, width)
    weight = draw_numbers(stream, outputs, channels, 3, 3)
    bias = draw_numbers(stream, outputs)
    larger = torch.nn.functional.interpolate(x, scale_factor=2)
    theirs = torch.nn.functional.conv2d(larger, weight, padding=1)
    assert_same(
        put_batch_first(UpConvolution.apply(put_batch_last(x), weight)), theirs, (x, weight), stream
    )
    theirs = torch.nn.functional.conv2d(x, weight, bias, padding=1)
    assert_same(
        put_batch_first(Convolution.apply(put_batch_last(x), weight, bias)),
        theirs,
        (x, weight, bias),
        stream,
    )


@pytest.mark.parametrize(
    "shape, is_batch_last",
    [((1, 8, 8), True), ((3, 16, 16), True), ((2, 4, 12), True), ((3, 9, 14), False), ((1, 6, 8), False),
     ((1, 28, 28), True), ((3, 32, 20), True), ((1, 30, 28), False)],
)  # fmt: skip
@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_generator_makes_the_same_images_with_the_batch_last(
    shape, is_batch_last, in_pieces, monkeypatch
):
    if in_pieces:  # of one output each, or of two where maps have at most 3 x 3 pixels
        monkeypatch.setattr(batch_last, "PIECE", 2 * 16 * 9 * 6)
    generator = build_generator(
        shape, width=3, latent=5, generator=torch.Generator().manual_seed(0), dtype=EXACT
    )
    assert generator.batch_last is is_batch_last
    assert are_all_divisible_by_four(shape[1:]) or not is_batch_last
    stream = torch.Generator().manual_seed(1)
    z = draw_numbers(stream, 6, 5)
    leaves = [*generator.parameters(), z]
    ours = generator(z)
    generator.batch_last = False
    assert ours.is_contiguous() or not is_batch_last
    assert_same(ours, generator(z), leaves, stream)


def test_outputs_are_computed_in_pieces_that_fit_into_the_bound(monkeypatch):
    """4 x 4 places of 2 x 2 pixels and 5 images are 320 numbers an output. With a bound of 1,000
    numbers, seven outputs are computed as 3, 3 and 1."""
    sizes = []
    real_apply = UpConvolution.apply

    def record_size(x, weight):
        sizes.append(len(weight))
        return real_apply(x, weight)

    monkeypatch.setattr(batch_last, "PIECE", 1000)
    monkeypatch.setattr(UpConvolution, "apply", record_size)
    stream = torch.Generator().manual_seed(0)
    x = draw_numbers(stream, 5, 3, 2, 2)
    weight = draw_numbers(stream, 7, 3, 3, 3)
    theirs = torch.nn.functional.conv2d(
        torch.nn.functional.interpolate(x, scale_factor=2), weight, padding=1
    )
    assert_same(
        put_batch_first(batch_last.double_and_convolve(put_batch_last(x), weight)),
        theirs,
        (x, weight),
        stream,
    )
    assert sizes == [3, 3, 1]
    batch_last.double_and_convolve(put_batch_last(x)[:, :, :1, :1], weight)
    assert sizes[3:] == [7]


def test_off_the_cpu_the_plain_layers_run():
    generator = build_generator((1, 8, 8), width=3, latent=5, generator=torch.Generator())
    generator = generator.to("meta")
    calls_of_layers = []
    generator.net.register_forward_hook(lambda *_: calls_of_layers.append(1))
    assert generator.batch_last
    assert generator(torch.empty(6, 5, device="meta")).shape == (6, 1, 8, 8)
    assert calls_of_layers


@pytest.mark.parametrize("size", [(8, 6), (7, 6), (5, 4)])
def test_maps_are_upsampled_before_the_convolution(size):
    layer = UpConv2d(2, 3, size)
    x = torch.randn(5, 2, 4, 3)
    assert layer(x).shape == (5, 3, *size)
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(
        torch.nn.functional.interpolate(x, size=size), layer.weight, padding=1
    ))  # fmt: skip
