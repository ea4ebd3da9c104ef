"""The nearest of a client's own images to what it sends: the attack on numbers made by hand, and its picture."""

import numpy as np
import pytest

from fedlab_nb.labs.afl.image import class_means
from fedlab_nb.labs.distilled.sent import attack
from fedlab_nb.labs.nearest import MOST, neighbours, pairs
from fedlab_nb.plots import png
from fedlab_nb.studies import run


def test_the_nearest_of_the_clients_own_images():
    own = np.zeros((3, 1, 2, 2), dtype=np.float32)
    own[1], own[2] = 0.5, 1.0
    sent = np.stack([own[1], np.full((1, 2, 2), 0.9, dtype=np.float32)])
    of = neighbours(sent, np.array([4, 7]), (own, np.array([1, 4, 7])), 2, np.array([1, 3]))
    np.testing.assert_allclose(
        of.distance, [0, 0.1], atol=1e-7
    )  # root mean square: each pixel is 0.1 away
    assert of.nearest_labels.tolist() == [4, 7] and of.copies.tolist() == [True, False]
    assert of.typical == pytest.approx(0.5) and of.closer == 2
    alone = neighbours(sent, np.array([4, 7]), (own[:1], np.array([1])), 0, np.array([1, 1]))
    assert np.isnan(alone.typical)


@pytest.mark.parametrize(
    ("images", "m", "same"), [("random", 3, True), ("kmeans", 500, True), ("kmeans", 1, False)]
)
def test_the_attack_on_a_run_has_distance_zero_where_images_are_the_clients_own(images, m, same):
    outcome = run(
        "distilled", clients=3, alpha=0.5, **{"distilled.images": images, "distilled.per_class": m}
    )
    attacks = attack(outcome)
    assert [of.client for of in attacks] == [0, 1, 2]
    for of in attacks:
        rows = outcome.federation().shards[of.client]
        own = {image.tobytes() for image in outcome.federation().dataset.x_train[rows].numpy()}
        assert {image.tobytes() for image in of.nearest} <= own
        assert of.copies.all() if same else of.copies.mean() < 0.5


def test_every_single_image_of_a_run_of_afl_is_found_in_the_class_sums():
    for of in class_means(run("afl", clients=10, alpha=0.1)):
        assert of.copies[of.counts == 1].all() and not of.copies[of.counts > 3].any()


def test_pairs_of_many_images_few_images_and_feature_rows():
    names, stream = [str(c) for c in range(10)], np.random.default_rng(0)
    for shape in ((1, 4, 4), (3, 4, 4), (7,)):
        x, y = stream.random((40, *shape), dtype=np.float32), np.arange(40) % 10
        of = neighbours(
            np.concatenate([x[:1], x[1:25] * 0.9]), y[:25], (x, y), 1, np.arange(25, 0, -1)
        )
        whole = pairs(of, names, "Sent", "Words.", setting="here")
        assert f"{MOST} pairs of images (here)" in whole.alt and len(whole.table) == 25
        assert whole.table[0] == {
            "class": "0", "images": 25, "class of the nearest": "0", "distance": 0, "its own": "yes",
        }  # fmt: skip
        assert "3 pairs" in pairs(of, names, "Sent", "Words.", setting="here", klass=3).alt
        assert png(whole).startswith(b"\x89PNG")
