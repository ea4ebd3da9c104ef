"""The views that every panel has (who holds what, accuracy, communication, features, classes), those of the comparison,
and the panel in one picture.

They pass data from a `PanelState` to `plots`. The slow part, t-SNE, is cached.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypedDict

import ipywidgets as widgets
import numpy as np

from .. import plots
from ..data import Dataset, describe, load
from ..errors import SAMPLES, FedlabError
from ..front.vocabulary import choose_words_for_clients_and_samples
from ..methods import METHODS, choose_method_label
from ..plots.accuracy import make_accuracy_table
from ..plots.array_types import ByteImages, FeatureRows, MapPoints
from ..plots.embed import POINTS, compute_tsne_in_subprocess
from ..plots.method_map import draw_method_map
from ..plots.partition import TitledBars
from ..plots.piles import draw_piles
from ..plots.stored_curves import StoredPlot
from ..plots.style import is_frame_narrow, use_figure_size
from ..plots.vector import ThumbnailSheet
from ..plots.words import (
    SettingCaption,
    format_client_for_sentence,
    format_count_and_noun,
    format_data_size,
    format_percent,
    get_settings_of_caption,
    join_with_and,
)
from ..studies.experiment import choose_fixed_test_indices_for_pictures
from ..studies.settings import MethodRunPlan, Settings, make_plans
from ..value_types import Accuracy0To1, SettingsByName
from .lab_view import (
    LabSpec,
    LabView,
    PanelState,
    PausesThenResult,
    describe_shown_run_or_empty,
    make_caption_of_settings_and_seeds,
)
from .nearest_results import find_nearest_stored_results
from .plane import PlaneView
from .record import RunRecord
from .stage_data import make_thumbnail_sheet_or_none
from .theme import make_widget, set_menu_options_and_keep_choice, show_widgets_if

NOT_STORED = "nothing is stored for this setting"
MAX_MAPS = 60  # in the cache
STILL = (10.5, 4.1)  # inches, the size of the picture in a saved notebook
# No setting is named: a lesson may hide its control, and data may come with clients of their own.
WHAT_TO_DO = "Nothing has been trained yet: press Run, and the chosen methods are compared."
# The same in a saved notebook, in which the panel is a picture and a sentence, without a button.
WHAT_TO_DO_WITH_CELL = "Nothing has been trained yet: run this cell first, then press Run."


class WhoHoldsWhat(LabView):
    """The partition, with the stored results beside it."""

    name, title, ready = "partition", "Who holds what", "data"
    needs = ("federation", "stored", "client", "class_index", "frame")
    empty, waiting = "No data to show.", ""

    def __init__(self) -> None:
        super().__init__()
        self._picture = plots.PartitionPicture()

    def draw(self, state: PanelState) -> plots.Picture:
        stored = None
        if state.stored and not is_frame_narrow():
            stored = state.stored.make_bars_of_nearest_setting()
        return self._picture.show(
            state.federation,
            setting=make_caption_of_first_seed(state),
            selected_client=state.client,
            selected_class_index=state.class_index,
            stored_bars_beside_it=stored,
        )

    def caption(self, state: PanelState) -> str:
        if state.federation is None:
            return ""
        text = f"{make_caption_of_first_seed(state)}."
        if "α" in text:
            text += " Smaller α is more skewed."
        return text


class ResultView(LabView):
    """A picture of the present run, from its first curve on, with the pinned rows beside it."""

    ready, empty, waiting = "live", WHAT_TO_DO, "Training …"

    def is_ready(self, state: PanelState) -> bool:
        return any(row.outcomes or row.live for row in state.runs.current_rows)


class Accuracy(ResultView):
    """Accuracy, the best first once all is done; before the first run of the stored results."""

    name, title = "accuracy", "Accuracy"
    needs = ("runs", "placeholder", "shows_stored", "frame", "running")

    def __init__(self) -> None:
        super().__init__()
        self._stored = StoredPlot()
        self.keeps_order = make_widget(
            widgets.Checkbox,
            label="Keep list order",
            help="Bars in the order of the list of methods, in place of the best first",
            indent=False,
        )

    def adapt(self, state: PanelState) -> None:
        show_widgets_if(state.placeholder is None, self.keeps_order)

    def is_ready(self, state: PanelState) -> bool:
        return super().is_ready(state) or state.placeholder is not None

    def draw(self, state: PanelState) -> plots.Picture:
        if state.placeholder is not None:
            return state.placeholder.draw_into_stored_plot(self._stored)
        rows = copy_results_with_stored_bands(
            state.runs.list_results_of_shown_rows(adds_other_rules_of_methods=True), state
        )
        if not state.running and not self.keeps_order.value:
            rows.sort(key=lambda s: s.mean if s.accuracies else -1.0, reverse=True)
        return plots.draw_accuracy_bars_and_curves(rows, chance_accuracy=1 / len(state.class_names))

    def caption(self, state: PanelState) -> str:
        if state.placeholder is not None:
            return "Nothing was run here yet: these are stored results. Press Run to get your own."
        return describe_shown_run_or_empty(state)


def copy_results_with_stored_bands(
    series: list[plots.MethodResults], state: PanelState
) -> list[plots.MethodResults]:
    """Return copies of the series with the stored bands of the present run's setting, or with why there is none."""
    rows = state.runs.current_rows
    if not rows or not state.shows_stored:
        return series
    stored = find_nearest_stored_results([row.method for row in rows], rows[0].settings)
    bands = {}
    about = ""
    if stored is not None:
        about = stored.describe_stored_seeds()
        for method, stored_band in stored.get_bands_by_method_or_empty().items():
            bands[choose_method_label(method, rows[0].settings, method)] = stored_band
    lack = "this variant is not in the stored results" if bands else NOT_STORED
    found = []
    for s in series:
        stored_band = bands.get(s.method)
        if not s.pinned and stored_band is not None:
            s = replace(s, stored=stored_band, stored_about=about)
        elif not s.pinned:
            s = replace(s, stored_about=lack)
        found.append(s)
    return found


