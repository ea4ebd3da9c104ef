"""Figures: numbers that are computed from stored rows, one for each seed.

`skewed/fens[alpha=0.1]` is the accuracy of FENS in the runs called "skewed" at α = 0.1, `skewed/fens:bytes_up` another
column of them, and `fens - fedavg` the difference of two figures, seed by seed.
"""

import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..declared import parse_toml
from .statistics import Band, band
from .stored_rows import Row, read_stored_rows
from .text_tables import data_size

SERIES = re.compile(r"(?P<runs>\w+)/(?P<method>\w+)(?:\[(?P<at>[^]]*)\])?(?::(?P<column>\S+))?")
MINUS_ZERO = re.compile(r"-(?=0(?![\d.]))")  # the sign of a rounded zero
NUMBER = re.compile(r"-?[\d.]+")
# The first one binds least.
ARITHMETIC = {
    " + ": operator.add,
    " - ": operator.sub,
    " / ": operator.truediv,
}
OPERATOR = re.compile(r" [->~+/] ")
Values = dict[int, float]  # by seed


def read_figure(path: Path, figure: str) -> Values:
    """The values of a figure that a TOML file declares, from the rows in the JSON file beside it."""
    figures = parse_toml(path.read_text(encoding="utf-8"))["figures"]
    _, rows = read_stored_rows(path.with_suffix(".json"))
    return compute_figure(figure, figures, rows)


def compute_figure(text: str, figures: Mapping[str, str], rows: Sequence[Row]) -> Values:
    """The values of a figure: its name in `figures`, an expression, or a number, which is the same on every seed.

    Raises ValueError where the text is neither, or fits more or fewer than one row.
    """
    text = text.strip()
    if text in figures:
        return compute_figure(figures[text], figures, rows)
    if NUMBER.fullmatch(text):
        seeds = [seed for row in rows for seed in row["seeds"]]
        return dict.fromkeys(seeds, float(text))
    for sign, calculate in ARITHMETIC.items():
        if sign in text:
            minuend, subtrahend = text.rsplit(sign, 1)
            left = compute_figure(minuend, figures, rows)
            right = compute_figure(subtrahend, figures, rows)
            return {seed: calculate(left[seed], right[seed]) for seed in left if seed in right}
    series = SERIES.fullmatch(text)
    if series is None:
        raise ValueError(f"There is no figure {text!r}; there are {', '.join(figures)}.")
    row = find_row(series, rows)
    return dict(zip(row["seeds"], row[series["column"] or "accuracy"], strict=True))


def find_row(series: re.Match, rows: Sequence[Row]) -> Row:
    """The one row that a series names; ValueError where it fits another number of them."""
    wanted = dict(split_axes(series["at"] or ""))
    fitting = []
    for row in rows:
        if (row["runs"], row["method"]) != (series["runs"], series["method"]):
            continue
        if all(read_axis_value(row, axis) == value for axis, value in wanted.items()):
            fitting.append(row)
    if len(fitting) != 1:
        raise ValueError(
            f"{series[0]!r} fits {len(fitting)} runs; name the axes of one in brackets."
        )
    return fitting[0]


def split_axes(text: str) -> Iterator[tuple[str, str]]:
    """The axes in brackets: "alpha=0.1, ee=True" gives ("alpha", "0.1"), ("ee", "True")."""
    for part in text.replace(" ", "").split(","):
        if part:
            axis, _, value = part.partition("=")
            yield axis, value


def read_axis_value(row: Row, axis: str) -> str:
    """Where on an axis a row stands; the method's own options go without its name."""
    at: Mapping[str, Any] = row["at"]
    return str(at.get(axis, at.get(f"{row['method']}.{axis}")))


# ----------------------------------------------------------------------------- how a text has them
def parse_seeds(text: str) -> range:
    """The seeds that "3" or "0-2" names."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def select_seeds(values: Values, seeds: str) -> Values:
    """The values of the seeds "3" or "0-2"; all of them where `seeds` is empty."""
    if not seeds:
        return values
    wanted = parse_seeds(seeds)
    return {seed: value for seed, value in values.items() if seed in wanted}


def format_figure(values: Values, form: str) -> str:
    """How a figure is written. `values`: by seed, of a share 0-1 unless a form below says otherwise.

    >>> format_figure({0: 0.02, 1: 0.03}, "effect")
    'makes no clear difference (2 ± 6 points)'
    >>> format_figure({0: -0.02, 1: -0.021, 2: -0.019}, "effect")
    'costs 2 ± 0 points'
    >>> format_figure({0: 0.52, 1: 0.54}, ""), format_figure({0: 0.50, 1: 0.60}, "mean")
    ('53 ± 13', '55')
    """
    interval = band(values)
    mean = interval.mean
    half_width = "" if math.isnan(interval.half_width) else f" ± {100 * interval.half_width:.0f}"
    numbers = list(values.values())
    forms = {
        "": f"{100 * mean:.0f}{half_width}",  # mean and 95 % band over seeds, in percent
        "mean": f"{100 * mean:.0f}",
        "fine": f"{100 * mean:.1f} ± {100 * interval.half_width:.1f}",
        "verdict": interval.verdict,
        "effect": describe_effect(interval),  # of a difference: the verb is that of its band
        "counts": " ".join(f"{number:.0f}" for number in numbers),  # of whole numbers: each
        "each": " ".join(f"{100 * number:.0f}" for number in numbers),
        "low": f"{100 * min(numbers):.0f}",
        "high": f"{100 * max(numbers):.0f}",
        "above": str(sum(number > 0 for number in numbers)),  # seeds with a difference above zero
        "below": str(sum(number < 0 for number in numbers)),
        "tenths": f"{mean:.1f}",
        "hundredths": f"{mean:.2f}",
        "whole": f"{mean:,.0f}",
        "bytes": data_size(mean),
    }
    if form not in forms:
        names = ", ".join(name for name in forms if name)
        raise ValueError(f"{form!r} is no form of a figure; there are {names}.")
    text = MINUS_ZERO.sub("", forms[form])
    return text.replace("-", "−")


def describe_effect(difference: Band) -> str:
    """What a part of a method does, from the band of the accuracies with it minus those without."""
    points = f"{100 * abs(difference.mean):.0f} ± {100 * difference.half_width:.0f} points"
    if difference.is_noise:
        sign = "-" if difference.mean < 0 else ""
        return f"makes no clear difference ({sign}{points})"
    if difference.mean < 0:
        return f"costs {points}"
    return f"adds {points}"
