"""RegMean: exact on linear regression, FedLPA with B = I, and what it sends."""

import byte_formulas
import pytest
import torch

from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.fedlpa.solvers import solve_layer_and_record_residuals
from fedlab_nb.methods.parts.kronecker import (
    KroneckerFactors,
    LayerPosterior,
    compute_mean_kronecker_factors,
    join_weight_and_bias_of_layer,
)
from fedlab_nb.methods.regmean import RegMean, merge_layer_by_regmean, shrink_off_diagonal
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator

from .test_fisher_merge import EXACT, context, draw_samples


def make_regressions(clients=3, inputs=5, outputs=2):
    """A linear regression with a bias for each client: inputs with a column of ones, targets, solutions."""
    g = torch.Generator().manual_seed(0)
    xs = []
    ys = []
    solutions = []
    for k in range(clients):
        n = 10 + 7 * k
        spread = torch.rand(inputs, generator=g, dtype=EXACT) + 0.1
        features = torch.randn(n, inputs, generator=g, dtype=EXACT) * spread
        x = torch.cat([features, torch.ones(n, 1, dtype=EXACT)], 1)
        y = torch.randn(n, outputs, generator=g, dtype=EXACT)
        xs.append(x)
        ys.append(y)
        solutions.append(torch.linalg.lstsq(x, y).solution.T)
    return xs, ys, solutions


def test_one_linear_layer_is_pooled_least_squares():
    xs, ys, solutions = make_regressions()
    shares = [len(x) / sum(map(len, xs)) for x in xs]
    merged = merge_layer_by_regmean(solutions, [x.T @ x / len(x) for x in xs], shares, 0.0)
    pooled = torch.linalg.lstsq(torch.cat(xs), torch.cat(ys)).solution.T
    torch.testing.assert_close(merged, pooled, rtol=0, atol=1e-10)
    average = sum(w * m for w, m in zip(shares, solutions, strict=True))
    assert (average - pooled).abs().max() > 0.05


def test_regmean_is_fedlpa_with_the_same_gradient_factor_at_every_client():
    xs, _, solutions = make_regressions()
    moments = [x.T @ x / len(x) for x in xs]
    eye, ridge = torch.eye(6, dtype=EXACT), 0.03
    b = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=EXACT)
    system = LayerPosterior.from_clients(
        solutions, [KroneckerFactors(a + ridge * eye, b) for a in moments], [0.2, 0.3, 0.5]
    )
    torch.testing.assert_close(
        merge_layer_by_regmean(solutions, moments, [0.2, 0.3, 0.5], ridge),
        solve_layer_and_record_residuals(system)[0],
        rtol=0,
        atol=1e-5,
    )


def test_one_client_keeps_its_layer_and_equal_moments_or_a_large_ridge_give_the_average():
    xs, _, solutions = make_regressions()
    moments = [x.T @ x / len(x) for x in xs]
    torch.testing.assert_close(
        merge_layer_by_regmean(solutions[:1], moments[:1], [1.0], 0.5),
        solutions[0],
        rtol=0,
        atol=1e-10,
    )
    average = 0.2 * solutions[0] + 0.8 * solutions[1]
    for inputs, ridge in (([moments[2]] * 2, 0.01), (moments[:2], 1e9)):
        torch.testing.assert_close(
            merge_layer_by_regmean(solutions[:2], inputs, [0.2, 0.8], ridge),
            average,
            rtol=0,
            atol=1e-7,
        )


def test_directions_without_input_keep_the_average():
    layers = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 6.0]])]
    moments = [torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([3.0, 0.0]))]
    # First column: (1*1 + 3*3)/4. The second has no input at any client: (2 + 6)/2.
    torch.testing.assert_close(
        merge_layer_by_regmean(layers, moments, [0.5, 0.5], 0.0), torch.tensor([[2.5, 4.0]])
    )


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize("scale", ["one", "official"])
def test_input_moments_are_fedlpas_factors_of_the_input(model, scale):
    module = build(model, (1, 8, 8), 10, dtype=EXACT)
    x, y = draw_samples()
    with_labels = compute_mean_kronecker_factors(module, x, y, conv_scale=scale)
    inputs_alone = compute_mean_kronecker_factors(module, x, None, conv_scale=scale, batch_size=4)
    assert list(inputs_alone) == list(with_labels)
    for name in inputs_alone:
        torch.testing.assert_close(inputs_alone[name].a, with_labels[name].a)


