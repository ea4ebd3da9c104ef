"""FuseFL's run step by step.

The picture shows the networks of M clients as columns of K blocks: which part is being trained,
sent or frozen, which client reads which other one, and the bytes so far. The clients' accuracies on
their own and on test samples are in the sentence and in the table.
"""

import itertools
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, Literal, NamedTuple

import numpy as np
from ipywidgets import Button, HBox, IntSlider
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from ...methods.fusefl.network import FuseFLReport
from ...panels import LabView, PanelState, make_slider_player, make_widget
from ...plots import (
    Picture,
    add_legend,
    build_table,
    describe_picture,
    drawing,
    format_data_size,
    format_percent,
    write_axes_title,
)
from ...plots.marks import attach_tick_hover_texts
from ...plots.style import (
    ACCENT,
    INK,
    QUIET,
    SECOND,
    hide_spines,
    highlight_row_or_column,
    is_frame_narrow,
)
from ...plots.words import SettingCaption, format_client_for_sentence
from ..runs import describe_setting

# Kinds of steps.
START = "start"
TRAIN = "train"
SEND = "send"
FREEZE = "freeze"
ADAPT = "adapt"
AVERAGE = "average"
CALIBRATE = "calibrate"

MAX_COLUMNS = 8  # more clients than this are not all drawn
BlockState = Literal["training", "being sent", "frozen", "waiting"]
STATES: dict[BlockState, dict[str, str]] = {
    "training": {"color": SECOND},
    "being sent": {"color": ACCENT},
    "frozen": {"color": "#c3cad1", "hatch": "////"},
    "waiting": {"color": "white"},
}


class RunStepsView(LabView):
    """A replay of the run: train, send, freeze, adapt, block after block, with the bytes so far."""

    name, title, ready = "steps", "Step by step", "live"
    summary = "Then this replays the run: train, send, freeze, adapt, block after block."

    def __init__(self) -> None:
        self.step = make_widget(
            IntSlider,
            label="Step",
            help="The step of the run that is shown",
            width=300,
            value=1,
            min=1,
            max=10,
        )
        self.play = make_slider_player(
            self.step, interval=1500, tooltip="Play the steps one after the other"
        )
        self.back = make_widget(Button, description="Back", help="One step back", width=64)
        self.next = make_widget(Button, description="Next step", help="One step on", width=88)
        self.back.on_click(lambda _: self._move_by_steps(-1))
        self.next.on_click(lambda _: self._move_by_steps(+1))
        # Buttons in a box do not redraw the view: they move the slider, and it does.
        self.controls = [HBox([self.play]), HBox([self.back, self.next]), self.step]

    def _move_by_steps(self, steps: int) -> None:
        self.step.value += steps  # the slider stops at its ends

    def adapt(self, state: PanelState) -> None:
        count = len(list_fusion_steps(make_run_replay(state)))
        self.step.max = count
        self.play.max = count

    def draw(self, state: PanelState) -> Picture:
        index = None if state.outcome is None else self.step.value - 1
        return draw_fusion_step(make_run_replay(state), index, selected_client=state.client)


# The clients' accuracies on their own samples, and on test samples.
OwnAndTestAccuracies = tuple[Sequence[float], Sequence[float]]


# ---------------------------------------------------------------------------------------- the steps
class RunReplay(NamedTuple):
    """A run of M clients, finished or in progress.

    setting: in words
    options: of the method: blocks, adaptor, head
    phases:  {phase: (bytes up, bytes down)} of all clients, in order; empty until the run has ended
    report:  the method's report, as far as it is known
    """

    clients: int
    setting: SettingCaption | str
    options: Mapping[str, Any]
    phases: Mapping[str, tuple[int, int]]
    report: FuseFLReport

    @property
    def block_count(self) -> int:
        return self.options["blocks"]

    @property
    def has_adaptor(self) -> bool:
        """Whether a trained adaptor stands in front of each block but the first."""
        return self.options["adaptor"] == "conv"

    @property
    def keeps_client_heads(self) -> bool:
        """Whether each client's classifier is kept, with its own branch of the network."""
        return self.options["head"] == "own"

    @property
    def accuracies_by_round(self) -> list[OwnAndTestAccuracies]:
        """The clients' accuracies `[M]` on their own samples and on test samples after each round.

        Empty if they are not known.
        """
        home = self.report.home
        outside = self.report.outside
        if home is None or outside is None:
            return []
        return list(zip(home.tolist(), outside, strict=True))


