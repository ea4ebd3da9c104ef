"""What a method is: a frozen dataclass of hyper-parameters (knobs) and one generator `run(ctx)` that returns the
global model.

A method file reads like its paper's algorithm: client part, link, server part. It yields `Progress` so that bars, live
curves and Stop work everywhere; it never sees a test image. Panels, command-line options and documentation are made
from the knobs and from the registry's `info`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import UsageError, choose, number, parsed
from ..models import parameter_count
from ..training import ClientModels, Recipe, in_chunks

if TYPE_CHECKING:
    from .context import Context

NEEDS = {
    "public": "unlabelled public images",
    "one architecture": "the same architecture at every client",
    "images": "images, not feature rows",
}


# --------------------------------------------------------------------------------------------------- hyper-parameters
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


# --------------------------------------------------------------------------------------------------- progress, results
@dataclass(frozen=True)
class Progress:
    """One step of a run: `done` of `total` in `phase`; `model`, where given, is the state of things for the live
    curve."""

    phase: str
    done: int
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    model: GlobalModel | None = None


class GlobalModel:
    """What a method returns: something that predicts. `features` is the vector that the last linear map reads.

    `parameters`: how many numbers predict (of all networks involved). `artefacts`: arrays worth keeping; `numbers`:
    plain values; `live`: small arrays worth watching while the method runs.
    """

    parameters: int
    artefacts: Mapping[str, np.ndarray] = {}
    numbers: Mapping[str, Any] = {}
    live: Mapping[str, np.ndarray] = {}

    def logits(self, x: Tensor) -> Tensor:
        """Scores `[N, C]` of samples `x [N, ...]`."""
        raise NotImplementedError

    def features(self, x: Tensor) -> Tensor:
        """Feature vectors `[N, D]`."""
        raise NotImplementedError

    def predict(self, x: Tensor) -> Tensor:
        """Classes `[N]`."""
        return self.logits(x).argmax(1)

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        """Share of `x [N, ...]` classified as `y [N]`, 0–1."""
        return float((self.predict(x) == y).double().mean())


class NetworkModel(GlobalModel):
    """One network; features are its penultimate layer."""

    def __init__(self, module: nn.Module, *, artefacts: Mapping | None = None, numbers: Mapping | None = None) -> None:
        self.module = module.eval()
        self.parameters = parameter_count(module)
        self.artefacts, self.numbers = dict(artefacts or {}), dict(numbers or {})

    def logits(self, x: Tensor) -> Tensor:
        return in_chunks(self.module, x)

    def features(self, x: Tensor) -> Tensor:
        return in_chunks(self.module.features, x)


def flat(logits: Tensor) -> Tensor:
    """Clients' logits `[M, N, C]` as one vector a sample, client-major, `[N, M*C]`."""
    return logits.transpose(0, 1).flatten(1)


class EnsembleModel(GlobalModel):
    """All client models, combined by a fixed rule; features are the concatenated logits `[N, M*C]`.

    `rule`: "logits" averages pre-softmax outputs, "probabilities" averages softmax outputs (scores are then their
    logarithm).
    """

    RULES = ("logits", "probabilities")

    def __init__(self, clients: ClientModels, rule: str = "logits") -> None:
        self.clients, self.rule = clients, choose("rule", rule, self.RULES)
        self.parameters = sum(clients.parameters)

    def logits(self, x: Tensor) -> Tensor:
        logits = self.clients.logits(x)
        if self.rule == "logits":
            return logits.mean(0)
        return logits.softmax(-1).mean(0).log()

    def features(self, x: Tensor) -> Tensor:
        return flat(self.clients.logits(x))


class ClientsAlone(GlobalModel):
    """The clients' own models side by side, for the curve of local training: accuracy is the mean over clients."""

    def __init__(self, clients: ClientModels) -> None:
        self.clients, self.parameters = clients, sum(clients.parameters)

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        return float((self.clients.logits(x).argmax(-1) == y).double().mean())


# --------------------------------------------------------------------------------------------------- method, registry
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
    # Local training in the paper's own setting, and its model; None: the setting of `study` decides.
    paper_recipe: ClassVar[Recipe | None] = None
    paper_model: ClassVar[str | None] = None

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
    def preset(cls, name: str = "classroom", **overrides: Any) -> Method:
        """The method with its `classroom` or `paper` values, some of them overridden (checked against their knobs)."""
        choose("preset", name, PRESETS)
        knobs = {knob.name: knob for knob in cls.fields()}
        values = {k.name: (k.paper if name == "paper" else k.default) for k in knobs.values()}
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
    """Class decorator: put a method into METHODS under `name`. `help` defaults to the first line of its docstring."""

    def put(cls: type[Method]) -> type[Method]:
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
