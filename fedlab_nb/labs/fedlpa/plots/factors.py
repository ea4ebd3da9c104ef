"""What one client sends of one layer beside its weights: the damped factors A and B, and the mean input in A."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....declared import declared
from ....plots.axes import class_ticks, colour_bar, few_ticks, mark
from ....plots.characters import client_name
from ....plots.style import INK, LOCK, QUIET, RULE, Picture, class_colours, dress, heading, many_is_dark, new_figure
from ....plots.words import listed, percent, plural
from ..numbers import LayerFactors

PLACES = {"left": 0.085, "right": 0.985, "top": 0.93, "bottom": 0.115, "wspace": 0.3, "hspace": 0.32}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# what A's last column shows: in the picture's description, in its sentence
COLUMN = declared("course/fedlpa/words.toml")["column"]


def factors(layer: LayerFactors, class_names: Sequence[str], klass: int | None = None) -> Picture:
    """A, B and, where there is a bias, the mean input; below them what the client holds. `klass` is marked."""
    names = class_names if layer.outputs_are_classes else ()
    with LOCK:
        figure = new_figure(fixed=True)
        grid = figure.add_gridspec(3, 3 if layer.kind else 2, height_ratios=[1, 0.045, 0.3], **PLACES)
        squares = [figure.add_subplot(grid[0, i]) for i in range(grid.ncols)]
        bars = [figure.add_subplot(grid[1, i]) for i in range(2)]
        a, b = layer.shown
        symmetric(squares[0], bars[0], a, "A: inputs", "input")
        symmetric(squares[1], bars[1], b, "B: errors", "class" if names else "output unit", names)
        for axis in "xy":
            mark(squares[1], klass, len(names), axis, frame=True)
        if layer.kind:
            mean_input(squares[2], layer)
        held(figure.add_subplot(grid[2, :]), layer, class_names, klass)
    a, b, (column, words) = len(layer.a), len(layer.b), COLUMN.get(layer.kind, ("", ""))
    return Picture(
        figure,
        alt=f"Heat-maps of the factors A, {a} by {a}, and B, {b} by {b}, of {layer.layer} of client {layer.client} "
        f"({layer.setting})." + (f" Beside them the last column of A as {column}." if column else ""),
        sentence=f"Client {layer.client} holds {holdings(layer.counts, class_names)}. Its inputs to {layer.layer} vary "
        f"in {rank(layer.a)} of {a} directions, its errors in {rank(layer.b)} of {b}{words}. {as_sent(layer)}",
        table=table(layer, names),
    )


def as_sent(layer: LayerFactors) -> str:
    """What the picture's factors are."""
    if layer.sent is None:
        return "Shown before damping, as they are not sent."
    a, b = map(power, layer.added)
    return f"Shown as sent: λ_damp adds {a} to A's diagonal and {b} to B's."


def symmetric(ax: Axes, bar: Axes, matrix: np.ndarray, title: str, side: str, names: Sequence[str] = ()) -> None:
    """A symmetric matrix as a picture: one hue where no entry is negative, else two with white at 0."""
    top = float(np.abs(matrix).max()) or 1.0
    signed = matrix.min() < -1e-3 * top
    image = ax.imshow(
        matrix, cmap="PuOr_r" if signed else many_is_dark(), vmin=-top if signed else 0, vmax=top,
        interpolation="nearest" if len(matrix) <= 300 else "antialiased",
    )  # fmt: skip
    frame(ax, title, side)
    for axis in "xy":
        if 0 < len(names) <= 10:
            upright = axis == "x" and max(map(len, names)) > 2
            class_ticks(ax, names, axis, length=4, rotation=90 if upright else 0)
        else:
            few_ticks(ax, axis, 4, whole=True)
    scale = colour_bar(image, ax, cax=bar, orientation="horizontal")
    bar.tick_params(labelsize=9, length=2)
    ends = {-top: f"−{power(top)}", 0: "0", top: power(top)} if signed else {0: "0", top: power(top)}
    scale.set_ticks(list(ends), labels=list(ends.values()))


