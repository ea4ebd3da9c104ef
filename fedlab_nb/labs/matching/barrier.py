"""The loss barrier: loss or accuracy on the straight line between two clients' networks, before and
after matching.
"""

from typing import Literal

import ipywidgets as widgets

from ...panels import PanelState, make_widget
from ...plots import (
    Picture,
    TableRows,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_percent,
)
from ...plots.style import (
    ACCENT,
    SECOND,
    draw_end_labels,
    draw_level_line,
    limit_tick_count,
    set_percent_axis,
)
from ...value_types import Accuracy0To1
from .pairs import RULES, MatchedPair, TwoClientsView


class BarrierView(TwoClientsView):
    """Loss or accuracy on the straight line between two clients' networks, before and after their
    units are matched.
    """

    name, title = "barrier", "Barrier"
    summary = "Then this shows the loss on the straight line between two clients' networks."

    def __init__(self) -> None:
        super().__init__()
        self.measure = make_widget(
            widgets.Dropdown,
            label="Show",
            help="What is drawn along the line",
            width=150,
            options=["loss", "accuracy"],
        )

    def draw(self, state: PanelState) -> Picture:
        chance = 1 / len(state.class_names)
        return draw_loss_or_accuracy_on_line(
            self.match_selected_clients(state), self.measure.value, chance
        )


def draw_loss_or_accuracy_on_line(
    pair: MatchedPair, measure: Literal["loss", "accuracy"], chance_accuracy: Accuracy0To1
) -> Picture:
    """Draw loss or accuracy on the line between two clients, before and after matching.

    measure: "loss" or "accuracy"
    chance_accuracy: accuracy of guessing, drawn beside accuracies
    """
    a, b = pair.client_names
    title = f"From client {a} to client {b}"
    styles = (
        ("as they stand", pair.before, {"color": SECOND, "ls": (0, (4, 2))}),
        ("matched", pair.after, {"color": ACCENT, "ls": "-"}),
    )
    with drawing() as (figure, ax):
        x_label = f"way: 0 is client {a}, 1 is client {b}, ½ their average"
        dress(ax, title=title, x=x_label, y=f"test {measure}", grid="y")
        labels = []
        for name, line, style in styles:
            values = getattr(line, measure)
            ax.plot(line.positions_0_to_1, values, lw=2.2, label=f"units {name}", **style)
            labels.append((values[-1], name, style["color"]))
        if measure == "accuracy":
            set_percent_axis(ax)
            draw_level_line(ax, chance_accuracy, "guessing")
        limit_tick_count(ax, "x", 5, format_value="{:g}".format)
        ax.set_xlim(0, 1)
        draw_end_labels(ax, labels)
    return describe_picture(
        figure,
        f"{title}: test {measure}",
        pair.setting,
        describe_accuracy_of_average(pair),
        make_table_of_points_on_line(pair),
        detail=describe_loss_barrier_and_end_accuracies(pair),
    )


def describe_accuracy_of_average(pair: MatchedPair) -> str:
    """Say how accurate the average of the two networks is, before and after matching."""
    a, b = pair.client_names
    before = pair.before
    after = pair.after
    return (
        f"The average of clients {a} and {b} gets {format_percent(before.accuracy_of_average)} right "
        f"as their units stand, and {format_percent(after.accuracy_of_average)} after matching by "
        f"{RULES[pair.rule]}."
    )


def describe_loss_barrier_and_end_accuracies(pair: MatchedPair) -> str:
    """Say how high the barrier is before and after matching, and how accurate the two networks are."""
    before = pair.before
    return (
        f"The loss barrier is {before.loss_barrier:.2f} with the units as they stand, and "
        f"{pair.after.loss_barrier:.2f} after matching. The two networks themselves get "
        f"{format_percent(before.accuracy[0])} and {format_percent(before.accuracy[-1])} right."
    )


def make_table_of_points_on_line(pair: MatchedPair) -> TableRows:
    """Make the table with a row for each point of the line."""
    before = pair.before
    after = pair.after
    rows = []
    for i, t in enumerate(before.positions_0_to_1):
        rows.append(
            (
                float(t.round(2)),
                float(before.loss[i].round(3)),
                float(after.loss[i].round(3)),
                format_percent(before.accuracy[i]),
                format_percent(after.accuracy[i]),
            )
        )
    columns = "way | loss as they stand | loss matched | accuracy as they stand | accuracy matched"
    return build_table(columns, rows)
