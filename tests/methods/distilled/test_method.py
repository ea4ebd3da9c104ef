"""Distilled data as a method: pooled kernel regression, class means, bytes, the report, and unusual federations."""

import functools

import byte_formulas
import method_runs
import numpy as np
import pytest
import torch
from collected_steps import run_and_collect_steps

from fedlab_nb.data import federate
from fedlab_nb.methods.distilled import WAYS, Distilled
from fedlab_nb.methods.distilled.images import (
    compute_tangent_kernel,
    make_centred_targets,
    solve_tangent_kernel_regression,
)

EXACT = torch.float64
QUICK = {"steps": 2, "server_epochs": 2}
STATE = 6570  # numbers of the digits' perceptron


context = functools.partial(method_runs.make_context, alpha=0.3, epochs=1)


# ------------------------------------------------------------------------------------------------ exact
@pytest.mark.parametrize("images", ["random", "kmeans", "kip"])
@pytest.mark.parametrize("clients", [1, 4])
def test_with_all_images_the_kernel_server_is_pooled_kernel_regression(images, clients):
    federation = federate("digits", alpha=0.5, clients=clients, seed=1)
    method = Distilled(images=images, per_class=1000, steps=0, server="kernel")
    out, _ = run_and_collect_steps(
        method.run(context(federation=federation, dtype=EXACT, holdout=0.8))
    )
    rows = torch.cat([train for train, _ in federation.split(0.8)]).sort().values
    x, y = federation.dataset.x_train[rows].double(), federation.dataset.y_train[rows]
    test = federation.dataset.x_test[:50].double()
    weights = solve_tangent_kernel_regression(
        x, make_centred_targets(y, 10), method.depth, method.ridge
    )
    expected = compute_tangent_kernel(test, x, method.depth) @ weights
    assert (out.logits(test) - expected).abs().max() < 1e-11
    assert torch.equal(out.predict(test), expected.argmax(1))


def test_with_one_centre_a_class_the_image_is_the_mean_of_the_class():
    ctx = context(dtype=EXACT)
    out, _ = run_and_collect_steps(Distilled(images="kmeans", per_class=1).run(ctx))
    for image, label, k in zip(
        out.report.images, out.report.labels, out.report.client, strict=True
    ):
        x, y = ctx.private.train(int(k))
        assert np.abs(image - x[y == int(label)].mean(0).numpy()).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("images", "m"), [("random", 3), ("kmeans", 1000)])
def test_chosen_images_are_samples_of_their_client(images, m):
    ctx = context()
    out, _ = run_and_collect_steps(Distilled(images=images, per_class=m, server="kernel").run(ctx))
    for image, label, k in zip(
        out.report.images, out.report.labels, out.report.client, strict=True
    ):
        x, y = ctx.private.train(int(k))
        assert min((x[y == int(label)] - torch.from_numpy(image)).abs().flatten(1).amax(1)) == 0


# ------------------------------------------------------------------------------------------------ link and report
@pytest.mark.parametrize("server", ["network", "kernel"])
@pytest.mark.parametrize("images", WAYS)
def test_bytes_and_report_count_the_images(images, server):
    ctx = context()
    out, _ = run_and_collect_steps(
        Distilled(images=images, per_class=2, server=server, **QUICK).run(ctx)
    )
    class_counts = [
        torch.bincount(ctx.private.train(k)[1], minlength=10).clamp(max=2) for k in range(3)
    ]
    image_counts = [int(counts.sum()) for counts in class_counts]
    down = byte_formulas.count_distilled_bytes(0, 64, STATE if images == "crops" else 0)
    expected = {
        k: (byte_formulas.count_distilled_bytes(n, 64), down) for k, n in enumerate(image_counts)
    }
    assert ctx.link.ledger.by_client() == expected
    report = out.report
    assert report.counts.tolist() == torch.stack(class_counts).tolist()
    assert report.images.shape == (sum(image_counts), 1, 8, 8)
    assert report.images.min() >= 0
    assert report.images.max() <= 1
    counts = [
        np.bincount(report.labels[report.client == k], minlength=10).tolist() for k in range(3)
    ]
    assert counts == report.counts.tolist()
    if images in ("random", "kmeans"):
        assert report.loss is None
    else:
        assert report.loss.shape == (2,)


def test_the_report_of_a_large_federation_has_some_images_of_every_client(monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.distilled.SHOWN", 7)
    out, _ = run_and_collect_steps(Distilled(per_class=2, server="kernel").run(context()))
    assert np.bincount(out.report.client).tolist() == [2, 2, 2] and out.report.counts.sum() > 7


# ------------------------------------------------------------------------------------------------ unusual federations
@pytest.mark.parametrize("images", WAYS)
@pytest.mark.parametrize("server", ["network", "kernel"])
def test_a_client_with_one_sample_and_clients_that_lack_classes(images, server):
    federation = federate("digits", indices=[[0], range(1, 50), range(50, 100)])
    ctx = context(federation=federation, holdout=0, models=("mlp", "mlp:8"), init="different")
    out, _ = run_and_collect_steps(Distilled(images=images, server=server, **QUICK).run(ctx))
    assert (out.report.client == 0).sum() == 1 and out.logits(
        torch.rand(5, 1, 8, 8)
    ).isfinite().all()
    assert ctx.link.ledger.down == 0