def power(value: float) -> str:
    """A positive number in at most two digits: 16, 0.25, 8.6·10⁻⁶, 10⁻³."""
    if 0.01 <= value < 1000:
        return f"{value:.2g}" if value < 100 else f"{value:.0f}"
    digits, exponent = f"{value:.1e}".split("e")
    ten = "10" + str(int(exponent)).translate(SUPERSCRIPT)
    return ten if digits == "1.0" else f"{digits}·{ten}"


def mean_input(ax: Axes, layer: LayerFactors) -> None:
    """The mean image or patch, dark ink on white where it has one channel; else a bar for each input unit."""
    if layer.shape is None:
        frame(dress(ax, grid="x"), "Mean activation", "the last column of A")
        ax.barh(range(len(layer.mean)), layer.mean, height=0.9, color="#9aa4ae")
        ax.set(ylim=(len(layer.mean) - 0.5, -0.5), box_aspect=1)
        few_ticks(ax, "y", 5, whole=True)
        few_ticks(ax, "x", 3)
        return
    frame(ax, f"Mean {layer.kind}", "the last column of A", pad=6)
    image = layer.mean.reshape(layer.shape)
    low, high = min(0.0, float(image.min())), float(image.max())
    if len(image) == 1:
        ax.imshow(image[0], cmap="gray_r", vmin=low, vmax=high or 1.0)
    else:
        ax.imshow(np.moveaxis((image - low) / (max(1.0, high) - low), 0, -1))
    ax.set(xticks=[], yticks=[])


def held(ax: Axes, layer: LayerFactors, names: Sequence[str], klass: int | None) -> None:
    """What the client holds, by class."""
    counts = layer.counts
    dress(ax, y="samples", grid="y")
    ax.bar(range(len(counts)), counts, width=0.8, color=class_colours(len(counts)))
    ax.set_xlim(-0.6, len(counts) - 0.4)
    few_ticks(ax, "y", 2, whole=True)
    class_ticks(ax, names, most=12)
    words = f"class: what {client_name(layer.client, layer.setting)} holds (the server is not told)"
    ax.set_xlabel(words, fontsize=9.5, color=QUIET, labelpad=2)
    mark(ax, klass, len(counts))


def frame(ax: Axes, title: str, below: str, pad: float = 2) -> None:
    heading(ax, title, pad=5)
    ax.set_xlabel(below, fontsize=9.5, color=QUIET, labelpad=pad)
    ax.tick_params(length=2, labelsize=9, colors=QUIET, labelcolor=INK, pad=2)
    for spine in ax.spines.values():
        spine.set_color(RULE)


def rank(matrix: np.ndarray) -> int:
    """How many directions a factor excites: eigenvalues above a millionth of the largest."""
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    return int((values > 1e-6 * max(values[-1], 1e-300)).sum())


def holdings(counts: np.ndarray, names: Sequence[str]) -> str:
    """'mostly 3 (60 %) and 5 (40 %)', of several classes the three largest; 'only 3 (100 %)'."""
    order = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c] > 0]
    most = listed([f"{names[c]} ({percent(counts[c] / counts.sum())})" for c in order[:3]])
    more = f" and {plural(len(order) - 3, 'more class')}" if len(order) > 3 else ""
    return f"mostly {most}{more}" if len(order) > 1 else f"only {most}"


def table(layer: LayerFactors, names: Sequence[str]) -> list[dict]:
    """The diagonal of B, and of the last column of A the first entries."""
    b = layer.shown[1]
    outputs = names or map(str, range(len(b)))
    rows = [{"output": n, "diagonal of B": float(f"{v:.3g}")} for n, v in zip(outputs, b.diagonal(), strict=True)]
    for i, (row, value) in enumerate(zip(rows, layer.mean if layer.kind else (), strict=False)):
        row |= {"input": i, "mean input": float(f"{value:.3g}")}
    return rows[:100]