class FusionStep(NamedTuple):
    """One state of the drawing.

    kind:       START, TRAIN, SEND, FREEZE, ADAPT, AVERAGE or CALIBRATE
    block:      number of the block that it is about, from 1
    title, text: the step in words
    up, down:   bytes of all clients so far
    accuracies: as far as they are known: the clients' mean accuracies on their own and on test
                samples, or the accuracy of the fused network
    """

    kind: str
    block: int
    title: str
    text: str
    up: int
    down: int
    accuracies: Sequence[float] = ()

    @property
    def last_frozen_block_number(self) -> int:
        """The number of the last frozen block; all blocks up to it are frozen."""
        is_in_training = self.kind in (START, TRAIN, SEND)
        return self.block - 1 if is_in_training else self.block

    @property
    def last_adapted_block_number(self) -> int:
        """The number of the last block with an adaptor; all blocks from 2 up to it have one."""
        return self.block + 1 if self.kind == ADAPT else self.block


def make_run_replay(state: PanelState) -> RunReplay:
    """Make the replay of the present run; of a run in progress, as far as knobs and report tell."""
    outcome = state.outcome
    if outcome is None:
        clients = state.federation.clients
        return RunReplay(clients, state.setting, state.knobs, {}, state.report)
    return RunReplay(
        clients=len(outcome.label_counts),
        setting=describe_setting(outcome),
        options=outcome.options,
        phases=outcome.ledger.by_phase(),
        report=state.report,
    )


def list_fusion_steps(replay: RunReplay) -> list[FusionStep]:
    """List all steps of a run, in order: a start, up to four for each block, and one or two for the
    classifier.
    """
    steps = StepList(replay.phases)
    clients = replay.clients
    text = f"The server sends the same first weights to all {clients} clients"
    steps.add_step(START, 1, "Start", text, ledger_phase="initial model")
    for block in range(1, replay.block_count + 1):
        add_block_steps(steps, replay, block)
    add_classifier_steps(steps, replay)
    return steps.steps


class StepList:
    """Collects steps with their texts, and adds up the bytes. phases: as in `RunReplay`"""

    def __init__(self, phases: Mapping[str, tuple[int, int]]) -> None:
        self.steps: list[FusionStep] = []
        self._phases = phases
        self._up = 0
        self._down = 0

    def add_step(
        self,
        step_kind: str,
        block_number: int,
        title: str,
        text: str,
        *,
        ledger_phase: str = "",
        own_and_test_or_fused_accuracies: Sequence[float] = (),
    ) -> None:
        """Add a step, with the bytes of a phase of the ledger.

        ledger_phase: "" for no bytes
        own_and_test_or_fused_accuracies: as in `FusionStep`
        """
        up, down = self._phases.get(ledger_phase, (0, 0))
        self._up += up
        self._down += down
        text += format_step_accuracies(own_and_test_or_fused_accuracies)
        if up or down:
            text += f" ({format_data_size(up)} up, {format_data_size(down)} down)"
        self.steps.append(
            FusionStep(
                step_kind,
                block_number,
                title,
                f"{text}.",
                self._up,
                self._down,
                own_and_test_or_fused_accuracies,
            )
        )


def format_step_accuracies(own_and_test_or_fused_accuracies: Sequence[float]) -> str:
    """Format the accuracies of a `FusionStep`: one of the fused network, or two means of the clients."""
    if len(own_and_test_or_fused_accuracies) == 1:
        return f": {format_percent(own_and_test_or_fused_accuracies[0])} of the test samples right"
    if len(own_and_test_or_fused_accuracies) == 2:
        home, outside = own_and_test_or_fused_accuracies
        return (
            f": {format_percent(home)} right at home, {format_percent(outside)} on test samples "
            "(mean of the clients)"
        )
    return ""


