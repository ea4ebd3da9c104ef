"""How the ensemble weights change: each client's share of the weight, epoch by epoch, beside what
the client holds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ...panels import LabView, PanelState
from ...plots import Picture, build_table, describe_picture, drawing, dress, percent, plural
from ...plots.kit import draw_stacked_bars
from ...plots.style import (
    ACCENT,
    INK,
    QUIET,
    class_colours,
    draw_end_labels,
    draw_level_line,
    limit_ticks,
    set_percent_axis,
)
from ...plots.words import Setting, plain_client_name, row_name, shorten
from ..runs import describe_classes, describe_setting
from .images import count_planned_epochs

MAX_CLIENTS = 16  # whose classes are drawn; of more, half of them from each end of the ranking
MAX_EPOCHS = 6  # columns of the table


class Trajectories(LabView):
    """Each client's share of the ensemble's weight, epoch by epoch, beside what it holds."""

    name, title, ready = "weights", "Weights by epoch", "live"
    summary = "Then this shows each client's share of the ensemble's weight, epoch by epoch."

    def draw(self, state: PanelState) -> Picture:
        weights = state.report.weights
        if state.outcome is None:
            counts = state.federation.label_counts.numpy()
        else:
            counts = state.outcome.label_counts
        clients = weights.shape[1]
        if len(counts) != clients:  # the sliders moved on while the method runs
            counts = np.zeros((clients, len(state.class_names)), dtype=int)
        return draw_trajectories(
            weights,
            counts,
            state.class_names,
            describe_setting(state),
            epochs=count_planned_epochs(state),
            client=state.client,
            class_index=state.class_index,
        )


def draw_trajectories(
    weights: np.ndarray,
    counts: np.ndarray,
    names: Sequence[str],
    setting: Setting | str,
    *,
    epochs: int = 0,
    client: int | None = None,
    class_index: int | None = None,
) -> Picture:
    """Lines of w_k / Σ w, and bars of `counts [M, C]` in the order of the last weights.

    weights: `[T, M]`, after each epoch;   epochs: of the whole run, while only T of them are done
    client, class_index: what is looked at
    """
    weights = weights.astype(float)
    shares = weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    last = shares[-1]
    clients = len(last)
    if client is not None and client >= clients:
        client = None
    ranking = [int(k) for k in np.argsort(-last, kind="stable")]
    drawn = [*ranking[: MAX_CLIENTS // 2], *ranking[-MAX_CLIENTS // 2 :], client]
    rows = [k for k in ranking if k in drawn]
    with drawing(1, 2, width_ratios=[1, 1.25]) as (figure, (left, right)):
        draw_lines(left, shares, rows, max(epochs, len(shares)), client, setting)
        labels = [f"{row_name(k, setting)}  {percent(last[k])}" for k in rows]
        draw_samples(right, labels, counts[rows], names, class_index)
    return describe_picture(
        figure,
        "Lines of each client's share of the ensemble weight, beside bars of the classes that it "
        "holds",
        setting,
        describe_ranking(shares, setting, ranking, client),
        make_table(shares, counts, names, setting, ranking),
        detail=describe_holdings(shares, counts, names, setting, ranking, client),
    )


def draw_lines(
    ax: Axes,
    shares: np.ndarray,
    rows: Sequence[int],
    epochs: int,
    client: int | None,
    setting: Setting | str,
) -> None:
    """A line for each client, with its name at the end: of a few clients all names, of many those
    of the first four `rows` and of the selected client.
    """
    epochs_done, clients = shares.shape
    dress(ax, title="Share of the weight (dotted: equal)", x="server epoch", y="w / Σ w", grid="y")
    for k in range(clients):
        if k == client:
            style = {"lw": 3, "color": ACCENT, "zorder": 4}
        else:
            style = {"lw": 1.6, "color": QUIET, "alpha": 0.7}
        marker = "o" if epochs_done == 1 else None
        ax.plot(range(1, epochs_done + 1), shares[:, k], ms=4, marker=marker, **style)
    equal = 1 / clients
    draw_level_line(ax, equal)
    ax.set_xlim(1, max(epochs, 2))
    set_percent_axis(ax, top=max(float(shares.max()), equal) * 1.1)
    limit_ticks(ax, "x", 6, whole=True)
    named = rows
    if clients > MAX_CLIENTS:
        named = [k for k in rows if k in rows[:4] or k == client]
    labels = []
    for k in named:
        colour = ACCENT if k == client else INK
        labels.append((shares[-1, k], plain_client_name(k, setting), colour))
    draw_end_labels(ax, labels, size=9)


def draw_samples(
    ax: Axes,
    labels: Sequence[str],
    counts: np.ndarray,
    names: Sequence[str],
    class_index: int | None,
) -> None:
    """A bar for each of the `labels` from its `counts [R, C]`, a part for each class."""
    dress(ax, title="What they hold", x="training samples")
    bars = {label: dict(enumerate(row)) for label, row in zip(labels, counts, strict=True)}
    draw_stacked_bars(ax, bars, dict(enumerate(class_colours(len(names)))), thick=0.74)
    width_for_name = 0.05 * ax.get_xlim()[1]
    for parts in ax.containers:
        c = int(parts.get_label())
        name = shorten([names[c]], 4)[0]
        texts = [name if part.get_width() > width_for_name else "" for part in parts]
        ax.bar_label(parts, texts, label_type="center", fontsize=8.5, color="white")
        if class_index is not None and c != class_index:
            for part in parts:
                part.set_alpha(0.3)
    limit_ticks(ax, "x", 4, whole=True)


def describe_ranking(
    shares: np.ndarray,
    setting: Setting | str,
    ranking: Sequence[int],
    client: int | None,
) -> str:
    """The selected client, else the one with the largest weight."""
    last = shares[-1]
    equal = 1 / len(last)
    k = ranking[0] if client is None else client
    return (
        f"After {plural(len(shares), 'epoch')} client {plain_client_name(k, setting)} "
        f"(rank {ranking.index(k) + 1}) has {percent(last[k])} of the weight; equal shares would be "
        f"{percent(equal)}."
    )


def describe_holdings(
    shares: np.ndarray,
    counts: np.ndarray,
    names: Sequence[str],
    setting: Setting | str,
    ranking: Sequence[int],
    client: int | None,
) -> str:
    """What the client of `describe_ranking` holds, and how many have nearly no weight."""
    last = shares[-1]
    k = ranking[0] if client is None else client
    silent = int((last < 0.1 / len(last)).sum())
    return (
        f"Client {plain_client_name(k, setting)} holds {counts[k].sum()} samples, "
        f"{describe_classes(counts[k], names)}. {plural(silent, 'client')} with nearly no weight."
    )


def make_table(
    shares: np.ndarray,
    counts: np.ndarray,
    names: Sequence[str],
    setting: Setting | str,
    ranking: Sequence[int],
) -> list[dict[str, Any]]:
    """A row for each client: its share after a few epochs, the first and the last among them, and
    its samples.
    """
    steps = np.linspace(0, len(shares) - 1, min(MAX_EPOCHS, len(shares)))
    epochs = sorted({round(step) for step in steps})
    columns = ["client"]
    columns += [f"epoch {epoch + 1}" for epoch in epochs]
    columns += [f"class {name}" for name in names]
    rows = []
    for k in ranking:
        percents = [percent(share) for share in shares[epochs, k]]
        rows.append((plain_client_name(k, setting), *percents, *counts[k].tolist()))
    return build_table(columns, rows)
