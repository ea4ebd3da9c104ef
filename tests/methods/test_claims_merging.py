"""FedLPA beside its simpler relatives and on what it gives away: digits, 5 clients, means of seeds 0-2."""

import pytest

from fedlab_nb.study import compare

pytestmark = pytest.mark.slow

SETTING = {"model": "mlp", "clients": 5, "holdout": 0, "epochs": 60, "batch_size": 32, "lr": 0.01, "seeds": 3}


@pytest.mark.parametrize("damping", [1e-3, 1e-6])
def test_fedlpa_beats_the_diagonal_fisher_by_20_points(damping):
    diagonal = compare(["fisher_merge"], alpha=0.1, damping=damping, **SETTING).mean("fisher_merge")
    assert compare(["fedlpa"], alpha=0.1, **SETTING).mean("fedlpa") > diagonal + 0.20


def test_fedlpa_needs_a_common_start_where_there_is_hardly_any_skew():
    same, different = (compare(["fedlpa"], alpha=100, seeds=3, init=init) for init in ("same", "different"))
    assert different.mean("fedlpa") < same.mean("fedlpa") - 0.1


def test_the_last_factor_reveals_the_classes_after_5_epochs():
    outcomes = compare(["fedlpa"], alpha=0.3, **(SETTING | {"epochs": 5}))
    leaks = [outcome.report.label_leak for outcome in outcomes]
    precision, chance = (sum(leak[key] for leak in leaks) / 3 for key in ("precision", "chance"))
    assert precision >= 0.9 and chance < 0.85
