"""Ensemble weights by hand: each client's weight above what it holds, and at the right what the
weights achieve.

The shown test images are halved: weights are tuned on one half, by the person who drags, and judged
on the other. The method itself sees neither.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import traitlets

from ...panels import LabView, PanelState, make_widget
from ...plots import Picture, build_table, describe_picture, dress, heading, percent
from ...plots.partition import Artists, round_axis_end
from ...plots.style import (
    ACCENT,
    HALVES,
    INK,
    LOCK,
    QUIET,
    SECOND,
    class_colours,
    draw_level_line,
    is_narrow,
    limit_ticks,
    new_figure,
    set_percent_axis,
)
from ...plots.words import Setting, describe_significance, format_points, plain_client_name
from ...studies.statistics import Band, band
from ..runs import Steps, describe_setting, get_ensemble, rerun
from .votes import (
    compute_class_accuracies,
    compute_client_logits,
    normalise_weights,
    predict_classes,
    split_in_halves,
)

# The names of weights.
YOURS = "yours"
EQUAL = "equal"
LEARNT = "Co-Boosting"
REAL = "real images"
BY_COUNTS = "by sample counts"
OWN = "own"  # the menu's value when no preset is chosen

START_LEVEL = 0.5  # of all sliders
# Weights from real images depend neither on synthetic images nor on a student: as few as possible.
REAL_OPTIONS = {
    "coboosting.ee": True,
    "coboosting.ee_data": "real",
    "coboosting.answer": "ensemble",
    "coboosting.dhs": False,
    "coboosting.generator_steps": 1,
}


class WeightsByHand(LabView):
    """Drag the weights, and try to beat equal ones. Then show Co-Boosting's weights, and let the
    other half of the images judge.
    """

    name, title = "hand", "Weights by hand"
    summary = "Then drag the weights, and try to beat equal ones."
    work_label = "Learn from real images"
    work_help = (
        "The same rule on the clients' own images. This is only a reference: clients would have to "
        "send them."
    )

    def __init__(self) -> None:
        self.sliders = Sliders()
        self.start = make_widget(
            widgets.Dropdown,
            label="Set to",
            help="Set all sliders",
            width=190,
            options=[("…", OWN)],
        )
        self.learnt = make_widget(
            widgets.ToggleButton,
            label="Show Co-Boosting's",
            help="Show the weights that Co-Boosting has found, and its score",
            width="auto",
        )
        self.judge = make_widget(
            widgets.ToggleButton,
            label="Show the judge half",
            help="Accuracy on the half on which nobody chose weights",
            width="auto",
        )
        # In a box, as the menu does not redraw the view: it sets the sliders, and they do.
        self.controls = [self.sliders, widgets.HBox([self.start]), self.learnt, self.judge]
        self.start.observe(self._apply_preset, "value")
        self.sliders.observe(self._note_change, "value")
        self._picture = ByHandPicture()
        self._outcome = None  # of the last drawing
        self._presets: dict[str, Any] = {}
        self._is_spoilt = False  # whether weights changed while the judge half was shown

    def adapt(self, state: PanelState) -> None:
        if state.outcome is not self._outcome:  # another run: everything starts again
            self._outcome = state.outcome
            self._is_spoilt = False
            self.learnt.value = False
            self.judge.value = False
            self._offer_presets(state)
            self.sliders.setting = describe_setting(state)
            self.sliders.set_weights(np.ones(len(state.outcome.label_counts)))
        elif state.worked is not None and REAL not in self._presets:
            self._offer_presets(state)

    def _offer_presets(self, state: PanelState) -> None:
        """Fill the menu with what all sliders can be set to."""
        counts = state.outcome.label_counts
        weights = {
            EQUAL: np.ones(len(counts)),
            BY_COUNTS: counts.sum(1),
            LEARNT: np.asarray(state.report.ensemble_weights),
            REAL: state.worked,
        }
        self._presets = drop_missing_weights(weights)
        self.start.options = [("…", OWN), *((name, name) for name in self._presets)]

    def _apply_preset(self, change: Mapping[str, Any]) -> None:
        name = change["new"]
        if name in self._presets:
            self.sliders.set_weights(self._presets[name])

    def _note_change(self, change: Mapping[str, Any]) -> None:
        """Weights that are not the preset's are the learner's own, and tuned on what is shown."""
        preset = self._presets.get(self.start.value)
        if preset is None or change["new"] != compute_slider_levels(preset):
            self.start.value = OWN
            if self.judge.value:
                self._is_spoilt = True

    def prepare(self, state: PanelState) -> Steps:
        """The plain ensemble of the same clients: its features are their logits. This is quick, as
        the trained clients are cached.
        """
        return (yield from get_ensemble(state))

    def work(self, state: PanelState) -> Steps:
        """The weights `[M]` that Co-Boosting learns from real images."""
        name = "weights from real images"
        outcome = yield from rerun(state.outcome, "coboosting", REAL_OPTIONS, name)
        return np.asarray(outcome.report.ensemble_weights)

    def draw(self, state: PanelState) -> Picture:
        weights = {
            EQUAL: np.ones(len(self.sliders.value)),
            YOURS: self.sliders.value,
            LEARNT: state.report.ensemble_weights if self.learnt.value else None,
            REAL: state.worked,
        }
        scores = score_weights(state.prepared, drop_missing_weights(weights), self.judge.value)
        return self._picture.show(
            scores,
            state.class_names,
            setting=describe_setting(state.outcome),
            client=state.client,
            class_index=state.class_index,
            is_spoilt=self._is_spoilt,
        )


def drop_missing_weights(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights that are known."""
    return {name: values for name, values in weights.items() if values is not None}


