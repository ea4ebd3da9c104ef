"""FedLPA's lab: two weights in the plane, the factors as pictures, λ and π, the solver, what the uploads give away."""

import math
from collections.abc import Generator, Sequence
from typing import Any

import ipywidgets as widgets

from ...errors import RunError
from ...methods.fedlpa import FedLPA
from ...panels.lab_view import Extra, LabSpec, LabView, PanelState
from ...plots import Picture
from ..controls import dropdown, whole_numbers
from . import numbers
from .plots.damping import damping
from .plots.factors import factors
from .plots.leak import leak
from .plots.plane import Plane
from .plots.solver import solver
from .two_weights import two_weights

SLIM = {"width": "225px"}


class TwoWeights(LabView):
    """Two clients, one layer of two weights: ellipses of what they are sure of, and four answers of the server."""

    name, title, ready = "plane", "Two weights", "always"

    def __init__(self) -> None:
        angle = "The direction that client 2 is sure of; client 1 is sure of weight 1, which is 0 degrees"
        ratio = "How much surer a client is along its direction than across it"
        self.angle = whole_numbers("Angle (°)", 90, 0, 180, angle, step=5, layout=SLIM)
        self.ratio = whole_numbers("Precision", 9, 1, 25, ratio, layout=SLIM)
        self.damping = widgets.FloatLogSlider(
            1e-6, base=10, min=-6, max=6, step=0.5, description="λ", style={"description_width": "14px"},
            readout_format=".1g", layout={"width": "200px"}, tooltip="Damping, the prior precision of every weight",
        )  # fmt: skip
        self.controls = [self.angle, self.ratio, self.damping]
        self.picture = Plane()

    def draw(self, state: PanelState) -> Picture:
        angle, ratio, damping = self.angle.value, self.ratio.value, self.damping.value
        setting = f"angle {angle} degrees, precision {ratio} to 1, λ = {damping:.1g}"
        return self.picture.show(two_weights(angle, ratio, damping), setting)


