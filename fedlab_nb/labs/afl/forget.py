"""What the server forgets when one client's sums are subtracted from the total: accuracy class by
class, and how close the weights are to a fit to the other clients' samples.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import torch

from ...errors import UsageError
from ...methods.afl import RidgeSums, solve_classifier_weights_without_client
from ...panels import LabView, PanelState, make_widget, set_menu_options_and_keep_choice
from ...plots import (
    Picture,
    add_legend,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    format_percent,
    join_with_and,
    make_blank_picture,
)
from ...plots.array_types import BooleanPerSample
from ...plots.style import (
    FIFTHS,
    QUIET,
    get_method_look,
    highlight_row_or_column,
    set_class_ticks,
    set_percent_axis,
)
from ...plots.words import SettingCaption, format_client_for_title
from ...studies.outcome import Outcome
from ..array_types import AccuracyOrNanPerClass, ClassifierWeightsWithBiasRow
from ..runs import describe_setting, list_client_menu_options

LARGE_LOSS = 0.1  # a class that loses this share of accuracy or more is named


class ForgetClientView(LabView):
    """Accuracy by class with all clients, and after one client's sums are subtracted from the total."""

    name, title = "forget", "Forget a client"
    summary = "Then this shows what the server forgets with a client."
    _removal: "ClientRemovalEffect | None" = None  # what the last drawing showed

    def __init__(self) -> None:
        self.who = make_widget(
            widgets.Dropdown,
            label="Client",
            help="Who is forgotten",
            width=160,
            options=[("client A", 0)],
        )

    def adapt(self, state: PanelState) -> None:
        set_menu_options_and_keep_choice(self.who, list_client_menu_options(state))

    def draw(self, state: PanelState) -> Picture:
        setting = describe_setting(state)
        removal = self._removal
        is_known = (
            removal is not None
            and removal.outcome is state.outcome
            and removal.client == self.who.value
        )
        if not is_known:
            try:
                removal = measure_effect_of_client_removal(state.outcome, self.who.value)
            except UsageError as error:
                return make_blank_picture(str(error), setting=setting)
            self._removal = removal
        return draw_class_accuracies_before_and_after_removal(
            removal, state.class_names, setting=setting, selected_class=state.class_index
        )


# ------------------------------------------------------------------------------------------ numbers
class ClientRemovalEffect(NamedTuple):
    """A client that was taken out of the run `outcome`.

    before, after: `[C]`, test accuracy of each class (nan: no test samples)
    accuracy:      accuracy on all test images, before and after
    samples:       `[C]`, the client's samples of each class
    distance:      largest relative difference between the weights after the removal and those
                   fitted to the other clients' samples from scratch
    """

    outcome: Outcome
    client: int
    before: np.ndarray
    after: np.ndarray
    accuracy: tuple[float, float]
    samples: np.ndarray
    distance: float


def measure_effect_of_client_removal(
    afl_outcome: Outcome, client_index: int
) -> ClientRemovalEffect:
    """Measure what changes when a client's sums are subtracted from the total. The run stays as it is.

    Raises UsageError where the sums do not allow it (see `solve_classifier_weights_without_client`).
    """
    report = afl_outcome.report
    weights = solve_classifier_weights_without_client(report, client_index)
    right_before = mark_right_test_answers(afl_outcome, report.weights)
    right_after = mark_right_test_answers(afl_outcome, weights)
    refitted = fit_classifier_without_client(afl_outcome, client_index)
    distance = np.abs(weights - refitted).max() / np.abs(refitted).max()
    return ClientRemovalEffect(
        outcome=afl_outcome,
        client=client_index,
        before=compute_test_accuracy_by_class(afl_outcome, right_before),
        after=compute_test_accuracy_by_class(afl_outcome, right_after),
        accuracy=(float(right_before.mean()), float(right_after.mean())),
        samples=report.classes[client_index, -1].round().astype(int),
        distance=float(distance),
    )


def mark_right_test_answers(
    afl_outcome: Outcome, classifier_weights: ClassifierWeightsWithBiasRow
) -> BooleanPerSample:
    """Find for each test sample whether it is classified correctly.

    classifier_weights: `[d + 1, C]`, the last row is the bias
    """
    features = afl_outcome.test_features.astype(np.float64)
    logits = features @ classifier_weights[:-1] + classifier_weights[-1]
    return logits.argmax(1) == afl_outcome.test_labels


