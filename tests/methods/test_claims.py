"""Claims about methods that go beyond the accuracies of runs (those are declared in papers/declared/holds.toml)."""

import numpy as np
import pytest
import torch.nn.functional as F

from fedlab_nb.data import load
from fedlab_nb.studies import compare, run

pytestmark = pytest.mark.slow


def test_a_convolutional_student_learns_instead_of_collapsing(tmp_path):
    """Digits enlarged to 28x28, five-layer CNNs: at the perceptrons' learning rate the student predicts one class for
    every image."""
    digits = load("digits")
    large = {
        name: F.interpolate(getattr(digits, name), size=(28, 28), mode="bilinear").numpy()[:, 0]
        for name in ("x_train", "x_test", "x_public")
    }
    labels = {"y_train": digits.y_train[:600].numpy(), "y_test": digits.y_test.numpy()}
    np.savez(tmp_path / "large.npz", **large | {"x_train": large["x_train"][:600]}, **labels)
    distilling = compare(
        ["ensemble", "feddf"], dataset=str(tmp_path / "large.npz"), clients=5, alpha=0.3
    )
    assert distilling[0].plan.client_model == "cnn"
    assert distilling.mean("feddf") > distilling.mean("ensemble") - 0.1


@pytest.mark.parametrize("seed", range(2))
def test_forgetting_the_main_holder_of_a_class_loses_that_class_alone(seed):
    training = {
        "epochs": 70,
        "batch_size": 16,
        "lr": 0.1,
        "momentum": 0,
        "schedule": "cosine",
        "lr_min": 0.01,
    }
    rule = {"aggregator": "nn", "rounds": 500, "eta_s": 0.001}
    with_all_clients = run("fens", seed=seed, alpha=0.1, model="mlp", **training, **rule)
    share = with_all_clients.label_counts / with_all_clients.label_counts.sum(0)
    holder, lost_class = np.unravel_index(share.argmax(), share.shape)
    without_holder = run(
        "fens", seed=seed, alpha=0.1, model="mlp", without=int(holder), **training, **rule
    )
    fall = np.array(with_all_clients.per_class) - np.array(without_holder.per_class)
    assert fall[lost_class] > 0.4
    assert np.delete(fall, lost_class).mean() < 0.1
