"""FedProx (Li et al., MLSys 2020): FedAvg whose clients stay near the model that they received.

Client k minimises L_k(θ) + (λ_prox/2) ‖θ - θ_t‖², L_k being its loss (λ_prox is the paper's μ). So a local step uses
the gradient g + λ_prox (θ - θ_t); the server averages as FedAvg does. With λ_prox = 0 it is FedAvg to the last bit.
FENS tunes λ_prox over {1, 0.1, 0.01} and reports 0.01; FedLPA runs one round with λ_prox ∈ {0.001, 0.01, 0.1, 1} and
does not say which it reports. Momentum and weight decay act on top of the changed gradient, as they do in a
loss that has the proximal term. Unequal amounts of local work (the paper's γ-inexact solutions) are left out: every
client makes E epochs.
"""

import torch
from torch import Tensor

from ..training.loop import InPlaceGradientAdjustment
from .base import Context, GlobalModel, Steps, knob, register
from .parts.rounds import ROUNDS, Iterative, Rounds, State


@register("fedprox", **ROUNDS, title="FedProx", paper="Li et al., MLSys 2020")
class FedProx(Iterative):
    """FedAvg, but local training is pulled back to the model of the round."""

    mu: float = knob(0.1, "Pull", symbol="λ_prox", low=0, high=100)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)

        def pull_back(anchor: State) -> dict:
            return {
                "adjust": make_proximal_adjustment(
                    self.mu, rounds.select_parameters_without_buffers(anchor)
                )
            }

        # Clients: E epochs from θ_t, pulled back to θ_t. Server: the weighted average.
        yield from rounds.run_all_rounds(rounds.first_state, pull_back)
        return rounds.result


def make_proximal_adjustment(
    pull: float, round_start_parameters: State
) -> InPlaceGradientAdjustment:
    """g ← g + λ_prox (θ - θ_t), the gradient of (λ_prox/2) ‖θ - θ_t‖².

    λ_prox is `pull`, and θ_t `round_start_parameters`, without buffers.
    """

    def adjust(
        clients: tuple[int, ...], parameters: dict[str, Tensor], gradients: list[Tensor]
    ) -> None:
        anchors = [
            round_start_parameters[name].expand_as(parameter)
            for name, parameter in parameters.items()
        ]
        differences = torch._foreach_sub(list(parameters.values()), anchors)
        torch._foreach_add_(gradients, differences, alpha=pull)

    return adjust
