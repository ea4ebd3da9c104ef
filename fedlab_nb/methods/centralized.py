"""Centralized training: one model on everybody's samples in one place. A reference, no bound: others can be ahead.

No federated method may do this: all samples leave their owners. Its ledger shows what that would cost, the samples
themselves sent up (8-bit pixels are not assumed: the tensors as they are trained on). All of each client's data is
used, the held-out part too.
"""

import torch

from ..training import train_clients
from .base import Context, GlobalModel, Method, NetworkModel, Steps, register, reported


@register(
    "centralized",
    title="Centralized",
    group="References",
    paper="reference",
    rounds="none",
    traffic="the samples themselves",
    needs=["one architecture"],
    sends="all its samples",
    leaks="everything",
)
class Centralized(Method):
    """One model is trained on all samples in one place, for reference."""

    trains_locally = False
    sends_models = False

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        pooled = [ctx.link.up(k, ctx.private.everything(k), phase="raw samples") for k in range(ctx.clients_count)]
        x, y = (torch.cat(column) for column in zip(*pooled, strict=True))
        model = ctx.initial_model(0)
        ticks = train_clients([model], [(x, y)], ctx.recipe, seed=ctx.seed, backend=ctx.backend, stream="centralized")
        yield from reported("centralized training", ticks, lambda: NetworkModel(model))
        return NetworkModel(model)
