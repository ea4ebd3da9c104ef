"""What one client sends of one layer beside its weights: the factors A and B, and the mean input that A carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .style import ACCENT, INK, LOCK, QUIET, Picture, class_colours, dress, many_is_dark, new_figure, shorten
from .words import listed, percent, plural

DIVERGING = "PuOr_r"
PLACES = {"left": 0.085, "right": 0.985, "top": 0.93, "bottom": 0.115, "wspace": 0.3, "hspace": 0.32}


def factors(
    a: np.ndarray,
    b: np.ndarray,
    *,
    layer: str,
    client: int,
    counts: np.ndarray,
    class_names: Sequence[str],
    setting: str,
    shape: tuple[int, int, int] | None = None,
    patch: bool = False,
    bias: bool = True,
    outputs_are_classes: bool = False,
    klass: int | None = None,
) -> Picture:
    """Undamped `a [i, i]` and `b [o, o]` of `layer`, of a `client` with `counts [C]` samples by class.

    shape: channels, height, width of the layer's input if it is an image (of a patch of it, if `patch`); None: the
    inputs are units of the layer before. bias: whether the last input is the constant 1, so that the last column of A
    is the mean input. outputs_are_classes: rows of B are classes; `klass` is marked there.
    """
    mean = a[:-1, -1] / a[-1, -1] if bias else None  # the corner counts positions: 1, or T of a convolution
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")  # fixed places: a layout would take most of the drawing's time
        grid = figure.add_gridspec(3, 3 if bias else 2, height_ratios=[1, 0.045, 0.3], **PLACES)
        squares = [figure.add_subplot(grid[0, i]) for i in range(grid.ncols)]
        bars = [figure.add_subplot(grid[1, i]) for i in range(2)]
        symmetric(squares[0], bars[0], a, "A: inputs", "input")
        if outputs_are_classes:
            symmetric(squares[1], bars[1], b, "B: errors", "class", class_names)
            mark(squares[1], klass, len(b))
        else:
            symmetric(squares[1], bars[1], b, "B: errors", "output unit")
        if bias and shape is not None:
            picture_of(squares[2], mean.reshape(shape), "Mean patch" if patch else "Mean image")
        elif bias:
            units(squares[2], mean)
        held(figure.add_subplot(grid[2, :]), counts, class_names, client, klass)
    kind = None if not bias else ("patch" if patch else "image") if shape is not None else "units"
    return Picture(
        figure,
        alt=alt_text(a, b, layer, client, kind, setting),
        sentence=sentence(a, b, mean, layer, client, counts, class_names, kind),
        table=table(b, mean, class_names if outputs_are_classes else None),
    )


def symmetric(
    ax: Axes, bar: Axes, matrix: np.ndarray, title: str, side: str, names: Sequence[str] | None = None
) -> None:
    """A symmetric matrix as a picture: one hue where no entry is negative, else two with white at 0."""
    top = float(np.abs(matrix).max()) or 1.0
    signed = matrix.min() < -1e-3 * top
    image = ax.imshow(
        matrix, cmap=DIVERGING if signed else many_is_dark(), vmin=-top if signed else 0, vmax=top,
        interpolation="nearest" if len(matrix) <= 300 else "antialiased",
    )  # fmt: skip
    frame(ax, title)
    ax.set_xlabel(side, fontsize=9.5, color=QUIET, labelpad=2)
    if names is not None and len(names) <= 10:
        ax.set_xticks(range(len(names)), shorten(names, 4), rotation=90 if max(map(len, names)) > 2 else 0)
        ax.set_yticks(range(len(names)), shorten(names, 4))
    else:
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(4, integer=True))
    scale = ax.figure.colorbar(image, cax=bar, orientation="horizontal")
    scale.outline.set_visible(False)
    bar.tick_params(labelsize=9, colors=QUIET, labelcolor=INK, length=2)
    scale.set_ticks([-top, 0, top] if signed else [0, top], labels=number_labels(top, signed))


def number_labels(top: float, signed: bool) -> list[str]:
    """Labels of a colour bar's ends: short, and 0 as "0"."""
    text = power(top)
    return [f"−{text}", "0", text] if signed else ["0", text]


def power(value: float) -> str:
    """A positive number in at most two digits: 16, 0.25, 8.6·10⁻⁶, 10⁻³."""
    if 0.01 <= value < 1000:
        return f"{value:.2g}" if value < 100 else f"{value:.0f}"
    digits, exponent = f"{value:.1e}".split("e")
    ten = "10" + str(int(exponent)).translate(SUPERSCRIPT)
    return ten if digits == "1.0" else f"{digits}·{ten}"


SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def mark(ax: Axes, klass: int | None, classes: int) -> None:
    """Row and column of the chosen class."""
    if klass is not None and klass < classes:
        ax.axhspan(klass - 0.5, klass + 0.5, fill=False, edgecolor=ACCENT, lw=2.2)
        ax.axvspan(klass - 0.5, klass + 0.5, fill=False, edgecolor=ACCENT, lw=2.2)


def picture_of(ax: Axes, image: np.ndarray, title: str) -> None:
    """An image `[channels, H, W]` of numbers about 0 to 1, dark ink on white where it has one channel."""
    frame(ax, title)
    if len(image) == 1:
        ax.imshow(image[0], cmap="gray_r", vmin=min(0.0, float(image.min())), vmax=float(image.max()) or 1.0)
    else:
        low, high = min(0.0, float(image.min())), max(1.0, float(image.max()))
        ax.imshow(np.moveaxis((image[:3] - low) / (high - low), 0, -1))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("the last column of A", fontsize=9.5, color=QUIET, labelpad=6)


def units(ax: Axes, mean: np.ndarray) -> None:
    """The mean of each input unit as a bar."""
    dress(ax, grid="x")
    frame(ax, "Mean activation")
    ax.barh(range(len(mean)), mean, height=0.9, color="#9aa4ae")
    ax.set_ylim(len(mean) - 0.5, -0.5)
    ax.set_box_aspect(1)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.set_xlabel("the last column of A", fontsize=9.5, color=QUIET, labelpad=2)


def held(ax: Axes, counts: np.ndarray, names: Sequence[str], client: int, klass: int | None) -> None:
    """What the client holds, by class."""
    dress(ax, y="samples", grid="y")
    colours = class_colours(len(counts))
    ax.bar(range(len(counts)), counts, width=0.8, color=colours)
    ax.set_xlim(-0.6, len(counts) - 0.4)
    ax.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    if len(counts) <= 20:
        ax.set_xticks(range(len(counts)), shorten(names, 8))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    ax.set_xlabel(f"class: what client {client} holds (the server is not told)", fontsize=9.5, color=QUIET, labelpad=2)
    if klass is not None and klass < len(counts):
        ax.axvspan(klass - 0.5, klass + 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)


def frame(ax: Axes, title: str) -> None:
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=5)
    ax.tick_params(length=2, labelsize=9, colors=QUIET, labelcolor=INK, pad=2)
    for spine in ax.spines.values():
        spine.set_color("#d5d9de")


def rank(matrix: np.ndarray) -> int:
    """How many directions a factor excites: eigenvalues above a millionth of the largest."""
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    return int((values > 1e-6 * max(values[-1], 1e-300)).sum())


def sentence(
    a: np.ndarray,
    b: np.ndarray,
    mean: np.ndarray | None,
    layer: str,
    client: int,
    counts: np.ndarray,
    names: Sequence[str],
    kind: str | None,
) -> str:
    order = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c] > 0]
    most = listed([f"{names[c]} ({percent(counts[c] / max(counts.sum(), 1))})" for c in order[:3]])
    more = f" and {plural(len(order) - 3, 'more class')}" if len(order) > 3 else ""
    text = f"Client {client} holds mostly {most}{more}. " if len(order) > 1 else f"Client {client} holds only {most}. "
    text += f"Its inputs to {layer} vary in {rank(a)} of {len(a)} directions, its errors in {rank(b)} of {len(b)}"
    if kind == "image":
        text += "; the last column of A is its mean image"
    elif kind == "patch":
        text += "; the last column of A is its mean patch, all positions mixed"
    return text + "."


def alt_text(a: np.ndarray, b: np.ndarray, layer: str, client: int, kind: str | None, setting: str) -> str:
    last = {
        "image": " Beside them the last column of A as an image, which is the client's mean image.",
        "patch": " Beside them the last column of A as an image, which is the client's mean patch.",
        "units": " Beside them the last column of A as bars, the mean of each input unit.",
        None: "",
    }[kind]
    return (
        f"Heat-maps of the factors A, {len(a)} by {len(a)}, and B, {len(b)} by {len(b)}, of {layer} of client {client} "
        f"({setting}).{last}"
    )


def table(b: np.ndarray, mean: np.ndarray | None, names: Sequence[str] | None) -> list[dict]:
    """The diagonal of B, and of the last column of A the first entries."""
    outputs = names or [str(i) for i in range(len(b))]
    rows = [{"output": n, "diagonal of B": float(f"{v:.3g}")} for n, v in zip(outputs, b.diagonal(), strict=True)]
    for i, row in enumerate(rows):
        if mean is not None and i < len(mean):
            row |= {"input": i, "mean input": float(f"{mean[i]:.3g}")}
    return rows[:100]
