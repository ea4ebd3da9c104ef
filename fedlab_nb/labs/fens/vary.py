"""FENS with one knob at several values: accuracy above, bytes of one client below.

Values are compared on validation images; of the one that is best there, and of it alone, the test accuracy is shown.
Clients are trained once and remembered, so that a value costs phase 2 alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

import ipywidgets as widgets
from matplotlib.axes import Axes

from ...methods.fens.aggregators import AGGREGATORS
from ...panels import LabView, PanelState, made, words
from ...plots import Picture, blank, drawing, dress, listed, tabled, told
from ...plots.axes import FIFTHS, SIZES, few_ticks, legend_above, percent_axis
from ...plots.kit import stacked
from ...plots.style import FAINT, INK, look, shorten
from ...plots.words import apart, band_words, data_size, mean_percent, seeds_of
from ...studies import Outcome
from ...studies.outcome import WORDS
from ...studies.statistics import band
from ..runs import Steps, moved, tries
from .cost import HUES, bytes_by_part

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
LINES = {FENS: look("fens"), AVERAGE: look("ensemble"), ALONE: look("local")}
NOTHING = (
    "FENS learnt from the held-out samples, and this data set has no public images with labels: there are no "
    "validation images to compare values on."
)


class Vary(LabView):
    """One knob at several values: accuracy and one client's bytes."""

    name, title, ready, work_label = "vary", "Try all values", "data", "Try all values"

    def __init__(self) -> None:
        self.what = made(
            widgets.Dropdown, label="Of", width=220, options=[(words, key) for key, (words, *_) in TRIES.items()],
            help="Which setting is tried at several values. All other settings stay as they are",
        )  # fmt: skip
        self.controls = [self.what]

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
        marked = state.class_names, state.client, state.klass
        points = [point(value, runs, *marked) for value, runs in outcomes.items()]
        now = str(state.knobs.get(key, state.settings.get(key, 0.1 if key == "holdout" else "")))
        picture = vary(points, label, setting=words(then), now=now, ordered=ordered)
        picture.sentence += "".join(f" {label} {value} failed: {e}" for value, e in failures.items())
        picture.sentence += moved({**then, setting: None}, {**state.settings, setting: None})
        return picture


@dataclass(frozen=True)
class Point:
    """One value of a knob. `lines`: {name: {seed: test accuracy}}; `parts`: bytes of one client (of `cost.HUES`);
    `ratio`: to one-shot learning. `validation`: {seed: FENS' accuracy on validation images}, by which values are
    compared, and `judged_on`: which images these are; empty where there are none.
    """

    label: str
    lines: Mapping[str, Mapping[int, float]]
    parts: Mapping[str, float]
    ratio: float
    validation: Mapping[int, float] = field(default_factory=dict)
    judged_on: str = ""

    @property
    def bytes(self) -> float:
        return sum(self.parts.values())

    @property
    def tested(self) -> list[str]:
        return [f"{name} {mean_percent(values)}" for name, values in self.lines.items() if values]


def point(
    label: str, outcomes: Mapping[int, Outcome], names: Sequence[str], client: int | None, klass: int | None
) -> Point:
    """One value's outcomes, {seed: outcome}; a class (of `names`) and a client have lines of their own."""
    lines: dict[str, dict[int, float]] = {FENS: {s: o.accuracy for s, o in outcomes.items()}}
    lines[AVERAGE] = {s: o.report.average_accuracy for s, o in outcomes.items()}
    lines[ALONE] = {s: mean(o.report.member_accuracy) for s, o in outcomes.items()}
    if klass is not None and klass < len(names):
        own = {s: o.per_class[klass] for s, o in outcomes.items() if klass < len(o.per_class)}
        lines[f"class {names[klass]}"] = {s: a for s, a in own.items() if a is not None}
    if client is not None:
        own = {s: o.per_client[client] for s, o in outcomes.items() if client < len(o.per_client)}
        lines[f"client {client}'s mix"] = own
    first = next(iter(outcomes.values()))
    traffic = first.ledger.by_client()
    busiest = max(traffic, key=lambda k: sum(traffic[k]))
    validation = {s: o.accuracy_validation for s, o in outcomes.items() if o.accuracy_validation is not None}
    parts, ratio = bytes_by_part(first.ledger, busiest), first.report.bytes["ratio"]
    return Point(label, lines, parts, ratio, validation, first.validation_on)


