"""Ensemble weights by hand: the weight of each client above what it holds, and at the right what the weights achieve.

`ByHand` redraws in place, for sliders. Its parts share their axes: columns are clients, rows are classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import traitlets

from ...panels import LabView, PanelState, made
from ...plots import Picture, dress, heading, percent, tabled, told
from ...plots.axes import HALVES, few_ticks, level_line, percent_axis
from ...plots.characters import own_name
from ...plots.partition import Artists, beyond
from ...plots.style import ACCENT, INK, LOCK, QUIET, SECOND, class_colours, new_figure
from ...plots.vector import moves
from ...plots.words import points, significance
from ...studies.statistics import Band, band
from ..runs import Steps, again, plain_ensemble, where
from .votes import by_class, client_logits, correct, halves, shares_of

YOURS, EQUAL, LEARNT, REAL = "yours", "equal", "Co-Boosting", "real images"
OWN = "own"
LEARNT_HELP = "Show the weights that Co-Boosting has found, and its score"
JUDGE_HELP = "Accuracy on the half on which nobody chose weights"
LEVEL = 0.5  # of all sliders at the start
# Weights from real images do not depend on synthetic images or on a student: as few as possible of both.
REAL_OPTIONS = {
    "ee": True,
    "ee_data": "real",
    "answer": "ensemble",
    "dhs": False,
    "generator_steps": 1,
}


class Hand(LabView):
    """Drag the weights, try to beat equal ones; then show Co-Boosting's, and let the other half judge.

    The displayed test images are halved: weights are tuned on one half, by whoever drags, and judged on the other. The
    method itself sees neither.
    """

    name, title, work_label = "hand", "Weights by hand", "Learn from real images"

    def __init__(self) -> None:
        self.sliders = Sliders()
        self.hands = self.sliders.model_id
        self.start = made(
            widgets.Dropdown,
            label="Set to",
            help="Set all sliders",
            width=190,
            options=[("…", OWN)],
        )
        self.learnt = made(
            widgets.ToggleButton, label="Show Co-Boosting's", help=LEARNT_HELP, width="auto"
        )
        self.judge = made(
            widgets.ToggleButton, label="Show the judge half", help=JUDGE_HELP, width="auto"
        )
        # What `start` changes are the sliders, which redraw.
        self.controls = [self.sliders, widgets.HBox([self.start]), self.learnt, self.judge]
        self.start.observe(self._set, "value")
        self.sliders.observe(self._moved, "value")
        self.picture, self._outcome, self._presets, self._spoilt = ByHand(), None, {}, False

    def adapt(self, state: PanelState) -> None:
        if state.outcome is not self._outcome:  # another run: start afresh
            self._outcome = state.outcome
            self.learnt.value = self.judge.value = self._spoilt = False
            self._offer(state)
            self.sliders.setting = where(state)
            self.sliders.put(np.ones(len(state.outcome.label_counts)))
        elif REAL not in self._presets and state.worked is not None:
            self._offer(state)

    def _offer(self, state: PanelState) -> None:
        """What all sliders can be set to."""
        counts = state.outcome.label_counts
        weights = {EQUAL: np.ones(len(counts)), "by sample counts": counts.sum(1)}
        weights |= {LEARNT: np.asarray(state.report.ensemble_weights), REAL: state.worked}
        self._presets = {name: w for name, w in weights.items() if w is not None}
        self.start.options = [("…", OWN), *((name, name) for name in self._presets)]

    def _set(self, change: Mapping[str, Any]) -> None:
        if change["new"] in self._presets:
            self.sliders.put(self._presets[change["new"]])

    def _moved(self, change: Mapping[str, Any]) -> None:
        """Weights that no preset has are the learner's own, and tuned on whatever is shown."""
        preset = self._presets.get(self.start.value)
        if preset is None or change["new"] != levels(preset):
            self.start.value = OWN
            self._spoilt |= self.judge.value

    def prepare(self, state: PanelState) -> Steps:
        """The plain ensemble of the same clients, whose features are their logits; they are remembered: it is quick."""
        return (yield from plain_ensemble(state))

    def work(self, state: PanelState) -> Steps:
        """The same rule on the clients' own images. This is only a reference: clients would have to send them"""
        options = {f"coboosting.{name}": value for name, value in REAL_OPTIONS.items()}
        learnt = yield from again(state.outcome, "coboosting", options, "weights from real images")
        return np.asarray(learnt.report.ensemble_weights)

    def draw(self, state: PanelState) -> Picture:
        learnt = state.report.ensemble_weights if self.learnt.value else None
        weights = {EQUAL: np.ones(len(self.sliders.value)), YOURS: self.sliders.value}
        weights |= {LEARNT: learnt, REAL: state.worked}
        shown = {who: w for who, w in weights.items() if w is not None}
        tries = tried(state.prepared, shown, self.judge.value)
        look = {"client": state.client, "klass": state.klass, "spoilt": self._spoilt}
        return self.picture.show(tries, state.class_names, setting=where(state.outcome), **look)


