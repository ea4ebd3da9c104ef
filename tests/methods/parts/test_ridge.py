"""The federation's choice of a ridge: every error against fits that are made anew without the client or the sample."""

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
    compute_held_out_client_errors,
    compute_squared_errors_on_samples,
)
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64


def samples(n=30, d=6, classes=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    return torch.randn(n, d, generator=g, dtype=EXACT) + y[:, None], F.one_hot(y, classes).double()


def fit(x, y, rho):
    return np.linalg.lstsq(
        np.vstack([x, rho**0.5 * np.eye(x.shape[1])]), np.vstack([y, np.zeros((x.shape[1], y.shape[1]))]), rcond=None
    )[0]  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_errors_are_those_of_fits_without_the_client_or_the_sample(clients, seed):
    x, y = samples(seed=seed)
    owner = torch.randint(clients, (len(x),), generator=torch.Generator().manual_seed(seed + 1))
    groups = [(x[owner == k], y[owner == k]) for k in range(clients)]
    sums = [rows.T @ rows for rows, _ in groups], [rows.T @ labels for rows, labels in groups]
    found = compute_held_out_client_errors(*sums, [len(rows) for rows, _ in groups])
    left_out = sum(
        compute_squared_errors_on_samples(x.T @ x, x.T @ y, rows, labels) for rows, labels in groups
    )
    for g, rho in ((0, GRID[0]), (5, GRID[5]), (9, GRID[9])):
        slow = 0.0
        for k in range(clients):
            w = fit(x[owner != k].numpy(), y[owner != k].numpy(), rho)
            slow += np.square(groups[k][1].numpy() - groups[k][0].numpy() @ w).sum()
        assert float(found[g]) == pytest.approx(slow / len(x), rel=1e-6)
        slow, a, b = 0.0, x.numpy(), y.numpy()
        for i in range(len(a)):
            slow += np.square(b[i] - a[i] @ fit(np.delete(a, i, 0), np.delete(b, i, 0), rho)).sum()
        assert float(left_out[g]) == pytest.approx(slow, rel=1e-6)


def test_by_samples_it_is_the_choice_of_one_place_whoever_holds_which():
    """Also the error itself; and what it costs: the sums down, a number for each ridge up."""
    reports = []
    for alpha, clients, seed in ((0.05, 6, 1), (100, 3, 0), (1, 1, 0)):
        ctx = method_runs.context(alpha=alpha, clients=clients, seed=seed, dtype=EXACT, holdout=0.0)
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


def test_by_clients_nothing_more_is_sent():
    sent = []
    for way in ("given", "clients"):
        ctx = method_runs.context(dtype=EXACT)
        model = exhaust_generator(AFL(choose=way).run(ctx))
        sent.append(ctx.link.ledger.total)
    assert sent[0] == sent[1] and model.report.rho in GRID
    given_it = exhaust_generator(AFL(rho=model.report.rho).run(method_runs.context(dtype=EXACT)))
    assert np.array_equal(given_it.report.weights, model.report.weights)


@pytest.mark.parametrize(
    "knobs", [{"secure": True}, {"epsilon": 1.0}, {"clients": 1, "choose": "clients"}]
)
def test_refused(knobs):
    ctx = method_runs.context(clients=knobs.pop("clients", 3))
    with pytest.raises(UsageError, match="choose"):
        AFL(**{"choose": "samples", **knobs}).validate(ctx)