def vary(points: Sequence[Point], knob: str, *, setting: str, now: str = "", ordered: bool = True) -> Picture:
    """`points`, at least one, in the order of the knob.

    now: the label of its present value;   ordered: whether lines join the points
    """
    judged = [p for p in points if p.validation]
    if not judged:
        return blank(NOTHING, setting=setting)
    labels = [p.label for p in points]
    by_accuracy = sorted(judged, key=lambda p: mean(p.validation.values()))
    worst, best = by_accuracy[0], by_accuracy[-1]
    with drawing(2, 1, height_ratios=[2.1, 1], sharex=True) as (figure, (upper, lower)):
        accuracies(upper, points, best, ordered)
        bars(lower, points, knob)
        if now in labels:
            at = labels.index(now)
            for ax in (upper, lower):
                ax.axvspan(at - 0.45, at + 0.45, color=FAINT, lw=0, zorder=0)
        lower.set_xticks(range(len(points)), shorten(labels, 12))
        lower.set_xlim(-0.5, len(points) - 0.5)
    images = " or ".join(WORDS[kind] for kind in dict.fromkeys(p.judged_on for p in judged))
    sentence = f"{knob}: on validation images ({images}) FENS is best with {best.label} "
    sentence += f"({mean_percent(best.validation)})"
    if worst is not best:
        distance = apart(best.validation, worst.validation, one_seed="with one seed nobody can tell if that is noise")
        sentence += f" and worst with {worst.label} ({mean_percent(worst.validation)}; {distance})"
    sentence += f". On the test images, with {best.label}: {listed(best.tested)}."
    few, *_, many = sorted([*points, *points], key=lambda p: p.bytes)
    if many.bytes > 1.005 * few.bytes:
        sentence += f" A client's bytes go from {data_size(few.bytes)} ({few.label}) to {data_size(many.bytes)} "
        sentence += f"({many.label})."
    rows = [
        (p.label, judgement(p), ", ".join(p.tested if p is best else ()), seeds_of(p.lines[FENS]), p.bytes, p.ratio)
        for p in points
    ]
    table = tabled([knob, "validation", "test", "seeds", "bytes of one client", "× one-shot"], rows)
    title = f"Validation accuracy of FENS, and bytes of one client, by {knob}; rings: test accuracy at the best value"
    return told(figure, title, setting, sentence, table)


def judgement(of: Point) -> str:
    """Accuracy on validation images, and its band over the seeds."""
    if not of.validation:
        return ""
    return f"{mean_percent(of.validation)} ± {band_words(band(of.validation))}"


def accuracies(ax: Axes, points: Sequence[Point], best: Point, ordered: bool) -> None:
    """FENS on validation images at every value; at the best one, everybody on the test images."""
    dress(ax, title="Accuracy", grid="y")
    hue, marker, _ = LINES[FENS]
    shown = [(i, band(p.validation)) for i, p in enumerate(points) if p.validation]
    style = {"color": hue, "lw": 1.8, "ms": 7, "zorder": 3, "label": "FENS, validation"}
    ax.plot([i for i, _ in shown], [of.mean for _, of in shown], marker + ("-" if ordered else ""), **style)
    for i, of in shown:
        if of.n > 1:
            ax.plot([i, i], [max(0, of.low), min(1, of.high)], color=hue, lw=5, alpha=0.25)
    at, named = points.index(best), {FENS: "FENS, test", AVERAGE: AVERAGE, ALONE: "client alone"}
    for name, values in best.lines.items():
        if values:
            hue, marker, _ = LINES.get(name) or look(name)
            ring = {"mfc": "white", "mec": hue, "mew": 2, "ls": "none", "ms": 8, "zorder": 4}
            ax.plot(at + 0.18, mean(values.values()), marker, label=named.get(name), **ring)
            if name not in named:
                ax.text(at + 0.26, mean(values.values()), name, va="center", fontsize=9, color=hue)
    percent_axis(ax, "y", 1.03, low=-0.03, ticks=FIFTHS)
    ax.tick_params(axis="x", length=0)
    legend_above(ax, 4)


def bars(ax: Axes, points: Sequence[Point], knob: str) -> None:
    dress(ax, title="One client's bytes", x=knob, grid="y")
    ends = stacked(ax, {p.label: p.parts for p in points}, HUES, upright=True)
    top = max(ends) or 1
    for i, p in enumerate(points):
        ax.text(i, ends[i] + 0.03 * top, f"{p.ratio:.3g}×", ha="center", va="bottom", fontsize=9, color=INK)
    ax.set_ylim(0, 1.28 * top)
    few_ticks(ax, "y", 3, form=SIZES)
    legend_above(ax, 4)
