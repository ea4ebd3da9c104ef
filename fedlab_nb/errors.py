"""The two errors of the package, and the checks that word them.

A wrong input gets one sentence: the value, what is allowed, what to do. `UsageError` is the caller's to mend (exit code
2 on the command line); `RunError` is a run that could not be completed (exit code 1).
"""

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any


class FedlabError(Exception):
    """Base of every error that the package raises on purpose; its message is one readable sentence."""


class UsageError(FedlabError, ValueError):
    """A wrong input: a value out of range, an unknown name, data that cannot be used."""


class RunError(FedlabError, RuntimeError):
    """A correct request that could not be carried out: no network, no room on the disk, numbers that diverged."""


# What samples are called, by the number of axes that one of them has: [D], [C, T], [C, H, W].
SAMPLES = {1: "feature rows", 2: "recordings", 3: "images"}


def demand(holds: object, text: str) -> None:
    """UsageError with that sentence unless `holds`."""
    if not holds:
        raise UsageError(text)


def reason(error: Exception | None) -> str:
    """An error on one line ("" for none); other people's errors with their type before it."""
    if error is None:
        return ""
    text = " ".join(str(error).split())
    return text if isinstance(error, FedlabError) else f"{type(error).__name__}: {text}"


FEW = 12  # names that a sentence lists; of more it says the nearest, and what lists them all
LISTED = (
    "method",
    "dataset",
    "model",
    "setting",
)  # kinds that `fedlab-nb list` and `fedlab-nb run --help` list


def choose(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return `name` if it is one of `allowed`; otherwise raise UsageError with the nearest names, three at most.

    >>> choose("method", "fens", ["fens", "fedlpa"])
    'fens'
    """
    allowed = list(allowed)
    if isinstance(name, str) and name in allowed:
        return name
    near = difflib.get_close_matches(str(name).lower(), allowed)
    guess = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    if len(allowed) > FEW and kind.partition(" ")[0] in LISTED:
        raise UsageError(
            f"Unknown {kind} {name!r}: {guess}See fedlab-nb list, and fedlab-nb run --help, for all."
        )
    raise UsageError(f"Unknown {kind} {name!r}: {guess}Allowed: {', '.join(allowed)}.")


def several(what: str, names: object) -> list[str]:
    """`names` as a list without repetitions; UsageError unless it is one name or names in a list.

    >>> several("methods", "fens"), several("methods", ("fens", "local", "fens"))
    (['fens'], ['fens', 'local'])
    """
    if isinstance(names, str):
        return [names]
    listed = list(names) if isinstance(names, Iterable) else [names]
    if any(not isinstance(name, str) for name in listed):
        raise UsageError(
            f'{what} is {names!r}, but it must be a name or a list of names, such as ["fens", "fedavg"].'
        )
    return list(dict.fromkeys(listed))


def assigned(pairs: Iterable[str], how: str) -> dict[str, str]:
    """`["rounds=100"]` as `{"rounds": "100"}`; UsageError, which says `how`, for what is no NAME=VALUE."""
    settings = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        demand(equals and name and value, f"{pair.strip()!r} is not a setting; {how}.")
        settings[name] = value
    return settings


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
    open_low: bool = False,
    hint: str = "",
) -> float:
    """Return `value` as a float within `[low, high]` (`(low, high]` with `open_low`), or raise UsageError.

    NaN, infinities, booleans and text are refused, also where no bound is given.
    """
    return float(_checked("a number", name, value, low, high, open_low, hint))


def whole(
    name: str, value: object, low: float | None = None, high: float | None = None, *, hint: str = ""
) -> int:
    """The same for a whole number, as an int."""
    return int(_checked("a whole number", name, value, low, high, False, hint))


def _checked(
    kind: str,
    name: str,
    value: Any,
    low: float | None,
    high: float | None,
    open_low: bool,
    hint: str,
) -> float | int:
    if low is not None and high is not None:
        allowed = f"{kind} {'above' if open_low else 'from'} {low:g} {'and up to' if open_low else 'to'} {high:g}"
    elif low is not None:
        allowed = f"{kind} {'above' if open_low else 'of at least'} {low:g}"
    elif high is not None:
        allowed = f"{kind} of at most {high:g}"
    else:
        allowed = f"a finite {kind.removeprefix('a ')}"
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    good = good and (kind == "a number" or float(value).is_integer())
    good = (
        good
        and (low is None or (value > low if open_low else value >= low))
        and (high is None or value <= high)
    )
    if not good:
        shown = repr(value) if isinstance(value, str) else value
        raise UsageError(
            f"{name} is {shown}, but it must be {allowed}{'; ' + hint if hint else ''}."
        )
    return value