def test_the_method_merges_every_layer_and_sends_triangles():
    remembered = []
    ctx = context(dtype=torch.float32, remembered=remembered)
    out = exhaust_generator(RegMean().run(ctx))
    state = copy_model_state(out.module)
    weights = [t.shape for name, t in state.items() if name.endswith("weight")]
    expected = byte_formulas.count_regmean_bytes(sum(t.numel() for t in state.values()), weights)
    assert {up + down for up, down in ctx.link.ledger.by_client().values()} == {expected}
    name = "classifier"
    shards = [ctx.private.train(k)[0] for k in range(ctx.clients_count)]
    networks = [ctx.new_model(s) for s in remembered[0]]
    moments = [
        compute_mean_kronecker_factors(m, x, None)[name].a
        for m, x in zip(networks, shards, strict=True)
    ]
    shares = [n / sum(ctx.sizes) for n in ctx.sizes]
    by_hand = merge_layer_by_regmean(
        [join_weight_and_bias_of_layer(s, name) for s in remembered[0]],
        moments,
        shares,
        RegMean().ridge,
    )
    torch.testing.assert_close(join_weight_and_bias_of_layer(state, name), by_hand)


@pytest.mark.slow
def test_running_statistics_of_batch_norm_are_averaged():
    remembered = []
    ctx = context(model="resnet8", width=4, remembered=remembered)
    state = copy_model_state(exhaust_generator(RegMean().run(ctx)).module)
    average = weighted_mean(remembered[0], ctx.sizes)
    names = [name for name in state if "running" in name]
    assert names and all(torch.equal(state[name], average[name]) for name in names)


def test_the_merged_convolution_is_the_nearest_to_those_of_all_clients():
    """Of all convolutions, M̄ minimises Σ_k w_k (mean over client k's images of ‖conv(a) - conv_k(a)‖²): the gradient
    there is 0."""
    stream = torch.Generator().manual_seed(0)
    networks = [
        build("cnn", (1, 8, 8), 10, width=2, generator=stream, dtype=EXACT) for _ in range(3)
    ]
    images = [
        torch.rand(n, 1, 8, 8, generator=stream, dtype=EXACT) ** (k + 1)
        for k, n in enumerate((12, 20, 33))
    ]
    name, shares = "body.0.0", [0.2, 0.3, 0.5]
    layers = [network.get_submodule(name) for network in networks]
    client_outputs = [layer(x).detach() for layer, x in zip(layers, images, strict=True)]
    moments = [
        compute_mean_kronecker_factors(network, x, None)[name].a
        for network, x in zip(networks, images, strict=True)
    ]
    merged = merge_layer_by_regmean(
        [join_weight_and_bias_of_layer(copy_model_state(n), name) for n in networks],
        moments,
        shares,
        0.0,
    )
    weight = merged[:, :-1].reshape(layers[0].weight.shape).clone().requires_grad_()
    bias = merged[:, -1].clone().requires_grad_()
    squared_distance = sum(
        w * (torch.conv2d(x, weight, bias, padding=layers[0].padding) - y).square().sum() / len(x)
        for w, x, y in zip(shares, images, client_outputs, strict=True)
    )
    squared_distance.backward()
    assert (
        squared_distance.item() > 0.01
        and max(weight.grad.abs().max(), bias.grad.abs().max()) < 1e-8
    )


def test_off_diagonal_moments_shrink_by_the_factor():
    moments = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    torch.testing.assert_close(
        shrink_off_diagonal(moments, 0.9), torch.tensor([[2.0, 0.9], [0.9, 3.0]])
    )
    assert shrink_off_diagonal(moments, 1.0) is moments
