"""Kronecker factors against independent derivations: autograd for each sample, patches by hand, and curvlinops."""

import pytest
import torch
import torch.nn.functional as F
from method_runs import make_torch_generator
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.parts import kronecker


def fill(module, seed=0, dtype=torch.float64):
    """The module in `dtype`, with weights from a generator of its own."""
    generator = make_torch_generator(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return module.to(dtype)


def make_mlp():
    return fill(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)))


def make_cnn():
    convolutions = nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Conv2d(3, 4, 2, dilation=2)
    layers = [layer for convolution in convolutions for layer in (convolution, nn.ReLU())]
    return fill(nn.Sequential(*layers, nn.Flatten(1), nn.Linear(16, 3)))


def draw_images(n=7, seed=1):
    g = make_torch_generator(seed)
    return torch.rand(n, 2, 8, 8, generator=g, dtype=torch.float64), torch.randint(
        3, (n,), generator=g
    )


def draw_rows(n=9, seed=1):
    g = make_torch_generator(seed)
    return torch.rand(n, 6, generator=g, dtype=torch.float64), torch.randint(4, (n,), generator=g)


def compute_gradient_of_sample(module, x, y, layer):
    """`[W b]` gradient of one sample's loss, by ordinary autograd on the weights."""
    module.zero_grad()
    F.cross_entropy(module(x[None]), y[None]).backward()
    return kronecker.append_bias_column(layer.weight.grad, layer.bias.grad)


def test_for_one_sample_and_a_linear_layer_the_factors_are_the_gradients_outer_product():
    module = make_mlp()
    x, y = draw_rows(1)
    factors = kronecker.compute_mean_kronecker_factors(module, x, y)
    for name, layer in kronecker.find_layers_with_kronecker_factors(module).items():
        columns = compute_gradient_of_sample(
            module, x[0], y[0], layer
        ).T.flatten()  # vec stacks columns
        torch.testing.assert_close(
            torch.kron(factors[name].a, factors[name].b),
            torch.outer(columns, columns),
            rtol=1e-10,
            atol=1e-14,
        )


