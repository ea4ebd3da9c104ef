"""The loss barrier: loss or accuracy on the straight line between two clients' networks, before and after matching."""

from ....plots.axes import few_ticks, level_line, percent_axis
from ....plots.style import ACCENT, SECOND, Picture, drawing, dress, legend
from ....plots.words import percent, tabled
from ..numbers import Pair

MEASURES = ("loss", "accuracy")
WORDS = {"rebasin": "Git Re-Basin", "greedy": "OT-Fusion (greedy)", "activations": "activations on noise"}


def barrier(pair: Pair, measure: str = "loss", chance: float | None = None) -> Picture:
    """`measure`: one of MEASURES;   chance: accuracy of guessing, drawn beside accuracies."""
    shown = {"as they stand": (pair.before, SECOND, (0, (4, 2))), "matched": (pair.after, ACCENT, "-")}
    with drawing() as (figure, ax):
        x = f"way: 0 is client {pair.a}, 1 is client {pair.b}, ½ their average"
        dress(ax, title=f"From client {pair.a} to client {pair.b}", x=x, y=f"test {measure}", grid="y")
        for name, (line, colour, dashes) in shown.items():
            ax.plot(line.along, getattr(line, measure), color=colour, ls=dashes, lw=2.2, label=f"units {name}")
        if measure == "accuracy":
            percent_axis(ax)
            if chance:
                level_line(ax, chance, "guessing")
        else:
            ax.set_ylim(bottom=0)
        few_ticks(ax, "x", 5, form="{:g}".format)
        ax.set_xlim(0, 1)
        legend(ax, loc="best")
    ends = f"{percent(pair.before.accuracy[0])} and {percent(pair.before.accuracy[-1])}"
    words = WORDS[pair.rule]
    return Picture(
        figure,
        alt=f"Two curves of test {measure} on the straight line from client {pair.a}'s network to client {pair.b}'s "
        f"({pair.setting}): with the units as they stand, and matched by {words}. Loss barriers "
        f"{pair.before.barrier:.2f} and {pair.after.barrier:.2f}; accuracy half-way {percent(pair.before.middle)} and "
        f"{percent(pair.after.middle)}, at the ends {ends}.",
        sentence=f"The loss barrier between clients {pair.a} and {pair.b} is {pair.before.barrier:.2f} with the units "
        f"as they stand, and {pair.after.barrier:.2f} after matching by {words}. Their average is right for "
        f"{percent(pair.before.middle)} before and {percent(pair.after.middle)} after matching. The two networks "
        f"themselves are right for {ends}.",
        table=tabled(
            "way | loss as they stand | loss matched | accuracy as they stand | accuracy matched",
            (
                (round(t, 2), round(a, 3), round(b, 3), percent(c), percent(d))
                for t, a, b, c, d in zip(
                    pair.before.along.tolist(),
                    pair.before.loss.tolist(),
                    pair.after.loss.tolist(),
                    pair.before.accuracy.tolist(),
                    pair.after.accuracy.tolist(),
                    strict=True,
                )  # fmt: skip
            ),
        ),
    )
