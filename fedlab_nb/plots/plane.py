"""Points in the plane and what networks say of them: a row of small squares, coloured by the class that is named there.

All squares lie in one axes, whose unit is an inch: that takes half of the time of an axes for each, and follows a
slider. Borders are where two scores are equal, between the places of the grid too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import contourpy  # matplotlib brings it
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from .kit import describe_picture
from .style import INK, MARKERS, QUIET, RULE, Picture, class_colours, drawing
from .vector import from_oklch, mark, to_oklch
from .words import Setting

MARGIN, GAP = 0.06, 0.14  # inches round all and between two squares
SMALL, LARGE = 1.3, 2.6  # inches of a square's side
TITLE, FOOT, LEGEND = 0.24, 0.2, 0.26  # inches over and under a square, and under all
FINE = 900  # units across a square, of which a border's corners may be off by a ninth
AROUND = "background: the class that is named there; circles: where a class lies"
LETTER = 0.066  # inches across of a letter of 9 points, about
PALE, CHROMA = 0.905, 0.085  # OKLCH of the regions: light enough to be turned dark on a dark page


@dataclass(frozen=True)
class Square:
    """One square.

    title, foot:  over and under it;   says: in one or two lines, when it is pointed at
    scores:       `[G, G, C]` on a grid of the plane, the first axis upward; the largest one is the class
    points, labels: `[n, 2]` and `[n]`: dots
    client:       the client that it stands for
    """

    title: str
    foot: str
    says: str
    scores: np.ndarray
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    client: int | None = None


@dataclass(frozen=True)
class Plane:
    """What all squares have in common. edge: they reach from -edge to edge;   circles: (x, y, radius, class)"""

    names: Sequence[str]
    edge: float
    circles: Sequence[tuple[float, float, float, int]]


@lru_cache(64)
def tint(colour: str) -> str:
    """The pale colour of a class's region."""
    _, chroma, hue = to_oklch(to_hex(colour))
    return from_oklch(PALE, min(CHROMA, chroma), hue)


def regions(scores: np.ndarray, edge: float) -> list[Path]:
    """Areas `[C]` to be painted one over the other: where class c or a later one has the largest score.

    That of class 0 is the whole square. So no gap is left where three classes meet.
    """
    at = np.linspace(0, FINE, len(scores))
    paths = [Path.unit_rectangle().transformed(Affine2D().scale(FINE))]
    for c in range(1, scores.shape[2]):
        margin = scores[..., c:].max(2) - scores[..., :c].max(2)
        vertices, codes = contourpy.contour_generator(at, at, margin, fill_type="OuterCode").filled(
            0, np.inf
        )
        whole = Path.make_compound_path(*(Path(v, k) for v, k in zip(vertices, codes, strict=True)))
        paths.append(
            whole.cleaned(simplify=True)
        )  # straight lines without the points that lie on them
    return [Path(path.vertices * (2 * edge / FINE) - edge, path.codes) for path in paths]


