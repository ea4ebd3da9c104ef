"""The settings of an experiment: they are checked here, completed by the set-up's, and turned into
content keys.

`Settings` is what a person has chosen. `MethodRunPlan` has everything that follows for one method on one
data set: architectures, recipe, device, hyper-parameters. A value that a person gives replaces that
of the set-up (`preset`). A key is the SHA-256 of everything on which a result depends, the code
version included.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .. import data
from ..data import Dataset, DatasetDescription, Federation
from ..data.cues import Cue
from ..data.input_types import ClientIndices
from ..data.partition import PartitionName, WayToReachMinimum
from ..data.transform import InputScale
from ..errors import (
    UsageError,
    check_allowed_name,
    check_number,
    check_whole_number,
    parse_if_number,
)
from ..methods import METHODS, Method, choose_method_label
from ..methods.poison import Poison
from ..models import MODELS, choose_default_model_name, parse_models
from ..models.build import check_and_convert_input_shape
from ..models.network import Architecture
from ..training import BACKENDS, Recipe
from ..training.backend import BackendChoice
from ..value_types import JsonObject, MeanPassesPerClient, SettingsByName, SettingValue
from .code_version import (
    hash_core_code,
    hash_functions_from_outside_package,
    hash_method_code,
    read_torch_version,
)
from .frozen_features import (
    describe_dataset_as_features,
    make_federation_with_public_data,
    replace_images_by_features,
)
from .setups import CLASSROOM, SETUPS, Setup, get_values_without_sources

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
# Values of settings that do not change a partition.
UNCHANGED = {
    "size_sigma": 0,
    "share": 1,
    "minimum": 0,
    "repair": "move",
    "absent": "",
    "unseen": "",
}
# Settings for drawing a partition. They do not apply to data that name their clients.
DRAWING = ("alpha", "clients", "size_sigma", "minimum", "repair")
# The knob of methods with frozen features. For any other method it chooses what the networks read.
FEATURES = "features"
RECIPE_FIELDS = tuple(field.name for field in dataclasses.fields(Recipe))


def make_recipe_for_classroom(training_sample_count: int, has_convolutions: bool = False) -> Recipe:
    """Make the recipe of the classroom, which takes seconds on two cores: 40 epochs on the bundled
    digits, fewer (at least 10) on larger sets.

    It was chosen on a validation part of the digits' training images (`papers/tuning`), never on
    test images. Networks with convolutions get a smaller learning rate, with which the 5-layer CNN
    learns, too.
    """
    epochs = round(100_000 / max(training_sample_count, 1))
    return Recipe(epochs=max(10, min(40, epochs)), lr=0.02 if has_convolutions else 0.05)


def choose_classroom_epochs(dataset: str, training_sample_count: int) -> int:
    """Choose the local epochs of the classroom on a data set of which the clients have this many
    training samples.
    """
    shape = data.describe(dataset).input_shape
    setup = SETUPS[CLASSROOM].copy_with_values_for_dataset_and_alpha(dataset, Settings.alpha, shape)
    declared = get_values_without_sources(setup.select_declared_values(RECIPE_FIELDS))
    return dataclasses.replace(make_recipe_for_classroom(training_sample_count), **declared).epochs


class LeftOutClients(NamedTuple):
    """The numbers of the clients that never upload, and of those that take no part at all."""

    absent: tuple[int, ...]
    unseen: tuple[int, ...]


@dataclass(frozen=True)
class Settings:
    """What a person chooses. A wrong value raises UsageError from `check()`.

    The fields that are not named here are arguments of `data.federate`.

    preset: the set-up, which has the values of all settings that are not chosen
    spurious: ids, joined by commas, of the clients whose training images get a `cue`
    cue, tint: a background colour or a small shape that is tied to the label, and its strength
    public: where unlabelled public samples come from (`data/public.py`)
    transform: the change of images before a network reads them (`data/transform.py`);
        `features=lite0` means `transform=lite0` for methods without such a knob
    holdout: share of its samples that each client keeps out of local training
    holdout_for: "all" if the clients of every method hold samples out, so that all methods start
        from the same models; "needed" if only those of methods that train on these samples do
    init: whether all clients start from the same model
    poison: clients that harm the others, such as "labels:2" (`methods/poison.py`)
    minimum: smallest number of samples of a client; 0 for 10, or half the mean size
    absent: clients that train and never upload: their number, or a list of them
    unseen: clients that take no part, whose samples are a further test set: their number, or a list
    overrides: fields of the recipe (`epochs`) and knobs, plain (`rounds`) or qualified
        (`fens.rounds`)
    """

    dataset: str = "digits"
    alpha: float = 0.1
    clients: int = 10
    seed: int = 0
    preset: str = "classroom"
    partition: PartitionName = "dirichlet"
    classes_per_client: int = 2
    spurious: str = ""
    cue: Cue = "tint"
    tint: float = 0.8
    public: str | float = "own"
    transform: str = "none"
    model: str = "auto"
    holdout: float = 0.1
    holdout_for: Literal["all", "needed"] = "all"
    init: Literal["same", "different"] = "same"
    poison: str = "none"
    device: str = "auto"
    backend: BackendChoice = "auto"
    size_sigma: float = 0.0
    share: float = 1.0
    minimum: int = 0
    repair: WayToReachMinimum = "move"
    absent: Any = ""
    unseen: Any = ""
    moves: str = ""
    overrides: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def make(cls, **values: SettingValue) -> Settings:
        """Make settings from keyword arguments. Values that are not given are those of the set-up.

        Names that are not fields here become overrides. `dataset` may also be a Dataset or arrays,
        and `federation=` may be a Federation (see `data.replace_objects_by_names_in_settings`). If
        the data name their clients, the set-up's partition is ignored.
        """
        values = data.replace_objects_by_names_in_settings(values)
        setting_names = list_setting_names()
        overrides = {}
        chosen = {}
        for name, value in values.items():
            if name not in setting_names:
                overrides[name] = value
            elif value is not None or name not in ("alpha", "clients", "partition"):
                chosen[name] = value
        preset = find_settings_declared_by_preset(chosen)
        dataset = {"dataset": cls.dataset, **preset, **chosen}["dataset"]
        changes_of_partition = {}
        for name in DRAWING:
            if name in chosen:
                value = parse_if_number(chosen[name])
                if value != UNCHANGED.get(name):
                    changes_of_partition[name] = value
        partition = data.choose_partition_and_check_settings(
            chosen.get("partition"), dataset, data.describe(dataset).n_clients, changes_of_partition
        )
        if partition == "natural":
            preset = {name: value for name, value in preset.items() if name not in DRAWING}
        elif "partition" not in chosen:
            partition = preset.get("partition", partition)
        chosen["partition"] = partition
        fields = {**preset, **chosen}
        return cls(**fields, overrides=tuple(sorted(overrides.items()))).normalise_and_check()

    def normalise_and_check(self) -> Settings:
        """Return these settings with every value checked and in its standard form. UsageError for a
        wrong value.
        """
        alpha = check_number(
            "alpha",
            parse_if_number(self.alpha),
            *ALPHA_RANGE,
            hint="smaller alpha means more label skew",
        )
        for name, allowed in ALLOWED.items():
            check_allowed_name(name, getattr(self, name), allowed)
        holdout = check_number(
            "holdout",
            parse_if_number(self.holdout),
            0,
            0.9,
            hint="it is the share kept from local training",
        )
        about = data.describe(self.dataset)
        public = data.convert_and_check_public_choice(self.public, about)
        about = data.describe_dataset_with_public_part(about, public)
        is_natural = self.partition == "natural"
        if self.partition == "fonts":
            wishes = {
                "minimum": parse_if_number(self.minimum) or None,
                "repair": None if self.repair == "move" else self.repair,
            }
            data.check_font_partition_settings(self.dataset, about.n_fonts > 0, wishes)
        share = check_number(
            "share",
            parse_if_number(self.share),
            0,
            1,
            excludes_low=True,
            hint="1 uses all training samples",
        )
        samples = max(1, round(share * about.n_train))
        if is_natural:
            clients = about.n_clients
        else:
            clients = check_whole_number("clients", parse_if_number(self.clients), 1)
            if clients > samples:
                raise UsageError(
                    f"clients is {clients}, but {self.dataset} has only {samples} training "
                    f"samples and each client needs one; choose at most {samples}."
                )
        minimum = check_whole_number(
            "minimum",
            parse_if_number(self.minimum),
            0,
            max(1, samples // max(1, clients)),
            hint=(
                f"{clients} clients share {samples} training samples, and 0 leaves the choice "
                "to the package"
            ),
        )
        seed = check_whole_number("seed", parse_if_number(self.seed), 0)
        edits = data.PartitionEdits.parse(self.moves).copy_with_seed_if_missing(seed)
        count = clients
        if edits.changes:
            count = edits.check_and_count_resulting_clients(clients, about.classes)
        size_sigma = check_number(
            "size_sigma", parse_if_number(self.size_sigma), 0, 10, hint="0 is no lognormal sizes"
        )
        if size_sigma != 0 and self.partition not in data.SIZED:
            raise UsageError(
                f"size_sigma is {size_sigma:g}, but partition {self.partition!r} has no "
                "lognormal sizes to set; use dirichlet or client_dirichlet, or "
                "partition='quantity' with alpha = 1/sigma²."
            )
        spurious = self._parse_spurious_clients(count)
        absent, unseen = self._parse_left_out_clients(count)
        has_public_share = isinstance(public, float) and public > 0
        if is_natural and unseen and has_public_share:
            raise UsageError(
                f"public={public} takes samples of every client, the unseen ones, too; "
                "leave public out, or set partition='dirichlet'."
            )
        return dataclasses.replace(
            self,
            spurious=",".join(str(client) for client in spurious),
            tint=check_number("tint", parse_if_number(self.tint), 0, 1),
            alpha=alpha,
            clients=clients,
            public=public,
            transform=data.order_transform_parts(self.transform, about.input_shape),
            seed=seed,
            classes_per_client=check_whole_number(
                "classes_per_client", parse_if_number(self.classes_per_client), 1
            ),
            holdout=holdout,
            share=share,
            minimum=minimum,
            size_sigma=size_sigma,
            poison=str(
                Poison.parse(self.poison, len(data.list_present_clients(count, absent, unseen)))
            ),
            absent=data.format_client_list_as_setting(absent),
            unseen=data.format_client_list_as_setting(unseen),
            moves=str(edits),
            device=resolve_device(self.device),
        )

    def _parse_spurious_clients(self, client_count: int) -> list[int]:
        """Parse `spurious` as the sorted ids of some of `client_count` clients."""
        clients = set()
        for part in str(self.spurious).split(","):
            if part.strip():
                hint = "give client ids joined by commas"
                clients.add(
                    check_whole_number(
                        "spurious", parse_if_number(part), 0, client_count - 1, hint=hint
                    )
                )
        return sorted(clients)

    def _parse_left_out_clients(self, client_count: int) -> LeftOutClients:
        """Parse `absent` and `unseen` as some of `client_count` clients."""
        names: Sequence[str] = ()
        if self.partition == "natural" and (self.absent or self.unseen):
            names = data.load(self.dataset).client_names
        absent = data.parse_client_indices("absent", self.absent, client_count, names)
        unseen = data.parse_client_indices("unseen", self.unseen, client_count, names)
        return LeftOutClients(absent, unseen)

    def list_nondefault_federation_options(self) -> SettingsByName:
        """List the keyword arguments of `federate`, without those that change nothing."""
        options: SettingsByName = {"partition": self.partition, "seed": self.seed}
        if self.partition != "natural":
            options |= {"alpha": self.alpha, "clients": self.clients}
        for name, unchanged in UNCHANGED.items():
            if getattr(self, name) != unchanged:
                options[name] = getattr(self, name)
        if self.moves:
            edits = self.partition_edits.without_client_names()
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
    def partition_edits(self) -> data.PartitionEdits:
        """The changes that were made to the partition by hand."""
        return data.PartitionEdits.parse(self.moves)

    @property
    def client_count(self) -> int:
        """The number of clients: those of the partition, and doubles."""
        return (
            self.clients + len(self.partition_edits.doubled_clients) if self.moves else self.clients
        )

    @property
    def absent_clients(self) -> ClientIndices:
        """The clients that train and never upload."""
        return data.parse_client_indices("absent", self.absent, self.client_count)

    @property
    def unseen_clients(self) -> ClientIndices:
        """The clients that take no part."""
        return data.parse_client_indices("unseen", self.unseen, self.client_count)

    @property
    def participating_clients(self) -> ClientIndices:
        """The clients that take part."""
        return data.list_present_clients(
            self.client_count, self.absent_clients, self.unseen_clients
        )

    def make_federation(self) -> Federation:
        """Make the federation of these settings: the data set, divided among the clients."""
        return make_federation_with_public_data(**self.list_all_federation_arguments())

    def list_all_federation_arguments(self) -> SettingsByName:
        """List everything on which the federation depends, as keyword arguments of
        `make_federation_with_public_data`.
        """
        return {
            "dataset": self.dataset,
            "public": self.public,
            "reads_frozen_features": self.reads_frozen_features,
            **self.list_nondefault_federation_options(),
        }

    def load_dataset(self) -> Dataset:
        """Load the data set of these settings, with the public samples of `public`."""
        dataset = data.add_public_part(data.load(self.dataset), self.public)
        return replace_images_by_features(dataset) if self.reads_frozen_features else dataset

    @property
    def reads_frozen_features(self) -> bool:
        """Whether networks read the features that a frozen body makes of the images."""
        return self.transform == data.SEEN

    def describe_dataset(self) -> DatasetDescription:
        """Describe the data set without loading it."""
        about = data.describe_dataset_with_public_part(data.describe(self.dataset), self.public)
        return describe_dataset_as_features(about) if self.reads_frozen_features else about

    def to_keywords(self) -> SettingsByName:
        """Return keyword arguments, as for `job`, from which `make` makes these settings again."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        overrides = dict(values.pop("overrides"))
        return values | overrides