# ------------------------------------------------------------------------------------------------ sliders
def levels(w: Any) -> tuple[float, ...]:
    """Where the sliders stand for weights `[M]`: the largest at 1; all at LEVEL if they are alike."""
    w = np.asarray(w, dtype=float)
    return tuple((np.full(len(w), LEVEL) if np.ptp(w) == 0 else w / w.max()).round(4).tolist())


class Sliders(widgets.Box):
    """A small slider for each client; `value` is the weight of every client `(M,)`, `put(w)` sets all at once;
    `setting` says who they are."""

    value = traitlets.Tuple()
    description = "Weights of the clients"

    def __init__(self) -> None:
        super().__init__(
            layout={"flex_flow": "row wrap", "max_height": "165px", "overflow": "auto"}
        )
        self._quiet, self.setting, self._names = False, "", []

    def put(self, w: Any) -> None:
        """Weights of all clients `[M]`, scaled so that the largest is 1."""
        self.value = levels(w)
        names = [own_name(k, self.setting) for k in range(len(self.value))]
        if names != self._names:
            self._names = names
            small = {"max": 1, "step": 0.02, "readout": False, "width": 128, "label_width": 20}
            for slider in self.children:
                slider.close()
            self.children = [
                made(
                    widgets.FloatSlider,
                    label=name.split()[0],
                    help=f"Weight of client {name}",
                    **small,
                )
                for name in names
            ]
            for slider in self.children:
                slider.observe(self._moved, "value")
        self._quiet = True
        for slider, value in zip(self.children, self.value, strict=True):
            slider.value = value
        self._quiet = False

    def _moved(self, change: Mapping[str, Any]) -> None:
        if not self._quiet:
            k = self.children.index(change["owner"])
            self.value = (*self.value[:k], change["new"], *self.value[k + 1 :])


# ------------------------------------------------------------------------------------------------ numbers
class Tried(NamedTuple):
    """Weights of the ensemble and what they achieve, on two halves of the shown test images; who is one of the words
    above, at least EQUAL and YOURS.

    counts:   training samples `[M, C]`;   shares: {who: w / Σ w `[M]`}
    by_class: {who: `[C]`}, accuracy of EQUAL and YOURS on the tune half, nan where there is no image
    tune, judge: {who: accuracy} on the two halves, 0–1; judge None: still hidden
    gap:      yours minus equal with its 95 % band over the images, 0–1, on the judge half (hidden: on the tune half)
    sizes:    images of the two halves
    """

    counts: np.ndarray
    shares: Mapping[str, np.ndarray]
    by_class: Mapping[str, np.ndarray]
    tune: Mapping[str, float]
    judge: Mapping[str, float] | None
    gap: Band
    sizes: tuple[int, int]


def tried(ensemble: Any, weights: Mapping[str, Sequence[float]], judged: bool) -> Tried:
    """What `weights` {who: [M]}, of which only ratios count, achieve with the models of an outcome of `ensemble`."""
    logits, labels, counts = client_logits(ensemble), ensemble.test_labels, ensemble.label_counts
    right = {who: correct(logits, w) == labels for who, w in weights.items()}
    tune, judge = halves(len(labels))
    half = judge if judged and len(judge) else tune
    difference = right[YOURS][half].astype(float) - right[EQUAL][half]
    return Tried(
        counts,
        {who: shares_of(w) for who, w in weights.items()},
        {who: by_class(right[who][tune], labels[tune], counts.shape[1]) for who in (EQUAL, YOURS)},
        {who: float(r[tune].mean()) for who, r in right.items()},
        {who: float(r[judge].mean()) for who, r in right.items()} if half is judge else None,
        band(difference.tolist()),
        (len(tune), len(judge)),
    )


