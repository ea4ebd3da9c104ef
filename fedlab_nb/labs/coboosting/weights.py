"""How the ensemble weights travel: each client's share of the weight, epoch by epoch, beside what the client holds."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ...panels import LabView, PanelState
from ...plots import Picture, drawing, dress, percent, plural, tabled, told
from ...plots.axes import end_labels, few_ticks, level_line, percent_axis
from ...plots.characters import own_name, row_name
from ...plots.kit import stacked
from ...plots.style import ACCENT, INK, QUIET, class_colours, shorten
from ..runs import mostly, where
from .images import planned

MOST = 16  # clients whose classes are drawn; of more, half of them from each end of the ranking


class Trajectories(LabView):
    """Each client's share of the ensemble's weight, epoch by epoch, beside what it holds."""

    name, title, ready = "weights", "Weights by epoch", "live"

    def draw(self, state: PanelState) -> Picture:
        path = state.report.weights
        held = (
            state.federation.label_counts.numpy()
            if state.outcome is None
            else state.outcome.label_counts
        )
        if len(held) != path.shape[1]:  # the sliders moved on while the method runs
            held = np.zeros((path.shape[1], len(state.class_names)), dtype=int)
        about = {"epochs": planned(state), "client": state.client, "klass": state.klass}
        return trajectories(path, held, state.class_names, where(state), **about)


def trajectories(
    path: np.ndarray, counts: np.ndarray, names: Sequence[str], setting: str, *, epochs: int = 0,
    client: int | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """Lines of w_k / Σ w from `path [T, M]` (w after each epoch), bars of `counts [M, C]` in the order of the last w.

    epochs: of the whole run, for the axis, while only T of them are done.
    """
    path = path.astype(float)
    shares = path / np.maximum(path.sum(1, keepdims=True), 1e-12)
    last, equal = shares[-1], 1 / len(shares[-1])
    order = [int(k) for k in np.argsort(-last, kind="stable")]
    client = client if client is not None and client < len(last) else None
    ends = {
        *order[: MOST // 2],
        *order[-MOST // 2 :],
        client,
    }  # of the ranking, and who is looked at
    rows = [k for k in order if k in ends]
    with drawing(1, 2, width_ratios=[1, 1.25]) as (figure, (left, right)):
        lines(left, shares, rows, max(epochs, len(shares)), client, setting)
        dress(right, title="What they hold", x="training samples")
        held = {
            f"{row_name(k, setting)}  {percent(last[k])}": dict(enumerate(counts[k])) for k in rows
        }
        stacked(right, held, dict(enumerate(class_colours(len(names)))), thick=0.74)
        for bars in right.containers:
            name, wide = shorten([names[int(bars.get_label())]], 4)[0], 0.05 * right.get_xlim()[1]
            texts = [name if bar.get_width() > wide else "" for bar in bars]
            right.bar_label(bars, texts, label_type="center", fontsize=8.5, color="white")
            for bar in bars if klass is not None and int(bars.get_label()) != klass else ():
                bar.set_alpha(0.3)
        few_ticks(right, "x", 4, whole=True)
    k = order[0] if client is None else client
    silent = int((last < equal / 10).sum())
    few = sorted(
        {round(t) for t in np.linspace(0, len(path) - 1, min(6, len(path)))}
    )  # first and last among them
    columns = ["client", *(f"epoch {t + 1}" for t in few), *(f"class {name}" for name in names)]
    return told(
        figure,
        "Lines of each client's share of the ensemble weight, beside bars of the classes that it holds",
        setting,
        f"After {plural(len(path), 'epoch')} client {own_name(k, setting)} (rank {order.index(k) + 1}) has "
        f"{percent(last[k])} of the weight (equal: {percent(equal)}); it holds {counts[k].sum()} samples, "
        f"{mostly(counts[k], names)}. {plural(silent, 'client')} with nearly no weight.",
        tabled(
            columns,
            (
                (own_name(k, setting), *map(percent, shares[few, k]), *counts[k].tolist())
                for k in order
            ),
        ),
    )


def lines(
    ax: Axes, shares: np.ndarray, rows: Sequence[int], epochs: int, client: int | None, setting: str
) -> None:
    """The number at a line's end is the client."""
    done, clients = shares.shape
    dress(ax, title="Share of the weight (dotted: equal)", x="server epoch", y="w / Σ w", grid="y")
    for k in range(clients):
        style = (
            {"lw": 3, "color": ACCENT, "zorder": 4}
            if k == client
            else {"lw": 1.6, "color": QUIET, "alpha": 0.7}
        )
        ax.plot(range(1, done + 1), shares[:, k], ms=4, marker="o" if done == 1 else None, **style)
    level_line(ax, 1 / clients)
    ax.set_xlim(1, max(epochs, 2))
    percent_axis(ax, top=max(float(shares.max()), 1 / clients) * 1.1)
    few_ticks(ax, "x", 6, whole=True)
    named = [k for k in rows if clients <= MOST or k in (*rows[:4], client)]
    end_labels(
        ax,
        [(shares[-1, k], own_name(k, setting), ACCENT if k == client else INK) for k in named],
        size=9,
    )
