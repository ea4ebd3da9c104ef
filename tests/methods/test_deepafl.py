"""DeepAFL: a layer against its dense normal equations, one model for every partition, what a layer gains, bytes."""

import functools

import byte_formulas
import method_runs
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import Ridge

from fedlab_nb.data import federate
from fedlab_nb.methods.deepafl import DeepAFL, draw_random_layer, solve_residual_layer
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64
SMALL = {"layers": 3, "width": 20, "random": 30}
context = functools.partial(method_runs.make_context, dtype=EXACT, holdout=0.0)


def test_a_layer_solves_its_normal_equations():
    """vec: (WWᵀ ⊗ FᵀF + γ I) vec(Ω) = vec(FᵀR Wᵀ), and no step away from it is better."""
    stream = torch.Generator().manual_seed(0)
    f = torch.randn(30, 5, generator=stream, dtype=EXACT)
    r = torch.randn(30, 3, generator=stream, dtype=EXACT)
    w = torch.randn(4, 3, generator=stream, dtype=EXACT)
    omega_of_layer = solve_residual_layer(f.T @ f, f.T @ r, w, 0.3)
    system = torch.kron(f.T @ f, w @ w.T) + 0.3 * torch.eye(
        20, dtype=EXACT
    )  # Ω flattened row by row
    dense_omega = torch.linalg.solve(system, (f.T @ r @ w.T).flatten()).view(5, 4)
    torch.testing.assert_close(omega_of_layer, dense_omega)

    def loss(omega):
        return (r - f @ omega @ w).square().sum() + 0.3 * omega.square().sum()

    offset = 1e-3 * torch.randn(5, 4, generator=stream, dtype=EXACT)
    assert loss(omega_of_layer) < min(loss(omega_of_layer + offset), loss(omega_of_layer - offset))


def test_the_model_is_the_same_for_every_partition():
    x = federate("digits", clients=2).dataset.x_test.double()
    scores = []
    for setting in [
        {"clients": 1, "alpha": 1.0},
        {"alpha": 0.05, "clients": 10, "seed": 3},
        {"alpha": 100.0, "clients": 20, "seed": 1},
        {"partition": "quantity", "alpha": 0.5, "clients": 7, "seed": 2},
    ]:
        model = exhaust_generator(DeepAFL(**SMALL).run(context(federate("digits", **setting))))
        scores.append(model.logits(x))
    for scores_of_partition in scores[1:]:
        torch.testing.assert_close(scores_of_partition, scores[0], rtol=0, atol=1e-8)


def test_without_layers_it_is_ridge_regression_on_random_features():
    ctx = context()
    model = exhaust_generator(DeepAFL(layers=0, width=20, rho=0.5).run(ctx))
    x, y = (torch.cat(part) for part in zip(*(ctx.private.train(k) for k in range(3)), strict=True))
    weight, bias = draw_random_layer(0, 0, 64, 20, x)
    rows = np.tanh(x.flatten(1).numpy() @ weight.numpy() + bias.numpy())
    fit = Ridge(alpha=0.5, fit_intercept=False, solver="svd").fit(rows, np.eye(10)[y.numpy()])
    np.testing.assert_allclose(model.logits(x), rows @ fit.coef_.T, atol=1e-9)


def test_every_layer_lowers_the_objective():
    ctx = context(data="digits")
    method = DeepAFL(**SMALL)
    model = exhaust_generator(method.run(ctx))
    objective = model.report.objective
    assert len(objective) == 4 and (np.diff(objective) < 0).all()
    x, y = (torch.cat(part) for part in zip(*(ctx.private.train(k) for k in range(3)), strict=True))
    phi = model.features(x)
    residual = F.one_hot(y, 10) - model.logits(x)
    weights = torch.linalg.lstsq(phi, model.logits(x)).solution
    by_hand = (residual.square().sum() + method.rho * weights.square().sum()) / len(x)
    assert objective[-1] == pytest.approx(by_hand.item(), rel=1e-8)


@pytest.mark.parametrize(("dtype", "bytes_a_number"), [(torch.float32, 4), (EXACT, 8)])
def test_bytes_follow_the_formula(dtype, bytes_a_number):
    ctx = context(dtype=dtype)
    exhaust_generator(DeepAFL(**SMALL).run(ctx))
    up = 4 * byte_formulas.count_afl_bytes(
        20, 10, bytes_a_number
    ) + 3 * byte_formulas.count_afl_bytes(30, 10, bytes_a_number)
    assert set(ctx.link.ledger.by_client().values()) == {
        (up, 3 * bytes_a_number * 20 * (10 + 30) + 8)
    }


def test_every_step_yields_a_model_with_one_layer_more():
    steps = [step for step in DeepAFL(**SMALL).run(context()) if step.model is not None]
    x = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)
    assert [len(step.model.layers) for step in steps] == [0, 1, 2, 3]
    assert all(step.model.features(x).shape == (5, 20) for step in steps)
