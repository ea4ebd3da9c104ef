"""What nbval lets pass in a notebook's output, and what it does not."""

import pytest
from measured_outputs import Shown

STORED = "Best student: 26 %, 41 ± 11 points behind, clear."


@pytest.mark.parametrize(
    "new",
    [
        STORED,
        "Best student: 31 %, 41 ± 11 points behind, clear.",  # another processor
        "Best student: 26 %, 51 ± 9 points behind, clear.",  # within the larger band
    ],
)
def test_measured_percentages_may_differ_within_their_noise(new):
    assert Shown(STORED) == Shown(new)
    assert not Shown(STORED) != Shown(new)


@pytest.mark.parametrize(
    "new",
    [
        "Best student: 32 %, 41 ± 11 points behind, clear.",  # more than five points
        "Best student: 26 %, 54 ± 11 points behind, clear.",  # outside the band
        "Best student: 26 %, 41 points behind, clear.",  # no band
        "Best student: 26 %, 41 ± 11 points behind, within the noise.",  # another verdict
        "Best student: 26 %.",  # less said
        "Best student: 26 %, 41 ± 11 points behind, clear. 3 %",  # more said
    ],
)
def test_anything_else_differs(new):
    assert Shown(STORED) != Shown(new)


def test_bytes_and_counts_are_compared_exactly():
    assert Shown("50.6 kB for 10 clients") != Shown("50.7 kB for 10 clients")
    assert Shown("-1 ± 2 points") == Shown("+0 ± 3 points")


def test_a_verdict_may_turn_at_its_border_only():
    assert Shown("+11 ± 7 points, more than the noise<br>") == Shown("+8 ± 10 points, within the noise<br>")
    assert Shown("+20 ± 7 points, more than the noise<br>") != Shown("+20 ± 7 points, within the noise<br>")
