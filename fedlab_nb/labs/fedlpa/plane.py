"""Two clients and two weights in the plane: what each is sure of, and where the server's answers lie."""

import numpy as np
from ipywidgets import FloatLogSlider, IntSlider
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke

from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, tabled, told
from ...plots.axes import rows_axis
from ...plots.style import INK, SERIES, look, narrow
from ...plots.words import letter
from .two_weights import TwoWeights, two_weights

ANGLE = "The direction of which client B is sure. Client A is sure of weight 1, which is 0 degrees"
RATIO = "How much surer a client is along its direction than at right angles to it"
PRIOR = "Damping, the prior precision of every weight"
PLACES = (
    ((0.09, 0.125, 0.46, 0.8), (0.77, 0.3, 0.21, 0.5)),
    ((0.14, 0.42, 0.83, 0.53), (0.5, 0.08, 0.45, 0.2)),
)
# name -> words, colour, marker, size
ANSWERS = {
    "average": ("average (no precision)", look("fedavg").colour, "s", 7),
    "diagonal": ("precision's diagonal", SERIES[3], "D", 9),
    "aggregate": ("FedLPA (all of it)", look("fedlpa").colour, "o", 8),
    "pooled": ("both clients' data", "none", "o", 16),
}


class Plane(LabView):
    """Two clients, one layer of two weights: ellipses of what they are sure of, and the answers of the server."""

    name, title, ready = "plane", "Two weights", "always"

    def __init__(self) -> None:
        self.angle = made(
            IntSlider, label="Angle (°)", help=ANGLE, width=225, value=90, max=180, step=5
        )
        self.ratio = made(
            IntSlider, label="Precision", help=RATIO, width=225, value=9, min=1, max=25
        )
        span = {"value": 1e-6, "min": -6, "max": 6, "step": 0.5, "readout_format": ".1g"}
        self.damping = made(
            FloatLogSlider, label="λ_damp", help=PRIOR, width=240, label_width=56, **span
        )

    def draw(self, state: PanelState) -> Picture:
        return plane(self.angle.value, self.ratio.value, self.damping.value)


def plane(angle: float, ratio: float, damping: float) -> Picture:
    """The picture of `two_weights`: ellipses of the clients' Gaussians, one and two standard deviations round the mean,
    and the place of each of ANSWERS; a ring is what both clients' data together would give.
    """
    weights = two_weights(angle, ratio, damping)
    rows, said = [], {}
    with drawing(fixed=True) as (figure, _):
        plane, beside = PLACES[narrow()]
        ax = dress(figure.add_axes(plane), title="Who is sure of what", x="weight 1", y="weight 2")
        right = dress(figure.add_axes(beside), title="How far from the ring", grid="x")
        gaussians(ax, weights)
        for row, (name, (words, colour, marker, size)) in enumerate(ANSWERS.items()):
            point = getattr(weights, name)
            far = float(np.linalg.norm(point - weights.pooled))
            edge = INK if name == "pooled" else "white"
            for at, (x, y) in ((ax, point), (right, (far, row))):
                at.plot(
                    x, y, marker, color=colour, ms=size, mec=edge, mew=1.4, zorder=6, clip_on=False
                )
            rows.append((words, *(round(float(value), 3) + 0.0 for value in point), round(far, 3)))
            said[name] = (
                f"{place(point)}, {'which is the same' if far < 0.005 else f'{far:.2f} away'}"
            )
        rows_axis(right, [words for words, *_ in ANSWERS.values()], size=9.5)
        right.set_xlim(-0.1, max(1.5, right.get_xlim()[1]))
    return told(
        figure,
        "Two clients and the server's answers in the plane of two weights",
        f"angle {angle:g} degrees, precision {ratio:g} to 1, λ_damp = {damping:.1g}",
        f"Both clients' data together give {place(weights.pooled)}. FedLPA lies at {said['aggregate']}; "
        f"the average at {said['average']}; the precision's diagonal at {said['diagonal']}.",
        tabled("answer | weight 1 | weight 2 | distance", rows),
    )


def gaussians(ax: Axes, weights: TwoWeights) -> None:
    """The two clients: ellipses of one and two standard deviations, and where the client itself is."""
    for k, (mean, precision, colour) in enumerate(
        zip(weights.means, weights.precisions, SERIES, strict=False)
    ):
        values, vectors = np.linalg.eigh(precision)
        angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        for sigmas, strength in ((2, 0.12), (1, 0.25)):
            ellipse = Ellipse(mean, *(2 * sigmas / np.sqrt(values)), angle=angle)
            ellipse.set(facecolor=(colour, strength), edgecolor=colour, lw=1.1, zorder=2)
            ax.add_patch(ellipse)
        ax.plot(*mean, "X", color=colour, ms=9, mec="white", zorder=5)
        style = {"fontsize": 10, "color": colour, "fontweight": "bold", "zorder": 9}
        halo = [withStroke(linewidth=3, foreground="white")]  # over the lines
        ax.text(*(mean + 0.12), f"client {letter(k)}", path_effects=halo, **style)
    ax.set(xlim=(-1.3, 5.3), ylim=(-1.3, 5.3), aspect="equal", anchor="NW")


def place(point: np.ndarray) -> str:
    """(1.20, -0.50) without a minus zero."""
    return "(" + ", ".join(f"{round(float(value), 2) + 0.0:.2f}" for value in point) + ")"
