"""Accuracy against the numbers sent and against rounds: what a large model at the server saves, and what it doesn't."""

from collections.abc import Mapping

import numpy as np

from ....plots.axes import few_ticks, level_line, log_axis, percent_axis, two_axes
from ....plots.style import INK, Picture, dress, legend, looks
from ....plots.words import percent, seeds_of, tabled
from ..numbers import Traffic, first_reached

Lines = Mapping[str, Mapping[int, Traffic]]


def traffic(lines: Lines, *, setting: str, target: float) -> Picture:
    """`lines`: {method: {seed: [(round, numbers sent so far, accuracy 0–1)]}}, the lab's method first. Numbers are
    model parameters up and down, all clients; `target`: the accuracy to be reached."""
    reached = {name: first_reached(of, target) for name, of in lines.items()}
    # Means over seeds, as far as every seed goes.
    middle = {name: np.mean([p[: min(map(len, of.values()))] for p in of.values()], 0) for name, of in lines.items()}
    with two_axes(left=0.115, between=0.06, sharey=True) as (figure, left, right):
        for ax, column in ((left, 1), (right, 0)):
            for name, (hue, mark, dashes) in looks(lines).items():
                of = lines[name]
                for points in of.values() if len(of) > 1 else ():
                    ax.plot([p[column] for p in points], [p[2] for p in points], color=hue, lw=0.8, alpha=0.3)
                mean = middle[name]
                ax.plot(mean[:, column], mean[:, 2], color=hue, ls=dashes, lw=2, marker=mark, ms=4, label=name)
                if reached[name] is not None:
                    ax.plot([reached[name][column]], [target], mark, ms=11, color=hue, mec=INK, mew=1.4, zorder=5)
            level_line(ax, target, percent(target) if ax is left else "", left=True, size=9)
            percent_axis(ax, top=1.02)
        dress(left, title="Against numbers sent", x="numbers, up and down (log)", y="accuracy", grid="y")
        dress(right, title="Against rounds", x="round", grid="y")
        last = max(point[0] for seeds in lines.values() for points in seeds.values() for point in points)
        right.set_xlim(0, max(last, 2) + 0.5)
        log_axis(left, form=amount)
        few_ticks(right, "x", 8, whole=True)
        legend(right, loc="best")
    there = [_words(name, lines[name], of, target) for name, of in reached.items()]
    sentence = f"To reach {percent(target)} ({seeds_of(next(iter(lines.values())))}): {'; '.join(there)}."
    if len(lines) > 1 and all(list(reached.values())[:2]):
        (own, first), (other, second) = list(reached.items())[:2]
        numbers, times = first[1] / second[1], first[0] / second[0]
        sentence += f" {own} needs {numbers:.2g} times the numbers and {times:.2g} times the rounds of {other}."
    alt = f"Accuracy against numbers sent and against rounds ({setting}). {sentence}"
    rows = []
    for name, of in lines.items():
        first = (amount(reached[name][1]), short(reached[name][0])) if reached[name] else ("not reached", "")
        best = percent(max(p[2] for points in of.values() for p in points))
        rows.append((name, *first, best, amount(middle[name][-1, 1])))
    columns = f"method | numbers to {percent(target)} | rounds | best accuracy | numbers in all"
    return Picture(figure, alt, sentence, tabled(columns, rows))


def _words(name: str, of: Mapping[int, Traffic], reached: tuple[float, float] | None, target: float) -> str:
    """When the target is reached, or that some seeds never get there."""
    if reached:
        return f"{name} {amount(reached[1])} numbers in {short(reached[0])} round{'s' * (reached[0] != 1)}"
    there = sum(any(p[2] >= target for p in points) for points in of.values())
    return f"{name} does not get there" if not there else f"{name} gets there in {there} of {len(of)} seeds"


def short(rounds: float) -> str:
    """8.667 -> '8.7', 8 -> '8'."""
    return f"{rounds:.1f}".removesuffix(".0")


def amount(count: float) -> str:
    """1234567 -> '1.23 M'."""
    for unit in ("", " k", " M"):
        if abs(count) < 999.5:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} G"
