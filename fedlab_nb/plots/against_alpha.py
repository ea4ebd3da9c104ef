"""Accuracy against α: one line a method, a 95 % band of Student's t over the seeds."""

from collections.abc import Mapping

from .axes import level_line, log_axis, percent_axis
from .series import Series
from .style import Picture, drawing, dress, legend
from .words import mean_percent


def against_alpha(
    accuracies: Mapping[str, Mapping[float, Mapping[int, float]]], *, setting: str, chance: float | None = None,
    methods: Mapping[str, str] | None = None,
) -> Picture:  # fmt: skip
    """`{method: {alpha: {seed: accuracy 0–1}}}` as lines over a logarithmic α axis; `chance`: accuracy of guessing.

    methods: {what a line is called: its method}, for lines with names of their own
    """
    alphas = sorted({alpha for points in accuracies.values() for alpha in points})
    with drawing(size=(7.6, 3.6)) as (figure, ax):
        dress(ax, x="α (smaller: more skewed)", y="test accuracy", grid="y")
        for label, points in accuracies.items():
            method = (methods or {}).get(label, "")
            row = [Series(label, method=method, accuracies=points[a]) for a in sorted(points)]
            ends, (hue, marker, dashes) = [s.ends or (s.mean, s.mean) for s in row], row[0].look
            ax.fill_between(sorted(points), *zip(*ends, strict=True), color=hue, alpha=0.18, lw=0)
            line = {"color": hue, "marker": marker, "ls": dashes, "lw": 1.9, "ms": 6, "label": label}
            ax.plot(sorted(points), [s.mean for s in row], **line)
        log_axis(ax, ticks=alphas)
        percent_axis(ax)
        if chance:
            level_line(ax, chance, "guessing")
        legend(ax)
    table = [
        {"method": label, **{f"α = {a:g}": mean_percent(points[a]) for a in alphas if a in points}}
        for label, points in accuracies.items()
    ]
    rows = "; ".join(f"{row['method']}: " + ", ".join(f"{row[a]} at {a}" for a in list(row)[1:]) for row in table)
    low, high = (f"α = {a:g}" for a in (alphas[0], alphas[-1]))
    ends = "; ".join(f"{row['method']} {row[low]} at {low}, {row[high]} at {high}" for row in table)
    return Picture(figure, f"Lines of test accuracy against α ({setting}): {rows}.", f"{ends}.", table)
