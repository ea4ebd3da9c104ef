"""Figures, the numbers that texts quote: they are computed from stored rows, a value for each seed.

`skewed/fens[alpha=0.1]` is the accuracy of FENS in the runs called "skewed" at α = 0.1,
`skewed/fens:bytes_up` another column of these rows, and `fens - fedavg` the difference of two
figures, seed by seed.
"""

import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ..declared import parse_toml
from ..value_types import SettingValue
from .statistics import Band, ValuesBySeed, compute_band
from .stored_rows import StoredRow, read_stored_rows
from .text_tables import format_data_size

SERIES = re.compile(r"(?P<runs>\w+)/(?P<method>\w+)(?:\[(?P<at>[^]]*)\])?(?::(?P<column>\S+))?")
MINUS_ZERO = re.compile(r"-(?=0(?![\d.]))")  # the sign of a rounded zero
NUMBER = re.compile(r"-?[\d.]+")
# The operators, in ascending order of precedence.
ARITHMETIC = {" + ": operator.add, " - ": operator.sub, " / ": operator.truediv}
OPERATOR = re.compile(r" [->~+/] ")
FigureFormat = Literal[
    "",
    "mean",
    "fine",
    "verdict",
    "effect",
    "counts",
    "each",
    "low",
    "high",
    "above",
    "below",
    "tenths",
    "hundredths",
    "whole",
    "bytes",
]


def read_figure_values_by_seed(toml_path: Path, figure_name: str) -> ValuesBySeed:
    """Compute the values of a figure that a TOML file declares, from the rows in the JSON file
    beside it.
    """
    figures = parse_toml(toml_path.read_text(encoding="utf-8"))["figures"]
    _, rows = read_stored_rows(toml_path.with_suffix(".json"))
    return compute_figure_values_by_seed(figure_name, figures, rows)


def compute_figure_values_by_seed(
    expression: str, declared_figures: Mapping[str, str], stored_rows: Sequence[StoredRow]
) -> ValuesBySeed:
    """Compute the values of a figure from its text: a name in `declared_figures`, an expression, or
    a number, which is the same for every seed.

    Raises ValueError if the text is none of these, or if it does not fit exactly one row.
    """
    expression = expression.strip()
    if expression in declared_figures:
        return compute_figure_values_by_seed(
            declared_figures[expression], declared_figures, stored_rows
        )
    if NUMBER.fullmatch(expression):
        seeds = [seed for row in stored_rows for seed in row["seeds"]]
        return dict.fromkeys(seeds, float(expression))
    for sign, calculate in ARITHMETIC.items():
        if sign in expression:
            minuend, subtrahend = expression.rsplit(sign, 1)
            left = compute_figure_values_by_seed(minuend, declared_figures, stored_rows)
            right = compute_figure_values_by_seed(subtrahend, declared_figures, stored_rows)
            return {seed: calculate(left[seed], right[seed]) for seed in left if seed in right}
    series = SERIES.fullmatch(expression)
    if series is None:
        raise ValueError(
            f"There is no figure {expression!r}; there are {', '.join(declared_figures)}."
        )
    row = find_only_row_of_series(series, stored_rows)
    return dict(zip(row["seeds"], row[series["column"] or "accuracy"], strict=True))


def find_only_row_of_series(
    series_match: re.Match[str], stored_rows: Sequence[StoredRow]
) -> StoredRow:
    """Find the row that a series names. ValueError if it does not fit exactly one."""
    wanted_values = dict(parse_axis_values(series_match["at"] or ""))
    fitting = []
    for row in stored_rows:
        if (row["runs"], row["method"]) != (series_match["runs"], series_match["method"]):
            continue
        if all(get_axis_value(row, axis) == value for axis, value in wanted_values.items()):
            fitting.append(row)
    if len(fitting) != 1:
        raise ValueError(
            f"{series_match[0]!r} fits {len(fitting)} runs; name the axes of one in brackets."
        )
    return fitting[0]


class AxisNameAndValue(NamedTuple):
    """An axis of a study and one of its values, both as text."""

    axis: str
    value: str


