"""The picture of one sample: what every client says of it, what is known of the client beside it, and the answers that
are made from all of them. FENS and Fed-ET have it in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..plots import Picture, drawing, dress, heading, percent, told
from ..plots.axes import class_ticks, few_ticks, mark, no_spines
from ..plots.characters import row_name
from ..plots.kit import table_colours
from ..plots.style import ACCENT, INK, QUIET, SECOND

FEW, NARROW = 16, 12  # up to so many clients and classes, numbers are written into the picture


@dataclass(frozen=True, eq=False)
class OneSample:
    """A sample and what M clients say of it, in C classes.

    x:       `[channels, H, W]`, or features `[D]`;   name: "test sample 17";   truth: its class, where it is known
    said:    `[M, C]`, what the clients say, probabilities or logits;   answers: {who: probabilities `[C]`}
    against: `[M]`, who says something else than the truth, or than the others; what the two groups do: `groups`
    beside:  {title: a number a client `[M]`}: bars of the first, the others written next to them
    members: the clients' ids;   client, klass: what is looked at
    """

    x: np.ndarray
    name: str
    truth: int | None
    said: np.ndarray
    answers: Mapping[str, np.ndarray]
    against: np.ndarray
    groups: tuple[str, str]
    beside: Mapping[str, np.ndarray]
    members: Sequence[int]
    names: Sequence[str]
    setting: str
    client: int | None = None
    klass: int | None = None

    @property
    def limit(self) -> float:
        """End of the colours: 1 for probabilities."""
        return max(1.0, float(np.abs(self.said).max()))

    def top(self, said: np.ndarray) -> str:
        """The class that comes first in `[C]`."""
        return f"“{self.names[int(said.argmax())]}”"

    @property
    def table(self) -> list[dict]:
        rows = []
        for i, (k, said) in enumerate(zip(self.members, self.said, strict=True)):
            beside = {title: f"{values[i]:.3g}" for title, values in self.beside.items()}
            shares = {f"class {name}": f"{value:.2g}" for name, value in zip(self.names, said, strict=True)}
            rows.append({"who": f"client {k}", "says": self.top(said), **beside, **shares})
        for who, answer in self.answers.items():
            shares = {f"class {name}": percent(value) for name, value in zip(self.names, answer, strict=True)}
            rows.append({"who": who, "says": self.top(answer), **shares})
        return rows


def one_sample(of: OneSample, title: str, sentence: str) -> Picture:
    """A row a client, below them the answers; a dot on what each says first, the true class in a frame."""
    hues = [SECOND if against else ACCENT for against in of.against]
    with drawing(fixed=True) as (figure, _):  # this picture follows a slider, and a layout would cost most
        rows = figure.add_axes((0.245, 0.125, 0.41, 0.785))
        who_says_what(rows, of, title, hues)
        what_is_known(figure.add_axes((0.675, 0.125, 0.15, 0.785), sharey=rows), of, hues)
        card(figure, of)
    return told(figure, f"{title}: {of.name}", of.setting, sentence, of.table)


def who_says_what(ax: Axes, of: OneSample, title: str, hues: Sequence[str]) -> None:
    (m, classes), answers = of.said.shape, np.array(list(of.answers.values()))
    values = np.concatenate([of.said / of.limit, answers])
    ax.imshow(values, cmap=table_colours(True), vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    if m <= FEW and classes <= NARROW:
        written = np.concatenate([of.said * (100 if of.limit == 1 else 1), 100 * answers]).round()
        for i, j in np.argwhere(written):
            ink = "white" if abs(values[i, j]) > 0.7 else INK
            ax.text(j, i, f"{written[i, j]:.0f}", ha="center", va="center", fontsize=8, color=ink)
    places = values.argmax(1) + 0.36
    ax.scatter(places, range(len(values)), s=14, color=[*hues, *[INK] * len(answers)], edgecolors="white", lw=0.5)
    heading(ax, title, size=10.5)
    ax.set_xlabel("class (answers in %)", fontsize=10, color=QUIET)
    class_ticks(ax, of.names, length=6, few=26)
    ax.tick_params(length=0, labelsize=9.5, labelcolor=INK)
    shown = [i for i in range(m) if i % -(-m // 25) == 0 or of.members[i] == of.client]
    names = [*(row_name(of.members[i], of.setting) for i in shown), *of.answers]
    shown += range(m, len(values))
    ax.set_yticks(shown, names, fontsize=9.5 if m <= FEW else 7.5)
    for tick, i in zip(ax.get_yticklabels(), shown, strict=True):
        tick.set_color(hues[i] if i < m else INK)
        tick.set_fontweight("bold" if i >= m or of.members[i] == of.client else "normal")
    ax.axhline(m - 0.5, color=QUIET, lw=1.5)
    mark(ax, of.truth, classes, frame=True, colour="#009E73")
    mark(ax, of.klass, classes, frame=True, lw=1.2)
    no_spines(ax)


def what_is_known(ax: Axes, of: OneSample, hues: Sequence[str]) -> None:
    """The bars, hatched where a client is against, and the numbers next to them."""
    m, (first, *others) = len(of.members), of.beside
    hatches = ["////" if against else None for against in of.against]
    ax.barh(range(m), of.beside[first], color=hues, hatch=hatches, height=0.7, edgecolor="white", lw=0)
    dress(ax, title=first, grid="x", size=9.5)
    ax.tick_params(axis="y", left=False, labelleft=False)
    ax.set_xlim(0, max(0.01, float(of.beside[first].max())) * 1.1)
    few_ticks(ax, "x", 2)
    if of.client in of.members:
        mark(ax, of.members.index(of.client), m, "y")
    for x, title in zip((1.2, 1.65), others if m <= FEW else (), strict=False):
        style = {"transform": ax.get_yaxis_transform(), "ha": "center", "va": "center", "fontsize": 8.5}
        ax.text(x, 1.02, title, color=QUIET, **{**style, "transform": ax.transAxes, "va": "bottom"})
        for i, value in enumerate(of.beside[title]):
            ax.text(x, i, f"{value:.0f}" if value >= 10 else f"{value:.2g}", color=INK, **style)


def card(figure: Figure, of: OneSample) -> None:
    """The sample itself, and the two colours."""
    x, truth = np.asarray(of.x, dtype=float), "" if of.truth is None else f"\nis “{of.names[of.truth]}”"
    ax = figure.add_axes((0.012, 0.66, 0.125, 0.25))
    ax.set_axis_off()
    if x.ndim == 1:
        ax.barh(range(len(x)), x, color=ACCENT, height=0.8)
    else:
        shown = np.moveaxis((x - x.min()) / (np.ptp(x) or 1), 0, -1)[..., : 3 if len(x) == 3 else 1]
        ax.imshow(shown.squeeze(-1) if shown.shape[-1] == 1 else shown, cmap="gray_r", interpolation="nearest")
    about = of.name.replace(" sample ", "\nsample ") + truth
    figure.text(0.012, 0.635, about, fontsize=9, color=INK, va="top", linespacing=1.5)
    against, (one, other) = int(of.against.sum()), of.groups
    figure.text(0.012, 0.33, f"{len(of.against) - against} {one}", fontsize=9.5, color=ACCENT, fontweight="bold")
    figure.text(0.012, 0.27, f"{against} {other}", fontsize=9.5, color=SECOND, fontweight="bold")
