"""Accuracy for several numbers of images per class, in words with one client's bytes."""

from collections.abc import Mapping
from typing import NamedTuple

import ipywidgets as widgets

from ...methods import label_of
from ...panels import PanelState, PlannedRuns, describe_settings, make_widget
from ...plots import Picture, data_size, mean_percent
from ...plots.study import draw_accuracy_lines
from ...plots.style import INK, Look, look
from ...plots.words import Setting
from ...studies.outcome import Outcome
from ..button_view import ButtonView, group_accuracies_by_seed
from ..runs import Steps, plan_runs, run_all
from .sent_images import IMAGE_KINDS

PER_CLASS = (1, 2, 3, 5, 10)  # values of m_c


class Bytes(ButtonView):
    """Accuracy against the number of images per class, beside the other methods of the run."""

    name, title = "budget", "Accuracy and bytes"
    work_label = "Try 1 to 10 per class"
    work_help = (
        "Run with 1, 2, 3, 5 and 10 images per class, on every seed of the panel. Nothing else "
        "changes."
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

    def planned_runs(self, state: PanelState) -> PlannedRuns:
        changes = {name_run(m): {"distilled.per_class": m} for m in PER_CLASS}
        return plan_runs("distilled", state.settings, changes)

    def work(self, state: PanelState) -> Steps:
        """{m_c: Budget}, and the setting in words."""
        runs = yield from run_all(self.planned_runs(state))
        budgets = {m: make_budget(runs[name_run(m)]) for m in PER_CLASS}
        kind = IMAGE_KINDS[state.knobs["images"]]
        return budgets, f"{describe_settings(state.settings)}, {kind}"

    def draw_result(self, state: PanelState) -> Picture:
        budgets, setting = state.worked
        others = {}
        for method, outcomes in state.others.items():
            if outcomes:
                others[label_of(method, state.settings)] = make_budget(outcomes)
        return draw_budgets(budgets, self.per_class.value, setting=setting, others=others)


class Budget(NamedTuple):
    """One value of m_c: bytes up of the client that sends most, and accuracies {seed: share} on
    validation and test images.
    """

    bytes: int
    validation: dict[int, float]
    test: dict[int, float]


def name_run(per_class: int) -> str:
    """The name of a run: "m_c = 3"."""
    return f"m_c = {per_class}"


def make_budget(outcomes: Mapping[int, Outcome]) -> Budget:
    """The Budget of the outcomes {seed: Outcome} with one m_c."""
    validation = {}
    for seed, outcome in outcomes.items():
        if outcome.accuracy_validation is not None:
            validation[seed] = outcome.accuracy_validation
    first = next(iter(outcomes.values()))
    most_bytes = max(up for up, _ in first.ledger.by_client().values())
    return Budget(most_bytes, validation, group_accuracies_by_seed(outcomes))


def draw_budgets(
    budgets: Mapping[int, Budget],
    per_class: int,
    *,
    setting: Setting | str,
    others: Mapping[str, Budget],
) -> Picture:
    """Lines of validation accuracy against images per class, beside the other methods of the run.

    budgets: by rising m_c;   per_class: the m_c whose test accuracy is shown
    others:  {title of another method: its Budget}
    """
    validation = {m: budget.validation for m, budget in budgets.items() if budget.validation}
    lines: dict[str, dict[int, dict[int, float]]] = {}
    looks: dict[str, Look] = {}
    if validation:
        lines["validation images"] = validation
        looks["validation images"] = look("distilled")
    lines["test images"] = {per_class: budgets[per_class].test}
    looks["test images"] = Look(INK, "*", "-")
    for title, budget in others.items():
        lines[title] = dict.fromkeys(budgets, budget.test)
    return draw_accuracy_lines(
        lines,
        "m_c",
        "images per class m_c",
        setting=setting,
        sentence=describe_budgets(budgets, per_class, others),
        methods=looks,
    )


def describe_budgets(
    budgets: Mapping[int, Budget], per_class: int, others: Mapping[str, Budget]
) -> str:
    """Accuracy and bytes with this m_c, and of the others."""
    chosen = budgets[per_class]
    beside = []
    for title, budget in others.items():
        beside.append(f"; {title}: {mean_percent(budget.test)}, {data_size(budget.bytes)}")
    return (
        f"With {per_class} per class the server is correct on {mean_percent(chosen.test)} of the "
        f"test images, for at most {data_size(chosen.bytes)} a client{''.join(beside)}."
    )
