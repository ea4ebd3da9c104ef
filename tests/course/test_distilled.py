"""Lesson 5: the exercises by another way, worked numbers against another derivation."""

from types import SimpleNamespace

import numpy as np
import torch
from lessons import LESSONS
from toy_outcomes import make_toy_outcome

from fedlab_nb.course.distilled import lesson
from fedlab_nb.methods.distilled.images import compute_tangent_kernel

TEXT = LESSONS["5_send_data"]


def test_the_kernel_of_the_exercise_is_the_packages():
    x = np.random.default_rng(0).uniform(size=(4, 6))
    expected = compute_tangent_kernel(torch.as_tensor(x[:3]), torch.as_tensor(x[3:]), lesson.DEPTH)
    np.testing.assert_array_equal(lesson.kernel(x[:3], x[3:]), expected.numpy())


def test_the_answer_on_the_upload_s_size_follows_the_ledgers():
    answers = []
    for image_bytes in (110, 500, 2000):
        images = make_toy_outcome("distilled", 0.9, ledger=SimpleNamespace(up=image_bytes))
        network = make_toy_outcome("fedavg", 0.3, ledger=SimpleNamespace(up=1000))
        answers.append(lesson.find_right_option_on_upload_size([images, network]))
    assert answers == list(lesson.SIZES)


def test_statements_of_the_lesson_hold_on_its_own_runs():
    assert lesson.count_copied_own_images(client=1) == 5
    outcome = lesson.runs("distilled", seeds=1)[0]
    sent = list(outcome.ledger.by_client().values())
    for k, name in enumerate("AB"):
        counts = outcome.report.counts[k]
        up, _ = sent[k]
        classes = (counts > 0).sum()
        assert f"Client {name} holds {classes} classes and sends {counts.sum()} images" in TEXT
        assert up == 260 * counts.sum()
