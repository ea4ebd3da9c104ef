"""What one run of one method gives: numbers, curves, bytes, and enough arrays for every picture."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from ..comm import Ledger
from ..data import Federation
from ..data.card import UNEQUAL
from ..errors import UsageError
from ..methods import Report
from ..methods.context import Context
from ..training import Recipe
from ..training.calibration import Calibration
from . import saved
from .inputs import Inputs, find_inputs
from .settings import Plan, Settings
from .store import StoredEntry
from .text_tables import data_size

if TYPE_CHECKING:
    from pandas import DataFrame

# Beside the accuracy, what says how good a model is.
QUALITY = ("nll", "ece", "balanced_accuracy", "auc", "worst_client")
# What a stored outcome has as JSON and as arrays.
STORED_VALUES = (
    "accuracy",
    "accuracy_validation",
    "validation_on",
    "per_class",
    "per_client",
    "history",
    "seconds",
    "parameters",
    "skew",
)
STORED_ARRAYS = ("label_counts", "test_features", "test_labels", "test_predictions")
# The flat record, in this order: settings that come first, then numbers, of which some are rounded.
FIRST_SETTINGS = ("dataset", "alpha", "clients", "seed", "preset", "device")
ROUNDED = (*QUALITY, "seconds_local", "seconds_method", "seconds_total")
NUMBERS = (
    "accuracy",
    "bytes_up",
    "bytes_down",
    "parameters",
    *ROUNDED,
    "cached",
    "clients_cached",
    "skew",
)
# What each value of `Outcome.validation_on` means.
VALIDATION_SETS = {
    "held-out": "the clients' held-out samples",
    "public": "the public images, with their labels; some methods train on these images",
    "": "no validation images",
}


@dataclass(eq=False, repr=False)
class Outcome(saved.Predictor):
    """Result of one method on one federation.

    plan: what was run. It has `settings`, `recipe` (of the clients) and `options` (the method's hyper-parameters)
    accuracy: 0–1 on the global test set
    accuracy_validation: 0–1 on images for choices, which are no test images
    validation_on: which images these are: "held-out" parts of the clients, on which nobody trained; the "public" share
    with its labels, on which some methods distil, and clients of DS-FL and FedKT train; or ""
    calibration: NLL and reliability counts on the test set, with `nll` (nats) and `ece` (0–1). They are None for scores
    that are not probabilities; its `auc` (0–1) is there for these, too
    per_class: accuracies `[C]`. per_client: accuracies `[M]`, on the client's own test samples where the data name
    these (`Dataset.client_test`), else those of the classes weighted by its label mix. Of clients with models of their
    own ("local"), a class has the mean over all models, and a client the accuracy of its own one
    history: dicts with `phase`, `progress` (0–1 over the run), `accuracy` and `bytes` (sent so far, both ways)
    seconds: wall time of each phase, also "live curve" and "evaluation", measured when the work was done. A stored run
    (`cached`) and stored clients (`clients_cached`) keep these times
    test_*: the same fixed test points for every method, 500 at most
    parameters: numbers in the model that predicts
    report: what the method keeps for pictures and lessons, of the type that it declares
    unseen: 0–1 on the samples of each client that took no part, by its name or number

    Printed, it is two lines: what was run with its accuracy, then bytes and seconds.
    """

    plan: Plan
    accuracy: float
    accuracy_validation: float | None
    validation_on: str
    calibration: Calibration
    per_class: list[float | None]
    per_client: list[float]
    ledger: Ledger
    history: list[dict[str, Any]]
    seconds: dict[str, float]
    parameters: int
    label_counts: np.ndarray
    skew: dict[str, float]
    test_features: np.ndarray
    test_labels: np.ndarray
    test_predictions: np.ndarray
    report: Report = Report()
    unseen: dict[str, float] = field(default_factory=dict)
    cached: bool = False
    clients_cached: bool = False
    _model: Any = None
    _inputs: Inputs | None = None
    _run_again: Callable[[], Outcome] | None = None  # computes what is not kept

    def __repr__(self) -> str:
        settings = self.settings
        conditions = [f"{settings.clients} clients", f"seed {settings.seed}"]
        if settings.partition != "natural":
            conditions.insert(0, f"alpha {settings.alpha:g}")
        stored = ", from the store" if self.cached else ""
        return (
            f"{self.plan.label} on {settings.dataset} ({', '.join(conditions)}):"
            f" accuracy {100 * self.accuracy:.1f} %\n"
            f"{data_size(self.bytes_up)} up, {data_size(self.bytes_down)} down,"
            f" {self.seconds_total:.2f} seconds{stored}"
        )

    # ------------------------------------------------------------------------------------------- what was run
    method = property(attrgetter("plan.name"))
    settings = property(attrgetter("plan.settings"))
    device = property(attrgetter("plan.settings.device"))  # type: ignore[assignment]
    recipe = property(attrgetter("plan.recipe"))

    @property
    def options(self) -> dict[str, Any]:
        """The values of the method's knobs."""
        return dataclasses.asdict(self.plan.method)

    @property
    def conditions(self) -> tuple[Settings, Recipe]:
        """Settings and recipe without the method, its options and the seed: equal in outcomes that can be compared."""
        return dataclasses.replace(self.settings, seed=0, overrides=()), self.recipe

    def federation(self) -> Federation:
        """Make the very federation of this run again. UsageError if other data have its data set's name by now."""
        if self.plan.digest not in (None, self.settings.describe().digest):
            raise UsageError(
                f"The name {self.settings.dataset!r} now belongs to other data than in this run, so its federation "
                "cannot be made again; give the name to the earlier data again."
            )
        return self.settings.federation()

    def about(self) -> dict[str, Any]:
        """What was run, in one plain dict: the method, each setting, the clients' recipe and the method's options."""
        about: dict[str, Any] = {"method": self.method}
        about |= dataclasses.asdict(self.settings)
        del about["overrides"]
        about["model"] = self.plan.model
        about["recipe"] = dataclasses.asdict(self.recipe)
        about["options"] = self.options
        return about

    # ------------------------------------------------------------------------------------------- work, time and traffic
    @property
    def local_passes(self) -> float:
        """How often a client trained on its own data, the mean over clients."""
        mean_samples = self.label_counts.sum() / len(self.label_counts)
        # Clients that took no part are counted, too: a plan's work is that of all of them.
        samples_of_all = mean_samples * self.settings.clients
        return self.plan.local_passes(round(samples_of_all))

    @property
    def seconds_local(self) -> float:
        """Wall time of the local training that this result rests on."""
        return self.seconds.get("local training", 0.0)

    @property
    def seconds_total(self) -> float:
        """Wall time of all phases."""
        return sum(self.seconds.values())

    @property
    def seconds_method(self) -> float:
        """Wall time of the method's own part, evaluation included. Local training and the points of the live curve do
        not count."""
        return self.seconds_total - self.seconds_local - self.seconds.get("live curve", 0.0)

    nll = property(attrgetter("calibration.nll"))
    ece = property(attrgetter("calibration.ece"))
    auc = property(attrgetter("calibration.auc"))

    @property
    def balanced_accuracy(self) -> float:
        """The mean of `per_class`: every class with test samples counts alike."""
        return float(np.mean([share for share in self.per_class if share is not None]))

    @property
    def has_unequal_classes(self) -> bool:
        """Whether the balanced accuracy says more than the accuracy: the largest class has at least
        `data.card.UNEQUAL` times the training samples of the smallest."""
        counts = self.label_counts.sum(0)
        return counts.max() >= UNEQUAL * max(1, counts.min())

    def confusion(self) -> DataFrame:
        """Count the test samples of each class (a row) that got each answer (a column); of local models the answers are
        the best one's. The samples are those of `test_labels`: 500 at most, the same for every method."""
        import pandas

        names = list(self.inputs.class_names)
        counts = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(counts, (self.test_labels, self.test_predictions), 1)
        rows = pandas.Index(names, name="class")
        columns = pandas.Index(names, name="answer")
        return pandas.DataFrame(counts, index=rows, columns=columns)

    @property
    def worst_client(self) -> float:
        """The lowest accuracy of a client (see `per_client`)."""
        return min(self.per_client)

    @property
    def accuracy_unseen(self) -> float | None:
        """Mean accuracy on the samples of clients that took no part; None if all took part."""
        if not self.unseen:
            return None
        return sum(self.unseen.values()) / len(self.unseen)

    bytes_up = property(attrgetter("ledger.up"))
    bytes_down = property(attrgetter("ledger.down"))

    # ------------------------------------------------------------------------------------------- the model
    @property
    def inputs(self) -> Inputs:  # type: ignore[override]
        """How raw rows become what the model reads, and what its classes are called. UsageError if other data have the
        data set's name by now."""
        if self._inputs is None:
            self._inputs = find_inputs(self.plan)
        return self._inputs

    @property
    def model(self) -> Any:
        """The global model. The store has none: a stored run is computed again from its stored clients, once."""
        if self._model is None and self._run_again is not None:
            self._model = self._run_again().model
        return self._model

    def without_model(self, features: bool = True) -> Outcome:
        """A copy that takes less memory: its model is computed again when somebody asks for it.

        features: whether the copy has `test_features`; if not, they are computed again, too
        """
        light = copy.copy(self)
        light._model = None
        if not features:
            light.__dict__.pop("test_features", None)
        return light

    def __getattr__(self, name: str) -> Any:
        # Only for attributes that are missing: `test_features`, once `without_model` has dropped them.
        if name != "test_features" or self._run_again is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.test_features = self._run_again().test_features
        return self.test_features

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a prepared sample: (C, H, W), (C, T) or (D,)."""
        return self.plan.architectures[0][1]

    def save(self, path: str | PathLike, *, force: bool = False) -> Path:
        """Write the model, its settings and its result to a .safetensors file, which `fedlab_nb.load_model` reads. With
        .onnx: its scores for other programs. UsageError where a file that the package did not write is there already,
        unless `force`."""
        return saved.save(self, path, force=force)

    # ------------------------------------------------------------------------------------------- as text and files
    def to_json(self) -> dict[str, Any]:
        """The flat record that the command line prints."""
        settings = self.settings
        record: dict[str, Any] = {"method": self.method}
        for name in FIRST_SETTINGS:
            record[name] = getattr(settings, name)
        for name in NUMBERS:
            value = getattr(self, name)
            if name in ROUNDED and isinstance(value, float):
                value = round(value, 4)
            record[name] = value
        for name in ("partition", "public", "transform"):
            record[name] = getattr(settings, name)
        record["local_passes"] = round(self.local_passes, 2)
        record["model"] = self.plan.model
        record["holdout"] = self.plan.holdout
        for name in ("absent", "moves"):
            if getattr(settings, name):
                record[name] = getattr(settings, name)
        if self.unseen:
            record["accuracy_unseen"] = self.accuracy_unseen
            record["unseen"] = self.unseen
        record["extras"] = self.report.numbers()
        return record

    def to_entry(self) -> StoredEntry:
        """The entry for the store, from which `from_entry` makes the outcome again.

        Nothing reads the value "about"; it is for a person who looks into the store.
        """
        values: dict[str, Any] = {name: getattr(self, name) for name in STORED_VALUES}
        if self.unseen:
            values["unseen"] = self.unseen
        values["calibration"] = dataclasses.asdict(self.calibration)
        values["about"] = self.about()
        values["ledger"] = self.ledger.to_json()
        values["report"] = self.report.numbers()
        arrays = {name: getattr(self, name) for name in STORED_ARRAYS}
        for name, array in self.report.arrays().items():
            arrays[f"report.{name}"] = array
        return StoredEntry(values, arrays)

    @classmethod
    def from_entry(
        cls,
        values: dict[str, Any],
        arrays: dict[str, np.ndarray],
        plan: Plan,
        run_again: Callable[[], Outcome],
    ) -> Outcome:
        """The outcome from which `to_entry` made these values and arrays.

        plan: that of the outcome, which is no part of an entry
        run_again: computes the outcome once more, for what an entry does not keep
        """
        report_arrays = {}
        for name, array in arrays.items():
            if name.startswith("report."):
                report_arrays[name.removeprefix("report.")] = array
        fields: dict[str, Any] = {name: values[name] for name in STORED_VALUES}
        fields |= {name: arrays[name] for name in STORED_ARRAYS}
        return cls(
            plan=plan,
            **fields,
            calibration=Calibration.from_json(values.get("calibration", {})),
            unseen=values.get("unseen", {}),
            ledger=Ledger.from_json(values["ledger"]),
            report=plan.method.report(**values["report"], **report_arrays),
            cached=True,
            clients_cached=True,
            _run_again=run_again,
        )


class ValidationSamples(NamedTuple):
    """Samples for choosing settings, none of which is a test sample.

    source: a key of VALIDATION_SETS, "held-out" or "public"
    """

    x: torch.Tensor
    y: torch.Tensor
    source: str


def find_validation_samples(
    ctx: Context, federation: Federation, holds_out: bool
) -> ValidationSamples | None:
    """The samples on which a run's validation accuracy is measured; None if there are none.

    These are the clients' held-out parts, unless the run has trained on them, or else the public
    share with its labels. A method that may learn from held-out samples (`holds_out`) is judged on
    public ones whenever these have labels, so that all of its variants are judged on the same.
    """
    public_labels = federation.dataset.y_public
    has_labelled_public = public_labels is not None and len(ctx.public) > 0
    is_held_out_unused = not ctx.private.held_out_used and any(ctx.private.sizes("held_out"))
    if is_held_out_unused and not (holds_out and has_labelled_public):
        parts = [ctx.private.held_out(client) for client in range(ctx.clients_count)]
        x = torch.cat([images for images, _ in parts])
        y = torch.cat([labels for _, labels in parts])
        return ValidationSamples(x, y, "held-out")
    if public_labels is None or not has_labelled_public:
        return None
    return ValidationSamples(ctx.public, public_labels.to(ctx.device), "public")
