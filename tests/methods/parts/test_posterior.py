"""The server solve against closed forms: pooled least squares, RegMean, a dense Kronecker system, autograd."""

import pytest
import torch

from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.methods.fedlpa.solvers import (
    CG_TOLERANCE,
    iterate_conjugate_gradients,
    iterate_gradient_descent,
    iterate_layer_solver,
    solve_layer_and_record_residuals,
)
from fedlab_nb.methods.parts.kronecker import (
    KroneckerFactors,
    LayerPosterior,
    add_damping,
    compute_damping_ratio,
)

K, O, I = 4, 5, 8  # noqa: E741


def covariance(generator, side, rank, scale=1.0):
    rows = torch.randn(rank, side, generator=generator, dtype=torch.float64)
    return scale * rows.T @ rows / rank


def clients(seed=0, k=K, outputs=O, inputs=I):
    """Random trained weights and undamped factors; the input factors are rank-deficient, as in real layers."""
    g = torch.Generator().manual_seed(seed)
    matrices = [torch.randn(outputs, inputs, generator=g, dtype=torch.float64) for _ in range(k)]
    factors = [
        KroneckerFactors(
            covariance(g, inputs, inputs // 2), covariance(g, outputs, outputs - 1, 0.1 * (j + 1))
        )
        for j in range(k)
    ]
    weights = torch.rand(k, generator=g, dtype=torch.float64)
    return matrices, factors, weights / weights.sum()


def system(seed=0, damping=1e-2, rule="one", **sizes):
    matrices, factors, weights = clients(seed, **sizes)
    return LayerPosterior.from_clients(
        matrices,
        [add_damping(f, damping, compute_damping_ratio(f, rule)) for f in factors],
        weights,
    )


def dense(posterior):
    """The full matrix S, which the package never forms."""
    blocks = [
        torch.kron(a.contiguous(), b.contiguous())
        for a, b in zip(posterior.a, posterior.b, strict=True)
    ]
    return torch.tensordot(posterior.w, torch.stack(blocks), 1)


def vec(matrix):
    return matrix.T.flatten()


@pytest.mark.parametrize("rule", ["one", "trace"])
@pytest.mark.parametrize("damping", [1e-6, 1e-3, 1e-1])
@pytest.mark.parametrize("solver", ["cg", "ea", "gd"])
def test_one_client_gets_its_own_weights_back(solver, damping, rule):
    alone = system(damping=damping, rule=rule, k=1)
    matrix, residuals = solve_layer_and_record_residuals(alone, solver, 50)
    torch.testing.assert_close(matrix, alone.m[0], rtol=1e-9, atol=1e-9)
    assert residuals[-1] < 1e-9


@pytest.mark.slow
def test_adam_from_the_average_comes_to_the_direct_solution():
    """FedFisher's way: none of the way after no step, all of it after many, and nearer with more of them."""
    posterior = system(damping=0.3)
    direct = (
        torch.linalg.solve(dense(posterior), vec(posterior.precision_weighted_sum)).view(I, O).T
    )
    path = {
        count: solve_layer_and_record_residuals(posterior, "adam", count)
        for count in (0, 100, 1000, 4000)
    }
    torch.testing.assert_close(path[0][0], posterior.weighted_client_average)
    distances = [float((matrix - direct).norm() / direct.norm()) for matrix, _ in path.values()]
    assert (
        distances == sorted(distances, reverse=True)
        and distances[1] > 0.01
        and distances[-1] < 1e-6
    )
    assert len(path[100][1]) == 101 and path[4000][1][-1] < 1e-6
    true = (
        posterior.apply_precision(path[100][0]) - posterior.precision_weighted_sum
    ).norm() / posterior.precision_weighted_sum.norm()
    torch.testing.assert_close(path[100][1][-1], true)


def test_linear_regression_equals_pooled_least_squares():
    """B = I, A = X'X/n_k, no damping: one shot loses nothing at all."""
    g = torch.Generator().manual_seed(3)
    sizes = [12, 30, 7]
    xs = [
        torch.randn(n, 4, generator=g, dtype=torch.float64) * torch.tensor([3.0, 1, 0.3, 1])
        for n in sizes
    ]
    xs = [torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1) for x in xs]
    ys = [torch.randn(n, 2, generator=g, dtype=torch.float64) for n in sizes]
    solutions = [torch.linalg.lstsq(x, y).solution.T for x, y in zip(xs, ys, strict=True)]
    factors = [KroneckerFactors(x.T @ x / len(x), torch.eye(2, dtype=x.dtype)) for x in xs]
    posterior = LayerPosterior.from_clients(solutions, factors, [n / sum(sizes) for n in sizes])
    pooled = torch.linalg.lstsq(torch.cat(xs), torch.cat(ys)).solution.T
    for solver in ("cg", "ea"):
        torch.testing.assert_close(
            solve_layer_and_record_residuals(posterior, solver)[0], pooled, rtol=0, atol=1e-10
        )
    assert (posterior.weighted_client_average - pooled).abs().max() > 0.05


