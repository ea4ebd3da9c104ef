"""What a method is: a frozen dataclass of hyper-parameters (knobs) and one generator `run(ctx)` that returns the
global model.

A method file reads like its paper's algorithm: client part, link, server part. It yields `Progress` so that bars, live
curves and Stop work everywhere; it never sees a test image. Panels, command-line options and documentation are made
from the knobs (`knobs.py`) and from the registry's `info`; what a run yields and returns is in `results.py`. The names
of both can be taken from here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from ..errors import UsageError, choose
from ..training import Recipe
from .knobs import Knob, knob
from .results import ClientsAlone, EnsembleModel, GlobalModel, NetworkModel, Progress, flat

if TYPE_CHECKING:
    from .context import Context

__all__ = [
    "METHODS",
    "NEEDS",
    "PRESETS",
    "ClientsAlone",
    "EnsembleModel",
    "GlobalModel",
    "Info",
    "Knob",
    "Method",
    "NetworkModel",
    "Progress",
    "flat",
    "knob",
    "register",
    "weighted_mean",
]

NEEDS = {
    "public": "unlabelled public images",
    "one architecture": "the same architecture at every client",
    "images": "images, not feature rows",
}


@dataclass(frozen=True)
class Info:
    """What the tables say of a method. `needs`: keys of NEEDS. `traffic`: bytes of one client, down + up."""

    name: str
    title: str
    paper: str
    rounds: str
    traffic: str
    needs: frozenset[str]
    extra: str
    leaks: str
    help: str


class Method:
    """Base of the methods: subclasses are frozen dataclasses whose fields are made by `knob`."""

    info: ClassVar[Info]
    # Local training in the paper's own setting, and its model, or its models by the images' channels; None: the
    # setting of `study` decides.
    paper_recipe: ClassVar[Recipe | None] = None
    paper_model: ClassVar[str | Mapping[int, str] | None] = None
    # Knobs whose classroom value is another one for networks with convolutions.
    convolutional: ClassVar[Mapping[str, Any]] = {}

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        raise NotImplementedError

    def validate(self, ctx: Context) -> None:
        """Raise UsageError if this federation lacks something the method needs; called before any work."""
        missing = [NEEDS[need] for need in sorted(self.info.needs) if not ctx.has(need)]
        if missing:
            raise UsageError(
                f"{self.info.title} needs {' and '.join(missing)}, which this setting does not have; "
                f"choose another data set, model or method."
            )

    @classmethod
    def fields(cls) -> list[Knob]:
        """The hyper-parameters, in the order of the dataclass."""
        return [Knob(f.name, f.default, **f.metadata) for f in dataclasses.fields(cls)]

    @classmethod
    def model_in_paper(cls, channels: int) -> str | None:
        """`paper_model` for images of so many channels."""
        return cls.paper_model.get(channels) if isinstance(cls.paper_model, Mapping) else cls.paper_model

    @classmethod
    def preset(cls, name: str = "classroom", *, convolutions: bool = False, **overrides: Any) -> Method:
        """The method with its `classroom` or `paper` values, some of them overridden (checked against their knobs).

        `convolutions`: whether the networks have some (see `convolutional`).
        """
        choose("preset", name, PRESETS)
        knobs = {knob.name: knob for knob in cls.fields()}
        values = {k.name: (k.paper if name == "paper" else k.default) for k in knobs.values()}
        if convolutions and name == "classroom":
            values |= cls.convolutional
        for key, value in overrides.items():
            choose(f"setting of {cls.info.name}", key, knobs)
            values[key] = knobs[key].check(cls.info.name, value)
        return cls(**values)


PRESETS = ("classroom", "paper")
METHODS: dict[str, type[Method]] = {}


def register(
    name: str,
    *,
    title: str,
    paper: str,
    rounds: str,
    traffic: str,
    needs: Iterable[str] = (),
    extra: str = "nothing",
    leaks: str = "",
    help: str = "",
):
    """Class decorator: put a method into METHODS under `name`. `help` defaults to the first line of its docstring.

    UsageError if `name` is one of the package's own and the class is not.
    """
    own = __name__.partition(".")[0] + "."

    def put(cls: type[Method]) -> type[Method]:
        if name in METHODS and METHODS[name].__module__.startswith(own) and not cls.__module__.startswith(own):
            raise UsageError(f"The method name {name!r} is taken by {METHODS[name].info.title}; choose another one.")
        needs_ = frozenset(needs)
        assert needs_ <= set(NEEDS), needs_
        text = help or (cls.__doc__ or "").strip().splitlines()[0]
        cls.info = Info(name, title, paper, rounds, traffic, needs_, extra, leaks, text)
        METHODS[name] = cls
        return cls

    return put


def weighted_mean(states: Iterable[Mapping[str, Tensor]], weights: Iterable[float]) -> dict[str, Tensor]:
    """Σ_k w_k θ_k over state dicts, weights normalised to sum to 1 (FedAvg's average)."""
    states, weights = list(states), torch.tensor(list(weights), dtype=torch.float64)
    shares = (weights / weights.sum()).tolist()
    return {name: sum(share * state[name] for share, state in zip(shares, states, strict=True)) for name in states[0]}
