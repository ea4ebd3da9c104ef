"""SVGs for a light and a dark page: their colours, and the images of their marks.

An SVG that is part of a page has each colour as `light-dark(#0072B2, #4A9FE0)`; the page's `color-scheme` chooses one
of the two. `adapt_colour_to_dark_page` makes the second one: the lightness of greys is reversed, other colours keep
their hue and become light enough. An SVG that is shown by an `<img>`, or is a file, cannot do this:
`make_standalone_svg` writes variables instead, and `prefers-color-scheme` chooses. That is the `color-scheme` of the
`<img>`, which JupyterLab sets by its theme.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple, TypedDict

import numpy as np
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Affine2D

PAPER = "#111519"  # background of a dark page whose theme does not set one
DARK_ON_BOTH = "#111519"  # letters that are dark on a light and on a dark page
# Lightness (OKLCH) on a dark page: the first number plus the second one times the lightness on a light page. So two
# colours of the same hue stay apart.
LIGHT = (0.5, 0.42)
GREY = 0.04  # chroma below which a colour counts as grey
PALE = 0.9  # lightness from which on a colour is a light tint
COLOUR = re.compile(r"(?<=[:\s\"])#[0-9a-f]{6}(?=[;\"\s])")
PAIR_OF_COLOURS = re.compile(r"light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6}|var\([^)]*\))\)")
SHAPE = re.compile(r"(?<= d=\")[^\"]*")  # of a path
DECIMALS = re.compile(r"-?\d+\.\d+")
VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
PAPER_BRIGHTNESS = 0.88  # brightness of the white paper of photos on a dark page
# Of images on a dark page: the colours of a heat map are made dark, those of photos stay.
DARK_IMAGES = (
    "image:not([id^=photos] *){filter:invert(1) hue-rotate(180deg) brightness(1.1)}"
    f"[id^=photos] image{{filter:brightness({PAPER_BRIGHTNESS})}}"
)


class ThumbnailSheet(TypedDict):
    """A PNG with many small images.

    image:         its address
    width, height: of one small image, in pixels
    columns, rows: number of small images in a row, and of rows
    """

    image: str
    width: int
    height: int
    columns: int
    rows: int


def attach_thumbnail_sheet(figure: Figure, thumbnail_sheet: ThumbnailSheet) -> None:
    """Attach the sheet of small images that a figure's marks show."""
    figure.__dict__["fedlab_thumbnails"] = dict(thumbnail_sheet)


def get_thumbnail_sheet_or_empty(figure: Figure) -> ThumbnailSheet | dict[str, Any]:
    """Return the sheet of a figure's small images; {} if it has none."""
    return dict(getattr(figure, "fedlab_thumbnails", {}))


def make_svg_path_of_marker(marker: str, radius_in_path_units: float) -> str:
    """Make the `d` of an SVG path for a marker, as matplotlib names it, with this radius."""
    style = MarkerStyle(marker)
    path = (
        style.get_path()
        .transformed(style.get_transform())
        .transformed(Affine2D().scale(2 * radius_in_path_units, -2 * radius_in_path_units))
    )
    letters = {
        path.MOVETO: "M",
        path.LINETO: "L",
        path.CURVE3: "Q",
        path.CURVE4: "C",
        path.CLOSEPOLY: "Z",
    }
    commands = []
    for points, code in path.iter_segments():
        numbers = ""  # the command that closes a path has none
        if code != path.CLOSEPOLY:
            numbers = " ".join(f"{number:.2f}" for number in points)
        commands.append(letters[code] + numbers)
    return "".join(commands)


