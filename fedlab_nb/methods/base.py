"""The contract of a method: a frozen dataclass of hyper-parameters (knobs), and one generator
`run(ctx)` that returns the global model.

A method file reads like its paper's algorithm: client part, link, server part. It yields `Progress`
so that bars, live curves and Stop work everywhere; it never sees a test image. Panels, command-line
options and documentation are made from the knobs (`Knob`) and from the registry's `info`. What a
run yields and returns is in `run_outputs.py`; a method can import the names of both files from
here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor

from ..declared import read_toml
from ..errors import (
    UsageError,
    check_allowed_name,
    check_number,
    check_whole_number,
    parse_if_number,
)
from ..models import MODELS
from ..models.build import check_model_text_names_one
from ..models.state import ModelState
from ..training import Recipe
from ..value_types import MeanPassesPerClient, SettingValue
from .context import Context, Need
from .memory import SquareMatricesInMemory
from .run_outputs import (  # noqa: F401
    ClientsAlone,
    EnsembleModel,
    GlobalModel,
    NetworkModel,
    Progress,
    Report,
    SentenceOnPrivacy,
    Steps,
    report_progress,
)
from .traffic import FederationSizes, RunBytesUpPlusDown

# ---------------------------------------------------------------------------------------------------------------- knobs
# A method's hyper-parameters. Each has a label, a range and a help text, and is checked when it is set.
#
# A knob that several methods share is made by a function, here or in `parts`; a class then says, for example,
# `weights: str = make_client_weights_knob("w_k")`.


KnobValue = bool | int | float | str


@dataclass(frozen=True)
class Knob:
    """One hyper-parameter of a method.

    default: its value in the preset "classroom"
    options: the allowed values; with `model` they are only suggestions
    log:     whether the slider is logarithmic
    model:   whether the value is an architecture: "name", "name:width" or "auto"
    endless: whether "inf" is accepted, too; it means 0, which switches the knob off
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

    def convert_and_check(self, method_name: str, value: KnobValue) -> KnobValue:
        """Convert `value` to the knob's own type.

        Raises UsageError if it is not allowed; the message names the knob and the allowed values.
        """
        name = f"{method_name}.{self.name}"
        if self.model:
            return check_model_text_names_one(cast(str, value))
        if self.options:
            return check_allowed_name(name, value, self.options)
        if isinstance(self.default, bool):
            text = str(value).lower()
            if text in _TRUE:
                return True
            if text in _FALSE:
                return False
            return check_allowed_name(
                name, text, ("true", "false")
            )  # raises the UsageError: text is neither
        if self.endless and parse_if_number(value) == math.inf:
            return 0.0
        if isinstance(self.default, int):
            return check_whole_number(name, parse_if_number(value), self.low, self.high)
        return check_number(name, parse_if_number(value), self.low, self.high)


_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")
KnobField = Any  # a dataclass field that carries a `Knob`; its value has the knob's own type


def knob(
    default: KnobValue,
    label: str,
    help: str = "",
    *,
    options: Iterable[str] = (),
    **more: str | float | bool,
) -> KnobField:
    """Make a dataclass field that has its own label, range and help. Without `help` the text is
    read from `knobs.toml`.

    more: `symbol`, `low`, `high`, `log`, `model` and `endless`, as in `Knob`
    """
    metadata = {"label": label, "options": tuple(options), **more}
    if help:
        metadata["help"] = help
    return field(default=default, metadata=metadata)


def make_server_model_knob() -> KnobField:
    """Make the field `server_model` of the methods whose server distils a network of its own."""
    return knob("auto", "Server's model", model=True)


# Weights of clients in an average: by their numbers of samples, or equal.
ClientWeighting = Literal["samples", "uniform"]


def make_client_weights_knob(papers_symbol: str) -> KnobField:
    """Make the field `weights` of the methods that average clients by sample counts, or equally."""
    return knob("samples", "Weights", symbol=papers_symbol, options=("samples", "uniform"))


NEEDS = {
    "public": "unlabelled public {kind}",
    "one architecture": "the same architecture at every client",
    "images": "images, not {kind}",
}

