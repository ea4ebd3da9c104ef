"""What a method is: a frozen dataclass of hyper-parameters (knobs) and one generator `run(ctx)` that returns the
global model.

A method file reads like its paper's algorithm: client part, link, server part. It yields `Progress` so that bars, live
curves and Stop work everywhere; it never sees a test image. Panels, command-line options and documentation are made
from the knobs (`Knob`) and from the registry's `info`; what a run yields and returns is in `results.py`. The names
of both can be taken from here.
"""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..declared import declared
from ..errors import UsageError, choose, demand, number, parsed, whole
from ..models import MODELS
from ..models.build import check_one_model
from ..training import Recipe
from .context import Context
from .results import (  # noqa: F401
    ClientsAlone,
    EnsembleModel,
    GlobalModel,
    NetworkModel,
    Progress,
    Report,
    Steps,
    reported,
)

# ---------------------------------------------------------------------------------------------------------------- knobs
# A method's hyper-parameters as people meet them: with a label, a range and a help, and checked when they are set.
#
# What several methods have alike is a function here or in `parts`, and stands in a class as `weights: str =
# ..._knob()`.


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
    model: bool = (
        False  # an architecture, "name" or "name:width", or "auto"; `options` are then suggestions
    )
    endless: bool = False  # "inf" is a value, too, and means the same as 0: off

    def check(self, method: str, value: Any) -> Any:
        """`value` in the knob's own type, or a UsageError that names the knob and what it takes."""
        name = f"{method}.{self.name}"
        if self.model:
            return check_one_model(value)
        if self.options:
            return choose(name, value, self.options)
        if isinstance(self.default, bool):
            text = str(value).lower()
            return (
                text in ("true", "1", "yes", "on")
                if text in _BOOLS
                else choose(name, text, ("true", "false"))
            )
        if self.endless and parsed(value) == math.inf:
            return 0.0
        check = whole if isinstance(self.default, int) else number
        return check(name, parsed(value), self.low, self.high)


_BOOLS = ("true", "false", "1", "0", "yes", "no", "on", "off")


def knob(
    default: Any, label: str, help: str = "", *, options: Iterable[str] = (), **more: Any
) -> Any:
    """A dataclass field that carries its own label, range and help. Where it has no `help`, `knobs.toml` has it.

    `more`: `symbol`, `low`, `high`, `log`, `model` and `endless`, as in `Knob`.
    """
    given = {"help": help} if help else {}
    return field(
        default=default, metadata={"label": label, "options": tuple(options), **given, **more}
    )


def server_model_knob() -> Any:
    """The field `server_model` of the methods whose server distils a network of its own."""
    return knob("auto", "Server's model", model=True)


def client_weights_knob(symbol: str) -> Any:
    """The field `weights` of the methods that average by sample counts, or plainly."""
    return knob("samples", "Weights", symbol=symbol, options=("samples", "uniform"))


NEEDS = {
    "public": "unlabelled public {kind}",
    "one architecture": "the same architecture at every client",
    "images": "images, not {kind}",
}

# In which lists show the methods, in this order; a method that names none stands under one of the two of its `rounds`.
ONE_SHOT, ROUNDS = "One shot", "Many rounds"
GROUPS = (
    "Average weights",
    "Keep an ensemble",
    "Distil, with public data",
    "Distil, data-free",
    "Closed form",
    ONE_SHOT,
    ROUNDS,
    "References",
)


@dataclass(frozen=True)
class Info:
    """What the tables say of a method. `needs`: keys of NEEDS. `traffic`: bytes of one client, down + up. `group`: one
    of GROUPS. `titles`: {"knob=value": what it is called then, instead of `title`}; see `label_of`. `sends`: what a
    client sends ("": nothing), `back`: what comes back to it then; both short, for `plots.journey`."""

    name: str
    title: str
    paper: str
    group: str = ""
    rounds: str = "one-shot"
    traffic: str = "2 S_θ"
    needs: frozenset[str] = frozenset()
    extra: str = "nothing"
    leaks: str = ""
    help: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    sends: str = "its network"
    back: str = ""


