"""Short runs of Fed-ET in a test, and the soft label that its loss stands for."""

import torch.nn.functional as F
from collected_steps import run_and_collect_steps
from torch import Tensor

from fedlab_nb.methods.fedet import FedET

QUICK = {"one_shot_steps": 4, "server_steps": 3, "local_steps": 2, "server_width": 8}


def run_short_fedet(ctx, **values):
    """The final model of a short run."""
    return run_and_collect_steps(FedET(**{**QUICK, **values}).run(ctx))[0]


def make_soft_labels(labels: Tensor, diversity: Tensor, strength: float) -> Tensor:
    """q* = (e_y + λ s_div) / (1 + λ ω_div), `[B, N]`: the one soft label with the minimiser of `ensemble_loss`."""
    target = F.one_hot(labels, diversity.shape[-1]) + strength * diversity
    return target / target.sum(-1, keepdim=True)
