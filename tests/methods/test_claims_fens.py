"""What is safe to claim of FENS' extensions, seed by seed: digits, M = 10, alpha = 0.1, local training as there."""

import numpy as np
import pytest

from fedlab_nb.study import run

pytestmark = pytest.mark.slow

SETTING = {"model": "mlp", "clients": 10, "alpha": 0.1, "epochs": 70, "batch_size": 16, "lr": 0.1, "momentum": 0}
NETWORK = {"aggregator": "nn", "rounds": 500, "eta_s": 0.001}
SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_forgetting_the_owner_of_a_class_loses_that_class_alone(seed):
    whole = run("fens", seed=seed, **SETTING, **NETWORK)
    share = whole.label_counts / whole.label_counts.sum(0)
    owner, lost = np.unravel_index(share.argmax(), share.shape)
    left = run("fens", seed=seed, without=int(owner), **SETTING, **NETWORK)
    fall = np.array(whole.per_class) - np.array(left.per_class)
    assert fall[lost] > 0.4
    assert np.delete(fall, lost).mean() < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_one_student_answers_as_the_ensemble_does(seed):
    teacher = run("fens", seed=seed, **SETTING, **NETWORK).accuracy
    student = run("fens", seed=seed, distil=True, **SETTING, **NETWORK).accuracy
    average = run("fens", seed=seed, aggregator="averaging", **SETTING).accuracy
    assert abs(student - teacher) < 0.05 and student > average + 0.2