@dataclass(frozen=True)
class Method:
    """Base of the methods: subclasses are frozen dataclasses whose fields are made by `knob`."""

    info: ClassVar[Info]
    report: ClassVar[type[Report]] = Report  # what its runs leave behind for pictures and lessons
    # Whether it begins with `ctx.local_training()`, whose clients all such methods share.
    trains_locally: ClassVar[bool] = True
    # Whether its clients send trained models or changes of them, which a poisoned one can turn or blow up.
    sends_models: ClassVar[bool] = True
    # Whether its clients are asked when it predicts, so that a poisoned one can lie.
    asks_clients: ClassVar[bool] = False
    # Whether it is trained on samples that clients hold out of local training (see `holdout_for` in `study`).
    holds_out: ClassVar[bool] = False
    # Knobs whose classroom value is another one for networks with convolutions.
    convolutional: ClassVar[Mapping[str, Any]] = {}

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        raise NotImplementedError

    def validate(self, ctx: Context) -> None:
        """Raise UsageError if this federation lacks something the method needs; called before any work."""
        ctx.server_architecture(
            getattr(self, "server_model", "auto")
        )  # refuses one that these samples do not fit
        missing = [need for need in sorted(self.info.needs) if not ctx.has(need)]
        needs = " and ".join(NEEDS[need] for need in missing).format(kind=ctx.kind)
        other = (
            "set public=0.1 or another data set"
            if "public" in missing
            else "choose another method or data set"
        )
        lacks = "" if missing == ["images"] else ", which this setting does not have"
        demand(not missing, f"{self.info.title} needs {needs}{lacks}; {other}.")
        self.refuse(ctx)

    def refuse(self, ctx: Context) -> None:
        """Raise UsageError where these values of the knobs do not fit the federation; the end of `validate`."""

    def local_passes(self, recipe: Recipe, sizes: Sequence[float]) -> float:
        """How often a client trains on its own data in a whole run, in passes over it: the mean over clients.

        `sizes` `[M]`: samples that the clients train on. Passes that only measure are not counted, nor are steps on
        public or synthetic samples.
        """
        return float(recipe.epochs)

    def check_poison(self, ctx: Context) -> None:
        """Raise UsageError if clients are poisoned in a way that this method's clients have no use for."""
        useful, count = self.sends_models or not ctx.poison.of_models, ctx.poison.count
        demand(
            useful,
            f"Clients of {self.info.title} send no model to poison; set poison to labels:{count}.",
        )
        asked = self.asks_clients or not ctx.poison.of_answers
        alone = f"{self.info.title} asks no client when it predicts, so none can lie"
        demand(asked, f"{alone}; set poison to labels:{count}.")
        honest = not ctx.poison.of_answers or count < ctx.clients_count
        demand(
            honest,
            f"poison is lie:{count}, but at least one of the {ctx.clients_count} clients must be honest.",
        )

    @property
    def leaks(self) -> str:
        """What leaks with these settings; `info.leaks` says it for all of them."""
        return self.info.leaks

    @classmethod
    def fields(cls) -> list[Knob]:
        """The hyper-parameters, in the order of the dataclass; helps that are not beside them are in `knobs.toml`."""
        tables = declared("methods/knobs.toml")
        helps = ChainMap(*(tables.get(base.__name__, {}) for base in cls.__mro__))
        return [
            Knob(f.name, f.default, **{"help": helps.get(f.name, ""), **f.metadata})
            for f in fields(cls)
        ]

    @classmethod
    def configure(cls, *, convolutions: bool = False, **given: Any) -> Method:
        """The method with its classroom values, but for those that are given (checked against their knobs).

        `convolutions`: whether the clients' networks have some (see `convolutional`); a network that is set for the
        server counts as well.
        """
        knobs = {k.name: k for k in cls.fields()}
        values = {k.name: k.default for k in knobs.values()}
        checked = {}
        for key, value in given.items():
            choose(f"setting of {cls.info.name}", key, knobs)
            checked[key] = knobs[key].check(cls.info.name, value)
            if knobs[key].model and checked[key] != "auto":
                convolutions = convolutions or MODELS[checked[key].partition(":")[0]].needs != ""
        if convolutions:
            values |= cls.convolutional
        return cls(**values | checked)