def find_settings_declared_by_preset(
    chosen_preset_dataset_and_alpha: Mapping[str, SettingValue],
) -> SettingsByName:
    """Find the settings that the chosen preset declares for the chosen data set and α, without the
    model, which each method's plan chooses.

    If none is chosen, the preset is `classroom`, and the data set and α are those of the preset.
    """
    setup = SETUPS[
        check_allowed_name(
            "preset", chosen_preset_dataset_and_alpha.get("preset", CLASSROOM), SETUPS
        )
    ]
    general = {
        "dataset": Settings.dataset,
        "alpha": Settings.alpha,
        **get_values_without_sources(setup.block.shared),
    }
    dataset = chosen_preset_dataset_and_alpha.get("dataset", general["dataset"])
    alpha: Any = parse_if_number(chosen_preset_dataset_and_alpha.get("alpha", general["alpha"]))
    shape = data.describe(dataset).input_shape
    names = list_setting_names() - {"model"}
    if len(shape) != 3:
        names -= {"transform"}  # which is for images only
    return get_values_without_sources(
        setup.copy_with_values_for_dataset_and_alpha(dataset, alpha, shape).select_declared_values(
            tuple(names)
        )
    )


def resolve_device(device: str) -> str:
    """Return `cuda` for `auto` if there is a usable GPU, else `cpu`. A device that is named must
    exist.
    """
    name, _, index = str(device).partition(":")
    check_allowed_name("device", name, ("auto", "cpu", "cuda"))
    if name == "cpu":
        return "cpu"
    import torch

    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return "cuda" if cards else "cpu"
    number_text = index or "0"
    if not number_text.isdigit() or int(number_text) >= cards:
        raise UsageError(
            f"Device {device!r} is not there: PyTorch finds {cards} CUDA device(s) on "
            "this machine; use device='auto' or 'cpu'."
        )
    return str(device)