def add_block_steps(steps: StepList, replay: RunReplay, block_number: int) -> None:
    """Add the steps of one block, counted from 1: train it, send it, freeze it, adapt the next one."""
    clients = replay.clients
    adaptor = "its adaptor, " if replay.has_adaptor else ""
    if block_number == 1:
        text = "Each client trains its whole network alone, on its own samples"
    else:
        text = (
            f"On everybody's frozen blocks, each client trains {adaptor}its blocks from {block_number} on "
            "and its classifier"
        )
    accuracies = ()
    if replay.accuracies_by_round:
        home, outside = replay.accuracies_by_round[block_number - 1]
        accuracies = (mean(home), mean(outside))
    steps.add_step(
        TRAIN,
        block_number,
        f"Train for block {block_number}",
        text,
        own_and_test_or_fused_accuracies=accuracies,
    )
    text = (
        f"Block {block_number} of every client goes up, and comes down to all other clients that still "
        "need it"
    )
    steps.add_step(
        SEND, block_number, f"Send block {block_number}", text, ledger_phase=f"block {block_number}"
    )
    text = (
        f"All {clients} copies of block {block_number} now stand side by side at every client, and never "
        "change again"
    )
    steps.add_step(FREEZE, block_number, f"Fuse and freeze block {block_number}", text)
    if block_number == replay.block_count:
        return
    if replay.has_adaptor:
        text = (
            f"A new adaptor in front of block {block_number + 1} reads all {clients} outputs below"
        )
    else:
        text = f"Block {block_number + 1} reads the mean of all {clients} outputs below"
    steps.add_step(ADAPT, block_number, f"Adapt block {block_number + 1}", text)


def add_classifier_steps(steps: StepList, replay: RunReplay) -> None:
    """Add the steps of the classifiers: fuse them, and calibrate the result if the run does."""
    heads = replay.report.heads or {}
    if replay.keeps_client_heads:
        text = "The classifiers go up and are kept, each with its own branch"
        head = "own"
    else:
        text = "The classifiers go up and are averaged"
        head = "average"
    accuracies = (heads[head],) if heads else ()
    steps.add_step(
        AVERAGE,
        replay.block_count,
        "Fuse the classifiers",
        text,
        ledger_phase="classifiers",
        own_and_test_or_fused_accuracies=accuracies,
    )
    if replay.options["head"] == "ccvr":
        text = (
            "Means and covariances of every class go up; the classifier is trained on features "
            "drawn from them"
        )
        accuracies = (heads["ccvr"],) if heads else ()
        steps.add_step(
            CALIBRATE,
            replay.block_count,
            "Calibrate",
            text,
            ledger_phase="class statistics",
            own_and_test_or_fused_accuracies=accuracies,
        )


def find_index_of_running_step(
    steps: Sequence[FusionStep], report: FuseFLReport, block_count: int
) -> int:
    """Find the index of the step at which a running method is: the last one that fits its report."""
    if report.block > block_count:
        kinds = (AVERAGE, CALIBRATE)
    else:
        kinds = (TRAIN,)
    block = min(report.block, block_count)
    possible_steps = [
        i for i, step in enumerate(steps) if step.kind in kinds and step.block == block
    ]
    return possible_steps[-1]


# -------------------------------------------------------------------------------------- the picture
def draw_fusion_step(
    replay: RunReplay,
    step_index_or_none_for_running: int | None = None,
    *,
    selected_client: int | None = None,
) -> Picture:
    """Draw the networks at one step, with the bytes and the accuracies so far.

    step_index_or_none_for_running: which step, from 0, at most the last; None while the method runs:
        the step that its report has reached, with the bytes of the report
    """
    steps = list_fusion_steps(replay)
    if step_index_or_none_for_running is None:
        step_index_or_none_for_running = find_index_of_running_step(
            steps, replay.report, replay.block_count
        )
        up, down = replay.report.sent
        steps[step_index_or_none_for_running] = steps[step_index_or_none_for_running]._replace(
            up=up, down=down
        )
    step_index_or_none_for_running = min(step_index_or_none_for_running, len(steps) - 1)
    step = steps[step_index_or_none_for_running]
    with drawing() as (figure, ax):
        draw_client_networks(ax, replay, step, selected_client)
    sentence = f"Step {step_index_or_none_for_running + 1} of {len(steps)}, {step.title.lower()}. {step.text}"
    sentence += describe_client_accuracies_at_step(replay, step, selected_client)
    rows = []
    for number, listed_step in enumerate(steps, 1):
        accuracies = ", ".join(format_percent(share) for share in listed_step.accuracies)
        rows.append(
            (
                number,
                listed_step.title,
                format_data_size(listed_step.up),
                format_data_size(listed_step.down),
                accuracies,
            )
        )
    return describe_picture(
        figure,
        f"The networks of {replay.clients} clients as columns of {replay.block_count} blocks, "
        f"{step.last_frozen_block_number} of them frozen",
        replay.setting,
        sentence,
        build_table(
            "step | what | up so far | down so far | at home, on test samples; fused", rows
        ),
    )


