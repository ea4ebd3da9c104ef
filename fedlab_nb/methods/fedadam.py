"""FedAdam (Reddi et al., ICLR 2021): the clients' mean change is a gradient to the server, which steps by Adam.

For t = 1…T: θ_t down, E local epochs, θ_k up; Δ_t = Σ_k (n_k/N) (θ_k - θ_t); then m, v and θ_{t+1} = θ_t + η_s m /
(√v + κ) as `parts/averages` has them (β = 0.9, 0.99, no bias correction; FENS, which uses the same step for
its aggregator, has κ = 10⁻³). Momenta live at the server, so the traffic is FedAvg's, 2 S_θ T. Batch norm's
statistics are averaged, not stepped.

Departure: v starts at 0, where Reddi et al. start it at κ² (their τ²) or more.

So the first round moves every number whose change is much larger than κ by about η_s · 0.1/√0.01 = η_s, whatever the
clients found: of little use alone.
"""

from typing import cast

from .base import Context, GlobalModel, Steps, knob, register
from .parts import averages
from .parts.rounds import ROUNDS, Iterative, Rounds, State


@register("fedadam", **ROUNDS, title="FedAdam", paper="Reddi et al., ICLR 2021")
class FedAdam(Iterative):
    """FedAvg, but the server makes a step of Adam and does not take the plain average."""

    eta_s: float = knob(0.05, "Server rate", symbol="η_s", low=1e-5, high=10, log=True)
    tau: float = knob(1e-3, "Floor", symbol="κ", low=1e-8, high=1, log=True)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        moments = averages.make_zero_optimizer_moments(
            rounds.select_parameters_without_buffers(rounds.first_state)
        )

        def server(state: State, ends: list[State]) -> State:
            nonlocal moments
            parameters = rounds.select_parameters_without_buffers(state)
            delta = averages.compute_mean_parameter_change(
                rounds.participant_shares, ends, parameters
            )
            new_parameters, moments = averages.compute_server_optimizer_step(
                cast(averages.FedAvgFedAdamOrFedYogi, self.info.name),
                parameters,
                delta,
                moments,
                lr=self.eta_s,
                tau=self.tau,
            )
            return rounds.average_client_states(state, ends) | new_parameters

        # Clients: E epochs from θ_t, as in FedAvg. Server: the mean change as a gradient.
        yield from rounds.run_all_rounds(rounds.first_state, compute_server_state=server)
        return rounds.result


# -------------------------------------------------------------------------------------------------------------- fedyogi
# FedYogi (Reddi et al., ICLR 2021): FedAdam with a second moment that moves by a bounded amount.
#
# v_{t+1} = v_t - (1 - β₂) Δ_t² sign(v_t - Δ_t²) in place of v_{t+1} = β₂ v_t + (1 - β₂) Δ_t²: after a few large changes
# FedAdam's step grows back fast, FedYogi's slowly. Everything else is `fedadam`,
# v = 0 at the start included.


@register("fedyogi", **ROUNDS, title="FedYogi", paper="Reddi et al., ICLR 2021")
class FedYogi(FedAdam):
    """FedAdam, but after large changes its steps grow again more slowly."""
