"""The lesson on FedLPA: the exercises by another way, worked numbers against another derivation,
statements against real runs."""

import numpy as np
import pytest
import torch
from lessons import LESSONS

from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.course.fedlpa import lesson
from fedlab_nb.labs.fedlpa.two_weights import compute_two_weight_example
from fedlab_nb.methods.fedlpa.client import LocalPosterior


def test_exercise_2_is_what_a_client_sends():
    network = torch.nn.Sequential(torch.nn.Linear(20, 10))
    posterior = LocalPosterior.measure(network, torch.rand(3, 20), torch.tensor([0, 1, 2]))
    upload = posterior.make_upload(1e-3, "one")
    assert lesson.q2.problem.check(count_payload_bytes(upload) / 4).state == "right"


def test_the_upload_is_what_the_ledger_counts():
    assert lesson.runs("fedlpa", seeds=1, epochs=1)[0].bytes_up == 10 * 4 * 14084


def test_the_answer_on_regmean_follows_its_accuracy(monkeypatch):
    for regmean, answer in zip((60, 88, 32), lesson.SHARES, strict=True):
        means = {"fedavg": 30, "fedlpa": 90, "regmean": regmean}
        monkeypatch.setattr(lesson, "mean_of", means.get)
        assert lesson.find_right_option_on_regmean_accuracy() == answer


def test_the_place_of_two_weights():
    assert "(9 · 1 + 1 · 3) / (9 + 1) = 1.2;" in LESSONS["shelf/fedlpa"]
    assert lesson.PLACES[1].startswith("(1.2, 1.2)")
    assert lesson.find_right_option_on_product_mean() == lesson.PLACES[1]


@pytest.mark.parametrize("angle", [90, 45])
def test_the_product_s_mean_is_what_the_picture_of_two_weights_shows(angle):
    picture = compute_two_weight_example(angle, 9)
    mean = lesson.product_mean(np.array(picture.means), np.array(picture.precisions))
    np.testing.assert_allclose(mean, picture.aggregate)
