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
from ..errors import UsageError, check_number, check_whole_number, choose, parse_number
from ..methods import METHODS, Method, label_of
from ..methods.poison import Poison
from ..models import MODELS, choose_default_model, parse_models
from ..models.build import check_shape
from ..training import BACKENDS, Recipe
from .code_version import (
    digest_core_code,
    digest_foreign_functions,
    digest_method_code,
    read_torch_version,
)
from .frozen_features import describe_features, make_federation, replace_images
from .setups import CLASSROOM, SETUPS, Setup, drop_sources

ALPHA_RANGE = (1e-3, 1e3)
HOLDOUT_FOR = ("all", "needed")
ALLOWED: Mapping[str, Iterable[str]] = {
    "preset": SETUPS,
    "partition": data.PARTITIONS,
    "backend": BACKENDS,
    "init": ("same", "different"),
    "cue": data.CUES,
    "holdout_for": HOLDOUT_FOR,
    "repair": data.REPAIRS,
}
# Settings with which a partition is as if they were not given.
UNCHANGED = {
    "size_sigma": 0,
    "share": 1,
    "minimum": 0,
    "repair": "move",
    "absent": "",
    "unseen": "",
}
# How a partition is drawn; data that name their clients have none of it.
DRAWING = ("alpha", "clients", "size_sigma", "minimum", "repair")
# The name of a knob of methods with frozen features; of all other methods it says what their networks read.
FEATURES = "features"
RECIPE_FIELDS = tuple(field.name for field in dataclasses.fields(Recipe))


def make_classroom_recipe(samples: int, convolutional: bool = False) -> Recipe:
    """Seconds on two cores: 40 epochs of the bundled digits, fewer (10 at least) on larger sets. Chosen on a validation
    part of the digits' training images (`papers/tuning`), never on test images. Convolutions take a smaller step, at
    which the 5-layer CNN learns, too."""
    epochs = round(100_000 / max(samples, 1))
    return Recipe(epochs=max(10, min(40, epochs)), lr=0.02 if convolutional else 0.05)


