"""The contract of a method: a frozen dataclass of hyper-parameters (knobs), and one generator `run(ctx)` that returns
the global model.

A method file reads like its paper's algorithm: client part, link, server part. It yields `Progress` so that bars, live
curves and Stop work everywhere; it never sees a test image. Panels, command-line options and documentation are made
from the knobs (`Knob`) and from the registry's `info`. What a run yields and returns is in `run_outputs.py`; a method
can import the names of both files from here.
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

from ..declared import read_toml
from ..errors import UsageError, check_number, check_whole_number, choose, parse_number
from ..models import MODELS
from ..models.build import check_one_model
from ..training import Recipe
from .context import Context
from .memory import SquareMatrices
from .run_outputs import (  # noqa: F401
    ClientsAlone,
    EnsembleModel,
    GlobalModel,
    NetworkModel,
    Progress,
    Report,
    Steps,
    report_progress,
)
from .traffic import Sizes, Traffic

# ---------------------------------------------------------------------------------------------------------------- knobs
# A method's hyper-parameters: with a label, a range and a help, and checked when they are set.
#
# A knob that several methods share is a function here or in `parts`, and stands in a class as `weights: str =
# ..._knob()`.


@dataclass(frozen=True)
class Knob:
    """One hyper-parameter; `default` is its value in the preset "classroom".

    `log`: on a logarithmic slider. `model`: an architecture, "name" or "name:width", or "auto"; `options` are then
    suggestions. `endless`: "inf" is a value, too, and means the same as 0, off.
    """

    name: str
    default: Any
    label: str
    help: str
    symbol: str = ""
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    log: bool = False
    model: bool = False
    endless: bool = False

    def check(self, method: str, value: Any) -> Any:
        """`value` in the knob's own type, or a UsageError that names the knob and what it takes."""
        name = f"{method}.{self.name}"
        if self.model:
            return check_one_model(value)
        if self.options:
            return choose(name, value, self.options)
        if isinstance(self.default, bool):
            text = str(value).lower()
            if text in _TRUE:
                return True
            if text in _FALSE:
                return False
            return choose(name, text, ("true", "false"))  # refuses it
        if self.endless and parse_number(value) == math.inf:
            return 0.0
        if isinstance(self.default, int):
            return check_whole_number(name, parse_number(value), self.low, self.high)
        return check_number(name, parse_number(value), self.low, self.high)


_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


def knob(
    default: Any, label: str, help: str = "", *, options: Iterable[str] = (), **more: Any
) -> Any:
    """A dataclass field that carries its own label, range and help. Where it has no `help`, `knobs.toml` has it.

    `more`: `symbol`, `low`, `high`, `log`, `model` and `endless`, as in `Knob`.
    """
    metadata = {"label": label, "options": tuple(options), **more}
    if help:
        metadata["help"] = help
    return field(default=default, metadata=metadata)


def server_model_knob() -> Any:
    """The field `server_model` of the methods whose server distils a network of its own."""
    return knob("auto", "Server's model", model=True)


def client_weights_knob(symbol: str) -> Any:
    """The field `weights` of the methods that average clients by sample counts, or all the same."""
    return knob("samples", "Weights", symbol=symbol, options=("samples", "uniform"))


NEEDS = {
    "public": "unlabelled public {kind}",
    "one architecture": "the same architecture at every client",
    "images": "images, not {kind}",
}

# The groups in which lists show the methods, in this order. A method that names none stands under ONE_SHOT or ROUNDS,
# as its `rounds` says.
ONE_SHOT = "One shot"
ROUNDS = "Many rounds"
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
    """What the tables say about a method.

    `needs`: keys of NEEDS. `traffic`: bytes of one client, down + up, as a formula for readers. `group`: one of GROUPS.
    `titles`: {"knob=value": the title with that value}; see `label_of`. `sends`: what a client sends ("": nothing),
    `back`: what it then gets back; both in a few words, for `plots.journey`. `forgets`: how the server takes a client
    out of a finished model, exactly and without training anything again ("": it cannot), with the classroom's settings.
    """

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
    forgets: str = ""


