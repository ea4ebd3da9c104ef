"""How nbval compares what a notebook shows: words exactly, measured percentages within their noise.

Training is chaotic: a processor that adds in another order moves an accuracy by a few points. So a number before "%" or
"points" may differ from the stored one by TOLERANCE or by the band that either text gives ("41 ± 11 points"), whichever
is larger. A verdict ("11 ± 7 points, more than the noise") may turn only if both texts give a difference that lies
within TOLERANCE of its band. Everything else must be equal. A few cells show three seeds of methods that amplify
rounding (DENSE, Co-Boosting, rounds of Fed-ET); these carry the tag `nbval-ignore-output`, and must only run through.
"""

import re
from itertools import zip_longest

from nbval.plugin import IPyNbCell

TOLERANCE = 5.0  # points; most stored percentages are means of three or more runs
MEASURED = re.compile(r"(?<![\w.])([-+−]?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?(?= ?(?:%|points?\b))")
VERDICT = re.compile(r"([-+−]?\d+) ± (\d+) points?([^.;<±]*?)((?:more than|within) the noise|clearly worse|clear)\b")
sanitize = IPyNbCell.sanitize


class Shown(str):
    """A cell's output; equal to another one if only measured percentages differ, and these within their noise."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and (str(self) == str(other) or alike(str(self), str(other)))

    def __ne__(self, other: object) -> bool:
        return not self == other


def alike(one: str, other: str) -> bool:
    """Whether two outputs say the same."""
    if words(one) != words(other) or not all(map(same_verdict, VERDICT.findall(one), VERDICT.findall(other))):
        return False
    pairs = zip_longest(MEASURED.findall(one), MEASURED.findall(other), fillvalue=("nan", ""))
    return all(near(first, second) for first, second in pairs)


def words(text: str) -> str:
    """What is compared to the letter."""
    return MEASURED.sub("", VERDICT.sub(r"\1 ± \2 points\3", text))


def same_verdict(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Two differences, each (mean, half-width of its band, words between, verdict)."""
    at_border = all(abs(abs(value(mean)) - float(band)) <= TOLERANCE for mean, band, *_ in (one, other))
    return at_border or one[-1] == other[-1]


def near(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Two measured numbers, each (mean, half-width of its band or "")."""
    room = max(TOLERANCE, float(one[1] or 0), float(other[1] or 0))
    return bool(one[1]) == bool(other[1]) and abs(value(one[0]) - value(other[0])) <= room


def value(text: str) -> float:
    return float(text.replace("−", "-"))


def pytest_configure() -> None:
    IPyNbCell.sanitize = lambda cell, text: Shown(shown) if isinstance(shown := sanitize(cell, text), str) else shown
