"""Accuracy against the number of poisoned clients: one line a method, a 95 % band of Student's t over the seeds."""

from collections.abc import Mapping

from .axes import few_ticks, level_line, percent_axis
from .series import Series
from .style import Picture, drawing, dress, legend
from .words import mean_percent


def against_poison(
    accuracies: Mapping[str, Mapping[int, Mapping[int, float]]], *, kind: str, setting: str,
    chance: float | None = None, methods: Mapping[str, str] | None = None,
) -> Picture:  # fmt: skip
    """`{method: {poisoned clients: {seed: accuracy 0–1}}}` as lines; `kind`: of the poison, such as "labels".

    methods: {what a line is called: its method}, for lines with names of their own;   chance: accuracy of guessing
    """
    with drawing(size=(7.6, 3.6)) as (figure, ax):
        dress(ax, x=f"poisoned clients ({kind})", y="test accuracy", grid="y")
        for label, points in accuracies.items():
            counts = sorted(points)
            row = [Series(label, method=(methods or {}).get(label, ""), accuracies=points[n]) for n in counts]
            ends, (hue, marker, dashes) = [s.ends or (s.mean, s.mean) for s in row], row[0].look
            ax.fill_between(counts, *zip(*ends, strict=True), color=hue, alpha=0.18, lw=0)
            line = {"color": hue, "marker": marker, "ls": dashes, "lw": 1.9, "ms": 6, "label": label}
            ax.plot(counts, [s.mean for s in row], **line)
        few_ticks(ax, "x", 8, whole=True)
        percent_axis(ax)
        if chance:
            level_line(ax, chance, "guessing")
        legend(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))
    every = sorted({n for points in accuracies.values() for n in points})
    table = [
        {"method": label, **{f"{n} poisoned": mean_percent(points[n]) for n in every if n in points}}
        for label, points in accuracies.items()
    ]
    ends_of = {label: (points[min(points)], min(points), points[max(points)], max(points))
               for label, points in accuracies.items()}  # fmt: skip
    words = "; ".join(
        f"{label} {mean_percent(first)} with {few} poisoned, {mean_percent(last)} with {many}"
        for label, (first, few, last, many) in ends_of.items()
    )
    alt = f"Lines of test accuracy against the number of poisoned clients ({kind}; {setting}): {words}."
    return Picture(figure, alt, f"{words}.", table)
