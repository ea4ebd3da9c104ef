"""FENS distilled into one network: who reaches what with how many numbers, and how the student learns."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from ....plots.axes import level_line, percent_axis, rows_axis
from ....plots.style import INK, Picture, drawing, dress, look
from ....plots.words import percent
from ....study import Outcome
from ..numbers import ALONE, AVERAGE, FENS, STUDENT, distillation

LIKE = {ALONE: "local", AVERAGE: "ensemble", FENS: "fens", STUDENT: STUDENT}  # whose colour each has
HUES = {name: look(method).colour for name, method in LIKE.items()}


def distilled(outcome: Outcome, *, setting: str) -> Picture:
    """Of a run of FENS with `distil`: the four who can predict, and the student's accuracy while it learnt."""
    accuracies, sizes = distillation(outcome)
    steps, report = outcome.options["distil_steps"], outcome.report
    curve = [p["accuracy"] for p in outcome.history if p["phase"] == "distillation"]
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        bars(left, accuracies, sizes)
        dress(right, title="The student learns", x=f"distillation step (of {steps})", grid="y")
        x = [steps * (i + 1) / len(curve) for i in range(len(curve))]
        right.plot(x, curve, "o-", color=HUES[STUDENT], lw=1.8, ms=4)
        for name in (FENS, AVERAGE):
            level_line(right, accuracies[name], name, colour=HUES[name], lw=1.4, ls=(0, (4, 2)), size=9)
        right.set_xlim(0, steps * 1.02)
        percent_axis(right, "y", 1.03)
    gap = 100 * (accuracies[STUDENT] - accuracies[FENS])
    factor = sizes[FENS] / max(sizes[STUDENT], 1)
    each = ", ".join(f"{name} {percent(value)}" for name, value in accuracies.items())
    sided = "as much as" if abs(gap) < 0.5 else f"{abs(gap):.0f} points {'more' if gap > 0 else 'less'} than"
    alt = f"Bars of accuracy and the student's learning curve ({setting}): {each}."
    sentence = (
        f"One student network reaches {percent(accuracies[STUDENT])}, {sided} the whole FENS model "
        f"({percent(accuracies[FENS])}), with {factor:.3g} times fewer numbers; the plain average has "
        f"{percent(accuracies[AVERAGE])}. It learnt from {report.public_images} unlabelled images at the server and "
        f"agrees with FENS on {percent(report.agreement)} of them; no client sent anything more."
    )
    rows = [{"who": n, "accuracy": percent(v), "numbers that predict": sizes[n]} for n, v in accuracies.items()]
    return Picture(figure, alt, sentence, rows)


def bars(ax: Axes, accuracies: Mapping[str, float], sizes: Mapping[str, int]) -> None:
    dress(ax, title="Test accuracy", x="accuracy, one seed", grid="x", size=9)
    ax.barh(range(len(accuracies)), accuracies.values(), height=0.55, color=[HUES[n] for n in accuracies], alpha=0.85)
    for i, value in enumerate(accuracies.values()):
        ax.text(value + 0.015, i, f"{100 * value:.0f}", va="center", fontsize=10, color=INK, fontweight="bold")
    rows_axis(ax, [f"{name}\n{sizes[name]:,} numbers".replace(",", "\u202f") for name in accuracies], size=9.5)
    percent_axis(ax, "x")
