"""Which units were matched: how alike the units of two clients are, before and after the units of
one are reordered.
"""

import ipywidgets as widgets
import numpy as np

from ...panels import PanelState, make_widget, set_menu_options_and_keep_choice
from ...plots import Picture, build_table, describe_picture, drawing, dress
from ...plots.kit import draw_heat_map
from ...plots.style import QUIET, draw_colour_bar
from .pairs import RULES, MatchedPair, TwoClientsView

COLOUR_LIMIT = 0.8  # end of the colour scale; hardly any cosine is larger


class UnitPartnersView(TwoClientsView):
    """How alike the units of two clients are, before and after matching, layer by layer."""

    name, title = "partners", "Who with whom"
    summary = "Then this shows how alike the units of two clients are, before and after matching."

    def __init__(self) -> None:
        super().__init__()
        self.layer = make_widget(
            widgets.Dropdown,
            label="Layer",
            help="Whose units are shown",
            width=180,
            options=[("hidden layer 1", 0)],
        )

    def adapt(self, state: PanelState) -> None:
        super().adapt(state)
        layers = len(state.report.layers or [0])
        set_menu_options_and_keep_choice(
            self.layer, [(f"hidden layer {i + 1}", i) for i in range(layers)], 0
        )

    def draw(self, state: PanelState) -> Picture:
        pair = self.match_selected_clients(state)
        layer = min(self.layer.value, len(pair.orders) - 1)
        return draw_unit_cosines_before_and_after_matching(pair, layer)


def draw_unit_cosines_before_and_after_matching(pair: MatchedPair, layer_index: int) -> Picture:
    """Draw heat maps of the cosines of one layer: with client b's units in their own order, and in
    the order found.

    Client a's units are sorted, the best pair first. On the diagonal are the pairs that an average
    mixes.
    """
    cosines = pair.similarity[layer_index]
    order = pair.orders[layer_index]
    units = np.arange(len(order))
    ranking = np.argsort(-cosines[units, order], kind="stable")
    before = cosines[np.ix_(ranking, ranking)]
    matched = cosines[np.ix_(ranking, order[ranking])]
    a, b = pair.client_names
    with drawing(1, 2) as (figure, (left, right)):
        for ax, title, table in ((left, "As they stand", before), (right, "Matched", matched)):
            dress(ax, title=title, x=f"units of client {b}")
            image = draw_heat_map(
                ax, table, largest_value=COLOUR_LIMIT, is_symmetric_around_zero=True
            )
            ax.set(xticks=[], yticks=[], aspect="equal")
        left.set_ylabel(f"units of client {a}, best pair first", fontsize=10, color=QUIET)
        draw_colour_bar(image, (left, right), "cosine of the incoming weights", shrink=0.75)
    title = (
        f"Two heat-maps of how alike the units of hidden layer {layer_index + 1} of clients {a} "
        f"and {b} are, as they stand and matched by {RULES[pair.rule]}"
    )
    moved_units = int((order != units).sum())
    sentence = (
        f"{moved_units} of {len(order)} units of client {b} find their partner at another place in "
        f"hidden layer {layer_index + 1}; the mean cosine of partners goes from "
        f"{np.diagonal(before).mean():.2f} to {np.diagonal(matched).mean():.2f}."
    )
    rows = []
    for i, partner in enumerate(order):
        cosine = round(float(cosines[i, partner]), 2)
        cosine_before = round(float(cosines[i, i]), 2)
        rows.append((i, int(partner), cosine, cosine_before))
    columns = (
        f"unit of client {a} | partner of client {b} | cosine | "
        "cosine with the unit of the same number"
    )
    return describe_picture(figure, title, pair.setting, sentence, build_table(columns, rows))
