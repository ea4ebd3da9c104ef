"""What the uploads say of the labels: true counts, what was sent by class with an attacker's guess, and noise on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .partition import LIMIT
from .style import ACCENT, INK, LOCK, QUIET, SERIES, Picture, dress, legend, many_is_dark, new_figure, shorten
from .words import listed, percent, plural

PLACES = {"left": 0.075, "right": 0.975, "top": 0.93, "bottom": 0.115, "wspace": 0.3, "hspace": 0.42}


def leak(
    counts: np.ndarray,
    sent: np.ndarray,
    guesses: Sequence[Sequence[int]],
    class_names: Sequence[str],
    *,
    setting: str,
    what: str,
    noises: Sequence[float],
    chosen: int,
    precision: Sequence[float],
    accuracy: Sequence[float],
    chance: float,
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """`counts [K, C]`: true samples by class; `sent [K, C]`: the numbers that are read, `what` in words; `guesses`: the
    classes that are taken to be there, by client, as many as it has.

    precision, accuracy: share of right guesses and test accuracy, 0-1, for each of `noises`; number `chosen` is marked.
    chance: share of right guesses of a blind attacker.
    """
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        grid = figure.add_gridspec(2, 2, width_ratios=[1.5, 1], **PLACES)
        upper = figure.add_subplot(grid[0, 0])
        lower = figure.add_subplot(grid[1, 0], sharex=upper)
        heat(upper, counts, "What the clients hold", class_names)
        heat(lower, ranks(sent), f"Read off: {what}", class_names)
        rings(lower, guesses, counts)
        upper.tick_params(labelbottom=False)
        upper.set_xlabel("")
        for ax in (upper, lower):
            highlight(ax, counts.shape, client, klass)
        trade(figure.add_subplot(grid[:, 1]), noises, chosen, precision, accuracy, chance)
    told = precision[chosen], accuracy[chosen]
    return Picture(
        figure,
        alt=alt_text(counts, what, noises[chosen], *told, chance, setting),
        sentence=sentence(counts, guesses, class_names, what, noises[chosen], *told, chance, client),
        table=table(counts, sent, guesses, class_names),
    )


def heat(ax: Axes, values: np.ndarray, title: str, names: Sequence[str]) -> None:
    """Clients across, classes down; each client has its own scale, so that small clients can be read too."""
    scaled = values / np.maximum(values.max(1, keepdims=True), 1e-300)
    ax.imshow(scaled.T, cmap=many_is_dark(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=5)
    ax.set_ylabel("class", fontsize=10, color=QUIET)
    ax.set_xlabel("client", fontsize=10, color=QUIET, labelpad=1)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    if len(names) <= 10:
        ax.set_yticks(range(len(names)), shorten(names, 6), fontsize=8.5)
    else:
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.xaxis.set_major_locator(MaxNLocator(12, integer=True, min_n_ticks=1))
    for spine in ax.spines.values():
        spine.set_color("#d5d9de")


def ranks(values: np.ndarray) -> np.ndarray:
    """Each client's classes in order, 0 for the smallest: what an attacker compares."""
    return values.argsort(1).argsort(1)


def rings(ax: Axes, guesses: Sequence[Sequence[int]], counts: np.ndarray) -> None:
    """A ring where the guess is right, a cross where it is wrong."""
    if counts.shape[1] > LIMIT:
        return
    small = max(2.5, min(8, 200 / len(counts)))
    for right, marker in ((True, "o"), (False, "x")):
        hits = [(k, c) for k, own in enumerate(guesses) for c in own if (counts[k, c] > 0) == right]
        if hits:
            x, y = zip(*hits, strict=True)
            colour = "white" if right else "#D55E00"
            ax.plot(x, y, marker, ls="none", ms=small, mfc="none", mec=colour, mew=1.6, zorder=4)


def highlight(ax: Axes, shape: tuple[int, int], client: int | None, klass: int | None) -> None:
    if client is not None and client < shape[0]:
        ax.axvspan(client - 0.5, client + 0.5, fill=False, edgecolor=ACCENT, lw=2.2, zorder=5)
    if klass is not None and klass < shape[1]:
        ax.axhspan(klass - 0.5, klass + 0.5, fill=False, edgecolor=ACCENT, lw=2.2, zorder=5)


def trade(
    ax: Axes, noises: Sequence[float], chosen: int, precision: Sequence[float], accuracy: Sequence[float], chance: float
) -> None:
    """Precision of the guess and accuracy of the global model against the noise."""
    dress(ax, title="Noise on the uploads", x="noise, share of each tensor's size", grid="y")
    places = range(len(noises))
    ax.plot(places, precision, "s--", color=SERIES[1], lw=1.8, ms=5, label="guesses that are right")
    ax.axhline(chance, color=SERIES[1], lw=1, ls=(0, (1, 2)), label="… of a blind guess")
    ax.plot(places, accuracy, "o-", color=SERIES[2], lw=2.2, ms=5, label="test accuracy of FedLPA")
    ax.axvline(chosen, color=ACCENT, lw=9, alpha=0.16, zorder=0)
    ax.set_xticks(places, [f"{n:g}" for n in noises])
    ax.set_xlim(-0.4, len(noises) - 0.6)
    ax.set_ylim(0, 1.3)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    legend(ax, loc="upper left", borderaxespad=0.1, labelspacing=0.25)


def sentence(
    counts: np.ndarray,
    guesses: Sequence[Sequence[int]],
    names: Sequence[str],
    what: str,
    noise: float,
    precision: float,
    accuracy: float,
    chance: float,
    client: int | None,
) -> str:
    text = f"Without noise whoever reads the {what}" if not noise else f"At noise {noise:g} whoever reads the {what}"
    text += f", told how many classes a client has, names {percent(precision)} of them rightly (blind guess "
    text += f"{percent(chance)}); FedLPA has an accuracy of {percent(accuracy)}."
    if client is not None and client < len(counts):
        held = [names[c] for c in np.flatnonzero(counts[client] > 0)]
        told = listed([names[c] for c in sorted(guesses[client])])
        text = f"Client {client} holds {listed(held)}; read off its upload: {told}. {text}"
    return text


def alt_text(
    counts: np.ndarray, what: str, noise: float, precision: float, accuracy: float, chance: float, setting: str
) -> str:
    return (
        f"Two heat-maps of {plural(len(counts), 'client')} across and {plural(counts.shape[1], 'class')} down "
        f"({setting}): what the clients hold, and {what} with rings where the guess of a class is right, crosses where "
        f"it is wrong. "
        f"Beside them, against noise on the uploads, right guesses ({percent(precision)} at noise {noise:g}, "
        f"{percent(chance)} by chance) and FedLPA's test accuracy ({percent(accuracy)})."
    )


def table(counts: np.ndarray, sent: np.ndarray, guesses: Sequence[Sequence[int]], names: Sequence[str]) -> list[dict]:
    rows = []
    for k, own in enumerate(counts):
        held = [names[c] for c in np.flatnonzero(own > 0)]
        told = [names[c] for c in sorted(guesses[k])]
        order = [names[c] for c in np.argsort(-sent[k], kind="stable")[:5]]
        rows.append({"client": k, "holds": ", ".join(held), "guessed": ", ".join(told), "largest": ", ".join(order)})
    return rows