class Communication(ResultView):
    name, title, needs = "communication", "Communication", ("runs", "client", "frame")

    def draw(self, state: PanelState) -> plots.Picture:
        client_bytes = describe_bytes_of_client_or_empty(state.runs, state.client)
        return plots.draw_bytes_by_phase_and_accuracy(
            state.runs.list_results_of_shown_rows(), client_bytes_sentence=client_bytes
        )


class MapPointsAndScore(TypedDict, total=False):
    """The points of a map, and how well neighbours agree; `tsne` is there once it is made."""

    features: FeatureRows  # [N, D], which the points stand for
    pca: MapPoints  # [n, 2]
    tsne: MapPoints  # [n, 2]
    score: float


class BrightClasses(NamedTuple):
    """The classes that stay bright in a map, None for all, and which they are in words."""

    is_class_bright: list[bool] | None
    words: str


class Features(ResultView):
    """Maps of the features: PCA at once, t-SNE when it is made."""

    name, title, preview = "features", "Features (t-SNE)", True
    needs = ("runs", "client", "class_index", "frame")

    def __init__(self) -> None:
        super().__init__()
        self.maps = make_widget(
            widgets.Dropdown,
            "fl-maps",
            label="Methods",
            label_width=62,
            options=[("all", 0)],
            help="Which methods' maps are shown; the table has all of them",
        )
        self.controls = (self.maps,)
        # By the identity of the feature array, which is kept with its map.
        self._maps: dict[int, MapPointsAndScore] = {}

    def draw(self, state: PanelState) -> plots.Picture:
        bright_classes, remark = self._choose_bright_classes(state)
        settings = state.runs.current_rows[0].settings
        sheet = make_test_thumbnail_sheet_or_none(settings)
        maps = [
            self._make_feature_map(s, sheet, settings)
            for s in select_shown_results_with_features(state.runs)
        ]
        return plots.draw_feature_maps(
            maps,
            state.class_names,
            setting=state.runs.current_rows[0].setting,
            is_class_bright=bright_classes,
            bright_class_words=remark,
            first_map_index=self.maps.value,
            thumbnail_sheet=sheet,
        )

    def _make_feature_map(
        self,
        method_results: plots.MethodResults,
        thumbnail_sheet: ThumbnailSheet | None,
        settings_of_present_run: SettingsByName,
    ) -> plots.FeatureMap:
        """Make the map of a row. thumbnail_sheet: the images of the present run's samples"""
        known = self._get_or_compute_pca_points_and_score(method_results)
        points = known.get("tsne", known["pca"])
        dataset = get_settings_of_caption(method_results.setting).get("dataset")
        has_images = thumbnail_sheet is not None and dataset == settings_of_present_run["dataset"]
        details = (method_results.detail, method_results.features_of)
        below = ", ".join(text for text in details if text)
        return plots.FeatureMap(
            f"{method_results.label}\n{below}" if below else method_results.label,
            points,
            method_results.labels[:POINTS],
            known["score"],
            "t-SNE" if "tsne" in known else "PCA",
            None if method_results.answers is None else method_results.answers[:POINTS],
            np.arange(len(points)) if has_images else None,
        )

    def _choose_bright_classes(self, state: PanelState) -> BrightClasses:
        """Choose the classes that stay bright: the selected one, or those of the selected client, or all (None)."""
        names = state.class_names
        if state.class_index is not None and state.class_index < len(names):
            bright = [c == state.class_index for c in range(len(names))]
            return BrightClasses(bright, f"class {names[state.class_index]}")
        outcomes = state.runs.list_current_outcomes()
        if state.client is None or not outcomes:
            return BrightClasses(None, "")
        counts = np.asarray(outcomes[0].label_counts)
        if state.client >= len(counts):
            return BrightClasses(None, "")
        who = format_client_for_sentence(state.client, state.runs.current_rows[0].setting)
        return BrightClasses(list(counts[state.client] > 0), f"classes that client {who} holds")

    def adapt(self, state: PanelState) -> None:
        """Offer a menu of the methods that are shown, if there are more than fit into one picture."""
        count = len(select_shown_results_with_features(state.runs))
        options = []
        for start in range(0, max(count, 1), plots.MAPS):
            end = min(start + plots.MAPS, count)
            options.append((f"{start + 1} to {end} of {count}", start))
        set_menu_options_and_keep_choice(self.maps, options)
        show_widgets_if(len(options) > 1, self.maps)

    def _get_or_compute_pca_points_and_score(
        self, method_results: plots.MethodResults
    ) -> MapPointsAndScore:
        key = id(method_results.features)
        if key not in self._maps:
            self._maps[key] = {
                "features": method_results.features,
                "pca": plots.project_by_pca(method_results.features[:POINTS]),
                "score": plots.compute_neighbour_accuracy(
                    method_results.features, method_results.labels
                ),
            }
            while len(self._maps) > MAX_MAPS:
                self._maps.pop(next(iter(self._maps)))
        return self._maps[key]

    def _list_results_without_tsne(self, state: PanelState) -> list[plots.MethodResults]:
        return [
            s
            for s in select_shown_results_with_features(state.runs)
            if "tsne" not in self._get_or_compute_pca_points_and_score(s)
        ]

    def needs_preparing(self, state: PanelState) -> bool:
        return bool(self._list_results_without_tsne(state))

    def prepare(self, state: PanelState) -> PausesThenResult[None]:
        """Compute the missing t-SNE maps, one by one; in another process if a browser shows the panel."""
        for s in self._list_results_without_tsne(state):
            features = s.features[:POINTS]
            if state.frame[0]:
                points = yield from compute_tsne_in_subprocess(features)
            else:
                points = plots.project_by_tsne(features)
            self._get_or_compute_pca_points_and_score(s)["tsne"] = points
            yield


