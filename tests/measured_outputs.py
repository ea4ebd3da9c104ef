"""How nbval compares the outputs of a notebook: by their numbers. Words, fonts and colours may change.

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
        return isinstance(other, str) and have_same_numbers(str(self), str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def have_same_numbers(one: str, other: str) -> bool:
    """Whether two outputs have the same numbers, measured ones within their noise."""
    pairs = zip_longest(find_numbers(one), find_numbers(other), fillvalue=("nan", "", ""))
    return all(
        number == other_number or differ_by_noise(number, other_number)
        for number, other_number in pairs
    )


def find_numbers(text: str) -> list[tuple[str, str, str]]:
    """(number, half-width of its band or "", "%" or "points" or "") for each number that is read, in order."""
    return NUMBER.findall(TAG.sub(" ", text))


def differ_by_noise(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Whether both are measured numbers (with or without a band) that differ by noise."""
    number, band, unit = one
    other_number, other_band, other_unit = other
    if not unit or not other_unit or bool(band) != bool(other_band):
        return False
    tolerance = max(TOLERANCE, float(band or 0), float(other_band or 0))
    return abs(parse_number(number) - parse_number(other_number)) <= tolerance


def parse_number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def pytest_configure() -> None:
    IPyNbCell.sanitize = sanitize_to_shown


def sanitize_to_shown(cell: IPyNbCell, text: object) -> object:
    """nbval's own `sanitize`, whose texts are compared by their numbers."""
    sanitized = sanitize(cell, text)
    return Shown(sanitized) if isinstance(sanitized, str) else sanitized
