"""Pictures that follow a slider on a page: what of them moves, and that part alone as SVG.

A picture that is kept says with `moves(figure, key, …)` what may have changed since its last drawing. While `key` stays
what it was, a page gets `moved(figure)`: a few groups of the SVG and the sizes of dots. The whole follows at rest.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .style import LOCK, OUTSIDE
from .vector import OPTIONS, coloured, marks_of

DOT = 72.0  # units of an SVG in an inch


@dataclass(frozen=True, eq=False)
class Moves:
    """key: what else the picture shows; another one asks for a whole new drawing
    parts: {name: (what they show, artists)}, drawn anew where they show something else than before
    bars: rectangles, whose ends alone move;   dots: a scatter of circles, whose areas alone change
    motion: what a page moves by itself (`motion.js`), where it can;   pose: within it the whole is drawn then, if that
    is not the picture as it stands; no other whole follows
    """

    key: Any
    parts: Mapping[str, tuple[Any, Sequence[Artist]]] = field(default_factory=dict)
    bars: Sequence[Rectangle] = ()
    dots: PathCollection | None = None
    motion: Callable[[], Mapping[str, Any]] | None = None
    pose: Callable[[], Any] | None = None

    @property
    def prints(self) -> dict[str, Any]:
        """What each part shows."""
        return {name: shows for name, (shows, _) in self.parts.items()}


def moves(figure: Figure, key: Any, **of: Any) -> None:
    """Say what of a figure has moved, if `key` is what it was; see `Moves`. Its artists get ids."""
    made = Moves(key, **of)
    give_ids(figure, (*made.bars, *(artist for _, artists in made.parts.values() for artist in artists)))
    figure.__dict__["fedlab_moves"] = made


def give_ids(figure: Figure, artists: Iterable[Artist]) -> None:
    """Give artists of a figure ids, by which a page finds them; those that have one keep it."""
    given = figure.__dict__.setdefault("fedlab_moving", [])
    for artist in artists:
        if artist.get_gid() in (None, OUTSIDE):
            artist.set_gid(f"{artist.get_gid() or 'moving'}-{len(given)}")
            given.append(artist)


def moves_of(figure: Figure | None) -> Moves | None:
    """What a figure says of its moves; None: it is always drawn as a whole."""
    return getattr(figure, "fedlab_moves", None)


def moved(figure: Figure, known: Mapping[str, Any]) -> dict[str, Any]:
    """What has moved, as it is now. known: what each part shows on the page, see `Moves.prints`

    Returns "svg" (groups that stand in for those with their ids), "radii" {id: radius of each dot}, "bars" {id: left,
    bottom, right, top}, "marks" as in `Drawn` and "motion" as in `Moves`.
    """
    of = figure.__dict__["fedlab_moves"]
    artists = [a for name, (shows, some) in of.parts.items() if known.get(name) != shows for a in some]
    radii, bars = {}, {}
    if of.dots is not None:  # a size s is a diameter of √s points; an SVG's unit is a point
        radii[of.dots.get_gid()] = (np.sqrt(of.dots.get_sizes()) / 2).round(2).tolist()
    with LOCK, matplotlib.rc_context(OPTIONS), points(figure):
        for bar in of.bars:
            (left, bottom), (right, top) = places(figure, bar.axes.transData, bar.get_bbox().get_points())
            bars[bar.get_gid()] = [left, bottom, right, top]
        svg = drawn_alone(figure, artists) if artists else ""
    motion = motion_of(figure) if of.pose is None else {}
    return {"svg": svg, "radii": radii, "bars": bars, "marks": marks_of(figure), "motion": motion}


def drawn_alone(figure: Figure, artists: Sequence[Artist]) -> str:
    """These artists of a figure as an SVG of its size. Call it within `points`."""
    out, size = io.StringIO(), figure.get_size_inches()
    renderer = RendererSVG(*(DOT * size), out, image_dpi=DOT, metadata={"Date": None})
    for artist in artists:
        artist.draw(renderer)
    renderer.finalize()
    return coloured(out.getvalue())


def motion_of(figure: Figure) -> dict[str, Any]:
    """What a page may move by itself in the SVG of the figure as it is now; {}: nothing."""
    of = moves_of(figure)
    if of is None or of.motion is None:
        return {}
    with LOCK, points(figure):
        return dict(of.motion())


@contextmanager
def points(figure: Figure) -> Iterator[None]:
    """While it lasts, the figure's own pixels are the units of its SVG."""
    dpi, figure.dpi = figure.dpi, DOT
    try:
        yield
    finally:
        figure.dpi = dpi


def places(figure: Figure, transform: Any, xy: Any) -> list[list[float]]:
    """Where points `[N, 2]` stand in the figure's SVG. Call it within `points`."""
    at = np.asarray(transform.transform(xy), dtype=float)
    return np.column_stack([at[:, 0], DOT * figure.get_size_inches()[1] - at[:, 1]]).round(2).tolist()
