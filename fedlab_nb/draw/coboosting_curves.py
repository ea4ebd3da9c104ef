"""Teacher and student by server epoch, beside flat references."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .style import ACCENT, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import gap, is_noise, percent, seeds_of

TEACHER, STUDENT = "ensemble (teacher)", "server model (student)"
REFERENCE = ("#009E73", "#CC79A7", "#7F7F7F", "#E69F00", "#56B4E9")


def curves(
    ensemble: Mapping[int, Sequence[float]],
    server: Mapping[int, Sequence[tuple[float, float]]],
    references: Mapping[str, Mapping[int, float]],
    *,
    setting: str,
    chance: float | None = None,
) -> Picture:
    """Test accuracy of A_w after each epoch `{seed: [T]}` and of the server model `{seed: [(epoch, accuracy), …]}`.

    server: empty where no server model was asked for
    references: `{name: {seed: accuracy}}`, flat lines at their mean over the same seeds;   chance: of guessing
    """
    with LOCK:
        figure = new_figure()
        ax = dress(figure.subplots(), x="server epoch", y="test accuracy", grid="y")
        done = [(TEACHER, SECOND, "o", {s: list(enumerate(v, 1)) for s, v in ensemble.items()})]
        done += [(STUDENT, ACCENT, "s", server)] if server else []
        labels = []
        for name, colour, marker, runs in done:
            for points in runs.values():
                ax.plot(*zip(*points, strict=True), color=colour, lw=0.9, alpha=0.35 if len(runs) > 1 else 0)
            x, y = middle(runs)
            ax.plot(x, y, marker=marker, color=colour, lw=2.2, ms=4.5, clip_on=False)
            labels.append((y[-1], f"{name} {percent(y[-1])}", colour))
        last = max(len(v) for v in ensemble.values())
        for i, (name, values) in enumerate(references.items()):
            level, colour = mean(values.values()), REFERENCE[i % len(REFERENCE)]
            ax.axhline(level, color=colour, lw=1.5, ls=(0, (5, 2)))
            labels.append((level, f"{name} {percent(level)}", colour))
        if chance:
            ax.axhline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
            labels.append((chance, "guessing", QUIET))
        name_lines(ax, labels, last)
        ax.set_xlim(1, max(last, 2))
        ax.set_ylim(0, 1)
        ax.yaxis.set_major_formatter(PERCENT)
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    teacher = {seed: values[-1] for seed, values in ensemble.items()}
    first = {seed: values[0] for seed, values in ensemble.items()}
    student = {seed: points[-1][1] for seed, points in server.items()}
    rows = {f"{TEACHER}, first epoch": first, f"{TEACHER}, last epoch": teacher, f"{STUDENT}, last epoch": student}
    rows = {name: values for name, values in rows.items() if values}
    return Picture(
        figure,
        alt=(
            f"Lines of test accuracy by server epoch ({setting}, {seeds_of(ensemble)}): "
            + "; ".join(text for _, text, _ in labels)
            + "."
        ),
        sentence=sentence(first, teacher, student),
        table=[
            {
                "what": name,
                "accuracy": percent(mean(v.values())),
                **{f"seed {s}": f"{100 * a:.1f} %" for s, a in v.items()},
            }
            for name, v in {**rows, **references}.items()
        ],
    )


def middle(runs: Mapping[int, Sequence[tuple[float, float]]]) -> tuple[list[float], list[float]]:
    """Mean over seeds at the epochs that all of them have."""
    shared = sorted(set.intersection(*({x for x, _ in points} for points in runs.values())))
    return shared, [mean(dict(points)[x] for points in runs.values()) for x in shared]


def name_lines(ax: Axes, labels: Sequence[tuple[float, str, str]], last: int) -> None:
    """Each line's name at its right end, none on top of another."""
    below = -math.inf
    for level, text, colour in sorted(labels):
        below = max(level, below + 0.052)
        ax.text(
            max(last, 2) + 0.02 * max(last - 1, 1), below, text, color=colour, fontsize=9.5, va="center",
            clip_on=False, gid="outside",
        )  # fmt: skip


def told(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    """'+9 ± 4 points, more than noise' of a − b, paired by seed."""
    difference, wide = gap(a, b)
    text = f"{100 * difference:+.0f}"
    if math.isnan(wide):
        return f"{text} points, one seed: nobody can tell whether that is noise"
    return f"{text} ± {100 * wide:.0f} points, {'within the' if is_noise(difference, wide) else 'more than'} noise"


def sentence(first: Mapping[int, float], teacher: Mapping[int, float], student: Mapping[int, float]) -> str:
    rise = f"The ensemble goes from {percent(mean(first.values()))} to {percent(mean(teacher.values()))}"
    end = f"The server model ends at {percent(mean(student.values()))}" if student else ""
    if len(first) == 1:
        below = f", {abs(100 * gap(student, teacher)[0]):.0f} points from its teacher" if student else ""
        return f"{rise}. {end}{below}. One seed: nobody can tell what of this is noise.".replace(" . ", " ")
    text = f"{rise} ({told(teacher, first)})."
    return f"{text} {end}; against its teacher, {told(student, teacher)}." if student else text
