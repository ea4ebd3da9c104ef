"""How long the runs of the papers' tables take that are not stored, in words.

The seconds are in `tables/durations.toml`, which `estimates.py` writes. A text in a table's file refers to them by
"{time of NAME}", where NAME is one of the table's `longer` runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..declared import read_toml

FILE = "papers/tables/durations.toml"
PLACE = re.compile(r"\{time of (\w+)\}")


SecondsByRunNameByTable = dict[str, dict[str, float]]  # {table: {name of its longer runs: seconds}}


def read_durations_of_longer_runs() -> SecondsByRunNameByTable:
    """Read {table: {name of its longer runs: seconds that ten seeds take on one core}}."""
    return read_toml(FILE)


def replace_duration_placeholders_in_text(text: str, table_name: str) -> str:
    """Replace each "{time of NAME}" in a text of a table, such as "fusefl:2", by the duration in words."""

    def write_duration(match: re.Match[str]) -> str:
        return describe_duration_in_words(get_seconds_of_ten_seeds_or_nan(table_name, match[1]))

    return PLACE.sub(write_duration, text)


def get_seconds_of_ten_seeds_or_nan(table_name: str, name_of_longer_runs: str) -> float:
    """Return the seconds that ten seeds of a table's longer runs take on one core; nan if they are not known yet."""
    seconds_by_name: Mapping[str, float] = read_durations_of_longer_runs().get(table_name, {})
    return seconds_by_name.get(name_of_longer_runs, math.nan)


def describe_duration_in_words(seconds: float) -> str:
    """Describe a duration: 'about 8 minutes', 'about 2 hours', 'about 120 hours'; nan: 'an unknown time'."""
    if math.isnan(seconds):
        return "an unknown time"
    minutes = max(1, round(seconds / 60))
    if minutes == 1:
        return "about 1 minute"
    if minutes < 10:
        return f"about {minutes} minutes"
    if minutes < 60:
        return f"about {5 * round(minutes / 5)} minutes"
    hours = seconds / 3600
    if hours < 1.5:
        return "about an hour"
    if hours < 10:
        return f"about {round(hours)} hours"
    return f"about {10 * round(hours / 10)} hours"
