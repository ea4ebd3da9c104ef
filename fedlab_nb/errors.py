"""The two errors of the package, and the checks that word them.

A wrong input gets one sentence: the value, what is allowed, what to do. `UsageError` is the caller's to mend (exit code
2 on the command line); `RunError` is a run that could not be completed (exit code 1).
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable


class FedlabError(Exception):
    """Base of every error that the package raises on purpose; its message is one readable sentence."""


class UsageError(FedlabError, ValueError):
    """A wrong input: a value out of range, an unknown name, data that cannot be used."""


class RunError(FedlabError, RuntimeError):
    """A correct request that could not be carried out: no network, no room on the disk, numbers that diverged."""


def choose(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return `name` if it is one of `allowed`; otherwise raise UsageError naming the nearest match.

    >>> choose("method", "fens", ["fens", "fedlpa"])
    'fens'
    """
    allowed = list(allowed)
    if isinstance(name, str) and name in allowed:
        return name
    near = difflib.get_close_matches(str(name).lower(), allowed, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"Unknown {kind} {name!r}: {guess}Allowed: {', '.join(allowed)}.")


def parsed(value: object) -> object:
    """Text that writes a number as that number (`"3"` -> 3, `"1e-3"` -> 0.001); anything else unchanged, for `number`
    to judge."""
    if isinstance(value, str):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                pass
    return value


def number(
    name: str,
    value: object,
    low: float | None = None,
    high: float | None = None,
    *,
    integer: bool = False,
    open_low: bool = False,
    hint: str = "",
) -> float | int:
    """Return `value` as a float (or an int) within `[low, high]` (`(low, high]` with `open_low`), or raise UsageError.

    NaN, infinities, booleans and text are refused, also where no bound is given.
    """
    kind = "a whole number" if integer else "a number"
    if low is not None and high is not None:
        allowed = f"{kind} {'above' if open_low else 'from'} {low:g} {'and up to' if open_low else 'to'} {high:g}"
    elif low is not None:
        allowed = f"{kind} {'above' if open_low else 'of at least'} {low:g}"
    elif high is not None:
        allowed = f"{kind} of at most {high:g}"
    else:
        allowed = f"a finite {kind.removeprefix('a ')}"
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if good and integer:
        good = float(value).is_integer()
    if good and low is not None:
        good = value > low if open_low else value >= low
    if good and high is not None:
        good = value <= high
    if not good:
        shown = repr(value) if isinstance(value, str) else value
        raise UsageError(f"{name} is {shown}, but it must be {allowed}{'; ' + hint if hint else ''}.")
    return int(value) if integer else float(value)
