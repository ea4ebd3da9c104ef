"""How clients choose or make their images: k-means, kernel inducing points, crops, amplitudes, features; the kernel."""

import math

import pytest
import torch
from method_runs import make_torch_generator
from torch import nn

from fedlab_nb.methods.distilled import images as making
from fedlab_nb.models import build

EXACT = torch.float64


def images(n, seed=0, side=5):
    return torch.rand(n, 1, side, side, generator=make_torch_generator(seed), dtype=EXACT)


# ------------------------------------------------------------------------------------------------ chosen
def test_samples_are_grouped_by_class_and_drawn_without_repeats():
    labels = torch.tensor([2, 0, 2, 2, 4, 0])
    groups = making.group_sample_indices_by_occurring_class(labels, 5)
    assert [rows.tolist() for rows in groups] == [[1, 5], [0, 2, 3], [4]]
    for seed in range(20):
        rows = making.draw_sample_indices_per_class(groups, 2, make_torch_generator(seed))
        assert labels[rows].tolist() == [0, 0, 2, 2, 4] and len(set(rows.tolist())) == 5
    assert {
        tuple(making.draw_sample_indices_per_class(groups, 1, make_torch_generator(seed)).tolist())
        for seed in range(60)
    } == {(a, b, 4) for a in (1, 5) for b in (0, 2, 3)}


def test_one_centre_is_the_mean_and_with_enough_centres_they_are_the_samples():
    x = images(9)
    torch.testing.assert_close(
        making.compute_k_means_centres(x, 1, make_torch_generator()),
        x.mean(0, keepdim=True),
        rtol=0,
        atol=1e-14,
    )
    for m in (9, 20):
        assert torch.equal(making.compute_k_means_centres(x, m, make_torch_generator()), x)


def test_a_centre_is_the_mean_of_its_nearest_samples():
    x = images(60)
    centroids = making.compute_k_means_centres(x, 5, make_torch_generator()).flatten(1)
    nearest = torch.cdist(x.flatten(1), centroids).argmin(1)
    for c in range(5):
        torch.testing.assert_close(centroids[c], x.flatten(1)[nearest == c].mean(0))
    chance = torch.cdist(x.flatten(1), x.flatten(1)[:5]).amin(1).square().sum()
    assert torch.cdist(x.flatten(1), centroids).amin(1).square().sum() < chance


def test_equal_samples_give_no_empty_cluster():
    assert torch.equal(
        making.compute_k_means_centres(
            torch.ones(6, 1, 2, 2, dtype=EXACT), 3, make_torch_generator()
        ),
        torch.ones(3, 1, 2, 2, dtype=EXACT),
    )


# ------------------------------------------------------------------------------------------------ inducing points
def optimise(steps, lr, clip_to_unit=True, n=30, start=None):
    x, y = images(n), torch.arange(n) % 3
    start = x[:6] if start is None else start
    options = {
        "class_count": 3,
        "hidden_layer_count": 2,
        "relative_ridge": 1e-3,
        "steps": steps,
        "lr": lr,
        "clip_to_unit": clip_to_unit,
        "sample_stream": make_torch_generator(),
    }
    return list(making.optimise_inducing_points(start, y[:6], x, y, **options)), (x, y)


def test_at_a_small_rate_the_loss_never_rises():
    steps, (x, y) = optimise(40, 1e-3)
    losses = [float(loss) for _, loss in steps]
    assert all(later < before for before, later in zip(losses, losses[1:], strict=False))
    support_targets, targets = (
        making.make_centred_targets(y[:6], 3),
        making.make_centred_targets(y, 3),
    )
    assert losses[0] == pytest.approx(
        float(making.compute_loss_of_inducing_points(x[:6], support_targets, x, targets, 2, 1e-3))
    )
    assert losses[-1] == pytest.approx(
        float(
            making.compute_loss_of_inducing_points(
                steps[-2][0], support_targets, x, targets, 2, 1e-3
            )
        )
    )


def test_pixels_stay_in_their_range_and_samples_are_not_changed():
    steps, (x, _) = optimise(30, 0.2)
    for moved_images, _ in steps:
        assert moved_images.min() >= 0 and moved_images.max() <= 1
    assert steps[-1][0].min() == 0 or steps[-1][0].max() == 1  # the range was reached
    assert torch.equal(x, images(30))
    unbounded, _ = optimise(30, 0.2, clip_to_unit=False)
    assert unbounded[-1][0].min() < 0 or unbounded[-1][0].max() > 1


def test_the_first_step_is_adams():
    """The first one moves each pixel by the rate, against its gradient."""
    start = images(6) / 2 + 0.25  # inside the range
    ((moved_images, _),), (x, y) = optimise(1, 0.01, start=start)
    leaf = start.clone().requires_grad_()
    loss = making.compute_loss_of_inducing_points(
        leaf, making.make_centred_targets(y[:6], 3), x, making.make_centred_targets(y, 3), 2, 1e-3
    )
    (gradient,) = torch.autograd.grad(loss, [leaf])
    torch.testing.assert_close(moved_images, start - 0.01 * gradient.sign(), rtol=0, atol=1e-5)


