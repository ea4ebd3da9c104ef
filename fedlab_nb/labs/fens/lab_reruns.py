"""FENS' lab, the views with a button, which run FENS again: one knob at several values, phase 2 without a client, one
student that answers as FENS does.

Clients are trained once and remembered, so that a value costs phase 2 alone; what was tried before answers at once.
"""

from collections.abc import Mapping
from typing import Any

from ...declared import declared
from ...panels.state import PanelState, words
from ...plots import Picture
from ...plots.kit import blank
from ..controls import offer
from ..runs import Steps, one_run, tries
from ..views import View
from .numbers import Forgotten, point
from .plots.distil import distilled
from .plots.forget import forget_each, forget_one
from .plots.vary import vary

TRIES = declared("course/fens/words.toml")["tries"]


class Vary(View, name="vary"):
    """One knob at several values: accuracy and one client's bytes."""

    def __init__(self) -> None:
        super().__init__(what=[(label, key) for key, (label, *_) in TRIES.items()])

    def work(self, state: PanelState) -> Steps:
        """Run FENS with each value of the chosen setting, on every seed of the panel."""
        key = self.what.value
        _, setting, values, _ = TRIES[key]
        settings = {name: value for name, value in state.settings.items() if name != setting}
        if key == "k":
            settings["fens.aggregator"] = "nn"
        if key == "clients":
            settings.pop("fens.without", None)
            values = tuple(v for v in values if v <= len(state.federation.dataset.y_train))
        failures: dict[str, Exception] = {}
        choices = {f"{setting.split('.')[-1]} = {value}": {setting: value} for value in values}
        outcomes = yield from tries("fens", settings, choices, failures)
        return {**(state.worked or {}), key: (outcomes, failures, dict(state.settings))}

    def draw(self, state: PanelState) -> Picture:
        key = self.what.value
        label, setting, _, ordered = TRIES[key]
        if key not in (state.worked or {}):
            text = (
                f"Press “{self.work_label}”. FENS then runs with several values of “{label}”, and nothing else changes."
            )
            return blank(text, setting=state.setting)
        outcomes, failures, then = state.worked[key]
        look = state.class_names, state.client, state.klass
        points = [point(value_of(choice), runs, *look) for choice, runs in outcomes.items()]
        now = str(state.knobs.get(key, state.settings.get(key, 0.1 if key == "holdout" else "")))
        picture = vary(points, label, setting=words(then), now=now, ordered=ordered)
        picture.sentence += "".join(f" {label} {value_of(choice)} failed: {e}" for choice, e in failures.items())
        picture.sentence += moved({**then, setting: None}, {**state.settings, setting: None})
        return picture


def value_of(choice: str) -> str:
    """'bits = 8' -> '8'."""
    return choice.partition(" = ")[2]


class Forget(View, name="forget"):
    """Phase 2 without a client: what it alone had brought is gone."""

    EACH = -1

    def adapt(self, state: PanelState) -> None:
        clients = ((f"client {k}", k) for k in range(state.federation.clients))
        offer(self.who, [("each in turn", self.EACH), *clients], self.EACH)

    def work(self, state: PanelState) -> Steps:
        """Run FENS with all clients, then without the chosen one, or without each in turn. Only the first seed runs."""
        settings = {k: v for k, v in state.settings.items() if k not in ("fens.without", "seeds")}
        gone = range(state.federation.clients) if self.who.value == self.EACH else [self.who.value]
        choices = {f"without = {k}": {"fens.without": k} for k in (-1, *gone)}
        runs = yield from tries("fens", settings, choices)
        whole, *without = (next(iter(outcomes.values())) for outcomes in runs.values())
        return Forgotten(dict(state.settings), whole, dict(zip(gone, without, strict=True)))

    def draw(self, state: PanelState) -> Picture:
        forgotten: Forgotten | None = state.worked
        who = self.who.value
        if forgotten is None or (who != self.EACH and who not in forgotten.without):
            text = f"Press “{self.work_label}”: phase 1 stays as it was, phase 2 is run without the client."
            return blank(text, setting=state.setting)
        setting = words({**forgotten.settings, "seeds": 1})
        if who == self.EACH:
            marks = {"client": state.client, "klass": state.klass}
            picture = forget_each(forgotten, state.class_names, setting=setting, **marks)
        else:
            picture = forget_one(forgotten, who, state.class_names, setting=setting, klass=state.klass)
        picture.sentence += moved(forgotten.settings, state.settings)
        return picture


class Distil(View, name="distil"):
    """One network that learns to answer as FENS does, on public images."""

    def work(self, state: PanelState) -> Steps:
        """Run FENS, and teach one network on public images. Only the first seed runs."""
        settings = {k: v for k, v in state.settings.items() if k != "seeds"}
        outcomes = yield from one_run("fens", {**settings, "fens.distil": True})
        return dict(state.settings), next(iter(outcomes.values()))

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: at the server, a student learns FENS' answers to unlabelled images."
            return blank(text, setting=state.setting)
        then, outcome = state.worked
        picture = distilled(outcome, setting=words({**then, "seeds": 1}))
        picture.sentence += moved(then, state.settings)
        return picture


def moved(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A closing sentence where the controls have moved since."""
    return "" if then == now else f" Made with {words(dict(then))}; the controls have moved since."
