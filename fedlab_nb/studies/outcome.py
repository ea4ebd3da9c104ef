"""The outcome of one run of one method: numbers, curves, bytes, and the arrays that pictures need."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
import torch

from ..comm import Ledger
from ..data import Federation
from ..data.card import UNEQUAL
from ..data.dataset import SampleShape
from ..errors import UsageError
from ..methods import GlobalModel, Report
from ..methods.context import Context
from ..training import Recipe
from ..training.calibration import Calibration
from ..value_types import Accuracy0To1, JsonObject, MeanPassesPerClient, Seconds, SettingsByName
from . import saved
from .inputs import InputPreparation, make_input_preparation_of_plan
from .settings import MethodRunPlan, Settings
from .store import StoredEntry
from .text_tables import format_data_size

if TYPE_CHECKING:
    from pandas import DataFrame

# Measures of a model's quality besides its accuracy.
QUALITY = ("nll", "ece", "balanced_accuracy", "auc", "worst_client")
# The fields of a stored outcome, as JSON and as arrays.
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
# The flat record begins with these settings and then these numbers, some of which are rounded.
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
# {value of `Outcome.validation_on`: its meaning}
VALIDATION_SETS = {
    "held-out": "the clients' held-out samples",
    "public": "the public images, with their labels; some methods train on these images",
    "": "no validation images",
}


@dataclass(eq=False, repr=False)
class Outcome(saved.Predictor):
    """The result of one method on one federation.

    plan: the plan of the run, with `settings`, the clients' `recipe` and the method's hyper-parameters
    accuracy: 0–1, on the global test set
    accuracy_validation: 0–1, on validation images, which are not test images
    validation_on: the source of the validation images: "held-out", the clients' held-out parts, on which no client
        trained; "public", the public share with its labels, on which some methods distil and clients of DS-FL and
        FedKT train; or "" for none
    calibration: NLL and reliability counts on the test set, with `nll` (nats) and `ece` (0–1), which are None for
        scores that are not probabilities, and `auc` (0–1)
    per_class: accuracies `[C]`. If each client has a model of its own ("local"), they are means over these models
    per_client: accuracies `[M]`. They are measured on the client's own test samples if the data say which these are
        (`Dataset.client_test`); otherwise they are the accuracies of the classes, weighted by the client's label mix.
        A client with a model of its own has that model's accuracy
    history: the points of the live curve
    seconds: wall time of each phase, including "live curve" and "evaluation", measured when the work was done; stored
        runs (`cached`) and stored clients (`clients_cached`) keep these times
    test_*: the test points for pictures, 500 at most, the same for every method
    parameters: the number of parameters of the model that predicts
    report: data that the method keeps for pictures and lessons, of the type that it declares
    unseen: accuracy (0–1) on the samples of each client that took no part, by the client's name or number

    Printed, it is two lines: the run with its accuracy, then bytes and seconds.
    """

    plan: MethodRunPlan
    accuracy: float
    accuracy_validation: float | None
    validation_on: str
    calibration: Calibration
    per_class: list[float | None]
    per_client: list[float]
    ledger: Ledger
    history: list[CurvePoint]
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
    _inputs: InputPreparation | None = None
    _run_again: Callable[[], Outcome] | None = None  # computes the parts that are not stored

    def __repr__(self) -> str:
        settings = self.settings
        conditions = [f"{settings.clients} clients", f"seed {settings.seed}"]
        if settings.partition != "natural":
            conditions.insert(0, f"alpha {settings.alpha:g}")
        stored = ", from the store" if self.cached else ""
        return (
            f"{self.plan.method_label} on {settings.dataset} ({', '.join(conditions)}):"
            f" accuracy {100 * self.accuracy:.1f} %\n"
            f"{format_data_size(self.bytes_up)} up, {format_data_size(self.bytes_down)} down,"
            f" {self.seconds_total:.2f} seconds{stored}"
        )

    # ------------------------------------------------------------------------------------------- what was run
    method = property(attrgetter("plan.method_name"))
    settings = property(attrgetter("plan.settings"))
    device = property(attrgetter("plan.settings.device"))  # type: ignore[assignment]
    recipe = property(attrgetter("plan.recipe"))

    @property
    def options(self) -> SettingsByName:
        """The values of the method's knobs."""
        return dataclasses.asdict(self.plan.method)

    @property
    def conditions(self) -> Conditions:
        """Settings and recipe without method, options and seed; outcomes can be compared if these are equal."""
        settings = dataclasses.replace(self.settings, seed=0, overrides=())
        return Conditions(settings, self.recipe)

    def federation(self) -> Federation:
        """Make this run's federation again. UsageError if the name of its data set now belongs to other data."""
        if self.plan.digest not in (None, self.settings.describe_dataset().digest):
            raise UsageError(
                f"The name {self.settings.dataset!r} now belongs to other data than in this run, so its federation "
                "cannot be made again; give the name to the earlier data again."
            )
        return self.settings.make_federation()

    def about(self) -> JsonObject:
        """The run as a plain dict: the method, all settings, the clients' recipe and the method's options."""
        about: JsonObject = {"method": self.method}
        about |= dataclasses.asdict(self.settings)
        del about["overrides"]
        about["model"] = self.plan.client_model
        about["recipe"] = dataclasses.asdict(self.recipe)
        about["options"] = self.options
        return about

    # ------------------------------------------------------------------------------------------- work, time and traffic
    @property
    def local_passes(self) -> MeanPassesPerClient:
        """The number of passes that a client made over its own data, as the mean over clients."""
        mean_samples = self.label_counts.sum() / len(self.label_counts)
        # The plan expects the number of samples of all clients, including those that took no part.
        samples_of_all = mean_samples * self.settings.clients
        return self.plan.compute_mean_local_passes(round(samples_of_all))

    @property
    def seconds_local(self) -> Seconds:
        """Wall time of the local training from which this result was made."""
        return self.seconds.get("local training", 0.0)

    @property
    def seconds_total(self) -> Seconds:
        """Wall time of all phases."""
        return sum(self.seconds.values())

    @property
    def seconds_method(self) -> Seconds:
        """Wall time of the method's own part, including evaluation, but not local training or the live curve."""
        return self.seconds_total - self.seconds_local - self.seconds.get("live curve", 0.0)

    nll = property(attrgetter("calibration.nll"))
    ece = property(attrgetter("calibration.ece"))
    auc = property(attrgetter("calibration.auc"))

    @property
    def balanced_accuracy(self) -> Accuracy0To1:
        """The mean of `per_class`: every class with test samples counts alike."""
        return float(np.mean([share for share in self.per_class if share is not None]))

    @property
    def has_unequal_classes(self) -> bool:
        """Whether the largest class has at least `data.card.UNEQUAL` times the training samples of the smallest.

        The balanced accuracy then says more than the accuracy.
        """
        counts = self.label_counts.sum(0)
        return counts.max() >= UNEQUAL * max(1, counts.min())

    def confusion(self) -> DataFrame:
        """Count the test samples of each class (row) for which each class (column) was predicted.

        If each client has a model of its own, the predictions are those of the best one. The samples are those of
        `test_labels`: 500 at most, the same for every method.
        """
        import pandas

        names = list(self.inputs.class_names)
        counts = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(counts, (self.test_labels, self.test_predictions), 1)
        rows = pandas.Index(names, name="class")
        columns = pandas.Index(names, name="answer")
        return pandas.DataFrame(counts, index=rows, columns=columns)

    @property
    def worst_client(self) -> Accuracy0To1:
        """The lowest accuracy of a client (see `per_client`)."""
        return min(self.per_client)

    @property
    def accuracy_unseen(self) -> Accuracy0To1 | None:
        """Mean accuracy on the samples of clients that took no part; None if all took part."""
        if not self.unseen:
            return None
        return sum(self.unseen.values()) / len(self.unseen)

    bytes_up = property(attrgetter("ledger.up"))
    bytes_down = property(attrgetter("ledger.down"))

    # ------------------------------------------------------------------------------------------- the model
    @property
    def inputs(self) -> InputPreparation:  # type: ignore[override]
        """The preparation of raw rows for the model, and the names of its classes.

        UsageError if the name of the data set now belongs to other data.
        """
        if self._inputs is None:
            self._inputs = make_input_preparation_of_plan(self.plan)
        return self._inputs

    @property
    def model(self) -> GlobalModel:
        """The global model. It is not stored; for a stored run it is computed, once, from the stored clients."""
        if self._model is None and self._run_again is not None:
            self._model = self._run_again().model
        return self._model

    def without_model(self, features: bool = True) -> Outcome:
        """A copy that takes less memory; its model is computed again when it is needed.

        features: if not, they are computed again as well
        """
        light = copy.copy(self)
        light._model = None
        if not features:
            light.__dict__.pop("test_features", None)
        return light

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes: for `test_features`, after `without_model` has dropped them.
        if name != "test_features" or self._run_again is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.test_features = self._run_again().test_features
        return self.test_features

    @property
    def input_shape(self) -> SampleShape:
        """The shape of a prepared sample: (C, H, W), (C, T) or (D,)."""
        return self.plan.architectures[0][1]

    def save(self, path: str | PathLike, *, force: bool = False) -> Path:
        """Write the model, its settings and its result to a .safetensors file, which `fedlab_nb.load_model` reads.

        A path that ends in .onnx exports the model's scores for other programs. UsageError if a file that the package
        did not write is there already, unless `force`.
        """
        return saved.save(self, path, force=force)

    # ------------------------------------------------------------------------------------------- as text and files
    def to_json(self) -> JsonObject:
        """The flat record that the command line prints."""
        settings = self.settings
        record: JsonObject = {"method": self.method}
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
        record["model"] = self.plan.client_model
        record["holdout"] = self.plan.share_held_out_of_local_training
        for name in ("absent", "moves"):
            if getattr(settings, name):
                record[name] = getattr(settings, name)
        if self.unseen:
            record["accuracy_unseen"] = self.accuracy_unseen
            record["unseen"] = self.unseen
        record["extras"] = self.report.get_plain_fields()
        return record

    def to_entry(self) -> StoredEntry:
        """Make the entry for the store, from which `from_entry` restores the outcome.

        The value "about" is never read; it is for people who look into the store.
        """
        values: JsonObject = {name: getattr(self, name) for name in STORED_VALUES}
        if self.unseen:
            values["unseen"] = self.unseen
        values["calibration"] = dataclasses.asdict(self.calibration)
        values["about"] = self.about()
        values["ledger"] = self.ledger.to_json()
        values["report"] = self.report.get_plain_fields()
        arrays = {name: getattr(self, name) for name in STORED_ARRAYS}
        for name, array in self.report.get_array_fields().items():
            arrays[f"report.{name}"] = array
        return StoredEntry(values, arrays)

    @classmethod
    def from_entry(
        cls,
        values: JsonObject,
        arrays: dict[str, np.ndarray],
        plan: MethodRunPlan,
        run_again: Callable[[], Outcome],
    ) -> Outcome:
        """Restore the outcome from which `to_entry` made these values and arrays.

        plan: the outcome's plan, which is not part of an entry
        run_again: computes the outcome again, for the parts that an entry does not keep
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


class CurvePoint(TypedDict):
    """A point of the live curve.

    progress: share of the run that is done, 0–1
    accuracy: 0–1, on the test images
    bytes: sent so far, up and down
    """

    phase: str
    progress: float
    accuracy: float
    bytes: int


class Conditions(NamedTuple):
    """The settings, without seed and options, and the recipe; outcomes can be compared if these are equal."""

    settings: Settings
    recipe: Recipe


class ValidationSamples(NamedTuple):
    """Samples for choosing settings, none of which is a test sample.

    source: a key of VALIDATION_SETS, "held-out" or "public"
    """

    x: torch.Tensor
    y: torch.Tensor
    source: str


def get_validation_samples_if_any(
    ctx: Context, federation: Federation, may_learn_from_held_out_samples: bool
) -> ValidationSamples | None:
    """Return the samples on which a run's validation accuracy is measured; None if there are none.

    These are the clients' held-out parts or, if the run has trained on those, the public share with its
    labels. A method that may learn from held-out samples is always judged on public ones
    if these have labels, so that all of its variants are judged on the same samples.
    """
    public_labels = federation.dataset.y_public
    has_labelled_public = public_labels is not None and len(ctx.public) > 0
    is_held_out_unused = not ctx.private.held_out_used and any(ctx.private.sizes("held_out"))
    if is_held_out_unused and not (may_learn_from_held_out_samples and has_labelled_public):
        parts = [ctx.private.held_out(client) for client in range(ctx.clients_count)]
        x = torch.cat([images for images, _ in parts])
        y = torch.cat([labels for _, labels in parts])
        return ValidationSamples(x, y, "held-out")
    if public_labels is None or not has_labelled_public:
        return None
    return ValidationSamples(ctx.public, public_labels.to(ctx.device), "public")