def choose_classroom_epochs(dataset: str, samples: int) -> int:
    """Local epochs of the classroom on that data set, of which the clients have so many training samples."""
    shape = data.describe(dataset).input_shape
    setup = SETUPS[CLASSROOM].apply_rows(dataset, Settings.alpha, shape)
    declared = drop_sources(setup.select_lines(RECIPE_FIELDS))
    return dataclasses.replace(make_classroom_recipe(samples), **declared).epochs


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
        overrides. `dataset` may also be a Dataset or arrays, and a Federation is given as `federation` (see
        `data.to_plain_settings`); where the data name their clients, nothing of the set-up's partition is taken."""
        values = data.to_plain_settings(values)
        setting_names = list_setting_names()
        overrides = {}
        chosen = {}
        for name, value in values.items():
            if name not in setting_names:
                overrides[name] = value
            elif value is not None or name not in ("alpha", "clients", "partition"):
                chosen[name] = value
        preset = find_preset_values(chosen)
        dataset = {"dataset": cls.dataset, **preset, **chosen}["dataset"]
        changes_of_partition = {}
        for name in DRAWING:
            if name in chosen:
                value = parse_number(chosen[name])
                if value != UNCHANGED.get(name):
                    changes_of_partition[name] = value
        partition = data.choose_partition(
            chosen.get("partition"),
            dataset,
            data.describe(dataset).n_clients,
            changes_of_partition,
        )
        if partition == "natural":
            preset = {name: value for name, value in preset.items() if name not in DRAWING}
        elif "partition" not in chosen:
            partition = preset.get("partition", partition)
        chosen["partition"] = partition
        fields = {**preset, **chosen}
        return cls(**fields, overrides=tuple(sorted(overrides.items()))).check()

    def check(self) -> Settings:
        """These settings, every value checked and in its one form. UsageError for a wrong one."""
        alpha = check_number(
            "alpha",
            parse_number(self.alpha),
            *ALPHA_RANGE,
            hint="smaller alpha means more label skew",
        )
        for name, allowed in ALLOWED.items():
            choose(name, getattr(self, name), allowed)
        holdout = check_number(
            "holdout",
            parse_number(self.holdout),
            0,
            0.9,
            hint="it is the share kept from local training",
        )
        about = data.describe(self.dataset)
        public = data.check_public_choice(self.public, about)
        about = data.describe_with_public_part(about, public)
        is_natural = self.partition == "natural"
        if self.partition == "fonts":
            wishes = {
                "minimum": parse_number(self.minimum) or None,
                "repair": None if self.repair == "move" else self.repair,
            }
            data.check_font_partition(self.dataset, about.n_fonts, wishes)
        share = check_number(
            "share",
            parse_number(self.share),
            0,
            1,
            open_low=True,
            hint="1 uses all training samples",
        )
        samples = max(1, round(share * about.n_train))
        clients = (
            about.n_clients
            if is_natural
            else check_whole_number("clients", parse_number(self.clients), 1)
        )
        if not is_natural and clients > samples:
            raise UsageError(
                f"clients is {clients}, but {self.dataset} has only {samples} training samples and "
                f"each client needs one; choose at most {samples}."
            )
        minimum = check_whole_number(
            "minimum",
            parse_number(self.minimum),
            0,
            max(1, samples // max(1, clients)),
            hint=f"{clients} clients share {samples} training samples, and 0 leaves the choice to the package",
        )
        seed = check_whole_number("seed", parse_number(self.seed), 0)
        edits = data.Edits.parse(self.moves).fix_seed(seed)
        count = edits.check(clients, about.classes) if edits.changes else clients
        size_sigma = check_number(
            "size_sigma", parse_number(self.size_sigma), 0, 10, hint="0 is no lognormal sizes"
        )
        if size_sigma != 0 and self.partition not in data.SIZED:
            raise UsageError(
                f"size_sigma is {size_sigma:g}, but partition {self.partition!r} has no lognormal "
                "sizes to set; use dirichlet or client_dirichlet, or partition='quantity' with "
                "alpha = 1/sigma²."
            )
        spurious = self._read_spurious(count)
        absent, unseen = self._read_left_out(count)
        has_public_share = isinstance(public, float) and public > 0
        if is_natural and unseen and has_public_share:
            raise UsageError(
                f"public={public} takes samples of every client, the unseen ones, too; "
                "leave public out, or set partition='dirichlet'."
            )
        return dataclasses.replace(
            self,
            spurious=",".join(str(client) for client in spurious),
            tint=check_number("tint", parse_number(self.tint), 0, 1),
            alpha=alpha,
            clients=clients,
            public=public,
            transform=data.check_transform(self.transform, about.input_shape),
            seed=seed,
            classes_per_client=check_whole_number(
                "classes_per_client", parse_number(self.classes_per_client), 1
            ),
            holdout=holdout,
            share=share,
            minimum=minimum,
            size_sigma=size_sigma,
            poison=str(
                Poison.parse(self.poison, len(data.list_present_clients(count, absent, unseen)))
            ),
            absent=data.format_clients(absent),
            unseen=data.format_clients(unseen),
            moves=str(edits),
            device=resolve_device(self.device),
        )

    def _read_spurious(self, count: int) -> list[int]:
        """The ids in `spurious`, sorted, of `count` clients."""
        clients = set()
        for part in str(self.spurious).split(","):
            if part.strip():
                hint = "give client ids joined by commas"
                clients.add(
                    check_whole_number("spurious", parse_number(part), 0, count - 1, hint=hint)
                )
        return sorted(clients)

    def _read_left_out(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The clients that `absent` and `unseen` name, of `count` clients."""
        names: Sequence[str] = ()
        if self.partition == "natural" and (self.absent or self.unseen):
            names = data.load(self.dataset).client_names
        absent = data.parse_clients("absent", self.absent, count, names)
        unseen = data.parse_clients("unseen", self.unseen, count, names)
        return absent, unseen

    def make_federation_options(self) -> dict[str, Any]:
        """Keyword arguments of `federate`, those that change nothing left out."""
        options: dict[str, Any] = {"partition": self.partition, "seed": self.seed}
        if self.partition != "natural":
            options |= {"alpha": self.alpha, "clients": self.clients}
        for name, unchanged in UNCHANGED.items():
            if getattr(self, name) != unchanged:
                options[name] = getattr(self, name)
        if self.moves:
            edits = self.edits.without_names()
            if edits.changes or edits.seed not in (None, self.seed):
                options["moves"] = str(edits)
        if self.partition == "classes":
            options["classes_per_client"] = self.classes_per_client
        if self.spurious:
            options["spurious"] = tuple(int(k) for k in self.spurious.split(","))
            options["tint"] = self.tint
            if self.cue != "tint":
                options["cue"] = self.cue
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
    def absent_clients(self) -> tuple[int, ...]:
        """The clients that train and never upload."""
        return data.parse_clients("absent", self.absent, self.count)

    @property
    def unseen_clients(self) -> tuple[int, ...]:
        """The clients that take no part."""
        return data.parse_clients("unseen", self.unseen, self.count)

    @property
    def members(self) -> tuple[int, ...]:
        """The clients that take part."""
        return data.list_present_clients(self.count, self.absent_clients, self.unseen_clients)

    def federation(self) -> Federation:
        """The federation that these settings mean: the data set, divided among the clients."""
        return make_federation(**self.make_federation_arguments())

    def make_federation_arguments(self) -> dict[str, Any]:
        """All that the federation depends on: keyword arguments of `make_federation`."""
        return {
            "dataset": self.dataset,
            "public": self.public,
            "has_body": self.reads_features,
            **self.make_federation_options(),
        }

    def data(self) -> Dataset:
        """The data set that these settings mean, its public samples as `public` says."""
        dataset = data.add_public_part(data.load(self.dataset), self.public)
        return replace_images(dataset) if self.reads_features else dataset

    @property
    def reads_features(self) -> bool:
        """Whether networks read what a frozen body makes of the images."""
        return self.transform == data.SEEN

    def describe(self) -> Description:
        """What can be said of it before it is loaded."""
        about = data.describe_with_public_part(data.describe(self.dataset), self.public)
        return describe_features(about) if self.reads_features else about

    def to_keywords(self) -> dict[str, Any]:
        """Keyword arguments that `make` turns into these settings, such as `job` takes."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        overrides = dict(values.pop("overrides"))
        return values | overrides


def find_preset_values(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the set-up declares for the data set and the α that are `chosen`, or for its own; the model is
    left to each method's plan."""
    setup = SETUPS[choose("preset", chosen.get("preset", CLASSROOM), SETUPS)]
    general = {
        "dataset": Settings.dataset,
        "alpha": Settings.alpha,
        **drop_sources(setup.block.shared),
    }
    dataset = chosen.get("dataset", general["dataset"])
    alpha: Any = parse_number(chosen.get("alpha", general["alpha"]))
    shape = data.describe(dataset).input_shape
    names = list_setting_names() - {"model"}
    if len(shape) != 3:
        names -= {"transform"}  # it is one of images
    return drop_sources(setup.apply_rows(dataset, alpha, shape).select_lines(tuple(names)))


def resolve_device(device: str) -> str:
    """`auto` becomes `cuda` where there is a usable GPU, else `cpu`; a named device must be there."""
    name, _, index = str(device).partition(":")
    choose("device", name, ("auto", "cpu", "cuda"))
    if name == "cpu":
        return "cpu"
    import torch

    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return "cuda" if cards else "cpu"
    number_text = index or "0"
    if not number_text.isdigit() or int(number_text) >= cards:
        raise UsageError(
            f"Device {device!r} is not there: PyTorch finds {cards} CUDA device(s) on this machine; "
            "use device='auto' or 'cpu'."
        )
    return str(device)


@dataclass(frozen=True)
class Plan:
    """`settings` made concrete for one method.

    architectures: (name, input_shape, classes, width), one a client that takes part; then those of the absent ones
    digest: of the data set
    """

    settings: Settings
    method: Method
    architectures: tuple[tuple, ...]
    recipe: Recipe
    digest: str | None

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.info.name

    @property
    def label(self) -> str:
        """What its runs are called in pictures and tables."""
        return label_of(self.name, vars(self.method))

    @property
    def model(self) -> str:
        """The clients' model as it was chosen; for \"auto\" the one that this means."""
        if self.settings.model != "auto":
            return self.settings.model
        return self.architectures[0][0]

    @property
    def holdout(self) -> float:
        """Share of its samples that each client holds out of local training in this run."""
        if self.settings.holdout_for == "all" or self.method.holds_out:
            return self.settings.holdout
        return 0.0

    @property
    def scale(self) -> str:
        """What every network's first layer does to images."""
        return data.parse_scale(self.settings.transform)

    def local_passes(self, samples: int) -> float:
        """Passes over its own data that a client trains in the whole run, the mean over clients; `samples`: of the
        training set. Methods can so be compared at equal local work."""
        mean_samples = samples * (1 - self.holdout) / self.settings.clients
        return self.method.local_passes(self.recipe, [mean_samples] * len(self.settings.members))

    @property
    def clients_lie(self) -> bool:
        """Whether poisoned clients train and send honestly, and lie when they are asked for predictions."""
        return self.settings.poison.partition(":")[0] == "lie"

    def make_clients_key(self) -> str:
        """Key of the trained clients: everything that local training depends on."""
        settings = self.settings
        content: dict[str, Any] = {
            "holdout": self.holdout,
            "init": settings.init,
            "device": settings.device,
            "backend": settings.backend,
            **settings.make_federation_options(),
            "data": self.digest,
            "architectures": self.architectures,
            "recipe": dataclasses.asdict(self.recipe),
            "torch": read_torch_version(),
            "code": digest_core_code(),
        }
        if self.scale != "none":
            content["scale"] = self.scale
        if settings.poison != "none" and not self.clients_lie:
            content["poison"] = settings.poison
        layouts = {name: MODELS[name].layout for name, *_ in self.architectures}
        return make_content_key(content | digest_foreign_functions(layouts))

    def make_run_key(self) -> str:
        """Key of the whole run."""
        cls = type(self.method)
        functions = {name: value for name, value in vars(cls).items() if callable(value)}
        content: dict[str, Any] = {
            "clients": self.make_clients_key(),
            "method": {
                "name": self.name,
                **dataclasses.asdict(self.method),
                **digest_foreign_functions(functions),
            },
            "preset": self.settings.preset,
            "code": digest_method_code(cls),  # type: ignore[arg-type]
        }
        if self.clients_lie:
            content["poison"] = self.settings.poison
        return make_content_key(content)


def make_plans(settings: Settings, methods: Sequence[str]) -> list[Plan]:
    """A Plan for each method, in order. An override that no method (and no recipe) knows is a UsageError."""
    for name in methods:
        choose("method", name, METHODS)
    if not methods:
        raise UsageError(f"No method was chosen; choose at least one of: {', '.join(METHODS)}.")
    overrides = dict(settings.overrides)
    check_overrides(overrides, methods)
    return [make_plan(settings, METHODS[name], overrides) for name in methods]


def check_overrides(overrides: Iterable[str], methods: Sequence[str]) -> None:
    """UsageError for the name of an override that is no field of the recipe, nor a knob of one of these methods."""
    short = set(RECIPE_FIELDS)
    qualified = set()
    for method in methods:
        for knob in (FEATURES, *(knob.name for knob in METHODS[method].fields())):
            short.add(knob)
            qualified.add(f"{method}.{knob}")
    for name in overrides:
        if name not in short | qualified:
            choose("setting", name, sorted(short | qualified | list_setting_names()))


def list_setting_names() -> set[str]:
    """The names of the settings that a run takes, without those of recipes and methods."""
    return {field.name for field in dataclasses.fields(Settings)} - {"overrides"}


def make_plan(settings: Settings, method_class: type[Method], overrides: Mapping[str, Any]) -> Plan:
    """The plan of one method."""
    method_name = method_class.info.name
    knobs = {knob.name for knob in method_class.fields()}
    if FEATURES not in knobs:
        settings = apply_features(settings, method_class, overrides)
    about: Description = settings.describe()
    setup = SETUPS[settings.preset].apply_rows(settings.dataset, settings.alpha, about.input_shape)
    model = choose_model(settings, setup, method_class, about)
    of_all = assign_architectures(model, settings.count, about)
    networks = tuple(of_all[k] for k in (*settings.members, *settings.absent_clients))
    is_convolutional = any(MODELS[name].needs for name, *_ in networks)
    declared = drop_sources(setup.select_lines(tuple(knobs), method_name))
    knob_values = choose_knob_values(method_name, knobs, overrides)
    method = method_class.configure(convolutions=is_convolutional, **{**declared, **knob_values})
    recipe = make_shared_recipe(settings, setup, about, is_convolutional)
    # A method's own `epochs` are no local ones.
    recipe_names = [name for name in RECIPE_FIELDS if name not in knobs]
    declared_recipe = drop_sources(setup.select_lines(recipe_names, method_name))
    changes = {name: value for name, value in declared_recipe.items() if name not in overrides}
    return Plan(settings, method, networks, dataclasses.replace(recipe, **changes), about.digest)


def apply_features(
    settings: Settings, method_class: type[Method], overrides: Mapping[str, Any]
) -> Settings:
    """The settings with what `features` means for a method without such a knob: what its networks read. UsageError for
    features that networks cannot read."""
    features = overrides.get(f"{method_class.info.name}.{FEATURES}", overrides.get(FEATURES))
    if features is None:
        return settings
    if features not in ("pixels", data.SEEN):
        raise UsageError(
            f"features is {features!r}, but what a network of {method_class.info.title} reads is "
            f"pixels or {data.SEEN}; choose one of these, or afl, gauss, fedpft or deepafl."
        )
    transform = settings.transform if features == "pixels" else features
    return dataclasses.replace(settings, transform=transform).check()


def choose_knob_values(
    method: str, knobs: Iterable[str], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """The overrides that are a method's `knobs`, by the knob's name.

    A plain name that the recipe has too (`epochs`) means the recipe; `dense.epochs` means the method's own.
    """
    plain = {}
    qualified = {}
    for name, value in overrides.items():
        owner, dot, knob = name.partition(".")
        if name in knobs and name not in RECIPE_FIELDS:
            plain[name] = value
        elif dot and owner == method and (knob != FEATURES or knob in knobs):
            qualified[knob] = value
    return plain | qualified


def make_shared_recipe(
    settings: Settings, setup: Setup, about: Description, convolutions: bool
) -> Recipe:
    """The clients' recipe for all methods of the set-up, with what the person changed."""
    if setup.name == CLASSROOM:
        recipe = make_classroom_recipe(about.n_train, convolutions)
    else:
        recipe = Recipe()
    changes = drop_sources(setup.select_lines(RECIPE_FIELDS))
    augmentation = data.parse_augmentation(settings.transform)
    if augmentation != "none":
        changes["augmentation"] = augmentation
    for name, value in settings.overrides:
        if name in RECIPE_FIELDS:
            changes[name] = parse_number(value)
    return dataclasses.replace(recipe, **changes)


def choose_model(
    settings: Settings, setup: Setup, method_class: type[Method], about: Description
) -> str:
    """The clients' model: the one that was chosen, else the set-up's. Where that is a mixture, `one_model` is for
    methods that need one architecture. Other samples get what is usual for them, whatever the paper has for images."""
    if settings.model != "auto":
        return settings.model
    lines = setup.block.shared
    if "model" not in lines or len(about.input_shape) != 3:
        return choose_default_model(about.input_shape)
    if "one_model" in lines and "one architecture" in method_class.info.needs:
        return lines["one_model"].value
    return lines["model"].value


def assign_architectures(model: str, clients: int, about: Description) -> tuple[tuple, ...]:
    """The architecture of each client. `model`: `name`, `name:width`, or several of them joined by commas, which go to
    the clients in turn."""
    kinds = []
    for name, width in parse_models(model, about.input_shape):
        kinds.append((name, check_shape(name, about.input_shape), about.classes, width))
    return tuple(kinds[k % len(kinds)] for k in range(clients))


def make_content_key(content: Mapping[str, Any]) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