# ------------------------------------------------------------------------------------------ sliders
def compute_slider_levels(weights: Any) -> tuple[float, ...]:
    """Where the sliders stand for `weights [M]`: the largest at 1, all at START_LEVEL if they are
    alike.
    """
    weights = np.asarray(weights, dtype=float)
    if np.ptp(weights) == 0:
        levels = np.full(len(weights), START_LEVEL)
    else:
        levels = weights / weights.max()
    return tuple(levels.round(4).tolist())


class Sliders(widgets.Box):
    """A small slider for each client. `value [M]` has the weights of all clients.

    setting: the run's, in words; the clients are named by it
    """

    value = traitlets.Tuple()
    description = "Weights of the clients"

    def __init__(self) -> None:
        layout = {"flex_flow": "row wrap", "max_height": "165px", "overflow": "auto"}
        super().__init__(layout=layout)
        self.setting = ""
        self._names: list[str] = []
        self._is_quiet = False  # while the program moves the sliders

    def set_weights(self, weights: Any) -> None:
        """Set all sliders to `weights [M]`, scaled so that the largest is 1."""
        self.value = compute_slider_levels(weights)
        names = [plain_client_name(k, self.setting) for k in range(len(self.value))]
        if names != self._names:
            self._names = names
            self._make_sliders()
        self._is_quiet = True
        for slider, value in zip(self.children, self.value, strict=True):
            slider.value = value
        self._is_quiet = False

    def _make_sliders(self) -> None:
        for slider in self.children:
            slider.close()
        sliders = []
        for name in self._names:
            slider = make_widget(
                widgets.FloatSlider,
                label=name.split()[0],
                help=f"Weight of client {name}",
                max=1,
                step=0.02,
                readout=False,
                width=128,
                label_width=20,
            )
            slider.observe(self._take_value, "value")
            sliders.append(slider)
        self.children = sliders

    def _take_value(self, change: Mapping[str, Any]) -> None:
        if self._is_quiet:
            return
        values = list(self.value)
        values[self.children.index(change["owner"])] = change["new"]
        self.value = tuple(values)


# ------------------------------------------------------------------------------------------ numbers
class Scores(NamedTuple):
    """What weights of the ensemble achieve on the two halves of the shown test images. The names of
    weights are the constants above, at least EQUAL and YOURS.

    counts:   training samples `[M, C]`;   shares: {name: w / Σ w `[M]`}
    by_class: {name: `[C]`}, accuracy of EQUAL and YOURS on the tune half, nan without images
    tune, judge: {name: accuracy} on the two halves, 0–1;   judge: None while it is hidden
    gap:      YOURS minus EQUAL with its 95 % band over the images, 0–1, on the judge half (while it
              is hidden: on the tune half)
    sizes:    images of the two halves
    """

    counts: np.ndarray
    shares: Mapping[str, np.ndarray]
    by_class: Mapping[str, np.ndarray]
    tune: Mapping[str, float]
    judge: Mapping[str, float] | None
    gap: Band
    sizes: tuple[int, int]


