"""What one client of FENS sends and receives, by the formula, beside what the ledger counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from ...comm import formulas
from ...models import model_state
from ..context import Context
from .activations import quantised_layers
from .aggregators import PHASE

# CIFAR-10 in the paper: ResNet-8, and the network aggregator with k = 40 between 20 clients
PAPER_D, PAPER = 4_932_344, {"clients": 20, "q": 8450, "rounds": 500, "bits": 8}
BESIDES = ("class counts", "confusion matrices", "labelled set")


class Size(NamedTuple):
    """A client's model of `d` numbers, `plain` of which are never quantised; the others lie in `tensors` tensors."""

    d: int
    plain: int = 0
    tensors: int = 0

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> Size:
        coded = [t.numel() for t in state.values() if t.ndim >= 2]
        d = sum(t.numel() for t in state.values())
        return cls(d, d - sum(coded), len(coded))


def client_bytes(size: Size, clients: int, q: int, rounds: int, bits: int, ranges: int = 0) -> int:
    """`formulas.fens_bytes`, with what is not quantised. clients: models that go down;   rounds: federated ones;
    ranges: numbers of a model's activation ranges"""
    if bits > 8:
        return formulas.fens_bytes(size.d, clients, q, rounds, 32, ranges=ranges)
    return formulas.fens_bytes(size.d, clients, q, rounds, bits, size.plain, size.tensors, ranges)


def byte_numbers(ctx: Context, client: nn.Module, terms: Mapping[str, int], ranged: bool = False) -> dict[str, Any]:
    """What one client's traffic came to, beside the formula, and the formula with the paper's network in its place.

    `client`: the (first) member's model;   `terms`: `Fens.terms` of this run, whose rounds are those that a client is
    expected to take part in;   `ranged`: whether activations are quantised. "measured" is of the client with the
    most bytes, down and up; "ratio" is to one-shot learning (2 S). "formula" is `client_bytes`, with the counts,
    matrices or labelled samples that the rule needs besides; None where architectures differ. "ratio_at_paper_size" is
    of this run's M, q and T, "ratio_of_the_paper" (4.36) of the paper's, both with the ResNet-8 of 4.9 million numbers:
    there an aggregator's rounds are small beside a model, here they may not be.
    """
    size, ledger = Size.of(model_state(client)), ctx.link.ledger
    traffic = {k: up + down for k, (up, down) in ledger.by_client().items()}
    busiest = max(traffic, key=traffic.__getitem__)
    formula = None
    if len(set(ctx.architectures)) == 1:
        start = 0 if ctx.init == "same" else formulas.state_bytes(size.d)  # clients that draw their own get none
        own = [int(r["messages"]) for r in ledger.rows() if (r["client"], r["phase"]) == (busiest, PHASE)]
        taken = {"rounds": max(own, default=0), "ranges": 2 * len(quantised_layers(client)) if ranged else 0}
        besides = sum(int(r["bytes"]) for r in ledger.rows() if r["client"] == busiest and r["phase"] in BESIDES)
        formula = client_bytes(size, **{**terms, **taken}) - start + besides
    return {
        "measured": traffic[busiest],
        "formula": formula,
        "ratio": traffic[busiest] / formulas.one_shot_bytes(size.d),
        "ratio_at_paper_size": formulas.fens_ratio(PAPER_D, **terms),
        "ratio_of_the_paper": formulas.fens_ratio(PAPER_D, **PAPER),
    }