class Classes(ResultView):
    name, title = "classes", "Clients and classes"
    needs = ("runs", "client", "class_index", "frame")

    def draw(self, state: PanelState) -> plots.Picture:
        series = state.runs.list_results_of_shown_rows(skips_rows_with_other_classes=True)
        return plots.draw_class_and_client_accuracies(
            series,
            state.class_names,
            marked_client_index=state.client,
            marked_class_index=state.class_index,
        )


class Calibration(LabView):
    """How sure the methods are, and how often they are right. Stored results do not have these numbers."""

    name, title = "calibration", "Calibration"
    empty = (
        "The stored results have no reliability diagrams. Press Run: then they are drawn "
        "from your results."
    )

    def draw(self, state: PanelState) -> plots.Picture:
        return plots.draw_reliability_diagrams(state.runs.list_results_of_shown_rows())


class Times(LabView):
    """Wall time."""

    name, title = "times", "Time"
    empty = "Press Run: then this shows how long each method took."

    def draw(self, state: PanelState) -> plots.Picture:
        rows = []
        for row in state.runs.current_rows:
            if row.outcomes:
                rows.append(
                    plots.MethodTime(
                        row.title,
                        row.compute_mean_over_seeds("seconds_local"),
                        row.compute_mean_over_seeds("seconds_method"),
                    )
                )
        return plots.draw_wall_times(rows, setting=state.setting)


