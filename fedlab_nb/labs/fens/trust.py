"""How much FENS' aggregator trusts each client for each class.

The picture shows the aggregator's weights beside the training samples, with the clients in the same
order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.figure import Figure

from ...panels import LabView, PanelState, make_slider_player, make_widget
from ...plots import Picture, build_table, describe_picture, drawing, format_percent
from ...plots.array_types import ClientClassCounts, ClientClassValues
from ...plots.kit import draw_client_class_heat_map
from ...plots.style import draw_colour_bar
from ...plots.words import SettingCaption, format_client_for_sentence
from ..array_types import MemberClients, MemberRows
from ..runs import describe_setting

MIN_SPREAD = 1e-6  # a table whose values differ by less than this has no correlation


class RuleDisplay(NamedTuple):
    """How the numbers of one aggregation rule are shown beside the samples."""

    title: str
    unit: str
    can_be_negative: bool


KINDS = {
    "averaging": RuleDisplay("Weight, fixed", "weight λ", False),
    "weighted": RuleDisplay("Weight, from the counts", "weight λ", False),
    "voting": RuleDisplay("Right votes", "P(votes c | truth c)", False),
    "linear": RuleDisplay("Weight, trained", "weight λ", True),
    "per_class": RuleDisplay("Weight, trained", "weight λ", True),
    "nn": RuleDisplay("Slope of the network", "mean ∂f_c / ∂z_ic", True),
    "deepset": RuleDisplay("Slope of the network", "mean ∂f_c / ∂z_ic", True),
    "moe": RuleDisplay("Gate", "mean gate", False),
    "added": RuleDisplay("What it adds", "mean weight × logit, own class", True),
}


# ------------------------------------------------------------------------------------------ numbers
class WeightCountLikeness(NamedTuple):
    """How far weights resemble the partition.

    correlation: of the weights with each client's share of a class
    owners:      number of classes whose heaviest client also holds most of their samples
    classes:     number of classes that were compared
    negative:    share of the weights that are negative
    """

    correlation: float
    owners: int
    classes: int
    negative: float


def compare_weights_with_counts(
    counts: ClientClassCounts, weights: ClientClassValues
) -> WeightCountLikeness:
    """Compare `weights [M, C]` with label `counts [M, C]`. A forgotten client has a row of nan."""
    is_member = np.isfinite(weights).all(1)
    weights = weights[is_member]
    counts = np.asarray(counts, dtype=float)[is_member]
    shares = compute_client_shares_of_each_class(counts)
    correlation = 0.0
    if np.ptp(shares) >= MIN_SPREAD and np.ptp(weights) >= MIN_SPREAD:
        correlation = float(np.corrcoef(shares.ravel(), weights.ravel())[0, 1])
    has_samples = counts.sum(0) > 0
    has_favourite = np.ptp(weights, axis=0) > MIN_SPREAD
    is_compared = has_samples & has_favourite
    is_owner = weights.argmax(0) == counts.argmax(0)
    return WeightCountLikeness(
        correlation=correlation,
        owners=int(is_owner[is_compared].sum()),
        classes=int(is_compared.sum()),
        negative=float((weights < 0).mean()),
    )


def compute_client_shares_of_each_class(counts: ClientClassCounts) -> ClientClassValues:
    """Compute each client's share of the samples of a class, `[M, C]`."""
    return counts / np.maximum(counts.sum(0), 1)


def add_nan_rows_of_absent_clients(
    member_rows: MemberRows, member_clients: MemberClients, client_count: int
) -> ClientClassValues:
    """Expand a table of the members `[members, C]` to all clients `[client_count, C]`. Clients that
    take no part get rows of nan.

    member_rows:    the table
    member_clients: the client of each of its rows
    """
    all_rows = np.full((client_count, member_rows.shape[1]), np.nan)
    is_known = member_clients < client_count  # sliders may have changed while the method runs
    all_rows[member_clients[is_known]] = member_rows[is_known]
    return all_rows


# ----------------------------------------------------------------------------------------- the view
class AggregatorWeights(NamedTuple):
    """What the view shows.

    table: the weights, `[members, C]`
    rule:  a key of KINDS
    when:  the round of the weights, such as "round 4 of 9", or empty
    limit: the weight at the end of the colour scale; 0 for the largest weight of the table
    """

    table: np.ndarray
    rule: str
    when: str = ""
    limit: float = 0.0


