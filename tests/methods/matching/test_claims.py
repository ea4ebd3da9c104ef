"""What is safe to say of matching, seed by seed: digits, perceptrons, ten clients.

With different starts and hardly any skew it brings back most of what averaging loses. Under strong skew nothing is
claimed of it, and with a common start nothing moves.
"""

import pytest

from fedlab_nb.study import run

pytestmark = pytest.mark.slow
SEEDS = range(100, 108)


@pytest.mark.parametrize("seed", SEEDS)
def test_rebasin_is_half_of_all_images_above_the_plain_average_and_below_the_ensemble(seed):
    setting = {"alpha": 100, "init": "different", "seed": seed, "model": "mlp"}
    matched = run("matching", **setting, **{"matching.rule": "rebasin"})
    ensemble = run("ensemble", **setting, **{"ensemble.rule": "probabilities"})
    assert matched.accuracy >= matched.report.average_accuracy + 0.50
    assert ensemble.accuracy > matched.accuracy


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_common_start_and_strong_skew_rebasin_moves_next_to_nothing(seed):
    """The null: units still know their places, and the average is as bad as before."""
    matched = run("matching", alpha=0.1, seed=seed, model="mlp", **{"matching.rule": "rebasin"})
    assert max(matched.report.moved) <= 0.1
    assert abs(matched.accuracy - matched.report.average_accuracy) <= 0.03