@dataclass(frozen=True)
class MethodRunPlan:
    """Everything that follows from `settings` for one method.

    architectures: (name, input_shape, classes, width) of each client that takes part, then of each absent client
    digest: of the data set
    """

    settings: Settings
    method: Method
    architectures: tuple[Architecture, ...]
    recipe: Recipe
    digest: str | None

    @property
    def method_name(self) -> str:
        """The method's name."""
        return self.method.info.name

    @property
    def method_label(self) -> str:
        """The name of its runs in pictures and tables."""
        return choose_method_label(self.method_name, vars(self.method))

    @property
    def client_model(self) -> str:
        """The clients' model as it was chosen; for "auto" the resulting one."""
        if self.settings.model != "auto":
            return self.settings.model
        return self.architectures[0][0]

    @property
    def share_held_out_of_local_training(self) -> float:
        """The share of its samples that each client holds out of local training in this run."""
        if self.settings.holdout_for == "all" or self.method.holds_out:
            return self.settings.holdout
        return 0.0

    @property
    def input_scale(self) -> InputScale:
        """How every network's first layer scales images."""
        return data.parse_input_scale(self.settings.transform)

    def compute_mean_local_passes(self, training_sample_count: int) -> MeanPassesPerClient:
        """Compute how often a client trains on its own data in the whole run, as the mean over
        clients. This compares the local work of methods.

        training_sample_count: number of samples in the whole training set
        """
        mean_samples = (
            training_sample_count
            * (1 - self.share_held_out_of_local_training)
            / self.settings.clients
        )
        return self.method.local_passes(
            self.recipe, [mean_samples] * len(self.settings.participating_clients)
        )

    @property
    def has_clients_that_lie_when_predicting(self) -> bool:
        """Whether poisoned clients train and send honestly, but lie when they predict."""
        return self.settings.poison.partition(":")[0] == "lie"

    def hash_settings_of_local_training(self) -> str:
        """Compute the key of the trained clients, from everything on which local training depends."""
        settings = self.settings
        content: JsonObject = {
            "holdout": self.share_held_out_of_local_training,
            "init": settings.init,
            "device": settings.device,
            "backend": settings.backend,
            **settings.list_nondefault_federation_options(),
            "data": self.digest,
            "architectures": self.architectures,
            "recipe": dataclasses.asdict(self.recipe),
            "torch": read_torch_version(),
            "code": hash_core_code(),
        }
        if self.input_scale != "none":
            content["scale"] = self.input_scale
        if settings.poison != "none" and not self.has_clients_that_lie_when_predicting:
            content["poison"] = settings.poison
        layouts = {name: MODELS[name].layout for name, *_ in self.architectures}
        return hash_json_content(content | hash_functions_from_outside_package(layouts))

    def hash_settings_of_run(self) -> str:
        """Compute the key of the whole run."""
        cls = type(self.method)
        functions = {name: value for name, value in vars(cls).items() if callable(value)}
        content: JsonObject = {
            "clients": self.hash_settings_of_local_training(),
            "method": {
                "name": self.method_name,
                **dataclasses.asdict(self.method),
                **hash_functions_from_outside_package(functions),
            },
            "preset": self.settings.preset,
            "code": hash_method_code(cls),  # type: ignore[arg-type]
        }
        if self.has_clients_that_lie_when_predicting:
            content["poison"] = self.settings.poison
        return hash_json_content(content)


