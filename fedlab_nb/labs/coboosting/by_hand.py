"""Ensemble weights by hand: each client's weight above its samples, and to the right the accuracies
that the weights reach.

The test images are split into two halves. A person chooses weights on the tune half; the judge half
then measures them. The method itself uses neither.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import traitlets

from ...front.vocabulary import describe_classes_for_browser
from ...panels import LabView, PanelState, ProgressThenResult, make_widget
from ...panels.stage_data import convert_to_hex_colour
from ...plots import (
    Picture,
    TableRows,
    build_table,
    describe_picture,
    dress,
    format_percent,
    write_axes_title,
)
from ...plots.partition import PartitionArtists, round_up_axis_end
from ...plots.style import (
    ACCENT,
    HALVES,
    INK,
    LOCK,
    QUIET,
    SECOND,
    draw_level_line,
    is_frame_narrow,
    limit_tick_count,
    list_class_colours,
    make_figure,
    set_percent_axis,
)
from ...plots.words import (
    SettingCaption,
    choose_words_by_significance,
    format_client_for_sentence,
    format_difference_in_points,
    join_with_and,
)
from ...studies import Outcome
from ...studies.statistics import Band, compute_band
from ...value_types import JsonObject
from ..array_types import ClientWeights
from ..runs import describe_setting, get_or_run_ensemble, rerun_with_method
from .votes import (
    compute_accuracy_by_class,
    get_client_logits_on_test_images,
    normalise_weights_to_shares,
    predict_by_weighted_logits,
    split_image_indices_into_fixed_halves,
)

# The names of weights.
YOURS = "yours"
EQUAL = "equal"
LEARNT = "Co-Boosting"
REAL = "real images"
BY_COUNTS = "by sample counts"
# How the scores name the weights other than "your weights".
SCORE_NAMES = {EQUAL: "equal weights", LEARNT: "Co-Boosting's", REAL: "from real images"}
OWN = "own"  # the menu's value when no preset is chosen

START_LEVEL = 0.5  # of all sliders
WidgetChange = Mapping[str, Any]  # what `observe` passes on: the `old` and the `new` value
SliderLevels0To1 = tuple[float, ...]  # one for each client
# Weights from real images need neither synthetic images nor a student, so the run makes few of them.
REAL_OPTIONS = {
    "coboosting.ee": True,
    "coboosting.ee_data": "real",
    "coboosting.answer": "ensemble",
    "coboosting.dhs": False,
    "coboosting.generator_steps": 1,
}


class WeightsByHandView(LabView):
    """Drag the weights, and try to beat equal ones. Then show Co-Boosting's weights, and let the
    other half of the images judge.
    """

    name, title, has_scene = "hand", "Choose the weights", True
    summary = "Then drag the weights, and try to beat equal ones."
    work_label = "Learn from real images"
    work_help = (
        "The same rule on the clients' own images. This is only a reference: clients would "
        "have to send them."
    )

    def __init__(self) -> None:
        self.sliders = WeightSliders()
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
        # A control in a box does not redraw the view: the menu sets the sliders, and they redraw it.
        self.controls = [self.sliders, widgets.HBox([self.start]), self.learnt, self.judge]
        self.start.observe(self._set_sliders_to_chosen_preset, "value")
        self.sliders.observe(self._unselect_preset_if_sliders_differ, "value")
        self._picture = WeightsByHandPicture()
        self._outcome = None  # the outcome that was drawn last
        self._presets: dict[str, Any] = {}
        self._given = 0  # how often a person has set the sliders in the scene
        self._is_spoilt = False  # whether weights changed while the judge half was shown

    def adapt(self, state: PanelState) -> None:
        if state.outcome is not self._outcome:  # another run: everything starts again
            self._outcome = state.outcome
            self._is_spoilt = False
            self.learnt.value = False
            self.judge.value = False
            self._fill_preset_menu(state)
            self.sliders.set_weights(np.ones(len(state.outcome.label_counts)))
        elif state.worked is not None and REAL not in self._presets:
            self._fill_preset_menu(state)

    def _fill_preset_menu(self, state: PanelState) -> None:
        """Fill the menu with the presets that the sliders can be set to."""
        counts = state.outcome.label_counts
        weights = {
            EQUAL: np.ones(len(counts)),
            BY_COUNTS: counts.sum(1),
            LEARNT: np.asarray(state.report.ensemble_weights),
            REAL: state.worked,
        }
        self._presets = select_known_weights(weights)
        self.start.options = [("…", OWN), *((name, name) for name in self._presets)]

    def _set_sliders_to_chosen_preset(self, menu_change: WidgetChange) -> None:
        name = menu_change["new"]
        if name in self._presets:
            self.sliders.set_weights(self._presets[name])

    def _unselect_preset_if_sliders_differ(self, slider_change: WidgetChange) -> None:
        """Choose no preset in the menu when the sliders have other weights than the preset.

        If the judge half is shown at that moment, the weights are tuned on it, and it no longer
        judges fairly.
        """
        preset = self._presets.get(self.start.value)
        if preset is None or slider_change["new"] != compute_slider_levels(preset):
            self.start.value = OWN
            if self.judge.value:
                self._is_spoilt = True

    def adopt_values_set_in_browser_scene(self, scene_values: Mapping[str, Any]) -> None:
        """Take over the sliders that a person has set in the scene.

        scene_values: the `levels` of the sliders, 0 to 1, and a `count` of how often they were set
        """
        levels = tuple(float(level) for level in scene_values.get("levels", ()))
        has_all_levels = len(levels) == len(self.sliders.value)
        if has_all_levels and all(0 <= level <= 1 for level in levels):
            self._given = int(scene_values["count"])
            self.sliders.value = levels

    def prepare(self, state: PanelState) -> ProgressThenResult[Outcome]:
        """Run the plain ensemble of the same clients; its features are the clients' logits.

        This is quick, as the trained clients are cached.
        """
        return (yield from get_or_run_ensemble(state))

    def work(self, state: PanelState) -> ProgressThenResult[ClientWeights]:
        """Compute the weights `[M]` that Co-Boosting learns from real images."""
        name = "weights from real images"
        outcome = yield from rerun_with_method(state.outcome, "coboosting", REAL_OPTIONS, name)
        return np.asarray(outcome.report.ensemble_weights)

    def draw(self, state: PanelState) -> Picture:
        weights = {
            EQUAL: np.ones(len(self.sliders.value)),
            YOURS: self.sliders.value,
            LEARNT: state.report.ensemble_weights if self.learnt.value else None,
            REAL: state.worked,
        }
        scores = compute_weight_scores(
            state.prepared, select_known_weights(weights), self.judge.value
        )
        picture = self._picture.redraw(
            scores,
            state.class_names,
            setting=describe_setting(state.outcome),
            selected_client=state.client,
            selected_class=state.class_index,
            is_judge_half_spoilt=self._is_spoilt,
        )
        scene = make_weights_by_hand_scene(state.prepared, scores, state.class_names)
        sliders = {"levels": list(self.sliders.value), "count": self._given}
        return replace(picture, scene={**scene, **sliders})


def select_known_weights(
    weights_or_none_by_name: Mapping[str, ClientWeights | None],
) -> dict[str, ClientWeights]:
    """Return the weights without those that are None."""
    return {name: values for name, values in weights_or_none_by_name.items() if values is not None}


# ------------------------------------------------------------------------------------------ sliders
def compute_slider_levels(client_weights: Sequence[float] | ClientWeights) -> SliderLevels0To1:
    """Compute the levels of the sliders for weights `[M]`.

    The largest level is 1. If all weights are equal, all levels are START_LEVEL.
    """
    client_weights = np.asarray(client_weights, dtype=float)
    if np.ptp(client_weights) == 0:
        levels = np.full(len(client_weights), START_LEVEL)
    else:
        levels = client_weights / client_weights.max()
    return tuple(levels.round(4).tolist())


class WeightSliders(widgets.Box):
    """The levels of the sliders, `value [M]`, 0 to 1. The browser draws them (`front/hand.js`)."""

    value = traitlets.Tuple()
    description = "Weights of the clients"

    def __init__(self) -> None:
        super().__init__(layout={"display": "none"})

    def set_weights(self, weights: Sequence[float] | ClientWeights) -> None:
        """Set all sliders to `weights [M]`, scaled so that the largest is 1."""
        self.value = compute_slider_levels(weights)


# ------------------------------------------------------------------------------------------ numbers
class WeightScores(NamedTuple):
    """What each set of ensemble weights achieves on the two halves of the test images.

    The sets have the names above: always EQUAL and YOURS, and the others where they are known.

    counts:   `[M, C]`, training samples
    shares:   {name: `[M]`}, each client's share of the weight, w / Σ w
    by_class: {name: `[C]`}, accuracy of EQUAL and YOURS on the tune half, nan without images
    tune:     {name: accuracy 0–1 on the tune half}
    judge:    {name: accuracy 0–1 on the judge half}; None while that half is hidden
    gap:      accuracy of YOURS minus that of EQUAL, 0–1, with its 95 % band over the images: on the
              judge half, or on the tune half while the judge half is hidden
    sizes:    number of images in the tune half and in the judge half
    """

    counts: np.ndarray
    shares: Mapping[str, np.ndarray]
    by_class: Mapping[str, np.ndarray]
    tune: Mapping[str, float]
    judge: Mapping[str, float] | None
    gap: Band
    sizes: tuple[int, int]


def compute_weight_scores(
    ensemble_outcome: Outcome,
    weights_by_name: Mapping[str, Sequence[float] | ClientWeights],
    includes_judge_half: bool,
) -> WeightScores:
    """Compute the scores of several sets of weights.

    ensemble_outcome:    of the method `ensemble`, with the models of the same clients
    weights_by_name:     {name: `[M]`}; only the ratios of weights count
    includes_judge_half: whether the judge half is scored, too
    """
    labels = ensemble_outcome.test_labels
    counts = ensemble_outcome.label_counts
    classes = counts.shape[1]
    logits = get_client_logits_on_test_images(ensemble_outcome)
    is_right = {
        name: predict_by_weighted_logits(logits, w) == labels for name, w in weights_by_name.items()
    }
    tune, judge = split_image_indices_into_fixed_halves(len(labels))
    judge_scores = None
    gap_half = tune
    if includes_judge_half and len(judge):
        judge_scores = {name: float(right[judge].mean()) for name, right in is_right.items()}
        gap_half = judge
    gaps = is_right[YOURS][gap_half].astype(float) - is_right[EQUAL][gap_half]
    return WeightScores(
        counts=counts,
        shares={name: normalise_weights_to_shares(w) for name, w in weights_by_name.items()},
        by_class={
            name: compute_accuracy_by_class(is_right[name][tune], labels[tune], classes)
            for name in (EQUAL, YOURS)
        },
        tune={name: float(right[tune].mean()) for name, right in is_right.items()},
        judge=judge_scores,
        gap=compute_band(gaps.tolist()),
        sizes=(len(tune), len(judge)),
    )


# ------------------------------------------------------------------------------------------ scene
def make_weights_by_hand_scene(
    ensemble_outcome: Outcome, weight_scores: WeightScores, class_names: Sequence[str]
) -> JsonObject:
    """Make what the browser needs to weight the logits by itself (`front/hand.js`), with these
    entries:

    kind: "hand"
    clients: the names of the clients
    classes: the names and colours of the classes
    counts: as in `WeightScores`
    logits: `[N, M, C]`, base64 of float32
    labels: `[N]`
    tune, judge: row numbers of the images in each half
    others: dicts with the name and the tune and judge accuracies of all weights but YOURS
    showsJudge: whether the judge half is shown
    """
    labels = ensemble_outcome.test_labels
    tune, judge = split_image_indices_into_fixed_halves(len(labels))
    setting = describe_setting(ensemble_outcome)
    clients = [format_client_for_sentence(k, setting) for k in range(len(weight_scores.counts))]
    names = [str(name) for name in class_names]
    colours = [convert_to_hex_colour(colour) for colour in list_class_colours(len(names))]
    other_scores = []
    for name, accuracy in weight_scores.tune.items():
        if name != YOURS:
            judge_accuracy = None if weight_scores.judge is None else weight_scores.judge[name]
            other_scores.append(
                {"name": SCORE_NAMES[name], "tune": accuracy, "judge": judge_accuracy}
            )
    return {
        "kind": "hand",
        "clients": clients,
        "classes": describe_classes_for_browser(names, colours),
        "counts": weight_scores.counts.tolist(),
        "logits": b64encode(get_client_logits_on_test_images(ensemble_outcome).tobytes()).decode(),
        "labels": labels.tolist(),
        "tune": tune.tolist(),
        "judge": judge.tolist(),
        "others": other_scores,
        "showsJudge": weight_scores.judge is not None,
    }


# ------------------------------------------------------------------------------------------ picture
class WeightsByHandPicture:
    """The picture of weights by hand. It keeps its figure, so that a slider redraws quickly."""

    _shape: tuple | None = None  # clients, classes and names that the figure was built for

    def redraw(
        self,
        scores: WeightScores,
        class_names: Sequence[str],
        *,
        setting: SettingCaption | str,
        selected_client: int | None = None,
        selected_class: int | None = None,
        is_judge_half_spoilt: bool = False,
    ) -> Picture:
        """Update the picture, and return it.

        is_judge_half_spoilt: whether weights changed while the judge half was shown
        """
        shape = (*scores.counts.shape, tuple(class_names))
        with LOCK:
            if shape != self._shape:
                self._build_axes(*shape)
                self._shape = shape
            self._artists.update(scores.counts, selected_client, selected_class, setting=setting)
            self._redraw_scores(scores, selected_class)
        return describe_picture(
            self.figure,
            "Weights of the clients above the training samples that they hold, and accuracy",
            setting,
            describe_weight_scores(scores, is_judge_half_spoilt),
            make_weight_table(scores, setting),
            detail=describe_gap_of_own_to_equal_weights(scores),
        )

    def _build_axes(
        self, client_count: int, class_count: int, class_names: tuple[str, ...]
    ) -> None:
        """Build the axes: weights and scores at the top, samples and accuracy by class at the
        bottom.

        The columns of the table of samples are clients, its rows are classes.
        """
        self.figure = make_figure()
        ratios = {"width_ratios": [2.1, 1], "height_ratios": [1.35, 3]}
        axes = self.figure.subplots(2, 2, sharex="col", **ratios)
        (weights_ax, scores_ax), (samples_ax, accuracy_ax) = axes
        self._artists = PartitionArtists(
            weights_ax,
            samples_ax,
            client_count,
            class_count,
            class_names,
            size_of_lower_axes_inches=(3.9, 2.5),
        )
        for bar in self._artists.bars:
            bar.set_color(ACCENT)
        weights_ax.set_ylabel("weight", fontsize=10, color=QUIET)
        set_percent_axis(weights_ax, highest_share=None)
        write_axes_title(weights_ax, "Weights", 5)
        draw_level_line(weights_ax, 1 / client_count)
        self._marks = {}
        for name, marker, colour in ((LEARNT, "D", SECOND), (REAL, "s", "#009E73")):
            size = 7 if client_count <= 16 else 4
            style = {"color": colour, "ms": size, "mew": 1.8, "mfc": "none"}
            self._marks[name] = weights_ax.plot([], [], marker, **style)[0]

        scores_ax.set_axis_off()
        write_axes_title(scores_ax, "Accuracy: tune | judge", 5)
        style = {"va": "top", "fontsize": 9, "color": INK, "linespacing": 1.7}
        self._scores_text = scores_ax.text(0, 1, "", transform=scores_ax.transAxes, **style)

        x = "correct" if is_frame_narrow() else "correct (bar: yours, line: equal)"
        dress(accuracy_ax, x=x, grid="x", size=9)
        set_percent_axis(accuracy_ax, "x", ticks=HALVES)
        accuracy_ax.set(ylim=samples_ax.get_ylim(), yticks=[])
        band_style = {"color": ACCENT, "alpha": 0.13, "lw": 0, "zorder": 0}
        self._class_band = accuracy_ax.axhspan(-0.5, 0.5, **band_style)
        rows = np.arange(class_count)
        colours = list_class_colours(class_count)
        self._accuracy_bars = accuracy_ax.barh(
            rows, np.zeros(class_count), height=0.62, color=colours
        )
        self._equal_lines = accuracy_ax.vlines(
            [0] * class_count, rows - 0.38, rows + 0.38, color=INK, lw=2
        )

    def _redraw_scores(self, scores: WeightScores, selected_class: int | None) -> None:
        for bar, share in zip(self._artists.bars, scores.shares[YOURS], strict=True):
            bar.set_height(share)
        weights_ax = self._artists.upper
        largest_share = max(float(shares.max()) for shares in scores.shares.values())
        weights_ax.set_ylim(0, round_up_axis_end(largest_share))
        limit_tick_count(weights_ax, "y", 3)
        for name, line in self._marks.items():
            shares = scores.shares.get(name, np.empty(0))
            line.set_data(range(len(shares)), shares)

        lines = []
        for name in scores.shares:
            accuracies = format_percent(scores.tune[name])
            if scores.judge:
                accuracies += f" | {format_percent(scores.judge[name])}"
            lines.append(f"{name}: {accuracies}")
        self._scores_text.set_text("\n".join(lines))

        has_class = selected_class is not None and selected_class < len(self._accuracy_bars)
        self._class_band.set(visible=has_class, y=(selected_class or 0) - 0.5)
        your_accuracies = np.nan_to_num(scores.by_class[YOURS])
        equal_weight_accuracies = np.nan_to_num(scores.by_class[EQUAL])
        for bar, accuracy in zip(self._accuracy_bars, your_accuracies, strict=True):
            bar.set_width(accuracy)
        segments = [[(x, c - 0.38), (x, c + 0.38)] for c, x in enumerate(equal_weight_accuracies)]
        self._equal_lines.set_segments(segments)


def make_weight_table(scores: WeightScores, setting: SettingCaption | str) -> TableRows:
    """Make the table with a row for each set of weights: accuracy on the halves that are shown, and
    the clients' shares of the weight.
    """
    halves = {"tune half": scores.tune}
    if scores.judge:
        halves["judge half"] = scores.judge
    clients = [
        f"client {format_client_for_sentence(k, setting)}" for k in range(len(scores.counts))
    ]
    rows = []
    for name, shares in scores.shares.items():
        accuracies = [accuracy[name] for accuracy in halves.values()]
        rows.append((name, *(format_percent(value) for value in (*accuracies, *shares))))
    return build_table(["weights", *halves, *clients], rows)


def describe_weight_scores(scores: WeightScores, is_judge_half_spoilt: bool) -> str:
    """Compare your weights with equal ones, on the judge half if it is shown, else on the tune
    half.
    """
    if scores.judge is None:
        return (
            f"{describe_own_against_equal_weights(scores, scores.tune)} You chose your weights on "
            f"these {scores.sizes[0]} images: the other half judges them."
        )
    parts = [f"On new images: {describe_own_against_equal_weights(scores, scores.judge)}"]
    reference_texts = [
        f"{name} {format_percent(scores.judge[name])}"
        for name in (LEARNT, REAL)
        if name in scores.judge
    ]
    if reference_texts:
        parts.append(f"Beside them: {join_with_and(reference_texts)}.")
    if is_judge_half_spoilt:
        parts.append("You changed weights after you had seen this, so it no longer judges fairly.")
    else:
        parts.append(
            f"Where you chose them, your weights had {format_percent(scores.tune[YOURS])}."
        )
    return " ".join(parts)


def describe_own_against_equal_weights(
    scores: WeightScores, accuracy_by_weights_name: Mapping[str, float]
) -> str:
    """Compare your weights with equal ones: 'Your weights get 61 % right, equal ones 54 %: more
    than chance.'
    """
    verdict = choose_words_by_significance(
        scores.gap,
        clear_words="more than chance",
        noise_words="that may be chance",
        one_seed_words="too few images to tell",
    )
    return (
        f"Your weights get {format_percent(accuracy_by_weights_name[YOURS])} right, equal ones "
        f"{format_percent(accuracy_by_weights_name[EQUAL])}: {verdict}."
    )


def describe_gap_of_own_to_equal_weights(scores: WeightScores) -> str:
    """Describe the difference between your weights and equal ones, with its band over the images."""
    half = "tune" if scores.judge is None else "judge"
    gap = format_difference_in_points(scores.gap)
    return f"Yours minus equal on the {half} half: {gap} (95 % band over its images)."