# ------------------------------------------------------------------------------------------------ crops
def test_crops_by_hand():
    x = images(2, side=9)
    whole_side, zero = torch.ones(2, dtype=EXACT), torch.zeros(2, dtype=EXACT)
    torch.testing.assert_close(making.crop_squares_and_resize_back(x, whole_side, zero, zero), x)
    ramp = torch.linspace(0, 1, 10, dtype=EXACT).expand(1, 1, 10, 10).contiguous()
    for left, part in (
        (0.0, (0.0, 0.7)),
        (1.0, (0.3, 1.0)),
    ):  # seven of ten columns, drawn out over ten
        crop = making.crop_squares_and_resize_back(
            ramp, zero[:1], torch.tensor([left], dtype=EXACT), zero[:1]
        )[0, 0, 0]
        columns = (torch.arange(10) + 0.5) / 10 * (part[1] - part[0]) + part[0]
        expected = ((columns * 10 - 0.5) / 9).clamp(0, 1).double()
        torch.testing.assert_close(crop, expected)


def test_the_crop_and_the_images_of_least_loss_are_chosen():
    network = build(
        "mlp", (1, 8, 8), 3, width=4, generator=make_torch_generator(), dtype=EXACT
    ).eval()
    x, y = images(12, side=8), torch.arange(12) % 3
    crops, losses = making.draw_crops_and_select_least_loss(network, x, y, make_torch_generator(4))
    draws = torch.rand(10, 3, 12, generator=make_torch_generator(4)).double()
    every = torch.stack([making.crop_squares_and_resize_back(x, *draw) for draw in draws])
    each = torch.stack([-network(part).log_softmax(1)[torch.arange(12), y] for part in every])
    torch.testing.assert_close(losses, each.amin(0))
    torch.testing.assert_close(crops, every[each.argmin(0), torch.arange(12)])
    rows = making.choose_least_loss_indices_per_class(
        making.group_sample_indices_by_occurring_class(y, 3), losses, 2
    )
    for c in range(3):
        class_rows = [r for r in range(12) if y[r] == c]
        assert sorted(class_rows, key=lambda r: float(losses[r]))[:2] == sorted(
            [r for r in rows.tolist() if y[r] == c], key=lambda r: float(losses[r])
        )


def test_amplitudes_are_mixed_and_the_mean_follows():
    x, others = images(3) / 2 + 0.3, images(3, seed=1) / 2 + 0.3
    torch.testing.assert_close(making.mix_fourier_amplitudes(x, others, 0.0), x)
    torch.testing.assert_close(making.mix_fourier_amplitudes(x, x, 0.9), x)
    mixed = making.mix_fourier_amplitudes(x, others, 0.2)
    inside = ((mixed > 0) & (mixed < 1)).all()
    assert inside  # nothing was cut off, so that amplitudes can be read again
    spectrum, own, other = (torch.fft.fft2(part) for part in (mixed, x, others))
    torch.testing.assert_close(spectrum.abs(), 0.8 * own.abs() + 0.2 * other.abs())
    # the mean pixel is amplitude 0
    torch.testing.assert_close(
        mixed.mean((1, 2, 3)), 0.8 * x.mean((1, 2, 3)) + 0.2 * others.mean((1, 2, 3))
    )


def test_images_are_moved_until_their_features_match_those_of_the_crops():
    network = build(
        "mlp", (1, 8, 8), 3, width=16, generator=make_torch_generator(), dtype=EXACT
    ).eval()
    crops, start, y = images(4, side=8), images(4, seed=1, side=8), torch.arange(4) % 3
    before = {name: t.clone() for name, t in network.state_dict().items()}
    steps = list(
        making.move_images_towards_features_of_crops(network, start, crops, y, steps=80, lr=0.02)
    )
    expected = network.features(crops)
    initial_distance, final_distance = (
        (network.features(part) - expected).square().sum(1).mean() for part in (start, steps[-1][0])
    )
    assert (
        final_distance < initial_distance / 10
        and steps[-1][0].min() >= 0
        and steps[-1][0].max() <= 1
    )
    assert all(torch.equal(before[name], t) for name, t in network.state_dict().items())
    entropy = torch.nn.functional.cross_entropy(network(start), y)
    assert float(steps[0][1]) == pytest.approx((initial_distance + 0.01 * entropy).item())


# --------------------------------------------------------------------------------------------------- the tangent kernel
# The tangent kernel against closed forms and wide networks; kernel regression against the normal equations.


def samples(n, p=6, seed=0):
    return torch.rand(n, p, generator=torch.Generator().manual_seed(seed), dtype=EXACT)


