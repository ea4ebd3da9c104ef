"""The federation's choice of a ridge: its errors against new fits without the client or the sample."""

import method_runs
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.afl import AFL
from fedlab_nb.methods.parts.ridge import (
    GRID,
    compute_leave_one_out_error_sums,
    compute_mean_errors_on_left_out_clients,
)
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64


def draw_samples(n=30, d=6, classes=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    return torch.randn(n, d, generator=g, dtype=EXACT) + y[:, None], F.one_hot(y, classes).double()


def fit_ridge(x, y, rho):
    """Ridge regression as least squares with additional rows."""
    d = x.shape[1]
    rows = np.vstack([x, rho**0.5 * np.eye(d)])
    targets = np.vstack([y, np.zeros((d, y.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_errors_equal_those_of_fits_without_the_client_or_the_sample(clients, seed):
    x, y = draw_samples(seed=seed)
    owner = torch.randint(clients, (len(x),), generator=torch.Generator().manual_seed(seed + 1))
    groups = [(x[owner == k], y[owner == k]) for k in range(clients)]
    moments = [rows.T @ rows for rows, _ in groups]
    class_sums = [rows.T @ labels for rows, labels in groups]
    sizes = [len(rows) for rows, _ in groups]
    client_errors = compute_mean_errors_on_left_out_clients(moments, class_sums, sizes)
    sample_errors = sum(
        compute_leave_one_out_error_sums(x.T @ x, x.T @ y, rows, labels) for rows, labels in groups
    )
    rows = x.numpy()
    labels = y.numpy()
    for i in (0, 5, 9):
        rho = GRID[i]
        expected = 0.0
        for k in range(clients):
            is_other = (owner != k).numpy()
            w = fit_ridge(rows[is_other], labels[is_other], rho)
            expected += np.square(labels[~is_other] - rows[~is_other] @ w).sum()
        assert float(client_errors[i]) == pytest.approx(expected / len(x), rel=1e-6)
        expected = 0.0
        for j in range(len(rows)):
            w = fit_ridge(np.delete(rows, j, 0), np.delete(labels, j, 0), rho)
            expected += np.square(labels[j] - rows[j] @ w).sum()
        assert float(sample_errors[i]) == pytest.approx(expected, rel=1e-6)


def test_the_choice_by_samples_is_the_same_for_every_partition():
    """So is the error. Bytes: the sums down, and a number for each ridge up."""
    reports = []
    for alpha, clients, seed in ((0.05, 6, 1), (100, 3, 0), (1, 1, 0)):
        ctx = method_runs.make_context(
            alpha=alpha, clients=clients, seed=seed, dtype=EXACT, holdout=0.0
        )
        reports.append(exhaust_generator(AFL(choose="samples").run(ctx)).report)
        rows = ctx.link.ledger.rows()
        traffic = {
            r["direction"]: r["bytes"]
            for r in rows
            if r["phase"] == "choice of the ridge" and r["client"] == 0
        }
        assert traffic == {"down": 8 * (65 * 66 // 2 + 65 * 10), "up": 8 * len(GRID)}
    np.testing.assert_allclose(reports[0].errors, reports[2].errors, rtol=1e-8)
    assert len({report.rho for report in reports}) == 1
    assert reports[0].rho == GRID[int(np.argmin(reports[0].errors))]


def test_the_choice_by_clients_sends_nothing_more():
    totals = []
    for choose in ("given", "clients"):
        ctx = method_runs.make_context(dtype=EXACT)
        model = exhaust_generator(AFL(choose=choose).run(ctx))
        totals.append(ctx.link.ledger.total)
    assert totals[0] == totals[1] and model.report.rho in GRID
    with_given_rho = exhaust_generator(
        AFL(rho=model.report.rho).run(method_runs.make_context(dtype=EXACT))
    )
    assert np.array_equal(with_given_rho.report.weights, model.report.weights)


@pytest.mark.parametrize(
    "knobs", [{"secure": True}, {"epsilon": 1.0}, {"clients": 1, "choose": "clients"}]
)
def test_impossible_settings_are_refused(knobs):
    ctx = method_runs.make_context(clients=knobs.pop("clients", 3))
    with pytest.raises(UsageError, match="choose"):
        AFL(**{"choose": "samples", **knobs}).validate(ctx)