class Needs(LabView):
    name, title, ready = "needs", "Needs and leaks", "always"

    def draw(self, state: PanelState) -> plots.Picture:
        plans = plan_runs_by_method_or_empty(state)
        rows = []
        for name in state.methods:
            info = METHODS[name].info
            plan = plans.get(name)
            row = {"method": info.title, "rounds": info.rounds, "bytes of one client": info.traffic}
            row["extra data"] = info.extra
            leaks = info.leaks
            if plan is not None:
                row["local work"] = format_mean_local_passes(plan)
                leaks = plan.method.leaks
            row["what leaks"] = leaks or "nothing beyond its answers"
            rows.append(row)
        free = [row["method"] for row in rows if row["extra data"] == "nothing"]
        names = join_with_and(free) or "none"
        methods = format_count_and_noun(len(rows), "method")
        text = f"{len(free)} of {methods} need nothing but the uploads: {names}."
        picture = draw_method_map(state.methods)
        alt = f"{picture.alt} Below it a table of what methods need and leak."
        return replace(picture, alt=alt, sentence=text, table=rows, tabled=True)


def plan_runs_by_method_or_empty(state: PanelState) -> dict[str, MethodRunPlan]:
    """Plan each method's run at the present settings; {} as long as these are not valid."""
    settings = dict(state.settings)
    for name in ("seeds", "cache"):
        settings.pop(name, None)
    try:
        plans = make_plans(Settings.make(**settings), list(state.methods))
    except FedlabError:
        return {}
    return {plan.method_name: plan for plan in plans}


def format_mean_local_passes(plan: MethodRunPlan) -> str:
    """Format how often a client of the method passes over its own data."""
    samples = describe(plan.settings.dataset).n_train
    return f"{plan.compute_mean_local_passes(samples):.0f} passes"


COMMON = (WhoHoldsWhat, Accuracy, Communication, Features, Classes)


def make_test_thumbnail_sheet_or_none(settings: SettingsByName) -> ThumbnailSheet | None:
    """Make the sheet of the test images that the maps show; None if samples are no images or cannot be loaded."""
    try:
        return get_or_make_test_thumbnail_sheet(load(str(settings["dataset"])))
    except FedlabError:
        return None


@lru_cache(maxsize=4)
def get_or_make_test_thumbnail_sheet(dataset: Dataset) -> ThumbnailSheet | None:
    """Make the sheet of the POINTS test images that maps show of a data set. The last sheets are cached."""
    points = choose_fixed_test_indices_for_pictures(len(dataset.y_test))[:POINTS]
    return make_thumbnail_sheet_or_none(dataset.x_test[points])


def make_caption_of_first_seed(state: PanelState) -> SettingCaption:
    """Make the caption of the partition, which is that of the first seed."""
    return make_caption_of_settings_and_seeds({**state.settings, "seeds": 1})


def select_shown_results_with_features(runs: RunRecord) -> list[plots.MethodResults]:
    """Select the shown rows that have features of more than one sample."""
    rows = []
    for s in runs.list_results_of_shown_rows(skips_rows_with_other_classes=True):
        if s.features is not None and len(s.features) > 1:
            rows.append(s)
    return rows


