"""Calibration against scikit-learn and a slow loop over bins; scores that are no probabilities; one pass a run."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from fedlab_nb.studies import Outcome, run
from fedlab_nb.training.calibration import (
    BINS,
    SCORES,
    Calibration,
    compute_mean_auc_over_classes,
    measure_calibration,
)

QUICK = {"clients": 4, "epochs": 2, "alpha": 0.5}


def draw_probabilities(samples=400, classes=7, sharp=2.0, seed=0):
    stream = torch.Generator().manual_seed(seed)
    scores = sharp * torch.randn(samples, classes, generator=stream)
    return scores, torch.randint(classes, (samples,), generator=stream)


def slow_error(probabilities, labels):
    """ECE by a loop over bins and samples."""
    error = 0.0
    for b in range(15):
        inside = [p for p in range(len(labels)) if b / 15 < max(probabilities[p]) <= (b + 1) / 15]
        if inside:
            right = sum(int(np.argmax(probabilities[p])) == labels[p] for p in inside) / len(inside)
            sure = sum(max(probabilities[p]) for p in inside) / len(inside)
            error += len(inside) / len(labels) * abs(right - sure)
    return error


@pytest.mark.parametrize("sharp", [0.1, 2.0, 30.0])
def test_against_log_loss_and_a_slow_loop(sharp):
    scores, labels = draw_probabilities(sharp=sharp)
    probabilities = scores.double().softmax(1).numpy()
    report = measure_calibration(scores, labels)
    if sharp < 30:  # scikit-learn cuts probabilities below 1e-16 off
        assert report.nll == pytest.approx(
            log_loss(labels, probabilities, labels=range(7)), rel=1e-12
        )
    by_hand = -sum(
        math.log(p[y]) for p, y in zip(probabilities, labels.tolist(), strict=True)
    ) / len(labels)
    assert report.nll == pytest.approx(by_hand, rel=1e-12)
    assert report.ece == pytest.approx(slow_error(probabilities, labels.numpy()), abs=1e-12)
    assert sum(report.counts) == len(labels) and len(report.counts) == BINS == 15
    assert sum(report.right) == int((scores.argmax(1) == labels).sum())
    assert report.mean_confidence == pytest.approx(probabilities.max(1).mean())


def test_a_bin_holds_its_upper_edge_and_not_its_lower_one():
    at = torch.tensor([0.6, 0.6 + 1e-9, 1.0], dtype=torch.float64)  # 0.6 is 9/15
    scores = torch.stack([at, 1 - at], 1).log()
    counts = measure_calibration(scores, torch.tensor([0, 0, 0])).counts
    assert counts[8] == 1 and counts[9] == 1 and counts[14] == 1


def test_a_probability_too_small_for_its_numbers_counts_as_the_smallest():
    scores = torch.tensor([[0.0, -torch.inf]])
    assert measure_calibration(scores, torch.tensor([1])).nll == pytest.approx(
        -math.log(torch.finfo(torch.float32).tiny)
    )
    assert math.isfinite(measure_calibration(scores.double(), torch.tensor([1])).nll)


def test_several_models_are_judged_by_all_their_answers():
    (one, labels), (other, _) = draw_probabilities(seed=0), draw_probabilities(seed=1)
    both = measure_calibration(torch.stack([one, other]), labels)
    apart = [measure_calibration(scores, labels) for scores in (one, other)]
    assert both.nll == pytest.approx(sum(c.nll for c in apart) / 2)
    assert both.counts == tuple(
        a + b for a, b in zip(apart[0].counts, apart[1].counts, strict=True)
    )


def test_the_area_by_hand_and_against_scikit_learn():
    one = torch.tensor(
        [0.1, 0.4, 0.35, 0.8]
    )  # of the four pairs 0.4 > 0.35 alone is in the wrong order
    y = torch.tensor([0, 0, 1, 1])
    assert compute_mean_auc_over_classes(torch.stack([-one, one], 1), y) == 0.75
    assert (
        compute_mean_auc_over_classes(torch.tensor([[0.5, 0.5]]).expand(4, 2), y) == 0.5
    )  # ties count half
    both = torch.stack([torch.stack([-one, one], 1), torch.stack([one, -one], 1)])
    assert (
        compute_mean_auc_over_classes(both, y) == 0.5
    )  # two models, one as good as the other is bad
    assert (
        compute_mean_auc_over_classes(torch.eye(3), torch.tensor([1, 1, 1])) is None
    )  # nothing to tell apart
    thirds = torch.tensor(
        [[3.0, 0, 9], [2, 1, 9], [1, 0, 9], [0, 5, 9]]
    )  # nobody is of class 2, which does not count
    assert compute_mean_auc_over_classes(thirds, torch.tensor([0, 0, 1, 1])) == pytest.approx(
        (1 + 2.5 / 4) / 2
    )
    scores, labels = draw_probabilities(sharp=0.5)
    scores[:, 0] = scores[:, 0].round()
    report, shares = measure_calibration(scores, labels), scores.double().softmax(1)
    assert report.auc == pytest.approx(roc_auc_score(labels, shares, multi_class="ovr"), abs=1e-12)


@pytest.mark.parametrize("kind", SCORES)
def test_scores_that_are_no_probabilities_have_no_numbers(kind):
    report = measure_calibration(*draw_probabilities(), kind)
    assert (
        (report.nll is None)
        == (report.ece is None)
        == (report.counts == ())
        == (SCORES[kind] == "")
    )
    assert report.scores == kind and 0.4 < report.auc < 0.6  # chance


def test_an_outcome_has_it_and_the_store_gives_it_back():
    fresh, stored = (run("ensemble", device="cpu", **QUICK) for _ in range(2))
    assert stored.cached and stored.calibration == fresh.calibration and fresh.nll > 0
    record = fresh.to_json()
    assert record["nll"] == round(fresh.nll, 4) and record["ece"] == round(fresh.ece, 4)
    truth = fresh.federation().dataset
    right = float((fresh.model.logits(truth.x_test).argmax(1) == truth.y_test).double().mean())
    assert (
        sum(fresh.calibration.right) / sum(fresh.calibration.counts)
        == pytest.approx(right)
        == fresh.accuracy
    )
    named, y = fresh.model.logits(truth.x_test), truth.y_test
    assert fresh.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(y, named.argmax(1)), abs=1e-12
    )
    assert fresh.auc == pytest.approx(
        roc_auc_score(y, named.double().softmax(1), multi_class="ovr"), abs=1e-12
    )
    counts = np.array(fresh.label_counts, float)
    homes = counts @ np.array(fresh.per_class) / counts.sum(1)
    assert record["worst_client"] == round(
        fresh.worst_client, 4
    ) and fresh.worst_client == pytest.approx(homes.min())
    votes = run("ensemble", rule="votes", **QUICK)
    assert (
        votes.nll is None and votes.to_json()["ece"] is None and votes.calibration.scores == "votes"
    )


def test_the_mean_over_clients_is_over_all_their_answers():
    outcome = run("local", **QUICK)
    report = outcome.calibration
    assert sum(report.counts) == 4 * len(outcome.federation().dataset.y_test)
    assert sum(report.right) / sum(report.counts) == pytest.approx(outcome.accuracy)


def test_an_entry_from_before_has_no_numbers():
    fresh = run("fedavg", **QUICK)
    values, arrays = fresh.to_entry()
    del values["calibration"]
    old = Outcome.from_entry(values, arrays, plan=fresh.plan, run_again=lambda: None)
    assert (
        old.calibration == Calibration()
        and old.nll is None
        and old.to_json()["nll"] is None
        and old.auc is None
    )
