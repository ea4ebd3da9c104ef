"""Who is the expert? What each client says of one sample, how much it counts, and what comes of it (Fed-ET)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from .style import ACCENT, INK, LOCK, QUIET, RULE, SECOND, Picture, dress, many_is_dark, new_figure, shorten
from .words import percent, plural

FEW, NARROW = 16, 12  # up to so many clients and classes, numbers are written into the picture


def expert(
    outputs: np.ndarray,
    weights: np.ndarray,
    spread: np.ndarray,
    consensus: np.ndarray,
    names: Sequence[str],
    *,
    setting: str,
    sample: str,
    members: Sequence[int] | None = None,
    student: np.ndarray | None = None,
    image: np.ndarray | None = None,
    truth: int | None = None,
    held: np.ndarray | None = None,
    spread_of: str = "variance of the softmax",
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """One sample.

    outputs [m, N]:  each client's softmax output;   weights [m]: α_k, sum 1;   spread [m]: what α_k is made from
    consensus [N]:   Σ α_k outputs;   student [N]: the server's own softmax output;   members [m]: the clients' ids
    sample:          its name, "public sample 17";   image [H, W] or [H, W, 3] in [0, 1];   truth: its class, if known
    held [m]:        how many training samples of the consensus' class each client has, which the server cannot know
    """
    m, classes = outputs.shape
    ids = list(range(m)) if members is None else [int(k) for k in members]
    label = int(consensus.argmax())
    dissent = outputs.argmax(1) != label
    rows = np.concatenate([outputs, consensus[None], *([] if student is None else [student[None]])])
    below = ["consensus", *([] if student is None else ["server"])]
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine(None)  # fixed places: this picture follows a slider, and a layout would cost most
        heat = figure.add_axes((0.245, 0.125, 0.41, 0.785))
        bars = figure.add_axes((0.675, 0.125, 0.2, 0.785), sharey=heat)
        heat.imshow(rows, cmap=many_is_dark(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        hues = [SECOND if against else ACCENT for against in dissent]
        drawn = bars.barh(range(m), weights, color=hues, height=0.7, edgecolor="white", lw=0)
        for bar, against in zip(drawn, dissent, strict=True):
            bar.set_hatch("////" if against else None)
        _dress_heat(heat, ids, below, hues, names, client)
        _dress_bars(bars, weights)
        heat.axhline(m - 0.5, color=RULE, lw=1.5)
        if classes <= NARROW and m <= FEW:
            for i, j in np.argwhere(rows >= 0.005):
                dark = "white" if rows[i, j] > 0.5 else INK
                heat.text(j, i, f"{100 * rows[i, j]:.0f}", ha="center", va="center", fontsize=8.5, color=dark)
        if m <= FEW:
            for i, (value, its) in enumerate(zip(weights, spread, strict=True)):
                bars.text(value, i, f" {its:.2g}", va="center", fontsize=8.5, color=QUIET)
        heat.add_patch(_frame(label - 0.5, m - 0.5, 1, len(below), INK))
        if klass is not None and klass < classes:
            heat.add_patch(_frame(klass - 0.5, -0.5, 1, len(rows), ACCENT))
        if client in ids:
            bars.axhspan(ids.index(client) - 0.5, ids.index(client) + 0.5, color=ACCENT, alpha=0.13, lw=0, zorder=0)
        if held is not None and m <= FEW:
            figure.text(0.985, 0.93, f"own “{shorten(names, 8)[label]}”", ha="right", fontsize=9, color=QUIET)
            for i, count in enumerate(held):
                bars.annotate(
                    str(int(count)), (1, i), xycoords=("axes fraction", "data"), xytext=(34, 0),
                    textcoords="offset points", ha="center", va="center", fontsize=9, color=INK,
                    fontweight="bold" if not count and not dissent[i] else "normal",
                )  # fmt: skip
        _card(figure, image, sample, None if truth is None else names[truth], int(dissent.sum()), m)
    return Picture(
        figure,
        alt=_alt(outputs, weights, names, ids, label, setting, sample, spread_of),
        sentence=_sentence(
            outputs, weights, consensus, names, ids, label, dissent, sample, truth, held, client, student
        ),
        table=_table(outputs, weights, spread, names, ids, dissent, held, spread_of),
    )


def _frame(x: float, y: float, width: float, height: float, colour: str):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, fill=False, edgecolor=colour, lw=2, clip_on=False, zorder=3)


def _dress_heat(ax, ids, below, hues, names, client) -> None:
    m, classes = len(ids), len(names)
    dress(ax, x="class")
    ax.set_title("What each client says, in %", loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=5)
    for spine in ax.spines.values():
        spine.set(visible=True, color=RULE)
    ax.tick_params(length=0)
    if classes <= 20:
        ax.set_xticks(range(classes), shorten(names, 6), fontsize=9.5)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    step = -(-m // 25)
    shown = [i for i in range(m) if i % step == 0 or ids[i] == client]
    places = [*shown, *range(m, m + len(below))]
    small = 9.5 if m <= 12 else 9 if m <= FEW else 7.5
    ax.set_yticks(places, [f"client {ids[i]}" for i in shown] + below, fontsize=small)
    for tick, place in zip(ax.get_yticklabels(), places, strict=True):
        tick.set_color(hues[place] if place < m else INK)
        tick.set_fontweight("bold" if place >= m or ids[place] == client else "normal")


def _dress_bars(ax, weights) -> None:
    dress(ax, x="α (beside it: σ²)" if len(weights) <= FEW else "α", grid="x")
    ax.set_title("Its weight", loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=5)
    ax.tick_params(axis="y", left=False, labelleft=False)
    ax.set_xlim(0, max(0.01, float(weights.max())) * 1.35)
    ax.xaxis.set_major_locator(MaxNLocator(3))


def _card(figure, image, sample, truth, against, m) -> None:
    """The sample itself, and the two colours."""
    if image is not None:
        box = figure.add_axes((0.012, 0.66, 0.125, 0.25))
        box.imshow(image, cmap="gray_r" if image.ndim == 2 else None, vmin=0, vmax=1, interpolation="nearest")
        box.set_axis_off()
    lines = [(sample.replace(" sample ", "\nsample "), INK, 9), *([(f"is “{truth}”", INK, 9)] if truth else [])]
    height = 0.635
    for text, colour, size in lines:
        figure.text(0.012, height, text, fontsize=size, color=colour, va="top")
        height -= 0.105 if "\n" in text else 0.07
    figure.text(0.012, 0.33, f"{m - against} follow", fontsize=9.5, color=ACCENT, fontweight="bold")
    figure.text(0.012, 0.27, f"{against} dissent", fontsize=9.5, color=SECOND, fontweight="bold")


def _sentence(outputs, weights, consensus, names, ids, label, dissent, sample, truth, held, client, student) -> str:
    m, follow = len(ids), len(ids) - int(dissent.sum())
    text = (
        f"{sample[0].upper()}{sample[1:]}: the consensus is “{names[label]}” ({percent(consensus[label])}); "
        f"{follow} of {plural(m, 'client')} follow{'s' * (follow == 1)} it, dissent ρ = {weights[dissent].sum():.2f}."
    )
    if truth is not None:
        text = f"{text[:-1]}, and it is {'right' if truth == label else f'wrong, it is “{names[truth]}”'}."
    i = ids.index(client) if client in ids else int(weights.argmax())
    top = int(outputs[i].argmax())
    who = f"Client {ids[i]}" + ("" if client in ids else ", the loudest,")
    own = "" if held is None or held[i] else f", though it has never seen “{names[label]}”"
    text += f" {who} says “{names[top]}” ({percent(outputs[i, top])}) and counts {weights[i]:.2f}{own}."
    if student is not None and int(student.argmax()) != label:
        text += f" The server says “{names[int(student.argmax())]}”."
    return text


def _alt(outputs, weights, names, ids, label, setting, sample, spread_of) -> str:
    said = "; ".join(
        f"client {k} “{names[int(row.argmax())]}” {percent(row.max())}, weight {w:.2f}"
        for k, row, w in list(zip(ids, outputs, weights, strict=True))[:20]
    )
    return (
        f"Heat-map of the clients' outputs for {sample} ({setting}) and bars of their weights, made from the "
        f"{spread_of}: {said}. Consensus “{names[label]}”."
    )


def _table(outputs, weights, spread, names, ids, dissent, held, spread_of) -> list[dict]:
    rows = []
    for i, k in enumerate(ids):
        top = int(outputs[i].argmax())
        row = {"client": k, "says": names[top], "how sure": percent(outputs[i, top]), spread_of: f"{spread[i]:.3g}"}
        row |= {"weight α": f"{weights[i]:.3f}", "dissents": "yes" if dissent[i] else "no"}
        rows.append(row | ({} if held is None else {"own samples of the consensus' class": int(held[i])}))
    return rows
