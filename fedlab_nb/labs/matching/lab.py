"""The lab of neuron matching: a game by hand, the loss barrier, who is matched with whom, starts, ways to average."""

from collections.abc import Mapping
from typing import Any

from ...panels.state import PanelState
from ...plots import Picture
from ...plots.kit import blank
from ..controls import offer
from ..runs import Steps, one_run, where
from ..views import View, spec
from . import averages, numbers
from .game import STREAMS, UNITS, puzzle, swapped
from .plots.barrier import barrier
from .plots.game import game
from .plots.partners import partners
from .plots.starts import starts
from .plots.ways import ways


def choose_two(view: Any, state: PanelState) -> None:
    """Fit the menus of clients `a` and `b` to a run's clients; two different ones at the start."""
    count = state.outcome.settings.clients
    for menu, otherwise in ((view.a, 0), (view.b, min(1, count - 1))):
        offer(menu, [(f"client {k}", k) for k in range(count)], otherwise)


class Barrier(View, name="barrier"):
    """Loss or accuracy on the straight line between two clients, with the units as they stand and matched."""

    def adapt(self, state: PanelState) -> None:
        choose_two(self, state)

    def prepare(self, state: PanelState) -> Any:
        return numbers.clients_of(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        pair = numbers.pair_of(state.outcome, self.a.value, self.b.value, self.rule.value)
        return barrier(pair, self.measure.value, 1 / len(state.class_names))


class Partners(View, name="partners"):
    """How alike the units of two clients are, before and after matching, layer by layer."""

    def adapt(self, state: PanelState) -> None:
        choose_two(self, state)
        layers = state.report.layers if state.report.layers else ["hidden layer 1"]
        offer(self.layer, [(f"hidden layer {i + 1}", i) for i in range(len(layers))], 0)

    def prepare(self, state: PanelState) -> Any:
        return numbers.clients_of(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        pair = numbers.pair_of(state.outcome, self.a.value, self.b.value, self.rule.value)
        return partners(pair, min(self.layer.value, len(pair.layers) - 1))


class Game(View, name="game"):
    """Four units of B to be paired by hand with four of A."""

    def __init__(self) -> None:
        super().__init__(puzzle=[(f"puzzle {i + 1}", i) for i in range(len(STREAMS))])
        self.places = [getattr(self, f"place{i + 1}") for i in range(UNITS)]
        self.order, self.shown = tuple(range(UNITS)), 0

    def adapt(self, state: PanelState) -> None:
        """A unit that is put somewhere changes places with the one that stood there; a new puzzle starts anew."""
        if self.puzzle.value != self.shown:
            self.order, self.shown = tuple(range(UNITS)), self.puzzle.value
        else:
            for place, menu in enumerate(self.places):
                if menu.value != self.order[place]:
                    self.order = swapped(self.order, place, menu.value)
                    break
        for menu, unit in zip(self.places, self.order, strict=True):
            menu.value = unit

    def draw(self, state: PanelState) -> Picture:
        return game(puzzle(self.shown), self.order, self.shown)


class Starts(View, name="starts"):
    """Accuracy against α of the matched and the plain average, for a common start and for different ones."""

    def work(self, state: PanelState) -> Steps:
        """Matching at three α, with a common start and with different ones"""
        cases = [(start, alpha) for start in averages.STARTS for alpha in averages.ALPHAS]
        outcomes = {}
        for part, (start, alpha) in enumerate(cases):
            changed = {**state.settings, "init": start, "alpha": alpha}
            words = f"{averages.STARTS[start]}, α = {alpha:g}"
            outcomes[start, alpha] = yield from one_run("matching", changed, words, part, len(cases))
        return averages.lines(outcomes), where(state)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            return blank(self.empty, setting=state.setting)
        lines, setting = state.worked
        return starts(lines, setting, 1 / len(state.class_names))


class Ways(View, name="ways"):
    """The same uploads of clients with a common start, averaged in several ways."""

    def work(self, state: PanelState) -> Steps:
        """The plain average, task arithmetic, TIES, DARE, matching and the ensemble, from a common start"""
        accuracies = {}
        for part, (name, (method, own)) in enumerate(averages.WAYS.items()):
            changed = {**plain(state.settings), "init": "same", **own}
            outcomes = yield from one_run(method, changed, name, part, len(averages.WAYS))
            accuracies[name] = {seed: outcome.accuracy for seed, outcome in outcomes.items()}
        return accuracies, where(state)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            return blank(self.empty, setting=state.setting)
        accuracies, setting = state.worked
        return ways(accuracies, {name: method for name, (method, _) in averages.WAYS.items()}, setting)


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of all methods, without the knobs of one."""
    return {name: value for name, value in settings.items() if "." not in name}


LAB = spec(__name__, Game, Barrier, Partners, Starts, Ways)
