"""FENS with one knob at several values: accuracy in the picture, one client's bytes in the sentence and the table.

Values are compared on validation images; of the one that is best there, and of it alone, the test accuracy is shown.
Clients are trained once and remembered, so that a value costs phase 2 alone.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

import ipywidgets as widgets

from ...methods.fens.aggregators import AGGREGATORS
from ...panels import LabView, PanelState, made, words
from ...plots import Picture, blank, data_size, drawing, dress, mean_percent, seeds_of, tabled, told
from ...plots.axes import FIFTHS, percent_axis
from ...plots.style import look, shorten
from ...plots.words import apart, band_words
from ...studies import Outcome
from ...studies.outcome import WORDS
from ...studies.statistics import band
from ..runs import Steps, moved, tries

# What is tried: words, setting, values, whether they are in an order.
TRIES = {
    "aggregator": ("Aggregator", "fens.aggregator", AGGREGATORS, False),
    "bits": ("Bits", "fens.bits", (2, 3, 4, 5, 6, 7, 8, 32), True),
    "rounds": ("Rounds", "fens.rounds", (5, 10, 20, 50, 100, 200, 500), True),
    "eta_s": ("Server rate", "fens.eta_s", (0.001, 0.003, 0.01, 0.03, 0.1), True),
    "k": ("Hidden units", "fens.k", (2, 5, 10, 20, 40, 160), True),
    "holdout": ("Proxy share", "holdout", (0.02, 0.05, 0.1, 0.2, 0.4), True),
    "proxy": ("Trained on", "fens.proxy", ("held-out", "reused-equal", "reused"), False),
    "clients": ("Clients", "clients", (2, 5, 10, 20, 40), True),
}
FENS, AVERAGE, ALONE = "FENS", "plain average", "mean client alone"
LINES = {FENS: look("fens"), AVERAGE: look("FedENS"), ALONE: look("local")}
NOTHING = "FENS learnt from all held-out samples: there are no validation images to compare values on."


class Vary(LabView):
    """One knob at several values: accuracy and one client's bytes."""

    name, title, ready, work_label = "vary", "Try all values", "data", "Try all values"

    def __init__(self) -> None:
        help, options = "Which setting is tried at several values", [(words, key) for key, (words, *_) in TRIES.items()]
        self.what = made(widgets.Dropdown, label="Of", help=help, width=220, options=options)

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
        choices = {str(value): {setting: value} for value in values}
        outcomes = yield from tries("fens", settings, choices, failures)
        return {**(state.worked or {}), key: (outcomes, failures, dict(state.settings))}

    def draw(self, state: PanelState) -> Picture:
        key = self.what.value
        label, setting, _, ordered = TRIES[key]
        if key not in (state.worked or {}):
            text = f"Press “{self.work_label}”. FENS then runs with several values of “{label}”, all else as it is."
            return blank(text, setting=state.setting)
        outcomes, failures, then = state.worked[key]
        points = [point(value, runs) for value, runs in outcomes.items()]
        picture = vary(points, label, setting=words(then), ordered=ordered)
        picture.sentence += "".join(f" {label} {value} failed: {e}" for value, e in failures.items())
        picture.sentence += moved({**then, setting: None}, {**state.settings, setting: None})
        return picture


class Point(NamedTuple):
    """One value of a knob. `lines`: {name: {seed: test accuracy}}; `bytes`: of one client; `ratio`: to one-shot.
    `validation`: {seed: FENS' accuracy on validation images}, by which values are compared, and `judged_on`: which
    images these are; empty where there are none.
    """

    label: str
    lines: Mapping[str, Mapping[int, float]]
    bytes: int
    ratio: float
    validation: Mapping[int, float]
    judged_on: str

    @property
    def tested(self) -> str:
        return ", ".join(f"{name} {mean_percent(values)}" for name, values in self.lines.items())


def point(label: str, outcomes: Mapping[int, Outcome]) -> Point:
    """One value's outcomes, {seed: outcome}."""
    lines = {FENS: {s: o.accuracy for s, o in outcomes.items()}}
    lines[AVERAGE] = {s: o.report.average_accuracy for s, o in outcomes.items()}
    lines[ALONE] = {s: mean(o.report.member_accuracy) for s, o in outcomes.items()}
    first = next(iter(outcomes.values()))
    most = max(up + down for up, down in first.ledger.by_client().values())
    validation = {s: o.accuracy_validation for s, o in outcomes.items() if o.accuracy_validation is not None}
    return Point(label, lines, most, first.report.bytes["ratio"], validation, first.validation_on)


def vary(points: Sequence[Point], knob: str, *, setting: str, ordered: bool = True) -> Picture:
    """`points`, at least one, in the order of the knob;   ordered: whether lines join them"""
    judged = [p for p in points if p.validation]
    if not judged:
        return blank(NOTHING, setting=setting)
    worst, *_, best = sorted([*judged, *judged], key=lambda p: mean(p.validation.values()))
    at = points.index(best)
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy on validation images; at the best value on test images", x=knob, grid="y")
        hue, marker, _ = LINES[FENS]
        bands = [band(p.validation) for p in judged]
        style = {"color": hue, "fmt": marker + "-" * ordered, "capsize": 4, "label": "FENS, validation"}
        ax.errorbar([points.index(p) for p in judged], [b.mean for b in bands], [b.half_width for b in bands], **style)
        for name, values in best.lines.items():
            hue, marker, _ = LINES[name]
            ring = {"mfc": "white", "mec": hue, "mew": 2, "ls": "none", "ms": 8, "zorder": 4}
            ax.plot(at + 0.18, mean(values.values()), marker, label=f"{name}, test", **ring)
        ax.set_xticks(range(len(points)), shorten([p.label for p in points], 12))
        percent_axis(ax, "y", 1.03, low=-0.03, ticks=FIFTHS)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    images = " or ".join(WORDS[kind] for kind in dict.fromkeys(p.judged_on for p in judged))
    sentence = f"{knob}: on validation images ({images}) FENS is best with {best.label} "
    sentence += f"({mean_percent(best.validation)})"
    distance = apart(best.validation, worst.validation, one_seed="with one seed nobody can tell if that is noise")
    sentence += f" and worst with {worst.label} ({mean_percent(worst.validation)}; {distance})"
    few, *_, many = sorted([*points, *points], key=lambda p: p.bytes)
    sentence += f". On the test images, with {best.label}: {best.tested}. A client's bytes go from "
    sentence += f"{data_size(few.bytes)} ({few.label}) to {data_size(many.bytes)} ({many.label})."
    told_of = {p.label: f"{mean_percent(p.validation)} ± {band_words(band(p.validation))}" for p in judged}
    rows = [
        (p.label, told_of.get(p.label, ""), p.tested if p is best else "", seeds_of(p.lines[FENS]), p.bytes, p.ratio)
        for p in points
    ]
    table = tabled([knob, "validation", "test", "seeds", "bytes of one client", "× one-shot"], rows)
    title = f"Validation accuracy of FENS by {knob}; hollow: test accuracy at the best value"
    return told(figure, title, setting, sentence, table)
