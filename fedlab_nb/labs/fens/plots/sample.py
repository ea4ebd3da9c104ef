"""FENS on one test sample: every client's logits, the average's answer, FENS' answer, and the sample itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ....plots.axes import class_ticks, few_ticks, mark, no_spines
from ....plots.characters import short_name
from ....plots.kit import table_colours
from ....plots.style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, heading, new_figure, shorten
from ....plots.words import capital, listed, percent, plural, tabled

MANY = 14  # more clients than this, and their rows are neither all named nor filled with numbers


@dataclass(frozen=True, eq=False)
class OneSample:
    """One sample `x` (`[H, W]`, `[H, W, 3]` or `[D]`), the clients' `logits [M, C]`, and scores `[C]` of each answer.

    truth: its class;   number: which test sample;   held `[M]`: training samples of that class at each client;
    clients: who the rows are;   client, klass: marked
    """

    x: np.ndarray
    logits: np.ndarray
    answers: Mapping[str, np.ndarray]
    names: Sequence[str]
    truth: int
    setting: str
    number: int
    held: np.ndarray
    clients: Sequence[int]
    client: int | None = None
    klass: int | None = None

    @property
    def shares(self) -> dict[str, np.ndarray]:
        return {name: softmax(scores) for name, scores in self.answers.items()}

    @property
    def alt(self) -> str:
        logits, names = self.logits, self.names
        answers = "; ".join(f"{name}: {names[row.argmax()]}, {percent(row.max())}" for name, row in self.shares.items())
        return (
            f"Test sample {self.number} of class {names[self.truth]} ({self.setting}): the picture, a heat-map of the "
            f"logits of {plural(len(logits), 'client')} for {plural(len(names), 'class')} from {logits.min():.0f} to "
            f"{logits.max():.0f}, and the answers. {answers}."
        )

    @property
    def sentence(self) -> str:
        logits, names, best = self.logits, self.names, self.logits.argmax(1)
        each = [f"{who} says {names[row.argmax()]} ({percent(row.max())} sure)" for who, row in self.shares.items()]
        truth, answers = names[self.truth], capital(listed(each))
        if self.client in self.clients:
            i = self.clients.index(self.client)
            return (
                f"Client {self.client} says {names[best[i]]} with a logit of {logits[i].max():.0f} after training on "
                f"{plural(int(self.held[i]), 'sample')} of class {truth}; the truth is {truth}. {answers}."
            )
        wrong = np.flatnonzero(best != self.truth)
        text = f"The truth is {truth}; {len(wrong)} of {plural(len(logits), 'client')} say something else"
        if len(wrong):
            i = max(wrong, key=lambda i: (logits[i].max(), i))
            text += f". The loudest of them is client {self.clients[i]} ({names[best[i]]}, {logits[i].max():.0f})"
        return f"{text}. {answers}."

    @property
    def table(self) -> list[dict]:
        logits = zip(self.clients, self.logits, strict=True)
        rows = [(f"client {k}", *(round(float(v), 1) for v in row)) for k, row in logits]
        rows += [(name, *map(percent, row)) for name, row in self.shares.items()]
        return tabled(["who", *(f"class {n}" for n in self.names)], rows)


def one_sample(of: OneSample) -> Picture:
    names, truth = of.names, of.truth
    with LOCK:
        figure = new_figure()
        picture, upper, seen, lower = grid(figure, len(of.answers))
        show_sample(picture, of.x, f"test sample {of.number}\nclass {names[truth]}")
        rows_of_clients(upper, of)
        who_has_seen(seen, of.held, names[truth])
        rows_of_answers(lower, of.shares, names, truth)
        if of.client in of.clients:
            mark(upper, of.clients.index(of.client), len(of.clients), "y", frame=True)
        if of.klass is not None and of.klass < len(names):
            for ax in (upper, lower):  # dashed, so that the frame of the truth shows through
                ax.axvspan(of.klass - 0.5, of.klass + 0.5, fill=False, edgecolor=SECOND, lw=1.8, ls=(0, (2, 1)))
    return Picture.of(figure, of)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Scores `[C]` as shares of 1; a rule may forbid a class with minus infinity."""
    scores = np.nan_to_num(np.asarray(scores, dtype=float), neginf=-1e300)
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def grid(figure: Figure, answers: int) -> tuple[Axes, Axes, Axes, Axes]:
    """Picture at the left; logits above, answers below in the middle; who has seen the class at the right."""
    cells = figure.add_gridspec(2, 3, width_ratios=[1.15, 4.2, 0.95], height_ratios=[4.2, 0.55 * answers + 0.1])
    upper = figure.add_subplot(cells[0, 1])
    right, lower = figure.add_subplot(cells[0, 2], sharey=upper), figure.add_subplot(cells[1, 1], sharex=upper)
    return figure.add_subplot(cells[0, 0]), upper, right, lower