def make_plans(settings: Settings, method_names: Sequence[str]) -> list[MethodRunPlan]:
    """Make a MethodRunPlan for each method, in order. UsageError for an override that is not a field of a
    method or recipe.
    """
    for name in method_names:
        check_allowed_name("method", name, METHODS)
    if not method_names:
        raise UsageError(f"No method was chosen; choose at least one of: {', '.join(METHODS)}.")
    overrides = dict(settings.overrides)
    check_override_names(overrides, method_names)
    return [make_plan(settings, METHODS[name], overrides) for name in method_names]


def check_override_names(override_names: Iterable[str], method_names: Sequence[str]) -> None:
    """Raise UsageError for an override that is neither a field of the recipe nor a knob of one of
    these methods.
    """
    short = set(RECIPE_FIELDS)
    qualified = set()
    for method in method_names:
        for knob in (FEATURES, *(knob.name for knob in METHODS[method].fields())):
            short.add(knob)
            qualified.add(f"{method}.{knob}")
    for name in override_names:
        if name not in short | qualified:
            check_allowed_name("setting", name, sorted(short | qualified | list_setting_names()))


def list_setting_names() -> set[str]:
    """List the names of the settings of a run, without those of recipes and methods."""
    return {field.name for field in dataclasses.fields(Settings)} - {"overrides"}