def describe_client_accuracies_at_step(
    replay: RunReplay, step: FusionStep, selected_client: int | None
) -> str:
    """Say how accurate the selected client is after the last round up to this step."""
    if selected_client is None or selected_client >= replay.clients or step.kind == START:
        return ""
    rounds = replay.accuracies_by_round[: step.block]
    if not rounds:
        return ""
    home, outside = rounds[-1]
    return (
        f" Client {format_client_for_sentence(selected_client, replay.setting)} after round {len(rounds)}: "
        f"{format_percent(home[selected_client])} at home, {format_percent(outside[selected_client])} on test "
        "samples."
    )


def choose_clients_to_draw(client_count: int, selected_client: int | None) -> list[int]:
    """Choose which clients are drawn: up to MAX_COLUMNS all; of more the first ones, and the
    selected or the last one.
    """
    if client_count <= MAX_COLUMNS:
        return list(range(client_count))
    shown_clients = list(range(MAX_COLUMNS - 1))
    if selected_client is None:
        return [*shown_clients, client_count - 1]
    if selected_client in shown_clients:
        return [*shown_clients, MAX_COLUMNS - 1]
    return [*shown_clients, selected_client]


def choose_block_state(step: FusionStep, block_number: int, block_count: int) -> BlockState:
    """Choose the state of a block at a step, a key of STATES.

    block_number: from 1; K + 1 is the classifier
    """
    is_classifier = block_number == block_count + 1
    if block_number <= step.last_frozen_block_number:
        return "frozen"
    if step.kind == TRAIN or (step.kind == CALIBRATE and is_classifier):
        return "training"
    if step.kind == SEND and block_number == step.block:
        return "being sent"
    if step.kind == AVERAGE and is_classifier:
        return "being sent"
    return "waiting"


def draw_client_networks(
    ax: Axes, replay: RunReplay, step: FusionStep, selected_client: int | None
) -> None:
    """Draw the clients' networks, with the images at the bottom. Thin lines show which client reads
    which other one, small squares are adaptors.
    """
    shown_clients = choose_clients_to_draw(replay.clients, selected_client)
    blocks = replay.block_count
    places = list(range(len(shown_clients)))
    middle = (len(shown_clients) - 1) / 2
    title = (
        f"{step.title} ({format_data_size(step.up)} up, {format_data_size(step.down)} down so far)"
    )
    write_axes_title(ax, title, 38 if is_frame_narrow() else 24)
    for name, style in STATES.items():  # for the legend
        ax.bar(0, 0, 0, ec=INK, lw=0.9, label=name, **style)
    is_fused = step.kind in (AVERAGE, CALIBRATE) and not replay.keeps_client_heads
    lines = []
    for row in range(1, blocks + 2):
        bottom = row - 1.22  # where lines from below start
        top = row - 0.78  # where the block begins
        style = STATES[choose_block_state(step, row, blocks)]
        is_joined = is_fused and row == blocks + 1  # one classifier for all
        columns = [middle] if is_joined else places
        # From here on all outputs below go to every client.
        is_shared = (
            1 < row <= min(step.last_adapted_block_number, step.last_frozen_block_number + 1)
        )
        if row > 1:
            if is_joined or is_shared:
                pairs = itertools.product(places, columns)
            else:
                pairs = zip(places, columns, strict=True)
            lines += [((start, bottom), (end, top)) for start, end in pairs]
        if is_shared and not is_joined and replay.has_adaptor:
            squares = {"color": style["color"], "mec": INK, "ms": 7, "zorder": 4}
            ax.plot(places, [top - 0.1] * len(places), "s", **squares)
        ax.bar(columns, 0.56, 0.62, top, ec=INK, lw=0.9, zorder=3, clip_on=False, **style)
    ax.add_collection(LineCollection(lines, colors=QUIET, linewidths=0.7, alpha=0.55, zorder=1))
    highlight_row_or_column(
        ax,
        shown_clients.index(selected_client) if selected_client in shown_clients else None,
        len(shown_clients),
    )
    names = [format_client_for_sentence(k, replay.setting) for k in shown_clients]
    ax.set_xticks(places, names)
    attach_tick_hover_texts(ax.xaxis, [f"client {name}" for name in names], "client", shown_clients)
    row_names = [f"block {row}" for row in range(1, blocks + 1)] + ["classifier"]
    ax.set_yticks(np.arange(blocks + 1) + 0.5, row_names)
    ax.set_xlabel("client", color=QUIET)
    ax.tick_params(length=0, labelcolor=INK)
    hide_spines(ax)
    add_legend(ax, loc="lower left", bbox_to_anchor=(0, 0.99), ncols=4)
