"""Pictures of points in the plane and of how networks classify them: small squares, coloured by the
predicted class.

All squares are on the same axes, whose unit is an inch. This takes half as long as axes for each
square, so that the picture can follow a slider. Borders are where two scores are equal, also
between the points of the grid.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import contourpy  # matplotlib brings it
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from .array_types import GridScores, PlanePoint, PlanePoints, SampleLabels
from .kit import describe_picture
from .marks import attach_hover_text
from .style import INK, MARKERS, QUIET, RULE, Colour, Picture, drawing, list_class_colours
from .vector import convert_hex_to_oklch, convert_oklch_to_hex
from .words import SettingCaption

MARGIN = 0.06  # inches round all squares
GAP = 0.14  # inches between two squares
SMALL = 1.3  # inches; if a square's side would be smaller, there are two rows
LARGE = 2.6  # inches, the largest side of a square
TITLE = 0.24  # inches above a square
FOOT = 0.2  # inches below a square
LEGEND = 0.26  # inches below all squares
FINE = 900  # units across a square; a border's corners are exact to a ninth of a unit
AROUND = "background: the class that is named there; circles: where a class lies"
LETTER = 0.066  # approximate width of a letter of 9 points, in inches
# OKLCH of the regions: so light that a dark page makes them dark.
PALE = 0.905  # lightness
CHROMA = 0.085


@dataclass(frozen=True)
class DecisionSquare:
    """One square.

    title, foot: the texts above and below it
    says:        its hover text, one or two lines
    scores:      `[G, G, C]` at the points of a grid, the first axis upward; the largest score is the class
    points:      the dots `[n, 2]`
    labels:      their classes `[n]`
    """

    title: str
    foot: str
    says: str
    scores: GridScores
    points: PlanePoints = field(default_factory=lambda: np.zeros((0, 2)))
    labels: SampleLabels = field(default_factory=lambda: np.zeros(0, int))


class IslandCircle(NamedTuple):
    """A circle around an island of one class."""

    x: float
    y: float
    radius: float
    class_index: int


@dataclass(frozen=True)
class PlaneExtentAndCircles:
    """What all squares have in common.

    names:   the names of the classes
    edge:    the plane extends from -edge to edge in both directions
    circles: around the islands of points of one class
    """

    names: Sequence[str]
    edge: float
    circles: Sequence[IslandCircle]


@lru_cache(64)
def lighten_class_colour(colour: Colour) -> str:
    """Lighten a class's colour for its region."""
    _, chroma, hue = convert_hex_to_oklch(to_hex(colour))
    return convert_oklch_to_hex(PALE, min(CHROMA, chroma), hue)


def find_stacked_decision_regions(scores: GridScores, half_width_of_plane: float) -> list[Path]:
    """Find an area for each class. They are painted in this order, each over the earlier ones.

    Area c is where class c or a later one has the largest score. So area 0 is the whole square, and
    no gap is left where three classes meet.

    scores: `[G, G, C]` on a grid from -half_width to half_width
    """
    grid = np.linspace(0, FINE, len(scores))
    paths = [Path.unit_rectangle().transformed(Affine2D().scale(FINE))]
    for label in range(1, scores.shape[2]):
        margin = scores[..., label:].max(2) - scores[..., :label].max(2)
        contours = contourpy.contour_generator(grid, grid, margin, fill_type="OuterCode")
        vertices, codes = contours.filled(0, np.inf)
        outlines = [Path(*outline) for outline in zip(vertices, codes, strict=True)]
        whole = Path.make_compound_path(*outlines)
        # Simplifying leaves out points on a straight line between others.
        paths.append(whole.cleaned(simplify=True))
    areas = []
    for path in paths:
        vertices = path.vertices * (2 * half_width_of_plane / FINE) - half_width_of_plane
        areas.append(Path(vertices, path.codes))
    return areas


class SideAndLowerLeftCorners(NamedTuple):
    """The side of squares in inches, and their lower left corners (x, y)."""

    side: float
    corners: list[tuple[float, float]]