def test_without_hidden_layers_the_kernel_is_the_inner_product():
    x, z = samples(4), samples(3, seed=1)
    torch.testing.assert_close(
        making.compute_tangent_kernel(x, z, 0),
        making.WEIGHT_VARIANCE * x @ z.T / 6 + making.BIAS_VARIANCE,
    )


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_diagonal_of_the_kernel_follows_the_closed_form(depth):
    """Θ_L(x, x) = Σ_{l=0..L} Σ_l(x, x) = (L + 1) Σ_0(x, x) + σ_b² L (L + 1) / 2, since σ_w² / 2 = 1."""
    x = samples(5)
    start = making.WEIGHT_VARIANCE * x.square().mean(1) + making.BIAS_VARIANCE
    expected = (depth + 1) * start + making.BIAS_VARIANCE * depth * (depth + 1) / 2
    torch.testing.assert_close(
        making.compute_tangent_kernel(x, x, depth).diagonal(), expected, rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("depth", [1, 2])
def test_wide_networks_have_nearly_the_tangent_kernel(depth):
    """Inner products of the gradients of networks in the tangent parameterisation, by torch's own backward pass."""
    x, width, draws = samples(3) * 2 - 1, 300, 30
    stream = torch.Generator().manual_seed(5)
    units = [6, *[width] * depth, 1]
    total = torch.zeros(3, 3, dtype=EXACT)
    for _ in range(draws):
        weights = [
            torch.randn(o, i, generator=stream, dtype=EXACT)
            for i, o in zip(units, units[1:], strict=False)
        ]
        offsets = [torch.randn(o, generator=stream, dtype=EXACT) for o in units[1:]]
        leaves = [leaf.requires_grad_() for leaf in (*weights, *offsets)]
        out = x.T
        for layer, (weight, offset) in enumerate(zip(weights, offsets, strict=True)):
            out = (
                math.sqrt(making.WEIGHT_VARIANCE / weight.shape[1]) * weight @ out
                + math.sqrt(making.BIAS_VARIANCE) * offset[:, None]
            )
            out = torch.relu(out) if layer < depth else out
        gradients_by_sample = [
            torch.autograd.grad(answer, leaves, retain_graph=True) for answer in out[0]
        ]
        gradients = torch.stack(
            [
                torch.cat([g.flatten() for g in gradients_of_sample])
                for gradients_of_sample in gradients_by_sample
            ]
        )
        total += gradients @ gradients.T / draws
    kernel = making.compute_tangent_kernel(x, x, depth)
    sizes = kernel.diagonal().sqrt()
    assert ((total - kernel) / (sizes[:, None] * sizes)).abs().max() < 0.05


def test_the_kernel_is_symmetric_positive_and_smooth_where_samples_coincide():
    x = samples(8)
    kernel = making.compute_tangent_kernel(x, x, 3)
    torch.testing.assert_close(kernel, kernel.T)
    assert torch.linalg.eigvalsh(kernel).min() > 0
    twin = x[:1].clone().requires_grad_()
    (slope,) = torch.autograd.grad(making.compute_tangent_kernel(twin, twin, 2).sum(), [twin])
    # d Θ_2(x, x) / dx = 3 · 2 σ_w² x / p, by the closed form of the diagonal
    torch.testing.assert_close(slope, 3 * 2 * making.WEIGHT_VARIANCE * x[:1] / 6)


def test_regression_solves_the_damped_normal_equations():
    x, targets = samples(12), making.make_centred_targets(torch.arange(12) % 3, 3)
    kernel = making.compute_tangent_kernel(x, x, 1)
    weights = making.solve_tangent_kernel_regression(x, targets, 1, 0.1)
    damping = 0.1 * float(sum(kernel[i, i] for i in range(12))) / 12
    torch.testing.assert_close(kernel @ weights + damping * weights, targets)
    torch.testing.assert_close(targets.sum(1), torch.zeros(12, dtype=EXACT))


@pytest.mark.parametrize("depth", [0, 2])
def test_the_gradient_of_the_inducing_loss_equals_finite_differences(depth):
    x, support = samples(9), samples(4, seed=3)
    targets, support_targets = (
        making.make_centred_targets(torch.arange(9) % 3, 3),
        making.make_centred_targets(torch.tensor([0, 1, 2, 2]), 3),
    )
    support = support.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: making.compute_loss_of_inducing_points(
            s, support_targets, x, targets, depth, 1e-2
        ),
        [support],
        eps=1e-6,
        atol=1e-6,
    )


def test_the_inducing_loss_is_half_the_mean_squared_error():
    x, y = samples(9), torch.arange(9) % 3
    support, labels = samples(4, seed=3), torch.tensor([0, 1, 2, 2])
    total = 0.0
    weights = making.solve_tangent_kernel_regression(
        support, making.make_centred_targets(labels, 3), 2, 1e-2
    )
    for row, label in zip(x, y, strict=True):
        answer = making.compute_tangent_kernel(row[None], support, 2) @ weights
        expected = nn.functional.one_hot(label, 3) - 1 / 3
        total += float((answer[0] - expected).square().sum()) / 2
    assert float(
        making.compute_loss_of_inducing_points(
            support,
            making.make_centred_targets(labels, 3),
            x,
            making.make_centred_targets(y, 3),
            2,
            1e-2,
        )
    ) == pytest.approx(total / 9)