class FactorPictures(LabView):
    """A and B of one layer of one client, and the image in A's last column."""

    name, title, ready = "factors", "Factors", "run"
    empty = "Press Run: A and B of each layer, and the mean image that the first A carries."

    def __init__(self) -> None:
        self.layer = dropdown("Layer", [("layer 1", 0)], "Whose factors are shown", 190)
        self.controls = [self.layer]

    def adapt(self, state: PanelState) -> None:
        count = len(state.report.layers)
        options = [(f"layer {i + 1}" + (" (last)" if i == count - 1 else ""), i) for i in range(count)]
        if list(self.layer.options) != options:
            chosen = min(self.layer.value or 0, count - 1)
            self.layer.options = options
            self.layer.value = chosen

    def prepare(self, state: PanelState) -> list:
        return numbers.posteriors_of(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        layer = numbers.layer_factors(state.outcome, state.prepared, state.client, self.layer.value)
        return factors(layer, state.class_names, state.klass)


class Damping(LabView):
    """Accuracy against λ for five uses of the uploads; mean diagonals beside what λ adds."""

    name, title, ready = "damping", "λ and π", "run"
    empty = "Press Run: the server's part is then done again for every λ, from the same uploads."

    def __init__(self) -> None:
        self.damping = widgets.SelectionSlider(
            options=labelled(numbers.HALVES), value=nearest(numbers.HALVES, 1e-3), description="λ",
            tooltip="Damping: which λ is looked at", layout={"width": "330px"}, style={"description_width": "20px"},
        )  # fmt: skip
        rules = [("π = 1", "one"), ("π by the traces", "trace")]
        self.pi = dropdown("Split", rules, "How the two factors share the damping", 210)
        self.controls = [self.damping, self.pi]
        self._outcome: Any = None

    def adapt(self, state: PanelState) -> None:
        """Start at what the run had; offer the λ that were tried."""
        if state.prepared is not None and list(self.damping.options) != labelled(state.prepared.dampings):
            self.damping.options = labelled(state.prepared.dampings)
        if state.outcome is not self._outcome:
            self._outcome, options = state.outcome, state.outcome.options
            self.damping.value = nearest([value for _, value in self.damping.options], options["damping"])
            self.pi.value = options["pi"]

    def prepare(self, state: PanelState) -> Generator[None, None, numbers.DampingSweep]:
        return numbers.sweep_dampings(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        sweep = state.prepared
        chosen = min(self.damping.index or 0, len(sweep.dampings) - 1)
        return damping(sweep, self.pi.value, chosen, state.client)


def labelled(dampings: Sequence[float]) -> list[tuple[str, float]]:
    return [(f"{value:.1g}", value) for value in dampings]


def nearest(dampings: Sequence[float], damping: float) -> float:
    return min(dampings, key=lambda value: abs(math.log(value / damping)))


LAST = -1


class Solver(LabView):
    """The run's residuals, while it runs too; and all three solvers from the same uploads."""

    name, title, ready = "solver", "Solver", "live"
    empty = "Press Run: how far each layer is from its solution, step by step."
    work_label = "Solve in three ways"

    def __init__(self) -> None:
        self.damping = dropdown("λ", labelled(numbers.DECADES), "Damping for the three solvers", 105)
        how = "How many steps of gradient descent; conjugate gradients stop by themselves"
        self.steps = dropdown("Gradient steps", [100, 1000, 10_000], how, 196)
        self.damping.value, self.steps.value = numbers.DECADES[3], 1000
        self.step = widgets.SelectionSlider(
            options=[*((f"{s}", s) for s in [0, *(2**e for e in range(14))]), ("last", LAST)], value=LAST,
            description="Step", tooltip="Mark the state after that many steps", layout={"width": "215px"},
            style={"description_width": "34px"},
        )  # fmt: skip
        self.controls = [self.damping, self.steps, self.step]

    def work(self, state: PanelState) -> Generator[tuple[int, int, str], None, numbers.Solutions]:
        """Conjugate gradients, gradient descent and the shortcut on the run's uploads, with the λ that is chosen"""
        if state.outcome is None:
            raise RunError("There is no finished run yet; press Run first.")
        return (yield from numbers.solutions(state.outcome, self.damping.value, self.steps.value))

    def draw(self, state: PanelState) -> Picture:
        outcome, report, worked = state.outcome, state.report, state.worked
        if outcome is None:
            asked = state.runs.find("fedlpa").settings  # the knob may have been moved since
            name = asked.get("fedlpa.solver", FedLPA.solver)
            shown = numbers.Solutions({name: report.curves}, {}, numbers.layer_names(report), state.setting)
        else:
            shown = worked if worked is not None and worked.outcome is outcome else numbers.own_solution(outcome)
        return solver(shown, None if self.step.value == LAST else self.step.value)


class Leak(LabView):
    """Which classes can be read off the uploads, beside the true counts; and what noise does to both."""

    name, title, ready = "leak", "What leaks", "run"
    empty = "Press Run: which classes a client holds, read off what it has sent."

    def __init__(self) -> None:
        what = "Which numbers of the upload the attacker reads; plain averaging sends the bias too"
        self.source = dropdown("Read", [numbers.DIAGONAL, numbers.BIAS], what, 260)
        self.noise = widgets.SelectionSlider(
            options=[(f"{n:g}", n) for n in numbers.NOISES], description="Noise", layout={"width": "280px"},
            tooltip="Laplace noise on all uploads, as a share of each tensor's size; no privacy guarantee",
            style={"description_width": "46px"},
        )  # fmt: skip
        self.controls = [self.source, self.noise]

    def prepare(self, state: PanelState) -> Generator[None, None, numbers.NoiseSweep]:
        return numbers.sweep_noises(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        sweep, read = state.prepared, self.source.value
        read = read if read in sweep.sent else numbers.DIAGONAL
        chosen = sweep.noises.index(self.noise.value)
        return leak(sweep, read, chosen, state.class_names, state.client, state.klass)


LAB = LabSpec(
    method="fedlpa",
    companions=("fedavg", "fisher_merge", "regmean"),
    knobs=("damping", "pi", "solver", "iterations", "noise"),
    extras=(
        Extra(
            "init",
            "Initial models",
            (("the same for all", "same"), ("each its own", "different")),
            "Whether the clients start from the server's initial model or each from random weights of its own",
        ),
        Extra(
            "model",
            "Network",
            (("by the size of the images", "auto"), ("five-layer CNN", "cnn"), ("perceptron", "mlp")),
            "The clients' network; factors of a convolution are those of its patches",
        ),
    ),
    settings={"alpha": 0.1, "seeds": 1},
    views=(TwoWeights, FactorPictures, Damping, Solver, Leak),
    first="plane",
    name="fedlpa",
)
