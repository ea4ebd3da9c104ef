"""Accuracy against λ_damp for each way in which a server can use the uploads, under both rules for
π.

The curves are on validation images, so that a person may choose a λ_damp by them. Only the best
λ_damp is measured on test images.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ipywidgets import Dropdown, SelectionSlider

from ...errors import RunError
from ...methods.fedlpa.client import LocalPosterior
from ...methods.fedlpa.server import USES
from ...methods.parts.kronecker import PI_RULES, DampingSplit
from ...panels import LabView, PanelState, PausesThenResult, make_widget
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_percent,
    join_with_and,
)
from ...plots.style import (
    ACCENT,
    FIFTHS,
    INK,
    SERIES,
    draw_end_labels,
    get_method_look,
    is_frame_narrow,
    set_log_axis,
    set_percent_axis,
)
from ...plots.words import SettingCaption
from ...studies import Outcome
from ...studies.experiment import load_validation_samples
from ...studies.outcome import VALIDATION_SETS
from ..runs import describe_setting
from .replay import (
    DAMPINGS,
    find_nearest_offered_damping,
    format_positive_number_briefly,
    format_power_of_ten,
    make_options_and_value_of_damping_menu,
    make_server_replay,
)


class Curve(NamedTuple):
    """How the curve of one use of the uploads is drawn."""

    label: str
    colour: str
    line: Any
    marker: str


CURVES = {
    "exact": Curve("exact (FedLPA)", get_method_look("fedlpa").colour, "-", "o"),
    "shortcut": Curve("shortcut EA", SERIES[0], "--", "s"),
    "inputs": Curve("A alone (RegMean)", get_method_look("regmean").colour, "-.", "^"),
    "diagonal": Curve("factor diagonals", SERIES[3], ":", "D"),
    "none": Curve("average", "#7F7F7F", (0, (1, 2)), ""),
}


class DampingView(LabView):
    """Accuracy against λ_damp for five uses of the uploads."""

    name, title = "damping", "Damping"
    summary = "Then this shows the accuracy against λ_damp for five uses of the uploads."
    _outcome: Any = None  # the outcome that was drawn last

    def __init__(self) -> None:
        self.damping = make_widget(
            SelectionSlider,
            label="λ_damp",
            help="The λ_damp that is marked in the picture",
            width=366,
            label_width=56,
            **make_options_and_value_of_damping_menu(),
        )
        self.pi = make_widget(
            Dropdown,
            label="Split",
            help="How the two factors share the damping",
            width=210,
            options=[("π = 1", "one"), ("π by the traces", "trace")],
        )

    def adapt(self, state: PanelState) -> None:
        """Set the controls to λ_damp and π of a new outcome."""
        if state.outcome is self._outcome:
            return
        self._outcome = state.outcome
        options = state.outcome.options
        self.damping.value = find_nearest_offered_damping(options["damping"])
        self.pi.value = options["pi"]

    def prepare(self, state: PanelState) -> PausesThenResult["DampingSweep"]:
        return measure_accuracies_at_all_dampings(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        return draw_accuracy_against_damping(state.prepared, self.pi.value, self.damping.index)


# ------------------------------------------------------------------------------------------ numbers
class DampingSweep(NamedTuple):
    """What the server makes of the same uploads with each λ_damp in `dampings`.

    accuracies:      {rule for π: {use of the uploads: validation accuracy 0–1 for each λ_damp}}; the
                     uses are those of USES
    measured:        `[M, layers]`, mean diagonal of the undamped B
    damping_ratios:  {rule for π: `[M, layers]`, the values of π}
    layers:          their names in words
    setting:         the run's setting in words
    test_accuracies: {rule for π: test accuracy 0–1 of the exact solution with the λ_damp that is best
                     on validation images}
    judged_on:       where the validation images come from, a key of `outcome.VALIDATION_SETS`
    """

    dampings: Sequence[float]
    accuracies: Mapping[str, Mapping[str, Sequence[float]]]
    measured: np.ndarray
    damping_ratios: Mapping[str, np.ndarray]
    layers: Sequence[str]
    setting: SettingCaption | str
    test_accuracies: Mapping[str, float] = {}
    judged_on: str = "held-out"

    def find_index_of_damping_best_on_validation(self, pi_rule: DampingSplit) -> int:
        """Find the index of the λ_damp with which the exact solution is best on validation images."""
        accuracies = self.accuracies[pi_rule]["exact"]
        return accuracies.index(max(accuracies))

    def list_overdamped_layers(self, pi_rule: DampingSplit, damping_index: int) -> list[str]:
        """List the layers in which this λ_damp adds more to B than the client measured, for most
        clients.
        """
        added = self.dampings[damping_index] ** 0.5 / self.damping_ratios[pi_rule]
        share_of_clients = (added > self.measured).mean(0)
        return [self.layers[i] for i in np.flatnonzero(share_of_clients > 0.5)]


def measure_accuracies_at_all_dampings(fedlpa_outcome: Outcome) -> PausesThenResult[DampingSweep]:
    """Measure every λ_damp, rule for π and use of the uploads on validation images; then the λ_damp
    that is best there on test images.

    Raises RunError if the run has no validation images.
    """
    validation = load_validation_samples(fedlpa_outcome)
    if validation is None:
        raise RunError(
            "This run has no validation images to compare λ_damp on; choose a holdout above 0."
        )
    x, y, judged_on = validation
    server = make_server_replay(fedlpa_outcome, (x, y))
    accuracies: dict[str, dict[str, list[float]]] = {}
    for rule in PI_RULES:
        accuracies[rule] = {use: [] for use in USES}
        for damping in DAMPINGS:
            uploads = server.make_uploads(damping, rule)
            for use, curve in accuracies[rule].items():
                if use == "none" and curve:  # the average does not depend on λ_damp
                    curve.append(curve[0])
                else:
                    solution = server.solve_global_state(use, uploads)
                    curve.append(server.compute_accuracy_on_replay_samples(solution))
                yield
    posteriors = server.posteriors
    damping_ratios = {}
    for rule in PI_RULES:
        ratios = [posterior.compute_damping_ratio_of_each_layer(rule) for posterior in posteriors]
        damping_ratios[rule] = np.array(ratios)
    sweep = DampingSweep(
        dampings=DAMPINGS,
        accuracies=accuracies,
        measured=np.array(
            [compute_mean_diagonal_of_b_per_layer(posterior) for posterior in posteriors]
        ),
        damping_ratios=damping_ratios,
        layers=[f"layer {i + 1}" for i in range(len(fedlpa_outcome.report.layers))],
        setting=describe_setting(fedlpa_outcome),
        judged_on=judged_on,
    )
    return sweep._replace(
        test_accuracies=measure_test_accuracies_at_best_dampings(fedlpa_outcome, sweep)
    )


def compute_mean_diagonal_of_b_per_layer(posterior: LocalPosterior) -> list[float]:
    """Compute the mean of the diagonal of B for each layer of one client."""
    return [factors.b.diagonal().mean().item() for factors in posterior.factors.values()]


def measure_test_accuracies_at_best_dampings(
    fedlpa_outcome: Outcome, sweep: DampingSweep
) -> dict[str, float]:
    """Measure {rule for π: test accuracy with the λ_damp that is best on validation images}."""
    server = make_server_replay(fedlpa_outcome)
    accuracies = {}
    for rule in PI_RULES:
        damping = sweep.dampings[sweep.find_index_of_damping_best_on_validation(rule)]
        uploads = server.make_uploads(damping, rule)
        solution = server.solve_global_state("exact", uploads)
        accuracies[rule] = server.compute_accuracy_on_replay_samples(solution)
    return accuracies


# ------------------------------------------------------------------------------------------ picture
def draw_accuracy_against_damping(
    sweep: DampingSweep, pi_rule: DampingSplit, marked_damping_index: int
) -> Picture:
    """Draw validation accuracy against λ_damp: a curve for each use of the uploads, under one rule for π.

    marked_damping_index: which of `sweep.dampings` is marked
    """
    dampings = sweep.dampings
    accuracies = sweep.accuracies[pi_rule]
    best = dampings[sweep.find_index_of_damping_best_on_validation(pi_rule)]
    test_accuracy = sweep.test_accuracies.get(pi_rule)
    rule_text = "1" if pi_rule == "one" else pi_rule
    with drawing() as (figure, ax):
        dress(ax, title="Validation accuracy (ring: test)", x="damping λ_damp", grid="y")
        for use, curve in accuracies.items():
            label, colour, line, marker = CURVES[use]
            style = {"ls": line, "marker": marker, "color": colour, "ms": 4.5, "lw": 1.9}
            ax.plot(dampings, curve, label=label, **style)
        if test_accuracy is not None:
            ax.plot(best, test_accuracy, "o", ms=12, mfc="none", mec=INK, mew=1.6, zorder=6)
        ax.axvline(dampings[marked_damping_index], color=ACCENT, lw=7, alpha=0.16, zorder=0)
        set_log_axis(ax, max_ticks=5 if is_frame_narrow() else 9, format_value=format_power_of_ten)
        set_percent_axis(ax, "y", 1.03, ticks=FIFTHS)
        labels = []
        for use, curve in accuracies.items():
            labels.append((curve[-1], CURVES[use].label, CURVES[use].colour))
        draw_end_labels(ax, labels)
    rows = []
    for i, damping in enumerate(dampings):
        cells = [format_percent(curve[i]) for curve in accuracies.values()]
        rows.append((format_positive_number_briefly(damping), *cells))
    columns = ["λ_damp", *(CURVES[use].label for use in accuracies)]
    return describe_picture(
        figure,
        "Validation accuracy against λ_damp for each use of the uploads",
        f"{sweep.setting}, rule π = {rule_text}",
        describe_accuracy_at_marked_and_best_damping(sweep, pi_rule, marked_damping_index),
        build_table(columns, rows),
        detail=describe_all_uses_and_overdamped_layers(sweep, pi_rule, marked_damping_index),
    )


def describe_accuracy_at_marked_and_best_damping(
    sweep: DampingSweep, pi_rule: DampingSplit, marked_damping_index: int
) -> str:
    """Say how accurate FedLPA is at the marked λ_damp, and which λ_damp is best."""
    accuracies = sweep.accuracies[pi_rule]["exact"]
    best = sweep.find_index_of_damping_best_on_validation(pi_rule)
    text = (
        f"At λ_damp = {format_positive_number_briefly(sweep.dampings[marked_damping_index])} FedLPA gets "
        f"{format_percent(accuracies[marked_damping_index])} right"
    )
    if marked_damping_index == best:
        return f"{text}, and no other λ_damp more."
    return (
        f"{text}; at {format_positive_number_briefly(sweep.dampings[best])}, the best λ_damp, it gets "
        f"{format_percent(accuracies[best])}."
    )


def describe_all_uses_and_overdamped_layers(
    sweep: DampingSweep, pi_rule: DampingSplit, marked_damping_index: int
) -> str:
    """List the accuracies of all uses of the uploads at the marked λ_damp, and the layers in which
    damping dominates.
    """
    accuracy_texts = []
    for use, curve in sweep.accuracies[pi_rule].items():
        short_label = CURVES[use].label.split(" (")[0]
        accuracy_texts.append(f"{short_label} {format_percent(curve[marked_damping_index])}")
    test_text = ""
    if pi_rule in sweep.test_accuracies:
        accuracy = format_percent(sweep.test_accuracies[pi_rule])
        test_text = f" FedLPA at its best λ_damp on test images: {accuracy}."
    overdamped_layers = (
        join_with_and(sweep.list_overdamped_layers(pi_rule, marked_damping_index)) or "no layer"
    )
    return (
        f"On validation images ({VALIDATION_SETS[sweep.judged_on]}): {', '.join(accuracy_texts)}."
        f"{test_text} λ_damp adds more to B than was measured in {overdamped_layers}."
    )
