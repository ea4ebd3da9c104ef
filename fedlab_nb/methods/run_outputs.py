"""What a running method yields and returns: its progress, models that predict, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from torch import Tensor, nn

from ..errors import choose
from ..models import Network, parameter_count
from ..training import ClientModels, Tick, run_cached, run_in_chunks
from ..training.backend import SMALL_INPUT
from ..training.calibration import Calibration, measure_calibration
from ..training.evaluate import CachedFunction, compute_accuracy


@dataclass(frozen=True, eq=False)
class Report:
    """What a run leaves behind for pictures and lessons: base of the reports that the methods declare, and the report
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

    def others(self) -> dict[str, float]:
        """{rule: test accuracy, 0–1} of the same run under other rules; comparisons show them, too."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that hold an array."""
        values = self.known_fields().items()
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def numbers(self) -> dict[str, Any]:
        """The fields that hold plain values: what `run --json` prints."""
        values = self.known_fields().items()
        return {name: value for name, value in values if not isinstance(value, np.ndarray)}

    def known_fields(self) -> dict[str, Any]:
        """The fields that are not None."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def check_report_type(report: Report, declared: type[Report]) -> Report:
    """`report`, which must be of the type that its method has `declared`; a model that made none gets an empty one.

    Its arrays are copied: a slice of a larger array would keep all of it in memory.
    """
    if type(report) is Report:
        return declared()
    if type(report) is not declared:
        raise TypeError(
            f"The model's report is a {type(report).__name__};"
            f" its method declares {declared.__name__}."
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
T = TypeVar("T")
Steps = Generator[Progress, None, T]


def report_progress(
    phase: str, ticks: Iterable[Tick], model: Callable[[], Any] = lambda: None
) -> Steps[Any]:
    """The `ticks` of a training as progress; returns `model()` at the end.

    `model` is also called where the live curve has a point, for the model so far.
    """
    for tick in ticks:
        yield Progress(phase, tick.done, tick.total, model=model() if tick.fresh else None)
    return model()


def has_curve_point(done: int, total: int, frames: int = 20) -> bool:
    """Whether the live curve has a point after `done` (from 1) of `total`: about `frames` have one, the last too."""
    return done == total or done % max(1, total // frames) == 0


@dataclass(frozen=True)
class Tested:
    """The results of one pass over test samples: `scores [N, C]`, `accuracy` 0–1, and the calibration.

    client_predictions: `[M, N]`, what each client says with a model of its own; None where all have the same model
    """

    scores: Tensor
    accuracy: float
    calibration: Calibration
    client_predictions: Tensor | None = None


class GlobalModel:
    """What a method returns: something that predicts. `features` is the vector that the last linear map reads.

    `parameters`: how many numbers predict (of all networks involved). `report`: what the run leaves behind, of the type
    that the method declares; on a snapshot of a running method, what is known so far. `score_kind`: what its scores
    are, a key of `training.calibration.SCORES`, which says whether their softmax is a probability. `parts`: the
    attributes that are saved with a model in a file, which are also the arguments of its constructor; a subclass that
    names none predicts as its base class does.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    parameters: int
    score_kind: str = "logits"
    report: Report = Report()

    def measured(self, x: Tensor, y: Tensor) -> Report:
        """The report, completed by what needs test samples `x [N, ...], y [N]`; called once, at the end."""
        return self.report

    def logits(self, x: Tensor) -> Tensor:
        """Scores `[N, C]` of samples `x [N, ...]`."""
        raise NotImplementedError

    def features(self, x: Tensor) -> Tensor:
        """Feature vectors `[N, D]`."""
        raise NotImplementedError

    def predict(self, x: Tensor) -> Tensor:
        """Classes `[N]`."""
        return self.logits(x).argmax(1)

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        """Share of `x [N, ...]` classified as `y [N]`, 0–1."""
        return compute_accuracy(self.predict(x), y)

    def tested(self, x: Tensor, y: Tensor) -> Tested:
        """Scores, accuracy and calibration on samples `x [N, ...], y [N]`, the model run once."""
        scores = self.logits(x)
        share_right = compute_accuracy(scores.argmax(1), y)
        return Tested(scores, share_right, measure_calibration(scores, y, self.score_kind))


class NetworkModel(GlobalModel):
    """One network with `.features`, its penultimate layer."""

    parts = ("module",)

    def __init__(self, module: nn.Module, report: Report | None = None) -> None:
        self.module: Any = module.eval()
        self.report = report or Report()
        self.parameters = parameter_count(module)

    def logits(self, x: Tensor) -> Tensor:
        if isinstance(self.module, Network):
            return run_in_chunks(self.module.classifier, self.features(x))
        return run_cached(self.module, x)

    def features(self, x: Tensor) -> Tensor:
        return run_cached(self.module.features, x)


def average_answers(logits: Tensor, rule: str) -> Tensor:
    """The mean of client logits `[M, N, C]`, or the logarithm of the mean of their probabilities, `[N, C]`."""
    if rule == "logits":
        return logits.mean(0)
    return logits.softmax(-1).mean(0).log()


class EnsembleModel(GlobalModel):
    """All client models, combined by a fixed rule; features are the concatenated logits `[N, M*C]`.

    `client_logits(x)`: `[M, N, C]`, cached for the last `x`, so that all that is read of the same samples costs one
    pass.

    `rule`: "logits" averages pre-softmax outputs, "probabilities" averages softmax outputs (scores are then their
    logarithm).
    """

    parts: ClassVar[tuple[str, ...]] = ("clients", "rule")
    RULES: ClassVar[tuple[str, ...]] = ("logits", "probabilities")

    def __init__(self, clients: ClientModels, rule: str = "logits") -> None:
        self.clients = clients
        self.rule = choose("rule", rule, self.RULES)
        self.score_kind = "logits" if rule == "logits" else "log-probabilities"
        self.parameters = sum(clients.parameters)
        self.client_logits = CachedFunction(clients.logits)

    def logits(self, x: Tensor) -> Tensor:
        return average_answers(self.client_logits(x), self.rule)

    def features(self, x: Tensor) -> Tensor:
        return self.client_logits(x).transpose(0, 1).flatten(1)


class ClientsAlone(GlobalModel):
    """The clients' own models side by side, for the curve of local training: accuracy is the mean over clients.

    Large images (more than SMALL_INPUT numbers) are shared out: each is read by one client, so that a point of the
    curve costs what one model does, not M. Its mean is the same, its error about 1/(2 √N).
    """

    def __init__(self, clients: ClientModels, report: Report | None = None) -> None:
        self.clients = clients
        self.parameters = sum(clients.parameters)
        self.report = report or Report()

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        if x[0].numel() > SMALL_INPUT:
            predictions = self.clients.predict_in_turn(x)
        else:
            predictions = self.clients.logits(x).argmax(-1)
        return float((predictions == y).double().mean())