def draw_partition_and_results(state: PanelState) -> plots.Picture:
    """Draw the state in one picture: the present partition, and beside it the results of the last run, if there are
    any. Its sentence is the text in a saved notebook."""
    series = list_shown_results_with_accuracies(state)
    stored = TitledBars(series, make_accuracy_title(series)) if series else None
    with use_figure_size(STILL):
        picture = plots.PartitionPicture().show(
            state.federation,
            setting=make_caption_of_first_seed(state),
            stored_bars_beside_it=stored,
        )
    sentence = describe_partition_and_results(state, series)
    return replace(picture, sentence=sentence, table=make_accuracy_table(series))


def draw_piles_and_results(
    state: PanelState, training_images: ByteImages | None, client_accuracies: Sequence[Accuracy0To1]
) -> plots.Picture:
    """Draw the same as `draw_partition_and_results`, with the piles of the stage instead of dots.

    training_images: the training samples as bytes `[N, side, side, 1 or 3]`; None for squares
    client_accuracies: of each client's own model on the test samples, 0–1; [] before a run
    """
    series = list_shown_results_with_accuracies(state)
    with use_figure_size(STILL):
        picture = draw_piles(
            state.federation,
            training_images,
            setting=make_caption_of_first_seed(state),
            bar_rows=series,
            bars_title=make_accuracy_title(series) if series else "",
            client_accuracies=client_accuracies,
        )
    sentence = describe_partition_and_results(state, series)
    return replace(picture, sentence=sentence, table=make_accuracy_table(series))


def list_shown_results_with_accuracies(state: PanelState) -> list[plots.MethodResults]:
    """List the shown rows that have a result."""
    if not state.runs.has_results:
        return []
    return [s for s in state.runs.list_results_of_shown_rows() if s.accuracies]


def make_accuracy_title(series: Sequence[plots.MethodResults]) -> str:
    return f"Test accuracy, {series[0].seeds_text}"


def describe_partition_and_results(state: PanelState, series: Sequence[plots.MethodResults]) -> str:
    """Describe the setting, its skew, and the results, or what to do to get some."""
    results = WHAT_TO_DO_WITH_CELL
    if series:
        values = ", ".join(f"{s.name} {format_percent(s.mean)}" for s in series)
        title = f"Accuracy, {series[0].seeds_text}"
        results = f"{title}: {values}. {plots.describe_best_method(series)}"
    setting = make_caption_of_first_seed(state)
    skew = state.federation.skew
    dataset = state.federation.dataset
    people = choose_words_for_clients_and_samples(dataset.name, SAMPLES[len(dataset.input_shape)])
    classes = (
        f"effectively {skew.effective_classes:.1f} of {len(state.class_names)} "
        f"{people['kinds']} a client"
    )
    return f"{setting} (skew {skew.jensen_shannon:.2f}, {classes}). {results}"


def describe_bytes_of_client_or_empty(runs: RunRecord, client_index_or_none: int | None) -> str:
    """Describe in a sentence what one client of the first seed sends and receives, method by method."""
    if client_index_or_none is None:
        return ""
    parts = []
    for row in runs.current_rows:
        if row.outcomes:
            outcome = next(iter(row.outcomes.values()))
            up_and_down = outcome.ledger.by_client().get(client_index_or_none, (0, 0))
            parts.append(f"{row.title} {format_data_size(sum(up_and_down))}")
    if not parts:
        return ""
    who = format_client_for_sentence(client_index_or_none, runs.current_rows[0].setting)
    return f"Client {who}, up and down: {'; '.join(parts)}."


PLAYGROUND = LabSpec(
    companions=("local", "fedavg", "ensemble", "fens", "fedlpa", "afl", "gauss"),
    views=(Calibration, PlaneView),
    first="communication",
)
COMPARE = LabSpec(
    name="compare",
    views=(Calibration, Times, Needs),
    settings={"seeds": 1},
    last=True,
    companions=(
        "local",
        "fedavg",
        "ensemble",
        "feddf",
        "dense",
        "fens",
        "fedet",
        "coboosting",
        "fusefl",
        "fedlpa",
        "centralized",
    ),
)
