"""What is safe to assert of distillation, over five partitions of the digits (α = 0.1, M = 10).

The order among DENSE, F-DAFL and F-ADI is within noise and asserted nowhere.
"""

import pytest

from fedlab_nb.study import compare

pytestmark = pytest.mark.slow
DATA_FREE = ("dense", "fdafl", "fadi")
POINTS = 0.02


@pytest.fixture(scope="module")
def outcomes():
    return compare(["ensemble", "feddf", *DATA_FREE], seeds=5)


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
