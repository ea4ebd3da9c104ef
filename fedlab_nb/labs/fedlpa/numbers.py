"""The numbers of FedLPA's pictures and lesson, from a finished run and what its clients had measured.

sweep_dampings, sweep_noises and solutions are generators: what they return is ready when they are through.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any

import numpy as np
import torch

from ...comm import from_upper_triangle
from ...data import load
from ...errors import RunError
from ...methods.fedlpa.client import classes_read_off, label_leak
from ...methods.fedlpa.server import LIMIT, USES, FedLPAReport, ServerReplay
from ...methods.parts.kronecker import PI_RULES
from ...rng import generator
from ...study.experiment import validation_of
from ..runs import where

Samples = tuple[torch.Tensor, torch.Tensor]
COMPARED = ("cg", "gd", "ea")  # solvers
LARGE = 400_000  # bytes that one client measured; beyond that fewer λ_damp, draws and test images are tried
HALVES = [10 ** (e / 2) for e in range(-12, 5)]  # λ_damp from 1e-6 to 100
DECADES = HALVES[::2]
NOISES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
DIAGONAL, BIAS = "diagonal of the last B", "bias of the last layer"


# ------------------------------------------------------------------------------------------------ a run
def posteriors_of(outcome: Any) -> list:
    """What the clients of a run had measured; RunError where it was too large to stay with the model."""
    if not outcome.model.posteriors:
        raise RunError(
            f"The factors of these networks are too large to be stored with the run (more than {LIMIT // 10**6} "
            "MB in all); choose a smaller network or fewer clients."
        )
    return outcome.model.posteriors


def replay(outcome: Any, samples: Samples | None = None) -> tuple[ServerReplay, bool]:
    """The run's server, ready to do its part again, and whether its networks are large. `samples`: on which accuracies
    are reported; default: the test images."""
    one = posteriors_of(outcome)[0]
    large = one.size > LARGE
    dataset, like = load(outcome.settings.dataset), next(iter(one.state.values()))
    rows = slice(0, 1000 if large else None)
    x, y = samples or (dataset.x_test, dataset.y_test)
    x, y = x[rows].to(like.device, like.dtype), y[rows].to(like.device)
    return ServerReplay(outcome.model, x, y, outcome.options["weights"]), large


def layer_names(report: FedLPAReport) -> list[str]:
    return [f"layer {i + 1}" for i in range(len(report.layers))]


# ------------------------------------------------------------------------------------------------ factors
@dataclass(frozen=True, eq=False)
class LayerFactors:
    """Undamped `a [i, i]` and `b [o, o]` of `layer` (in words) of a `client` with `counts [C]` samples by class.

    kind:    of the mean input in A's last column: "image", "patch", "units"; None: there is no bias, and no such column
    shape:   channels, height, width of an image or patch;   outputs_are_classes: rows of B are classes
    sent:    A and B as they are sent, damped (and noised), None: the picture shows them before that;   added: what the
             damping has added to their diagonals;   setting: of the run, in words
    """

    a: np.ndarray
    b: np.ndarray
    layer: str
    client: int
    counts: np.ndarray
    kind: str | None = None
    shape: tuple[int, ...] | None = None
    outputs_are_classes: bool = False
    setting: str = ""
    sent: tuple[np.ndarray, np.ndarray] | None = None
    added: tuple[float, float] = (0.0, 0.0)

    @property
    def shown(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B of the picture."""
        return self.sent or (self.a, self.b)

    @property
    def mean(self) -> np.ndarray | None:
        """`[i - 1]`: the client's mean input. The corner of A counts positions: 1, or Q of a convolution."""
        return self.a[:-1, -1] / self.a[-1, -1] if self.kind else None


def layer_factors(
    outcome: Any, posteriors: Sequence[Any], client: int | None, at: int, sent: bool = True
) -> LayerFactors:
    """Layer number `at` of a client, as it was sent or before damping; client 0 for None or one that the run has
    not."""
    client = client if client is not None and client < len(posteriors) else 0
    own, report = posteriors[client], outcome.report
    name, last = report.layers[at], at == len(report.layers) - 1
    weight = own.state[f"{name}.weight"]
    shape = image_shape(outcome.settings.dataset, tuple(weight.shape)) if at == 0 else None
    kind = "units" if shape is None else "patch" if weight.ndim == 4 else "image"
    kind = kind if f"{name}.bias" in own.state else None
    a, b = (factor.cpu().numpy() for factor in (own.factors[name].a, own.factors[name].b))
    classes = last and len(b) == len(outcome.per_class)
    counts = report.train_counts[client]
    shown = LayerFactors(a, b, f"layer {at + 1}", client, counts, kind, shape, classes, where(outcome))
    if not sent:
        return shown
    options = outcome.options
    noise = generator(outcome.settings.seed, "fedlpa", "noise", client)  # the run's own draw
    triangles = own.upload(options["damping"], options["pi"], options["noise"], noise)["factors"][name]
    root, ratio = options["damping"] ** 0.5, own.ratios(options["pi"])[at]
    both = (from_upper_triangle(triangles["a"]).cpu().numpy(), from_upper_triangle(triangles["b"]).cpu().numpy())
    return replace(shown, sent=both, added=(root * ratio, root / ratio))


