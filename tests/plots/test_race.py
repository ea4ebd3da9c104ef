"""The race and the costs, on hand-made curves."""

import pytest

from fedlab_nb.plots import MethodResults
from fedlab_nb.plots.race import (
    STEPS,
    RacePicture,
    compute_stage_completion,
    find_byte_range,
    find_last_point_within_budget,
    format_point_accuracy,
    has_many_rounds,
)
from fedlab_nb.plots.style import draw_light_dark_svg_element

LOCAL = "local training"


def make_point(phase, sent, accuracy):
    return {"phase": phase, "progress": 0.5, "accuracy": accuracy, "bytes": sent}


ONCE = MethodResults(
    "Once", setting="toy", accuracies={0: 0.6}, up=300, down=100,
    curves=[[make_point(LOCAL, 100, 0.2), make_point("fuse", 400, 0.5), make_point("end", 400, 0.6)]],
)  # fmt: skip
MANY = MethodResults(
    "Many", setting="toy", accuracies={0: 0.9}, up=800, down=800,
    curves=[[make_point("rounds", 200 * (r + 1), 0.1 * (r + 2)) for r in range(8)]],
)  # fmt: skip
TINY = MethodResults(
    "Tiny rounds", setting="toy", accuracies={0: 0.8}, up=500, down=300,
    curves=[[make_point(LOCAL, 100, 0.2), make_point("rule", 600, 0.7), make_point("rule", 800, 0.8)]],
)  # fmt: skip


def test_a_budget_pays_for_points_up_to_it():
    assert find_last_point_within_budget(ONCE, 399) is None
    assert find_last_point_within_budget(ONCE, 400)["accuracy"] == 0.6
    assert find_last_point_within_budget(MANY, 399)["accuracy"] == pytest.approx(0.2)
    assert find_last_point_within_budget(MANY, 1600)["accuracy"] == pytest.approx(0.9)
    assert find_byte_range([ONCE, MANY]) == (200 / 1.1, 1600)
    assert has_many_rounds(MANY) and not has_many_rounds(ONCE) and not has_many_rounds(TINY)


def test_stages_fill_one_after_the_other():
    assert compute_stage_completion(ONCE, 50) == (0, 0, 0)
    assert compute_stage_completion(ONCE, 100) == (1, 0, 0)
    assert compute_stage_completion(ONCE, 250) == (1, 0.5, 0)
    assert compute_stage_completion(ONCE, 400) == (1, 1, 1)
    assert compute_stage_completion(TINY, 600) == (1, 1, 0)
    assert compute_stage_completion(TINY, 700) == (1, 1, 0.5)
    assert compute_stage_completion(MANY, 800) == (0.5, 0.5, 0.5)


# Takes its time: matplotlib draws each moment twice.
def test_a_race_that_has_moved_looks_like_a_fresh_one_at_that_moment():
    race = RacePicture([ONCE, MANY])
    draw_light_dark_svg_element(race.show(race.compute_budget_bytes(0)).figure)
    for step in (STEPS / 2, STEPS, STEPS / 3):
        fresh = RacePicture([ONCE, MANY])
        assert draw_light_dark_svg_element(
            race.show(race.compute_budget_bytes(step)).figure
        ) == draw_light_dark_svg_element(fresh.show(fresh.compute_budget_bytes(step)).figure)
    texts = [text.get_text() for text in race.figure.axes[1].texts]
    assert texts[-1] == format_point_accuracy(
        find_last_point_within_budget(MANY, race.compute_budget_bytes(STEPS / 3)), "–"
    )
