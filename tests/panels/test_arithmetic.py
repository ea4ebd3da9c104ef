"""The sums that the stage unfolds are the methods' own answers."""

import numpy as np
import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.methods.fedet.consensus import compute_client_weights_from_output_variance
from fedlab_nb.panels.arithmetic import (
    explain_answer_as_client_sum,
    explain_mean_of_client_logits,
    has_sum_explanation,
)

QUICK = {"clients": 4, "alpha": 0.1, "epochs": 2, "seed": 3, "cache": False}
# Weights take large steps, so that their sum is not 1 any more.
SYNTHESIS = {
    "coboosting.epochs": 2,
    "coboosting.images": 16,
    "coboosting.generator_steps": 2,
    "coboosting.updates": "new",
    "coboosting.mu": 0.5,
}
RUNS = {
    "fens": {},
    "fens, linear": {"fens.aggregator": "linear"},
    "fens, mixture": {"fens.aggregator": "moe", "fens.rounds": 3},
    "fens, probabilities": {"fens.answers": "probabilities"},
    "fens, class counts": {"fens.aggregator": "weighted"},
    "fens, without a client": {"fens.without": 1},
    "fedet": {"fedet.one_shot_steps": 10},
    "fedet, logits": {"fedet.one_shot_steps": 10, "fedet.weighting": "logits"},
    "coboosting": SYNTHESIS,
    "coboosting, literal sum": {**SYNTHESIS, "coboosting.weighted": "sum"},
    "coboosting, its ensemble": {**SYNTHESIS, "coboosting.answer": "ensemble"},
    "ensemble": {},
    "ensemble, logits": {"ensemble.rule": "logits"},
    "ensemble, class counts": {"ensemble.rule": "class_counts"},
}


def assert_terms_add_up(explanation):
    """Assert that the terms add up to the total, to 1e-6 of the largest sum."""
    terms = explanation.weights * explanation.values
    size = np.abs(terms).sum(0).max()
    np.testing.assert_allclose(terms.sum(0), explanation.total, rtol=0, atol=1e-6 * max(1.0, size))


@pytest.mark.parametrize("name", RUNS)
@torch.no_grad()
def test_the_unfolded_sum_is_the_methods_own_answer(name):
    out = fl.run(name.split(",")[0], **QUICK, **RUNS[name])
    model = out.model
    x_test = out.federation().dataset.x_test
    assert has_sum_explanation(model)
    for i in range(3):
        x = x_test[i : i + 1]
        explanation = explain_answer_as_client_sum(model, x)
        assert_terms_add_up(explanation)
        scores = model.logits(x)[0].double().numpy()
        if explanation.own is not None:  # a network that has learnt from such sums
            assert explanation.own == scores.argmax()
        elif explanation.unit == "probabilities" and name.startswith("ensemble"):
            np.testing.assert_allclose(explanation.total, np.exp(scores), atol=1e-6)
        else:
            np.testing.assert_allclose(explanation.total, scores, rtol=1e-6, atol=1e-6)
        assert len(explanation.clients) == (3 if "without" in name else 4)
    if name == "fens, without a client":
        assert explanation.clients == [0, 2, 3]
    if name == "coboosting":
        weights = model.ensemble.weights.double().numpy()
        assert abs(weights.sum() - 1) > 0.01
        np.testing.assert_allclose(explanation.weights[:, 0], weights / weights.sum(), rtol=1e-6)
        np.testing.assert_allclose(
            explanation.total, model.ensemble.logits(x)[0].numpy(), rtol=1e-6
        )
    if name == "fedet":
        logits = model.last.clients.logits(x)
        weights = compute_client_weights_from_output_variance((logits / 3.0).softmax(-1))[:, 0]
        np.testing.assert_allclose(explanation.weights[:, 0], weights.numpy(), rtol=1e-5)
        shares = logits.softmax(-1)[:, 0].double()
        expected = (weights.double()[:, None] * shares).sum(0)
        np.testing.assert_allclose(explanation.total, expected.numpy(), atol=1e-6)
        assert explanation.total.sum() == pytest.approx(1, abs=1e-6)


@torch.no_grad()
def test_the_mean_of_logits_is_a_sum_and_a_merged_network_is_none():
    out = fl.run("ensemble", **QUICK)
    x = out.federation().dataset.x_test[:1]
    explanation = explain_mean_of_client_logits(out.model.clients, x)
    assert_terms_add_up(explanation)
    expected = out.model.clients.logits(x).double().mean(0)[0].numpy()
    np.testing.assert_allclose(explanation.total, expected, rtol=1e-5, atol=1e-5)
    assert (explanation.weights == 0.25).all()
    merged = fl.run("fedavg", **QUICK)
    assert (
        not has_sum_explanation(merged.model)
        and explain_answer_as_client_sum(merged.model, x) is None
    )
    network = fl.run("fens", **QUICK, **{"fens.aggregator": "nn", "fens.rounds": 2})
    assert explain_answer_as_client_sum(network.model, x) is None
