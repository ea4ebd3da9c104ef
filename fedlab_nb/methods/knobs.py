"""A method's hyper-parameters as people meet them: with a label, a range and a help, and checked when they are set.

What several methods have alike is a function here or in `parts`, and stands in a class as `weights: str = ..._knob()`.
"""

import math
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from ..declared import declared
from ..errors import choose, number, parsed, whole
from ..models import one_specified


@dataclass(frozen=True)
class Knob:
    """One hyper-parameter as people meet it; `default` is its value in the classroom."""

    name: str
    default: Any
    label: str
    help: str
    symbol: str = ""
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    log: bool = False
    model: bool = False  # an architecture, "name" or "name:width", or "auto"; `options` are then suggestions
    endless: bool = False  # "inf" is a value, too, and means the same as 0: off

    def check(self, method: str, value: Any) -> Any:
        """`value` in the knob's own type, or a UsageError that names the knob and what it takes."""
        name = f"{method}.{self.name}"
        if self.model:
            return one_specified(value)
        if self.options:
            return choose(name, value, self.options)
        if isinstance(self.default, bool):
            text = str(value).lower()
            return text in ("true", "1", "yes", "on") if text in _BOOLS else choose(name, text, ("true", "false"))
        if self.endless and parsed(value) == math.inf:
            return 0.0
        check = whole if isinstance(self.default, int) else number
        return check(name, parsed(value), self.low, self.high)


_BOOLS = ("true", "false", "1", "0", "yes", "no", "on", "off")


def knob(default: Any, label: str, help: str = "", *, options: Iterable[str] = (), **more: Any) -> Any:
    """A dataclass field that carries its own label, range and help. Where it has no `help`, `knobs.toml` has it.

    `more`: `symbol`, `low`, `high`, `log`, `model` and `endless`, as in `Knob`.
    """
    given = {"help": help} if help else {}
    return field(default=default, metadata={"label": label, "options": tuple(options), **given, **more})


def knobs_of(method: type) -> list[Knob]:
    """The hyper-parameters of a method, in the order of its dataclass."""
    tables = declared("methods/knobs.toml")
    helps = ChainMap(*(tables.get(base.__name__, {}) for base in method.__mro__))
    return [Knob(f.name, f.default, **{"help": helps.get(f.name, ""), **f.metadata}) for f in fields(method)]


def server_model_knob() -> Any:
    """The field `server_model` of the methods whose server distils a network of its own."""
    text = (
        "What the server distils: the first client's kind of network (auto), or name, or name:width. It is never sent."
    )
    return knob("auto", "Server's model", text, model=True)


def client_weights_knob(symbol: str) -> Any:
    """The field `weights` of the methods that average by sample counts, or plainly."""
    text = "How much each client counts: in proportion to its samples (n_k/N), or all the same."
    return knob("samples", "Weights", text, symbol=symbol, options=("samples", "uniform"))
