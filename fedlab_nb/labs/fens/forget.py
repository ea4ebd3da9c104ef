"""FENS without a client: how the accuracy of each class changes, beside the training samples.

Only phase 2 runs again; the clients' models stay as they were.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np

from ...panels import (
    LabView,
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_widget,
    set_menu_options_and_keep_choice,
)
from ...plots import Picture, build_table, describe_picture, format_percent, make_blank_picture
from ...plots.words import SettingCaption, format_client_for_sentence
from ...studies import Outcome
from ..array_types import AccuracyOrNanPerClass, ChangePerClientAndClass
from ..runs import describe_setting, list_client_menu_options, plan_runs, run_planned_runs
from .trust import compute_client_shares_of_each_class, draw_counts_and_values

NOBODY = -1  # value of the knob `without`
LARGE_LOSS = 0.2  # loss in accuracy of a class that counts as large


class OutcomesWithAndWithoutClients(NamedTuple):
    """FENS with all clients, and without some of them: {client: outcome}."""

    whole: Outcome
    without: Mapping[int, Outcome]

    @property
    def class_accuracy_changes(self) -> ChangePerClientAndClass:
        """`[M, C]`: accuracy of class c without client k minus that with all clients; nan if not
        known.
        """
        change = np.full(self.whole.label_counts.shape, np.nan)
        before = get_test_accuracy_per_class(self.whole)
        for k, outcome in self.without.items():
            change[k] = get_test_accuracy_per_class(outcome) - before
        return change


def get_test_accuracy_per_class(outcome: Outcome) -> AccuracyOrNanPerClass:
    """Return the accuracy of each class `[C]`; nan for a class without test samples."""
    return np.array(outcome.per_class, dtype=float)


class ForgetClientView(LabView):
    """The accuracy of each class when phase 2 runs without a client."""

    name, title = "forget", "Forget a client"
    summary = "Then phase 2 can run again without a client."
    work_label = "Forget, and run phase 2 again"
    work_help = (
        "Run FENS with all clients, then without the chosen one, or without each in turn. "
        "Only the first seed runs."
    )
    EACH = -1

    def __init__(self) -> None:
        self.who = make_widget(
            widgets.Dropdown,
            label="Client",
            help="Whose model and samples are left out of phase 2",
            width=200,
            options=[("each in turn", self.EACH)],
        )

    def adapt(self, state: PanelState) -> None:
        set_menu_options_and_keep_choice(
            self.who, [("each in turn", self.EACH), *list_client_menu_options(state)]
        )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName | None:
        clients = len(state.outcome.label_counts)
        if clients < 2:
            return None
        removed_clients = range(clients) if self.who.value == self.EACH else [self.who.value]
        changes = {k: {"fens.without": k} for k in (NOBODY, *removed_clients)}
        return plan_runs("fens", state.outcome.settings.to_keywords(), changes)

    def work(self, state: PanelState) -> ProgressThenResult["OutcomesWithAndWithoutClients"]:
        """Run FENS with all clients, and without each of the chosen ones."""
        runs = yield from run_planned_runs(self.planned_runs(state))
        first_outcomes = {k: next(iter(outcomes.values())) for k, outcomes in runs.items()}
        whole = first_outcomes.pop(NOBODY)
        return OutcomesWithAndWithoutClients(whole, first_outcomes)

    def draw(self, state: PanelState) -> Picture:
        removals = state.worked or OutcomesWithAndWithoutClients(state.outcome, {})
        chosen_client = self.who.value
        if chosen_client != self.EACH:
            outcomes_without_it = {
                k: outcome for k, outcome in removals.without.items() if k == chosen_client
            }
            removals = removals._replace(without=outcomes_without_it)
        if not removals.without:
            return make_blank_picture(
                f"Press “{self.work_label}”. {self.work_help}", setting=state.setting
            )
        setting = describe_setting(state)
        return draw_accuracy_changes_by_removal(
            removals, state.class_names, setting, state.client, state.class_index
        )


def draw_accuracy_changes_by_removal(
    removals: OutcomesWithAndWithoutClients,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    selected_client: int | None = None,
    selected_class: int | None = None,
) -> Picture:
    """Draw how the removal of each client changes the accuracy of each class, beside the samples."""
    change = removals.class_accuracy_changes
    figure = draw_counts_and_values(
        removals.whole.label_counts,
        100 * change,
        class_names,
        setting,
        values_title="Change without the client",
        values_unit="accuracy of the class, points",
        colour_scale_end=100,
        can_be_negative=True,
        selected_client=selected_client,
        selected_class=selected_class,
        has_rings_at_largest_values=False,
    )
    accuracy_with_all = format_percent(removals.whole.accuracy)
    accuracies_with_all = get_test_accuracy_per_class(removals.whole)
    rows = [
        (
            "nobody",
            accuracy_with_all,
            *("" if np.isnan(share) else format_percent(share) for share in accuracies_with_all),
        )
    ]
    for k, outcome in removals.without.items():
        points = ["" if np.isnan(value) else f"{100 * value:+.0f} points" for value in change[k]]
        rows.append(
            (
                f"client {format_client_for_sentence(k, setting)}",
                format_percent(outcome.accuracy),
                *points,
            )
        )
    sentence = describe_largest_accuracy_loss(removals, class_names, setting)
    if len(removals.without) == 1:
        ((k, outcome),) = removals.without.items()
        client_name = format_client_for_sentence(k, setting)
        accuracy = format_percent(outcome.accuracy)
        sentence = f"Without client {client_name}, accuracy goes from {accuracy_with_all} to {accuracy}. {sentence}"
    title = (
        "Two heat-maps: training samples, and by how many points the accuracy of a class changes "
        "without a client"
    )
    columns = ["without", "accuracy", *(f"class {name}" for name in class_names)]
    table = build_table(columns, rows)
    return describe_picture(
        figure,
        title,
        setting,
        sentence,
        table,
        detail=describe_number_of_large_accuracy_drops(removals),
    )


def describe_largest_accuracy_loss(
    removals: OutcomesWithAndWithoutClients,
    class_names: Sequence[str],
    setting: SettingCaption | str,
) -> str:
    """Say which class loses most, and without which client."""
    change = removals.class_accuracy_changes
    shares = compute_client_shares_of_each_class(removals.whole.label_counts)
    k, c = np.unravel_index(np.nanargmin(change), change.shape)
    return (
        f"Class {class_names[c]} loses most, {-100 * change[k, c]:.0f} points without client "
        f"{format_client_for_sentence(k, setting)}, which holds {format_percent(shares[k, c])} of "
        "it."
    )


def describe_number_of_large_accuracy_drops(removals: OutcomesWithAndWithoutClients) -> str:
    """Say how many cells lose much, and in how many of them the client held most of the class."""
    change = removals.class_accuracy_changes
    is_known = ~np.isnan(change)
    is_lost = change < -LARGE_LOSS
    is_lost_by_owner = is_lost & (
        compute_client_shares_of_each_class(removals.whole.label_counts) > 0.5
    )
    return (
        f"{is_lost.sum()} of {is_known.sum()} cells lose more than 20 points, "
        f"{is_lost_by_owner.sum()} of them where the client holds more than half of the class."
    )
