"""What a learner typed, as numbers: decimal point or comma, thousands, fractions, powers, per cent, a unit."""

import numbers
import re
import unicodedata
from collections.abc import Collection
from itertools import product
from typing import Any

from ...errors import parsed

LARGEST = 1e30  # infinite and undefined numbers are no answers
QUOTES = " \t\r\n\"'“”„‘’«»`"  # round a number, with white space
PER_CENT = ("%", "percent", "per cent")
BYTES = {"kb": 1000, "kib": 1024, "mb": 1e6, "mib": 1024**2}  # where bytes are asked for
WORDS = r"(?:(?:more than|at least|above|over|about|exactly|slope) +)?"
NAMED = r"(?:\D*\bis )?(?:[^\W\d_]+ *(?=[=>≥]))?[=≈~>≥× ]*" + WORDS  # it is, λ = or T ≥ or > or × or nothing
TYPED = re.compile(NAMED + r"(\S.*?\d[.,]?|\d[.,]?) *([^\d.,/ ][^\d/]*)?")  # a number and a unit
FRACTION = re.compile(r"(?:(-?\d+) +)?(.+?) */ *(.+)")  # a whole number or none, numerator, denominator
POWER = re.compile(r"(.+?) *(?:\^|\*\*) *(.+)")  # 2^1.5
GROUPED = re.compile(r"([+-]?[1-9]\d{0,2}([ ,.'_])\d{3}(?:\2\d{3})*)(?:[.,](\d+))?")  # 16,040 or 1 234 567.8


def readings(answer: Any, units: Collection[str] = ()) -> list[float]:
    """All numbers that `answer` may mean; [] if it is none.

    units: what may stand behind the number, in the singular or plural; with "%" the answer counts in per cent, and a
    number without a unit may be a share. Else "%" divides by 100. With "bytes" kB, KiB, MB and MiB are understood.

    >>> readings("9/4"), readings("2½"), readings("87 %"), readings("6.25x", ["x"]), readings("6.25x")
    ([2.25], [2.5], [0.87], [6.25], [])
    >>> sorted(readings("16,040")), readings(0.25, ["%"])
    ([16.04, 16040.0], [0.25, 25.0])
    >>> readings("more than 1.25"), readings("5050 + 1000"), readings("two")
    ([1.25], [6050.0], [])
    """
    values, unit = [answer.item() if getattr(answer, "shape", None) == () else answer], None
    if isinstance(answer, str):
        spread = re.sub(r"(?<=\d)[¼-¾⅐-⅞]", lambda sign: f" {sign[0]}", answer)
        text = unicodedata.normalize("NFKC", spread).replace("\N{FRACTION SLASH}", "/").replace("−", "-")
        parts = TYPED.fullmatch(text.strip(QUOTES).rstrip(".! "))
        values, unit = (quotients(parts[1]), parts[2]) if parts else ([], None)
    real: list[Any] = [v for v in values if isinstance(v, numbers.Real) and not isinstance(v, bool)]
    values = [float(v) for v in real if abs(v) < LARGEST]
    if "%" in units:
        values += [100 * value for value in values if unit is None]
    elif unit in PER_CENT:
        return [value / 100 for value in values]
    elif "bytes" in units and (unit or "").lower() in BYTES:
        return [value * BYTES[str(unit).lower()] for value in values]
    known = {name.removesuffix("s") for name in (*units, *(PER_CENT if "%" in units else ()))}
    return values if unit is None or {unit.removesuffix("s"), unit.lower().removesuffix("s")} & known else []


def quotients(text: str) -> list[float]:
    """All values of a number, a fraction or a mixed number, such as 2 1/4, or of a sum of numbers."""
    if len(terms := re.split(r"(?<=[\d.]) *\+ *", text)) > 1:
        return [sum(values) for values in product(*map(decimals, terms))]
    if not (parts := FRACTION.fullmatch(text)):
        return decimals(text)
    whole, sign = float(parts[1] or 0), -1 if text.startswith("-") and parts[1] else 1
    return [whole + sign * a / b for a in decimals(parts[2]) for b in decimals(parts[3]) if b]


def decimals(text: str) -> list[float]:
    """All values of a number or power without a fraction bar: a comma or a point may part decimals or thousands."""
    if parts := POWER.fullmatch(text):
        bases, exponents = decimals(parts[1]), decimals(parts[2])
        return [a**b for a in bases for b in exponents if 0 < a < 1e6 and abs(b) < 50]
    forms = {text.replace(",", ".")}
    if grouped := GROUPED.fullmatch(text):
        forms.add(f"{grouped[1].replace(grouped[2], '')}.{grouped[3] or 0}")
    return [float(v) for v in map(parsed, forms) if isinstance(v, int | float) and abs(v) < LARGEST]
