"""Co-Boosting's lab: weights by hand and by epoch, synthetic images, teacher and student, the three switches."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...methods import METHODS
from ...panels.figures import words
from ...panels.state import PanelState
from ...plots import Picture
from ...plots.synthetic import gallery, one_of_each
from .. import runs
from ..sliders import WINDOW, Sliders, levels
from ..views import View, spec
from . import numbers
from .numbers import EQUAL, LEARNT, REAL, YOURS
from .plots.curves import curves
from .plots.hand import ByHand
from .plots.switches import IDEAS, Variant, switches
from .plots.weights import trajectories

OWN = "own"
SETS = {
    "leave one out": (IDEAS, IDEAS[1:], (IDEAS[0], IDEAS[2]), IDEAS[:2], ()),
    "one alone": (IDEAS, *((idea,) for idea in IDEAS), ()),
    "all eight": (IDEAS, IDEAS[:2], (IDEAS[0], IDEAS[2]), IDEAS[1:], *((idea,) for idea in IDEAS), ()),
}


def planned(state: PanelState) -> int:
    """Epochs of the run that goes on; 0 once it has ended."""
    return state.knobs["epochs"] if state.outcome is None else 0


class Hand(View, name="hand"):
    """Drag the weights, try to beat equal ones; then show Co-Boosting's, and let the other half judge.

    The displayed test images are halved: weights are tuned on one half, by whoever drags, and judged on the other. The
    method itself sees neither.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sliders = Sliders()
        self.controls.insert(0, self.sliders)
        self.start.observe(self._set, "value")
        self.sliders.observe(self._moved, "value")
        self.picture, self._outcome, self._presets, self._spoilt = ByHand(), None, {}, False

    def adapt(self, state: PanelState) -> None:
        clients = len(state.outcome.label_counts)
        if state.outcome is not self._outcome:  # another run: start afresh
            self._outcome = state.outcome
            self.learnt.value = self.judge.value = self._spoilt = False
            self._offer(state)
            self.sliders.put(np.ones(clients))
        elif REAL not in self._presets and self._real(state) is not None:
            self._offer(state)
        client = state.client if state.client is not None and state.client < clients else 0
        first = client // WINDOW * WINDOW
        if (first, clients) != (self.sliders.first, len(self.sliders.value)):
            self.sliders.fit(clients, first)

    def _offer(self, state: PanelState) -> None:
        """What all sliders can be set to."""
        counts = state.outcome.label_counts
        weights = {EQUAL: np.ones(len(counts)), "by sample counts": counts.sum(1)}
        weights |= {LEARNT: np.asarray(state.report.ensemble_weights), REAL: self._real(state)}
        self._presets = {name: w for name, w in weights.items() if w is not None}
        self.start.options = [("…", OWN), *((name, name) for name in self._presets)]

    def _real(self, state: PanelState) -> np.ndarray | None:
        """Weights from real images, if they were learnt for this very outcome."""
        return state.worked["weights"] if state.worked and state.worked["outcome"] is state.outcome else None

    def _set(self, change: Mapping[str, Any]) -> None:
        if change["new"] in self._presets:
            self.sliders.put(self._presets[change["new"]])

    def _moved(self, change: Mapping[str, Any]) -> None:
        """Weights that no preset has are the learner's own, and tuned on whatever is shown."""
        preset = self._presets.get(self.start.value)
        if preset is None or change["new"] != levels(preset):
            self.start.value = OWN
            self._spoilt |= self.judge.value

    def prepare(self, state: PanelState) -> runs.Steps:
        """The plain ensemble of the same clients, whose features are their logits; they are remembered: it is quick."""
        outcome = state.others.get("ensemble", {}).get(state.outcome.settings.seed)
        return outcome or (yield from numbers.beside(state.outcome, "ensemble", "logits"))

    def work(self, state: PanelState) -> runs.Steps:
        """The same rule on the clients' own images. This is only a reference: clients would have to send them"""
        learnt = yield from numbers.beside(state.outcome, "coboosting", "weights from real images", **numbers.FROM_REAL)
        return {"outcome": state.outcome, "weights": np.asarray(learnt.report.ensemble_weights)}

    def draw(self, state: PanelState) -> Picture:
        learnt = state.report.ensemble_weights if self.learnt.value else None
        weights = {EQUAL: np.ones(len(self.sliders.value)), YOURS: self.sliders.value}
        weights |= {LEARNT: learnt, REAL: self._real(state)}
        shown = {who: w for who, w in weights.items() if w is not None}
        tried = numbers.tried(state.prepared, shown, self.judge.value)
        look = {"client": state.client, "klass": state.klass, "spoilt": self._spoilt}
        return self.picture.show(tried, state.class_names, setting=runs.where(state.outcome), **look)