def image_shape(dataset: str, weight: tuple[int, ...]) -> tuple[int, ...] | None:
    """Channels, height and width of what the first layer sees: the image, or a convolution's patch; else None."""
    shape = weight[1:] if len(weight) == 4 else tuple(load(dataset).input_shape)
    seen = len(shape) == 3 and shape[0] in (1, 3) and math.prod(shape) == math.prod(weight[1:])
    return tuple(shape) if seen else None


# ------------------------------------------------------------------------------------------------ λ_damp and π
@dataclass(frozen=True, eq=False)
class DampingSweep:
    """The server's part for each of `dampings` λ_damp, from the same uploads.

    accuracies: rule for π -> use of the uploads (of USES) -> validation accuracy 0-1 for each λ_damp
    tested:     rule for π -> test accuracy 0-1 of the exact solution with the λ_damp that is best on validation images
    measured:   "A" and "B" -> `[M, layers]`, mean diagonal of the undamped factor;   ratios: rule -> `[M, layers]`, π
    layers:     their names in words;   setting: of the run, in words
    """

    dampings: Sequence[float]
    accuracies: Mapping[str, Mapping[str, Sequence[float]]]
    measured: Mapping[str, np.ndarray]
    ratios: Mapping[str, np.ndarray]
    layers: Sequence[str]
    setting: str
    tested: Mapping[str, float] = field(default_factory=dict)
    judged_on: str = "held-out"

    def best(self, rule: str) -> int:
        """Number of the λ_damp with which the exact solution is best on validation images."""
        shares = self.accuracies[rule]["exact"]
        return shares.index(max(shares))

    def added(self, rule: str, chosen: int) -> dict[str, np.ndarray]:
        """What λ_damp number `chosen` adds to the diagonals, as `measured`."""
        root = self.dampings[chosen] ** 0.5
        return {"A": root * self.ratios[rule], "B": root / self.ratios[rule]}


def sweep_dampings(outcome: Any) -> Generator[None, None, DampingSweep]:
    """Every λ_damp, both rules for π, every use of the uploads, on validation images; of the λ_damp that is best there,
    and of it alone, the test accuracy. RunError where the run has no validation images."""
    held = validation_of(outcome)
    if held is None:
        raise RunError(
            "This run has no validation images to compare λ_damp on: its clients hold nothing out, and its data "
            "set has no public images with labels; choose a holdout above 0."
        )
    server, large = replay(outcome, held[:2])
    dampings = DECADES if large else HALVES
    accuracies: dict[str, dict[str, list[float]]] = {rule: {use: [] for use in USES} for rule in PI_RULES}
    for rule, by_use in accuracies.items():
        for damping in dampings:
            received = server.uploads(damping, rule)
            for use, shares in by_use.items():
                known = use == "none" and shares  # the average does not depend on λ_damp
                shares.append(shares[0] if known else server.accuracy(server.use(use, received)))
                yield
    layers = [list(own.factors.values()) for own in server.posteriors]
    measured = {
        factor: np.array([[getattr(layer, factor.lower()).diagonal().mean().item() for layer in own] for own in layers])
        for factor in "AB"
    }
    ratios = {rule: np.array([own.ratios(rule) for own in server.posteriors]) for rule in PI_RULES}
    names = layer_names(outcome.report)
    sweep = DampingSweep(dampings, accuracies, measured, ratios, names, where(outcome), {}, held[2])
    on_test, _ = replay(outcome)
    tested = {}
    for rule in PI_RULES:
        received = on_test.uploads(dampings[sweep.best(rule)], rule)
        tested[rule] = on_test.accuracy(on_test.use("exact", received))
    return replace(sweep, tested=tested)


