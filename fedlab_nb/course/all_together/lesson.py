"""all together: accuracy against bytes, of all methods on three data sets; its pictures
and exercises.

The pictures are made of the stored results, ten seeds each. The race and the panel are the reader's
own runs.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from ...data import find_title
from ...methods import METHODS
from ...plots import Picture
from ...plots.identity import shorten_title
from ...plots.kit import describe_picture
from ...plots.series import Series
from ...plots.study import pareto
from ...plots.style import ACCENT, QUIET, drawing, dress, set_bytes_axis, set_percent_axis
from ...plots.vector import mark
from ...plots.words import build_table, data_size, format_share, join_words, percent
from ...studies import Outcome, Outcomes, stored_results
from ...studies.lesson_runs import ALPHA, CLIENTS, MANY, runs, title
from ...studies.statistics import t_quantile
from ...studies.stored_rows import FOLDER, Row, read_rows
from ..kit import Build, Verdict, exercises
from ..kit.claims import BELOW, chosen_gaps, two_kinds


class LabelPlace(NamedTuple):
    """Where a method's name stands beside its dot: alignment, and the shift in points."""

    horizontal: str
    vertical: str
    right: float
    up: float


LEFT = LabelPlace("right", "center", -7, 0)
RIGHT = LabelPlace("left", "center", 7, 0)
ABOVE = LabelPlace("center", "bottom", 0, 5)
BELOW_DOT = LabelPlace("center", "top", 0, -6)

# The methods that are named in a picture, beaten or not.
NAMED = {
    "fedavg": LEFT,
    "ensemble": LEFT,
    "fedlpa": LabelPlace("left", "top", -5, -7),
    "afl": BELOW_DOT,
    "fedpft": BELOW_DOT,
    "distilled": LabelPlace("center", "bottom", -8, 6),
    "fusefl": RIGHT,
    "fens": ABOVE,
    "gauss": LabelPlace("left", "bottom", -8, 6),
    "fedadam": LabelPlace("right", "top", 6, -6),
}
NAMED_AT_HOSPITALS = {
    "fedpft": BELOW_DOT,
    "afl": ABOVE,
    "distilled": BELOW_DOT,
    "gauss": ABOVE,
    "fedavg": LEFT,
    "ensemble": LEFT,
    "fens": LabelPlace("left", "top", 7, 1),
    "fedlpa": LabelPlace("left", "bottom", 7, -3),
    "fusefl": RIGHT,
    "fedadam": BELOW_DOT,
}
NAMED_ON_GLYPHS = {
    **NAMED,
    "distilled": LabelPlace("right", "bottom", 12, 9),
    "fedlpa": LabelPlace("center", "top", 2, -6),
}
NAMED_ON_MNIST = {**NAMED, "fens": LabelPlace("right", "bottom", 0, 6)}


class Frame(NamedTuple):
    """The names in the picture of a data set, and the ends of its accuracies."""

    named: Mapping[str, LabelPlace]
    low: float
    high: float


FRAMES = {
    "digits": Frame(NAMED, 0.1, 1.06),
    "heart": Frame(NAMED_AT_HOSPITALS, 0.72, 0.88),
    "glyphs:16g": Frame(NAMED_ON_GLYPHS, 0.1, 1.06),
    "mnist:5k": Frame(NAMED_ON_MNIST, 0.3, 1.06),
}


# ---------------------------------------------------------------------------------- who is beaten
def rows(dataset: str) -> list[Row]:
    """The stored rows of a data set, ten seeds each: ten clients and α = 0.1, or the four
    hospitals.
    """
    if dataset in stored_results.SETS:
        table = stored_results.load(dataset)
        return [table.rows[method, ALPHA, CLIENTS] for method in table.methods]
    _, rows_of_sets = read_rows(FOLDER / "sets.json")
    return [row for row in rows_of_sets if dataset.startswith(row["runs"]) and "failed" not in row]


def all_methods(dataset: str = "digits") -> list[Series]:
    """The stored results of all methods but the two bounds."""
    series = []
    for row in rows(dataset):
        if METHODS[row["method"]].info.group == "References":
            continue
        series.append(
            Series(
                title(row["method"]),
                accuracies=dict(zip(row["seeds"], row["accuracy"], strict=True)),
                up=mean(row["bytes_up"]),
                down=mean(row["bytes_down"]),
            )
        )
    return series


def front(rows: Sequence[Series]) -> list[str]:
    """Who is not beaten, cheapest first: no other one is at least as accurate for no more bytes,
    and better in one.
    """
    return pareto({row.name: (row.total, row.mean) for row in rows})


def stored_percent(method: str, dataset: str) -> float:
    """Mean stored accuracy, in per cent."""
    return 100 * mean(stored_results.load(dataset).accuracies(method, ALPHA, CLIENTS).values())


def prices(*datasets: str) -> Picture:
    """A picture a data set: a dot a method, accuracy against bytes. Blue and joined: those that are
    not beaten.
    """
    rows = []
    sentences = []
    size = (4.2 + 2.8 * len(datasets), 4.2)
    with drawing(1, len(datasets), size=size, squeeze=False) as (figure, axes):
        for dataset, ax in zip(datasets, axes.flat, strict=True):
            series = all_methods(dataset)
            best = front(series)
            draw_prices(ax, dataset, series, best)
            name = find_title(dataset)
            for row in sorted(series, key=lambda row: row.total):
                is_beaten = "no" if row.name in best else "yes"
                accuracy = f"{format_share(row.band)} %"
                rows.append((name, row.name, accuracy, data_size(row.total), is_beaten))
            sentences.append(describe_front(name, series, best))
    return describe_picture(
        figure,
        "Accuracy against bytes of all clients, a dot a method",
        describe_settings(datasets),
        " ".join(sentences),
        build_table("data | method | accuracy | bytes | beaten", rows),
    )


