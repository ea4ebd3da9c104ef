"""What is safe to claim of FedLPA, with margins: digits, 5 clients, its authors' local training, means of seeds 0-2."""

import numpy as np
import pytest

from fedlab_nb.study import compare

pytestmark = pytest.mark.slow

SETTING = {
    "dataset": "digits", "model": "mlp", "clients": 5, "holdout": 0, "epochs": 60, "batch_size": 32, "lr": 0.01,
    "momentum": 0.9, "weight_decay": 1e-5, "seeds": 3,
}  # fmt: skip


def mean(method, **settings):
    return compare([method], **(SETTING | {"alpha": 0.1} | settings)).mean(method)


def test_fedlpa_beats_fedavg_by_30_points():
    assert mean("fedlpa") > mean("fedavg") + 0.30


def test_fedlpa_beats_the_mean_of_probabilities_by_15_points():
    assert mean("fedlpa") > mean("ensemble", rule="probabilities") + 0.15


def test_different_initial_models_hurt_averaging_not_fedlpa():
    different = mean("fedlpa", init="different")
    assert different > mean("fedavg", init="different") + 0.40
    assert abs(different - mean("fedlpa")) < 0.05


def test_two_classes_a_client():
    settings = {"partition": "classes", "classes_per_client": 2}
    assert mean("fedlpa", **settings) > mean("fedavg", **settings) + 0.35


def test_damping_hardly_matters_to_fedlpa_and_ruins_the_shortcut():
    dampings = (1e-3, 1e-4, 1e-6)
    exact = [mean("fedlpa", damping=d) for d in dampings]
    shortcut = [mean("fedlpa", damping=d, solver="ea") for d in dampings]
    assert max(exact) - min(exact) < 0.08
    assert shortcut[0] - shortcut[-1] > 0.25


def test_conjugate_gradients_need_few_steps_and_beat_gradient_descent():
    cg = compare(["fedlpa"], **SETTING, alpha=0.1)
    gd = compare(["fedlpa"], **SETTING, alpha=0.1, solver="gd", iterations=1000)
    for fast, slow in zip(cg, gd, strict=True):
        for layer, curve in fast.report.curves.items():
            assert np.flatnonzero(curve < 1e-4)[0] <= 20
            assert curve[min(20, len(curve) - 1)] < slow.report.residual[layer]
