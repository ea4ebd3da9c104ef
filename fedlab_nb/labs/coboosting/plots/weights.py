"""How the ensemble weights travel: each client's share of the weight, epoch by epoch, beside what the client holds."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import few_ticks, level_line, percent_axis, rows_axis, spread
from ....plots.characters import SYMBOL, characters, row_name
from ....plots.style import ACCENT, INK, QUIET, Picture, class_colours, drawing, dress, many_is_dark, shorten
from ....plots.words import listed, marked_words, percent, plural, tabled

MOST = 16  # clients whose classes are drawn; of more, half of them from each end of the ranking
NAMES = 12  # classes that a bar names


def trajectories(
    path: np.ndarray, counts: np.ndarray, class_names: Sequence[str], *, setting: str, epochs: int = 0,
    client: int | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """Lines of w_k / Σ w from `path [T, M]` (w after each epoch), bars of `counts [M, C]` in the order of the last w.

    epochs: of the whole run, for the axis, while only T of them are done.
    """
    path = path.astype(float)
    shares = path / np.maximum(path.sum(1, keepdims=True), 1e-12)
    order = [int(k) for k in np.argsort(-shares[-1], kind="stable")]
    # A bar for every client, or for the ends of the ranking and the client that is looked at.
    ends = {*order[: MOST // 2], *order[-MOST // 2 :], client}
    rows = [k for k in order if len(order) <= MOST or k in ends]
    with drawing(1, 2, width_ratios=[1, 1.25]) as (figure, (left, right)):
        lines(left, shares, rows, max(epochs, len(shares)), client, setting)
        bars(right, shares[-1], counts, class_names, rows, client, klass, setting)
    ends = ", ".join(f"client {k} {percent(shares[-1, k])}" for k in order[:10])
    alt = (
        f"Lines of each client's share of the ensemble weight over {plural(len(path), 'epoch')} ({setting}), beside "
        f"bars of the classes that each client holds. At the end, heaviest first: {ends}.{marked_words(client, klass)}"
    )
    few = sorted({round(t) for t in np.linspace(0, len(path) - 1, min(6, len(path)))})  # first and last among them
    columns = ["client", *(f"epoch {t + 1}" for t in few), *(f"class {name}" for name in class_names)]
    table = tabled(columns, ((k, *map(percent, shares[few, k]), *counts[k].tolist()) for k in order))
    return Picture(figure, alt, sentence(shares[-1], counts, class_names, order, len(path), client), table)


def lines(
    ax: Axes, shares: np.ndarray, rows: Sequence[int], epochs: int, client: int | None, setting: str
) -> None:  # fmt: skip
    """Darker is heavier at the end; the number at a line's end is the client."""
    done, clients = shares.shape
    dress(ax, title="Share of the weight", x="server epoch", y="w / Σ w", grid="y")
    top = max(float(shares.max()), 1 / clients) * 1.1
    # Cividis without its palest end, which is too faint for a line.
    shades = many_is_dark(empty=False)(0.22 + 0.78 * shares[-1] / max(float(shares[-1].max()), 1e-12))
    for k in range(clients):
        faint = k not in rows and k != client
        style = {"lw": 0.8, "alpha": 0.35} if faint else {"lw": 1.6, "marker": "o" if done == 1 else None}
        style |= {"lw": 3, "color": ACCENT, "zorder": 4} if k == client else {"color": shades[k], "zorder": 2}
        ax.plot(range(1, done + 1), shares[:, k], ms=4, **style)
    level_line(ax, 1 / clients)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    ax.text(1.15, 1 / clients + 0.014 * top, "equal", fontsize=9, color=QUIET, bbox=box, zorder=5)
    named = [k for k in rows if clients <= MOST or k in (*rows[:4], client)]
    for k, y in zip(named, spread(shares[-1, named].tolist(), 0.052 * top, top, 0), strict=True):
        look = {"color": ACCENT, "fontweight": "bold"} if k == client else {"color": INK}
        x = done + 0.02 * max(epochs - 1, 1)
        name = f"{k} {SYMBOL}" if k in characters(setting) else str(k)
        ax.text(x, y, name, va="center", fontsize=9, clip_on=False, gid="outside", **look)
    ax.set_xlim(1, max(epochs, 2))
    percent_axis(ax, top=top)
    few_ticks(ax, "x", 6, whole=True)


def bars(
    ax: Axes, last: np.ndarray, counts: np.ndarray, names: Sequence[str], rows: Sequence[int], client: int | None,
    klass: int | None, setting: str,
) -> None:  # fmt: skip
    """What each client holds, stacked by class, heaviest client on top; a class that is looked at is outlined."""
    dress(ax, title="What they hold", x="training samples")
    left, most = np.zeros(len(rows)), max(int(counts[rows].sum(1).max()), 1)
    for c, colour in enumerate(class_colours(counts.shape[1])):
        held = counts[rows, c]
        faded = 0.3 if klass is not None and c != klass else 1
        ax.barh(range(len(rows)), held, left=left, height=0.74, color=colour, alpha=faded, linewidth=0)
        text = {"ha": "center", "va": "center", "fontsize": 8.5, "color": "white" if faded == 1 else INK}
        for i in np.flatnonzero(held > 0.05 * most) if len(names) <= NAMES else ():
            ax.text(left[i] + held[i] / 2, i, shorten([names[c]], 4)[0], **text)
        left += held
    who = [f"{row_name(k, setting)}  {percent(last[k])}" for k in rows]
    rows_axis(ax, who, least=3, size=10 if len(rows) <= 12 else 8.5)
    for label, k in zip(ax.get_yticklabels(), rows, strict=True):
        if k == client:
            label.set(color=ACCENT, fontweight="bold")
    ax.set_xlim(0, 1.02 * most)
    few_ticks(ax, "x", 4, whole=True)


# ------------------------------------------------------------------------------------------------------ words
def held_by(counts: np.ndarray, names: Sequence[str]) -> str:
    """'mostly 3 and 8' of one client's counts `[C]`: the classes that make up three quarters, at most three."""
    if counts.sum() == 0:
        return "no samples"
    order = [int(c) for c in np.argsort(-counts, kind="stable")]
    needed = int(np.searchsorted(np.cumsum(counts[order]) / counts.sum(), 0.75)) + 1
    return f"mostly {listed([str(names[c]) for c in order[: min(needed, 3)]])}"


def sentence(
    last: np.ndarray, counts: np.ndarray, names: Sequence[str], order: Sequence[int], done: int, client: int | None
) -> str:
    looked, equal = client is not None and client < len(last), 1 / len(last)
    k = client if looked else order[0]
    share = f"{percent(last[k])} of the weight (equal: {percent(equal)})"
    holds = f"it holds {counts[k].sum()} samples, {held_by(counts[k], names)}."
    after = f"After {plural(done, 'epoch')} client {k}"
    if looked:
        return f"{after} has {share}, rank {order.index(k) + 1} of {len(last)}; {holds}"
    silent = int((last < equal / 10).sum())
    end = f"{plural(silent, 'client')} with nearly no weight." if silent else "Every client keeps some weight."
    return f"{after} counts most: {share}; {holds} {end}"
