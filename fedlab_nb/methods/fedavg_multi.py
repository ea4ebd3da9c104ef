"""FedAvg with many rounds (McMahan et al., AISTATS 2017): the iterative method whose traffic one-shot methods save.

For t = 1…R: the server sends θ_t to every client; client k trains E local epochs on its own data from θ_t and returns θ_k;
θ_{t+1} = Σ_k (n_k/N) θ_k. Full participation. Traffic of one client: 2 S_θ R. The optimizer's state starts afresh each round.
With R = 1 and the local epochs of the one-shot recipe this is `fedavg` (a test proves it).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass

from ..models import load_state, model_state
from ..training import train_clients
from .base import GlobalModel, Method, NetworkModel, Progress, knob, register, weighted_mean
from .context import Context


@register(
    "fedavg_multi",
    title="FedAvg, R rounds",
    paper="McMahan et al., AISTATS 2017",
    rounds="R rounds",
    traffic="2 S_θ R",
    needs=["one architecture"],
    leaks="each client's model, every round",
)
@dataclass(frozen=True)
class FedAvgMulti(Method):
    """Average the weights again and again: R rounds of short local training."""

    rounds: int = knob(20, "Rounds", "How often models travel both ways.", symbol="R", low=1, high=1000, paper=100)
    local_epochs: int = knob(
        2, "Epochs a round", "Passes over its own data that a client makes in a round.", symbol="E", low=1, high=1000
    )

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        everyone = range(ctx.clients_count)
        recipe = dataclasses.replace(ctx.recipe, epochs=self.local_epochs)
        models = [ctx.initial_model(0) for _ in everyone]
        shards = [ctx.private.train(k) for k in everyone]
        state = model_state(models[0])
        total = self.rounds * self.local_epochs
        for t in range(self.rounds):
            # Clients: E epochs from the model they receive.
            for k in everyone:
                load_state(models[k], ctx.link.down(k, state, phase="rounds"))
            stream = "batches" if t == 0 else f"batches of round {t}"
            for tick in train_clients(models, shards, recipe, seed=ctx.seed, backend=ctx.backend, stream=stream):
                yield Progress("rounds", t * self.local_epochs + tick.done, total)
            received = [ctx.link.up(k, model_state(models[k]), phase="rounds") for k in everyone]
            # Server: the weighted average.
            with ctx.server():
                state = weighted_mean(received, ctx.sizes)
                snapshot = NetworkModel(ctx.new_model(state))
            yield Progress("rounds", (t + 1) * self.local_epochs, total, {"round": t + 1}, model=snapshot)
        return snapshot
