"""What nbval lets pass in a notebook's output, and what it does not."""

import pytest
from measured_outputs import Shown

STORED = "Best student: 26 %, 41 ± 11 points behind, clear. 50.6 kB, 1,234 numbers, 10 clients"


def changed(old, new):
    assert old in STORED
    return STORED.replace(old, new)


SAME = [
    STORED,
    changed("26 %", "31 %"),  # another processor
    changed("41 ± 11", "51 ± 9"),  # within the larger band
    changed("Best student", "The best one of the students"),
    f'<div style="color:#009E73;padding:.4em">{STORED}<img width="100%" src="data:image/png;base64,7"></div>',
]
OTHER = [
    changed("26 %", "32 %"),  # more than five points
    changed("41 ± 11", "54 ± 11"),  # outside the band
    changed("41 ± 11", "41"),  # no band
    changed("26 %, ", ""),  # less said
    f"{STORED} 3 %",  # more said
    *(
        changed(*pair)
        for pair in (("50.6 kB", "50.7 kB"), ("1,234", "1,235"), ("10 clients", "11 clients"))
    ),
    changed("26 %", "26 kB"),
]


@pytest.mark.parametrize("new", [*SAME, *OTHER])
def test_words_looks_and_noise_may_differ_and_no_other_number(new):
    assert (Shown(STORED) == Shown(new)) is (new in SAME) is not (Shown(STORED) != Shown(new))
