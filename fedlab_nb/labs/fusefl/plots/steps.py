"""FuseFL's run as a list of steps to be looked at one by one: train, send, freeze, adapt, for block after block, then
the classifiers. Plain data and words; `network` draws them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from ....methods.fusefl.network import FuseFLReport
from ....plots.words import data_size, percent

START, TRAIN, SEND, FREEZE, ADAPT, AVERAGE, CALIBRATE = "start train send freeze adapt average calibrate".split()


@dataclass(frozen=True)
class Replay:
    """A run of M clients. setting: in words;   options: of the method (blocks, adaptor, head);   report: so far

    phases: {phase: (up, down)} bytes of all clients, in order; empty while the run goes on
    """

    clients: int
    setting: str
    options: Mapping[str, Any]
    phases: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    report: FuseFLReport = FuseFLReport()

    @property
    def blocks(self) -> int:
        return self.options["blocks"]

    @property
    def rounds(self) -> list[tuple[Sequence[float], Sequence[float]]]:
        """Accuracies [M] of the clients after each round, at home and on test samples; empty where nobody knows."""
        home, outside = self.report.home, self.report.outside
        return [] if home is None or outside is None else list(zip(home.tolist(), outside, strict=True))

    def sent(self, phase: str) -> tuple[int, int]:
        return self.phases.get(phase, (0, 0))

    def head(self, name: str) -> str:
        """Accuracy under a classifier in words; empty where it is not known."""
        heads = self.report.heads or {}
        return percent(heads[name]) if name in heads else ""


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


def steps(replay: Replay) -> list[Step]:
    """All steps of a run, in order: 4 K + 1 of them, and one or two for the classifier."""
    every: list[Step] = []
    up = down = 0

    def add(kind: str, block: int, title: str, text: str, frozen: int, phase: str = "") -> None:
        nonlocal up, down
        sent = replay.sent(phase)
        up, down = up + sent[0], down + sent[1]
        every.append(Step(kind, block, title, text, frozen, min(block + (kind == ADAPT), last), up, down))

    last = replay.blocks
    add(START, 1, "Start", _start(replay), 0, "initial model")
    for k in range(1, last + 1):
        add(TRAIN, k, f"Train for block {k}", _train(replay, k), k - 1)
        add(SEND, k, f"Send block {k}", _send(replay, k), k - 1, f"block {k}")
        copies = f"All {replay.clients} copies of block {k} now stand side by side at every client and are frozen"
        add(FREEZE, k, f"Fuse and freeze block {k}", f"{copies}: their weights never change again.", k)
        if k < last:
            add(ADAPT, k, f"Adapt block {k + 1}", _adapt(replay, k), k)
    add(AVERAGE, last, "Fuse the classifiers", _average(replay), last, "classifiers")
    if replay.options["head"] == "ccvr":
        add(CALIBRATE, last, "Calibrate", _calibrate(replay), last, "class statistics")
    return every


def _start(replay: Replay) -> str:
    _, down = replay.sent("initial model")
    if not down:
        return f"Each of the {replay.clients} clients has a network of {replay.blocks} blocks and a classifier."
    return f"Every client gets the same first weights: {data_size(down)} down in all."


def _train(replay: Replay, k: int) -> str:
    trainable = replay.report.trainable
    numbers = f" ({trainable[k - 1]:,} numbers)" if trainable else ""
    if k == 1:
        text = f"Each client trains its whole network alone{numbers}, on its own samples"
    else:
        what = "its adaptor, " if replay.options["adaptor"] == "conv" else ""
        upper = f"block {k}" if k == replay.blocks else f"blocks {k} to {replay.blocks}"
        text = f"On everybody's frozen blocks, each client trains {what}{upper} and its classifier{numbers}"
    if not replay.rounds:
        return f"{text}."
    home, outside = map(mean, replay.rounds[k - 1])
    return f"{text}: {percent(home)} right at home, {percent(outside)} on test samples (mean of the clients)."


def _send(replay: Replay, k: int) -> str:
    up, down = replay.sent(f"block {k}")
    own = "adaptor and block" if k > 1 and replay.options["adaptor"] == "conv" else "block"
    text = f"Block {k} of every client goes up" + (f", once ({data_size(up)})" if up else "")
    if replay.clients == 1:
        return f"{text}. There is no other client that could get it."
    if up and not down:
        return f"{text}. It does not come down, because no classifier is calibrated."
    passed = f" ({data_size(down)})" if down else ""
    return f"{text}, and comes down to the other {replay.clients - 1} clients{passed}: each {own} is sent in full."


def _adapt(replay: Replay, k: int) -> str:
    if replay.options["adaptor"] == "average":
        return f"Block {k + 1} is to read the mean of the {replay.clients} outputs below; this adds no weights."
    if not replay.report.shapes:
        return f"A new adaptor in front of block {k + 1} reads the outputs of all {replay.clients} blocks below."
    shape = replay.report.shapes[k - 1]
    kind = "1×1 convolution" if len(shape) == 3 else "linear map"
    return (
        f"In front of block {k + 1} every client puts a new {kind} that reads all {replay.clients} × {shape[0]} "
        f"channels below and gives back {shape[0]}: its adaptor."
    )


def _average(replay: Replay) -> str:
    up, own, average = data_size(replay.sent("classifiers")[0]), replay.head("own"), replay.head("average")
    if replay.options["head"] == "own":
        right = f": {own} of the test samples" if own else ""
        return f"The classifiers go up ({up}); each client keeps its own branch, and the logits are averaged{right}."
    right = f": the fused network is right for {average} of the test samples" if average else ""
    return f"The classifiers go up ({up}) and are averaged over the summed features of all branches{right}."


def _calibrate(replay: Replay) -> str:
    up = data_size(replay.sent("class statistics")[0])
    text = f"Means and covariances of every class go up ({up}); the classifier is trained on features drawn from them"
    before, after = replay.head("average"), replay.head("ccvr")
    return f"{text}: from {before} to {after}." if before and after else f"{text}."
