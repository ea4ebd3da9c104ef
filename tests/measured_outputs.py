"""How nbval compares what a notebook shows: by its numbers. Words, fonts and colours may change.

Training is chaotic: a processor that adds in another order moves an accuracy by a few points. So a number before "%" or
"points" may differ from the stored one by TOLERANCE or by the band that either text gives ("41 ± 11 points"), whichever
is larger. Every other number must be the same, and so must their order. Pictures are not compared: the sentence under
each has its numbers. A few cells show three seeds of methods that amplify rounding (DENSE, Co-Boosting, rounds of
Fed-ET); these carry the tag `nbval-ignore-output`, and must only run through.
"""

import re
from itertools import zip_longest

from nbval.plugin import IPyNbCell

TOLERANCE = 5.0  # points; most stored percentages are means of three or more runs
TAG = re.compile(r"<[^>]*>")
NUMBER = re.compile(
    r"(?<![\w.#])([-+−]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?)(?: ± (\d+(?:\.\d+)?))?(?=( ?(?:%|points?\b))?)"
)
sanitize = IPyNbCell.sanitize


class Shown(str):
    """A cell's output; equal to another one if it has the same numbers, the measured ones within their noise."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and alike(str(self), str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def alike(one: str, other: str) -> bool:
    """Whether two outputs have the same numbers."""
    pairs = zip_longest(numbers(one), numbers(other), fillvalue=("nan", "", ""))
    return all(first == second or near(first, second) for first, second in pairs)


def numbers(text: str) -> list[tuple[str, str, str]]:
    """(number, half-width of its band or "", "%" or "points" or "") for each number that is read, in order."""
    return NUMBER.findall(TAG.sub(" ", text))


def near(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Two measured numbers."""
    room = max(TOLERANCE, float(one[1] or 0), float(other[1] or 0))
    both = bool(one[2] and other[2]) and bool(one[1]) == bool(other[1])
    return both and abs(value(one[0]) - value(other[0])) <= room


def value(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def pytest_configure() -> None:
    IPyNbCell.sanitize = lambda cell, text: (
        Shown(shown) if isinstance(shown := sanitize(cell, text), str) else shown
    )