def place_squares_in_frame(
    square_count: int, width_inches: float, height_inches: float
) -> SideAndLowerLeftCorners:
    """Find the places of `square_count` squares in a frame of this size, as large as possible."""
    side_by_columns = {}
    for columns in range(1, square_count + 1):
        rows = math.ceil(square_count / columns)
        height_of_row = (height_inches - LEGEND) / rows
        side_for_width = compute_square_side_inches(columns, width_inches)
        side_for_height = height_of_row - TITLE - FOOT
        side_by_columns[columns] = min(side_for_width, side_for_height)
    columns = max(side_by_columns, key=lambda columns: side_by_columns[columns])
    side = max(side_by_columns[columns], 0.2)
    top = height_inches - TITLE - side
    corners = []
    for number in range(square_count):
        row, column = divmod(number, columns)
        x = MARGIN + column * (side + GAP)
        y = top - row * (side + TITLE + FOOT)
        corners.append((x, y))
    return SideAndLowerLeftCorners(side, corners)


def compute_square_side_inches(column_count: int, width_inches: float) -> float:
    """Compute the side, in inches, of squares that fill the width."""
    return (width_inches - 2 * MARGIN - (column_count - 1) * GAP) / column_count


def compute_frame_height_inches(square_count: int, width_inches: float) -> float:
    """Compute the height, in inches, of squares that fill the width.

    They stand in two rows if one row would make them too small.
    """
    rows = 1
    if square_count >= 4 and compute_square_side_inches(square_count, width_inches) <= SMALL:
        rows = 2
    columns = math.ceil(square_count / rows)
    side = min(compute_square_side_inches(columns, width_inches), LARGE)
    return rows * (side + TITLE + FOOT) + LEGEND


def draw_decision_regions(
    squares: Sequence[DecisionSquare],
    plane: PlaneExtentAndCircles,
    *,
    setting: SettingCaption | str,
    sentence: str,
    table: Sequence[Mapping[str, object]],
) -> Picture:
    """Draw the squares of a plane: the decision regions of each, with circles and dots."""
    with drawing(fixed=True) as (figure, _):
        width, height = figure.get_size_inches()
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set(xlim=(0, width), ylim=(0, height))
        side, corners = place_squares_in_frame(len(squares), width, height)
        draw_square_contents(ax, squares, plane, corners, side)
        longest = max(len(square.title) for square in squares)
        font_size = float(np.clip(72 * side / (0.66 * longest), 5.5, 10.5))
        for square, (x, y) in zip(squares, corners, strict=True):
            title_style = {"fontsize": font_size, "fontweight": "bold", "color": INK}
            ax.text(x, y + side + 0.06, square.title, **title_style)
            ax.text(x, y - 0.16, square.foot, fontsize=min(font_size, 9), color=QUIET)
        frames = [Path.unit_rectangle()] * len(squares)
        style = {"facecolors": (1, 1, 1, 0), "edgecolors": RULE, "linewidths": 0.8, "zorder": 6}
        covers = add_scaled_shapes(ax, frames, corners, side, **style)
        texts = [square.says for square in squares]
        attach_hover_text(covers, texts)
        lowest = min(y for _, y in corners)
        draw_plane_legend(ax, plane.names, lowest - FOOT - 0.16, width)
    return describe_picture(figure, "Decision regions in the plane", setting, sentence, table)


def add_scaled_shapes(
    ax: Axes,
    paths: Sequence[Path],
    origins: Sequence[PlanePoint | tuple[float, float]],
    scale_factor: float,
    **style: Any,
) -> PathCollection:
    """Add many shapes at once, each multiplied by `scale_factor` and moved to its position. Adding them
    one by one as patches takes ten times as long.
    """
    moved_paths = []
    for path, place in zip(paths, origins, strict=True):
        moved_paths.append(Path(path.vertices * scale_factor + place, path.codes))
    shapes = PathCollection(moved_paths, clip_on=False, **style)
    ax.add_collection(shapes, autolim=False)
    return shapes


