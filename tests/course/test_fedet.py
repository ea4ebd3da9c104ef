"""The lesson on Fed-ET: the exercises by another way, worked numbers against another derivation,
statements against real runs."""

import numpy as np
import pytest
import torch

from fedlab_nb.course.fedet import lesson
from fedlab_nb.labs import lab
from fedlab_nb.methods.fedet.consensus import compute_consensus


def test_exercise_1_is_what_the_weights_say():
    probabilities = torch.tensor([[[0.9, 0.1]], [[0.4, 0.6]]], dtype=torch.float64)
    vote = compute_consensus(probabilities.log())
    assert lesson.q1.problem.check(vote.weights[0, 0].item()).state == "right"


@pytest.fixture(scope="module")
def panel():
    made = lab("fedet", clients=4, epochs=3, one_shot_steps=30, seeds=2, methods=[])
    made.run(wait=True)
    yield made
    made.close()


@pytest.mark.slow
def test_the_weights_of_one_image_by_numpy(panel):
    text = repr(lesson.show_client_weights_of_one_image(panel, sample_index=7, clients=(1, 2)))
    z = panel.state("expert").report.test_logits[:, 7].astype(float)
    p = np.exp(z - z.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    spread = p.var(1)
    for k in (1, 2):
        assert f"client {'ABCD'[k]} says “{p[k].argmax()}”" in text
        assert f"σ² = ({(p[k] ** 2).sum():.3f} − 0.1) / 10 = {spread[k]:.4f}" in text
        assert f"= {spread[k] / spread.sum():.3f}" in text
    top = (spread[:, None] * p).sum(0).argmax()
    assert f"all 4 together say “{top}”" in text
    assert f"{(p.argmax(1) == top).sum()} of them" in text


# Takes its time as the first test of its file: it waits for the lesson's run.
def test_unseen_digits_are_counted_over_pairs_of_a_client_and_an_image(panel):
    text = repr(lesson.show_weights_on_unseen_digits(panel.outcomes))
    shares = []
    for outcome in panel.state("expert").outcomes.values():
        is_unseen = np.asarray(outcome.label_counts)[:, outcome.report.test_truth] == 0
        shares.append(is_unseen.mean())
    assert f"In {100 * np.mean(shares):.0f} % of all pairs" in text
    assert "If all clients counted the same, it would be 0.250" in text


def test_the_lesson_shows_what_it_declares():
    assert len(lesson.ten_seeds().table) == len(lesson.sources().table) == 4
    assert lesson.mean_of("most") < lesson.mean_of("least")
