"""The views that every panel has: who holds what, accuracy, communication, features, classes; what the comparison
has beside them; and the panel in one picture. From a `PanelState` to `plots`, with the slow part (t-SNE)
remembered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import ipywidgets as widgets
import numpy as np

from .. import plots
from ..data import Dataset, describe, load
from ..errors import FedlabError
from ..methods import METHODS
from ..plots.accuracy import make_accuracy_table
from ..plots.embed import POINTS, compute_tsne_in_process
from ..plots.journey import journey
from ..plots.stored_curves import StoredPlot
from ..plots.style import is_narrow, use_size
from ..plots.words import (
    Setting,
    capitalize,
    data_size,
    get_setting_values,
    join_words,
    percent,
    plain_client_name,
    plural,
)
from ..studies.experiment import choose_test_points
from ..studies.settings import Plan, Settings, make_plans
from .lab_view import LabSpec, LabView, PanelState, describe_settings, make_caption
from .record import Runs
from .stage_data import make_sheet
from .theme import make_widget, offer, show_if

MOST_MAPS = 60  # remembered
STILL = (10.5, 4.1)  # inches of the picture in a saved notebook
WHAT_TO_DO = (
    "Set α and the number of clients, then press Run. The chosen methods are then compared."
)


class WhoHoldsWhat(LabView):
    """The partition, with the stored results beside it."""

    name, title, ready = "partition", "Who holds what", "data"
    needs = ("federation", "stored", "client", "class_index", "frame")
    empty, waiting = "No data to show.", ""

    def __init__(self) -> None:
        super().__init__()
        self._picture = plots.Partition()

    def draw(self, state: PanelState) -> plots.Picture:
        stored = None
        if state.stored and not is_narrow():
            stored = state.stored.make_bars()
        return self._picture.show(
            state.federation,
            setting=describe_partition(state),
            client=state.client,
            class_index=state.class_index,
            stored=stored,
        )

    def caption(self, state: PanelState) -> str:
        if state.federation is None:
            return ""
        text = f"{describe_partition(state)}."
        if "α" in text:
            text += " Smaller α is more skewed."
        return text


class ResultView(LabView):
    """A picture of the present run, from its first curve on, with the pinned rows beside it."""

    ready, empty, waiting = "live", WHAT_TO_DO, "Training …"

    def is_ready(self, state: PanelState) -> bool:
        return any(row.outcomes or row.live for row in state.runs.current)


class Accuracy(ResultView):
    """Accuracy, the best first once all is done; before the first run of the stored results."""

    name, title, needs = "accuracy", "Accuracy", ("runs", "placeholder", "frame", "running")

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
        show_if(state.placeholder is None, self.keeps_order)

    def is_ready(self, state: PanelState) -> bool:
        return super().is_ready(state) or state.placeholder is not None

    def draw(self, state: PanelState) -> plots.Picture:
        if state.placeholder is not None:
            return state.placeholder.draw(self._stored)
        rows = state.runs.list_series(others=True)
        if not state.running and not self.keeps_order.value:
            rows.sort(key=lambda s: s.mean if s.accuracies else -1.0, reverse=True)
        return plots.draw_accuracy(rows, chance=1 / len(state.class_names))

    def caption(self, state: PanelState) -> str:
        if state.placeholder is not None:
            return "Nothing was run here yet: these are stored results. Press Run to get your own."
        return make_caption(state)


class Communication(ResultView):
    name, title, needs = "communication", "Communication", ("runs", "client", "frame")

    def draw(self, state: PanelState) -> plots.Picture:
        client_bytes = describe_client_bytes(state.runs, state.client)
        return plots.draw_communication(state.runs.list_series(), client_bytes=client_bytes)


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
        self._maps: dict[int, dict[str, Any]] = {}

    def draw(self, state: PanelState) -> plots.Picture:
        bright_classes, remark = self._choose_bright_classes(state)
        settings = state.runs.current[0].settings
        sheet = find_sheet(settings)
        maps = [self._make_map(s, sheet, settings) for s in select_with_features(state.runs)]
        return plots.draw_feature_maps(
            maps,
            state.class_names,
            setting=state.runs.current[0].setting,
            bright=bright_classes,
            remark=remark,
            first_map=self.maps.value,
            sheet=sheet,
        )

    def _make_map(
        self, s: plots.Series, sheet: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> plots.Map:
        """The map of a row. sheet: the images of the present run's samples;   settings: of that run"""
        known = self._find_map(s)
        points = known.get("tsne", known["pca"])
        has_images = sheet is not None
        has_images = (
            has_images and get_setting_values(s.setting).get("dataset") == settings["dataset"]
        )
        below = ", ".join(words for words in (s.detail, s.features_of) if words)
        return plots.Map(
            f"{s.label}\n{below}" if below else s.label,
            points,
            s.labels[:POINTS],
            known["score"],
            "t-SNE" if "tsne" in known else "PCA",
            None if s.answers is None else s.answers[:POINTS],
            np.arange(len(points)) if has_images else None,
        )

    def _choose_bright_classes(self, state: PanelState) -> tuple[list[bool] | None, str]:
        """The classes that stay bright: the one that is looked at, else those of the client that is; and which they
        are, in words. None: all.
        """
        names = state.class_names
        if state.class_index is not None and state.class_index < len(names):
            bright = [c == state.class_index for c in range(len(names))]
            return bright, f"class {names[state.class_index]}"
        outcomes = [outcome for row in state.runs.current for outcome in row.outcomes.values()]
        if state.client is None or not outcomes:
            return None, ""
        counts = np.asarray(outcomes[0].label_counts)
        if state.client >= len(counts):
            return None, ""
        who = plain_client_name(state.client, state.runs.current[0].setting)
        return list(counts[state.client] > 0), f"classes that client {who} holds"

    def adapt(self, state: PanelState) -> None:
        """With more methods than one picture has room for: which of them are seen."""
        count = len(select_with_features(state.runs))
        options = []
        for start in range(0, max(count, 1), plots.MAPS):
            end = min(start + plots.MAPS, count)
            options.append((f"{start + 1} to {end} of {count}", start))
        offer(self.maps, options)
        show_if(len(options) > 1, self.maps)

    def _find_map(self, s: plots.Series) -> dict[str, Any]:
        key = id(s.features)
        if key not in self._maps:
            self._maps[key] = {
                "features": s.features,
                "pca": plots.pca(s.features[:POINTS]),
                "score": plots.compute_neighbour_accuracy(s.features, s.labels),
            }
            while len(self._maps) > MOST_MAPS:
                self._maps.pop(next(iter(self._maps)))
        return self._maps[key]

    def _find_missing(self, state: PanelState) -> list[plots.Series]:
        return [s for s in select_with_features(state.runs) if "tsne" not in self._find_map(s)]

    def needs_preparing(self, state: PanelState) -> bool:
        return bool(self._find_missing(state))

    def prepare(self, state: PanelState) -> Iterator[None]:
        """The t-SNE maps that are missing, one by one; where a browser waits for other pictures, in another process."""
        for s in self._find_missing(state):
            features = s.features[:POINTS]
            if state.frame[0]:
                points = yield from compute_tsne_in_process(features)
            else:
                points = plots.tsne(features)
            self._find_map(s)["tsne"] = points
            yield


