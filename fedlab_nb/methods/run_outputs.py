"""What a running method yields and returns: its progress, models that predict, and reports for
pictures and lessons.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar, overload

import numpy as np
from torch import Tensor, nn

from ..errors import check_allowed_name
from ..models import Network, count_parameters
from ..tensor_types import ClassScores, ClientLogits, Features, Labels, Logits, Predictions, Samples
from ..training import ClientModels, EpochProgress, run_in_chunks, run_in_chunks_with_cache
from ..training.backend import SMALL_INPUT
from ..training.calibration import Calibration, ScoreKind, measure_calibration
from ..training.evaluate import CachedFunction, compute_accuracy
from ..value_types import Accuracy0To1, JsonObject, JsonValue

SentenceOnPrivacy = str  # what an upload gives away
AccuracyByRule = dict[str, float]  # {title of a rule: test accuracy, 0–1}


@dataclass(frozen=True, eq=False)
class Report:
    """The results of a run for pictures and lessons. This is the base of the reports that methods
    declare, and the report of a method that declares none.

        @dataclass(frozen=True, eq=False)
        class FensReport(Report):
            losses: np.ndarray | None = None        # [T]
            member_accuracy: list[float] | None = None

        class Fens(Method):
            report = FensReport

    A misspelt field is an AttributeError where it is read, and a TypeError where it is set.

    A field holds a numpy array or a plain value (a number, a text, lists and dicts of them), or
    None if the run has no such result. Every field has a default, so that a snapshot of a running
    method can leave out what is not known yet.
    """

    def get_accuracies_under_other_rules(self) -> AccuracyByRule:
        """Return {rule: test accuracy 0–1} of the same run under other rules. Comparisons show
        them, too.
        """
        return {}

    def get_array_fields(self) -> dict[str, np.ndarray]:
        """Return the fields that hold an array."""
        values = self.get_fields_that_are_not_none().items()
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def get_plain_fields(self) -> JsonObject:
        """Return the fields that hold plain values. `run --json` prints them."""
        values = self.get_fields_that_are_not_none().items()
        return {name: value for name, value in values if not isinstance(value, np.ndarray)}

    def get_fields_that_are_not_none(self) -> dict[str, np.ndarray | JsonValue]:
        """Return the fields that are not None."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def check_report_type_and_copy_arrays(report: Report, declared_type: type[Report]) -> Report:
    """Return `report` with copies of its arrays, since a slice of a larger array would keep all of
    it in memory.

    TypeError unless it is of the type that its method has declared. A model without a report gets
    an empty one.
    """
    if type(report) is Report:
        return declared_type()
    if type(report) is not declared_type:
        raise TypeError(
            f"The model's report is a {type(report).__name__}; its method declares "
            f"{declared_type.__name__}."
        )
    copies = {name: array.copy() for name, array in report.get_array_fields().items()}
    return replace(report, **copies)


@dataclass(frozen=True)
class Progress:
    """One step of a run.

    done, total: steps done in this phase, and all its steps
    model: the model so far, if the live curve has a point here
    """

    phase: str
    done: int
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    model: GlobalModel | None = None


# A generator that yields its progress, and returns its result at the end.
Result = TypeVar("Result")
Steps = Generator[Progress, None, Result]
TrainedModel = TypeVar("TrainedModel", bound="GlobalModel")
# What an ensemble averages.
EnsembleRule = Literal["logits", "probabilities"]


@overload
def report_progress(phase: str, epoch_progress: Iterable[EpochProgress]) -> Steps[None]: ...


@overload
def report_progress(
    phase: str, epoch_progress: Iterable[EpochProgress], make_model: Callable[[], TrainedModel]
) -> Steps[TrainedModel]: ...


def report_progress(
    phase: str,
    epoch_progress: Iterable[EpochProgress],
    make_model: Callable[[], GlobalModel | None] = lambda: None,
) -> Steps[GlobalModel | None]:
    """Yield the `epoch_progress` of a training as progress, and return `make_model()` at the end.

    make_model: makes the model so far; also called for each point of the live curve
    """
    for tick in epoch_progress:
        yield Progress(
            phase, tick.done, tick.total, model=make_model() if tick.has_current_models else None
        )
    return make_model()


