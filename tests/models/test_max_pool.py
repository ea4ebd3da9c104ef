"""The fast 2x2 max-pooling against nn.MaxPool2d(2): equal to the last bit, forwards and backwards."""

import pytest
import torch
import torch.nn.functional as F

from fedlab_nb.models.max_pool import WORTHWHILE, MaxPool2x2


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(40, 6, 24, 24), (32, 16, 9, 9), (50, 3, 28, 29), (7, 64, 15, 16), (2, 2, 8, 8)])
def test_as_pytorch_has_it(shape, dtype, layout):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype).relu()  # zeros: ties
    x[0] = 0.3  # and larger ties
    x = x.contiguous(memory_format=layout)
    mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, z = MaxPool2x2()(mine), F.max_pool2d(theirs, 2)
    assert torch.equal(y, z) and y.is_contiguous(memory_format=layout)
    slope = torch.randn(z.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    assert torch.equal(torch.autograd.grad(y, mine, slope)[0], torch.autograd.grad(z, theirs, slope)[0])
    with torch.no_grad():
        assert torch.equal(MaxPool2x2()(x), z)


def test_both_ways_are_covered_above():
    assert 2 * 2 * 8 * 8 < WORTHWHILE < 40 * 6 * 24 * 24


def test_before_relu_or_after_it():
    """Networks pool first, papers say ReLU first: the same numbers and gradients, where values are equal too."""
    x = torch.randn(40, 6, 24, 24, generator=torch.Generator().manual_seed(0))
    x[0], x[1] = 0.3, -0.3
    slope = torch.randn(40, 6, 12, 12, generator=torch.Generator().manual_seed(1))
    results = []
    for layers in ((MaxPool2x2(), torch.nn.ReLU()), (torch.nn.ReLU(), MaxPool2x2())):
        images = x.clone().requires_grad_()
        y = torch.nn.Sequential(*layers)(images)
        results.append((y, torch.autograd.grad(y, images, slope)[0]))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
