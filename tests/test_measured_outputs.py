"""What nbval lets pass in a notebook's output, and what it does not."""

import pytest
from measured_outputs import Shown

STORED = "Best student: 26 %, 41 ± 11 points behind, clear. 50.6 kB, 1,234 numbers, 10 clients"


def change(old, new):
    """The stored output with another text at one place."""
    assert old in STORED
    return STORED.replace(old, new)


SAME = [
    STORED,
    change("26 %", "31 %"),  # another processor
    change("41 ± 11", "51 ± 9"),  # within the larger band
    change("Best student", "The best one of the students"),
    f'<div style="color:#009E73;padding:.4em">{STORED}<img width="100%" src="data:image/png;base64,7"></div>',
]
OTHER = [
    change("26 %", "32 %"),  # more than five points
    change("41 ± 11", "54 ± 11"),  # outside the band
    change("41 ± 11", "41"),  # no band
    change("26 %, ", ""),  # less said
    f"{STORED} 3 %",  # more said
    change("50.6 kB", "50.7 kB"),
    change("1,234", "1,235"),
    change("10 clients", "11 clients"),
    change("26 %", "26 kB"),
]


@pytest.mark.parametrize("new", [*SAME, *OTHER])
def test_words_looks_and_noise_may_differ_and_other_numbers_may_not(new):
    assert (Shown(STORED) == Shown(new)) is (new in SAME) is not (Shown(STORED) != Shown(new))
