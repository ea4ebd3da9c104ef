"""FENS on one test sample: every client's logits, the average's answer, FENS' answer, and the sample itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .heat import colours
from .style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure, shorten
from .words import listed, percent, plural

MANY = 14  # more clients than this, and their rows are neither all named nor filled with numbers


def sample(
    x: np.ndarray,
    logits: np.ndarray,
    answers: Mapping[str, np.ndarray],
    names: Sequence[str],
    truth: int,
    *,
    setting: str,
    number: int,
    held: np.ndarray | None = None,
    clients: Sequence[int] | None = None,
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """One sample `x` (`[H, W]`, `[H, W, 3]` or `[D]`), the clients' `logits [M, C]`, and scores `[C]` of each answer.

    truth: its class;   number: which test sample;   held `[M]`: training samples of that class at each client;
    clients: who the rows are (0 … M - 1 unless given);   client, klass: marked
    """
    logits = np.asarray(logits, dtype=float)
    clients = list(range(len(logits)) if clients is None else clients)
    shares = {name: softmax(scores) for name, scores in answers.items()}
    with LOCK:
        figure = new_figure()
        picture, upper, bars, lower = grid(figure, len(answers), held is not None)
        show_sample(picture, x, f"test sample {number}\nclass {names[truth]}")
        rows_of_clients(upper, logits, clients, names, truth)
        if bars is not None:
            who_has_seen(bars, held, truth, names)
        rows_of_answers(lower, shares, names, truth)
        if client in clients:
            upper.axhspan(
                clients.index(client) - 0.5, clients.index(client) + 0.5, fill=False, edgecolor=ACCENT, lw=2.2,
                clip_on=False,
            )  # fmt: skip
        if klass is not None and klass < len(names):
            for ax in (upper, lower):
                ax.axvspan(klass - 0.5, klass + 0.5, fill=False, edgecolor=SECOND, lw=1.8, ls=(0, (2, 1)))
    return Picture(
        figure,
        alt=alt_text(logits, shares, names, truth, setting, number),
        sentence=sentence(logits, shares, clients, names, truth, held, client),
        table=table(logits, shares, clients, names),
    )


def softmax(scores: np.ndarray) -> np.ndarray:
    """Scores `[C]` as shares of 1; a rule may forbid a class with minus infinity."""
    scores = np.asarray(scores, dtype=float)
    if not np.isfinite(scores).any():
        return np.full(len(scores), 1 / len(scores))
    raised = np.exp(scores - scores[np.isfinite(scores)].max())
    return raised / raised.sum()


def grid(figure: Figure, answers: int, bars: bool) -> tuple[Axes, Axes, Axes | None, Axes]:
    """Picture at the left; logits above, answers below in the middle; who has seen the class at the right."""
    cells = figure.add_gridspec(2, 3, width_ratios=[1.15, 4.2, 0.95], height_ratios=[4.2, 0.55 * answers + 0.1])
    middle = cells[0, 1] if bars else cells[0, 1:]
    upper = figure.add_subplot(middle)
    lower = figure.add_subplot(cells[1, 1] if bars else cells[1, 1:], sharex=upper)
    right = figure.add_subplot(cells[0, 2], sharey=upper) if bars else None
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
        low, high = float(x.min()), float(x.max())
        shown = (x - low) / ((high - low) or 1)
        ax.imshow(shown, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
        ax.set_axis_off()
    ax.set_title(words, loc="left", fontsize=10, color=INK, linespacing=1.4)


def rows_of_clients(ax: Axes, logits: np.ndarray, clients: Sequence[int], names: Sequence[str], truth: int) -> None:
    """Logits, a row a client; a dot on each one's answer; the true class framed."""
    members, classes = logits.shape
    limit = float(np.abs(logits).max(initial=0)) or 1.0
    ax.imshow(logits, cmap=colours(True), vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    if members <= MANY and classes <= 12:
        for (i, c), value in np.ndenumerate(logits):
            bold = "bold" if c == logits[i].argmax() else "normal"
            ink = "white" if abs(value) > 0.7 * limit else INK
            ax.text(c, i, str(round(value)), ha="center", va="center", fontsize=8, color=ink, fontweight=bold)
    best = logits.argmax(1)
    right = best == truth
    for chosen, colour in ((right, "#009E73"), (~right, INK)):
        ax.scatter(best[chosen] + 0.36, np.flatnonzero(chosen), s=14, color=colour, edgecolors="white", lw=0.5)
    ax.set_title("Logits of the clients, dot: its answer", loc="left", fontsize=10.5, fontweight="bold", color=INK)
    if members <= MANY:
        ax.set_yticks(range(members), [str(k) for k in clients])
    else:
        every = -(-members // 10)
        ax.set_yticks(range(0, members, every), [str(k) for k in clients[::every]])
    ax.set_ylabel("client", fontsize=10, color=QUIET)
    ax.set_ylim(members - 0.5, -0.5)
    columns(ax, classes, truth)
    ax.tick_params(labelbottom=False)


def rows_of_answers(ax: Axes, shares: Mapping[str, np.ndarray], names: Sequence[str], truth: int) -> None:
    """Softmax of each rule's scores, in percent."""
    values = np.array(list(shares.values()))
    ax.imshow(values, cmap=colours(False), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if len(names) <= 12:
        for (i, c), value in np.ndenumerate(values):
            if value >= 0.005:
                ink = "white" if value > 0.7 else INK
                ax.text(c, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=8.5, color=ink)
    labels = [f"{name}  {'✓' if row.argmax() == truth else '✗'}" for name, row in shares.items()]
    ax.set_yticks(range(len(shares)), labels)
    columns(ax, len(names), truth)
    if len(names) <= 26:
        ax.set_xticks(range(len(names)), shorten(names, 5))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    ax.set_xlabel("class (answers: softmax in %)", fontsize=10, color=QUIET)


def columns(ax: Axes, classes: int, truth: int) -> None:
    ax.set_xlim(-0.5, classes - 0.5)
    ax.axvspan(truth - 0.5, truth + 0.5, fill=False, edgecolor="#009E73", lw=2)
    ax.tick_params(length=0, labelsize=9.5, labelcolor=INK)
    for spine in ax.spines.values():
        spine.set_visible(False)


def who_has_seen(ax: Axes, held: np.ndarray, truth: int, names: Sequence[str]) -> None:
    """How many samples of the true class each client has trained on."""
    dress(ax, title="")
    ax.barh(range(len(held)), held, color="#9aa4ae", height=0.7)
    ax.set_title(f"samples of {shorten([names[truth]], 8)[0]}", loc="left", fontsize=9.5, color=QUIET)
    ax.tick_params(axis="y", labelleft=False, length=0)
    ax.set_xlim(0, max(int(np.max(held, initial=0)), 1) * 1.1)
    ax.xaxis.set_major_locator(MaxNLocator(2, integer=True))
    ax.set_facecolor(FAINT)


def sentence(
    logits: np.ndarray, shares: Mapping[str, np.ndarray], clients: Sequence[int], names: Sequence[str], truth: int,
    held: np.ndarray | None, client: int | None,
) -> str:  # fmt: skip
    best = logits.argmax(1)
    told = listed([f"{name} says {names[row.argmax()]} ({percent(row.max())} sure)" for name, row in shares.items()])
    if client in clients:
        i = clients.index(client)
        seen = "" if held is None else f" after training on {plural(int(held[i]), 'sample')} of class {names[truth]}"
        return (
            f"Client {client} says {names[best[i]]} with a logit of {logits[i].max():.0f}{seen}; the truth is "
            f"{names[truth]}. {told[:1].upper()}{told[1:]}."
        )
    wrong = int((best != truth).sum())
    text = f"The truth is {names[truth]}; {wrong} of {plural(len(logits), 'client')} say something else"
    if wrong:
        loudest = max((logits[i, best[i]], i) for i in range(len(logits)) if best[i] != truth)[1]
        text += f", client {clients[loudest]} the loudest ({names[best[loudest]]}, {logits[loudest].max():.0f})"
    return f"{text}. {told[:1].upper()}{told[1:]}."


def alt_text(
    logits: np.ndarray, shares: Mapping[str, np.ndarray], names: Sequence[str], truth: int, setting: str, number: int
) -> str:
    told = "; ".join(f"{name}: {names[row.argmax()]}, {percent(row.max())}" for name, row in shares.items())
    return (
        f"Test sample {number} of class {names[truth]} ({setting}): the picture, a heat-map of the logits of "
        f"{plural(len(logits), 'client')} for {plural(len(names), 'class')} from {logits.min():.0f} to "
        f"{logits.max():.0f}, and the answers. {told}."
    )


def table(
    logits: np.ndarray, shares: Mapping[str, np.ndarray], clients: Sequence[int], names: Sequence[str]
) -> list[dict]:
    rows = [
        {"who": f"client {k}", **{f"class {n}": round(float(v), 1) for n, v in zip(names, row, strict=True)}}
        for k, row in zip(clients, logits, strict=True)
    ]
    for name, row in shares.items():
        rows.append({"who": name, **{f"class {n}": percent(v) for n, v in zip(names, row, strict=True)}})
    return rows
