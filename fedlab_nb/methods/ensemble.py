"""FedENS: every client uploads its model once; the server predicts with all of them together.

Allouah et al., NeurIPS 2024, call the mean of the logits FedENS: f̄(x) = (1/M) Σ_k f_k(x). Other rules, none of them
trained:
- probabilities: the mean of softmax outputs, markedly better under label skew (a confident stranger's logits are
  unbounded, its probabilities are not);
- weighted: Σ_k (n_k/N) f_k(x), by sample counts (DW-FedENS in Co-Boosting); n_k travels in the message's header;
- class_counts: Σ_k (n_kc / Σ_j n_jc) f_kc(x), by C counts of each client (FedKD's teacher, FENS' weighted
  averaging);
- votes: the class that most models name; ties go to the higher mean probability. FENS' `voting` also weighs who is
  right when.
"""

import torch.nn.functional as F
from torch import Tensor

from ..training import ClientModels
from .base import EnsembleModel, GlobalModel, Method, Steps, knob, register
from .context import Context
from .fens.method import Fens
from .parts.frozen_ensemble import class_count_weights, client_weights, combine


class RuledEnsemble(EnsembleModel):
    """All client models under one of five rules; `weights`: `[M]` or `[M, C]`, columns summing to 1."""

    RULES = (*EnsembleModel.RULES, "weighted", "class_counts", "votes")

    def __init__(self, clients: ClientModels, rule: str, weights: Tensor | None = None) -> None:
        super().__init__(clients, rule)
        self.weights = weights

    def logits(self, x: Tensor) -> Tensor:
        if self.rule in EnsembleModel.RULES:
            return super().logits(x)
        logits = self.clients.logits(x)
        if self.rule == "votes":
            votes = F.one_hot(logits.argmax(-1), logits.shape[-1]).sum(0)
            return votes + logits.softmax(-1).mean(0)  # less than one vote
        return combine(logits, self.weights, normalise=False)


@register("ensemble", title="Ensemble (FedENS)", paper="Allouah et al., NeurIPS 2024", leaks="each client's model")
class Ensemble(Method):
    """Upload once, keep all M models, average their outputs."""

    rule: str = knob(
        "logits",
        "Rule",
        "Mean of logits (the paper's FedENS) or of probabilities; logits weighted by samples or class counts; votes.",
        options=RuledEnsemble.RULES,
    )

    paper_recipe, paper_model = Fens.paper_recipe, Fens.paper_model  # FENS' comparison

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        uploaded = yield from ctx.one_upload()
        shares = class_count_weights(ctx) if self.rule == "class_counts" else None
        with ctx.server():
            if self.rule == "weighted":
                shares = client_weights("samples", ctx.sizes, next(uploaded.module(0).parameters()))
            return RuledEnsemble(uploaded, self.rule, shares)