class Trajectories(View, name="weights"):
    """Each client's share of the ensemble's weight, epoch by epoch, beside what it holds."""

    def draw(self, state: PanelState) -> Picture:
        path = state.report.weights
        held = state.federation.label_counts.numpy() if state.outcome is None else state.outcome.label_counts
        if len(held) != path.shape[1]:  # the sliders moved on while the method runs
            held = np.zeros((path.shape[1], len(state.class_names)), dtype=int)
        about = {"setting": runs.where(state), "epochs": planned(state), "client": state.client, "klass": state.klass}
        return trajectories(path, held, state.class_names, **about)


class Images(View, name="images"):
    """The synthetic images of an epoch, and a replay over the epochs."""

    def adapt(self, state: PanelState) -> None:
        options = [(str(t), i) for i, t in enumerate(state.report.synthetic_epochs)]
        if list(self.epoch.options) != options:
            last = self.epoch.index in (None, len(self.epoch.options) - 1)
            index = len(options) - 1 if last else min(self.epoch.index, len(options) - 1)
            self.epoch.options = options
            self.epoch.index, self.play.max = index, len(options) - 1

    def draw(self, state: PanelState) -> Picture:
        report, dataset = state.report, state.federation.dataset
        alike = dataset.x_test.shape[1:] == report.synthetic_images.shape[2:]
        about = {"setting": runs.where(state), "epochs": planned(state), "klass": state.klass}
        about |= {"frame": min(self.epoch.value, len(report.synthetic_epochs) - 1)}
        return gallery(report, state.class_names, real=one_of_each(dataset) if alike else None, **about)


class TeacherAndStudent(View, name="curves"):
    """The ensemble's and the server model's accuracy by epoch, beside flat references."""

    def draw(self, state: PanelState) -> Picture:
        teacher = {seed: o.report.ensemble_curve for seed, o in state.outcomes.items()}
        student = {seed: numbers.server_points(o) for seed, o in state.outcomes.items()}
        beside = {}
        for method, outcomes in state.others.items():
            if shared := {seed: o.accuracy for seed, o in outcomes.items() if seed in teacher}:
                beside[numbers.NAMES.get(method, METHODS[method].info.title)] = shared
        student = student if all(student.values()) else {}
        return curves(teacher, student, beside, setting=state.setting, chance=1 / len(state.class_names))


def named(on: tuple[str, ...]) -> str:
    off = [idea for idea in IDEAS if idea not in on]
    if not off:
        return "all three"
    return "none" if len(off) == 3 else f"no {off[0]}" if len(off) == 1 else f"{on[0]} alone"


class Switches(View, name="switches"):
    """The method again with ideas switched off, on the federation that the controls say, over several seeds."""

    def __init__(self) -> None:
        super().__init__(which=list(SETS))

    def work(self, state: PanelState) -> runs.Steps:
        """Run the method with some of its three ideas switched off, on the federation that the controls describe"""
        settings = numbers.settings_for("coboosting", state.settings)
        settings |= {"seeds": self.seeds.value, "coboosting.answer": "server"}
        which, sets = self.which.value, SETS[self.which.value]
        switched = {
            f"{named(on)} ({i} of {len(sets)})": {f"coboosting.{idea.lower()}": idea in on for idea in IDEAS}
            for i, on in enumerate(sets, 1)
        }
        outcomes = yield from runs.tries("coboosting", settings, switched)
        variants = [
            Variant(named(on), on, numbers.last_of_ensemble(runs), {seed: o.accuracy for seed, o in runs.items()})
            for on, runs in zip(sets, outcomes.values(), strict=True)
        ]
        return {"variants": variants, "setting": words(settings), "which": which}

    def draw(self, state: PanelState) -> Picture:
        if state.worked and state.worked["which"] == self.which.value:
            return switches(state.worked["variants"], setting=state.worked["setting"])
        empty = [Variant(named(on), on, {}, {}) for on in SETS[self.which.value]]
        return switches(empty, setting=words({**state.settings, "seeds": self.seeds.value}))


LAB = spec(__name__, Hand, Trajectories, Images, TeacherAndStudent, Switches)