@dataclass(frozen=True)
class Method:
    """Base of the methods: subclasses are frozen dataclasses whose fields are made by `knob`."""

    info: ClassVar[Info]
    report: ClassVar[type[Report]] = Report  # what its runs leave behind for pictures and lessons
    # Whether it begins with `ctx.local_training()`, whose result all such methods share.
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
        ctx.server_architecture(getattr(self, "server_model", "auto"))  # refuses an unfit one
        missing = [need for need in sorted(self.info.needs) if not ctx.has(need)]
        if missing:
            needs = " and ".join(NEEDS[need] for need in missing).format(kind=ctx.kind)
            if missing != ["images"]:
                needs += ", which this setting does not have"
            remedy = "choose another method or data set"
            if "public" in missing:
                remedy = "set public=0.1 or another data set"
            raise UsageError(f"{self.info.title} needs {needs}; {remedy}.")
        self.refuse(ctx)

    def refuse(self, ctx: Context) -> None:
        """Raise UsageError where these values of the knobs do not fit the federation; the end of `validate`."""

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """The matrices that grow with the square of a width, as many as are held at once, for `check_memory`."""
        return []

    def local_passes(self, recipe: Recipe, sizes: Sequence[float]) -> float:
        """How often a client trains on its own data in a whole run, in passes over it: the mean over clients.

        `sizes` `[M]`: samples that the clients train on. Passes that only measure are not counted, nor are steps on
        public or synthetic samples.
        """
        return float(recipe.epochs)

    def bytes_sent(self, sizes: Sizes) -> Traffic:
        """What travels in a run, of all clients and both ways, known before it: by default an estimate, one model down
        to each client and one up. Nobody is taken to be absent or poisoned."""
        return sizes.one_shot.about

    def check_poison(self, ctx: Context) -> None:
        """Raise UsageError if clients are poisoned in a way that does not apply to this method's clients."""
        title = self.info.title
        count = ctx.poison.count
        if ctx.poison.changes_models and not self.sends_models:
            raise UsageError(
                f"Clients of {title} send no model to poison; set poison to labels:{count}."
            )
        if ctx.poison.changes_answers and not self.asks_clients:
            raise UsageError(
                f"{title} asks no client when it predicts, so none can lie;"
                f" set poison to labels:{count}."
            )
        if ctx.poison.changes_answers and count >= ctx.clients_count:
            raise UsageError(
                f"poison is lie:{count}, but at least one of the {ctx.clients_count} clients"
                " must be honest."
            )

    @property
    def leaks(self) -> str:
        """What leaks with these settings; `info.leaks` says it for all of them."""
        return self.info.leaks

    @classmethod
    def fields(cls) -> list[Knob]:
        """The hyper-parameters, in the order of the dataclass; helps that are not beside them are in `knobs.toml`."""
        tables = read_toml("methods/knobs.toml")
        helps = ChainMap(*(tables.get(base.__name__, {}) for base in cls.__mro__))
        knobs = []
        for f in fields(cls):
            options = {"help": helps.get(f.name, ""), **f.metadata}
            knobs.append(Knob(f.name, f.default, **options))
        return knobs

    @classmethod
    def configure(cls, *, convolutions: bool = False, **given: Any) -> Method:
        """The method with its classroom values, except for those in `given` (checked against their knobs).

        `convolutions`: whether the clients' networks have convolutions (see `convolutional`); a network that is set for
        the server counts as well.
        """
        knobs = {k.name: k for k in cls.fields()}
        values = {k.name: k.default for k in knobs.values()}
        checked = {}
        for name, value in given.items():
            choose(f"setting of {cls.info.name}", name, knobs)
            checked[name] = knobs[name].check(cls.info.name, value)
            if knobs[name].model and checked[name] != "auto":
                model = checked[name].partition(":")[0]
                convolutions = convolutions or MODELS[model].needs != ""
        if convolutions:
            values |= cls.convolutional
        return cls(**values | checked)


