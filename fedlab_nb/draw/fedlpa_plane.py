"""Two clients and two weights in the plane: what each is sure of, and where the server's four answers lie."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke

from .style import FAINT, INK, LOCK, QUIET, SERIES, Picture, dress, new_figure

LIMITS = (-1.3, 5.3)
# name -> words, colour, marker, size; the order is that of the bars
ANSWERS = {
    "average": ("average (no precision)", "#7F7F7F", "s", 60),
    "diagonal": ("diagonal alone", SERIES[3], "D", 105),
    "aggregate": ("FedLPA (all of it)", SERIES[2], "o", 78),
}
CLIENTS = (SERIES[0], SERIES[1])


class Plane:
    """The picture of the plane; `show(...)` brings it up to date in place, for sliders."""

    def __init__(self) -> None:
        self.figure: Figure | None = None

    def show(
        self,
        means: np.ndarray,
        precisions: np.ndarray,
        points: Mapping[str, np.ndarray],
        pooled: np.ndarray,
        *,
        setting: str,
    ) -> Picture:
        """Clients' `means [2, 2]` with the ellipses of their `precisions [2, 2, 2]`, and `points`: a place `[2]` for
        each of ANSWERS. `pooled [2]`: least squares on both clients' data.
        """
        with LOCK:
            if self.figure is None:
                self.figure = new_figure()
                left, right = self.figure.subplots(1, 2, width_ratios=[1.35, 1])
                self._build(left)
                self._build_bars(right)
            for k in range(2):
                self._place_client(k, means[k], precisions[k])
            self.ring.set_offsets([pooled])
            for name, answer in points.items():
                self.marks[name].set_offsets([answer])
                far = distance(answer, pooled)
                self.bars[name].set_width(far)
                self.numbers[name].set_text(f"{far:.2f}")
                self.numbers[name].set_x(far + 0.05)
        words = alt_text(means, points, pooled, setting), sentence(points, pooled), table(points, pooled)
        return Picture(self.figure, *words)

    def _build(self, ax: Axes) -> None:
        dress(ax, title="Who is sure of what", x="weight 1", y="weight 2")
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlim(*LIMITS)
        ax.set_ylim(*LIMITS)
        self.ellipses: list[list[Ellipse]] = []
        self.centres, self.names = [], []
        for k, colour in enumerate(CLIENTS):
            found = []
            for strength in (0.12, 0.25):
                fill = Ellipse((0, 0), 1, 1, facecolor=colour, alpha=strength, lw=0, zorder=2)
                edge = Ellipse((0, 0), 1, 1, fill=False, edgecolor=colour, lw=1.1, zorder=3)
                found += [ax.add_patch(fill), ax.add_patch(edge)]
            self.ellipses.append(found)
            self.centres += ax.plot(0, 0, "X", color=colour, ms=9, mec="white", zorder=6)
            halo = [withStroke(linewidth=3, foreground="white")]
            text = f"client {k + 1}"
            self.names.append(
                ax.annotate(
                    text, (0, 0), (8, 7), textcoords="offset points", fontsize=10, color=colour, fontweight="bold",
                    zorder=7, path_effects=halo,
                )
            )  # fmt: skip
        self.ring = ax.scatter(0, 0, s=260, facecolors="none", edgecolors=INK, linewidths=1.6, zorder=5)
        self.marks = {
            name: ax.scatter(0, 0, s=size, marker=marker, color=colour, edgecolors="white", linewidths=1, zorder=6 + i)
            for i, (name, (_, colour, marker, size)) in enumerate(ANSWERS.items())
        }

    def _place_client(self, k: int, mean: np.ndarray, precision: np.ndarray) -> None:
        """One and two standard deviations round the mean of a Gaussian with this precision."""
        values, vectors = np.linalg.eigh(precision)
        for i, patch in enumerate(self.ellipses[k]):
            sigmas = 2 if i < 2 else 1
            patch.set_center(mean)
            patch.width, patch.height = 2 * sigmas / np.sqrt(values)
            patch.angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        self.centres[k].set_data([mean[0]], [mean[1]])
        self.names[k].xy = mean

    def _build_bars(self, ax: Axes) -> None:
        """How far each answer is from what both clients' data together would give."""
        dress(ax, title="Distance from the ring", x="distance in the plane")
        self.bars, self.numbers = {}, {}
        for i, (name, (words, colour, marker, size)) in enumerate(ANSWERS.items()):
            self.bars[name] = ax.barh(i, 0, height=0.34, color=colour, alpha=0.85)[0]
            self.numbers[name] = ax.text(0, i, "", va="center", fontsize=10, color=INK)
            ax.scatter(0.06, i - 0.37, s=size * 0.6, marker=marker, color=colour, clip_on=False, zorder=6)
            ax.text(0.16, i - 0.37, words, va="center", fontsize=10, color=INK)
        ax.set_ylim(len(ANSWERS) - 0.4, -0.75)
        ax.set_xlim(0, 2.5)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.grid(True, axis="x", color=FAINT, linewidth=1)
        ax.set_axisbelow(True)
        note = "ring: least squares on both clients' data"
        ax.text(0, len(ANSWERS) - 0.52, note, fontsize=9, color=QUIET, va="center")


def distance(point: np.ndarray, pooled: np.ndarray) -> float:
    return float(np.linalg.norm(np.asarray(point) - np.asarray(pooled)))


def place(point: np.ndarray) -> str:
    """(1.20, -0.50) without a minus zero."""
    return "(" + ", ".join(f"{round(float(v), 2) + 0.0:.2f}" for v in point) + ")"


def sentence(points: Mapping[str, np.ndarray], pooled: np.ndarray) -> str:
    far = {name: distance(points[name], pooled) for name in ANSWERS}
    text = f"Both clients' data together give {place(pooled)}. FedLPA lies at {place(points['aggregate'])}"
    text += ", which is the same" if far["aggregate"] < 0.005 else f", {far['aggregate']:.2f} away"
    for name, words in (("average", "the average"), ("diagonal", "the diagonal alone")):
        text += f"; {words} at {place(points[name])}"
        text += ", which is the same" if far[name] < 0.005 else f", {far[name]:.2f} away"
    return text + "."


def alt_text(means: np.ndarray, points: Mapping[str, np.ndarray], pooled: np.ndarray, setting: str) -> str:
    where = ", ".join(f"{ANSWERS[name][0]} {place(points[name])}" for name in ANSWERS)
    return (
        f"A plane of two weights ({setting}): client 1 at {place(means[0])} and client 2 at {place(means[1])} with the "
        f"ellipses of their Gaussians, one and two standard deviations; {where}; a ring at {place(pooled)}, the least "
        "squares solution on both clients' data. Bars of each answer's distance from the ring."
    )


def table(points: Mapping[str, np.ndarray], pooled: np.ndarray) -> list[dict]:
    rows = {**{ANSWERS[name][0]: points[name] for name in ANSWERS}, "both clients' data": pooled}
    return [
        {
            "answer": name,
            "weight 1": round(float(p[0]), 3) + 0.0,
            "weight 2": round(float(p[1]), 3) + 0.0,
            "distance": round(distance(p, pooled), 3),
        }
        for name, p in rows.items()
    ]
