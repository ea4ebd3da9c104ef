"""FedProx (Li et al., MLSys 2020): FedAvg whose clients are held near the model that they received.

Client k minimises f_k(θ) + (μ/2) ‖θ - θ_t‖², so a local step uses the gradient g + μ (θ - θ_t); the server averages
as FedAvg does. With μ = 0 it is FedAvg to the last bit. FENS tunes μ over {1, 0.1, 0.01} and reports 0.01; FedLPA
runs one round with μ ∈ {0.001, 0.01, 0.1, 1} and does not say which it reports. Momentum and weight decay act on top
of the changed gradient, as they do in a loss that has the proximal term. Unequal amounts of local work (the paper's
γ-inexact solutions) are left out: every client makes E epochs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..training.loop import Adjust
from .base import GlobalModel, Progress, knob, register, weighted_mean
from .context import Context
from .parts.rounds import PHASE, Iterative, Rounds, State


@register(
    "fedprox",
    title="FedProx",
    paper="Li et al., MLSys 2020",
    rounds="R rounds",
    traffic="2 S_θ R",
    needs=["one architecture"],
    leaks="each client's model, every round",
)
@dataclass(frozen=True)
class FedProx(Iterative):
    """FedAvg with a spring: local training is pulled back to the model of the round."""

    mu: float = knob(
        0.1, "Pull", "How strongly a client is held at θ_t; 0: FedAvg.", symbol="μ", low=0, high=100, paper=0.01
    )

    # FENS, Table 6, at α = 0.1.
    paper_recipe = dataclasses.replace(Iterative.paper_recipe, lr=0.1)

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        rounds = Rounds(ctx, self)
        state = rounds.start
        for t in range(self.rounds):
            # Clients: E epochs from θ_t, held at θ_t.
            anchor = ctx.link.broadcast(state, phase=PHASE)
            rounds.load(anchor)
            yield from rounds.train(t, adjust=proximal(self.mu, rounds.parameters(anchor)))
            received = rounds.up(rounds.states())
            # Server: the weighted average.
            with ctx.server():
                state = weighted_mean(received, ctx.sizes)
            yield rounds.end(t, state)
        return rounds.result


def proximal(mu: float, anchor: State) -> Adjust:
    """g ← g + μ (θ - θ_t), the gradient of (μ/2) ‖θ - θ_t‖²; `anchor` is θ_t, parameters only."""

    def adjust(clients: tuple[int, ...], parameters: dict[str, Tensor], gradients: list[Tensor]) -> None:
        there = [anchor[name].expand_as(parameter) for name, parameter in parameters.items()]
        torch._foreach_add_(gradients, torch._foreach_sub(list(parameters.values()), there), alpha=mu)

    return adjust
