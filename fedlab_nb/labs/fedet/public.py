"""The public data that Fed-ET's server learns from: a few samples of each choice, and how good the
student becomes with it.
"""

from collections.abc import Mapping
from statistics import mean
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes

from ...data import DATASETS
from ...methods.parts.images import OWN_SOURCES
from ...panels import (
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
    make_widget,
)
from ...plots import (
    MethodResults,
    Picture,
    build_table,
    describe_picture,
    drawing,
    format_count_and_noun,
    format_percent,
)
from ...plots.kit import AccuracyBars, keep_image_colours_on_dark_page, render_tile_pixels
from ...plots.words import SettingCaption, describe_accuracy_difference, format_percent_of_each_seed
from ...studies import Outcome
from ...value_types import Accuracy0To1, SettingsByName
from ..button_view import (
    AccuracyBySeed,
    ButtonView,
    get_accuracies_by_seed,
    get_row_values_by_seed,
    read_stored_lab_runs,
)
from ..runs import plan_runs, run_planned_runs

PUBLIC_SIZES = (20, 50, 100, 0)  # numbers of public samples; 0: all
NOISE_SIZES = (50, 200, 1000)  # the same for noise, if the data set has no public samples
FOREIGN = ("digits", "glyphs")  # data sets whose images can be the public data for another data set
SAMPLES_A_ROW = 5
SOURCE_NAMES = {"held-out": "held-out part", "other-mix": "half the classes"}


class PublicDataResult(NamedTuple):
    """The result with one choice of public data.

    series:  accuracies of the students
    count:   number of public samples
    dissent: mean dissent mass
    samples: some of the public samples; None for stored runs
    """

    series: MethodResults
    count: int
    dissent: float
    samples: np.ndarray | None


class PublicDataResults(NamedTuple):
    """What is drawn: the setting in words, the result of each choice, and what was varied."""

    setting: SettingCaption | str
    results: list[PublicDataResult]
    varied: str = ""


class PublicDataView(ButtonView):
    """The same clients, other public data: one student for each choice."""

    name, title, choice = "public", "Public data", "vary"
    work_label = "Try them"
    work_help = (
        "Run Fed-ET with each choice of public data, on the federation that the controls describe."
    )

    def __init__(self) -> None:
        self.vary = make_widget(
            widgets.ToggleButtons,
            label="Compare",
            help="Where the public samples come from, or how many",
            options=[("sources", "source"), ("sizes", "size")],
        )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        if self.vary.value == "size":
            changes = make_setting_changes_for_public_sample_counts(state)
        else:
            changes = make_setting_changes_for_public_sources(state)
        return plan_runs("fedet", state.settings, changes)

    def work(self, state: PanelState) -> ProgressThenResult[PublicDataResults]:
        """Run Fed-ET with each choice of public data."""
        varied = self.vary.value
        runs = yield from run_planned_runs(self.planned_runs(state))
        choices = [make_public_data_result(name, outcomes) for name, outcomes in runs.items()]
        return PublicDataResults(
            make_caption_of_settings_and_seeds(state.settings), choices, varied
        )

    def make_stored_result(self, state: PanelState) -> PublicDataResults:
        setting, rows = read_stored_lab_runs(f"{self.vary.value}s")
        choices = []
        for row in rows:
            count = row["report.public_samples"][0]
            name = format_public_source_name(row["at"].get("fedet.public", f"{count} samples"))
            series = make_public_data_series(name, get_row_values_by_seed(row), count)
            choices.append(PublicDataResult(series, count, mean(row["report.dissent"]), None))
        return PublicDataResults(setting, choices)

    def draw_result(self, state: PanelState) -> Picture:
        setting, choices, _ = state.worked
        return draw_student_accuracies_and_public_samples(
            choices, setting, 1 / len(state.class_names)
        )


# ------------------------------------------------------------------------------------------ numbers
def has_dataset_public_samples(state: PanelState) -> bool:
    """Whether the data set has public samples of its own."""
    x_public = state.federation.dataset.x_public
    return x_public is not None and len(x_public) > 0


def make_setting_changes_for_public_sample_counts(state: PanelState) -> dict[str, SettingsByName]:
    """Make {name: changed settings} for several numbers of public samples."""
    changes = {}
    if not has_dataset_public_samples(state):
        for size in NOISE_SIZES:
            changes[f"{size} samples of noise"] = {
                "fedet.public_size": size,
                "fedet.public": "noise",
            }
        return changes
    available = len(state.federation.dataset.x_public)
    for size in PUBLIC_SIZES:
        if size < available:
            changes[f"{size or available} samples"] = {
                "fedet.public_size": size,
                "fedet.public": OWN_SOURCES[0],
            }
    return changes


