"""What a run of FuseFL leaves behind for pictures and lessons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base import Report
from .blocks import Client, size


@dataclass(frozen=True, eq=False)
class FuseFLReport(Report):
    """K rounds with one block in each, M clients. Accuracies are 0-1.

    widths:    [M] of the clients' networks;   shapes: [K] of the output of client 0's blocks
    trainable: [K] numbers that client 0 trains in each round
    block_numbers, adaptor_numbers: [K][M] parameters of each client's block and adaptor, which it sends in that round
    home, outside: [K, M] accuracy of each client's model after each round, on its own training samples and on test
               samples; kept of small networks alone
    heads:     {"own", "average" and perhaps "ccvr": accuracy of the same blocks under each classifier}
    block, sent: of a snapshot alone: the round, from 1 (K + 1: the classifier), and the bytes (up, down) so far
    """

    widths: list[int] | None = None
    trainable: list[int] | None = None
    shapes: list[list[int]] | None = None
    block_numbers: list[list[int]] | None = None
    adaptor_numbers: list[list[int]] | None = None
    heads: dict[str, float] | None = None
    outside: list[list[float]] | None = None
    home: np.ndarray | None = None
    block: int | None = None
    sent: tuple[int, int] | None = None

    @classmethod
    def of(
        cls, clients: Sequence[Client], shapes: Sequence[Sequence[int]], home: list[list[float]], sent: tuple[int, int]
    ) -> FuseFLReport:
        """What is known once all blocks are trained; `shapes`: of the outputs of client 0's blocks."""
        rounds, first = range(len(shapes)), clients[0]
        above = [size(sum(first.blocks[k:], [first.classifier])) for k in rounds]
        return cls(
            widths=[client.architecture[3] for client in clients],
            trainable=[size(first.adaptors[k]) + above[k] for k in rounds],
            shapes=[list(shape) for shape in shapes],
            block_numbers=[[size(client.blocks[k]) for client in clients] for k in rounds],
            adaptor_numbers=[[size(client.adaptors[k]) for client in clients] for k in rounds],
            home=np.array(home) if home else None,
            block=len(shapes) + 1,
            sent=sent,
        )
