"""Pictures of a study's results: against an axis, against bytes with the Pareto front, as a heat-map, and differences.

plot_study(results, "alpha")            lines over any numeric axis, with 95 % bands over the seeds
plot_study(results, "bytes")            accuracy against bytes; the methods that nothing beats on both are joined
plot_study(results, "alpha x clients", method="fens")
plot_study(results, "differences", reference="fedavg")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import UsageError, choose
from ..studies.results import Results
from ..studies.statistics import Band, band, difference
from .kit import describe_picture, draw_heat_map, draw_lines, draw_points
from .series import Series
from .style import (
    PERCENT,
    QUIET,
    Look,
    Picture,
    draw_colour_bar,
    draw_end_labels,
    draw_level_line,
    drawing,
    dress,
    is_narrow,
    look,
    looks,
    set_log_axis,
    set_percent_axis,
    set_row_axis,
)
from .words import Setting, build_table, data_size, format_share, percent

if TYPE_CHECKING:
    from pandas import DataFrame

LABELS = {
    "alpha": "α (smaller: more skewed)",
    "α": "α (smaller: more skewed)",
    "clients": "clients M",
}
Bands = Mapping[
    Any, Mapping[int, float] | Band
]  # {value of the axis: {seed: accuracy}, or their band}


def plot_study(results: Results, against: str = "alpha", **options: Any) -> Picture:
    """The picture that `against` names: an axis of the study, "bytes", "A x B" of two axes, or "differences".

    options: `method=` for a heat-map, `reference=` for differences, `setting=` words for the alt text
    UsageError for what the study does not have.
    """
    if not results.points():
        raise UsageError("The study has no finished cell, so there is nothing to draw.")
    named = {"bytes": against_bytes, "differences": differences}
    if against in named:
        return named[against](results, **options)
    if " x " in against:
        return heat(results, *against.split(" x ", 1), **options)
    return against_axis(
        results, choose("axis to draw against", against, [*results.shared_axes, *named]), **options
    )


def against_axis(results: Results, axis: str, *, setting: Setting | str = "") -> Picture:
    """`against` an axis of numbers: at each of its values the mean over all points of the other axes."""
    values = tidy(results)[axis].unique().tolist()
    if not all(isinstance(value, int | float) for value in values):
        raise UsageError(
            f"The axis {axis} has values that are no numbers ({values[0]!r}); "
            "use the table or the differences."
        )
    means: dict[str, dict[Any, Mapping[int, float]]] = {}
    for value in values:
        for name, of in by_seed(results.select(**{axis: value})).items():
            means.setdefault(name, {})[value] = of
    return against(means, axis, setting=setting)


def against(
    accuracies: Mapping[str, Bands], axis: str, label: str = "", *, setting: Setting | str, chance: float | None = None,
    methods: Mapping[str, str | Look] | None = None, sentence: str = "", detail: str = "",
) -> Picture:  # fmt: skip
    """Mean accuracy `{line: {value of the axis: {seed: share}, or its `Band`}}` over an axis of numbers, with bands.

    axis, label: its name in the table, and under it;   chance: accuracy of guessing
    methods: {what a line is called: its method, or its look}, for lines with names of their own
    sentence: what the picture shows, where that is more than the lines' ends;   detail: of `Picture`
    """
    known = {line: sorted(of.items()) for line, of in accuracies.items()}
    bands = {
        line: {x: v if isinstance(v, Band) else band(v) for x, v in of}
        for line, of in known.items()
    }
    values = sorted({x for of in bands.values() for x in of})
    with drawing() as (figure, ax):
        dress(ax, x=label or LABELS.get(axis, axis), y="test accuracy", grid="y")
        names = draw_lines(
            ax,
            bands,
            {line: look(m) if isinstance(m, str) else m for line, m in (methods or {}).items()},
        )
        if values[0] > 0 and values[-1] >= 10 * values[0]:
            set_log_axis(ax, ticks=values[:: 1 + is_narrow()])
        else:
            ax.set_xticks(values)
        set_percent_axis(ax)
        if chance:
            draw_level_line(ax, chance)
            names.append((chance, "guessing", QUIET))
        draw_end_labels(ax, names)
    table = [
        {"method": line} | {f"{axis} = {x:g}": wide(of) for x, of in at.items()}
        for line, at in bands.items()
    ]
    ends = "; ".join(
        f"{line} {percent(at[min(at)].mean)} to {percent(at[max(at)].mean)}"
        for line, at in bands.items()
    )
    sentence = sentence or f"From {axis} = {values[0]:g} to {values[-1]:g}: {ends}."
    return describe_picture(
        figure,
        f"Lines of test accuracy against {axis}, with 95 % bands",
        setting,
        sentence,
        table,
        detail=detail,
    )


def against_bytes(results: Results, *, setting: Setting | str = "") -> Picture:
    """A point a method: mean accuracy against mean bytes of all clients, both ways, over the whole study."""
    up, down = (tidy(results).groupby("method")[f"bytes_{way}"].mean() for way in ("up", "down"))
    rows = [Series(m, accuracies=of, up=up[m], down=down[m]) for m, of in by_seed(results).items()]
    front = pareto({s.name: (s.total, s.mean) for s in rows})
    with drawing() as (figure, ax):
        dress(ax, x="bytes of all clients, both ways", y="test accuracy", grid="both")
        draw_points(ax, rows)
        at = {s.name: (max(s.total, 1.0), s.mean) for s in rows}
        ax.plot(
            *zip(*(at[name] for name in front), strict=True),
            color=QUIET,
            lw=1.2,
            ls=(0, (4, 2)),
            zorder=0,
        )
    ranked = sorted(rows, key=lambda s: -s.mean)
    cells = (
        (s.name, wide(s.band), data_size(s.total), "yes" if s.name in front else "no")
        for s in ranked
    )
    sentence = f"No method has both fewer bytes and a higher accuracy than {', '.join(front)}."
    table = build_table("method | accuracy | bytes | Pareto", cells)
    return describe_picture(figure, "Accuracy against bytes", setting, sentence, table)


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other beats on both bytes and accuracy, by rising bytes.

    >>> pareto({"a": (1, 0.5), "b": (2, 0.4), "c": (3, 0.9)})
    ['a', 'c']
    """
    front: list[str] = []
    for name, (_, accuracy) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        if not front or accuracy > points[front[-1]][1] or points[name] == points[front[-1]]:
            front.append(name)
    return front


