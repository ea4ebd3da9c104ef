"""Accuracy against the number of random features; a sentence adds the bytes that a client sends."""

from collections.abc import Mapping
from typing import NamedTuple

from ...panels import (
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
)
from ...plots import MethodResults, Picture, format_data_size, format_percent
from ...plots.study import draw_accuracy_lines_with_bands
from ...plots.words import SettingCaption
from ..button_view import ButtonView, make_accuracy_and_upload_series
from ..runs import plan_runs, run_planned_runs

SIZES = (16, 64, 256, 1024)
PIXELS = "pixels"


class FeatureCountResults(NamedTuple):
    """What is drawn: a `MethodResults` for each kind and number of features, one for pixels, and the setting."""

    series_by_kind_and_count: Mapping[str, Mapping[int, MethodResults]]
    pixel_series: MethodResults
    setting: SettingCaption | str


class FeatureCountView(ButtonView):
    """Test accuracy against the number of random features of each kind, beside the pixels."""

    name, title = "size", "Number of features"
    work_label = "Try 16 to 1024"
    work_help = "Run AFL with 16 to 1024 random features of both kinds."

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        changes = {}
        for kind in list_random_feature_kinds(state):
            for size in SIZES:
                changes[format_run_name(kind, size)] = {"afl.features": kind, "afl.size": size}
        changes[PIXELS] = {"afl.features": PIXELS}
        return plan_runs("afl", state.settings, changes)

    def work(self, state: PanelState) -> ProgressThenResult[FeatureCountResults]:
        """Run AFL with every kind and number of random features, and with pixels."""
        runs = yield from run_planned_runs(self.planned_runs(state))
        by_kind: dict[str, dict[int, MethodResults]] = {}
        for kind in list_random_feature_kinds(state):
            by_kind[kind] = {
                size: make_accuracy_and_upload_series(kind, runs[format_run_name(kind, size)])
                for size in SIZES
            }
        pixels = make_accuracy_and_upload_series(PIXELS, runs[PIXELS])
        return FeatureCountResults(
            by_kind, pixels, make_caption_of_settings_and_seeds(state.settings)
        )

    def draw_result(self, state: PanelState) -> Picture:
        by_kind, pixels, setting = state.worked
        return draw_accuracy_against_feature_count(by_kind, pixels, setting)


def list_random_feature_kinds(state: PanelState) -> tuple[str, ...]:
    """List the kinds of random features that the data allow: convolutions need images."""
    has_images = state.federation.dataset.x_train.dim() == 4
    return ("relu", "conv") if has_images else ("relu",)


def format_run_name(feature_kind: str, feature_count: int) -> str:
    """Format the name of a run, such as "64 relu"."""
    return f"{feature_count} {feature_kind}"


def draw_accuracy_against_feature_count(
    series_by_kind_and_count: Mapping[str, Mapping[int, MethodResults]],
    pixel_series: MethodResults,
    setting: SettingCaption | str,
) -> Picture:
    """Draw lines of test accuracy against the number of random features, and a level line for pixels.

    series_by_kind_and_count: {kind: {size: MethodResults}}; `up` of a series is the bytes of one client
    """
    lines: dict[str, dict[int, Mapping[int, float]]] = {}
    descriptions = []
    for kind, by_size in series_by_kind_and_count.items():
        lines[kind] = {size: series.accuracies for size, series in by_size.items()}
        for size in (min(by_size), max(by_size)):
            series = by_size[size]
            descriptions.append(
                f"{size} {kind} features {format_percent(series.mean)} for "
                f"{format_data_size(series.up)} a client"
            )
    sizes = next(iter(series_by_kind_and_count.values()))
    lines[PIXELS] = dict.fromkeys(sizes, pixel_series.accuracies)
    pixels = f"{format_percent(pixel_series.mean)} for {format_data_size(pixel_series.up)}"
    sentence = f"{', '.join(descriptions)}; the pixels {pixels}."
    return draw_accuracy_lines_with_bands(
        lines, "d", "number of random features d", setting=setting, sentence=sentence
    )
