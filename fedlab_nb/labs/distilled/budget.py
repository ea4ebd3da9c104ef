"""Accuracy against the number of images per class; a sentence adds the bytes that a client sends."""

from collections.abc import Mapping
from typing import NamedTuple

import ipywidgets as widgets

from ...methods import choose_method_label
from ...panels import (
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
    make_widget,
)
from ...plots import Picture, format_data_size, format_mean_percent
from ...plots.study import draw_accuracy_lines_with_bands
from ...plots.style import INK, ColourMarkerLine, get_method_look
from ...plots.words import SettingCaption
from ...studies.outcome import Outcome
from ..button_view import ButtonView, get_accuracies_by_seed
from ..runs import plan_runs, run_planned_runs
from .sent_images import IMAGE_KINDS

PER_CLASS = (1, 2, 3, 5, 10)  # values of m_c, the number of images per class


class ImageBudgetResult(NamedTuple):
    """The result with one value of m_c.

    bytes:      what the client that sends most uploads
    validation: {seed: accuracy} on validation images
    test:       {seed: accuracy} on test images
    """

    bytes: int
    validation: dict[int, float]
    test: dict[int, float]


class ImageBudgetResults(NamedTuple):
    """What is drawn: the result for each number of images per class, and the setting in words."""

    results_by_image_count: dict[int, ImageBudgetResult]
    setting: SettingCaption | str


class ImagesPerClassView(ButtonView):
    """Accuracy against the number of images per class, beside the other methods of the run."""

    name, title = "budget", "Accuracy and bytes"
    work_label = "Try 1 to 10 per class"
    work_help = (
        "Run with 1, 2, 3, 5 and 10 images per class, on every seed of the panel. Nothing "
        "else changes."
    )

    def __init__(self) -> None:
        self.per_class = make_widget(
            widgets.SelectionSlider,
            label="Images per class",
            help="The sentence has the test accuracy for this number",
            width=340,
            options=PER_CLASS,
            value=3,
        )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        changes = {format_run_name(m): {"distilled.per_class": m} for m in PER_CLASS}
        return plan_runs("distilled", state.settings, changes)

    def work(self, state: PanelState) -> ProgressThenResult[ImageBudgetResults]:
        """Run the method with each m_c."""
        runs = yield from run_planned_runs(self.planned_runs(state))
        budgets = {m: make_image_budget_result(runs[format_run_name(m)]) for m in PER_CLASS}
        kind = IMAGE_KINDS[state.knobs["images"]]
        return ImageBudgetResults(
            budgets, f"{make_caption_of_settings_and_seeds(state.settings)}, {kind}"
        )

    def draw_result(self, state: PanelState) -> Picture:
        budgets, setting = state.worked
        results_by_method = {}
        shown_rows = state.runs.current_rows
        is_same_setting = (
            bool(shown_rows)
            and make_caption_of_settings_and_seeds(shown_rows[0].settings) == state.worked_setting
        )
        for method, outcomes in state.others.items():
            if outcomes and is_same_setting:
                results_by_method[choose_method_label(method, state.settings)] = (
                    make_image_budget_result(outcomes)
                )
        return draw_accuracy_against_image_budget(
            budgets,
            self.per_class.value,
            setting=setting,
            results_by_other_method_title=results_by_method,
        )


def format_run_name(images_per_class: int) -> str:
    """Format the name of a run, such as "m_c = 3"."""
    return f"m_c = {images_per_class}"


def make_image_budget_result(outcomes_by_seed: Mapping[int, Outcome]) -> ImageBudgetResult:
    """Make the result of the outcomes of all seeds with one m_c."""
    validation = {}
    for seed, outcome in outcomes_by_seed.items():
        if outcome.accuracy_validation is not None:
            validation[seed] = outcome.accuracy_validation
    first_outcome = next(iter(outcomes_by_seed.values()))
    most_bytes = max(up for up, _ in first_outcome.ledger.by_client().values())
    return ImageBudgetResult(most_bytes, validation, get_accuracies_by_seed(outcomes_by_seed))


def draw_accuracy_against_image_budget(
    results_by_images_per_class: Mapping[int, ImageBudgetResult],
    described_images_per_class: int,
    *,
    setting: SettingCaption | str,
    results_by_other_method_title: Mapping[str, ImageBudgetResult],
) -> Picture:
    """Draw validation accuracy against images per class, beside the other methods of the run.

    results_by_images_per_class:   {m_c: result}, m_c in ascending order
    described_images_per_class:    the m_c whose test accuracy is shown
    results_by_other_method_title: {title of the method: result}
    """
    validation = {
        m: budget.validation
        for m, budget in results_by_images_per_class.items()
        if budget.validation
    }
    lines: dict[str, dict[int, dict[int, float]]] = {}
    looks: dict[str, ColourMarkerLine] = {}
    if validation:
        lines["validation images"] = validation
        looks["validation images"] = get_method_look("distilled")
    lines["test images"] = {
        described_images_per_class: results_by_images_per_class[described_images_per_class].test
    }
    looks["test images"] = ColourMarkerLine(INK, "*", "-")
    for title, budget in results_by_other_method_title.items():
        lines[title] = dict.fromkeys(results_by_images_per_class, budget.test)
    return draw_accuracy_lines_with_bands(
        lines,
        "m_c",
        "images per class m_c",
        setting=setting,
        sentence=describe_image_budget_results(
            results_by_images_per_class, described_images_per_class, results_by_other_method_title
        ),
        method_or_look_by_line=looks,
    )


def describe_image_budget_results(
    results_by_images_per_class: Mapping[int, ImageBudgetResult],
    described_images_per_class: int,
    results_by_other_method_title: Mapping[str, ImageBudgetResult],
) -> str:
    """Say how accurate the server is with this m_c and how many bytes it takes; then the other
    methods.
    """
    chosen_result = results_by_images_per_class[described_images_per_class]
    other_results = []
    for title, budget in results_by_other_method_title.items():
        other_results.append(
            f"; {title}: {format_mean_percent(budget.test)}, {format_data_size(budget.bytes)}"
        )
    return (
        f"With {described_images_per_class} per class the server is correct on "
        f"{format_mean_percent(chosen_result.test)} of the test images, for at most "
        f"{format_data_size(chosen_result.bytes)} a client{''.join(other_results)}."
    )
