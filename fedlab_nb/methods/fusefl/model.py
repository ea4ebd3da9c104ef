"""FuseFL's global model, and the copies of the clients' models that tell how good each was after every round."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from ...models import Network, parameter_count
from ...training import accuracy, in_chunks
from ..base import NetworkModel
from .network import FusedNetwork, Inputs, Uppers
from .report import FuseFLReport

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

    report: FuseFLReport

    def __init__(
        self, network: FusedNetwork, heads: Mapping[str, list[nn.Linear]], rounds: list[Uppers], report: FuseFLReport
    ) -> None:
        super().__init__(network, report)
        self.heads, self.rounds = heads, rounds

    def calibrated(self, head: nn.Linear, sent: tuple[int, int]) -> FusedModel:
        """This model under a calibrated classifier, when so many bytes were `sent` (up, down)."""
        heads = {**self.heads, "ccvr": [head]}
        return FusedModel(self.module.under([head]), heads, self.rounds, replace(self.report, sent=sent))

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        return self.module.answer(self.module.last(x))

    def features(self, x: Tensor) -> Tensor:
        return self.module.merged(self.module.last(x))

    @torch.no_grad()
    def measured(self, x: Tensor, y: Tensor) -> FuseFLReport:
        last, under = self.module.last(x), self.module.under
        heads = {name: accuracy(under(head).answer(last).argmax(1), y) for name, head in self.heads.items()}
        outside = [[accuracy(own.argmax(1), y) for own in models.logits(x)] for models in self.rounds]
        return replace(self.report, heads=heads, outside=outside or None, block=None, sent=None)
