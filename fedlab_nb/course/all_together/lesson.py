"""Lesson 08, all together: accuracy against bytes, of all methods on three data sets; its pictures and exercises.

The pictures are made of the stored results, ten seeds each. The race and the panel are the reader's own runs.
"""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from ...data import title_of
from ...methods import METHODS
from ...plots import Picture
from ...plots.axes import bytes_axis, percent_axis
from ...plots.identity import shorten_title
from ...plots.kit import told
from ...plots.series import Series
from ...plots.study import pareto
from ...plots.style import ACCENT, QUIET, drawing, dress
from ...plots.vector import mark
from ...plots.words import data_size, listed, number, percent, tabled
from ...studies import Outcome, Outcomes, stored
from ...studies.lesson_runs import ALPHA, CLIENTS, MANY, runs, title
from ...studies.rows import FOLDER, Row, read
from ...studies.statistics import t_quantile
from ..kit import Build, Verdict, exercises
from ..kit.claims import BELOW, chosen_gaps, two_kinds

LEFT, RIGHT = ("right", "center", -7, 0), ("left", "center", 7, 0)
UP, DOWN = ("center", "bottom", 0, 5), ("center", "top", 0, -6)
NAMED = {  # in a picture, beaten or not, and where the name stands
    "fedavg": LEFT, "ensemble": LEFT, "fedlpa": ("left", "top", -5, -7), "afl": DOWN, "fedpft": DOWN,
    "distilled": ("center", "bottom", -8, 6), "fusefl": RIGHT, "fens": UP, "gauss": ("left", "bottom", -8, 6),
    "fedadam": ("right", "top", 6, -6),
}  # fmt: skip
AT_HOSPITALS = {
    "fedpft": DOWN, "afl": UP, "distilled": DOWN, "gauss": UP, "fedavg": LEFT, "ensemble": LEFT,
    "fens": ("left", "top", 7, 1), "fedlpa": ("left", "bottom", 7, -3), "fusefl": RIGHT, "fedadam": DOWN,
}  # fmt: skip
FRAMES = {  # the names' places, and from where to where
    "digits": (NAMED, 0.1, 1.06),
    "heart": (AT_HOSPITALS, 0.72, 0.88),
    "glyphs:16g": (
        {**NAMED, "distilled": ("right", "bottom", 12, 9), "fedlpa": ("center", "top", 2, -6)},
        0.1,
        1.06,
    ),
    "mnist:5k": ({**NAMED, "fens": ("right", "bottom", 0, 6)}, 0.3, 1.06),
}


# ---------------------------------------------------------------------------------- who is beaten
def rows(dataset: str) -> list[Row]:
    """The stored rows of a data set, ten seeds each: ten clients and α = 0.1, or the four hospitals."""
    if dataset in stored.SETS:
        table = stored.load(dataset)
        return [table.rows[method, ALPHA, CLIENTS] for method in table.methods]
    return [
        row
        for row in read(FOLDER / "sets.json")[1]
        if dataset.startswith(row["runs"]) and "failed" not in row
    ]


def all_methods(dataset: str = "digits") -> list[Series]:
    """The stored results of all methods but the two bounds."""
    return [
        Series(
            title(row["method"]),
            accuracies=dict(zip(row["seeds"], row["accuracy"], strict=True)),
            up=mean(row["bytes_up"]),
            down=mean(row["bytes_down"]),
        )
        for row in rows(dataset)
        if METHODS[row["method"]].info.group != "References"
    ]


def front(rows: Sequence[Series]) -> list[str]:
    """Who is not beaten, cheapest first: no other one is at least as accurate for no more bytes, and better in one."""
    return pareto({s.name: (s.total, s.mean) for s in rows})


def stored_percent(method: str, dataset: str) -> float:
    """Mean stored accuracy, in per cent."""
    return 100 * mean(stored.load(dataset).accuracies(method, ALPHA, CLIENTS).values())


