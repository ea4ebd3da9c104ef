"""Who was matched with whom: how alike the units of two clients are, before and after one is put in order."""

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import no_spines
from ....plots.kit import table_colours
from ....plots.style import QUIET, Picture, drawing, heading
from ....plots.words import tabled
from ..numbers import Pair

LIMIT = 0.8  # of the colours; hardly a cosine is larger


def partners(pair: Pair, layer: int) -> Picture:
    """Heat-maps of the cosines of layer number `layer`: client b's units as they stand, and in the order found.

    Client a's units come with the best pair first; on the diagonal are the two that an average mixes.
    """
    alike, order = pair.similarity[layer], pair.orders[layer]
    first = np.argsort(-alike[np.arange(len(order)), order], kind="stable")
    own, after = alike[np.ix_(first, first)], alike[np.ix_(first, order[first])]
    before, matched = (float(np.diagonal(table).mean()) for table in (own, after))
    moved = int((order != np.arange(len(order))).sum())
    with drawing(1, 2) as (figure, (left, right)):
        for ax, table, title in ((left, own, "as they stand"), (right, after, "matched")):
            image = heat(ax, table, title, pair)
        left.set_ylabel(f"units of client {pair.a}, best pair first", fontsize=10, color=QUIET)
        figure.colorbar(image, ax=[left, right], shrink=0.75, label="cosine of the incoming weights")
    return Picture(
        figure,
        alt=f"Two heat-maps of the {len(order)} units of {pair.layers[layer]} of client {pair.a} (down) and client "
        f"{pair.b} (across; {pair.setting}): as they stand the diagonal has a mean cosine of {before:.2f}, in the "
        f"order that {pair.rule} found {matched:.2f}.",
        sentence=f"{moved} of {len(order)} units of client {pair.b} find their partner at another place in "
        f"{pair.layers[layer]}; the mean cosine of partners goes from {before:.2f} to {matched:.2f}.",
        table=tabled(
            f"unit of client {pair.a} | partner of client {pair.b} | cosine | cosine with the unit of the same number",
            (
                (i, int(j), round(float(alike[i, j]), 2), round(float(alike[i, i]), 2))
                for i, j in enumerate(order.tolist())
            ),
        ),
    )


def heat(ax: Axes, table: np.ndarray, title: str, pair: Pair):
    """One of the two tables; returns the image for the colour bar."""
    image = ax.imshow(table, cmap=table_colours(signed=True), vmin=-LIMIT, vmax=LIMIT, interpolation="nearest")
    heading(ax, title)
    ax.set_xlabel(f"units of client {pair.b}", fontsize=10, color=QUIET)
    ax.set(xticks=[], yticks=[])
    no_spines(ax)
    return image
