"""FuseFL's run step by step: M clients' networks as columns of K blocks, which part is training, sent or frozen and who
reads whom, with the bytes so far; how good the clients are at home and outside stands in the sentence and the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from ipywidgets import Button, HBox, IntSlider
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch

from ...methods.fusefl.network import FuseFLReport
from ...panels import LabView, PanelState, made, player
from ...plots import Picture, drawing, heading, percent, tabled, told
from ...plots.style import ACCENT, INK, QUIET, SECOND
from ...plots.words import data_size
from ..runs import where

START, TRAIN, SEND, FREEZE, ADAPT, AVERAGE, CALIBRATE = "start train send freeze adapt average calibrate".split()
COLUMNS = 8  # more clients than this are not drawn one by one
FROZEN, IDLE = "#c3cad1", "#ffffff"
STATES = (("training", SECOND), ("being sent", ACCENT), ("frozen", FROZEN), ("waiting", IDLE))


class Steps(LabView):
    """A replay of the run: train, send, freeze, adapt, block after block, with the bytes so far."""

    name, title, ready = "steps", "Step by step", "live"
    empty = "Press Run. Then go through the steps one by one: train, send, freeze, adapt."

    def __init__(self) -> None:
        shown = "The step of the run that is shown"
        self.step = made(IntSlider, label="Step", help=shown, width=300, value=1, min=1, max=10)
        self.play = player(self.step, interval=1500, tooltip="Play the steps one after the other")
        self.back = made(Button, description="Back", help="One step back", width=64)
        self.next = made(Button, description="Next step", help="One step on", width=88)
        self.back.on_click(lambda _: self._move(-1))
        self.next.on_click(lambda _: self._move(+1))
        self.controls = [HBox([self.play, self.back, self.next]), self.step]  # only the slider redraws

    def _move(self, by: int) -> None:
        self.step.value += by  # the slider stops at its ends

    def adapt(self, state: PanelState) -> None:
        self.step.max = self.play.max = len(steps(replay_of(state)))

    def draw(self, state: PanelState) -> Picture:
        step = None if state.outcome is None else self.step.value - 1
        return network(replay_of(state), step, client=state.client)


# ------------------------------------------------------------------------------------------------- the steps
@dataclass(frozen=True)
class Replay:
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
        return [] if home is None or outside is None else list(zip(home.tolist(), outside, strict=True))

    def fused(self, kind: str) -> list[float]:
        """Accuracy of the fused network after such a step, where it is known."""
        own = "own" if self.options["head"] == "own" else "average"
        name, heads = {AVERAGE: own, CALIBRATE: "ccvr"}.get(kind), self.report.heads or {}
        return [heads[name]] if name in heads else []


@dataclass(frozen=True)
class Step:
    """One state of the drawing. `block` counts from 1; rows up to `frozen` are frozen, and adaptors stand in front of
    blocks 2 to `adapted`. `up`, `down`: bytes of all clients so far.
    """

    kind: str
    block: int
    title: str
    text: str
    frozen: int
    adapted: int
    up: int
    down: int


def replay_of(state: PanelState) -> Replay:
    """The present run as steps; while it runs, as much of it as the knobs and the report so far say."""
    outcome, report = state.outcome, state.report
    if outcome is None:
        return Replay(state.federation.clients, state.setting, state.knobs, {}, report)
    return Replay(outcome.settings.clients, where(outcome), outcome.options, outcome.ledger.by_phase(), report)


def steps(replay: Replay) -> list[Step]:
    """All steps of a run, in order: 4 K + 1 of them, and one or two for the classifier."""
    every: list[Step] = []
    clients, last, options = replay.clients, replay.blocks, replay.options
    learnt = options["adaptor"] == "conv"

    def right(kind: str) -> str:
        return "".join(f": right for {percent(share)} of the test samples" for share in replay.fused(kind))

    def add(kind: str, block: int, title: str, text: str, frozen: int, phase: str = "") -> None:
        up, down = replay.phases.get(phase, (0, 0))
        before = (every[-1].up, every[-1].down) if every else (0, 0)
        adapted = min(block + (kind == ADAPT), last)
        sizes = f" ({data_size(up)} up, {data_size(down)} down)" if up or down else ""
        every.append(Step(kind, block, title, f"{text}{sizes}.", frozen, adapted, before[0] + up, before[1] + down))

    add(START, 1, "Start", f"The server sends the same first weights to all {clients} clients", 0, "initial model")
    for k in range(1, last + 1):
        adaptor = "its adaptor, " * learnt
        text = f"On everybody's frozen blocks, each client trains {adaptor}its blocks from {k} on and its classifier"
        text = "Each client trains its whole network alone, on its own samples" if k == 1 else text
        if replay.rounds:
            home, outside = map(percent, map(mean, replay.rounds[k - 1]))
            text += f": {home} right at home, {outside} on test samples (mean of the clients)"
        add(TRAIN, k, f"Train for block {k}", text, k - 1)
        text = f"Block {k} of every client goes up, and comes down to all other clients that still need it"
        add(SEND, k, f"Send block {k}", text, k - 1, f"block {k}")
        text = f"All {clients} copies of block {k} now stand side by side at every client, and never change again"
        add(FREEZE, k, f"Fuse and freeze block {k}", text, k)
        if k < last:
            text = f"A new adaptor in front of block {k + 1} reads" if learnt else f"Block {k + 1} reads the mean of"
            add(ADAPT, k, f"Adapt block {k + 1}", f"{text} all {clients} outputs below", k)
    how = "kept, each with its own branch" if options["head"] == "own" else "averaged"
    text = f"The classifiers go up and are {how}{right(AVERAGE)}"
    add(AVERAGE, last, "Fuse the classifiers", text, last, "classifiers")
    if options["head"] == "ccvr":
        text = "Means and covariances of every class go up; the classifier is trained on features drawn from them"
        add(CALIBRATE, last, "Calibrate", f"{text}{right(CALIBRATE)}", last, "class statistics")
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
        step = max(i for i, s in enumerate(every) if s.kind in kinds and s.block == min(block, blocks))
        every[step] = replace(every[step], up=up, down=down)
    step = min(step, len(every) - 1)
    now = every[step]
    over = replay.rounds[: now.block if now.kind != START else 0]
    with drawing(fixed=True) as (figure, _):  # nothing jumps from step to step
        columns(figure.add_axes((0.01, 0.02, 0.98, 0.9)), replay, now, client)
    text = f"Step {step + 1} of {len(every)}, {now.title.lower()}. {now.text}"
    if client is not None and over and client < replay.clients:
        home, outside = (percent(values[client]) for values in over[-1])
        text += f" Client {client} after round {len(over)}: {home} at home, {outside} on test samples."
    rows = []
    for i, s in enumerate(every, 1):
        known = map(mean, replay.rounds[s.block - 1]) if s.kind == TRAIN and replay.rounds else ()
        shares = *known, *replay.fused(s.kind)
        rows.append((i, s.title, data_size(s.up), data_size(s.down), ", ".join(map(percent, shares))))
    columns_of_table = "step | what | up so far | down so far | at home, on test samples; fused"
    title = f"The networks of {replay.clients} clients as columns of {blocks} blocks, {now.frozen} of them frozen"
    return told(figure, title, replay.setting, text, tabled(columns_of_table, rows))


def shown_clients(clients: int, client: int | None) -> list[int]:
    """Which clients are drawn: all of a few; of many the first, and the chosen one or the last."""
    *first, last = range(min(clients, COLUMNS))
    if clients > COLUMNS and client not in first:
        last = clients - 1 if client is None else client
    return [*first, last]


def colour_of(step: Step, row: int, blocks: int) -> str:
    """Colour of block `row` (from 1; K + 1: the classifier) at a step."""
    if row <= step.frozen:
        return FROZEN
    if step.kind == TRAIN or (step.kind == CALIBRATE and row == blocks + 1):
        return SECOND
    sent = {SEND: step.block, AVERAGE: blocks + 1}.get(step.kind)
    return ACCENT if row == sent else IDLE


def columns(ax: Axes, replay: Replay, step: Step, client: int | None) -> None:
    """The clients' networks, images at the bottom: thin lines say who reads whom, arrows what is sent."""
    who, blocks, pooled = shown_clients(replay.clients, client), replay.blocks, replay.options["head"] != "own"
    ax.set_axis_off()
    heading(ax, f"{step.title} ({data_size(step.up)} up, {data_size(step.down)} down so far)")
    ax.set(xlim=(-1.42, len(who) - 0.45), ylim=(-0.95, blocks + 1.0))
    places, middle = range(len(who)), (len(who) - 1) / 2
    names = ["client", *(f"block {row}" for row in range(1, blocks + 1)), "classifier"]
    for y, name in enumerate(names):
        ax.text(-0.6, y - 0.5, name, ha="right", va="center", fontsize=9 if blocks <= 5 else 8, color=INK)
    for x, k in enumerate(who):
        bold = "bold" if k == client else "normal"
        ax.text(x, -0.5, k, ha="center", va="center", fontsize=9.5, fontweight=bold)
    reads = []
    for row in range(1, blocks + 2):
        low, high, colour = row - 1.22, row - 0.78, colour_of(step, row, blocks)
        if row == blocks + 1 and pooled and step.kind in (AVERAGE, CALIBRATE):
            reads += [((x, low), (middle, high)) for x in places]
            box(ax, middle, row - 0.5, colour)
            continue
        if 1 < row <= min(step.adapted, step.frozen + 1):  # everybody's outputs below go to every client
            reads += [((a, low), (b, high - 0.12)) for a in places for b in places]
            if replay.options["adaptor"] == "conv":
                ax.plot(places, [high - 0.12] * len(places), "s", color=colour, mec=INK, ms=7, zorder=4)
        elif row != 1:
            reads += [((x, low), (x, high)) for x in places]
        for x in places:
            box(ax, x, row - 0.5, colour)
    ax.add_collection(LineCollection(reads, colors=QUIET, linewidths=0.7, alpha=0.55, zorder=1))
    if step.kind == SEND:
        for hue, tip, marker in ((ACCENT, 1, "^"), (SECOND, -1, "v")):
            ax.plot([x + 0.39 * tip for x in places], [step.block - 0.5] * len(places), marker, color=hue, zorder=4)
    for i, (name, colour) in enumerate(STATES):
        x = (len(who) + 0.7) / 4 * i - 1.25
        box(ax, x, -0.8, colour, 0.2, 0.2)
        ax.text(x + 0.2, -0.8, name, fontsize=9, va="center", color=QUIET)


def box(ax: Axes, x: float, y: float, colour: str, wide: float = 0.62, high: float = 0.56) -> None:
    edge = {"hatch": "////", "edgecolor": "#8b959e"} if colour == FROZEN else {"edgecolor": INK}
    style = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": colour, "linewidth": 0.9, **edge}
    ax.add_patch(FancyBboxPatch((x - wide / 2, y - high / 2), wide, high, zorder=3, **style))
