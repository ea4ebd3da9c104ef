"""Reads what a learner typed into an answer box as numbers: "2½", "24,200 bytes", "9·6", "six".

Nothing is evaluated as Python. A recursive-descent parser reads this grammar:

    sum      = ["+" | "−"] product { ("+" | "−") product }
    product  = power { ["·" | "×" | "*" | "/" | "//" | "÷" | ":"] power }     the sign may be absent before a
                                                                           bracket or a function, and in "4!3!"
    power    = operand { "!" } [ "^" ["−"] power ]
    operand  = number | mixed number | "e" | choice | "(" sum ")" | function ["−"] operand
    choice   = "C(n, k)" | "n choose k"                       binomial coefficient of whole numbers
    function = "√" | "sqrt" | "ln" | "log" | "exp" | "sigmoid" | "logistic" | "σ" | "floor" | "int"
               | "trunc" | "factorial"
               log is the natural one; "np." or "math." may stand before a function

The parser reads the longest expression at the start of a text; what follows it has to be a unit. A
text may have several readings: "16,040" is 16040 or 16.04. The length of a text, the depth of its
brackets, exponents, factorials, binomial coefficients and the number of readings are bounded.
"""

import itertools
import math
import numbers
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

LearnerAnswer = Any  # anything; expected are a number, a text, a function, a panel or outcomes
MAX_NUMBER = 1e30  # infinite and undefined numbers are not answers
MAX_BASE = 1e6  # of a power
MAX_EXPONENT = 50
MAX_FACTORIAL = 20
MAX_CHOICE = 1000  # the n of "n choose k"
MAX_TEXT_LENGTH = 200  # characters
MAX_DEPTH = 20  # brackets within brackets
MAX_READINGS = 64
ROUNDING = 0.01  # share by which two sides of "16/17 = 0.94" may differ

TIMES = (
    "times",
    "x",
    "X",
    "×",
    "fold",
    "-fold",
    "times as many",
    "times as much",
    "times as large",
    "times more",
)
PER_CENT = ("%", "percent", "per cent")
BYTE_UNITS = {"kb": 1000, "kib": 1024, "mb": 1e6, "mib": 1024**2}  # if the answer is in bytes


