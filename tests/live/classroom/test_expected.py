"""What the guide says that a class may expect: stored rehearsals, and one of them played again."""

import pytest
from lessons import NOTEBOOKS

from fedlab_nb.live.classroom import expected
from fedlab_nb.live.classroom.worth import WAYS

GUIDE = (NOTEBOOKS / "guide" / "class.md").read_text(encoding="utf-8")
# On another processor a few test digits near a border change sides.
TOLERANCE = 5 / 360 + 1e-6
# The joker's logits are in the millions: where they decide, rounding decides with them.
TOLERANCE_WITH_JOKER = 0.15


@pytest.mark.slow
def test_a_rehearsal_played_again_gives_the_stored_numbers():
    count = expected.SIZES[0]
    stored = expected.load_simulated_lessons()[str(count)][0]
    played = expected.simulate_lesson(count, 0)
    assert played.keys() == stored.keys() == set(expected.STEPS)
    for step in ("reveal", "joker", "rounds"):
        assert played[step].keys() == stored[step].keys()
        tolerance = TOLERANCE_WITH_JOKER if step == "joker" else TOLERANCE
        for title, accuracy in played[step].items():
            assert accuracy == pytest.approx(stored[step][title], abs=tolerance), (step, title)
    assert played["forget"] == pytest.approx(stored["forget"], abs=5)


def test_what_the_run_sheet_asks_comes_out_as_it_says():
    """On average over ten rehearsals: sums are ahead of votes, votes ahead of an average; the loud
    vote falls with the joker; learnt weights are ahead of equal ones."""

    def mean(step, title, count):
        values = expected.read_simulated_accuracies(count, step, title)
        return sum(values.values()) / len(values)

    for count in expected.SIZES:
        assert mean("reveal", "AFL", count) > mean("reveal", "Ensemble", count)
        assert mean("reveal", "Ensemble", count) > mean("reveal", "FedAvg", count)
        assert mean("joker", "Mean of logits", count) < 0.2
        assert mean("rounds", "FENS", count) > mean("rounds", "Ensemble", count)


def test_the_guide_has_every_bar_of_the_picture():
    (line,) = expected.SHOWN.findall(GUIDE)
    assert line == f"![{expected.describe_simulated_accuracies()}](../images/class.png)"
    assert all(way["name"] in line for way in WAYS.values())
    assert expected.PICTURE.read_bytes().startswith(b"\x89PNG")
