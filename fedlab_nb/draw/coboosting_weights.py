"""How the ensemble weights travel: each client's share of the weight, epoch by epoch, beside what the client holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .style import ACCENT, INK, LOCK, QUIET, Picture, class_colours, dress, many_is_dark, new_figure, shorten
from .words import listed, percent, plural

MOST = 16  # clients whose classes are drawn; of more, half of them from each end of the ranking
NAMES = 12  # classes that a bar names


def trajectories(
    path: np.ndarray,
    counts: np.ndarray,
    class_names: Sequence[str],
    *,
    setting: str,
    epochs: int | None = None,
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """Lines of w_k / Σ w from `path [T, M]` (w after each epoch), bars of `counts [M, C]` in the order of the last w.

    epochs: of the whole run, for the axis, while only T of them are done.
    """
    path, counts = np.asarray(path, dtype=float), np.asarray(counts)
    shares = path / np.maximum(path.sum(1, keepdims=True), 1e-12)
    order = [int(k) for k in np.argsort(-shares[-1], kind="stable")]
    rows = chosen_rows(order, client)
    with LOCK:
        figure = new_figure()
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
        lines(left, shares, rows, max(epochs or 0, len(shares)), client)
        bars(right, shares[-1], counts, class_names, rows, client, klass)
    return Picture(
        figure,
        alt=alt_text(shares, setting, order, client, klass),
        sentence=sentence(shares[-1], counts, class_names, order, len(shares), client),
        table=[
            {"client": k, **{f"epoch {t + 1}": percent(shares[t, k]) for t in few(len(shares))}}
            | {f"class {name}": int(n) for name, n in zip(class_names, counts[k], strict=True)}
            for k in order
        ],
    )


def few(epochs: int) -> list[int]:
    """About six epochs, first and last among them."""
    return sorted({round(t) for t in np.linspace(0, epochs - 1, min(6, epochs))})


def chosen_rows(order: Sequence[int], client: int | None) -> list[int]:
    """The clients that get a bar: all, or the ends of the ranking and the client that is looked at."""
    if len(order) <= MOST:
        return list(order)
    kept = {*order[: MOST // 2], *order[-MOST // 2 :]} | ({client} if client is not None else set())
    return [k for k in order if k in kept]


def lines(ax: Axes, shares: np.ndarray, rows: Sequence[int], epochs: int, client: int | None) -> None:
    """Darker is heavier at the end; the number at a line's end is the client."""
    done, clients = shares.shape
    dress(ax, title="Share of the weight", x="server epoch", y="w / Σ w", grid="y")
    top = max(float(shares.max()), 1 / clients) * 1.1
    for k in range(clients):
        looked = k == client
        colour = ACCENT if looked else shade(shares[-1, k], shares[-1])
        faint = k not in rows and not looked
        style = {"color": colour, "lw": 3 if looked else 0.8 if faint else 1.6, "alpha": 0.35 if faint else 1}
        ax.plot(range(1, done + 1), shares[:, k], zorder=4 if looked else 2, **style)
        if done == 1 and not faint:
            ax.plot([1], shares[:, k], "o", color=colour, ms=4)
    ax.axhline(1 / clients, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=1)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    ax.text(1.15, 1 / clients + 0.014 * top, "equal", fontsize=9, color=QUIET, bbox=box, zorder=5)
    labels = [k for k in rows if clients <= MOST or k in (*rows[:4], client)]
    for k, y in apart(labels, shares[-1], 0.052 * top):
        ax.text(
            done + 0.02 * max(epochs - 1, 1), y, str(k), va="center", fontsize=9, clip_on=False, gid="outside",
            color=ACCENT if k == client else INK, fontweight="bold" if k == client else "normal",
        )  # fmt: skip
    ax.set_xlim(1, max(epochs, 2))
    ax.set_ylim(0, top)
    ax.yaxis.set_major_formatter(PERCENT)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def shade(share: float, shares: np.ndarray) -> tuple:
    """Cividis by weight, without its palest end, which is too faint for a line."""
    return many_is_dark(empty=False)(0.22 + 0.78 * share / max(float(shares.max()), 1e-12))


def apart(clients: Sequence[int], shares: np.ndarray, gap: float) -> list[tuple[int, float]]:
    """Heights for labels, no two nearer than `gap`, from the lowest up; those at the bottom stay on the axis."""
    placed, below = [], -gap
    for k in sorted(clients, key=lambda k: (shares[k], -k)):
        below = max(float(shares[k]), below + gap)
        placed.append((k, below))
    return placed


def bars(
    ax: Axes,
    last: np.ndarray,
    counts: np.ndarray,
    names: Sequence[str],
    rows: Sequence[int],
    client: int | None,
    klass: int | None,
) -> None:
    """What each client holds, stacked by class, heaviest client on top; a class that is looked at is outlined."""
    dress(ax, title="What they hold, heaviest first", x="training samples")
    colours, y = class_colours(counts.shape[1]), np.arange(len(rows))
    left, most = np.zeros(len(rows)), max(int(counts[list(rows)].sum(1).max()), 1)
    for c, colour in enumerate(colours):
        held = counts[list(rows), c]
        faded = 0.3 if klass is not None and c != klass else 1
        ax.barh(y, held, left=left, height=0.74, color=colour, alpha=faded, linewidth=0)
        if len(names) <= NAMES:
            for i in np.flatnonzero(held > 0.05 * most):
                ax.text(left[i] + held[i] / 2, i, shorten([names[c]], 4)[0], ha="center", va="center", fontsize=8.5,
                        color="white" if faded == 1 else INK)  # fmt: skip
        left += held
    small = 10 if len(rows) <= 12 else 8.5
    ax.set_yticks(y, [f"client {k}  {percent(last[k])}" for k in rows], fontsize=small)
    for label, k in zip(ax.get_yticklabels(), rows, strict=True):
        if k == client:
            label.set(color=ACCENT, fontweight="bold")
    ax.set_ylim(max(len(rows), 3) - 0.5, -0.5)
    ax.set_xlim(0, 1.02 * most)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))


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
    equal = 1 / len(last)
    if client is not None and client < len(last):
        rank = order.index(client) + 1
        return (
            f"After {plural(done, 'epoch')} client {client} has {percent(last[client])} of the weight (equal: "
            f"{percent(equal)}), rank {rank} of {len(last)}; it holds {counts[client].sum()} samples, "
            f"{held_by(counts[client], names)}."
        )
    top = order[0]
    silent = int((last < equal / 10).sum())
    text = (
        f"After {plural(done, 'epoch')} client {top} counts most: {percent(last[top])} of the weight (equal: "
        f"{percent(equal)}); it holds {counts[top].sum()} samples, {held_by(counts[top], names)}."
    )
    return text + (f" {plural(silent, 'client')} next to nothing." if silent else " Nobody is silenced.")


def alt_text(shares: np.ndarray, setting: str, order: Sequence[int], client: int | None, klass: int | None) -> str:
    ends = ", ".join(f"client {k} {percent(shares[-1, k])}" for k in order[:10])
    marked = f" Client {client} is marked." if client is not None else ""
    marked += f" Class number {klass} is marked." if klass is not None else ""
    return (
        f"Lines of each client's share of the ensemble weight over {plural(len(shares), 'epoch')} ({setting}), beside "
        f"bars of the classes that each client holds. At the end, heaviest first: {ends}.{marked}"
    )
