"""FENS distilled into one network: who reaches what with how many numbers, and how the student learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from .accuracy import PERCENT
from .style import ACCENT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import percent

ALONE, AVERAGE, TEACHER, STUDENT = "mean client alone", "plain average", "FENS", "one student"
HUES = {ALONE: "#7F7F7F", AVERAGE: SECOND, TEACHER: ACCENT, STUDENT: "#009E73"}


def distilled(
    accuracies: Mapping[str, float], numbers: Mapping[str, int], curve: Sequence[float], *, setting: str, steps: int,
    images: int, agreement: float,
) -> Picture:  # fmt: skip
    """`accuracies` and `numbers` (that predict) by ALONE, AVERAGE, TEACHER, STUDENT; `curve`: the student's accuracy.

    steps, images: of the distillation;   agreement: share of the public images on which student and teacher agree
    """
    with LOCK:
        figure = new_figure()
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        bars(left, accuracies, numbers)
        dress(right, title="The student learns", x=f"distillation step (of {steps})", grid="y")
        x = [steps * (i + 1) / len(curve) for i in range(len(curve))]
        right.plot(x, curve, "o-", color=HUES[STUDENT], lw=1.8, ms=4)
        for name, high in ((TEACHER, 0.015), (AVERAGE, 0.015)):
            right.axhline(accuracies[name], color=HUES[name], lw=1.4, ls=(0, (4, 2)))
            right.text(steps, accuracies[name] + high, name, ha="right", fontsize=9, color=HUES[name])
        right.set_ylim(0, 1.03)
        right.set_xlim(0, steps * 1.02)
        right.yaxis.set_major_formatter(PERCENT)
    gap = 100 * (accuracies[STUDENT] - accuracies[TEACHER])
    factor = numbers[TEACHER] / max(numbers[STUDENT], 1)
    told = ", ".join(f"{name} {percent(value)}" for name, value in accuracies.items())
    sided = "as much as" if abs(gap) < 0.5 else f"{abs(gap):.0f} points {'more' if gap > 0 else 'less'} than"
    return Picture(
        figure,
        alt=f"Bars of accuracy and the student's learning curve ({setting}): {told}.",
        sentence=f"One student network reaches {percent(accuracies[STUDENT])}, {sided} the whole FENS model "
        f"({percent(accuracies[TEACHER])}), with {factor:.3g} times fewer numbers; the plain average has "
        f"{percent(accuracies[AVERAGE])}. It learnt from {images} unlabelled images at the server and agrees with FENS "
        f"on {percent(agreement)} of them; no client sent anything more.",
        table=[
            {"who": name, "accuracy": percent(value), "numbers that predict": numbers[name]}
            for name, value in accuracies.items()
        ],
    )


def bars(ax: Axes, accuracies: Mapping[str, float], numbers: Mapping[str, int]) -> None:
    dress(ax, title="Test accuracy", grid="x")
    for i, (name, value) in enumerate(accuracies.items()):
        ax.barh(i, value, height=0.55, color=HUES[name], alpha=0.85)
        ax.text(value + 0.015, i, f"{100 * value:.0f}", va="center", fontsize=10, color=INK, fontweight="bold")
    labels = [f"{name}\n{numbers[name]:,} numbers".replace(",", "\u202f") for name in accuracies]
    ax.set_yticks(range(len(accuracies)), labels, fontsize=9.5)
    ax.set_ylim(len(accuracies) - 0.45, -0.55)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PERCENT)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("accuracy, one seed", fontsize=9, color=QUIET)
