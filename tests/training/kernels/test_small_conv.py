"""Convolutions as matrix products, against the convolution: values and gradients, with and without pooling."""

import pytest
import torch
from torch import nn

from fedlab_nb.training import small_conv
from fedlab_nb.training.stack import Stack, stackable

M, N = 3, 4


def alike(conv, x, pooled):
    """Output and gradients of the matrix form, and of `conv` model by model."""
    weight = torch.randn(M, *conv.weight.shape, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(M, conv.out_channels, dtype=torch.float64, requires_grad=True) if conv.bias is not None else None
    leaves = [x, weight] + ([] if bias is None else [bias])

    def separately():
        out = []
        for k in range(M):
            y = nn.functional.conv2d(
                x[k], weight[k], None if bias is None else bias[k], conv.stride, conv.padding, conv.dilation
            )
            out.append(nn.functional.max_pool2d(y.relu(), 2) if pooled else y)
        return torch.stack(out)

    results = []
    for form in (lambda: small_conv.convolve(x, weight, bias, conv, pooled), separately):
        y = form()
        slope = torch.randn(y.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        results.append([y, *torch.autograd.grad(y, leaves, slope)])
    return results


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(
    ("inputs", "outputs", "sides", "kernel", "how"),
    [
        (1, 6, (8, 8), 5, {"padding": 2}),
        (6, 16, (4, 4), 5, {"padding": 2}),
        (2, 3, (8, 6), 3, {"stride": 2, "padding": 1}),
        (2, 3, (9, 7), 3, {}),
        (3, 2, (5, 5), 1, {"bias": False}),
        (2, 3, (7, 9), (3, 5), {"padding": (0, 2), "stride": (2, 1)}),
    ],
)
def test_the_matrix_is_the_convolution(inputs, outputs, sides, kernel, how, pooled):
    conv = nn.Conv2d(inputs, outputs, kernel, **how)
    x = torch.randn(M, N, inputs, *sides, dtype=torch.float64, requires_grad=True)
    for mine, theirs in zip(*alike(conv, x, pooled), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_of_equal_values_the_first_gets_the_gradient():
    """As with nn.MaxPool2d: on an empty image all four values of a window are the bias."""
    conv = nn.Conv2d(1, 2, 3, padding=1)
    x = torch.zeros(M, N, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    for mine, theirs in zip(*alike(conv, x, True), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_large_maps_stay_convolutions():
    conv = nn.Conv2d(1, 6, 5)
    assert small_conv.suits(conv, torch.zeros(M, N, 1, 8, 8))
    assert not small_conv.suits(nn.Conv2d(16, 16, 3), torch.zeros(M, N, 16, 8, 8))
    assert not small_conv.suits(nn.Conv2d(1, 6, 3, dilation=2), torch.zeros(M, N, 1, 8, 8))


def test_models_that_all_see_the_same_samples():
    """`[M, N, ...]` expanded from `[N, ...]`, as the server's ensembles have it: the same as copies."""
    from fedlab_nb.models import build
    from fedlab_nb.rng import generator

    for name, shape in [("cnn", (1, 8, 8)), ("cnn", (3, 20, 20)), ("resnet8", (1, 8, 8)), ("mlp", (1, 8, 8))]:
        models = [build(name, shape, 4, generator=generator(k), dtype=torch.float64).eval() for k in range(M)]
        x = torch.rand(N, *shape, dtype=torch.float64)
        stack = Stack(models)
        stack.net.eval()
        stack.use(M)
        one = stack.forward(x.expand(M, *x.shape))
        torch.testing.assert_close(one, stack.forward(x.repeat(M, *[1] * x.dim())), rtol=0, atol=1e-12)
        torch.testing.assert_close(one, torch.stack([model(x) for model in models]), rtol=0, atol=1e-12)


def test_what_can_be_stacked():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x.view(x.size(0), -1))

    assert stackable(nn.Sequential(nn.Flatten(1), nn.Linear(4, 4), nn.ReLU()))
    assert not stackable(nn.Sequential(nn.Linear(4, 4), nn.Dropout()))
    assert not stackable(nn.Sequential(Odd()))
    assert not stackable(nn.Sequential(nn.Conv2d(4, 4, 3, groups=2)))
