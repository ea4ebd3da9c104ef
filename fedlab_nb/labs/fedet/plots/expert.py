"""Who is the expert? What each client says of one sample, how much it counts, and what comes of it (Fed-ET)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ....plots.axes import class_ticks, few_ticks, mark
from ....plots.characters import row_name
from ....plots.style import ACCENT, INK, LOCK, QUIET, RULE, SECOND, Picture, dress, many_is_dark, new_figure, shorten
from ....plots.words import capital, percent, plural

FEW, NARROW = 16, 12  # up to so many clients and classes, numbers are written into the picture


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample, its `name` ("public sample 17"), and what m clients say of it, in C classes.

    outputs [m, C]:  each client's softmax output;   weights [m]: ω_k, sum 1;   spread [m]: what ω_k is made from
    consensus [C]:   Σ ω_k outputs;   members [m]: the clients' ids;   student [C]: the server's own softmax output
    image [H, W] or [H, W, 3] in [0, 1];   truth: its class, if known;   client, klass: what is looked at
    held [m]:        how many training samples of the consensus' class each client has, which the server cannot know
    """

    outputs: np.ndarray
    weights: np.ndarray
    spread: np.ndarray
    consensus: np.ndarray
    members: Sequence[int]
    names: Sequence[str]
    name: str
    setting: str
    spread_of: str = "variance of the softmax"
    student: np.ndarray | None = None
    image: np.ndarray | None = None
    truth: int | None = None
    held: np.ndarray | None = None
    client: int | None = None
    klass: int | None = None

    @property
    def label(self) -> int:
        return int(self.consensus.argmax())

    @property
    def dissent(self) -> np.ndarray:
        """Whether each client says something else than the consensus, `[m]`."""
        return self.outputs.argmax(1) != self.label

    @property
    def below(self) -> dict[str, np.ndarray]:
        """The rows under those of the clients."""
        return {"consensus": self.consensus} | ({} if self.student is None else {"server": self.student})

    def top(self, output: np.ndarray) -> str:
        """The class that an output `[C]` puts first."""
        return f"“{self.names[int(output.argmax())]}”"

    @property
    def sentence(self) -> str:
        follow = len(self.members) - int(self.dissent.sum())
        text = (
            f"{capital(self.name)}: the consensus is {self.top(self.consensus)} ({percent(self.consensus.max())}); "
            f"{follow} of {plural(len(self.members), 'client')} follow{'s' * (follow == 1)} it, "
            f"dissent ω_div = {self.weights[self.dissent].sum():.2f}"
        )
        if self.truth is not None:
            right = "right" if self.truth == self.label else f"wrong, it is “{self.names[self.truth]}”"
            text += f", and it is {right}"
        i = self.members.index(self.client) if self.client in self.members else int(self.weights.argmax())
        who = f"Client {self.members[i]}" + ("" if self.client in self.members else ", which counts most,")
        own = "" if self.held is None or self.held[i] else f", though it has never seen {self.top(self.consensus)}"
        says = f"{self.top(self.outputs[i])} ({percent(self.outputs[i].max())})"
        text += f". {who} says {says} and counts {self.weights[i]:.2f}{own}."
        if self.student is not None and int(self.student.argmax()) != self.label:
            text += f" The server says {self.top(self.student)}."
        return text

    @property
    def alt(self) -> str:
        first = list(zip(self.members, self.outputs, self.weights, strict=True))[:20]
        rows = "; ".join(f"client {k} {self.top(o)} {percent(o.max())}, weight {w:.2f}" for k, o, w in first)
        return (
            f"Heat-map of the clients' outputs for {self.name} ({self.setting}) and bars of their weights, made from "
            f"the {self.spread_of}: {rows}. Consensus {self.top(self.consensus)}."
        )

    @property
    def table(self) -> list[dict[str, Any]]:
        rows = []
        for i, (k, output) in enumerate(zip(self.members, self.outputs, strict=True)):
            row = {"client": k, "says": self.names[int(output.argmax())], "how sure": percent(output.max())}
            row |= {self.spread_of: f"{self.spread[i]:.3g}", "weight ω": f"{self.weights[i]:.3f}"}
            row |= {"dissents": "yes" if self.dissent[i] else "no"}
            rows.append(row | ({} if self.held is None else {"own samples of the consensus' class": int(self.held[i])}))
        return rows


