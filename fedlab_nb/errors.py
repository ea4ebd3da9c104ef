"""The two errors of the package, and checks that raise them.

The message is one sentence: the value, what is allowed, what to do. The caller can correct a `UsageError` (exit code 2
on the command line). A `RunError` is a run that could not be completed (exit code 1).
"""

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import TypeGuard

from fedlab_nb.value_types import SettingValue, TextByName


class FedlabError(Exception):
    """Base of every error that the package raises on purpose; its message is one readable sentence."""


class UsageError(FedlabError, ValueError):
    """A wrong input: a value out of range, an unknown name, data that cannot be used."""


class RunError(FedlabError, RuntimeError):
    """A correct request that could not be carried out: no network, no room on the disk, numbers that diverged."""


# What samples are called, by the number of axes of one sample: 1 [D], 2 [C, T], 3 [C, H, W].
SAMPLES = {1: "feature rows", 2: "recordings", 3: "images"}


def format_error_on_one_line(error: Exception | None) -> str:
    """Format an error on one line, "" for None. An error of other code has its type before its message."""
    if error is None:
        return ""
    text = " ".join(str(error).split())
    if isinstance(error, FedlabError):
        return text
    return f"{type(error).__name__}: {text}"


FEW = 12  # the most names that a sentence lists
# Kinds that `fedlab-nb list` and `fedlab-nb run --help` list. If there are more than FEW names, a sentence says so.
LISTED = ("method", "dataset", "model", "setting")


def check_allowed_name(
    kind_of_thing: str, chosen_name: object, allowed_names: Iterable[str]
) -> str:
    """Return `chosen_name` if it is one of `allowed_names`.

    Otherwise raise UsageError with the nearest names, three at most.

    >>> check_allowed_name("method", "fens", ["fens", "fedlpa"])
    'fens'
    """
    allowed_names = list(allowed_names)
    if isinstance(chosen_name, str) and chosen_name in allowed_names:
        return chosen_name
    near = difflib.get_close_matches(str(chosen_name).lower(), allowed_names)
    if len(allowed_names) > FEW and kind_of_thing.partition(" ")[0] in LISTED:
        advice = "all are shown by fedlab-nb list and fedlab-nb run --help"
    else:
        advice = f"allowed: {', '.join(allowed_names)}"
    sentence = f"Unknown {kind_of_thing} {chosen_name!r}"
    if near:
        guess = " or ".join(map(repr, near))
        raise UsageError(f"{sentence}: did you mean {guess}? {advice[0].upper()}{advice[1:]}.")
    raise UsageError(f"{sentence}; {advice}.")


def check_and_list_unique_names(setting_name: str, name_or_names: object) -> list[str]:
    """Return `name_or_names` as a list without repetitions; UsageError unless it is one name or several.

    setting_name: what the names are given for, as the error says it

    >>> check_and_list_unique_names("methods", "fens")
    ['fens']
    >>> check_and_list_unique_names("methods", ("fens", "local", "fens"))
    ['fens', 'local']
    """
    if isinstance(name_or_names, str):
        return [name_or_names]
    listed = list(name_or_names) if isinstance(name_or_names, Iterable) else [name_or_names]
    if any(not isinstance(name, str) for name in listed):
        raise UsageError(
            f"{setting_name} is {name_or_names!r}, but it must be a name or a list of names, such as "
            '["fens", "fedavg"].'
        )
    return list(dict.fromkeys(listed))


def parse_assignments(name_equals_value_texts: Iterable[str], advice_in_error: str) -> TextByName:
    """Parse `["rounds=100"]` as `{"rounds": "100"}`.

    UsageError for a text that is not NAME=VALUE; its sentence ends with `advice_in_error`.
    """
    settings = {}
    for pair in name_equals_value_texts:
        name, equals, value = pair.partition("=")
        name = name.strip()
        value = value.strip()
        if not (equals and name and value):
            raise UsageError(f"{pair.strip()!r} is not a setting; {advice_in_error}.")
        settings[name] = value
    return settings


def parse_if_number(value_or_text: SettingValue) -> SettingValue:
    """Parse a text that is a number: `"3"` -> 3, `"1e-3"` -> 0.001. Anything else is returned unchanged;
    `check_number` will refuse it."""
    if not isinstance(value_or_text, str):
        return value_or_text
    for number_type in (int, float):
        try:
            return number_type(value_or_text)
        except ValueError:
            continue
    return value_or_text


def check_number(
    setting_name: str,
    value: object,
    low: float | None = None,
    high: float | None = None,
    *,
    excludes_low: bool = False,
    hint: str = "",
) -> float:
    """Return `value` as a float within `[low, high]` (`(low, high]` with `excludes_low`), or raise
    UsageError.

    NaN, infinities, booleans and text are refused, also where no bound is given.
    """
    if not is_finite_number(value) or not is_within_bounds(value, low, high, excludes_low):
        allowed = describe_allowed_range("number", low, high, excludes_low)
        raise make_value_error(setting_name, value, allowed, hint)
    return float(value)


def check_whole_number(
    setting_name: str,
    value: object,
    low: float | None = None,
    high: float | None = None,
    *,
    hint: str = "",
) -> int:
    """Return `value` as an int within `[low, high]`, or raise UsageError; as `check_number` does."""
    is_whole = is_finite_number(value) and float(value).is_integer()
    if not is_whole or not is_within_bounds(value, low, high):
        allowed = describe_allowed_range("whole number", low, high)
        raise make_value_error(setting_name, value, allowed, hint)
    return int(value)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Whether `value` is a real number, and no boolean, NaN or infinity."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    return math.isfinite(value)


def is_within_bounds(
    value: float, lowest: float | None, highest: float | None, excludes_lowest: bool = False
) -> bool:
    """Whether a number is from `lowest` to `highest`; None is no bound, and `excludes_lowest` excludes `lowest`."""
    if lowest is not None and (value < lowest or (excludes_lowest and value == lowest)):
        return False
    return highest is None or value <= highest


def describe_allowed_range(
    kind_of_number: str, lowest: float | None, highest: float | None, excludes_lowest: bool = False
) -> str:
    """Describe the allowed values: "a whole number from 1 to 10"."""
    if lowest is None and highest is None:
        return f"a finite {kind_of_number}"
    if lowest is None:
        return f"a {kind_of_number} of at most {highest:g}"
    if highest is None and excludes_lowest:
        return f"a {kind_of_number} above {lowest:g}"
    if highest is None:
        return f"a {kind_of_number} of at least {lowest:g}"
    if excludes_lowest:
        return f"a {kind_of_number} above {lowest:g} and up to {highest:g}"
    return f"a {kind_of_number} from {lowest:g} to {highest:g}"


def make_value_error(
    setting_name: str, value: object, allowed_values_in_words: str, hint_or_empty: str
) -> UsageError:
    """Make the error for a value that is not allowed.

    allowed_values_in_words: such as "a number from 0 to 1"
    hint_or_empty: what else to say, "" for nothing
    """
    shown = repr(value) if isinstance(value, str) else value
    advice = f"; {hint_or_empty}" if hint_or_empty else ""
    return UsageError(
        f"{setting_name} is {shown}, but it must be {allowed_values_in_words}{advice}."
    )
