"""Lesson 5: the exercises by another way, worked numbers against another derivation."""

import numpy as np
import torch
from lessons import LESSONS
from toy_outcomes import toy

from fedlab_nb.course.distilled import lesson
from fedlab_nb.methods.distilled.images import compute_tangent_kernel

TEXT = LESSONS["5_send_data"]


def test_the_kernel_of_the_exercise_is_the_packages():
    x = np.random.default_rng(0).uniform(size=(4, 6))
    wanted = compute_tangent_kernel(torch.as_tensor(x[:3]), torch.as_tensor(x[3:]), lesson.DEPTH)
    np.testing.assert_array_equal(lesson.kernel(x[:3], x[3:]), wanted.numpy())


def test_which_size_the_images_are():
    def made(up, network=1000):
        one, other = toy("distilled", 0.9), toy("fedavg", 0.3)
        one.ledger, other.ledger = (type("Ledger", (), {"up": size})() for size in (up, network))
        return [one, other]

    assert [lesson.choose_answer_on_upload_size(made(up)) for up in (110, 500, 2000)] == list(
        lesson.SIZES
    )


def test_statements_of_the_lesson_hold_on_its_own_runs():
    assert lesson.count_copied_own_images(client=1) == 5
    outcome = lesson.runs("distilled", seeds=1)[0]
    for name, counts, (up, _) in zip(
        "AB", outcome.report.counts, outcome.ledger.by_client().values(), strict=False
    ):
        assert (
            f"Client {name} holds {(counts > 0).sum()} classes and sends {counts.sum()} images"
            in TEXT
        )
        assert up == 260 * counts.sum()