# The groups in which lists show the methods, in this order. A method without a group of its own is listed under
# ONE_SHOT or ROUNDS, depending on its `rounds`.
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
    """The description of a method for tables.

    needs: keys of NEEDS
    traffic: bytes of one client, down + up, as a formula for readers
    group: one of GROUPS
    titles: {"knob=value": the title with that value}; see `choose_method_label`
    sends: what a client sends, in a few words, for `plots.journey`; "" for nothing
    back: what a client then gets back, in a few words, for `plots.journey`
    forgets: how the server removes a client from a finished model, exactly and without retraining, with the
        classroom settings; "" if it cannot
    """

    name: str
    title: str
    paper: str
    group: str = ""
    rounds: str = "one-shot"
    traffic: str = "2 S_θ"
    needs: frozenset[Need] = frozenset()
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
    report: ClassVar[type[Report]] = Report  # the results of its runs for pictures and lessons
    # Whether it begins with `ctx.local_training()`; all such methods share the trained clients.
    trains_locally: ClassVar[bool] = True
    # Whether its clients send trained models or model updates, which a poisoned client can reverse or scale up.
    sends_models: ClassVar[bool] = True
    # Whether the global model queries the clients when it predicts, so that a poisoned client can lie.
    asks_clients: ClassVar[bool] = False
    # Whether it trains on samples that clients hold out of local training (see `holdout_for` in `studies/settings.py`).
    holds_out: ClassVar[bool] = False
    # {knob: its classroom value for networks with convolutions}, where that differs from the default.
    convolutional: ClassVar[Mapping[str, Any]] = {}

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        raise NotImplementedError

    def validate(self, ctx: Context) -> None:
        """Raise UsageError if this federation lacks something that the method needs. It is called
        before a run.
        """
        # This raises UsageError if the server's network does not fit these samples.
        ctx.server_architecture(getattr(self, "server_model", "auto"))
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
        """Raise UsageError if the values of the knobs do not fit this federation; `validate` calls
        it last.
        """

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """The matrices that are in memory at the same time and grow with the square of a width.

        `check_matrices_fit_in_memory` adds them up before a run.
        """
        return []

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        """Return how often a client trains on all its data in a run, as the mean over clients.

        Passes that only measure do not count, nor do steps on public or synthetic samples.

        client_sample_counts: `[M]`, samples that the clients train on
        """
        return float(recipe.epochs)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        """Compute the bytes of a whole run before it begins: of all clients, in both directions.

        By default this is an estimate: one model down to each client, and one up. It assumes that no client is absent
        or poisoned.
        """
        return sizes.one_shot_bytes.as_estimate

    def check_poison_applies_to_method(self, ctx: Context) -> None:
        """Raise UsageError if clients are poisoned in a way that does not apply to this method's
        clients.
        """
        title = self.info.title
        count = ctx.poison.count
        if ctx.poison.changes_models and not self.sends_models:
            raise UsageError(
                f"Clients of {title} send no model to poison; set poison to labels:{count}."
            )
        if ctx.poison.changes_answers and not self.asks_clients:
            raise UsageError(
                f"{title} asks no client when it predicts, so none can lie; set poison to "
                f"labels:{count}."
            )
        if ctx.poison.changes_answers and count >= ctx.clients_count:
            raise UsageError(
                f"poison is lie:{count}, but at least one of the {ctx.clients_count} clients must "
                "be honest."
            )

    @property
    def leaks(self) -> SentenceOnPrivacy:
        """The private information that leaks with these settings. `info.leaks` covers all settings."""
        return self.info.leaks

    @classmethod
    def fields(cls) -> list[Knob]:
        """Return the hyper-parameters, in the order of the dataclass.

        A help text that a field does not have is read from `knobs.toml`.
        """
        tables = read_toml("methods/knobs.toml")
        helps: dict[str, str] = {}
        for base_class in reversed(cls.__mro__):  # a subclass's texts replace those of its bases
            helps.update(tables.get(base_class.__name__, {}))
        knobs = []
        for knob_field in fields(cls):
            options = {"help": helps.get(knob_field.name, ""), **knob_field.metadata}
            knobs.append(Knob(knob_field.name, knob_field.default, **options))
        return knobs

    @classmethod
    def configure(cls, *, convolutions: bool = False, **given: KnobValue) -> Method:
        """Make the method with its classroom values, except for those in `given`, which are checked
        by their knobs.

        convolutions: whether the clients' networks have convolutions (see `convolutional`); if the server is given a
            network with convolutions, this counts as well
        """
        knobs = {k.name: k for k in cls.fields()}
        values = {k.name: k.default for k in knobs.values()}
        checked = {}
        for name, value in given.items():
            check_allowed_name(f"setting of {cls.info.name}", name, knobs)
            checked[name] = knobs[name].convert_and_check(cls.info.name, value)
            if knobs[name].model and checked[name] != "auto":
                model = str(checked[name]).partition(":")[0]
                convolutions = convolutions or MODELS[model].required_sample_kind != ""
        if convolutions:
            values |= cls.convolutional
        return cls(**values | checked)


