"""What the uploads say of the labels: true counts, what was sent by class with an attacker's guess, and noise on it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import FIFTHS, class_ticks, mark, percent_axis
from ....plots.characters import client_axis
from ....plots.kit import heat_map
from ....plots.partition import LIMIT
from ....plots.style import ACCENT, LOCK, QUIET, SECOND, SERIES, Picture, dress, heading, legend, look, new_figure
from ....plots.words import listed, percent, plural, tabled
from ..numbers import NoiseSweep

PLACES = {"left": 0.075, "right": 0.975, "top": 0.93, "bottom": 0.115, "wspace": 0.3, "hspace": 0.42}


def leak(
    sweep: NoiseSweep, what: str, chosen: int, class_names: Sequence[str], client: int | None = None,
    klass: int | None = None,
) -> Picture:  # fmt: skip
    """What the clients hold, and what an attacker reads off the numbers `what` (in words, a key of `sweep.sent`) at
    noise number `chosen`; a `client` and a `klass` are marked."""
    counts, guesses = sweep.counts, sweep.guesses(what, chosen)
    with LOCK:
        figure = new_figure(fixed=True)
        grid = figure.add_gridspec(2, 2, width_ratios=[1.5, 1], **PLACES)
        upper = figure.add_subplot(grid[0, 0])
        lower = figure.add_subplot(grid[1, 0], sharex=upper)
        heat(upper, counts, "What the clients hold", class_names, client, klass)
        order = sweep.sent[what][chosen].argsort(1).argsort(1)  # of each client's classes: what an attacker compares
        heat(lower, order, f"Read off: {what}", class_names, client, klass)
        rings(lower, guesses, counts)
        upper.tick_params(labelbottom=False)
        client_axis(lower, len(counts), sweep.setting, few=12)
        lower.xaxis.labelpad = 1
        trade(figure.add_subplot(grid[:, 1]), sweep, what, chosen)
    noise, chance = sweep.noises[chosen], percent(sweep.chance)
    right, accuracy = percent(sweep.precision[what][chosen]), percent(sweep.accuracy[chosen])
    words = "Without noise" if not noise else f"At noise {noise:g}"
    if client is not None and client < len(counts):
        own, guess = ([class_names[c] for c in sorted(of)] for of in (np.flatnonzero(counts[client]), guesses[client]))
        words = f"Client {client} holds {listed(own)}; a reader of its upload names {listed(guess)}. {words}"
    return Picture(
        figure,
        alt=f"Two heat-maps of {plural(len(counts), 'client')} across and {plural(counts.shape[1], 'class')} down "
        f"({sweep.setting}): what the clients hold, and {what} with rings where the guess of a class is right, crosses "
        f"where it is wrong. Beside them, against noise on the uploads, right guesses ({right} at noise {noise:g}, "
        f"{chance} by chance) and FedLPA's test accuracy ({accuracy}).",
        sentence=f"{words} a reader of the {what}, who is told how many classes a client has, names {right} of them "
        f"correctly (blind guess {chance}); FedLPA has an accuracy of {accuracy}.",
        table=table(sweep, what, chosen, class_names),
    )


def heat(ax: Axes, values: np.ndarray, title: str, names: Sequence[str], client: int | None, klass: int | None) -> None:
    """Clients across, classes down; each client has its own scale, so that small clients can be read too."""
    heat_map(ax, (values / np.maximum(values.max(1, keepdims=True), 1e-300)).T, empty=True)
    heading(ax, title, pad=5)
    ax.set_ylabel("class", fontsize=10, color=QUIET)
    class_ticks(ax, names, "y", length=6, few=10, most=6, fontsize=8.5)
    mark(ax, client, len(values), frame=True)
    mark(ax, klass, len(names), "y", frame=True)


def rings(ax: Axes, guesses: Sequence[Sequence[int]], counts: np.ndarray) -> None:
    """A ring where the guess is right, a cross where it is wrong."""
    if counts.shape[1] > LIMIT:
        return
    small = max(2.5, min(8, 200 / len(counts)))
    for right, marker, colour in ((True, "o", "white"), (False, "x", SECOND)):
        places = [(k, c) for k, own in enumerate(guesses) for c in own if (counts[k, c] > 0) == right]
        if places:
            ax.plot(*zip(*places, strict=True), marker, ls="none", ms=small, mfc="none", mec=colour, mew=1.6, zorder=4)


def trade(ax: Axes, sweep: NoiseSweep, what: str, chosen: int) -> None:
    """Precision of the guess and accuracy of the global model against the noise."""
    dress(ax, title="Noise on the uploads", x="noise, share of each tensor's size", grid="y")
    places = range(len(sweep.noises))
    ax.plot(places, sweep.precision[what], "s--", color=SERIES[1], lw=1.8, ms=5, label="guesses that are right")
    ax.axhline(sweep.chance, color=SERIES[1], lw=1, ls=(0, (1, 2)), label="… of a blind guess")
    ax.plot(places, sweep.accuracy, "o-", color=look("fedlpa").colour, lw=2.2, ms=5, label="test accuracy of FedLPA")
    ax.axvline(chosen, color=ACCENT, lw=9, alpha=0.16, zorder=0)
    ax.set_xticks(places, [f"{n:g}" for n in sweep.noises])
    ax.set_xlim(-0.4, len(sweep.noises) - 0.6)
    percent_axis(ax, "y", 1.3, ticks=FIFTHS)
    legend(ax, loc="upper left", borderaxespad=0.1, labelspacing=0.25)


def table(sweep: NoiseSweep, what: str, chosen: int, names: Sequence[str]) -> list[dict]:
    held = map(np.flatnonzero, sweep.counts)
    largest = np.argsort(-sweep.sent[what][chosen], kind="stable")[:, :5]
    rows = enumerate(zip(held, sweep.guesses(what, chosen), largest, strict=True))
    cells = ((k, *(", ".join(names[c] for c in classes) for classes in row)) for k, row in rows)
    return tabled("client | holds | guessed | largest", cells)
