"""One experiment's settings: checked in one place, completed with the set-up's, and turned into content keys.

`Settings` is what a person asks for; `Plan` is what that means for one method on one data set: architectures, recipe,
device, hyper-parameters. What a person gives wins over what the set-up (`preset`) says. A key is the SHA-256 of
everything that decides a result, code version included.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import data
from ..data import Dataset, Description, Federation
from ..errors import choose, demand, number, parsed, whole
from ..methods import METHODS, Method, label_of
from ..methods.poison import Poison
from ..models import MODELS, default_model, parse_models
from ..models.build import check_shape
from ..training import BACKENDS, Recipe
from .code_version import core_code, foreign_code, run_code, torch_version
from .seen import dealt, seen, seen_description
from .setups import CLASSROOM, SETUPS, Setup, values

ALPHA_RANGE = (1e-3, 1e3)
HOLDOUT_FOR = ("all", "needed")
ALLOWED: Mapping[str, Iterable[str]] = {
    "preset": SETUPS, "partition": data.PARTITIONS, "backend": BACKENDS, "init": ("same", "different"),
    "cue": data.CUES, "holdout_for": HOLDOUT_FOR, "repair": data.REPAIRS,
}  # fmt: skip
# Values with which a partition is as ever.
UNCHANGED = {
    "size_sigma": 0,
    "share": 1,
    "minimum": 0,
    "repair": "move",
    "absent": "",
    "unseen": "",
}
FEATURES = (
    "features"  # of the methods of frozen features a knob; of all others what their networks read
)
RECIPE_FIELDS = tuple(f.name for f in dataclasses.fields(Recipe))


def classroom_recipe(samples: int, convolutional: bool = False) -> Recipe:
    """Seconds on two cores: 40 epochs of the bundled digits, fewer (10 at least) on larger sets. Chosen on a validation
    part of the digits' training images (`papers/tuning`), never on test images. Convolutions
    take a smaller step: at 0.05 the 5-layer CNN dies (10 % on 28x28 letters drawn for validation; 96 % at 0.02)."""
    return Recipe(
        epochs=max(10, min(40, round(100_000 / max(samples, 1)))),
        lr=0.02 if convolutional else 0.05,
    )


def classroom_epochs(dataset: str, samples: int) -> int:
    """Local epochs of the classroom on that data set, of which the clients have so many training samples."""
    there = SETUPS[CLASSROOM].at(dataset, Settings.alpha, data.describe(dataset).input_shape)
    return dataclasses.replace(
        classroom_recipe(samples), **values(there.lines(RECIPE_FIELDS))
    ).epochs


@dataclass(frozen=True)
class Settings:
    """What a person chooses.

    `spurious`: clients (ids joined by commas) whose training images get a `cue` of strength `tint` that is tied to the
    label, a background tint or a small shape. `public`: where unlabelled public samples come from (`data/public.py`).
    `transform`: what is done to images before a network reads them (`data/transform.py`); `features=lite0` means
    `transform=lite0` for methods that have no such knob. `holdout`: share of its
    samples that each client keeps out of local training; `holdout_for`: the clients of every method do ("all", so that
    all methods start from the same models), or of those methods alone that are trained on it ("needed"). `poison`:
    clients that harm the others, such as "labels:2" (`methods/poison.py`). `absent`: clients that train and never
    upload, `unseen`: clients that take no part, whose samples are one more test set: how many, or which; these and
    `size_sigma`, `share`, `minimum` (0: 10, or half the mean size), `repair`, `moves`: see `data.federate`. `overrides`
    holds recipe fields (`epochs`, …) and method fields, plain (`rounds`) or qualified (`fens.rounds`). A wrong value
    raises UsageError from `check()`."""

    dataset: str = "digits"
    alpha: float = 0.1
    clients: int = 10
    seed: int = 0
    preset: str = "classroom"
    partition: str = "dirichlet"
    classes_per_client: int = 2
    spurious: str = ""
    cue: str = "tint"
    tint: float = 0.8
    public: str | float = "own"
    transform: str = "none"
    model: str = "auto"
    holdout: float = 0.1
    holdout_for: str = "all"
    init: str = "same"
    poison: str = "none"
    device: str = "auto"
    backend: str = "auto"
    size_sigma: float = 0.0
    share: float = 1.0
    minimum: int = 0
    repair: str = "move"
    absent: Any = ""
    unseen: Any = ""
    moves: str = ""
    overrides: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def make(cls, **values: Any) -> Settings:
        """Settings from keyword arguments, the others as the set-up has them; names that are not fields here become
        overrides. `dataset` may also be a Dataset, arrays or a Federation (see `data.to_plain_settings`); of data that
        name their clients the set-up deals none out."""
        values, own = data.to_plain_settings(values), setting_names()
        rest = {k: v for k, v in values.items() if k not in own}
        unset = {k for k in ("alpha", "clients", "partition") if values.get(k) is None}
        mine = {k: v for k, v in values.items() if k in own - unset}
        declared = of_setup(mine)
        name = {"dataset": cls.dataset, **declared, **mine}["dataset"]
        dealing = (
            "size_sigma",
            "minimum",
            "repair",
        )  # as good as not given where they change nothing
        given = {k: parsed(mine[k]) for k in ("alpha", "clients", *dealing) if k in mine}
        given = {k: v for k, v in given.items() if v != UNCHANGED.get(k)}
        partition = data.choose_partition(
            mine.get("partition"), name, data.describe(name).n_clients, given
        )
        if partition == "natural":
            declared = {
                k: v for k, v in declared.items() if k not in ("alpha", "clients", *dealing)
            }
        elif "partition" not in mine:
            partition = declared.get("partition", partition)
        mine["partition"] = partition
        return cls(**{**declared, **mine}, overrides=tuple(sorted(rest.items()))).check()

    def check(self) -> Settings:
        alpha = number(
            "alpha", parsed(self.alpha), *ALPHA_RANGE, hint="smaller alpha means more label skew"
        )
        for name, allowed in ALLOWED.items():
            choose(name, getattr(self, name), allowed)
        holdout = number(
            "holdout", parsed(self.holdout), 0, 0.9, hint="it is the share kept from local training"
        )
        about = data.describe(self.dataset)
        public = data.check_public(self.public, about)
        about = data.describe_with_public(about, public)
        natural = self.partition == "natural"
        if self.partition == "fonts":
            wishes = {
                "minimum": parsed(self.minimum) or None,
                "repair": None if self.repair == "move" else self.repair,
            }
            data.check_fonts(self.dataset, about.n_fonts, wishes)
        share = number(
            "share", parsed(self.share), 0, 1, open_low=True, hint="1 uses all training samples"
        )
        used = max(1, round(share * about.n_train))
        clients = about.n_clients if natural else whole("clients", parsed(self.clients), 1)
        few = f"clients is {clients}, but {self.dataset} has only {used} training samples and each client needs one"
        demand(natural or clients <= used, f"{few}; choose at most {used}.")
        hint = f"{clients} clients share {used} training samples, and 0 leaves the choice to the package"
        minimum = whole(
            "minimum", parsed(self.minimum), 0, max(1, used // max(1, clients)), hint=hint
        )
        seed = whole("seed", parsed(self.seed), 0)
        edits = data.Edits.parse(self.moves).fix_seed(seed)
        count = edits.check(clients, about.classes) if edits.changes else clients
        sigma = number("size_sigma", parsed(self.size_sigma), 0, 10, hint="0 is no lognormal sizes")
        sizes = f"size_sigma is {sigma:g}, but partition {self.partition!r} has no lognormal sizes to set"
        advice = "use dirichlet or client_dirichlet, or partition='quantity' with alpha = 1/sigma²"
        demand(sigma == 0 or self.partition in data.SIZED, f"{sizes}; {advice}.")
        named = [parsed(part) for part in str(self.spurious).split(",") if part.strip()]
        hint = "give client ids joined by commas"
        marked = sorted({whole("spurious", client, 0, count - 1, hint=hint) for client in named})
        names = (
            data.load(self.dataset).client_names if natural and (self.absent or self.unseen) else ()
        )
        gone = [
            data.parse_clients(what, getattr(self, what), count, names)
            for what in ("absent", "unseen")
        ]
        shared = natural and gone[1] and isinstance(public, float) and public > 0
        advice = "leave public out, or set partition='dirichlet'"
        demand(
            not shared,
            f"public={public} takes samples of every client, the unseen ones, too; {advice}.",
        )
        return dataclasses.replace(
            self,
            spurious=",".join(map(str, marked)),
            tint=number("tint", parsed(self.tint), 0, 1),
            alpha=alpha,
            clients=clients,
            public=public,
            transform=data.check_transform(self.transform, about.input_shape),
            seed=seed,
            classes_per_client=whole("classes_per_client", parsed(self.classes_per_client), 1),
            holdout=holdout,
            share=share,
            minimum=minimum,
            size_sigma=sigma,
            poison=str(Poison.read(self.poison, len(data.list_present_clients(count, *gone)))),
            absent=data.format_clients(gone[0]),
            unseen=data.format_clients(gone[1]),
            moves=str(edits),
            device=resolve_device(self.device),
        )

    def federation_options(self) -> dict[str, Any]:
        """Keyword arguments of `federate`, those that change nothing left out."""
        options: dict[str, Any] = {"partition": self.partition, "seed": self.seed}
        if self.partition != "natural":
            options |= {"alpha": self.alpha, "clients": self.clients}
        options |= {
            name: getattr(self, name)
            for name, none in UNCHANGED.items()
            if getattr(self, name) != none
        }
        if self.moves:
            edits = self.edits.without_names()
            if edits.changes or edits.seed not in (None, self.seed):
                options["moves"] = str(edits)
        if self.partition == "classes":
            options["classes_per_client"] = self.classes_per_client
        if self.spurious:
            options |= {
                "spurious": tuple(int(k) for k in self.spurious.split(",")),
                "tint": self.tint,
            }
            options |= {} if self.cue == "tint" else {"cue": self.cue}
        return options

    @property
    def edits(self) -> data.Edits:
        """What was changed by hand of what the partition deals out."""
        return data.Edits.parse(self.moves)

    @property
    def count(self) -> int:
        """How many clients there are: those that are dealt to, and doubles."""
        return self.clients + len(self.edits.doubles) if self.moves else self.clients

    @property
    def gone(self) -> list[tuple[int, ...]]:
        """The clients that are absent, and those that are unseen."""
        return [
            data.parse_clients(what, getattr(self, what), self.count)
            for what in ("absent", "unseen")
        ]

    @property
    def members(self) -> tuple[int, ...]:
        """The clients that take part."""
        return data.list_present_clients(self.count, *self.gone)

    def federation(self) -> Federation:
        """The federation that these settings mean: the data set, dealt out."""
        return dealt(**self.dealing())

    def dealing(self) -> dict[str, Any]:
        """All that the federation depends on: keyword arguments of `dealt`."""
        return {
            "dataset": self.dataset,
            "public": self.public,
            "body": self.seen,
            **self.federation_options(),
        }

    def data(self) -> Dataset:
        """The data set that these settings mean, its public samples as `public` says."""
        images = data.with_public(data.load(self.dataset), self.public)
        return seen(images) if self.seen else images

    @property
    def seen(self) -> bool:
        """Whether networks read what a frozen body makes of the images."""
        return self.transform == data.SEEN

    def describe(self) -> Description:
        """What can be said of it before it is loaded."""
        about = data.describe_with_public(data.describe(self.dataset), self.public)
        return seen_description(about) if self.seen else about

    def keywords(self) -> dict[str, Any]:
        """Keyword arguments that `make` turns into these settings, such as `job` takes."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return values | dict(values.pop("overrides"))