class Classes(ResultView):
    name, title = "classes", "Clients and classes"
    needs = ("runs", "client", "class_index", "frame")

    def draw(self, state: PanelState) -> plots.Picture:
        series = state.runs.list_series(same_classes=True)
        return plots.draw_class_accuracies(
            series, state.class_names, client=state.client, class_index=state.class_index
        )


class Calibration(LabView):
    """How sure the methods are, and how often they are correct; stored results have no such counts."""

    name, title = "calibration", "Calibration"
    empty = "The stored results have no reliability diagrams. Press Run: then they are drawn from your results."

    def draw(self, state: PanelState) -> plots.Picture:
        return plots.draw_calibration(state.runs.list_series())


class Times(LabView):
    """Wall time."""

    name, title = "times", "Time"
    empty = "Press Run: then this shows how long each method took."

    def draw(self, state: PanelState) -> plots.Picture:
        rows = []
        for row in state.runs.current:
            if row.outcomes:
                rows.append(
                    (
                        row.title,
                        row.compute_mean("seconds_local"),
                        row.compute_mean("seconds_method"),
                    )
                )
        return plots.draw_times(rows, setting=state.setting)


class Needs(LabView):
    name, title, ready = "needs", "Needs and leaks", "always"

    def draw(self, state: PanelState) -> plots.Picture:
        plans = plan_methods(state)
        rows = []
        for name in state.methods:
            info = METHODS[name].info
            plan = plans.get(name)
            row = {"method": info.title, "rounds": info.rounds, "bytes of one client": info.traffic}
            row["extra data"] = info.extra
            leaks = info.leaks
            if plan is not None:
                row["local work"] = describe_local_work(plan)
                leaks = plan.method.leaks
            row["what leaks"] = leaks or "nothing beyond its answers"
            rows.append(row)
        free = [row["method"] for row in rows if row["extra data"] == "nothing"]
        names = join_words(free) or "none"
        methods = plural(len(rows), "method")
        text = f"{len(free)} of {methods} need nothing but the uploads: {names}."
        picture = journey(*state.methods)
        alt = f"{picture.alt} Below it a table of what methods need and leak."
        return replace(picture, alt=alt, sentence=text, table=rows, tabled=True)