class AggregatorWeightsView(LabView):
    """The aggregator's weights beside the training samples, round by round while phase 2 runs. The
    rounds can be replayed afterwards.
    """

    name, title, ready = "trust", "Who is trusted", "live"
    summary = "Then this shows how much the aggregator trusts each client for each class."

    def __init__(self) -> None:
        self.round = make_widget(
            widgets.SelectionSlider,
            label="Round",
            help="After which round the table is shown",
            width=250,
            options=["end"],
        )
        self.play = make_slider_player(
            self.round, interval=450, tooltip="Replay the rounds", show_repeat=False
        )
        self.table = make_widget(
            widgets.Dropdown,
            label="Table",
            help="The weight alone, or what a client adds on average to the score of the true "
            "class, at the end",
            width=190,
            options=[("weight", False), ("weight × logit", True)],
        )
        self._outcome = None  # the outcome that was drawn last

    def adapt(self, state: PanelState) -> None:
        """For a new outcome, set the slider to its rounds, and show the last one."""
        if state.outcome is self._outcome:
            return
        self._outcome = state.outcome
        rounds = None if state.outcome is None else state.report.frame_rounds
        if rounds is None:
            self.round.options = ["end"]
        else:
            self.round.options = [str(int(number)) for number in rounds]
        last_index = len(self.round.options) - 1
        self.play.max = last_index
        self.round.index = last_index
        self.play.value = last_index

    def draw(self, state: PanelState) -> Picture:
        if state.outcome is None:
            counts = state.federation.label_counts.numpy()
        else:
            counts = state.outcome.label_counts
        shown = self._select_shown_weights(state)
        return draw_counts_and_weights(
            counts,
            add_nan_rows_of_absent_clients(shown.table, state.report.members, len(counts)),
            state.class_names,
            describe_setting(state),
            aggregation_rule=shown.rule,
            described_round_in_words=shown.when,
            colour_scale_end_or_0=shown.limit,
            selected_client=state.client,
            selected_class=state.class_index,
        )

    def _select_shown_weights(self, state: PanelState) -> AggregatorWeights:
        """Select the weights that the controls choose; while phase 2 runs, those of the last round."""
        outcome = state.outcome
        report = state.report
        options = state.knobs if outcome is None else outcome.options
        rule = options["aggregator"]
        if report.frames is None and rule == "voting":
            return AggregatorWeights(report.competency.diagonal(axis1=1, axis2=2), rule)
        if report.frames is None:
            return AggregatorWeights(report.weights, rule)
        if self.table.value and outcome is not None:
            return AggregatorWeights(report.contribution, "added")
        if outcome is None:
            index = -1
            limit = 0.0
        else:
            index = self.round.index
            limit = float(np.abs(report.frames).max())
        when = f"round {report.frame_rounds[index]} of {options['rounds']}"
        return AggregatorWeights(report.frames[index], rule, when, limit)


# ------------------------------------------------------------------------------------------ picture
def draw_counts_and_weights(
    counts: ClientClassCounts,
    weights: ClientClassValues,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    *,
    aggregation_rule: str = "per_class",
    described_round_in_words: str = "",
    colour_scale_end_or_0: float = 0.0,
    selected_client: int | None = None,
    selected_class: int | None = None,
) -> Picture:
    """Draw label counts `[M, C]`, and beside them `weights [M, C]`, nan for forgotten clients.

    aggregation_rule:      a key of KINDS
    described_round_in_words:        the round of the weights, such as "round 4 of 9", or empty
    colour_scale_end_or_0: the weight at the end of the colour scale; 0 for the largest of the table
    """
    kind = KINDS[aggregation_rule]
    title = f"{kind.title}, {described_round_in_words}" if described_round_in_words else kind.title
    figure = draw_counts_and_values(
        counts,
        weights,
        class_names,
        setting,
        values_title=title,
        values_unit=kind.unit,
        colour_scale_end=colour_scale_end_or_0 or float(np.nanmax(np.abs(weights))) or 1.0,
        can_be_negative=kind.can_be_negative,
        selected_client=selected_client,
        selected_class=selected_class,
    )
    rows: list[tuple] = []
    for k, (class_counts, row) in enumerate(zip(counts, weights, strict=True)):
        client_name = format_client_for_sentence(k, setting)
        cells = ["forgotten" if np.isnan(weight) else round(float(weight), 3) for weight in row]
        rows.append((client_name, "samples", *(int(count) for count in class_counts)))
        rows.append((client_name, kind.unit, *cells))
    columns = ["client", "what", *(f"class {name}" for name in class_names)]
    opening = f"After {described_round_in_words}," if described_round_in_words else "Here"
    description = describe_which_clients_are_trusted(
        counts, weights, class_names, setting, selected_client, selected_class
    )
    return describe_picture(
        figure,
        f"Two heat-maps, training samples and {title} ({kind.unit})",
        setting,
        f"{opening} {description}.",
        build_table(columns, rows),
        detail=describe_correlation_and_negative_weights(counts, weights),
    )