def test_linear_factors_equal_a_loop_over_samples():
    module = make_mlp()
    x, y = draw_rows()
    factors = kronecker.compute_mean_kronecker_factors(module, x, y)
    a = b = 0
    for xs, ys in zip(x, y, strict=True):
        hidden = torch.cat([module[:2](xs), torch.ones(1, dtype=xs.dtype)])
        # the bias gradient of the last layer is exactly its output gradient: softmax minus one-hot
        error = module(xs).softmax(0) - F.one_hot(ys, 4)
        a = a + torch.outer(hidden, hidden) / len(x)
        b = b + torch.outer(error, error) / len(x)
    torch.testing.assert_close(factors["2"].a, a.detach(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(factors["2"].b, b.detach(), rtol=1e-12, atol=1e-14)


def compute_conv_factors_by_hand(layer, x, gradient):
    """Undamped sums over samples and positions; every patch is cut out by its indices."""
    kh, kw = layer.kernel_size
    sh, sw = layer.stride
    ph, pw = layer.padding
    dh, dw = layer.dilation
    padded = torch.zeros(
        x.shape[0], x.shape[1], x.shape[2] + 2 * ph, x.shape[3] + 2 * pw, dtype=x.dtype
    )
    padded[:, :, ph : ph + x.shape[2], pw : pw + x.shape[3]] = x
    a = b = 0
    for n in range(len(x)):
        for i in range(gradient.shape[2]):
            for j in range(gradient.shape[3]):
                patch = [
                    padded[n, c, i * sh + u * dh, j * sw + v * dw]
                    for c in range(x.shape[1])
                    for u in range(kh)
                    for v in range(kw)
                ]
                patch = torch.stack([*patch, torch.ones((), dtype=x.dtype)])
                assert torch.allclose(
                    kronecker.append_bias_column(layer.weight, layer.bias) @ patch,
                    layer(x)[n, :, i, j],
                )
                output_gradient = gradient[n, :, i, j]
                a = a + torch.outer(patch, patch)
                b = b + torch.outer(output_gradient, output_gradient)
    return a, b


@pytest.mark.parametrize("scale", ["one", "curvlinops", "official"])
def test_convolution_factors_equal_patches_cut_by_hand(scale):
    module = make_cnn()
    x, y = draw_images(3)
    factors = kronecker.compute_mean_kronecker_factors(module, x, y, conv_scale=scale)
    for index in (0, 2):
        inputs = module[:index](x).detach()
        outputs = module[index](inputs).detach().requires_grad_()
        # The sum, so that each row of the gradient is that of its sample.
        loss = F.cross_entropy(module[index + 1 :](outputs), y, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, outputs)
        a, b = compute_conv_factors_by_hand(module[index], inputs, gradient)
        t = gradient[0, 0].numel()
        c = {"one": 1, "curvlinops": 1 / t, "official": 1 / t**2}[scale]
        torch.testing.assert_close(
            factors[str(index)].a, a.detach() * c / 3, rtol=1e-11, atol=1e-14
        )
        torch.testing.assert_close(factors[str(index)].b, b / (c * t * 3), rtol=1e-11, atol=1e-14)


def test_factors_do_not_depend_on_batch_size_or_requires_grad():
    module = make_cnn()
    x, y = draw_images()
    in_one_batch = kronecker.compute_mean_kronecker_factors(module, x, y, batch_size=100)
    with torch.no_grad():
        in_batches_of_2 = kronecker.compute_mean_kronecker_factors(
            module.requires_grad_(False), x, y, batch_size=2
        )
    for name in in_one_batch:
        torch.testing.assert_close(
            in_one_batch[name].a, in_batches_of_2[name].a, rtol=1e-12, atol=1e-14
        )
        torch.testing.assert_close(
            in_one_batch[name].b, in_batches_of_2[name].b, rtol=1e-12, atol=1e-14
        )


def test_measuring_changes_nothing_and_uses_batch_norm_in_eval_mode():
    layers = [
        nn.Linear(6, 5, bias=False),
        nn.BatchNorm1d(5),
        nn.ReLU(inplace=True),
        nn.Linear(5, 4),
    ]
    module = fill(nn.Sequential(*layers)).train()
    x, y = draw_rows()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    in_batches_of_1 = kronecker.compute_mean_kronecker_factors(module, x, y, batch_size=1)
    in_one_batch = kronecker.compute_mean_kronecker_factors(module, x, y)
    assert module.training and all(p.requires_grad and p.grad is None for p in module.parameters())
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not any(m._forward_hooks for m in module.modules())
    assert in_batches_of_1["0"].a.shape == (6, 6)  # no bias, no appended 1
    torch.testing.assert_close(in_batches_of_1["0"].b, in_one_batch["0"].b, rtol=1e-12, atol=1e-14)


def test_the_trace_rule_of_damping_by_hand_and_at_its_limit():
    factors = kronecker.KroneckerFactors(
        torch.diag(torch.tensor([1.0, 3.0])), torch.diag(torch.tensor([0.25, 0.25, 1.0]))
    )
    assert kronecker.compute_damping_ratio(factors, "trace") == pytest.approx(2.0)
    out = kronecker.add_damping(factors, 0.01, 2.0)
    torch.testing.assert_close(out.a.diagonal(), torch.tensor([1.2, 3.2]))
    torch.testing.assert_close(out.b.diagonal(), torch.tensor([0.3, 0.3, 1.05]))
    dead = kronecker.KroneckerFactors(factors.a, torch.zeros(3, 3))
    assert kronecker.compute_damping_ratio(dead, "trace") == kronecker.PI_LIMIT
    block = kronecker.add_damping(dead, 0.01, kronecker.PI_LIMIT)
    torch.testing.assert_close(
        torch.kron(block.a, block.b), 0.01 * torch.eye(6), rtol=1e-3, atol=1e-6
    )


def test_a_layers_matrix_can_be_written_back_in_its_shapes_and_types():
    for layer in (
        nn.Linear(4, 3),
        nn.Linear(4, 3, bias=False),
        nn.Conv2d(2, 5, 3),
        nn.Conv2d(2, 5, 3, bias=False),
    ):
        state = {f"layer.{name}": parameter for name, parameter in layer.named_parameters()}
        restored = kronecker.copy_state_with_layers(
            state, {"layer": kronecker.append_bias_column(layer.weight, layer.bias).double()}
        )
        assert restored.keys() == state.keys()
        assert all(
            restored[name].dtype == state[name].dtype and torch.equal(restored[name], state[name])
            for name in state
        )


def test_wrong_arguments_are_refused_in_one_sentence():
    x, y = draw_rows()
    with pytest.raises(UsageError, match="conv_scale 'ones': did you mean 'one'"):
        kronecker.compute_mean_kronecker_factors(make_mlp(), x, y, conv_scale="ones")
    with pytest.raises(UsageError, match="one label for each sample"):
        kronecker.compute_mean_kronecker_factors(make_mlp(), x[:0], y[:0])
    with pytest.raises(UsageError, match="groups"):
        kronecker.find_layers_with_kronecker_factors(nn.Sequential(nn.Conv2d(4, 4, 3, groups=2)))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # from a library that curvlinops imports
def test_factors_equal_curvlinops():
    """An independent library: its empirical, expand, joint-bias factors are ours with c = 1/T (its version 3.0.1)."""
    from curvlinops.kfac import KFACLinearOperator

    module = make_cnn()
    x, y = draw_images()
    options = {
        "fisher_type": "empirical",
        "kfac_approx": "expand",
        "separate_weight_and_bias": False,
    }
    loss = nn.CrossEntropyLoss(reduction="mean")
    operator = KFACLinearOperator(
        module, loss, list(module.parameters()), [(x, y)], check_deterministic=False, **options
    )
    operator.compute_kronecker_factors()
    for name, layer in kronecker.compute_mean_kronecker_factors(
        module, x, y, conv_scale="curvlinops"
    ).items():
        torch.testing.assert_close(
            layer.a, operator._input_covariances[name], rtol=1e-10, atol=1e-13
        )
        torch.testing.assert_close(
            layer.b, operator._gradient_covariances[name], rtol=1e-10, atol=1e-13
        )
