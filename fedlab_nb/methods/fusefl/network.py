"""M clients' blocks fused side by side (FuseFL, Eqs. 1, 4 and 6); how a network is cut into blocks is in `blocks`.

    H_fus^k(x) = [H_1^k(A_1^k(x)), ..., H_M^k(A_M^k(x))]   a `Stage`: M branches that read the same joined input x
    F_fus = classifier . merge_m . H_fus^K ... H_fus^1     a `FusedNetwork`

Fused stages are frozen: no gradient, batch norm by its owner's running statistics, and nothing here ever writes to
them. How long anyone trains is the matter of `FuseFL.run`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ...models import Network, load_state, parameter_count
from ...training import ClientModels, accuracy, in_chunks
from ...training.evaluate import Remembered, rows_at_once
from ..base import NetworkModel, Report
from .blocks import added, join

Module = TypeVar("Module", bound=nn.Module)
CACHE_BYTES = 2**30
MERGES = ("sum", "mean")  # of the clients' last features


class Stage(nn.Module):
    """M frozen branches: `forward(x)` is the list of their M outputs."""

    def __init__(self, branches: Sequence[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches).requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Stage:
        """Frozen: stays in eval mode, whatever the model around it does."""
        return super().train(False)

    def forward(self, x: Tensor) -> list[Tensor]:
        return [branch(x) for branch in self.branches]


def loaded(module: Module, state: Mapping[str, Tensor]) -> Module:
    """A copy of `module`, which gives the build, with the weights and running statistics `state`."""
    twin = copy.deepcopy(module)
    load_state(twin, state)
    return twin


def trunk(stages: Sequence[Stage], kind: str, x: Tensor) -> Tensor:
    """What the block after `stages` reads: every stage's outputs joined by the adaptor `kind`."""
    for stage in stages:
        x = join(kind, stage(x))
    return x


class Below(nn.Module):
    """The fused stages below a block that trains, as one layer without parameters or gradient.

    The model around it neither trains nor moves them. `leaky`: a private copy whose batch norm takes the statistics of
    the batch while the model trains, as in the authors' code.
    """

    def __init__(self, stages: Sequence[Stage], kind: str, leaky: bool = False) -> None:
        super().__init__()
        self.kind, self.leaky = kind, leaky
        self._hidden = (
            copy.deepcopy(list(stages)) if leaky else list(stages),
        )  # in a tuple: not registered

    def train(self, mode: bool = True) -> Below:
        super().train(mode)
        for norm in norms(self._hidden[0]) if self.leaky else ():
            norm.training = mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return trunk(self._hidden[0], self.kind, x)


class Inputs:
    """The clients' samples on their way up through the fused stages.

    Frozen features never change, so each client computes them once, as long as all of them together fit into
    CACHE_BYTES; else, with a leaky batch norm, and where images are augmented `anew` in every epoch, the stages stay in
    front of the model (`below`) and are run for every batch. `shards[m]` is client m's `(x [n, ...], y [n])`, passed
    through the first `len(self.passed)` stages.
    """

    def __init__(
        self, kind: str, leaky: bool, shards: Sequence[tuple[Tensor, Tensor]], anew: bool = False
    ) -> None:
        self.kind, self.leaky, self.shards, self.anew = kind, leaky, list(shards), anew
        self.passed: list[Stage] = []
        self.behind = Remembered(lambda x: x)  # any samples, passed through these stages
        self.ahead: list[Stage] = []

    def below(self) -> list[nn.Module]:
        """The layers, one or none, to put in front of a client's model."""
        return [Below(self.ahead, self.kind, self.leaky)] if self.ahead else []

    def rise(self, stage: Stage, border: tuple[int, ...]) -> None:
        """One stage more; `border` is the shape of one sample behind it, joined."""
        self.ahead.append(stage)
        x, samples = self.shards[0][0], sum(len(y) for _, y in self.shards)
        changing = self.anew or (self.leaky and norms(self.ahead))
        if changing or samples * math.prod(border) * x.element_size() > CACHE_BYTES:
            return
        self.shards = [(self._trunk(self.ahead, x), y) for x, y in self.shards]
        before, stages = self.behind, self.ahead
        self.behind = Remembered(lambda x: self._trunk(stages, before(x)))
        self.passed, self.ahead = [*self.passed, *stages], []

    def _trunk(self, stages: Sequence[Stage], x: Tensor) -> Tensor:
        return in_chunks(
            lambda part: trunk(stages, self.kind, part), x, chunk=rows_at_once(stages[0], x)
        )

    def through(self, m: int, last: Callable[[Tensor], Tensor]) -> Tensor:
        """`last` of client m's samples behind all stages."""
        return in_chunks(lambda x: last(trunk(self.ahead, self.kind, x)), self.shards[m][0])


class Uppers(ClientModels):
    """The clients' models during a round, or after it: the stages that `inputs` passed, then each model."""

    def __init__(self, modules: Sequence[Network], inputs: Inputs) -> None:
        super().__init__(modules)
        self.behind = inputs.behind  # samples as they come out of the passed stages

    def logits(self, x: Tensor) -> Tensor:
        return super().logits(self.behind(x))

    def in_turn(self, x: Tensor) -> Tensor:
        return super().in_turn(self.behind(x))

    def features(self, x: Tensor) -> Tensor:
        return super().features(self.behind(x))