def heat(
    results: Results, across: str, down: str, *, method: str = "", setting: Setting | str = ""
) -> Picture:
    """Mean accuracy of one method (the first, unless named) over two axes."""
    for axis in (across, down):
        choose("axis of this study", axis, results.shared_axes)
    cells = tidy(results)
    names = cells["method"].unique().tolist()
    name = choose("method of this study", shown_as(results, method or names[0]), names)
    means = cells[cells["method"] == name].pivot_table("accuracy", down, across)
    means = means.rename(columns=written)
    with drawing() as (figure, ax):
        image = draw_heat_map(ax, means.to_numpy(), text=percent, size=9)
        ax.set_xticks(range(means.shape[1]), means.columns)
        ax.set_yticks(range(means.shape[0]), map(written, means.index))
        dress(ax, title=name, x=LABELS.get(across, across), y=LABELS.get(down, down))
        draw_colour_bar(image, ax, "test accuracy", format=PERCENT)
    table = (
        means.map(percent, na_action="ignore").fillna("").add_prefix(f"{across} = ").reset_index()
    )
    row, column = means.stack().idxmax()
    sentence = f"{name} is best at {across} = {column}, {down} = {written(row)} ({percent(means.loc[row, column])})."
    title = f"Heat-map of {name}'s accuracy over {across} and {down}"
    return describe_picture(figure, title, setting, sentence, table.to_dict("records"))


def differences(results: Results, *, reference: str = "", setting: Setting | str = "") -> Picture:
    """Every method minus `reference` (the first, unless named) as a row: means over all points, paired by seed, with
    their band; a row whose band leaves out zero is clear."""
    means = by_seed(results)
    name = choose("method of this study", shown_as(results, reference or next(iter(means))), means)
    others = {
        other: of for other, of in means.items() if other != name and set(of) & set(means[name])
    }
    gaps = {other: difference(of, means[name]) for other, of in others.items()}
    if not gaps:
        raise UsageError(
            f"The study has no method other than {name}, so there is no difference to draw; "
            "add a method."
        )
    own, gaps = looks(gaps), dict(sorted(gaps.items(), key=lambda item: -item[1].mean))
    with drawing(size=(7.2, max(2.2, 0.9 + 0.34 * len(gaps)))) as (figure, ax):
        dress(ax, x=f"test accuracy minus {name}'s, points", grid="x")
        for i, (other, of) in enumerate(gaps.items()):
            hue = own[other].colour if of.verdict == "clear" else QUIET
            ax.plot([100 * of.low, 100 * of.high], [i, i], color=hue, lw=3, alpha=0.4)
            ax.plot(100 * of.mean, i, own[other].marker, color=hue, ms=7)
        draw_level_line(ax, 0, axis="x")
        set_row_axis(ax, list(gaps), least=3)
    rows = (
        (other, f"{format_share(of, 1, few_seeds=True)} points", of.verdict, of.n)
        for other, of in gaps.items()
    )
    table = build_table("method | difference | verdict | seeds", rows)
    clear = [f"{other} {100 * of.mean:+.0f}" for other, of in gaps.items() if of.verdict == "clear"]
    none = f"No method differs from {name} by more than the noise."
    sentence = f"Clearly apart from {name}, in points: {', '.join(clear)}." if clear else none
    return describe_picture(
        figure, f"Differences to {name} with 95 % bands", setting, sentence, table
    )


# ------------------------------------------------------------------------------------------------ numbers and words
def tidy(results: Results) -> DataFrame:
    """The finished rows, one a cell; `method` with its own fields."""
    from pandas import DataFrame

    return DataFrame(
        [{**row, "method": results.label(row)} for row in results.rows if not row.get("error")]
    )


def shown_as(results: Results, name: str) -> str:
    """What pictures call a method that is named as in `results.differences`."""
    return next((results.label(row) for row in results.rows if results.name_row(row) == name), name)


def by_seed(results: Results) -> dict[str, dict[int, float]]:
    """`{method: {seed: mean over the points of the study}}`: the seeds are what is independent, points are not."""
    means = tidy(results).groupby(["method", "seed"], sort=False)["accuracy"].mean()
    return {name: means[name].to_dict() for name in means.index.get_level_values(0).unique()}


def wide(of: Band) -> str:
    """0.834 ± 0.021 -> '83.4 ± 2.1 %'."""
    return f"{format_share(of, 1, few_seeds=True)} %"


def written(value: Any) -> str:
    """A value of an axis: 1.0 -> '1'."""
    return f"{value:g}" if isinstance(value, float) else str(value)