@pytest.mark.parametrize("rule", ["one", "trace"])
@pytest.mark.parametrize("damping", [1e-4, 1e-2])
def test_conjugate_gradients_equal_the_dense_solution(damping, rule):
    posterior = system(damping=damping, rule=rule, outputs=20, inputs=65)
    start = posterior.solve_with_averaged_factors()
    *_, last = iterate_conjugate_gradients(
        posterior, start, residual_tolerance=1e-13, step_limit=1000
    )
    exact = torch.linalg.solve(dense(posterior), vec(posterior.precision_weighted_sum))
    torch.testing.assert_close(vec(last.matrix), exact, rtol=1e-8, atol=1e-9)


def test_the_matrix_form_is_the_kronecker_product():
    posterior = system()
    g = torch.Generator().manual_seed(9)
    matrix = torch.randn(O, I, generator=g, dtype=torch.float64)
    torch.testing.assert_close(
        vec(posterior.apply_precision(matrix)), dense(posterior) @ vec(matrix)
    )
    alone = [
        LayerPosterior(posterior.m[[k]], posterior.a[[k]], posterior.b[[k]], posterior.w[[k]])
        for k in range(K)
    ]
    torch.testing.assert_close(
        vec(posterior.precision_weighted_sum), sum(dense(one) @ vec(one.m[0]) for one in alone)
    )


def objective(posterior, matrix):
    """`1/2 |S M - Z|^2` (Eq. 14), which gradient descent makes smaller."""
    return (posterior.apply_precision(matrix) - posterior.precision_weighted_sum).square().sum() / 2


def test_a_step_of_gradient_descent_against_autograd():
    posterior = system()
    g = torch.Generator().manual_seed(9)
    matrix = torch.randn(O, I, generator=g, dtype=torch.float64, requires_grad=True)
    (automatic,) = torch.autograd.grad(objective(posterior, matrix), matrix)
    before, after = iterate_gradient_descent(posterior, matrix.detach(), 1)
    step = (before.matrix - after.matrix) * posterior.estimate_largest_squared_eigenvalue()
    torch.testing.assert_close(step, automatic, rtol=1e-11, atol=1e-13)
    largest = (
        torch.linalg.eigvalsh(dense(posterior))[-1] ** 2
    )  # below twice 1/L, so that it never diverges
    assert 0.99 * largest <= posterior.estimate_largest_squared_eigenvalue() <= 1.2 * largest


def test_the_official_step_is_sgd_of_rate_one_on_the_mean_squared_error():
    """The authors' loop in their own terms: `MSELoss` over the entries, SGD of rate 1, by autograd."""
    posterior = system(damping=1e-2)
    matrix = posterior.solve_with_averaged_factors().clone().requires_grad_()
    optimizer = torch.optim.SGD([matrix], lr=1.0)
    for step in iterate_layer_solver(posterior, "gd", 5, "official"):
        torch.testing.assert_close(step.matrix, matrix.detach(), rtol=1e-11, atol=1e-13)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(
            posterior.apply_precision(matrix), posterior.precision_weighted_sum
        ).backward()
        optimizer.step()
    with pytest.raises(UsageError, match="step of gradient descent 'authors'.*1/L, official"):
        iterate_layer_solver(posterior, "gd", 5, "authors")