def of_setup(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the set-up declares for the data and the α that are `given`, or its own; the model is left to
    each method's plan."""
    setup = SETUPS[choose("preset", given.get("preset", CLASSROOM), SETUPS)]
    general = {"dataset": Settings.dataset, "alpha": Settings.alpha, **values(setup.block.shared)}
    dataset = given.get("dataset", general["dataset"])
    shape = data.describe(dataset).input_shape
    there = setup.at(dataset, parsed(given.get("alpha", general["alpha"])), shape)
    images = {"transform"} if len(shape) != 3 else set()
    return values(there.lines(tuple(setting_names() - {"model"} - images)))


def resolve_device(device: str) -> str:
    """`auto` becomes `cuda` where there is a usable GPU, else `cpu`; a named device must be there."""
    name, _, index = str(device).partition(":")
    choose("device", name, ("auto", "cpu", "cuda"))
    if name == "cpu":
        return "cpu"
    import torch

    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return "cuda" if there else "cpu"
    missing = (
        f"Device {device!r} is not there: PyTorch finds {there} CUDA device(s) on this machine"
    )
    demand(
        (index or "0").isdigit() and int(index or 0) < there,
        f"{missing}; use device='auto' or 'cpu'.",
    )
    return str(device)


@dataclass(frozen=True)
class Plan:
    """`settings` made concrete for one method."""

    settings: Settings
    method: Method
    architectures: tuple[
        tuple, ...
    ]  # (name, input_shape, classes, width), one a client; of the absent ones at the end
    recipe: Recipe
    digest: str  # of the data set

    @property
    def name(self) -> str:
        return self.method.info.name

    @property
    def label(self) -> str:
        """What its runs are called in pictures and tables."""
        return label_of(self.name, vars(self.method))

    @property
    def model(self) -> str:
        """The clients' model as it was asked for; for \"auto\" the one that this means."""
        return self.settings.model if self.settings.model != "auto" else self.architectures[0][0]

    @property
    def holdout(self) -> float:
        """Share of its samples that each client holds out of local training in this run."""
        asked = self.settings.holdout_for == "all" or self.method.holds_out
        return self.settings.holdout if asked else 0.0

    @property
    def scale(self) -> str:
        """What every network's first layer does to images."""
        return data.find_scale(self.settings.transform)

    def local_passes(self, samples: int) -> float:
        """Passes over its own data that a client trains in the whole run, the mean over clients; `samples`: of the
        training set. Methods can so be compared at equal local work."""
        each = samples * (1 - self.holdout) / self.settings.clients
        return self.method.local_passes(self.recipe, [each] * len(self.settings.members))

    @property
    def clients_lie(self) -> bool:
        """Whether poisoned clients train and send honestly, and lie when they are asked for predictions."""
        return self.settings.poison.partition(":")[0] == "lie"

    def clients_key(self) -> str:
        """Key of the trained clients: everything that local training depends on."""
        s = self.settings
        asked = {"holdout": self.holdout, "init": s.init, "device": s.device, "backend": s.backend}
        asked |= {"scale": self.scale} if self.scale != "none" else {}
        if s.poison != "none" and not self.clients_lie:
            asked["poison"] = s.poison
        made = {
            "data": self.digest,
            "architectures": self.architectures,
            "recipe": dataclasses.asdict(self.recipe),
        }
        code = {"torch": torch_version(), "code": core_code()}
        code |= foreign_code({name: MODELS[name].layout for name, *_ in self.architectures})
        return content_key({**asked, **s.federation_options(), **made, **code})

    def run_key(self) -> str:
        """Key of the whole run."""
        method = {"name": self.name, **dataclasses.asdict(self.method)}
        method |= foreign_code(
            {name: f for name, f in vars(type(self.method)).items() if callable(f)}
        )
        parts = {"clients": self.clients_key(), "method": method, "preset": self.settings.preset}
        if self.clients_lie:
            parts["poison"] = self.settings.poison
        return content_key({**parts, "code": run_code(type(self.method))})  # type: ignore[arg-type]


def plans_for(settings: Settings, methods: Sequence[str]) -> list[Plan]:
    """A Plan for each method, in order. An override that no method (and no recipe) knows is a UsageError."""
    for name in methods:
        choose("method", name, METHODS)
    demand(methods, f"No method was chosen; choose at least one of: {', '.join(METHODS)}.")
    overrides = dict(settings.overrides)
    known = {
        f"{name}.{knob}"
        for name in methods
        for knob in (FEATURES, *(k.name for k in METHODS[name].fields()))
    }
    short = {name.split(".")[1] for name in known} | set(RECIPE_FIELDS)
    for key in overrides:
        choose(
            "setting",
            key,
            [key] if key in known | short else sorted(short | known | setting_names()),
        )
    return [_plan_one(settings, METHODS[name], overrides) for name in methods]


def setting_names() -> set[str]:
    return {f.name for f in dataclasses.fields(Settings)} - {"overrides"}


def _plan_one(settings: Settings, cls: type[Method], overrides: Mapping[str, Any]) -> Plan:
    own = {k.name for k in cls.fields()}
    asked = overrides.get(f"{cls.info.name}.{FEATURES}", overrides.get(FEATURES))
    if asked is not None and FEATURES not in own:
        only = f"features is {asked!r}, but what a network of {cls.info.title} reads is pixels or {data.SEEN}"
        demand(
            asked in ("pixels", data.SEEN),
            f"{only}; choose one of these, or afl, gauss, fedpft or deepafl.",
        )
        settings = dataclasses.replace(
            settings, transform=settings.transform if asked == "pixels" else asked
        ).check()
    about: Any = settings.describe()
    # A plain name that the recipe has too (`epochs`) means the recipe; `dense.epochs` means the method's own.
    given = {k: v for k, v in overrides.items() if k in own and k not in RECIPE_FIELDS}
    qualified = {
        k.partition(".")[2]: v for k, v in overrides.items() if k.startswith(cls.info.name + ".")
    }
    given |= {k: v for k, v in qualified.items() if k != FEATURES or k in own}
    setup = SETUPS[settings.preset].at(settings.dataset, settings.alpha, about.input_shape)
    dealt = architectures(model_for(settings, setup, cls, about), settings.count, about)
    networks = tuple(dealt[k] for k in (*settings.members, *settings.gone[0]))
    convolutions = any(MODELS[name].needs for name, *_ in networks)
    knobs = values(setup.lines(tuple(own), cls.info.name))
    method = cls.configure(convolutions=convolutions, **{**knobs, **given})
    recipe = shared_recipe(settings, setup, about, convolutions)
    fields = [
        name for name in RECIPE_FIELDS if name not in own
    ]  # a method's own `epochs` are no local ones
    changes = {
        k: v for k, v in values(setup.lines(fields, cls.info.name)).items() if k not in overrides
    }
    return Plan(settings, method, networks, dataclasses.replace(recipe, **changes), about.digest)


def shared_recipe(settings: Settings, setup: Setup, about: Any, convolutions: bool) -> Recipe:
    """The clients' recipe for all methods of the set-up, with what the person changed."""
    usual = classroom_recipe(about.n_train, convolutions) if setup.name == CLASSROOM else Recipe()
    recipe = dataclasses.replace(usual, **values(setup.lines(RECIPE_FIELDS)))
    augmentation = data.find_augmentation(settings.transform)
    changes: dict[str, Any] = {"augmentation": augmentation} if augmentation != "none" else {}
    changes |= {k: parsed(v) for k, v in settings.overrides if k in RECIPE_FIELDS}
    return dataclasses.replace(recipe, **changes)


def model_for(settings: Settings, setup: Setup, cls: type[Method], about: Any) -> str:
    """The clients' model: the one that was asked for, else the set-up's. Where that is a mixture, `one_model` is for
    methods that need one architecture. Other samples get what is usual for them, whatever the paper has for images."""
    if settings.model != "auto":
        return settings.model
    lines = setup.block.shared
    if "model" not in lines or len(about.input_shape) != 3:
        return default_model(about.input_shape)
    one = "one_model" in lines and "one architecture" in cls.info.needs
    return lines["one_model" if one else "model"].value


def architectures(model: str, clients: int, about: Any) -> tuple[tuple, ...]:
    """`name`, `name:width`, or several of them joined by commas and dealt to the clients in turn."""
    kinds = []
    for name, width in parse_models(model, about.input_shape):
        kinds.append((name, check_shape(name, about.input_shape), about.classes, width))
    return tuple(kinds[k % len(kinds)] for k in range(clients))


def content_key(content: Mapping[str, Any]) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
