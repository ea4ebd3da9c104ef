"""FENS' lab: one knob at several values; and what the views with a button share, runs of FENS as a view's work.

Clients are trained once and remembered, so that a try costs phase 2 alone; what was tried before answers at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from statistics import mean
from typing import Any

import ipywidgets as widgets

from ...draw import Picture
from ...draw.blank import blank
from ...draw.fens_vary import ALONE, AVERAGE, FENS, Point, vary
from ...methods.parts.aggregators import AGGREGATORS
from ..lab_view import LabView, Look
from ..scene import words

WIDE = {"description_width": "initial"}
# What can be tried: (words, setting, values, whether they are in an order)
TRIES = {
    "aggregator": ("Aggregator", "fens.aggregator", tuple(AGGREGATORS), False),
    "bits": ("Bits", "fens.bits", (2, 3, 4, 5, 6, 7, 8, 32), True),
    "rounds": ("Rounds", "fens.rounds", (5, 10, 20, 50, 100, 200, 500), True),
    "eta_s": ("Server rate", "fens.eta_s", (0.001, 0.003, 0.01, 0.03, 0.1), True),
    "k": ("Hidden units", "fens.k", (2, 5, 10, 20, 40, 160), True),
    "holdout": ("Proxy share", "holdout", (0.02, 0.05, 0.1, 0.2, 0.4), True),
    "proxy": ("Trained on", "fens.proxy", ("held-out", "reused-equal", "reused"), False),
    "clients": ("Clients", "clients", (2, 5, 10, 20, 40), True),
}
PARTS = {
    "initial model": "own model",
    "local models": "own model",
    "ensemble": "ensemble",
    "aggregator": "aggregator rounds",
}
KEPT = ("dataset", "alpha", "clients", "seed", "partition")
Steps = Generator[tuple[int, int, str], None, Any]


def where(look: Look) -> str:
    """The setting of the one run that is shown, with its seed."""
    setting = {} if look.outcome is None else {key: look.outcome.setting[key] for key in KEPT}
    return words({**look.settings, **setting, "seeds": 1})


def one_run(settings: Mapping[str, Any], **changes: Any) -> Generator[tuple[str, float], None, dict[int, Any]]:
    """FENS with `settings`, some of them changed: yields (phase, share done), returns {seed: outcome}."""
    from ...study import job

    outcomes = {}
    for event in job("fens", **{**settings, **changes}):
        if event.error is not None:
            raise event.error
        if event.outcome is not None:
            outcomes[event.seed] = event.outcome
        yield event.phase, event.done / max(event.total, 1)
    return outcomes


def tried(settings: Mapping[str, Any], setting: str, values: Iterable[Any]) -> Steps:
    """A run for each value: returns {value: {seed: outcome}} and {value: why it could not be run}."""
    values = tuple(values)
    found, failed = {}, {}
    for i, value in enumerate(values):
        try:
            steps = one_run(settings, **{setting: value})
            while True:
                phase, share = next(steps)
                yield 100 * i + int(100 * share), 100 * len(values), f"{setting.split('.')[-1]} = {value}, {phase}"
        except StopIteration as end:
            found[value] = end.value
        except Exception as error:
            failed[value] = error
    if not found:
        raise next(iter(failed.values()))
    return found, failed


def text_of(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def made_with(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A closing sentence where the controls have moved since."""
    return "" if then == now else f" Made with {words(dict(then))}; the controls have moved since."


class Vary(LabView):
    """One knob at several values: accuracy and one client's bytes."""

    name, title, ready = "vary", "Try all values", "data"
    work_label = "Try all values"

    def __init__(self) -> None:
        super().__init__()
        self.what = widgets.Dropdown(
            options=[(label, key) for key, (label, *_) in TRIES.items()], description="Of", style=WIDE,
            tooltip="Which setting is tried at several values, all others as they are", layout={"width": "220px"},
        )  # fmt: skip
        self.controls = [self.what]
        self._kept: dict[str, tuple[dict, dict, dict]] = {}

    def work(self, look: Look) -> Steps:
        """Run FENS with each value of the chosen setting, on every seed of the panel."""
        key = self.what.value
        _, setting, values, _ = TRIES[key]
        settings = {k: v for k, v in look.settings.items() if k != setting}
        if key == "k":
            settings["fens.aggregator"] = "nn"
        if key == "clients":
            settings.pop("fens.without", None)
            values = tuple(v for v in values if v <= len(look.federation.dataset.y_train))
        found, failed = yield from tried(settings, setting, values)
        self._kept[key] = found, failed, dict(look.settings)
        return key

    def draw(self, look: Look) -> Picture:
        key = self.what.value
        label, setting, _, ordered = TRIES[key]
        if key not in self._kept:
            text = f"Press “{self.work_label}”: FENS is run with several values of “{label}”, all else as it is set."
            return blank(text, setting=look.setting)
        found, failed, then = self._kept[key]
        points = [point(value, outcomes, look) for value, outcomes in found.items()]
        now = text_of(look.knobs.get(key, look.settings.get(key, 0.1 if key == "holdout" else "")))
        picture = vary(points, label, setting=words(then), now=now, ordered=ordered)
        refused = "".join(f" {label} {text_of(value)} failed: {error}" for value, error in failed.items())
        picture.sentence += refused + made_with({**then, setting: None}, {**look.settings, setting: None})
        return picture


def point(value: Any, outcomes: Mapping[int, Any], look: Look) -> Point:
    """One value's outcomes as plain data; the chosen class and client have lines of their own."""
    first = outcomes[min(outcomes)]
    lines = {
        FENS: {s: o.accuracy for s, o in outcomes.items()},
        AVERAGE: {s: o.extras["average_accuracy"] for s, o in outcomes.items()},
        ALONE: {s: mean(o.extras["member_accuracy"]) for s, o in outcomes.items()},
    }
    if look.klass is not None and look.klass < len(look.class_names):
        own = {s: o.per_class[look.klass] for s, o in outcomes.items() if look.klass < len(o.per_class)}
        lines[f"class {look.class_names[look.klass]}"] = {s: a for s, a in own.items() if a is not None}
    if look.client is not None:
        home = {s: o.per_client[look.client] for s, o in outcomes.items() if look.client < len(o.per_client)}
        lines[f"client {look.client}'s mix"] = home
    traffic = {k: sum(both) for k, both in first.ledger.by_client().items()}
    busiest, parts = max(traffic, key=traffic.get), {}
    for row in first.ledger.rows():
        if row["client"] == busiest:
            part = PARTS.get(row["phase"], "other")
            parts[part] = parts.get(part, 0) + row["bytes"]
    return Point(text_of(value), lines, parts, first.extras["bytes"]["ratio"])