def prices(*datasets: str) -> Picture:
    """A picture a data set: a dot a method, accuracy against bytes. Blue and joined: those that are not beaten."""
    cells, words = [], []
    with drawing(1, len(datasets), size=(4.2 + 2.8 * len(datasets), 4.2), squeeze=False) as (
        figure,
        axes,
    ):
        for dataset, ax in zip(datasets, axes.flat, strict=True):
            named, low, high = FRAMES.get(dataset, FRAMES["digits"])
            made, name = {s.name: s for s in all_methods(dataset)}, title_of(dataset)
            best = front([*made.values()])
            dress(
                ax, title=name, x="bytes of all clients, both ways", y="test accuracy", grid="both"
            )
            ax.plot(
                *zip(*((made[m].total, made[m].mean) for m in best), strict=True),
                color=ACCENT,
                lw=1.2,
                zorder=0.8,
            )
            for s in made.values():
                mark(
                    ax.plot(s.total, s.mean, "o", color=QUIET, ms=4, zorder=1)[0],
                    s.says,
                    method=s.name,
                )
            for method, (across, up, right, higher) in named.items():
                if (of := made.get(title(method))) is None:  # not tried on these data
                    continue
                hue = ACCENT if of.name in best else QUIET
                ax.plot(of.total, of.mean, "o", color=hue, ms=8)
                style = {
                    "ha": across,
                    "va": up,
                    "color": hue,
                    "textcoords": "offset points",
                    "fontsize": 9,
                }
                ax.annotate(shorten_title(of.name), (of.total, of.mean), (right, higher), **style)
            bytes_axis(ax, [s.total for s in made.values()], pad=4)
            percent_axis(ax, "y", high, low=low)
            cells += [(name, s.name, f"{number(s.band)} %", data_size(s.total), "no" if s.name in best else "yes")
                      for s in sorted(made.values(), key=lambda s: s.total)]  # fmt: skip
            said = listed(
                [f"{m} ({data_size(made[m].total)}, {percent(made[m].mean)})" for m in best]
            )
            words.append(f"{name}: {len(best)} of {len(made)} methods are not beaten: {said}.")
    dealt = {"heart": "four hospitals"}  # to all others:
    groups = dict.fromkeys(
        dealt.get(dataset, f"α = {ALPHA:g}, {CLIENTS} clients") for dataset in datasets
    )
    setting = f"{listed([*groups])}, means of ten seeds"
    table = tabled("data | method | accuracy | bytes | beaten", cells)
    return told(
        figure,
        "Accuracy against bytes of all clients, a dot a method",
        setting,
        " ".join(words),
        table,
    )


# ---------------------------------------------------------------------------------- many rounds, sureness
def overtaken_in(target: str, method: str) -> int:
    """The round in which `method` first passes the final accuracy of `target`; first seed's curves. 0: never."""
    goal, other = runs([target, method], seeds=1)
    rounds = [p["accuracy"] > goal.accuracy for p in other.history if p["phase"] == "rounds"]
    return rounds.index(True) + 1 if any(rounds) else 0


def confidence(outcomes: Sequence[Outcome], method: str = "ensemble") -> float:
    """How sure `method` is: the mean probability of the class that it names, in percent, over its outcomes."""
    return 100 * mean(o.calibration.mean_confidence for o in outcomes if o.method == method)


# ---------------------------------------------------------------------------------- exercises
def worth_it(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: in one setting FedLPA is clearly better than the cheaper ensemble, in another clearly
    worse. Both are found on validation images; the test images are looked at for these two alone."""
    gaps = chosen_gaps(
        outcomes, None, "fedlpa", "ensemble", lambda at: f"{at[0].dataset}, α = {at[0].alpha:g}"
    )
    return two_kinds(gaps, others=(BELOW,), **words)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 2."""
    pair = ("ensemble", "fedlpa")
    digits = runs(pair, seeds=MANY)
    letters = runs(pair, 1, dataset="glyphs:16g", seeds=MANY)
    return Outcomes([*digits, *letters])


# ---------------------------------------------------------------------------------- the function to build


def paired_band(a, b):
    """Mean of the differences a - b, seed by seed, and half the width of its 95 % band."""
    from scipy import stats

    gaps = a - b
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * error


def variant(gaps, ddof=1, factor=None, root=0.5):
    """Mean and half width with one part changed: `ddof` of the spread, the `factor` instead of t, the `root` of n."""
    n = len(gaps)
    return gaps.mean(), (t_quantile(n - 1) if factor is None else factor) * gaps.std(
        ddof=ddof
    ) / n**root


def unpaired(a, b):
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return np.mean(a) - np.mean(b), t_quantile(2 * len(a) - 2) * error


SLIPS = {
    "ddof_0": lambda a, b: variant(a - b, ddof=0),
    "normal": lambda a, b: variant(a - b, factor=1.959963984540054),
    "n_degrees": lambda a, b: variant(a - b, factor=t_quantile(len(a))),
    "no_root": lambda a, b: variant(a - b, root=0),
    "unpaired": unpaired,
}


def hidden(stream: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies of two methods on n seeds, in per cent: a seed is easy or hard for both, as in a federation."""
    seed = stream.normal(60, 12, size=n)
    return seed + stream.normal(0, 4, size=n), seed + stream.normal(1, 4, size=n)


SIZES = ((3,), (5,), (10,), (4,))  # seeds
q1, q2, q3 = exercises(
    __name__, q2=(worth_it, solution_runs), q3=Build(paired_band, SIZES, hidden, SLIPS)
)