def score_weights(
    ensemble: Any, weights: Mapping[str, Sequence[float]], shows_judge: bool
) -> Scores:
    """The scores of `weights` {name: [M]}, of which only ratios count.

    ensemble: an outcome of the method `ensemble`, with the models of the same clients
    """
    labels = ensemble.test_labels
    counts = ensemble.label_counts
    classes = counts.shape[1]
    logits = compute_client_logits(ensemble)
    is_right = {name: predict_classes(logits, w) == labels for name, w in weights.items()}
    tune, judge = split_in_halves(len(labels))
    judge_scores = None
    gap_half = tune
    if shows_judge and len(judge):
        judge_scores = {name: float(right[judge].mean()) for name, right in is_right.items()}
        gap_half = judge
    gaps = is_right[YOURS][gap_half].astype(float) - is_right[EQUAL][gap_half]
    return Scores(
        counts=counts,
        shares={name: normalise_weights(w) for name, w in weights.items()},
        by_class={
            name: compute_class_accuracies(is_right[name][tune], labels[tune], classes)
            for name in (EQUAL, YOURS)
        },
        tune={name: float(right[tune].mean()) for name, right in is_right.items()},
        judge=judge_scores,
        gap=band(gaps.tolist()),
        sizes=(len(tune), len(judge)),
    )


