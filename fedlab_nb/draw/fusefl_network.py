"""FuseFL step by step: M clients' networks as columns of K blocks, which part is training, sent or frozen, the bytes
so far, and how good the clients are at home and outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from matplotlib.axes import Axes

from .accuracy import PERCENT
from .fusefl_columns import columns
from .fusefl_steps import AVERAGE, CALIBRATE, TRAIN, Replay, Step, steps
from .style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import data_size, percent


def network(replay: Replay, step: int, *, client: int | None = None) -> Picture:
    """The network at step number `step` of `steps(replay)` (cut to its range), the bytes and the accuracies so far."""
    every = steps(replay)
    return drawn(replay, every, every[min(max(step, 0), len(every) - 1)], client)


def drawn(replay: Replay, every: Sequence[Step], now: Step, client: int | None) -> Picture:
    """The picture of one step among `every`."""
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")  # fixed places: nothing jumps from step to step; and it is faster
        columns(figure.add_axes((0.01, 0.02, 0.6, 0.9)), replay, now, client)
        traffic(figure.add_axes((0.69, 0.71, 0.18, 0.21)), now, every[-1])
        progress(figure.add_axes((0.69, 0.22, 0.29, 0.36)), replay, now, client)
    where = f"Step {every.index(now) + 1} of {len(every)}, {now.title.lower()}"
    return Picture(
        figure,
        alt=(
            f"FuseFL step by step ({replay.setting}). {where}: {replay.clients} clients' networks as columns of "
            f"{replay.blocks} blocks, {now.frozen} of them frozen; {data_size(now.up)} up and {data_size(now.down)} "
            "down so far."
        ),
        sentence=f"{where}. {now.text}{_told(replay, now, client)}",
        table=table(replay, every),
    )


# ------------------------------------------------------------------------------------------------- bytes and accuracies
def traffic(ax: Axes, now: Step, end: Step) -> None:
    """Bytes of all clients so far, up and down, against what they will be in the end."""
    dress(ax, title="Sent so far, all clients")
    most = max(end.up, end.down, now.up, now.down, 1)
    for i, (name, value, goal, hue) in enumerate(
        (("up", now.up, end.up, ACCENT), ("down", now.down, end.down, SECOND))
    ):
        ax.barh(i, goal, height=0.56, color=FAINT)
        ax.barh(i, value, height=0.56, color=hue, alpha=0.85)
        ax.text(1.03 * most, i, data_size(value), va="center", fontsize=9.5, color=INK, clip_on=False, gid="outside")
        ax.text(-0.03 * most, i, name, va="center", ha="right", fontsize=9.5, color=INK, gid="outside")
    ax.set_xlim(0, 1.001 * most)
    ax.set_ylim(1.5, -0.5)
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)


def progress(ax: Axes, replay: Replay, now: Step, client: int | None) -> None:
    """Accuracy after each round that is over: a dot a client at home and outside; at the end the fused network."""
    dress(ax, title="Clients, then all fused", grid="y")
    rounds = min(_rounds_over(now), len(replay.home), len(replay.outside))
    few = replay.clients <= 20
    for k in range(rounds):
        for values, hue, shift in ((replay.home[k], QUIET, -0.12), (replay.outside[k], ACCENT, 0.12)):
            ax.plot([k + shift] * len(values), values, "o", color=hue, ms=4.5 if few else 3, alpha=0.55, clip_on=False)
            ax.plot([k + shift - 0.1, k + shift + 0.1], [mean(values)] * 2, color=INK, lw=2)
            if client is not None and client < len(values):
                ax.plot([k + shift], [values[client]], "o", mfc="none", mec=INK, mew=1.6, ms=9, clip_on=False)
    fused = _fused(replay, now)
    for j, (_, value) in enumerate(fused):
        x = replay.blocks + j
        ax.bar(x, value, width=0.5, color=SECOND if j else "#e8b48d")
        ax.text(x, value + 0.02, f"{100 * value:.0f}", ha="center", fontsize=9, color=INK)
    few_rounds = replay.blocks <= 4
    every = max(1, replay.blocks // 6)
    names = [f"{k + 1}" if k % every == 0 else "" for k in range(replay.blocks)]
    names[0] = f"round\n{names[0]}" if few_rounds else names[0]
    names[1:] = [f"\n{name}" if few_rounds else name for name in names[1:]]
    averaged, calibrated = ("aver-\naged", "cali-\nbrated") if few_rounds else ("av.", "cal.")
    ends = {"own": ["own"], "average": [averaged], "ccvr": [averaged, calibrated]}[replay.head]
    ax.set_xticks(range(replay.blocks + len(ends)), [*names, *ends], fontsize=9)
    ax.set_xlim(-0.5, replay.blocks + len(ends) - 0.5)
    ax.set_ylim(0, 1.08)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_formatter(PERCENT)
    ax.tick_params(axis="x", length=0)
    for x, name, hue in ((-0.1, "● at home", QUIET), (0.38, "● on test samples", ACCENT)):
        ax.text(x, -0.5, name, transform=ax.transAxes, fontsize=9, color=hue)


def _rounds_over(now: Step) -> int:
    return now.block if now.kind != "start" else 0


def _fused(replay: Replay, now: Step) -> list[tuple[str, float]]:
    """The classifiers whose accuracy is known by now."""
    found = []
    if now.kind in (AVERAGE, CALIBRATE):
        found.append("own" if replay.head == "own" else "average")
    if now.kind == CALIBRATE:
        found.append("ccvr")
    return [(name, replay.heads[name]) for name in found if name in replay.heads]


def _told(replay: Replay, now: Step, client: int | None) -> str:
    rounds = min(_rounds_over(now), len(replay.home), len(replay.outside))
    if client is None or not rounds or client >= replay.clients:
        return ""
    home, outside = replay.home[rounds - 1][client], replay.outside[rounds - 1][client]
    return f" Client {client} after round {rounds}: {percent(home)} at home, {percent(outside)} on test samples."


def table(replay: Replay, every: Sequence[Step]) -> list[dict]:
    rows = []
    for i, step in enumerate(every):
        row = {"step": i + 1, "what": step.title, "up so far": data_size(step.up), "down so far": data_size(step.down)}
        known = step.kind == TRAIN and len(replay.home) >= step.block and len(replay.outside) >= step.block
        row["at home"] = percent(mean(replay.home[step.block - 1])) if known else ""
        row["test samples"] = percent(mean(replay.outside[step.block - 1])) if known else ""
        fused = _fused(replay, step)
        row["fused network"] = percent(fused[-1][1]) if fused and not math.isnan(fused[-1][1]) else ""
        rows.append(row)
    return rows


def live_step(replay: Replay, block: int, sent: Sequence[int], *, client: int | None = None) -> Picture:
    """The network while it trains: round `block` from 1 (K + 1: the classifier), and the bytes (up, down) so far."""
    every = steps(replay)
    kinds = (AVERAGE, CALIBRATE) if block > replay.blocks else (TRAIN,)
    index = max(i for i, s in enumerate(every) if s.kind in kinds and (block > replay.blocks or s.block == block))
    now = replace(every[index], up=int(sent[0]), down=int(sent[1]))
    return drawn(replay, every[:index] + [now] + every[index + 1 :], now, client)
