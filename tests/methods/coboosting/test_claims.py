"""What can safely be claimed of Co-Boosting on small data: means over ten partitions of the digits, ten clients.

Measured there (seeds 0-9, alpha 0.1): ensemble 0.37 with equal weights, 0.60 with Co-Boosting's, 0.67 with weights
from real images; server model 0.45, at worst 0.23. DENSE's student has 0.34: the server model is above it by 0.12 ±
0.08 (95 %, Student's t of the paired differences), on no seed more than two points below. Of five clients that
difference was 0.09 ± 0.16, within the noise. Not claimed: that it beats every baseline, any effect of DHS, pretty
images; nor that better weights help wherever there is headroom. With more than 10 points of it the weighted ensemble
was better on 26 of 28 partitions (seeds 0-29), by 0.7 of the headroom on average, and at worst two points worse.
Rounding alone, other sums in the generator, moved a partition from one side to the other.
"""

import functools
from itertools import chain

import numpy as np
import pytest
import torch

from fedlab_nb.data import federate, load
from fedlab_nb.methods.coboosting import WeightedEnsemble, boosting
from fedlab_nb.studies import job

pytestmark = pytest.mark.slow
CLIENTS, SEEDS, HOLDOUT = 10, 10, 0.1  # as in lesson 05, so that its runs are remembered
BESIDE_DENSE = 5  # seeds of the comparison with DENSE; the study of lesson 05 has ten


def accuracy(model):
    digits = load("digits")
    return model.accuracy(digits.x_test, digits.y_test)


def with_real_weights(clients, alpha, seed):
    """The reference: the same rule on the clients' pooled real training images."""
    federation = federate("digits", alpha=alpha, clients=CLIENTS, seed=seed)
    rows = torch.cat([train for train, _ in federation.split(HOLDOUT)])
    logits, labels = clients.logits(federation.dataset.x_train[rows]), federation.dataset.y_train[rows]
    w, stream = torch.full((CLIENTS,), 1 / CLIENTS), torch.Generator().manual_seed(seed)
    for t in range(30):
        *_, w = boosting.reweight(w, logits, labels, 0.1 / CLIENTS * 0.99**t, batch=64, stream=stream)
    return WeightedEnsemble(clients, w)


@functools.cache
def scores(alpha):
    """Accuracies by name, each `[SEEDS]`."""
    by_name: dict[str, list[float]] = {}
    jobs = [job("ensemble", seeds=SEEDS, alpha=alpha, clients=CLIENTS, rule="logits")]
    if alpha < 1:
        jobs += [job("coboosting", seeds=SEEDS, alpha=alpha, clients=CLIENTS)]
        jobs += [job("dense", seeds=BESIDE_DENSE, alpha=alpha, clients=CLIENTS)]
    for event in chain.from_iterable(jobs):
        if event.error is not None:
            raise event.error
        if event.outcome is None:
            continue
        by_name.setdefault(event.method, []).append(event.outcome.accuracy)
        if event.method == "coboosting":
            by_name.setdefault("boosted ensemble", []).append(event.outcome.report.ensemble_curve[-1])
        if event.method == "ensemble":
            real = with_real_weights(event.outcome.model.clients, alpha, event.seed)
            by_name.setdefault("real weights", []).append(accuracy(real))
    return {name: np.array(values) for name, values in by_name.items()}


def test_the_reweighted_ensemble_is_above_fedens():
    s = scores(0.1)
    gain, headroom = s["boosted ensemble"] - s["ensemble"], s["real weights"] - s["ensemble"]
    assert gain.mean() >= 0.02
    large = headroom > 0.1
    assert large.any() and gain[large].sum() >= 0.5 * headroom[large].sum()
    assert (gain[large] > -0.05).all() and (gain[large] > 0).mean() >= 0.8


def test_weights_from_real_images_are_better_still():
    s = scores(0.1)
    assert s["real weights"].mean() >= s["boosted ensemble"].mean()


def test_the_student_stays_below_its_teacher():
    s = scores(0.1)
    assert (s["coboosting"] <= s["boosted ensemble"] + 0.02).all()


def test_the_server_model_is_nowhere_near_chance():
    server = scores(0.1)["coboosting"]
    assert server.mean() > 0.4 and server.min() > 0.2


def test_the_server_model_is_above_denses():
    s = scores(0.1)
    gains = s["coboosting"][:BESIDE_DENSE] - s["dense"]
    assert gains.mean() >= 0.04 and (gains > -0.02).all()


def test_headroom_falls_as_the_skew_does():
    skewed, mild = ((s["real weights"] - s["ensemble"]).mean() for s in (scores(0.1), scores(10.0)))
    assert skewed > mild + 0.02