def plan_methods(state: PanelState) -> dict[str, Plan]:
    """What each method would do at the present settings; {} while they are wrong."""
    settings = dict(state.settings)
    for name in ("seeds", "cache"):
        settings.pop(name, None)
    try:
        plans = make_plans(Settings.make(**settings), list(state.methods))
    except FedlabError:
        return {}
    return {plan.name: plan for plan in plans}


def describe_local_work(plan: Plan) -> str:
    """How often a client of the method passes over its own data."""
    samples = describe(plan.settings.dataset).n_train
    return f"{plan.local_passes(samples):.0f} passes"


COMMON = (WhoHoldsWhat, Accuracy, Communication, Features, Classes)


def find_sheet(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The sheet of the test samples that the maps show; None where samples are no images, or are not at hand."""
    try:
        return make_sheet_once(load(str(settings["dataset"])))
    except FedlabError:
        return None


@lru_cache(maxsize=4)
def make_sheet_once(dataset: Dataset) -> dict[str, Any] | None:
    """The sheet of a data set's first POINTS fixed test points."""
    points = choose_test_points(len(dataset.y_test))[:POINTS]
    return make_sheet(dataset.x_test[points])


def describe_partition(state: PanelState) -> Setting:
    """The partition's setting in words: that of the first seed."""
    return describe_settings({**state.settings, "seeds": 1})


def select_with_features(runs: Runs) -> list[plots.Series]:
    """The shown rows that have features of more than one sample."""
    rows = []
    for s in runs.list_series(same_classes=True):
        if s.features is not None and len(s.features) > 1:
            rows.append(s)
    return rows


def draw_summary(state: PanelState) -> plots.Picture:
    """The state in one picture: the present partition, and beside it the results of the last run where there are any;
    its sentence is what a saved notebook keeps as text."""
    series = []
    if state.runs.has_results:
        series = [s for s in state.runs.list_series() if s.accuracies]
    stored = None
    results = WHAT_TO_DO
    if series:
        title = f"accuracy, {series[0].seeds}"
        stored = (series, f"Test {title}")
        values = ", ".join(f"{s.name} {percent(s.mean)}" for s in series)
        results = f"{capitalize(title)}: {values}. {plots.describe_best_method(series)}"
    setting = describe_partition(state)
    with use_size(STILL):
        picture = plots.Partition().show(state.federation, setting=setting, stored=stored)
    skew = state.federation.skew
    classes = f"{skew.effective_classes:.1f} of {len(state.class_names)} classes a client"
    sentence = f"{setting} (skew {skew.jensen_shannon:.2f}, {classes}). {results}"
    return replace(picture, sentence=sentence, table=make_accuracy_table(series))


def describe_client_bytes(runs: Runs, client: int | None) -> str:
    """What one client of the first seed sends and receives, method by method, in a sentence."""
    if client is None:
        return ""
    parts = []
    for row in runs.current:
        if row.outcomes:
            outcome = next(iter(row.outcomes.values()))
            up_and_down = outcome.ledger.by_client().get(client, (0, 0))
            parts.append(f"{row.title} {data_size(sum(up_and_down))}")
    if not parts:
        return ""
    who = plain_client_name(client, runs.current[0].setting)
    return f"Client {who}, up and down: {'; '.join(parts)}."


PLAYGROUND = LabSpec(
    companions=("local", "fedavg", "ensemble", "fens", "fedlpa", "afl", "gauss"),
    views=(Calibration,),
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
