"""FuseFL's run as a list of steps to be looked at one by one: train, send, freeze, adapt, for block after block, then
the classifiers. Plain data and words; `fusefl_network` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from .words import data_size, percent

START, TRAIN, SEND, FREEZE, ADAPT, AVERAGE, CALIBRATE = "start train send freeze adapt average calibrate".split()


@dataclass(frozen=True)
class Replay:
    """What a run recorded. K blocks, M clients.

    adaptor: "conv" or "average";   head: "ccvr", "average" or "own";   setting: in words
    phases:  {phase: (up, down)} bytes of all clients, in order
    shapes:  [K] shape of each block's output;   trainable: [K] numbers that a client trains in each round
    home, outside: [K][M] accuracy of each client after each round, on its own training samples and on test samples
    heads:   accuracy of the fused network under each classifier: "own", "average", "ccvr"
    """

    clients: int
    blocks: int
    setting: str
    adaptor: str = "conv"
    head: str = "ccvr"
    phases: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shapes: Sequence[Sequence[int]] = ()
    trainable: Sequence[int] = ()
    home: Sequence[Sequence[float]] = ()
    outside: Sequence[Sequence[float]] = ()
    heads: Mapping[str, float] = field(default_factory=dict)


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
    found: list[Step] = []
    up = down = 0

    def add(kind: str, block: int, title: str, text: str, frozen: int, phase: str = "") -> None:
        nonlocal up, down
        sent = replay.phases.get(phase, (0, 0))
        up, down = up + sent[0], down + sent[1]
        adapted = block + (kind == ADAPT)
        found.append(Step(kind, block, title, text, frozen, min(adapted, replay.blocks), up, down))

    last = replay.blocks
    add(START, 1, "Start", _start(replay), 0, "initial model")
    for k in range(1, last + 1):
        add(TRAIN, k, f"Train for block {k}", _train(replay, k), k - 1)
        add(SEND, k, f"Send block {k}", _send(replay, k), k - 1, f"block {k}")
        add(FREEZE, k, f"Fuse and freeze block {k}", _freeze(replay, k), k)
        if k < last:
            add(ADAPT, k, f"Adapt block {k + 1}", _adapt(replay, k), k)
    add(AVERAGE, last, "Fuse the classifiers", _average(replay), last, "classifiers")
    if replay.head == "ccvr":
        add(CALIBRATE, last, "Calibrate", _calibrate(replay), last, "class statistics")
    return found


def _start(replay: Replay) -> str:
    down = replay.phases.get("initial model", (0, 0))[1]
    if not down:
        return f"Each of the {replay.clients} clients has a network of {replay.blocks} blocks and a classifier."
    return f"Every client gets the same first weights: {data_size(down)} down in all."


def _train(replay: Replay, k: int) -> str:
    numbers = f" ({replay.trainable[k - 1]:,} numbers)" if len(replay.trainable) >= k else ""
    if k == 1:
        text = f"Each client trains its whole network alone{numbers}, on its own samples"
    else:
        what = "its adaptor, " if replay.adaptor == "conv" else ""
        upper = f"block {k}" if k == replay.blocks else f"blocks {k} to {replay.blocks}"
        text = f"On everybody's frozen blocks, each client trains {what}{upper} and its classifier{numbers}"
    if len(replay.home) < k or len(replay.outside) < k:
        return f"{text}."
    home, outside = mean(replay.home[k - 1]), mean(replay.outside[k - 1])
    return f"{text}: {percent(home)} right at home, {percent(outside)} on test samples (mean of the clients)."


def _send(replay: Replay, k: int) -> str:
    up, down = replay.phases.get(f"block {k}", (0, 0))
    own = "adaptor and block" if k > 1 and replay.adaptor == "conv" else "block"
    text = f"Block {k} of every client goes up, once ({data_size(up)})" if up else f"Block {k} of every client goes up"
    if replay.clients == 1:
        return f"{text}; there is nobody to pass it on to."
    if up and not down:
        return f"{text}. Nobody needs it down there: no classifier is calibrated."
    passed = f" ({data_size(down)})" if down else ""
    return f"{text}, and comes down to the other {replay.clients - 1} clients{passed}: each {own} is sent in full."


def _freeze(replay: Replay, k: int) -> str:
    return (
        f"All {replay.clients} copies of block {k} now stand side by side at every client and are frozen: their "
        "weights never change again."
    )


def _adapt(replay: Replay, k: int) -> str:
    if replay.adaptor == "average":
        return f"Block {k + 1} is to read the mean of the {replay.clients} outputs below; this adds no weights."
    if len(replay.shapes) < k:
        return f"A new adaptor in front of block {k + 1} reads the outputs of all {replay.clients} blocks below."
    c = replay.shapes[k - 1][0]
    kind = "1×1 convolution" if len(replay.shapes[k - 1]) == 3 else "linear map"
    return (
        f"In front of block {k + 1} every client puts a new {kind} that reads all {replay.clients} × {c} channels "
        f"below and gives back {c}: its adaptor."
    )


def _average(replay: Replay) -> str:
    up = data_size(replay.phases.get("classifiers", (0, 0))[0])
    own, average = (replay.heads.get(name) for name in ("own", "average"))
    if replay.head == "own":
        got = f": {percent(own)} of the test samples" if own is not None else ""
        return f"The classifiers go up ({up}); each keeps its own branch, and their logits are averaged{got}."
    got = f": the fused network is right for {percent(average)} of the test samples" if average is not None else ""
    return f"The classifiers go up ({up}) and are averaged over the summed features of all branches{got}."


def _calibrate(replay: Replay) -> str:
    up = data_size(replay.phases.get("class statistics", (0, 0))[0])
    text = f"Means and covariances of every class go up ({up}); the classifier is trained on features drawn from them"
    before, after = (replay.heads.get(name) for name in ("average", "ccvr"))
    return (
        f"{text}: from {percent(before)} to {percent(after)}."
        if before is not None and after is not None
        else f"{text}."
    )
