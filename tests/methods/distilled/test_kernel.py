"""The tangent kernel against closed forms and wide networks; kernel regression against the normal equations."""

import math

import pytest
import torch
from torch import nn

from fedlab_nb.methods.distilled.images import BIASES, WEIGHTS, centred, coefficients, inducing_loss, tangent_kernel

EXACT = torch.float64


def samples(n, p=6, seed=0):
    return torch.rand(n, p, generator=torch.Generator().manual_seed(seed), dtype=EXACT)


def test_without_hidden_layers_it_is_the_inner_product():
    x, z = samples(4), samples(3, seed=1)
    torch.testing.assert_close(tangent_kernel(x, z, 0), WEIGHTS * x @ z.T / 6 + BIASES)
    own = tangent_kernel(x, x, 0).diagonal()
    torch.testing.assert_close(own, torch.tensor([2 * float(row.norm()) ** 2 / 6 + 0.01 for row in x], dtype=EXACT))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_diagonal_has_a_closed_form(depth):
    """Θ_L(x, x) = Σ_{l=0..L} Σ_l(x, x) = (L + 1) Σ_0(x, x) + σ_b² L (L + 1) / 2, since σ_w² / 2 = 1."""
    x = samples(5)
    start = WEIGHTS * x.square().mean(1) + BIASES
    wanted = (depth + 1) * start + BIASES * depth * (depth + 1) / 2
    torch.testing.assert_close(tangent_kernel(x, x, depth).diagonal(), wanted, rtol=1e-12, atol=0)


@pytest.mark.parametrize("depth", [1, 2])
def test_wide_networks_have_nearly_this_kernel(depth):
    """Inner products of the gradients of networks in the tangent parameterisation, by torch's own backward pass."""
    x, width, draws = samples(3) * 2 - 1, 300, 30
    stream = torch.Generator().manual_seed(5)
    units = [6, *[width] * depth, 1]
    total = torch.zeros(3, 3, dtype=EXACT)
    for _ in range(draws):
        weights = [torch.randn(o, i, generator=stream, dtype=EXACT) for i, o in zip(units, units[1:], strict=False)]
        offsets = [torch.randn(o, generator=stream, dtype=EXACT) for o in units[1:]]
        leaves = [leaf.requires_grad_() for leaf in (*weights, *offsets)]
        out = x.T
        for layer, (weight, offset) in enumerate(zip(weights, offsets, strict=True)):
            out = math.sqrt(WEIGHTS / weight.shape[1]) * weight @ out + math.sqrt(BIASES) * offset[:, None]
            out = torch.relu(out) if layer < depth else out
        each = [torch.autograd.grad(answer, leaves, retain_graph=True) for answer in out[0]]
        gradients = torch.stack([torch.cat([g.flatten() for g in own]) for own in each])
        total += gradients @ gradients.T / draws
    kernel = tangent_kernel(x, x, depth)
    sizes = kernel.diagonal().sqrt()
    assert ((total - kernel) / (sizes[:, None] * sizes)).abs().max() < 0.05


def test_it_is_symmetric_positive_and_smooth_where_samples_coincide():
    x = samples(8)
    kernel = tangent_kernel(x, x, 3)
    torch.testing.assert_close(kernel, kernel.T)
    assert torch.linalg.eigvalsh(kernel).min() > 0
    twin = x[:1].clone().requires_grad_()
    (slope,) = torch.autograd.grad(tangent_kernel(twin, twin, 2).sum(), [twin])
    # d Θ_2(x, x) / dx = 3 · 2 σ_w² x / p, by the closed form of the diagonal
    torch.testing.assert_close(slope, 3 * 2 * WEIGHTS * x[:1] / 6)


def test_regression_solves_the_damped_normal_equations():
    x, targets = samples(12), centred(torch.arange(12) % 3, 3)
    kernel = tangent_kernel(x, x, 1)
    weights = coefficients(x, targets, 1, 0.1)
    damping = 0.1 * float(sum(kernel[i, i] for i in range(12))) / 12
    torch.testing.assert_close(kernel @ weights + damping * weights, targets)
    torch.testing.assert_close(targets.sum(1), torch.zeros(12, dtype=EXACT))


@pytest.mark.parametrize("depth", [0, 2])
def test_the_gradient_of_the_inducing_loss_against_finite_differences(depth):
    x, support = samples(9), samples(4, seed=3)
    targets, own = centred(torch.arange(9) % 3, 3), centred(torch.tensor([0, 1, 2, 2]), 3)
    support = support.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: inducing_loss(s, own, x, targets, depth, 1e-2), [support], eps=1e-6, atol=1e-6
    )


def test_the_inducing_loss_is_half_the_mean_square():
    x, y = samples(9), torch.arange(9) % 3
    support, own = samples(4, seed=3), torch.tensor([0, 1, 2, 2])
    total = 0.0
    weights = coefficients(support, centred(own, 3), 2, 1e-2)
    for row, label in zip(x, y, strict=True):
        answer = tangent_kernel(row[None], support, 2) @ weights
        wanted = nn.functional.one_hot(label, 3) - 1 / 3
        total += float((answer[0] - wanted).square().sum()) / 2
    assert float(inducing_loss(support, centred(own, 3), x, centred(y, 3), 2, 1e-2)) == pytest.approx(total / 9)
