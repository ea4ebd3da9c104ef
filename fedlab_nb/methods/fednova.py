"""FedNova (Wang et al., NeurIPS 2020): clients that take more steps do not count for more.

Client k moves θ_t - θ_k = η Σ_j a_kj g_j over J_k local steps: ‖a_k‖₁ plain gradients' worth. FedAvg's Σ_k w_k (θ_t -
θ_k) thus weighs a gradient of client k with w_k ‖a_k‖₁, which optimises another objective than Σ_k w_k L_k (L_k: its
loss). FedNova normalises first (the paper writes τ_k for J_k, the local steps, ρ and γ for β and β_s, the momenta):

    d_k = (θ_t - θ_k) / ‖a_k‖₁                         J_eff = Σ_k w_k ‖a_k‖₁
    θ_{t+1} = θ_t - J_eff Σ_k w_k d_k                  w_k = n_k/N

With momentum β, ‖a_k‖₁ = [J_k - β (1 - β^{J_k}) / (1 - β)] / (1 - β), J_k without. Equal J_k give FedAvg back. With
server momentum β_s the server's step is m ← β_s m + J_eff Σ_k w_k d_k, θ ← θ - m (FENS runs it with client and server
momentum, β_s = 0.9).

With m clients a round the sums are over those m, N is their samples and J_eff their steps.

Departures: θ_k goes up instead of d_k, the same bytes; ‖a_k‖₁ follows from n_k (header) and the recipe, so it is not
sent. Weight decay counts as part of the gradient. Batch norm's statistics are averaged with w_k: the weights J_eff
w_k / ‖a_k‖₁ do not sum to 1.

All clients make E epochs, so J_k grows with n_k and FedNova gives small clients *more* say than FedAvg does. Under
label skew that need not be a gain. What the classroom's version gains comes from its server momentum: `papers/tuning`
has tries with and without it.
"""

import torch

from .base import Context, GlobalModel, Steps, knob, register
from .parts.rounds import ROUNDS, Iterative, Rounds, State, count_effective_steps


@register("fednova", **ROUNDS, title="FedNova", paper="Wang et al., NeurIPS 2020")
class FedNova(Iterative):
    """FedAvg, but each client's change is first divided by its number of steps."""

    counts_steps = True

    server_momentum: float = knob(0.5, "Server momentum", symbol="β_s", low=0, high=0.99)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        parameters = rounds.select_parameters_without_buffers(rounds.first_state)
        momentum = {name: torch.zeros_like(value) for name, value in parameters.items()}  # m

        def server(state: State, ends: list[State]) -> State:
            w = rounds.participant_shares
            # ‖a_k‖₁
            a = [count_effective_steps(n, rounds.recipe) for n in rounds.participant_sample_counts]
            j_eff = sum(w_k * a_k for w_k, a_k in zip(w, a, strict=True))
            new_state = rounds.average_client_states(state, ends)
            for name in momentum:
                mean = sum(
                    w_k / a_k * (state[name] - end[name])
                    for w_k, a_k, end in zip(w, a, ends, strict=True)
                )
                momentum[name] = self.server_momentum * momentum[name] + j_eff * mean
                new_state[name] = state[name] - momentum[name]
            return new_state

        # Clients: E epochs from θ_t, as in FedAvg. Server: normalise, average, scale back.
        yield from rounds.run_all_rounds(rounds.first_state, compute_server_state=server)
        return rounds.result