def places(count: int, width: float, height: float) -> tuple[float, list[tuple[float, float]]]:
    """The side of `count` squares in a frame of that many inches, as large as they can be, and their lower left
    corners."""
    sides = {
        n: min(across(n, width), (height - LEGEND) / -(-count // n) - TITLE - FOOT)
        for n in range(1, count + 1)
    }
    columns = max(sides, key=lambda n: sides[n])
    size = max(sides[columns], 0.2)
    spots = (divmod(i, columns) for i in range(count))
    left, top = MARGIN, height - TITLE - size
    return size, [
        (left + column * (size + GAP), top - row * (size + TITLE + FOOT)) for row, column in spots
    ]


def across(columns: int, width: float) -> float:
    """The side of squares that fill the width."""
    return (width - 2 * MARGIN - (columns - 1) * GAP) / columns


def tallness(count: int, width: float) -> float:
    """Inches of height of `count` squares that fill the width, in two rows where one would make them too small."""
    rows = 1 if across(count, width) > SMALL or count < 4 else 2
    return rows * (min(across(-(-count // rows), width), LARGE) + TITLE + FOOT) + LEGEND


def plane(
    squares: Sequence[Square],
    about: Plane,
    *,
    setting: Setting | str,
    sentence: str,
    table: Sequence[Mapping[str, object]],
) -> Picture:
    """The row of squares, with what is said of them."""
    with drawing(fixed=True) as (figure, _):
        width, height = figure.get_size_inches()
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set(xlim=(0, width), ylim=(0, height))
        size, corners = places(len(squares), width, height)
        paint(ax, squares, about, corners, size)
        font = float(np.clip(72 * size / (0.66 * max(len(s.title) for s in squares)), 5.5, 10.5))
        for square, (x, y) in zip(squares, corners, strict=True):
            ax.text(x, y + size + 0.06, square.title, fontsize=font, fontweight="bold", color=INK)
            ax.text(x, y - 0.16, square.foot, fontsize=min(font, 9), color=QUIET)
        covers = add(
            ax,
            [Path.unit_rectangle()] * len(squares),
            corners,
            size,
            (1, 1, 1, 0),
            RULE,
            0.8,
            zorder=6,
        )
        mark(covers, [s.says for s in squares], client=[s.client for s in squares])
        legend(ax, about.names, min(y for _, y in corners) - FOOT - 0.16, width)
    return describe_picture(figure, "Decision regions in the plane", setting, sentence, table)


def add(
    ax: Axes, paths: Sequence[Path], corners: Any, scale: float, face: Any, edge: Any = "none", lw: float = 0,
    **style: Any,
) -> PathCollection:  # fmt: skip
    """Many shapes at once, each made larger by `scale` and moved: patches one by one take ten times as long."""
    moved = [Path(p.vertices * scale + at, p.codes) for p, at in zip(paths, corners, strict=True)]
    shapes = PathCollection(
        moved, facecolors=face, edgecolors=edge, linewidths=lw, clip_on=False, **style
    )
    ax.add_collection(shapes, autolim=False)
    return shapes


def paint(
    ax: Axes, squares: Sequence[Square], about: Plane, corners: Sequence[Any], size: float
) -> None:
    """The inside of all squares: regions, circles and dots."""
    colour, scale = class_colours(len(about.names)), size / (2 * about.edge)
    shown = [(s, np.add(at, size / 2)) for s, at in zip(squares, corners, strict=True)]
    areas = [path for s, _ in shown for path in regions(s.scores, about.edge)]
    pale = [tint(hue) for hue in colour] * len(shown)
    add(ax, areas, [at for _, at in shown for _ in colour], scale, pale, "white", 1)
    rings = [
        (Path.circle((x, y), radius), at, colour[c])
        for _, at in shown
        for x, y, radius, c in about.circles
    ]
    paths, at, hues = zip(*rings, strict=True)
    add(ax, paths, at, scale, "none", hues, 1.1, linestyles=[(0, (2.5, 1.8))])
    at = np.concatenate([s.points * scale + at for s, at in shown])
    labels = np.concatenate([s.labels for s in squares])
    inside = (np.abs(np.concatenate([s.points for s in squares])) < 0.99 * about.edge).all(1)
    dot = float(np.clip(2.4 * size, 3, 5))
    for c, hue in enumerate(colour):
        x, y = at[(labels == c) & inside].T
        ax.add_artist(
            Line2D(x, y, ls="", marker=MARKERS[c], ms=dot, zorder=3, clip_on=False, mfc=hue, mew=0)
        )


def legend(ax: Axes, names: Sequence[str], y: float, width: float) -> None:
    """A dot for each class, and where there is room, what background and circles are."""
    x = MARGIN
    for c, (name, hue) in enumerate(zip(names, class_colours(len(names)), strict=True)):
        ax.add_artist(
            Line2D([x + 0.06], [y + 0.045], ls="", marker=MARKERS[c], ms=5.5, mfc=hue, mew=0)
        )
        ax.text(x + 0.14, y, f"class {name}", fontsize=9, color=QUIET)
        x += 0.66 + LETTER * len(name)
    if x + LETTER * len(AROUND) < width:
        ax.text(x + 0.06, y, AROUND, fontsize=9, color=QUIET)
