"""What a learner typed into an answer box, as numbers: "2½", "24,200 bytes", "9·6", "six".

Nothing is evaluated as Python. A recursive-descent parser knows this grammar and no more:

    sum      = ["+" | "−"] product { ("+" | "−") product }
    product  = power { ["·" | "×" | "*" | "/" | "÷" | ":"] power }     no sign only before a bracket
    power    = operand { "!" } [ "^" ["−"] power ]
    operand  = number | mixed number | "(" sum ")" | ("√" | "sqrt" | "ln" | "exp") ["−"] operand

Whatever follows the longest expression has to be a unit. Length, depth, exponents, factorials and
the number of readings are bounded. A text may have several readings: "16,040" is 16040 or 16.04.
"""

import math
import numbers
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

LARGEST = 1e30  # infinite and undefined numbers are no answers
LARGEST_BASE = 1e6  # of a power
LARGEST_EXPONENT = 50
LARGEST_FACTORIAL = 20
LONGEST_TEXT = 200  # characters
DEEPEST = 20  # brackets within brackets
MOST_READINGS = 64
ROUNDING = 0.01  # by which two sides of "16/17 = 0.94" may differ, as a share

PER_CENT = ("%", "percent", "per cent")
BYTE_UNITS = {"kb": 1000, "kib": 1024, "mb": 1e6, "mib": 1024**2}  # where bytes are asked for