# ------------------------------------------------------------------------------------------ picture
class ByHandPicture:
    """The picture of weights by hand. It keeps its figure, so that a slider redraws quickly."""

    _shape: tuple | None = None  # clients, classes and names that the figure was built for

    def show(
        self,
        scores: Scores,
        class_names: Sequence[str],
        *,
        setting: Setting | str,
        client: int | None = None,
        class_index: int | None = None,
        is_spoilt: bool = False,
    ) -> Picture:
        """The picture, brought up to date. is_spoilt: weights changed while the judge half was
        shown.
        """
        shape = (*scores.counts.shape, tuple(class_names))
        with LOCK:
            if shape != self._shape:
                self._build(*shape)
                self._shape = shape
            self._artists.update(scores.counts, client, class_index, setting=setting)
            self._update(scores, class_index)
        return describe_picture(
            self.figure,
            "Weights of the clients above the training samples that they hold, and accuracy",
            setting,
            describe_scores(scores, is_spoilt),
            make_table(scores, setting),
        )

    def _build(self, clients: int, classes: int, names: tuple[str, ...]) -> None:
        """Above: weights and scores. Below: samples, and accuracy by class. Columns are clients,
        rows are classes.
        """
        self.figure = new_figure()
        ratios = {"width_ratios": [2.1, 1], "height_ratios": [1.35, 3]}
        axes = self.figure.subplots(2, 2, sharex="col", **ratios)
        (weights_ax, scores_ax), (samples_ax, accuracy_ax) = axes
        self._artists = Artists(weights_ax, samples_ax, clients, classes, names, inches=(3.9, 2.5))
        for bar in self._artists.bars:
            bar.set_color(ACCENT)
        weights_ax.set_ylabel("weight", fontsize=10, color=QUIET)
        set_percent_axis(weights_ax, top=None)
        heading(weights_ax, "Weights", 5)
        draw_level_line(weights_ax, 1 / clients)
        self._marks = {}
        for name, marker, colour in ((LEARNT, "D", SECOND), (REAL, "s", "#009E73")):
            size = 7 if clients <= 16 else 4
            style = {"color": colour, "ms": size, "mew": 1.8, "mfc": "none"}
            self._marks[name] = weights_ax.plot([], [], marker, **style)[0]

        scores_ax.set_axis_off()
        heading(scores_ax, "Accuracy: tune | judge", 5)
        style = {"va": "top", "fontsize": 9, "color": INK, "linespacing": 1.7}
        self._scores_text = scores_ax.text(0, 1, "", transform=scores_ax.transAxes, **style)

        x = "correct" if is_narrow() else "correct (bar: yours, line: equal)"
        dress(accuracy_ax, x=x, grid="x", size=9)
        set_percent_axis(accuracy_ax, "x", ticks=HALVES)
        accuracy_ax.set(ylim=samples_ax.get_ylim(), yticks=[])
        band_style = {"color": ACCENT, "alpha": 0.13, "lw": 0, "zorder": 0}
        self._class_band = accuracy_ax.axhspan(-0.5, 0.5, **band_style)
        rows = np.arange(classes)
        colours = class_colours(classes)
        self._accuracy_bars = accuracy_ax.barh(rows, np.zeros(classes), height=0.62, color=colours)
        self._equal_lines = accuracy_ax.vlines(
            [0] * classes, rows - 0.38, rows + 0.38, color=INK, lw=2
        )

    def _update(self, scores: Scores, class_index: int | None) -> None:
        for bar, share in zip(self._artists.bars, scores.shares[YOURS], strict=True):
            bar.set_height(share)
        weights_ax = self._artists.upper
        largest = max(float(shares.max()) for shares in scores.shares.values())
        weights_ax.set_ylim(0, round_axis_end(largest))
        limit_ticks(weights_ax, "y", 3)
        for name, line in self._marks.items():
            shares = scores.shares.get(name, np.empty(0))
            line.set_data(range(len(shares)), shares)

        lines = []
        for name in scores.shares:
            accuracies = percent(scores.tune[name])
            if scores.judge:
                accuracies += f" | {percent(scores.judge[name])}"
            lines.append(f"{name}: {accuracies}")
        self._scores_text.set_text("\n".join(lines))

        has_class = class_index is not None and class_index < len(self._accuracy_bars)
        self._class_band.set(visible=has_class, y=(class_index or 0) - 0.5)
        yours = np.nan_to_num(scores.by_class[YOURS])
        equal = np.nan_to_num(scores.by_class[EQUAL])
        for bar, accuracy in zip(self._accuracy_bars, yours, strict=True):
            bar.set_width(accuracy)
        segments = [[(x, c - 0.38), (x, c + 0.38)] for c, x in enumerate(equal)]
        self._equal_lines.set_segments(segments)


def make_table(scores: Scores, setting: Setting | str) -> list[dict[str, Any]]:
    """A row for each of the weights: accuracy on the halves that are shown, and the shares."""
    halves = {"tune half": scores.tune}
    if scores.judge:
        halves["judge half"] = scores.judge
    clients = [f"client {plain_client_name(k, setting)}" for k in range(len(scores.counts))]
    rows = []
    for name, shares in scores.shares.items():
        accuracies = [accuracy[name] for accuracy in halves.values()]
        rows.append((name, *(percent(value) for value in (*accuracies, *shares))))
    return build_table(["weights", *halves, *clients], rows)


def describe_scores(scores: Scores, is_spoilt: bool) -> str:
    """Your weights beside equal ones, on the judge half if it is shown."""
    verdict = describe_significance(
        scores.gap, clear="more than noise", one_seed="too few images to tell"
    )
    gap = f"{format_points(scores.gap)}, {verdict}"
    tune = scores.tune
    judge = scores.judge
    if judge is None:
        return (
            f"On the {scores.sizes[0]} images of the tune half your weights get "
            f"{percent(tune[YOURS])} right, equal ones {percent(tune[EQUAL])} ({gap}). You tune on "
            "test images, so the judge half decides."
        )
    others = [f"; {name} {percent(judge[name])}" for name in (LEARNT, REAL) if name in judge]
    text = (
        f"Judge half: your weights {percent(judge[YOURS])}, equal ones {percent(judge[EQUAL])} "
        f"({gap}){''.join(others)}."
    )
    if is_spoilt:
        return f"{text} You changed weights after you had seen it, so it no longer judges fairly."
    return f"{text} On the tune half your weights had {percent(tune[YOURS])}."
