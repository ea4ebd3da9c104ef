"""The picture of one sample: what every client says of it, what is known of the client beside it, and the answers that
are made from all of them. FENS and Fed-ET have it in common.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from ..plots import Picture, drawing, dress, heading, percent, told
from ..plots.axes import class_ticks, few_ticks, mark
from ..plots.characters import own_name, row_name
from ..plots.kit import as_tile, heat_map, photos, unless_zero
from ..plots.style import ACCENT, INK, QUIET, SECOND, narrow

# Places of the sample and its words, and lower end and height of the rest: beside it, or in a narrow frame below it.
PLACES = (
    ((0.012, 0.66, 0.125, 0.25), (0.012, 0.635), 0.125, 0.785), ((0.012, 0.85, 0.2, 0.13), (0.25, 0.97), 0.08, 0.72),
)  # fmt: skip
FEW, NARROW = 16, 12  # up to so many clients and classes, numbers are written into the picture


class OneSample(NamedTuple):
    """A sample and what M clients say of it, in C classes.

    x:       `[channels, H, W]`, or features `[D]`;   name: "test sample 17";   truth: its class, where it is known
    said:    `[M, C]`, what the clients say, probabilities or logits;   answers: {who: probabilities `[C]`}
    against: `[M]`, who says something else than the truth, or than the others
    beside:  {title: a number a client `[M]`}: bars of the first, the others written next to them
    members: the clients' ids;   client, klass: what is looked at
    """

    x: np.ndarray
    name: str
    truth: int | None
    said: np.ndarray
    answers: Mapping[str, np.ndarray]
    against: np.ndarray
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
            shares = {
                f"class {name}": f"{value:.2g}"
                for name, value in zip(self.names, said, strict=True)
            }
            rows.append(
                {
                    "who": f"client {own_name(k, self.setting)}",
                    "says": self.top(said),
                    **beside,
                    **shares,
                }
            )
        for who, answer in self.answers.items():
            shares = {
                f"class {name}": percent(value)
                for name, value in zip(self.names, answer, strict=True)
            }
            rows.append({"who": who, "says": self.top(answer), **shares})
        return rows


def one_sample(of: OneSample, title: str, sentence: str) -> Picture:
    """A row a client, below them the answers; a dot on what each says first, the true class in a frame."""
    hues = [SECOND if against else ACCENT for against in of.against]
    with drawing(fixed=True) as (
        figure,
        _,
    ):  # this picture follows a slider, and a layout would cost most
        place, below, low, high = PLACES[narrow()]
        image = figure.add_axes(place)
        image.imshow(shown := as_tile(np.asarray(of.x, dtype=float)).squeeze(), cmap="gray_r")
        if shown.ndim == 3 and len(of.x) == 3:  # in colours; grey ones are ink on the paper
            photos(image)
        image.set_axis_off()
        truth = "" if of.truth is None else f"\nis “{of.names[of.truth]}”"
        about = of.name.replace(" sample ", "\nsample ") + truth
        figure.text(*below, about, fontsize=9, color=INK, va="top", linespacing=1.5)
        rows = figure.add_axes((0.245, low, 0.41, high))
        who_says_what(rows, of, title, hues)
        what_is_known(figure.add_axes((0.675, low, 0.15, high), sharey=rows), of, hues)
    return told(figure, f"{title}: {of.name}", of.setting, sentence, of.table)


def who_says_what(ax: Axes, of: OneSample, title: str, hues: Sequence[str]) -> None:
    (m, classes), answers = of.said.shape, np.array(list(of.answers.values()))
    values = np.concatenate([of.said / of.limit, answers])
    written = np.concatenate([of.said * (100 if of.limit == 1 else 1), 100 * answers])
    few = m <= FEW and classes <= NARROW
    heat_map(
        ax,
        values,
        signed=True,
        text=unless_zero("{:.0f}") if few else None,
        numbers=written,
        size=8,
    )
    colours = [*hues, *[INK] * len(answers)]
    ax.scatter(
        values.argmax(1) + 0.38,
        np.arange(len(values)) - 0.34,
        s=14,
        color=colours,
        edgecolors="white",
        lw=0.5,
    )
    heading(ax, title, size=10.5)
    ax.set_xlabel("class (answers in %)", fontsize=10, color=QUIET)
    class_ticks(ax, of.names, length=6, few=26)
    shown = [*range(0, m, -(-m // 25)), *range(m, len(values))]
    names = [*(row_name(k, of.setting) for k in of.members), *of.answers]
    ax.set_yticks(shown, [names[i] for i in shown], fontsize=9.5 if m <= FEW else 7.5)
    for tick, i in zip(ax.get_yticklabels(), shown, strict=True):
        tick.set_color(colours[i])
    ax.axhline(m - 0.5, color=QUIET, lw=1.5)
    mark(ax, of.truth, classes, frame=True, colour="#009E73")
    mark(ax, of.klass, classes, frame=True, lw=1.2)


def what_is_known(ax: Axes, of: OneSample, hues: Sequence[str]) -> None:
    """The bars, hatched where a client is against, and the numbers next to them."""
    m, (first, *others) = len(of.members), of.beside
    hatches = ["////" if against else None for against in of.against]
    bars = ax.barh(
        range(m), of.beside[first], color=hues, hatch=hatches, height=0.7, edgecolor="white", lw=0
    )
    dress(ax, title=" | ".join((first, *others)), grid="x")
    ax.tick_params(axis="y", left=False, labelleft=False)
    few_ticks(ax, "x", 2)
    mark(ax, of.members.index(of.client) if of.client in of.members else None, m, "y")
    known = [
        " | ".join(f"{of.beside[title][i]:.{3 - narrow()}g}" for title in others) for i in range(m)
    ]
    ax.bar_label(bars, known if m <= FEW else [""] * m, fontsize=8.5, padding=3, color=INK)
