"""What holds for distilled data on the digits with a margin: 10 clients, α = 0.1, means of seeds 0-2."""

import functools

import pytest

from fedlab_nb.study import compare

pytestmark = pytest.mark.slow


@functools.cache
def mean(images, m, server, seeds=3):
    knobs = {"distilled.images": images, "distilled.per_class": m, "distilled.server": server}
    return compare(["distilled"], alpha=0.1, clients=10, seeds=seeds, **knobs).mean("distilled")


def test_class_means_beat_random_images_by_three_points_for_the_kernel():
    assert mean("kmeans", 1, "kernel") >= mean("random", 1, "kernel") + 0.03


@pytest.mark.parametrize("server", ["network", "kernel"])
@pytest.mark.parametrize("images", ["random", "kmeans", "kip", "crops"])
def test_every_kind_of_image_beats_averaging_by_30_points(images, server):
    average = compare(["fedavg"], alpha=0.1, clients=10, seeds=3).mean("fedavg")
    assert mean(images, 3, server) >= average + 0.30


@pytest.mark.parametrize("server", ["network", "kernel"])
@pytest.mark.parametrize("images", ["random", "kmeans"])
def test_more_images_a_class_are_better(images, server):
    assert mean(images, 1, server) < mean(images, 3, server) < mean(images, 10, server)
