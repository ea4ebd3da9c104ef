"""Generators of images with the batch last: the same values and gradients as their layers one after the other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.models import batch_last
from fedlab_nb.models.batch_last import Convolution, UpConv2d, UpConvolution, are_divisible_by_four
from fedlab_nb.models.generators import build_generator

EXACT = torch.float64
few = st.integers(1, 4)


def put_batch_last(x):
    """`[N, C, H, W]` as `[1, C, H, W, N]`."""
    return x.permute(1, 2, 3, 0).contiguous()[None]


def put_batch_first(x):
    return x[0].permute(3, 0, 1, 2)


def draw_numbers(stream, *shape):
    return torch.randn(shape, generator=stream, dtype=EXACT).requires_grad_()


def assert_same(ours, theirs, leaves, stream):
    """Values `[N, O, H, W]`, and their gradients with respect to `leaves`."""
    torch.testing.assert_close(ours, theirs)
    slope = torch.randn(theirs.shape, generator=stream, dtype=EXACT)
    gradients = (torch.autograd.grad(answer, leaves, slope) for answer in (ours, theirs))
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other)


@given(n=few, channels=few, outputs=few, height=few, width=few, seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_both_convolutions_are_pytorchs(n, channels, outputs, height, width, seed):
    stream = torch.Generator().manual_seed(seed)
    x, weight = (
        draw_numbers(stream, n, channels, height, width),
        draw_numbers(stream, outputs, channels, 3, 3),
    )
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
    "shape, so",
    [((1, 8, 8), True), ((3, 16, 16), True), ((2, 4, 12), True), ((3, 9, 14), False), ((1, 6, 8), False),
     ((1, 28, 28), True), ((3, 32, 20), True), ((1, 30, 28), False)],
)  # fmt: skip
@pytest.mark.parametrize("pieces", [False, True])
def test_a_generator_makes_the_same_images_so(shape, so, pieces, monkeypatch):
    if pieces:  # of one output each, and of two, where small maps have at most 3 x 3 pixels
        monkeypatch.setattr(batch_last, "PIECE", 2 * 16 * 9 * 6)
    made = build_generator(
        shape, width=3, latent=5, generator=torch.Generator().manual_seed(0), dtype=EXACT
    )
    assert made.batch_last is so and (are_divisible_by_four(shape[1:]) or not so)
    stream = torch.Generator().manual_seed(1)
    z = draw_numbers(stream, 6, 5)
    leaves = [*made.parameters(), z]
    ours = made(z)
    made.batch_last = False
    assert ours.is_contiguous() or not so
    assert_same(ours, made(z), leaves, stream)


def test_outputs_are_made_in_pieces_that_fit(monkeypatch):
    """4 x 4 places of 2 x 2 pixels and 5 images: 320 numbers an output. Of seven outputs 3, 3 and 1 fit into 1,000."""
    sizes, apply = [], UpConvolution.apply
    monkeypatch.setattr(batch_last, "PIECE", 1000)
    monkeypatch.setattr(
        UpConvolution, "apply", lambda x, weight: sizes.append(len(weight)) or apply(x, weight)
    )
    stream = torch.Generator().manual_seed(0)
    x, weight = draw_numbers(stream, 5, 3, 2, 2), draw_numbers(stream, 7, 3, 3, 3)
    theirs = torch.nn.functional.conv2d(
        torch.nn.functional.interpolate(x, scale_factor=2), weight, padding=1
    )
    assert_same(
        put_batch_first(batch_last.upsample_and_convolve(put_batch_last(x), weight)),
        theirs,
        (x, weight),
        stream,
    )
    assert sizes == [3, 3, 1]
    batch_last.upsample_and_convolve(put_batch_last(x)[:, :, :1, :1], weight)
    assert sizes[3:] == [7]


def test_off_the_cpu_the_layers_run_one_after_the_other():
    made = build_generator((1, 8, 8), width=3, latent=5, generator=torch.Generator()).to("meta")
    seen = []
    made.net.register_forward_hook(lambda *_: seen.append(1))
    assert made.batch_last and made(torch.empty(6, 5, device="meta")).shape == (6, 1, 8, 8) and seen


@pytest.mark.parametrize("size", [(8, 6), (7, 6), (5, 4)])
def test_maps_are_up_sampled_first(size):
    layer = UpConv2d(2, 3, size)
    x = torch.randn(5, 2, 4, 3)
    assert layer(x).shape == (5, 3, *size)
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(
        torch.nn.functional.interpolate(x, size=size), layer.weight, padding=1
    ))  # fmt: skip
