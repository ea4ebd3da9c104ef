"""What is safe to assert of distillation, over three partitions of the digits (α = 0.1, M = 10).

The order among DENSE, F-DAFL and F-ADI is within noise and asserted nowhere.
"""

import numpy as np
import pytest
import torch.nn.functional as F

from fedlab_nb.data import load
from fedlab_nb.study import compare

pytestmark = pytest.mark.slow
DATA_FREE = ("dense", "fdafl", "fadi")
POINTS = 0.02


@pytest.fixture(scope="module")
def outcomes():
    return compare(["ensemble", "feddf", *DATA_FREE], seeds=3, **{"ensemble.rule": "logits"})  # their teacher


def test_on_every_partition_feddf_is_at_most_two_points_above_its_teacher(outcomes):
    teacher, student = ([o.accuracy for o in outcomes if o.method == name] for name in ("ensemble", "feddf"))
    assert all(s <= t + POINTS for t, s in zip(teacher, student, strict=True))


@pytest.mark.parametrize("name", DATA_FREE)
def test_no_student_of_the_uniform_ensemble_is_better_than_it_on_average(outcomes, name):
    assert outcomes.mean(name) <= outcomes.mean("ensemble") + POINTS


def test_real_images_teach_at_least_as_well_as_denses(outcomes):
    assert outcomes.mean("feddf") >= outcomes.mean("dense") - POINTS


@pytest.mark.parametrize("name", DATA_FREE)
def test_no_data_is_still_far_better_than_chance(outcomes, name):
    assert outcomes.mean(name) > 0.25


def test_a_student_with_convolutions_lives(tmp_path):
    """Digits enlarged to 28x28, five-layer CNNs: at the perceptrons' rate the student answers one class for all."""
    digits = load("digits")
    large = {
        name: F.interpolate(getattr(digits, name), size=(28, 28), mode="bilinear").numpy()[:, 0]
        for name in ("x_train", "x_test", "x_public")
    }
    labels = {"y_train": digits.y_train[:600].numpy(), "y_test": digits.y_test.numpy()}
    np.savez(tmp_path / "large.npz", **large | {"x_train": large["x_train"][:600]}, **labels)
    outcomes = compare(["ensemble", "feddf"], dataset=str(tmp_path / "large.npz"), clients=5, alpha=0.3)
    assert outcomes[0].plan.model == "cnn"
    assert outcomes.mean("feddf") > outcomes.mean("ensemble") - 0.1
