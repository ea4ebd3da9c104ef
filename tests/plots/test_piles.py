"""The still picture of the piles: each sample in the pile of its client, in the colour of its class."""

import numpy as np
import pytest

from fedlab_nb.data import federate, load
from fedlab_nb.plots.piles import (
    FAINTEST,
    SQUARE_PIXELS,
    choose_shown_samples,
    compose_piles_into_image,
    draw_piles,
    make_pile_tile,
)

RED = (1.0, 0.0, 0.0)
COLOURS = ("#ff0000", "#0000ff")


def find_tile_colours(wall, column, row, across):
    """Find the colour in the middle of a tile. row: from the bottom."""
    gap = wall.shape[1] // column[1] - across * SQUARE_PIXELS
    left = column[0] * (wall.shape[1] // column[1]) + gap // 2
    y = wall.shape[0] - row * SQUARE_PIXELS - SQUARE_PIXELS // 2
    starts = left + SQUARE_PIXELS * np.arange(across) + SQUARE_PIXELS // 2
    return [tuple(wall[y, x]) for x in starts]


def test_piles_are_built_from_the_bottom_class_by_class():
    """A has two samples of class 0 and one of class 1, B one of class 1."""
    labels = np.array([0, 1, 0, 1])
    wall = compose_piles_into_image(
        [np.array([0, 2, 1]), np.array([3])], labels, None, COLOURS, tiles_across=2
    )
    red, blue = (*RED, 1.0), (0.0, 0.0, 1.0, 1.0)
    clear = (0.0, 0.0, 0.0, 0.0)
    assert find_tile_colours(wall, (0, 2), 0, 2) == [red, red]
    assert find_tile_colours(wall, (0, 2), 1, 2) == [blue, clear]
    assert find_tile_colours(wall, (1, 2), 0, 2) == [blue, clear]
    assert find_tile_colours(wall, (1, 2), 1, 2) == [clear, clear]


def test_ink_has_the_colour_of_the_class_and_a_photo_its_own():
    image = np.zeros((2, 2, 1), dtype=np.uint8)
    image[0, 0] = 255
    tile = make_pile_tile(image, RED, 2)
    assert tuple(tile[0, 0]) == RED
    assert tile[1, 1] == pytest.approx([1, 1 - FAINTEST, 1 - FAINTEST])
    photo = np.full((2, 2, 3), 51, dtype=np.uint8)
    assert make_pile_tile(photo, RED, 2) == pytest.approx(np.full((2, 2, 3), 0.2))


def test_a_class_with_few_samples_has_a_tile_where_a_tile_stands_for_many():
    labels = np.array([0] * 25 + [1])
    assert choose_shown_samples(np.arange(26), labels, 10).tolist() == [0, 10, 20, 25]


@pytest.mark.parametrize(("dataset", "clients"), [("digits", 10), ("digits", 100), ("heart", 4)])
def test_sizes_names_and_scores_stand_at_the_piles(dataset, clients):
    federation = federate(load(dataset), clients=clients, alpha=0.5, partition="dirichlet")
    scores = [0.25] * clients
    picture = draw_piles(federation, None, setting="", client_accuracies=scores)
    written = [text.get_text() for text in picture.figure.axes[0].texts]
    sizes = [str(len(shard)) for shard in federation.shards]
    if clients == 100:
        assert written == [*"AKU", "AE", "AO", "AY", "BI", "BS", "CC", "CM"]
    else:
        assert [text for text in written if text.isdigit()] == sizes
        assert written.count("25 %") + written.count("25\u00a0%") == clients
    assert [row["samples"] for row in picture.table] == [int(size) for size in sizes]