def adapt_svg_to_themes(svg: str) -> str:
    """Convert matplotlib's SVG to one element that fills its frame, with colours for a light and a
    dark page.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt" ', "", svg, count=1)
    svg = COLOUR.sub(lambda colour: make_css_light_dark_colour(colour[0]), svg)
    return re.sub(r"\s*\n\s*", " ", svg)


def make_standalone_svg(
    svg: str, title: str, description: str, *, pixels_per_point: float = 1
) -> str:
    """Make an SVG for an `<img>` or a file of one with `light-dark` colours.

    It has a background of its own, so that it can be read on any page, and a size. Each pair of colours
    becomes a variable, which has its dark value where a dark page is preferred.

    title, description: for people who cannot see the picture
    """
    names: dict[tuple[str, str], str] = {}

    def name_pair(match: re.Match) -> str:
        light, dark = match.groups()
        if dark.startswith("var("):
            dark = PAPER
        name = names.setdefault((light, dark), f"--c{len(names)}")
        return f"var({name})"

    svg = PAIR_OF_COLOURS.sub(name_pair, svg)
    svg = SHAPE.sub(lambda shape: DECIMALS.sub(round_number_in_match, shape[0]), svg)
    light_values = "".join(f"{name}:{light};" for (light, _), name in names.items())
    dark_values = "".join(f"{name}:{dark};" for (_, dark), name in names.items())
    style = (
        f"<style>:root{{background:#ffffff;{light_values}}}@media (prefers-color-scheme:dark)"
        f"{{:root{{background:{PAPER};{dark_values}}}{DARK_IMAGES}}}</style>"
    )
    width, height = VIEW_BOX.search(svg).groups()
    size = f'width="{float(width) * pixels_per_point:.0f}" height="{float(height) * pixels_per_point:.0f}"'
    head, inner = svg.split(">", 1)
    words = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return f'{head} {size} role="img">{words}{style}{inner}\n'


def round_number_in_match(number_match: re.Match) -> str:
    """Round a coordinate to one decimal: a tenth of a point is finer than a screen."""
    return f"{float(number_match[0]):.1f}".removesuffix(".0")


@lru_cache(maxsize=4096)
def make_css_light_dark_colour(hex_colour: str) -> str:
    """Make a CSS colour `light-dark(#rrggbb, #rrggbb)`. White becomes the background of the page,
    and DARK_ON_BOTH stays.
    """
    if hex_colour == DARK_ON_BOTH:
        return hex_colour
    if hex_colour == "#ffffff":
        return f"light-dark(#ffffff, var(--jp-layout-color0, {PAPER}))"
    return f"light-dark({hex_colour}, {adapt_colour_to_dark_page(hex_colour)})"


def adapt_colour_to_dark_page(hex_colour: str) -> str:
    """Convert a colour `#rrggbb` of a light page to one for a dark page."""
    lightness, chroma, hue = convert_hex_to_oklch(hex_colour)
    # Letters and rules are the darkest and the lightest greys; those in between stand for data.
    is_letter_or_rule = chroma < GREY and not 0.4 < lightness < 0.8
    if is_letter_or_rule:
        return convert_oklch_to_hex(1.08 - 0.86 * lightness, chroma, hue)
    if lightness > PALE:
        return convert_oklch_to_hex(0.34, chroma, hue)
    return convert_oklch_to_hex(LIGHT[0] + LIGHT[1] * lightness, chroma, hue)


# OKLab (Ottosson 2020): linear sRGB -> cone responses -> lightness and two opponent colours.
CONES = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                  [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip


class Oklch(NamedTuple):
    """A colour in OKLCH: lightness 0–1, chroma, and hue in radians."""

    lightness: float
    chroma: float
    hue: float


def convert_hex_to_oklch(hex_colour: str) -> Oklch:
    """Convert `#rrggbb` to OKLCH."""
    values = np.array([int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(values > 0.04045, ((values + 0.055) / 1.055) ** 2.4, values / 12.92)
    lightness, a, b = LAB @ np.cbrt(CONES @ linear)
    return Oklch(float(lightness), float(np.hypot(a, b)), float(np.arctan2(b, a)))


def convert_oklch_to_hex(lightness_0_to_1: float, chroma: float, hue_radians: float) -> str:
    """Convert a colour in OKLCH to `#rrggbb`, with less chroma if no screen can show it."""
    for share in (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0):
        lab = np.array(
            [
                lightness_0_to_1,
                share * chroma * np.cos(hue_radians),
                share * chroma * np.sin(hue_radians),
            ]
        )
        linear = np.linalg.solve(CONES, np.linalg.solve(LAB, lab) ** 3)
        if linear.min() > -1e-4 and linear.max() < 1 + 1e-4:
            break
    linear = linear.clip(0, 1)
    values = np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)
    return "#" + "".join(f"{round(255 * v):02x}" for v in values)