def expert(s: Sample) -> Picture:
    """Heat-map of what clients, consensus and server say of a sample, and bars of the clients' weights."""
    m, classes = s.outputs.shape
    rows = np.stack([*s.outputs, *s.below.values()])
    hues = [SECOND if against else ACCENT for against in s.dissent]
    with LOCK:
        figure = new_figure(fixed=True)  # this picture follows a slider, and a layout would cost most
        heat = figure.add_axes((0.245, 0.125, 0.41, 0.785))
        bars = figure.add_axes((0.675, 0.125, 0.2, 0.785), sharey=heat)
        heat.imshow(rows, cmap=many_is_dark(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        hatches = ["////" if against else None for against in s.dissent]
        bars.barh(range(m), s.weights, color=hues, hatch=hatches, height=0.7, edgecolor="white", lw=0)
        _dress_heat(heat, s, hues)
        dress(bars, title="Its weight", x="ω (beside it: σ²)" if m <= FEW else "ω", grid="x")
        bars.tick_params(axis="y", left=False, labelleft=False)
        bars.set_xlim(0, max(0.01, float(s.weights.max())) * 1.35)
        few_ticks(bars, "x", 3)
        if classes <= NARROW and m <= FEW:
            for i, j in np.argwhere(rows >= 0.005):
                dark = "white" if rows[i, j] > 0.5 else INK
                heat.text(j, i, f"{100 * rows[i, j]:.0f}", ha="center", va="center", fontsize=8.5, color=dark)
        for i in range(m if m <= FEW else 0):
            bars.text(s.weights[i], i, f" {s.spread[i]:.2g}", va="center", fontsize=8.5, color=QUIET)
        if s.client in s.members:
            mark(bars, s.members.index(s.client), m, "y")
        if s.held is not None and m <= FEW:
            figure.text(0.985, 0.93, f"own “{shorten(s.names, 8)[s.label]}”", ha="right", fontsize=9, color=QUIET)
            for i, count in enumerate(s.held):
                bars.annotate(
                    str(int(count)), (1, i), xycoords=("axes fraction", "data"), xytext=(34, 0),
                    textcoords="offset points", ha="center", va="center", fontsize=9, color=INK,
                    fontweight="bold" if not count and not s.dissent[i] else "normal",
                )  # fmt: skip
        _card(figure, s)
    return Picture.of(figure, s)


def _dress_heat(ax, s: Sample, hues: Sequence[str]) -> None:
    m, classes = s.outputs.shape
    dress(ax, title="What each client says, in %", x="class")
    for spine in ax.spines.values():
        spine.set(visible=True, color=RULE)
    ax.tick_params(length=0)
    class_ticks(ax, s.names, length=6, fontsize=9.5)
    shown = [i for i in range(m) if i % -(-m // 25) == 0 or s.members[i] == s.client]
    places = [*shown, *range(m, m + len(s.below))]
    small = 9.5 if m <= 12 else 9 if m <= FEW else 7.5
    ax.set_yticks(places, [*(row_name(s.members[i], s.setting) for i in shown), *s.below], fontsize=small)
    for tick, place in zip(ax.get_yticklabels(), places, strict=True):
        tick.set_color(hues[place] if place < m else INK)
        tick.set_fontweight("bold" if place >= m or s.members[place] == s.client else "normal")
    ax.axhline(m - 0.5, color=RULE, lw=1.5)
    box = Rectangle((s.label - 0.5, m - 0.5), 1, len(s.below), fill=False, ec=INK, lw=2, clip_on=False, zorder=3)
    ax.add_patch(box)
    mark(ax, s.klass, classes, frame=True, lw=2)


def _card(figure, s: Sample) -> None:
    """The sample itself, and the two colours."""
    if s.image is not None:
        box = figure.add_axes((0.012, 0.66, 0.125, 0.25))
        box.imshow(s.image, cmap="gray_r" if s.image.ndim == 2 else None, vmin=0, vmax=1, interpolation="nearest")
        box.set_axis_off()
    figure.text(0.012, 0.635, s.name.replace(" sample ", "\nsample "), fontsize=9, color=INK, va="top")
    if s.truth is not None:
        figure.text(0.012, 0.53, f"is “{s.names[s.truth]}”", fontsize=9, color=INK, va="top")
    against = int(s.dissent.sum())
    figure.text(0.012, 0.33, f"{len(s.members) - against} follow", fontsize=9.5, color=ACCENT, fontweight="bold")
    figure.text(0.012, 0.27, f"{against} dissent", fontsize=9.5, color=SECOND, fontweight="bold")
