"""The pictures of matching from numbers made by hand: what they draw, say and tabulate."""

import numpy as np
import pytest

from fedlab_nb.labs.matching.game import puzzle
from fedlab_nb.labs.matching.numbers import Line, Pair
from fedlab_nb.labs.matching.plots.barrier import barrier
from fedlab_nb.labs.matching.plots.game import game
from fedlab_nb.labs.matching.plots.partners import partners
from fedlab_nb.labs.matching.plots.starts import starts
from fedlab_nb.labs.matching.plots.ways import ways
from fedlab_nb.plots import png

HILL = Line(np.array([0.5, 2.0, 0.7]), np.array([0.9, 0.3, 0.8]))
FLAT = Line(np.array([0.5, 0.4, 0.7]), np.array([0.9, 0.85, 0.8]))
ALIKE = np.array([[0.1, 0.9, 0.0], [0.2, 0.1, 0.6], [0.7, 0.3, -0.2]])
PAIR = Pair(0, 4, "rebasin", HILL, FLAT, ["hidden layer 1"], [ALIKE], [np.array([1, 2, 0])], "toy, seed 0")


def is_png(picture):
    return png(picture).startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("measure", ["loss", "accuracy"])
def test_barrier(measure):
    picture = barrier(PAIR, measure, 0.1)
    assert is_png(picture) and "toy, seed 0" in picture.alt and f"test {measure}" in picture.alt
    assert picture.sentence == (
        "The loss barrier between clients 0 and 4 is 1.40 with the units as they stand, and 0.00 after matching by Git "
        "Re-Basin. Their average is right for 30 % before and 85 % after matching. The two networks themselves are "
        "right for 90 % and 80 %."
    )
    before, after = picture.figure.axes[0].lines[:2]
    assert list(before.get_ydata()) == list(getattr(HILL, measure))
    assert list(after.get_ydata()) == list(getattr(FLAT, measure))
    assert [row["way"] for row in picture.table] == [0, 0.5, 1]
    assert picture.table[1]["accuracy matched"] == "85 %"


def test_partners():
    picture = partners(PAIR, 0)
    assert is_png(picture) and "3 units of hidden layer 1" in picture.alt
    assert picture.sentence == (
        "3 of 3 units of client 4 find their partner at another place in hidden layer 1; the mean cosine of partners "
        "goes from 0.00 to 0.73."
    )
    left, right = (ax.images[0].get_array() for ax in picture.figure.axes[:2])
    assert np.diagonal(right).tolist() == [0.9, 0.7, 0.6]  # the best pair first
    assert np.diagonal(left).tolist() == [0.1, -0.2, 0.1]
    assert [row["partner of client 4"] for row in picture.table] == [1, 2, 0]


def test_game_says_when_the_order_is_found():
    here = puzzle(0)
    start, solved = game(here, range(4), 0), game(here, here.best(), 0)
    assert is_png(start) and "found" not in start.sentence
    assert solved.sentence.endswith("You have found it.") and "the barrier is 0.00" in solved.sentence
    assert [row["unit of B beside it"] for row in solved.table] == [j + 1 for j in here.best()]
    assert "Puzzle 1" in start.alt


def test_starts():
    both = {
        "matched": {0.1: {0: 0.3, 1: 0.5}, 100.0: {0: 0.8, 1: 0.9}},
        "plain": {0.1: {0: 0.2, 1: 0.2}, 100.0: {0: 0.1, 1: 0.1}},
    }
    picture = starts({"same": both, "different": both}, "toy", 0.1)
    assert is_png(picture) and picture.alt.startswith("Four lines of test accuracy against α (toy)")
    assert "matched, common start: 40 % at α = 0.1, 85 % at α = 100" in picture.sentence
    assert "plain, different starts: 20 % at α = 0.1, 10 % at α = 100" in picture.sentence
    assert picture.table[0] == {"average": "matched, common start", "α = 0.1": "40 %", "α = 100": "85 %"}


def test_ways():
    accuracies = {"plain average": {0: 0.3, 1: 0.4}, "TIES, 20 % kept": {0: 0.5, 1: 0.6}}
    picture = ways(accuracies, {"plain average": "fedavg", "TIES, 20 % kept": "ties"}, "toy")
    assert is_png(picture)
    assert picture.sentence == "TIES, 20 % kept is highest with 55 %; plain average 35 % (seeds 0–1)."
    assert picture.table[0] == {"way": "plain average", "mean": "35 %", "each seed": "0: 30 %, 1: 40 %"}
