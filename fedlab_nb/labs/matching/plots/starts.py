"""Accuracy against α of the plain and the matched average, for a common start and for different ones."""

from collections.abc import Mapping

from ....plots.axes import end_labels, level_line, log_axis, percent_axis, seed_lines
from ....plots.style import ACCENT, SECOND, Picture, drawing, dress
from ....plots.words import mean_percent, tabled
from ..averages import STARTS

COLOURS = {"same": ACCENT, "different": SECOND}
Accuracies = Mapping[float, Mapping[int, float]]  # {α: {seed: accuracy 0–1}}


def starts(lines: Mapping[str, Mapping[str, Accuracies]], setting: str, chance: float) -> Picture:
    """`lines`: start (of STARTS) -> "plain" and "matched" -> accuracies;   chance: accuracy of guessing."""
    alphas = sorted(next(iter(lines.values()))["plain"])
    labels, rows = [], []
    with drawing() as (figure, ax):
        dress(ax, title="Test accuracy", x="α (smaller: more skewed)", grid="y")
        for start, both in lines.items():
            for kind, dashes in (("matched", "-"), ("plain", (0, (3, 2)))):
                points = both[kind]
                seeds = sorted(points[alphas[0]])
                runs = {seed: [(alpha, points[alpha][seed]) for alpha in alphas] for seed in seeds}
                _, y = seed_lines(ax, runs, COLOURS[start], "o", ls=dashes)
                labels.append((y[-1], f"{kind}, {STARTS[start]}", COLOURS[start]))
                rows.append((f"{kind}, {STARTS[start]}", *(mean_percent(points[alpha]) for alpha in alphas)))
        log_axis(ax, ticks=alphas)
        percent_axis(ax)
        level_line(ax, chance, "guessing", left=True)
        end_labels(ax, labels)
    names = [f"α = {alpha:g}" for alpha in alphas]
    words = "; ".join(
        f"{name}: " + ", ".join(f"{share} at {at}" for share, at in zip(shares, names, strict=True))
        for name, *shares in rows
    )
    return Picture(
        figure,
        alt=f"Four lines of test accuracy against α ({setting}): {words}.",
        sentence=f"{words}.",
        table=tabled(["average", *names], rows),
    )
