"""FuseFL's run step by step: M clients' networks as columns of K blocks, which part is training, sent or frozen and who
reads whom, with the bytes so far; how good the clients are at home and outside stands in the sentence and the table.
"""

import itertools
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from ipywidgets import Button, HBox, IntSlider
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from ...methods.fusefl.network import FuseFLReport
from ...panels import LabView, PanelState, made, player
from ...plots import Picture, data_size, drawing, heading, legend, percent, tabled, told
from ...plots.axes import mark, no_spines
from ...plots.characters import own_name
from ...plots.style import ACCENT, INK, QUIET, SECOND, narrow
from ..runs import where

START, TRAIN, SEND, FREEZE, ADAPT, AVERAGE, CALIBRATE = (
    "start train send freeze adapt average calibrate".split()
)
COLUMNS = 8  # more clients than this are not drawn one by one
STATES = {
    "training": {"color": SECOND}, "being sent": {"color": ACCENT}, "frozen": {"color": "#c3cad1", "hatch": "////"},
    "waiting": {"color": "white"},
}  # fmt: skip


class Steps(LabView):
    """A replay of the run: train, send, freeze, adapt, block after block, with the bytes so far."""

    name, title, ready = "steps", "Step by step", "live"

    def __init__(self) -> None:
        shown = "The step of the run that is shown"
        self.step = made(IntSlider, label="Step", help=shown, width=300, value=1, min=1, max=10)
        self.play = player(self.step, interval=1500, tooltip="Play the steps one after the other")
        self.back = made(Button, description="Back", help="One step back", width=64)
        self.next = made(Button, description="Next step", help="One step on", width=88)
        self.back.on_click(lambda _: self._move(-1))
        self.next.on_click(lambda _: self._move(+1))
        self.controls = [
            HBox([self.play]),
            HBox([self.back, self.next]),
            self.step,
        ]  # only the slider redraws

    def _move(self, by: int) -> None:
        self.step.value += by  # the slider stops at its ends

    def adapt(self, state: PanelState) -> None:
        self.step.max = self.play.max = len(steps(replay_of(state)))

    def draw(self, state: PanelState) -> Picture:
        step = None if state.outcome is None else self.step.value - 1
        return network(replay_of(state), step, client=state.client)


# ------------------------------------------------------------------------------------------------- the steps
class Replay(NamedTuple):
    """A run of M clients. setting: in words;   options: of the method (blocks, adaptor, head);   report: so far

    phases: {phase: (up, down)} bytes of all clients, in order; empty while the run goes on
    """

    clients: int
    setting: str
    options: Mapping[str, Any]
    phases: Mapping[str, tuple[int, int]]
    report: FuseFLReport

    @property
    def blocks(self) -> int:
        return self.options["blocks"]

    @property
    def rounds(self) -> list[tuple[Sequence[float], Sequence[float]]]:
        """Accuracies [M] of the clients after each round, at home and on test samples; empty where nobody knows."""
        home, outside = self.report.home, self.report.outside
        return (
            []
            if home is None or outside is None
            else list(zip(home.tolist(), outside, strict=True))
        )


class Step(NamedTuple):
    """One state of the drawing; `block` counts from 1.

    up, down: bytes of all clients so far
    right:    accuracies that are then known: the clients' means at home and on test samples, or the fused network's
    """

    kind: str
    block: int
    title: str
    text: str
    up: int
    down: int
    right: Sequence[float] = ()

    @property
    def frozen(self) -> int:
        """Rows up to this one are frozen."""
        return self.block - (self.kind in (START, TRAIN, SEND))

    @property
    def adapted(self) -> int:
        """Adaptors stand in front of blocks 2 to this one."""
        return self.block + (self.kind == ADAPT)


RIGHT = (
    "",
    ": right for {} of the test samples",
    ": {} right at home, {} on test samples (mean of the clients)",
)


def replay_of(state: PanelState) -> Replay:
    """The present run as steps; while it runs, as much of it as the knobs and the report so far say."""
    outcome, report = state.outcome, state.report
    if outcome is None:
        return Replay(state.federation.clients, state.setting, state.knobs, {}, report)
    return Replay(
        len(outcome.label_counts),
        where(outcome),
        outcome.options,
        outcome.ledger.by_phase(),
        report,
    )


def steps(replay: Replay) -> list[Step]:
    """All steps of a run, in order: 4 K + 1 of them, and one or two for the classifier."""
    every: list[Step] = []
    clients, last, options, heads = (
        replay.clients,
        replay.blocks,
        replay.options,
        replay.report.heads or {},
    )
    learnt, own = options["adaptor"] == "conv", options["head"] == "own"

    def add(
        kind: str, block: int, title: str, text: str, phase: str = "", right: Sequence[float] = ()
    ) -> None:
        up, down = replay.phases.get(phase, (0, 0))
        text += RIGHT[len(right)].format(*map(percent, right))
        text += f" ({data_size(up)} up, {data_size(down)} down)." if up or down else "."
        up, down = up + (every[-1].up if every else 0), down + (every[-1].down if every else 0)
        every.append(Step(kind, block, title, text, up, down, right))

    add(
        START,
        1,
        "Start",
        f"The server sends the same first weights to all {clients} clients",
        "initial model",
    )
    for k in range(1, last + 1):
        adaptor = "its adaptor, " * learnt
        text = f"On everybody's frozen blocks, each client trains {adaptor}its blocks from {k} on and its classifier"
        text = "Each client trains its whole network alone, on its own samples" if k == 1 else text
        right = tuple(map(mean, replay.rounds[k - 1])) if replay.rounds else ()
        add(TRAIN, k, f"Train for block {k}", text, right=right)
        text = f"Block {k} of every client goes up, and comes down to all other clients that still need it"
        add(SEND, k, f"Send block {k}", text, f"block {k}")
        text = f"All {clients} copies of block {k} now stand side by side at every client, and never change again"
        add(FREEZE, k, f"Fuse and freeze block {k}", text)
        if k < last:
            text = (
                f"A new adaptor in front of block {k + 1} reads"
                if learnt
                else f"Block {k + 1} reads the mean of"
            )
            add(ADAPT, k, f"Adapt block {k + 1}", f"{text} all {clients} outputs below")
    text = (
        f"The classifiers go up and are {'kept, each with its own branch' if own else 'averaged'}"
    )
    right = [heads["own" if own else "average"]] if heads else ()
    add(AVERAGE, last, "Fuse the classifiers", text, "classifiers", right)
    if options["head"] == "ccvr":
        text = "Means and covariances of every class go up; the classifier is trained on features drawn from them"
        add(
            CALIBRATE, last, "Calibrate", text, "class statistics", [heads["ccvr"]] if heads else ()
        )
    return every


