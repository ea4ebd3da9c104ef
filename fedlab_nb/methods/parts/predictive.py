"""β-predictive Bayes: from a mixture of the clients' predictions (β = 0) to their product (β = 1).

Hasan, Zhang, Guo, Chen, Poupart, *Calibrated One Round Federated Learning with Bayesian Inference in the Predictive
Space*, AAAI 2024 (arXiv 2312.09817):

    p_mix = (1/M) Σ_k p_k,   p_prod ∝ Π_k p_k,   log p_β = β log p_prod + (1 - β) log p_mix - log Z.

A product of experts is too sure of itself, a mixture is not sure enough; one number between them repairs that. At β = 1
the class with the highest probability is that of the mean of the logits, for every x: Σ_k log p_kc = Σ_k f_kc - Σ_k
log Z_k, and the last sum does not depend on c.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ...training import ClientModels
from ..context import Context

GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def between(logits: Tensor, beta: float) -> Tensor:
    """log p_β `[N, C]` from the clients' logits `[M, N, C]`; its exponentials sum to 1."""
    logs = logits.log_softmax(-1)
    mixture = logs.logsumexp(0)
    return (beta * logs.sum(0) + (1 - beta) * mixture).log_softmax(-1)


def choose_beta(ctx: Context, uploaded: ClientModels, grid: tuple[float, ...] = GRID) -> tuple[float, list[float]]:
    """The β of `grid` with the lowest NLL on the clients' held-out samples, and all these NLLs, nats a sample.

    One round more: the uploaded models go down to every client, the NLL sums go up, 4 bytes a β. Call it outside
    `ctx.server()`.
    """
    # Server, link: the models down, since the samples may not go up.
    received = uploaded.with_states(ctx.link.broadcast(uploaded.states(), phase="ensemble"))
    # Clients: the NLL of every β, summed over their own held-out samples.
    sums, samples = [], 0
    for k in range(ctx.clients_count):
        x, y = ctx.private.held_out(k)
        nll = x.new_zeros(len(grid))
        if len(x):
            logits = received.logits(x)
            nll = torch.stack([F.nll_loss(between(logits, beta), y, reduction="sum") for beta in grid])
        sums.append(ctx.link.up(k, {"nll": nll, "samples": len(x)}, phase="likelihoods"))
    with ctx.server():
        samples = sum(one["samples"] for one in sums)
        means = (torch.stack([one["nll"] for one in sums]).sum(0) / samples).tolist()
        return grid[means.index(min(means))], means
