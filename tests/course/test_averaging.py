"""The lesson on averaging: the exercises by another way, worked numbers against another derivation."""

import pytest
import torch

from fedlab_nb.course.averaging import lesson
from fedlab_nb.studies import run

PAIR = (("ensemble", {"rule": "logits"}), ("feddf", {}))


def test_exercise_1_is_torch_s_divergence():
    p = torch.tensor([0.8, 0.2])
    q = torch.tensor([0.5, 0.5])
    answer = torch.nn.functional.kl_div(q.log(), p, reduction="sum").item()
    assert lesson.q1.problem.check(answer).state == "right"
    reverse = torch.nn.functional.kl_div(p.log(), q, reduction="sum").item()
    assert "KL(student" in lesson.q1.problem.check(reverse).message


def test_exercise_2_is_torch_s_softmax():
    shares = (torch.tensor([4.0, 0.0]) / 4).softmax(0)
    assert lesson.q2.problem.check(100 * shares[0].item()).state == "right"


@pytest.mark.slow
def test_a_student_repeats_its_teacher():
    teacher, student = (run(method, alpha=0.1, seed=4, **more) for method, more in PAIR)
    assert set(teacher.test_predictions) == set(student.test_predictions) == {8}
