"""Which of a client's own images is nearest to each image that it sends: on numbers made by hand, and its picture."""

import numpy as np
import pytest

from fedlab_nb.labs.afl.image import recover_class_means_and_nearest_images
from fedlab_nb.labs.distilled.sent_images import find_nearest_images_of_all_clients
from fedlab_nb.labs.nearest import MAX_PAIRS, draw_sent_and_nearest_images, find_nearest_own_images
from fedlab_nb.plots import render_picture_png
from fedlab_nb.plots.style import use_figure_size
from fedlab_nb.studies import run


def test_the_nearest_of_the_clients_own_images():
    own_images = np.zeros((3, 1, 2, 2), dtype=np.float32)
    own_images[1], own_images[2] = 0.5, 1.0
    sent = np.stack([own_images[1], np.full((1, 2, 2), 0.9, dtype=np.float32)])
    labels = np.array([4, 7])
    attack = find_nearest_own_images(
        sent, labels, own_images, np.array([1, 4, 7]), 2, np.array([1, 3])
    )
    # Root mean square: each pixel of the second image is 0.1 away.
    np.testing.assert_allclose(attack.distance, [0, 0.1], atol=1e-7)
    assert attack.nearest_labels.tolist() == [4, 7]
    assert attack.are_exact_copies.tolist() == [True, False]
    assert attack.typical == pytest.approx(0.5)
    assert attack.nearer_than_own_images_count == 2
    single = find_nearest_own_images(
        sent, labels, own_images[:1], np.array([1]), 0, np.array([1, 1])
    )
    assert np.isnan(single.typical)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "m", "are_copies"),
    [("random", 3, True), ("kmeans", 500, True), ("kmeans", 1, False)],
)
def test_the_attack_on_a_run_has_distance_zero_where_images_are_the_clients_own(
    images, m, are_copies
):
    outcome = run(
        "distilled", clients=3, alpha=0.5, **{"distilled.images": images, "distilled.per_class": m}
    )
    attacks = find_nearest_images_of_all_clients(outcome)
    assert [attack.client for attack in attacks] == [0, 1, 2]
    federation = outcome.federation()
    for attack in attacks:
        rows = federation.shards[attack.client]
        own_images = {image.tobytes() for image in federation.dataset.x_train[rows].numpy()}
        assert {image.tobytes() for image in attack.nearest} <= own_images
        if are_copies:
            assert attack.are_exact_copies.all()
        else:
            assert attack.are_exact_copies.mean() < 0.5


def test_every_single_image_of_a_run_of_afl_is_found_in_the_class_sums():
    for attack in recover_class_means_and_nearest_images(run("afl", clients=10, alpha=0.1)):
        assert attack.are_exact_copies[attack.counts == 1].all()
        assert not attack.are_exact_copies[attack.counts > 3].any()


def test_pairs_of_many_images_few_images_and_feature_rows():
    names = [str(c) for c in range(10)]
    rng = np.random.default_rng(0)
    for shape in ((1, 4, 4), (3, 4, 4), (7,)):
        x, y = rng.random((40, *shape), dtype=np.float32), np.arange(40) % 10
        sent = np.concatenate([x[:1], x[1:25] * 0.9])
        attack = find_nearest_own_images(sent, y[:25], x, y, 1, np.arange(25, 0, -1))
        whole = draw_sent_and_nearest_images(attack, names, "Sent", "Words.", setting="here")
        assert f"{MAX_PAIRS} pairs of images (here)" in whole.alt
        assert len(whole.table) == 25
        assert whole.table[0] == {
            "class": "0", "images": 25, "class of the nearest": "0", "distance": 0, "its own": "yes",
        }  # fmt: skip
        of_class = draw_sent_and_nearest_images(
            attack, names, "Sent", "Words.", setting="here", only_class_if_sent=3
        )
        assert "3 pairs" in of_class.alt
        assert render_picture_png(whole).startswith(b"\x89PNG")


@pytest.mark.parametrize(("size", "axes"), [((9, 3.2), 1), ((13, 5.6), 2), ((2.9, 4.4), 1)])
def test_distances_stand_below_the_pairs_only_where_their_rows_have_room(size, axes):
    names = [str(c) for c in range(10)]
    rng = np.random.default_rng(0)
    x, y = rng.random((MAX_PAIRS, 1, 4, 4), dtype=np.float32), np.arange(MAX_PAIRS)
    attack = find_nearest_own_images(x * 0.9, y, x, y, 0, np.ones(MAX_PAIRS, dtype=int))
    with use_figure_size(size):
        picture = draw_sent_and_nearest_images(attack, names, "Sent", "Words.", setting="here")
    assert len(picture.figure.axes) == axes
    if axes == 2:
        pixels_a_row = picture.figure.axes[1].get_window_extent().height / MAX_PAIRS
        letters = picture.figure.axes[1].get_yticklabels()[0].get_window_extent().height
        assert letters < pixels_a_row
