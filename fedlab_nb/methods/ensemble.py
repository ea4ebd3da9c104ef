"""FedENS: every client uploads its model once; the server predicts with all of them together.

Allouah et al., NeurIPS 2024, call the mean of the logits FedENS: f̄(x) = (1/M) Σ_k f_k(x), `rule=logits`. Other rules,
none of them trained; the default is the one that validation images chose (`study/tuning`):
- probabilities: the mean of softmax outputs, markedly better under label skew (a confident stranger's logits are
  unbounded, its probabilities are not);
- weighted: Σ_k (n_k/N) f_k(x), by sample counts (DW-FedENS in Co-Boosting); n_k travels in the message's header;
- class_counts: Σ_k (n_kc / Σ_j n_jc) f_kc(x), by C counts of each client (FedKD's teacher, FENS' weighted
  averaging);
- votes: the class that most models name; ties go to the higher mean probability. FENS' `voting` also weighs who is
  right when.

Whatever the rule, a run reports the accuracy of the two plain means, from the same outputs: comparisons show both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from ..training import ClientModels
from ..training.evaluate import accuracy
from .base import EnsembleModel, GlobalModel, Method, Report, Steps, knob, register
from .context import Context
from .parts.frozen_ensemble import class_count_weights, client_weights, combine
from .results import plain_mean

PLAIN = EnsembleModel.RULES  # the means of logits and of probabilities


@dataclass(frozen=True, eq=False)
class EnsembleReport(Report):
    """`rule`: by which the run predicts;   accuracy_by_rule: test accuracy, 0–1, of each of PLAIN."""

    rule: str | None = None
    accuracy_by_rule: dict[str, float] | None = None

    def others(self) -> dict[str, float]:
        return {f"mean of {r}": share for r, share in (self.accuracy_by_rule or {}).items() if r != self.rule}


class RuledEnsemble(EnsembleModel):
    """All client models under one of five rules; `weights`: `[M]` or `[M, C]`, columns summing to 1.

    The clients' logits on the last `x` are remembered: accuracy, features and both rules cost one pass through them.
    """

    RULES = (*PLAIN, "weighted", "class_counts", "votes")

    def __init__(self, clients: ClientModels, rule: str, weights: Tensor | None = None) -> None:
        super().__init__(clients, rule)
        self.weights, self.report = weights, EnsembleReport(rule)
        self._last: tuple[Tensor, int, Tensor] | None = None

    def said(self, x: Tensor) -> Tensor:
        """The clients' logits on `x [N, ...]`, `[M, N, C]`."""
        if self._last is None or self._last[0] is not x or self._last[1] != x._version:  # another, or written to since
            self._last = x, x._version, self.clients.logits(x)
        return self._last[2]

    def measured(self, x: Tensor, y: Tensor) -> EnsembleReport:
        shares = {rule: accuracy(plain_mean(self.said(x), rule).argmax(1), y) for rule in PLAIN}
        return EnsembleReport(self.rule, accuracy_by_rule=shares)

    def features(self, x: Tensor) -> Tensor:
        return self.said(x).transpose(0, 1).flatten(1)

    def logits(self, x: Tensor) -> Tensor:
        logits = self.said(x)
        if self.rule in PLAIN:
            return plain_mean(logits, self.rule)
        if self.rule == "votes":
            votes = F.one_hot(logits.argmax(-1), logits.shape[-1]).sum(0)
            return votes + logits.softmax(-1).mean(0)  # less than one vote
        return combine(logits, self.weights, normalise=False)


@register("ensemble", title="Ensemble (FedENS)", paper="Allouah et al., NeurIPS 2024", leaks="each client's model")
class Ensemble(Method):
    """Upload once, keep all M models, average their outputs."""

    rule: str = knob(
        "probabilities",
        "Rule",
        "Mean of probabilities, or of logits (the paper's FedENS); logits weighted by samples or class counts; votes.",
        options=RuledEnsemble.RULES,
    )

    report = EnsembleReport

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        uploaded = yield from ctx.one_upload()
        shares = class_count_weights(ctx) if self.rule == "class_counts" else None
        with ctx.server():
            if self.rule == "weighted":
                shares = client_weights("samples", ctx.sizes, next(uploaded.module(0).parameters()))
            return RuledEnsemble(uploaded, self.rule, shares)