def make_plan(
    settings: Settings,
    method_class: type[Method],
    recipe_and_knob_overrides: Mapping[str, SettingValue],
) -> MethodRunPlan:
    """Make the plan of one method."""
    method_name = method_class.info.name
    knobs = {knob.name for knob in method_class.fields()}
    if FEATURES not in knobs:
        settings = apply_features_override_to_transform(
            settings, method_class, recipe_and_knob_overrides
        )
    about: DatasetDescription = settings.describe_dataset()
    setup = SETUPS[settings.preset].copy_with_values_for_dataset_and_alpha(
        settings.dataset, settings.alpha, about.input_shape
    )
    model = choose_client_model(settings, setup, method_class, about)
    of_all = assign_architectures_to_clients(model, settings.client_count, about)
    networks = tuple(of_all[k] for k in (*settings.participating_clients, *settings.absent_clients))
    is_convolutional = any(MODELS[name].required_sample_kind for name, *_ in networks)
    declared = get_values_without_sources(setup.select_declared_values(tuple(knobs), method_name))
    knob_values = select_overrides_of_knobs(method_name, knobs, recipe_and_knob_overrides)
    method = method_class.configure(convolutions=is_convolutional, **{**declared, **knob_values})
    recipe = make_shared_recipe(settings, setup, about, is_convolutional)
    # A method's own `epochs` are not local ones.
    recipe_names = [name for name in RECIPE_FIELDS if name not in knobs]
    declared_recipe = get_values_without_sources(
        setup.select_declared_values(recipe_names, method_name)
    )
    changes = {}
    for name, value in declared_recipe.items():
        if name not in recipe_and_knob_overrides:
            changes[name] = value
    recipe = dataclasses.replace(recipe, **changes)
    return MethodRunPlan(settings, method, networks, recipe, about.digest)


