"""Accuracy against the number of random features, in words with bytes."""

from collections.abc import Mapping

from ...panels import PanelState, PlannedRuns, describe_settings
from ...plots import Picture, Series, data_size, percent
from ...plots.study import draw_accuracy_lines
from ...plots.words import Setting
from ..button_view import ButtonView, make_series
from ..runs import Steps, plan_runs, run_all

SIZES = (16, 64, 256, 1024)
PIXELS = "pixels"


class Size(ButtonView):
    """Test accuracy against the number of random features of each kind, beside the pixels."""

    name, title = "size", "Features"
    work_label = "Try 16 to 1024"
    work_help = "Run AFL with 16 to 1024 random features of both kinds."

    def planned_runs(self, state: PanelState) -> PlannedRuns:
        changes = {}
        for kind in list_feature_kinds(state):
            for size in SIZES:
                changes[name_run(kind, size)] = {"afl.features": kind, "afl.size": size}
        changes[PIXELS] = {"afl.features": PIXELS}
        return plan_runs("afl", state.settings, changes)

    def work(self, state: PanelState) -> Steps:
        """{kind: {size: Series}}, the Series of the pixels, and the setting in words."""
        runs = yield from run_all(self.planned_runs(state))
        by_kind: dict[str, dict[int, Series]] = {}
        for kind in list_feature_kinds(state):
            by_kind[kind] = {size: make_series(kind, runs[name_run(kind, size)]) for size in SIZES}
        pixels = make_series(PIXELS, runs[PIXELS])
        return by_kind, pixels, describe_settings(state.settings)

    def draw_result(self, state: PanelState) -> Picture:
        by_kind, pixels, setting = state.worked
        return draw_sizes(by_kind, pixels, setting)


def list_feature_kinds(state: PanelState) -> tuple[str, ...]:
    """The kinds of random features that the data allow: convolutions need images."""
    has_images = state.federation.dataset.x_train.dim() == 4
    return ("relu", "conv") if has_images else ("relu",)


def name_run(kind: str, size: int) -> str:
    """The name of a run: "64 relu"."""
    return f"{size} {kind}"


def draw_sizes(
    by_kind: Mapping[str, Mapping[int, Series]], pixels: Series, setting: Setting | str
) -> Picture:
    """Lines of test accuracy against the number of random features, beside the pixels.

    by_kind: {kind: {size: Series}}; `up` of a series is the bytes of one client
    """
    lines: dict[str, dict[int, Mapping[int, float]]] = {}
    descriptions = []
    for kind, by_size in by_kind.items():
        lines[kind] = {size: series.accuracies for size, series in by_size.items()}
        for size in (min(by_size), max(by_size)):
            series = by_size[size]
            descriptions.append(
                f"{size} {kind} features {percent(series.mean)} for {data_size(series.up)} a client"
            )
    sizes = next(iter(by_kind.values()))
    lines[PIXELS] = dict.fromkeys(sizes, pixels.accuracies)
    sentence = (
        f"{', '.join(descriptions)}; the pixels {percent(pixels.mean)} for {data_size(pixels.up)}."
    )
    return draw_accuracy_lines(
        lines, "d", "number of random features d", setting=setting, sentence=sentence
    )
