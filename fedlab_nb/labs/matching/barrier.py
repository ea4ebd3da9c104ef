"""The loss barrier: loss or accuracy on the straight line between two clients' networks, before and after matching."""

import ipywidgets as widgets

from ...panels import PanelState, made
from ...plots import Picture, drawing, dress, percent, tabled, told
from ...plots.axes import end_labels, few_ticks, level_line, percent_axis
from ...plots.style import ACCENT, SECOND
from .pairs import RULES, Pair, TwoClients


class Barrier(TwoClients):
    """Loss or accuracy on the straight line between two clients, with the units as they stand and matched."""

    name, title = "barrier", "Barrier"

    def __init__(self) -> None:
        super().__init__()
        help = "What is drawn along the line"
        self.measure = made(
            widgets.Dropdown, label="Show", help=help, width=150, options=["loss", "accuracy"]
        )

    def draw(self, state: PanelState) -> Picture:
        return barrier(self.pair(state), self.measure.value, 1 / len(state.class_names))


def barrier(pair: Pair, measure: str, chance: float) -> Picture:
    """`measure`: "loss" or "accuracy";   chance: accuracy of guessing, drawn beside accuracies."""
    shown = {
        "as they stand": (pair.before, SECOND, (0, (4, 2))),
        "matched": (pair.after, ACCENT, "-"),
    }
    a, b = pair.names
    title = f"From client {a} to client {b}"
    with drawing() as (figure, ax):
        x = f"way: 0 is client {a}, 1 is client {b}, ½ their average"
        dress(ax, title=title, x=x, y=f"test {measure}", grid="y")
        for name, (line, colour, dashes) in shown.items():
            ax.plot(
                line.along,
                getattr(line, measure),
                color=colour,
                ls=dashes,
                lw=2.2,
                label=f"units {name}",
            )
        if measure == "accuracy":
            percent_axis(ax)
            level_line(ax, chance, "guessing")
        few_ticks(ax, "x", 5, form="{:g}".format)
        ax.set_xlim(0, 1)
        end_labels(
            ax, [(getattr(line, measure)[-1], name, hue) for name, (line, hue, _) in shown.items()]
        )
    before, after = pair.before, pair.after
    sentence = (
        f"The loss barrier between clients {a} and {b} is {before.barrier:.2f} with the units as they stand, "
        f"and {after.barrier:.2f} after matching by {RULES[pair.rule]}. Their average is right for "
        f"{percent(before.middle)} before and {percent(after.middle)} after matching. The two networks themselves are "
        f"right for {percent(before.accuracy[0])} and {percent(before.accuracy[-1])}."
    )
    losses = zip(before.along.round(2), before.loss.round(3), after.loss.round(3), strict=True)
    shares = zip(map(percent, before.accuracy), map(percent, after.accuracy), strict=True)
    columns = "way | loss as they stand | loss matched | accuracy as they stand | accuracy matched"
    rows = [(*map(float, loss), *share) for loss, share in zip(losses, shares, strict=True)]
    return told(figure, f"{title}: test {measure}", pair.setting, sentence, tabled(columns, rows))
