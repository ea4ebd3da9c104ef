"""The steps of FENS that are no federated training: quantising, proxy samples, fixed rules, votes, bytes, a student."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import torch

from ... import formulas
from ...comm import dequantise_state, quantise_state
from ...training import ClientModels, Recipe
from ...training.distill import distil, distillation_loss
from ..base import NetworkModel, Progress
from ..context import Context
from . import aggregators
from .aggregators import Aggregator
from .fens_model import Experts, FensModel, Student
from .phase2 import Proxy

PROXIES = ("held-out", "reused", "reused-equal", "server")
PAPER_D, PAPER_M, PAPER_Q, PAPER_T = 4_932_344, 20, 8450, 500  # CIFAR-10: ResNet-8, network aggregator with k = 40
BESIDES = ("class counts", "confusion matrices", "labelled set")
TEMPERATURE, DISTIL_BATCH = 3.0, 64


def quantised_experts(
    clients: ClientModels, received: list[dict], bits: int, members: Sequence[int]
) -> tuple[list[dict], Experts]:
    """The members' models as they go down, and what answers from here on; `bits` = 32 leaves them as they are."""
    kept = ClientModels([clients.module(k) for k in members])
    packed = [quantise_state(received[k], bits) if bits <= 8 else received[k] for k in members]
    return packed, Experts(kept.with_states([dequantise_state(state) for state in packed]), members)


def send_ensemble(ctx: Context, members: Sequence[int], packed: list[dict], skip_own: bool) -> None:
    """Every member gets all M models, or all but its own."""
    if not skip_own and len(members) == ctx.clients_count:
        ctx.link.broadcast(packed, phase="ensemble")
        return
    for at, k in enumerate(members):
        ctx.link.down(k, packed[:at] + packed[at + 1 :] if skip_own else packed, phase="ensemble")


def as_proxy(experts: Experts, x: torch.Tensor, y: torch.Tensor, keep_inputs: bool) -> Proxy:
    """Samples as the ensemble sees them: all models' logits, once and for all."""
    classes = experts.clients.module(0).architecture[2]
    z = experts.fresh(x) if len(y) else x.new_zeros(0, len(experts.clients), classes)
    return Proxy(z, y, x if keep_inputs else None)


def proxy_samples(ctx: Context, k: int, source: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Client k's own samples for the aggregator: `source` is one of PROXIES."""
    if source in ("held-out", "server"):
        return ctx.private.held_out(k)
    x, y = ctx.private.train(k)
    if source == "reused":
        return x, y
    order = torch.randperm(len(y), generator=ctx.generator("fens", "proxy", k)).to(y.device)
    chosen = order[: ctx.private.sizes("held_out")[k]]
    return x[chosen], y[chosen]


def fixed_rule(ctx: Context, name: str, members: Sequence[int]) -> Aggregator:
    """Averaging, or (clients: count one's training labels; server:) weighted averaging."""
    c = ctx.classes
    if name == "averaging":
        return aggregators.averaging(len(members), c).to(ctx.device, ctx.dtype)
    counts = [torch.bincount(ctx.private.train(k)[1], minlength=c).int() for k in members]
    received = [ctx.link.up(k, own, phase="class counts") for k, own in zip(members, counts, strict=True)]
    with ctx.server():
        return aggregators.weighted_averaging(torch.stack(received)).to(ctx.device, ctx.dtype)


def voting(ctx: Context, proxies: list[Proxy], members: Sequence[int] | None) -> Aggregator:
    """Clients (`members` None: the server): count how every model votes on own samples. Server: add the counts."""
    counts = [aggregators.vote_counts(own.logits, own.labels) for own in proxies if len(own.labels)]
    if members is not None:
        able = [k for k, own in zip(members, proxies, strict=True) if len(own.labels)]
        counts = [ctx.link.up(k, own, phase="confusion matrices") for k, own in zip(able, counts, strict=True)]
    with ctx.server():
        return aggregators.Voting(sum(counts)).to(ctx.device, ctx.dtype)


def byte_numbers(ctx: Context, fens: FensModel, *, bits: int, ensembles: int, rounds: int) -> dict[str, Any]:
    """What one client's traffic came to, beside the formula, and the formula with the paper's network in its place.

    `ensembles`: models that go down to a client; `rounds`: federated ones. "measured" is of the client with the most
    bytes, down and up; "ratio" is to one-shot learning (2 S). "formula" is `formulas.fens_bytes`, with the counts,
    matrices or labelled samples that the rule needs besides; None where architectures differ.
    "ratio_at_paper_size" is of this run's M, q and T, "ratio_of_the_paper" (4.36) of the paper's, both with the
    ResNet-8 of 4.9 million numbers: there an aggregator's rounds are small beside a model, here they may not be.
    """
    states = [fens.experts.clients.state(i) for i in range(len(fens.experts.clients))]
    sizes = [{name: t.numel() for name, t in state.items()} for state in states]
    d = sum(sizes[0].values())
    traffic = {k: up + down for k, (up, down) in ctx.link.ledger.by_client().items()}
    busiest = max(traffic, key=traffic.get)
    measured = traffic[busiest]
    besides = sum(r["bytes"] for r in ctx.link.ledger.rows() if r["client"] == busiest and r["phase"] in BESIDES)
    told: dict[str, Any] = {"measured": measured, "formula": None, "ratio": measured / formulas.one_shot_bytes(d)}
    if len(set(ctx.architectures)) == 1:
        coded = [name for name, t in states[0].items() if t.ndim >= 2]
        layout = {} if bits == 32 else {"kept": d - sum(sizes[0][name] for name in coded), "tensors": len(coded)}
        start = 0 if ctx.init == "same" else formulas.state_bytes(d)  # clients that draw their own get no initial model
        told["formula"] = formulas.fens_bytes(d, ensembles, fens.rule.q, rounds, bits, **layout) - start + besides
    told["ratio_at_paper_size"] = formulas.fens_ratio(PAPER_D, ensembles, fens.rule.q, rounds, bits)
    told["ratio_of_the_paper"] = formulas.fens_ratio(PAPER_D, PAPER_M, PAPER_Q, PAPER_T)
    return told


def distilled(ctx: Context, fens: FensModel, steps: int) -> Generator[Progress, None, NetworkModel]:
    """One network of the (first) architecture that answers as FENS does, learnt at the server on public images."""
    x = ctx.public
    student = ctx.build(ctx.architectures[0], ctx.generator("fens", "student"))
    a_pass = -(-len(x) // DISTIL_BATCH)
    recipe = Recipe(-(-steps // a_pass), DISTIL_BATCH, "adam", 1e-3, weight_decay=0)
    loss, stream = distillation_loss("kl", TEMPERATURE), ctx.generator("fens", "distillation")
    teacher = fens.logits(x)
    for tick in distil(student, x, teacher, recipe, loss, stream):
        model = NetworkModel(student) if tick.fresh else None
        yield Progress("distillation", tick.done, tick.total, model=model)
    end = Student(student, fens, artefacts=fens.artefacts, numbers=fens.numbers)
    end.numbers["public_images"] = len(x)
    end.numbers["agreement"] = float((end.predict(x) == teacher.argmax(1)).double().mean())
    return end