@pytest.mark.parametrize("share", [0.5, 0.98, 1.02])
def test_the_official_step_diverges_where_the_largest_curvature_exceeds_the_numbers(share):
    """L = share * N: along the first eigenvector every step multiplies the error by 1 - 2 share, exactly."""
    raw = system()
    largest = torch.linalg.eigvalsh(dense(raw))[-1]
    scaled = LayerPosterior(raw.m, raw.a * (share * O * I) ** 0.5 / largest, raw.b, raw.w)
    values, vectors = torch.linalg.eigh(dense(scaled))
    assert values[-1].item() ** 2 == pytest.approx(share * O * I)
    best = torch.linalg.solve(dense(scaled), vec(scaled.precision_weighted_sum))
    path = list(
        iterate_gradient_descent(scaled, torch.zeros(O, I, dtype=torch.float64), 60, "official")
    )
    along = torch.stack([vectors[:, -1] @ (vec(step.matrix) - best) for step in path])
    expected = along[0] * (1 - 2 * share) ** torch.arange(61, dtype=torch.float64)
    torch.testing.assert_close(along, expected, rtol=1e-6, atol=1e-9)
    errors = torch.stack([(vec(step.matrix) - best).norm() for step in path])
    assert (errors.diff() <= 1e-12).all() if share < 1 else along[-1].abs() > 10 * along[0].abs()
    if share > 1:
        with pytest.raises(
            RunError, match="step=official diverged in layer 'layer'.*use step=1/L or solver=cg"
        ):
            solve_layer_and_record_residuals(
                LayerPosterior(scaled.m, 10 * scaled.a, scaled.b, scaled.w), "gd", 200, "official"
            )
    assert solve_layer_and_record_residuals(scaled, "gd", 100)[1][
        -1
    ].isfinite()  # 1/L never diverges


def test_the_reported_residual_is_the_true_one():
    posterior = system()
    for solver in ("gd", "cg", "ea"):
        path = list(iterate_layer_solver(posterior, solver, 30))
        for step in path:
            true = (
                posterior.apply_precision(step.matrix) - posterior.precision_weighted_sum
            ).norm() / posterior.precision_weighted_sum.norm()
            torch.testing.assert_close(step.residual, true, rtol=1e-6, atol=1e-12)
        torch.testing.assert_close(path[0].matrix, posterior.solve_with_averaged_factors())
    assert (
        len(list(iterate_layer_solver(posterior, "ea"))) == 1
        and len(list(iterate_layer_solver(posterior, "gd", 30))) == 31
    )


def test_degenerate_systems():
    matrices, factors, weights = clients()
    nothing = LayerPosterior.from_clients(
        [torch.zeros_like(m) for m in matrices], [add_damping(f, 1e-3) for f in factors], weights
    )
    for solver in ("cg", "gd", "ea"):
        matrix, residuals = solve_layer_and_record_residuals(nothing, solver, 5)
        assert matrix.count_nonzero() == 0 and residuals[-1] == 0
    broken = [KroneckerFactors(f.a * float("nan"), f.b) for f in factors]
    with pytest.raises(RunError, match="not finite"):
        solve_layer_and_record_residuals(LayerPosterior.from_clients(matrices, broken, weights))
    with pytest.raises(RunError, match="not positive definite; use a larger damping"):
        solve_layer_and_record_residuals(
            LayerPosterior.from_clients(
                matrices, [KroneckerFactors(f.a, -f.b) for f in factors], weights
            )
        )


def test_without_damping_unexcited_directions_are_left_out():
    """Singular factors: what the data say is met exactly, and nothing is made up where they say nothing."""
    matrices, factors, weights = clients(k=1, inputs=40)
    (rank_a, rank_b) = (int(torch.linalg.matrix_rank(f)) for f in (factors[0].a, factors[0].b))
    assert (rank_a, rank_b) == (20, O - 1)
    matrix, residuals = solve_layer_and_record_residuals(
        LayerPosterior.from_clients(matrices, factors, weights)
    )
    assert residuals[-1] <= CG_TOLERANCE
    assert matrix.norm() <= matrices[0].norm()