def make_setting_changes_for_public_sources(state: PanelState) -> dict[str, SettingsByName]:
    """Make {name: changed settings} for several sources of public samples."""
    sources = []
    if has_dataset_public_samples(state):
        sources += OWN_SOURCES
    has_images = state.federation.dataset.x_train.dim() == 4
    if has_images:
        present_dataset = state.settings["dataset"].partition(":")[0]
        sources += [dataset for dataset in FOREIGN if dataset != present_dataset]
    sources.append("noise")
    return {
        format_public_source_name(source): {"fedet.public": source, "fedet.public_size": 0}
        for source in sources
    }


def format_public_source_name(source_setting: str) -> str:
    """Name a source of public data in words; it is a value of the setting `fedet.public`."""
    if source_setting in SOURCE_NAMES:
        return SOURCE_NAMES[source_setting]
    if source_setting in DATASETS:
        return DATASETS[source_setting].title.lower()
    return source_setting


def make_public_data_series(
    name: str, accuracy_by_seed: AccuracyBySeed, public_sample_count: int
) -> MethodResults:
    """Make a row of the picture. The number of public samples is added if the name does not say it."""
    detail = "" if "sample" in name else format_count_and_noun(public_sample_count, "sample")
    return MethodResults(name, detail, accuracies=accuracy_by_seed, method="fedet")


def make_public_data_result(name: str, outcomes_by_seed: Mapping[int, Outcome]) -> PublicDataResult:
    """Make the result of the runs of all seeds. The samples shown are those of the first seed."""
    reports = [outcome.report for outcome in outcomes_by_seed.values()]
    first_report = reports[0]
    return PublicDataResult(
        series=make_public_data_series(
            name, get_accuracies_by_seed(outcomes_by_seed), first_report.public_samples
        ),
        count=first_report.public_samples,
        dissent=mean(report.dissent for report in reports),
        samples=first_report.samples[:SAMPLES_A_ROW],
    )


# ------------------------------------------------------------------------------------------ picture
def draw_student_accuracies_and_public_samples(
    results: list[PublicDataResult], setting: SettingCaption | str, chance_accuracy: Accuracy0To1
) -> Picture:
    """Draw bars of the students' accuracies, with a few public samples beside them if there are
    any.

    chance_accuracy: accuracy of guessing
    """
    series = [choice.series for choice in results]
    has_samples = results[0].samples is not None
    left_width = 0.72 if has_samples else 0.01
    with drawing(1, 2, width_ratios=[left_width, 1]) as (figure, (left, right)):
        AccuracyBars(right, series, chance_accuracy).update(series, "Test accuracy of the student")
        draw_public_sample_strips(left, results)
        left.set(xlim=(0, 1), ylim=right.get_ylim())
        left.set_axis_off()
    rows = []
    for choice in results:
        row = choice.series
        dissent = format_percent(choice.dissent)
        rows.append(
            (
                row.label,
                choice.count,
                row.accuracy_text,
                dissent,
                format_percent_of_each_seed(row.accuracies),
            )
        )
    return describe_picture(
        figure,
        "Some samples of each choice of public data, and bars of the student's accuracy",
        setting,
        describe_public_data_of_best_and_worst_student(series),
        build_table("public data | samples | accuracy | dissent | seeds", rows),
    )


def draw_public_sample_strips(ax: Axes, results: list[PublicDataResult]) -> None:
    """Draw a strip of samples beside each bar."""
    height = min(0.8, 0.15 * max(len(results), 3))  # in rows: the tiles become about square
    for i, choice in enumerate(results):
        if choice.samples is None:
            continue
        strip = np.hstack([render_tile_pixels(image) for image in choice.samples])
        place = (0, 1, i + height / 2, i - height / 2)
        ax.imshow(strip.squeeze(), cmap="gray", vmin=0, vmax=1, aspect="auto", extent=place)
    keep_image_colours_on_dark_page(ax)


def describe_public_data_of_best_and_worst_student(student_series: list[MethodResults]) -> str:
    """Say which public data give the best and the worst student, and whether that may be noise."""
    ranking = sorted(student_series, key=lambda row: row.mean)
    worst = ranking[0]
    best = ranking[-1]
    if len(student_series) == 1:
        return f"With {best.label} the student gets {format_percent(best.mean)} right."
    one_seed = "one seed: part of that may be noise"
    difference = describe_accuracy_difference(
        best.accuracies, worst.accuracies, one_seed_words=one_seed
    )
    return (
        f"The student is best with {best.label} ({format_percent(best.mean)}), worst with "
        f"{worst.label} ({format_percent(worst.mean)}): {difference}."
    )