# ------------------------------------------------------------------------------------------------- the picture
def network(replay: Replay, step: int | None = None, *, client: int | None = None) -> Picture:
    """The network at step number `step` of `steps(replay)` (at most its last), the bytes and the accuracies so far.

    step None: while it trains, in the round and with the bytes of the report so far
    """
    every, blocks = steps(replay), replay.blocks
    if step is None:
        block, (up, down) = replay.report.block, replay.report.sent
        kinds = (AVERAGE, CALIBRATE) if block > blocks else (TRAIN,)
        step = max(
            i for i, s in enumerate(every) if s.kind in kinds and s.block == min(block, blocks)
        )
        every[step] = every[step]._replace(up=up, down=down)
    step = min(step, len(every) - 1)
    now = every[step]
    over = replay.rounds[: now.block if now.kind != START else 0]
    with drawing() as (figure, ax):
        columns(ax, replay, now, client)
    text = f"Step {step + 1} of {len(every)}, {now.title.lower()}. {now.text}"
    if client is not None and over and client < replay.clients:
        home, outside = (percent(values[client]) for values in over[-1])
        text += (
            f" Client {own_name(client, replay.setting)} after round {len(over)}: {home} at home, "
        )
        text += f"{outside} on test samples."
    each = (
        (s.title, data_size(s.up), data_size(s.down), ", ".join(map(percent, s.right)))
        for s in every
    )
    rows = ((i, *cells) for i, cells in enumerate(each, 1))
    columns_of_table = "step | what | up so far | down so far | at home, on test samples; fused"
    title = f"The networks of {replay.clients} clients as columns of {blocks} blocks, {now.frozen} of them frozen"
    return told(figure, title, replay.setting, text, tabled(columns_of_table, rows))


def shown_clients(clients: int, client: int | None) -> list[int]:
    """Which clients are drawn: all of a few; of many the first, and the chosen one or the last."""
    *first, last = range(min(clients, COLUMNS))
    if clients > COLUMNS and client not in first:
        last = clients - 1 if client is None else client
    return [*first, last]


def state_of(step: Step, row: int, blocks: int) -> str:
    """Which of STATES block `row` (from 1; K + 1: the classifier) is in at a step."""
    if row <= step.frozen:
        return "frozen"
    if step.kind == TRAIN or (step.kind == CALIBRATE and row == blocks + 1):
        return "training"
    sent = {SEND: step.block, AVERAGE: blocks + 1}.get(step.kind)
    return "being sent" if row == sent else "waiting"


def columns(ax: Axes, replay: Replay, step: Step, client: int | None) -> None:
    """The clients' networks, images at the bottom: thin lines say who reads whom, small squares are adaptors."""
    who, blocks = shown_clients(replay.clients, client), replay.blocks
    places, middle, reads = range(len(who)), (len(who) - 1) / 2, []
    heading(
        ax,
        f"{step.title} ({data_size(step.up)} up, {data_size(step.down)} down so far)",
        38 if narrow() else 24,
    )
    for name, style in STATES.items():
        ax.bar(0, 0, 0, ec=INK, lw=0.9, label=name, **style)
    for row in range(1, blocks + 2):
        low, high, style = row - 1.22, row - 0.78, STATES[state_of(step, row, blocks)]
        joined = (
            row == blocks + 1
            and replay.options["head"] != "own"
            and step.kind in (AVERAGE, CALIBRATE)
        )
        at = [middle] if joined else places
        everybody = (
            1 < row <= min(step.adapted, step.frozen + 1)
        )  # all outputs below go to every client
        if row > 1:
            pairs = (
                itertools.product(places, at)
                if joined or everybody
                else zip(places, at, strict=True)
            )
            reads += [((a, low), (b, high)) for a, b in pairs]
        if everybody and not joined and replay.options["adaptor"] == "conv":
            ax.plot(
                places, [high - 0.1] * len(who), "s", color=style["color"], mec=INK, ms=7, zorder=4
            )
        ax.bar(at, 0.56, 0.62, high, ec=INK, lw=0.9, zorder=3, clip_on=False, **style)
    ax.add_collection(LineCollection(reads, colors=QUIET, linewidths=0.7, alpha=0.55, zorder=1))
    mark(ax, who.index(client) if client in who else None, len(who))
    ax.set_xticks(places, [own_name(k, replay.setting) for k in who])
    ax.set_yticks(
        np.arange(blocks + 1) + 0.5,
        [*(f"block {row}" for row in range(1, blocks + 1)), "classifier"],
    )
    ax.set_xlabel("client", color=QUIET)
    ax.tick_params(length=0, labelcolor=INK)
    no_spines(ax)
    legend(ax, loc="lower left", bbox_to_anchor=(0, 0.99), ncols=4)