def draw_prices(ax: Any, dataset: str, series: Sequence[Series], best: Sequence[str]) -> None:
    """The dots of one data set; `best`: the methods that are not beaten."""
    frame = FRAMES.get(dataset, FRAMES["digits"])
    by_name = {row.name: row for row in series}
    x_label = "bytes of all clients, both ways"
    dress(ax, title=find_title(dataset), x=x_label, y="test accuracy", grid="both")
    best_bytes = [by_name[name].total for name in best]
    best_accuracies = [by_name[name].mean for name in best]
    ax.plot(best_bytes, best_accuracies, color=ACCENT, lw=1.2, zorder=0.8)
    for row in series:
        (dot,) = ax.plot(row.total, row.mean, "o", color=QUIET, ms=4, zorder=1)
        mark(dot, row.says, method=row.name)
    for method, place in frame.named.items():
        row = by_name.get(title(method))
        if row is None:  # this method was not run on these data
            continue
        colour = ACCENT if row.name in best else QUIET
        ax.plot(row.total, row.mean, "o", color=colour, ms=8)
        ax.annotate(
            shorten_title(row.name),
            (row.total, row.mean),
            (place.right, place.up),
            textcoords="offset points",
            ha=place.horizontal,
            va=place.vertical,
            color=colour,
            fontsize=9,
        )
    set_bytes_axis(ax, [row.total for row in series], pad=4)
    set_percent_axis(ax, "y", frame.high, low=frame.low)


def describe_front(name: str, series: Sequence[Series], best: Sequence[str]) -> str:
    """Which methods are not beaten on a data set of that name."""
    by_name = {row.name: row for row in series}
    descriptions = []
    for method in best:
        row = by_name[method]
        descriptions.append(f"{method} ({data_size(row.total)}, {percent(row.mean)})")
    return (
        f"{name}: {len(best)} of {len(series)} methods are not beaten: {join_words(descriptions)}."
    )


def describe_settings(datasets: Sequence[str]) -> str:
    """How the data sets are divided among clients."""
    settings = []
    for dataset in datasets:
        setting = f"α = {ALPHA:g}, {CLIENTS} clients"
        if dataset == "heart":
            setting = "four hospitals"
        if setting not in settings:
            settings.append(setting)
    return f"{join_words(settings)}, means of ten seeds"


# ---------------------------------------------------------------------------- many rounds, sureness
def overtaken_in(target: str, method: str) -> int:
    """The round in which `method` first passes the final accuracy of `target`; first seed's curves.
    0: never.
    """
    goal, other = runs([target, method], seeds=1)
    rounds = [point for point in other.history if point["phase"] == "rounds"]
    for round_number, point in enumerate(rounds, 1):
        if point["accuracy"] > goal.accuracy:
            return round_number
    return 0


def confidence(outcomes: Sequence[Outcome], method: str = "ensemble") -> float:
    """How sure `method` is: the mean probability of the class that it names, in percent, over its
    outcomes.
    """
    return 100 * mean(o.calibration.mean_confidence for o in outcomes if o.method == method)


# ---------------------------------------------------------------------------------- exercises
def worth_it(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: in one setting FedLPA is clearly better than the cheaper ensemble,
    in another clearly worse. Both are found on validation images; the test images are looked at for
    these two alone.
    """

    def describe(conditions: tuple) -> str:
        return f"{conditions[0].dataset}, α = {conditions[0].alpha:g}"

    gaps = chosen_gaps(outcomes, None, "fedlpa", "ensemble", describe)
    return two_kinds(gaps, others=(BELOW,), **words)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 2."""
    pair = ("ensemble", "fedlpa")
    digits = runs(pair, seeds=MANY)
    letters = runs(pair, 1, dataset="glyphs:16g", seeds=MANY)
    return Outcomes([*digits, *letters])


# ---------------------------------------------------------------------------- the function to build


def paired_band(a, b):
    """Mean of the differences a - b, seed by seed, and half the width of its 95 % band."""
    from scipy import stats

    gaps = a - b
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * error


def variant(gaps, ddof=1, factor=None, root=0.5):
    """Mean and half width with one part changed: `ddof` of the spread, the `factor` instead of t,
    the `root` of n.
    """
    n = len(gaps)
    if factor is None:
        factor = t_quantile(n - 1)
    return gaps.mean(), factor * gaps.std(ddof=ddof) / n**root


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
    """Accuracies of two methods on n seeds, in per cent: a seed is easy or hard for both, as in a
    federation.
    """
    seeds = stream.normal(60, 12, size=n)
    first = seeds + stream.normal(0, 4, size=n)
    second = seeds + stream.normal(1, 4, size=n)
    return first, second


SIZES = ((3,), (5,), (10,), (4,))  # seeds
q1, q2, q3 = exercises(
    __name__, q2=(worth_it, solution_runs), q3=Build(paired_band, SIZES, hidden, SLIPS)
)
