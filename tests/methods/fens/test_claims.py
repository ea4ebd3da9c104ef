"""What is safe to claim of FENS, seed by seed: digits, M = 10, local training as in the trials that set the margins.

Not claimed, because it does not hold here: a network above weighted averaging at alpha >= 0.3, a mixture of experts
above a network at alpha = 0.01, held-out samples above reused ones, FENS above FedAdam.
"""

import functools

import numpy as np
import pytest

from fedlab_nb.study import compare, run

pytestmark = pytest.mark.slow

SETTING = {"model": "mlp", "clients": 10, "alpha": 0.1, "epochs": 70, "batch_size": 16, "lr": 0.1, "momentum": 0}
STEPS = {"rounds": 500, "eta_s": 0.001}
NETWORK = {"aggregator": "nn", **STEPS}
SEEDS = range(4)
MANY = range(8)


@functools.cache
def over(seeds, method="fens", **setting):
    """A run for each of the seeds, which are trained together; to rounding, each is what it is alone."""
    return compare(method, seeds=len(seeds), **setting)


@pytest.mark.parametrize("alpha", [0.05, 0.1])
@pytest.mark.parametrize("seed", MANY)
def test_under_skew_the_network_is_above_everything_that_is_fixed_or_poorer(seed, alpha):
    """Smallest gaps measured over these 16 runs: best client 0.41, one-round FedAvg 0.61, averaging 0.30, weighted
    averaging 0.06, voting 0.08, linear 0.08. The last three are tested for their sign alone."""
    setting = {**SETTING, "alpha": alpha, "schedule": "cosine", "lr_min": 0.01}
    network = over(MANY, **setting, **NETWORK)[seed]
    rule = {
        name: over(MANY, aggregator=name, **setting, **STEPS)[seed].accuracy
        for name in ("averaging", "weighted", "voting", "linear", "per_class")
    }
    one_round = max(over(MANY, "fedavg", **{**setting, "epochs": epochs})[seed].accuracy for epochs in (1, 5, 20))
    assert network.accuracy > rule["averaging"] + 0.2 and rule["per_class"] > rule["averaging"] + 0.2
    assert network.accuracy > max(network.report.member_accuracy) + 0.15
    assert network.accuracy > one_round + 0.3
    assert network.accuracy > max(rule["weighted"], rule["voting"], rule["linear"])


def test_the_gain_over_the_average_shrinks_as_the_skew_goes():
    gain = {}
    for alpha in (0.05, 1):
        runs = over(SEEDS, **{**SETTING, "alpha": alpha}, **NETWORK)
        gain[alpha] = np.mean([r.accuracy - r.report.average_accuracy for r in runs])
    assert gain[0.05] > gain[1] + 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_forgetting_the_owner_of_a_class_loses_that_class_alone(seed):
    whole = over(SEEDS, **SETTING, **NETWORK)[seed]
    share = whole.label_counts / whole.label_counts.sum(0)
    owner, lost = np.unravel_index(share.argmax(), share.shape)
    left = run("fens", seed=seed, without=int(owner), **SETTING, **NETWORK)
    fall = np.array(whole.per_class) - np.array(left.per_class)
    assert fall[lost] > 0.4
    assert np.delete(fall, lost).mean() < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_one_student_answers_as_the_ensemble_does(seed):
    teacher = over(SEEDS, **SETTING, **NETWORK)[seed].accuracy
    student = over(SEEDS, distil=True, **SETTING, **NETWORK)[seed].accuracy
    average = over(SEEDS, aggregator="averaging", **SETTING)[seed].accuracy
    assert abs(student - teacher) < 0.05 and student > average + 0.2