def apply_features_override_to_transform(
    settings: Settings,
    method_class: type[Method],
    recipe_and_knob_overrides: Mapping[str, SettingValue],
) -> Settings:
    """Return the settings for a method without the knob `features`, where this chooses what the
    networks read.

    Raises UsageError for features that networks cannot read.
    """
    qualified_name = f"{method_class.info.name}.{FEATURES}"
    shared_features = recipe_and_knob_overrides.get(FEATURES)
    features = recipe_and_knob_overrides.get(qualified_name, shared_features)
    if features is None:
        return settings
    if features not in ("pixels", data.SEEN):
        raise UsageError(
            f"features is {features!r}, but what a network of {method_class.info.title} "
            f"reads is pixels or {data.SEEN}; choose one of these, or afl, gauss, fedpft "
            "or deepafl."
        )
    transform = settings.transform if features == "pixels" else features
    return dataclasses.replace(settings, transform=transform).normalise_and_check()


def select_overrides_of_knobs(
    method_name: str,
    knob_names: Iterable[str],
    recipe_and_knob_overrides: Mapping[str, SettingValue],
) -> SettingsByName:
    """Select the overrides of a method's knobs, by the knob's name.

    A plain name that is also a field of the recipe (`epochs`) means the recipe; `dense.epochs`
    means the knob.
    """
    plain = {}
    qualified = {}
    for name, value in recipe_and_knob_overrides.items():
        owner, dot, knob = name.partition(".")
        if name in knob_names and name not in RECIPE_FIELDS:
            plain[name] = value
        elif dot and owner == method_name and (knob != FEATURES or knob in knob_names):
            qualified[knob] = value
    return plain | qualified


def make_shared_recipe(
    settings: Settings, preset: Setup, data_description: DatasetDescription, has_convolutions: bool
) -> Recipe:
    """Make the clients' recipe for all methods of the set-up, with the values that a person has
    changed.
    """
    if preset.name == CLASSROOM:
        recipe = make_recipe_for_classroom(data_description.n_train, has_convolutions)
    else:
        recipe = Recipe()
    changes = get_values_without_sources(preset.select_declared_values(RECIPE_FIELDS))
    augmentation = data.parse_augmentation(settings.transform)
    if augmentation != "none":
        changes["augmentation"] = augmentation
    for name, value in settings.overrides:
        if name in RECIPE_FIELDS:
            changes[name] = parse_if_number(value)
    return dataclasses.replace(recipe, **changes)


def choose_client_model(
    settings: Settings,
    preset: Setup,
    method_class: type[Method],
    data_description: DatasetDescription,
) -> str:
    """Choose the clients' model: the one that a person has chosen, else the set-up's.

    If the set-up has a mixture, methods that need one architecture get its `one_model`. Samples
    that are not images get the default model for their kind, whatever the paper has for images.
    """
    if settings.model != "auto":
        return settings.model
    lines = preset.block.shared
    if "model" not in lines or len(data_description.input_shape) != 3:
        return choose_default_model_name(data_description.input_shape)
    if "one_model" in lines and "one architecture" in method_class.info.needs:
        return lines["one_model"].value
    return lines["model"].value


def assign_architectures_to_clients(
    model_names_joined_by_commas: str, client_count: int, data_description: DatasetDescription
) -> tuple[Architecture, ...]:
    """Assign an architecture to each client.

    model_names_joined_by_commas: each is `name` or `name:width`; they are assigned in turn
    """
    kinds = []
    for name, width in parse_models(model_names_joined_by_commas, data_description.input_shape):
        kinds.append(
            (
                name,
                check_and_convert_input_shape(name, data_description.input_shape),
                data_description.classes,
                width,
            )
        )
    return tuple(kinds[k % len(kinds)] for k in range(client_count))


def hash_json_content(content: JsonObject) -> str:
    """Compute the first 32 hexadecimal digits of the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
