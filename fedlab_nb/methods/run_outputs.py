"""What a running method yields and returns: its progress, models that predict, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar, overload

import numpy as np
from torch import Tensor, nn

from ..errors import choose
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
    """The results of a run for pictures and lessons: base of the reports that the methods declare, and the report
    of a method that leaves nothing behind.

        @dataclass(frozen=True, eq=False)
        class FensReport(Report):
            losses: np.ndarray | None = None        # [T]
            member_accuracy: list[float] | None = None

        class Fens(Method):
            report = FensReport

    A misspelt field is an AttributeError where it is read, and a TypeError where it is set.

    A field holds a numpy array or a plain value (number, text, lists and dicts of them); None: this run has none. Every
    field has a default, so that a snapshot of a running method can leave out what it does not know yet.
    """

    def others(self) -> AccuracyByRule:
        """{rule: test accuracy, 0–1} of the same run under other rules; comparisons show them, too."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that hold an array."""
        values = self.get_fields_that_are_not_none().items()
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def numbers(self) -> JsonObject:
        """The fields that hold plain values: what `run --json` prints."""
        values = self.get_fields_that_are_not_none().items()
        return {name: value for name, value in values if not isinstance(value, np.ndarray)}

    def get_fields_that_are_not_none(self) -> dict[str, np.ndarray | JsonValue]:
        """The fields that are not None."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def check_report_type_and_copy_arrays(report: Report, declared: type[Report]) -> Report:
    """`report`, which must be of the type that its method has `declared`; a model that made none gets an empty one.

    Its arrays are copied: a slice of a larger array would keep all of it in memory.
    """
    if type(report) is Report:
        return declared()
    if type(report) is not declared:
        raise TypeError(
            f"The model's report is a {type(report).__name__}; its method declares {declared.__name__}."
        )
    copies = {name: array.copy() for name, array in report.arrays().items()}
    return replace(report, **copies)


@dataclass(frozen=True)
class Progress:
    """One step of a run: `done` of `total` in `phase`; `model`: the model so far, where the live curve has a point."""

    phase: str
    done: int
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    model: GlobalModel | None = None


# What runs step by step yields its progress, and returns something at the end.
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
    """The `epoch_progress` of a training as progress; returns `make_model()` at the end.

    `make_model` is also called where the live curve has a point, for the model so far.
    """
    for tick in epoch_progress:
        yield Progress(
            phase, tick.done, tick.total, model=make_model() if tick.has_current_models else None
        )
    return make_model()


def should_record_curve_point(steps_done: int, total_steps: int, point_count: int = 20) -> bool:
    """True at about `point_count` of the `total_steps` (from 1), the last one among them."""
    return steps_done == total_steps or steps_done % max(1, total_steps // point_count) == 0


@dataclass(frozen=True)
class Tested:
    """The results of one pass over test samples: `scores [N, C]`, `accuracy` 0–1, and the calibration.

    client_predictions: `[M, N]`, what each client says with a model of its own; None if all have the same model
    """

    scores: Tensor
    accuracy: float
    calibration: Calibration
    client_predictions: Tensor | None = None


class GlobalModel:
    """The result of a method: a model that predicts. `features` is the vector that the last linear map reads.

    `parameters`: how many numbers predict (of all networks involved). `report`: what the run leaves behind, of the type
    that the method declares; on a snapshot of a running method, what is known so far. `score_kind`: what its scores
    are, a key of `training.calibration.SCORES`, which says whether their softmax is a probability. `parts`: the
    attributes that are saved with a model in a file, which are also the arguments of its constructor; a subclass that
    names none predicts as its base class does.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    parameters: int
    score_kind: ScoreKind = "logits"
    report: Report = Report()

    def measured(self, samples: Samples, labels: Labels) -> Report:
        """The report, completed by what needs test `samples [N, ...], labels [N]`; called once, at the end."""
        return self.report

    def logits(self, samples: Samples) -> ClassScores:
        """Scores `[N, C]` of `samples [N, ...]`."""
        raise NotImplementedError

    def features(self, samples: Samples) -> Features:
        """Feature vectors `[N, D]`."""
        raise NotImplementedError

    def predict(self, samples: Samples) -> Predictions:
        """Classes `[N]`."""
        return self.logits(samples).argmax(1)

    def accuracy(self, samples: Samples, labels: Labels) -> Accuracy0To1:
        """Share of `samples [N, ...]` classified as `labels [N]`, 0–1."""
        return compute_accuracy(self.predict(samples), labels)

    def tested(self, samples: Samples, labels: Labels) -> Tested:
        """Scores, accuracy and calibration on `samples [N, ...], labels [N]`, the model run once."""
        scores = self.logits(samples)
        share_right = compute_accuracy(scores.argmax(1), labels)
        return Tested(scores, share_right, measure_calibration(scores, labels, self.score_kind))


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


def average_client_logits(client_logits: ClientLogits, rule: EnsembleRule) -> ClassScores:
    """The mean of client logits `[M, N, C]`, or the logarithm of the mean of their probabilities, `[N, C]`."""
    if rule == "logits":
        return client_logits.mean(0)
    return client_logits.softmax(-1).mean(0).log()


class EnsembleModel(GlobalModel):
    """All client models, combined by a fixed rule; features are the concatenated logits `[N, M*C]`.

    `client_logits(x)`: `[M, N, C]`, cached for the last `x`, so that all that is read of the same samples costs one
    pass.

    `rule`: "logits" averages pre-softmax outputs, "probabilities" averages softmax outputs (scores are then their
    logarithm).
    """

    parts: ClassVar[tuple[str, ...]] = ("clients", "rule")
    RULES: ClassVar[tuple[str, ...]] = ("logits", "probabilities")

    def __init__(self, clients: ClientModels, rule: EnsembleRule = "logits") -> None:
        self.clients = clients
        choose("rule", rule, self.RULES)
        self.rule: Any = rule
        self.score_kind = "logits" if rule == "logits" else "log-probabilities"
        self.parameters = sum(clients.parameters)
        self.client_logits = CachedFunction(clients.logits)

    def logits(self, samples: Samples) -> ClassScores:
        return average_client_logits(self.client_logits(samples), self.rule)

    def features(self, samples: Samples) -> Features:
        return self.client_logits(samples).transpose(0, 1).flatten(1)


class ClientsAlone(GlobalModel):
    """The clients' own models side by side, for the curve of local training: accuracy is the mean over clients.

    Large images (more than SMALL_INPUT numbers) are shared out: each is read by one client, so that a point of the
    curve costs what one model does, not M. Its mean is the same, its error about 1/(2 √N).
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