def show_sample(ax: Axes, x: np.ndarray, words: str) -> None:
    """An image as it is, a row of features as bars."""
    x = np.asarray(x, dtype=float)
    if x.ndim == 1:
        ax.barh(range(len(x)), x, color=ACCENT, height=0.8)
        ax.invert_yaxis()
        ax.set_yticks([])
        dress(ax, x="features")
        ax.set_box_aspect(1.6)
    else:
        shown = (x - x.min()) / (np.ptp(x) or 1)
        ax.imshow(shown, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
        ax.set_axis_off()
    ax.set_title(words, loc="left", fontsize=10, color=INK, linespacing=1.4)


def rows_of_clients(ax: Axes, of: OneSample) -> None:
    """Logits, a row a client; a dot on each one's answer; the true class framed."""
    members, classes = of.logits.shape
    limit, best = float(np.abs(of.logits).max(initial=0)) or 1.0, of.logits.argmax(1)
    cells(ax, of.logits / limit, True, [[str(round(v)) for v in row] for row in of.logits] if members <= MANY else [])
    for i, text in enumerate(ax.texts):
        text.set_fontweight("bold" if i % classes == best[i // classes] else "normal")
    for chosen, colour in ((best == of.truth, "#009E73"), (best != of.truth, INK)):
        ax.scatter(best[chosen] + 0.36, np.flatnonzero(chosen), s=14, color=colour, edgecolors="white", lw=0.5)
    heading(ax, "Logits of the clients, dot: its answer", 6, 10.5)
    every = 1 if members <= MANY else -(-members // 10)
    ax.set_yticks(range(0, members, every), [short_name(k, of.setting) for k in of.clients[::every]])
    ax.set_ylabel("client", fontsize=10, color=QUIET)
    ax.set_ylim(members - 0.5, -0.5)
    columns(ax, classes, of.truth)
    ax.tick_params(labelbottom=False)


def rows_of_answers(ax: Axes, shares: Mapping[str, np.ndarray], names: Sequence[str], truth: int) -> None:
    """Softmax of each rule's scores, in percent."""
    values = np.array(list(shares.values()))
    cells(ax, values, False, [[f"{100 * v:.0f}" if v >= 0.005 else "" for v in row] for row in values])
    ax.set_yticks(range(len(shares)), [f"{n}  {'✓' if row.argmax() == truth else '✗'}" for n, row in shares.items()])
    columns(ax, len(names), truth)
    class_ticks(ax, names, length=5, few=26)
    ax.set_xlabel("class (answers: softmax in %)", fontsize=10, color=QUIET)


def cells(ax: Axes, values: np.ndarray, signed: bool, texts: Sequence[Sequence[str]]) -> None:
    """`values` from 0, or, `signed`, from -1, to 1, as colours, with `texts` in the cells of a few classes."""
    ax.imshow(values, cmap=table_colours(signed), vmin=-signed, vmax=1, aspect="auto", interpolation="nearest")
    for i, row in enumerate(texts if values.shape[1] <= 12 else []):
        for c, text in enumerate(row):
            ink = "white" if abs(values[i, c]) > 0.7 else INK
            ax.text(c, i, text, ha="center", va="center", fontsize=8, color=ink)


def columns(ax: Axes, classes: int, truth: int) -> None:
    ax.set_xlim(-0.5, classes - 0.5)
    ax.axvspan(truth - 0.5, truth + 0.5, fill=False, edgecolor="#009E73", lw=2)
    ax.tick_params(length=0, labelsize=9.5, labelcolor=INK)
    no_spines(ax)


def who_has_seen(ax: Axes, held: np.ndarray, name: str) -> None:
    """How many samples of the true class each client has trained on."""
    dress(ax)
    ax.barh(range(len(held)), held, color="#9aa4ae", height=0.7)
    ax.set_title(f"samples of {shorten([name], 8)[0]}", loc="left", fontsize=9.5, color=QUIET)
    ax.tick_params(axis="y", labelleft=False, length=0)
    ax.set_xlim(0, max(int(np.max(held, initial=0)), 1) * 1.1)
    few_ticks(ax, "x", 2, whole=True)
    ax.set_facecolor(FAINT)