@dataclass(frozen=True)
class AnswerReading:
    """All meanings that a text may have.

    values:     the numbers that it may mean, in the unit of the question; none if its unit is another one
    bare:       the numbers that it may mean, even if its unit is not one of the question
    ranges:     (low, high) of the ranges that it may mean, in the unit of the question
    spreads:    the numbers that the second number of a Gaussian may mean: "N(3, 9)" has the value 3
                and the spread 9, which is a variance, a standard deviation or a precision
    complaint:  a sentence about a text that contradicts itself, such as "2 + 2 = 5", else ""
    """

    values: tuple[float, ...] = ()
    bare: tuple[float, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    spreads: tuple[float, ...] = ()
    complaint: str = ""


PossibleValues = list[float]  # all numbers that a text may mean; [] for none


class ValueRange(NamedTuple):
    """A range that a text may mean, such as 2 to 3."""

    low: float
    high: float


class NotANumberError(Exception):
    """The text does not follow the grammar."""


class NumbersAndUnit(NamedTuple):
    """The numbers that a text may mean, none if it means no number, and its unit as it is written."""

    values: PossibleValues
    unit: str


class OperatorAndOperand(NamedTuple):
    """An operator, such as "+", and all values of the operand behind it."""

    operator: str
    values: PossibleValues


class RangeTexts(NamedTuple):
    """The two ends of a range as text: '2' and '3' of "2 to 3", '2.5' and '±0.1' of "2.5 ± 0.1".

    unit: the unit of both ends of a range with ±, else ""
    """

    low_or_centre: str
    high_or_half_width: str
    unit: str


def parse_typed_answer(
    answer: LearnerAnswer, accepted_units: Collection[str] = ()
) -> AnswerReading:
    """Read everything that `answer` may mean.

    accepted_units: the units that the number may have, in the singular or plural. Some have a meaning
        of their own:
        "%":     the answer is in per cent; a number without a unit may also be a share. If "%" is not
                 among the units, a typed percent sign divides by 100
        "times": also accepts "x", "×" and "fold"
        "bytes": also accepts kB, KiB, MB and MiB, and converts them to bytes
    """
    if not isinstance(answer, str):
        value = unwrap_array_of_one_number(answer)
        if not is_number_below_size_limit(value):
            return AnswerReading()
        values = tuple(convert_values_to_unit_of_question([float(value)], "", accepted_units))
        return AnswerReading(values=values, bare=values)
    if len(answer) > MAX_TEXT_LENGTH:
        return AnswerReading()
    text = rewrite_answer_in_plain_arithmetic(answer)
    if re.search(NEGATION, text):
        return AnswerReading()
    gaussian = GAUSSIAN.fullmatch(text) or MEAN_AND_SPREAD.fullmatch(text)
    if gaussian is not None:
        mean = read_quantity_that_is_no_range(gaussian[1], accepted_units)
        spreads, _ = read_numbers_and_unit(gaussian[2])
        if not mean.values or not spreads:
            return AnswerReading()
        return AnswerReading(values=mean.values, bare=mean.bare, spreads=tuple(spreads))
    quantity = read_quantity_that_is_no_range(text, accepted_units)
    range_texts = split_into_range_ends_and_unit(text)
    if range_texts is not None:
        ranges = parse_possible_ranges(range_texts, accepted_units)
        if ranges:
            return AnswerReading(ranges=ranges, values=quantity.values)
    return quantity


def unwrap_array_of_one_number(answer: LearnerAnswer) -> LearnerAnswer:
    """Return the number in an array or a tensor that holds nothing else, and anything else as it is."""
    shape = getattr(answer, "shape", None)
    if isinstance(shape, tuple) and math.prod(shape) == 1:
        return answer.item()
    return answer


def parse_possible_numbers(
    answer: LearnerAnswer, accepted_units: Collection[str] = ()
) -> PossibleValues:
    """Read all numbers that `answer` may mean; [] if it is not a number.

    >>> parse_possible_numbers("9/4"), parse_possible_numbers("2½")
    ([2.25], [2.5])
    >>> parse_possible_numbers("87 %"), parse_possible_numbers("4! · 3!")
    ([0.87], [144.0, 72.0])
    >>> parse_possible_numbers("6.25x", ["x"]), parse_possible_numbers("6.25x")
    ([6.25], [])
    >>> sorted(parse_possible_numbers("16,040")), parse_possible_numbers(0.25, ["%"])
    ([16.04, 16040.0], [0.25, 25.0])
    >>> parse_possible_numbers("more than 1.25"), parse_possible_numbers("(6 + 5) / (4 + 1)")
    ([1.25], [2.2])
    >>> parse_possible_numbers("six")
    [6.0]
    """
    return list(parse_typed_answer(answer, accepted_units).values)


def is_number_below_size_limit(value: LearnerAnswer) -> bool:
    """Whether a value is a number that can be an answer."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and abs(value) < MAX_NUMBER


# ------------------------------------------------- preparing a text, before it meets the grammar
QUOTES = " \t\r\n\"'“”„‘’«»`"  # quotes and white space around an answer
NEGATION = r"\b(?:not|no|never|cannot|neither|nor)\b|n['’]t\b|≠|!="
VULGAR_FRACTION = re.compile(r"(\d?)\s*([¼-¾⅐-⅞])")
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
SUPERSCRIPT = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
# Words before the number: "I think the answer is about", "more than", "±".
QUANTITIES = "slope|mean|average|total|sum|score|weight|value|sd|std|maximum|max|minimum|min"
INTRODUCTION = re.compile(
    r"(?:(?:so|then|well)\b,? *)?(?:i(?:['’](?:d|ll))? (?:think|guess|get|got|say|would say)\b:? *)?"
    r"(?:(?:it|that)['’]s *)?"
    r"(?:\D*\b(?:is|be)\b:? *|\b(?:answer|result|solution)\b:? *|[^\W\d][^\d=<>!:]{0,40}: +)?"
    r"(?:(?:more than|at least|at most|greater than|larger than|bigger than|higher than"
    r"|above|over|just over|slightly more than|a bit more than|(?:it )?must exceed|exceeds|only|just|in all|in total"
    r"|all in all|altogether|about|around|roughly|approximately"
    r"|approx\.?|ca\.?|c\.|circa|exactly|nearly|plus or minus|(?:a )?factor(?: of)?|by|times"
    r"|(?:(?:it|they) )?(?:grows?|increases?)(?: by)?"
    rf"|(?:the )?(?:{QUANTITIES})(?: of)?)(?= |\d) *|x(?=\d)|(?:[≈~>≥±×→]|\+/-) *)*",
    re.IGNORECASE,
)
LABEL = re.compile(r"[^\d=<>!]{1,60}")  # a name before "= 1.25": "λ", "KL(teacher ‖ student)"
NUMBERED_LABEL = re.compile(r"[^\W\d]\w{0,9}")  # "x1"
REMARK = re.compile(r"(.*\S) +\(([^()]*)\)")  # "54 (six times nine)", "3 (3.5 rounded down)"
UNIT_IN_BRACKETS = re.compile(r"(.*\d) *\((%|[^\W\d][^()]*)\)")  # "73 (%)", "4 (times)"
BOLD = re.compile(r"(\*\*?|__?)([^*_]+)\1")  # "**54**" in Markdown
REVERSED_BOUND = re.compile(r"(.*\S) *[<≤] *[^\W\d]\w{0,9}")  # 1.25 < λ
# "N(3, 9)", "mean 3 and precision 9"
NAME_BEFORE_VALUE = r"(?:[^(),;=]*=)? *"  # "σ² = " in "N(3, σ² = 1/9)"
GAUSSIAN = re.compile(
    rf"(?:.*(?:=|\bis\b) *)?(?:[Nn]|normal|[Gg]aussian) ?"
    rf"\({NAME_BEFORE_VALUE}([^;]+?)[,;] *{NAME_BEFORE_VALUE}([^;]+)\)"
)
MEAN_AND_SPREAD = re.compile(
    r"(?:(?:a gaussian )?(?:with )?(?:a |the )?mean(?: is| =)? +)?([^\W_a-z].*?),?(?: with| and)?(?: a| the)? "
    r"(?:precision|variance)(?: is| of| =)? *(.+)",
    re.IGNORECASE,
)
CLOSING_WORDS = re.compile(
    r"[ ,;:]*\b(?:at least|at most|or more|or higher|or above|or so|or thereabouts|in all|in total"
    r"|altogether|exactly|approx|approximately|roughly|about|i (?:think|guess|believe|suppose)|right|probably|maybe)$",
    re.IGNORECASE,
)
RANGE_PATTERNS = (
    re.compile(r"(?:between|from) +(.+?) +(?:and|to) +(.+)"),
    re.compile(r"(.+?) +to +(.+)"),
    re.compile(r"(.+?) *(?:–|—|\.{2,3}|…) *(.+)"),
    re.compile(r"([\d.,]+) *- *([\d.,]+\D*)"),
)
PLUS_MINUS = re.compile(r"(.+?) *(?:±|\+/-|\+-) *([\d.,]+)(\D*)")


def rewrite_answer_in_plain_arithmetic(text: str) -> str:
    """Write a text with plain digits and operators, so that the parser can read it.

    LaTeX, superscripts, vulgar fractions, number words, and other signs for minus and times are
    replaced. Quotes, a closing full stop and closing words such as "in all" are removed.
    """
    if "\\" in text or "$" in text:
        text = rewrite_latex_arithmetic_in_plain_signs(text)
    text = SUPERSCRIPT.sub(lambda power: "^" + power[0].translate(SUPERSCRIPTS), text)
    text = VULGAR_FRACTION.sub(write_matched_fraction_sign_in_digits, text)
    text = unicodedata.normalize("NFKC", text)
    text = text.replace("\N{FRACTION SLASH}", "/").replace("−", "-")
    text = re.sub(r"[∙⋅•]", "·", text)
    text = re.sub(r">=|=>", "≥", text).replace("<=", "≤")
    text = text.replace("⌊", "floor(").replace("⌋", ")")
    text = re.sub(r"(?<![^\W_])e *(?:\^|\*\*) *", "exp ", text)
    text = text.strip(QUOTES)
    if BOLD.fullmatch(text):
        text = BOLD.sub(r"\2", text)
    # Remove one full stop at the end, but not "...", and other punctuation there.
    text = re.sub(r"(?<!\.)\.$|(?<=[^\s?]) *\?+$|[ ,;:]+$", "", text)
    multiple = MULTIPLE.fullmatch(text)
    if multiple is not None:
        text = f"{MULTIPLES[multiple[1].lower()]} times"
    text = LIBRARY.sub("", text)
    text = replace_number_words_by_digits(text)
    return CLOSING_WORDS.sub("", text).strip(QUOTES)


def rewrite_latex_arithmetic_in_plain_signs(text: str) -> str:
    """Write the LaTeX of a fraction, root, product or binomial coefficient with plain signs."""
    text = text.replace("$", "")
    text = re.sub(r"\\(?:left|right|,|;|!| |displaystyle\b)", "", text)
    text = re.sub(r"\\[dt]?binom *\{([^{}]*)\} *\{([^{}]*)\}", r"C(\1, \2)", text)
    text = re.sub(r"\\sqrt *\{([^{}]*)\}", r"√(\1)", text)
    text = re.sub(r"\^ *\{([^{}]*)\}", r"^(\1)", text)
    text = re.sub(r"\\[dt]?frac *(\d)(\d)", r"(\1/\2)", text)
    text = re.sub(r"\\[dt]?frac *\{([^{}]*)\} *\{([^{}]*)\}", r"((\1)/(\2))", text)
    text = text.replace("\\%", "%").replace("\\cdot", "·").replace("\\times", "×")
    return re.sub(r"\\(?=(?:ln|log|exp|sigma)\b)", "", text).replace("sigma(", "σ(")


def write_matched_fraction_sign_in_digits(match_of_whole_and_sign: re.Match) -> str:
    """Write '2½' as '2 1/2' and '½' as '(1/2)'."""
    whole, fraction = match_of_whole_and_sign.groups()
    spelled = unicodedata.normalize("NFKC", fraction).replace("\N{FRACTION SLASH}", "/")
    return f"{whole} {spelled}" if whole else f"({spelled})"


def split_into_range_ends_and_unit(text: str) -> RangeTexts | None:
    """Split a text that may be a range, such as '2 to 3' or '2.5 ± 0.1'; None if it cannot be one."""
    matched = PLUS_MINUS.fullmatch(text)
    if matched is not None:
        return RangeTexts(matched[1], f"±{matched[2]}", matched[3])
    body = text[INTRODUCTION.match(text).end() :]  # type: ignore[union-attr]
    for pattern in RANGE_PATTERNS:
        matched = pattern.fullmatch(body)
        if matched is not None:
            return RangeTexts(matched[1], matched[2], "")
    return None


def parse_possible_ranges(
    range_texts: RangeTexts, accepted_units: Collection[str]
) -> tuple[ValueRange, ...]:
    """Read each range that the texts may mean, in the unit of the question."""
    low_text, high_text, unit = range_texts
    ranges = []
    if high_text.startswith("±"):
        centres = read_quantity_that_is_no_range(f"{low_text}{unit}", accepted_units).values
        half_widths = read_quantity_that_is_no_range(
            f"{high_text[1:]}{unit}", accepted_units
        ).values
        for centre, half_width in itertools.product(centres, half_widths):
            ranges.append(ValueRange(centre - half_width, centre + half_width))
    else:
        highs, high_unit = read_numbers_and_unit(high_text)
        highs = convert_values_to_unit_of_question(highs, high_unit, accepted_units)
        lows, low_unit = read_numbers_and_unit(low_text)
        lows = convert_values_to_unit_of_question(lows, low_unit or high_unit, accepted_units)
        for low, high in itertools.product(lows, highs):
            ranges.append(ValueRange(low, high))
    return tuple(found for found in ranges if found.low < found.high)


def read_quantity_that_is_no_range(text: str, accepted_units: Collection[str]) -> AnswerReading:
    """Read what a text that is not a range may mean: a number, an expression or an equation.

    The sides of an equation have to be equal, except that the first may be a name; the last one is
    the answer.
    """
    reversed_bound = REVERSED_BOUND.fullmatch(text)
    if reversed_bound is not None:
        text = reversed_bound[1]
    in_brackets = UNIT_IN_BRACKETS.fullmatch(text)
    if in_brackets is not None and in_brackets[2] in accepted_units:
        text = f"{in_brackets[1]} {in_brackets[2]}"
    remark = REMARK.fullmatch(text)
    if remark is not None and is_bracket_explanation_not_factor(remark[1], remark[2]):
        text = remark[1]
    sides = re.split(r" *(?:(?<![<>!])=+|≈|≃|\bequals\b|(?<=[^\W\d])(?= *[>≥])) *", text)
    sides = [side for side in sides if side]
    if len(sides) > 1 and is_quantity_name_not_number(sides[0]):
        sides = sides[1:]
    readings = []
    for side in sides:
        side = side[INTRODUCTION.match(side).end() :]  # type: ignore[union-attr]
        readings.append(read_numbers_and_unit(side))
    if not readings or not all(values for values, _ in readings):
        return AnswerReading()
    answers, unit = readings[-1]
    for side, (values, _) in zip(sides, readings[:-1], strict=False):
        answers = [answer for answer in answers if contains_nearly_equal_number(values, answer)]
        if not answers:
            return AnswerReading(complaint=f"{side} does not equal {sides[-1]}: check your sum.")
    bare = list(answers)
    if unit.lower() in BYTE_UNITS:
        bare = [value * BYTE_UNITS[unit.lower()] for value in answers]
    return AnswerReading(
        values=tuple(convert_values_to_unit_of_question(answers, unit, accepted_units)),
        bare=tuple(bare),
    )


def is_bracket_explanation_not_factor(number_text: str, remark: str) -> bool:
    """Whether a remark in brackets explains the number before it, and is not a factor of it.

    A remark that is a number explains it if both are equal: "54 (9 · 6)". Other remarks have to have
    a word, and must not offer another answer with "or".
    """
    if re.search(r"[-−+*/·×÷:^]$", number_text):  # "1+1 · (2)"
        return False
    remark_values, remark_unit = read_numbers_and_unit(remark)
    if remark_values and not remark_unit:
        introduction = INTRODUCTION.match(number_text)
        values, _ = read_numbers_and_unit(number_text[introduction.end() :])  # type: ignore[union-attr]
        return any(contains_nearly_equal_number(remark_values, value) for value in values)
    has_word = re.search(r"[^\W\d_]{3}", remark) is not None
    offers_other_answer = re.search(r"\bor\b", remark) is not None
    return has_word and not offers_other_answer


def is_quantity_name_not_number(side_of_equation: str) -> bool:
    """Whether a side of an equation is a name rather than a number."""
    return bool(LABEL.fullmatch(side_of_equation) or NUMBERED_LABEL.fullmatch(side_of_equation))


def contains_nearly_equal_number(values: Iterable[float], number: float) -> bool:
    """Whether one of the values equals `number`, to within the share ROUNDING."""
    return any(math.isclose(value, number, rel_tol=ROUNDING) for value in values)


def read_numbers_and_unit(text: str) -> NumbersAndUnit:
    """Read the numbers that a text may begin with, and the unit after them.

    There are no numbers if what follows them cannot be a unit.
    """
    values: list[float] = []
    unit = ""
    # A "!" at the end closes a sentence, or is a factorial: both are tried.
    spellings = [text, text.rstrip("!. ")] if text.endswith("!") else [text]
    for spelling in spellings:
        try:
            spelling_values, unit = ExpressionParser(spelling).read_numbers_and_unit()
        except NotANumberError:
            continue
        values += [value for value in spelling_values if value not in values]
    return NumbersAndUnit(values, unit)


def convert_values_to_unit_of_question(
    values: PossibleValues, typed_unit: str, accepted_units: Collection[str]
) -> PossibleValues:
    """Convert values to the unit of the question; [] if `typed_unit` is not one of its units."""
    typed_unit = re.sub(r"^(?:whole|full|complete|different|possible|own|more)\b *", "", typed_unit)
    typed_unit = typed_unit.removesuffix(".")
    if "%" in accepted_units and not typed_unit:
        return values + [100 * value for value in values]
    if "%" not in accepted_units and typed_unit in PER_CENT:
        return [value / 100 for value in values]
    if "times" in accepted_units and typed_unit in TIMES:
        return values
    if "bytes" in accepted_units and typed_unit.lower() in BYTE_UNITS:
        return [value * BYTE_UNITS[typed_unit.lower()] for value in values]
    if not typed_unit or is_accepted_unit(typed_unit, accepted_units):
        return values
    return []


def is_accepted_unit(unit: str, accepted_units: Collection[str]) -> bool:
    """Whether `unit` is one of `accepted_units`, in the singular or plural."""
    known = {name.removesuffix("s") for name in accepted_units}
    if "%" in accepted_units:
        known.update(name.removesuffix("s") for name in PER_CENT)
    return unit.removesuffix("s") in known or unit.lower().removesuffix("s") in known


# ------------------------------------------------------------------------------------- number words
SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = {"hundred": 100, "thousand": 1000}
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6}
PARTS |= {"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12}
PARTS |= {f"{word}th": value for value, word in enumerate(SMALL_NUMBERS) if value > 12}
WORD_VALUES = {word: value for value, word in enumerate(SMALL_NUMBERS)}
WORD_VALUES |= {word: 10 * value for value, word in enumerate(TENS, 2)}
# The longest first, so that "sixteen" is not read as "six".
CARDINAL = "|".join(sorted([*WORD_VALUES, *SCALES], key=len, reverse=True))
CARDINALS = rf"(?:a (?=hundred|thousand))?(?:{CARDINAL})(?:(?:[ -]| and )(?:{CARDINAL}))*"
NUMBER_WORDS = re.compile(rf"\b({CARDINALS})\b(?: point ((?:(?:{CARDINAL}) ?)+)\b)?")
PART = re.compile(rf"\b(?:(a|an|\d+)[ -])?({'|'.join(PARTS)})s?\b")
# "It quadruples", "twice as many"
MULTIPLES = {
    "double": 2,
    "twice": 2,
    "triple": 3,
    "treble": 3,
    "thrice": 3,
    "quadruple": 4,
    "quintuple": 5,
}
MULTIPLE = re.compile(
    rf"(?:(?:it|they|this|that|the [a-z]+|will|would) )*({'|'.join(MULTIPLES)})[sd]?"
    r"(?: as (?:much|many|large))?",
    re.IGNORECASE,
)
OPERATOR_WORDS = {"plus": "+", "minus": "-", "times": "·", "divided by": "/"}


def replace_number_words_by_digits(text: str) -> str:
    """Write 'two and a half' as '2 1/2', 'forty-two' as '42', 'nine times six' as '9 · 6'."""
    lowered = text.lower()
    words = [*WORD_VALUES, *SCALES, *PARTS, *OPERATOR_WORDS, "factorial"]
    if not re.search(rf"\b(?:{'|'.join(words)})", lowered):
        return text
    lowered = re.sub(rf"\b({CARDINAL})(-?)fold\b", r"\1 fold", lowered)
    lowered = NUMBER_WORDS.sub(write_matched_number_words_in_digits, lowered)
    lowered = re.sub(r"(?<=\d) and (?=a |\d+ ?(?:half|third|quarter|fifth|tenth))", " ", lowered)
    lowered = PART.sub(write_matched_fraction_words_in_digits, lowered)
    lowered = re.sub(r"^minus (?=[\d(])", "-", lowered)
    lowered = re.sub(r"(?<=\d) thousand\b", " · 1000", lowered)
    lowered = re.sub(r"(?<=\d) *factorial\b", "!", lowered)
    for word, sign in OPERATOR_WORDS.items():
        # "four times" is a unit, "four times six" a product.
        lowered = re.sub(rf"(?<=[\d)!]) *\b{word}\b *(?=[\d(])", f" {sign} ", lowered)
    return lowered


def write_matched_number_words_in_digits(match_of_whole_and_decimals: re.Match) -> str:
    """Write number words as digits, or leave them if they are not a number, as in "two three"."""
    whole = add_up_number_words(re.findall(rf"{CARDINAL}|a(?= )", match_of_whole_and_decimals[1]))
    if whole is None:
        return match_of_whole_and_decimals[0]
    if match_of_whole_and_decimals[2] is None:
        return str(whole)
    digits = [WORD_VALUES.get(word, 10) for word in match_of_whole_and_decimals[2].split()]
    if any(digit > 9 for digit in digits):
        return match_of_whole_and_decimals[0]
    return f"{whole}.{''.join(map(str, digits))} ".rstrip()


def add_up_number_words(number_words: list[str]) -> int | None:
    """Add up words such as ["six", "thousand", "fifty"]; None if they are not a number."""
    thousands = 0
    group = 0  # below a thousand
    smallest = 1000  # the next word must be below this
    for word in number_words:
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


def write_matched_fraction_words_in_digits(match_of_count_and_part: re.Match) -> str:
    """Write '3 quarters' as '(3/4)', or without brackets after a whole number: '2 1/2'."""
    count, part = match_of_count_and_part.groups()
    numerator = "1" if count in (None, "a", "an") else count
    fraction = f"{numerator}/{PARTS[part]}"
    is_behind_whole = re.search(
        r"\d $", match_of_count_and_part.string[: match_of_count_and_part.start()]
    )
    return fraction if is_behind_whole else f"({fraction})"


# ------------------------------------------------------------------------------------- the grammar
# 16,040 or 1 234 567.8. The groups of the pattern: the digits, the mark between thousands, and the decimals.
THOUSANDS = re.compile(r"([1-9]\d{0,2}([ ,.'’_])\d{3}(?:\2\d{3})*)(?:[.,](\d+))?(?!\d)")
DECIMAL = re.compile(r"(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d{1,3}(?!\w))?(?![.,]?\d)")
MIXED = re.compile(r"(\d+) +(\d+) */ *(\d+)(?![.,]?\d)")
# "C(101, 2)", "(101 choose 2)", "101C2"; "np.log", "math.comb"
CHOICE = re.compile(
    r"(?i:(?:C|binom|binomial|comb|nCr) ?\( *(\d{1,4}) *[,;] *(\d{1,4}) *\)"
    r"|(\d{1,4}) *(?:choose|C) *(\d{1,4}))(?![\d.,])"
)
NAMES = "sqrt|ln|log|exp|sigmoid|logistic|floor|int|trunc|factorial"
LIBRARY = re.compile(rf"\b(?:np|numpy|math|torch)\.(?=(?:{NAMES}|comb)\b)")
FUNCTION = re.compile(rf"(√|σ(?= ?\()|(?:ln|log)(?=\d)|(?:{NAMES})\b)")
# A function that is a factor without a sign before it.
FACTOR = re.compile(rf" *{FUNCTION.pattern}(?= *-? *[\d.(√])")
EULER = re.compile(r"e(?!\w)")
# The beginning of an operand.
OPERAND = re.compile(rf"\s*(?:[\d.,(\[√]|{FUNCTION.pattern}|{CHOICE.pattern}|e(?!\w))")
UNIT = re.compile(r"[^\d/+^()]*")
MULTIPLY = "·×*xX"
DIVIDE = "/÷:"
FLOOR_DIVIDE = "//"


class ExpressionParser:
    """Reads one expression from the start of a text.

    Each method returns all values that its part of the text may have.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def read_numbers_and_unit(self) -> NumbersAndUnit:
        """Read the whole text: its values and the unit after them. NotANumberError without a number."""
        values = self.read_sum()
        unit = self.text[self.position :].strip()
        if not values or not UNIT.fullmatch(unit):
            raise NotANumberError
        return NumbersAndUnit(values, unit)

    def read_sum(self) -> PossibleValues:
        sign = self._consume_one_of_or_empty("+-")
        values = self.read_product()
        if sign == "-":
            values = [-value for value in values]
        while True:
            term = self._read_operator_and_operand_if_any("+-", self.read_product)
            if term is None:
                return values
            operator, others = term
            factor = 1 if operator == "+" else -1
            values = apply_to_each_pair_of_numbers(
                values, [factor * other for other in others], add
            )

    def read_product(self) -> PossibleValues:
        values = self.read_power()
        while True:
            factor = self._read_operator_and_operand_if_any(MULTIPLY + DIVIDE, self.read_power)
            if factor is None:
                if not self._is_at_factor_without_sign():
                    return values
                values = apply_to_each_pair_of_numbers(values, self.read_power(), multiply)
                continue
            operator, others = factor
            if operator == FLOOR_DIVIDE:
                quotients = apply_to_each_pair_of_numbers(values, others, divide_or_none)
                values = [round_down(quotient) for quotient in quotients]
            elif operator in DIVIDE:
                values = apply_to_each_pair_of_numbers(values, others, divide_or_none)
            else:
                values = apply_to_each_pair_of_numbers(values, others, multiply)

    def _is_at_factor_without_sign(self) -> bool:
        """Whether what follows is a factor without a sign before it: "2(3 + 4)", "0.8 ln 1.6", "4!3!"."""
        if self._peek_at_next_non_space() in "([√":
            return True
        is_behind_factorial = self.text[self.position - 1 : self.position] == "!"
        if is_behind_factorial and self._peek_at_next_character().isdigit():
            return True
        return FACTOR.match(self.text, self.position) is not None

    def read_power(self) -> PossibleValues:
        values = self.read_operand()
        while (
            self._peek_at_next_non_space() == "!"
            and self.text[self.position :].lstrip()[:2] != "!="
        ):
            self._consume_one_of_or_empty("!")
            values = drop_missing_and_infinite_numbers(
                compute_factorial_or_none(value) for value in values
            )
        exponent = self._read_exponent_if_any()
        if exponent is None:
            return values
        return apply_to_each_pair_of_numbers(values, exponent, raise_to_power_or_none)

    def read_operand(self) -> PossibleValues:
        self._skip_spaces()
        choice = CHOICE.match(self.text, self.position)
        if choice is not None:
            self.position = choice.end()
            number, chosen = (int(digits) for digits in choice.groups() if digits is not None)
            return drop_missing_and_infinite_numbers(
                [compute_binomial_coefficient_or_none(number, chosen)]
            )
        function = FUNCTION.match(self.text, self.position)
        if function is not None:
            self.position = function.end()
            apply = FUNCTIONS[function[1]]
            factor = -1 if self._consume_one_of_or_empty("-") else 1
            values = self._read_one_level_deeper(self.read_operand)
            return drop_missing_and_infinite_numbers(apply(factor * value) for value in values)
        bracket = self._consume_one_of_or_empty("([")
        if bracket:
            values = self._read_one_level_deeper(self.read_sum)
            if not self._consume_one_of_or_empty(")" if bracket == "(" else "]"):
                raise NotANumberError
            return values
        return self._read_number()

    def _read_number(self) -> PossibleValues:
        """Read a number, or a mixed number such as 2 1/4: all its values."""
        euler = EULER.match(self.text, self.position)
        if euler is not None:
            self.position = euler.end()
            return [math.e]
        mixed = MIXED.match(self.text, self.position)
        if mixed is not None and int(mixed[3]):
            self.position = mixed.end()
            return [int(mixed[1]) + int(mixed[2]) / int(mixed[3])]
        spellings = []
        grouped = THOUSANDS.match(self.text, self.position)
        if grouped is not None:
            digits, mark, decimals = grouped.groups()
            spellings.append(f"{digits.replace(mark, '')}.{decimals or 0}")
        plain = DECIMAL.match(self.text, self.position)
        if plain is not None and (grouped is None or plain.end() == grouped.end()):
            spellings.append(plain[0].replace(",", "."))
        if not spellings:
            raise NotANumberError
        self.position = (grouped or plain).end()  # type: ignore[union-attr]
        values = drop_missing_and_infinite_numbers(float(spelling) for spelling in spellings)
        return list(dict.fromkeys(values))

    def _read_one_level_deeper(self, read: Callable[[], PossibleValues]) -> PossibleValues:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotANumberError
        values = read()
        self.depth -= 1
        return values

    def _read_operator_and_operand_if_any(
        self, operators: str, read_operand: Callable[[], PossibleValues]
    ) -> OperatorAndOperand | None:
        """Read an operator with the operand after it; None if one of them is missing, as the sign may
        belong to a unit ("6.25 ×").
        """
        start = self.position
        operator = self._consume_one_of_or_empty(operators)
        if operator == "/" and self._peek_at_next_character() == "/":
            operator += self._consume_one_of_or_empty("/")
        if not operator or (operator == "*" and self._peek_at_next_non_space() == "*"):
            self.position = start
            return None
        if OPERAND.match(self.text, self.position) is None:
            self.position = start
            return None
        return OperatorAndOperand(operator, read_operand())

    def _read_exponent_if_any(self) -> PossibleValues | None:
        matched = re.compile(r" *(?:\^|\*\*) *").match(self.text, self.position)
        if matched is None:
            return None
        self.position = matched.end()
        sign = self._consume_one_of_or_empty("+-")
        values = self._read_one_level_deeper(self.read_power)
        return [-value for value in values] if sign == "-" else values

    def _skip_spaces(self) -> None:
        while self._peek_at_next_character() == " ":
            self.position += 1

    def _peek_at_next_character(self) -> str:
        return self.text[self.position : self.position + 1]

    def _peek_at_next_non_space(self) -> str:
        """Return the next character that is not a space; "\\0" at the end, which is no operator."""
        return self.text[self.position :].lstrip()[:1] or "\0"

    def _consume_one_of_or_empty(self, signs: str) -> str:
        """Consume the next character if it is one of `signs`, and return it, else ''."""
        if self._peek_at_next_non_space() not in signs:
            return ""
        self._skip_spaces()
        sign = self._peek_at_next_character()
        self.position += 1
        return sign


def apply_to_each_pair_of_numbers(
    first_numbers: PossibleValues,
    second_numbers: PossibleValues,
    compute: Callable[[float, float], float | None],
) -> PossibleValues:
    """Apply `compute` to all pairs of a first and a second number; drop results that are no finite numbers."""
    results = []
    for first, second in itertools.product(first_numbers, second_numbers):
        results.append(compute(first, second))
    return drop_missing_and_infinite_numbers(results)[:MAX_READINGS]


def drop_missing_and_infinite_numbers(numbers: Iterable[float | None]) -> PossibleValues:
    """Keep the values that can be answers."""
    return [value for value in numbers if value is not None and is_number_below_size_limit(value)]


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


def divide_or_none(a: float, b: float) -> float | None:
    return a / b if b else None


def raise_to_power_or_none(base: float, exponent: float) -> float | None:
    if abs(base) > MAX_BASE or abs(exponent) > MAX_EXPONENT or base == 0:
        return None
    if base < 0 and not exponent.is_integer():
        return None
    return base**exponent


def compute_factorial_or_none(value: float) -> float | None:
    if not value.is_integer() or not 0 <= value <= MAX_FACTORIAL:
        return None
    return float(math.factorial(int(value)))


def compute_binomial_coefficient_or_none(n: int, k: int) -> float | None:
    """Compute in how many ways k of n things can be chosen; None if n or the result is too large."""
    if n > MAX_CHOICE:
        return None
    ways = math.comb(n, k)
    return float(ways) if ways < MAX_NUMBER else None


def compute_square_root_or_none(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 else None


def compute_natural_logarithm_or_none(value: float) -> float | None:
    return math.log(value) if value > 0 else None


def compute_exponential_or_none(value: float) -> float | None:
    return math.exp(value) if abs(value) <= MAX_EXPONENT else None


def compute_sigmoid_or_none(value: float) -> float | None:
    return 1 / (1 + math.exp(-value)) if abs(value) <= MAX_EXPONENT else None


def round_down(value: float) -> float:
    return float(math.floor(value))


def round_towards_zero(value: float) -> float:
    return float(math.trunc(value))


FUNCTIONS: dict[str, Callable[[float], float | None]] = {
    "√": compute_square_root_or_none,
    "sqrt": compute_square_root_or_none,
    "ln": compute_natural_logarithm_or_none,
    "log": compute_natural_logarithm_or_none,
    "exp": compute_exponential_or_none,
    "sigmoid": compute_sigmoid_or_none,
    "logistic": compute_sigmoid_or_none,
    "σ": compute_sigmoid_or_none,
    "factorial": compute_factorial_or_none,
    "floor": round_down,
    "int": round_towards_zero,
    "trunc": round_towards_zero,
}