def compute_test_accuracy_by_class(
    outcome: Outcome, is_test_answer_right: BooleanPerSample
) -> AccuracyOrNanPerClass:
    """Return the accuracy of each class, `[C]`; nan for a class without test samples."""
    classes = outcome.report.weights.shape[1]
    accuracies = np.full(classes, np.nan)
    for c in range(classes):
        is_of_class = outcome.test_labels == c
        if is_of_class.any():
            accuracies[c] = is_test_answer_right[is_of_class].mean()
    return accuracies


def fit_classifier_without_client(
    afl_outcome: Outcome, client_index: int
) -> ClassifierWeightsWithBiasRow:
    """Fit the weights `[d + 1, C]` from scratch to the pooled training samples of all clients but one."""
    federation = afl_outcome.federation()
    report = afl_outcome.report
    shards = []
    for k, (train, _) in enumerate(
        federation.split(afl_outcome.plan.share_held_out_of_local_training)
    ):
        if k != client_index:
            shards.append(train)
    rows = torch.cat(shards)
    features = np.asarray(afl_outcome.features(federation.dataset.x_train[rows]))
    total = RidgeSums.measure(
        torch.as_tensor(features).double(), federation.dataset.y_train[rows], federation.classes
    )
    return report.solve_server_classifier_weights(
        total.copy_with_added_ridge(len(shards) * report.gamma), len(shards)
    )


# ------------------------------------------------------------------------------------------ picture
def draw_class_accuracies_before_and_after_removal(
    removal: ClientRemovalEffect,
    class_names: Sequence[str],
    *,
    setting: SettingCaption | str,
    selected_class: int | None = None,
) -> Picture:
    """Draw bars of each class's test accuracy, with all clients and without the removed one."""
    client_title = format_client_for_title(removal.client, setting)
    title = f"With {client_title}, and as if it had never been there"
    places = np.arange(len(removal.before))
    with drawing() as (figure, ax):
        dress(ax, title=title, x="class", grid="y")
        ax.bar(places - 0.2, removal.before, 0.38, color=QUIET, label="with all clients")
        colour = get_method_look("afl").colour
        ax.bar(places + 0.2, removal.after, 0.38, color=colour, label=f"without {client_title}")
        set_class_ticks(ax, class_names)
        highlight_row_or_column(ax, selected_class, len(places))
        set_percent_axis(ax, "y", 1.15, ticks=FIFTHS)
        add_legend(ax, loc="upper left", ncols=2)
    rows: list[tuple[Any, ...]] = []
    for c, name in enumerate(class_names):
        before = format_percent(removal.before[c])
        rows.append((name, int(removal.samples[c]), before, format_percent(removal.after[c])))
    return describe_picture(
        figure,
        f"{title}: bars of each class's test accuracy",
        setting,
        describe_accuracy_loss_by_removal(removal, class_names, client_title),
        build_table("class | samples of the client | with it | without it", rows),
        detail=describe_distance_to_fit_from_scratch(removal),
    )


def describe_accuracy_loss_by_removal(
    removal: ClientRemovalEffect, class_names: Sequence[str], client_title: str
) -> str:
    """Say how much accuracy the removal costs, and which classes lose most."""
    before, after = removal.accuracy
    losing_classes = np.flatnonzero(removal.before - removal.after >= LARGE_LOSS)
    loss_text = "no class loses 10 points or more"
    if len(losing_classes):
        verb = "loses" if len(losing_classes) == 1 else "lose"
        names = join_with_and([f"“{class_names[c]}”" for c in losing_classes])
        loss_text = f"{names} {verb} 10 points or more"
    samples = format_count_and_noun(int(removal.samples.sum()), "sample")
    return (
        f"Without {client_title} and its {samples} the server is correct on "
        f"{format_percent(after)} of the test images (before: {format_percent(before)}); "
        f"{loss_text}."
    )


def describe_distance_to_fit_from_scratch(removal: ClientRemovalEffect) -> str:
    """Say how close a fit from scratch comes to the weights after the removal."""
    comparison = "the same weights, identical to the last bit"
    if removal.distance > 0:
        comparison = f"the same weights, up to {removal.distance:.1g} of the largest one"
    return f"A fit to the other clients' samples from scratch gives {comparison}."
