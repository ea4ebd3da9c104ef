"""Hyper-parameters as people meet them: a dataclass field that carries its own label, range, help and paper value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import choose, number, parsed


@dataclass(frozen=True)
class Knob:
    """One hyper-parameter as people meet it; `paper` is its value in the paper's own setting."""

    name: str
    default: Any
    label: str
    help: str
    symbol: str = ""
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    log: bool = False
    paper: Any = None

    def check(self, method: str, value: Any) -> Any:
        """`value` in the knob's own type, or a UsageError that names the knob and what it takes."""
        name = f"{method}.{self.name}"
        if self.options:
            return choose(name, value, self.options)
        if isinstance(self.default, bool):
            text = str(value).lower()
            return text in ("true", "1", "yes", "on") if text in _BOOLS else choose(name, text, ("true", "false"))
        integer = isinstance(self.default, int)
        return number(name, parsed(value), self.low, self.high, integer=integer)


_BOOLS = ("true", "false", "1", "0", "yes", "no", "on", "off")


def knob(
    default: Any,
    label: str,
    help: str,
    *,
    symbol: str = "",
    low: float | None = None,
    high: float | None = None,
    options: Iterable[str] = (),
    log: bool = False,
    paper: Any = None,
) -> Any:
    """A dataclass field that carries its own label, range and help; `paper` defaults to `default`."""
    meta = {
        "label": label,
        "help": help,
        "symbol": symbol,
        "low": low,
        "high": high,
        "options": tuple(options),
        "log": log,
        "paper": default if paper is None else paper,
    }
    return field(default=default, metadata=meta)