def parse_axis_values(axes_in_brackets: str) -> Iterator[AxisNameAndValue]:
    """Parse the axes in brackets: "alpha=0.1, ee=True" gives ("alpha", "0.1"), ("ee", "True")."""
    for part in axes_in_brackets.replace(" ", "").split(","):
        if part:
            axis, _, value = part.partition("=")
            yield AxisNameAndValue(axis, value)


def get_axis_value(row: StoredRow, axis_name: str) -> str:
    """Return a row's value on an axis as text. The method's own options are named without the
    method.
    """
    values_by_axis: Mapping[str, SettingValue] = row["at"]
    return str(values_by_axis.get(axis_name, values_by_axis.get(f"{row['method']}.{axis_name}")))


# ----------------------------------------------------------------------------- how a text has them
def parse_seed_range(seed_or_range: str) -> range:
    """Parse "3" or "0-2" as seeds."""
    first, _, last = seed_or_range.partition("-")
    return range(int(first), int(last or first) + 1)


def select_values_of_seeds_or_all(values: ValuesBySeed, seed_range_or_empty: str) -> ValuesBySeed:
    """Select the values of the seeds "3" or "0-2"; all values if `seed_range_or_empty` is empty."""
    if not seed_range_or_empty:
        return values
    wanted_seeds = parse_seed_range(seed_range_or_empty)
    return {seed: value for seed, value in values.items() if seed in wanted_seeds}


def format_figure_values(values: ValuesBySeed, figure_format: FigureFormat | str) -> str:
    """Format a figure. values: by seed, a share 0-1 unless a format below says otherwise

    >>> format_figure_values({0: 0.02, 1: 0.03}, "effect")
    'makes no clear difference (2 ± 6 points)'
    >>> format_figure_values({0: -0.02, 1: -0.021, 2: -0.019}, "effect")
    'costs 2 ± 0 points'
    >>> format_figure_values({0: 0.52, 1: 0.54}, ""), format_figure_values({0: 0.50, 1: 0.60}, "mean")
    ('53 ± 13', '55')
    """
    interval = compute_band(values)
    mean = interval.mean
    half_width = "" if math.isnan(interval.half_width) else f" ± {100 * interval.half_width:.0f}"
    numbers = list(values.values())
    forms = {
        "": f"{100 * mean:.0f}{half_width}",  # mean and 95 % band over seeds, in percent
        "mean": f"{100 * mean:.0f}",
        "fine": f"{100 * mean:.1f} ± {100 * interval.half_width:.1f}",
        "verdict": interval.verdict,
        "effect": describe_effect_on_accuracy(
            interval
        ),  # of a difference: the verb is that of its band
        "counts": " ".join(f"{number:.0f}" for number in numbers),  # of whole numbers: each
        "each": " ".join(f"{100 * number:.0f}" for number in numbers),
        "low": f"{100 * min(numbers):.0f}",
        "high": f"{100 * max(numbers):.0f}",
        "above": str(sum(number > 0 for number in numbers)),  # seeds with a difference above zero
        "below": str(sum(number < 0 for number in numbers)),
        "tenths": f"{mean:.1f}",
        "hundredths": f"{mean:.2f}",
        "whole": f"{mean:,.0f}",
        "bytes": format_data_size(mean),
    }
    if figure_format not in forms:
        names = ", ".join(name for name in forms if name)
        raise ValueError(f"{figure_format!r} is no form of a figure; there are {names}.")
    text = MINUS_ZERO.sub("", forms[figure_format])
    return text.replace("-", "−")


def describe_effect_on_accuracy(difference: Band) -> str:
    """Say what a part of a method does, from the band of the accuracies with it minus those without
    it.
    """
    points = f"{100 * abs(difference.mean):.0f} ± {100 * difference.half_width:.0f} points"
    if difference.is_noise:
        sign = "-" if difference.mean < 0 else ""
        return f"makes no clear difference ({sign}{points})"
    if difference.mean < 0:
        return f"costs {points}"
    return f"adds {points}"