def should_record_curve_point(
    steps_done_from_1: int, total_steps: int, about_point_count: int = 20
) -> bool:
    """Whether the live curve has a point at a step, counted from 1. The last step always has one."""
    return (
        steps_done_from_1 == total_steps
        or steps_done_from_1 % max(1, total_steps // about_point_count) == 0
    )


@dataclass(frozen=True)
class ResultsOnTestSamples:
    """The results of one pass over test samples: `scores [N, C]`, `accuracy` 0–1, and the
    calibration.

    client_predictions: `[M, N]`, predictions of each client's own model; None if all have the same model
    """

    scores: Tensor
    accuracy: float
    calibration: Calibration
    client_predictions: Tensor | None = None


class GlobalModel:
    """The result of a method: a model that predicts. Its features are the vector that the last
    linear map reads.

    parts:      the attributes that a file of the model keeps, which are also the arguments of its constructor; a
        subclass that names none predicts as its base class does
    parameters: the parameters of all networks that predict
    score_kind: what its scores are, a key of `training.calibration.SCORES`, which says whether their softmax is a
        probability
    report:     of the type that the method declares; on a snapshot of a running method, what is known so far
    """

    parts: ClassVar[tuple[str, ...]] = ()
    parameters: int
    score_kind: ScoreKind = "logits"
    report: Report = Report()

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> Report:
        """Complete the report by what needs test `samples [N, ...], labels [N]`. Called once, at
        the end of a run.
        """
        return self.report

    def logits(self, samples: Samples) -> ClassScores:
        """Compute the scores `[N, C]` of `samples [N, ...]`."""
        raise NotImplementedError

    def features(self, samples: Samples) -> Features:
        """Compute the feature vectors `[N, D]`."""
        raise NotImplementedError

    def predict(self, samples: Samples) -> Predictions:
        """Predict the classes `[N]`."""
        return self.logits(samples).argmax(1)

    def accuracy(self, samples: Samples, labels: Labels) -> Accuracy0To1:
        """Compute the share of `samples [N, ...]` that are classified as `labels [N]`, 0–1."""
        return compute_accuracy(self.predict(samples), labels)

    def compute_test_results(self, samples: Samples, labels: Labels) -> ResultsOnTestSamples:
        """Compute scores, accuracy and calibration on `samples [N, ...], labels [N]` in one pass of
        the model.
        """
        scores = self.logits(samples)
        share_right = compute_accuracy(scores.argmax(1), labels)
        return ResultsOnTestSamples(
            scores, share_right, measure_calibration(scores, labels, self.score_kind)
        )


class NetworkModel(GlobalModel):
    """One network with `.features`, its penultimate layer."""

    parts = ("module",)

    def __init__(self, module: nn.Module, report: Report | None = None) -> None:
        self.module: Any = module.eval()
        self.report = report or Report()
        self.parameters = count_parameters(module)

    def logits(self, samples: Samples) -> Logits:
        if isinstance(self.module, Network):
            return run_in_chunks(self.module.classifier, self.features(samples))
        return run_in_chunks_with_cache(self.module, samples)

    def features(self, samples: Samples) -> Features:
        return run_in_chunks_with_cache(self.module.features, samples)


def average_logits_or_log_mean_probabilities(
    client_logits: ClientLogits, rule: EnsembleRule
) -> ClassScores:
    """Average client logits `[M, N, C]`, or take the logarithm of their mean probabilities; `[N,
    C]`.
    """
    if rule == "logits":
        return client_logits.mean(0)
    return client_logits.softmax(-1).mean(0).log()


class EnsembleModel(GlobalModel):
    """All client models, combined by a fixed rule; features are the concatenated logits `[N, M*C]`.

    `client_logits(x)` is `[M, N, C]`, and cached for the last `x`, so that several results for the
    same samples cost one pass.

    rule: "logits" averages the outputs before the softmax; "probabilities" averages those after it, and the scores are
        their logarithm
    """

    parts: ClassVar[tuple[str, ...]] = ("clients", "rule")
    RULES: ClassVar[tuple[str, ...]] = ("logits", "probabilities")

    def __init__(self, clients: ClientModels, rule: EnsembleRule = "logits") -> None:
        self.clients = clients
        check_allowed_name("rule", rule, self.RULES)
        self.rule: Any = rule
        self.score_kind = "logits" if rule == "logits" else "log-probabilities"
        self.parameters = sum(clients.parameters)
        self.client_logits = CachedFunction(clients.logits)

    def logits(self, samples: Samples) -> ClassScores:
        return average_logits_or_log_mean_probabilities(self.client_logits(samples), self.rule)

    def features(self, samples: Samples) -> Features:
        return self.client_logits(samples).transpose(0, 1).flatten(1)


class ClientsAlone(GlobalModel):
    """The clients' own models side by side, for the curve of local training: accuracy is the mean
    over clients.

    Large images (more than SMALL_INPUT numbers) are divided among the clients: each is read by one
    client, so that a point of the curve costs as much as one model and not M. The expected value is
    the same, the error about 1/(2 √N).
    """

    def __init__(self, clients: ClientModels, report: Report | None = None) -> None:
        self.clients = clients
        self.parameters = sum(clients.parameters)
        self.report = report or Report()

    def accuracy(self, samples: Samples, labels: Labels) -> Accuracy0To1:
        if samples[0].numel() > SMALL_INPUT:
            predictions = self.clients.predict_each_sample_by_one_client(samples)
        else:
            predictions = self.clients.logits(samples).argmax(-1)
        return float((predictions == labels).double().mean())