METHODS: dict[str, type[Method]] = {}


def label_of(method: str, settings: Mapping[str, Any] | None = None, usual: str = "") -> str:
    """What runs of a method are called in pictures and tables: its title, or the one that the value of a knob gives it.

    `settings`: what was set, knobs with or without "METHOD." before them. `usual`: in place of the method's own title.
    """
    if method not in METHODS:
        return usual or method
    cls = METHODS[method]
    settings = settings or {}
    for condition, title in cls.info.titles.items():
        name, _, title_value = condition.partition("=")
        value = settings.get(name, getattr(cls, name))
        value = settings.get(f"{method}.{name}", value)
        if str(value) == title_value:
            return title
    return usual or cls.info.title


def shorten_title(title: str) -> str:
    """A title for narrow places.

    >>> [shorten_title(title) for title in ("FedAvg, one round", "FedENS: mean of logits", "fens (rounds = 10)")]
    ['FedAvg', 'FedENS', 'fens']
    >>> shorten_title("mean of probabilities")
    'mean of prob.'
    """
    return re.sub(r" \(.*|, (one|run) .*|: mean .*", "", title).replace("probabilities", "prob.")


def register(name: str, **info: Any):
    """Class decorator: make the class a frozen dataclass of its knobs, and put it into METHODS under `name`.

    `info`: the fields of `Info`, of which `title` and `paper` must be given; `help` is the first line of the docstring
    unless it is given. UsageError if `name` is a method of the package itself and the class is not from the package.
    """

    def add_to_methods(cls: type[Method]) -> type[Method]:
        taken = METHODS.get(name)
        if taken is not None and _is_in_package(taken) and not _is_in_package(cls):
            raise UsageError(
                f"The method name {name!r} is taken by {taken.info.title}; choose another one."
            )
        cls.info = _make_info(name, cls, info)
        if "__dataclass_fields__" not in vars(cls):
            cls = dataclass(frozen=True)(cls)
        METHODS[name] = cls
        return cls

    return add_to_methods


def _is_in_package(cls: type[Method]) -> bool:
    package = __name__.partition(".")[0]
    return cls.__module__.startswith(package + ".")


def _make_info(name: str, cls: type[Method], given: Mapping[str, Any]) -> Info:
    """The `Info` of a class that is registered with the fields `given`."""
    info = dict(given)
    help = info.get("help") or (cls.__doc__ or "").strip().splitlines()[0]
    for condition, title in info.get("titles", {}).items():
        help += f" {condition}: {title}."
    group = info.get("group")
    if not group:
        group = ONE_SHOT if info.get("rounds", "one-shot") == "one-shot" else ROUNDS
    needs = frozenset(info.get("needs", ()))
    assert needs <= set(NEEDS), needs
    info |= {"help": help, "group": choose("group", group, GROUPS), "needs": needs}
    return Info(name, **info)


def group_methods(methods: Iterable[str]) -> dict[str, list[str]]:
    """{group: those of `methods` in it}, in the order of GROUPS and of METHODS; empty groups are left out."""
    methods = set(methods)
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, cls in METHODS.items():
        if name in methods:
            groups[cls.info.group].append(name)
    return {group: names for group, names in groups.items() if names}


def weighted_mean(
    states: Iterable[Mapping[str, Tensor]], weights: Iterable[float]
) -> dict[str, Tensor]:
    """Σ_k w_k θ_k over state dicts, weights normalised to sum to 1 (FedAvg's average)."""
    states = list(states)
    weights = torch.tensor(list(weights), dtype=torch.float64)
    shares = (weights / weights.sum()).tolist()
    mean = {}
    for name in states[0]:
        mean[name] = sum(share * state[name] for share, state in zip(shares, states, strict=True))
    return mean
