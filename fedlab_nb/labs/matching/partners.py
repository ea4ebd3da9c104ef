"""Who was matched with whom: how alike the units of two clients are, before and after one is put in order."""

import ipywidgets as widgets
import numpy as np

from ...panels import PanelState, made, offer
from ...plots import Picture, drawing, dress, tabled, told
from ...plots.axes import colour_bar
from ...plots.kit import heat_map
from ...plots.style import QUIET
from .pairs import RULES, Pair, TwoClients

LIMIT = 0.8  # of the colours; hardly a cosine is larger


class Partners(TwoClients):
    """How alike the units of two clients are, before and after matching, layer by layer."""

    name, title = "partners", "Who with whom"

    def __init__(self) -> None:
        super().__init__()
        layers = {"width": 180, "options": [("hidden layer 1", 0)]}
        self.layer = made(widgets.Dropdown, label="Layer", help="Whose units are shown", **layers)

    def adapt(self, state: PanelState) -> None:
        super().adapt(state)
        offer(
            self.layer,
            [(f"hidden layer {i + 1}", i) for i in range(len(state.report.layers or [0]))],
            0,
        )

    def draw(self, state: PanelState) -> Picture:
        pair = self.pair(state)
        return partners(pair, min(self.layer.value, len(pair.orders) - 1))


def partners(pair: Pair, layer: int) -> Picture:
    """Heat-maps of the cosines of layer number `layer`: client b's units as they stand, and in the order found.

    Client a's units come with the best pair first; on the diagonal are the two that an average mixes.
    """
    alike, order = pair.similarity[layer], pair.orders[layer]
    first = np.argsort(-alike[np.arange(len(order)), order], kind="stable")
    tables = {
        "As they stand": alike[np.ix_(first, first)],
        "Matched": alike[np.ix_(first, order[first])],
    }
    before, matched = (float(np.diagonal(table).mean()) for table in tables.values())
    moved = int((order != np.arange(len(order))).sum())
    a, b = pair.names
    with drawing(1, 2) as (figure, both):
        for ax, (title, table) in zip(both, tables.items(), strict=True):
            image = heat_map(
                dress(ax, title=title, x=f"units of client {b}"), table, top=LIMIT, signed=True
            )
            ax.set(xticks=[], yticks=[], aspect="equal")
        both[0].set_ylabel(f"units of client {a}, best pair first", fontsize=10, color=QUIET)
        colour_bar(image, both, "cosine of the incoming weights", shrink=0.75)
    title = f"Two heat-maps of how alike the units of hidden layer {layer + 1} of clients {a} and {b} are, "
    title += f"as they stand and matched by {RULES[pair.rule]}"
    sentence = (
        f"{moved} of {len(order)} units of client {b} find their partner at another place in "
    )
    sentence += f"hidden layer {layer + 1}; the mean cosine of partners goes from {before:.2f} to {matched:.2f}."
    columns = f"unit of client {a} | partner of client {b} | cosine | cosine with the unit of the same number"
    rows = [
        (i, int(j), round(float(alike[i, j]), 2), round(float(alike[i, i]), 2))
        for i, j in enumerate(order)
    ]
    return told(figure, title, pair.setting, sentence, tabled(columns, rows))
