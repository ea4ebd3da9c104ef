"""Pictures as SVG for a page: letters as outlines, colours for a light and a dark page, and marks that answer.

A colour stands in the SVG as `light-dark(#0072B2, #4A9FE0)`; the page's `color-scheme` says which one is seen. `dark`
derives the second one from the first: greys turn round, colours keep their hue and become light enough.
`mark(artist, "FENS\\n87 % ± 2", method="fens")` makes an artist answer: `get_marks(figure)` has what each says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Affine2D

from .style import LOCK, fit_to_frame, lay_out, write_svg

PAPER = "#111519"  # of a dark page, where its theme does not say
LIGHT = (
    0.5,
    0.42,
)  # lightness (OKLCH) on a dark page: so much, and a share of that on a light one, so that two
# colours of one hue stay apart
GREY = 0.04  # chroma below which a colour counts as grey
PALE = 0.9  # lightness from which on a colour is a light tint
OPTIONS = {"svg.fonttype": "path", "svg.hashsalt": "fedlab_nb"}  # the same picture has the same ids
COLOUR = re.compile(r"(?<=[:\s\"])#[0-9a-f]{6}(?=[;\"\s])")


def mark(artist: Artist, text: str | list[str], **keys: Any) -> None:
    """Let an artist answer: `says` is shown beside it, or for a collection a text for each of its members.

    of: `method` (its name or title), `client`, `class_index`: what it stands for; for a collection lists of them;
    `thumbnail`: the number of its image on the figure's sheet (`attach_thumbnails`).
    """
    figure: Any = artist.get_figure(root=True)
    marks = figure.__dict__.setdefault("fedlab_marks", {})
    gid = artist.get_gid()
    if gid not in marks:
        gid = f"mark-{len(marks)}"
        artist.set_gid(gid)
    marks[gid] = {
        "says": text,
        **{name: value for name, value in keys.items() if value is not None},
    }


def draw_svg(figure: Figure) -> str:
    """The figure as an SVG that fills its frame: the text of one element."""
    with LOCK, matplotlib.rc_context(OPTIONS):
        fit_to_frame(figure)
        for ax in figure.axes:
            if ax.get_facecolor() == (1, 1, 1, 1):
                ax.patch.set_alpha(0)  # the page's own colour
        lay_out(figure)
        text = write_svg(figure, "none", Date=None, Creator=None)
    return adapt_svg(text)


def get_marks(figure: Figure) -> dict[str, Any]:
    """What is known of each mark of a figure, by its id: see `mark`."""
    return dict(getattr(figure, "fedlab_marks", {}))


def attach_thumbnails(figure: Figure, sheet: Mapping[str, Any]) -> None:
    """Give a figure the small images that its marks show: {"image": the address of one PNG with all of them, "width",
    "height": pixels of an image, "columns": images in a row, "rows"}."""
    figure.__dict__["fedlab_thumbnails"] = dict(sheet)


def get_thumbnails(figure: Figure) -> dict[str, Any]:
    """The sheet of a figure's small images; {} where it has none."""
    return dict(getattr(figure, "fedlab_thumbnails", {}))


def draw_outline(marker: str, size: float) -> str:
    """The outline of a marker, as matplotlib names it, as the `d` of an SVG path: `size` units from its middle."""
    style = MarkerStyle(marker)
    path = (
        style.get_path()
        .transformed(style.get_transform())
        .transformed(Affine2D().scale(2 * size, -2 * size))
    )
    letters = {
        path.MOVETO: "M",
        path.LINETO: "L",
        path.CURVE3: "Q",
        path.CURVE4: "C",
        path.CLOSEPOLY: "Z",
    }
    return "".join(
        letters[code] + ("" if code == path.CLOSEPOLY else " ".join(f"{v:.2f}" for v in points))
        for points, code in path.iter_segments()
    )


def adapt_svg(text: str) -> str:
    """Matplotlib's SVG as one element that fills its frame, in colours for both pages."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt" ', "", text, count=1)
    text = COLOUR.sub(lambda colour: light_dark_colour(colour[0]), text)
    return re.sub(r"\s*\n\s*", " ", text)


@lru_cache(maxsize=4096)
def light_dark_colour(colour: str) -> str:
    """`light-dark(#rrggbb, #rrggbb)`: a colour for both pages; white is that of the page."""
    if colour == "#ffffff":
        return f"light-dark(#ffffff, var(--jp-layout-color0, {PAPER}))"
    return f"light-dark({colour}, {darken_colour(colour)})"


def darken_colour(colour: str) -> str:
    """A colour `#rrggbb` of a light page as it is on a dark one."""
    lightness, chroma, hue = to_oklch(colour)
    if (
        chroma < GREY and not 0.4 < lightness < 0.8
    ):  # letters and rules; greys between them stand for data
        return from_oklch(1.08 - 0.86 * lightness, chroma, hue)
    if lightness > PALE:
        return from_oklch(0.34, chroma, hue)
    return from_oklch(LIGHT[0] + LIGHT[1] * lightness, chroma, hue)


# OKLab (Ottosson 2020): linear sRGB -> cone responses -> lightness and two opponent colours.
CONES = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                  [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip


def to_oklch(colour: str) -> tuple[float, float, float]:
    """Lightness 0-1, chroma and hue (radians) of `#rrggbb`."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(values > 0.04045, ((values + 0.055) / 1.055) ** 2.4, values / 12.92)
    lightness, a, b = LAB @ np.cbrt(CONES @ linear)
    return float(lightness), float(np.hypot(a, b)), float(np.arctan2(b, a))


def from_oklch(lightness: float, chroma: float, hue: float) -> str:
    """`#rrggbb` of a colour in OKLCH; what no screen can show is made less colourful until one can."""
    for share in (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0):
        lab = np.array([lightness, share * chroma * np.cos(hue), share * chroma * np.sin(hue)])
        linear = np.linalg.solve(CONES, np.linalg.solve(LAB, lab) ** 3)
        if linear.min() > -1e-4 and linear.max() < 1 + 1e-4:
            break
    linear = linear.clip(0, 1)
    values = np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)
    return "#" + "".join(f"{round(255 * v):02x}" for v in values)