def draw_counts_and_values(
    counts: ClientClassCounts,
    values: ClientClassValues,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    *,
    values_title: str,
    values_unit: str,
    colour_scale_end: float,
    can_be_negative: bool,
    selected_client: int | None,
    selected_class: int | None,
    has_rings_at_largest_values: bool = True,
) -> Figure:
    """Draw two heat maps, of label counts and of `values`, both `[M, C]`.

    values_title, values_unit:   of the heat map of the values
    colour_scale_end:            the value at the end of its colour scale
    can_be_negative:             whether values may be below zero
    has_rings_at_largest_values: whether a ring marks the largest value of each class
    """
    if colour_scale_end > 10:
        number_format = "{:.0f}"
    elif colour_scale_end > 2:
        number_format = "{:.1f}"
    else:
        number_format = "{:.2f}"
    marks = {
        "selected_client": selected_client,
        "selected_class_index": selected_class,
        "setting": setting,
    }
    largest_count = max(int(counts.max(initial=0)), 1)
    with drawing(1, 2, width_ratios=[1, 1.14]) as (figure, (left, right)):
        draw_client_class_heat_map(
            left,
            counts,
            class_names,
            "Training samples",
            largest_count,
            has_ring_at_class_maximum=True,
            **marks,
        )
        image = draw_client_class_heat_map(
            right,
            values,
            class_names,
            values_title,
            colour_scale_end,
            number_format=number_format,
            is_symmetric_around_zero=can_be_negative,
            has_ring_at_class_maximum=has_rings_at_largest_values,
            has_class_names=False,
            **marks,
        )
        draw_colour_bar(image, right, values_unit)
    return figure


def describe_which_clients_are_trusted(
    counts: ClientClassCounts,
    weights: ClientClassValues,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    selected_client: int | None,
    selected_class: int | None,
) -> str:
    """Describe how similar both tables are.

    If a client is selected, first name the class for which it has the largest weight; if a class is
    selected, the client with the largest weight for it.
    """
    likeness = compare_weights_with_counts(counts, weights)
    if not likeness.classes:
        return "every client counts the same for every class"
    selection_text = ""
    is_member = (
        selected_client is not None
        and selected_client < len(counts)
        and np.isfinite(weights[selected_client]).all()
    )
    if is_member:
        selected_class = int(weights[selected_client].argmax())
    if selected_class is not None and selected_class < len(class_names):
        k = selected_client if is_member else int(np.nanargmax(weights[:, selected_class]))
        selection_text = (
            f"client {format_client_for_sentence(k, setting)} counts most for class "
            f"{class_names[selected_class]} (weight {weights[k, selected_class]:.2f}, "
            f"{counts[k, selected_class]} samples), "
        )
    return (
        f"{selection_text}{likeness.owners} of {likeness.classes} classes trust the client most "
        "that holds most of their samples"
    )


def describe_correlation_and_negative_weights(
    counts: ClientClassCounts, weights: ClientClassValues
) -> str:
    """Say how far the weights resemble the partition, in numbers."""
    likeness = compare_weights_with_counts(counts, weights)
    if not likeness.classes:
        return ""
    return (
        f"Weights and shares of samples correlate with {likeness.correlation:.2f}. "
        f"{format_percent(likeness.negative)} of the weights are below zero."
    )
