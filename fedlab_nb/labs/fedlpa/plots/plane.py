"""Two clients and two weights in the plane: what each is sure of, and where the server's four answers lie."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke

from ....plots.axes import no_spines
from ....plots.style import INK, LOCK, QUIET, SERIES, Picture, dress, look, new_figure
from ....plots.words import tabled
from ..two_weights import TwoWeights

LIMITS = (-1.3, 5.3)
# name -> words, colour, marker, size; the order is that of the bars
ANSWERS = {
    "average": ("average (no precision)", look("fedavg").colour, "s", 60),
    "diagonal": ("precision's diagonal", SERIES[3], "D", 105),
    "aggregate": ("FedLPA (all of it)", look("fedlpa").colour, "o", 78),
}
SAME = 0.005  # a distance that is none


class Plane:
    """The picture of the plane; `show(...)` brings it up to date in place, for sliders."""

    def __init__(self) -> None:
        self.figure: Figure | None = None

    def show(self, weights: TwoWeights, setting: str) -> Picture:
        """Ellipses of the clients' Gaussians, one and two standard deviations round the mean, and a place for each of
        ANSWERS."""
        points = {name: getattr(weights, name) for name in ANSWERS}
        distances = {name: float(np.linalg.norm(point - weights.pooled)) for name, point in points.items()}
        with LOCK:
            if self.figure is None:
                self.figure = new_figure()
                left, right = self.figure.subplots(1, 2, width_ratios=[1.35, 1])
                self._build(left)
                self._build_bars(right)
            gaussians = zip(self.clients, weights.means, weights.precisions, strict=True)
            for (ellipses, centre, name), mean, precision in gaussians:
                values, vectors = np.linalg.eigh(precision)
                for patch, sigmas in zip(ellipses, (2, 2, 1, 1), strict=True):
                    patch.set_center(mean)
                    patch.width, patch.height = 2 * sigmas / np.sqrt(values)
                    patch.angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
                centre.set_data([mean[0]], [mean[1]])
                name.xy = mean
            self.ring.set_offsets([weights.pooled])
            for name, far in distances.items():
                self.marks[name].set_offsets([points[name]])
                self.bars[name].set_width(far)
                self.numbers[name].set(text=f"{far:.2f}", x=far + 0.05)
        one, other, ring = (place(point) for point in (*weights.means, weights.pooled))
        where = ", ".join(f"{ANSWERS[name][0]} {place(point)}" for name, point in points.items())
        away = {n: "which is the same" if far < SAME else f"{far:.2f} away" for n, far in distances.items()}
        shown = [(ANSWERS[n][0], points[n], distances[n]) for n in ANSWERS]
        shown.append(("both clients' data", weights.pooled, 0.0))
        rows = ((name, tidy(x, 3), tidy(y, 3), round(far, 3)) for name, (x, y), far in shown)
        return Picture(
            self.figure,
            alt=f"A plane of two weights ({setting}): client 1 at {one} and client 2 at {other} with the ellipses of "
            f"their Gaussians, one and two standard deviations; {where}; a ring at {ring}, the least squares solution "
            "on both clients' data. Bars of each answer's distance from the ring.",
            sentence=f"Both clients' data together give {ring}. "
            f"FedLPA lies at {place(points['aggregate'])}, {away['aggregate']}; "
            f"the average at {place(points['average'])}, {away['average']}; "
            f"the precision's diagonal at {place(points['diagonal'])}, {away['diagonal']}.",
            table=tabled("answer | weight 1 | weight 2 | distance", rows),
        )

    def _build(self, ax: Axes) -> None:
        dress(ax, title="Who is sure of what", x="weight 1", y="weight 2")
        ax.set_aspect("equal", adjustable="box")
        ax.set(xlim=LIMITS, ylim=LIMITS)
        self.clients = []
        for k, colour in enumerate(SERIES[:2]):
            ellipses = []
            for strength in (0.12, 0.25):
                fill = Ellipse((0, 0), 1, 1, facecolor=colour, alpha=strength, lw=0, zorder=2)
                edge = Ellipse((0, 0), 1, 1, fill=False, edgecolor=colour, lw=1.1, zorder=3)
                ellipses += [ax.add_patch(fill), ax.add_patch(edge)]
            (centre,) = ax.plot(0, 0, "X", color=colour, ms=9, mec="white", zorder=6)
            name = ax.annotate(
                f"client {k + 1}", (0, 0), (8, 7), textcoords="offset points", fontsize=10, color=colour,
                fontweight="bold", zorder=7, path_effects=[withStroke(linewidth=3, foreground="white")],
            )  # fmt: skip
            self.clients.append((ellipses, centre, name))
        self.ring = ax.scatter(0, 0, s=260, facecolors="none", edgecolors=INK, linewidths=1.6, zorder=5)
        self.marks = {
            name: ax.scatter(0, 0, s=size, marker=marker, color=colour, edgecolors="white", linewidths=1, zorder=6 + i)
            for i, (name, (_, colour, marker, size)) in enumerate(ANSWERS.items())
        }

    def _build_bars(self, ax: Axes) -> None:
        """How far each answer is from what both clients' data together would give."""
        dress(ax, title="Distance from the ring", x="distance in the plane", grid="x")
        self.bars, self.numbers = {}, {}
        for i, (name, (words, colour, marker, size)) in enumerate(ANSWERS.items()):
            self.bars[name] = ax.barh(i, 0, height=0.34, color=colour, alpha=0.85)[0]
            self.numbers[name] = ax.text(0, i, "", va="center", fontsize=10, color=INK)
            ax.scatter(0.06, i - 0.37, s=size * 0.6, marker=marker, color=colour, clip_on=False, zorder=6)
            ax.text(0.16, i - 0.37, words, va="center", fontsize=10, color=INK)
        ax.set(xlim=(0, 2.5), ylim=(len(ANSWERS) - 0.4, -0.75), yticks=[])
        no_spines(ax, "left")
        note = "ring: least squares on both clients' data"
        ax.text(0, len(ANSWERS) - 0.52, note, fontsize=9, color=QUIET, va="center")


def place(point: np.ndarray) -> str:
    """(1.20, -0.50) without a minus zero."""
    return "(" + ", ".join(f"{tidy(value, 2):.2f}" for value in point) + ")"


def tidy(value: float, digits: int) -> float:
    """Rounded, and no minus zero."""
    return round(float(value), digits) + 0.0