METHODS: dict[str, type[Method]] = {}


def label_of(method: str, settings: Mapping[str, Any] | None = None, usual: str = "") -> str:
    """What runs of a method are called in pictures and tables: its title, or the one that the value of a knob gives it.

    settings: what was set, knobs with or without "METHOD." before them;   usual: in place of the title
    """
    if method not in METHODS:
        return usual or method
    cls, given = METHODS[method], settings or {}
    for at, words in cls.info.titles.items():
        name, _, value = at.partition("=")
        if str(given.get(f"{method}.{name}", given.get(name, getattr(cls, name)))) == value:
            return words
    return usual or cls.info.title


def short(title: str) -> str:
    """'FedAvg, one round' -> 'FedAvg', 'FedENS: mean of logits' -> 'FedENS', 'fens (rounds = 10)' -> 'fens', 'mean of
    probabilities' -> 'mean of prob.'."""
    return re.sub(r" \(.*|, (one|run) .*|: mean .*", "", title).replace("probabilities", "prob.")


def register(name: str, **words: Any):
    """Class decorator: make the class a frozen dataclass of its knobs, and put it into METHODS under `name`.

    `words`: the fields of `Info`, of which `title` and `paper` must be given; `help` is the
    first line of the docstring unless it is. UsageError if `name` is one of the package's own and the class is not.
    """
    own = __name__.partition(".")[0] + "."

    def put(cls: type[Method]) -> type[Method]:
        if (
            name in METHODS
            and METHODS[name].__module__.startswith(own)
            and not cls.__module__.startswith(own)
        ):
            raise UsageError(
                f"The method name {name!r} is taken by {METHODS[name].info.title}; choose another one."
            )
        info = {"help": (cls.__doc__ or "").strip().splitlines()[0], **words}
        info["help"] += "".join(f" {at}: {title}." for at, title in info.get("titles", {}).items())
        group = info.get("group") or (
            ONE_SHOT if info.get("rounds", "one-shot") == "one-shot" else ROUNDS
        )
        info |= {"needs": frozenset(info.get("needs", ())), "group": choose("group", group, GROUPS)}
        cls.info = Info(name, **info)
        assert cls.info.needs <= set(NEEDS), cls.info.needs
        METHODS[name] = cls if "__dataclass_fields__" in vars(cls) else dataclass(frozen=True)(cls)
        return METHODS[name]

    return put


def grouped(methods: Iterable[str]) -> dict[str, list[str]]:
    """{group: those of `methods` in it}, in the order of GROUPS and of METHODS; empty groups are left out."""
    wanted = set(methods)
    there = [name for name in METHODS if name in wanted]
    groups = {
        group: [name for name in there if METHODS[name].info.group == group] for group in GROUPS
    }
    return {group: names for group, names in groups.items() if names}


def weighted_mean(
    states: Iterable[Mapping[str, Tensor]], weights: Iterable[float]
) -> dict[str, Tensor]:
    """Σ_k w_k θ_k over state dicts, weights normalised to sum to 1 (FedAvg's average)."""
    states, weights = list(states), torch.tensor(list(weights), dtype=torch.float64)
    shares = (weights / weights.sum()).tolist()
    return {
        name: sum(share * state[name] for share, state in zip(shares, states, strict=True))
        for name in states[0]
    }