@dataclass(frozen=True)
class Reading:
    """What a text may mean.

    values:     each number that it may be, in the unit of the question
    bare:       each number that it may be, whatever unit stands behind it
    ranges:     (low, high) of each range that it may be, in the unit of the question
    complaint:  a sentence, where the text can be read but contradicts itself
    """

    values: tuple[float, ...] = ()
    bare: tuple[float, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    complaint: str = ""


class NotANumberError(Exception):
    """A text that the grammar does not know."""


def read_answer(answer: Any, units: Collection[str] = ()) -> Reading:
    """Everything that `answer` may mean.

    units: what may stand behind the number, in the singular or plural; with "%" the answer counts
    in per cent, and a number without a unit may be a share. Else "%" divides by 100. With "bytes"
    kB, KiB, MB and MiB are understood.
    """
    if not isinstance(answer, str):
        value = answer.item() if getattr(answer, "shape", None) == () else answer
        if not is_finite_number(value):
            return Reading()
        values = tuple(convert_unit([float(value)], "", units))
        return Reading(values=values, bare=values)
    if len(answer) > LONGEST_TEXT:
        return Reading()
    text = normalise(answer)
    if re.search(NEGATION, text):
        return Reading()
    low_and_high = split_range(text)
    if low_and_high is not None:
        ranges = read_ranges(*low_and_high, units)
        if ranges:
            return Reading(ranges=ranges, values=tuple(read_single(text, units).values))
    return read_single(text, units)


def read_numbers(answer: Any, units: Collection[str] = ()) -> list[float]:
    """All numbers that `answer` may mean; [] if it is none.

    >>> read_numbers("9/4"), read_numbers("2½"), read_numbers("87 %"), read_numbers("4! · 3!")
    ([2.25], [2.5], [0.87], [144.0, 72.0])
    >>> read_numbers("6.25x", ["x"]), read_numbers("6.25x")
    ([6.25], [])
    >>> sorted(read_numbers("16,040")), read_numbers(0.25, ["%"])
    ([16.04, 16040.0], [0.25, 25.0])
    >>> read_numbers("more than 1.25"), read_numbers("(6 + 5) / (4 + 1)"), read_numbers("six")
    ([1.25], [2.2], [6.0])
    """
    return list(read_answer(answer, units).values)


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that can be an answer."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and abs(value) < LARGEST


# ------------------------------------------------------------------------- texts before the grammar
QUOTES = " \t\r\n\"'“”„‘’«»`"  # around an answer, with white space
NEGATION = r"\b(?:not|no|never|cannot|neither|nor)\b|n['’]t\b|≠|!="
VULGAR_FRACTION = re.compile(r"(\d?)\s*([¼-¾⅐-⅞])")
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
SUPERSCRIPT = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
# What stands before an answer: "I think the answer is about", "more than", "±".
INTRODUCTION = re.compile(
    r"(?:(?:so|then|well)\b,? *)?(?:i (?:think|guess|get|got|say)\b:? *)?"
    r"(?:\D*\bis\b:? *|\b(?:answer|result|solution)\b:? *)?"
    r"(?:(?:more than|at least|greater than|larger than|above|over|about|around|roughly|approximately"
    r"|approx\.?|ca\.?|circa|exactly|nearly|slope|plus or minus)(?= |\d) *|(?:[≈~>≥±×→]|\+/-) *)*",
    re.IGNORECASE,
)
LABEL = re.compile(r"[^\d=<>!]{1,60}")  # "λ" before "= 1.25", "KL(teacher ‖ student)"
NUMBERED_LABEL = re.compile(r"[^\W\d]\w{0,9}")  # "x1"
REVERSED_BOUND = re.compile(r"(.*\S) *[<≤] *[^\W\d]\w{0,9}")  # 1.25 < λ
CLOSING_WORDS = re.compile(r"[ ,;:]*\b(?:at least|or more|in all|in total|altogether|exactly)$")
RANGE_PATTERNS = (
    re.compile(r"(?:between|from) +(.+?) +(?:and|to) +(.+)"),
    re.compile(r"(.+?) +to +(.+)"),
    re.compile(r"(.+?) *(?:–|—|\.{2,3}|…) *(.+)"),
    re.compile(r"([\d.,]+) *- *([\d.,]+\D*)"),
)
PLUS_MINUS = re.compile(r"(.+?) *(?:±|\+/-|\+-) *([\d.,]+)(\D*)")


def normalise(text: str) -> str:
    """The text with plain signs and digits: no quotes, vulgar fractions, superscripts or number
    words.
    """
    text = SUPERSCRIPT.sub(lambda power: "^" + power[0].translate(SUPERSCRIPTS), text)
    text = VULGAR_FRACTION.sub(spell_out_fraction, text)
    text = unicodedata.normalize("NFKC", text)
    text = text.replace("\N{FRACTION SLASH}", "/").replace("−", "-")
    text = re.sub(r"[∙⋅•]", "·", text)
    text = re.sub(r"(?<![^\W_])e *(?:\^|\*\*) *", "exp ", text)
    text = text.strip(QUOTES)
    text = re.sub(r"(?<!\.)\.$|[ ,;]+$", "", text)
    text = replace_number_words(text)
    return CLOSING_WORDS.sub("", text).strip(QUOTES)


def spell_out_fraction(match: re.Match) -> str:
    """'2½' as '2 1/2', '½' as '(1/2)'."""
    whole, fraction = match.groups()
    spelled = unicodedata.normalize("NFKC", fraction).replace("\N{FRACTION SLASH}", "/")
    return f"{whole} {spelled}" if whole else f"({spelled})"


def split_range(text: str) -> tuple[str, str, str] | None:
    """(low, high, unit) of a text that may be a range; '2.5 ± 0.1' is not split but says its
    half-width as `high` behind a '±'.
    """
    matched = PLUS_MINUS.fullmatch(text)
    if matched is not None:
        return matched[1], f"±{matched[2]}", matched[3]
    body = text[INTRODUCTION.match(text).end() :]  # type: ignore[union-attr]
    for pattern in RANGE_PATTERNS:
        matched = pattern.fullmatch(body)
        if matched is not None:
            return matched[1], matched[2], ""
    return None


def read_ranges(
    low_text: str, high_text: str, unit: str, units: Collection[str]
) -> tuple[tuple[float, float], ...]:
    """(low, high) of each range that two texts may make, in the unit of the question."""
    if high_text.startswith("±"):
        centres = read_single(f"{low_text}{unit}", units).values
        widths = read_single(f"{high_text[1:]}{unit}", units).values
        pairs = [(centre - width, centre + width) for centre in centres for width in widths]
    else:
        highs, high_unit = read_with_unit(high_text)
        highs = convert_unit(highs, high_unit, units)
        lows, low_unit = read_with_unit(low_text)
        lows = convert_unit(lows, low_unit or high_unit, units)
        pairs = [(low, high) for low in lows for high in highs]
    return tuple((low, high) for low, high in pairs if low < high)


def read_single(text: str, units: Collection[str]) -> Reading:
    """What a text that is no range may mean: a number, an expression, an equation."""
    reversed_bound = REVERSED_BOUND.fullmatch(text)
    if reversed_bound is not None:
        text = reversed_bound[1]
    sides = re.split(r" *(?:(?<![<>!])=+|≈|≃|\bequals\b|(?<=[^\W\d])(?= *[>≥])) *", text)
    sides = [side for side in sides if side]
    if len(sides) > 1 and is_label(sides[0]):
        sides = sides[1:]
    readings = []
    for side in sides:
        side = side[INTRODUCTION.match(side).end() :]  # type: ignore[union-attr]
        readings.append(read_with_unit(side))
    if not readings or not all(values for values, _ in readings):
        return Reading()
    answers, unit = readings[-1]
    for side, (values, _) in zip(sides, readings[:-1], strict=False):
        answers = [answer for answer in answers if has_equal(values, answer)]
        if not answers:
            return Reading(complaint=f"{side} does not equal {sides[-1]}: check your sum.")
    bare = list(answers)
    if unit.lower() in BYTE_UNITS:
        bare = [value * BYTE_UNITS[unit.lower()] for value in answers]
    return Reading(values=tuple(convert_unit(answers, unit, units)), bare=tuple(bare))


def is_label(text: str) -> bool:
    """Whether a side of an equation is a name and no number."""
    return bool(LABEL.fullmatch(text) or NUMBERED_LABEL.fullmatch(text))


def has_equal(values: Iterable[float], answer: float) -> bool:
    """Whether one of the values is `answer`, up to rounding."""
    return any(math.isclose(value, answer, rel_tol=ROUNDING) for value in values)


def read_with_unit(text: str) -> tuple[list[float], str]:
    """The numbers that a text may begin with, and the unit behind them; no numbers where the rest
    can be no unit.
    """
    values: list[float] = []
    unit = ""
    # A last "!" closes a sentence, or is a factorial.
    spellings = [text, text.rstrip("!. ")] if text.endswith("!") else [text]
    for spelling in spellings:
        try:
            found, unit = Parser(spelling).read_all()
        except NotANumberError:
            continue
        values += [value for value in found if value not in values]
    return values, unit


def convert_unit(values: list[float], unit: str, units: Collection[str]) -> list[float]:
    """The values in the unit of the question; [] where `unit` is not one of its units."""
    unit = re.sub(r"^(?:whole|full|complete|different|possible|own|more)\b *", "", unit)
    unit = unit.removesuffix(".")
    if "%" in units and not unit:
        return values + [100 * value for value in values]
    if "%" not in units and unit in PER_CENT:
        return [value / 100 for value in values]
    if "bytes" in units and unit.lower() in BYTE_UNITS:
        return [value * BYTE_UNITS[unit.lower()] for value in values]
    if not unit or is_known_unit(unit, units):
        return values
    return []


def is_known_unit(unit: str, units: Collection[str]) -> bool:
    """Whether `unit` is one of `units`, in the singular or plural."""
    known = {name.removesuffix("s") for name in units}
    if "%" in units:
        known.update(name.removesuffix("s") for name in PER_CENT)
    return unit.removesuffix("s") in known or unit.lower().removesuffix("s") in known


# ------------------------------------------------------------------------------------- number words
SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = {"hundred": 100, "thousand": 1000}
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6}
PARTS |= {"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12}
PARTS |= {f"{word}th": value for value, word in enumerate(SMALL_NUMBERS) if value > 12}
WORD_VALUES = {word: value for value, word in enumerate(SMALL_NUMBERS)}
WORD_VALUES |= {word: 10 * value for value, word in enumerate(TENS, 2)}
# The longest first: "sixteen" is no "six".
CARDINAL = "|".join(sorted([*WORD_VALUES, *SCALES], key=len, reverse=True))
CARDINALS = rf"(?:a (?=hundred|thousand))?(?:{CARDINAL})(?:(?:[ -]| and )(?:{CARDINAL}))*"
NUMBER_WORDS = re.compile(rf"\b({CARDINALS})\b(?: point ((?:(?:{CARDINAL}) ?)+)\b)?")
PART = re.compile(rf"\b(?:(a|an|\d+)[ -])?({'|'.join(PARTS)})s?\b")
OPERATOR_WORDS = {"plus": "+", "minus": "-", "times": "·", "divided by": "/"}


def replace_number_words(text: str) -> str:
    """'two and a half' as '2 1/2', 'forty-two' as '42', 'nine times six' as '9 · 6'."""
    lowered = text.lower()
    words = [*WORD_VALUES, *SCALES, *PARTS, *OPERATOR_WORDS, "factorial"]
    if not re.search(rf"\b(?:{'|'.join(words)})", lowered):
        return text
    lowered = re.sub(rf"\b({CARDINAL})(-?)fold\b", r"\1 fold", lowered)
    lowered = NUMBER_WORDS.sub(write_digits, lowered)
    lowered = re.sub(r"(?<=\d) and (?=a |\d+ ?(?:half|third|quarter|fifth|tenth))", " ", lowered)
    lowered = PART.sub(write_part, lowered)
    lowered = re.sub(r"^minus (?=[\d(])", "-", lowered)
    lowered = re.sub(r"(?<=\d) *factorial\b", "!", lowered)
    for word, sign in OPERATOR_WORDS.items():
        # "four times" is a unit, "four times six" a product.
        lowered = re.sub(rf"(?<=[\d)!]) *\b{word}\b *(?=[\d(])", f" {sign} ", lowered)
    return lowered


def write_digits(match: re.Match) -> str:
    """Number words as digits; as they are where they are no number ("two three")."""
    whole = add_up_words(re.findall(rf"{CARDINAL}|a(?= )", match[1]))
    if whole is None:
        return match[0]
    if match[2] is None:
        return str(whole)
    digits = [WORD_VALUES.get(word, 10) for word in match[2].split()]
    if any(digit > 9 for digit in digits):
        return match[0]
    return f"{whole}.{''.join(map(str, digits))} ".rstrip()


def add_up_words(words: list[str]) -> int | None:
    """The number that ["six", "thousand", "fifty"] says; None where it says none."""
    thousands = 0
    group = 0  # below a thousand
    smallest = 1000  # what comes next has to be smaller
    for word in words:
        if word == "a":
            group = 1
        elif word == "thousand":
            if thousands or not group:
                return None
            thousands = 1000 * group
            group = 0
            smallest = 1000
        elif word == "hundred":
            if not 0 < group < 20:
                return None
            group *= 100
            smallest = 100
        else:
            value = WORD_VALUES[word]
            if value >= smallest:
                return None
            group += value
            smallest = 10 if value >= 20 else 0
    return thousands + group


def write_part(match: re.Match) -> str:
    """'3 quarters' as '(3/4)'; behind a whole number, 'a half' as '1/2'."""
    count, part = match.groups()
    fraction = f"{'1' if count in (None, 'a', 'an') else count}/{PARTS[part]}"
    is_behind_whole = re.search(r"\d $", match.string[: match.start()])
    return fraction if is_behind_whole else f"({fraction})"


# ------------------------------------------------------------------------------------- the grammar
# 16,040 or 1 234 567.8: all groups, the mark between them, and the decimals.
THOUSANDS = re.compile(r"([1-9]\d{0,2}([ ,.'’_])\d{3}(?:\2\d{3})*)(?:[.,](\d+))?(?!\d)")
DECIMAL = re.compile(r"(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d{1,3}(?!\w))?(?![.,]?\d)")
MIXED = re.compile(r"(\d+) +(\d+) */ *(\d+)(?![.,]?\d)")
FUNCTION = re.compile(r"(√|sqrt\b|ln\b|exp\b)")
UNIT = re.compile(r"[^\d/+^()]*")
MULTIPLY = "·×*xX"
DIVIDE = "/÷:"


class Parser:
    """Reads one expression from the start of a text; every method returns all its values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.depth = 0

    def read_all(self) -> tuple[list[float], str]:
        """The values of the whole text and the unit behind them; NotANumberError where there is no
        number.
        """
        values = self.read_sum()
        unit = self.text[self.place :].strip()
        if not values or not UNIT.fullmatch(unit):
            raise NotANumberError
        return values, unit

    def read_sum(self) -> list[float]:
        sign = self._take("+-")
        values = self.read_product()
        if sign == "-":
            values = [-value for value in values]
        while True:
            term = self._try_operator("+-", self.read_product)
            if term is None:
                return values
            operator, others = term
            factor = 1 if operator == "+" else -1
            values = combine(values, [factor * other for other in others], add)

    def read_product(self) -> list[float]:
        values = self.read_power()
        while True:
            factor = self._try_operator(MULTIPLY + DIVIDE, self.read_power)
            if factor is None:
                if self._peek() not in "([√":
                    return values
                values = combine(values, self.read_power(), multiply)
                continue
            operator, others = factor
            if operator in DIVIDE:
                values = combine(values, others, divide)
            else:
                values = combine(values, others, multiply)

    def read_power(self) -> list[float]:
        values = self.read_operand()
        while self._peek() == "!" and self.text[self.place :].lstrip()[:2] != "!=":
            self._take("!")
            values = keep_numbers(factorial(value) for value in values)
        exponent = self._try_power()
        if exponent is None:
            return values
        return combine(values, exponent, raise_to)

    def read_operand(self) -> list[float]:
        self._skip_spaces()
        function = FUNCTION.match(self.text, self.place)
        if function is not None:
            self.place = function.end()
            apply = FUNCTIONS[function[1]]
            factor = -1 if self._take("-") else 1
            values = self._read_deeper(self.read_operand)
            return keep_numbers(apply(factor * value) for value in values)
        bracket = self._take("([")
        if bracket:
            values = self._read_deeper(self.read_sum)
            if not self._take(")" if bracket == "(" else "]"):
                raise NotANumberError
            return values
        return self._read_number()

    def _read_number(self) -> list[float]:
        """A number, or a mixed number such as 2 1/4: all its values."""
        mixed = MIXED.match(self.text, self.place)
        if mixed is not None and int(mixed[3]):
            self.place = mixed.end()
            return [int(mixed[1]) + int(mixed[2]) / int(mixed[3])]
        spellings = []
        grouped = THOUSANDS.match(self.text, self.place)
        if grouped is not None:
            digits, mark, decimals = grouped.groups()
            spellings.append(f"{digits.replace(mark, '')}.{decimals or 0}")
        plain = DECIMAL.match(self.text, self.place)
        if plain is not None and (grouped is None or plain.end() == grouped.end()):
            spellings.append(plain[0].replace(",", "."))
        if not spellings:
            raise NotANumberError
        self.place = (grouped or plain).end()  # type: ignore[union-attr]
        values = keep_numbers(float(spelling) for spelling in spellings)
        return list(dict.fromkeys(values))

    def _read_deeper(self, read: Callable[[], list[float]]) -> list[float]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotANumberError
        values = read()
        self.depth -= 1
        return values

    def _try_operator(
        self, operators: str, read: Callable[[], list[float]]
    ) -> tuple[str, list[float]] | None:
        """An operator with the operand behind it; None where one of them is missing: the sign may
        belong to a unit ("6.25 ×").
        """
        start = self.place
        operator = self._take(operators)
        if not operator or (operator == "*" and self._peek() == "*"):
            self.place = start
            return None
        has_operand = re.match(r"\s*(?:[\d.,(\[√]|sqrt|ln|exp)", self.text[self.place :])
        if has_operand is None:
            self.place = start
            return None
        return operator, read()

    def _try_power(self) -> list[float] | None:
        matched = re.compile(r" *(?:\^|\*\*) *").match(self.text, self.place)
        if matched is None:
            return None
        self.place = matched.end()
        sign = self._take("+-")
        values = self._read_deeper(self.read_power)
        return [-value for value in values] if sign == "-" else values

    def _skip_spaces(self) -> None:
        while self._peek_raw() == " ":
            self.place += 1

    def _peek_raw(self) -> str:
        return self.text[self.place : self.place + 1]

    def _peek(self) -> str:
        """The next sign that is no space; a sign that is in no list at the end."""
        return self.text[self.place :].lstrip()[:1] or "\0"

    def _take(self, signs: str) -> str:
        """The next sign if it is one of these, else ''."""
        if self._peek() not in signs:
            return ""
        self._skip_spaces()
        sign = self._peek_raw()
        self.place += 1
        return sign


def combine(
    values: list[float], others: list[float], compute: Callable[[float, float], float | None]
) -> list[float]:
    """`compute` of all pairs, as far as it gives numbers."""
    results = []
    for value in values:
        for other in others:
            results.append(compute(value, other))
    return keep_numbers(results)[:MOST_READINGS]


def keep_numbers(values: Iterable[float | None]) -> list[float]:
    """The values that can be answers."""
    return [value for value in values if value is not None and is_finite_number(value)]


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


def divide(a: float, b: float) -> float | None:
    return a / b if b else None


def raise_to(base: float, exponent: float) -> float | None:
    if abs(base) > LARGEST_BASE or abs(exponent) > LARGEST_EXPONENT or base == 0:
        return None
    if base < 0 and not exponent.is_integer():
        return None
    return base**exponent


def factorial(value: float) -> float | None:
    if not value.is_integer() or not 0 <= value <= LARGEST_FACTORIAL:
        return None
    return float(math.factorial(int(value)))


def take_root(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 else None


def take_logarithm(value: float) -> float | None:
    return math.log(value) if value > 0 else None


def exponentiate(value: float) -> float | None:
    return math.exp(value) if abs(value) <= LARGEST_EXPONENT else None


FUNCTIONS = {"√": take_root, "sqrt": take_root, "ln": take_logarithm, "exp": exponentiate}
