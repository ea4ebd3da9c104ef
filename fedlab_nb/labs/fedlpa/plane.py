"""Two clients and two weights in the plane: what each client is sure of, and where the server's
answers lie.
"""

from typing import NamedTuple

import numpy as np
from ipywidgets import IntSlider
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke

from ...panels import LabView, PanelState, make_widget
from ...panels.sliders import FineLogSlider
from ...plots import Picture, build_table, describe_picture, drawing, dress
from ...plots.array_types import PlanePoint
from ...plots.style import (
    INK,
    SERIES,
    darken_colour_until_readable,
    get_method_look,
    is_frame_narrow,
    set_y_axis_of_named_rows,
)
from ...plots.words import format_client_letters
from .two_weights import TwoWeightExample, compute_two_weight_example

# Places of the plane, and of the distances beside it; in a narrow frame they are below it.
WIDE_LAYOUT = ((0.09, 0.125, 0.46, 0.8), (0.77, 0.3, 0.21, 0.5))
NARROW_LAYOUT = ((0.14, 0.42, 0.83, 0.53), (0.5, 0.08, 0.45, 0.2))
HIGHEST_NAME = (
    5.05  # the highest place of a client's name, as a value of weight 2; no ellipse reaches it
)
SAME_POINT = 0.005  # points closer than this look the same


class Answer(NamedTuple):
    """How one answer of the server is drawn."""

    label: str
    colour: str
    marker: str
    size: int


# The points of `TwoWeightExample`. The ring marks the answer from both clients' data together.
ANSWERS = {
    "average": Answer("average (no precision)", get_method_look("fedavg").colour, "s", 7),
    "diagonal": Answer("precision's diagonal", SERIES[3], "D", 9),
    "aggregate": Answer("FedLPA (all of it)", get_method_look("fedlpa").colour, "o", 8),
    "pooled": Answer("both clients' data", "none", "o", 16),
}


class TwoClientPlaneView(LabView):
    """Two clients and one layer of two weights: ellipses show what each client is sure of, points
    the answers of the server.
    """

    name, title, ready = "plane", "Example: two weights", "always"

    def __init__(self) -> None:
        self.angle = make_widget(
            IntSlider,
            label="Angle (°)",
            help=(
                "The direction of which client B is sure. Client A is sure of weight 1, "
                "which is 0 degrees"
            ),
            width=225,
            value=90,
            max=180,
            step=5,
        )
        self.ratio = make_widget(
            IntSlider,
            label="Precision",
            help="How much surer a client is along its direction than at right angles to it",
            width=225,
            value=9,
            min=1,
            max=25,
        )
        self.damping = make_widget(
            FineLogSlider,
            label="λ_damp",
            help="Damping, the prior precision of every weight",
            width=240,
            label_width=56,
            value=1e-6,
            min=-6,
            max=6,
            step=0.5,
            readout_format=".1g",
        )

    def draw(self, state: PanelState) -> Picture:
        return draw_two_client_plane(self.angle.value, self.ratio.value, self.damping.value)


def draw_two_client_plane(angle_degrees: float, precision_ratio: float, damping: float) -> Picture:
    """Draw the clients' Gaussians, the server's answers, and how far each answer is from the ring."""
    weights = compute_two_weight_example(angle_degrees, precision_ratio, damping)
    rows = []
    descriptions = {}
    with drawing(fixed=True) as (figure, _):
        plane_place, distances_place = NARROW_LAYOUT if is_frame_narrow() else WIDE_LAYOUT
        left = figure.add_axes(plane_place)
        right = figure.add_axes(distances_place)
        dress(left, title="Who is sure of what", x="weight 1", y="weight 2")
        dress(right, title="How far off", grid="x")
        draw_client_ellipses(left, weights)
        for row, (name, answer) in enumerate(ANSWERS.items()):
            point = getattr(weights, name)
            distance = float(np.linalg.norm(point - weights.pooled))
            for ax, (x, y) in ((left, point), (right, (distance, row))):
                ax.plot(
                    x,
                    y,
                    answer.marker,
                    color=answer.colour,
                    ms=answer.size,
                    mec=INK if name == "pooled" else "white",
                    mew=1.4,
                    zorder=6,
                    clip_on=False,
                )
            # Adding 0 turns -0.0 into 0.0.
            x, y = (round(float(value), 3) + 0.0 for value in point)
            rows.append((answer.label, x, y, round(distance, 3)))
            distance_text = "hits it" if distance < SAME_POINT else f"misses it by {distance:.2f}"
            descriptions[name] = distance_text
        set_y_axis_of_named_rows(
            right, [answer.label for answer in ANSWERS.values()], font_size=9.5
        )
        right.set_xlim(-0.1, max(1.5, right.get_xlim()[1]))
    return describe_picture(
        figure,
        "Two clients and the server's answers in the plane of two weights",
        f"angle {angle_degrees:g} degrees, precision {precision_ratio:g} to 1, λ_damp = "
        f"{damping:.1g}",
        (
            "The ring is the answer from both clients' data together. FedLPA "
            f"{descriptions['aggregate']}, the plain average {descriptions['average']}, and "
            f"FedLPA for each weight by itself (the diagonal) {descriptions['diagonal']}."
        ),
        build_table("answer | weight 1 | weight 2 | distance", rows),
        detail=f"The ring: {format_plane_point(weights.pooled)}.",
    )


def draw_client_ellipses(ax: Axes, example: TwoWeightExample) -> None:
    """Draw each client as ellipses of one and two standard deviations round its mean."""
    for k, (mean, precision) in enumerate(zip(example.means, example.precisions, strict=True)):
        colour = SERIES[k]
        values, vectors = np.linalg.eigh(precision)
        angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        for deviations, opacity in ((2, 0.12), (1, 0.25)):
            width, height = 2 * deviations / np.sqrt(values)
            ellipse = Ellipse(mean, width, height, angle=angle)
            ellipse.set(facecolor=(colour, opacity), edgecolor=colour, lw=1.1, zorder=2)
            ax.add_patch(ellipse)
        ax.plot(*mean, "X", color=colour, ms=9, mec="white", zorder=5)
        halo = withStroke(linewidth=3, foreground="white")  # the other client's lines may cross
        style = {
            "fontsize": 10,
            "color": darken_colour_until_readable(colour),
            "fontweight": "bold",
            "zorder": 9,
        }
        style |= {"ha": "center", "va": "bottom", "path_effects": [halo]}
        # The name stands above the larger ellipse, whose top follows from the variance of weight 2.
        top = mean[1] + 2 * np.sqrt(np.linalg.inv(precision)[1, 1])
        ax.text(
            mean[0], min(float(top), HIGHEST_NAME), f"client {format_client_letters(k)}", **style
        )
    ax.set(xlim=(-1.3, 5.7), ylim=(-1.3, 5.7), aspect="equal", anchor="NW")


def format_plane_point(point: PlanePoint) -> str:
    """Format a point as (1.20, -0.50), with 0.00 in place of -0.00."""
    numbers = [f"{round(float(value), 2) + 0.0:.2f}" for value in point]
    return f"({', '.join(numbers)})"
