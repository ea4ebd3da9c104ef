"""How the ensemble weights change: each client's share of the weight, epoch by epoch, beside the
samples that it holds.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ...panels import LabView, PanelState
from ...plots import (
    Picture,
    TableRows,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    format_percent,
)
from ...plots.array_types import ClientClassCounts
from ...plots.kit import draw_stacked_bars_and_get_ends
from ...plots.marks import attach_hover_text
from ...plots.style import (
    ACCENT,
    INK,
    QUIET,
    draw_end_labels,
    draw_level_line,
    limit_tick_count,
    list_class_colours,
    set_percent_axis,
)
from ...plots.words import (
    SettingCaption,
    capitalize_first_letter,
    format_client_for_row,
    format_client_for_sentence,
    format_client_for_title,
    shorten_labels,
)
from ..array_types import WeightsByEpoch, WeightSharesByEpoch
from ..runs import describe_commonest_classes, describe_setting
from .images import get_planned_epochs_of_running_run_or_0

# How many clients' samples are drawn at most: half of them have the largest weights, half the smallest.
MAX_CLIENTS = 16
MAX_EPOCHS = 6  # columns of the table


class WeightTrajectoriesView(LabView):
    """Each client's share of the ensemble's weight, epoch by epoch, beside its samples."""

    name, title, ready = "weights", "Weights by epoch", "live"
    summary = "Then this shows each client's share of the ensemble's weight, epoch by epoch."

    def draw(self, state: PanelState) -> Picture:
        weights = state.report.weights
        if state.outcome is None:
            counts = state.federation.label_counts.numpy()
        else:
            counts = state.outcome.label_counts
        clients = weights.shape[1]
        if len(counts) != clients:  # the number of clients was changed while the method runs
            counts = np.zeros((clients, len(state.class_names)), dtype=int)
        return draw_weight_share_lines_and_class_bars(
            weights,
            counts,
            state.class_names,
            describe_setting(state),
            planned_epochs_or_0_if_ended=get_planned_epochs_of_running_run_or_0(state),
            selected_client=state.client,
            selected_class=state.class_index,
        )


def draw_weight_share_lines_and_class_bars(
    weights_by_epoch: WeightsByEpoch,
    label_counts: ClientClassCounts,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    *,
    planned_epochs_or_0_if_ended: int = 0,
    selected_client: int | None = None,
    selected_class: int | None = None,
) -> Picture:
    """Draw lines of w_k / Σ w, and bars of `label_counts [M, C]` in the order of the last weights.

    weights_by_epoch:             `[T, M]`, after each epoch that is done
    planned_epochs_or_0_if_ended: number of epochs of the whole run
    """
    weights_by_epoch = weights_by_epoch.astype(float)
    shares = weights_by_epoch / np.maximum(weights_by_epoch.sum(1, keepdims=True), 1e-12)
    last_shares = shares[-1]
    clients = len(last_shares)
    if selected_client is not None and selected_client >= clients:
        selected_client = None
    ranking = [int(k) for k in np.argsort(-last_shares, kind="stable")]
    drawn_clients = [*ranking[: MAX_CLIENTS // 2], *ranking[-MAX_CLIENTS // 2 :], selected_client]
    rows = [k for k in ranking if k in drawn_clients]
    with drawing(1, 2, width_ratios=[1, 1.25]) as (figure, (left, right)):
        draw_weight_share_lines(
            left,
            shares,
            rows,
            max(planned_epochs_or_0_if_ended, len(shares)),
            selected_client,
            setting,
        )
        labels = [
            f"{format_client_for_row(k, setting)}  {format_percent(last_shares[k])}" for k in rows
        ]
        draw_class_bars_of_clients(
            right, labels, rows, label_counts[rows], class_names, selected_class
        )
    return describe_picture(
        figure,
        "Lines of each client's share of the ensemble weight, beside bars of the classes that it "
        "holds",
        setting,
        describe_selected_or_heaviest_client(shares, setting, ranking, selected_client),
        make_weight_share_table(shares, label_counts, class_names, setting, ranking),
        detail=describe_samples_of_selected_or_heaviest_client(
            shares, label_counts, class_names, setting, ranking, selected_client
        ),
    )


def draw_weight_share_lines(
    ax: Axes,
    weight_shares: WeightSharesByEpoch,
    clients_heaviest_first: Sequence[int],
    planned_epochs: int,
    selected_client: int | None,
    setting: SettingCaption | str,
) -> None:
    """Draw a line for each client, with its name at the end.

    Of many clients only the first four of `clients_heaviest_first` and the selected one are named.
    """
    epochs_done, clients = weight_shares.shape
    dress(ax, title="Share of the weight (dotted: equal)", x="server epoch", y="w / Σ w", grid="y")
    for k in range(clients):
        if k == selected_client:
            style = {"lw": 3, "color": ACCENT, "zorder": 4}
        else:
            style = {"lw": 1.6, "color": QUIET, "alpha": 0.7}
        marker = "o" if epochs_done == 1 else None
        line = ax.plot(
            range(1, epochs_done + 1), weight_shares[:, k], ms=4, marker=marker, **style
        )[0]
        client_title = capitalize_first_letter(format_client_for_title(k, setting))
        attach_hover_text(
            line, f"{client_title}\n{format_percent(weight_shares[-1, k])} of the weight", client=k
        )
    equal_share = 1 / clients
    draw_level_line(ax, equal_share)
    ax.set_xlim(1, max(planned_epochs, 2))
    set_percent_axis(ax, highest_share=max(float(weight_shares.max()), equal_share) * 1.1)
    limit_tick_count(ax, "x", 6, only_whole_numbers=True)
    named_clients = clients_heaviest_first
    if clients > MAX_CLIENTS:
        named_clients = [
            k
            for k in clients_heaviest_first
            if k in clients_heaviest_first[:4] or k == selected_client
        ]
    labels = []
    for k in named_clients:
        colour = ACCENT if k == selected_client else INK
        labels.append((weight_shares[-1, k], format_client_for_sentence(k, setting), colour))
    draw_end_labels(ax, labels, font_size=9)


def draw_class_bars_of_clients(
    ax: Axes,
    bar_labels: Sequence[str],
    client_of_each_bar: Sequence[int],
    class_counts_of_each_bar: ClientClassCounts,
    class_names: Sequence[str],
    selected_class: int | None,
) -> None:
    """Draw a bar for each client, with a part for each class.

    bar_labels:               `[R]`, the names of the bars
    client_of_each_bar:       `[R]`, the clients' indices
    class_counts_of_each_bar: `[R, C]`, their samples by class
    """
    dress(ax, title="What they hold", x="training samples")
    bars = {
        label: dict(enumerate(row))
        for label, row in zip(bar_labels, class_counts_of_each_bar, strict=True)
    }
    draw_stacked_bars_and_get_ends(
        ax, bars, dict(enumerate(list_class_colours(len(class_names)))), bar_height=0.74
    )
    width_for_name = 0.05 * ax.get_xlim()[1]
    for parts in ax.containers:
        c = int(parts.get_label())
        name = shorten_labels([class_names[c]], 4)[0]
        texts = [name if part.get_width() > width_for_name else "" for part in parts]
        ax.bar_label(parts, texts, label_type="center", fontsize=8.5, color="white")
        for part, label, k, sample_count in zip(
            parts, bar_labels, client_of_each_bar, class_counts_of_each_bar[:, c], strict=True
        ):
            hover_text = f"{label}, class {class_names[c]}\n{format_count_and_noun(int(sample_count), 'sample')}"
            attach_hover_text(part, hover_text, client=k, class_index=c)
            if selected_class is not None and c != selected_class:
                part.set_alpha(0.3)
    limit_tick_count(ax, "x", 4, only_whole_numbers=True)


def describe_selected_or_heaviest_client(
    weight_shares: WeightSharesByEpoch,
    setting: SettingCaption | str,
    clients_heaviest_first: Sequence[int],
    selected_client: int | None,
) -> str:
    """Say which weight and rank the selected client has; without one, the client that weighs most."""
    last_shares = weight_shares[-1]
    equal_share = 1 / len(last_shares)
    k = clients_heaviest_first[0] if selected_client is None else selected_client
    return (
        f"After {format_count_and_noun(len(weight_shares), 'epoch')} client "
        f"{format_client_for_sentence(k, setting)} (rank {clients_heaviest_first.index(k) + 1}) has "
        f"{format_percent(last_shares[k])} of the weight; equal shares would be "
        f"{format_percent(equal_share)}."
    )


def describe_samples_of_selected_or_heaviest_client(
    weight_shares: WeightSharesByEpoch,
    counts: ClientClassCounts,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    clients_heaviest_first: Sequence[int],
    selected_client: int | None,
) -> str:
    """Say what the selected client holds, and how many clients have nearly no weight; without a
    selected client, what the client holds that weighs most.
    """
    last_shares = weight_shares[-1]
    k = clients_heaviest_first[0] if selected_client is None else selected_client
    clients_without_weight = int((last_shares < 0.1 / len(last_shares)).sum())
    return (
        f"Client {format_client_for_sentence(k, setting)} holds {counts[k].sum()} samples, "
        f"{describe_commonest_classes(counts[k], class_names)}. "
        f"{format_count_and_noun(clients_without_weight, 'client')} with nearly no weight."
    )


def make_weight_share_table(
    weight_shares: WeightSharesByEpoch,
    counts: ClientClassCounts,
    class_names: Sequence[str],
    setting: SettingCaption | str,
    clients_heaviest_first: Sequence[int],
) -> TableRows:
    """Make the table with a row for each client: its share of the weight after the first, the last
    and a few epochs in between, and its samples.
    """
    steps = np.linspace(0, len(weight_shares) - 1, min(MAX_EPOCHS, len(weight_shares)))
    epochs = sorted({round(step) for step in steps})
    columns = ["client"]
    columns += [f"epoch {epoch + 1}" for epoch in epochs]
    columns += [f"class {name}" for name in class_names]
    rows = []
    for k in clients_heaviest_first:
        percents = [format_percent(share) for share in weight_shares[epochs, k]]
        rows.append((format_client_for_sentence(k, setting), *percents, *counts[k].tolist()))
    return build_table(columns, rows)
