"""SCAFFOLD (Karimireddy et al., ICML 2020): control variates correct the drift of local training.

Server: θ_0, c = 0; client k: c_k = 0. For t = 1…T: θ_t and c go down; client k makes E epochs of steps with g - c_k +
c, then

    c_k⁺ = c_k - c + (θ_t - θ_k) / (J η_l)                  (the paper's option II: its mean gradient of this round)

and sends Δθ_k and Δc_k = c_k⁺ - c_k up. The server: θ_{t+1} = θ_t + η_s Σ_k w_k Δθ_k, c ← c + Σ_k w_k Δc_k.

In round 1 all control variates are 0, so where all clients start from one model (init=same) round 1 is FedAvg to the
last bit; a one-round SCAFFOLD, as the FedLPA paper tabulates it, *is* FedAvg then, and differences in its tables are
noise. With init=different the clients of FedAvg start from models of their own, those of SCAFFOLD from θ_0 all the
same, since the server sends it. Traffic of one client: (S_θ + S_c) both ways,
4 S_θ T without batch norm, whose statistics have no control variates.

Departures, and why:
- J η_l holds for plain SGD. With momentum β a client moves ‖a_k‖₁ > J plain steps (FedNova's a_k, up to 1/(1-β) times
  J), so we divide by ‖a_k‖₁ η_l; with J η_l the control variates would come out ten times too large at β = 0.9.
  Without momentum it is the paper's formula.
- w_k = n_k/N, as in the other methods and in FENS' code, so that η_s = 1 gives FedAvg's average; weights=uniform is
  the paper's 1/M.
- θ_k goes up, not Δθ_k: the same bytes and the same numbers.

With m clients a round, S_t, the sums are over S_t. In the step of θ the weights of S_t sum to 1 (the paper's 1/|S_t|);
in the step of c they stay shares of all clients (its 1/M), so that c is always Σ_k w_k c_k over everyone: who sat out
keeps its c_k.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..training.loop import InPlaceGradientAdjustment
from .base import (
    ClientWeighting,
    Context,
    GlobalModel,
    Steps,
    knob,
    make_client_weights_knob,
    register,
    weighted_mean,
)
from .parts.rounds import (
    ROUNDS,
    Iterative,
    Rounds,
    State,
    count_effective_steps,
    make_local_epochs_knob,
    subtract_states,
)
from .traffic import FederationSizes, RunBytesUpPlusDown

LEAKS = "each client's model, sample count and mean gradient, every round"
SENDS = {"sends": "its network + mean gradient", "back": "the new network + mean gradient"}
INFO = {**ROUNDS, **SENDS, "traffic": "4 S_θ T", "leaks": LEAKS}


@register("scaffold", title="SCAFFOLD", paper="Karimireddy et al., ICML 2020", **INFO)
class Scaffold(Iterative):
    """FedAvg, but local gradients are corrected towards the mean gradient of all clients."""

    counts_steps = True

    # Fewer than the others': with 5 or more, training diverged in some federations of 20 clients.
    local_epochs: int = make_local_epochs_knob(4)
    eta_s: float = knob(1.0, "Server rate", symbol="η_s", low=0.01, high=2)
    weights: ClientWeighting = make_client_weights_knob("w_k")

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        # A control variate goes with each model.
        return RunBytesUpPlusDown(2 * super().bytes_sent(sizes).bytes)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        weights = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
        state = rounds.first_state
        c = {
            name: torch.zeros_like(value)
            for name, value in rounds.select_parameters_without_buffers(state).items()
        }
        client_c = [c] * ctx.clients_count  # c_k
        for t in range(self.rounds):
            # Clients: corrected steps from θ_t, then the new control variate.
            participants = rounds.draw_and_set_participants(t)
            start, common_c = rounds.broadcast_to_participants((state, c))
            rounds.load_state_into_participants(start)
            corrections = [subtract_states(common_c, client_c[k]) for k in participants]
            yield from rounds.train_participants(
                t, adjust=make_control_variate_adjustment(corrections)
            )
            ends = rounds.copy_participant_states_with_poison()
            changes = []
            for k, end in zip(participants, ends, strict=True):
                # ‖a_k‖₁ η_l
                reach = count_effective_steps(ctx.sizes[k], rounds.recipe) * rounds.recipe.lr
                new_c = {}
                for name in common_c:
                    mean_gradient = (start[name] - end[name]) / reach
                    new_c[name] = client_c[k][name] - common_c[name] + mean_gradient
                changes.append(subtract_states(new_c, client_c[k]))
                client_c[k] = new_c
            received = rounds.upload_from_participants(zip(ends, changes, strict=True))
            # Server: both averages.
            with ctx.server():
                round_weights = rounds.select_values_of_participants(weights)
                mean = weighted_mean([end for end, _ in received], round_weights)
                change = weighted_mean([change for _, change in received], round_weights)
                share = sum(round_weights) / sum(weights)
                c = {name: c[name] + share * change[name] for name in c}
                if self.eta_s != 1:
                    for name in c:
                        mean[name] = state[name] + self.eta_s * (mean[name] - state[name])
                state = mean
            yield rounds.make_progress(t, state)
        return rounds.result


def make_control_variate_adjustment(
    server_minus_client_variates: Sequence[State],
) -> InPlaceGradientAdjustment:
    """g ← g + (c - c_k), where `server_minus_client_variates[k]` is c - c_k."""
    rows: dict[tuple[int, ...], list[Tensor]] = {}

    def adjust(
        clients: tuple[int, ...], parameters: dict[str, Tensor], gradients: list[Tensor]
    ) -> None:
        if clients not in rows:  # only a few sets occur: the stack shrinks as clients finish
            rows[clients] = []
            for name in parameters:
                rows[clients].append(
                    torch.stack([server_minus_client_variates[k][name] for k in clients])
                )
        torch._foreach_add_(gradients, rows[clients])

    return adjust