METHODS: dict[str, type[Method]] = {}
MethodDecorator = Callable[[type[Method]], type[Method]]
# A field of `Info`.
InfoValue = str | bool | Iterable[str] | Mapping[str, str]


def choose_method_label(
    method_name: str,
    settings: Mapping[str, SettingValue] | None = None,
    other_default_title: str = "",
) -> str:
    """Choose the name of a method's runs in pictures and tables: its title, or the title for a
    value of a knob.

    settings: {knob: its value}, with or without "METHOD." before the name of a knob
    other_default_title: replaces the method's own title
    """
    if method_name not in METHODS:
        return other_default_title or method_name
    cls = METHODS[method_name]
    settings = settings or {}
    for condition, title in cls.info.titles.items():
        name, _, title_value = condition.partition("=")
        value = settings.get(name, getattr(cls, name))
        value = settings.get(f"{method_name}.{name}", value)
        if str(value) == title_value:
            return title
    return other_default_title or cls.info.title


def shorten_method_title(method_title: str) -> str:
    """Shorten a title for narrow places.

    >>> [shorten_method_title(title) for title in ("FedAvg, one round", "FedENS: mean of logits", "fens (rounds = 10)")]
    ['FedAvg', 'FedENS', 'fens']
    >>> shorten_method_title("mean of probabilities")
    'mean of prob.'
    """
    return re.sub(r" \(.*|, (one|run) .*|: mean .*", "", method_title).replace(
        "probabilities", "prob."
    )


def register(name: str, **info: InfoValue) -> MethodDecorator:
    """Class decorator: make the class a frozen dataclass of its knobs, and put it into METHODS
    under `name`.

    `info`: the fields of `Info`, of which `title` and `paper` must be given; `help` is the first paragraph of the
    docstring unless it is given. UsageError if `name` is a method of the package itself and the class is not from the
    package.
    """

    def add_to_methods(cls: type[Method]) -> type[Method]:
        registered = METHODS.get(name)
        if (
            registered is not None
            and _is_class_of_package(registered)
            and not _is_class_of_package(cls)
        ):
            raise UsageError(
                f"The method name {name!r} is taken by {registered.info.title}; choose another one."
            )
        cls.info = _make_info(name, cls, info)
        if "__dataclass_fields__" not in vars(cls):
            cls = dataclass(frozen=True)(cls)
        METHODS[name] = cls
        return cls

    return add_to_methods


def _is_class_of_package(method_class: type[Method]) -> bool:
    package = __name__.partition(".")[0]
    return method_class.__module__.startswith(package + ".")


def _make_info(name: str, cls: type[Method], given_fields: Mapping[str, InfoValue]) -> Info:
    """The `Info` of a class that is registered with the fields `given_fields`."""
    info: dict[str, Any] = dict(given_fields)
    first_paragraph = (cls.__doc__ or "").strip().partition("\n\n")[0]
    help = info.get("help") or " ".join(first_paragraph.split())
    for condition, title in info.get("titles", {}).items():
        help += f" {condition}: {title}."
    group = info.get("group")
    if not group:
        group = ONE_SHOT if info.get("rounds", "one-shot") == "one-shot" else ROUNDS
    needs = frozenset(info.get("needs", ()))
    assert needs <= set(NEEDS), needs
    info |= {"help": help, "group": check_allowed_name("group", group, GROUPS), "needs": needs}
    return Info(name, **info)


MethodNamesByGroup = dict[str, list[str]]  # {group of GROUPS: names of methods}


def group_method_names(method_names: Iterable[str]) -> MethodNamesByGroup:
    """Group `method_names` as {group: their names}, in the order of GROUPS and of METHODS, without empty
    groups.
    """
    method_names = set(method_names)
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, cls in METHODS.items():
        if name in method_names:
            groups[cls.info.group].append(name)
    return {group: names for group, names in groups.items() if names}


def weighted_mean(states: Iterable[Mapping[str, Tensor]], weights: Iterable[float]) -> ModelState:
    """Compute Σ_k w_k θ_k over state dicts, with weights normalised to sum to 1 (FedAvg's average)."""
    states = list(states)
    weights = torch.tensor(list(weights), dtype=torch.float64)
    shares = (weights / weights.sum()).tolist()
    mean = {}
    for name in states[0]:
        mean[name] = sum(share * state[name] for share, state in zip(shares, states, strict=True))
    return mean
