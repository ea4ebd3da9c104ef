"""FedENS: every client uploads its model once; the server predicts with the mean of all of them.

Guha et al., NeurIPS 2024 (FENS), call the mean of the logits FedENS: f(x) = (1/M) Σ_i π_i(x). The mean of probabilities is the other
common reading and is markedly better under label skew (a confident stranger's logits are unbounded, its probabilities are not).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from .base import EnsembleModel, GlobalModel, Method, Progress, knob, register
from .context import Context


@register(
    "ensemble",
    title="Ensemble (FedENS)",
    paper="Guha et al., NeurIPS 2024",
    rounds="one-shot",
    traffic="2 S_θ",
    leaks="each client's model",
)
@dataclass(frozen=True)
class Ensemble(Method):
    """Upload once, keep all M models, average their outputs."""

    rule: str = knob(
        "logits",
        "Average of",
        "What is averaged over the clients: logits (the paper's FedENS) or probabilities.",
        options=EnsembleModel.RULES,
    )

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        clients = yield from ctx.local_training()
        received = [ctx.link.up(k, clients.state(k), phase="local models") for k in range(ctx.clients_count)]
        with ctx.server():
            return EnsembleModel(clients.with_states(received), self.rule)
