"""Calibration and AUC against scikit-learn and a loop over bins; scores that are not probabilities; runs."""

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


def draw_probabilities(samples=400, classes=7, scale=2.0, seed=0):
    stream = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(samples, classes, generator=stream)
    return scores, torch.randint(classes, (samples,), generator=stream)


def compute_ece_by_loops(probabilities, labels):
    """The expected calibration error by a loop over bins and samples."""
    error = 0.0
    for b in range(15):
        inside = [i for i in range(len(labels)) if b / 15 < max(probabilities[i]) <= (b + 1) / 15]
        if inside:
            accuracy = sum(int(np.argmax(probabilities[i])) == labels[i] for i in inside) / len(
                inside
            )
            confidence = sum(max(probabilities[i]) for i in inside) / len(inside)
            error += len(inside) / len(labels) * abs(accuracy - confidence)
    return error


@pytest.mark.parametrize("scale", [0.1, 2.0, 30.0])
def test_nll_and_ece_equal_log_loss_and_a_loop(scale):
    scores, labels = draw_probabilities(scale=scale)
    probabilities = scores.double().softmax(1).numpy()
    report = measure_calibration(scores, labels)
    if scale < 30:  # scikit-learn raises probabilities below 1e-16
        assert report.nll == pytest.approx(
            log_loss(labels, probabilities, labels=range(7)), rel=1e-12
        )
    by_hand = -sum(
        math.log(p[y]) for p, y in zip(probabilities, labels.tolist(), strict=True)
    ) / len(labels)
    assert report.nll == pytest.approx(by_hand, rel=1e-12)
    assert report.ece == pytest.approx(
        compute_ece_by_loops(probabilities, labels.numpy()), abs=1e-12
    )
    assert sum(report.counts) == len(labels) and len(report.counts) == BINS == 15
    assert sum(report.right) == int((scores.argmax(1) == labels).sum())
    assert report.mean_confidence == pytest.approx(probabilities.max(1).mean())


def test_a_bin_holds_its_upper_edge_and_not_its_lower_one():
    probabilities = torch.tensor([0.6, 0.6 + 1e-9, 1.0], dtype=torch.float64)  # 0.6 is 9/15
    scores = torch.stack([probabilities, 1 - probabilities], 1).log()
    counts = measure_calibration(scores, torch.tensor([0, 0, 0])).counts
    assert counts[8] == 1 and counts[9] == 1 and counts[14] == 1


def test_a_probability_of_0_counts_as_the_smallest_float():
    scores = torch.tensor([[0.0, -torch.inf]])
    assert measure_calibration(scores, torch.tensor([1])).nll == pytest.approx(
        -math.log(torch.finfo(torch.float32).tiny)
    )
    assert math.isfinite(measure_calibration(scores.double(), torch.tensor([1])).nll)


def test_several_models_are_measured_by_all_their_answers():
    scores_0, labels = draw_probabilities(seed=0)
    scores_1, _ = draw_probabilities(seed=1)
    together = measure_calibration(torch.stack([scores_0, scores_1]), labels)
    model_0 = measure_calibration(scores_0, labels)
    model_1 = measure_calibration(scores_1, labels)
    assert together.nll == pytest.approx((model_0.nll + model_1.nll) / 2)
    assert together.counts == tuple(
        a + b for a, b in zip(model_0.counts, model_1.counts, strict=True)
    )


def test_the_auc_by_hand_and_against_scikit_learn():
    # Of the four pairs of a sample of class 0 and one of class 1, only 0.4 > 0.35 is in the wrong order.
    scores_of_class_1 = torch.tensor([0.1, 0.4, 0.35, 0.8])
    model = torch.stack([-scores_of_class_1, scores_of_class_1], 1)
    y = torch.tensor([0, 0, 1, 1])
    assert compute_mean_auc_over_classes(model, y) == 0.75
    # Ties count half.
    assert compute_mean_auc_over_classes(torch.tensor([[0.5, 0.5]]).expand(4, 2), y) == 0.5
    # Two models, one as good as the other is bad.
    assert compute_mean_auc_over_classes(torch.stack([model, -model]), y) == 0.5
    # With one class there is nothing to distinguish.
    assert compute_mean_auc_over_classes(torch.eye(3), torch.tensor([1, 1, 1])) is None
    # No sample is of class 2, which does not count.
    three_classes = torch.tensor([[3.0, 0, 9], [2, 1, 9], [1, 0, 9], [0, 5, 9]])
    assert compute_mean_auc_over_classes(three_classes, y) == pytest.approx((1 + 2.5 / 4) / 2)
    scores, labels = draw_probabilities(scale=0.5)
    scores[:, 0] = scores[:, 0].round()
    report = measure_calibration(scores, labels)
    shares = scores.double().softmax(1)
    assert report.auc == pytest.approx(roc_auc_score(labels, shares, multi_class="ovr"), abs=1e-12)


@pytest.mark.parametrize("kind", SCORES)
def test_scores_that_are_not_probabilities_have_no_calibration(kind):
    report = measure_calibration(*draw_probabilities(), kind)
    has_none = SCORES[kind] == ""
    assert (report.nll is None) == has_none
    assert (report.ece is None) == has_none
    assert (report.counts == ()) == has_none
    assert report.scores == kind
    assert 0.4 < report.auc < 0.6  # labels are random


def test_an_outcome_has_its_calibration_and_the_store_keeps_it():
    fresh, stored = (run("ensemble", device="cpu", **QUICK) for _ in range(2))
    assert stored.cached and stored.calibration == fresh.calibration and fresh.nll > 0
    record = fresh.to_json()
    assert record["nll"] == round(fresh.nll, 4) and record["ece"] == round(fresh.ece, 4)
    data = fresh.federation().dataset
    accuracy = float((fresh.model.logits(data.x_test).argmax(1) == data.y_test).double().mean())
    assert fresh.accuracy == pytest.approx(accuracy)
    assert sum(fresh.calibration.right) / sum(fresh.calibration.counts) == pytest.approx(accuracy)
    logits = fresh.model.logits(data.x_test)
    y = data.y_test
    assert fresh.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(y, logits.argmax(1)), abs=1e-12
    )
    assert fresh.auc == pytest.approx(
        roc_auc_score(y, logits.double().softmax(1), multi_class="ovr"), abs=1e-12
    )
    counts = np.array(fresh.label_counts, float)
    client_accuracies = counts @ np.array(fresh.per_class) / counts.sum(1)
    assert fresh.worst_client == pytest.approx(client_accuracies.min())
    assert record["worst_client"] == round(fresh.worst_client, 4)
    votes = run("ensemble", rule="votes", **QUICK)
    assert votes.nll is None
    assert votes.to_json()["ece"] is None
    assert votes.calibration.scores == "votes"


def test_the_mean_over_clients_is_over_all_their_answers():
    outcome = run("local", **QUICK)
    report = outcome.calibration
    assert sum(report.counts) == 4 * len(outcome.federation().dataset.y_test)
    assert sum(report.right) / sum(report.counts) == pytest.approx(outcome.accuracy)


def test_an_older_entry_of_the_store_has_no_calibration():
    fresh = run("fedavg", **QUICK)
    values, arrays = fresh.to_entry()
    del values["calibration"]
    old = Outcome.from_entry(values, arrays, plan=fresh.plan, run_again=lambda: None)
    assert old.calibration == Calibration()
    assert old.nll is None
    assert old.to_json()["nll"] is None
    assert old.auc is None