# ------------------------------------------------------------------------------------------------ picture
class ByHand:
    """The picture of hand-set weights; `show(...)` brings it up to date."""

    _shape: tuple | None = None
    _shown: tuple | None = None

    def show(
        self, tried: Tried, class_names: Sequence[str], *, setting: str, client: int | None = None,
        klass: int | None = None, spoilt: bool = False,
    ) -> Picture:  # fmt: skip
        """Picture of the weights that were tried. spoilt: some were moved after the judge half had been looked at."""
        shape = (*tried.counts.shape, tuple(class_names))
        with LOCK:
            if shape != self._shape:
                self._build(*shape)
                self._shape, self._shown = shape, None
            given = tuple((who, w.tobytes()) for who, w in tried.shares.items() if who != YOURS)
            shown = (client, klass, setting, given, tried.judge is None, tried.counts.tobytes())
            if shown != self._shown:
                self._artists.update(tried.counts, client, klass, setting=setting)
                self._shown = shown
            self._update(tried, klass)
            moves(self.figure, shown, **self._parts(tried))
        scores = {"tune half": tried.tune, **({"judge half": tried.judge} if tried.judge else {})}
        columns = [
            "weights",
            *scores,
            *(f"client {own_name(k, setting)}" for k in range(len(tried.counts))),
        ]
        cells = (
            (who, *(half[who] for half in scores.values()), *w) for who, w in tried.shares.items()
        )
        table = tabled(columns, ((who, *map(percent, shares)) for who, *shares in cells))
        title = "Weights of the clients above the training samples that they hold, and accuracy"
        return told(self.figure, title, setting, sentence(tried, spoilt), table)

    # ------------------------------------------------------------------------------------------------ artists
    def _build(self, clients: int, classes: int, names: tuple[str, ...]) -> None:
        self.figure = new_figure()
        grid = {"width_ratios": [2.1, 1], "height_ratios": [1.35, 3]}
        (upper, scores), (lower, right) = self.figure.subplots(2, 2, sharex="col", **grid)
        self._artists = Artists(upper, lower, clients, classes, names, inches=(3.9, 2.5))
        for bar in self._artists.bars:
            bar.set_color(ACCENT)
        upper.set_ylabel("weight", fontsize=10, color=QUIET)
        percent_axis(upper, top=None)
        heading(upper, "Weights", 5)
        level_line(upper, 1 / clients)
        self._marks = {
            who: upper.plot(
                [], [], marker, color=colour, ms=7 if clients <= 16 else 4, mew=1.8, mfc="none"
            )[0]
            for who, marker, colour in ((LEARNT, "D", SECOND), (REAL, "s", "#009E73"))
        }
        scores.set_axis_off()
        heading(scores, "Accuracy: tune | judge", 5)
        self._scores = scores.text(
            0, 1, "", va="top", fontsize=9, color=INK, linespacing=1.7, transform=scores.transAxes
        )
        dress(right, x="correct (bar: yours, line: equal)", grid="x", size=9)
        percent_axis(right, "x", ticks=HALVES)
        right.set(ylim=lower.get_ylim(), yticks=[])
        self._right_row = right.axhspan(-0.5, 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)
        self._bars = right.barh(
            range(classes), np.zeros(classes), height=0.62, color=class_colours(classes)
        )
        self._ticks = right.vlines(
            [0] * classes, np.arange(classes) - 0.38, np.arange(classes) + 0.38, color=INK, lw=2
        )

    def _parts(self, tried: Tried) -> dict[str, Any]:
        """What moves with the weights: see `vector.moves`."""
        upper = self._artists.upper
        return {
            "bars": (tried.shares[YOURS].tobytes(), self._artists.bars),
            "classes": (tried.by_class[YOURS].tobytes(), self._bars),
            "equal": (tried.by_class[EQUAL].tobytes(), [self._ticks]),
            "weights": (upper.get_ylim(), [upper.yaxis, *upper.lines]),
            "scores": (self._scores.get_text(), [self._scores]),
        }

    def _update(self, tried: Tried, klass: int | None) -> None:
        for bar, share in zip(self._artists.bars, tried.shares[YOURS], strict=True):
            bar.set_height(share)
        upper = self._artists.upper
        upper.set_ylim(0, beyond(max(float(w.max()) for w in tried.shares.values())))
        few_ticks(upper, "y", 3)
        for who, line in self._marks.items():
            w = tried.shares.get(who, np.empty(0))
            line.set_data(range(len(w)), w)
        halves = [tried.tune, tried.judge or {}]
        scores = (
            f"{who}: {' | '.join(percent(half[who]) for half in halves if half)}"
            for who in tried.shares
        )
        self._scores.set_text("\n".join(scores))
        self._right_row.set(
            visible=klass is not None and klass < len(self._bars), y=(klass or 0) - 0.5
        )
        yours, equal = (np.nan_to_num(tried.by_class[who]) for who in (YOURS, EQUAL))
        for bar, value in zip(self._bars, yours, strict=True):
            bar.set_width(value)
        self._ticks.set_segments([[(v, c - 0.38), (v, c + 0.38)] for c, v in enumerate(equal)])


def sentence(tried: Tried, spoilt: bool) -> str:
    tune, judge = tried.tune, tried.judge
    words = {"clear": "more than noise", "one_seed": "too few images to tell"}
    about = f"{points(tried.gap)}, {significance(tried.gap, **words)}"
    if judge is None:
        return (
            f"On the {tried.sizes[0]} images of the tune half your weights are right for {percent(tune[YOURS])}, equal "
            f"ones for {percent(tune[EQUAL])} ({about}). You tune on test images. Co-Boosting never sees one. So the "
            "judge half decides."
        )
    others = "".join(f"; {who} {percent(judge[who])}" for who in (LEARNT, REAL) if who in judge)
    text = f"Judge half: your weights {percent(judge[YOURS])}, equal ones {percent(judge[EQUAL])} ({about}){others}."
    if spoilt:
        return (
            f"{text} You moved weights after you had seen this half. So it no longer judges fairly."
        )
    return f"{text} On the tune half your weights had {percent(tune[YOURS])}."
