"""Who gains and who loses: accuracy for each class and for each client's own mix of classes, one row a method."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from .kit import heat_map, mark_cells, told
from .series import Series, finished, settings_of
from .style import (
    PERCENT,
    QUIET,
    SECOND,
    Picture,
    class_ticks,
    client_axis,
    colour_bar,
    current_size,
    drawing,
    heading,
    mark,
    narrow,
)
from .words import capital, client_name, own_name, percent, setting_of_rows

STACKED = 9  # more rows than this, and the two heat-maps stand side by side
BESIDE, DIGITS = (
    2.4,
    0.21,
)  # inches that names and the colour bar take; and those of "100" in a cell


def classes(
    series: Sequence[Series],
    class_names: Sequence[str],
    *,
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """Two heat-maps (means over seeds): methods × classes, methods × clients. `client` and `klass` are marked."""
    done = finished(series)
    per_class, per_client = averages(done, "per_class"), averages(done, "per_client")
    place = setting_of_rows(
        (s.setting for s in done), (seed for s in done for seed in s.per_client)
    )
    many = len(done) > STACKED
    short = many or narrow()
    with drawing(**{"columns": 2, "sharey": True} if many else {"rows": 2}) as (
        figure,
        (first, second),
    ):
        title = "By class" if short else "Accuracy for each class"
        heat(
            first,
            per_class,
            done,
            title,
            klass,
            lambda c: ({"klass": c}, f"class {class_names[c]}"),
        )
        class_ticks(first, class_names, length=10, most=15)
        first.set_xlabel("class", fontsize=9, color=QUIET, labelpad=1)
        title = "By client" if short else "Accuracy for each client's own mix of classes"
        own = "{}'s own mix".format
        image = heat(
            second,
            per_client,
            done,
            title,
            client,
            lambda k: ({"client": k}, own(client_name(k, place))),
        )
        client_axis(second, image.get_array().shape[1], place, few=20)
        colour_bar(image, [first, second], pad=0.015, aspect=32, format=PERCENT)
    text = sentence(done, per_class, per_client, class_names, client, klass, place)
    rows = []
    for s, *values in zip(done, per_class, per_client, strict=True):
        by_class, by_client = (["" if np.isnan(v) else percent(v) for v in row] for row in values)
        row = {
            "method": s.name,
            **beside(s),
            **{f"class {n}": v for n, v in zip(class_names, by_class, strict=False)},
        }
        rows.append(row | {f"client {own_name(k, place)}": v for k, v in enumerate(by_client)})
    title = "Heat-maps of accuracy for each class and each client"
    return told(figure, title, place or settings_of(series), text, rows)


def beside(s: Series) -> dict[str, str]:
    """What tables say beside the accuracy, where it is known: balanced accuracy, AUC, the worst client."""
    by_class, by_client = (averages([s], name)[0] for name in ("per_class", "per_client"))
    areas = [c.auc for c in s.calibration.values()]
    said = {
        "balanced accuracy": "" if np.isnan(by_class).all() else percent(np.nanmean(by_class)),
        "AUC": f"{np.mean(areas):.3f}" if areas and None not in areas else "",
        "worst client": "" if np.isnan(by_client).all() else percent(np.nanmin(by_client)),
    }
    return {name: words for name, words in said.items() if words}


def averages(series: Sequence[Series], name: str) -> np.ndarray:
    """Means over seeds, `[rows, columns]`, nan where there is nothing; rows of fewer clients are filled with nan."""
    from pandas import DataFrame

    return DataFrame(
        [DataFrame(getattr(s, name).values(), dtype=float).mean() for s in series]
    ).to_numpy()


def heat(
    ax: Axes, values: np.ndarray, series: Sequence[Series], title: str, at: int | None,
    of: Callable[[int], tuple[dict, str]],
) -> AxesImage:  # fmt: skip
    """One heat-map, 0–100 %, whose cells say their values and have them written in while they fit.

    at: the column that is looked at;   of: what a column stands for, and its name
    """
    shown = values if values.size else np.full((1, 1), np.nan)
    rows, columns = shown.shape
    room = current_size()[0] - BESIDE > DIGITS * columns and columns <= 20 and rows <= 8
    image = heat_map(ax, shown, text=(lambda v: f"{100 * v:.0f}") if room else None)
    heading(ax, title, 5)
    ax.set_xlim(-0.5, columns - 0.5)
    size = 9.5 if rows <= 8 else 8.5 if rows <= 16 else 7
    ax.set_yticks(range(len(series)), [s.lines for s in series], fontsize=size)
    mark(ax, at, columns, frame=True, colour=SECOND)
    cells = {}
    for i, j in np.argwhere(np.isfinite(shown)).tolist():
        what, name = of(j)
        says = f"{series[i].name}, {name}\n{100 * shown[i, j]:.1f} %"
        cells[i, j] = {"says": says, "method": series[i].held_as, **what}
    mark_cells(ax, cells)
    return image


def sentence(
    series: Sequence[Series], per_class: np.ndarray, per_client: np.ndarray, names: Sequence[str], client: int | None,
    klass: int | None, place: str,
) -> str:  # fmt: skip
    """Of the class and the client that are looked at, else of the best method."""
    if not series:
        return "No result yet."
    parts = []
    if klass is not None and klass < per_class.shape[1]:
        parts.append(f"Class {names[klass]}: {each(series, per_class[:, klass])}.")
    if client is not None and client < per_client.shape[1]:
        parts.append(
            f"Client {own_name(client, place)} on its own mix: {each(series, per_client[:, client])}."
        )
    if not parts:
        rivals = [i for i, s in enumerate(series) if not s.bound] or range(len(series))
        best = max(rivals, key=lambda i: series[i].mean)
        parts.append(
            f"{capital(series[best].name)}, the best on average, has {ends(per_class[best])} on the classes;"
        )
        parts.append(f"its clients see {ends(per_client[best])} on their own mix.")
    return " ".join(parts)


def each(series: Sequence[Series], values: np.ndarray) -> str:
    """'FedAvg 31 %, FENS 84 %', those that are known."""
    return ", ".join(
        f"{s.name} {percent(a)}" for s, a in zip(series, values, strict=True) if not np.isnan(a)
    )


def ends(values: np.ndarray) -> str:
    """'12 % to 80 %', of those that are known."""
    known = values[np.isfinite(values)]
    return f"{percent(known.min())} to {percent(known.max())}" if len(known) else "nothing"
