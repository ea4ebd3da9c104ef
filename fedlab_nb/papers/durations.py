"""How long those runs of the papers' tables take that are not stored, in words.

The seconds are in `tables/durations.toml`, which `estimates.py` makes. A text of a table's file has them as
"{time of NAME}", where NAME is one of its `longer` runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..declared import read_toml

FILE = "papers/tables/durations.toml"
PLACE = re.compile(r"\{time of (\w+)\}")


DurationsByTable = dict[str, dict[str, float]]  # {table: {name of its longer runs: seconds}}


def read_durations_of_longer_runs() -> DurationsByTable:
    """Read {table: {name of its longer runs: seconds that ten seeds take on one core}}."""
    return read_toml(FILE)


def insert_durations_into_text(text: str, table_name: str) -> str:
    """Return the text with its places "{time of NAME}" filled for a table such as "fusefl:2"."""

    def write_duration(match: re.Match[str]) -> str:
        return describe_duration(get_duration_in_seconds_or_nan(table_name, match[1]))

    return PLACE.sub(write_duration, text)


def get_duration_in_seconds_or_nan(table_name: str, name_of_longer_runs: str) -> float:
    """Return the seconds that ten seeds of a table's longer runs take on one core; nan if they are not known yet."""
    seconds_of: Mapping[str, float] = read_durations_of_longer_runs().get(table_name, {})
    return seconds_of.get(name_of_longer_runs, math.nan)


def describe_duration(seconds: float) -> str:
    """Describe a duration: 'about 8 minutes', 'about 2 hours', 'about 120 hours'; nan: 'an unknown time'."""
    if math.isnan(seconds):
        return "an unknown time"
    minutes = max(1, round(seconds / 60))
    if minutes < 10:
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    if minutes < 60:
        return f"about {5 * round(minutes / 5)} minutes"
    hours = seconds / 3600
    if hours < 1.5:
        return "about an hour"
    if hours < 10:
        return f"about {round(hours)} hours"
    return f"about {10 * round(hours / 10)} hours"
