"""FedLPA's lab: two weights in the plane, the factors, λ_damp and π, the solver, what the uploads give away."""

import math
from collections.abc import Generator, Sequence
from typing import Any

from ...errors import RunError
from ...methods.fedlpa import FedLPA
from ...panels.state import PanelState
from ...plots import Picture
from ..controls import offer
from ..views import View, spec
from . import numbers
from .plots.damping import damping
from .plots.factors import factors
from .plots.leak import leak
from .plots.plane import Plane
from .plots.solver import solver
from .two_weights import two_weights


class TwoWeights(View, name="plane"):
    """Two clients, one layer of two weights: ellipses of what they are sure of, and four answers of the server."""

    def __init__(self) -> None:
        super().__init__()
        self.picture = Plane()

    def draw(self, state: PanelState) -> Picture:
        angle, ratio, damping = self.angle.value, self.ratio.value, self.damping.value
        setting = f"angle {angle} degrees, precision {ratio} to 1, λ_damp = {damping:.1g}"
        return self.picture.show(two_weights(angle, ratio, damping), setting)


class FactorPictures(View, name="factors"):
    """A and B of one layer of one client, as sent or before damping, and the image in A's last column."""

    def adapt(self, state: PanelState) -> None:
        count = len(state.report.layers)
        options = [(f"layer {i + 1}" + (" (last)" if i == count - 1 else ""), i) for i in range(count)]
        offer(self.layer, options, count - 1)

    def prepare(self, state: PanelState) -> list:
        return numbers.posteriors_of(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        sent = self.what.value == "sent"
        layer = numbers.layer_factors(state.outcome, state.prepared, state.client, self.layer.value, sent)
        return factors(layer, state.class_names, state.klass)


class Damping(View, name="damping"):
    """Accuracy against λ_damp for five uses of the uploads; mean diagonals beside what λ_damp adds."""

    _outcome: Any = None

    def __init__(self) -> None:
        super().__init__(damping=labelled(numbers.HALVES))
        self.damping.value = nearest(numbers.HALVES, 1e-3)

    def adapt(self, state: PanelState) -> None:
        """Start at what the run had; offer the λ_damp that were tried."""
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


class Solver(View, name="solver"):
    """The run's residuals, while it runs too; and all three solvers from the same uploads."""

    def __init__(self) -> None:
        steps = [*((f"{s}", s) for s in [0, *(2**e for e in range(14))]), ("last", LAST)]
        super().__init__(damping=labelled(numbers.DECADES), step=steps)
        self.damping.value, self.step.value = numbers.DECADES[3], LAST

    def work(self, state: PanelState) -> Generator[tuple[int, int, str], None, numbers.Solutions]:
        """Conjugate gradients, gradient descent and the shortcut on the run's uploads, with the chosen λ_damp"""
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


class Leak(View, name="leak"):
    """Which classes can be read off the uploads, beside the true counts; and what noise does to both."""

    def __init__(self) -> None:
        super().__init__(source=[numbers.DIAGONAL, numbers.BIAS], noise=[(f"{n:g}", n) for n in numbers.NOISES])

    def prepare(self, state: PanelState) -> Generator[None, None, numbers.NoiseSweep]:
        return numbers.sweep_noises(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        sweep, read = state.prepared, self.source.value
        read = read if read in sweep.sent else numbers.DIAGONAL
        chosen = sweep.noises.index(self.noise.value)
        return leak(sweep, read, chosen, state.class_names, state.client, state.klass)


LAB = spec(__name__, TwoWeights, FactorPictures, Damping, Solver, Leak)