# ------------------------------------------------------------------------------------------------ the solver
@dataclass(frozen=True, eq=False)
class Solutions:
    """How solvers went, from the same uploads.

    curves:  solver -> layer -> relative residual after 0, 1, 2, … steps;   points: solver -> (steps, accuracy 0-1)
    layers:  their names in words, in the order of the curves;   setting: in words
    outcome: of the run; None while it runs
    """

    curves: Mapping[str, Mapping[str, Sequence[float]]]
    points: Mapping[str, Sequence[tuple[int, float]]]
    layers: Sequence[str]
    setting: str
    outcome: Any = None


def solutions(outcome: Any, damping: float, steps: int) -> Generator[tuple[int, int, str], None, Solutions]:
    """The three solvers of the paper's question on the run's uploads; `steps` of gradient descent."""
    server, _ = replay(outcome)
    received = server.uploads(damping, outcome.options["pi"])
    curves, points = {}, {}
    for name in COMPARED:
        accuracies = {}
        for now, accuracy in server.path(name, steps, received, outcome.options["step"]):
            if accuracy is not None:
                accuracies[now.iteration] = accuracy
            if now.iteration % 10 == 0:
                yield min(now.iteration, steps), steps, f"{name}, step {now.iteration}"
        curves[name] = {layer: torch.stack(curve).tolist() for layer, curve in now.residuals.items()}
        points[name] = list(accuracies.items())
    return Solutions(curves, points, layer_names(outcome.report), where(outcome, f"λ_damp = {damping:g}"), outcome)


def own_solution(outcome: Any) -> Solutions:
    """The run's own solver: its curve has a point after 0, 1, 2, 4, … steps; then the end."""
    accuracies = [p["accuracy"] for p in outcome.history if p["phase"] == "solve"]
    points = dict(zip([0, *(2**e for e in range(20))], accuracies, strict=False))
    options, report = outcome.options, outcome.report
    if not options["rounds"]:
        points[max(report.iterations.values())] = outcome.accuracy
    name, setting = options["solver"], where(outcome, f"λ_damp = {options['damping']:g}")
    return Solutions({name: report.curves}, {name: sorted(points.items())}, layer_names(report), setting, outcome)


# ------------------------------------------------------------------------------------------------ what leaks
@dataclass(frozen=True, eq=False)
class NoiseSweep:
    """Which classes are read off the uploads for each of `noises`; `counts [M, C]`: true samples by class.

    sent:       what is read (DIAGONAL, BIAS) -> `[M, C]` for each noise
    precision:  what is read -> share of right guesses for each noise;   chance: of a blind attacker
    accuracy:   test accuracy of FedLPA for each noise;   setting: of the run, in words
    """

    noises: Sequence[float]
    counts: np.ndarray
    sent: Mapping[str, Sequence[np.ndarray]]
    precision: Mapping[str, Sequence[float]]
    accuracy: Sequence[float]
    chance: float
    setting: str

    def guesses(self, what: str, chosen: int) -> list[list[int]]:
        """The classes that are taken to be there, by client, as many as it has."""
        held = (self.counts > 0).sum(1).tolist()
        return [classes_read_off(torch.as_tensor(row), n) for row, n in zip(self.sent[what][chosen], held, strict=True)]


def sweep_noises(outcome: Any) -> Generator[None, None, NoiseSweep]:
    """Every noise, in three draws; the numbers that are `sent` are those of the first one."""
    server, large = replay(outcome)
    options, last = outcome.options, outcome.report.layers[-1]
    counts = torch.as_tensor(outcome.report.train_counts)
    readings = {DIAGONAL: lambda upload: from_upper_triangle(upload["factors"][last]["b"]).diagonal()}
    if f"{last}.bias" in server.posteriors[0].state:
        readings[BIAS] = lambda upload: upload["state"][f"{last}.bias"]
    sent: dict[str, list[np.ndarray]] = {what: [] for what in readings}
    precision: dict[str, list[float]] = {what: [] for what in readings}
    accuracy = []
    for noise in NOISES:
        draws = []
        for draw in range(1 if large or not noise else 3):
            draws.append(server.uploads(options["damping"], options["pi"], noise, seed=draw))
            yield
        accuracy.append(mean(server.accuracy(server.use("exact", received)) for received in draws))
        for what, read in readings.items():
            numbers = [torch.stack([read(upload) for upload in received]).cpu() for received in draws]
            sent[what].append(numbers[0].double().numpy())
            precision[what].append(mean(label_leak(of, counts)["precision"] for of in numbers))
    chance = float((counts > 0).double().mean())
    return NoiseSweep(NOISES, counts.numpy(), sent, precision, accuracy, chance, where(outcome))
