"""Lesson 04, Fed-ET: sums that can be followed by hand, with the numbers of the reader's own run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from fedlab_nb.draw.words import percent
from fedlab_nb.methods.parts.consensus import Consensus, consensus

from .view import Card

LOUD = ("as much as an equally sure client that knows the digit", "less", "not at all")


def first(panel: Any) -> Any:
    """The panel's Fed-ET outcome of the first seed in its last run."""
    return panel.own.look("expert").outcome


def heard(outcome: Any, weighting: str = "softmax", temperature: float = 1.0) -> tuple[Consensus, Tensor]:
    """What the last round's clients say of the kept test samples, and the true classes."""
    kept = outcome.artefacts
    return consensus(torch.as_tensor(kept["test_logits"]), weighting, temperature), torch.as_tensor(kept["test_truth"])


def weights_for_one(panel: Any, sample: int = 20, clients: Sequence[int] = (0, 1, 3)) -> Card:
    """σ² and α of a few clients for one test sample, with the numbers filled in."""
    said, truth = heard(first(panel))
    p, weights = said.outputs[:, sample].double(), said.weights[:, sample]
    spread = p.var(1, correction=0)
    total, lines = float(spread.sum()), []
    for k in clients:
        squares = float(p[k].square().sum())
        lines.append(
            f"client {k} says “{int(p[k].argmax())}” ({percent(float(p[k].max()))}): σ² = ({squares:.3f} − 0.1) / 10 = "
            f"{float(spread[k]):.4f}, α = {float(spread[k]):.4f} / {total:.3f} = {float(weights[k]):.3f}"
        )
    label, agree = int(said.labels[sample]), int((~said.dissent[:, sample]).sum())
    lines.append(
        f"all {len(p)} together say “{label}” with {percent(float(said.distribution[sample, label]))}; {agree} of them "
        f"say so themselves, ρ = {float(said.mass[sample]):.2f}; the picture is a “{int(truth[sample])}”"
    )
    return Card("worked", f"Test sample {sample}, seed {first(panel).setting['seed']}:\n" + "\n".join(lines))


def loud() -> str:
    """Which of LOUD is true of a client that is 99 % sure: σ² knows nothing of what the client has seen."""
    sure = torch.full((2, 1, 10), 0.01 / 9, dtype=torch.float64)
    sure[0, 0, 3] = sure[1, 0, 7] = 0.99
    knows, guesses = consensus(sure.log()).weights[:, 0].tolist()
    return LOUD[0] if abs(knows - guesses) < 1e-12 else LOUD[1]


def ignorance(panel: Any) -> Card:
    """How much a client counts for a picture whose digit it has trained on, hardly, or never; the panel's seeds."""
    shares, counts, sure = [], [], []
    for outcome in panel.own.look("expert").outcomes.values():
        said, truth = heard(outcome)
        held = torch.as_tensor(outcome.label_counts)[:, truth]  # [m, B]
        never = held == 0
        counts.append((float(said.weights[~never].mean()), float(said.weights[never].mean())))
        certain = said.outputs.max(-1).values > 0.99
        shares.append(float(never.double().mean()))
        sure.append(float(certain[never].double().mean()))
    knows, ignorant = (mean(of) for of in zip(*counts, strict=True))
    m = len(first(panel).artefacts["members"])
    return Card(
        "worked",
        f"In {percent(mean(shares))} of all pairs of a client and a picture the client has never seen the digit. There "
        f"its weight is {ignorant:.3f} on average; where it has, {knows:.3f}; all alike would be {1 / m:.3f}.\n"
        f"In {percent(mean(sure))} of the pairs where it has never seen the digit, it is over 99 % sure of another.",
    )


def target_for_one(panel: Any, sample: int = 0, strength: float = 0.5) -> Card:
    """The soft label of one public sample, with the numbers filled in."""
    outcome = first(panel)
    said = consensus(torch.as_tensor(outcome.artefacts["logits"]))
    rho, y = float(said.mass[sample]), int(said.labels[sample])
    scale, against = 1 + strength * rho, said.diversity[sample]
    other = int(against.argmax())
    return Card(
        "worked",
        f"Public sample {sample}, λ = {strength:g}: y = “{y}”, ρ = {rho:.2f}, so 1 + λρ = {scale:.3f}.\n"
        f"“{y}” gets (1 + {strength:g} · {float(against[y]):.3f}) / {scale:.3f} = "
        f"{percent((1 + strength * float(against[y])) / scale)}; “{other}”, which the dissenters like best, "
        f"{strength:g} · {float(against[other]):.3f} / {scale:.3f} = "
        f"{percent(strength * float(against[other]) / scale)}; "
        f"all dissenters together λρ / (1 + λρ) = {percent(strength * rho / scale)}.",
    )
