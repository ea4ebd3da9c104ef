"""Writes a picture as an SVG file that is light or dark as the reader prefers. Guides and sites
show it as an image.

    write_themed_svg(picture, "notebooks/images/which.svg", force=True)

`vector.draw_light_dark_svg_element` writes each colour as `light-dark(a, b)`, which follows the theme of the page that
contains the SVG. A file that is shown as an image cannot do this. It has variables instead, which
follow the reader's preference, and a title and a description for people who cannot see it.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from ..files import write_file
from .style import Picture
from .vector import PAPER, draw_light_dark_svg_element

SHAPE = re.compile(r"(?<= d=\")[^\"]*")  # of a path
DECIMALS = re.compile(r"-?\d+\.\d+")
PAIR = re.compile(r"light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6}|var\([^)]*\))\)")


def write_themed_svg(picture: Picture, path: str | Path, *, force: bool = False) -> Path:
    """Write the file. UsageError if there is a file that the package did not write, unless `force`."""
    return write_file(path, make_themed_svg(picture), force=force)


def make_themed_svg(picture: Picture) -> str:
    """Make the text of the file: each pair of colours is a variable, which has its dark value on a
    dark page.
    """
    assert picture.figure is not None, "a picture without a figure has nothing to draw"
    colours: dict[tuple[str, str], str] = {}

    def name_colour(match: re.Match) -> str:
        light, dark = match.groups()
        if dark.startswith("var("):
            dark = PAPER
        name = colours.setdefault((light, dark), f"--c{len(colours)}")
        return f"var({name})"

    body = PAIR.sub(name_colour, draw_light_dark_svg_element(picture.figure))
    body = SHAPE.sub(
        lambda shape: DECIMALS.sub(round_matched_number_to_one_decimal, shape[0]), body
    )
    head, inner = body.split(">", 1)
    light_values = "".join(f"{name}:{light};" for (light, _), name in colours.items())
    dark_values = "".join(f"{name}:{dark};" for (_, dark), name in colours.items())
    style = (
        f"<style>:root{{{light_values}}}@media "
        f"(prefers-color-scheme:dark){{:root{{{dark_values}}}}}</style>"
    )
    title = picture.alt.partition(" (")[0]
    words = f"<title>{escape(title)}</title><desc>{escape(picture.alt)}</desc>"
    return f'{head} role="img">{words}{style}{inner}\n'


def round_matched_number_to_one_decimal(number_match: re.Match) -> str:
    """Round a coordinate to one decimal: a tenth of a point is finer than a screen."""
    return f"{float(number_match[0]):.1f}".removesuffix(".0")