def draw_square_contents(
    ax: Axes,
    squares: Sequence[DecisionSquare],
    plane: PlaneExtentAndCircles,
    lower_left_corners_inches: Sequence[tuple[float, float]],
    side_inches: float,
) -> None:
    """Draw the inside of all squares: regions, circles and dots. The axes' unit is an inch."""
    colours = list_class_colours(len(plane.names))
    scale = side_inches / (2 * plane.edge)
    middles = [np.add(corner, side_inches / 2) for corner in lower_left_corners_inches]
    areas = []
    area_places = []
    area_colours = []
    circles = []
    circle_places = []
    circle_colours = []
    for square, middle in zip(squares, middles, strict=True):
        for region, colour in zip(
            find_stacked_decision_regions(square.scores, plane.edge), colours, strict=True
        ):
            areas.append(region)
            area_places.append(middle)
            area_colours.append(lighten_class_colour(colour))
        for x, y, radius, label in plane.circles:
            circles.append(Path.circle((x, y), radius))
            circle_places.append(middle)
            circle_colours.append(colours[label])
    style: dict[str, Any] = {"facecolors": area_colours, "edgecolors": "white", "linewidths": 1}
    add_scaled_shapes(ax, areas, area_places, scale, **style)
    style = {"facecolors": "none", "edgecolors": circle_colours, "linewidths": 1.1}
    add_scaled_shapes(ax, circles, circle_places, scale, linestyles=[(0, (2.5, 1.8))], **style)
    draw_square_dots(ax, squares, plane, middles, side_inches)


def draw_square_dots(
    ax: Axes,
    squares: Sequence[DecisionSquare],
    plane: PlaneExtentAndCircles,
    square_centres_inches: Sequence[PlanePoint],
    side_inches: float,
) -> None:
    """Draw the dots of all squares, with one marker and colour per class."""
    scale = side_inches / (2 * plane.edge)
    points = np.concatenate([square.points for square in squares])  # in the plane
    labels = np.concatenate([square.labels for square in squares])
    positions_of_squares = []
    for square, middle in zip(squares, square_centres_inches, strict=True):
        positions_of_squares.append(square.points * scale + middle)
    places = np.concatenate(positions_of_squares)  # in inches
    is_inside = (np.abs(points) < 0.99 * plane.edge).all(1)
    style = {"ms": float(np.clip(2.4 * side_inches, 3, 5)), "zorder": 3, "clip_on": False, "mew": 0}
    for label, colour in enumerate(list_class_colours(len(plane.names))):
        x, y = places[(labels == label) & is_inside].T
        ax.add_artist(Line2D(x, y, ls="", marker=MARKERS[label], mfc=colour, **style))


def draw_plane_legend(
    ax: Axes,
    class_names: Sequence[str],
    legend_y_in_axes_inches: float,
    available_width_inches: float,
) -> None:
    """Draw a dot for each class with its name, and if there is room the meaning of background and
    circles. The axes' unit is an inch.

    legend_y_in_axes_inches: of the base line of its texts
    """
    x = MARGIN
    style = {"ls": "", "ms": 5.5, "mew": 0}
    for label, (name, colour) in enumerate(
        zip(class_names, list_class_colours(len(class_names)), strict=True)
    ):
        dot_y = legend_y_in_axes_inches + 0.045
        dot = Line2D([x + 0.06], [dot_y], marker=MARKERS[label], mfc=colour, **style)
        ax.add_artist(dot)
        ax.text(x + 0.14, legend_y_in_axes_inches, f"class {name}", fontsize=9, color=QUIET)
        x += 0.66 + LETTER * len(name)
    if x + LETTER * len(AROUND) < available_width_inches:
        ax.text(x + 0.06, legend_y_in_axes_inches, AROUND, fontsize=9, color=QUIET)