def norms(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """All batch-norm layers in `modules`."""
    return [
        layer
        for module in modules
        for layer in module.modules()
        if isinstance(layer, nn.BatchNorm2d)
    ]


class FusedNetwork(nn.Module):
    """F_fus: K stages, the M last features merged, and a classifier. Features are the merged ones, `[N, D]`.

    With one head, logits = head(features). With M heads (`own`), they are the mean of head_m(h_m) over the clients.
    """

    parts = ("stages", "heads", "kind", "merge")

    def __init__(
        self, stages: Sequence[nn.Module], heads: Sequence[nn.Module], kind: str, merge: str
    ) -> None:
        super().__init__()
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)
        self.kind, self.merge = kind, merge
        self.last = Remembered(
            self._last
        )  # the M clients' last features of samples, `[M, N, D]`, under any classifier

    def under(self, heads: Sequence[nn.Linear]) -> FusedNetwork:
        """The same frozen stages under other classifiers."""
        other = FusedNetwork(list(self.stages), heads, self.kind, self.merge)
        other.last = self.last
        return other

    def _last(self, x: Tensor) -> Tensor:
        return in_chunks(
            lambda part: torch.stack(self.outputs(part)[-1]), x, 1, rows_at_once(self, x)
        )

    def outputs(self, x: Tensor) -> list[list[Tensor]]:
        """The M outputs of every stage, bottom to top."""
        outputs: list[list[Tensor]] = []
        for stage in self.stages:
            outputs.append(stage(join(self.kind, outputs[-1]) if outputs else x))
        return outputs

    def merged(self, last: Sequence[Tensor]) -> Tensor:
        """The M clients' last features `[N, D]` as one."""
        return added(last) if self.merge == "sum" else added(last) / len(last)

    def features(self, x: Tensor) -> Tensor:
        return self.merged(self.outputs(x)[-1])

    def answer(self, last: Sequence[Tensor]) -> Tensor:
        """Logits `[N, C]` of the M last features `[N, D]`."""
        if len(self.heads) == 1:
            return self.heads[0](self.merged(last))
        return added([head(h) for head, h in zip(self.heads, last, strict=True)]) / len(last)

    def forward(self, x: Tensor) -> Tensor:
        return self.answer(self.outputs(x)[-1])


# --------------------------------------------------------------------------------------------------------------- report
# What a run of FuseFL leaves behind for pictures and lessons.


@dataclass(frozen=True, eq=False)
class FuseFLReport(Report):
    """K rounds with one block in each, M clients. Accuracies are 0-1.

    widths:    [M] of the clients' networks;   shapes: [K] of the output of client 0's blocks
    home, outside: [K, M] accuracy of each client's model after each round, on its own training samples and on test
               samples; kept of small networks alone
    heads:     {"own", "average" and perhaps "ccvr": accuracy of the same blocks under each classifier}
    block, sent: of a snapshot alone: the round, from 1 (K + 1: the classifier), and the bytes (up, down) so far
    """

    widths: list[int] | None = None
    shapes: list[list[int]] | None = None
    heads: dict[str, float] | None = None
    outside: list[list[float]] | None = None
    home: np.ndarray | None = None
    block: int | None = None
    sent: tuple[int, int] | None = None


# ---------------------------------------------------------------------------------------------------------------- model
# FuseFL's global model, and the copies of the clients' models that tell how good each was after every round.

MOST_NUMBERS = 2**24  # in the copies of the clients' models; beyond, there are none


class Rounds:
    """Copies of the M clients' models after each of the K rounds, for small networks alone.

    `models [K]`, and `home [K][M]`: accuracy of each on its own training samples. Both stay empty for large networks.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks, self.small = blocks, True
        self.models: list[Uppers] = []
        self.home: list[list[float]] = []

    def add(self, models: Sequence[Network], inputs: Inputs) -> None:
        """Client part, at the end of a round: each looks at its own training samples."""
        if not self.models:  # each model may carry a copy of the blocks of all clients below
            whole = sum(parameter_count(model) for model in models)
            self.small = whole * len(models) * self.blocks <= MOST_NUMBERS
        if self.small:
            self.models.append(Uppers(copy.deepcopy(list(models)), inputs))
            both = zip(self.models[-1].modules, inputs.shards, strict=True)
            self.home.append([accuracy(in_chunks(model, x).argmax(1), y) for model, (x, y) in both])


class FusedModel(NetworkModel):
    """The fused network. `heads`: all classifiers that its blocks can have, each a list of one or M layers.

    `rounds [K]`: the clients' models after each round, of small networks alone.
    """

    parts = ("module",)
    report: FuseFLReport

    def __init__(
        self, module: FusedNetwork, heads: Mapping[str, list[nn.Linear]] | None = None, rounds: Sequence[Uppers] = (),
        report: FuseFLReport = FuseFLReport(),  # noqa: B008  (frozen)
    ) -> None:  # fmt: skip
        super().__init__(module, report)
        self.heads, self.rounds = heads or {}, rounds

    def calibrated(self, head: nn.Linear, sent: tuple[int, int]) -> FusedModel:
        """This model under a calibrated classifier, when so many bytes were `sent` (up, down)."""
        heads = {**self.heads, "ccvr": [head]}
        return FusedModel(
            self.module.under([head]), heads, self.rounds, replace(self.report, sent=sent)
        )

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        return self.module.answer(self.module.last(x))

    def features(self, x: Tensor) -> Tensor:
        return self.module.merged(self.module.last(x))

    @torch.no_grad()
    def measured(self, x: Tensor, y: Tensor) -> FuseFLReport:
        last, under = self.module.last(x), self.module.under
        heads = {
            name: accuracy(under(head).answer(last).argmax(1), y)
            for name, head in self.heads.items()
        }
        outside = [
            [accuracy(own.argmax(1), y) for own in models.logits(x)] for models in self.rounds
        ]
        return replace(self.report, heads=heads, outside=outside or None, block=None, sent=None)
